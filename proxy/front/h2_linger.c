/*
 * Requests over HTTP/2 that were answered before all of them came: what still
 * comes is dropped, within bounds. Beside h2_stream.c; conn.c does the same for
 * HTTP/1. Ends no request.
 */
#include "proxy/front/h2_conn.h"

void
h2_linger_drop(struct h2_stream *stream, size_t len)
{
	nghttp2_session *session = stream->h2->session;

	stream->dropped += len;
	if (stream->dropped <= LINGER_BYTES_MAX) {
		nghttp2_session_consume(session, stream->id, len);
		return;
	}
	/* The others go on; this one gets no more window. */
	nghttp2_session_consume_connection(session, len);
	h2_linger(stream);
}

/* curl up to 7.88 reads nothing once all of an answer has come while it sends a
 * body, unless that is an error with a page: without a reset it would wait for
 * windows for ever. */
static bool
may_linger(const struct h2_stream *stream)
{
	return stream->is_error && stream->sent_bytes > 0 &&
	       stream->dropped <= LINGER_BYTES_MAX;
}

void
h2_linger(struct h2_stream *stream)
{
	struct front *front = stream->h2->conn->front;

	if (!h2_stream_is_over(stream) || stream->in_ended || !stream->end_sent)
		return;
	if (!may_linger(stream)) {
		h2_stream_reset(stream, NGHTTP2_NO_ERROR);
	} else if (!stream->lingers) {
		stream->lingers = true;
		timer_arm(front->worker, front->h2.linger, &stream->body);
	}
}

void
h2_linger_expired(struct worker *worker, struct timer *timer)
{
	struct h2_stream *stream = CONTAINER_OF(timer, struct h2_stream, body);

	h2_stream_reset(stream, NGHTTP2_NO_ERROR);
	conn_later(stream->h2->conn);
}
