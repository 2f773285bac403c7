/*
 * Peers: slots, what is open, whom to choose.
 * Called by upstream.c under its lock, and by pool.c without.
 * Makes no connections.
 */
#include "proxy/upstream/peer.h"

#include <assert.h>

#include "proxy/core/tls_upstream.h"
#include "proxy/upstream/upstream.h"
#include "src/base/mem.h"

/* A peer that fails is avoided for this long, doubling up to the second. */
#define AVOID_MS 500
#define AVOID_MAX_MS 15000
/* The kernel closes what a dead process had open within this. */
#define DOUBT_MS 1000

struct peer *
peer_new(struct upstream *upstream, const struct addr *addr, uint32_t cap)
{
	unsigned n = upstream->n_workers;
	struct peer *peer =
	    mem_alloc(sizeof(*peer) + n * sizeof(struct peer_local));

	upstream_ref(upstream);
	peer->upstream = upstream;
	peer->addr = *addr;
	addr_format(addr, peer->text);
	peer->weight = 1;
	peer->n_workers = n;
	atomic_init(&peer->refs, 1);
	atomic_init(&peer->room, (uint64_t)cap << 32);
	for (unsigned i = 0; i < n; i++) {
		list_init(&peer->local[i].idle);
		list_init(&peer->local[i].busy);
		list_init(&peer->local[i].ending);
	}
	return peer;
}

void
peer_ref(struct peer *peer)
{
	atomic_fetch_add(&peer->refs, 1);
}

void
peer_unref(struct peer *peer)
{
	struct upstream *upstream = peer->upstream;

	if (atomic_fetch_sub(&peer->refs, 1) != 1)
		return;
	for (unsigned i = 0; i < peer->n_workers; i++) {
		struct peer_local *local = &peer->local[i];

		atomic_fetch_add(
		    &upstream->past_requests, atomic_load(&local->requests));
		atomic_fetch_add(
		    &upstream->past_errors, atomic_load(&local->errors));
		tls_session_free(&local->session);
	}
	mem_free(peer);
	upstream_unref(upstream);
}

static uint32_t
cap_of(uint64_t room)
{
	return (uint32_t)(room >> 32);
}

static uint32_t
slots_of(uint64_t room)
{
	return (uint32_t)room;
}

bool
peer_take_slot(struct peer *peer)
{
	uint64_t room = atomic_load(&peer->room);

	do {
		if (cap_of(room) == PEER_NO_CAP)
			return true;
		if (slots_of(room) >= cap_of(room))
			return false;
	} while (!atomic_compare_exchange_weak(&peer->room, &room, room + 1));
	return true;
}

/* What the peer has here: its cap, or what is in use above a lowered one. */
static uint32_t
held_of(uint64_t room)
{
	return slots_of(room) > cap_of(room) ? slots_of(room) : cap_of(room);
}

static void
tell_released(const struct peer *peer, uint64_t before, uint64_t after)
{
	uint32_t given = held_of(before) - held_of(after);

	if (given > 0 && peer->instance != 0)
		registry_tell_released(
		    peer->upstream->registry, peer->instance, given);
}

void
peer_put_slot(struct peer *peer)
{
	uint64_t room = atomic_load(&peer->room);

	if (cap_of(room) == PEER_NO_CAP)
		return;
	do {
		assert(slots_of(room) > 0);
	} while (!atomic_compare_exchange_weak(&peer->room, &room, room - 1));
	tell_released(peer, room, room - 1);
	if (UNLIKELY(registry_is_draining(peer->upstream->registry)))
		peer_give_up(peer);
}

uint32_t
peer_over_cap(const struct peer *peer)
{
	uint64_t room = atomic_load(&peer->room);

	return slots_of(room) > cap_of(room) ? slots_of(room) - cap_of(room)
					     : 0;
}

static uint64_t
with_cap(uint64_t room, uint32_t cap)
{
	return (uint64_t)cap << 32 | slots_of(room);
}

void
peer_lend(struct peer *peer, uint32_t slots)
{
	uint64_t room = atomic_load(&peer->room);

	do {
		if (cap_of(room) == PEER_NO_CAP ||
		    slots >= PEER_NO_CAP - cap_of(room))
			return;
	} while (!atomic_compare_exchange_weak(
	    &peer->room, &room, with_cap(room, cap_of(room) + slots)));
}

void
peer_recall(struct peer *peer, uint32_t slots)
{
	uint64_t room = atomic_load(&peer->room), after;

	do {
		uint32_t cap = cap_of(room);

		if (cap == PEER_NO_CAP)
			return;
		after = with_cap(room, slots < cap ? cap - slots : 0);
	} while (!atomic_compare_exchange_weak(&peer->room, &room, after));
	tell_released(peer, room, after);
}

void
peer_give_up(struct peer *peer)
{
	struct upstream *upstream = peer->upstream;
	uint64_t room = atomic_load(&peer->room), after;
	uint32_t given;

	if (peer->instance == 0)
		return;
	do {
		if (cap_of(room) == PEER_NO_CAP ||
		    slots_of(room) >= cap_of(room) ||
		    upstream_has_waiters(upstream))
			return;
		after = with_cap(room, slots_of(room));
	} while (!atomic_compare_exchange_weak(&peer->room, &room, after));
	given = cap_of(room) - cap_of(after);
	/* Who began to wait just now, and has not seen that we drain, found
	 * none free because of us. */
	if (upstream_has_waiters(upstream)) {
		peer_lend(peer, given);
		upstream_slot_freed(upstream);
		return;
	}
	tell_released(peer, room, after);
}

/* Only the one that finds it closed and withdrawn first tells. */
static void
tell_if_drained(struct peer *peer)
{
	if (atomic_load(&peer->withdrawn) && atomic_load(&peer->open) == 0 &&
	    !atomic_exchange(&peer->drained_told, true) && peer->instance != 0)
		registry_tell_drained(peer->upstream->registry, peer->instance);
}

/* A withdrawn peer only loses connections, and a stream is counted while its
 * connection is: as many streams as had been open before are all that is. */
static void
tell_if_quiet(struct peer *peer)
{
	unsigned open;

	if (!atomic_load(&peer->withdrawn) || peer->instance == 0)
		return;
	open = atomic_load(&peer->open);
	if (open > 0 && atomic_load(&peer->streams) == open &&
	    !atomic_exchange(&peer->quiet_told, true))
		registry_tell_quiet(peer->upstream->registry, peer->instance);
}

void
peer_stream_began(struct peer *peer)
{
	atomic_fetch_add(&peer->streams, 1);
	tell_if_quiet(peer);
}

void
peer_stream_ended(struct peer *peer)
{
	atomic_fetch_sub(&peer->streams, 1);
}

bool
peer_open(struct peer *peer)
{
	atomic_fetch_add(&peer->open, 1);
	if (!atomic_load(&peer->withdrawn))
		return true;
	peer_closed(peer);
	return false;
}

void
peer_closed(struct peer *peer)
{
	if (atomic_fetch_sub(&peer->open, 1) == 1)
		tell_if_drained(peer);
	else
		tell_if_quiet(peer);
}

void
peer_withdraw(struct peer *peer)
{
	atomic_store(&peer->withdrawn, true);
	tell_if_drained(peer);
	tell_if_quiet(peer);
}

unsigned
peer_failed(struct peer *peer, int64_t now_ms)
{
	unsigned fails = atomic_fetch_add(&peer->fails, 1);
	int64_t avoid_ms = AVOID_MAX_MS;

	if (fails < 5)
		avoid_ms = (int64_t)AVOID_MS << fails;
	atomic_store(&peer->avoid_until_ms, now_ms + avoid_ms);
	return fails;
}

void
peer_broke_off(struct peer *peer, int64_t now_ms)
{
	atomic_store(&peer->doubt_until_ms, now_ms + DOUBT_MS);
}

struct peer_set *
peer_set_new(struct peer *const *peers, unsigned n)
{
	struct peer_set *set =
	    mem_alloc(sizeof(*set) + n * sizeof(struct peer *));

	atomic_init(&set->refs, 1);
	set->n = n;
	for (unsigned i = 0; i < n; i++) {
		peer_ref(peers[i]);
		set->peers[i] = peers[i];
		set->total_weight += peers[i]->weight;
	}
	return set;
}

struct peer_set *
peer_set_ref(struct peer_set *set)
{
	atomic_fetch_add(&set->refs, 1);
	return set;
}

void
peer_set_unref(struct peer_set *set)
{
	if (set == NULL || atomic_fetch_sub(&set->refs, 1) != 1)
		return;
	for (unsigned i = 0; i < set->n; i++)
		peer_unref(set->peers[i]);
	mem_free(set);
}

static bool
has_room(const struct peer *peer, int worker)
{
	uint64_t room = atomic_load_explicit(&peer->room, memory_order_seq_cst);

	if (cap_of(room) == PEER_NO_CAP)
		return atomic_load(&peer->leaving) < PEER_LEAVING_MAX;
	if (slots_of(room) < cap_of(room))
		return true;
	return worker >= 0 && peer->cap_counts_idle &&
	       atomic_load_explicit(
		   &peer->local[worker].n_idle, memory_order_relaxed) > 0;
}

static bool
all_avoided(const struct peer_set *set, int64_t now_ms)
{
	for (unsigned i = 0; i < set->n; i++)
		if (!peer_is_withdrawn(set->peers[i]) &&
		    !peer_is_avoided(set->peers[i], now_ms))
			return false;
	return true;
}

/* Where to begin looking: peers begin in proportion to their weight. */
static unsigned
first_of_turn(const struct peer_set *set, unsigned turn)
{
	unsigned at = turn % set->total_weight;
	unsigned i = 0;

	while (at >= set->peers[i]->weight)
		at -= set->peers[i++]->weight;
	return i;
}

struct peer *
peer_set_pick(
    const struct peer_set *set, int worker, unsigned turn, int64_t now_ms)
{
	struct peer *best = NULL;
	uint64_t best_load = 0;
	bool may_avoid;
	unsigned at;

	if (set->n == 0)
		return NULL;
	if (set->n == 1) {
		best = set->peers[0];
		return !peer_is_withdrawn(best) && has_room(best, worker)
			   ? best
			   : NULL;
	}
	may_avoid = !all_avoided(set, now_ms);
	at = first_of_turn(set, turn);
	for (unsigned i = 0; i < set->n; i++, at++) {
		struct peer *peer = set->peers[at < set->n ? at : at - set->n];
		uint64_t load = atomic_load_explicit(
		    &peer->in_flight, memory_order_relaxed);

		if (peer_is_withdrawn(peer) ||
		    (may_avoid && peer_is_avoided(peer, now_ms)) ||
		    !has_room(peer, worker))
			continue;
		if (best == NULL ||
		    load * best->weight < best_load * peer->weight) {
			best = peer;
			best_load = load;
		}
	}
	return best;
}
