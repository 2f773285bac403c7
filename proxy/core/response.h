/*
 * The answer, as handlers see it. Passes through filters (later: compression,
 * cache) to the front. Only the worker's thread.
 */
#ifndef CORE_RESPONSE_H
#define CORE_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/core/request.h"
#include "proxy/http/headers.h"
#include "src/base/compiler.h"
#include "src/base/str.h"

#define RESPONSE_LENGTH_UNKNOWN UINT64_MAX
/* The lines that a route or a handler adds to a head are no longer than this.
 */
#define RESPONSE_LINES_MAX 16384

/* Everything is borrowed until response_start returns. */
struct response_head {
	unsigned status;
	/* Length of the body that will be written; for HEAD and 304 the length
	 * to announce. UNKNOWN: chunked, or until close for HTTP/1.0. */
	uint64_t length;
	/* Fields of an app's answer, or NULL: all without HEADER_FLAG_HOP are
	 * passed on; Content-Length, Date and Server of the app are replaced or
	 * passed by the front, once. */
	const struct header_table *fields;
	const char *base;
	/* Ready-made lines "Name: value\r\n..." put before them. */
	struct str lines;
	/* Latency matters more than whole packets (event streams). */
	bool flush_always;
	/* The app has changed to another protocol (101 to a request whose
	 * head.websocket is set): from now on response_write carries raw bytes
	 * to the client, and on_body what it sends, without any limit of bodies
	 * but with back-pressure; `last` is the client's half-close. The front
	 * writes Connection and Upgrade. */
	bool tunnel;
};

/* Begin. Sends the route's own response fields too. Call once. */
enum response_result response_start(
    struct request *request, const struct response_head *head);
/* Body bytes; HEAD and bodiless statuses drop them here. More than the
 * announced length is a bug of the caller (assert). */
enum response_result response_write(
    struct request *request, const char *from, size_t len);
/* Fields behind the body, before response_end; borrowed. Those that may stand
 * there are passed on where the client's protocol has a place for them and we
 * use it. */
void response_trailers(struct request *request,
    const struct header_table *trailers, const char *base);
/* Let go what is held back. The gateway calls it at the end of each read from
 * the peer; response_end does it by itself. */
enum response_result response_flush(struct request *request);
void response_end(struct request *request);
/* Of a tunnel: nothing more will be written, but on_body goes on. response_end
 * still has to come. */
void response_shutdown(struct request *request);
/* Before a head went out: answers `status` instead (502, 504 ...). After: cuts
 * the connection so that the client sees the body is not whole. */
void response_abort(struct request *request, unsigned status, const char *why);

/* A whole answer by us: a small page with the status, as text, HTML or JSON by
 * Accept. `lines` as in the head ("Retry-After: 5\r\n" or empty), `detail` a
 * sentence for people, or NULL. */
void response_error(struct request *request, unsigned status, struct str lines,
    const char *detail);

struct response_line {
	struct str name, value;
};
/* A whole answer prepared with the snapshot: the cheap path. */
struct response_fixed {
	unsigned status;
	struct str head; /* behind the status line and Date; with empty line */
	/* The same apart, names in lower case; without those that are about a
	 * connection. */
	const struct response_line *lines;
	size_t n_lines;
	struct str body;
};
/* Build one; memory from the arena. */
struct arena;
void response_fixed_make(struct arena *arena, unsigned status, struct str lines,
    const char *type, struct str body, struct response_fixed *fixed);
void response_fixed_send(
    struct request *request, const struct response_fixed *fixed);

/* "Name: value\r\n" of each; memory from the arena. */
struct conf_field;
struct str response_field_lines(
    struct arena *arena, const struct conf_field *fields, size_t n_fields);

#endif
