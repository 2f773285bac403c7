/*
 * A client's connection that has changed to another protocol.
 * From the head with response_head.tunnel on; what the client sends goes the
 * way of a body (h1_read.c), what it gets that of an answer's (h1_write.c).
 * Looks at no byte of it.
 */
#include "proxy/front/conn.h"

void
h1_tunnel_begin(struct conn *conn)
{
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
