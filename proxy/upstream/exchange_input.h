/*
 * What both codecs do alike with the bytes that a peer sends: one read at a
 * time into one buffer, pauses, and the end of it all.
 * For exchange_http1.c and exchange_fastcgi.c; it looks at no byte.
 */
#ifndef UPSTREAM_EXCHANGE_INPUT_H
#define UPSTREAM_EXCHANGE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "proxy/core/request.h"
#include "proxy/core/worker.h"
#include "proxy/upstream/exchange.h"
#include "src/base/compiler.h"

/* The first member of a codec's state, zeroed like the rest of it. */
struct exchange_input {
	struct buf *buf; /* unread bytes of the answer, or NULL */
	/* What came in pieces. FastCGI: a head, and a line of the error
	 * stream; HTTP/1: the trailers. */
	struct buf *head, *error;
	bool is_bulk; /* the last read filled a buffer: take a larger one */
	bool paused;
	bool kept;     /* bytes in `buf` wait to be delivered, without a read */
	bool at_end;   /* the peer sends nothing more, but we may */
	bool finished; /* nothing more is said */
	bool is_reset; /* the connection was broken by ECONNRESET */
};

static inline struct exchange_input *
exchange_input_of(const struct exchange *exchange)
{
	return exchange->state;
}

static inline struct worker *
exchange_worker(const struct exchange *exchange)
{
	return exchange->request->worker;
}

enum exchange_input_result {
	EXCHANGE_INPUT_NONE,   /* nothing to do now */
	EXCHANGE_INPUT_BYTES,  /* some are in `buf` */
	EXCHANGE_INPUT_END,    /* the peer has closed its side */
	EXCHANGE_INPUT_BROKEN, /* the connection failed */
};
/* exchange_ops.readable's first half: what there is, by one read at most. */
enum exchange_input_result exchange_input_read(
    struct exchange *exchange) MUST_CHECK;

/* Nothing more is said; the buffers go back. */
void exchange_input_finish(struct exchange *exchange);
/* The connection ended before the first byte of an answer: EXCHANGE_CLOSED, or
 * EXCHANGE_UNTAKEN when no process can have seen the whole request. */
enum exchange_failure exchange_input_unanswered(
    const struct exchange *exchange) MUST_CHECK;
/* Why the connection ended: what TLS says of one that failed, or `preset`. */
const char *exchange_input_why(
    const struct exchange *exchange, bool clean, const char *preset);
/* Finish with on_failed. */
void exchange_input_fail(
    struct exchange *exchange, enum exchange_failure failure, const char *why);

/* Of exchange_ops. */
void exchange_input_pause(struct exchange *exchange);
void exchange_input_resume(struct exchange *exchange);
void exchange_input_closed(struct exchange *exchange, int error);

/* One more piece to write; an empty one is left out. */
static inline void
exchange_add_piece(
    struct iovec *pieces, int *count, const void *from, size_t len)
{
	if (len == 0)
		return;
	pieces[*count].iov_base = (void *)(uintptr_t)from;
	pieces[(*count)++].iov_len = len;
}

#endif
