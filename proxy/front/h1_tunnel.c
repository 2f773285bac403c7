/*
 * A client's connection that has changed to another protocol.
 * From the head with response_head.tunnel on; what the client sends goes the
 * way of a body (h1_read.c), what it gets that of an answer's (h1_write.c).
 * Looks at no byte of it.
 */
#include <string.h>

#include "proxy/front/conn.h"

/* It may be idle for hours: the head, of which the log wants to know at the
 * end, is kept in the room that it needs. */
static void
move_head(struct conn *conn)
{
	struct worker *worker = conn->front->worker;
	const char *from = conn->request->base;
	struct buf *head;
	size_t len;

	if (conn->head != NULL)
		return;
	len = (size_t)(conn->in->bytes + conn->floor - from);
	head = buf_get_large(worker, len);
	memcpy(head->bytes, from, len);
	request_move(conn->request, head->bytes, len);
	conn->head = head;
	conn->floor = 0;
}

void
h1_tunnel_begin(struct conn *conn)
{
	move_head(conn);
	conn->body_end = END_TUNNEL;
	conn->keeps = false;
	/* The client may have sent on behind the head: that is the tunnel's. */
	h1_body_init(&conn->body, BODY_TUNNEL, 0);
	conn->wants_body = true;
	conn->body_done = conn->is_blocked = false;
	conn->piece_waits = conn->piece_last = false;
	timer_disarm(&conn->timer);
	io_keep_alive(&conn->io);
	conn_later(conn);
}

void
h1_tunnel_settle(struct conn *conn)
{
	if (conn_buffered(conn) == 0 && !conn->piece_waits)
		buf_put(conn->front->worker, &conn->in);
	if (conn->body_done)
		io_read_end(&conn->io);
	else if (conn->is_blocked)
		io_read_pause(&conn->io);
	else
		io_read_start(&conn->io);
}

void
h1_tunnel_eof(struct conn *conn)
{
	conn->piece_at = conn->piece_len = 0;
	conn->piece_waits = conn->piece_last = true;
	h1_run(conn);
}

void
h1_shutdown(struct request *request)
{
	struct conn *conn = request->front_state;

	if (conn->front->held_by == conn)
		h1_flush(conn->front);
	io_shutdown(&conn->io);
}
