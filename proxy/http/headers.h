/*
 * The head of a message: a table of offsets into the bytes it came in.
 * Filled by h1_parse (and the HTTP/2 front), read by everybody.
 * No sockets, no memory of its own.
 */
#ifndef HTTP_HEADERS_H
#define HTTP_HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/str.h"

/* Fields that some part of the proxy asks for by number. HEADER_OTHER: all
 * the rest. The order is alphabetical; headers.c holds the names. */
enum header_id {
	HEADER_OTHER,
	HEADER_ACCEPT,
	HEADER_ACCEPT_ENCODING,
	HEADER_ALT_SVC,
	HEADER_AUTHORIZATION,
	HEADER_CACHE_CONTROL,
	HEADER_CONNECTION,
	HEADER_CONTENT_ENCODING,
	HEADER_CONTENT_LENGTH,
	HEADER_CONTENT_TYPE,
	HEADER_COOKIE,
	HEADER_DATE,
	HEADER_ETAG,
	HEADER_EXPECT,
	HEADER_EXPIRES,
	HEADER_FORWARDED,
	HEADER_HOST,
	HEADER_HTTP2_SETTINGS,
	HEADER_IF_MATCH,
	HEADER_IF_MODIFIED_SINCE,
	HEADER_IF_NONE_MATCH,
	HEADER_IF_RANGE,
	HEADER_IF_UNMODIFIED_SINCE,
	HEADER_KEEP_ALIVE,
	HEADER_LAST_MODIFIED,
	HEADER_LOCATION,
	HEADER_MAX_FORWARDS,
	HEADER_ORIGIN,
	HEADER_PRAGMA,
	HEADER_PROXY,
	HEADER_PROXY_AUTHENTICATE,
	HEADER_PROXY_AUTHORIZATION,
	HEADER_PROXY_CONNECTION,
	HEADER_RANGE,
	HEADER_REFERER,
	HEADER_RETRY_AFTER,
	HEADER_SEC_WEBSOCKET_KEY,
	HEADER_SERVER,
	HEADER_SET_COOKIE,
	HEADER_STATUS, /* FastCGI answers */
	HEADER_TE,
	HEADER_TRAILER,
	HEADER_TRANSFER_ENCODING,
	HEADER_UPGRADE,
	HEADER_USER_AGENT,
	HEADER_VARY,
	HEADER_VIA,
	HEADER_X_ACCEL_BUFFERING,
	HEADER_X_FORWARDED_FOR,
	HEADER_X_FORWARDED_HOST,
	HEADER_X_FORWARDED_PORT,
	HEADER_X_FORWARDED_PREFIX,
	HEADER_X_FORWARDED_PROTO,
	HEADER_X_REAL_IP,
	HEADER_X_REQUEST_ID,
	HEADER_ID_COUNT
};

/* 16 bytes. Offsets count from the start of the head, so that moving it to a
 * larger buffer costs nothing. */
struct header_field {
	uint32_t name, value;
	uint32_t value_len;
	uint16_t name_len;
	uint8_t id;
	uint8_t flags; /* HEADER_FLAG_... */
};

/* The name has bytes outside letters, digits and '-': never sent to an app,
 * because CGI-like names could not tell it from another field. Or it begins
 * with X-SSL-Client-: nobody but us says that to an app. */
#define HEADER_FLAG_ODD_NAME 1u
/* Named by a Connection field, or hop-by-hop by definition. */
#define HEADER_FLAG_HOP 2u

#define HEADER_FIELDS_MAX 128

struct header_table {
	uint16_t count;
	/* Index + 1 of the first field with that id, 0: none. */
	uint8_t first[HEADER_ID_COUNT];
	struct header_field fields[HEADER_FIELDS_MAX];
};

/* Empties the table (only its front part is touched). */
void header_table_reset(struct header_table *table);
/* Append a field; its id and flags are found here (HOP only for what is
 * hop-by-hop by definition). -1 when it is full. */
int header_table_add(struct header_table *table, const char *base,
    uint32_t name, uint16_t name_len, uint32_t value,
    uint32_t value_len) MUST_CHECK;
/* The id of a name (any case), HEADER_OTHER if unknown. Perfect hash, then
 * verified. */
enum header_id header_lookup(const char *name, size_t len);
/* The id, and what of its flags is known from the name alone << 8. */
unsigned header_classify(const char *name, size_t len);
/* The canonical spelling of a known id. */
struct str header_name(enum header_id id);

static inline bool
header_has(const struct header_table *table, enum header_id id)
{
	return table->first[id] != 0;
}
/* The first field with that id, or NULL. */
static inline const struct header_field *
header_get(const struct header_table *table, enum header_id id)
{
	return table->first[id] == 0 ? NULL
				     : &table->fields[table->first[id] - 1];
}
/* The next field with the same id behind `field`, or NULL. */
const struct header_field *header_next(
    const struct header_table *table, const struct header_field *field);

static inline struct str
header_value(const char *base, const struct header_field *field)
{
	return (struct str){ base + field->value, field->value_len };
}

/* Is `token` (lower case) in the comma list of any field of that id? Compared
 * without case (RFC 9110 section 5.6.1). */
bool header_has_token(const struct header_table *table, const char *base,
    enum header_id id, struct str token);
/* What Connection says about the connection itself. */
#define HEADER_CONNECTION_CLOSE 1u
#define HEADER_CONNECTION_KEEP_ALIVE 2u
#define HEADER_CONNECTION_UPGRADE 4u
#define HEADER_CONNECTION_TOO_MANY 8u /* options; not all were looked at */

/* Options looked at in all Connection fields together. */
#define HEADER_OPTIONS_MAX 64

/* Read all Connection fields: set HEADER_FLAG_HOP on every field they name, and
 * return HEADER_CONNECTION_... Host, Content-Length, Cookie, X-Forwarded-For
 * and the like (headers.c) stay even when named. Those that are hop-by-hop by
 * definition (Connection, Keep-Alive, Proxy, Proxy-*, TE, Trailer,
 * Transfer-Encoding, Upgrade, HTTP2-Settings; RFC 9110 section 7.6.1) have the
 * flag since they were added. */
unsigned header_read_connection(struct header_table *table, const char *base);
/* The same for a caller that has done with the options. h1_parse does it. */
void header_mark_hops(struct header_table *table, const char *base);

#endif
