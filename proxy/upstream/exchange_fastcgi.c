/*
 * A request and its answer over FastCGI: one request at a time on a connection,
 * which the application is asked to keep.
 * The other of the two codecs below the gateway.
 * Decides nothing: no retry, no status for the client, no timeouts.
 */
#include "proxy/upstream/exchange.h"

#include <string.h>

#include "fcgi/fcgi.h"
#include "proxy/core/io.h"
#include "proxy/core/request.h"
#include "proxy/core/worker.h"
#include "proxy/http/status.h"
#include "proxy/upstream/exchange_input.h"
#include "proxy/upstream/fastcgi_params.h"
#include "proxy/upstream/uconn.h"

#define REQUEST_ID 1
/* Parameters of one request at most; php-fpm takes no single value above about
 * 32 KiB. */
#define PARAMS_MAX 131072
/* The longest line of the error stream that stays in one piece. */
#define ERROR_LINE_MAX 2048

struct fastcgi_state {
	struct exchange_input input;
	struct fcgi_reply reply;
	size_t scanned;
	bool head_done;
	bool drops_body; /* HEAD, 204, 304 */
	bool has_length;
	uint64_t left; /* of the length */
};

static struct fastcgi_state *
state_of(const struct exchange *exchange)
{
	return exchange->state;
}

/* ---- sending ---- */

static struct buf *
build_params(const struct exchange *exchange, const struct exchange_body *body,
    struct buf *buf)
{
	unsigned char *to = (unsigned char *)buf->bytes;
	struct fcgi_params params;
	size_t len = fcgi_put_begin(to, REQUEST_ID, true);

	fcgi_params_begin(&params, to, buf->room, len, REQUEST_ID);
	fastcgi_params_put(&params, exchange->request, exchange->target, body);
	buf->end = (uint32_t)fcgi_params_end(&params);
	return buf;
}

/* Body bytes as records, each with a header before it; `first` (or NULL) goes
 * out in front of them, in the same write. */
static enum io_result
write_records(struct io *io, const struct buf *first, const char *from,
    size_t len, bool last)
{
	enum io_result result = IO_OK;

	do {
		unsigned char head[FCGI_HEADER_LEN], end[FCGI_HEADER_LEN];
		size_t n = len < FCGI_CONTENT_MAX ? len : FCGI_CONTENT_MAX;
		struct iovec pieces[4];
		int count = 0;

		if (first != NULL)
			exchange_add_piece(
			    pieces, &count, first->bytes, first->end);
		first = NULL;
		if (n > 0) {
			fcgi_put_header(
			    head, FCGI_STDIN, REQUEST_ID, (uint16_t)n);
			exchange_add_piece(pieces, &count, head, sizeof(head));
			exchange_add_piece(pieces, &count, from, n);
		}
		from += n;
		len -= n;
		if (last && len == 0) {
			fcgi_put_header(end, FCGI_STDIN, REQUEST_ID, 0);
			exchange_add_piece(pieces, &count, end, sizeof(end));
		}
		if (count > 0)
			result = io_write(io, pieces, count);
	} while (len > 0 && result != IO_DEAD);
	return result;
}

static unsigned
start(struct exchange *exchange, const struct exchange_body *body,
    const char *from, size_t len, bool last, const char **why)
{
	struct worker *worker = exchange_worker(exchange);
	struct fastcgi_state *state = state_of(exchange);
	struct io *io = &exchange->uconn->io;
	struct buf *head = build_params(exchange, body, buf_get(worker));

	if (UNLIKELY(head->end == 0)) {
		buf_put(worker, &head);
		head = build_params(
		    exchange, body, buf_get_large(worker, PARAMS_MAX));
	}
	if (head->end == 0) {
		buf_put(worker, &head);
		*why = "the parameters are too large for FastCGI";
		return 431;
	}
	fcgi_reply_init(&state->reply, REQUEST_ID);
	exchange->sent_before = io->sent_bytes;
	exchange->sent_all = last;
	if (write_records(io, head, from, len, last) == IO_DEAD)
		exchange->sent_all = false;
	buf_put(worker, &head);
	return 0;
}

static enum exchange_result
send_body(struct exchange *exchange, const char *from, size_t len, bool last)
{
	enum io_result result =
	    write_records(&exchange->uconn->io, NULL, from, len, last);

	if (result == IO_DEAD)
		return EXCHANGE_STOPPED;
	exchange->sent_all = last;
	return result == IO_FULL ? EXCHANGE_FULL : EXCHANGE_OK;
}

/* ---- ends ---- */

/* ---- the error stream ---- */

static void
tell_error(struct exchange *exchange, const char *from, size_t len)
{
	if (len > 0 && from[len - 1] == '\r')
		len--;
	if (len > 0)
		exchange->events->on_stderr(exchange, from, len);
}

static void
flush_error(struct exchange *exchange)
{
	struct fastcgi_state *state = state_of(exchange);

	if (state->input.error == NULL)
		return;
	tell_error(
	    exchange, state->input.error->bytes, state->input.error->end);
	buf_put(exchange_worker(exchange), &state->input.error);
}

static void
take_error(struct exchange *exchange, const char *from, size_t len)
{
	struct fastcgi_state *state = state_of(exchange);

	while (len > 0) {
		const char *newline = memchr(from, '\n', len);
		size_t n = newline == NULL ? len : (size_t)(newline - from);
		struct buf *buf;

		if (state->input.error == NULL)
			state->input.error = buf_get(exchange_worker(exchange));
		buf = state->input.error;
		if (n > ERROR_LINE_MAX - buf->end) {
			n = ERROR_LINE_MAX - buf->end;
			newline = NULL;
		}
		memcpy(buf->bytes + buf->end, from, n);
		buf->end += (uint32_t)n;
		if (newline != NULL || buf->end == ERROR_LINE_MAX)
			flush_error(exchange);
		if (state->input.finished)
			return;
		n += newline != NULL;
		from += n;
		len -= n;
	}
}

/* ---- the answer ---- */

/* Put a piece of the head behind what there is; false: too large. */
static bool
append_head(struct exchange *exchange, const char *from, size_t len)
{
	struct fastcgi_state *state = state_of(exchange);
	struct worker *worker = exchange_worker(exchange);
	size_t limit = exchange->target->response_header_bytes;
	struct buf *buf = state->input.head;
	size_t have = buf == NULL ? 0 : buf->end;

	/* `limit` bytes of head, and with them at most one record of body. */
	if (have >= limit)
		return false;
	if (buf == NULL)
		buf = state->input.head = buf_get(worker);
	if (len > buf->room - have) {
		struct buf *larger =
		    buf_get_large(worker, limit + FCGI_CONTENT_MAX);

		memcpy(larger->bytes, buf->bytes, have);
		larger->start = 0;
		buf_put(worker, &state->input.head);
		buf = state->input.head = larger;
	}
	memcpy(buf->bytes + have, from, len);
	buf->end = (uint32_t)(have + len);
	return true;
}

static void
take_body(struct exchange *exchange, const char *from, size_t len)
{
	struct fastcgi_state *state = state_of(exchange);

	if (state->drops_body)
		return;
	if (state->has_length) {
		/* What goes beyond the length that was promised is lost, as it
		 * would be behind any other server. */
		if (len > state->left)
			len = (size_t)state->left;
		state->left -= len;
	}
	if (len > 0)
		exchange->events->on_body(exchange, from, len);
}

static void
take_head(struct exchange *exchange, struct h1_response *head, const char *base)
{
	struct fastcgi_state *state = state_of(exchange);

	state->head_done = true;
	state->drops_body = exchange->request->head.method == METHOD_HEAD ||
			    !status_has_body(head->status);
	state->has_length = !state->drops_body && head->body == BODY_LENGTH;
	state->left = head->content_length;
	if (state->drops_body)
		head->body = BODY_NONE;
	exchange->events->on_head(exchange, head, base);
}

/* A piece of the answer before its head was whole. */
static void
read_head(struct exchange *exchange, const char *from, size_t len)
{
	struct fastcgi_state *state = state_of(exchange);
	uint32_t limit = exchange->target->response_header_bytes;
	struct h1_limits limits = { limit, limit, HEADER_FIELDS_MAX };
	struct h1_response head;
	const char *why;
	size_t used;

	if (state->input.head != NULL) {
		if (!append_head(exchange, from, len)) {
			exchange_input_fail(exchange, EXCHANGE_TOO_LARGE,
			    "its head is too large");
			return;
		}
		from = state->input.head->bytes;
		len = state->input.head->end;
	}
	switch (h1_parse_cgi(
	    from, len, &limits, &state->scanned, &head, &used, &why)) {
	case H1_MORE:
		if (state->input.head == NULL &&
		    !append_head(exchange, from, len))
			exchange_input_fail(exchange, EXCHANGE_TOO_LARGE,
			    "its head is too large");
		return;
	case H1_BAD:
		exchange_input_fail(exchange,
		    len >= limit ? EXCHANGE_TOO_LARGE : EXCHANGE_MALFORMED,
		    why);
		return;
	case H1_DONE:
		break;
	}
	take_head(exchange, &head, from);
	if (!state->input.finished)
		take_body(exchange, from + used, len - used);
	if (!state->input.finished)
		buf_put(exchange_worker(exchange), &state->input.head);
}

static void
end(struct exchange *exchange)
{
	struct fastcgi_state *state = state_of(exchange);
	bool reusable = exchange->sent_all &&
			state->input.buf->start == state->input.buf->end &&
			io_is_drained(&exchange->uconn->io);

	flush_error(exchange);
	if (state->input.finished)
		return;
	if (state->reply.protocol_status != 0)
		exchange_input_fail(
		    exchange, EXCHANGE_MALFORMED, "it refused the request");
	else if (!state->head_done)
		exchange_input_fail(
		    exchange, EXCHANGE_MALFORMED, "it ended without a head");
	else if (state->has_length && state->left > 0)
		exchange_input_fail(exchange, EXCHANGE_TRUNCATED,
		    "shorter than its Content-Length");
	else {
		exchange_input_finish(exchange);
		exchange->events->on_end(exchange, reusable);
	}
}

/* One step; false: no more for now. */
static bool
take_result(struct exchange *exchange, enum fcgi_reply_result result,
    const unsigned char *data, size_t len)
{
	const char *from = (const char *)data;

	switch (result) {
	case FCGI_REPLY_STDOUT:
		if (!state_of(exchange)->head_done)
			read_head(exchange, from, len);
		else
			take_body(exchange, from, len);
		return true;
	case FCGI_REPLY_STDERR:
		take_error(exchange, from, len);
		return true;
	case FCGI_REPLY_END:
		end(exchange);
		return false;
	case FCGI_REPLY_BAD:
		exchange_input_fail(exchange,
		    state_of(exchange)->head_done ? EXCHANGE_TRUNCATED
						  : EXCHANGE_MALFORMED,
		    "malformed FastCGI");
		return false;
	case FCGI_REPLY_MORE:
		break;
	}
	return false;
}

static void
deliver(struct exchange *exchange)
{
	struct fastcgi_state *state = state_of(exchange);
	bool goes_on = true;

	while (goes_on) {
		struct fcgi_reply before = state->reply;
		struct buf *buf = state->input.buf;
		const unsigned char *data = NULL;
		size_t used, len = 0;
		enum fcgi_reply_result result = fcgi_reply_read(&state->reply,
		    (unsigned char *)buf->bytes + buf->start,
		    buf->end - buf->start, &used, &data, &len);

		if (result == FCGI_REPLY_STDOUT && state->input.paused) {
			/* Only errors and the end may be told now. */
			state->reply = before;
			state->input.kept = true;
			return;
		}
		buf->start += (uint32_t)used;
		goes_on = take_result(exchange, result, data, len);
		if (state->input.finished)
			return;
	}
	buf_put(exchange_worker(exchange), &state->input.buf);
	if (!state->input.paused)
		exchange->events->on_idle(exchange);
}

static void
end_of_input(struct exchange *exchange)
{
	struct fastcgi_state *state = state_of(exchange);

	flush_error(exchange);
	if (state->input.finished)
		return;
	if (!exchange->got_bytes)
		exchange_input_fail(
		    exchange, EXCHANGE_CLOSED, "closed before it answered");
	else
		exchange_input_fail(
		    exchange, EXCHANGE_TRUNCATED, "closed inside the answer");
}

static void
on_readable(struct exchange *exchange)
{
	switch (exchange_input_read(exchange)) {
	case EXCHANGE_INPUT_BYTES:
		deliver(exchange);
		return;
	case EXCHANGE_INPUT_END:
	case EXCHANGE_INPUT_BROKEN:
		end_of_input(exchange);
		return;
	case EXCHANGE_INPUT_NONE:
		return;
	}
}

static void
on_drained(struct exchange *exchange)
{
	if (!state_of(exchange)->input.finished && !exchange->sent_all)
		exchange->events->on_writable(exchange);
}

/* The process goes on; when it has answered, it is free. The uconn can follow
 * it to there without us. */
static void
let_it_drain(struct exchange *exchange)
{
	struct fastcgi_state *state = state_of(exchange);
	struct uconn *uconn = exchange->uconn;
	const struct buf *buf = state->input.buf;

	uconn->reply = state->reply;
	uconn->can_drain = true;
	if (buf != NULL)
		uconn->can_drain = uconn_skip(
		    uconn, buf->bytes + buf->start, buf->end - buf->start);
}

static void
cancel(struct exchange *exchange)
{
	if (state_of(exchange)->input.finished)
		return;
	if (exchange->sent_all)
		let_it_drain(exchange);
	exchange_input_finish(exchange);
}

const struct exchange_ops exchange_fastcgi = {
	.name = "FastCGI",
	.needs_length = true,
	.state_bytes = sizeof(struct fastcgi_state),
	.start = start,
	.send = send_body,
	.pause = exchange_input_pause,
	.resume = exchange_input_resume,
	.cancel = cancel,
	.readable = on_readable,
	.drained = on_drained,
	.closed = exchange_input_closed,
};
