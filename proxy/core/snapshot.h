/*
 * The compiled configuration that requests run on: immutable, counted.
 * Built by the proxy's main thread at PREPARE, swapped into the workers at
 * COMMIT. A request keeps the one it began with; a kept connection takes the
 * current one for its next request.
 *
 * Counting is per worker, without atomics on the hot path: each worker counts
 * its own holds; when a worker has moved on and its count is zero it says so
 * once, and the last to say so hands it to `on_unused`.
 */
#ifndef CORE_SNAPSHOT_H
#define CORE_SNAPSHOT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/core/handler.h"
#include "proxy/core/response.h"
#include "proxy/core/tls_site.h"
#include "proxy/core/worker.h"
#include "src/conf/conf.h"

enum pattern_kind {
	PATTERN_ANY,    /* "*" */
	PATTERN_EXACT,  /* holds no '*' */
	PATTERN_PREFIX, /* ends at a segment boundary; text without the "/" and
			 * star behind it */
	PATTERN_OTHER,  /* uri_match's */
};
struct route_pattern {
	enum pattern_kind kind;
	struct str text;
};

struct route_action {
	const struct handler_ops *handler;
	void *prepared;
};

struct route {
	const struct conf_route *conf;
	struct route_pattern *patterns;
	size_t n_patterns;
	uint32_t methods; /* bit per enum http_method; 0: all */
	struct str strip_prefix;
	struct str response_lines; /* the route's own fields, ready-made */
	uint64_t max_body_bytes;
	struct route_action *actions; /* tried in order until one is HANDLED */
	size_t n_actions;
};

struct site {
	const struct conf_site *conf;
	struct str name; /* the first name, or "_" */
	struct route *routes;
	size_t n_routes;
	struct access_log *access_log; /* NULL: none */
	struct tls_site *tls;          /* NULL: it has no certificate */
	struct str secure_lines;       /* fields of answers over TLS */
	uint16_t https_port;           /* of its first TLS listener, or 443 */
};

/* Sites of one listener, by host name. */
struct snapshot_listener {
	const struct conf_listener *conf;
	uint32_t key; /* channel.h, LISTEN: the same over reloads; set by
		       * proxy.c before the snapshot is used */
	const struct site *default_site;
	struct hash_map *exact;    /* host -> struct site */
	struct hash_map *wildcard; /* "example.com" of "*.example.com" */
};

struct snapshot {
	const struct conf *conf; /* owned */
	uint32_t serial;
	struct arena *arena;
	struct snapshot_listener *listeners; /* conf->n_listeners */
	struct site *sites;
	struct access_log *
	    *logs; /* one per distinct path, in PREPARE's order */
	size_t n_logs;
	void (*on_unused)(struct snapshot *snapshot, void *arg);
	void *arg;
	_Atomic unsigned users; /* workers that have not said goodbye */
	struct {
		unsigned held; /* requests (and the worker itself) */
		char pad[60];
	} holds[]; /* per worker */
};

/* `handlers` by enum conf_action_kind; `files` are what TLS needs. Takes over
 * `conf` and the log fds in any case. `on_unused` (any thread) passes it to the
 * main thread, which calls snapshot_free. NULL with findings in `errors`. Main
 * thread. */
typedef void snapshot_unused_cb(struct snapshot *snapshot, void *arg);
struct snapshot *snapshot_new(struct conf *conf, uint32_t serial,
    unsigned n_workers, const int *log_fds, size_t n_logs,
    const struct handler_ops *const *handlers, const struct handler_env *env,
    const struct tls_files *files, snapshot_unused_cb *on_unused, void *arg,
    struct conf_errors *errors) MUST_CHECK;
/* Runs every handler's commit; then install it in each worker. Main thread. */
void snapshot_commit(struct snapshot *snapshot);
/* One that no worker has, or has any more. Main thread. */
void snapshot_free(struct snapshot **snapshot);
/* The listener with that key, or NULL: it is gone from the configuration. A
 * connection remembers the key, not the pointer. */
const struct snapshot_listener *snapshot_listener_of(
    const struct snapshot *snapshot, uint32_t key);

/* In the worker's thread. */
void snapshot_install(struct worker *worker, struct snapshot *now);
struct snapshot *snapshot_hold(struct worker *worker);
void snapshot_release(struct worker *worker, struct snapshot **snapshot);

/* Exact name, then the longest wildcard, then the default. */
const struct site *snapshot_site(
    const struct snapshot_listener *listener, struct str host);
/* Whose certificate is shown to who asks for that name; NULL: nobody's. */
const struct tls_site *snapshot_tls_site(
    const struct snapshot_listener *listener, struct str name);
/* The first route that matches path and method, or NULL; *allowed gets the
 * methods of routes whose path alone matched (405), 0: none. */
const struct route *site_route(const struct site *site, struct str path,
    enum http_method method, uint32_t *allowed);

#endif
