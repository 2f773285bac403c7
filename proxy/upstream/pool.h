/*
 * Connections to peers: which one a request gets, when, and what becomes of it.
 * One pool per worker; call only from its thread. The queue of those who wait
 * belongs to the upstream and is shared (upstream.h).
 */
#ifndef UPSTREAM_POOL_H
#define UPSTREAM_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"

struct addr;
struct pool;
struct pool_wait;
struct uconn;
struct upstream;
struct upstream_registry;
struct worker;

/* Hung on worker->slots[WORKER_POOL]; before the worker runs. */
struct pool *pool_new(
    struct worker *worker, struct upstream_registry *registry) MUST_CHECK;
/* Closes all connections; after the worker has stopped and every gateway has
 * let go of its uconns. */
void pool_free(struct pool **pool);

enum pool_failure {
	POOL_OK,
	POOL_STOPPED,    /* the app is stopped by the administrator: 503 */
	POOL_BACKOFF,    /* its next start is later than we would wait: 503 */
	POOL_QUEUE_FULL, /* 503 */
	POOL_QUEUE_TIMEOUT,   /* 503 */
	POOL_CONNECT_FAILED,  /* refused, no such socket ...: 502 */
	POOL_TLS_FAILED,      /* the handshake did: 502 */
	POOL_CONNECT_TIMEOUT, /* 504 */
	POOL_ENDING,          /* the proxy ends: 503 */
};

/* How long and how many: from the request's own snapshot. */
struct pool_limits {
	uint32_t queue_length;
	int queue_timeout_ms;
	int connect_timeout_ms;
	int idle_timeout_ms; /* how long a kept connection may be idle */
	unsigned idle_max;   /* kept per peer and worker */
	/* How long a process may work for a client that has left. */
	int abort_grace_ms;
};

struct pool_ask {
	const struct pool_limits *limits; /* copied */
	uint32_t buffer_bytes;     /* high mark of what waits to be written */
	const struct addr *client; /* whom it is for: fairness of the queue */
	bool fresh;                /* no kept connection: one just failed */
	/* The request cannot be sent twice: look whether a kept connection is
	 * still alive before it is used, and use none of a peer that has just
	 * broken off. */
	bool careful;
};

/* The end of a wait: `uconn` (the caller's now), or NULL and why. */
typedef void pool_ready_cb(
    void *arg, struct uconn *uconn, enum pool_failure failure);

/* Take a connection to the least busy peer. One that can be used at once is
 * returned and is the caller's. Else NULL, and either *failure tells why there
 * is none, or it is POOL_OK: then *wait is a handle for pool_cancel() and
 * on_ready is called exactly once, from the loop. */
struct uconn *pool_acquire(struct pool *pool, struct upstream *upstream,
    const struct pool_ask *ask, pool_ready_cb *on_ready, void *arg,
    struct pool_wait **wait, enum pool_failure *failure) MUST_CHECK;
/* Nobody waits any more: on_ready will not be called. What was already on its
 * way goes to the next one. Sets it to NULL; NULL is fine. */
void pool_cancel(struct pool *pool, struct pool_wait **wait);

/* The ways to give a uconn back; each sets it to NULL.
 * release: the exchange ended cleanly, keep the connection for another.
 * close: it is of no use. `failed`: the peer's fault, it is avoided a while.
 * abandon: somebody left while the peer works. A peer that does one thing at a
 * time goes on working: its slot is free when it has answered to the end
 * (FastCGI; the connection is kept), else our side is shut down, its bytes are
 * read and dropped, and its slot is free when it closes (HACKING.md). A process
 * without a cap gets a second for it, and not too many of them. Others are
 * closed.
 * condemn: the same for a peer that took too long; it is reported at once.
 * cut: it was a tunnel, which no process works on to an end: it is closed, slot
 * or not. `resets`: its client did so too. */
void pool_release(struct pool *pool, struct uconn **uconn);
void pool_close(struct pool *pool, struct uconn **uconn, bool failed);
void pool_abandon(struct pool *pool, struct uconn **uconn);
void pool_condemn(struct pool *pool, struct uconn **uconn);
void pool_cut(struct pool *pool, struct uconn **uconn, bool resets);

/* The proxy ends: what would go on for ever comes to its end now. */
void pool_end_streams(struct pool *pool);

/* ---- for upstream.c, in the worker's thread ---- */

struct peer;
/* Somebody at another worker needs the slot of an idle connection. */
void pool_evict(struct pool *pool, struct peer *peer);
/* Close idle connections that are no longer wanted; `dead`: all, and fail what
 * runs. */
void pool_sweep(struct pool *pool, struct peer *peer, bool dead);
/* Fail what runs and is no stream, and wait for the end of nothing else. */
void pool_hurry(struct pool *pool, struct peer *peer);

#endif
