/*
 * Checks from one value to another, of what conf_build.c has made.
 * The last step before use, in supervisor and proxy alike: needs no files and
 * no users. Changes nothing. Sites and routes are in conf_check_site.c,
 * logs in conf_check_logs.c.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/hash.h"
#include "src/conf/conf_build.h"

/* Which element of the list is the one at `where`? Equal places are the same
 * element: the tree has one node for each. */
static const struct conf_node *
find_element(const struct conf_node *list, size_t index)
{
	const struct conf_node *node = list == NULL ? NULL : list->first;

	while (node != NULL && index-- > 0)
		node = node->next;
	return node;
}

/* Where "tls.key" stands, or as much of it as there is. */
static void
find_place(
    struct conf_where *where, const struct conf_node *node, const char *key)
{
	struct str rest = str_of(key), part;

	while (str_split(&rest, '.', &part)) {
		char name[64];

		snprintf(name, sizeof(name), "%.*s",
		    (int)(part.len < 63 ? part.len : 63), part.ptr);
		node = conf_node_find(node, name);
		if (node == NULL)
			return;
		*where = node->where;
	}
}

void
conf_place_top(
    struct conf_place *place, const struct conf *conf, const char *key)
{
	place->where = (struct conf_where){ conf->file, 0 };
	snprintf(place->path, sizeof(place->path), "%.60s", key);
	find_place(&place->where, conf->tree, key);
}

void
conf_place_app(struct conf_place *place, const struct conf *conf,
    const struct conf_app *app, const char *key)
{
	const struct conf_node *node =
	    conf_node_find(conf_node_find(conf->tree, "apps"), app->name);

	snprintf(place->path, sizeof(place->path), "apps.%.60s.%.60s",
	    app->name, key);
	place->where = app->where;
	find_place(&place->where, node, key);
}

void
conf_place_site(struct conf_place *place, const struct conf *conf,
    const struct conf_site *site, const struct conf_route *route,
    const char *key)
{
	const struct conf_node *node =
	    find_element(conf_node_find(conf->tree, "sites"), site->index);
	char below[64] = "";

	place->where = site->where;
	if (route != NULL) {
		size_t index = (size_t)(route - site->routes);

		place->where = route->where;
		snprintf(below, sizeof(below), ".routes[%zu]", index);
		node = find_element(conf_node_find(node, "routes"), index);
	}
	snprintf(place->path, sizeof(place->path), "sites[%zu]%s%s%.60s",
	    site->index, below, key == NULL ? "" : ".", key == NULL ? "" : key);
	if (key != NULL)
		find_place(&place->where, node, key);
}

void
conf_place_upstream(struct conf_place *place, const struct conf *conf,
    const struct conf_upstream *upstream, const char *key)
{
	const struct conf_node *node = conf_node_find(
	    conf_node_find(conf->tree, "upstreams"), upstream->name);

	place->where = upstream->where;
	snprintf(place->path, sizeof(place->path), "upstreams.%.60s.%.60s",
	    upstream->name, key);
	find_place(&place->where, node, key);
}

struct check {
	const struct conf *conf;
	struct conf_errors *errors;
	const struct conf_app *app;
};

static void PRINTF_LIKE(3, 4)
    refuse_app(const struct check *check, const char *key, const char *fmt, ...)
{
	struct conf_place place;
	va_list args;
	char text[512];

	conf_place_app(&place, check->conf, check->app, key);
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	conf_errors_add(check->errors, &place.where, place.path, "%s", text);
}

/* ---- apps ---- */

static bool
has_key(const struct check *check, const char *key)
{
	const struct conf_node *apps =
	    conf_node_find(check->conf->tree, "apps");

	return conf_node_find(conf_node_find(apps, check->app->name), key) !=
	       NULL;
}

static bool
has_control(const char *text)
{
	for (; *text != '\0'; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return true;
	}
	return false;
}

static bool
is_variable(struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
		    c != '_' && (i == 0 || !(c >= '0' && c <= '9')))
			return false;
	}
	return name.len > 0;
}

/* These tell a process which descriptors are its listeners. */
static bool
is_ours(struct str name)
{
	return str_eq(name, STR("LISTEN_FDS")) ||
	       str_eq(name, STR("LISTEN_PID")) ||
	       str_eq(name, STR("LISTEN_FDNAMES")) ||
	       str_eq(name, STR("NOTIFY_SOCKET")) ||
	       str_eq(name, STR("FPM_SOCKETS")) ||
	       str_starts_with(name, STR("SCALWS_"));
}

static void
check_environment(const struct check *check)
{
	struct hash_map *names = hash_map_new();

	for (const char **at = check->app->environment; *at != NULL; at++) {
		struct str rest = str_of(*at), name = rest;
		bool cut = str_split(&rest, '=', &name);
		int len = name.len > 60 ? 60 : (int)name.len;

		if (!cut || !is_variable(name))
			refuse_app(check, "environment",
			    "\"%.*s\" cannot be the name of a variable", len,
			    name.ptr);
		else if (is_ours(name))
			refuse_app(check, "environment",
			    "%.*s is set by scalwsd itself", len, name.ptr);
		else if (hash_map_add(names, name, (void *)(uintptr_t)at) == -1)
			refuse_app(check, "environment",
			    "%.*s stands here twice", len, name.ptr);
	}
	hash_map_free(names);
}

/* "pkg.mod:app", "pkg.mod:make()" */
static bool
is_module(const char *module)
{
	const char *colon = strchr(module, ':');

	return module[0] != '-' && module[0] != '.' && colon != NULL &&
	       colon != module && colon[1] != '\0' &&
	       strchr(colon + 1, ':') == NULL &&
	       memchr(module, '/', (size_t)(colon - module)) == NULL &&
	       strchr(module, ' ') == NULL;
}

static void
check_python(const struct check *check)
{
	const struct conf_app *app = check->app;

	if (app->module != NULL && !is_module(app->module))
		refuse_app(check, "module",
		    "\"%.60s\" is not of the form \"package.module:app\"",
		    app->module);
	if (app->venv != NULL && app->python != NULL)
		refuse_app(check, "python", "there is a venv already");
	if (app->server == CONF_UVICORN && has_key(check, "threads") &&
	    app->threads != 1)
		refuse_app(check, "threads",
		    "is for server = \"gunicorn\"; uvicorn has no threads");
	if (app->server != CONF_GUNICORN)
		return;
	if (app->factory)
		refuse_app(check, "factory",
		    "is for uvicorn; gunicorn takes "
		    "module = \"module:make_app()\"");
	if (app->concurrency > app->threads)
		refuse_app(check, "concurrency",
		    "%u is more than the %u threads", app->concurrency,
		    app->threads);
}

/* A file below the root, as a request could name it. */
static bool
is_below(const char *path)
{
	struct str rest = str_of(path), part;

	while (str_split(&rest, '/', &part)) {
		if (part.len == 0 || str_eq(part, STR("..")) ||
		    str_eq(part, STR(".")))
			return false;
	}
	return true;
}

static void
check_php(const struct check *check)
{
	const struct conf_app *app = check->app;

	if (app->php_index != NULL &&
	    (strchr(app->php_index, '/') != NULL || !is_below(app->php_index)))
		refuse_app(check, "index", "\"%.60s\" is no file name",
		    app->php_index);
	if (app->front_controller != NULL && !is_below(app->front_controller))
		refuse_app(check, "front_controller",
		    "\"%.60s\" is no path below the root",
		    app->front_controller);
	if (app->concurrency > app->children)
		refuse_app(check, "concurrency",
		    "%u is more than the %u children", app->concurrency,
		    app->children);
	for (const char **at = app->ini; at != NULL && *at != NULL; at++) {
		if (has_control(*at))
			refuse_app(check, "ini", "has control characters");
	}
}

static bool
is_program(const char *path, const char *const *names)
{
	const char *slash = strrchr(path, '/');

	path = slash == NULL ? path : slash + 1;
	for (; *names != NULL; names++) {
		if (strcmp(path, *names) == 0)
			return true;
	}
	return false;
}

static void
check_command(const struct check *check)
{
	static const char *const wrappers[] = { "npm", "npx", "yarn", "pnpm",
		NULL };
	static const char *const shells[] = { "sh", "bash", "dash", NULL };
	const char **command = check->app->command;
	struct conf_place place;

	if (command == NULL)
		return;
	if (command[0] == NULL || command[0][0] == '\0') {
		refuse_app(check, "command", "is empty");
		return;
	}
	if (command[1] == NULL && strchr(command[0], ' ') != NULL)
		refuse_app(check, "command",
		    "is one program with spaces in its name; write a list: "
		    "[ \"program\", \"argument\" ]");
	conf_place_app(&place, check->conf, check->app, "command");
	if (is_program(command[0], wrappers))
		conf_errors_warn(check->errors, &place.where, place.path,
		    "%s does not pass signals and descriptors on; run the "
		    "program itself",
		    command[0]);
	if (is_program(command[0], shells) && command[1] != NULL &&
	    command[2] != NULL && strcmp(command[1], "-c") == 0 &&
	    strncmp(command[2], "exec ", 5) != 0)
		conf_errors_warn(check->errors, &place.where, place.path,
		    "the shell stays between; begin the command with exec");
}

static void
check_app(struct check *check)
{
	const struct conf_app *app = check->app;
	size_t len = strlen(check->conf->run_directory) + 1 + strlen(app->name);

	if (len + CONF_SOCKET_ROOM >
	    sizeof(((struct sockaddr_un *)0)->sun_path))
		refuse_app(check, "runtime",
		    "the paths of its sockets would be longer than 107 bytes; "
		    "shorten run_directory (%zu bytes)",
		    strlen(check->conf->run_directory));
	if (app->environment != NULL)
		check_environment(check);
	if (app->probe.path != NULL && app->probe.path[0] != '/')
		refuse_app(check, "probe", "the path does not begin with /");
	if (app->probe.host != NULL && strpbrk(app->probe.host, " /\\@?#"))
		refuse_app(
		    check, "probe", "\"%.60s\" is no host", app->probe.host);
	switch (app->runtime) {
	case CONF_PYTHON:
		check_python(check);
		break;
	case CONF_NODE:
		if (app->script != NULL && app->script[0] == '-')
			refuse_app(check, "script", "begins with -");
		break;
	case CONF_PHP:
		check_php(check);
		break;
	case CONF_COMMAND:
		check_command(check);
		break;
	}
}

/* ---- upstreams ---- */

static void PRINTF_LIKE(4, 5) refuse_upstream(const struct check *check,
    const struct conf_upstream *upstream, const char *key, const char *fmt, ...)
{
	struct conf_place place;
	va_list args;
	char text[512];

	conf_place_upstream(&place, check->conf, upstream, key);
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	conf_errors_add(check->errors, &place.where, place.path, "%s", text);
}

/* A host name or an IP address, as a certificate may have it. */
static bool
is_server_name(const char *name)
{
	static const char bytes[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
	struct addr addr;

	if (addr_parse_host(str_of(name), &addr) == 0)
		return true;
	return strspn(name, bytes) == strlen(name) && name[0] != '.' &&
	       name[0] != '-' && strstr(name, "..") == NULL;
}

static void
check_upstream_tls(
    const struct check *check, const struct conf_upstream *upstream)
{
	const struct conf_upstream_tls *tls = &upstream->tls;
	struct conf_place place;

	if (tls->server_name != NULL && !is_server_name(tls->server_name))
		refuse_upstream(check, upstream, "tls.server_name",
		    "\"%.60s\" is no host name and no address",
		    tls->server_name);
	for (size_t i = 0; i < upstream->n_peers; i++)
		if (upstream->peers[i].addr.u.sa.sa_family == AF_UNIX &&
		    tls->server_name == NULL && tls->verify)
			refuse_upstream(check, upstream, "tls.server_name",
			    "is missing: %.120s has no name that could be "
			    "verified",
			    upstream->peers[i].text);
	if ((tls->certificate == NULL) != (tls->key == NULL))
		refuse_upstream(check, upstream,
		    tls->key == NULL ? "tls.key" : "tls.certificate",
		    "is missing: certificate and key belong together");
	if (tls->verify)
		return;
	if (tls->ca != NULL)
		refuse_upstream(check, upstream, "tls.ca",
		    "has no meaning with verify = false");
	conf_place_upstream(&place, check->conf, upstream, "tls.verify");
	conf_errors_warn(check->errors, &place.where, place.path,
	    "anybody between here and the peers can take their place");
}

static bool
has_tls_group(const struct check *check, const struct conf_upstream *upstream)
{
	const struct conf_node *node =
	    conf_node_find(check->conf->tree, "upstreams");

	return conf_node_find(conf_node_find(node, upstream->name), "tls") !=
	       NULL;
}

static void
check_upstream(const struct check *check, const struct conf_upstream *upstream)
{
	bool is_fastcgi = upstream->protocol == CONF_FASTCGI;

	if (is_fastcgi && upstream->root == NULL)
		refuse_upstream(check, upstream, "root",
		    "is missing; protocol \"fastcgi\" needs it");
	if (!is_fastcgi && upstream->root != NULL)
		refuse_upstream(
		    check, upstream, "root", "is for protocol = \"fastcgi\"");
	if (upstream->root != NULL && upstream->root[0] != '/')
		refuse_upstream(
		    check, upstream, "root", "does not begin with /");
	if (upstream->protocol == CONF_HTTPS)
		check_upstream_tls(check, upstream);
	else if (has_tls_group(check, upstream))
		refuse_upstream(check, upstream, "tls",
		    "is for protocol = \"https\"%s",
		    is_fastcgi ? "; FastCGI is never spoken over TLS" : "");
}

static void
check_top(const struct check *check)
{
	const struct conf *conf = check->conf;
	struct conf_where where = { conf->file, 0 };
	struct addr addr;

	if (conf->n_sites == 0 && conf->n_apps == 0)
		conf_errors_add(check->errors, &where, NULL,
		    "there are no sites and no apps: nothing to do");
	if (addr_unix(conf->control.socket, &addr) == -1)
		conf_errors_add(check->errors, &where, "control.socket",
		    "\"%.120s\" is longer than 107 bytes or does not begin "
		    "with /",
		    conf->control.socket);
	if (conf->limits.request_line_bytes > conf->limits.header_bytes)
		conf_errors_add(check->errors, &where,
		    "limits.request_line_bytes", "is above header_bytes");
	for (size_t i = 0; i < conf->n_trusted_proxies; i++) {
		if (conf->trusted_proxies[i].bits == 0 &&
		    conf->trusted_proxies[i].family != AF_UNIX)
			conf_errors_warn(check->errors, &where,
			    "trusted_proxies",
			    "everybody is believed: any client can claim any "
			    "address");
	}
}

void
conf_check(const struct conf *conf, struct conf_errors *errors)
{
	struct check check = { .conf = conf, .errors = errors };

	check_top(&check);
	for (size_t i = 0; i < conf->n_apps; i++) {
		check.app = &conf->apps[i];
		check_app(&check);
	}
	for (size_t i = 0; i < conf->n_upstreams; i++)
		check_upstream(&check, &conf->upstreams[i]);
	conf_check_sites(conf, errors);
	conf_check_logs(conf, errors);
}
