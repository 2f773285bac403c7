/*
 * One request on one connection to a peer: the contract between the gateway
 * (one engine) and the two codecs, HTTP/1 and FastCGI.
 * A codec turns a request's head and body into bytes and a peer's bytes into
 * head, body and end. It decides nothing: no retry, no status for the client,
 * no timeouts, no pooling. Only the worker's thread.
 *
 * Order of events after start: [on_inform]* on_head [on_body]* [on_trailers]
 * on_end, or
 * on_failed at any point; exactly one of on_end and on_failed, and nothing
 * after it. Events come from the loop (the uconn forwards its io's callbacks),
 * never from inside start, send, pause, resume or cancel.
 *
 * The gateway may call send, pause, resume and cancel from inside an event; the
 * codec looks at its state again after each event. pause holds back on_head,
 * on_body and on_inform; on_end comes while paused if no body byte is left.
 * After on_end, on_failed or cancel the exchange (and its state) is given back
 * through worker_defer only, and never used again: a retry takes a new one.
 */
#ifndef UPSTREAM_EXCHANGE_H
#define UPSTREAM_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/http/h1_parse.h"
#include "src/base/compiler.h"
#include "src/base/str.h"

struct exchange;
struct request;
struct uconn;

/* How the exchange failed, for the decision to try again. */
enum exchange_failure {
	EXCHANGE_CONNECT, /* no connection: nothing was written */
	/* The process died; it had not accepted the connection, or not read
	 * the request to its end. */
	EXCHANGE_UNTAKEN,
	EXCHANGE_CLOSED,    /* ended before the first byte of an answer */
	EXCHANGE_TRUNCATED, /* ended or broke inside the answer */
	EXCHANGE_MALFORMED, /* what came is no valid answer: 502 */
	EXCHANGE_TOO_LARGE, /* its head is over the limit: 502 */
	EXCHANGE_REFUSED,   /* the request cannot be put into this protocol */
};

/* How large the request's body is, as far as the gateway knows at start. */
struct exchange_body {
	enum http_body_kind kind; /* CHUNKED: length not known */
	uint64_t length;
};

/* What the gateway is told. `owner` is exchange->owner. */
struct exchange_events {
	/* An informational answer that may be passed on (103). */
	void (*on_inform)(struct exchange *exchange,
	    const struct h1_response *head, const char *base);
	/* The final head. Its table and base are borrowed until on_head
	 * returns. `head->body` says how the body is delimited for this request
	 * (HEAD, 204 and 304 have none). Hop-by-hop fields are marked. */
	void (*on_head)(struct exchange *exchange,
	    const struct h1_response *head, const char *base);
	/* Body bytes, borrowed. After exchange_ops.pause no more come, except
	 * the rest of what this read brought is kept by the codec. */
	void (*on_body)(
	    struct exchange *exchange, const char *from, size_t len);
	/* Fields behind a chunked answer's body; borrowed. Only told when the
	 * request's front can pass them on. */
	void (*on_trailers)(struct exchange *exchange,
	    const struct header_table *trailers, const char *base);
	/* All that one read brought was delivered, and more is to come: a good
	 * moment to flush. */
	void (*on_idle)(struct exchange *exchange);
	/* The answer is whole. `reusable`: the uconn is clean for another
	 * request (request body wholly written, peer keeps it open, no bytes
	 * left over). */
	void (*on_end)(struct exchange *exchange, bool reusable);
	/* `why` is static text. The uconn must be closed. */
	void (*on_failed)(struct exchange *exchange,
	    enum exchange_failure failure, const char *why);
	/* Of a tunnel: the peer sends no more, but we may. on_end comes when
	 * both have ended, or when nobody is left there. */
	void (*on_half_closed)(struct exchange *exchange);
	/* After IO_FULL from send: more may be sent. */
	void (*on_writable)(struct exchange *exchange);
	/* A line the app printed to its error stream (FastCGI), without
	 * newline. */
	void (*on_stderr)(
	    struct exchange *exchange, const char *from, size_t len);
};

enum exchange_result {
	EXCHANGE_OK,
	EXCHANGE_FULL, /* taken; stop until on_writable */
	/* The connection is broken. Nothing is reported from inside; on_failed
	 * (or an answer that was already on its way, such as 413) follows from
	 * the loop: stop sending, keep waiting. */
	EXCHANGE_STOPPED,
};

struct exchange_ops {
	const char *name;
	/* The protocol needs the body's length in the head (FastCGI): the
	 * gateway spools a chunked body first. */
	bool needs_length;
	size_t state_bytes; /* of the codec, allocated with the exchange */

	/* Write the head, and with it the first `len` body bytes (one write
	 * when they fit; written or copied on return). `last`: the body is
	 * whole with them. Returns 0, or the status to answer (431, 502) when
	 * the request does not fit the protocol or limits (*why static, nothing
	 * was written). The uconn is up, or connecting: its io queues the
	 * bytes. The gateway has called request_id before. */
	unsigned (*start)(struct exchange *exchange,
	    const struct exchange_body *body, const char *from, size_t len,
	    bool last, const char **why) MUST_CHECK;
	/* In a tunnel (on_head with BODY_TUNNEL) the bytes go as they are, and
	 * `last` shuts down our side after them. */
	enum exchange_result (*send)(struct exchange *exchange,
	    const char *from, size_t len, bool last) MUST_CHECK;
	/* Stop and go on delivering the answer. resume may not deliver from
	 * inside; bytes that were kept are delivered from the loop. */
	void (*pause)(struct exchange *exchange);
	void (*resume)(struct exchange *exchange);
	/* Nobody wants the answer any more. No event follows. The uconn stays
	 * the gateway's, to be closed or left to end (HACKING.md: a freed
	 * connection is not a free process). */
	void (*cancel)(struct exchange *exchange);

	/* The uconn's io, which belongs to the uconn, forwards to these while
	 * an exchange is under way (io.h, struct io_events). */
	void (*readable)(struct exchange *exchange);
	void (*drained)(struct exchange *exchange);
	void (*closed)(struct exchange *exchange, int error);
};

struct exchange {
	const struct exchange_ops *ops;
	const struct exchange_events *events;
	void *owner;
	struct uconn *uconn;           /* borrowed from the gateway */
	const struct request *request; /* head, forwarded, id; read only */
	const struct exchange_target *target;
	/* io->sent_bytes at start: if it is the same, nothing of this request
	 * has left us, and it may be sent again whatever its method. */
	uint64_t sent_before;
	bool sent_all;  /* the request is wholly handed over; in a tunnel, what
			 * the client sends */
	bool got_bytes; /* of an answer */
	void *state;    /* ops->state_bytes, zeroed before start */
};

/* What the gateway resolved for this request; lives in its state. */
struct exchange_target {
	struct str target; /* what to ask for: the original, or rewritten */
	struct str prefix; /* stripped mount prefix, or empty */
	/* FastCGI */
	struct str document_root, script_name, script_filename, path_info;
	uint32_t response_header_bytes; /* limit */
};

extern const struct exchange_ops exchange_http1;
extern const struct exchange_ops exchange_fastcgi;

#endif
