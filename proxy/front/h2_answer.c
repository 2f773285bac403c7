/*
 * Answers over HTTP/2: the front_ops that responses come through. Heads go to
 * nghttp2, bodies are queued with their stream until h2_write.c sends them.
 * Writes nothing to the socket.
 */
#include <assert.h>
#include <string.h>

#include "proxy/core/response.h"
#include "proxy/core/snapshot.h"
#include "proxy/front/h2_conn.h"
#include "proxy/front/h2_fields.h"
#include "proxy/http/status.h"
#include "src/base/log.h"

static struct h2_stream *
stream_of(const struct request *request)
{
	return request->front_state;
}

/* There is something to send, or to tell. */
static void
wake(struct h2_stream *stream)
{
	struct h2_conn *h2 = stream->h2;

	if (!list_is_linked(&stream->sending))
		list_push_back(&h2->sending, &stream->sending);
	if (stream->is_deferred) {
		stream->is_deferred = false;
		nghttp2_session_resume_data(h2->session, stream->id);
	}
	conn_later(h2->conn);
}

static enum response_result
result_of(struct h2_stream *stream)
{
	struct h2_conn *h2 = stream->h2;
	const struct front *front = h2->conn->front;

	if (UNLIKELY(h2->conn->io.broken))
		return RESPONSE_GONE;
	if (LIKELY(stream->out_bytes <= BUF_BYTES) ||
	    (stream->out_bytes <= front->buffer_bytes &&
		h2->out_bytes <= front->h2.connection_bytes))
		return RESPONSE_OK;
	stream->owes_writable = true;
	return RESPONSE_FULL;
}

/* ---- heads ---- */

/* Is there to be a content-length, and what body? As put_framing does in
 * HTTP/1. */
static bool
add_length(struct h2_fields *fields, struct h2_stream *stream,
    const struct response_head *head)
{
	bool has_body = status_has_body(head->status);
	bool is_head = stream->request->head.method == METHOD_HEAD;

	if (UNLIKELY(head->tunnel))
		return true;
	if (!has_body && (head->status != 304 || head->length == 0))
		return false;
	if (head->length != RESPONSE_LENGTH_UNKNOWN) {
		h2_fields_add_own(fields, STR("content-length"),
		    (struct str){ fields->length,
			str_put_u64(fields->length, head->length) });
		stream->has_length = true;
		stream->left = has_body && !is_head ? head->length : 0;
		return stream->left > 0;
	}
	return has_body && !is_head;
}

/* RFC 8441 section 5: any 2xx would mean that the tunnel stands. */
static bool
is_no_websocket(const struct h2_stream *stream, unsigned status)
{
	return UNLIKELY(stream->is_connect) && status / 100 == 2;
}

static enum response_result
refuse_websocket(struct h2_stream *stream)
{
	struct h2_fields fields;

	stream->is_refused = true;
	stream->request->why = "no WebSocket here";
	stream->request->status = 501;
	h2_fields_begin(&fields, 501);
	h2_fields_add_server(&fields);
	h2_fields_add_date(&fields, h2_worker(stream->h2));
	h2_write_submit(stream, &fields, false);
	return result_of(stream);
}

/* The head that says so is being sent. */
static void
begin_tunnel(struct h2_stream *stream)
{
	struct h2_conn *h2 = stream->h2;

	stream->is_tunnel = stream->wants_body = true;
	stream->body_done = false;
	io_keep_alive(&h2->conn->io);
	if (!list_is_linked(&stream->resumed))
		list_push_back(&h2->resumed, &stream->resumed);
}

static enum response_result
h2_start(struct request *request, const struct response_head *head)
{
	struct h2_stream *stream = stream_of(request);
	struct h2_fields fields;
	bool has_data;

	if (!head->tunnel && is_no_websocket(stream, head->status))
		return refuse_websocket(stream);
	h2_fields_begin(&fields, head->tunnel ? 200 : head->status);
	if (head->fields == NULL || !header_has(head->fields, HEADER_SERVER))
		h2_fields_add_server(&fields);
	if (head->fields == NULL || !header_has(head->fields, HEADER_DATE))
		h2_fields_add_date(&fields, request->worker);
	h2_fields_add_lines(&fields, head->lines);
	if (request->route != NULL)
		h2_fields_add_lines(&fields, request->route->response_lines);
	h2_fields_add_lines(&fields, request_secure_lines(request));
	if (head->fields != NULL)
		h2_fields_add_table(&fields, head);
	has_data = add_length(&fields, stream, head);
	h2_linger_plan(stream, head->status, has_data);
	if (UNLIKELY(head->tunnel))
		begin_tunnel(stream);
	h2_write_submit(stream, &fields, has_data);
	return result_of(stream);
}

static void
inform(struct h2_stream *stream, const struct h2_fields *fields)
{
	if (nghttp2_submit_headers(stream->h2->session, NGHTTP2_FLAG_NONE,
		stream->id, NULL, fields->nv, fields->n, NULL) < 0)
		log_debug("c=%d stream %d: no interim answer",
		    stream->h2->conn->io.fd, stream->id);
	conn_later(stream->h2->conn);
}

static void
h2_inform(struct request *request, const struct response_head *head)
{
	struct h2_fields fields;

	if (request->status != 0)
		return;
	h2_fields_begin(&fields, head->status);
	if (head->fields != NULL)
		h2_fields_add_table(&fields, head);
	inform(stream_of(request), &fields);
}

/* ---- bodies ---- */

static void
enqueue(struct h2_stream *stream, const char *from, size_t len)
{
	stream->out_bytes += (uint32_t)len;
	stream->h2->out_bytes += len;
	while (len > 0) {
		struct buf *buf = stream->out_last;
		size_t n;

		if (buf == NULL || buf->end == buf->room) {
			buf = buf_get(h2_worker(stream->h2));
			if (stream->out_last == NULL)
				stream->out_first = buf;
			else
				stream->out_last->next = buf;
			stream->out_last = buf;
		}
		n = buf->room - buf->end < len ? buf->room - buf->end : len;
		memcpy(buf->bytes + buf->end, from, n);
		buf->end += (uint32_t)n;
		from += n;
		len -= n;
	}
}

static enum response_result
h2_write(struct request *request, const char *from, size_t len)
{
	struct h2_stream *stream = stream_of(request);

	if (UNLIKELY(stream->is_refused))
		return result_of(stream);
	if (stream->has_length) {
		assert(len <= stream->left);
		stream->left -= len;
	}
	enqueue(stream, from, len);
	wake(stream);
	return result_of(stream);
}

/* As a line; what does not fit is left out. */
static void
keep_trailer(struct h2_stream *stream, const char *base,
    const struct header_field *field)
{
	struct buf *buf = stream->trailers;
	char *at;

	if (buf == NULL)
		buf = stream->trailers = buf_get(h2_worker(stream->h2));
	if ((size_t)field->name_len + field->value_len + 4 >
	    buf->room - buf->end)
		return;
	at = buf->bytes + buf->end;
	at = mempcpy(at, base + field->name, field->name_len);
	at = mempcpy(at, ": ", 2);
	at = mempcpy(at, base + field->value, field->value_len);
	at = mempcpy(at, "\r\n", 2);
	buf->end = (uint32_t)(at - buf->bytes);
}

/* RFC 9110 section 6.5.1: nothing of what a receiver must know beforehand. */
static bool
may_trail(const struct header_field *field)
{
	switch (field->id) {
	case HEADER_CONTENT_ENCODING:
	case HEADER_CONTENT_LENGTH:
	case HEADER_CONTENT_TYPE:
	case HEADER_HOST:
	case HEADER_SET_COOKIE:
		return false;
	}
	return (field->flags & HEADER_FLAG_HOP) == 0;
}

static void
h2_trailers(struct request *request, const struct header_table *trailers,
    const char *base)
{
	struct h2_stream *stream = stream_of(request);

	for (unsigned i = 0; i < trailers->count; i++)
		if (may_trail(&trailers->fields[i]))
			keep_trailer(stream, base, &trailers->fields[i]);
}

static enum response_result
h2_flush(struct request *request)
{
	/* All leaves at the end of this turn of the loop. */
	return result_of(stream_of(request));
}

/* The request is over; what is queued goes out, what still comes is dropped. */
static void
finish(struct h2_stream *stream)
{
	request_free(&stream->request);
	buf_put(h2_worker(stream->h2), &stream->head);
	timer_disarm(&stream->body);
	h2_stream_drop_body(stream);
}

/* As over HTTP/1 the client gets what there is of the answer. */
static void
h2_abort_answer(struct request *request)
{
	struct h2_stream *stream = stream_of(request);
	bool has_more = stream->out_bytes > 0 || stream->sent_bytes == 0;

	if (stream->is_answered && has_more && !stream->is_closed &&
	    !stream->is_reset) {
		stream->is_cut = true;
		wake(stream);
	} else {
		h2_write_drop(stream);
		h2_stream_reset(stream, NGHTTP2_INTERNAL_ERROR);
	}
	finish(stream);
	conn_later(stream->h2->conn);
}

static void
h2_end(struct request *request)
{
	struct h2_stream *stream = stream_of(request);

	if (UNLIKELY(stream->has_length && stream->left > 0)) {
		/* The client must see that something is missing. */
		request->front->abort(request);
		return;
	}
	stream->out_ended = true;
	wake(stream);
	finish(stream);
	h2_linger_hold(stream);
	h2_linger(stream);
}

static void
h2_fixed(struct request *request, const struct response_fixed *fixed)
{
	struct h2_stream *stream = stream_of(request);
	struct h2_fields fields;

	if (is_no_websocket(stream, fixed->status)) {
		refuse_websocket(stream);
		finish(stream);
		return;
	}
	/* The request stays until the stream is closed, and with it what is
	 * sent of its snapshot. */
	h2_fields_begin(&fields, fixed->status);
	h2_fields_add_server(&fields);
	h2_fields_add_date(&fields, request->worker);
	h2_fields_add_fixed(&fields, fixed);
	h2_fields_add_lines(&fields, request_secure_lines(request));
	if (LIKELY(request->head.method != METHOD_HEAD))
		stream->fixed = fixed->body;
	stream->out_ended = true;
	h2_linger_plan(stream, fixed->status, stream->fixed.len > 0);
	h2_linger_hold(stream);
	h2_write_submit(stream, &fields, stream->fixed.len > 0);
	if (stream->fixed.len > 0)
		wake(stream);
}

/* Of a tunnel: we send no more. */
static void
h2_shutdown(struct request *request)
{
	struct h2_stream *stream = stream_of(request);

	stream->out_ended = true;
	wake(stream);
}

/* ---- the request's body ---- */

static void
h2_body_resume(struct request *request)
{
	struct h2_stream *stream = stream_of(request);

	if (!stream->is_blocked)
		return;
	stream->is_blocked = false;
	stream->body_since_ms = request->worker->tick_ms;
	stream->body_before = stream->seen;
	if (!list_is_linked(&stream->resumed))
		list_push_back(&stream->h2->resumed, &stream->resumed);
	conn_later(stream->h2->conn);
}

static void
h2_body_wanted(struct request *request)
{
	struct h2_stream *stream = stream_of(request);
	struct h2_fields fields;

	if (request->body_is_whole || stream->wants_body)
		return;
	stream->wants_body = true;
	stream->body_since_ms = request->worker->tick_ms;
	if (!list_is_linked(&stream->resumed))
		list_push_back(&stream->h2->resumed, &stream->resumed);
	conn_later(stream->h2->conn);
	if (LIKELY(!request->head.expect_continue) || stream->seen > 0 ||
	    request->status != 0)
		return;
	h2_fields_begin(&fields, 100);
	inform(stream, &fields);
}

const struct front_ops h2_front_ops = {
	.name = "HTTP/2.0",
	.start = h2_start,
	.write = h2_write,
	.trailers = h2_trailers,
	.flush = h2_flush,
	.end = h2_end,
	.abort = h2_abort_answer,
	.fixed = h2_fixed,
	.body_resume = h2_body_resume,
	.body_wanted = h2_body_wanted,
	.inform = h2_inform,
	.shutdown = h2_shutdown,
};
