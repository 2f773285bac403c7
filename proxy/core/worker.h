/*
 * A worker: one thread, one event base, and what lives as long as it does.
 * Timers, mailbox, buffers and object pools of that thread.
 * Knows no HTTP; started and stopped by proxy/proxy.c.
 */
#ifndef CORE_WORKER_H
#define CORE_WORKER_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/core/metrics.h"
#include "src/base/clock.h"
#include "src/base/compiler.h"
#include "src/base/list.h"

struct site;
struct snapshot;
struct snapshot_listener;
struct tls_worker;
struct worker;

/* ---- timers: one persistent tick, one list per length (HACKING.md) ---- */

#define WORKER_TICK_MS 250

struct timer_class;
struct timer {
	struct list node; /* linked = armed */
	int64_t deadline_ms;
	struct timer_class *cls; /* of the last timer_arm */
};
typedef void timer_cb(struct worker *worker, struct timer *timer);
/* All timers of one length with one meaning; `expired` gets the timer, already
 * disarmed. Its owner is found with CONTAINER_OF. */
struct timer_class {
	struct list entries; /* in the order of their deadlines */
	int length_ms;
	timer_cb *expired;
	struct list node; /* in worker->classes */
};
/* The class with this length and callback, made at first use; valid for the
 * worker's life. Few lengths exist (they come from the configuration), so it is
 * found by a short walk: look it up per connection, not per byte. */
struct timer_class *timer_class_of(
    struct worker *worker, int length_ms, timer_cb *expired);
/* Arm, or push the deadline out; cheap when it was armed in the same tick.
 * Never fires before length_ms is over, and at most two ticks after it. */
void timer_arm(
    struct worker *worker, struct timer_class *cls, struct timer *timer);
static inline void
timer_disarm(struct timer *timer)
{
	list_remove(&timer->node);
}

/* ---- mailbox: the only way to reach a worker from another thread ---- */

struct mail;
typedef void mail_cb(struct worker *worker, struct mail *mail);
/* Embedded in the message, which belongs to the receiver once posted. */
struct mail {
	struct mail *next;
	mail_cb *deliver; /* called in the worker's thread; frees the message */
};
/* Any thread. Delivered in order of posting. Mail posted to a worker that has
 * stopped is delivered by worker_free (to release what it holds). */
void worker_post(struct worker *worker, struct mail *mail);

/* ---- memory of the thread ---- */

#define BUF_BYTES 16384
#define BUF_PADDING 64 /* readable behind the end, for wide loads */
/* Bytes between `start` and `end`; `room` is the whole size. */
struct buf {
	struct buf *next; /* free for the owner's lists */
	uint32_t start, end, room;
	char bytes[];
};
/* A 16 KiB buffer, empty. From the worker's free list; never NULL. */
struct buf *buf_get(struct worker *worker);
/* One of 64 KiB, for a body that comes faster than 16 KiB a read. */
#define BUF_BULK_BYTES 65536
struct buf *buf_get_bulk(struct worker *worker);
/* A larger one (heads only), from the heap. */
struct buf *buf_get_large(struct worker *worker, size_t room);
/* Give it back and set it to NULL; NULL is fine. */
void buf_put(struct worker *worker, struct buf **buf);

/* A free list of objects of one size; one per kind and worker. Objects come
 * back as they were left: the taker initialises them. */
struct pool_of {
	void *free;
	size_t bytes;
	unsigned n_free, n_used;
	unsigned n_spare; /* the least of n_free since the tick last looked */
	struct list node; /* in worker->pools */
};
/* An empty one, known to the worker: once a second its tick gives back half of
 * what nobody needed meanwhile, so that a burst does not keep its memory. */
void pool_of_init(struct worker *worker, struct pool_of *pool, size_t bytes);
void *pool_of_get(struct pool_of *pool);
void pool_of_put(struct pool_of *pool, void *object);
/* Release all free objects, and leave the worker; none may be in use. */
void pool_of_end(struct pool_of *pool);

/* ---- the worker ---- */

/* What other layers hang on a worker; set before it runs, by proxy.c. */
enum worker_slot {
	WORKER_FRONT, /* front/: its listeners and connections */
	WORKER_POOL,  /* upstream/: its pool of uconns */
	WORKER_GATEWAY,
	WORKER_SLOTS
};

/* Shared by all workers and read with relaxed atomics: who is how busy. */
struct worker_load {
	_Atomic unsigned connections;   /* open and on their way by hand-off */
	_Atomic uint64_t spooled_bytes; /* in temporary files of bodies */
	char pad[48];
};

/* The last Host that was looked up, dispatch.c's: a worker sees few of them. */
#define WORKER_MEMO_BYTES 64
struct host_memo {
	const struct snapshot_listener *listener; /* NULL: nothing */
	const struct site *site;
	uint8_t raw_len, host_len;
	char raw[WORKER_MEMO_BYTES]; /* as it came */
	char host[WORKER_MEMO_BYTES];
};

struct worker {
	unsigned index, n_workers;
	struct worker **all;      /* n_workers of them */
	struct worker_load *load; /* of all, by index */
	struct event_base *base;
	pthread_t thread;

	int64_t tick_ms; /* monotonic time of the last tick or wake-up of the
			  * mailbox: what timers count with */
	/* "Date: Mon, 30 Nov 2026 12:00:00 GMT\r\n", renewed by the tick. */
	char date[CLOCK_HTTP_LEN + 8];
	char clf_date[CLOCK_CLF_LEN]; /* for access logs; the same second */
	uint64_t random[2];           /* for request ids; seeded, not secret */

	struct snapshot *snapshot; /* the current one; see snapshot.h */
	struct metrics metrics;    /* written here only, read by anybody */
	void *slots[WORKER_SLOTS];
	struct tls_worker *tls; /* tls_worker.h; NULL: there is no TLS */
	unsigned round;         /* of the loop, counted */
	bool draining;          /* keep-alive ends; see HACKING.md */
	bool keeps_idle; /* ... but who is idle may have one more request */

	/* worker.c's own */
	struct event tick, wake;
	int wake_fd;
	pthread_mutex_t mail_lock;
	struct mail *mail_first, *mail_last; /* under mail_lock */
	_Atomic bool stopping;
	_Atomic pthread_t running; /* the thread in worker_run, or 0 */
	bool has_own_mail;         /* posted by that thread: no wake-up */
	struct list classes;       /* struct timer_class */
	int64_t date_s;            /* the second that `date` says */
	struct list pools;         /* struct pool_of */
	unsigned ticks;            /* since the pools were looked at */
	size_t given_back;         /* bytes, since the heap was trimmed */
	struct pool_of buffers, bulk_buffers;
	struct pool_of requests; /* request.c's */
	struct host_memo memo;
	struct list deferred; /* freed at the end of this loop round */
	struct list on_tick;  /* struct worker_tick */
};

/* Called by the tick, four times a second. */
typedef void worker_tick_cb(struct worker *worker, void *arg);
struct worker_tick {
	struct list node;
	worker_tick_cb *run;
	void *arg;
};
void worker_on_tick(struct worker *worker, struct worker_tick *tick);
/* What it does, at this time: for who has a clock of his own. */
void worker_tick_at(struct worker *worker, int64_t now_ms);

/* Make and free; the thread is started by worker_run in a thread of the
 * caller's. worker_stop (any thread) makes worker_run return. */
struct worker *worker_new(unsigned index, unsigned n_workers) MUST_CHECK;
void worker_run(struct worker *worker);
void worker_stop(struct worker *worker);
void worker_free(struct worker *worker);

/* Free at the end of the loop round: a callback below us may still look. */
struct deferred {
	struct list node;
	void (*release)(struct worker *worker, struct deferred *deferred);
};
void worker_defer(struct worker *worker, struct deferred *deferred);
/* At the end, when its thread has stopped: deliver mail and do what is deferred
 * until nothing is left. */
void worker_finish(struct worker *worker);

#endif
