/*
 * What leaves over HTTP/2, and in which order: nghttp2 pulls from what
 * h2_answer.c left with the streams. All streams of a connection leave
 * together, from the loop. Reads nothing.
 */
#include <string.h>

#include "proxy/core/response.h"
#include "proxy/front/h2_conn.h"
#include "proxy/front/h2_fields.h"
#include "src/base/log.h"

/* One write, and what a connection may send before others have their turn. */
#define BURST_BYTES 65536
#define TURN_BYTES ((size_t)4 * BURST_BYTES)
/* Where a body is larger, a record of TLS that ends with it costs little. */
#define SMALL_BODY_BYTES 16384

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

/* ---- what nghttp2 pulls ---- */

static void
submit_trailers(struct h2_stream *stream, uint32_t *flags)
{
	const struct buf *buf = stream->trailers;
	struct h2_fields fields;

	fields.n = 0;
	fields.overflow = false;
	h2_fields_add_lines(&fields, (struct str){ buf->bytes, buf->end });
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
	/* nghttp2 then resets the stream with INTERNAL_ERROR. */
	if (UNLIKELY(stream->is_cut))
		return have > 0 ? (ssize_t)have
				: NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	if (stream->out_ended && UNLIKELY(stream->holds)) {
		stream->is_deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
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

void
h2_write_submit(
    struct h2_stream *stream, const struct h2_fields *fields, bool has_data)
{
	nghttp2_data_provider data = { .source.ptr = stream,
		.read_callback = on_read };

	if (UNLIKELY(stream->holds) && !has_data && !fields->overflow) {
		h2_linger_keep_head(stream, fields);
		return;
	}
	if (UNLIKELY(fields->overflow))
		log_error("c=%d: an answer with too many fields",
		    stream->h2->conn->io.fd);
	if (UNLIKELY(fields->overflow) ||
	    nghttp2_submit_response(stream->h2->session, stream->id, fields->nv,
		fields->n, has_data ? &data : NULL) != 0)
		h2_stream_reset(stream, NGHTTP2_INTERNAL_ERROR);
	stream->is_answered = true;
	conn_later(stream->h2->conn);
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

	if (front->held_len >= BURST_BYTES || h2->ends_record) {
		h2->is_full = true;
		return NGHTTP2_ERR_WOULDBLOCK;
	}
	memcpy(front->held + front->held_len, frame_head, 9);
	take_out(stream, front->held + front->held_len + 9, len);
	front->held_len += 9 + len;
	stream->sent_bytes += len;
	h2->sent_bytes += len;
	h2->n_data += 2;
	/* curl 7.88 takes the rest of a record for read when one of the streams
	 * in it is over, and waits for more: then nothing may be in the rest
	 * that nothing follows. */
	h2->ends_record = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
			  stream->sent_bytes > SMALL_BODY_BYTES;
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
	h2_linger(stream);
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
	h2->is_full = h2->ends_record = false;
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
		bool has_more =
		    stream->out_bytes + stream->fixed.len > 0 || stream->is_cut;

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
