/*
 * A connection to a peer. Made and kept by the pool, lent to one exchange at a
 * time. Knows how to come up and how to end; who gets it is pool.c's.
 * Only the worker's thread.
 */
#ifndef UPSTREAM_UCONN_H
#define UPSTREAM_UCONN_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>

#include "fcgi/fcgi.h"
#include "proxy/core/io.h"
#include "proxy/core/worker.h"
#include "proxy/upstream/pool.h"
#include "src/base/compiler.h"
#include "src/base/list.h"

struct exchange;
struct peer;

enum uconn_state {
	UCONN_CLOSED,
	UCONN_CONNECTING, /* a pool_wait waits for it */
	UCONN_BUSY,       /* lent, or on its way to who waits */
	UCONN_IDLE,       /* kept; its event tells when the peer closes */
	UCONN_ENDING,     /* our side is shut down, we wait for theirs */
	UCONN_DRAINING,   /* nobody wants the answer, but it comes to its end */
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
	 * dead, or (not `dead`; no stream) will wait no longer; it must give
	 * the uconn back (pool_close). */
	void (*on_over)(struct uconn *uconn, bool dead);
	/* The same, of a stream: the proxy ends. */
	void (*on_ending)(struct uconn *uconn);
	void *owner;

	/* An answer to HEAD: some apps send a body all the same, later. */
	bool is_suspect;
	bool is_stream;       /* counted by the peer: peer_stream_began */
	uint32_t served;      /* requests answered on it; 0: fresh */
	uint32_t peer_idle_s; /* what its Keep-Alive says; 0: nothing */
	/* When connecting began and when it was up; 0: it was kept. */
	int64_t begun_us, connected_us;

	/* pool.c's and uconn.c's own */
	/* FastCGI: an answer that nobody wants any more, as far as it was read.
	 * At its end the connection is as good as new. */
	bool can_drain;
	struct fcgi_reply reply;
	bool holds_slot;   /* of its peer */
	bool is_in_flight; /* counted in peer->in_flight */
	bool is_leaving;   /* ... and in peer->leaving */
	uint32_t idle_max;
	int idle_timeout_ms, abort_grace_ms;
	/* Reported as one whose process works for nobody: never used again, and
	 * no reason to wait any longer before that process is stopped. */
	bool is_stuck;
	struct list node;   /* idle, busy (connecting too) or ending list */
	struct timer timer; /* of its state: connect, idle, ending */
	struct event again; /* connecting: the peer's backlog was full */
	struct pool_wait *wait;
	struct list in_pool;
	struct deferred deferred;
};

struct pool {
	struct worker *worker;
	struct upstream_registry *registry;
	struct pool_of uconns, waits;
	struct list probes; /* struct probe, under way */
	struct list all;    /* uconns, until their memory is given back */
};

/* A new one to this peer. What the caller has taken of the peer (open, a slot,
 * in_flight) is the uconn's from now on. State CONNECTING or BUSY; NULL with
 * errno: it was refused at once, and everything was given back. */
struct uconn *uconn_new(struct pool *pool, struct peer *peer,
    const struct pool_limits *limits, uint32_t buffer_bytes,
    bool holds_slot) MUST_CHECK;
/* A kept connection that came from another worker, with what was taken of the
 * peer for it. BUSY. */
struct uconn *uconn_adopt(struct pool *pool, struct peer *peer,
    const struct pool_limits *limits, uint32_t buffer_bytes, int fd,
    uint32_t served) MUST_CHECK;
/* Give up the descriptor of an idle or clean one, for another worker. Nothing
 * is given back: slot and open go with it. */
int uconn_detach(struct uconn *uconn) MUST_CHECK;
/* Close it now, give back what it holds. The memory goes at the end of the loop
 * round. Safe to call twice. */
void uconn_close(struct uconn *uconn);
/* Shut down our side, read and drop, close when the peer does; slots and
 * in_flight are held until then. */
void uconn_end(struct uconn *uconn);
/* The same for a process without a cap, which counts it as leaving; but it is
 * closed after a second. */
void uconn_leave(struct uconn *uconn);
/* Give back the memory of a closed one now, because the pool ends. */
void uconn_free(struct uconn *uconn);
/* Read the answer to its end (can_drain), then pool_uconn_clean. */
void uconn_drain(struct uconn *uconn);
/* Report the process behind one that ends or drains, now; another: nothing. */
void uconn_condemn(struct uconn *uconn);
/* Is something of what we wrote still unread? False when we cannot know. When
 * its process is dead and the connection is not, nobody has accepted it. */
bool uconn_is_unread(const struct uconn *uconn) MUST_CHECK;
/* Use up bytes of such an answer; false: they are none. */
bool uconn_skip(struct uconn *uconn, const char *from, size_t len) MUST_CHECK;
/* Move between the lists, with the counts that belong to it. */
void uconn_set_busy(struct uconn *uconn);
void uconn_set_idle(struct uconn *uconn, int idle_ms);
/* The newest idle one of this worker, or NULL. */
struct uconn *uconn_newest_idle(struct peer *peer, unsigned worker);

/* pool.c's: it came up, or not (`why`: a text for the log). */
void pool_uconn_up(struct uconn *uconn);
void pool_uconn_failed(
    struct uconn *uconn, enum pool_failure failure, const char *why);
/* pool_return.c's: what nobody wanted has come to its end; a clean one that is
 * lent no more is kept or closed. */
void pool_uconn_clean(struct uconn *uconn);
void pool_uconn_keep(struct uconn *uconn);

#endif
