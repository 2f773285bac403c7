/*
 * Checks of sites and routes, of what conf_build.c has made.
 * Under conf_check.c. Changes nothing.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/conf/conf_build.h"

struct check {
	const struct conf *conf;
	struct conf_errors *errors;
	const struct conf_site *site;
	const struct conf_route *route; /* NULL: about the site */
};

static void PRINTF_LIKE(3, 4) refuse_site(
    const struct check *check, const char *key, const char *fmt, ...)
{
	struct conf_place place;
	va_list args;
	char text[512];

	conf_place_site(&place, check->conf, check->site, check->route, key);
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	conf_errors_add(check->errors, &place.where, place.path, "%s", text);
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

static const char host_bytes[] = "abcdefghijklmnopqrstuvwxyz0123456789-._";

static void
check_host(const struct check *check, const char *name)
{
	const char *host = strncmp(name, "*.", 2) == 0 ? name + 2 : name;
	size_t len = strlen(host);

	/* An IPv6 address stands in brackets, as in the Host field. */
	if (host == name && host[0] == '[' && len > 2 && host[len - 1] == ']' &&
	    strspn(host + 1, "0123456789abcdef:.") == len - 2)
		return;
	if (len > 0 && strspn(host, host_bytes) == len && host[0] != '.' &&
	    host[0] != '-' && strstr(host, "..") == NULL)
		return;
	if (strcmp(name, "*") == 0)
		refuse_site(check, "names",
		    "\"*\" is no name; default = true makes the site answer "
		    "for all others");
	else if (strchr(name, ':') != NULL)
		refuse_site(check, "names",
		    "\"%.80s\": a name has no port; that is in listen", name);
	else
		refuse_site(check, "names",
		    "\"%.80s\" is no host name and no \"*.example.com\"", name);
}

static void
check_pattern(const struct check *check, const char *pattern)
{
	size_t stars = 0;

	for (const char *at = pattern; *at != '\0'; at++)
		stars += *at == '*';
	if (pattern[0] != '/' && pattern[0] != '*')
		refuse_site(check, "path",
		    "\"%.60s\" begins neither with / nor with *", pattern);
	else if (has_control(pattern) || strpbrk(pattern, "?#") != NULL)
		refuse_site(check, "path",
		    "\"%.60s\" can match no path: ? and # end one", pattern);
	else if (strstr(pattern, "//") != NULL ||
		 strstr(pattern, "/../") != NULL ||
		 strstr(pattern, "/./") != NULL)
		refuse_site(check, "path",
		    "\"%.60s\" can match no path: // and dot segments are "
		    "taken out before",
		    pattern);
	else if (stars > 8)
		refuse_site(
		    check, "path", "\"%.60s\" has more than 8 *", pattern);
}

static void
check_methods(const struct check *check)
{
	const char **at = check->route->methods;

	if (at != NULL && *at == NULL)
		refuse_site(check, "methods", "is empty");
	for (; at != NULL && *at != NULL; at++) {
		size_t len = strlen(*at);

		if (len == 0 ||
		    strspn(*at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_") != len)
			refuse_site(check, "methods",
			    "\"%.32s\" is no method such as \"GET\"", *at);
	}
}

/* Does any pattern of the route begin with this text? */
static bool
has_prefix(const struct conf_route *route, struct str prefix)
{
	for (const char **at = route->paths; *at != NULL; at++) {
		if (str_starts_with(str_of(*at), prefix))
			return true;
	}
	return false;
}

static void
check_strip_prefix(const struct check *check)
{
	const struct conf_route *route = check->route;
	struct str prefix;
	struct conf_place place;

	if (route->strip_prefix == NULL)
		return;
	prefix = str_of(route->strip_prefix);
	if (route->action.kind != CONF_APP &&
	    route->action.kind != CONF_UPSTREAM) {
		refuse_site(check, "strip_prefix",
		    "is for the actions app and upstream");
	} else if (prefix.ptr[0] != '/' || str_ends_with(prefix, STR("/"))) {
		refuse_site(check, "strip_prefix",
		    "\"%.60s\" is not of the form \"/shop\"", prefix.ptr);
	} else if (!has_prefix(route, prefix)) {
		conf_place_site(
		    &place, check->conf, check->site, route, "strip_prefix");
		conf_errors_warn(check->errors, &place.where, place.path,
		    "no path of the route begins with %s", prefix.ptr);
	}
}

/* These belong to the connection or the framing: ours alone. */
static void
check_fields(const struct check *check)
{
	static const char *const ours[] = { "connection", "content-length",
		"transfer-encoding", "keep-alive", "upgrade", "te", "trailer",
		"proxy-connection" };
	const struct conf_route *route = check->route;

	for (size_t i = 0; i < route->n_response_fields; i++) {
		struct str name = str_of(route->response_fields[i].name);

		for (size_t j = 0; j < ARRAY_LEN(ours); j++) {
			if (str_eq_nocase(name, str_of(ours[j])))
				refuse_site(check, "response_headers",
				    "%s is set by scalwsd itself", name.ptr);
		}
	}
}

static void
check_redirect(const struct check *check)
{
	const char *location = check->route->action.redirect.location;
	unsigned status = check->route->action.redirect.status;

	if (status == 304 || status == 305 || status == 306)
		refuse_site(check, "redirect",
		    "%u is none of 301, 302, 303, 307, 308", status);
	if (location == NULL)
		return;
	if (location[0] != '/' && strncmp(location, "http://", 7) != 0 &&
	    strncmp(location, "https://", 8) != 0)
		refuse_site(check, "redirect",
		    "the location \"%.60s\" begins neither with / nor with "
		    "http:// or https://",
		    location);
	if (strpbrk(location, " \"<>\\^`|") != NULL)
		refuse_site(check, "redirect",
		    "the location has characters that no address has");
}

static void
check_action(const struct check *check)
{
	const struct conf_action *action = &check->route->action;

	switch (action->kind) {
	case CONF_RESPOND:
		/* RFC 9110 sections 15.3.5 and 15.4.5. */
		if (action->respond.body_len > 0 &&
		    (action->respond.status == 204 ||
			action->respond.status == 304))
			refuse_site(check, "respond", "status %u has no body",
			    action->respond.status);
		break;
	case CONF_REDIRECT:
		check_redirect(check);
		break;
	case CONF_APP:
		if (action->app != NULL && !action->app->http)
			refuse_site(check, "app",
			    "\"%s\" has http = false: it answers nothing",
			    action->app->name);
		break;
	case CONF_UPSTREAM:
	case CONF_STATUS:
		break;
	}
}

static size_t
count_texts(const char *const *texts)
{
	size_t count = 0;

	while (texts != NULL && texts[count] != NULL)
		count++;
	return count;
}

/* RFC 6797 section 6.1, as far as a typing error would be costly. */
static void
check_hsts(const struct check *check)
{
	const char *value = check->site->hsts;

	if (value == NULL)
		return;
	if (strncmp(value, "max-age=", 8) != 0 || value[8] < '0' ||
	    value[8] > '9' || strpbrk(value, "\"\\,") != NULL)
		refuse_site(check, "hsts",
		    "\"%.60s\" is not of the form "
		    "\"max-age=31536000; includeSubDomains\"",
		    value);
}

static void
check_tls(const struct check *check)
{
	const struct conf_site_tls *tls = &check->site->tls;
	size_t n = count_texts(tls->certificates);

	if (n != count_texts(tls->keys))
		refuse_site(check, "tls.key",
		    "there are %zu certificates and %zu keys", n,
		    count_texts(tls->keys));
	if (tls->certificates != NULL && n == 0)
		refuse_site(check, "tls.certificate", "is empty");
	if (n > CONF_CERTIFICATES_MAX)
		refuse_site(check, "tls.certificate",
		    "names more than %d files", CONF_CERTIFICATES_MAX);
	if (tls->client_ca != NULL && tls->client_verify == CONF_VERIFY_NONE)
		refuse_site(check, "tls.client_certificate.verify",
		    "is missing: \"optional\" or \"required\"");
	if (tls->client_ca == NULL && tls->client_verify != CONF_VERIFY_NONE)
		refuse_site(check, "tls.client_certificate.ca", "is missing");
	check_hsts(check);
}

static bool
matches_all(const struct conf_route *route)
{
	for (const char **at = route->paths; *at != NULL; at++) {
		if (strcmp(*at, "*") == 0 || strcmp(*at, "/*") == 0)
			return route->methods == NULL;
	}
	return false;
}

static void
check_site(struct check *check)
{
	const struct conf_site *site = check->site;
	const struct conf_route *all = NULL;

	check->route = NULL;
	if (site->listen[0] == NULL &&
	    conf_node_find(check->conf->tree, "sites"))
		refuse_site(check, "listen",
		    "is missing or empty; for example listen = [ \"80\" ]");
	for (const char **at = site->names; *at != NULL; at++)
		check_host(check, *at);
	check_tls(check);
	for (size_t i = 0; i < site->n_routes; i++) {
		check->route = &site->routes[i];
		if (check->route->paths == NULL)
			continue;
		if (check->route->paths[0] == NULL)
			refuse_site(check, "path", "is empty");
		for (const char **at = check->route->paths; *at != NULL; at++)
			check_pattern(check, *at);
		check_methods(check);
		check_strip_prefix(check);
		check_fields(check);
		check_action(check);
		if (all != NULL)
			conf_errors_warn(check->errors, &check->route->where,
			    NULL,
			    "this route is never reached: the one in line %d "
			    "matches every path",
			    all->where.line);
		else if (matches_all(check->route))
			all = check->route;
	}
}

void
conf_check_sites(const struct conf *conf, struct conf_errors *errors)
{
	struct check check = { .conf = conf, .errors = errors };

	for (size_t i = 0; i < conf->n_sites; i++) {
		check.site = &conf->sites[i];
		check_site(&check);
	}
}
