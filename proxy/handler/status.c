/*
 * The status action: what the workers and the upstreams counted, as JSON.
 * Called by request_dispatch, rarely; sums are made here. The route decides
 * who may see it.
 */
#include "proxy/handler/status.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/core/response.h"
#include "proxy/core/snapshot.h"
#include "proxy/upstream/registry.h"
#include "src/base/mem.h"

struct status {
	struct upstream_registry *registry; /* NULL: only our own numbers */
};

static void *
prepare(const struct conf_route *route, const struct conf_action *action,
    const struct handler_env *env, struct conf_errors *errors)
{
	struct status *status = mem_alloc(sizeof(*status));

	status->registry = env->registry;
	return status;
}

static void
release(void *prepared)
{
	mem_free(prepared);
}

static uint64_t
read_counter(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void
set_number(json_t *object, const char *name, uint64_t value)
{
	json_object_set_new(object, name, json_integer((json_int_t)value));
}

static void
add_proxy(json_t *root, const struct worker *worker)
{
	struct {
		uint64_t accepted, handed_off, requests, open, bad, in, out;
		uint64_t status[6], connections;
	} sum = { 0 };
	static const char *const classes[6] = { "0", "1xx", "2xx", "3xx", "4xx",
		"5xx" };
	json_t *by_class = json_object();

	for (unsigned i = 0; i < worker->n_workers; i++) {
		const struct metrics *one = &worker->all[i]->metrics;

		sum.accepted += read_counter(&one->accepted);
		sum.handed_off += read_counter(&one->handed_off);
		sum.requests += read_counter(&one->requests);
		sum.open += read_counter(&one->requests_open);
		sum.bad += read_counter(&one->bad_requests);
		sum.in += read_counter(&one->bytes_in);
		sum.out += read_counter(&one->bytes_out);
		for (unsigned j = 0; j < 6; j++)
			sum.status[j] += read_counter(&one->status[j]);
		sum.connections += atomic_load_explicit(
		    &worker->load[i].connections, memory_order_relaxed);
	}
	set_number(root, "workers", worker->n_workers);
	set_number(root, "connections", sum.connections);
	set_number(root, "accepted", sum.accepted);
	set_number(root, "handed_off", sum.handed_off);
	set_number(root, "requests", sum.requests);
	set_number(root, "requests_open", sum.open);
	set_number(root, "bad_requests", sum.bad);
	set_number(root, "bytes_in", sum.in);
	set_number(root, "bytes_out", sum.out);
	for (unsigned j = 0; j < 6; j++)
		set_number(by_class, classes[j], sum.status[j]);
	json_object_set_new(root, "status", by_class);
}

/* Each upstream is followed by its instances. */
static void
add_upstream(void *arg, const struct registry_stats *stats)
{
	json_t *upstreams = arg;
	json_t *one = json_object(), *last;

	set_number(one, "requests", stats->requests);
	set_number(one, "errors", stats->errors);
	set_number(one, "in_flight", stats->in_flight);
	set_number(one, "connections", stats->connections);
	if (stats->instance == 0) {
		json_object_set_new(one, "name", json_string(stats->name));
		json_object_set_new(one, "app", json_boolean(stats->is_app));
		set_number(one, "queued", stats->queued);
		set_number(one, "oldest_wait_ms", stats->oldest_wait_ms);
		json_object_set_new(one, "instances", json_array());
		json_array_append_new(upstreams, one);
		return;
	}
	set_number(one, "instance", stats->instance);
	last = json_array_get(upstreams, json_array_size(upstreams) - 1);
	json_array_append_new(json_object_get(last, "instances"), one);
}

static enum handler_result
on_request(struct request *request, const void *prepared)
{
	const struct status *status = prepared;
	struct response_head head = { .status = 200 };
	json_t *root = json_object(), *upstreams = json_array();
	char *text;

	add_proxy(root, request->worker);
	if (status->registry != NULL)
		registry_each(status->registry, add_upstream, upstreams);
	json_object_set_new(root, "upstreams", upstreams);
	text = json_dumps(root, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	json_decref(root);
	if (text == NULL) {
		response_error(request, 500, STR(""), "no status");
		return HANDLER_HANDLED;
	}
	head.length = strlen(text);
	head.lines = STR("Content-Type: application/json\r\n"
			 "Cache-Control: no-store\r\n");
	if (response_start(request, &head) != RESPONSE_GONE &&
	    response_write(request, text, strlen(text)) != RESPONSE_GONE)
		response_end(request);
	free(text);
	return HANDLER_HANDLED;
}

const struct handler_ops handler_status = {
	.name = "status",
	.prepare = prepare,
	.release = release,
	.on_request = on_request,
};
