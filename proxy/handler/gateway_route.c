/*
 * Routes to apps and upstreams: from the configuration to what a request needs,
 * and from a request to its target at the peer.
 * Before the exchange; after this nobody looks at paths any more.
 */
#include "proxy/handler/gateway_route.h"

#include <string.h>

#include "proxy/core/request.h"
#include "proxy/core/snapshot.h"
#include "proxy/handler/gateway_cache.h"
#include "proxy/http/uri.h"
#include "proxy/upstream/registry.h"
#include "src/base/log.h"
#include "src/base/mem.h"

/* Idle connections kept per instance and worker. */
#define APP_IDLE_MAX 128
/* A peer that we did not start and that is still busy this long after its
 * client left: its slot is given up. */
#define PEER_GRACE_MS 5000

static void
fill_app(struct gateway_route *route, const struct conf_app *app)
{
	route->is_app = true;
	route->name = mem_strdup(app->name);
	route->upstream = registry_get_app(route->registry, app->name);
	route->limits = (struct pool_limits){
		.queue_length = app->queue_length,
		.queue_timeout_ms = app->queue_timeout_ms,
		.connect_timeout_ms = app->connect_timeout_ms,
		.idle_timeout_ms = app->idle_timeout_ms,
		.idle_max = APP_IDLE_MAX,
		.abort_grace_ms = app->abort_grace_ms,
	};
	route->request_timeout_ms = app->request_timeout_ms;
	route->response_timeout_ms = app->response_timeout_ms;
	route->pause_timeout_ms = app->pause_timeout_ms;
	route->stream_timeout_ms = app->stream_timeout_ms;
	/* WSGI has no word for a body without one. */
	route->needs_length =
	    app->runtime == CONF_PYTHON && app->server == CONF_GUNICORN;
	if (app->runtime != CONF_PHP)
		return;
	route->ops = &exchange_fastcgi;
	route->scripts.root = mem_strdup(app->root);
	route->scripts.index = mem_strdup(app->php_index);
	route->scripts.front_controller = mem_strdup(app->front_controller);
}

static void
fill_upstream(struct gateway_route *route, const struct conf_upstream *conf,
    struct tls_upstream *tls)
{
	struct registry_peer *peers =
	    mem_alloc_array(conf->n_peers + 1, sizeof(*peers));
	bool is_fastcgi = conf->protocol == CONF_FASTCGI;

	for (size_t i = 0; i < conf->n_peers; i++)
		peers[i] = (struct registry_peer){
			.addr = conf->peers[i].addr,
			.text = conf->peers[i].text,
			.weight = conf->peers[i].weight,
			.max_connections = conf->peers[i].max_connections,
		};
	route->name = mem_strdup(conf->name);
	route->upstream = registry_get_peers(route->registry, conf->name,
	    is_fastcgi ? UPSTREAM_FASTCGI : UPSTREAM_HTTP1, tls, peers,
	    conf->n_peers);
	mem_free(peers);
	route->limits = (struct pool_limits){
		.queue_length = conf->queue_length,
		.queue_timeout_ms = conf->queue_timeout_ms,
		.connect_timeout_ms = conf->connect_timeout_ms,
		.idle_timeout_ms = conf->idle_timeout_ms,
		.idle_max = conf->idle_max,
		.abort_grace_ms = PEER_GRACE_MS,
	};
	route->response_timeout_ms = conf->response_timeout_ms;
	route->pause_timeout_ms = conf->pause_timeout_ms;
	route->stream_timeout_ms = conf->stream_timeout_ms;
	if (!is_fastcgi)
		return;
	route->ops = &exchange_fastcgi;
	route->scripts.is_remote = true;
	route->scripts.root = mem_strdup(conf->root);
	route->scripts.front_controller = mem_strdup("index.php");
}

void *
gateway_route_new(const struct conf_route *conf,
    const struct conf_action *action, const struct handler_env *env,
    struct conf_errors *errors)
{
	struct gateway_route *route = mem_alloc(sizeof(*route));

	route->registry = env->registry;
	route->ops = &exchange_http1;
	route->spools = conf->spool_body;
	if (action->kind == CONF_APP)
		fill_app(route, action->app);
	else
		fill_upstream(
		    route, action->upstream, env->tls[action->upstream->index]);
	route->needs_length |= route->ops->needs_length;
	return route;
}

static void
free_text(const char *text)
{
	mem_free((void *)(uintptr_t)text);
}

void
gateway_route_free(void *prepared)
{
	struct gateway_route *route = prepared;

	registry_put(route->registry, &route->upstream);
	free_text(route->scripts.root);
	free_text(route->scripts.index);
	free_text(route->scripts.front_controller);
	mem_free(route->name);
	mem_free(route);
}

/* ---- the target ---- */

/* "/path?query" as it came, without scheme and host. */
static struct str
origin_form(struct request *request)
{
	const struct h1_request *head = &request->head;
	size_t len = head->path_len;
	char *to;

	if (head->query != 0)
		len = head->query + head->query_len - head->path;
	if (LIKELY(head->path_len > 0))
		return (struct str){ request->base + head->path, len };
	/* RFC 9112 section 3.2.4: for all of the server. */
	if (head->query == 0)
		return head->method == METHOD_OPTIONS ? STR("*") : STR("/");
	/* "http://host?query" */
	to = request_scratch(request, head->query_len + 2);
	if (to == NULL)
		return STR("/");
	memcpy(to, "/?", 2);
	memcpy(to + 2, request->base + head->query, head->query_len);
	return (struct str){ to, head->query_len + 2 };
}

/* The path behind the prefix, or all of it when it does not begin so. */
static struct str
path_behind(struct str path, struct str prefix)
{
	while (prefix.len > 0 && prefix.ptr[prefix.len - 1] == '/')
		prefix.len--;
	if (!str_starts_with(path, prefix) ||
	    (path.len > prefix.len && path.ptr[prefix.len] != '/'))
		return path;
	path.ptr += prefix.len;
	path.len -= prefix.len;
	return path.len > 0 ? path : STR("/");
}

/* The prefix was written in another way than we know it: what is left of the
 * normal path is encoded again. */
static int
encode_again(struct request *request, struct str path, struct str *target)
{
	const struct h1_request *head = &request->head;
	size_t query = head->query != 0 ? head->query_len + 1 : 0;
	size_t room = 3 * path.len + query;
	char *to = request_scratch(request, room);
	size_t len;

	if (to == NULL)
		return -1;
	len = uri_encode_path(path, to, room);
	if (len + query > room)
		return -1;
	if (query > 0) {
		to[len] = '?';
		memcpy(
		    to + len + 1, request->base + head->query, head->query_len);
	}
	*target = (struct str){ to, len + query };
	return 0;
}

static unsigned
strip(struct request *request, struct exchange_target *target, const char **why)
{
	struct str prefix = request->route->strip_prefix;
	struct str path = path_behind(request->path, prefix);

	if (path.ptr == request->path.ptr)
		return 0;
	target->prefix = prefix;
	while (target->prefix.len > 0 &&
	       target->prefix.ptr[target->prefix.len - 1] == '/')
		target->prefix.len--;
	if (uri_strip_prefix(target->target, target->prefix, &target->target) ==
	    0)
		return 0;
	if (encode_again(request, path, &target->target) == 0)
		return 0;
	*why = "target too long";
	return 414;
}

/* "/dir?x" -> "/dir/?x" */
static unsigned
add_slash(struct request *request, struct exchange_target *target)
{
	struct str all = target->target;
	size_t path = request->head.path_len;
	char *to;

	/* "//name" would be another host. */
	while (path > 1 && all.ptr[0] == '/' && all.ptr[1] == '/') {
		all.ptr++;
		all.len--;
		path--;
	}
	to = request_scratch(request, all.len + 1);
	if (to == NULL || path == 0 || path > all.len)
		return 404;
	memcpy(to, all.ptr, path);
	to[path] = '/';
	memcpy(to + path + 1, all.ptr + path, all.len - path);
	target->target = (struct str){ to, all.len + 1 };
	return 301;
}

/* The texts in one piece, for the request's life. */
static unsigned
keep_script(struct request *request, struct str prefix, struct str path,
    const struct script_found *found, struct exchange_target *target,
    const char **why)
{
	size_t root = found->document_root.len, file = found->filename.len;
	char *to = request_scratch(
	    request, root + file + prefix.len + found->name.len);

	if (to == NULL) {
		*why = "the script's name is too long";
		return 414;
	}
	memcpy(to, found->document_root.ptr, root);
	target->document_root = (struct str){ to, root };
	to += root;
	memcpy(to, found->filename.ptr, file);
	target->script_filename = (struct str){ to, file };
	to += file;
	if (prefix.len > 0)
		memcpy(to, prefix.ptr, prefix.len);
	memcpy(to + prefix.len, found->name.ptr, found->name.len);
	target->script_name = (struct str){ to, prefix.len + found->name.len };
	target->path_info = (struct str){ path.ptr + found->path_info,
		path.len - found->path_info };
	return 0;
}

static unsigned
find_script(struct request *request, const struct gateway_route *route,
    struct script_cache *scripts, struct exchange_target *target,
    const char **why)
{
	struct str prefix = request->route->strip_prefix;
	struct str path = path_behind(request->path, prefix);
	struct script_found found;

	while (prefix.len > 0 && prefix.ptr[prefix.len - 1] == '/')
		prefix.len--;
	if (path.ptr == request->path.ptr)
		prefix.len = 0;
	switch (script_cache_find(scripts, request->snapshot->serial,
	    request->worker->tick_ms, &route->scripts, path, &found)) {
	case SCRIPT_FOUND:
		return keep_script(request, prefix, path, &found, target, why);
	case SCRIPT_NONE:
		*why = "no such script";
		return 404;
	case SCRIPT_DIRECTORY:
		return add_slash(request, target);
	case SCRIPT_BAD:
		*why = "no file has such a name";
		return 400;
	case SCRIPT_BROKEN:
		break;
	}
	log_errno("app=%s root %s", route->name, route->scripts.root);
	*why = "the document root cannot be opened";
	return 500;
}

unsigned
gateway_target(struct request *request, const struct gateway_route *route,
    struct script_cache *scripts, struct exchange_target *target,
    const char **why)
{
	const struct conf_limits *limits = &request->snapshot->conf->limits;

	target->target = origin_form(request);
	target->response_header_bytes = limits->response_header_bytes;
	if (route->ops == &exchange_fastcgi)
		return find_script(request, route, scripts, target, why);
	if (UNLIKELY(request->route->strip_prefix.len > 0))
		return strip(request, target, why);
	return 0;
}
