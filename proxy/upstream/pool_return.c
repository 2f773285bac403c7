/*
 * What becomes of a connection when it is given back: kept for the next
 * request, handed to who waits for its slot, or closed.
 * The other half of pool.h, behind pool.c.
 * Knows no requests.
 */
#include "proxy/core/io.h"
#include "proxy/core/tls_io.h"
#include "proxy/upstream/peer.h"
#include "proxy/upstream/pool.h"
#include "proxy/upstream/uconn.h"
#include "proxy/upstream/upstream.h"

/* ---- kept, handed over, or closed ---- */

/* How long it may be idle; 0: not at all. */
static int
idle_ms_of(const struct uconn *uconn)
{
	uint32_t ms = (uint32_t)uconn->idle_timeout_ms;
	uint32_t peer_ms =
	    atomic_load_explicit(&uconn->peer->idle_ms, memory_order_relaxed);
	uint32_t said_s = uconn->peer_idle_s;

	if (peer_ms != 0 && peer_ms < ms)
		ms = peer_ms;
	if (said_s != 0 && said_s <= ms / 1000) {
		/* A busy peer closes before it reads: leave it a second. Few
		 * different lengths, because each is a timer class. */
		ms = (said_s - 1) * 1000;
		if (ms > 30000)
			ms -= ms % 30000;
	}
	return (int)ms;
}

static bool
may_keep(const struct uconn *uconn, int idle_ms)
{
	const struct peer *peer = uconn->peer;
	unsigned index = uconn->pool->worker->index;

	if (peer_is_withdrawn(peer) || idle_ms == 0 ||
	    atomic_load_explicit(&peer->local[index].n_idle,
		memory_order_relaxed) >= uconn->idle_max)
		return false;
	if (!peer_is_capped(peer))
		return true;
	return peer_over_cap(peer) == 0 &&
	       !registry_is_draining(uconn->pool->registry);
}

/* Somebody may wait for the slot of this connection, at any worker: it goes to
 * him as it is. Closing it and letting him connect would cost both sides, and
 * for a moment the peer would have one connection too many. */
static bool
hand_over(struct uconn *uconn)
{
	struct peer *peer = uconn->peer;
	struct worker *worker = uconn->pool->worker;
	/* The keys of TLS do not leave their worker. */
	const struct worker *only = tls_of(&uconn->io) == NULL ? NULL : worker;
	struct upstream_wait *next = upstream_next(peer->upstream, only);

	if (next == NULL)
		return false;
	atomic_fetch_add(&peer->in_flight, 1);
	next->failure = POOL_OK;
	if (next->worker == worker) {
		if (uconn->state != UCONN_BUSY)
			uconn_set_busy(uconn);
		uconn->is_in_flight = true;
		next->uconn = uconn;
	} else {
		peer_ref(peer);
		next->granted = peer;
		next->served = uconn->served;
		next->fd = uconn_detach(uconn);
	}
	worker_post(next->worker, &next->mail);
	return true;
}

void
pool_uconn_keep(struct uconn *uconn)
{
	struct peer *peer = uconn->peer;
	bool slot_is_connection = peer->cap_counts_idle && uconn->holds_slot;
	int idle_ms = idle_ms_of(uconn);

	atomic_fetch_sub(&peer->in_flight, 1);
	uconn->is_in_flight = false;
	if (UNLIKELY(!may_keep(uconn, idle_ms))) {
		if (uconn->holds_slot)
			uconn_end(uconn);
		else
			uconn_close(uconn);
		return;
	}
	if (slot_is_connection && upstream_has_waiters(peer->upstream)) {
		if (hand_over(uconn))
			return;
		/* Who is next wants a fresh one, or cannot have this one. */
		if (upstream_has_waiters(peer->upstream)) {
			uconn_end(uconn);
			return;
		}
	}
	if (uconn->holds_slot && !slot_is_connection) {
		uconn->holds_slot = false;
		peer_put_slot(peer);
		uconn_set_idle(uconn, idle_ms);
		upstream_slot_freed(peer->upstream);
		return;
	}
	uconn_set_idle(uconn, idle_ms);
	/* Who began to wait just now may have looked before it was idle. */
	if (slot_is_connection && upstream_has_waiters(peer->upstream))
		pool_evict(uconn->pool, peer);
}

/* ---- giving back ---- */

static void
leave_exchange(struct uconn *uconn)
{
	if (UNLIKELY(uconn->is_stream))
		peer_stream_ended(uconn->peer);
	uconn->is_stream = false;
	uconn->exchange = NULL;
	uconn->on_over = NULL;
	uconn->on_ending = NULL;
	uconn->owner = NULL;
}

void
pool_release(struct pool *pool, struct uconn **uconn_at)
{
	struct uconn *uconn = *uconn_at;

	*uconn_at = NULL;
	leave_exchange(uconn);
	uconn->can_drain = false;
	uconn->served++;
	peer_worked(uconn->peer);
	/* The answer's last bytes may have been more than its client takes: the
	 * pause was for that client, and must not meet the next answer. */
	io_read_start(&uconn->io);
	pool_uconn_keep(uconn);
}

void
pool_close(struct pool *pool, struct uconn **uconn_at, bool failed)
{
	struct uconn *uconn = *uconn_at;

	*uconn_at = NULL;
	leave_exchange(uconn);
	if (failed)
		peer_failed(uconn->peer, clock_now_ms());
	/* A capped peer is free when it has closed too. If it has, reading
	 * tells at once. */
	if (uconn->holds_slot)
		uconn_end(uconn);
	else
		uconn_close(uconn);
}

/* An application's process without a cap, at a request that is no stream. */
static bool
may_leave(const struct uconn *uconn)
{
	return uconn->state == UCONN_BUSY && uconn->peer->instance != 0 &&
	       !uconn->holds_slot && !uconn->is_stream &&
	       !peer_is_capped(uconn->peer);
}

void
pool_abandon(struct pool *pool, struct uconn **uconn_at)
{
	struct uconn *uconn = *uconn_at;

	if (may_leave(uconn)) {
		*uconn_at = NULL;
		leave_exchange(uconn);
		uconn_leave(uconn);
		return;
	}
	if (!uconn->can_drain || !uconn->holds_slot) {
		pool_close(pool, uconn_at, false);
		return;
	}
	*uconn_at = NULL;
	leave_exchange(uconn);
	if (uconn->reply.ended)
		pool_uconn_clean(uconn);
	else
		uconn_drain(uconn);
}

void
pool_condemn(struct pool *pool, struct uconn **uconn_at)
{
	struct uconn *uconn = *uconn_at;

	pool_abandon(pool, uconn_at);
	/* Closed or not: its memory is there until the end of the round. */
	uconn_condemn(uconn);
}

void
pool_cut(struct pool *pool, struct uconn **uconn_at, bool resets)
{
	struct uconn *uconn = *uconn_at;

	*uconn_at = NULL;
	leave_exchange(uconn);
	if (resets)
		io_will_reset(&uconn->io);
	uconn_close(uconn);
}

void
pool_uconn_clean(struct uconn *uconn)
{
	uconn->can_drain = false;
	uconn->served++;
	/* It answered before it had read all of us. */
	if (!io_is_drained(&uconn->io))
		uconn_end(uconn);
	else
		pool_uconn_keep(uconn);
}

/* ---- what others want of us ---- */

void
pool_evict(struct pool *pool, struct peer *peer)
{
	struct list *idle = &peer->local[pool->worker->index].idle;
	struct uconn *uconn;

	if (list_is_empty(idle) || !upstream_has_waiters(peer->upstream))
		return;
	uconn = LIST_ENTRY(idle->prev, struct uconn, node);
	if (!hand_over(uconn) && upstream_has_waiters(peer->upstream))
		uconn_end(uconn);
}

static void
sweep_idle(struct pool *pool, struct peer *peer, bool dead)
{
	bool all =
	    peer_is_withdrawn(peer) ||
	    (peer_is_capped(peer) && registry_is_draining(pool->registry));
	uint32_t n = all ? UINT32_MAX : peer_over_cap(peer);
	struct uconn *uconn;

	while (n-- > 0 &&
	       (uconn = uconn_newest_idle(peer, pool->worker->index)) != NULL) {
		if (uconn->holds_slot && !dead)
			uconn_end(uconn);
		else
			uconn_close(uconn);
	}
}

static void
fail_one(struct uconn *uconn, bool dead)
{
	if (uconn->state == UCONN_CONNECTING && uconn->wait != NULL)
		pool_uconn_failed(uconn, POOL_CONNECT_FAILED,
		    dead ? "its process died" : "its process ends");
	else if (uconn->on_over != NULL)
		uconn->on_over(uconn, dead);
}

/* Failing one changes the list. */
static void
fail_busy(struct list *busy, bool dead)
{
	struct list now, *node;

	list_init(&now);
	while ((node = list_first(busy)) != NULL) {
		list_remove(node);
		list_push_back(&now, node);
	}
	while ((node = list_first(&now)) != NULL) {
		struct uconn *uconn = LIST_ENTRY(node, struct uconn, node);

		list_remove(node);
		list_push_back(busy, node);
		if (dead || !uconn->is_stream)
			fail_one(uconn, dead);
	}
}

void
pool_sweep(struct pool *pool, struct peer *peer, bool dead)
{
	struct peer_local *local = &peer->local[pool->worker->index];
	struct list *node;

	sweep_idle(pool, peer, dead);
	if (!dead)
		return;
	while ((node = list_first(&local->ending)) != NULL)
		uconn_close(LIST_ENTRY(node, struct uconn, node));
	fail_busy(&local->busy, true);
}

void
pool_hurry(struct pool *pool, struct peer *peer)
{
	struct peer_local *local = &peer->local[pool->worker->index];
	struct list *node;

	fail_busy(&local->busy, false);
	/* Those of capped ones, too: the process works on for nobody. */
	LIST_FOREACH(node, &local->ending)
	uconn_condemn(LIST_ENTRY(node, struct uconn, node));
}

void
pool_end_streams(struct pool *pool)
{
	struct list *node;

	/* Memory stays, and the list as it is, until the end of the round. */
	LIST_FOREACH(node, &pool->all)
	{
		struct uconn *uconn = LIST_ENTRY(node, struct uconn, in_pool);

		if (uconn->is_stream && uconn->on_ending != NULL)
			uconn->on_ending(uconn);
	}
}
