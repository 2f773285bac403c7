/*
 * Snapshots: built from the configuration, handed to the workers, freed by the
 * last of them. The main thread builds, each worker counts its own holds.
 * Does not decide when to swap; that is proxy.c's.
 */
#include "proxy/core/snapshot.h"

#include <string.h>

#include "proxy/core/access_log.h"
#include "proxy/core/tls_upstream.h"
#include "src/base/arena.h"
#include "src/base/fdutil.h"
#include "src/base/hash.h"
#include "src/base/mem.h"

/* ---- building ---- */

static const struct {
	const char *name;
	enum http_method method;
} methods[] = {
	{ "GET", METHOD_GET },
	{ "HEAD", METHOD_HEAD },
	{ "POST", METHOD_POST },
	{ "PUT", METHOD_PUT },
	{ "DELETE", METHOD_DELETE },
	{ "OPTIONS", METHOD_OPTIONS },
	{ "PATCH", METHOD_PATCH },
};

static int
build_methods(struct route *route, struct conf_errors *errors)
{
	const char **names = route->conf->methods;

	for (; names != NULL && *names != NULL; names++) {
		size_t i = 0;

		while (i < ARRAY_LEN(methods) &&
		       strcmp(methods[i].name, *names) != 0)
			i++;
		if (i == ARRAY_LEN(methods))
			return conf_errors_add(errors, &route->conf->where,
			    "methods", "%s cannot be chosen by", *names);
		route->methods |= 1u << methods[i].method;
	}
	/* Who answers GET answers HEAD. */
	if ((route->methods & 1u << METHOD_GET) != 0)
		route->methods |= 1u << METHOD_HEAD;
	return 0;
}

/* The plain kinds, so that a request need not walk over stars. */
static struct route_pattern
compile_pattern(struct str text)
{
	const char *star = memchr(text.ptr, '*', text.len);

	if (star == NULL)
		return (struct route_pattern){ PATTERN_EXACT, text };
	if (text.len == 1)
		return (struct route_pattern){ PATTERN_ANY, text };
	if (star != text.ptr + text.len - 1 || star[-1] != '/')
		return (struct route_pattern){ PATTERN_OTHER, text };
	text.len -= 2;
	return (struct route_pattern){ PATTERN_PREFIX, text };
}

static int
build_route(struct snapshot *snapshot, struct route *route,
    const struct conf_route *conf, const struct handler_ops *const *handlers,
    const struct handler_env *env, struct conf_errors *errors)
{
	const struct handler_ops *handler = handlers[conf->action.kind];
	size_t n = 0;

	route->conf = conf;
	while (conf->paths[n] != NULL)
		n++;
	route->patterns =
	    arena_alloc(snapshot->arena, n * sizeof(*route->patterns));
	route->n_patterns = n;
	for (size_t i = 0; i < n; i++)
		route->patterns[i] = compile_pattern(str_of(conf->paths[i]));
	if (build_methods(route, errors) == -1)
		return -1;
	if (conf->strip_prefix != NULL)
		route->strip_prefix = str_of(conf->strip_prefix);
	route->response_lines = response_field_lines(
	    snapshot->arena, conf->response_fields, conf->n_response_fields);
	if (route->response_lines.len > RESPONSE_LINES_MAX)
		return conf_errors_add(errors, &conf->where, "response_headers",
		    "longer than %d bytes together", RESPONSE_LINES_MAX);
	route->max_body_bytes = conf->max_body_bytes;
	if (handler == NULL)
		return conf_errors_add(errors, &conf->where, NULL,
		    "this action is not in this build");
	route->actions =
	    arena_alloc(snapshot->arena, sizeof(struct route_action));
	route->actions->handler = handler;
	route->n_actions = 1;
	if (handler->prepare == NULL) {
		route->actions->prepared = (void *)(uintptr_t)&conf->action;
		return 0;
	}
	route->actions->prepared =
	    handler->prepare(conf, &conf->action, env, errors);
	return route->actions->prepared == NULL ? -1 : 0;
}

static int
build_site(struct snapshot *snapshot, struct site *site,
    const struct conf_site *conf, const struct handler_ops *const *handlers,
    const struct handler_env *env, const struct tls_files *files,
    struct conf_errors *errors)
{
	site->conf = conf;
	site->name = conf->names[0] == NULL ? STR("_") : str_of(conf->names[0]);
	if (conf->hsts != NULL)
		site->secure_lines = str_of(arena_printf(snapshot->arena,
		    "Strict-Transport-Security: %s\r\n", conf->hsts));
	if (conf->tls.certificates != NULL) {
		site->tls = tls_site_new(snapshot->conf, conf, files, errors);
		if (site->tls == NULL)
			return -1;
	}
	site->routes =
	    arena_alloc(snapshot->arena, conf->n_routes * sizeof(struct route));
	for (size_t i = 0; i < conf->n_routes; i++) {
		/* Counted first: a half-made snapshot is given back too. */
		site->n_routes = i + 1;
		if (build_route(snapshot, &site->routes[i], &conf->routes[i],
			handlers, env, errors) == -1)
			return -1;
	}
	return 0;
}

static void
add_name(
    struct snapshot_listener *listener, const char *name, struct site *site)
{
	struct hash_map **map = &listener->exact;

	if (strncmp(name, "*.", 2) == 0) {
		map = &listener->wildcard;
		name += 2;
	}
	if (*map == NULL)
		*map = hash_map_new();
	if (hash_map_add(*map, str_of(name), site) == -1)
		return; /* the first site with that name has it */
}

static void
build_listener(struct snapshot *snapshot, struct snapshot_listener *listener,
    const struct conf_listener *conf)
{
	listener->conf = conf;
	listener->default_site = &snapshot->sites[conf->default_site->index];
	for (size_t i = conf->tls ? conf->n_sites : 0; i-- > 0;) {
		struct site *site = &snapshot->sites[conf->sites[i]->index];

		if (site->https_port == 0 &&
		    conf->addr.u.sa.sa_family != AF_UNIX)
			site->https_port = addr_port(&conf->addr);
	}
	for (size_t i = 0; i < conf->n_sites; i++)
		for (const char **name = conf->sites[i]->names; *name != NULL;
		     name++)
			add_name(listener, *name,
			    &snapshot->sites[conf->sites[i]->index]);
}

/* The logs come as descriptors, one per distinct path in order of first use. */
static int
build_logs(struct snapshot *snapshot, unsigned n_workers, const int *fds,
    size_t n_fds, struct conf_errors *errors)
{
	const struct conf *conf = snapshot->conf;
	const char **paths =
	    arena_alloc(snapshot->arena, (conf->n_sites + 1) * sizeof(*paths));
	size_t n = 0;

	snapshot->logs = arena_alloc(
	    snapshot->arena, (conf->n_sites + 1) * sizeof(*snapshot->logs));
	if (conf->access_log != NULL)
		paths[n++] = conf->access_log;
	for (size_t i = 0; i <= conf->n_sites; i++) {
		const char *path =
		    i == 0 ? conf->access_log : conf->sites[i - 1].access_log;
		struct site *site = i == 0 ? NULL : &snapshot->sites[i - 1];
		size_t at = 0;

		if (path == NULL)
			path = conf->access_log;
		if (path == NULL)
			continue;
		while (at < n && strcmp(paths[at], path) != 0)
			at++;
		if (at == n)
			paths[n++] = path;
		if (at >= n_fds)
			return conf_errors_add(errors, NULL, NULL,
			    "no descriptor came for the log %s", path);
		if (snapshot->logs[at] == NULL) {
			snapshot->logs[at] = access_log_new(
			    fds[at], path, conf->access_log_format, n_workers);
			snapshot->n_logs = at + 1;
		}
		if (site != NULL)
			site->access_log = snapshot->logs[at];
	}
	return 0;
}

/* Call `release` or `commit` for all that was prepared. */
static void
each_prepared(struct snapshot *snapshot, bool is_commit)
{
	for (size_t i = 0; i < snapshot->conf->n_sites; i++) {
		struct site *site = &snapshot->sites[i];

		for (size_t j = 0; j < site->n_routes; j++) {
			struct route *route = &site->routes[j];

			for (size_t k = 0; k < route->n_actions; k++) {
				struct route_action *action =
				    &route->actions[k];
				void (*call)(void *) =
				    is_commit ? action->handler->commit
					      : action->handler->release;

				if (action->prepared != NULL && call != NULL &&
				    action->handler->prepare != NULL)
					call(action->prepared);
			}
		}
	}
}

void
snapshot_commit(struct snapshot *snapshot)
{
	each_prepared(snapshot, true);
}

void
snapshot_free(struct snapshot **snapshot_ptr)
{
	struct snapshot *snapshot = *snapshot_ptr;
	struct conf *conf;

	if (snapshot == NULL)
		return;
	*snapshot_ptr = NULL;
	each_prepared(snapshot, false);
	for (size_t i = 0; i < snapshot->conf->n_listeners; i++) {
		hash_map_free(snapshot->listeners[i].exact);
		hash_map_free(snapshot->listeners[i].wildcard);
	}
	for (size_t i = 0; i < snapshot->conf->n_sites; i++)
		tls_site_free(&snapshot->sites[i].tls);
	for (size_t i = 0; i < snapshot->n_logs; i++)
		access_log_free(&snapshot->logs[i]);
	arena_free(snapshot->arena);
	conf = (struct conf *)(uintptr_t)snapshot->conf;
	conf_free(conf);
	mem_free(snapshot);
}

/* How TLS is spoken to each upstream, while routes take what they need of it.
 */
static int
build_upstreams(const struct conf *conf, struct tls_upstream **all,
    const struct tls_files *files, struct conf_errors *errors)
{
	const struct tls_upstream *other = NULL;
	int result = 0;

	for (size_t i = 0; i < conf->n_upstreams; i++) {
		if (conf->upstreams[i].protocol != CONF_HTTPS)
			continue;
		all[i] = tls_upstream_new(
		    conf, &conf->upstreams[i], files, other, errors);
		if (all[i] == NULL)
			result = -1;
		else if (tls_upstream_uses_system(all[i]))
			other = all[i];
	}
	return result;
}

static int
build_sites(struct snapshot *snapshot,
    const struct handler_ops *const *handlers, const struct handler_env *env,
    const struct tls_files *files, struct conf_errors *errors)
{
	const struct conf *conf = snapshot->conf;
	struct tls_upstream **tls =
	    mem_alloc_array(conf->n_upstreams + 1, sizeof(*tls));
	struct handler_env with_tls = *env;
	int result = build_upstreams(conf, tls, files, errors);

	with_tls.tls = tls;
	for (size_t i = 0; i < conf->n_sites; i++)
		if (build_site(snapshot, &snapshot->sites[i], &conf->sites[i],
			handlers, &with_tls, files, errors) == -1)
			result = -1;
	for (size_t i = 0; i < conf->n_upstreams; i++)
		tls_upstream_unref(&tls[i]);
	mem_free(tls);
	return result;
}

struct snapshot *
snapshot_new(struct conf *conf, uint32_t serial, unsigned n_workers,
    const int *log_fds, size_t n_logs,
    const struct handler_ops *const *handlers, const struct handler_env *env,
    const struct tls_files *files, snapshot_unused_cb *on_unused, void *arg,
    struct conf_errors *errors)
{
	struct snapshot *snapshot = mem_alloc(
	    sizeof(*snapshot) + n_workers * sizeof(snapshot->holds[0]));
	int result;

	snapshot->conf = conf;
	snapshot->serial = serial;
	snapshot->arena = arena_new();
	snapshot->on_unused = on_unused;
	snapshot->arg = arg;
	atomic_init(&snapshot->users, n_workers);
	snapshot->sites = arena_alloc(
	    snapshot->arena, conf->n_sites * sizeof(struct site) + 1);
	snapshot->listeners = arena_alloc(snapshot->arena,
	    conf->n_listeners * sizeof(struct snapshot_listener) + 1);
	result = build_logs(snapshot, n_workers, log_fds, n_logs, errors);
	if (build_sites(snapshot, handlers, env, files, errors) == -1)
		result = -1;
	for (size_t i = 0; i < conf->n_listeners; i++)
		build_listener(
		    snapshot, &snapshot->listeners[i], &conf->listeners[i]);
	for (size_t i = 0; i < n_logs; i++)
		if (i >= snapshot->n_logs) {
			int fd = log_fds[i];

			fd_close(&fd);
		}
	if (result == -1)
		snapshot_free(&snapshot);
	return snapshot;
}

/* ---- counting, in the worker's thread ---- */

/* This worker has nothing to do with it any more. */
static void
say_goodbye(struct worker *worker, struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->n_logs; i++)
		access_log_leave(snapshot->logs[i], worker);
	/* What other workers did with it happened before it is freed. */
	if (atomic_fetch_sub_explicit(
		&snapshot->users, 1, memory_order_acq_rel) == 1)
		snapshot->on_unused(snapshot, snapshot->arg);
}

void
snapshot_install(struct worker *worker, struct snapshot *now)
{
	struct snapshot *old = worker->snapshot;

	worker->snapshot = now;
	worker->memo.listener = NULL;
	if (now != NULL)
		now->holds[worker->index].held++;
	snapshot_release(worker, &old);
}

struct snapshot *
snapshot_hold(struct worker *worker)
{
	worker->snapshot->holds[worker->index].held++;
	return worker->snapshot;
}

void
snapshot_release(struct worker *worker, struct snapshot **snapshot_ptr)
{
	struct snapshot *snapshot = *snapshot_ptr;

	if (snapshot == NULL)
		return;
	*snapshot_ptr = NULL;
	/* Its own hold keeps the current one above zero. */
	if (--snapshot->holds[worker->index].held == 0)
		say_goodbye(worker, snapshot);
}
