/*
 * HTTP/1 message bodies: strict reader of lengths and chunks (RFC 9112
 * section 7.1), and the writer of chunks. Pure functions.
 */
#ifndef HTTP_H1_BODY_H
#define HTTP_H1_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/http/h1_parse.h"
#include "src/base/compiler.h"

/* Longest chunk-size line with extensions, and longest trailer section. */
#define H1_CHUNK_LINE_MAX 4096
#define H1_TRAILER_MAX 8192

/* h1_body.c has more; this one is never left. */
#define H1_BODY_STATE_END 0

struct h1_body {
	enum http_body_kind kind;
	uint8_t state; /* of the chunk reader */
	uint8_t digits;
	bool tells_trailers; /* set by the owner behind h1_body_init */
	bool has_trailer;
	uint32_t line_bytes; /* of the chunk line or trailers so far */
	uint64_t left;       /* of the length, or of this chunk */
	uint64_t seen;       /* body bytes handed out */
};

void h1_body_init(
    struct h1_body *body, enum http_body_kind kind, uint64_t content_length);

enum h1_body_result {
	H1_BODY_MORE, /* all of the input was used */
	H1_BODY_DATA, /* *data, *data_len: a piece; call again with the rest */
	/* The same, of the trailer section and its empty line, if there is a
	 * trailer. Only with `tells_trailers`. */
	H1_BODY_TRAILER,
	H1_BODY_END, /* the body is whole; what is behind *used is not its */
	H1_BODY_BAD,
};

/* Use up input; *used says how much. A piece of data is a view into the input
 * and counts as used. BODY_UNTIL_CLOSE and BODY_TUNNEL never end here: the
 * owner ends them at end-of-file. Chunk extensions are checked and skipped,
 * trailers are checked and
 * dropped, unless somebody wants to be told. H1_BODY_END and H1_BODY_BAD are
 * said again to every later call, with nothing used. */
enum h1_body_result h1_body_read(struct h1_body *body, const char *from,
    size_t len, size_t *used, const char **data, size_t *data_len) MUST_CHECK;

/* Has the last byte been read? For a chunked body: was H1_BODY_END said? */
static inline bool
h1_body_is_done(const struct h1_body *body)
{
	switch (body->kind) {
	case BODY_NONE:
		return true;
	case BODY_LENGTH:
		return body->left == 0;
	case BODY_CHUNKED:
		return body->state == H1_BODY_STATE_END;
	case BODY_UNTIL_CLOSE:
	case BODY_TUNNEL:
		break;
	}
	return false;
}

/* The line before a chunk of `len` > 0 bytes, "1f\r\n": returns its length;
 * `to` has H1_CHUNK_HEAD_MAX bytes. Data and "\r\n" follow; "0\r\n\r\n" is the
 * end. */
#define H1_CHUNK_HEAD_MAX 18
size_t h1_chunk_head(char *to, uint64_t len);

#endif
