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
	/* Answers only, never the parser's word: from here on both sides send
	 * what they like (RFC 9110 section 7.8). */
	BODY_TUNNEL,
};

/* A head can be no larger, whatever the limits say: http-parser's own limit,
 * which it keeps in a global, is a little above. */
#define H1_HEAD_MAX 80000
/* Empty lines taken before a request line. */
#define H1_EMPTY_LINES_MAX 4
/* The largest Content-Length, and the largest chunk: it fits an off_t. */
#define H1_LENGTH_MAX INT64_MAX

struct h1_limits {
	uint32_t line_bytes;   /* request line: 414 */
	uint32_t head_bytes;   /* all of it: 431 */
	uint32_t header_count; /* at most HEADER_FIELDS_MAX: 431 */
};

/* A request's head. All offsets, those in `headers` too, count from the first
 * byte given to h1_parse_request (empty lines before the head included). */
struct h1_request {
	enum http_method method;
	uint8_t minor; /* HTTP/1.0 or 1.1 */
	enum http_target_form form;
	enum http_body_kind body;
	bool keep_alive; /* by version and Connection */
	bool expect_continue;
	bool websocket;      /* asks for one: GET without a body, Connection
			      * lists upgrade, Upgrade lists websocket */
	uint32_t method_len; /* the method is at offset `method_at` */
	uint32_t method_at;
	uint32_t target, target_len; /* as it came */
	uint32_t path, path_len;     /* of the target, without query; len 0 for
				      * "http://host": "/" is meant, and "*"
				      * with OPTIONS (RFC 9112 section 3.2.4) */
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
	bool websocket;        /* 101, and nothing but that was chosen */
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
 * line: at most H1_EMPTY_LINES_MAX CRLF are skipped and counted in *used, RFC
 * 9112 section 2.2). `scanned` remembers between calls how far the end was
 * searched for; 0 for a new head, and 0 again after H1_DONE. H1_BAD sets
 **status and *why (static text): 400 everything not named below 414 the request
 *line is longer than line_bytes 417 Expect with anything but 100-continue 431
 *head_bytes, header_count 501 CONNECT and TRACE in any case (nginx answers 405,
 *which would need an Allow field), methods over 32 bytes, "gzip, chunked" and
 *the like 505 a version that is neither 1.0 nor 1.1 What is wrong is said as
 *soon as it has come: a control byte or bare CR at once, a bad request line at
 *its end.
 *
 * Nothing ambiguous is H1_DONE: exactly one valid Host for 1.1 and at most one
 * for 1.0 (RFC 9112 section 3.2), one way to know the body (section 6.3:
 * Content-Length once and a plain number, or Transfer-Encoding once and exactly
 * "chunked", never both, never Transfer-Encoding in 1.0), tokens, no obs-fold,
 *no bare CR or LF, no NUL. Connection is resolved and hop-by-hop fields are
 * marked. Expect and Upgrade of HTTP/1.0 are not seen. */
enum h1_result h1_parse_request(const char *from, size_t len,
    const struct h1_limits *limits, size_t *scanned, struct h1_request *request,
    size_t *used, unsigned *status, const char **why) MUST_CHECK;

/* The same for an answer. 1xx heads are answers of their own. H1_BAD: *why.
 * `body` is BODY_NONE for 1xx, 204 and 304; a 1xx or 204 that announces one is
 * H1_BAD. keep_alive is false for BODY_UNTIL_CLOSE. */
enum h1_result h1_parse_response(const char *from, size_t len,
    const struct h1_limits *limits, size_t *scanned,
    struct h1_response *response, size_t *used, const char **why) MUST_CHECK;

/* A CGI answer's head (RFC 3875 section 6.3): fields without a status line;
 * "Status: 404 Not Found" decides, else Location (302), else 200. LF alone ends
 * a line here, as CGI programs write it. Status never stays among the fields
 * (HEADER_FLAG_HOP is set on it). The body is BODY_LENGTH when Content-Length
 * is there, else BODY_UNTIL_CLOSE: the end of the output; Transfer-Encoding
 * means nothing here and is hop-by-hop as always. minor is 1, keep_alive true.
 * A status below 200 is H1_BAD, and so is a head without a field. */
enum h1_result h1_parse_cgi(const char *from, size_t len,
    const struct h1_limits *limits, size_t *scanned,
    struct h1_response *response, size_t *used, const char **why) MUST_CHECK;

#endif
