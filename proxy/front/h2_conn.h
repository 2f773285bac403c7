/*
 * A client's connection that speaks HTTP/2: what the files of h2_ share.
 * conn.c sees the first part only. The one door to nghttp2. The worker's
 * thread.
 *
 * nghttp2 keeps the frames, the flow control windows, the order of sending and
 * HPACK. What a request is, and what is wrong with it, is ours: its own checks
 * of HTTP messages are off.
 */
#ifndef FRONT_H2_CONN_H
#define FRONT_H2_CONN_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/front/conn.h"
#include "proxy/front/h2_head.h"
#include "src/base/list.h"
#include "src/base/str.h"

/* A head up to this size needs no buffer of its own. */
#define H2_TEXT_BYTES 1280
/* Frames of a client are counted over so long a time. */
#define H2_COUNT_MS 10000
/* Longest wait between the two GOAWAYs of an orderly end. */
#define H2_DRAIN_MS 1000
/* Who sends nothing of a body for so long waits for the end of the answer. */
#define H2_HOLD_MS 500
#define H2_RANKED 16
/* With so many frames that the client does not take, it is not read. */
#define H2_QUEUE_MAX 1000
/* Longest frame of a client: SETTINGS_MAX_FRAME_SIZE, as we say none. */
#define H2_FRAME_BYTES 16384

struct h2_stream {
	struct h2_conn *h2;
	struct list node;        /* in h2->streams */
	struct list sending;     /* in h2->sending */
	struct list resumed;     /* in h2->resumed */
	struct timer body;       /* while the client owes some of a body, or
				  * lingers */
	struct timer send;       /* while it owes a window */
	struct request *request; /* NULL: ended, the rest is going out */
	int32_t id;

	/* What comes. */
	struct buf *head; /* holds the head when `text` does not, or NULL */
	struct buf *in_first, *in_last; /* not yet taken */
	uint32_t in_bytes;
	uint64_t seen;         /* bytes of the body that came */
	int64_t body_since_ms; /* as in struct conn */
	uint64_t body_before;
	uint64_t dropped; /* of it, because the request was over */
	bool in_ended;    /* END_STREAM */
	bool wants_body;  /* the handler does */
	bool is_blocked;  /* until body_resume */
	bool body_done;   /* all was given */
	bool said_continue;
	bool has_bad_trailer;
	bool is_connect; /* extended CONNECT */
	bool is_reset;   /* by us */
	bool is_closed;  /* nghttp2 knows it no more */
	bool lingers;    /* all is said; the rest of the body is dropped */
	bool holds;      /* the end of the answer, until the body has come */

	/* What goes out. */
	struct buf *out_first, *out_last;
	uint32_t out_bytes;   /* in them */
	struct str fixed;     /* ... and then this, of the snapshot that the
			       * request holds until the stream is closed */
	struct buf *trailers; /* as lines, or NULL */
	struct buf *held; /* a head that is all of the answer: its status, and
			   * lines */
	uint64_t left;    /* of the announced length */
	uint64_t sent_bytes, sent_before; /* now, when `send` was armed */
	uint64_t others_before;           /* h2->sent_bytes then */
	bool has_length;
	bool is_tunnel;
	bool is_refused;  /* a WebSocket that there is none of: no body */
	bool is_answered; /* a final head was said */
	bool is_error;    /* ... of 400 or more */
	bool is_cut;      /* it fails behind what is queued */
	bool out_ended;   /* nothing more is queued, */
	bool end_sent;    /* and END_STREAM is out */
	bool is_deferred; /* nghttp2 waits for us to say that there is more */
	bool owes_writable;

	char text[H2_TEXT_BYTES];
};

struct h2_conn {
	struct conn *conn;
	nghttp2_session *session;
	/* struct h2_stream; resumed: whose request is whole, or whose body is
	 * wanted again. */
	struct list streams, sending, resumed;
	unsigned n_streams;
	uint64_t out_bytes;  /* of all streams */
	uint64_t sent_bytes; /* of all bodies */

	struct h2_head head; /* of the stream whose head is coming, if any: */
	struct h2_stream *in_head;

	/* Streams whose priority was said before their request; the oldest is
	 * forgotten. */
	int32_t ranked[H2_RANKED];
	unsigned n_ranked;

	/* The last stream that the client opened, and those that it passed
	 * over at last. */
	int32_t last_id, skipped_from, skipped_to;
	/* Which of the last 64 the client has said all of; bit 0 is last_id. */
	uint64_t said;

	/* Since counted_ms. */
	int64_t counted_ms;
	uint32_t n_resets, n_control, n_data; /* n_data: frames we sent */

	const char *why;  /* static: why it must end, with: */
	uint32_t code;    /* of the GOAWAY */
	bool is_draining; /* the first GOAWAY is out */
	bool is_drained;  /* ... and the second */
	bool has_greeted; /* our first SETTINGS is out */
	bool is_full;     /* the worker's buffer is */
	bool ends_record; /* ... or what it ends with is to be a record's end */
};

/* ---- h2_conn.c: the connection ---- */

/* Say that it must end; is done when nghttp2 has returned. Returns what a
 * callback of nghttp2's then returns. */
int h2_give_up(struct h2_conn *h2, uint32_t code, const char *why);
/* A stream came to a bad end. / A frame came that brings nothing. Returns 0, or
 * h2_give_up's word: there were too many. */
int h2_count_reset(struct h2_conn *h2);
int h2_count_control(struct h2_conn *h2);
/* The client has said all that it may on one of its streams, or reset it. */
void h2_said_all(struct h2_conn *h2, int32_t id);
/* The client has answered a PING. */
void h2_ping_acked(struct h2_conn *h2, const uint8_t mark[8]);

struct h2_fields;

/* ---- h2_stream.c: requests ---- */

/* nghttp2's callbacks about heads and bodies. */
void h2_stream_callbacks(nghttp2_session_callbacks *callbacks);
/* Give what was kept to the handler, as far as it takes it. */
void h2_stream_feed(struct h2_stream *stream);
/* The rest of the body is dropped. */
void h2_stream_drop_body(struct h2_stream *stream);
/* Break it off. */
void h2_stream_reset(struct h2_stream *stream, uint32_t code);
/* From its owner's side, nghttp2's is gone or going. */
void h2_stream_free(struct h2_stream *stream);
timer_cb h2_stream_body_expired, h2_stream_send_expired;

/* ---- h2_linger.c: answered before all of the request came ---- */

/* The head of the answer comes. Is its last frame held back until all of the
 * request came? Not from who waits for a 100, or for a tunnel. */
void h2_linger_plan(struct h2_stream *stream, unsigned status, bool has_data);
/* That is all of an answer: kept until h2_linger_release. */
void h2_linger_keep_head(
    struct h2_stream *stream, const struct h2_fields *fields);
/* The answer is complete: from now on the client must go on sending, within the
 * bounds of HTTP/1, or is told. */
void h2_linger_hold(struct h2_stream *stream);
void h2_linger_release(struct h2_stream *stream);
/* If the answer is out, the rest of the request is not wanted, and the stream
 * is reset (RFC 9113 section 8.1). Clients that take this for a failure stop by
 * themselves when they see an error: after one they may, within the bounds of
 * HTTP/1. */
void h2_linger(struct h2_stream *stream);
/* Bytes came of a request that is over. */
void h2_linger_drop(struct h2_stream *stream, size_t len);
timer_cb h2_linger_expired, h2_hold_expired;

/* ---- h2_answer.c: answers ---- */

extern const struct front_ops h2_front_ops;

/* ---- h2_write.c: what leaves ---- */

/* The head of the final answer; `has_data`: what the stream has follows. */
void h2_write_submit(
    struct h2_stream *stream, const struct h2_fields *fields, bool has_data);
/* nghttp2's callbacks about sending. */
void h2_write_callbacks(nghttp2_session_callbacks *callbacks);
/* Send what there is, as far as the socket takes it; then let those go on who
 * were told to wait. */
void h2_write_flush(struct h2_conn *h2);
void h2_write_drop(struct h2_stream *stream);
/* From now on the client's time to take some of it runs. */
void h2_write_watch(struct h2_stream *stream);

static inline struct h2_stream *
h2_stream_of(nghttp2_session *session, int32_t id)
{
	return nghttp2_session_get_stream_user_data(session, id);
}

static inline bool
h2_stream_is_over(const struct h2_stream *stream)
{
	return stream->request == NULL || stream->request->is_ended;
}

static inline struct worker *
h2_worker(const struct h2_conn *h2)
{
	return h2->conn->front->worker;
}

#endif
