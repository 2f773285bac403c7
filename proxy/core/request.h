/*
 * One exchange with a client, whatever protocol it came by.
 * Made by the front when the head is whole; from there nobody knows the
 * protocol. The front talks down with request_*, the handler talks up with
 * response_* (response.h). Only the worker's thread.
 *
 * Life: request_new -> request_dispatch -> [request_body ...] -> exactly one of
 *   - the handler calls response_end: the front sees front_ops.end, writes what
 *     is left and calls request_free;
 *   - the handler calls response_abort: front_ops.abort, connection is cut (h1)
 * or stream reset (h2), request_free;
 *   - the client goes away or breaks the protocol inside its body: the front
 *     calls request_abort: the handler's on_abort runs and must drop every
 *     pointer to the request; then an error answer if there can be one.
 * request_free is the front's alone and logs the request. Called inside
 * request_dispatch, _body, _writable or _abort it only marks the request; the
 * outermost of these releases the memory, so that they may look at it after
 * a handler has ended it. front_ops.end, abort and fixed never dispatch the
 * next request of a connection from inside: the front goes on after
 * request_dispatch has returned, or from the loop (io_wake).
 */
#ifndef CORE_REQUEST_H
#define CORE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/core/handler.h"
#include "proxy/core/worker.h"
#include "proxy/http/forwarded.h"
#include "proxy/http/h1_parse.h"
#include "src/base/addr.h"
#include "src/base/compiler.h"
#include "src/base/str.h"

struct request;
struct response_fixed;
struct response_head;
struct route;
struct site;
struct snapshot;
struct snapshot_listener;
struct tls;

enum response_result {
	RESPONSE_OK,
	RESPONSE_FULL, /* taken; stop until handler_ops.on_writable */
	/* The client is gone. on_abort follows, once, from the loop and is the
	 * end of it; until then every response_* call does nothing and says
	 * GONE. */
	RESPONSE_GONE,
};

/* The client's side, called through response.h. Never calls back into the
 * handler from inside (on_writable and on_abort come from the loop). */
struct front_ops {
	const char *name; /* "HTTP/1.1", "HTTP/2.0": for the access log */
	/* Begin the answer. Nothing need be written before flush or end. */
	enum response_result (*start)(
	    struct request *request, const struct response_head *head);
	enum response_result (*write)(
	    struct request *request, const char *from, size_t len);
	/* Fields behind the body, before `end`; borrowed. NULL: there is no
	 * place for them. */
	void (*trailers)(struct request *request,
	    const struct header_table *trailers, const char *base);
	/* Let what was written so far go now. */
	enum response_result (*flush)(struct request *request);
	/* The answer is whole. The request may be freed inside. */
	void (*end)(struct request *request);
	/* It cannot be completed: make that visible. May free the request. */
	void (*abort)(struct request *request);
	/* A whole answer made beforehand (of the request's snapshot); ends the
	 * request as `end` does. The body is not sent for HEAD. */
	void (*fixed)(
	    struct request *request, const struct response_fixed *fixed);
	/* The handler can take body bytes again, after on_body took fewer than
	 * it was given. Never delivers from inside: the front goes on from the
	 * loop. */
	void (*body_resume)(struct request *request);
	/* The body will be read: answer Expect: 100-continue now if asked.
	 * Never delivers from inside; bytes that came with the head follow
	 * right after request_dispatch has returned. Does nothing when
	 * body_is_whole. */
	void (*body_wanted)(struct request *request);
	/* An informational answer (103) that came from the app, or NULL. */
	void (*inform)(
	    struct request *request, const struct response_head *head);
	/* Of a tunnel: we send no more after what was written so far; the
	 * client may. */
	void (*shutdown)(struct request *request);
};

/* Microseconds of CLOCK_MONOTONIC, 0: did not happen. Filled only where a log
 * wants them (request->timed). */
struct request_times {
	int64_t start_us;      /* head whole */
	int64_t queued_us;     /* began to wait for a peer */
	int64_t taken_us;      /* got a connection */
	int64_t connected_us;  /* a fresh one was up */
	int64_t first_byte_us; /* of the answer */
	int64_t end_us;
};

#define REQUEST_ID_LEN 32
#define REQUEST_SMALL_BYTES 128

struct request {
	struct worker *worker;
	const struct front_ops *front;
	void *front_state;
	const struct handler_ops *handler; /* who took it, else NULL */
	void *handler_state;
	struct snapshot *snapshot; /* held */
	const struct snapshot_listener *listener;
	const struct tls *tls; /* of the client's connection; NULL: plain */
	const struct site *site;
	const struct route *route;
	unsigned next_action; /* of the route: where DECLINED goes on */

	/* The head. `base` is its first byte; it may move to a larger buffer
	 * only before dispatch. Valid until request_free. */
	const char *base;
	struct str method, target;
	struct str host; /* lower case, no port; in scratch or base */
	struct str path; /* normalised */

	/* Body. */
	uint64_t body_seen; /* bytes given to the handler or dropped */
	bool
	    body_is_whole; /* the last byte was given, or there is no body (then
			    * so from the start, and no on_body ever comes) */
	bool
	    body_refused; /* nobody wants the rest: the front drops or closes */

	/* Answer, kept by response.c for logs and for the front. */
	unsigned status;     /* 0: no head yet */
	uint64_t bytes_sent; /* of the body */
	bool is_begun;       /* dispatched or refused: counted and logged */
	bool is_ended;
	bool is_tunnel; /* a head with `tunnel` was sent: body and answer are
			 * now what the client and the app say to each other */
	bool is_gone;   /* RESPONSE_GONE was said; on_abort is owed */
	bool is_freed;  /* by request_free, while `depth` > 0 */
	uint8_t depth;  /* calls of this file under way */
	bool timed;
	struct request_times times;
	/* Set by the gateway for the access log; static or snapshot memory. */
	const char *upstream_name;
	uint64_t upstream_instance;
	uint32_t upstream_pid;
	unsigned tries;
	const char *why; /* static: why it failed or was cut, or NULL */

	unsigned small_used;
	struct buf *scratch; /* request_scratch's */

	/* request_new zeroes nothing from here on (of id its first byte). */
	char id[REQUEST_ID_LEN + 1];     /* made at first use: request_id() */
	struct addr peer;                /* the connection's other end */
	struct forwarded forwarded;      /* the client after the trust walk */
	char small[REQUEST_SMALL_BYTES]; /* request.c: scratch of short ones */
	struct h1_request head;
};

/* Does an app want to know what the client's certificate says? */
bool request_shows_client(const struct request *request);
/* The site's fields for answers over TLS. */
struct str request_secure_lines(const struct request *request);

/* A request with empty fields, head not initialised; holds the worker's current
 * snapshot. The front sets listener, tls and peer, parses into head, sets base.
 */
struct request *request_new(
    struct worker *worker, const struct front_ops *front, void *front_state);
/* Log, count, release. Front only. */
void request_free(struct request **request);

/* Set method/target from the parsed head and find site, route and action.
 * Calls handlers until one takes it; answers 400, 404, 405, 413 itself. Returns
 * true when the request is still open, false when it was ended (and freed). */
bool request_dispatch(struct request *request);

/* Body bytes came. Returns how many were taken; fewer than `len` (PAUSE): keep
 * the rest and stop reading until front_ops.body_resume. `last`: these are
 * the final bytes (len may be 0: always taken). The request may be ended
 * inside; the front checks its own state. Over the route's limit it does
 * request_abort(413). */
size_t request_body(
    struct request *request, const char *from, size_t len, bool last);
/* The client can take more (after RESPONSE_FULL). */
void request_writable(struct request *request);
/* The client is gone (`status` 0), or its body must be refused (400 framing,
 * 408 too slow, 413 too large): the handler's on_abort runs first, always.
 * Then, if `status` is not 0 and no head went out, that error is answered, else
 * front_ops.abort. `why`: static text. */
void request_abort(struct request *request, unsigned status, const char *why);
/* Instead of request_dispatch: the head itself was refused (400, 408, 414, 431,
 * 501, 505). Site, route, method and target may be empty. */
void request_refuse(struct request *request, unsigned status, const char *why);

/* The head's `len` bytes have been copied to `base`, and will be found there
 * from now on; for a front that needs its buffer. No handler may hold a text of
 * them. */
void request_move(struct request *request, const char *base, size_t len);

/* A piece of memory that lives as long as the request, or NULL when its one
 * scratch buffer (BUF_BYTES) is used up. */
char *request_scratch(struct request *request, size_t bytes);
/* The request's id: 32 hex digits. From X-Request-Id of a trusted peer if that
 * is 1-64 bytes of [A-Za-z0-9._-] and fits, else random. */
struct str request_id(struct request *request);

#endif
