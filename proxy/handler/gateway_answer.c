/*
 * The gateway, the answer's side: what a peer says goes to the client, as fast
 * as that takes it.
 * Between the exchange's events and response.h.
 */
#include <string.h>

#include "proxy/core/response.h"
#include "proxy/handler/gateway_gate.h"
#include "proxy/upstream/peer.h"
#include "proxy/upstream/registry.h"
#include "proxy/upstream/uconn.h"
#include "proxy/upstream/upstream.h"
#include "src/base/log.h"

/* ---- time ---- */

/* It is the client's turn, not the peer's. */
static bool
waits_for_client(const struct gate *gate)
{
	return gate->paused ||
	       (!gate->sent_last && !gate->send_full && !gate->stopped);
}

/* One that sends 100 after 100, or a head byte by byte, is not silent. */
static void
log_silence(struct gate *gate, int length_ms)
{
	const struct peer *peer = gate->uconn->peer;
	bool began = !gate->answered && gate->attempt->exchange.got_bytes;

	if (gate_may_log(gate, LOG_LEVEL_WARN))
		log_warn("r=%s upstream=%s peer=%s pid=%u sent %s for %d ms",
		    request_id(gate->request).ptr, gate->route->name,
		    peer->text, peer->pid,
		    began ? "no whole head of an answer" : "nothing",
		    length_ms);
}

static void
on_silence(struct worker *worker, struct timer *timer)
{
	struct gate *gate = CONTAINER_OF(timer, struct gate, timer);
	struct uconn *uconn = gate->uconn;

	if (gate->attempt == NULL)
		return;
	if (gate->tunnel) {
		gate_tunnel_silent(gate);
		return;
	}
	/* The client is the slow one: its own limits apply. */
	if (waits_for_client(gate)) {
		gate_watch(gate);
		return;
	}
	log_silence(gate, timer->cls->length_ms);
	gate->attempt->exchange.ops->cancel(&gate->attempt->exchange);
	peer_count(uconn->peer, worker->index, true);
	gate_drop_attempt(gate);
	pool_abandon(worker->slots[WORKER_POOL], &uconn);
	gate_refuse(gate, 504, "no answer in time");
}

static void
on_whole_too_long(struct worker *worker, struct timer *timer)
{
	struct gate *gate = CONTAINER_OF(timer, struct gate, whole_timer);
	struct uconn *uconn = gate->uconn;

	if (waits_for_client(gate)) {
		gate_watch_whole(gate);
		return;
	}
	if (gate_may_log(gate, LOG_LEVEL_WARN))
		log_warn("r=%s upstream=%s peer=%s pid=%u took more than %d ms",
		    request_id(gate->request).ptr, gate->route->name,
		    uconn->peer->text, uconn->peer->pid, timer->cls->length_ms);
	gate->attempt->exchange.ops->cancel(&gate->attempt->exchange);
	peer_count(uconn->peer, worker->index, true);
	gate_drop_attempt(gate);
	pool_condemn(worker->slots[WORKER_POOL], &uconn);
	gate_refuse(gate, 504, "request timeout");
}

void
gate_watch_whole(struct gate *gate)
{
	struct worker *worker = gate->gateway->worker;
	int length_ms = gate->route->request_timeout_ms;

	if (UNLIKELY(length_ms > 0))
		timer_arm(worker,
		    timer_class_of(worker, length_ms, on_whole_too_long),
		    &gate->whole_timer);
}

static int
patience_ms(const struct gate *gate)
{
	if (!gate->answered)
		return gate->route->response_timeout_ms;
	if (UNLIKELY(gate->tunnel && gate->send_full && !gate->sent_last))
		return gate->route->pause_timeout_ms;
	return UNLIKELY(gate->streams) ? gate->route->stream_timeout_ms
				       : gate->route->pause_timeout_ms;
}

void
gate_watch(struct gate *gate)
{
	struct worker *worker = gate->gateway->worker;
	struct timer_class *cls = gate->timer.cls;
	int length_ms = patience_ms(gate);

	if (cls == NULL || cls->expired != on_silence ||
	    cls->length_ms != length_ms)
		cls = timer_class_of(worker, length_ms, on_silence);
	timer_arm(worker, cls, &gate->timer);
}

/* ---- the answer ---- */

/* The client takes no more: nor do we. */
static void
heed(struct gate *gate, enum response_result result)
{
	struct exchange *exchange = &gate->attempt->exchange;

	if (LIKELY(result == RESPONSE_OK) || gate->paused)
		return;
	gate->paused = true;
	exchange->ops->pause(exchange);
}

static uint64_t
length_of(const struct h1_response *head)
{
	switch (head->body) {
	case BODY_NONE:
		/* What a GET would bring, for HEAD and 304. */
		if (header_has(&head->headers, HEADER_CONTENT_LENGTH))
			return head->content_length;
		return RESPONSE_LENGTH_UNKNOWN;
	case BODY_LENGTH:
		return head->content_length;
	case BODY_CHUNKED:
	case BODY_UNTIL_CLOSE:
	case BODY_TUNNEL:
		break;
	}
	return RESPONSE_LENGTH_UNKNOWN;
}

/* An event stream is of no use if it waits for more of itself. */
static bool
is_stream(const struct h1_response *head, const char *base)
{
	const struct header_field *type, *buffering;

	type = header_get(&head->headers, HEADER_CONTENT_TYPE);
	buffering = header_get(&head->headers, HEADER_X_ACCEL_BUFFERING);
	if (type != NULL &&
	    str_starts_with(header_value(base, type), STR("text/event-stream")))
		return true;
	return buffering != NULL &&
	       str_eq_nocase(header_value(base, buffering), STR("no"));
}

static void
on_head(
    struct exchange *exchange, const struct h1_response *head, const char *base)
{
	struct gate *gate = exchange->owner;
	struct response_head answer = {
		.status = head->status,
		.length = length_of(head),
		.fields = &head->headers,
		.base = base,
		.flush_always = is_stream(head, base),
		.tunnel = head->body == BODY_TUNNEL,
	};

	gate->answered = true;
	gate->streams = answer.flush_always || answer.tunnel;
	if (UNLIKELY(gate->streams)) {
		timer_disarm(&gate->whole_timer);
		gate->uconn->is_stream = true;
		peer_stream_began(gate->uconn->peer);
		gate->endless = answer.length == RESPONSE_LENGTH_UNKNOWN;
	}
	if (UNLIKELY(answer.tunnel))
		gate_open_tunnel(gate);
	gate_watch(gate);
	heed(gate, response_start(gate->request, &answer));
}

static void
on_inform(
    struct exchange *exchange, const struct h1_response *head, const char *base)
{
	struct gate *gate = exchange->owner;
	struct request *request = gate->request;
	struct response_head inform = {
		.status = head->status, .fields = &head->headers, .base = base
	};

	/* The time for the final head goes on. */
	if (request->front->inform != NULL && !request->is_gone)
		request->front->inform(request, &inform);
}

static void
on_data(struct exchange *exchange, const char *from, size_t len)
{
	struct gate *gate = exchange->owner;

	gate_watch(gate);
	if (UNLIKELY(gate->tunnel))
		ws_frames_pass(&gate->from_peer, from, len);
	heed(gate, response_write(gate->request, from, len));
}

static void
on_trailers(struct exchange *exchange, const struct header_table *trailers,
    const char *base)
{
	struct gate *gate = exchange->owner;

	response_trailers(gate->request, trailers, base);
}

static void
on_idle(struct exchange *exchange)
{
	struct gate *gate = exchange->owner;

	if (gate->answered)
		heed(gate, response_flush(gate->request));
}

static void
on_half_closed(struct exchange *exchange)
{
	gate_tunnel_half_closed(exchange->owner);
}

static void
on_end(struct exchange *exchange, bool reusable)
{
	struct gate *gate = exchange->owner;
	struct request *request = gate->request;
	struct worker *worker = gate->gateway->worker;
	struct pool *pool = worker->slots[WORKER_POOL];
	struct uconn *uconn = gate->uconn;

	peer_count(uconn->peer, worker->index, request->status >= 500);
	if (UNLIKELY(gate->tunnel))
		gate_tunnel_say_close(gate);
	gate_drop_attempt(gate);
	if (LIKELY(reusable))
		pool_release(pool, &uconn);
	else
		pool_close(pool, &uconn, false);
	gate_forget(gate);
	response_end(request);
}

static void
on_failed(
    struct exchange *exchange, enum exchange_failure failure, const char *why)
{
	struct gate *gate = exchange->owner;

	gate_failed(gate, gate->uconn, failure, why);
}

static void
on_takes_more(struct exchange *exchange)
{
	struct gate *gate = exchange->owner;

	gate->send_full = false;
	gate_watch(gate);
	gate_pump(gate);
}

static void
on_stderr(struct exchange *exchange, const char *from, size_t len)
{
	struct gate *gate = exchange->owner;
	const struct peer *peer = gate->uconn->peer;
	struct str line = { from, len };

	if (peer->instance != 0)
		registry_tell_output(gate->route->registry, peer->instance,
		    request_id(gate->request), line);
	else
		log_info("r=%s upstream=%s stderr: %.*s",
		    request_id(gate->request).ptr, gate->route->name, (int)len,
		    from);
}

const struct exchange_events gate_events = {
	.on_inform = on_inform,
	.on_head = on_head,
	.on_body = on_data,
	.on_trailers = on_trailers,
	.on_idle = on_idle,
	.on_half_closed = on_half_closed,
	.on_end = on_end,
	.on_failed = on_failed,
	.on_writable = on_takes_more,
	.on_stderr = on_stderr,
};
