/*
 * The effective configuration as text in the syntax of the file.
 * Made from struct conf by way of the schema, defaults included; reading it
 * again gives the same. For scalwsd -T.
 */
#include <inttypes.h>
#include <string.h>

#include "src/conf/conf_number.h"
#include "src/conf/conf_schema.h"

struct print {
	struct strbuf *to;
	int depth; /* tabs before a line */
};

static const void *
member_of(const struct conf_key *key, const void *object)
{
	return (const char *)object + key->offset;
}

static const char *
text_of(const struct conf_key *key, const void *object)
{
	const char *text;

	memcpy(&text, member_of(key, object), sizeof(text));
	return text;
}

static size_t
count_of(const struct conf_key *key, const void *object)
{
	size_t count;

	memcpy(&count, (const char *)object + key->count_offset, sizeof(count));
	return count;
}

static int64_t
number_of(const struct conf_key *key, const void *object)
{
	uint64_t wide;
	int32_t narrow;

	if (key->width == sizeof(wide)) {
		memcpy(&wide, member_of(key, object), sizeof(wide));
		return (int64_t)wide;
	}
	memcpy(&narrow, member_of(key, object), sizeof(narrow));
	return narrow;
}

static void
indent(const struct print *print)
{
	for (int i = 0; i < print->depth; i++)
		strbuf_add_text(print->to, "\t");
}

static void
put_quoted(struct strbuf *to, const char *text)
{
	strbuf_add_text(to, "\"");
	for (; *text != '\0'; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte == '"' || byte == '\\')
			strbuf_printf(to, "\\%c", byte);
		else if (byte == '\n')
			strbuf_add_text(to, "\\n");
		else if (byte < 0x20 || byte == 0x7f)
			strbuf_printf(to, "\\x%02x", byte);
		else
			strbuf_add(to, text, 1);
	}
	strbuf_add_text(to, "\"");
}

static void
put_key(const struct print *print, const char *name)
{
	indent(print);
	strbuf_printf(print->to, "%s = ", name);
}

static void
open_group(struct print *print, const char *name, const char *bracket)
{
	put_key(print, name);
	strbuf_printf(print->to, "%s\n", bracket);
	print->depth++;
}

static void
close_group(struct print *print, const char *bracket)
{
	print->depth--;
	indent(print);
	strbuf_printf(print->to, "%s\n", bracket);
}

static void
put_texts(struct strbuf *to, const char *const *texts)
{
	const char *separator = " ";

	strbuf_add_text(to, "[");
	for (; *texts != NULL; texts++, separator = ", ") {
		strbuf_add_text(to, separator);
		put_quoted(to, *texts);
	}
	strbuf_add_text(to, " ]");
}

static void
put_fields(struct strbuf *to, const struct conf_field *fields, size_t count)
{
	strbuf_add_text(to, "[ ");
	for (size_t i = 0; i < count; i++) {
		struct strbuf field = STRBUF_EMPTY;

		strbuf_printf(
		    &field, "%s: %s", fields[i].name, fields[i].value);
		strbuf_add_text(to, i == 0 ? "" : ", ");
		put_quoted(to, field.ptr);
		strbuf_free(&field);
	}
	strbuf_add_text(to, " ]");
}

static void
put_limit(struct strbuf *to, uint64_t value)
{
	if (value == UINT64_MAX)
		strbuf_add_text(to, "unlimited");
	else
		conf_number_put_bytes(to, value);
}

static void
put_limits(struct strbuf *to, const struct conf_limit *limits, size_t count)
{
	strbuf_add_text(to, "{ ");
	for (size_t i = 0; i < count; i++) {
		strbuf_printf(
		    to, "%s = \"", conf_number_rlimit_name(limits[i].resource));
		put_limit(to, limits[i].soft);
		strbuf_add_text(to, ":");
		put_limit(to, limits[i].hard);
		strbuf_add_text(to, "\"; ");
	}
	strbuf_add_text(to, "}");
}

static void
put_range(struct strbuf *to, const struct addr_range *range)
{
	struct addr addr = { .len = 0 };
	char text[ADDR_TEXT_MAX];

	if (range->family == AF_UNIX) {
		strbuf_add_text(to, "\"unix\"");
		return;
	}
	addr.u.sa.sa_family = range->family;
	if (range->family == AF_INET) {
		addr.len = sizeof(addr.u.in);
		memcpy(&addr.u.in.sin_addr, range->bytes, 4);
	} else {
		addr.len = sizeof(addr.u.in6);
		memcpy(&addr.u.in6.sin6_addr, range->bytes, 16);
	}
	addr_format_host(&addr, text);
	strbuf_printf(to, "\"%s/%u\"", text, range->bits);
}

static void
put_ranges(struct strbuf *to, const struct addr_range *ranges, size_t count)
{
	strbuf_add_text(to, "[ ");
	for (size_t i = 0; i < count; i++) {
		strbuf_add_text(to, i == 0 ? "" : ", ");
		put_range(to, &ranges[i]);
	}
	strbuf_add_text(to, " ]");
}

/* Is there anything to print? What is not set has no text in the file. */
static bool
is_set(const struct conf_key *key, const void *object)
{
	switch (key->type) {
	case CONF_TYPE_STRING:
	case CONF_TYPE_TEXT:
	case CONF_TYPE_PATH:
	case CONF_TYPE_WORD:
		return key->none || text_of(key, object) != NULL;
	case CONF_TYPE_STRINGS:
	case CONF_TYPE_PATHS:
	case CONF_TYPE_PAIRS:
		return text_of(key, object) != NULL;
	case CONF_TYPE_FIELDS:
	case CONF_TYPE_RLIMITS:
	case CONF_TYPE_RANGES:
		return count_of(key, object) > 0;
	case CONF_TYPE_SIGNAL:
		return number_of(key, object) != 0;
	case CONF_TYPE_BOOL:
	case CONF_TYPE_NUMBER:
	case CONF_TYPE_BYTES:
	case CONF_TYPE_DURATION:
	case CONF_TYPE_CHOICE:
	case CONF_TYPE_UMASK:
		return true;
	case CONF_TYPE_GROUP:
	case CONF_TYPE_GROUPS:
	case CONF_TYPE_LIST:
	case CONF_TYPE_NAME:
	case CONF_TYPE_ABSENT:
		break;
	}
	return false;
}

static void
put_value(struct strbuf *to, const struct conf_key *key, const void *object)
{
	const void *pointer = NULL;
	bool flag;

	switch (key->type) {
	case CONF_TYPE_BOOL:
		memcpy(&flag, member_of(key, object), sizeof(flag));
		strbuf_add_text(to, flag ? "true" : "false");
		return;
	case CONF_TYPE_NUMBER:
		strbuf_printf(to, "%" PRId64, number_of(key, object));
		return;
	case CONF_TYPE_BYTES:
		strbuf_add_text(to, "\"");
		conf_number_put_bytes(
		    to, key->width == sizeof(uint32_t)
			    ? (uint32_t)number_of(key, object)
			    : (uint64_t)number_of(key, object));
		strbuf_add_text(to, "\"");
		return;
	case CONF_TYPE_DURATION:
		strbuf_add_text(to, "\"");
		conf_number_put_duration(to, number_of(key, object));
		strbuf_add_text(to, "\"");
		return;
	case CONF_TYPE_STRING:
	case CONF_TYPE_TEXT:
	case CONF_TYPE_PATH:
	case CONF_TYPE_WORD:
		put_quoted(to, text_of(key, object) == NULL
				   ? "none"
				   : text_of(key, object));
		return;
	case CONF_TYPE_CHOICE:
		put_quoted(to, key->choices[number_of(key, object)]);
		return;
	case CONF_TYPE_SIGNAL:
		put_quoted(
		    to, conf_number_signal_name((int)number_of(key, object)));
		return;
	case CONF_TYPE_UMASK:
		strbuf_printf(to, "\"%03o\"", (unsigned)number_of(key, object));
		return;
	case CONF_TYPE_STRINGS:
	case CONF_TYPE_PATHS:
	case CONF_TYPE_PAIRS:
		memcpy(&pointer, member_of(key, object), sizeof(pointer));
		put_texts(to, pointer);
		return;
	case CONF_TYPE_FIELDS:
		memcpy(&pointer, member_of(key, object), sizeof(pointer));
		put_fields(to, pointer, count_of(key, object));
		return;
	case CONF_TYPE_RLIMITS:
		memcpy(&pointer, member_of(key, object), sizeof(pointer));
		put_limits(to, pointer, count_of(key, object));
		return;
	case CONF_TYPE_RANGES:
		memcpy(&pointer, member_of(key, object), sizeof(pointer));
		put_ranges(to, pointer, count_of(key, object));
		return;
	case CONF_TYPE_GROUP:
	case CONF_TYPE_GROUPS:
	case CONF_TYPE_LIST:
	case CONF_TYPE_NAME:
	case CONF_TYPE_ABSENT:
		return;
	}
}

/* All keys directly below `prefix`; with `groups`, those of groups too. */
static void
put_keys(struct print *print, const char *prefix, unsigned runtimes,
    bool groups, const void *object)
{
	for (size_t i = 0; i < conf_keys_count; i++) {
		const struct conf_key *key = &conf_keys[i];

		if (!conf_schema_is_below(key, prefix) ||
		    !conf_schema_is_for(key, runtimes))
			continue;
		if (key->type == CONF_TYPE_GROUP && groups) {
			open_group(print, conf_schema_name(key), "{");
			put_keys(print, key->path, runtimes, true, object);
			close_group(print, "};");
		} else if (!key->unstored && is_set(key, object)) {
			put_key(print, conf_schema_name(key));
			put_value(print->to, key, object);
			strbuf_add_text(print->to, ";\n");
		}
	}
}

static void
put_action(struct print *print, const struct conf_route *route)
{
	const struct conf_action *action = &route->action;

	switch (action->kind) {
	case CONF_RESPOND:
		open_group(print, "respond", "{");
		put_keys(print, "sites.*.routes.*.respond", CONF_FOR_ALL, false,
		    route);
		close_group(print, "};");
		return;
	case CONF_REDIRECT:
		open_group(print, "redirect", "{");
		put_keys(print, "sites.*.routes.*.redirect", CONF_FOR_ALL,
		    false, route);
		close_group(print, "};");
		return;
	case CONF_APP:
		put_key(print, "app");
		put_quoted(print->to, action->app->name);
		break;
	case CONF_UPSTREAM:
		put_key(print, "upstream");
		put_quoted(print->to, action->upstream->name);
		break;
	case CONF_STATUS:
		put_key(print, "status");
		strbuf_add_text(print->to, "true");
		break;
	}
	strbuf_add_text(print->to, ";\n");
}

/* Elements of a list are separated, never ended, by commas. */
static void
open_element(struct print *print)
{
	indent(print);
	strbuf_add_text(print->to, "{\n");
	print->depth++;
}

static void
close_element(struct print *print, bool last)
{
	close_group(print, last ? "}" : "},");
}

static void
put_site(struct print *print, const struct conf_site *site)
{
	put_keys(print, "sites.*", CONF_FOR_ALL, true, site);
	open_group(print, "routes", "(");
	for (size_t i = 0; i < site->n_routes; i++) {
		open_element(print);
		put_keys(print, "sites.*.routes.*", CONF_FOR_ALL, false,
		    &site->routes[i]);
		put_action(print, &site->routes[i]);
		close_element(print, i + 1 == site->n_routes);
	}
	close_group(print, ");");
}

static void
put_upstream(struct print *print, const struct conf_upstream *upstream)
{
	open_group(print, upstream->name, "{");
	put_keys(print, "upstreams.*", CONF_FOR_ALL, false, upstream);
	if (upstream->protocol == CONF_HTTPS) {
		open_group(print, "tls", "{");
		put_keys(
		    print, "upstreams.*.tls", CONF_FOR_ALL, false, upstream);
		close_group(print, "};");
	}
	open_group(print, "peers", "(");
	for (size_t i = 0; i < upstream->n_peers; i++) {
		open_element(print);
		put_keys(print, "upstreams.*.peers.*", CONF_FOR_ALL, true,
		    &upstream->peers[i]);
		close_element(print, i + 1 == upstream->n_peers);
	}
	close_group(print, ");");
	close_group(print, "};");
}

void
conf_print(const struct conf *conf, struct strbuf *to)
{
	struct print print = { .to = to };

	put_keys(&print, "", CONF_FOR_ALL, true, conf);
	open_group(&print, "apps", "{");
	for (size_t i = 0; i < conf->n_apps; i++) {
		const struct conf_app *app = &conf->apps[i];

		open_group(&print, app->name, "{");
		put_keys(&print, "apps.*", 1u << app->runtime, true, app);
		close_group(&print, "};");
	}
	close_group(&print, "};");
	open_group(&print, "upstreams", "{");
	for (size_t i = 0; i < conf->n_upstreams; i++)
		put_upstream(&print, &conf->upstreams[i]);
	close_group(&print, "};");
	open_group(&print, "sites", "(");
	for (size_t i = 0; i < conf->n_sites; i++) {
		open_element(&print);
		put_site(&print, &conf->sites[i]);
		close_element(&print, i + 1 == conf->n_sites);
	}
	close_group(&print, ");");
}
