/*
 * A connection to a peer. Made and kept by pool.c, lent to one exchange at a
 * time. Only the worker's thread.
 */
#ifndef UPSTREAM_UCONN_H
#define UPSTREAM_UCONN_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>

#include "proxy/core/io.h"
#include "proxy/core/worker.h"
#include "src/base/list.h"

struct exchange;
struct peer;
struct pool;
struct pool_wait;
struct uconn;

enum uconn_state {
	UCONN_CLOSED,
	UCONN_CONNECTING, /* somebody waits for it */
	UCONN_BUSY,       /* lent */
	UCONN_IDLE,       /* kept; its event tells when the peer closes */
	UCONN_ENDING,     /* our side is shut down, we wait for theirs */
};

struct uconn {
	struct io io;
	enum uconn_state state;
	struct pool *pool;
	struct peer *peer; /* counted */
	/* Set by the gateway when an exchange starts: the io's callbacks are
	 * handed on to its ops. NULL: nobody listens. */
	struct exchange *exchange;
	/* Set by who borrowed it: called when the peer's process is known to be
	 * dead; it must give the uconn back (pool_close). */
	void (*on_dead)(struct uconn *uconn);
	void *owner;

	uint32_t served;       /* requests answered on it; 0: fresh */
	uint32_t peer_idle_ms; /* what its Keep-Alive says; 0: nothing */
	int64_t connected_us;  /* when it came up, for a fresh one; else 0 */

	/* pool.c's and uconn.c's own */
	int idle_timeout_ms;
	unsigned idle_max;
	bool holds_slot, counts_in_flight;
	struct list
	    node; /* idle, busy, or ending; of the peer at this worker */
	struct timer timer;
	struct event again; /* connect: a unix socket was busy */
	int64_t connect_by_ms;
	struct pool_wait *wait;
	struct deferred deferred;
};

#endif
