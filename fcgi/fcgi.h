/*
 * FastCGI 1.0, the client's side: records, parameters, replies.
 * No sockets, no HTTP: bytes in, bytes out. Pure functions.
 */
#ifndef FCGI_FCGI_H
#define FCGI_FCGI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/compiler.h"
#include "src/base/str.h"

#define FCGI_HEADER_LEN 8
#define FCGI_CONTENT_MAX 65535

enum fcgi_type {
	FCGI_BEGIN_REQUEST = 1,
	FCGI_ABORT_REQUEST = 2,
	FCGI_END_REQUEST = 3,
	FCGI_PARAMS = 4,
	FCGI_STDIN = 5,
	FCGI_STDOUT = 6,
	FCGI_STDERR = 7,
};

/* A record header into `to` (FCGI_HEADER_LEN bytes), without padding. */
void fcgi_put_header(
    unsigned char *to, enum fcgi_type type, uint16_t id, uint16_t content_len);
/* BEGIN_REQUEST, role responder: 16 bytes; returns that. */
size_t fcgi_put_begin(unsigned char *to, uint16_t id, bool keep);

/* The parameter stream, written into a caller's buffer that holds records:
 * values longer than a record are split over several. */
struct fcgi_params {
	unsigned char *buf;
	size_t room, len;
	size_t limit;  /* of len: what fits into this record; 0 on overflow */
	size_t record; /* offset of the open record's header */
	uint16_t id;
	bool overflow; /* it did not fit: the request is refused with 431 */
};
void fcgi_params_begin(struct fcgi_params *params, unsigned char *buf,
    size_t room, size_t len, uint16_t id);
/* One that is long, or does not fit into this record. */
void fcgi_params_add_long(
    struct fcgi_params *params, struct str name, struct str value);
/* In line, so that the copy of a constant name costs no call. */
static inline void
fcgi_params_add(struct fcgi_params *params, struct str name, struct str value)
{
	size_t end = params->len + 2 + name.len + value.len;
	unsigned char *to = params->buf + params->len;

	if (UNLIKELY(
		name.len > 127 || value.len > 127 || end > params->limit)) {
		fcgi_params_add_long(params, name, value);
		return;
	}
	params->len = end;
	*to++ = (unsigned char)name.len;
	*to++ = (unsigned char)value.len;
	memcpy(to, name.ptr, name.len);
	if (value.len > 0)
		memcpy(to + name.len, value.ptr, value.len);
}
/* A name made of two parts, the second in upper case with '-' as '_':
 * fcgi_params_add_header(p, "user-agent", v) adds HTTP_USER_AGENT. */
void fcgi_params_add_header(
    struct fcgi_params *params, struct str name, struct str value);
/* Closes the last record and adds the empty one that ends the stream. Returns
 * the length used so far, 0 after an overflow. */
size_t fcgi_params_end(struct fcgi_params *params);

/* The reply stream. */
struct fcgi_reply {
	uint16_t id;
	uint8_t state, type; /* fcgi_reply.c's */
	uint8_t have;
	uint8_t padding;
	uint16_t left;
	unsigned char head[FCGI_HEADER_LEN];
	unsigned char end_body[8];
	uint32_t app_status;
	uint8_t protocol_status;
	bool stdout_closed, stderr_closed; /* their empty record came */
	bool ended;
};
void fcgi_reply_init(struct fcgi_reply *reply, uint16_t id);

enum fcgi_reply_result {
	FCGI_REPLY_MORE,
	FCGI_REPLY_STDOUT, /* *data, *data_len; call again with the rest */
	FCGI_REPLY_STDERR, /* the same */
	FCGI_REPLY_END,    /* END_REQUEST came; app_status, protocol_status */
	FCGI_REPLY_BAD,    /* version, foreign id, unknown type, bad length, or
			    * bytes in a stream that had been closed */
};
/* Use up input; *used says how much. Padding is skipped; an END_REQUEST that
 * says anything but REQUEST_COMPLETE is END with protocol_status set. END comes
 * when the padding behind that record has come too; what is behind *used is
 * not this reply's. END and BAD are said again to every later call. */
enum fcgi_reply_result fcgi_reply_read(struct fcgi_reply *reply,
    const unsigned char *from, size_t len, size_t *used,
    const unsigned char **data, size_t *data_len) MUST_CHECK;

#endif
