/*
 * Requests over HTTP/2 that were answered before all of them came: what still
 * comes is dropped, within bounds. Beside h2_stream.c; conn.c does the same for
 * HTTP/1. Ends no request.
 *
 * RFC 9113 section 8.1 has RST_STREAM(NO_ERROR) behind such an answer. Clients
 * take that for a failure of the request, or, without it, read nothing more
 * once they have all of the answer and wait for windows for ever (curl up to
 * 7.88 does both). So the end of the answer is held back while they send. Who
 * sees an error with a page stops by himself: that is held back from nobody.
 */
#include "proxy/front/h2_conn.h"

#include <string.h>

#include "proxy/front/h2_fields.h"

/* ---- the end of the answer ---- */

void
h2_linger_plan(struct h2_stream *stream, unsigned status, bool has_data)
{
	const struct request *request = stream->request;

	stream->is_error = status >= 400;
	stream->holds = !stream->in_ended && !stream->is_connect &&
			(!stream->is_error || !has_data) &&
			(!request->head.expect_continue || stream->seen > 0);
}

void
h2_linger_keep_head(struct h2_stream *stream, const struct h2_fields *fields)
{
	size_t room = 0;
	struct buf *buf;
	char *at;

	for (size_t i = 0; i < fields->n; i++)
		room += fields->nv[i].namelen + fields->nv[i].valuelen + 3;
	buf = buf_get_large(h2_worker(stream->h2), room);
	at = buf->bytes;
	/* The first is :status, which no line can hold. */
	at = mempcpy(at, fields->nv[0].value, 3);
	for (size_t i = 1; i < fields->n; i++) {
		const nghttp2_nv *nv = &fields->nv[i];

		at = mempcpy(at, nv->name, nv->namelen);
		*at++ = ':';
		at = mempcpy(at, nv->value, nv->valuelen);
		at = mempcpy(at, "\r\n", 2);
	}
	buf->end = (uint32_t)(at - buf->bytes);
	stream->held = buf;
}

static void
submit_held(struct h2_stream *stream)
{
	const char *text = stream->held->bytes;
	struct h2_fields fields;

	h2_fields_begin(
	    &fields, (unsigned)((text[0] - '0') * 100 + (text[1] - '0') * 10 +
				text[2] - '0'));
	h2_fields_add_lines(
	    &fields, (struct str){ text + 3, stream->held->end - 3 });
	h2_write_submit(stream, &fields, false);
	buf_put(h2_worker(stream->h2), &stream->held);
}

void
h2_linger_release(struct h2_stream *stream)
{
	if (LIKELY(!stream->holds))
		return;
	stream->holds = false;
	if (stream->held != NULL)
		submit_held(stream);
	if (stream->is_deferred) {
		stream->is_deferred = false;
		nghttp2_session_resume_data(stream->h2->session, stream->id);
	}
	conn_later(stream->h2->conn);
}

void
h2_linger_hold(struct h2_stream *stream)
{
	struct front *front = stream->h2->conn->front;

	if (LIKELY(!stream->holds))
		return;
	stream->body_since_ms = front->worker->tick_ms;
	timer_arm(front->worker, front->h2.hold, &stream->body);
}

/* A little more of the body came. */
static void
go_on_holding(struct h2_stream *stream)
{
	struct front *front = stream->h2->conn->front;
	int64_t held_ms = front->worker->tick_ms - stream->body_since_ms;

	if (stream->dropped > LINGER_BYTES_MAX || held_ms >= LINGER_MS)
		h2_linger_release(stream);
	else
		timer_arm(front->worker, front->h2.hold, &stream->body);
}

/* It does not send: it may wait for our end. */
void
h2_hold_expired(struct worker *worker, struct timer *timer)
{
	h2_linger_release(CONTAINER_OF(timer, struct h2_stream, body));
}

/* ---- behind the answer ---- */

void
h2_linger_drop(struct h2_stream *stream, size_t len)
{
	nghttp2_session *session = stream->h2->session;

	stream->dropped += len;
	if (stream->dropped <= LINGER_BYTES_MAX)
		nghttp2_session_consume(session, stream->id, len);
	else /* The others go on; this one gets no more window. */
		nghttp2_session_consume_connection(session, len);
	if (UNLIKELY(stream->holds))
		go_on_holding(stream);
	if (stream->dropped > LINGER_BYTES_MAX)
		h2_linger(stream);
}

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
