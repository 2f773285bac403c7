/*
 * The respond action: everything but status line and date is made with the
 * snapshot, so that a request costs two copies. A large body goes out in parts,
 * as the client takes them.
 * Called by request_dispatch. Never wants a body.
 */
#include "proxy/handler/respond.h"

#include "proxy/core/request.h"
#include "proxy/core/response.h"
#include "proxy/core/snapshot.h"
#include "src/base/arena.h"

/* A body above this is never queued whole. */
#define PART_BYTES ((size_t)65536)

struct respond {
	struct arena *arena;
	struct response_fixed fixed;
	struct str type_line; /* for a head of its own */
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
	respond->type_line = str_of(
	    arena_printf(arena, "Content-Type: %s\r\n", action->respond.type));
	return respond;
}

static void
release(void *prepared)
{
	struct respond *respond = prepared;

	arena_free(respond->arena);
}

/* The next parts, until the client takes no more for now. The request knows how
 * far it is. */
static void
on_writable(struct request *request)
{
	const struct respond *respond = request->handler_state;
	struct str body = respond->fixed.body;

	while (request->bytes_sent < body.len) {
		size_t left = body.len - (size_t)request->bytes_sent;

		if (response_write(request,
			body.ptr + (size_t)request->bytes_sent,
			left < PART_BYTES ? left : PART_BYTES) != RESPONSE_OK &&
		    left > PART_BYTES)
			return;
	}
	response_end(request);
}

static void
send_in_parts(struct request *request, const struct respond *respond)
{
	const struct response_head head = {
		.status = respond->fixed.status,
		.length = respond->fixed.body.len,
		.lines = respond->type_line,
	};
	enum response_result result = response_start(request, &head);

	request->handler_state = (void *)(uintptr_t)respond;
	if (request->head.method == METHOD_HEAD)
		response_end(request);
	else if (result == RESPONSE_OK)
		on_writable(request);
}

static enum handler_result
on_request(struct request *request, const void *prepared)
{
	const struct respond *respond = prepared;

	if (UNLIKELY(respond->fixed.body.len > PART_BYTES))
		send_in_parts(request, respond);
	else
		response_fixed_send(request, &respond->fixed);
	return HANDLER_HANDLED;
}

const struct handler_ops handler_respond = {
	.name = "respond",
	.prepare = prepare,
	.release = release,
	.on_request = on_request,
	.on_writable = on_writable,
};
