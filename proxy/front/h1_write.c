/*
 * HTTP/1 to the client: heads, framing of bodies, and what an answer's end
 * means for the connection. The front_ops that responses come through.
 * Head and small body are gathered in the worker's buffer and leave in one
 * write. Reads nothing.
 */
#include <assert.h>
#include <string.h>
#include <sys/socket.h>

#include "proxy/core/response.h"
#include "proxy/core/snapshot.h"
#include "proxy/front/conn.h"
#include "proxy/http/status.h"
#include "src/base/log.h"

#define SERVER_LINE "Server: scalws\r\n"

/* ---- the held bytes ---- */

static enum response_result
result_of(struct conn *conn, enum io_result result)
{
	switch (result) {
	case IO_OK:
		conn_watch_send(conn);
		return RESPONSE_OK;
	case IO_FULL:
		conn_watch_send(conn);
		return RESPONSE_FULL;
	case IO_DEAD:
		break;
	}
	return RESPONSE_GONE;
}

enum response_result
h1_flush(struct front *front)
{
	struct conn *conn = front->held_by;
	struct iovec all = { front->held, front->held_len };

	if (conn == NULL)
		return RESPONSE_OK;
	front->held_by = NULL;
	return result_of(conn, io_write(&conn->io, &all, 1));
}

/* Begin or go on to hold bytes of this connection, with room for `len`. */
static void
hold(struct conn *conn, size_t len)
{
	struct front *front = conn->front;

	/* A result that is lost here comes again: broken sockets are told by
	 * the loop, full ones stay full. */
	if (front->held_by != NULL &&
	    (front->held_by != conn || len > HOLD_BYTES - front->held_len))
		h1_flush(front);
	if (front->held_by != NULL)
		return;
	front->held_by = conn;
	front->held_len = 0;
}

static inline void
put(struct front *front, const char *from, size_t len)
{
	memcpy(front->held + front->held_len, from, len);
	front->held_len += len;
}

static inline void
put_str(struct front *front, struct str text)
{
	if (text.len > 0)
		put(front, text.ptr, text.len);
}

static void
put_number(struct front *front, uint64_t value)
{
	front->held_len += str_put_u64(front->held + front->held_len, value);
}

static enum response_result
held_result(const struct conn *conn)
{
	if (UNLIKELY(conn->io.broken))
		return RESPONSE_GONE;
	return UNLIKELY(conn->io.owes_drained) ? RESPONSE_FULL : RESPONSE_OK;
}

/* ---- heads ---- */

static void
put_status_line(struct front *front, unsigned status)
{
	char *at = front->held + front->held_len;

	if (LIKELY(status == 200)) {
		put_str(front, STR("HTTP/1.1 200 OK\r\n"));
		return;
	}
	memcpy(at, "HTTP/1.1 ", 9);
	at[9] = (char)('0' + status / 100 % 10);
	at[10] = (char)('0' + status / 10 % 10);
	at[11] = (char)('0' + status % 10);
	at[12] = ' ';
	front->held_len += 13;
	put_str(front, status_reason(status));
	put(front, "\r\n", 2);
}

static void
put_date(struct front *front)
{
	put(front, front->worker->date, 6 + CLOCK_HTTP_LEN + 2);
}

/* May another request follow on this connection? */
static bool
decide_keep(struct conn *conn, const struct request *request)
{
	const struct h1_request *head = &request->head;

	if (!head->keep_alive || conn->front->worker->draining ||
	    request->listener == NULL || request->body_refused ||
	    conn->n_requests + 1 >= conn->front->max_requests)
		return false;
	if (request->body_is_whole || conn->wants_body)
		return true;
	/* Nobody reads the body: dropped if it is short, but whoever asked
	 * first (Expect) may or may not send it. */
	return !head->expect_continue &&
	       (head->body != BODY_LENGTH ||
		   head->content_length <= SKIP_BYTES_MAX);
}

static void
put_connection(struct conn *conn, const struct request *request)
{
	if (UNLIKELY(conn->body_end == END_TUNNEL))
		put_str(conn->front,
		    STR("Connection: Upgrade\r\nUpgrade: websocket\r\n"));
	else if (!conn->keeps)
		put(conn->front, "Connection: close\r\n", 19);
	else if (UNLIKELY(request->head.minor == 0))
		put(conn->front, "Connection: keep-alive\r\n", 24);
}

/* RFC 9110 section 15.5.22: what a client must change to is said with the 426
 * that asks for it, to nobody else. */
static bool
tells_upgrade(
    const struct response_head *head, const struct header_field *field)
{
	return UNLIKELY(head->status == 426) && field->id == HEADER_UPGRADE;
}

/* The app's fields, those of the connection left out. */
static void
put_fields(struct front *front, const struct response_head *head)
{
	const struct header_table *table = head->fields;
	bool has_date = false, has_server = false;

	if (UNLIKELY(head->status == 426) && header_has(table, HEADER_UPGRADE))
		put_str(front, STR("Connection: Upgrade\r\n"));
	for (unsigned i = 0; i < table->count; i++) {
		const struct header_field *field = &table->fields[i];

		if (((field->flags & HEADER_FLAG_HOP) != 0 &&
			!tells_upgrade(head, field)) ||
		    field->id == HEADER_CONTENT_LENGTH ||
		    (field->id == HEADER_DATE && has_date) ||
		    (field->id == HEADER_SERVER && has_server))
			continue;
		has_date |= field->id == HEADER_DATE;
		has_server |= field->id == HEADER_SERVER;
		put(front, head->base + field->name, field->name_len);
		put(front, ": ", 2);
		put(front, head->base + field->value, field->value_len);
		put(front, "\r\n", 2);
	}
}

static size_t
fields_len(const struct header_table *table)
{
	size_t len = 0;

	for (unsigned i = 0; table != NULL && i < table->count; i++)
		len += (size_t)table->fields[i].name_len +
		       table->fields[i].value_len + 4;
	return len;
}

/* RFC 9112 section 6: how the end is known, and the field that says so. */
static void
put_framing(struct conn *conn, const struct request *request,
    const struct response_head *head)
{
	struct front *front = conn->front;
	bool is_head = request->head.method == METHOD_HEAD;
	bool has_body = status_has_body(head->status);

	conn->body_end = END_NONE;
	if (!has_body && (head->status != 304 || head->length == 0))
		return;
	if (head->length != RESPONSE_LENGTH_UNKNOWN) {
		put(front, "Content-Length: ", 16);
		put_number(front, head->length);
		put(front, "\r\n", 2);
		if (has_body && !is_head) {
			conn->body_end = END_LENGTH;
			conn->left = head->length;
		}
		return;
	}
	if (!has_body || is_head)
		return;
	if (request->head.minor == 0) {
		conn->body_end = END_CLOSE;
		conn->keeps = false;
		return;
	}
	conn->body_end = END_CHUNKED;
	put(front, "Transfer-Encoding: chunked\r\n", 28);
}

static enum response_result
h1_start(struct request *request, const struct response_head *head)
{
	struct conn *conn = request->front_state;
	struct front *front = conn->front;
	struct str route_lines =
	    request->route == NULL ? STR("") : request->route->response_lines;
	struct str secure_lines = request_secure_lines(request);
	size_t len = fields_len(head->fields) + head->lines.len +
		     route_lines.len + secure_lines.len + 512;

	if (len > HOLD_BYTES) {
		/* Cannot be: the limits of heads are below it. */
		log_error("c=%d: a head of %zu bytes cannot be sent",
		    conn->io.fd, len);
		conn->is_cut = true;
		conn_later(conn);
		return RESPONSE_GONE;
	}
	hold(conn, len);
	conn->keeps = decide_keep(conn, request);
	conn->flushes_always = head->flush_always;
	put_status_line(front, head->status);
	if (head->fields == NULL || !header_has(head->fields, HEADER_SERVER))
		put(front, SERVER_LINE, sizeof(SERVER_LINE) - 1);
	if (head->fields == NULL || !header_has(head->fields, HEADER_DATE))
		put_date(front);
	put_str(front, head->lines);
	put_str(front, route_lines);
	put_str(front, secure_lines);
	if (head->fields != NULL)
		put_fields(front, head);
	put_framing(conn, request, head);
	if (UNLIKELY(head->tunnel))
		h1_tunnel_begin(conn);
	put_connection(conn, request);
	put(front, "\r\n", 2);
	return held_result(conn);
}

static void
h1_inform(struct request *request, const struct response_head *head)
{
	struct conn *conn = request->front_state;

	if (request->head.minor == 0 || request->status != 0 ||
	    fields_len(head->fields) + 512 > HOLD_BYTES)
		return;
	hold(conn, fields_len(head->fields) + 512);
	put_status_line(conn->front, head->status);
	if (head->fields != NULL)
		put_fields(conn->front, head);
	put(conn->front, "\r\n", 2);
	h1_flush(conn->front);
}

/* ---- bodies ---- */

static enum response_result
h1_write(struct request *request, const char *from, size_t len)
{
	struct conn *conn = request->front_state;
	struct front *front = conn->front;
	char line[H1_CHUNK_HEAD_MAX];
	struct iovec pieces[4];
	size_t line_len = 0;
	int n = 0;

	if (conn->body_end == END_LENGTH) {
		assert(len <= conn->left);
		conn->left -= len;
	} else if (conn->body_end == END_CHUNKED) {
		line_len = h1_chunk_head(line, len);
	}
	if (len <= HOLD_SMALL_BYTES) {
		hold(conn, len + sizeof(line) + 2);
		put(front, line, line_len);
		put(front, from, len);
		if (line_len > 0)
			put(front, "\r\n", 2);
		return conn->flushes_always ? h1_flush(front)
					    : held_result(conn);
	}
	if (front->held_by == conn) {
		front->held_by = NULL;
		pieces[n++] = (struct iovec){ front->held, front->held_len };
	}
	if (line_len > 0)
		pieces[n++] = (struct iovec){ line, line_len };
	pieces[n++] = (struct iovec){ (void *)(uintptr_t)from, len };
	if (line_len > 0)
		pieces[n++] = (struct iovec){ (void *)(uintptr_t) "\r\n", 2 };
	return result_of(conn, io_write(&conn->io, pieces, n));
}

static enum response_result
h1_flush_request(struct request *request)
{
	struct conn *conn = request->front_state;

	return conn->front->held_by == conn ? h1_flush(conn->front)
					    : held_result(conn);
}

/* ---- the end of an answer ---- */

/* The answer is whole and handed over: log the request and see what this
 * connection does next. */
static void
finish(struct conn *conn)
{
	struct front *front = conn->front;
	bool is_read =
	    conn->body_done || (conn->piece_waits && conn->piece_last);
	bool expects = conn->request->head.expect_continue &&
		       !conn->said_continue && conn->body.seen == 0;
	bool can_skip =
	    conn->body.kind != BODY_LENGTH || conn->body.left <= SKIP_BYTES_MAX;
	bool is_refused = conn->request->body_refused;

	request_free(&conn->request);
	buf_put(front->worker, &conn->head);
	conn->floor = 0;
	conn->n_requests++;
	if (conn->keeps && is_read) {
		conn_set_state(conn, CONN_IDLE);
	} else if (conn->keeps && !expects && can_skip && !is_refused) {
		conn->left = SKIP_BYTES_MAX;
		conn_set_state(conn, CONN_SKIP);
		conn_begin_window(conn);
	} else {
		if (front->held_by == conn)
			h1_flush(front);
		conn_finish(conn, !is_read || conn_buffered(conn) > 0);
		return;
	}
	/* The next request of a pipeline may come first, see h1_run. */
	if (conn->is_running)
		return;
	if (front->held_by == conn)
		h1_flush(front);
	conn_later(conn);
}

static void
h1_end(struct request *request)
{
	struct conn *conn = request->front_state;

	if (conn->body_end == END_LENGTH && conn->left > 0) {
		/* The client must see that something is missing. */
		request->front->abort(request);
		return;
	}
	if (conn->body_end == END_CHUNKED) {
		hold(conn, 5);
		put(conn->front, "0\r\n\r\n", 5);
	}
	finish(conn);
}

static void
h1_fixed(struct request *request, const struct response_fixed *fixed)
{
	struct conn *conn = request->front_state;
	struct front *front = conn->front;
	struct str head = fixed->head, body = fixed->body;
	bool is_small = head.len + body.len <= HOLD_SMALL_BYTES;

	if (UNLIKELY(request->head.method == METHOD_HEAD))
		body.len = 0;
	hold(conn, head.len + HOLD_SMALL_BYTES + 512);
	conn->keeps = decide_keep(conn, request);
	conn->body_end = END_NONE;
	put_status_line(front, fixed->status);
	put(front, SERVER_LINE, sizeof(SERVER_LINE) - 1);
	put_date(front);
	put_connection(conn, request);
	put_str(front, request_secure_lines(request));
	put_str(front, head);
	if (is_small) {
		put_str(front, body);
	} else if (body.len > 0) {
		conn->flushes_always = false;
		h1_write(request, body.ptr, body.len);
	}
	finish(conn);
}

/* Cut the connection so that the client cannot take what it got for whole. */
static void
h1_abort(struct request *request)
{
	struct conn *conn = request->front_state;

	if (conn->front->held_by == conn)
		h1_flush(conn->front);
	/* A body without length ends with the connection: only a reset differs
	 * from its end. */
	if (conn->body_end == END_CLOSE)
		io_will_reset(&conn->io);
	conn->io.is_cut = true;
	request_free(&conn->request);
	conn->n_requests++;
	conn->keeps = false;
	conn_finish(conn, false);
}

/* ---- the request's body ---- */

static void
h1_body_resume(struct request *request)
{
	struct conn *conn = request->front_state;

	if (!conn->is_blocked)
		return;
	conn->is_blocked = false;
	conn_begin_window(conn);
	conn_later(conn);
}

static void
h1_body_wanted(struct request *request)
{
	struct conn *conn = request->front_state;

	if (request->body_is_whole || conn->wants_body)
		return;
	conn->wants_body = true;
	conn_begin_window(conn);
	if (request->head.expect_continue && conn_buffered(conn) == 0 &&
	    request->status == 0) {
		conn->said_continue = true;
		hold(conn, 32);
		put_str(conn->front, STR("HTTP/1.1 100 Continue\r\n\r\n"));
		h1_flush(conn->front);
	}
	if (!conn->is_running)
		conn_later(conn);
}

const struct front_ops h1_front_ops = {
	.name = "HTTP/1.1",
	.start = h1_start,
	.write = h1_write,
	.flush = h1_flush_request,
	.end = h1_end,
	.abort = h1_abort,
	.fixed = h1_fixed,
	.body_resume = h1_body_resume,
	.body_wanted = h1_body_wanted,
	.inform = h1_inform,
	.shutdown = h1_shutdown,
};
