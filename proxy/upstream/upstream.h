/*
 * A named group of peers, and the queue of those who wait for one of them.
 * Shared by all workers. Makes no connections: it hands out the right to make
 * one (pool.c).
 *
 * No wake-up is lost, because who waits counts itself first and looks at all
 * peers then, and who frees frees first and looks for waiters then, both with
 * sequentially consistent atomics. Who finds others waiting queues up behind
 * them, so nobody overtakes.
 */
#ifndef UPSTREAM_UPSTREAM_H
#define UPSTREAM_UPSTREAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/core/worker.h"
#include "proxy/upstream/peer.h"
#include "proxy/upstream/pool.h"
#include "proxy/upstream/queue.h"
#include "proxy/upstream/registry.h"
#include "src/base/compiler.h"

/* Somebody who waits. Embedded in pool.c's struct pool_wait. */
struct upstream_wait {
	struct queue_node queued; /* under the upstream's lock, as in_queue */
	bool in_queue;
	bool fresh; /* wants no kept connection */
	struct worker *worker;
	int64_t since_ms, deadline_ms; /* monotonic */
	/* The answer, posted to the worker once it is out of the queue: a peer
	 * (open and slot and in_flight are taken, and a reference is held), or
	 * why there is none; or a uconn of that worker itself. */
	struct mail mail;
	struct peer *granted;
	int fd; /* a kept connection to `granted`, from another worker; or -1 */
	uint32_t served; /* ... and what it has served */
	struct uconn *uconn;
	enum pool_failure failure;
};

/* What a worker sees of the peers; only its thread. */
struct upstream_local {
	struct peer_set *set;
	unsigned turn;
	char pad[64 - 16];
};

struct upstream {
	struct upstream_registry *registry;
	char *name;
	bool is_app;
	enum upstream_protocol protocol; /* of configured peers */
	struct tls_upstream *tls;        /* the same; NULL: without */
	unsigned n_workers;
	unsigned users;        /* routes; under the registry's lock */
	struct list node;      /* of the registry; under its lock */
	_Atomic unsigned refs; /* registry and peers */
	/* Of peers that are gone, and refused before any peer had them. */
	_Atomic uint64_t past_requests, past_errors;

	_Atomic unsigned n_waiting; /* = queue.count, for a look without lock */
	pthread_mutex_t lock;
	struct queue queue;   /* under lock, as all below */
	struct peer_set *set; /* the newest */
	unsigned turn;
	enum upstream_app_state app_state;
	int64_t retry_at_ms;
	bool wanted_told;
	char *state_text;

	struct upstream_local local[];
};

static inline bool
upstream_has_waiters(struct upstream *upstream)
{
	return atomic_load(&upstream->n_waiting) != 0;
}

/* Queue up, unless the answer is clear at once: POOL_OK: it waits, and the mail
 * will come. Else why not. */
enum pool_failure upstream_enqueue(struct upstream *upstream,
    struct upstream_wait *wait, uint64_t client, uint32_t queue_length,
    int queue_timeout_ms) MUST_CHECK;
/* Stop waiting. False: too late, the mail is on its way. */
bool upstream_dequeue(
    struct upstream *upstream, struct upstream_wait *wait) MUST_CHECK;
/* A slot or a peer became free: give it to who waits. */
void upstream_slot_freed(struct upstream *upstream);
/* The next waiter, to be given a kept connection: it is taken out of the queue
 * and the caller posts the mail. NULL: nobody waits, or who is next wants a
 * fresh one, or is not of the worker `only` (NULL: any will do). */
struct upstream_wait *upstream_next(
    struct upstream *upstream, const struct worker *only) MUST_CHECK;

/* What to say to a client (Retry-After seconds, and a sentence). */
#define UPSTREAM_SAY_MAX 160
unsigned upstream_say(struct upstream *upstream, enum pool_failure failure,
    char text[UPSTREAM_SAY_MAX]);
/* A request ended with 5xx without having been asked of a peer. Any thread. */
void upstream_count_refused(struct upstream *upstream);
/* How long who waits longest has waited; 0: nobody. Any thread; takes the lock.
 */
int64_t upstream_oldest_wait_ms(struct upstream *upstream);
/* Is there a peer at all, busy or not? Any thread; takes the lock. */
bool upstream_is_up(struct upstream *upstream);
/* Is a peer capped, as far as this worker knows? Also true without peers. */
bool upstream_is_capped(
    const struct upstream *upstream, const struct worker *worker);

/* ---- registry.c's ---- */

struct upstream *upstream_new(struct upstream_registry *registry,
    const char *name, bool is_app, unsigned n_workers) MUST_CHECK;
void upstream_ref(struct upstream *upstream);
void upstream_unref(struct upstream *upstream);
/* Replace the newest set (the reference is taken over), tell all workers, and
 * wake who waits. */
void upstream_set_peers(struct upstream *upstream, struct peer_set *set);
/* Tell all workers to look at their connections to a peer: it was withdrawn,
 * its cap was lowered, or (`dead`) its process is gone. */
void upstream_sweep(struct upstream *upstream, struct peer *peer, bool dead);
/* ... to fail what is no stream: its time is up. */
void upstream_hurry(struct upstream *upstream, struct peer *peer);
/* Take over the state, and refuse those who wait in vain. */
void upstream_set_state(struct upstream *upstream,
    enum upstream_app_state state, uint32_t retry_ms, const char *text);

#endif
