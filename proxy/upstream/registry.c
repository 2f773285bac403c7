/*
 * Upstreams by name, instances by number.
 * Between the channel (proxy.c) and the workers: what is told here reaches
 * them as mail.
 * Sends no requests and decides nothing about them.
 */
#include "proxy/upstream/registry.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "proxy/core/tls_upstream.h"
#include "proxy/upstream/upstream.h"
#include "src/base/list.h"
#include "src/base/log.h"
#include "src/base/mem.h"

/* An instance that was announced; kept until it has drained. */
struct instance {
	struct list node;
	struct peer *peer; /* counted */
};

struct upstream_registry {
	struct worker *const *workers;
	unsigned n_workers;
	const struct registry_events *events;
	void *arg;
	_Atomic bool draining;
	pthread_mutex_t lock;
	struct list upstreams; /* under lock; each counted once */
	struct list instances; /* under lock */
};

struct upstream_registry *
registry_new(struct worker *const *workers, unsigned n_workers,
    const struct registry_events *events, void *arg)
{
	struct upstream_registry *registry = mem_alloc(sizeof(*registry));

	registry->workers = workers;
	registry->n_workers = n_workers;
	registry->events = events;
	registry->arg = arg;
	pthread_mutex_init(&registry->lock, NULL);
	list_init(&registry->upstreams);
	list_init(&registry->instances);
	return registry;
}

static void
forget_instance(struct instance *instance)
{
	list_remove(&instance->node);
	peer_unref(instance->peer);
	mem_free(instance);
}

/* Workers have gone: nobody looks at their lists any more. Peers and their
 * upstream hold each other, so let go by hand. */
static void
let_go(struct upstream *upstream)
{
	list_remove(&upstream->node);
	for (unsigned i = 0; i < upstream->n_workers; i++) {
		peer_set_unref(upstream->local[i].set);
		upstream->local[i].set = NULL;
	}
	peer_set_unref(upstream->set);
	upstream->set = NULL;
	upstream_unref(upstream);
}

void
registry_free(struct upstream_registry **registry_at)
{
	struct upstream_registry *registry = *registry_at;
	struct list *node;

	if (registry == NULL)
		return;
	while ((node = list_first(&registry->instances)) != NULL)
		forget_instance(LIST_ENTRY(node, struct instance, node));
	while ((node = list_first(&registry->upstreams)) != NULL)
		let_go(LIST_ENTRY(node, struct upstream, node));
	pthread_mutex_destroy(&registry->lock);
	mem_free(registry);
	*registry_at = NULL;
}

/* ---- under the lock ---- */

static struct upstream *
find_upstream(struct upstream_registry *registry, const char *name, bool is_app)
{
	struct list *node;

	LIST_FOREACH(node, &registry->upstreams)
	{
		struct upstream *upstream =
		    LIST_ENTRY(node, struct upstream, node);

		if (upstream->is_app == is_app &&
		    strcmp(upstream->name, name) == 0)
			return upstream;
	}
	return NULL;
}

static struct upstream *
add_upstream(struct upstream_registry *registry, const char *name, bool is_app)
{
	struct upstream *upstream =
	    upstream_new(registry, name, is_app, registry->n_workers);

	list_push_back(&registry->upstreams, &upstream->node);
	return upstream;
}

/* Apps are kept for ever: their state is told before any route uses them, and
 * few names ever exist. */
static struct upstream *
app_upstream(struct upstream_registry *registry, const char *app)
{
	struct upstream *upstream = find_upstream(registry, app, true);

	return upstream != NULL ? upstream : add_upstream(registry, app, true);
}

static struct instance *
find_instance(struct upstream_registry *registry, uint64_t id)
{
	struct list *node;

	LIST_FOREACH(node, &registry->instances)
	{
		struct instance *instance =
		    LIST_ENTRY(node, struct instance, node);

		if (instance->peer->instance == id)
			return instance;
	}
	return NULL;
}

static void
forget_drained(struct upstream_registry *registry)
{
	struct list *node, *after;

	LIST_FOREACH_SAFE(node, after, &registry->instances)
	{
		struct instance *instance =
		    LIST_ENTRY(node, struct instance, node);

		if (atomic_load(&instance->peer->drained_told))
			forget_instance(instance);
	}
}

/* The upstream's instances that may get requests, as its new set. */
static void
renew_set(struct upstream_registry *registry, struct upstream *upstream)
{
	struct peer **peers;
	struct list *node;
	unsigned room = 1, n = 0;

	LIST_FOREACH(node, &registry->instances)
	room++;
	peers = mem_alloc_array(room, sizeof(*peers));
	LIST_FOREACH(node, &registry->instances)
	{
		struct peer *peer =
		    LIST_ENTRY(node, struct instance, node)->peer;

		if (peer->upstream == upstream && !peer_is_withdrawn(peer))
			peers[n++] = peer;
	}
	upstream_set_peers(upstream, peer_set_new(peers, n));
	mem_free(peers);
}

/* ---- instances ---- */

static void
add_instance(
    struct upstream_registry *registry, const struct registry_instance *told)
{
	struct upstream *upstream = app_upstream(registry, told->app);
	struct instance *instance = mem_alloc(sizeof(*instance));
	struct peer *peer = peer_new(upstream, &told->addr, told->cap);

	peer->instance = told->id;
	peer->pid = told->pid;
	peer->protocol = told->protocol;
	peer->cap_counts_idle = told->cap_counts_idle;
	atomic_init(&peer->idle_ms, told->idle_ms);
	instance->peer = peer;
	list_push_back(&registry->instances, &instance->node);
	renew_set(registry, upstream);
}

int
registry_announce(
    struct upstream_registry *registry, const struct registry_instance *told)
{
	struct instance *instance;
	int result = 0;

	pthread_mutex_lock(&registry->lock);
	forget_drained(registry);
	instance = find_instance(registry, told->id);
	if (instance == NULL)
		add_instance(registry, told);
	else if (peer_is_withdrawn(instance->peer) ||
		 strcmp(instance->peer->upstream->name, told->app) != 0)
		result = -1;
	else
		atomic_store(&instance->peer->idle_ms, told->idle_ms);
	pthread_mutex_unlock(&registry->lock);
	return result;
}

/* With a reference, or NULL. */
static struct peer *
get_peer(struct upstream_registry *registry, uint64_t id)
{
	struct instance *instance;
	struct peer *peer = NULL;

	pthread_mutex_lock(&registry->lock);
	instance = find_instance(registry, id);
	if (instance != NULL) {
		peer = instance->peer;
		peer_ref(peer);
	}
	pthread_mutex_unlock(&registry->lock);
	return peer;
}

void
registry_lend(struct upstream_registry *registry, uint64_t id, uint32_t slots)
{
	struct peer *peer = get_peer(registry, id);

	if (peer == NULL)
		return;
	peer_lend(peer, slots);
	upstream_slot_freed(peer->upstream);
	if (registry_is_draining(registry))
		peer_give_up(peer);
	peer_unref(peer);
}

void
registry_recall(struct upstream_registry *registry, uint64_t id, uint32_t slots)
{
	struct peer *peer = get_peer(registry, id);

	if (peer == NULL)
		return;
	peer_recall(peer, slots);
	if (peer_over_cap(peer) > 0)
		upstream_sweep(peer->upstream, peer, false);
	peer_unref(peer);
}

int
registry_withdraw(struct upstream_registry *registry, uint64_t id, bool dead)
{
	struct peer *peer = get_peer(registry, id);

	if (peer == NULL)
		return -1;
	if (dead && !peer_is_withdrawn(peer))
		atomic_store(&peer->crashed, true);
	/* The order matters: nobody can begin anything on it after the first
	 * line, and only then do the workers look what there is to close. */
	peer_withdraw(peer);
	pthread_mutex_lock(&registry->lock);
	renew_set(registry, peer->upstream);
	pthread_mutex_unlock(&registry->lock);
	upstream_sweep(peer->upstream, peer, dead);
	peer_unref(peer);
	return 0;
}

void
registry_hurry(struct upstream_registry *registry, uint64_t id)
{
	struct peer *peer = get_peer(registry, id);

	if (peer == NULL)
		return;
	if (peer_is_withdrawn(peer) && atomic_load(&peer->streams) > 0)
		upstream_hurry(peer->upstream, peer);
	peer_unref(peer);
}

void
registry_app_state(struct upstream_registry *registry, const char *app,
    enum upstream_app_state state, uint32_t retry_ms, const char *text)
{
	struct upstream *upstream;

	pthread_mutex_lock(&registry->lock);
	upstream = app_upstream(registry, app);
	upstream_set_state(upstream, state, retry_ms, text);
	pthread_mutex_unlock(&registry->lock);
}

void
registry_drain(struct upstream_registry *registry)
{
	struct list *node;
	struct peer **peers;
	size_t n = 0;

	/* From here on who waits says so (on_wanted): before slots are gone. */
	atomic_store(&registry->draining, true);
	pthread_mutex_lock(&registry->lock);
	LIST_FOREACH(node, &registry->instances)
	n++;
	peers = mem_alloc_array(n + 1, sizeof(*peers));
	n = 0;
	LIST_FOREACH(node, &registry->instances)
	{
		struct peer *peer =
		    LIST_ENTRY(node, struct instance, node)->peer;

		if (!peer_is_capped(peer))
			continue;
		peer_ref(peer);
		peers[n++] = peer;
	}
	pthread_mutex_unlock(&registry->lock);
	for (size_t i = 0; i < n; i++) {
		peer_give_up(peers[i]);
		upstream_sweep(peers[i]->upstream, peers[i], false);
		peer_unref(peers[i]);
	}
	mem_free(peers);
}

static bool
set_has_streams(const struct peer_set *set)
{
	for (unsigned i = 0; i < set->n; i++)
		if (atomic_load(&set->peers[i]->streams) > 0)
			return true;
	return false;
}

bool
registry_has_streams(struct upstream_registry *registry)
{
	struct list *node;
	bool found = false;

	pthread_mutex_lock(&registry->lock);
	/* Those of apps may be withdrawn and in no set any more. */
	LIST_FOREACH(node, &registry->instances)
	found |=
	    atomic_load(
		&LIST_ENTRY(node, struct instance, node)->peer->streams) > 0;
	LIST_FOREACH(node, &registry->upstreams)
	{
		const struct upstream *upstream =
		    LIST_ENTRY(node, struct upstream, node);

		if (!upstream->is_app)
			found |= set_has_streams(upstream->set);
	}
	pthread_mutex_unlock(&registry->lock);
	return found;
}

/* ---- for gateways ---- */

struct upstream *
registry_get_app(struct upstream_registry *registry, const char *app)
{
	struct upstream *upstream;

	pthread_mutex_lock(&registry->lock);
	upstream = app_upstream(registry, app);
	upstream->users++;
	pthread_mutex_unlock(&registry->lock);
	return upstream;
}

static bool
has_these_peers(struct upstream *upstream, enum upstream_protocol protocol,
    const struct tls_upstream *tls, const struct registry_peer *peers,
    size_t n_peers)
{
	const struct peer_set *set = upstream->set;

	if (upstream->protocol != protocol || set->n != n_peers ||
	    !tls_upstream_eq(upstream->tls, tls))
		return false;
	for (size_t i = 0; i < n_peers; i++) {
		uint64_t room = atomic_load(&set->peers[i]->room);
		uint32_t cap = peers[i].max_connections != 0
				   ? peers[i].max_connections
				   : PEER_NO_CAP;

		if (!addr_eq(&set->peers[i]->addr, &peers[i].addr) ||
		    set->peers[i]->weight != peers[i].weight ||
		    room >> 32 != cap)
			return false;
	}
	return true;
}

static void
fill_upstream(struct upstream *upstream, enum upstream_protocol protocol,
    const struct registry_peer *told, size_t n_peers)
{
	struct peer **peers = mem_alloc_array(n_peers + 1, sizeof(*peers));

	upstream->protocol = protocol;
	for (size_t i = 0; i < n_peers; i++) {
		unsigned most = told[i].max_connections;

		peers[i] = peer_new(
		    upstream, &told[i].addr, most != 0 ? most : PEER_NO_CAP);
		peers[i]->protocol = protocol;
		peers[i]->weight = told[i].weight;
		peers[i]->cap_counts_idle = most != 0;
		peers[i]->is_remote = true;
	}
	/* Nobody has seen it yet, so the workers' copies are ours to set. */
	peer_set_unref(upstream->set);
	upstream->set = peer_set_new(peers, (unsigned)n_peers);
	for (unsigned i = 0; i < upstream->n_workers; i++) {
		peer_set_unref(upstream->local[i].set);
		upstream->local[i].set = peer_set_ref(upstream->set);
	}
	for (size_t i = 0; i < n_peers; i++)
		peer_unref(peers[i]);
	mem_free(peers);
}

struct upstream *
registry_get_peers(struct upstream_registry *registry, const char *name,
    enum upstream_protocol protocol, struct tls_upstream *tls,
    const struct registry_peer *peers, size_t n_peers)
{
	struct upstream *found = NULL;
	struct list *node;

	pthread_mutex_lock(&registry->lock);
	LIST_FOREACH(node, &registry->upstreams)
	{
		struct upstream *upstream =
		    LIST_ENTRY(node, struct upstream, node);

		if (!upstream->is_app && strcmp(upstream->name, name) == 0 &&
		    has_these_peers(upstream, protocol, tls, peers, n_peers))
			found = upstream;
	}
	if (found == NULL) {
		found = add_upstream(registry, name, false);
		if (tls != NULL)
			found->tls = tls_upstream_ref(tls);
		fill_upstream(found, protocol, peers, n_peers);
	}
	found->users++;
	pthread_mutex_unlock(&registry->lock);
	return found;
}

/* No route uses it any more: its idle connections are closed, and when the last
 * peer is free of connections it is gone. */
static void
retire(struct upstream *upstream)
{
	struct peer_set *set = peer_set_ref(upstream->set);

	for (unsigned i = 0; i < set->n; i++)
		peer_withdraw(set->peers[i]);
	upstream_set_peers(upstream, peer_set_new(NULL, 0));
	for (unsigned i = 0; i < set->n; i++)
		upstream_sweep(upstream, set->peers[i], false);
	peer_set_unref(set);
	upstream_unref(upstream);
}

void
registry_put(struct upstream_registry *registry, struct upstream **upstream_at)
{
	struct upstream *upstream = *upstream_at;

	if (upstream == NULL)
		return;
	*upstream_at = NULL;
	pthread_mutex_lock(&registry->lock);
	if (--upstream->users == 0 && !upstream->is_app) {
		list_remove(&upstream->node);
		retire(upstream);
	}
	pthread_mutex_unlock(&registry->lock);
}

/* ---- status ---- */

static void
add_peer_stats(struct registry_stats *stats, struct peer *peer)
{
	for (unsigned i = 0; i < peer->n_workers; i++) {
		stats->requests += atomic_load_explicit(
		    &peer->local[i].requests, memory_order_relaxed);
		stats->errors += atomic_load_explicit(
		    &peer->local[i].errors, memory_order_relaxed);
	}
	stats->in_flight += atomic_load(&peer->in_flight);
	stats->connections += atomic_load(&peer->open);
}

static void
tell_upstream(struct upstream_registry *registry, struct upstream *upstream,
    registry_stats_cb *each, void *arg)
{
	struct registry_stats sum = { .name = upstream->name,
		.is_app = upstream->is_app };
	struct list *node;

	sum.requests = atomic_load(&upstream->past_requests);
	sum.errors = atomic_load(&upstream->past_errors);
	sum.queued = atomic_load(&upstream->n_waiting);
	sum.oldest_wait_ms = (uint64_t)upstream_oldest_wait_ms(upstream);
	/* The set is changed by threads that hold the registry's lock only. */
	if (!upstream->is_app)
		for (unsigned i = 0; i < upstream->set->n; i++)
			add_peer_stats(&sum, upstream->set->peers[i]);
	LIST_FOREACH(node, &registry->instances)
	{
		struct peer *peer =
		    LIST_ENTRY(node, struct instance, node)->peer;

		if (peer->upstream == upstream)
			add_peer_stats(&sum, peer);
	}
	each(arg, &sum);
	LIST_FOREACH(node, &registry->instances)
	{
		struct peer *peer =
		    LIST_ENTRY(node, struct instance, node)->peer;
		struct registry_stats one = { .name = upstream->name,
			.is_app = true,
			.instance = peer->instance };

		if (peer->upstream != upstream)
			continue;
		add_peer_stats(&one, peer);
		each(arg, &one);
	}
}

void
registry_each(
    struct upstream_registry *registry, registry_stats_cb *each, void *arg)
{
	struct list *node;

	pthread_mutex_lock(&registry->lock);
	forget_drained(registry);
	LIST_FOREACH(node, &registry->upstreams)
	tell_upstream(
	    registry, LIST_ENTRY(node, struct upstream, node), each, arg);
	pthread_mutex_unlock(&registry->lock);
}

/* ---- inside the folder ---- */

bool
registry_is_draining(const struct upstream_registry *registry)
{
	return atomic_load(&registry->draining);
}

struct worker *
registry_worker(const struct upstream_registry *registry, unsigned index)
{
	return registry->workers[index];
}

void
registry_tell_drained(
    const struct upstream_registry *registry, uint64_t instance)
{
	if (registry->events->on_drained != NULL)
		registry->events->on_drained(registry->arg, instance);
}

void
registry_tell_quiet(const struct upstream_registry *registry, uint64_t instance)
{
	if (registry->events->on_quiet != NULL)
		registry->events->on_quiet(registry->arg, instance);
}

void
registry_tell_released(
    const struct upstream_registry *registry, uint64_t instance, uint32_t slots)
{
	if (registry->events->on_released != NULL)
		registry->events->on_released(registry->arg, instance, slots);
}

void
registry_tell_wanted(const struct upstream_registry *registry, const char *app)
{
	if (registry->events->on_wanted != NULL)
		registry->events->on_wanted(registry->arg, app);
}

void
registry_tell_stuck(const struct upstream_registry *registry, uint64_t instance,
    bool timed_out, uint64_t inode)
{
	if (registry->events->on_stuck != NULL)
		registry->events->on_stuck(
		    registry->arg, instance, timed_out, inode);
}

void
registry_tell_output(const struct upstream_registry *registry,
    uint64_t instance, struct str request, struct str line)
{
	if (registry->events->on_output != NULL)
		registry->events->on_output(
		    registry->arg, instance, request, line);
}
