/*
 * Answers over HTTP/2: heads, bodies, and in which order they leave. The
 * front_ops that responses come through; nghttp2 pulls from what they left.
 * All streams of a connection leave together, from the loop. Reads nothing.
 */
#include <assert.h>
#include <string.h>

#include "proxy/core/response.h"
#include "proxy/core/snapshot.h"
#include "proxy/front/h2_conn.h"
#include "proxy/http/status.h"
#include "src/base/log.h"

/* One write, and what a connection may send before others have their turn. */
#define BURST_BYTES 65536
#define TURN_BYTES ((size_t)4 * BURST_BYTES)
/* An answer has no more fields: those of an app's and what 16 KiB of lines
 * hold. */
#define FIELDS_MAX 640

struct fields {
	size_t n;
	bool overflow;
	char status[4];
	char length[20];
	nghttp2_nv nv[FIELDS_MAX];
};

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

void
h2_write_drop(struct h2_stream *stream)
{
	struct worker *worker = h2_worker(stream->h2);
	struct buf *buf;

	while ((buf = stream->out_first) != NULL) {
		stream->out_first = buf->next;
		buf_put(worker, &buf);
	}
	stream->out_last = NULL;
	stream->h2->out_bytes -= stream->out_bytes;
	stream->out_bytes = 0;
	stream->fixed.len = 0;
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

/* ---- fields ---- */

static void
add(struct fields *fields, struct str name, struct str value, uint8_t flags)
{
	if (UNLIKELY(fields->n == FIELDS_MAX)) {
		fields->overflow = true;
		return;
	}
	fields->nv[fields->n++] = (nghttp2_nv){
		(uint8_t *)(uintptr_t)name.ptr,
		(uint8_t *)(uintptr_t)value.ptr,
		name.len,
		value.len,
		flags,
	};
}

/* A name that is static and in lower case. */
static void
add_own(struct fields *fields, struct str name, struct str value)
{
	add(fields, name, value, NGHTTP2_NV_FLAG_NO_COPY_NAME);
}

static void
add_status(struct fields *fields, unsigned status)
{
	if (LIKELY(status == 200)) {
		add(fields, STR(":status"), STR("200"),
		    NGHTTP2_NV_FLAG_NO_COPY_NAME |
			NGHTTP2_NV_FLAG_NO_COPY_VALUE);
		return;
	}
	fields->status[0] = (char)('0' + status / 100 % 10);
	fields->status[1] = (char)('0' + status / 10 % 10);
	fields->status[2] = (char)('0' + status % 10);
	add_own(fields, STR(":status"), (struct str){ fields->status, 3 });
}

static void
add_server(struct fields *fields)
{
	add(fields, STR("server"), STR("scalws"),
	    NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE);
}

static void
add_date(struct fields *fields, const struct worker *worker)
{
	add_own(fields, STR("date"),
	    (struct str){ worker->date + 6, CLOCK_HTTP_LEN });
}

/* nghttp2 lowers the names it copies. */
static void
add_lines(struct fields *fields, struct str lines)
{
	while (lines.len > 0) {
		const char *end = memchr(lines.ptr, '\r', lines.len);
		const char *colon = memchr(lines.ptr, ':', lines.len);
		struct str name;

		if (end == NULL || colon == NULL || colon > end)
			return; /* the empty line */
		name = (struct str){ lines.ptr, (size_t)(colon - lines.ptr) };
		if ((header_classify(name.ptr, name.len) >> 8 &
			HEADER_FLAG_HOP) == 0)
			add(fields, name,
			    str_trim((struct str){
				colon + 1, (size_t)(end - colon - 1) }),
			    NGHTTP2_NV_FLAG_NONE);
		lines.len -= (size_t)(end + 2 - lines.ptr);
		lines.ptr = end + 2;
	}
}

/* An app's fields, those of its connection left out. */
static void
add_table(struct fields *fields, const struct response_head *head)
{
	const struct header_table *table = head->fields;
	const char *base = head->base;
	bool has_date = false, has_server = false;

	for (unsigned i = 0; i < table->count; i++) {
		const struct header_field *field = &table->fields[i];
		struct str name = { base + field->name, field->name_len };

		if ((field->flags & HEADER_FLAG_HOP) != 0 ||
		    field->id == HEADER_CONTENT_LENGTH ||
		    (field->id == HEADER_DATE && has_date) ||
		    (field->id == HEADER_SERVER && has_server))
			continue;
		has_date |= field->id == HEADER_DATE;
		has_server |= field->id == HEADER_SERVER;
		/* RFC 8441 section 5 has no use for it. */
		if (UNLIKELY(head->tunnel) &&
		    str_eq_nocase(name, STR("sec-websocket-accept")))
			continue;
		add(fields, name, header_value(base, field),
		    NGHTTP2_NV_FLAG_NONE);
	}
}

/* ---- heads ---- */

static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *to,
    size_t room, uint32_t *flags, nghttp2_data_source *source, void *user_data);

static enum response_result
submit(struct h2_stream *stream, const struct fields *fields, bool has_data)
{
	nghttp2_data_provider data = { .source.ptr = stream,
		.read_callback = on_read };

	if (UNLIKELY(fields->overflow))
		log_error("c=%d: an answer with too many fields",
		    stream->h2->conn->io.fd);
	if (UNLIKELY(fields->overflow) ||
	    nghttp2_submit_response(stream->h2->session, stream->id, fields->nv,
		fields->n, has_data ? &data : NULL) != 0)
		h2_stream_reset(stream, NGHTTP2_INTERNAL_ERROR);
	stream->is_answered = true;
	conn_later(stream->h2->conn);
	return result_of(stream);
}

/* Is there to be a content-length, and what body? As put_framing does in
 * HTTP/1. */
static bool
add_length(struct fields *fields, struct h2_stream *stream,
    const struct response_head *head)
{
	bool has_body = status_has_body(head->status);
	bool is_head = stream->request->head.method == METHOD_HEAD;

	if (UNLIKELY(head->tunnel))
		return true;
	if (!has_body && (head->status != 304 || head->length == 0))
		return false;
	if (head->length != RESPONSE_LENGTH_UNKNOWN) {
		add_own(fields, STR("content-length"),
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
	struct fields fields;

	stream->is_refused = true;
	stream->request->why = "no WebSocket here";
	stream->request->status = 501;
	fields.n = 0;
	fields.overflow = false;
	add_status(&fields, 501);
	add_server(&fields);
	add_date(&fields, h2_worker(stream->h2));
	return submit(stream, &fields, false);
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
	struct fields fields;
	bool has_data;

	if (!head->tunnel && is_no_websocket(stream, head->status))
		return refuse_websocket(stream);
	fields.n = 0;
	fields.overflow = false;
	add_status(&fields, head->tunnel ? 200 : head->status);
	if (head->fields == NULL || !header_has(head->fields, HEADER_SERVER))
		add_server(&fields);
	if (head->fields == NULL || !header_has(head->fields, HEADER_DATE))
		add_date(&fields, request->worker);
	add_lines(&fields, head->lines);
	if (request->route != NULL)
		add_lines(&fields, request->route->response_lines);
	add_lines(&fields, request_secure_lines(request));
	if (head->fields != NULL)
		add_table(&fields, head);
	has_data = add_length(&fields, stream, head);
	if (UNLIKELY(head->tunnel))
		begin_tunnel(stream);
	return submit(stream, &fields, has_data);
}

static void
inform(struct h2_stream *stream, const struct fields *fields)
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
	struct fields fields;

	if (request->status != 0)
		return;
	fields.n = 0;
	fields.overflow = false;
	add_status(&fields, head->status);
	if (head->fields != NULL)
		add_table(&fields, head);
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

/* RFC 9113 section 8.1: the answer is out, the rest of the request unwanted. */
static void
cut_request(struct h2_stream *stream)
{
	bool is_over = stream->request == NULL || stream->request->is_ended;

	if (is_over && !stream->in_ended && stream->end_sent)
		h2_stream_reset(stream, NGHTTP2_NO_ERROR);
}

static void
h2_abort_answer(struct request *request)
{
	struct h2_stream *stream = stream_of(request);

	h2_write_drop(stream);
	h2_stream_reset(stream, NGHTTP2_INTERNAL_ERROR);
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
	cut_request(stream);
}

static void
h2_fixed(
    struct request *request, unsigned status, struct str lines, struct str body)
{
	struct h2_stream *stream = stream_of(request);
	struct fields fields;

	if (is_no_websocket(stream, status)) {
		refuse_websocket(stream);
		finish(stream);
		return;
	}
	fields.n = 0;
	fields.overflow = false;
	add_status(&fields, status);
	add_server(&fields);
	add_date(&fields, request->worker);
	add_lines(&fields, lines);
	add_lines(&fields, request_secure_lines(request));
	if (request->head.method == METHOD_HEAD)
		body.len = 0;
	stream->out_ended = true;
	stream->fixed = body;
	submit(stream, &fields, body.len > 0);
	if (body.len > 0)
		wake(stream);
	else
		finish(stream);
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
	struct fields fields;

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
	fields.n = 0;
	fields.overflow = false;
	add_status(&fields, 100);
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

/* ---- what nghttp2 pulls ---- */

static void
submit_trailers(struct h2_stream *stream, uint32_t *flags)
{
	const struct buf *buf = stream->trailers;
	struct fields fields;

	fields.n = 0;
	fields.overflow = false;
	add_lines(&fields, (struct str){ buf->bytes, buf->end });
	if (fields.n > 0 && !fields.overflow &&
	    nghttp2_submit_trailer(
		stream->h2->session, stream->id, fields.nv, fields.n) == 0)
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
}

/* How much of this stream goes into the next frame; on_send_data copies it. */
static ssize_t
on_read(nghttp2_session *session, int32_t id, uint8_t *to, size_t room,
    uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
	struct h2_stream *stream = source->ptr;
	size_t have = stream->out_bytes + stream->fixed.len;

	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	if (have > room)
		return (ssize_t)room;
	if (stream->out_ended) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (UNLIKELY(stream->trailers != NULL))
			submit_trailers(stream, flags);
	} else if (have == 0) {
		stream->is_deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	return (ssize_t)have;
}

static void
take_out(struct h2_stream *stream, char *to, size_t len)
{
	while (len > 0 && stream->out_first != NULL) {
		struct buf *buf = stream->out_first;
		size_t n =
		    buf->end - buf->start < len ? buf->end - buf->start : len;

		memcpy(to, buf->bytes + buf->start, n);
		buf->start += (uint32_t)n;
		stream->out_bytes -= (uint32_t)n;
		stream->h2->out_bytes -= n;
		to += n;
		len -= n;
		if (buf->start < buf->end)
			continue;
		stream->out_first = buf->next;
		if (stream->out_first == NULL)
			stream->out_last = NULL;
		buf_put(h2_worker(stream->h2), &buf);
	}
	if (len == 0)
		return;
	memcpy(to, stream->fixed.ptr, len);
	stream->fixed.ptr += len;
	stream->fixed.len -= len;
}

static int
on_send_data(nghttp2_session *session, nghttp2_frame *frame,
    const uint8_t *frame_head, size_t len, nghttp2_data_source *source,
    void *user_data)
{
	struct h2_conn *h2 = user_data;
	struct h2_stream *stream = source->ptr;
	struct front *front = h2->conn->front;

	if (front->held_len >= BURST_BYTES) {
		h2->is_full = true;
		return NGHTTP2_ERR_WOULDBLOCK;
	}
	memcpy(front->held + front->held_len, frame_head, 9);
	take_out(stream, front->held + front->held_len + 9, len);
	front->held_len += 9 + len;
	stream->sent_bytes += len;
	h2->sent_bytes += len;
	h2->n_data += 2;
	return 0;
}

static int
on_frame_sent(
    nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct h2_conn *h2 = user_data;
	struct h2_stream *stream;

	/* nghttp2's word for windows beyond 2^31-1. It is the connection's end
	 * when SETTINGS made them so (RFC 9113 section 6.9.2), and may be when
	 * WINDOW_UPDATE did (5.4.1). */
	if (frame->hd.type == NGHTTP2_RST_STREAM &&
	    frame->rst_stream.error_code == NGHTTP2_FLOW_CONTROL_ERROR)
		h2_give_up(
		    h2, NGHTTP2_FLOW_CONTROL_ERROR, "too large a window");
	if ((frame->hd.type != NGHTTP2_HEADERS &&
		frame->hd.type != NGHTTP2_DATA) ||
	    (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
		return 0;
	stream = h2_stream_of(session, frame->hd.stream_id);
	if (stream == NULL)
		return 0;
	stream->end_sent = true;
	cut_request(stream);
	return 0;
}

void
h2_write_callbacks(nghttp2_session_callbacks *callbacks)
{
	nghttp2_session_callbacks_set_send_data_callback(
	    callbacks, on_send_data);
	nghttp2_session_callbacks_set_on_frame_send_callback(
	    callbacks, on_frame_sent);
}

/* nghttp2 was told of no limit on streams: it would end the connection when one
 * is too many, RFC 9113 section 5.1.2 does not. The client is told of ours. */
static void
put_stream_limit(char *settings, size_t len, uint32_t limit)
{
	for (size_t at = 9; at + 6 <= len; at += 6) {
		if (settings[at] != 0 ||
		    settings[at + 1] != NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
			continue;
		for (unsigned i = 0; i < 4; i++)
			settings[at + 2 + i] = (char)(limit >> (24 - 8 * i));
	}
}

/* Fill the worker's buffer. False: that was all. */
static bool
gather(struct h2_conn *h2)
{
	struct front *front = h2->conn->front;

	front->held_len = 0;
	h2->is_full = false;
	while (front->held_len < BURST_BYTES) {
		const uint8_t *from;
		ssize_t n = nghttp2_session_mem_send(h2->session, &from);

		if (UNLIKELY(n < 0)) {
			h2_give_up(h2, NGHTTP2_INTERNAL_ERROR,
			    nghttp2_strerror((int)n));
			return false;
		}
		if (n == 0)
			return h2->is_full;
		memcpy(front->held + front->held_len, from, (size_t)n);
		if (UNLIKELY(!h2->has_greeted))
			put_stream_limit(
			    front->held, (size_t)n, front->h2.max_streams);
		h2->has_greeted = true;
		front->held_len += (size_t)n;
	}
	return true;
}

void
h2_write_watch(struct h2_stream *stream)
{
	struct h2_conn *h2 = stream->h2;

	stream->sent_before = stream->sent_bytes;
	stream->others_before = h2->sent_bytes;
	timer_arm(h2_worker(h2), h2->conn->front->h2.send, &stream->send);
}

/* After a flush: who still has something, and who may go on? */
static void
look_after_streams(struct h2_conn *h2)
{
	const struct front *front = h2->conn->front;
	struct list *node, *after;

	LIST_FOREACH_SAFE(node, after, &h2->sending)
	{
		struct h2_stream *stream =
		    LIST_ENTRY(node, struct h2_stream, sending);
		bool has_more = stream->out_bytes + stream->fixed.len > 0;

		if (!has_more)
			list_remove(node);
		else if (!list_is_linked(&stream->send.node))
			h2_write_watch(stream);
		if (!stream->owes_writable || stream->request == NULL ||
		    (stream->out_bytes > BUF_BYTES / 2 &&
			(stream->out_bytes > front->buffer_bytes / 2 ||
			    h2->out_bytes > front->h2.connection_bytes)))
			continue;
		stream->owes_writable = false;
		request_writable(stream->request);
	}
}

void
h2_write_flush(struct h2_conn *h2)
{
	struct conn *conn = h2->conn;
	struct front *front = conn->front;
	size_t sent = 0;
	bool goes_on = true;

	if (front->held_by != NULL)
		h1_flush(front);
	while (goes_on && conn->io.out_bytes == 0 && !conn->io.broken) {
		struct iovec all;

		if (sent >= TURN_BYTES) {
			conn_later(conn);
			break;
		}
		goes_on = gather(h2);
		if (front->held_len == 0)
			break;
		all = (struct iovec){ front->held, front->held_len };
		sent += front->held_len;
		if (io_write(&conn->io, &all, 1) == IO_DEAD)
			break;
	}
	if (conn->io.out_bytes > 0) {
		io_await_empty(&conn->io);
		conn_watch_send(conn);
	}
	look_after_streams(h2);
}
