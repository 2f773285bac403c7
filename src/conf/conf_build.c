/*
 * Tree to struct conf: the objects and how they hang together.
 * After conf_read.c or conf_flat.c, before conf_check.c. Opens no file.
 */
#include "src/conf/conf_build.h"

#include <stdio.h>
#include <string.h>

#include "src/base/arena.h"
#include "src/conf/conf_value.h"

struct build {
	struct conf *conf;
	struct conf_walk walk;
};

static bool
is_name(const char *name)
{
	size_t len = strlen(name);

	if (len == 0 || len > 32 || name[0] == '-' || name[0] == '_')
		return false;
	return strspn(name,
		   "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		   "0123456789_-") == len;
}

/* A group of named groups, or a list of groups: NULL when it is something
 * else, or is not there. */
static const struct conf_node *
find_container(struct build *build, const struct conf_node *in,
    const char *name, enum conf_node_type type)
{
	const struct conf_node *node = conf_node_find(in, name);

	if (node == NULL || node->type == type)
		return node;
	conf_walk_error_at(&build->walk, node, name, "takes %s, not %s",
	    type == CONF_NODE_GROUP ? "a group of groups: { NAME = { ... }; }"
				    : "a list of groups: ( { ... }, ... )",
	    conf_node_kind(node));
	return NULL;
}

/* Many times what one machine can use; it bounds what a text can cost. */
#define OBJECTS_MAX 10000

static bool
has_too_many(struct build *build, const struct conf_node *container)
{
	if (container->count <= OBJECTS_MAX)
		return false;
	conf_walk_error(
	    &build->walk, container, "has more than %d elements", OBJECTS_MAX);
	return true;
}

static int
expect_group(struct build *build, const struct conf_node *node)
{
	if (node->type == CONF_NODE_GROUP)
		return 0;
	return conf_walk_error(&build->walk, node,
	    "takes a group { ... }, not %s", conf_node_kind(node));
}

static void
check_name(struct build *build, const struct conf_node *node)
{
	if (!is_name(node->name))
		conf_walk_error(&build->walk, node,
		    "a name here has at most 32 letters, digits, - and _");
}

/* ---- apps ---- */

static const char *
directory_of(struct arena *arena, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t len = (size_t)(slash - path);

	return len == 0 ? "/" : arena_memdup0(arena, path, len);
}

/* What follows from other members of the same app. */
static void
derive_app(
    struct build *build, struct conf_app *app, const struct conf_node *node)
{
	struct arena *arena = build->walk.arena;
	static const char *no_environment[] = { NULL };

	if (app->environment == NULL)
		app->environment = no_environment;
	if (app->log.file == NULL)
		app->log.file = arena_printf(
		    arena, "%s/%s.log", build->conf->log_directory, app->name);
	switch (app->runtime) {
	case CONF_PYTHON:
		if (app->venv != NULL && app->venv[0] != '/' &&
		    app->directory != NULL)
			app->venv = arena_printf(
			    arena, "%s/%s", app->directory, app->venv);
		if (app->server == CONF_GUNICORN && app->concurrency == 0)
			app->concurrency = app->threads;
		if (app->server == CONF_UVICORN &&
		    conf_node_find(node, "threads") == NULL)
			app->threads = 1;
		break;
	case CONF_NODE:
		if (app->directory != NULL || app->script == NULL)
			break;
		if (app->script[0] == '/')
			app->directory = directory_of(arena, app->script);
		else
			conf_walk_error_at(&build->walk, node, "directory",
			    "is missing; the script is relative to it");
		break;
	case CONF_PHP:
		if (app->directory == NULL)
			app->directory = app->root;
		if (conf_node_find(node, "front_controller") == NULL)
			app->front_controller = app->php_index;
		if (app->concurrency == 0)
			app->concurrency = app->children;
		break;
	case CONF_COMMAND:
		if (app->directory == NULL)
			app->directory = "/";
		break;
	}
}

static void
build_app(
    struct build *build, struct conf_app *app, const struct conf_node *node)
{
	static const char prefix[] = "apps.*";
	struct conf_node *runtime = conf_node_find(node, "runtime");
	size_t mark;
	int result;

	check_name(build, node);
	if (expect_group(build, node) == -1)
		return;
	if (runtime == NULL) {
		conf_walk_error_at(&build->walk, node, "runtime",
		    "is missing: python, node, php or command");
		return;
	}
	mark = conf_walk_enter(&build->walk, "runtime");
	result = conf_value_read(&build->walk,
	    conf_schema_find(prefix, "runtime", CONF_FOR_ALL), runtime, app);
	conf_walk_leave(&build->walk, mark);
	/* Without it nobody knows which keys are right. */
	if (result == -1)
		return;
	app->http = true;
	conf_walk_group(&build->walk, prefix, node, 1u << app->runtime, app);
	derive_app(build, app, node);
}

static void
build_apps(struct build *build)
{
	struct conf *conf = build->conf;
	const struct conf_node *apps =
	    find_container(build, conf->tree, "apps", CONF_NODE_GROUP);
	const struct conf_node *node;
	size_t mark = conf_walk_enter(&build->walk, "apps");

	if (apps != NULL && !has_too_many(build, apps)) {
		conf_walk_unique(&build->walk, apps);
		conf->apps = arena_alloc(
		    conf->arena, (apps->count + 1) * sizeof(*conf->apps));
		for (node = apps->first; node != NULL; node = node->next) {
			struct conf_app *app = &conf->apps[conf->n_apps];
			size_t inner =
			    conf_walk_enter(&build->walk, node->name);

			app->index = conf->n_apps++;
			app->name = node->name;
			app->where = node->where;
			app->umask = -1;
			build_app(build, app, node);
			conf_walk_leave(&build->walk, inner);
		}
	}
	conf_walk_leave(&build->walk, mark);
}

/* ---- upstreams ---- */

static void
parse_peer(
    struct build *build, struct conf_peer *peer, const struct conf_node *node)
{
	switch (addr_parse(str_of(peer->text), &peer->addr)) {
	case ADDR_OK:
		return;
	case ADDR_NAME:
		conf_walk_error(&build->walk, node,
		    "\"%.80s\": host names of peers are not supported; write "
		    "the address, as in \"10.0.0.5:8080\"",
		    peer->text);
		return;
	case ADDR_BAD_PORT:
		conf_walk_error(&build->walk, node,
		    "\"%.80s\" has no port between 1 and 65535", peer->text);
		return;
	case ADDR_TOO_LONG:
		conf_walk_error(&build->walk, node,
		    "the path of a unix socket has at most 107 bytes");
		return;
	case ADDR_BAD:
		conf_walk_error(&build->walk, node,
		    "\"%.80s\" is no address; it is written as in "
		    "\"10.0.0.5:8080\", \"[::1]:8080\", "
		    "\"unix:/run/x.sock\"",
		    peer->text);
		return;
	}
}

static void
build_peer(
    struct build *build, struct conf_peer *peer, const struct conf_node *node)
{
	static const char prefix[] = "upstreams.*.peers.*";
	const struct conf_node *address = node;

	peer->where = node->where;
	if (node->type == CONF_NODE_STRING) {
		conf_walk_group(&build->walk, prefix, NULL, CONF_FOR_ALL, peer);
		peer->text = node->text;
	} else if (node->type == CONF_NODE_GROUP) {
		conf_walk_group(&build->walk, prefix, node, CONF_FOR_ALL, peer);
		address = conf_node_find(node, "address");
	} else {
		conf_walk_error(&build->walk, node,
		    "takes an address or a group { address = ...; }, not %s",
		    conf_node_kind(node));
	}
	if (peer->text != NULL)
		parse_peer(build, peer, address);
}

static void
build_peers(struct build *build, struct conf_upstream *upstream,
    const struct conf_node *group)
{
	const struct conf_node *peers =
	    find_container(build, group, "peers", CONF_NODE_LIST);
	const struct conf_node *node;
	size_t mark = conf_walk_enter(&build->walk, "peers");

	if (peers != NULL && peers->count == 0)
		conf_walk_error(&build->walk, peers, "is empty");
	if (peers != NULL && !has_too_many(build, peers)) {
		upstream->peers = arena_alloc(build->walk.arena,
		    (peers->count + 1) * sizeof(*upstream->peers));
		for (node = peers->first; node != NULL; node = node->next) {
			size_t inner = conf_walk_enter_index(
			    &build->walk, upstream->n_peers);

			build_peer(
			    build, &upstream->peers[upstream->n_peers++], node);
			conf_walk_leave(&build->walk, inner);
		}
	}
	conf_walk_leave(&build->walk, mark);
}

static void
build_upstreams(struct build *build)
{
	struct conf *conf = build->conf;
	const struct conf_node *upstreams =
	    find_container(build, conf->tree, "upstreams", CONF_NODE_GROUP);
	const struct conf_node *node;
	size_t mark = conf_walk_enter(&build->walk, "upstreams");

	if (upstreams != NULL && !has_too_many(build, upstreams)) {
		conf_walk_unique(&build->walk, upstreams);
		conf->upstreams = arena_alloc(conf->arena,
		    (upstreams->count + 1) * sizeof(*conf->upstreams));
		for (node = upstreams->first; node != NULL; node = node->next) {
			struct conf_upstream *upstream =
			    &conf->upstreams[conf->n_upstreams];
			size_t inner =
			    conf_walk_enter(&build->walk, node->name);

			upstream->index = conf->n_upstreams++;
			upstream->name = node->name;
			upstream->where = node->where;
			check_name(build, node);
			if (expect_group(build, node) == 0) {
				conf_walk_group(&build->walk, "upstreams.*",
				    node, CONF_FOR_ALL, upstream);
				build_peers(build, upstream, node);
			}
			conf_walk_leave(&build->walk, inner);
		}
	}
	conf_walk_leave(&build->walk, mark);
}

/* ---- routes ---- */

/* "shpo": there is no app of that name; did you mean "shop"? */
static void
refuse_name(struct build *build, const struct conf_node *node, const char *what,
    const char *nearest)
{
	if (nearest == NULL)
		conf_walk_error_at(&build->walk, node, what,
		    "there is no %s \"%.40s\"", what, node->text);
	else
		conf_walk_error_at(&build->walk, node, what,
		    "there is no %s \"%.40s\"; did you mean \"%s\"?", what,
		    node->text, nearest);
}

static void
consider(
    const char *wanted, const char *name, unsigned *best, const char **nearest)
{
	unsigned distance = str_distance(wanted, name);

	if (distance < *best) {
		*best = distance;
		*nearest = name;
	}
}

static void
refer_to_app(struct build *build, struct conf_action *action,
    const struct conf_node *node)
{
	struct conf *conf = build->conf;
	const char *nearest = NULL;
	unsigned best = 3;

	action->kind = CONF_APP;
	action->app = conf_find_app(conf, node->text);
	if (action->app != NULL)
		return;
	for (size_t i = 0; i < conf->n_apps; i++)
		consider(node->text, conf->apps[i].name, &best, &nearest);
	refuse_name(build, node, "app", nearest);
}

static void
refer_to_upstream(struct build *build, struct conf_action *action,
    const struct conf_node *node)
{
	struct conf *conf = build->conf;
	const char *nearest = NULL;
	unsigned best = 3;

	action->kind = CONF_UPSTREAM;
	for (size_t i = 0; i < conf->n_upstreams; i++) {
		const char *name = conf->upstreams[i].name;

		if (strcmp(name, node->text) == 0) {
			action->upstream = &conf->upstreams[i];
			return;
		}
		consider(node->text, name, &best, &nearest);
	}
	refuse_name(build, node, "upstream", nearest);
}

static const char *const action_names[] = {
	[CONF_RESPOND] = "respond",
	[CONF_REDIRECT] = "redirect",
	[CONF_APP] = "app",
	[CONF_UPSTREAM] = "upstream",
	[CONF_STATUS] = "status",
};

/* The node of the one action, or NULL with a finding. */
static const struct conf_node *
find_action(struct build *build, const struct conf_node *route)
{
	const struct conf_node *found = NULL;

	for (size_t i = 0; i < ARRAY_LEN(action_names); i++) {
		const struct conf_node *node =
		    conf_node_find(route, action_names[i]);

		if (node == NULL)
			continue;
		if (found != NULL) {
			conf_walk_error(&build->walk, node,
			    "has two actions: %s here and %s in line %d",
			    node->name, found->name, found->where.line);
			return NULL;
		}
		found = node;
	}
	/* A planned action was refused already. */
	if (found == NULL && conf_node_find(route, "files") == NULL)
		conf_walk_error(&build->walk, route,
		    "has no action: respond, redirect, app, upstream or "
		    "status");
	return found;
}

static void
build_action(struct build *build, struct conf_route *route,
    const struct conf_node *group)
{
	const struct conf_node *node = find_action(build, group);
	struct conf_action *action = &route->action;

	if (action->respond.body != NULL)
		action->respond.body_len = strlen(action->respond.body);
	if (node == NULL)
		return;
	if (strcmp(node->name, "status") == 0) {
		action->kind = CONF_STATUS;
		if (node->type != CONF_NODE_BOOL || node->number == 0)
			conf_walk_error_at(
			    &build->walk, node, "status", "takes true");
	} else if (strcmp(node->name, "respond") == 0) {
		action->kind = CONF_RESPOND;
	} else if (strcmp(node->name, "redirect") == 0) {
		action->kind = CONF_REDIRECT;
		if (action->redirect.location == NULL &&
		    conf_node_find(node, "location") == NULL)
			conf_walk_error_at(&build->walk, node,
			    "redirect.location", "is missing");
	} else if (node->type != CONF_NODE_STRING) {
		conf_walk_error_at(&build->walk, node, node->name,
		    "takes a name in quotes, not %s", conf_node_kind(node));
	} else if (strcmp(node->name, "app") == 0) {
		refer_to_app(build, action, node);
	} else {
		refer_to_upstream(build, action, node);
	}
}

static void
build_route(
    struct build *build, struct conf_route *route, const struct conf_node *node)
{
	route->where = node->where;
	route->max_body_bytes = build->conf->limits.body_bytes;
	if (expect_group(build, node) == -1)
		return;
	conf_walk_group(
	    &build->walk, "sites.*.routes.*", node, CONF_FOR_ALL, route);
	build_action(build, route, node);
}

/* ---- sites ---- */

static void
build_routes(
    struct build *build, struct conf_site *site, const struct conf_node *group)
{
	const struct conf_node *routes =
	    find_container(build, group, "routes", CONF_NODE_LIST);
	const struct conf_node *node;
	size_t mark = conf_walk_enter(&build->walk, "routes");

	if (routes != NULL && routes->count == 0)
		conf_walk_error(&build->walk, routes, "is empty");
	if (routes != NULL && !has_too_many(build, routes)) {
		site->routes = arena_alloc(build->walk.arena,
		    (routes->count + 1) * sizeof(*site->routes));
		for (node = routes->first; node != NULL; node = node->next) {
			size_t inner =
			    conf_walk_enter_index(&build->walk, site->n_routes);

			build_route(
			    build, &site->routes[site->n_routes++], node);
			conf_walk_leave(&build->walk, inner);
		}
	}
	conf_walk_leave(&build->walk, mark);
}

static void
build_site(
    struct build *build, struct conf_site *site, const struct conf_node *node)
{
	static const char *nothing[] = { NULL };

	site->where = node->where;
	if (expect_group(build, node) == 0) {
		conf_walk_group(
		    &build->walk, "sites.*", node, CONF_FOR_ALL, site);
		build_routes(build, site, node);
	}
	if (site->names == NULL)
		site->names = nothing;
	if (site->listen == NULL)
		site->listen = nothing;
	for (const char **at = site->names; *at != NULL; at++) {
		char *lower = arena_strdup(build->walk.arena, *at);

		str_lower(lower, lower, strlen(lower));
		*at = lower;
	}
}

static void
build_sites(struct build *build)
{
	struct conf *conf = build->conf;
	const struct conf_node *sites =
	    find_container(build, conf->tree, "sites", CONF_NODE_LIST);
	const struct conf_node *node;
	size_t mark = conf_walk_enter(&build->walk, "sites");

	if (sites != NULL && !has_too_many(build, sites)) {
		conf->sites = arena_alloc(
		    conf->arena, (sites->count + 1) * sizeof(*conf->sites));
		for (node = sites->first; node != NULL; node = node->next) {
			struct conf_site *site = &conf->sites[conf->n_sites];
			size_t inner =
			    conf_walk_enter_index(&build->walk, conf->n_sites);

			site->index = conf->n_sites++;
			build_site(build, site, node);
			conf_walk_leave(&build->walk, inner);
		}
	}
	conf_walk_leave(&build->walk, mark);
}

/* The host that a probe asks for must be one that the app expects. */
static void
derive_probe_hosts(struct conf *conf)
{
	for (size_t i = 0; i < conf->n_sites; i++) {
		struct conf_site *site = &conf->sites[i];
		const char *name = site->names[0];

		/* An app may well refuse "*.example.com" as a host. */
		if (name == NULL || name[0] == '*')
			continue;
		for (size_t j = 0; j < site->n_routes; j++) {
			const struct conf_app *app = site->routes[j].action.app;

			if (app != NULL && app->probe.host == NULL)
				conf->apps[app->index].probe.host = name;
		}
	}
	for (size_t i = 0; i < conf->n_apps; i++) {
		if (conf->apps[i].probe.host == NULL)
			conf->apps[i].probe.host = "localhost";
	}
}

static void
derive_top(struct conf *conf)
{
	if (conf->workers == 0)
		conf->workers = 1;
	if (conf->run_directory == NULL)
		conf->run_directory = "/run/scalws";
	if (conf->log_directory == NULL)
		conf->log_directory = "/var/log/scalws";
	if (conf->control.socket == NULL)
		conf->control.socket = arena_printf(
		    conf->arena, "%s/control.sock", conf->run_directory);
	if (conf_node_find(conf->tree, "access_log") == NULL)
		conf->access_log = arena_printf(
		    conf->arena, "%s/access.log", conf->log_directory);
}

int
conf_build(struct conf *conf, struct conf_errors *errors, bool files)
{
	struct build build = { .conf = conf };
	int before = errors->count;

	build.walk.arena = conf->arena;
	build.walk.errors = errors;
	build.walk.files = files;
	conf_walk_group(&build.walk, "", conf->tree, CONF_FOR_ALL, conf);
	derive_top(conf);
	build_apps(&build);
	build_upstreams(&build);
	build_sites(&build);
	derive_probe_hosts(conf);
	conf_listen_build(conf, errors);
	return errors->count == before ? 0 : -1;
}
