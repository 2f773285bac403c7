/*
 * Which site and which route answer a request.
 * Called by request_dispatch with the host and the normalised path.
 * Looks only; building the tables is snapshot.c's.
 */
#include <string.h>

#include "proxy/core/snapshot.h"
#include "proxy/http/uri.h"
#include "src/base/hash.h"

/* NULL: no site has that name. */
static const struct site *
find_site(const struct snapshot_listener *listener, struct str host)
{
	const struct site *site;
	const char *dot, *end = host.ptr + host.len;

	if (listener->exact != NULL && host.len > 0) {
		site = hash_map_get(listener->exact, host);
		if (site != NULL)
			return site;
	}
	if (listener->wildcard == NULL)
		return NULL;
	/* From the left, so that the longest name wins. */
	for (struct str rest = host; rest.len > 0;) {
		dot = memchr(rest.ptr, '.', rest.len);
		if (dot == NULL)
			break;
		rest.ptr = dot + 1;
		rest.len = (size_t)(end - rest.ptr);
		site = hash_map_get(listener->wildcard, rest);
		if (site != NULL && dot > host.ptr)
			return site;
	}
	return NULL;
}

const struct site *
snapshot_site(const struct snapshot_listener *listener, struct str host)
{
	const struct site *site = find_site(listener, host);

	return LIKELY(site != NULL) ? site : listener->default_site;
}

const struct tls_site *
snapshot_tls_site(const struct snapshot_listener *listener, struct str name)
{
	const struct site *site = find_site(listener, name);

	if (site == NULL) {
		site = listener->default_site;
		if (site->conf->tls.refuse_unknown_names)
			return NULL;
	}
	return site->tls;
}

const struct snapshot_listener *
snapshot_listener_of(const struct snapshot *snapshot, uint32_t key)
{
	for (size_t i = 0; i < snapshot->conf->n_listeners; i++)
		if (snapshot->listeners[i].key == key)
			return &snapshot->listeners[i];
	return NULL;
}

static bool
matches(const struct route_pattern *pattern, struct str path)
{
	size_t len = pattern->text.len;

	switch (pattern->kind) {
	case PATTERN_ANY:
		return true;
	case PATTERN_EXACT:
		return str_eq(pattern->text, path);
	case PATTERN_PREFIX:
		return str_starts_with(path, pattern->text) &&
		       (path.len == len || path.ptr[len] == '/');
	case PATTERN_OTHER:
		break;
	}
	return uri_match(pattern->text, path);
}

static bool
path_matches(const struct route *route, struct str path)
{
	for (size_t i = 0; i < route->n_patterns; i++)
		if (matches(&route->patterns[i], path))
			return true;
	return false;
}

const struct route *
site_route(const struct site *site, struct str path, enum http_method method,
    uint32_t *allowed)
{
	*allowed = 0;
	for (size_t i = 0; i < site->n_routes; i++) {
		const struct route *route = &site->routes[i];

		if (!path_matches(route, path))
			continue;
		if (route->methods == 0 || (route->methods & 1u << method) != 0)
			return route;
		*allowed |= route->methods;
	}
	return NULL;
}
