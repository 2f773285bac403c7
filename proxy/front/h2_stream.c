/*
 * Requests over HTTP/2: their heads as they come, their bodies, and what the
 * client does to a stream. Between nghttp2's callbacks and request.h.
 * Says nothing to the client but that a stream was broken off.
 */
#include <string.h>
#include <sys/random.h>

#include "proxy/core/response.h"
#include "proxy/core/snapshot.h"
#include "proxy/core/tls_io.h"
#include "proxy/front/h2_conn.h"
#include "src/base/log.h"

/* ---- begin and end ---- */

static struct h2_stream *
new_stream(struct h2_conn *h2, int32_t id)
{
	struct conn *conn = h2->conn;
	struct h2_stream *stream = pool_of_get(&conn->front->h2.streams);
	struct request *request;

	memset(stream, 0, offsetof(struct h2_stream, text));
	stream->h2 = h2;
	stream->id = id;
	request = request_new(conn->front->worker, &h2_front_ops, stream);
	stream->request = request;
	request->listener =
	    snapshot_listener_of(request->snapshot, conn->listener_key);
	request->tls = tls_of(&conn->io);
	request->peer.len = conn->peer.len;
	memcpy(&request->peer.u, &conn->peer.u, sizeof(conn->peer.u));
	list_push_back(&h2->streams, &stream->node);
	h2->n_streams++;
	conn->n_requests++;
	nghttp2_session_set_stream_user_data(h2->session, id, stream);
	return stream;
}

static void
drop_bufs(struct worker *worker, struct buf *first)
{
	while (first != NULL) {
		struct buf *buf = first;

		first = buf->next;
		buf_put(worker, &buf);
	}
}

/* What was not taken is given back to the connection's window; the stream's
 * only if it goes on. */
void
h2_stream_drop_body(struct h2_stream *stream)
{
	struct h2_conn *h2 = stream->h2;

	if (stream->in_first == NULL)
		return;
	drop_bufs(h2_worker(h2), stream->in_first);
	nghttp2_session_consume(h2->session, stream->id, stream->in_bytes);
	stream->in_first = stream->in_last = NULL;
	stream->in_bytes = 0;
}

void
h2_stream_free(struct h2_stream *stream)
{
	struct h2_conn *h2 = stream->h2;
	struct worker *worker = h2_worker(h2);

	if (h2->in_head == stream)
		h2->in_head = NULL;
	/* Answered, or a head that was not whole: nobody knows it. */
	request_free(&stream->request);
	h2_stream_drop_body(stream);
	h2_write_drop(stream);
	buf_put(worker, &stream->head);
	buf_put(worker, &stream->trailers);
	buf_put(worker, &stream->held);
	timer_disarm(&stream->body);
	timer_disarm(&stream->send);
	h2->n_streams--;
	list_remove(&stream->node);
	list_remove(&stream->sending);
	list_remove(&stream->resumed);
	pool_of_put(&h2->conn->front->h2.streams, stream);
}

void
h2_stream_reset(struct h2_stream *stream, uint32_t code)
{
	if (stream->is_closed || stream->is_reset)
		return;
	stream->is_reset = true;
	stream->holds = false;
	nghttp2_submit_rst_stream(
	    stream->h2->session, NGHTTP2_FLAG_NONE, stream->id, code);
}

/* It is over: whole, or broken off by either side. */
static int
on_stream_close(
    nghttp2_session *session, int32_t id, uint32_t code, void *user_data)
{
	struct h2_stream *stream = h2_stream_of(session, id);

	if (stream == NULL)
		return 0;
	stream->is_closed = true;
	nghttp2_session_set_stream_user_data(session, id, NULL);
	if (stream->request != NULL && stream->request->is_begun &&
	    !stream->request->is_ended)
		request_abort(stream->request, 0, "client reset the stream");
	h2_stream_free(stream);
	return 0;
}

/* The client has broken a rule inside this request. */
static int
break_off(struct h2_stream *stream, const char *why)
{
	struct h2_conn *h2 = stream->h2;

	log_debug("c=%d stream %d: %s", h2->conn->io.fd, stream->id, why);
	METRIC_ADD(h2_worker(h2)->metrics.bad_requests, 1);
	/* First: what request_abort says of it comes too late then. */
	h2_stream_reset(stream, NGHTTP2_PROTOCOL_ERROR);
	if (stream->request != NULL && stream->request->is_begun &&
	    !stream->request->is_ended)
		request_abort(stream->request, 0, why);
	return h2_count_reset(h2);
}

/* ---- heads ---- */

/* RFC 9113 section 5.1.2: a stream error, and the client may ask again. */
static int
refuse_stream(struct h2_conn *h2, int32_t id)
{
	h2->in_head = NULL;
	nghttp2_submit_rst_stream(
	    h2->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
	return h2_count_reset(h2);
}

/* RFC 9113 section 5.1.1: opening one closes all that were passed over. */
static void
begin_stream(struct h2_conn *h2, int32_t id)
{
	uint32_t further = ((uint32_t)id - (uint32_t)h2->last_id) / 2;

	if (UNLIKELY(further > 1)) {
		h2->skipped_from = h2->last_id + 2;
		h2->skipped_to = id - 2;
	}
	h2->said = further < 64 ? h2->said << further : 0;
	h2->last_id = id;
}

static int
on_begin_headers(
    nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct h2_conn *h2 = user_data;
	struct h2_stream *stream;

	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	begin_stream(h2, frame->hd.stream_id);
	if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
		h2->said |= 1;
	if (UNLIKELY(h2->n_streams >= h2->conn->front->h2.max_streams))
		return refuse_stream(h2, frame->hd.stream_id);
	stream = new_stream(h2, frame->hd.stream_id);
	h2->in_head = stream;
	h2_head_init(&h2->head, &stream->request->head,
	    &h2->conn->front->limits, stream->text, sizeof(stream->text));
	return 0;
}

/* To a buffer that holds so many bytes. */
static void
move_head(struct h2_stream *stream, size_t need)
{
	struct h2_head *head = &stream->h2->head;
	struct worker *worker = h2_worker(stream->h2);
	struct buf *larger;

	larger = need <= BUF_BYTES ? buf_get(worker)
				   : buf_get_large(worker, 2 * need);
	memcpy(larger->bytes, head->base, head->end);
	h2_head_move(head, larger->bytes, larger->room);
	buf_put(worker, &stream->head);
	stream->head = larger;
}

/* Room for so many bytes more. */
static inline void
make_room(struct h2_stream *stream, size_t bytes)
{
	const struct h2_head *head = &stream->h2->head;

	if (UNLIKELY(head->end + bytes > head->room))
		move_head(stream, head->end + bytes);
}

static int
on_header(nghttp2_session *session, const nghttp2_frame *frame,
    const uint8_t *name_bytes, size_t name_len, const uint8_t *value_bytes,
    size_t value_len, uint8_t flags, void *user_data)
{
	struct h2_conn *h2 = user_data;
	struct str name = { (const char *)name_bytes, name_len };
	struct str value = { (const char *)value_bytes, value_len };
	struct h2_stream *stream;

	if (LIKELY(frame->headers.cat == NGHTTP2_HCAT_REQUEST)) {
		if (UNLIKELY(h2->in_head == NULL))
			return 0; /* refused */
		/* More than the limit is not kept. */
		if (LIKELY(!h2->head.is_too_large))
			make_room(h2->in_head,
			    h2_head_add_bytes(name_len, value_len));
		h2_head_add(&h2->head, name, value);
		if (UNLIKELY(h2_head_is_bomb(&h2->head)))
			return h2_give_up(h2, NGHTTP2_ENHANCE_YOUR_CALM,
			    "far too large a head");
		return 0;
	}
	stream = h2_stream_of(session, frame->hd.stream_id);
	if (stream != NULL && h2_head_check_trailer(name, value) != NULL)
		stream->has_bad_trailer = true;
	return 0;
}

/* A PRIORITY_UPDATE: nghttp2 heeds it; we must not when the request comes. */
static void
remember_rank(struct h2_conn *h2, int32_t id)
{
	if (h2_stream_of(h2->session, id) == NULL)
		h2->ranked[h2->n_ranked++ % H2_RANKED] = id;
}

/* Who says nothing of priorities gets his answers side by side. */
static void
set_priority(struct h2_stream *stream)
{
	struct h2_conn *h2 = stream->h2;
	const struct h2_priority *given = &h2->head.priority;
	nghttp2_extpri priority = {
		.urgency = given->urgency,
		.inc = !given->is_given || given->incremental,
	};

	for (unsigned i = 0; i < H2_RANKED && i < h2->n_ranked; i++)
		if (h2->ranked[i] == stream->id)
			return;
	nghttp2_session_change_extpri_stream_priority(
	    h2->session, stream->id, &priority, 0);
}

static int
head_is_whole(struct h2_stream *stream, bool ends_stream)
{
	struct h2_conn *h2 = stream->h2;
	struct request *request = stream->request;
	uint8_t nonce[16] = { 0 };
	unsigned status = 0;
	const char *why = NULL;
	enum h2_head_result result;

	h2->in_head = NULL;
	stream->in_ended = ends_stream;
	if (!h2->head.is_too_large)
		make_room(stream, h2_head_end_bytes(&h2->head));
	if (UNLIKELY(h2->head.protocol.len > 0) &&
	    getrandom(nonce, sizeof(nonce), 0) != sizeof(nonce))
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	result = h2_head_end(&h2->head, ends_stream, nonce, &status, &why);
	request->base = h2->head.base;
	stream->is_connect = request->head.websocket;
	stream->body_since_ms = h2_worker(h2)->tick_ms;
	switch (result) {
	case H2_HEAD_GOOD:
		set_priority(stream);
		stream->body_done = request->head.body == BODY_NONE;
		/* Not yet: who takes it back at once costs no app anything. */
		list_push_back(&h2->resumed, &stream->resumed);
		break;
	case H2_HEAD_MALFORMED:
		return break_off(stream, why);
	case H2_HEAD_REFUSED:
		stream->body_done = true;
		request_refuse(request, status, why);
		break;
	}
	return 0;
}

/* ---- bodies ---- */

static void
keep(struct h2_stream *stream, const char *from, size_t len)
{
	stream->in_bytes += (uint32_t)len;
	while (len > 0) {
		struct buf *buf = stream->in_last;
		size_t n;

		if (buf == NULL || buf->end == buf->room) {
			buf = buf_get(h2_worker(stream->h2));
			if (stream->in_last == NULL)
				stream->in_first = buf;
			else
				stream->in_last->next = buf;
			stream->in_last = buf;
		}
		n = buf->room - buf->end < len ? buf->room - buf->end : len;
		memcpy(buf->bytes + buf->end, from, n);
		buf->end += (uint32_t)n;
		from += n;
		len -= n;
	}
}

static bool
takes_body(const struct h2_stream *stream)
{
	return stream->request != NULL && !stream->request->is_ended &&
	       stream->wants_body && !stream->is_blocked && !stream->body_done;
}

/* Returns how much of it was taken. */
static size_t
give(struct h2_stream *stream, const char *from, size_t len, bool last)
{
	size_t taken;

	/* Before the call: body_resume may already come from inside it. */
	stream->is_blocked = true;
	taken = request_body(stream->request, from, len, last);
	if (stream->request == NULL)
		return len; /* it ended inside */
	if (taken == len) {
		stream->is_blocked = false;
		stream->body_done = last;
	}
	return taken;
}

/* The time of a body runs while its rest is owed by the client. */
static void
watch_body(struct h2_stream *stream)
{
	struct front *front = stream->h2->conn->front;

	/* It is h2_linger.c's then. */
	if (h2_stream_is_over(stream))
		return;
	if (takes_body(stream) && !stream->in_ended && !stream->is_tunnel)
		timer_arm(front->worker, front->h2.body, &stream->body);
	else
		timer_disarm(&stream->body);
}

void
h2_stream_feed(struct h2_stream *stream)
{
	struct h2_conn *h2 = stream->h2;
	struct worker *worker = h2_worker(h2);

	while (stream->in_first != NULL && takes_body(stream)) {
		struct buf *buf = stream->in_first;
		size_t len = buf->end - buf->start;
		bool last = stream->in_ended && buf->next == NULL;
		size_t taken = give(stream, buf->bytes + buf->start, len, last);

		/* Ended inside: what was kept may be gone. */
		if (h2_stream_is_over(stream))
			break;
		nghttp2_session_consume(h2->session, stream->id, taken);
		stream->in_bytes -= (uint32_t)taken;
		buf->start += (uint32_t)taken;
		if (taken < len)
			continue;
		stream->in_first = buf->next;
		if (stream->in_first == NULL)
			stream->in_last = NULL;
		buf_put(worker, &buf);
	}
	if (stream->in_ended && stream->in_first == NULL && takes_body(stream))
		give(stream, "", 0, true);
	if (h2_stream_is_over(stream))
		h2_stream_drop_body(stream);
	watch_body(stream);
}

static uint64_t
announced(const struct h2_stream *stream)
{
	const struct h1_request *head = &stream->request->head;

	return head->body == BODY_LENGTH ? head->content_length : UINT64_MAX;
}

/* A pause is the timer's; this is for who sends a byte now and then. */
static void
check_rate(struct h2_stream *stream)
{
	const struct front *front = stream->h2->conn->front;
	int64_t now_ms = front->worker->tick_ms;
	uint64_t came = stream->seen - stream->body_before;

	if (LIKELY(now_ms - stream->body_since_ms < front->body_timeout_ms))
		return;
	stream->body_since_ms = now_ms;
	stream->body_before = stream->seen;
	if (came < front->body_window_bytes && !stream->is_tunnel &&
	    takes_body(stream))
		request_abort(stream->request, 408, "body timeout");
}

static int
on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id,
    const uint8_t *data, size_t len, void *user_data)
{
	struct h2_stream *stream = h2_stream_of(session, id);
	const char *from = (const char *)data;
	size_t taken = 0;

	if (stream == NULL) {
		nghttp2_session_consume(session, id, len);
		return 0;
	}
	if (h2_stream_is_over(stream)) {
		h2_linger_drop(stream, len);
		return 0;
	}
	stream->seen += len;
	if (UNLIKELY(stream->seen > announced(stream) && !stream->is_connect)) {
		nghttp2_session_consume(session, id, len);
		return break_off(stream, "more than content-length says");
	}
	if (stream->in_first == NULL && takes_body(stream)) {
		taken = give(stream, from, len, false);
		nghttp2_session_consume(session, id, taken);
	}
	if (taken < len)
		keep(stream, from + taken, len - taken);
	check_rate(stream);
	if (h2_stream_is_over(stream))
		h2_stream_drop_body(stream);
	watch_body(stream);
	return 0;
}

/* END_STREAM behind a body. */
static int
body_is_whole(struct h2_stream *stream)
{
	struct request *request = stream->request;

	stream->in_ended = true;
	h2_said_all(stream->h2, stream->id);
	h2_linger_release(stream);
	if (h2_stream_is_over(stream))
		return 0;
	if (UNLIKELY(request->head.body == BODY_LENGTH &&
		     stream->seen != announced(stream)))
		return break_off(stream, "less than content-length says");
	h2_stream_feed(stream);
	return 0;
}

/* DATA that is nothing else; without any it was counted when it began. */
static bool
is_padding(const nghttp2_frame *frame)
{
	return frame->hd.length > 0 && frame->data.padlen == frame->hd.length;
}

static int
on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct h2_conn *h2 = user_data;
	bool ends_stream = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
	const nghttp2_ext_priority_update *update;
	struct h2_stream *stream;

	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
		/* Its head has just come: NULL, if it was refused. */
		stream = frame->headers.cat == NGHTTP2_HCAT_REQUEST
			     ? h2->in_head
			     : h2_stream_of(session, frame->hd.stream_id);
		if (stream == NULL)
			return 0;
		if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
			return head_is_whole(stream, ends_stream);
		if (!ends_stream || stream->has_bad_trailer)
			return break_off(stream, "a bad trailer section");
		return body_is_whole(stream);
	case NGHTTP2_DATA:
		if (!ends_stream)
			return is_padding(frame) ? h2_count_control(h2) : 0;
		stream = h2_stream_of(session, frame->hd.stream_id);
		return stream == NULL ? 0 : body_is_whole(stream);
	case NGHTTP2_PRIORITY_UPDATE:
		update = frame->ext.payload;
		if (update->stream_id == 0)
			return h2_give_up(h2, NGHTTP2_PROTOCOL_ERROR,
			    "a priority of stream 0");
		remember_rank(h2, update->stream_id);
		return 0;
	case NGHTTP2_PING:
		if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0)
			h2_ping_acked(h2, frame->ping.opaque_data);
		return 0;
	}
	return 0;
}

void
h2_stream_callbacks(nghttp2_session_callbacks *callbacks)
{
	nghttp2_session_callbacks_set_on_begin_headers_callback(
	    callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(
	    callbacks, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
	    callbacks, on_data_chunk);
	nghttp2_session_callbacks_set_on_stream_close_callback(
	    callbacks, on_stream_close);
}

/* ---- timers ---- */

void
h2_stream_body_expired(struct worker *worker, struct timer *timer)
{
	struct h2_stream *stream = CONTAINER_OF(timer, struct h2_stream, body);
	struct h2_conn *h2 = stream->h2;

	if (!takes_body(stream))
		return;
	/* It may not send when other requests of it keep the whole window. */
	if (nghttp2_session_get_effective_recv_data_length(h2->session) >=
	    nghttp2_session_get_effective_local_window_size(h2->session)) {
		watch_body(stream);
		return;
	}
	request_abort(stream->request, 408, "body timeout");
	conn_later(h2->conn);
}

/* It has had no window for so long. Who only waits for others, because of their
 * priority or because they use up the connection's window, is left alone. */
void
h2_stream_send_expired(struct worker *worker, struct timer *timer)
{
	struct h2_stream *stream = CONTAINER_OF(timer, struct h2_stream, send);
	struct h2_conn *h2 = stream->h2;
	bool is_stuck = nghttp2_session_get_stream_remote_window_size(
			    h2->session, stream->id) <= 0 ||
			h2->sent_bytes == stream->others_before;

	if (!list_is_linked(&stream->sending) ||
	    (stream->out_bytes + stream->fixed.len == 0 && !stream->is_cut))
		return;
	if (stream->sent_bytes != stream->sent_before || !is_stuck ||
	    stream->holds) {
		h2_write_watch(stream);
		return;
	}
	if (stream->request != NULL && !stream->request->is_ended)
		request_abort(stream->request, 0, "client does not read");
	else
		h2_stream_reset(stream, NGHTTP2_CANCEL);
	conn_later(h2->conn);
}
