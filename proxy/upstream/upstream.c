/*
 * Groups of peers and the queue before them, shared by all workers.
 * Called by pool.c (who wants a peer, who frees one) and by registry.c.
 * Knows no connections and no requests.
 */
#include "proxy/upstream/upstream.h"

#include <assert.h>
#include <stdio.h>

#include "proxy/core/tls_upstream.h"
#include "src/base/mem.h"

struct upstream *
upstream_new(struct upstream_registry *registry, const char *name, bool is_app,
    unsigned n_workers)
{
	struct upstream *upstream = mem_alloc(
	    sizeof(*upstream) + n_workers * sizeof(struct upstream_local));

	upstream->registry = registry;
	upstream->name = mem_strdup(name);
	upstream->is_app = is_app;
	upstream->n_workers = n_workers;
	atomic_init(&upstream->refs, 1);
	pthread_mutex_init(&upstream->lock, NULL);
	queue_init(&upstream->queue);
	upstream->set = peer_set_new(NULL, 0);
	for (unsigned i = 0; i < n_workers; i++)
		upstream->local[i].set = peer_set_ref(upstream->set);
	return upstream;
}

void
upstream_ref(struct upstream *upstream)
{
	atomic_fetch_add(&upstream->refs, 1);
}

void
upstream_unref(struct upstream *upstream)
{
	if (atomic_fetch_sub(&upstream->refs, 1) != 1)
		return;
	for (unsigned i = 0; i < upstream->n_workers; i++)
		peer_set_unref(upstream->local[i].set);
	peer_set_unref(upstream->set);
	queue_free(&upstream->queue);
	pthread_mutex_destroy(&upstream->lock);
	tls_upstream_unref(&upstream->tls);
	mem_free(upstream->state_text);
	mem_free(upstream->name);
	mem_free(upstream);
}

/* ---- under the lock ---- */

static struct upstream_wait *
wait_of(struct queue_node *node)
{
	return CONTAINER_OF(node, struct upstream_wait, queued);
}

static void
note_count(struct upstream *upstream)
{
	atomic_store(&upstream->n_waiting, upstream->queue.count);
}

static struct upstream_wait *
take_next(struct upstream *upstream)
{
	struct upstream_wait *wait = wait_of(queue_pop(&upstream->queue));

	wait->in_queue = false;
	note_count(upstream);
	return wait;
}

static void
refuse(struct upstream_wait *wait, enum pool_failure failure)
{
	wait->granted = NULL;
	wait->failure = failure;
	worker_post(wait->worker, &wait->mail);
}

/* Give what is free to those who wait, in their order. */
static void
dispatch(struct upstream *upstream)
{
	int64_t now_ms = 0;

	while (upstream->queue.count > 0) {
		struct upstream_wait *wait;
		struct peer *peer;

		if (now_ms == 0)
			now_ms = clock_now_ms();
		peer =
		    peer_set_pick(upstream->set, -1, upstream->turn++, now_ms);
		if (peer == NULL)
			return;
		/* Somebody without the lock may have been faster: look again.
		 */
		if (!peer_take_slot(peer))
			continue;
		if (!peer_open(peer)) {
			peer_put_slot(peer);
			continue;
		}
		peer_ref(peer);
		atomic_fetch_add(&peer->in_flight, 1);
		wait = take_next(upstream);
		wait->granted = peer;
		wait->failure = POOL_OK;
		worker_post(wait->worker, &wait->mail);
	}
}

static bool
has_peers(const struct upstream *upstream)
{
	for (unsigned i = 0; i < upstream->set->n; i++)
		if (!peer_is_withdrawn(upstream->set->peers[i]))
			return true;
	return false;
}

/* POOL_OK: waiting until then makes sense. */
static enum pool_failure
judge_wait(const struct upstream *upstream, int64_t deadline_ms)
{
	if (has_peers(upstream))
		return POOL_OK;
	if (!upstream->is_app)
		return POOL_ENDING;
	switch (upstream->app_state) {
	case UPSTREAM_APP_STOPPED:
		return POOL_STOPPED;
	case UPSTREAM_APP_BACKOFF:
	case UPSTREAM_APP_FAILED:
		return upstream->retry_at_ms > deadline_ms ? POOL_BACKOFF
							   : POOL_OK;
	case UPSTREAM_APP_UNKNOWN:
	case UPSTREAM_APP_UP:
	case UPSTREAM_APP_STARTING:
		break;
	}
	return POOL_OK;
}

/* ---- mail to workers ---- */

struct peer_mail {
	struct mail mail;
	struct peer *peer; /* counted */
	bool dead;
};

struct set_mail {
	struct mail mail;
	struct upstream *upstream; /* counted */
	struct peer_set *set;      /* counted */
};

static void
deliver_evict(struct worker *worker, struct mail *mail)
{
	struct peer_mail *message = CONTAINER_OF(mail, struct peer_mail, mail);
	struct pool *pool = worker->slots[WORKER_POOL];

	atomic_fetch_sub(&message->peer->evicting, 1);
	if (pool != NULL)
		pool_evict(pool, message->peer);
	peer_unref(message->peer);
	mem_free(message);
}

static void
deliver_sweep(struct worker *worker, struct mail *mail)
{
	struct peer_mail *message = CONTAINER_OF(mail, struct peer_mail, mail);
	struct pool *pool = worker->slots[WORKER_POOL];

	if (pool != NULL)
		pool_sweep(pool, message->peer, message->dead);
	peer_unref(message->peer);
	mem_free(message);
}

static void
deliver_hurry(struct worker *worker, struct mail *mail)
{
	struct peer_mail *message = CONTAINER_OF(mail, struct peer_mail, mail);
	struct pool *pool = worker->slots[WORKER_POOL];

	if (pool != NULL)
		pool_hurry(pool, message->peer);
	peer_unref(message->peer);
	mem_free(message);
}

static void
deliver_set(struct worker *worker, struct mail *mail)
{
	struct set_mail *message = CONTAINER_OF(mail, struct set_mail, mail);
	struct upstream *upstream = message->upstream;
	struct upstream_local *local = &upstream->local[worker->index];

	peer_set_unref(local->set);
	local->set = message->set;
	mem_free(message);
	upstream_unref(upstream);
}

static void
post_about_peer(
    struct worker *worker, struct peer *peer, mail_cb *deliver, bool dead)
{
	struct peer_mail *message = mem_alloc(sizeof(*message));

	peer_ref(peer);
	message->mail.deliver = deliver;
	message->peer = peer;
	message->dead = dead;
	worker_post(worker, &message->mail);
}

/* Somebody waits: idle connections that hold slots at other workers must go, at
 * most one for each who waits. */
static void
evict_idle(struct upstream *upstream)
{
	for (unsigned i = 0; i < upstream->set->n; i++) {
		struct peer *peer = upstream->set->peers[i];

		if (!peer->cap_counts_idle || peer_is_withdrawn(peer))
			continue;
		for (unsigned w = 0; w < upstream->n_workers; w++) {
			if (atomic_load(&peer->evicting) >=
			    upstream->queue.count)
				return;
			if (atomic_load(&peer->local[w].n_idle) == 0)
				continue;
			atomic_fetch_add(&peer->evicting, 1);
			post_about_peer(registry_worker(upstream->registry, w),
			    peer, deliver_evict, false);
		}
	}
}

/* Must the supervisor know of one more that waits? Its slots are with another
 * proxy while we drain. */
static bool
must_tell(struct upstream *upstream)
{
	if (registry_is_draining(upstream->registry))
		return true;
	if (upstream->wanted_told || has_peers(upstream))
		return false;
	upstream->wanted_told = true;
	return true;
}

/* ---- for pool.c ---- */

enum pool_failure
upstream_enqueue(struct upstream *upstream, struct upstream_wait *wait,
    uint64_t client, uint32_t queue_length, int queue_timeout_ms)
{
	enum pool_failure failure;
	bool is_wanted = false;

	wait->since_ms = clock_now_ms();
	wait->deadline_ms = wait->since_ms + queue_timeout_ms;
	wait->granted = NULL;
	wait->uconn = NULL;
	wait->fd = -1;
	pthread_mutex_lock(&upstream->lock);
	failure = judge_wait(upstream, wait->deadline_ms);
	if (failure == POOL_OK && upstream->queue.count >= queue_length)
		failure = POOL_QUEUE_FULL;
	if (failure == POOL_OK) {
		queue_push(&upstream->queue, &wait->queued, client);
		wait->in_queue = true;
		note_count(upstream);
		dispatch(upstream);
		if (wait->in_queue)
			evict_idle(upstream);
		if (wait->in_queue && upstream->is_app)
			is_wanted = must_tell(upstream);
	}
	pthread_mutex_unlock(&upstream->lock);
	if (is_wanted)
		registry_tell_wanted(upstream->registry, upstream->name);
	return failure;
}

bool
upstream_dequeue(struct upstream *upstream, struct upstream_wait *wait)
{
	bool was_in;

	pthread_mutex_lock(&upstream->lock);
	was_in = wait->in_queue;
	if (was_in) {
		queue_remove(&upstream->queue, &wait->queued);
		wait->in_queue = false;
		note_count(upstream);
	}
	pthread_mutex_unlock(&upstream->lock);
	return was_in;
}

void
upstream_slot_freed(struct upstream *upstream)
{
	if (!upstream_has_waiters(upstream))
		return;
	pthread_mutex_lock(&upstream->lock);
	dispatch(upstream);
	pthread_mutex_unlock(&upstream->lock);
}

struct upstream_wait *
upstream_next(struct upstream *upstream, const struct worker *only)
{
	struct upstream_wait *wait = NULL;
	struct queue_node *node;

	pthread_mutex_lock(&upstream->lock);
	node = queue_peek(&upstream->queue);
	if (node != NULL && !wait_of(node)->fresh &&
	    (only == NULL || wait_of(node)->worker == only))
		wait = take_next(upstream);
	pthread_mutex_unlock(&upstream->lock);
	return wait;
}

bool
upstream_is_capped(const struct upstream *upstream, const struct worker *worker)
{
	const struct peer_set *set = upstream->local[worker->index].set;

	for (unsigned i = 0; i < set->n; i++)
		if (peer_is_capped(set->peers[i]))
			return true;
	return set->n == 0;
}

/* Why nobody could be asked, when it was not refused outright. */
static const char *
word_of_state(enum upstream_app_state state, bool has_peers_now)
{
	if (has_peers_now)
		return "is busy: too many requests are waiting";
	switch (state) {
	case UPSTREAM_APP_STARTING:
	case UPSTREAM_APP_UNKNOWN:
		return "is starting";
	case UPSTREAM_APP_UP:
		return "is restarting";
	case UPSTREAM_APP_BACKOFF:
		return "has failed and is being restarted";
	case UPSTREAM_APP_FAILED:
		return "cannot be started";
	case UPSTREAM_APP_STOPPED:
		break;
	}
	return "is stopped";
}

void
upstream_count_refused(struct upstream *upstream)
{
	atomic_fetch_add(&upstream->past_requests, 1);
	atomic_fetch_add(&upstream->past_errors, 1);
}

int64_t
upstream_oldest_wait_ms(struct upstream *upstream)
{
	int64_t now_ms, since_ms;
	struct queue_node *node = NULL;

	if (!upstream_has_waiters(upstream))
		return 0;
	since_ms = now_ms = clock_now_ms();
	pthread_mutex_lock(&upstream->lock);
	while ((node = queue_next_client(&upstream->queue, node)) != NULL)
		if (wait_of(node)->since_ms < since_ms)
			since_ms = wait_of(node)->since_ms;
	pthread_mutex_unlock(&upstream->lock);
	return now_ms - since_ms;
}

bool
upstream_is_up(struct upstream *upstream)
{
	bool is_up;

	pthread_mutex_lock(&upstream->lock);
	is_up = has_peers(upstream);
	pthread_mutex_unlock(&upstream->lock);
	return is_up;
}

unsigned
upstream_say(struct upstream *upstream, enum pool_failure failure,
    char text[UPSTREAM_SAY_MAX])
{
	int64_t left_ms;
	unsigned after_s = failure == POOL_STOPPED ? 30 : 2;

	if (failure == POOL_ENDING) {
		snprintf(text, UPSTREAM_SAY_MAX, "The server is ending.");
		return after_s;
	}
	pthread_mutex_lock(&upstream->lock);
	snprintf(text, UPSTREAM_SAY_MAX, "%s %.64s %s.",
	    upstream->is_app ? "The application" : "The upstream",
	    upstream->name,
	    word_of_state(upstream->app_state, has_peers(upstream)));
	left_ms = upstream->retry_at_ms - clock_now_ms();
	pthread_mutex_unlock(&upstream->lock);
	if (failure == POOL_BACKOFF && left_ms > 0)
		after_s = (unsigned)((left_ms + 999) / 1000);
	return after_s;
}

/* ---- for registry.c ---- */

void
upstream_set_peers(struct upstream *upstream, struct peer_set *set)
{
	struct peer_set *old;

	pthread_mutex_lock(&upstream->lock);
	old = upstream->set;
	upstream->set = set;
	for (unsigned i = 0; i < upstream->n_workers; i++) {
		struct set_mail *message = mem_alloc(sizeof(*message));

		message->mail.deliver = deliver_set;
		message->upstream = upstream;
		upstream_ref(upstream);
		message->set = peer_set_ref(set);
		worker_post(
		    registry_worker(upstream->registry, i), &message->mail);
	}
	dispatch(upstream);
	pthread_mutex_unlock(&upstream->lock);
	peer_set_unref(old);
}

void
upstream_sweep(struct upstream *upstream, struct peer *peer, bool dead)
{
	for (unsigned i = 0; i < upstream->n_workers; i++)
		post_about_peer(registry_worker(upstream->registry, i), peer,
		    deliver_sweep, dead);
}

void
upstream_hurry(struct upstream *upstream, struct peer *peer)
{
	for (unsigned i = 0; i < upstream->n_workers; i++)
		post_about_peer(registry_worker(upstream->registry, i), peer,
		    deliver_hurry, false);
}

void
upstream_set_state(struct upstream *upstream, enum upstream_app_state state,
    uint32_t retry_ms, const char *text)
{
	pthread_mutex_lock(&upstream->lock);
	upstream->app_state = state;
	upstream->retry_at_ms = clock_now_ms() + retry_ms;
	upstream->wanted_told = false;
	mem_free(upstream->state_text);
	upstream->state_text = mem_strdup(text);
	/* Once round the queue: who still has a reason to wait stands at the
	 * end again, so the order stays. */
	for (unsigned n = upstream->queue.count; n > 0; n--) {
		struct upstream_wait *wait = take_next(upstream);
		enum pool_failure failure =
		    judge_wait(upstream, wait->deadline_ms);

		if (failure != POOL_OK) {
			refuse(wait, failure);
			continue;
		}
		queue_push(&upstream->queue, &wait->queued, wait->queued.key);
		wait->in_queue = true;
		note_count(upstream);
	}
	/* The count was lower for a moment: somebody may have freed a slot and
	 * seen nobody. */
	dispatch(upstream);
	pthread_mutex_unlock(&upstream->lock);
}
