/*
 * The gateway, when app and client have changed to another protocol: a
 * WebSocket.
 * From the answer's head on. What both say goes the usual ways of bodies
 * (gateway_body.c, gateway_answer.c); here is what a tunnel ends by.
 * Counts frames, and knows of none what it says.
 */
#include "proxy/core/response.h"
#include "proxy/handler/gateway_gate.h"
#include "proxy/upstream/peer.h"
#include "proxy/upstream/uconn.h"
#include "proxy/upstream/upstream.h"
#include "src/base/log.h"

/* The request had no body; what its client sends now takes the place of one,
 * and is never sent twice. */
void
gate_open_tunnel(struct gate *gate)
{
	gate->tunnel = true;
	gate->whole = gate->sent_last = false;
	gate->streamed = true;
}

static void
say_close(struct gate *gate)
{
	if (gate->peer_shut || !ws_frames_may_close(&gate->from_peer))
		return;
	ws_frames_pass(&gate->from_peer, WS_GOING_AWAY, WS_LEN(WS_GOING_AWAY));
	/* It is the last: whether more fits does not matter. */
	(void)response_write(
	    gate->request, WS_GOING_AWAY, WS_LEN(WS_GOING_AWAY));
}

void
gate_tunnel_say_close(struct gate *gate)
{
	if (peer_is_replaced(gate->uconn->peer))
		say_close(gate);
}

/* To the app, which goes on and would take it for a lost connection. */
static void
say_close_to_peer(struct gate *gate)
{
	struct exchange *exchange = &gate->attempt->exchange;

	if (gate->send_full || gate->stopped || gate->sent_last ||
	    !ws_frames_may_close(&gate->from_client))
		return;
	if (exchange->ops->send(exchange, WS_GOING_AWAY_MASKED,
		WS_LEN(WS_GOING_AWAY_MASKED), true) == EXCHANGE_STOPPED)
		gate->stopped = true;
}

/* Cut from our side: both ends see the connection close. */
static void
end_tunnel(struct gate *gate, const char *why)
{
	struct request *request = gate->request;
	struct worker *worker = gate->gateway->worker;
	struct uconn *uconn = gate->uconn;

	if (gate_may_log(gate, LOG_LEVEL_INFO))
		log_info("r=%s upstream=%s peer=%s pid=%u tunnel closed: %s",
		    request_id(request).ptr, gate->route->name,
		    uconn->peer->text, uconn->peer->pid, why);
	request->why = why;
	gate_tunnel_say_close(gate);
	gate->attempt->exchange.ops->cancel(&gate->attempt->exchange);
	peer_count(uconn->peer, worker->index, false);
	gate_drop_attempt(gate);
	pool_cut(worker->slots[WORKER_POOL], &uconn, false);
	gate_forget(gate);
	response_end(request);
}

void
gate_tunnel_silent(struct gate *gate)
{
	uint64_t sent = gate->uconn->io.sent_bytes;
	bool is_stuck = gate->send_full && !gate->sent_last;

	/* A client that takes nothing is the front's to end. */
	if (gate->paused || (is_stuck && sent != gate->sent_before)) {
		gate->sent_before = sent;
		gate_watch(gate);
		return;
	}
	end_tunnel(gate, is_stuck ? "the app takes nothing" : "idle");
}

void
gate_tunnel_half_closed(struct gate *gate)
{
	gate_tunnel_say_close(gate);
	gate->peer_shut = true;
	gate_watch(gate);
	if (gate->peer_dead)
		end_tunnel(gate, "its process died");
	else
		response_shutdown(gate->request);
}

void
gate_tunnel_dead(struct gate *gate)
{
	gate->peer_dead = true;
	/* Else what it said last is read first. Another process may hold the
	 * socket and say nothing. */
	if (gate->peer_shut || io_looks_alive(&gate->uconn->io))
		end_tunnel(gate, "its process died");
}

void
gate_tunnel_ending(struct gate *gate)
{
	say_close(gate);
	say_close_to_peer(gate);
	end_tunnel(gate, "the proxy ends");
}
