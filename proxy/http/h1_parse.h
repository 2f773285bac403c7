/*
 * HTTP/1 heads: our strict gate first, then http-parser on the same bytes.
 * What the gate refuses never reaches http-parser. Bodies: h1_body.h.
 * Pure functions; the only door to http-parser.
 */
#ifndef HTTP_H1_PARSE_H
#define HTTP_H1_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/http/headers.h"
#include "src/base/compiler.h"

enum http_method {
	METHOD_OTHER, /* a token we have no name for: forwarded as it is */
	METHOD_GET,
	METHOD_HEAD,
	METHOD_POST,
	METHOD_PUT,
	METHOD_DELETE,
	METHOD_OPTIONS,
	METHOD_PATCH,
	METHOD_COUNT
};

/* May be sent again when it is not known whether it was carried out (RFC 9110
 * section 9.2.2). */
bool http_method_is_idempotent(enum http_method method);

enum http_target_form {
	TARGET_ORIGIN,   /* "/path?query" */
	TARGET_ABSOLUTE, /* "http://host/path?query" */
	TARGET_ASTERISK, /* "*", OPTIONS only */
};

enum http_body_kind {
	BODY_NONE,
	BODY_LENGTH,
	BODY_CHUNKED,
	BODY_UNTIL_CLOSE, /* answers only */
};

struct h1_limits {
	uint32_t line_bytes;   /* request line: 414 */
	uint32_t head_bytes;   /* all of it: 431 */
	uint32_t header_count; /* at most HEADER_FIELDS_MAX: 431 */
};

/* A request's head. Pieces are offsets from the head's first byte. */
struct h1_request {
	enum http_method method;
	uint8_t minor; /* HTTP/1.0 or 1.1 */
	enum http_target_form form;
	enum http_body_kind body;
	bool keep_alive;     /* by version and Connection */
	bool expect_continue;
	bool upgrade;        /* Connection: upgrade with an Upgrade field */
	uint32_t method_len; /* the method is at offset `method_at` */
	uint32_t method_at;
	uint32_t target, target_len; /* as it came */
	uint32_t path, path_len;     /* of the target, without query; "/" for
	                              * an empty absolute path has len 0 */
	uint32_t query, query_len;   /* behind '?'; query 0: there is none */
	uint32_t host, host_len;     /* from absolute-form, else from Host */
	uint64_t content_length;     /* BODY_LENGTH */
	struct header_table headers;
};

/* An answer's head. */
struct h1_response {
	uint16_t status;
	uint8_t minor;
	enum http_body_kind body; /* before the request's method is looked at */
	bool keep_alive;
	uint32_t keep_alive_s; /* Keep-Alive: timeout=N, 0: not said */
	uint32_t reason, reason_len;
	uint64_t content_length;
	struct header_table headers;
};

enum h1_result {
	H1_MORE, /* the head is not whole yet */
	H1_DONE, /* it is; *used bytes belong to it */
	H1_BAD,  /* answer *status and close */
};

/* Look at `len` bytes from the start of a head (empty lines before a request
 * line: at most 4 CRLF are skipped, RFC 9112 section 2.2; they count in *used, and
 * all offsets are counted from `from`). `scanned` remembers between calls how far the
 * end was searched for; 0 for a new head. H1_BAD sets *status (400, 414, 431,
 * 501, 505) and *why (static text). Nothing ambiguous is H1_DONE: exactly one
 * valid Host for 1.1 (RFC 9112 section 3.2), one way to know the body (section
 * 6.3), tokens, no obs-fold, no bare CR or LF, no NUL. Connection is resolved and
 * hop-by-hop fields are marked. */
enum h1_result h1_parse_request(const char *from, size_t len,
    const struct h1_limits *limits, size_t *scanned, struct h1_request *request,
    size_t *used, unsigned *status, const char **why) MUST_CHECK;

/* The same for an answer. 1xx heads are answers of their own. H1_BAD: *why. */
enum h1_result h1_parse_response(const char *from, size_t len,
    const struct h1_limits *limits, size_t *scanned,
    struct h1_response *response, size_t *used, const char **why) MUST_CHECK;

/* A CGI answer's head (RFC 3875 section 6.3): fields without a status line;
 * "Status: 404 Not Found" or Location decide, else 200. LF alone ends a line
 * here, as CGI programs write it. Status never stays among the fields
 * (HEADER_FLAG_HOP is set on it). */
enum h1_result h1_parse_cgi(const char *from, size_t len,
    const struct h1_limits *limits, size_t *scanned,
    struct h1_response *response, size_t *used, const char **why) MUST_CHECK;

#endif
