/*
 * The gateway, the request's side: its body is gathered, and passed on as fast
 * as the peer takes it.
 * Between on_body (handler.h) and exchange_ops.send.
 * Looks at no byte of it.
 */
#include <errno.h>
#include <string.h>

#include "proxy/core/snapshot.h"
#include "proxy/handler/gateway_gate.h"
#include "proxy/upstream/peer.h"
#include "proxy/upstream/uconn.h"
#include "proxy/upstream/upstream.h"
#include "src/base/log.h"

static bool
needs_file(const struct gate *gate)
{
	return gate->route->spools ||
	       (gate->route->needs_length &&
		   gate->request->head.body == BODY_CHUNKED);
}

/* ---- gathering ---- */

static size_t
cannot_keep(struct gate *gate, size_t len)
{
	int error = errno;

	if (error != EFBIG)
		log_errno(
		    "r=%s body cannot be kept", request_id(gate->request).ptr);
	if (error == EFBIG)
		gate_refuse(gate, 413, "body too large to keep");
	else
		gate_refuse(gate, 507, "body cannot be kept");
	return len;
}

static size_t
gather(struct gate *gate, const char *from, size_t len, bool last)
{
	const struct conf *conf = gate->request->snapshot->conf;
	struct spool_limits limits = {
		.memory_bytes = conf->limits.spool_memory_bytes,
		.file_bytes = conf->limits.spool_bytes,
		.total_bytes = conf->limits.spool_total_bytes,
		.directory = conf->temp_directory,
	};
	size_t n = len;

	if (!needs_file(gate)) {
		size_t left = spool_memory_left(&gate->spool, &limits);

		if (n > left)
			n = left;
	}
	if (n > 0 && spool_add(&gate->spool, gate->gateway->worker, &limits,
			 from, n) == -1)
		return cannot_keep(gate, len);
	gate->whole = last && n == len;
	gate->body_paused = n < len;
	if (gate->collects && (gate->whole || n < len)) {
		gate->collects = false;
		gate_ask(gate);
	}
	return n;
}

/* ---- passing on ---- */

static enum exchange_result
pass(struct gate *gate, const char *from, size_t len, bool last)
{
	struct exchange *exchange = &gate->attempt->exchange;
	enum exchange_result result =
	    exchange->ops->send(exchange, from, len, last);

	if (result == EXCHANGE_STOPPED)
		gate->stopped = true;
	else if (last)
		gate->sent_last = true;
	if (UNLIKELY(gate->tunnel) && result != EXCHANGE_STOPPED)
		ws_frames_pass(&gate->from_client, from, len);
	if (result == EXCHANGE_FULL) {
		gate->send_full = true;
		gate->sent_before = gate->uconn->io.sent_bytes;
	}
	return result;
}

static size_t
stream(struct gate *gate, const char *from, size_t len, bool last)
{
	if (gate->send_full || gate->stopped) {
		gate->whole = last && len == 0;
		gate->body_paused = len > 0;
		return 0;
	}
	if (pass(gate, from, len, last) == EXCHANGE_STOPPED) {
		/* Not sent: still the same body, for another peer. */
		gate->body_paused = len > 0;
		return 0;
	}
	gate->streamed |= len > 0;
	gate->whole = last;
	gate_watch(gate);
	return len;
}

size_t
gate_take_body(struct gate *gate, const char *from, size_t len, bool last)
{
	if (gate->attempt == NULL)
		return gather(gate, from, len, last);
	if (gate->sent < gate->spool.bytes) {
		/* What came before it must go first. */
		gate->whole = last && len == 0;
		gate->body_paused = len > 0;
		return 0;
	}
	return stream(gate, from, len, last);
}

/* Pass on what the spool holds, then let the client go on. */
void
gate_pump(struct gate *gate)
{
	struct worker *worker = gate->gateway->worker;
	struct buf *room = NULL;

	while (gate->sent < gate->spool.bytes && !gate->send_full &&
	       !gate->stopped) {
		const char *from;
		size_t len =
		    spool_piece(&gate->spool, worker, gate->sent, &room, &from);
		bool last =
		    gate->whole && gate->sent + len == gate->spool.bytes;

		if (len == 0) {
			struct uconn *uconn = gate->uconn;

			buf_put(worker, &room);
			log_errno("r=%s body cannot be read back",
			    request_id(gate->request).ptr);
			gate->attempt->exchange.ops->cancel(
			    &gate->attempt->exchange);
			gate_drop_attempt(gate);
			pool_abandon(worker->slots[WORKER_POOL], &uconn);
			gate_refuse(gate, 500, "body cannot be read back");
			return;
		}
		if (pass(gate, from, len, last) != EXCHANGE_STOPPED)
			gate->sent += len;
	}
	buf_put(worker, &room);
	if (gate->sent < gate->spool.bytes || gate->send_full || gate->stopped)
		return;
	if (gate->whole && !gate->sent_last)
		pass(gate, NULL, 0, true);
	if (gate->body_paused) {
		gate->body_paused = false;
		gate->request->front->body_resume(gate->request);
	}
}

/* ---- the start ---- */

static struct exchange_body
body_of(const struct gate *gate)
{
	const struct h1_request *head = &gate->request->head;

	if (head->body == BODY_NONE)
		return (struct exchange_body){ BODY_NONE, 0 };
	if (head->body == BODY_LENGTH)
		return (
		    struct exchange_body){ BODY_LENGTH, head->content_length };
	if (gate->whole && !gate->streamed)
		return (struct exchange_body){ BODY_LENGTH, gate->spool.bytes };
	return (struct exchange_body){ BODY_CHUNKED, 0 };
}

static struct exchange *
new_exchange(struct gate *gate, struct uconn *uconn)
{
	struct attempt *attempt = pool_of_get(&gate->gateway->attempts);
	struct exchange *exchange = &attempt->exchange;

	*exchange = (struct exchange){
		.ops = gate->route->ops,
		.events = &gate_events,
		.owner = gate,
		.uconn = uconn,
		.request = gate->request,
		.target = &gate->target,
		.state = attempt->state,
	};
	memset(attempt->state, 0, exchange->ops->state_bytes);
	memset(&attempt->deferred, 0, sizeof(attempt->deferred));
	gate->attempt = attempt;
	gate->uconn = uconn;
	return exchange;
}

static void
note_peer(struct request *request, const struct uconn *uconn, unsigned tries)
{
	request->upstream_instance = uconn->peer->instance;
	request->upstream_pid = uconn->peer->pid;
	request->tries = tries;
	if (request->timed) {
		request->times.taken_us =
		    uconn->connected_us != 0 ? uconn->begun_us : clock_now_us();
		request->times.connected_us = uconn->connected_us;
	}
}

static void
on_over(struct uconn *uconn, bool dead)
{
	struct gate *gate = uconn->owner;
	struct exchange *exchange = &gate->attempt->exchange;
	enum exchange_failure failure;

	if (gate->tunnel) {
		gate_tunnel_dead(gate);
		return;
	}
	/* What it said before it died is read first; then its end is seen. */
	if (dead && !io_looks_alive(&uconn->io))
		return;
	if (exchange->got_bytes)
		failure = EXCHANGE_TRUNCATED;
	else if (dead && uconn_is_unread(uconn))
		failure = EXCHANGE_UNTAKEN;
	else
		failure = EXCHANGE_CLOSED;
	exchange->ops->cancel(exchange);
	gate_failed(gate, uconn, failure,
	    dead ? "its process died" : "drain_timeout is up");
}

void
gate_launch(struct gate *gate, struct uconn *uconn)
{
	struct worker *worker = gate->gateway->worker;
	struct exchange *exchange = new_exchange(gate, uconn);
	struct exchange_body body = body_of(gate);
	struct buf *room = NULL;
	const char *from = NULL, *why = NULL;
	size_t len = 0;
	unsigned status;

	uconn->exchange = exchange;
	uconn->owner = gate;
	uconn->on_over = on_over;
	uconn->on_ending = gate_end_stream;
	note_peer(gate->request, uconn, gate->tries);
	if (gate->spool.bytes > 0)
		len = spool_piece(&gate->spool, worker, 0, &room, &from);
	gate->sent_last = gate->whole && len == gate->spool.bytes;
	status = exchange->ops->start(
	    exchange, &body, from, len, gate->sent_last, &why);
	buf_put(worker, &room);
	if (UNLIKELY(status != 0)) {
		gate_drop_attempt(gate);
		/* Nothing was written: it is as good as before. */
		pool_release(worker->slots[WORKER_POOL], &uconn);
		gate_refuse(gate, status, why);
		return;
	}
	gate->sent = len;
	gate_watch(gate);
	gate_watch_whole(gate);
	if (!gate->sent_last)
		gate_pump(gate);
}
