/*
 * A request and its answer over HTTP/1.1.
 * One of the two codecs below the gateway; its bytes come and go through the
 * uconn's io.
 * Decides nothing: no retry, no status for the client, no timeouts.
 */
#include "proxy/upstream/exchange.h"

#include <string.h>

#include "proxy/core/io.h"
#include "proxy/core/request.h"
#include "proxy/core/worker.h"
#include "proxy/http/h1_body.h"
#include "proxy/http/h1_gate.h"
#include "proxy/http/status.h"
#include "proxy/upstream/exchange_input.h"
#include "proxy/upstream/http1_head.h"
#include "proxy/upstream/uconn.h"

struct http1_state {
	struct exchange_input input;
	size_t scanned;
	struct h1_body body;
	bool sends_chunks;
	bool head_done;
	bool keep_alive;
	bool tunnel; /* no HTTP any more */
};

static struct http1_state *
state_of(const struct exchange *exchange)
{
	return exchange->state;
}

/* ---- sending ---- */

/* A part of the body in its framing; `chunk` has H1_CHUNK_HEAD_MAX bytes. */
static void
add_body(const struct http1_state *state, struct iovec *pieces, int *count,
    char *chunk, const char *from, size_t len, bool last)
{
	if (!state->sends_chunks) {
		exchange_add_piece(pieces, count, from, len);
		return;
	}
	if (len > 0) {
		exchange_add_piece(
		    pieces, count, chunk, h1_chunk_head(chunk, len));
		exchange_add_piece(pieces, count, from, len);
		exchange_add_piece(pieces, count, "\r\n", 2);
	}
	if (last)
		exchange_add_piece(pieces, count, "0\r\n\r\n", 5);
}

static struct buf *
build_head(const struct exchange *exchange, const struct exchange_body *body)
{
	struct worker *worker = exchange_worker(exchange);
	struct buf *buf = buf_get(worker);
	size_t len = http1_head_put(
	    buf->bytes, buf->room, exchange->request, exchange->target, body);

	if (UNLIKELY(len == 0)) {
		buf_put(worker, &buf);
		buf = buf_get_large(worker,
		    http1_head_bound(exchange->request, exchange->target));
		len = http1_head_put(buf->bytes, buf->room, exchange->request,
		    exchange->target, body);
	}
	buf->end = (uint32_t)len;
	return buf;
}

static unsigned
start(struct exchange *exchange, const struct exchange_body *body,
    const char *from, size_t len, bool last, const char **why)
{
	struct http1_state *state = state_of(exchange);
	struct io *io = &exchange->uconn->io;
	char chunk[H1_CHUNK_HEAD_MAX];
	struct iovec pieces[5];
	struct buf *head = build_head(exchange, body);
	int count = 0;

	if (head->end == 0) {
		buf_put(exchange_worker(exchange), &head);
		*why = "the head is too large";
		return 431;
	}
	state->sends_chunks = body->kind == BODY_CHUNKED;
	exchange->sent_before = io->sent_bytes;
	exchange->sent_all = last;
	exchange_add_piece(pieces, &count, head->bytes, head->end);
	add_body(state, pieces, &count, chunk, from, len, last);
	/* A dead connection is told from the loop, after which an answer may
	 * still be there to read. */
	if (io_write(io, pieces, count) == IO_DEAD)
		exchange->sent_all = false;
	buf_put(exchange_worker(exchange), &head);
	return 0;
}

/* The last byte of the tunnel was handed over. The end is told from the loop
 * when it is out. */
static void
send_no_more(struct exchange *exchange)
{
	exchange->sent_all = true;
	io_shutdown(&exchange->uconn->io);
	if (state_of(exchange)->input.at_end)
		io_await_empty(&exchange->uconn->io);
}

static enum exchange_result
send_body(struct exchange *exchange, const char *from, size_t len, bool last)
{
	struct http1_state *state = state_of(exchange);
	char chunk[H1_CHUNK_HEAD_MAX];
	enum io_result written = IO_OK;
	struct iovec pieces[4];
	int count = 0;

	add_body(state, pieces, &count, chunk, from, len, last);
	if (count > 0)
		written = io_write(&exchange->uconn->io, pieces, count);
	if (written == IO_DEAD)
		return EXCHANGE_STOPPED;
	if (UNLIKELY(state->tunnel && last))
		send_no_more(exchange);
	exchange->sent_all = last;
	return written == IO_FULL ? EXCHANGE_FULL : EXCHANGE_OK;
}

/* ---- ends ---- */

static void
end(struct exchange *exchange)
{
	struct http1_state *state = state_of(exchange);
	bool reusable = state->keep_alive && exchange->sent_all &&
			state->input.buf->start == state->input.buf->end &&
			io_is_drained(&exchange->uconn->io) &&
			!exchange->uconn->io.has_more;

	exchange->uconn->is_suspect =
	    exchange->request->head.method == METHOD_HEAD;
	exchange_input_finish(exchange);
	exchange->events->on_end(exchange, reusable);
}

/* Of a tunnel, whose end is no failure: the protocol within has its own. */
static void
end_tunnel(struct exchange *exchange)
{
	exchange_input_finish(exchange);
	exchange->events->on_end(exchange, false);
}

static void
half_close(struct exchange *exchange)
{
	struct http1_state *state = state_of(exchange);

	state->input.at_end = true;
	io_read_end(&exchange->uconn->io);
	if (!exchange->sent_all)
		exchange->events->on_half_closed(exchange);
	else if (io_is_drained(&exchange->uconn->io))
		end_tunnel(exchange);
	else
		io_await_empty(&exchange->uconn->io);
}

/* The peer's bytes are over. */
static void
end_of_input(struct exchange *exchange, bool clean)
{
	struct http1_state *state = state_of(exchange);

	if (state->tunnel && clean && !exchange->uconn->io.broken)
		half_close(exchange);
	else if (state->tunnel)
		end_tunnel(exchange);
	else if (!exchange->got_bytes)
		exchange_input_fail(exchange,
		    exchange_input_unanswered(exchange),
		    exchange_input_why(
			exchange, clean, "closed before it answered"));
	else if (!state->head_done)
		exchange_input_fail(
		    exchange, EXCHANGE_TRUNCATED, "closed inside the head");
	else if (clean && state->body.kind == BODY_UNTIL_CLOSE)
		end(exchange);
	else
		exchange_input_fail(exchange, EXCHANGE_TRUNCATED,
		    exchange_input_why(
			exchange, clean, "closed inside the body"));
}

/* ---- the answer ---- */

/* More room for a head that is not whole; false: it is too large. */
static bool
grow(struct exchange *exchange)
{
	struct http1_state *state = state_of(exchange);
	struct buf *buf = state->input.buf, *larger;
	size_t len = buf->end - buf->start;
	size_t limit = exchange->target->response_header_bytes;

	if (len >= limit)
		return false;
	if (buf->start > 0) {
		memmove(buf->bytes, buf->bytes + buf->start, len);
		buf->start = 0;
		buf->end = (uint32_t)len;
	}
	if (buf->end < buf->room)
		return true;
	larger = buf_get_large(exchange_worker(exchange),
	    2 * (size_t)buf->room < limit ? 2 * (size_t)buf->room : limit);
	memcpy(larger->bytes, buf->bytes, len);
	larger->start = 0;
	larger->end = (uint32_t)len;
	buf_put(exchange_worker(exchange), &state->input.buf);
	state->input.buf = larger;
	return true;
}

static bool
answers_without_body(const struct exchange *exchange, unsigned status)
{
	return exchange->request->head.method == METHOD_HEAD ||
	       !status_has_body(status);
}

/* An interim answer. */
static void
take_inform(
    struct exchange *exchange, const struct h1_response *head, const char *base)
{
	if (head->status == 103)
		exchange->events->on_inform(exchange, head, base);
}

/* RFC 9110 section 7.8: only to what was asked for. */
static void
take_switch(
    struct exchange *exchange, struct h1_response *head, const char *base)
{
	struct http1_state *state = state_of(exchange);

	if (!exchange->request->head.websocket || !head->websocket) {
		exchange_input_fail(exchange, EXCHANGE_MALFORMED,
		    "it switched protocols unasked");
		return;
	}
	head->body = BODY_TUNNEL;
	h1_body_init(&state->body, BODY_TUNNEL, 0);
	state->tunnel = state->head_done = true;
	exchange->sent_all = false;
	io_keep_alive(&exchange->uconn->io);
	exchange->events->on_head(exchange, head, base);
}

static void
take_head(struct exchange *exchange, struct h1_response *head, const char *base)
{
	struct http1_state *state = state_of(exchange);

	if (answers_without_body(exchange, head->status))
		head->body = BODY_NONE;
	h1_body_init(&state->body, head->body, head->content_length);
	state->body.tells_trailers = exchange->request->front->trailers != NULL;
	state->head_done = true;
	state->keep_alive = head->keep_alive && head->body != BODY_UNTIL_CLOSE;
	exchange->uconn->peer_idle_s = head->keep_alive_s;
	exchange->events->on_head(exchange, head, base);
}

/* Heads, until the final one. False: not yet, or it is over. */
static bool
read_head(struct exchange *exchange)
{
	struct http1_state *state = state_of(exchange);
	size_t limit = exchange->target->response_header_bytes;
	struct h1_limits limits = { .line_bytes = (uint32_t)limit,
		.head_bytes = (uint32_t)limit,
		.header_count = HEADER_FIELDS_MAX };
	struct h1_response head;

	while (!state->head_done) {
		struct buf *buf = state->input.buf;
		const char *from = buf->bytes + buf->start;
		size_t len = buf->end - buf->start, used;
		const char *why;

		switch (h1_parse_response(
		    from, len, &limits, &state->scanned, &head, &used, &why)) {
		case H1_MORE:
			if (!grow(exchange))
				exchange_input_fail(exchange,
				    EXCHANGE_TOO_LARGE,
				    "its head is too large");
			return false;
		case H1_BAD:
			exchange_input_fail(exchange,
			    len >= limit ? EXCHANGE_TOO_LARGE
					 : EXCHANGE_MALFORMED,
			    why);
			return false;
		case H1_DONE:
			break;
		}
		buf->start += (uint32_t)used;
		state->scanned = 0;
		if (head.status >= 200)
			take_head(exchange, &head, from);
		else if (UNLIKELY(head.status == 101))
			take_switch(exchange, &head, from);
		else
			take_inform(exchange, &head, from);
		if (state->input.finished)
			return false;
		if (state->input.paused && !state->head_done)
			return false;
	}
	return true;
}

/* H1_TRAILER_MAX is less than a buffer holds. */
static void
keep_trailers(struct exchange *exchange, const char *from, size_t len)
{
	struct http1_state *state = state_of(exchange);

	if (state->input.head == NULL)
		state->input.head = buf_get(exchange_worker(exchange));
	memcpy(state->input.head->bytes + state->input.head->end, from, len);
	state->input.head->end += (uint32_t)len;
}

/* They may be ignored (RFC 9110 section 6.5.1), as those are that cannot be
 * taken for fields. */
static void
tell_trailers(struct exchange *exchange)
{
	struct buf *buf = state_of(exchange)->input.head;
	struct header_table table;
	struct h1_lines lines;
	uint32_t at = 0;

	if (h1_gate_scan(buf->bytes, buf->end, &at, false, &lines) ==
		H1_SCAN_DONE &&
	    lines.count <= HEADER_FIELDS_MAX &&
	    h1_gate_fields(buf->bytes, &lines, 0, 0, &table) == NULL)
		exchange->events->on_trailers(exchange, &table, buf->bytes);
}

/* The body bytes that are there. */
static void
read_body(struct exchange *exchange)
{
	struct http1_state *state = state_of(exchange);

	for (;;) {
		struct buf *buf = state->input.buf;
		struct h1_body before = state->body;
		const char *data;
		size_t used, data_len;
		enum h1_body_result result =
		    h1_body_read(&state->body, buf->bytes + buf->start,
			buf->end - buf->start, &used, &data, &data_len);

		if (result == H1_BODY_DATA && state->input.paused) {
			/* Only the end may be told now. */
			state->body = before;
			return;
		}
		buf->start += (uint32_t)used;
		switch (result) {
		case H1_BODY_DATA:
			exchange->events->on_body(exchange, data, data_len);
			if (state->input.finished)
				return;
			continue;
		case H1_BODY_TRAILER:
			keep_trailers(exchange, data, data_len);
			continue;
		case H1_BODY_END:
			if (UNLIKELY(state->input.head != NULL))
				tell_trailers(exchange);
			end(exchange);
			return;
		case H1_BODY_BAD:
			exchange_input_fail(exchange, EXCHANGE_TRUNCATED,
			    "its chunks are malformed");
			return;
		case H1_BODY_MORE:
			return;
		}
	}
}

static void
deliver(struct exchange *exchange)
{
	struct http1_state *state = state_of(exchange);

	if (!state->head_done && !read_head(exchange)) {
		state->input.kept =
		    state->input.paused && !state->input.finished;
		return;
	}
	read_body(exchange);
	if (state->input.finished)
		return;
	state->input.kept = state->input.buf->start < state->input.buf->end;
	if (state->input.kept)
		return;
	buf_put(exchange_worker(exchange), &state->input.buf);
	if (!state->input.paused)
		exchange->events->on_idle(exchange);
}

static void
on_readable(struct exchange *exchange)
{
	switch (exchange_input_read(exchange)) {
	case EXCHANGE_INPUT_BYTES:
		deliver(exchange);
		return;
	case EXCHANGE_INPUT_END:
		end_of_input(exchange, true);
		return;
	case EXCHANGE_INPUT_BROKEN:
		end_of_input(exchange, false);
		return;
	case EXCHANGE_INPUT_NONE:
		return;
	}
}

static void
on_drained(struct exchange *exchange)
{
	struct http1_state *state = state_of(exchange);

	if (state->input.finished)
		return;
	if (!exchange->sent_all)
		exchange->events->on_writable(exchange);
	else if (state->input.at_end && io_is_drained(&exchange->uconn->io))
		end_tunnel(exchange);
}

static void
on_closed(struct exchange *exchange, int error)
{
	const struct http1_state *state = state_of(exchange);

	if (UNLIKELY(state->input.at_end) && !state->input.finished)
		end_tunnel(exchange);
	else
		exchange_input_closed(exchange, error);
}

static void
cancel(struct exchange *exchange)
{
	if (!state_of(exchange)->input.finished)
		exchange_input_finish(exchange);
}

const struct exchange_ops exchange_http1 = {
	.name = "HTTP/1.1",
	.state_bytes = sizeof(struct http1_state),
	.start = start,
	.send = send_body,
	.pause = exchange_input_pause,
	.resume = exchange_input_resume,
	.cancel = cancel,
	.readable = on_readable,
	.drained = on_drained,
	.closed = on_closed,
};
