/*
 * The respond action: everything but status line and date is made with the
 * snapshot, so that a request costs two copies.
 * Called by request_dispatch. Never wants a body.
 */
#include "proxy/handler/respond.h"

#include "proxy/core/response.h"
#include "proxy/core/snapshot.h"
#include "src/base/arena.h"

struct respond {
	struct arena *arena;
	struct response_fixed fixed;
};

static void *
prepare(const struct conf_route *route, const struct conf_action *action,
    const struct handler_env *env, struct conf_errors *errors)
{
	struct arena *arena = arena_new();
	struct respond *respond = arena_alloc(arena, sizeof(*respond));
	struct str lines = response_field_lines(
	    arena, route->response_fields, route->n_response_fields);
	struct str body = { action->respond.body, action->respond.body_len };

	respond->arena = arena;
	response_fixed_make(arena, action->respond.status, lines,
	    action->respond.type, body, &respond->fixed);
	return respond;
}

static void
release(void *prepared)
{
	struct respond *respond = prepared;

	arena_free(respond->arena);
}

static enum handler_result
on_request(struct request *request, const void *prepared)
{
	const struct respond *respond = prepared;

	response_fixed_send(request, &respond->fixed);
	return HANDLER_HANDLED;
}

const struct handler_ops handler_respond = {
	.name = "respond",
	.prepare = prepare,
	.release = release,
	.on_request = on_request,
};
