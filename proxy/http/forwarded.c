/*
 * Who the client is, by the X-Forwarded fields of trusted proxies.
 * Once per request, before routes are looked at.
 * Does not write the fields that go to the app.
 */
#include "proxy/http/forwarded.h"

#include <string.h>

#include "proxy/http/uri.h"

static bool
is_trusted(
    const struct addr *addr, const struct addr_range *trusted, size_t n_trusted)
{
	for (size_t i = 0; i < n_trusted; i++) {
		if (addr_in_range(addr, &trusted[i]))
			return true;
	}
	return false;
}

/* Cut off the last part of a comma list; false when `list` was used up. */
static bool
cut_last(struct str *list, struct str *part)
{
	const char *comma = NULL;

	if (list->ptr == NULL)
		return false;
	if (list->len > 0)
		comma = memrchr(list->ptr, ',', list->len);
	*part = *list;
	if (comma != NULL) {
		part->ptr = comma + 1;
		part->len = list->len - (size_t)(part->ptr - list->ptr);
		list->len = (size_t)(comma - list->ptr);
	} else {
		list->ptr = NULL;
	}
	*part = str_trim(*part);
	return true;
}

static bool
is_port(struct str text)
{
	uint64_t port;

	return str_to_u64(text, 65535, &port) == 0;
}

/* "192.0.2.1", "192.0.2.1:4711", "2001:db8::1", "[2001:db8::1]:4711". */
static int
read_entry(struct str entry, struct addr *addr)
{
	const char *colon = NULL;

	if (entry.len > 0)
		colon = memrchr(entry.ptr, ':', entry.len);
	if (colon != NULL && colon > entry.ptr &&
	    (colon[-1] == ']' ||
		memchr(entry.ptr, ':', (size_t)(colon - entry.ptr)) == NULL)) {
		size_t len = (size_t)(colon - entry.ptr);

		if (!is_port((struct str){ colon + 1, entry.len - len - 1 }))
			return -1;
		entry.len = len;
	}
	return addr_parse_host(entry, addr);
}

/* The field with that id before `field` (NULL: the last one), or NULL. */
static const struct header_field *
field_before(const struct header_table *headers, enum header_id id,
    const struct header_field *field)
{
	const struct header_field *at =
	    field == NULL ? headers->fields + headers->count : field;

	while (at > headers->fields) {
		if ((--at)->id == id)
			return at;
	}
	return NULL;
}

static void
find_client(const struct header_table *headers, const char *base,
    const struct addr_range *trusted, size_t n_trusted, struct addr *client)
{
	const struct header_field *field = NULL;

	if (!header_has(headers, HEADER_X_FORWARDED_FOR))
		return;
	while ((field = field_before(headers, HEADER_X_FORWARDED_FOR, field)) !=
	       NULL) {
		struct str list = header_value(base, field), part;

		while (cut_last(&list, &part)) {
			struct addr addr;

			if (read_entry(part, &addr) == -1)
				return;
			*client = addr;
			if (!is_trusted(&addr, trusted, n_trusted))
				return;
		}
	}
}

/* The last value of that field: what the proxy next to us wrote. */
static struct str
last_value(
    const struct header_table *headers, const char *base, enum header_id id)
{
	const struct header_field *field;
	struct str list, part;

	if (!header_has(headers, id))
		return (struct str){ NULL, 0 };
	field = field_before(headers, id, NULL);
	list = header_value(base, field);
	return cut_last(&list, &part) ? part : (struct str){ NULL, 0 };
}

void
forwarded_resolve(const struct header_table *headers, const char *base,
    const struct addr *peer, bool https, const struct addr_range *trusted,
    size_t n_trusted, struct forwarded *result)
{
	struct str value;

	result->client = *peer;
	result->https = https;
	result->host = (struct str){ NULL, 0 };
	result->is_trusted =
	    n_trusted > 0 && is_trusted(peer, trusted, n_trusted);
	if (!result->is_trusted)
		return;
	find_client(headers, base, trusted, n_trusted, &result->client);
	value = last_value(headers, base, HEADER_X_FORWARDED_PROTO);
	if (str_eq_nocase(value, STR("https")))
		result->https = true;
	else if (str_eq_nocase(value, STR("http")))
		result->https = false;
	value = last_value(headers, base, HEADER_X_FORWARDED_HOST);
	if (uri_host_is_valid(value))
		result->host = value;
}
