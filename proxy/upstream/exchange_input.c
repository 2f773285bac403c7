/*
 * The peer's bytes on their way to a codec.
 * Between the uconn's io and exchange_http1.c or exchange_fastcgi.c.
 * Knows neither protocol.
 */
#include "proxy/upstream/exchange_input.h"

#include <errno.h>

#include "proxy/core/io.h"
#include "proxy/core/tls_io.h"
#include "proxy/upstream/peer.h"
#include "proxy/upstream/uconn.h"

enum exchange_input_result
exchange_input_read(struct exchange *exchange)
{
	struct exchange_input *input = exchange_input_of(exchange);
	struct io *io = &exchange->uconn->io;
	struct buf *buf;
	ssize_t n;

	if (input->finished || input->at_end)
		return EXCHANGE_INPUT_NONE;
	if (input->paused) {
		io_read_pause(io);
		return EXCHANGE_INPUT_NONE;
	}
	if (input->buf == NULL)
		input->buf = UNLIKELY(input->is_bulk)
				 ? buf_get_bulk(exchange_worker(exchange))
				 : buf_get(exchange_worker(exchange));
	if (input->kept) {
		input->kept = false;
		return EXCHANGE_INPUT_BYTES;
	}
	buf = input->buf;
	n = io_read(io, buf->bytes + buf->end, buf->room - buf->end);
	if (LIKELY(n > 0)) {
		exchange->got_bytes = true;
		input->is_bulk = n >= BUF_BYTES;
		buf->end += (uint32_t)n;
		return EXCHANGE_INPUT_BYTES;
	}
	if (n == IO_BROKEN)
		input->is_reset |= errno == ECONNRESET;
	if (n != IO_AGAIN)
		return n == IO_EOF ? EXCHANGE_INPUT_END : EXCHANGE_INPUT_BROKEN;
	if (buf->start == buf->end)
		buf_put(exchange_worker(exchange), &input->buf);
	return EXCHANGE_INPUT_NONE;
}

void
exchange_input_finish(struct exchange *exchange)
{
	struct exchange_input *input = exchange_input_of(exchange);
	struct worker *worker = exchange_worker(exchange);

	input->finished = true;
	buf_put(worker, &input->buf);
	buf_put(worker, &input->head);
	buf_put(worker, &input->error);
}

enum exchange_failure
exchange_input_unanswered(const struct exchange *exchange)
{
	const struct peer *peer = exchange->uconn->peer;
	const struct h1_request *head = &exchange->request->head;

	/* Whoever dies leaves a plain end, but a reset where something of ours
	 * lies unread: of a request without a body that is its end, and of one
	 * in the backlog all of it. With TCP a process may also reset what it
	 * has read. */
	if (exchange_input_of(exchange)->is_reset && peer->instance != 0 &&
	    (head->body == BODY_NONE ||
		(head->body == BODY_LENGTH && head->content_length == 0)) &&
	    (peer->addr.u.sa.sa_family == AF_UNIX ||
		http_method_is_idempotent(head->method)))
		return EXCHANGE_UNTAKEN;
	return EXCHANGE_CLOSED;
}

const char *
exchange_input_why(
    const struct exchange *exchange, bool clean, const char *preset)
{
	const struct tls *tls = tls_of(&exchange->uconn->io);

	return clean || tls == NULL ? preset : tls_why(tls, preset);
}

void
exchange_input_fail(
    struct exchange *exchange, enum exchange_failure failure, const char *why)
{
	exchange_input_finish(exchange);
	exchange->events->on_failed(exchange, failure, why);
}

void
exchange_input_pause(struct exchange *exchange)
{
	exchange_input_of(exchange)->paused = true;
	/* Who is slow gets little more than what he may have anyway. */
	exchange_input_of(exchange)->is_bulk = false;
	io_read_pause(&exchange->uconn->io);
}

void
exchange_input_resume(struct exchange *exchange)
{
	struct exchange_input *input = exchange_input_of(exchange);

	if (!input->paused || input->finished)
		return;
	input->paused = false;
	if (UNLIKELY(input->at_end))
		return;
	io_read_start(&exchange->uconn->io);
	/* Also without kept bytes: the peer may have closed meanwhile. */
	io_wake(&exchange->uconn->io);
}

void
exchange_input_closed(struct exchange *exchange, int error)
{
	exchange_input_of(exchange)->is_reset |= error == ECONNRESET;
	/* An answer may have come before; reading tells. A pause ends first. */
	if (!exchange_input_of(exchange)->finished)
		io_wake(&exchange->uconn->io);
}
