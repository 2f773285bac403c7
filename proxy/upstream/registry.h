/*
 * All upstreams of the proxy by name, and the door through which the main
 * thread tells what the supervisor says: instances come and go, apps change
 * state. Gateways find their upstream here when a snapshot is made.
 * Sends no requests: pool.h. Knows neither the channel nor the configuration.
 *
 * Every function may be called from any thread unless it says otherwise;
 * proxy.c calls announce, withdraw, and app_state from one thread, in the order
 * of the messages. Texts are copied.
 */
#ifndef UPSTREAM_REGISTRY_H
#define UPSTREAM_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/addr.h"
#include "src/base/compiler.h"

struct tls_upstream;
struct upstream;
struct upstream_registry;
struct worker;

enum upstream_protocol {
	UPSTREAM_HTTP1,
	UPSTREAM_FASTCGI,
};

/* What the registry tells. All may come from any thread, with no lock held, and
 * must not call back into the registry: hand it on to the channel's thread. Any
 * of them may be NULL. */
struct registry_events {
	/* Withdrawn, and nothing is open to it any more. Once an instance. */
	void (*on_drained)(void *arg, uint64_t instance);
	/* Withdrawn, and nothing but streams is open to it. Once an instance,
	 * before on_drained; not when nothing is left at once. */
	void (*on_quiet)(void *arg, uint64_t instance);
	/* That many slots of a capped instance were given up. */
	void (*on_released)(void *arg, uint64_t instance, uint32_t slots);
	/* A request waits for an app that has no instance; once per change of
	 * its state at most. While draining: for each request that waits, as it
	 * needs a slot. `app` is borrowed. */
	void (*on_wanted)(void *arg, const char *app);
	/* A process works on though nobody waits: its client left, or
	 * (`timed_out`) its time is up. `inode` is that of our end of the
	 * connection. Once a connection. */
	void (*on_stuck)(
	    void *arg, uint64_t instance, bool timed_out, uint64_t inode);
	/* A line on its error stream that came with an answer, for the app's
	 * log; `request` is the request's id. Both are borrowed. */
	void (*on_output)(
	    void *arg, uint64_t instance, struct str request, struct str line);
};

/* Before the workers run. `workers` and `events` are kept, not owned, and must
 * outlive it. Order of the end: stop the workers, release all snapshots,
 * pool_free for each, worker_free for each, registry_free. */
struct upstream_registry *registry_new(struct worker *const *workers,
    unsigned n_workers, const struct registry_events *events,
    void *arg) MUST_CHECK;
void registry_free(struct upstream_registry **registry);

/* ---- apps and their instances ---- */

#define REGISTRY_NO_CAP UINT32_MAX

struct registry_instance {
	uint64_t id; /* not 0; unique for ever */
	const char *app;
	uint32_t pid;
	enum upstream_protocol protocol;
	uint32_t cap;         /* at a time; REGISTRY_NO_CAP: any number */
	bool cap_counts_idle; /* kept idle connections use up the cap too */
	uint32_t idle_ms;     /* keep idle connections no longer; 0: no word */
	struct addr addr;
};
/* From now on it gets requests; who waits for the app is served at once. For a
 * known id only idle_ms is taken over. -1: the id is known as another app's, or
 * was withdrawn. */
int registry_announce(struct upstream_registry *registry,
    const struct registry_instance *instance) MUST_CHECK;
/* No new requests for it; idle connections are closed, running requests go on.
 * `dead`: its process is gone, what is open fails now. on_drained follows (from
 * inside, when nothing is open). -1: no such id. */
int registry_withdraw(
    struct upstream_registry *registry, uint64_t id, bool dead) MUST_CHECK;
/* It was withdrawn, and the time of its requests is up: if there are streams,
 * so that it goes on, all that is none fails. Then on_quiet follows. Unknown
 * ids are ignored. */
void registry_hurry(struct upstream_registry *registry, uint64_t id);

/* The cap of a capped instance is raised, or lowered: then no new slot is taken
 * above it, idle connections are closed, and on_released tells when as many are
 * given up. Unknown ids are ignored. */
void registry_lend(
    struct upstream_registry *registry, uint64_t id, uint32_t slots);
void registry_recall(
    struct upstream_registry *registry, uint64_t id, uint32_t slots);

enum upstream_app_state {
	UPSTREAM_APP_UNKNOWN,  /* nothing was said yet: wait */
	UPSTREAM_APP_UP,       /* at least one instance is ready */
	UPSTREAM_APP_STARTING, /* the next one is being started: wait */
	UPSTREAM_APP_BACKOFF,  /* next try in retry_ms: wait if that is soon */
	UPSTREAM_APP_FAILED,   /* cannot be started as configured; as BACKOFF */
	UPSTREAM_APP_STOPPED,  /* by the administrator: refuse at once */
};
/* What to tell clients while the app has no instance. Who waits in vain after
 * it is refused at once. `text` (may be NULL) is for logs, not for clients. */
void registry_app_state(struct upstream_registry *registry, const char *app,
    enum upstream_app_state state, uint32_t retry_ms, const char *text);

/* This process will end: idle connections to capped instances are closed, none
 * are kept, every slot that is free and not waited for is given up. */
void registry_drain(struct upstream_registry *registry);

/* Is a stream or tunnel open to anybody? */
bool registry_has_streams(struct upstream_registry *registry);

/* ---- for gateways ---- */

/* The upstream of an app, made at first use. Never NULL; give it back with
 * registry_put. */
struct upstream *registry_get_app(
    struct upstream_registry *registry, const char *app) MUST_CHECK;

struct registry_peer {
	struct addr addr;
	const char *text;
	unsigned weight;          /* at least 1 */
	unsigned max_connections; /* idle ones included; 0: any number */
};
/* The upstream of that name with exactly these peers, spoken to in exactly this
 * way (`tls`: NULL is without): an existing one is shared (its connections,
 * health and queue live on), else a new one is made. */
struct upstream *registry_get_peers(struct upstream_registry *registry,
    const char *name, enum upstream_protocol protocol, struct tls_upstream *tls,
    const struct registry_peer *peers, size_t n_peers) MUST_CHECK;
/* Sets it to NULL. Its connections end by their idle time. */
void registry_put(
    struct upstream_registry *registry, struct upstream **upstream);

/* ---- status ---- */

struct registry_stats {
	const char *name; /* app or upstream; borrowed */
	bool is_app;
	uint64_t instance; /* 0: the sum of the app or upstream */
	uint64_t requests; /* finished */
	uint64_t errors;   /* of them 5xx, by us or by the app */
	uint64_t in_flight;
	uint64_t queued; /* sum only: requests that wait */
	uint64_t oldest_wait_ms;
	uint64_t connections; /* open to it, idle ones included */
};
typedef void registry_stats_cb(void *arg, const struct registry_stats *stats);
/* One call per app or upstream, each followed by one per instance (of apps).
 * The callback must not call the registry. */
void registry_each(
    struct upstream_registry *registry, registry_stats_cb *each, void *arg);

/* ---- for the other files of this folder ---- */

bool registry_is_draining(const struct upstream_registry *registry);
struct worker *registry_worker(
    const struct upstream_registry *registry, unsigned index);
void registry_tell_drained(
    const struct upstream_registry *registry, uint64_t instance);
void registry_tell_quiet(
    const struct upstream_registry *registry, uint64_t instance);
void registry_tell_released(const struct upstream_registry *registry,
    uint64_t instance, uint32_t slots);
void registry_tell_wanted(
    const struct upstream_registry *registry, const char *app);
void registry_tell_output(const struct upstream_registry *registry,
    uint64_t instance, struct str request, struct str line);
void registry_tell_stuck(const struct upstream_registry *registry,
    uint64_t instance, bool timed_out, uint64_t inode);

#endif
