/*
 * Who gets which connection, and when.
 * Between the gateway and uconn.c; the queue and the peers are upstream.c's,
 * what becomes of a connection afterwards pool_return.c's.
 * Writes and reads nothing.
 */
#include "proxy/upstream/pool.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "proxy/upstream/peer.h"
#include "proxy/upstream/probe.h"
#include "proxy/upstream/uconn.h"
#include "proxy/upstream/upstream.h"
#include "src/base/hash.h"
#include "src/base/log.h"
#include "src/base/mem.h"

#define NEWS_MS 1000

/* Times that a peer which looked free may be taken by somebody else meanwhile,
 * before we queue up. */
#define PICK_TRIES 4

struct pool_wait {
	struct upstream_wait shared;
	struct upstream *upstream; /* counted */
	struct pool *pool;
	struct pool_limits limits;
	uint32_t buffer_bytes;
	bool fresh;
	bool is_cancelled; /* only the mail still knows it */
	pool_ready_cb *on_ready;
	void *arg;
	struct timer timer;  /* of the queue */
	struct uconn *uconn; /* connecting */
};

struct pool *
pool_new(struct worker *worker, struct upstream_registry *registry)
{
	struct pool *pool = mem_alloc(sizeof(*pool));

	pool->worker = worker;
	pool->registry = registry;
	pool_of_init(worker, &pool->uconns, sizeof(struct uconn));
	pool_of_init(worker, &pool->waits, sizeof(struct pool_wait));
	list_init(&pool->all);
	list_init(&pool->probes);
	worker->slots[WORKER_POOL] = pool;
	return pool;
}

void
pool_free(struct pool **pool_at)
{
	struct pool *pool = *pool_at;
	struct list *node;

	if (pool == NULL)
		return;
	probe_end_all(&pool->probes);
	while ((node = list_first(&pool->all)) != NULL)
		uconn_free(LIST_ENTRY(node, struct uconn, in_pool));
	pool_of_end(&pool->uconns);
	pool_of_end(&pool->waits);
	pool->worker->slots[WORKER_POOL] = NULL;
	mem_free(pool);
	*pool_at = NULL;
}

/* ---- a grant: open, slot and in_flight of a peer ---- */

static void
undo_grant(struct peer *peer)
{
	atomic_fetch_sub(&peer->in_flight, 1);
	peer_put_slot(peer);
	peer_closed(peer);
	upstream_slot_freed(peer->upstream);
}

/* A kept connection; none when it must be a fresh one. */
static struct uconn *
take_idle(struct pool *pool, struct peer *peer, bool fresh, bool careful)
{
	struct uconn *uconn;

	if (fresh || (careful && peer_is_doubtful(peer, clock_now_ms())))
		return NULL;
	while ((uconn = uconn_newest_idle(peer, pool->worker->index)) != NULL) {
		if (LIKELY(!careful && !uconn->is_suspect) ||
		    io_looks_alive(&uconn->io)) {
			uconn->connected_us = 0;
			uconn_set_busy(uconn);
			return uconn;
		}
		uconn_close(uconn);
	}
	return NULL;
}

/* The first of a row is, and another reason than the last one that was told;
 * reasons that take turns have a line a second. */
static bool
is_news(struct peer *peer, unsigned before, const char *why, int64_t now_ms)
{
	uint64_t hash = hash_bytes(why, strlen(why));

	if (before > 0 && (hash == atomic_load(&peer->told_why) ||
			      now_ms - atomic_load(&peer->told_ms) < NEWS_MS))
		return false;
	atomic_store(&peer->told_why, hash);
	atomic_store(&peer->told_ms, now_ms);
	return true;
}

static void
note_connect_failure(struct pool *pool, struct peer *peer,
    enum pool_failure failure, const char *why)
{
	int64_t now_ms = clock_now_ms();
	unsigned before = peer_failed(peer, now_ms);
	bool is_loud = is_news(peer, before, why, now_ms);

	/* Each request that suffers has a line of its own. */
	(is_loud ? log_warn : log_debug)("upstream=%s peer=%s %s failed: %s",
	    peer->upstream->name, peer->text,
	    failure == POOL_TLS_FAILED ? "TLS handshake" : "connect", why);
}

/* ---- waiting ---- */

static struct pool_wait *
new_wait(struct pool *pool, struct upstream *upstream,
    const struct pool_ask *ask, pool_ready_cb *on_ready, void *arg)
{
	struct pool_wait *wait = pool_of_get(&pool->waits);

	memset(wait, 0, sizeof(*wait));
	wait->shared.worker = pool->worker;
	wait->pool = pool;
	wait->upstream = upstream;
	upstream_ref(upstream);
	wait->limits = *ask->limits;
	wait->buffer_bytes = ask->buffer_bytes;
	wait->fresh = wait->shared.fresh = ask->fresh;
	wait->shared.fd = -1;
	wait->on_ready = on_ready;
	wait->arg = arg;
	return wait;
}

/* `pool` is NULL when the worker has ended. */
static void
free_wait(struct pool *pool, struct pool_wait *wait)
{
	timer_disarm(&wait->timer);
	upstream_unref(wait->upstream);
	if (pool == NULL)
		mem_free(wait);
	else
		pool_of_put(&pool->waits, wait);
}

/* The end of a wait. */
static void
answer(struct pool_wait *wait, struct uconn *uconn, enum pool_failure failure)
{
	pool_ready_cb *on_ready = wait->on_ready;
	void *arg = wait->arg;

	if (uconn != NULL) {
		uconn->wait = NULL;
		io_read_start(&uconn->io);
	}
	free_wait(wait->pool, wait);
	on_ready(arg, uconn, failure);
}

void
pool_uconn_up(struct uconn *uconn)
{
	answer(uconn->wait, uconn, POOL_OK);
}

void
pool_uconn_failed(
    struct uconn *uconn, enum pool_failure failure, const char *why)
{
	struct pool_wait *wait = uconn->wait;

	note_connect_failure(uconn->pool, uconn->peer, failure, why);
	uconn->wait = NULL;
	uconn_close(uconn);
	answer(wait, NULL, failure);
}

/* A grant has come: use it for a kept connection, or connect. The reference
 * that came with it is ours. */
static void
use_grant(struct pool *pool, struct pool_wait *wait, struct peer *peer)
{
	bool capped = peer_is_capped(peer);
	struct uconn *uconn = take_idle(pool, peer, wait->fresh, false);

	if (uconn != NULL) {
		/* The slot moves to the connection, unless it has its own. */
		if (uconn->holds_slot) {
			peer_put_slot(peer);
			upstream_slot_freed(peer->upstream);
		}
		uconn->holds_slot = capped;
		uconn->is_in_flight = true;
		peer_closed(peer);
		answer(wait, uconn, POOL_OK);
		return;
	}
	uconn =
	    uconn_new(pool, peer, &wait->limits, wait->buffer_bytes, capped);
	if (uconn == NULL) {
		note_connect_failure(
		    pool, peer, POOL_CONNECT_FAILED, strerror(errno));
		answer(wait, NULL, POOL_CONNECT_FAILED);
	} else if (uconn->state == UCONN_BUSY) {
		answer(wait, uconn, POOL_OK);
	} else {
		wait->uconn = uconn;
		uconn->wait = wait;
	}
}

static void
deliver_turn(struct worker *worker, struct mail *mail)
{
	struct pool_wait *wait =
	    CONTAINER_OF(mail, struct pool_wait, shared.mail);
	struct pool *pool = worker->slots[WORKER_POOL];
	struct peer *peer = wait->shared.granted;
	struct uconn *uconn = wait->shared.uconn;

	timer_disarm(&wait->timer);
	if (wait->shared.fd != -1 && pool != NULL) {
		uconn = uconn_adopt(pool, peer, &wait->limits,
		    wait->buffer_bytes, wait->shared.fd, wait->shared.served);
		peer_unref(peer);
		peer = NULL;
	} else if (wait->shared.fd != -1) {
		close(wait->shared.fd);
	}
	wait->shared.granted = NULL;
	wait->shared.uconn = NULL;
	wait->shared.fd = -1;
	if (wait->is_cancelled || pool == NULL) {
		if (peer != NULL)
			undo_grant(peer);
		if (uconn != NULL && pool != NULL)
			pool_uconn_keep(uconn);
		free_wait(pool, wait);
	} else if (uconn != NULL) {
		answer(wait, uconn, POOL_OK);
	} else if (peer == NULL) {
		answer(wait, NULL, wait->shared.failure);
	} else {
		use_grant(pool, wait, peer);
	}
	if (peer != NULL)
		peer_unref(peer);
}

static void
on_queued_too_long(struct worker *worker, struct timer *timer)
{
	struct pool_wait *wait = CONTAINER_OF(timer, struct pool_wait, timer);

	/* Too late to leave the queue: its turn is on its way. */
	if (upstream_dequeue(wait->upstream, &wait->shared))
		answer(wait, NULL, POOL_QUEUE_TIMEOUT);
}

/* ---- acquire ---- */

static enum pool_failure
queue_up(struct pool *pool, struct upstream *upstream,
    const struct pool_ask *ask, pool_ready_cb *on_ready, void *arg,
    struct pool_wait **wait_at)
{
	struct pool_wait *wait = new_wait(pool, upstream, ask, on_ready, arg);
	enum pool_failure failure;

	wait->shared.mail.deliver = deliver_turn;
	timer_arm(pool->worker,
	    timer_class_of(pool->worker, ask->limits->queue_timeout_ms,
		on_queued_too_long),
	    &wait->timer);
	failure = upstream_enqueue(upstream, &wait->shared,
	    addr_hash_client(ask->client), ask->limits->queue_length,
	    ask->limits->queue_timeout_ms);
	if (failure == POOL_OK)
		*wait_at = wait;
	else
		free_wait(pool, wait);
	return failure;
}

/* A connection to this peer, if it still has room. False: it has not, look for
 * another. True: *uconn is one, or is NULL because connecting failed. */
static bool
take(struct pool *pool, struct peer *peer, const struct pool_ask *ask,
    struct uconn **uconn_at)
{
	bool capped = peer_is_capped(peer);
	struct uconn *uconn = NULL;

	if (peer->cap_counts_idle) {
		uconn = take_idle(pool, peer, ask->fresh, ask->careful);
		/* One that may not be used holds the slot that is needed. */
		if (uconn == NULL && !peer_take_slot(peer)) {
			if (uconn_newest_idle(peer, pool->worker->index) !=
			    NULL)
				pool_evict(pool, peer);
			return false;
		}
	} else {
		if (!peer_take_slot(peer))
			return false;
		uconn = take_idle(pool, peer, ask->fresh, ask->careful);
	}
	atomic_fetch_add(&peer->in_flight, 1);
	*uconn_at = uconn;
	if (LIKELY(uconn != NULL)) {
		uconn->holds_slot = capped;
		uconn->is_in_flight = true;
		return true;
	}
	if (!peer_open(peer)) {
		atomic_fetch_sub(&peer->in_flight, 1);
		peer_put_slot(peer);
		upstream_slot_freed(peer->upstream);
		return false;
	}
	*uconn_at =
	    uconn_new(pool, peer, ask->limits, ask->buffer_bytes, capped);
	return true;
}

struct uconn *
pool_acquire(struct pool *pool, struct upstream *upstream,
    const struct pool_ask *ask, pool_ready_cb *on_ready, void *arg,
    struct pool_wait **wait_at, enum pool_failure *failure)
{
	struct upstream_local *local = &upstream->local[pool->worker->index];
	struct uconn *uconn = NULL;

	*wait_at = NULL;
	*failure = POOL_OK;
	for (int i = 0; i < PICK_TRIES; i++) {
		struct peer *peer;

		if (UNLIKELY(upstream_has_waiters(upstream)))
			break;
		peer = peer_set_pick(local->set, (int)pool->worker->index,
		    local->turn++, pool->worker->tick_ms);
		if (peer == NULL)
			break;
		if (!take(pool, peer, ask, &uconn))
			continue;
		if (uconn == NULL) {
			note_connect_failure(
			    pool, peer, POOL_CONNECT_FAILED, strerror(errno));
			*failure = POOL_CONNECT_FAILED;
		} else if (UNLIKELY(uconn->state == UCONN_CONNECTING)) {
			*wait_at = new_wait(pool, upstream, ask, on_ready, arg);
			(*wait_at)->uconn = uconn;
			uconn->wait = *wait_at;
			uconn = NULL;
		}
		return uconn;
	}
	*failure = queue_up(pool, upstream, ask, on_ready, arg, wait_at);
	return NULL;
}

void
pool_cancel(struct pool *pool, struct pool_wait **wait_at)
{
	struct pool_wait *wait = *wait_at;

	if (wait == NULL)
		return;
	*wait_at = NULL;
	if (wait->uconn != NULL) {
		wait->uconn->wait = NULL;
		uconn_close(wait->uconn);
		free_wait(pool, wait);
	} else if (upstream_dequeue(wait->upstream, &wait->shared)) {
		free_wait(pool, wait);
	} else {
		timer_disarm(&wait->timer);
		wait->is_cancelled = true;
	}
}
