/*
 * A request on its way through the gateway. For the gateway's own files.
 */
#ifndef HANDLER_GATEWAY_GATE_H
#define HANDLER_GATEWAY_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/core/request.h"
#include "proxy/core/worker.h"
#include "proxy/handler/gateway_cache.h"
#include "proxy/handler/gateway_route.h"
#include "proxy/handler/spool.h"
#include "proxy/http/ws_frames.h"
#include "proxy/upstream/exchange.h"
#include "proxy/upstream/pool.h"
#include "src/base/compiler.h"
#include "src/base/log.h"

struct uconn;

/* One exchange; a repeated request takes a new one. */
struct attempt {
	struct exchange exchange;
	struct deferred deferred;
	max_align_t state[]; /* of the codec */
};

/* Of one worker. */
struct gateway {
	struct worker *worker;
	struct pool_of gates, attempts;
	struct script_cache scripts;
	struct log_budget lines; /* about requests: they fail in crowds */
};

struct gate {
	struct request *request;
	struct gateway *gateway;
	const struct gateway_route *route;
	struct attempt *attempt; /* under way, or NULL */
	struct uconn *uconn;     /* with it */
	struct pool_wait *wait;  /* before it */
	struct exchange_target target;
	unsigned tries;
	bool fresh; /* the next one on a connection of its own */

	/* The request's body. */
	struct spool spool;
	uint64_t sent;    /* of the spool, by this attempt */
	bool collects;    /* it is gathered before a peer is asked */
	bool whole;       /* its last byte has come */
	bool streamed;    /* some of it went past the spool: no second try */
	bool body_paused; /* on_body took fewer than it was given */
	bool send_full;   /* the exchange takes no more for now */
	bool stopped;     /* ... for good */
	bool sent_last;

	/* The answer. */
	bool answered; /* its head went to the client */
	bool streams;  /* ... and it may pause for long */
	bool endless;  /* ... and ends anywhere */
	bool paused;   /* the client takes no more for now */

	/* A tunnel: no HTTP any more, in either direction. */
	bool tunnel;
	bool peer_shut;       /* the peer sends no more */
	bool peer_dead;       /* its process has died */
	uint64_t sent_before; /* by the uconn, when it took no more */
	struct ws_frames from_peer, from_client;

	struct timer timer; /* for the peer's next byte, or the next try */
	struct timer whole_timer; /* for the end of this try */
};

/* May a line about this request be written? */
static inline bool
gate_may_log(struct gate *gate, enum log_level level)
{
	struct gateway *gateway = gate->gateway;

	return log_may(&gateway->lines, level, gateway->worker->tick_ms);
}

/* gateway.c: give up the attempt (its uconn is the caller's then), forget the
 * request, answer it with an error. */
void gate_drop_attempt(struct gate *gate);
void gate_forget(struct gate *gate);
void gate_refuse(struct gate *gate, unsigned status, const char *why);
/* The attempt's uconn was given back; may the request be repeated? */
void gate_failed(struct gate *gate, const struct uconn *uconn,
    enum exchange_failure failure, const char *why);
/* The proxy ends, and with it what has no end of its own. */
void gate_end_stream(struct uconn *uconn);
/* Begin an attempt. */
void gate_ask(struct gate *gate);

/* gateway_body.c: the request's body. */
size_t gate_take_body(
    struct gate *gate, const char *from, size_t len, bool last) MUST_CHECK;
/* Write the head and what there is of the body. */
void gate_launch(struct gate *gate, struct uconn *uconn);
void gate_pump(struct gate *gate);

/* gateway_answer.c: what comes back. */
extern const struct exchange_events gate_events;
/* Wait for the peer's next byte. */
void gate_watch(struct gate *gate);
/* ... and for the end of the answer. */
void gate_watch_whole(struct gate *gate);

/* gateway_tunnel.c: the head of such an answer came; nothing was said for its
 * time; the peer has closed its side; its process has died; it is over: if
 * because its process was replaced, say so, unless the app has; we end. */
void gate_open_tunnel(struct gate *gate);
void gate_tunnel_say_close(struct gate *gate);
void gate_tunnel_ending(struct gate *gate);
void gate_tunnel_silent(struct gate *gate);
void gate_tunnel_half_closed(struct gate *gate);
void gate_tunnel_dead(struct gate *gate);

#endif
