/*
 * A request's head that came in HTTP/2 fields, made the same thing that an
 * HTTP/1 head is parsed to. Strict (RFC 9113 section 8.2 and 8.3).
 * Pure functions: no session, no stream, no memory of its own.
 */
#ifndef FRONT_H2_HEAD_H
#define FRONT_H2_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "proxy/http/h1_parse.h"
#include "src/base/compiler.h"
#include "src/base/str.h"

/* A field may have a name and a value of so many bytes more than the limits
 * allow before its sender is cut off (h2_head_is_bomb). */
#define H2_HEAD_BOMB_FACTOR 4
/* What h2_head_end adds at most beside what it copies. */
#define H2_HEAD_END_BYTES 128

struct h2_piece {
	uint32_t at, len;
};

enum {
	H2_SEEN_METHOD = 1,
	H2_SEEN_SCHEME = 2,
	H2_SEEN_AUTHORITY = 4,
	H2_SEEN_PATH = 8,
	H2_SEEN_PROTOCOL = 16
};

/* RFC 9218 section 4. */
struct h2_priority {
	uint8_t urgency; /* 0 (first) to 7 */
	bool incremental;
	bool is_given; /* the client said something of it */
};

/* One head on its way. */
struct h2_head {
	struct h1_request *request; /* being filled */
	const struct h1_limits *limits;
	char *base; /* the caller's; offsets count from here */
	uint32_t end, room;
	uint32_t list_bytes; /* RFC 9113 section 6.5.2 */
	uint32_t count;      /* of all fields */
	uint32_t cookie_bytes;
	struct h2_piece method, scheme, authority, path, protocol;
	uint8_t n_cookies; /* counts no further than 2 */
	uint8_t seen;      /* pseudo fields: H2_SEEN_... */
	bool has_fields;   /* ordinary ones: no pseudo field may follow */
	bool is_too_large; /* nothing more is kept: 431 */
	struct h2_priority priority;
	const char *wrong; /* why it is malformed, or NULL */
};

/* `base` may move (h2_head_move) until the request is dispatched. */
void h2_head_init(struct h2_head *head, struct h1_request *request,
    const struct h1_limits *limits, char *base, uint32_t room);
/* How much room must be behind `end` for h2_head_add of these lengths, or for
 * h2_head_end. */
static inline size_t
h2_head_add_bytes(size_t name_len, size_t value_len)
{
	return name_len + value_len + 4;
}
size_t h2_head_end_bytes(const struct h2_head *head);
/* The bytes were copied to `base`. */
void h2_head_move(struct h2_head *head, char *base, uint32_t room);

/* The next field. What is wrong is remembered for h2_head_end; what is too
 * much is counted and dropped. */
void h2_head_add(struct h2_head *head, struct str name, struct str value);
/* So much more than the limits that no answer is due. */
bool h2_head_is_bomb(const struct h2_head *head);

enum h2_head_result {
	H2_HEAD_GOOD,
	H2_HEAD_MALFORMED, /* a stream error, PROTOCOL_ERROR; *why */
	H2_HEAD_REFUSED,   /* answer *status, *why */
};
/* The head is whole; `ends_stream`: and there is no body. `nonce` are 16 random
 * bytes for the key of a WebSocket (RFC 6455 section 4.1). An extended CONNECT
 * (RFC 8441) for one becomes the GET with head->websocket that HTTP/1 would
 * have; a body of unknown length is BODY_CHUNKED. */
enum h2_head_result h2_head_end(struct h2_head *head, bool ends_stream,
    const uint8_t nonce[16], unsigned *status, const char **why) MUST_CHECK;

/* A field of a trailer section: NULL, or why it is malformed. */
const char *h2_head_check_trailer(struct str name, struct str value);

/* A Priority field's value; unknown and broken members mean nothing. */
void h2_head_read_priority(struct str value, struct h2_priority *priority);

/* ---- between the two files of it ---- */

/* Append text; room was made by the caller. Returns where it is. */
static inline uint32_t
h2_head_put(struct h2_head *head, struct str text)
{
	uint32_t at = head->end;

	if (text.len > 0)
		memcpy(head->base + at, text.ptr, text.len);
	head->end += (uint32_t)text.len;
	return at;
}

static inline struct str
h2_head_view(const struct h2_head *head, struct h2_piece piece)
{
	return (struct str){ head->base + piece.at, piece.len };
}

#endif
