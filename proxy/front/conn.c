/*
 * A client's connection from accept to close: its states' timers, what its
 * socket tells, and its end. Between listener.c and the HTTP/1 files.
 * Parses and writes no HTTP.
 */
#include "proxy/front/conn.h"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "proxy/core/snapshot.h"
#include "proxy/core/tls_io.h"
#include "src/base/log.h"

static void on_readable(struct io *io);
static void on_drained(struct io *io);
static void on_closed(struct io *io, int error);
static void on_connected(struct io *io, int error);

static const struct io_events client_events = {
	.on_readable = on_readable,
	.on_drained = on_drained,
	.on_closed = on_closed,
	.on_connected = on_connected,
};

/* ---- begin and end ---- */

static void
on_later(struct worker *worker, struct deferred *later)
{
	struct conn *conn = CONTAINER_OF(later, struct conn, later);

	if (conn->state == CONN_CLOSED)
		pool_of_put(&conn->front->conns, conn);
	else if (conn->state == CONN_H2)
		h2_run(conn);
	else if (conn->is_cut)
		conn_gone(conn, "cut");
	else
		h1_run(conn);
}

void
conn_later(struct conn *conn)
{
	if (!list_is_linked(&conn->later.node))
		worker_defer(conn->front->worker, &conn->later);
}

/* By prior knowledge; with TLS both sides agree on it. */
static bool
may_be_h2(const struct front *front, uint32_t listener_key)
{
	const struct snapshot_listener *listener =
	    snapshot_listener_of(front->worker->snapshot, listener_key);

	return listener != NULL && !listener->conf->tls &&
	       listener->conf->default_site->http2;
}

/* ---- TLS ---- */

/* By the configuration of this moment: a new certificate is shown at once. */
static const struct tls_site *
choose_site(struct io *io, struct str name)
{
	const struct conn *conn = CONTAINER_OF(io, struct conn, io);
	const struct snapshot_listener *listener = snapshot_listener_of(
	    conn->front->worker->snapshot, conn->listener_key);

	return listener == NULL ? NULL : snapshot_tls_site(listener, name);
}

static void
shake_hands(struct conn *conn, bool has_data)
{
	struct front *front = conn->front;

	conn_set_state(conn, CONN_HANDSHAKE);
	tls_accept(&conn->io, choose_site);
	timer_arm(front->worker, front->header, &conn->timer);
	if (has_data)
		io_handshake(&conn->io);
	else
		io_read_start(&conn->io);
}

static void
say_https(struct conn *conn)
{
	static const char answer[] =
	    "HTTP/1.1 400 Bad Request\r\n"
	    "Content-Type: text/plain\r\n"
	    "Content-Length: 54\r\n"
	    "Connection: close\r\n"
	    "\r\n"
	    "400 Bad Request\n\nThis port speaks HTTPS: use https://\n";
	struct iovec piece = { (void *)(uintptr_t)answer, sizeof(answer) - 1 };

	METRIC_ADD(conn->front->worker->metrics.bad_requests, 1);
	if (io_write(&conn->io, &piece, 1) == IO_DEAD)
		conn_close(conn, "spoke no TLS");
	else
		conn_finish(conn, true);
}

static void
on_connected(struct io *io, int error)
{
	struct conn *conn = CONTAINER_OF(io, struct conn, io);
	struct front *front = conn->front;

	if (error == EPROTOTYPE) {
		say_https(conn);
		return;
	}
	if (error != 0) {
		log_debug("c=%d no handshake: %s", io->fd,
		    tls_why(tls_of(io), "no reason"));
		conn_close(conn, "no handshake");
		return;
	}
	timer_arm(front->worker, front->header, &conn->timer);
	conn_set_state(conn, CONN_IDLE);
	if (io_protocol(io) == IO_PROTOCOL_H2)
		h2_begin(conn, NULL, 0);
	if (conn->state != CONN_CLOSED && io->has_more)
		on_readable(io);
	else
		io_read_start(io);
}

/* ---- begin ---- */

void
conn_open(struct front *front, int fd, const struct conn_peer *peer,
    uint32_t listener_key, bool has_data, bool is_tls)
{
	struct conn *conn = pool_of_get(&front->conns);

	memset(conn, 0, sizeof(*conn));
	io_init(&conn->io, front->worker, fd, &io_plain, &client_events,
	    front->buffer_bytes, false);
	conn->front = front;
	conn->later.release = on_later;
	conn->listener_key = listener_key;
	conn->peer = *peer;
	conn->may_be_h2 = may_be_h2(front, listener_key);
	conn_set_state(conn, CONN_IDLE);
	list_push_back(&front->open, &conn->node);
	front->n_open++;
	if (is_tls) {
		shake_hands(conn, has_data);
		return;
	}
	if (has_data) {
		h1_readable(conn);
		return;
	}
	timer_arm(front->worker, front->header, &conn->timer);
	io_read_start(&conn->io);
}

void
conn_close(struct conn *conn, const char *why)
{
	struct front *front = conn->front;
	struct worker *worker = front->worker;

	if (conn->state == CONN_CLOSED)
		return;
	log_debug("c=%d closed: %s (after %u requests)", conn->io.fd, why,
	    conn->n_requests);
	conn_set_state(conn, CONN_CLOSED);
	if (front->held_by == conn)
		front->held_by = NULL;
	io_close(&conn->io);
	list_remove(&conn->node);
	front->n_open--;
	atomic_fetch_sub_explicit(
	    &worker->load[worker->index].connections, 1, memory_order_relaxed);
	if (conn->peer.is_counted)
		address_count_put(front->addresses, &conn->peer.u.sa);
	timer_disarm(&conn->timer);
	timer_disarm(&conn->send_timer);
	/* Only a head that was not whole is left; nobody knows it. */
	request_free(&conn->request);
	h2_free(conn);
	buf_put(worker, &conn->in);
	buf_put(worker, &conn->head);
	conn_later(conn);
}

void
conn_gone(struct conn *conn, const char *why)
{
	/* The front's own abort closes the connection. */
	if (conn->state == CONN_REQUEST && conn->request != NULL)
		request_abort(conn->request, 0, why);
	else if (conn->state == CONN_H2)
		h2_abort(conn, why);
	conn_close(conn, why);
}

/* Read and drop until the client closes; bounded in time and bytes. */
static void
linger(struct conn *conn)
{
	conn_set_state(conn, CONN_LINGER);
	conn->left = LINGER_BYTES_MAX;
	buf_put(conn->front->worker, &conn->in);
	io_shutdown(&conn->io);
	timer_arm(conn->front->worker, conn->front->linger, &conn->timer);
	io_read_start(&conn->io);
}

void
conn_finish(struct conn *conn, bool lingers)
{
	h2_free(conn);
	if (conn->io.broken) {
		conn_close(conn, "broken");
	} else if (lingers) {
		linger(conn);
	} else if (io_is_drained(&conn->io)) {
		conn_close(conn, "done");
	} else {
		conn_set_state(conn, CONN_LAST);
		buf_put(conn->front->worker, &conn->in);
		io_read_pause(&conn->io);
		io_await_empty(&conn->io);
	}
}

/* ---- what the socket tells ---- */

static void
drop_what_comes(struct conn *conn)
{
	struct buf *buf = buf_get(conn->front->worker);
	ssize_t n = io_read(&conn->io, buf->bytes, buf->room);

	buf_put(conn->front->worker, &buf);
	if (n == IO_AGAIN)
		return;
	if (n <= 0) /* they may still read */
		conn_finish(conn, false);
	else if ((uint64_t)n >= conn->left)
		conn_close(conn, "sent too much after the answer");
	else
		conn->left -= (uint64_t)n;
}

static void
on_readable(struct io *io)
{
	struct conn *conn = CONTAINER_OF(io, struct conn, io);

	if (conn->state == CONN_LINGER)
		drop_what_comes(conn);
	else if (conn->state == CONN_H2)
		h2_readable(conn);
	else
		h1_readable(conn);
}

/* It reads what it gets, and more at a time costs less. */
static void
trust_reader(struct conn *conn)
{
	unsigned bytes = READER_UNSENT_BYTES;

	conn->is_reader = true;
	if (setsockopt(conn->io.fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes,
		sizeof(bytes)) == -1)
		log_debug("c=%d: no TCP_NOTSENT_LOWAT", conn->io.fd);
}

static void
on_drained(struct io *io)
{
	struct conn *conn = CONTAINER_OF(io, struct conn, io);

	if (!conn->is_reader && io->sent_bytes >= READER_BYTES)
		trust_reader(conn);

	if (conn->state == CONN_LAST) {
		if (io_is_drained(io))
			conn_close(conn, "done");
		return;
	}
	if (conn->state == CONN_REQUEST && conn->request != NULL)
		request_writable(conn->request);
	else if (conn->state == CONN_IDLE)
		h1_run(conn);
	else if (conn->state == CONN_H2)
		h2_run(conn);
}

static void
on_closed(struct io *io, int error)
{
	struct conn *conn = CONTAINER_OF(io, struct conn, io);

	/* Whoever closes his writing side while the last bytes go out may well
	 * want to read them. */
	if (error == 0 && conn->state == CONN_LAST)
		return;
	/* A tunnel's own end tells: what came before this may still be on its
	 * way to the app. After a reset nobody cares. */
	if (error == 0 && conn_is_tunnel(conn) && !io_is_reset(io))
		return;
	conn_gone(conn, error == 0 ? "client closed" : "client broke off");
}

/* ---- timers ---- */

/* What the client's end has acknowledged. What the socket took is no measure:
 * it asks for more only when a third of its buffer is empty, which may be
 * megabytes. */
static uint64_t
received_bytes(const struct conn *conn)
{
	int queued = 0;

	if (ioctl(conn->io.fd, SIOCOUTQ, &queued) == -1 || queued < 0)
		queued = 0;
	return conn->io.sent_bytes - (uint64_t)queued;
}

void
conn_watch_send(struct conn *conn)
{
	if (LIKELY(conn->io.out_bytes == 0) || conn->state == CONN_CLOSED)
		return;
	if (list_is_linked(&conn->send_timer.node))
		return;
	conn->received_before = received_bytes(conn);
	timer_arm(conn->front->worker, conn->front->send, &conn->send_timer);
}

static void
send_expired(struct worker *worker, struct timer *timer)
{
	struct conn *conn = CONTAINER_OF(timer, struct conn, send_timer);

	if (conn->io.broken)
		conn_gone(conn, "client broke off");
	else if (conn->io.out_bytes == 0)
		return;
	else if (received_bytes(conn) != conn->received_before)
		conn_watch_send(conn);
	else {
		io_will_reset(&conn->io);
		conn_gone(conn, "client does not read: send timeout");
	}
}

static void
idle_expired(struct worker *worker, struct timer *timer)
{
	struct conn *conn = CONTAINER_OF(timer, struct conn, timer);

	/* It is armed when a request ends and may expire during the next. */
	if (conn->state == CONN_IDLE)
		conn_close(conn, "idle");
	else if (conn->state == CONN_H2)
		h2_idle(conn);
}

static void
header_expired(struct worker *worker, struct timer *timer)
{
	struct conn *conn = CONTAINER_OF(timer, struct conn, timer);

	if (conn->state == CONN_HANDSHAKE) {
		conn_close(conn, "handshake timeout");
	} else if (conn->state == CONN_IDLE) {
		conn_close(conn, "sent nothing");
	} else if (conn->state == CONN_HEAD) {
		conn->request->base = conn->in->bytes + conn->in->start;
		conn_set_state(conn, CONN_REQUEST);
		request_refuse(conn->request, 408, "header timeout");
		h1_run(conn);
	} else if (conn->state == CONN_H2) {
		h2_header_expired(conn);
	}
}

static void
give_up_body(struct conn *conn)
{
	if (conn->state == CONN_SKIP) {
		conn_close(conn, "body timeout");
	} else if (conn->state == CONN_REQUEST && conn->io.wants_read) {
		request_abort(conn->request, 408, "body timeout");
		h1_run(conn);
	}
}

static void
body_expired(struct worker *worker, struct timer *timer)
{
	give_up_body(CONTAINER_OF(timer, struct conn, timer));
}

/* A pause is the timer's; this is for who sends a byte now and then. */
void
conn_check_rate(struct conn *conn)
{
	const struct front *front = conn->front;
	uint64_t came = conn->body.seen - conn->body_before;

	if ((conn->state != CONN_REQUEST && conn->state != CONN_SKIP) ||
	    conn_is_tunnel(conn) ||
	    front->worker->tick_ms - conn->body_since_ms <
		front->body_timeout_ms)
		return;
	conn_begin_window(conn);
	if (came < front->body_window_bytes)
		give_up_body(conn);
}

static void
linger_expired(struct worker *worker, struct timer *timer)
{
	struct conn *conn = CONTAINER_OF(timer, struct conn, timer);

	if (conn->state != CONN_LINGER)
		return;
	/* A slow reader is the send timer's; our time begins after it. */
	if (conn->io.out_bytes > 0)
		timer_arm(worker, conn->front->linger, timer);
	else
		conn_close(conn, "lingered long enough");
}

/* ---- the front of one worker ---- */

void
conn_configure(struct front *front, const struct conf_limits *limits)
{
	struct worker *worker = front->worker;

	front->limits.line_bytes = limits->request_line_bytes;
	front->limits.head_bytes = limits->header_bytes;
	front->limits.header_count = limits->header_count;
	front->buffer_bytes = limits->buffer_bytes;
	front->max_connections = limits->connections;
	front->max_per_address = limits->connections_per_address;
	front->max_requests = limits->requests_per_connection;
	front->body_timeout_ms = limits->body_timeout_ms;
	front->body_window_bytes = (uint64_t)limits->body_bytes_per_second *
				   (uint64_t)limits->body_timeout_ms / 1000;
	front->idle =
	    timer_class_of(worker, limits->idle_timeout_ms, idle_expired);
	front->header =
	    timer_class_of(worker, limits->header_timeout_ms, header_expired);
	front->body =
	    timer_class_of(worker, limits->body_timeout_ms, body_expired);
	front->send =
	    timer_class_of(worker, limits->send_timeout_ms, send_expired);
	front->linger = timer_class_of(worker, LINGER_MS, linger_expired);
	h2_configure(front, limits);
}
