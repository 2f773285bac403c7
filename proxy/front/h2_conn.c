/*
 * A client's connection that speaks HTTP/2: its session, what ends it, and how
 * much a client may ask of it. Between conn.c and nghttp2.
 * Requests are h2_stream.c's, answers h2_write.c's.
 */
#include "proxy/front/h2_conn.h"

#include <string.h>

#include "proxy/core/snapshot.h"
#include "proxy/front/h2_mem.h"
#include "src/base/log.h"
#include "src/base/mem.h"

static const uint8_t drain_mark[8] = "scalws-d";

bool
h2_is_preface(const char *from, size_t len)
{
	static const char line[] = "PRI * HTTP/2.0\r\n";

	return len >= sizeof(line) - 1 &&
	       memcmp(from, line, sizeof(line) - 1) == 0;
}

/* ---- what is too much ---- */

int
h2_give_up(struct h2_conn *h2, uint32_t code, const char *why)
{
	if (h2->why == NULL) {
		h2->why = why;
		h2->code = code;
	}
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static void
begin_count(struct h2_conn *h2)
{
	int64_t now_ms = h2_worker(h2)->tick_ms;

	if (LIKELY(now_ms - h2->counted_ms < H2_COUNT_MS))
		return;
	h2->counted_ms = now_ms;
	h2->n_resets = h2->n_control = h2->n_data = 0;
}

int
h2_count_reset(struct h2_conn *h2)
{
	begin_count(h2);
	if (++h2->n_resets <= h2->conn->front->h2.max_resets)
		return 0;
	return h2_give_up(
	    h2, NGHTTP2_ENHANCE_YOUR_CALM, "too many streams were reset");
}

int
h2_count_control(struct h2_conn *h2)
{
	begin_count(h2);
	if (++h2->n_control <= h2->conn->front->h2.max_control)
		return 0;
	return h2_give_up(h2, NGHTTP2_ENHANCE_YOUR_CALM,
	    "too many frames that bring nothing");
}

/* ---- nghttp2's callbacks ---- */

/* The bit of `said` that is this stream's; 0 for none. */
static uint64_t
bit_of(const struct h2_conn *h2, int32_t id)
{
	uint32_t back = ((uint32_t)h2->last_id - (uint32_t)id) / 2;

	return id > 0 && id <= h2->last_id && id % 2 == 1 && back < 64
		   ? UINT64_C(1) << back
		   : 0;
}

void
h2_said_all(struct h2_conn *h2, int32_t id)
{
	h2->said |= bit_of(h2, id);
}

/* RFC 9113 section 5.1, "closed". nghttp2 knows it no more and would drop the
 * head without a word; of those that we have reset the rest may be on its way.
 */
static bool
is_of_the_past(const struct h2_conn *h2, const nghttp2_frame_hd *hd)
{
	return (h2->said & bit_of(h2, hd->stream_id)) != 0 &&
	       nghttp2_session_get_stream_user_data(
		   h2->session, hd->stream_id) == NULL;
}

/* What nghttp2 takes though RFC 9113 says that it ends the connection. NULL: it
 * is none of that. */
static const char *
what_is_wrong(const struct h2_conn *h2, const nghttp2_frame_hd *hd)
{
	if (hd->type == NGHTTP2_PRIORITY && hd->stream_id == 0)
		return "PRIORITY on stream 0"; /* section 6.3 */
	/* Section 5.1.1. Of passed streams the last are remembered: nobody
	 * passes over any by accident. */
	if (hd->type == NGHTTP2_HEADERS && hd->stream_id < h2->last_id &&
	    hd->stream_id >= h2->skipped_from &&
	    hd->stream_id <= h2->skipped_to && hd->stream_id % 2 == 1)
		return "a stream below one that was opened";
	return NULL;
}

/* Each frame of a client is counted here by what it is good for. */
static int
on_begin_frame(
    nghttp2_session *session, const nghttp2_frame_hd *hd, void *user_data)
{
	struct h2_conn *h2 = user_data;
	const char *why = what_is_wrong(h2, hd);

	if (UNLIKELY(why != NULL))
		return h2_give_up(h2, NGHTTP2_PROTOCOL_ERROR, why);
	switch (hd->type) {
	case NGHTTP2_HEADERS:
		if (UNLIKELY(is_of_the_past(h2, hd)))
			return h2_give_up(h2, NGHTTP2_STREAM_CLOSED,
			    "more of a stream that has ended");
		return 0;
	case NGHTTP2_CONTINUATION:
		/* nghttp2 looks at the length of all others. */
		if (hd->length > H2_FRAME_BYTES)
			return h2_give_up(
			    h2, NGHTTP2_FRAME_SIZE_ERROR, "too long a frame");
		break;
	case NGHTTP2_DATA:
		if (LIKELY(hd->length > 0) ||
		    (hd->flags & NGHTTP2_FLAG_END_STREAM) != 0)
			return 0;
		break;
	case NGHTTP2_WINDOW_UPDATE:
		/* Two for a DATA frame are right: the stream's and the
		 * connection's. */
		begin_count(h2);
		if (LIKELY(h2->n_data > 0)) {
			h2->n_data--;
			return 0;
		}
		break;
	case NGHTTP2_RST_STREAM:
		h2_said_all(h2, hd->stream_id);
		return h2_count_reset(h2);
	default:
		break;
	}
	return h2_count_control(h2);
}

static int
on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame,
    int error, void *user_data)
{
	struct h2_conn *h2 = user_data;

	log_debug("c=%d invalid frame of type %u, stream %d: %s",
	    h2->conn->io.fd, frame->hd.type, frame->hd.stream_id,
	    nghttp2_strerror(error));
	return h2_count_reset(h2);
}

/* RFC 9113 section 5.5: a frame of an unknown type is ignored. We ask for them
 * only so that they are counted when they begin. */
static int
on_unknown_frame(nghttp2_session *session, void **payload,
    const nghttp2_frame_hd *hd, void *user_data)
{
	return NGHTTP2_ERR_CANCEL;
}

static void
end_drain(struct h2_conn *h2)
{
	if (!h2->is_draining || h2->is_drained)
		return;
	h2->is_drained = true;
	nghttp2_submit_goaway(h2->session, NGHTTP2_FLAG_NONE,
	    nghttp2_session_get_last_proc_stream_id(h2->session),
	    NGHTTP2_NO_ERROR, NULL, 0);
}

void
h2_ping_acked(struct h2_conn *h2, const uint8_t mark[8])
{
	/* All that it sent before it knew has come. */
	if (memcmp(mark, drain_mark, sizeof(drain_mark)) == 0)
		end_drain(h2);
}

static nghttp2_session_callbacks *
new_callbacks(void)
{
	nghttp2_session_callbacks *callbacks;

	if (nghttp2_session_callbacks_new(&callbacks) != 0)
		mem_exhausted();
	nghttp2_session_callbacks_set_on_begin_frame_callback(
	    callbacks, on_begin_frame);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(
	    callbacks, on_invalid_frame);
	nghttp2_session_callbacks_set_unpack_extension_callback(
	    callbacks, on_unknown_frame);
	h2_stream_callbacks(callbacks);
	h2_write_callbacks(callbacks);
	return callbacks;
}

static nghttp2_option *
new_options(const struct h2_front *front)
{
	nghttp2_option *options;

	if (nghttp2_option_new(&options) != 0)
		mem_exhausted();
	nghttp2_option_set_no_auto_window_update(options, 1);
	nghttp2_option_set_no_http_messaging(options, 1);
	nghttp2_option_set_builtin_recv_extension_type(
	    options, NGHTTP2_PRIORITY_UPDATE);
	for (unsigned type = NGHTTP2_CONTINUATION + 1; type <= UINT8_MAX;
	     type++)
		if (type != NGHTTP2_PRIORITY_UPDATE)
			nghttp2_option_set_user_recv_extension_type(
			    options, (uint8_t)type);
	nghttp2_option_set_max_outbound_ack(options, front->max_control);
	/* We count ourselves; never let it be nghttp2's number. */
	nghttp2_option_set_stream_reset_rate_limit(
	    options, UINT32_MAX, UINT32_MAX);
	/* As many as an allowed head needs, and some empty ones. */
	nghttp2_option_set_max_continuations(options, 16);
	nghttp2_option_set_max_send_header_block_length(
	    options, 2 * HOLD_BYTES);
	return options;
}

/* ---- begin and end ---- */

static int
say_hello(struct h2_conn *h2)
{
	const struct front *front = h2->conn->front;
	const nghttp2_settings_entry settings[] = {
		/* h2_write.c puts the number in. */
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, INT32_MAX },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
		    front->h2.window_bytes },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
		    front->limits.head_bytes },
		{ NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1 },
		{ NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1 },
	};
	uint32_t window = front->h2.connection_bytes;

	if (nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, settings,
		ARRAY_LEN(settings)) != 0)
		return -1;
	if (window < NGHTTP2_INITIAL_CONNECTION_WINDOW_SIZE)
		return 0;
	return nghttp2_session_set_local_window_size(
	    h2->session, NGHTTP2_FLAG_NONE, 0, (int32_t)window);
}

static void
receive(struct conn *conn, const char *from, size_t len)
{
	struct h2_conn *h2 = conn->h2;
	ssize_t used;

	/* Some of what came before was not read to its end. */
	if (UNLIKELY(h2->why != NULL))
		return;
	used =
	    nghttp2_session_mem_recv(h2->session, (const uint8_t *)from, len);
	if (UNLIKELY(used < 0)) {
		bool is_flood = used == NGHTTP2_ERR_FLOODED ||
				used == NGHTTP2_ERR_TOO_MANY_SETTINGS ||
				used == NGHTTP2_ERR_TOO_MANY_CONTINUATIONS;

		h2_give_up(h2,
		    is_flood ? NGHTTP2_ENHANCE_YOUR_CALM
			     : NGHTTP2_PROTOCOL_ERROR,
		    nghttp2_strerror((int)used));
	}
	conn_later(conn);
}

void
h2_begin(struct conn *conn, const char *from, size_t len)
{
	struct front *front = conn->front;
	nghttp2_mem memory;
	struct h2_conn *h2;

	if (front->h2.mem == NULL)
		front->h2.mem = mem_alloc(sizeof(*front->h2.mem));
	memory = h2_mem_functions(front->h2.mem);
	if (front->h2.callbacks == NULL)
		front->h2.callbacks = new_callbacks();
	if (front->h2.options == NULL)
		front->h2.options = new_options(&front->h2);
	if (front->h2.in == NULL)
		front->h2.in = mem_alloc(H2_IN_BYTES);
	h2 = pool_of_get(&front->h2.conns);
	memset(h2, 0, sizeof(*h2));
	h2->conn = conn;
	h2->counted_ms = front->worker->tick_ms;
	h2->last_id = -1;
	list_init(&h2->streams);
	list_init(&h2->sending);
	list_init(&h2->resumed);
	conn->h2 = h2;
	conn_set_state(conn, CONN_H2);
	if (nghttp2_session_server_new3(&h2->session, front->h2.callbacks, h2,
		front->h2.options, &memory) != 0)
		mem_exhausted();
	if (say_hello(h2) != 0)
		h2_give_up(h2, NGHTTP2_INTERNAL_ERROR, "no settings");
	if (len > 0)
		receive(conn, from, len);
	conn_later(conn);
}

void
h2_free(struct conn *conn)
{
	struct h2_conn *h2 = conn->h2;
	struct list *node;

	if (h2 == NULL)
		return;
	conn->h2 = NULL;
	while ((node = list_first(&h2->streams)) != NULL)
		h2_stream_free(LIST_ENTRY(node, struct h2_stream, node));
	nghttp2_session_del(h2->session);
	pool_of_put(&conn->front->h2.conns, h2);
}

void
h2_abort(struct conn *conn, const char *why)
{
	struct list *node, *after;

	LIST_FOREACH_SAFE(node, after, &conn->h2->streams)
	{
		struct h2_stream *stream =
		    LIST_ENTRY(node, struct h2_stream, node);

		if (stream->request != NULL)
			request_abort(stream->request, 0, why);
	}
}

void
h2_drain(struct conn *conn)
{
	struct h2_conn *h2 = conn->h2;

	if (h2->is_draining)
		return;
	h2->is_draining = true;
	nghttp2_submit_shutdown_notice(h2->session);
	nghttp2_submit_ping(h2->session, NGHTTP2_FLAG_NONE, drain_mark);
	timer_arm(h2_worker(h2), conn->front->h2.drain, &conn->timer);
	conn_later(conn);
}

static void
drain_expired(struct worker *worker, struct timer *timer)
{
	struct conn *conn = CONTAINER_OF(timer, struct conn, timer);

	if (conn->state != CONN_H2)
		return;
	end_drain(conn->h2);
	h2_run(conn);
}

/* Tell the client and close. */
static void
end(struct conn *conn, uint32_t code, const char *why)
{
	struct h2_conn *h2 = conn->h2;

	log_debug("c=%d HTTP/2 ends: %s", conn->io.fd, why);
	nghttp2_session_terminate_session(h2->session, code);
	h2_abort(conn, why);
	h2_write_flush(h2);
	if (conn->state == CONN_H2)
		conn_finish(conn, true);
}

void
h2_idle(struct conn *conn)
{
	/* It may have been armed before the last request. */
	if (list_is_empty(&conn->h2->streams))
		end(conn, NGHTTP2_NO_ERROR, "idle");
}

void
h2_header_expired(struct conn *conn)
{
	struct h2_conn *h2 = conn->h2;

	if (h2->in_head != NULL)
		end(conn, NGHTTP2_ENHANCE_YOUR_CALM, "header timeout");
	else if (list_is_empty(&h2->streams))
		end(conn, NGHTTP2_NO_ERROR, "sent nothing");
}

/* ---- the order of things ---- */

/* Say to the loop what this connection waits for. */
static void
settle(struct conn *conn)
{
	struct h2_conn *h2 = conn->h2;
	struct front *front = conn->front;
	bool is_idle = list_is_empty(&h2->streams);

	/* Who does not read is not answered, and so not heard. */
	if (conn->io.out_bytes > 0 &&
	    nghttp2_session_get_outbound_queue_size(h2->session) > H2_QUEUE_MAX)
		io_read_pause(&conn->io);
	else
		io_read_start(&conn->io);
	/* The timer is the drain's until then. */
	if (h2->is_draining && !h2->is_drained)
		return;
	if (h2->in_head != NULL) {
		/* Once: from the first byte of a head. */
		if (!list_is_linked(&conn->timer.node) ||
		    conn->timer.cls != front->header)
			timer_arm(front->worker, front->header, &conn->timer);
	} else if (is_idle) {
		timer_arm(front->worker,
		    conn->n_requests == 0 ? front->header : front->idle,
		    &conn->timer);
	} else if (conn->timer.cls == front->header) {
		timer_disarm(&conn->timer);
	}
}

static void
feed_resumed(struct h2_conn *h2)
{
	struct list *node;

	while ((node = list_first(&h2->resumed)) != NULL) {
		struct h2_stream *stream =
		    LIST_ENTRY(node, struct h2_stream, resumed);
		struct request *request = stream->request;

		list_remove(node);
		if (request == NULL || request->is_begun)
			h2_stream_feed(stream);
		else if (!stream->is_reset && h2->why == NULL)
			request_dispatch(request);
	}
}

void
h2_run(struct conn *conn)
{
	struct h2_conn *h2 = conn->h2;

	feed_resumed(h2);
	if (h2->why == NULL)
		h2_write_flush(h2);
	if (UNLIKELY(h2->why != NULL)) {
		end(conn, h2->code, h2->why);
		return;
	}
	if (UNLIKELY(conn->io.broken))
		return; /* on_closed comes */
	if (UNLIKELY((conn->front->worker->draining ||
			 conn->n_requests >= conn->front->max_requests) &&
		     !h2->is_draining))
		h2_drain(conn);
	if (UNLIKELY(!nghttp2_session_want_read(h2->session) &&
		     !nghttp2_session_want_write(h2->session))) {
		h2_abort(conn, "the connection has ended");
		conn_finish(conn, true);
		return;
	}
	settle(conn);
}

void
h2_readable(struct conn *conn)
{
	char *in = conn->front->h2.in;
	ssize_t n = io_read(&conn->io, in, H2_IN_BYTES);

	if (n > 0)
		receive(conn, in, (size_t)n);
	else if (n != IO_AGAIN)
		conn_gone(conn, "client closed");
}

/* ---- the front of one worker ---- */

static void
drain_orphans(struct front *front)
{
	struct list *node;

	LIST_FOREACH(node, &front->open)
	{
		struct conn *conn = LIST_ENTRY(node, struct conn, node);

		if (conn->state == CONN_H2 &&
		    snapshot_listener_of(
			front->worker->snapshot, conn->listener_key) == NULL)
			h2_drain(conn);
	}
}

void
h2_configure(struct front *front, const struct conf_limits *limits)
{
	struct worker *worker = front->worker;
	struct h2_front *h2 = &front->h2;

	if (h2->conns.bytes == 0) {
		pool_of_init(worker, &h2->conns, sizeof(struct h2_conn));
		pool_of_init(worker, &h2->streams, sizeof(struct h2_stream));
	}
	h2->max_streams = limits->h2_streams;
	h2->window_bytes = limits->h2_window_bytes;
	h2->connection_bytes = limits->h2_connection_bytes;
	h2->max_resets = limits->h2_resets;
	h2->max_control = limits->h2_control_frames;
	h2->body = timer_class_of(
	    worker, limits->body_timeout_ms, h2_stream_body_expired);
	h2->send = timer_class_of(
	    worker, limits->send_timeout_ms, h2_stream_send_expired);
	h2->linger = timer_class_of(worker, LINGER_MS, h2_linger_expired);
	h2->hold = timer_class_of(worker, H2_HOLD_MS, h2_hold_expired);
	h2->drain = timer_class_of(worker, H2_DRAIN_MS, drain_expired);
	nghttp2_option_del(h2->options);
	h2->options = NULL;
	drain_orphans(front);
}

void
h2_front_free(struct front *front)
{
	nghttp2_session_callbacks_del(front->h2.callbacks);
	nghttp2_option_del(front->h2.options);
	mem_free(front->h2.in);
	if (front->h2.mem != NULL)
		h2_mem_clear(front->h2.mem);
	mem_free(front->h2.mem);
	pool_of_end(&front->h2.conns);
	pool_of_end(&front->h2.streams);
}
