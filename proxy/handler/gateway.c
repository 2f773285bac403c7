/*
 * The gateway: one engine for apps and upstreams, HTTP/1 and FastCGI.
 * Here: a request's way from the handler's call to a peer, its second tries and
 * its ends. Its body is gateway_body.c's, the answer gateway_answer.c's.
 * Knows no bytes of either protocol.
 */
#include "proxy/handler/gateway.h"

#include <stdio.h>
#include <string.h>

#include "proxy/core/response.h"
#include "proxy/core/snapshot.h"
#include "proxy/handler/gateway_gate.h"
#include "proxy/handler/gateway_retry.h"
#include "proxy/http/max_forwards.h"
#include "proxy/upstream/peer.h"
#include "proxy/upstream/uconn.h"
#include "proxy/upstream/upstream.h"
#include "src/base/log.h"
#include "src/base/mem.h"

/* An app that refuses connections is about to be reported dead: ask again a
 * little later instead of failing. */
#define RETRY_MS 250

/* ---- memory ---- */

static size_t
codec_bytes(void)
{
	return exchange_http1.state_bytes > exchange_fastcgi.state_bytes
		   ? exchange_http1.state_bytes
		   : exchange_fastcgi.state_bytes;
}

static struct gateway *
gateway_of(struct worker *worker)
{
	struct gateway *gateway = worker->slots[WORKER_GATEWAY];

	if (LIKELY(gateway != NULL))
		return gateway;
	gateway = mem_alloc(sizeof(*gateway));
	gateway->worker = worker;
	pool_of_init(worker, &gateway->gates, sizeof(struct gate));
	pool_of_init(
	    worker, &gateway->attempts, sizeof(struct attempt) + codec_bytes());
	worker->slots[WORKER_GATEWAY] = gateway;
	return gateway;
}

void
gateway_free(struct worker *worker)
{
	struct gateway *gateway = worker->slots[WORKER_GATEWAY];

	if (gateway == NULL)
		return;
	script_cache_clear(&gateway->scripts);
	pool_of_end(&gateway->gates);
	pool_of_end(&gateway->attempts);
	worker->slots[WORKER_GATEWAY] = NULL;
	mem_free(gateway);
}

static void
release_attempt(struct worker *worker, struct deferred *deferred)
{
	struct attempt *attempt =
	    CONTAINER_OF(deferred, struct attempt, deferred);
	struct gateway *gateway = worker->slots[WORKER_GATEWAY];

	if (gateway != NULL)
		pool_of_put(&gateway->attempts, attempt);
	else
		mem_free(attempt);
}

void
gate_drop_attempt(struct gate *gate)
{
	struct attempt *attempt = gate->attempt;

	if (attempt == NULL)
		return;
	gate->attempt = NULL;
	gate->uconn = NULL;
	timer_disarm(&gate->timer);
	timer_disarm(&gate->whole_timer);
	attempt->deferred.release = release_attempt;
	worker_defer(gate->gateway->worker, &attempt->deferred);
}

void
gate_forget(struct gate *gate)
{
	struct gateway *gateway = gate->gateway;

	gate->request->handler_state = NULL;
	timer_disarm(&gate->timer);
	spool_free(&gate->spool, gateway->worker);
	pool_of_put(&gateway->gates, gate);
}

/* ---- ends ---- */

void
gate_refuse(struct gate *gate, unsigned status, const char *why)
{
	struct request *request = gate->request;

	gate_forget(gate);
	response_abort(request, status, why);
}

static const char *
word_of(enum pool_failure failure)
{
	switch (failure) {
	case POOL_STOPPED:
		return "app stopped";
	case POOL_BACKOFF:
		return "app failed";
	case POOL_QUEUE_FULL:
		return "queue full";
	case POOL_QUEUE_TIMEOUT:
		return "waited too long";
	case POOL_CONNECT_FAILED:
		return "connect failed";
	case POOL_TLS_FAILED:
		return "TLS handshake failed";
	case POOL_CONNECT_TIMEOUT:
		return "connect timed out";
	case POOL_ENDING:
		return "ending";
	case POOL_OK:
		break;
	}
	return "no peer";
}

/* 503 with the app's state in words. */
static void
say_unavailable(struct gate *gate, enum pool_failure failure)
{
	struct request *request = gate->request;
	char text[UPSTREAM_SAY_MAX], line[40];
	unsigned after_s = upstream_say(gate->route->upstream, failure, text);
	int len = snprintf(line, sizeof(line), "Retry-After: %u\r\n", after_s);

	if (gate_may_log(gate, LOG_LEVEL_INFO))
		log_info("r=%s upstream=%s 503: %s", request_id(request).ptr,
		    gate->route->name, word_of(failure));
	request->why = word_of(failure);
	upstream_count_refused(gate->route->upstream);
	gate_forget(gate);
	response_error(request, 503, (struct str){ line, (size_t)len }, text);
}

/* A request as it is named in a line of the log. The target is cut: it is there
 * to know the request again, and the line has an end. */
static struct str
short_target(const struct request *request)
{
	struct str target = request->target;

	if (target.len > 256)
		target.len = 256;
	return target;
}

static void
say_unreachable(struct gate *gate, enum pool_failure failure)
{
	struct request *request = gate->request;
	struct str target = short_target(request);

	if (gate_may_log(gate, LOG_LEVEL_WARN))
		log_warn("r=%s upstream=%s %.*s %.*s failed: %s (try %u)",
		    request_id(request).ptr, gate->route->name,
		    (int)request->method.len, request->method.ptr,
		    (int)target.len, target.ptr, word_of(failure), gate->tries);
	upstream_count_refused(gate->route->upstream);
	gate_refuse(gate, failure == POOL_CONNECT_TIMEOUT ? 504 : 502,
	    word_of(failure));
}

static void
on_retry(struct worker *worker, struct timer *timer)
{
	gate_ask(CONTAINER_OF(timer, struct gate, timer));
}

static void
pool_refused(struct gate *gate, enum pool_failure failure)
{
	struct worker *worker = gate->gateway->worker;

	if (failure != POOL_CONNECT_FAILED && failure != POOL_TLS_FAILED &&
	    failure != POOL_CONNECT_TIMEOUT) {
		say_unavailable(gate, failure);
		return;
	}
	if (gate->route->is_app && gate->tries < GATEWAY_APP_TRIES_MAX) {
		timer_arm(worker, timer_class_of(worker, RETRY_MS, on_retry),
		    &gate->timer);
		return;
	}
	if (!gate->route->is_app && gate->tries < GATEWAY_TRIES_MAX) {
		gate_ask(gate);
		return;
	}
	say_unreachable(gate, failure);
}

/* ---- to a peer ---- */

static void
on_ready(void *arg, struct uconn *uconn, enum pool_failure failure)
{
	struct gate *gate = arg;

	gate->wait = NULL;
	if (uconn != NULL)
		gate_launch(gate, uconn);
	else
		pool_refused(gate, failure);
}

static bool
may_be_repeated(const struct gate *gate)
{
	return http_method_is_idempotent(gate->request->head.method) &&
	       gate->whole;
}

void
gate_ask(struct gate *gate)
{
	struct request *request = gate->request;
	struct worker *worker = gate->gateway->worker;
	struct pool_ask ask = {
		.limits = &gate->route->limits,
		.buffer_bytes = request->snapshot->conf->limits.buffer_bytes,
		.client = &request->forwarded.client,
		.fresh = gate->fresh,
		.careful = !may_be_repeated(gate),
	};
	enum pool_failure failure;
	struct uconn *uconn;

	gate->tries++;
	gate->sent = 0;
	gate->send_full = gate->stopped = gate->sent_last = false;
	if (request->timed && request->times.queued_us == 0)
		request->times.queued_us = clock_now_us();
	uconn = pool_acquire(worker->slots[WORKER_POOL], gate->route->upstream,
	    &ask, on_ready, gate, &gate->wait, &failure);
	if (LIKELY(uconn != NULL))
		gate_launch(gate, uconn);
	else if (failure != POOL_OK)
		pool_refused(gate, failure);
}

static void
log_failure(struct gate *gate, bool again, const char *why)
{
	struct request *request = gate->request;
	const struct peer *peer = gate->uconn->peer;
	struct str target = short_target(request);

	if (!gate_may_log(gate, again ? LOG_LEVEL_INFO : LOG_LEVEL_WARN))
		return;
	(again ? log_info : log_warn)(
	    "r=%s upstream=%s peer=%s pid=%u %.*s %.*s %s: %s (try %u)",
	    request_id(request).ptr, gate->route->name, peer->text, peer->pid,
	    (int)request->method.len, request->method.ptr, (int)target.len,
	    target.ptr, again ? "is repeated" : "failed", why, gate->tries);
}

/* Its process was replaced and ended, or we do: so does what has no end of its
 * own. The client asks again, and gets another process. */
static void
end_stream(struct gate *gate)
{
	struct request *request = gate->request;
	struct uconn *uconn = gate->uconn;

	peer_count(uconn->peer, gate->gateway->worker->index, false);
	gate_drop_attempt(gate);
	pool_close(gate->gateway->worker->slots[WORKER_POOL], &uconn, false);
	gate_forget(gate);
	response_end(request);
}

void
gate_end_stream(struct uconn *uconn)
{
	struct gate *gate = uconn->owner;
	struct exchange *exchange = &gate->attempt->exchange;

	if (gate->tunnel) {
		gate_tunnel_ending(gate);
	} else if (gate->endless) {
		exchange->ops->cancel(exchange);
		end_stream(gate);
	}
}

void
gate_failed(struct gate *gate, const struct uconn *uconn,
    enum exchange_failure failure, const char *why)
{
	struct request *request = gate->request;
	struct exchange *exchange = &gate->attempt->exchange;
	struct attempt_end end = {
		.failure = failure,
		.tries = gate->tries,
		.was_kept = uconn->served > 0,
		.sent_bytes = uconn->io.sent_bytes != exchange->sent_before,
		.got_bytes = exchange->got_bytes,
		.is_answered = gate->answered,
		.is_idempotent =
		    http_method_is_idempotent(request->head.method),
		.is_whole = !gate->streamed,
	};
	bool again = !request->is_gone && gateway_may_retry(&end);
	struct uconn *mine = gate->uconn;

	if (failure == EXCHANGE_TRUNCATED && gate->endless && !gate->tunnel &&
	    peer_is_replaced(mine->peer)) {
		end_stream(gate);
		return;
	}
	log_failure(gate, again, why);
	/* Before the client can know of it and ask again. */
	if (failure == EXCHANGE_CLOSED || failure == EXCHANGE_TRUNCATED ||
	    failure == EXCHANGE_UNTAKEN)
		peer_broke_off(mine->peer, clock_now_ms());
	/* A request that is repeated is counted where it ends. */
	if (!again)
		peer_count(mine->peer, gate->gateway->worker->index, true);
	gate_drop_attempt(gate);
	pool_close(gate->gateway->worker->slots[WORKER_POOL], &mine,
	    failure == EXCHANGE_CLOSED && !end.was_kept);
	if (!again) {
		/* Who can tell what else of this answer went astray? Both ends
		 * are closed. */
		request->head.keep_alive = false;
		gate_refuse(gate, gateway_status(failure), why);
		return;
	}
	gate->fresh = end.was_kept;
	gate_ask(gate);
}

/* ---- the handler's calls ---- */

/* A small body is gathered before a peer is taken: whole, it can be sent in one
 * write, and again. One for a peer that is occupied meanwhile is gathered as
 * far as memory goes. One for which FastCGI needs a length is gathered whole.
 */
static bool
wants_to_collect(const struct gate *gate)
{
	const struct request *request = gate->request;
	const struct conf_limits *limits = &request->snapshot->conf->limits;

	if (request->head.body == BODY_LENGTH &&
	    request->head.content_length <= limits->spool_memory_bytes)
		return true;
	return gate->route->needs_length || gate->route->spools ||
	       upstream_is_capped(gate->route->upstream, gate->gateway->worker);
}

/* What would not fit is refused before it is read. */
static bool
is_beyond_spool(const struct gate *gate)
{
	const struct request *request = gate->request;

	return gate->route->spools && request->head.body == BODY_LENGTH &&
	       request->head.content_length >
		   request->snapshot->conf->limits.spool_bytes;
}

static void
redirect(struct gate *gate)
{
	struct request *request = gate->request;
	struct str to = gate->target.target;
	bool safe = request->head.method == METHOD_GET ||
		    request->head.method == METHOD_HEAD;
	struct strbuf line = STRBUF_EMPTY;

	strbuf_printf(&line, "Location: %.*s\r\n", (int)to.len, to.ptr);
	gate_forget(gate);
	response_error(request, safe ? 301 : 308,
	    (struct str){ line.ptr, line.len }, NULL);
	strbuf_free(&line);
}

static struct gate *
new_gate(struct request *request, const struct gateway_route *route)
{
	struct gateway *gateway = gateway_of(request->worker);
	struct gate *gate = pool_of_get(&gateway->gates);

	memset(gate, 0, sizeof(*gate));
	gate->request = request;
	gate->gateway = gateway;
	gate->route = route;
	spool_init(&gate->spool);
	request->handler_state = gate;
	request->upstream_name = route->name;
	return gate;
}

/* RFC 9110 section 7.6.2: the request ends here, and we are who answers. */
static bool
is_at_its_end(const struct request *request)
{
	uint64_t left;

	return max_forwards_read(&request->head, request->base, &left) &&
	       left == 0;
}

static enum handler_result
on_request(struct request *request, const void *prepared)
{
	static const struct response_head nothing = { .status = 204,
		.length = RESPONSE_LENGTH_UNKNOWN };
	const struct gateway_route *route = prepared;
	struct gate *gate;
	const char *why = NULL;
	unsigned status;

	if (UNLIKELY(is_at_its_end(request))) {
		response_start(request, &nothing);
		response_end(request);
		return HANDLER_HANDLED;
	}
	gate = new_gate(request, route);
	status = gateway_target(
	    request, route, &gate->gateway->scripts, &gate->target, &why);
	if (UNLIKELY(status == 301)) {
		redirect(gate);
		return HANDLER_HANDLED;
	}
	if (UNLIKELY(status == 500 && !upstream_is_up(route->upstream))) {
		/* The root is what keeps the app from starting. */
		say_unavailable(gate, POOL_BACKOFF);
		return HANDLER_HANDLED;
	}
	if (UNLIKELY(status != 0)) {
		gate_refuse(gate, status, why);
		return HANDLER_HANDLED;
	}
	request_id(request);
	gate->whole = request->body_is_whole;
	if (UNLIKELY(is_beyond_spool(gate))) {
		gate_refuse(gate, 413, "body too large to keep");
		return HANDLER_HANDLED;
	}
	if (!gate->whole) {
		gate->collects = wants_to_collect(gate);
		request->front->body_wanted(request);
	}
	if (!gate->collects)
		gate_ask(gate);
	return HANDLER_HANDLED;
}

static size_t
on_body(struct request *request, const char *from, size_t len, bool last)
{
	struct gate *gate = request->handler_state;

	return gate == NULL ? len : gate_take_body(gate, from, len, last);
}

static void
on_writable(struct request *request)
{
	struct gate *gate = request->handler_state;

	if (gate == NULL || !gate->paused)
		return;
	gate->paused = false;
	if (gate->attempt == NULL)
		return;
	gate_watch(gate);
	gate->attempt->exchange.ops->resume(&gate->attempt->exchange);
}

static void
on_abort(struct request *request)
{
	struct gate *gate = request->handler_state;
	struct pool *pool = request->worker->slots[WORKER_POOL];
	struct uconn *uconn;

	if (gate == NULL)
		return;
	uconn = gate->uconn;
	if (gate->attempt != NULL) {
		gate->attempt->exchange.ops->cancel(&gate->attempt->exchange);
		peer_count(uconn->peer, request->worker->index, false);
		gate_drop_attempt(gate);
		if (UNLIKELY(gate->tunnel))
			pool_cut(pool, &uconn, true);
		else
			pool_abandon(pool, &uconn);
	}
	pool_cancel(pool, &gate->wait);
	gate_forget(gate);
}

const struct handler_ops handler_gateway = {
	.name = "gateway",
	.prepare = gateway_route_new,
	.release = gateway_route_free,
	.on_request = on_request,
	.on_body = on_body,
	.on_writable = on_writable,
	.on_abort = on_abort,
};
