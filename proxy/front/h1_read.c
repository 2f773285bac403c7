/*
 * HTTP/1 from the client: heads, bodies, and what comes next on a connection.
 * Called when bytes came (conn.c) and when a request has ended (h1_write.c).
 * Writes nothing; what a head means is request_dispatch's.
 */
#include <string.h>

#include "proxy/core/snapshot.h"
#include "proxy/core/tls_io.h"
#include "proxy/front/conn.h"

/* Less room than this behind a head: the body gets a buffer of its own. */
#define BODY_ROOM_MIN 4096

/* ---- the buffer ---- */

/* Room behind `end`, if need be by moving or growing. */
static void
make_room(struct conn *conn)
{
	struct worker *worker = conn->front->worker;
	struct buf *in = conn->in, *larger;
	uint32_t len;

	if (in == NULL) {
		conn->in = buf_get(worker);
		conn->floor = 0;
		return;
	}
	len = in->end - in->start;
	if (len == 0)
		in->start = in->end = conn->floor;
	if (conn->state == CONN_REQUEST && in->room - in->end < BODY_ROOM_MIN &&
	    conn->head == NULL && conn->floor > 0) {
		/* The head must stay where it is. */
		conn->head = in;
		conn->in = buf_get(worker);
		conn->in->end = len;
		memcpy(conn->in->bytes, in->bytes + in->start, len);
		conn->floor = 0;
		return;
	}
	if (in->end < in->room)
		return;
	if (in->start > conn->floor) {
		memmove(in->bytes + conn->floor, in->bytes + in->start, len);
		in->start = conn->floor;
		in->end = in->start + len;
		return;
	}
	/* A head larger than the buffer and within its limit (h1_parse refuses
	 * it beyond that). */
	larger = buf_get_large(
	    worker, (size_t)in->room + conn->front->limits.head_bytes);
	memcpy(larger->bytes, in->bytes + in->start, len);
	larger->end = len;
	buf_put(worker, &conn->in);
	conn->in = larger;
}

/* ---- heads ---- */

static void
new_request(struct conn *conn)
{
	struct request *request =
	    request_new(conn->front->worker, &h1_front_ops, conn);

	conn->request = request;
	request->listener =
	    snapshot_listener_of(request->snapshot, conn->listener_key);
	request->tls = tls_of(&conn->io);
	request->peer.len = conn->peer.len;
	memcpy(&request->peer.u, &conn->peer.u, sizeof(conn->peer.u));
}

static void
begin_answer(struct conn *conn, size_t used)
{
	struct h1_request *head = &conn->request->head;

	conn->may_be_h2 = false;
	conn->request->base = conn->in->bytes + conn->in->start;
	conn->in->start += (uint32_t)used;
	conn->floor = conn->in->start;
	conn->scanned = 0;
	conn->wants_body = conn->piece_waits = conn->piece_last = false;
	conn->is_blocked = conn->said_continue = conn->body_done = false;
	conn->body_end = END_NONE;
	conn_set_state(conn, CONN_REQUEST);
	h1_body_init(&conn->body, head->body, head->content_length);
	conn->body_done = h1_body_is_done(&conn->body);
	conn_begin_window(conn);
}

/* The client knew beforehand that we speak HTTP/2 (RFC 9113 section 3.3). */
static void
become_h2(struct conn *conn)
{
	struct buf *in = conn->in;

	conn->in = NULL;
	request_free(&conn->request);
	h2_begin(conn, in->bytes + in->start, in->end - in->start);
	buf_put(conn->front->worker, &in);
}

/* One head, if it is whole. False: more bytes are needed. */
static bool
next_request(struct conn *conn)
{
	struct front *front = conn->front;
	struct buf *in = conn->in;
	size_t used = 0;
	unsigned status = 400;
	const char *why = "bad request";
	enum h1_result result;

	if (UNLIKELY(conn->may_be_h2 && h2_is_preface(in->bytes + in->start,
					    in->end - in->start))) {
		become_h2(conn);
		return false;
	}
	if (conn->request == NULL)
		new_request(conn);
	result = h1_parse_request(in->bytes + in->start, in->end - in->start,
	    &front->limits, &conn->scanned, &conn->request->head, &used,
	    &status, &why);
	if (result == H1_MORE) {
		if (conn->state == CONN_IDLE) {
			conn_set_state(conn, CONN_HEAD);
			timer_arm(front->worker, front->header, &conn->timer);
		}
		return false;
	}
	if (result == H1_BAD) {
		conn->request->base = in->bytes + in->start;
		conn->body_end = END_NONE;
		conn->body_done = true;
		conn_set_state(conn, CONN_REQUEST);
		request_refuse(conn->request, status, why);
		return true;
	}
	begin_answer(conn, used);
	request_dispatch(conn->request);
	return true;
}

/* ---- bodies ---- */

/* Give the handler the piece that waits. False: it cannot take it now. */
static bool
give_piece(struct conn *conn)
{
	size_t taken;

	/* Before the call: body_resume may already come from inside it. */
	conn->is_blocked = true;
	taken = request_body(conn->request, conn->in->bytes + conn->piece_at,
	    conn->piece_len, conn->piece_last);
	if (conn->state != CONN_REQUEST || conn->request == NULL)
		return false; /* it ended inside */
	if (taken < conn->piece_len) {
		conn->piece_at += (uint32_t)taken;
		conn->piece_len -= (uint32_t)taken;
		return !conn->is_blocked;
	}
	conn->is_blocked = false;
	conn->piece_waits = false;
	conn->body_done = conn->piece_last;
	return true;
}

static void
feed_body(struct conn *conn)
{
	struct buf *in = conn->in;

	while (conn->state == CONN_REQUEST && conn->wants_body &&
	       !conn->is_blocked && !conn->body_done) {
		enum h1_body_result result;
		const char *data;
		size_t used, len;

		if (conn->piece_waits) {
			if (!give_piece(conn))
				return;
			continue;
		}
		if (UNLIKELY(in == NULL)) /* an idle tunnel */
			return;
		result = h1_body_read(&conn->body, in->bytes + in->start,
		    in->end - in->start, &used, &data, &len);
		in->start += (uint32_t)used;
		if (result == H1_BODY_MORE)
			return;
		if (result == H1_BODY_BAD) {
			request_abort(conn->request, 400, "bad chunk");
			return;
		}
		conn->piece_waits = true;
		conn->piece_at = conn->piece_len = 0;
		conn->piece_last = result == H1_BODY_END;
		if (result == H1_BODY_DATA) {
			conn->piece_at = (uint32_t)(data - in->bytes);
			conn->piece_len = (uint32_t)len;
			conn->piece_last = h1_body_is_done(&conn->body);
		}
	}
}

/* The answer is out and the rest of the body is dropped. False: more must be
 * read. */
static bool
skip_body(struct conn *conn)
{
	struct buf *in = conn->in;

	for (;;) {
		enum h1_body_result result;
		const char *data;
		size_t used, len = 0;

		if (h1_body_is_done(&conn->body))
			break;
		if (in == NULL)
			return false;
		result = h1_body_read(&conn->body, in->bytes + in->start,
		    in->end - in->start, &used, &data, &len);
		in->start += (uint32_t)used;
		if (result == H1_BODY_MORE)
			return false;
		if (result == H1_BODY_END)
			break;
		if (result == H1_BODY_BAD || len > conn->left) {
			/* The answer may still be held. */
			if (conn->front->held_by == conn)
				h1_flush(conn->front);
			conn_finish(conn, true);
			return false;
		}
		conn->left -= len;
	}
	conn_set_state(conn, CONN_IDLE);
	return true;
}

/* ---- the order of things ---- */

/* Say to the loop what this connection waits for. */
static void
settle(struct conn *conn)
{
	struct front *front = conn->front;
	struct worker *worker = front->worker;

	switch ((enum conn_state)conn->state) {
	case CONN_HANDSHAKE:
		return;
	case CONN_IDLE:
		if (conn->io.owes_drained) {
			io_read_pause(&conn->io); /* on_drained goes on */
			return;
		}
		buf_put(worker, &conn->in);
		if (worker->draining && !worker->keeps_idle) {
			conn_finish(conn, false);
			return;
		}
		timer_arm(worker,
		    conn->n_requests == 0 ? front->header : front->idle,
		    &conn->timer);
		io_read_start(&conn->io);
		return;
	case CONN_HEAD:
		io_read_start(&conn->io);
		return;
	case CONN_SKIP:
		timer_arm(worker, front->body, &conn->timer);
		io_read_start(&conn->io);
		return;
	case CONN_REQUEST:
		if (UNLIKELY(conn->body_end == END_TUNNEL)) {
			h1_tunnel_settle(conn);
			return;
		}
		if (conn->wants_body && !conn->body_done && !conn->is_blocked) {
			timer_arm(worker, front->body, &conn->timer);
			io_read_start(&conn->io);
		} else {
			/* Read at accept, it is not watched yet: who leaves
			 * while he waits must be noticed. */
			if (conn->io.mask == 0)
				io_read_start(&conn->io);
			io_read_pause(&conn->io);
		}
		return;
	case CONN_H2:
	case CONN_LAST:
	case CONN_LINGER:
	case CONN_CLOSED:
		return;
	}
}

void
h1_run(struct conn *conn)
{
	bool goes_on = true;

	conn->is_running = true;
	while (goes_on) {
		switch ((enum conn_state)conn->state) {
		case CONN_REQUEST:
			feed_body(conn);
			/* It goes on only if the request ended meanwhile. */
			goes_on = conn->state != CONN_REQUEST;
			break;
		case CONN_SKIP:
			goes_on = skip_body(conn);
			break;
		case CONN_IDLE:
		case CONN_HEAD:
			goes_on = conn_buffered(conn) > 0 &&
				  !conn->io.owes_drained && next_request(conn);
			break;
		case CONN_H2:
		case CONN_HANDSHAKE:
		case CONN_LAST:
		case CONN_LINGER:
		case CONN_CLOSED:
			goes_on = false;
		}
	}
	conn->is_running = false;
	/* Answers to pipelined requests leave together. */
	if (conn->front->held_by == conn)
		h1_flush(conn->front);
	settle(conn);
}

void
h1_readable(struct conn *conn)
{
	struct buf *in;
	ssize_t n;

	make_room(conn);
	in = conn->in;
	n = io_read(&conn->io, in->bytes + in->end, in->room - in->end);
	if (n == IO_AGAIN) {
		settle(conn);
		return;
	}
	if (n == IO_EOF && conn_is_tunnel(conn)) {
		h1_tunnel_eof(conn);
		return;
	}
	if (n <= 0) {
		if (conn->state == CONN_IDLE || conn->state == CONN_SKIP)
			conn_finish(conn, false);
		else
			conn_gone(conn, "client closed");
		return;
	}
	in->end += (uint32_t)n;
	h1_run(conn);
	conn_check_rate(conn);
}
