/*
 * One address that requests can be sent to: an instance of an app, or a peer of
 * a configured upstream. Shared by all workers: constants, atomics, and a part
 * per worker that only this worker touches.
 *
 * A slot is the right to use a capped peer: a connection, idle or not, when
 * idle ones count, else a request. `open` counts connections and grants of any
 * peer: a withdrawn one is drained when it falls to 0.
 */
#ifndef UPSTREAM_PEER_H
#define UPSTREAM_PEER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/core/worker.h"
#include "proxy/upstream/registry.h"
#include "src/base/addr.h"
#include "src/base/compiler.h"
#include "src/base/list.h"

/* The part of one worker. The atomics are written by it alone. */
struct peer_local {
	struct list idle, busy, ending; /* of struct uconn.node; idle: newest
					 * first */
	_Atomic unsigned n_idle;
	_Atomic uint64_t requests, errors;
	struct ssl_session_st *session; /* of TLS, the newest; or NULL */
	char pad[64 - 16];
};

#define PEER_NO_CAP REGISTRY_NO_CAP
/* A process without a cap gets no more requests while it has so many that their
 * clients have given up: who asks and leaves would else fill it. */
#define PEER_LEAVING_MAX 64

struct peer {
	struct upstream *upstream; /* counted */
	uint64_t instance;         /* 0: not an app's */
	uint32_t pid;
	enum upstream_protocol protocol;
	unsigned weight;
	bool cap_counts_idle;
	bool is_remote; /* a configured peer: nobody will replace it */
	_Atomic uint32_t idle_ms;
	struct addr addr;
	char text[ADDR_TEXT_MAX];
	unsigned n_workers;

	_Atomic unsigned refs;
	_Atomic unsigned in_flight; /* requests */
	_Atomic unsigned open;
	_Atomic unsigned streams; /* of them answers that may last for ever */
	/* The cap (PEER_NO_CAP: any number) in the upper half, slots in use in
	 * the lower: one word, so that lowering the cap cannot race. */
	_Atomic uint64_t room;
	_Atomic unsigned leaving;  /* see PEER_LEAVING_MAX */
	_Atomic unsigned evicting; /* mails on their way to close an idle one */
	_Atomic bool withdrawn, drained_told, quiet_told;
	_Atomic bool crashed;   /* it died before it was withdrawn */
	_Atomic unsigned fails; /* in a row */
	/* Its last failure that is in the log: a hash of why, and when. */
	_Atomic uint64_t told_why;
	_Atomic int64_t told_ms;
	_Atomic int64_t avoid_until_ms; /* monotonic; passive health */
	_Atomic int64_t doubt_until_ms; /* its process may be dying */
	struct peer_local local[];      /* per worker */
};

static inline bool
peer_is_capped(const struct peer *peer)
{
	return atomic_load_explicit(&peer->room, memory_order_relaxed) >> 32 !=
	       PEER_NO_CAP;
}

/* With one reference; weight 1. */
struct peer *peer_new(struct upstream *upstream, const struct addr *addr,
    uint32_t cap) MUST_CHECK;
void peer_ref(struct peer *peer);
void peer_unref(struct peer *peer);

/* Take a slot of a capped peer, if one is free; always succeeds without cap. */
bool peer_take_slot(struct peer *peer) MUST_CHECK;
/* Give one back. The caller then calls upstream_slot_freed. */
void peer_put_slot(struct peer *peer);
/* How many slots are in use above the cap: idle ones must go. */
uint32_t peer_over_cap(const struct peer *peer);
/* Change the cap of a capped one. What is given up is told by the registry's
 * on_released: at once what is free, the rest as it becomes free. After
 * peer_lend the caller calls upstream_slot_freed. */
void peer_lend(struct peer *peer, uint32_t slots);
void peer_recall(struct peer *peer, uint32_t slots);
/* The process ends: give up what is not in use, unless somebody waits. */
void peer_give_up(struct peer *peer);

/* Announce a connection (or the grant of one); false: it is withdrawn. */
bool peer_open(struct peer *peer) MUST_CHECK;
/* It is closed; the last one of a withdrawn peer tells that it is drained. */
void peer_closed(struct peer *peer);
/* What is asked on an open one has become a stream; it has ended. A withdrawn
 * peer with nothing else open tells that it is quiet. */
void peer_stream_began(struct peer *peer);
void peer_stream_ended(struct peer *peer);
/* No connections any more from now on. */
void peer_withdraw(struct peer *peer);

/* It failed to take a connection, or died under one: avoid it for a while that
 * doubles each time; returns how often it had failed in a row before. It
 * worked: forget that. */
unsigned peer_failed(struct peer *peer, int64_t now_ms);
/* It broke off instead of answering: a process that ends closes one connection
 * after the other, so for a while its kept ones prove nothing. */
void peer_broke_off(struct peer *peer, int64_t now_ms);
static inline bool
peer_is_doubtful(const struct peer *peer, int64_t now_ms)
{
	return atomic_load_explicit(
		   &peer->doubt_until_ms, memory_order_relaxed) > now_ms;
}
static inline void
peer_worked(struct peer *peer)
{
	if (atomic_load_explicit(&peer->fails, memory_order_relaxed) != 0) {
		atomic_store(&peer->fails, 0);
		atomic_store(&peer->avoid_until_ms, 0);
	}
}
static inline bool
peer_is_avoided(const struct peer *peer, int64_t now_ms)
{
	return atomic_load_explicit(
		   &peer->avoid_until_ms, memory_order_relaxed) > now_ms;
}
static inline bool
peer_is_withdrawn(const struct peer *peer)
{
	return atomic_load_explicit(&peer->withdrawn, memory_order_relaxed);
}

/* It is to get no more requests because another one takes its place. */
static inline bool
peer_is_replaced(const struct peer *peer)
{
	return peer_is_withdrawn(peer) &&
	       !atomic_load_explicit(&peer->crashed, memory_order_relaxed);
}

/* A request on it ended, and is not repeated. In the worker's thread. */
static inline void
peer_count(struct peer *peer, unsigned worker, bool is_error)
{
	struct peer_local *local = &peer->local[worker];

	/* One writer: no read-modify-write. */
	atomic_store_explicit(&local->requests,
	    atomic_load_explicit(&local->requests, memory_order_relaxed) + 1,
	    memory_order_relaxed);
	if (is_error)
		atomic_store_explicit(&local->errors,
		    atomic_load_explicit(&local->errors, memory_order_relaxed) +
			1,
		    memory_order_relaxed);
}

/* An immutable list of peers, counted; holds its peers. */
struct peer_set {
	_Atomic unsigned refs;
	unsigned n, total_weight;
	struct peer *peers[];
};
struct peer_set *peer_set_new(struct peer *const *peers, unsigned n) MUST_CHECK;
struct peer_set *peer_set_ref(struct peer_set *set);
void peer_set_unref(struct peer_set *set);

/* The least busy peer of the set that can take a request: neither withdrawn nor
 * avoided (unless all are) nor full. A capped peer whose idle connections count
 * is not full for a worker that has one of them (`worker`; -1: nobody's). Ties
 * go round by `turn`. NULL: none. Nothing is taken. */
struct peer *peer_set_pick(
    const struct peer_set *set, int worker, unsigned turn, int64_t now_ms);

#endif
