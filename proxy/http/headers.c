/*
 * The table of a head's fields, their ids, and what is hop-by-hop.
 * Filled by the gate and the HTTP/2 front; all later stages ask by id.
 * Keeps no bytes of its own.
 */
#include "proxy/http/headers.h"

#include <string.h>

#include "proxy/http/chars.h"

/* 24 bytes. */
struct known {
	uint8_t len;
	uint8_t flags; /* HEADER_FLAG_HOP or 0 */
	char text[22];
};

#define NAME(literal)                           \
	{                                       \
		sizeof(literal) - 1, 0, literal \
	}
/* Hop-by-hop by definition (RFC 9110 section 7.6.1); and Proxy, which would
 * become an app's HTTP_PROXY, and HTTP2-Settings, which goes with h2c. */
#define HOP(literal)                                          \
	{                                                     \
		sizeof(literal) - 1, HEADER_FLAG_HOP, literal \
	}

static const struct known names[HEADER_ID_COUNT] = {
	[HEADER_ACCEPT] = NAME("Accept"),
	[HEADER_ACCEPT_ENCODING] = NAME("Accept-Encoding"),
	[HEADER_ALT_SVC] = NAME("Alt-Svc"),
	[HEADER_AUTHORIZATION] = NAME("Authorization"),
	[HEADER_CACHE_CONTROL] = NAME("Cache-Control"),
	[HEADER_CONNECTION] = HOP("Connection"),
	[HEADER_CONTENT_ENCODING] = NAME("Content-Encoding"),
	[HEADER_CONTENT_LENGTH] = NAME("Content-Length"),
	[HEADER_CONTENT_TYPE] = NAME("Content-Type"),
	[HEADER_COOKIE] = NAME("Cookie"),
	[HEADER_DATE] = NAME("Date"),
	[HEADER_ETAG] = NAME("ETag"),
	[HEADER_EXPECT] = NAME("Expect"),
	[HEADER_EXPIRES] = NAME("Expires"),
	[HEADER_FORWARDED] = NAME("Forwarded"),
	[HEADER_HOST] = NAME("Host"),
	[HEADER_HTTP2_SETTINGS] = HOP("HTTP2-Settings"),
	[HEADER_IF_MATCH] = NAME("If-Match"),
	[HEADER_IF_MODIFIED_SINCE] = NAME("If-Modified-Since"),
	[HEADER_IF_NONE_MATCH] = NAME("If-None-Match"),
	[HEADER_IF_RANGE] = NAME("If-Range"),
	[HEADER_IF_UNMODIFIED_SINCE] = NAME("If-Unmodified-Since"),
	[HEADER_KEEP_ALIVE] = HOP("Keep-Alive"),
	[HEADER_LAST_MODIFIED] = NAME("Last-Modified"),
	[HEADER_LOCATION] = NAME("Location"),
	[HEADER_MAX_FORWARDS] = NAME("Max-Forwards"),
	[HEADER_ORIGIN] = NAME("Origin"),
	[HEADER_PRAGMA] = NAME("Pragma"),
	[HEADER_PROXY] = HOP("Proxy"),
	[HEADER_PROXY_AUTHENTICATE] = HOP("Proxy-Authenticate"),
	[HEADER_PROXY_AUTHORIZATION] = HOP("Proxy-Authorization"),
	[HEADER_PROXY_CONNECTION] = HOP("Proxy-Connection"),
	[HEADER_RANGE] = NAME("Range"),
	[HEADER_REFERER] = NAME("Referer"),
	[HEADER_RETRY_AFTER] = NAME("Retry-After"),
	[HEADER_SEC_WEBSOCKET_KEY] = NAME("Sec-WebSocket-Key"),
	[HEADER_SERVER] = NAME("Server"),
	[HEADER_SET_COOKIE] = NAME("Set-Cookie"),
	[HEADER_STATUS] = NAME("Status"),
	[HEADER_TE] = HOP("TE"),
	[HEADER_TRAILER] = HOP("Trailer"),
	[HEADER_TRANSFER_ENCODING] = HOP("Transfer-Encoding"),
	[HEADER_UPGRADE] = HOP("Upgrade"),
	[HEADER_USER_AGENT] = NAME("User-Agent"),
	[HEADER_VARY] = NAME("Vary"),
	[HEADER_VIA] = NAME("Via"),
	[HEADER_X_ACCEL_BUFFERING] = NAME("X-Accel-Buffering"),
	[HEADER_X_FORWARDED_FOR] = NAME("X-Forwarded-For"),
	[HEADER_X_FORWARDED_HOST] = NAME("X-Forwarded-Host"),
	[HEADER_X_FORWARDED_PORT] = NAME("X-Forwarded-Port"),
	[HEADER_X_FORWARDED_PREFIX] = NAME("X-Forwarded-Prefix"),
	[HEADER_X_FORWARDED_PROTO] = NAME("X-Forwarded-Proto"),
	[HEADER_X_REAL_IP] = NAME("X-Real-IP"),
	[HEADER_X_REQUEST_ID] = NAME("X-Request-Id"),
};

/* Found by proxy/http/header_slots.py; test_http.c looks up every name. */
#define SLOTS 256
#define SLOT(len, first, last, inner) \
	(((len)*47 + (first)*42 + (last)*30 + (inner)*51) % SLOTS)

static const uint8_t slots[SLOTS] = {
	[13] = HEADER_IF_RANGE,
	[21] = HEADER_CONNECTION,
	[22] = HEADER_DATE,
	[25] = HEADER_COOKIE,
	[28] = HEADER_CONTENT_LENGTH,
	[31] = HEADER_ORIGIN,
	[33] = HEADER_X_FORWARDED_HOST,
	[35] = HEADER_TRANSFER_ENCODING,
	[42] = HEADER_CONTENT_ENCODING,
	[49] = HEADER_LOCATION,
	[50] = HEADER_VIA,
	[52] = HEADER_RETRY_AFTER,
	[58] = HEADER_FORWARDED,
	[61] = HEADER_UPGRADE,
	[70] = HEADER_IF_UNMODIFIED_SINCE,
	[74] = HEADER_SEC_WEBSOCKET_KEY,
	[77] = HEADER_HOST,
	[78] = HEADER_AUTHORIZATION,
	[79] = HEADER_ALT_SVC,
	[81] = HEADER_PROXY_CONNECTION,
	[88] = HEADER_TE,
	[97] = HEADER_PROXY,
	[98] = HEADER_X_REAL_IP,
	[102] = HEADER_CACHE_CONTROL,
	[115] = HEADER_SERVER,
	[116] = HEADER_EXPIRES,
	[117] = HEADER_SET_COOKIE,
	[120] = HEADER_REFERER,
	[124] = HEADER_MAX_FORWARDS,
	[134] = HEADER_IF_NONE_MATCH,
	[135] = HEADER_X_REQUEST_ID,
	[138] = HEADER_USER_AGENT,
	[143] = HEADER_PRAGMA,
	[152] = HEADER_CONTENT_TYPE,
	[155] = HEADER_IF_MATCH,
	[160] = HEADER_PROXY_AUTHENTICATE,
	[161] = HEADER_HTTP2_SETTINGS,
	[167] = HEADER_ACCEPT_ENCODING,
	[179] = HEADER_ETAG,
	[188] = HEADER_KEEP_ALIVE,
	[193] = HEADER_STATUS,
	[203] = HEADER_X_ACCEL_BUFFERING,
	[204] = HEADER_TRAILER,
	[222] = HEADER_PROXY_AUTHORIZATION,
	[232] = HEADER_IF_MODIFIED_SINCE,
	[234] = HEADER_X_FORWARDED_FOR,
	[236] = HEADER_ACCEPT,
	[237] = HEADER_X_FORWARDED_PROTO,
	[238] = HEADER_X_FORWARDED_PORT,
	[242] = HEADER_LAST_MODIFIED,
	[249] = HEADER_X_FORWARDED_PREFIX,
	[250] = HEADER_RANGE,
	[252] = HEADER_VARY,
	[253] = HEADER_EXPECT,
};

/* A client must not be able to take these away by naming them in Connection:
 * they are meant for the app, or said by a proxy in front of us. */
static const bool is_kept[HEADER_ID_COUNT] = {
	[HEADER_AUTHORIZATION] = true,
	[HEADER_CACHE_CONTROL] = true,
	[HEADER_CONTENT_ENCODING] = true,
	[HEADER_CONTENT_LENGTH] = true,
	[HEADER_CONTENT_TYPE] = true,
	[HEADER_COOKIE] = true,
	[HEADER_DATE] = true,
	[HEADER_EXPECT] = true,
	[HEADER_FORWARDED] = true,
	[HEADER_HOST] = true,
	[HEADER_ORIGIN] = true,
	[HEADER_SET_COOKIE] = true,
	[HEADER_STATUS] = true,
	[HEADER_VARY] = true,
	[HEADER_X_FORWARDED_FOR] = true,
	[HEADER_X_FORWARDED_HOST] = true,
	[HEADER_X_FORWARDED_PORT] = true,
	[HEADER_X_FORWARDED_PREFIX] = true,
	[HEADER_X_FORWARDED_PROTO] = true,
	[HEADER_X_REAL_IP] = true,
	[HEADER_X_REQUEST_ID] = true,
};

void
header_table_reset(struct header_table *table)
{
	table->count = 0;
	memset(table->first, 0, sizeof(table->first));
}

/* Is x the same text as y without case? Only letters have bit 0x40 in the
 * known names, and only letters may differ in bit 0x20. */
static inline bool
is_same8(const char *x, const char *y)
{
	uint64_t a, b;

	memcpy(&a, x, 8);
	memcpy(&b, y, 8);
	return ((a ^ b) & ~((b >> 1) & UINT64_C(0x2020202020202020))) == 0;
}

static inline bool
is_same4(const char *x, const char *y)
{
	uint32_t a, b;

	memcpy(&a, x, 4);
	memcpy(&b, y, 4);
	return ((a ^ b) & ~((b >> 1) & UINT32_C(0x20202020))) == 0;
}

/* The last word overlaps the one before: never a byte beyond the name. */
static inline bool
is_known(const char *known, const char *name, size_t len)
{
	size_t i = 0;

	if (LIKELY(len >= 8)) {
		for (; i + 8 < len; i += 8) {
			if (!is_same8(name + i, known + i))
				return false;
		}
		return is_same8(name + len - 8, known + len - 8);
	}
	if (len >= 4)
		return is_same4(name, known) &&
		       is_same4(name + len - 4, known + len - 4);
	return str_eq_nocase(
	    (struct str){ name, len }, (struct str){ known, len });
}

/* Proxy-Anything is between a client and its proxy. */
static inline bool
is_for_proxy(const char *name, size_t len)
{
	return len > 6 && is_same4(name, "proxy-") &&
	       is_same4(name + 2, "oxy-");
}

/* What a client's certificate says is ours to tell. */
static inline bool
is_of_certificate(const char *name, size_t len)
{
	return len > 13 && is_same8(name, "x-ssl-cl") &&
	       is_same8(name + 5, "-client-");
}

unsigned
header_classify(const char *name, size_t len)
{
	unsigned first, last, inner, id;

	if (UNLIKELY(len < 2))
		return HEADER_OTHER;
	first = (unsigned char)name[0] | 0x20u;
	last = (unsigned char)name[len - 1] | 0x20u;
	inner = (unsigned char)name[len - 2] | 0x20u;
	id = slots[SLOT((unsigned)len, first, last, inner)];
	/* An empty slot is HEADER_OTHER, whose name has no length. */
	if (names[id].len == len && is_known(names[id].text, name, len))
		return id | (unsigned)names[id].flags << 8;
	if (UNLIKELY(first == 'p') && is_for_proxy(name, len))
		return HEADER_FLAG_HOP << 8;
	if (UNLIKELY(first == 'x') && is_of_certificate(name, len))
		return HEADER_FLAG_ODD_NAME << 8;
	return HEADER_OTHER;
}

enum header_id
header_lookup(const char *name, size_t len)
{
	return header_classify(name, len) & 0xff;
}

struct str
header_name(enum header_id id)
{
	return (struct str){ names[id].text, names[id].len };
}

int
header_table_add(struct header_table *table, const char *base, uint32_t name,
    uint16_t name_len, uint32_t value, uint32_t value_len)
{
	struct header_field *field = &table->fields[table->count];
	unsigned id;

	if (table->count == HEADER_FIELDS_MAX)
		return -1;
	table->count++;
	field->name = name;
	field->value = value;
	field->value_len = value_len;
	field->name_len = name_len;
	id = header_classify(base + name, name_len);
	field->flags = (uint8_t)(id >> 8);
	field->id = (uint8_t)id;
	id &= 0xff;
	for (size_t i = 0; i < name_len; i++) {
		if (!char_is(base[name + i], CHAR_PLAIN)) {
			field->flags |= HEADER_FLAG_ODD_NAME;
			break;
		}
	}
	if (table->first[id] == 0)
		table->first[id] = (uint8_t)table->count;
	return 0;
}

const struct header_field *
header_next(const struct header_table *table, const struct header_field *field)
{
	const struct header_field *end = table->fields + table->count;
	uint8_t id = field->id;

	while (++field < end) {
		if (field->id == id)
			return field;
	}
	return NULL;
}

bool
header_has_token(const struct header_table *table, const char *base,
    enum header_id id, struct str token)
{
	const struct header_field *field = header_get(table, id);

	for (; field != NULL; field = header_next(table, field)) {
		struct str rest = header_value(base, field), part;

		while (str_split(&rest, ',', &part)) {
			if (str_eq_nocase(str_trim(part), token))
				return true;
		}
	}
	return false;
}

/* A field that Connection names. */
static void
mark_named(struct header_table *table, const char *base, struct str token)
{
	enum header_id id = header_lookup(token.ptr, token.len);

	if (is_kept[id] || (id != HEADER_OTHER && table->first[id] == 0))
		return;
	for (unsigned i = 0; i < table->count; i++) {
		struct header_field *field = &table->fields[i];

		if (field->id != id ||
		    (id == HEADER_OTHER &&
			!str_eq_nocase(token, (struct str){ base + field->name,
						  field->name_len })))
			continue;
		field->flags |= HEADER_FLAG_HOP;
	}
}

static unsigned
read_option(struct header_table *table, const char *base, struct str token)
{
	/* Two of the options are fields too. */
	switch ((unsigned)header_lookup(token.ptr, token.len)) {
	case HEADER_KEEP_ALIVE:
		return HEADER_CONNECTION_KEEP_ALIVE;
	case HEADER_UPGRADE:
		return HEADER_CONNECTION_UPGRADE;
	}
	if (str_eq_nocase(token, STR("close")))
		return HEADER_CONNECTION_CLOSE;
	if (token.len > 0)
		mark_named(table, base, token);
	return 0;
}

unsigned
header_read_connection(struct header_table *table, const char *base)
{
	const struct header_field *field = header_get(table, HEADER_CONNECTION);
	unsigned options = 0, named = 0;

	for (; field != NULL; field = header_next(table, field)) {
		struct str rest = header_value(base, field), part;

		/* What most of them are. */
		if (str_eq(rest, STR("keep-alive"))) {
			options |= HEADER_CONNECTION_KEEP_ALIVE;
			continue;
		}
		while (str_split(&rest, ',', &part)) {
			/* Each costs a walk over the fields. */
			if (++named > HEADER_OPTIONS_MAX)
				return options | HEADER_CONNECTION_TOO_MANY;
			options |= read_option(table, base, str_trim(part));
		}
	}
	return options;
}

void
header_mark_hops(struct header_table *table, const char *base)
{
	(void)header_read_connection(table, base);
}
