/*
 * Connections to peers: coming up, being watched, ending.
 * Below pool.c; above core/io.
 * Does not choose peers and does not keep lists of who waits.
 */
#include "proxy/upstream/uconn.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proxy/core/tls_io.h"
#include "proxy/upstream/exchange.h"
#include "proxy/upstream/peer.h"
#include "proxy/upstream/upstream.h"
#include "src/base/log.h"

/* A full backlog of a unix socket: how soon to try again. */
#define AGAIN_MS 10
/* Not every process looks whether its client is still there. */
#define LEAVING_MS 1000

static void on_readable(struct io *io);
static void on_drained(struct io *io);
static void on_closed(struct io *io, int error);
static void on_connected(struct io *io, int error);

static const struct io_events uconn_io_events = {
	.on_readable = on_readable,
	.on_drained = on_drained,
	.on_closed = on_closed,
	.on_connected = on_connected,
};

static struct peer_local *
local_of(struct uconn *uconn)
{
	return &uconn->peer->local[uconn->pool->worker->index];
}

/* ---- ending ---- */

static void
release_memory(struct worker *worker, struct deferred *deferred)
{
	struct uconn *uconn = CONTAINER_OF(deferred, struct uconn, deferred);
	struct pool *pool = uconn->pool;

	list_remove(&uconn->in_pool);
	peer_unref(uconn->peer);
	pool_of_put(&pool->uconns, uconn);
}

void
uconn_free(struct uconn *uconn)
{
	uconn_close(uconn);
	list_remove(&uconn->deferred.node);
	release_memory(uconn->pool->worker, &uconn->deferred);
}

static void
leave_list(struct uconn *uconn)
{
	struct peer_local *local = local_of(uconn);

	list_remove(&uconn->node);
	if (uconn->state == UCONN_IDLE)
		atomic_store(&local->n_idle,
		    atomic_load_explicit(&local->n_idle, memory_order_relaxed) -
			1);
}

/* What the connection had of its peer is free again. */
static void
give_back(struct uconn *uconn)
{
	struct peer *peer = uconn->peer;

	if (uconn->is_in_flight)
		atomic_fetch_sub(&peer->in_flight, 1);
	uconn->is_in_flight = false;
	if (uconn->is_leaving &&
	    atomic_fetch_sub(&peer->leaving, 1) == PEER_LEAVING_MAX)
		upstream_slot_freed(peer->upstream);
	uconn->is_leaving = false;
	if (uconn->holds_slot)
		peer_put_slot(peer);
	if (!uconn->is_stuck)
		peer_closed(peer);
	if (uconn->holds_slot)
		upstream_slot_freed(peer->upstream);
	uconn->holds_slot = false;
}

void
uconn_close(struct uconn *uconn)
{
	if (uconn->state == UCONN_CLOSED)
		return;
	leave_list(uconn);
	uconn->state = UCONN_CLOSED;
	uconn->exchange = NULL;
	timer_disarm(&uconn->timer);
	if (event_initialized(&uconn->again))
		event_del(&uconn->again);
	io_close(&uconn->io);
	give_back(uconn);
	worker_defer(uconn->pool->worker, &uconn->deferred);
}

static bool
works_for_nobody(const struct uconn *uconn)
{
	return (uconn->state == UCONN_ENDING && !uconn->is_leaving) ||
	       uconn->state == UCONN_DRAINING;
}

/* Once. Its slot stays taken: the process is not free. But nobody waits for it
 * when it is stopped. */
static void
report_stuck(struct uconn *uconn, bool timed_out)
{
	struct peer *peer = uconn->peer;
	struct stat about;

	if (uconn->is_stuck || peer->instance == 0)
		return;
	uconn->is_stuck = true;
	if (fstat(uconn->io.fd, &about) == -1)
		about.st_ino = 0;
	registry_tell_stuck(
	    uconn->pool->registry, peer->instance, timed_out, about.st_ino);
	peer_closed(peer);
}

void
uconn_condemn(struct uconn *uconn)
{
	if (works_for_nobody(uconn))
		report_stuck(uconn, true);
}

static void
on_ending_long(struct worker *worker, struct timer *timer)
{
	struct uconn *uconn = CONTAINER_OF(timer, struct uconn, timer);
	struct peer *peer = uconn->peer;

	/* Nobody will replace a peer that we did not start. */
	if (peer->is_remote || uconn->is_leaving) {
		uconn_close(uconn);
		return;
	}
	if (uconn->is_stuck)
		return;
	log_warn("upstream=%s instance=%llu pid=%u peer=%s still works %d ms "
		 "after its client left",
	    peer->upstream->name, (unsigned long long)peer->instance, peer->pid,
	    peer->text, uconn->abort_grace_ms);
	report_stuck(uconn, false);
}

int
uconn_detach(struct uconn *uconn)
{
	leave_list(uconn);
	uconn->state = UCONN_CLOSED;
	timer_disarm(&uconn->timer);
	worker_defer(uconn->pool->worker, &uconn->deferred);
	return io_detach(&uconn->io);
}

static void
watch_ending(struct uconn *uconn, enum uconn_state state, int ms)
{
	struct worker *worker = uconn->pool->worker;

	leave_list(uconn);
	uconn->state = state;
	uconn->exchange = NULL;
	list_push_back(&local_of(uconn)->ending, &uconn->node);
	timer_arm(
	    worker, timer_class_of(worker, ms, on_ending_long), &uconn->timer);
	io_read_start(&uconn->io);
}

void
uconn_drain(struct uconn *uconn)
{
	watch_ending(uconn, UCONN_DRAINING, uconn->abort_grace_ms);
}

void
uconn_end(struct uconn *uconn)
{
	if (uconn->state == UCONN_CLOSED || uconn->state == UCONN_ENDING)
		return;
	watch_ending(uconn, UCONN_ENDING, uconn->abort_grace_ms);
	io_shutdown(&uconn->io);
}

void
uconn_leave(struct uconn *uconn)
{
	atomic_fetch_add(&uconn->peer->leaving, 1);
	uconn->is_leaving = true;
	watch_ending(uconn, UCONN_ENDING, LEAVING_MS);
	io_shutdown(&uconn->io);
}

bool
uconn_is_unread(const struct uconn *uconn)
{
	int bytes = 0;

	/* unix(7); of TCP the number means something else */
	return uconn->peer->addr.u.sa.sa_family == AF_UNIX &&
	       ioctl(uconn->io.fd, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

/* ---- lists ---- */

void
uconn_set_busy(struct uconn *uconn)
{
	leave_list(uconn);
	uconn->state = UCONN_BUSY;
	timer_disarm(&uconn->timer);
	list_push_back(&local_of(uconn)->busy, &uconn->node);
}

struct uconn *
uconn_newest_idle(struct peer *peer, unsigned worker)
{
	struct list *node = list_first(&peer->local[worker].idle);

	return node == NULL ? NULL : LIST_ENTRY(node, struct uconn, node);
}

static void
on_idle_too_long(struct worker *worker, struct timer *timer)
{
	struct uconn *uconn = CONTAINER_OF(timer, struct uconn, timer);

	if (uconn->holds_slot)
		uconn_end(uconn);
	else
		uconn_close(uconn);
}

void
uconn_set_idle(struct uconn *uconn, int idle_ms)
{
	struct worker *worker = uconn->pool->worker;
	struct peer_local *local = local_of(uconn);
	struct timer_class *cls = uconn->timer.cls;

	leave_list(uconn);
	uconn->state = UCONN_IDLE;
	list_push_front(&local->idle, &uconn->node);
	/* Who waits looks at this number from another thread, after it has
	 * counted itself as waiting. */
	atomic_store(&local->n_idle,
	    atomic_load_explicit(&local->n_idle, memory_order_relaxed) + 1);
	if (cls == NULL || cls->length_ms != idle_ms ||
	    cls->expired != on_idle_too_long)
		cls = timer_class_of(worker, idle_ms, on_idle_too_long);
	timer_arm(worker, cls, &uconn->timer);
}

/* ---- coming up ---- */

static void
on_connect_too_long(struct worker *worker, struct timer *timer)
{
	struct uconn *uconn = CONTAINER_OF(timer, struct uconn, timer);

	pool_uconn_failed(uconn, POOL_CONNECT_TIMEOUT,
	    uconn->io.is_shaking && !uconn->io.connecting
		? "no end of the TLS handshake in time"
		: "no answer in time");
}

static void
come_up(struct uconn *uconn)
{
	uconn_set_busy(uconn);
	uconn->connected_us = clock_now_us();
	io_read_start(&uconn->io);
}

/* 1: up; 0: on its way; -1: failed, errno. */
static int
try_connect(struct uconn *uconn, int fd)
{
	const struct addr *addr = &uconn->peer->addr;

	if (connect(fd, &addr->u.sa, addr->len) == 0)
		return 1;
	if (errno == EINPROGRESS || errno == EINTR)
		return 0;
	return -1;
}

/* Of a new connection; with TLS it is up when the handshake is done. */
static bool
take_fd(struct uconn *uconn, int fd, bool is_up)
{
	struct tls_upstream *tls = uconn->peer->upstream->tls;

	is_up = is_up && tls == NULL;
	io_init(&uconn->io, uconn->pool->worker, fd, &io_plain,
	    &uconn_io_events, uconn->io.high_bytes, !is_up);
	if (UNLIKELY(tls != NULL))
		tls_connect(&uconn->io, tls, &uconn->peer->addr,
		    &local_of(uconn)->session);
	return is_up;
}

static void on_again(evutil_socket_t fd, short what, void *arg);

static int
try_later(struct uconn *uconn, int fd)
{
	struct timeval soon = { 0, AGAIN_MS * 1000 };

	/* As much of an io as closing it takes: more would watch a socket that
	 * is not on its way. */
	uconn->io.fd = fd;
	uconn->io.ops = &io_plain;
	event_assign(
	    &uconn->again, uconn->pool->worker->base, -1, 0, on_again, uconn);
	return event_add(&uconn->again, &soon);
}

/* The backlog of a unix socket was full: busy, not down. */
static void
on_again(evutil_socket_t unused, short what, void *arg)
{
	struct uconn *uconn = arg;
	int fd = uconn->io.fd;
	int result = try_connect(uconn, fd), error;
	bool is_up;

	if (result == -1 && errno == EAGAIN && try_later(uconn, fd) == 0)
		return;
	error = errno;
	is_up = take_fd(uconn, fd, result == 1);
	if (result == -1) {
		pool_uconn_failed(uconn, POOL_CONNECT_FAILED, strerror(error));
	} else if (is_up) {
		come_up(uconn);
		pool_uconn_up(uconn);
	}
}

static int
open_socket(const struct peer *peer)
{
	int family = peer->addr.u.sa.sa_family;
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int one = 1;

	if (fd != -1 && family != AF_UNIX &&
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == -1)
		log_errno("peer=%s TCP_NODELAY", peer->text);
	return fd;
}

static struct uconn *
new_uconn(struct pool *pool, struct peer *peer,
    const struct pool_limits *limits, uint32_t buffer_bytes, bool holds_slot)
{
	struct uconn *uconn = pool_of_get(&pool->uconns);

	memset(uconn, 0, sizeof(*uconn));
	uconn->io.fd = -1;
	uconn->io.high_bytes = buffer_bytes;
	uconn->state = UCONN_CONNECTING;
	uconn->pool = pool;
	uconn->peer = peer;
	peer_ref(peer);
	uconn->holds_slot = holds_slot;
	uconn->is_in_flight = true;
	uconn->idle_max = limits->idle_max;
	uconn->idle_timeout_ms = limits->idle_timeout_ms;
	uconn->abort_grace_ms = limits->abort_grace_ms;
	uconn->begun_us = clock_now_us();
	uconn->deferred.release = release_memory;
	list_push_back(&local_of(uconn)->busy, &uconn->node);
	list_push_back(&pool->all, &uconn->in_pool);
	return uconn;
}

struct uconn *
uconn_new(struct pool *pool, struct peer *peer,
    const struct pool_limits *limits, uint32_t buffer_bytes, bool holds_slot)
{
	struct uconn *uconn =
	    new_uconn(pool, peer, limits, buffer_bytes, holds_slot);
	int fd = open_socket(peer);
	int result = fd == -1 ? -1 : try_connect(uconn, fd);
	int error = errno;
	bool is_up = false;

	if (result == -1 && fd != -1 && error == EAGAIN &&
	    peer->addr.u.sa.sa_family == AF_UNIX)
		result = try_later(uconn, fd);
	else if (fd != -1)
		is_up = take_fd(uconn, fd, result == 1);
	if (result == -1) {
		uconn_close(uconn);
		errno = error;
		return NULL;
	}
	if (is_up)
		come_up(uconn);
	else
		timer_arm(pool->worker,
		    timer_class_of(pool->worker, limits->connect_timeout_ms,
			on_connect_too_long),
		    &uconn->timer);
	return uconn;
}

struct uconn *
uconn_adopt(struct pool *pool, struct peer *peer,
    const struct pool_limits *limits, uint32_t buffer_bytes, int fd,
    uint32_t served)
{
	struct uconn *uconn = new_uconn(pool, peer, limits, buffer_bytes, true);

	(void)take_fd(uconn, fd, true); /* it is none of TLS */
	uconn->served = served;
	uconn_set_busy(uconn);
	io_read_start(&uconn->io);
	return uconn;
}

/* ---- what the io says ---- */

bool
uconn_skip(struct uconn *uconn, const char *from, size_t len)
{
	const unsigned char *at = (const unsigned char *)from, *data;
	size_t used, data_len;

	for (;;) {
		switch (fcgi_reply_read(
		    &uconn->reply, at, len, &used, &data, &data_len)) {
		case FCGI_REPLY_STDOUT:
		case FCGI_REPLY_STDERR:
			at += used;
			len -= used;
			continue;
		case FCGI_REPLY_MORE:
			return true;
		case FCGI_REPLY_END:
			return used == len;
		case FCGI_REPLY_BAD:
			return false;
		}
	}
}

static void
drop_bytes(struct uconn *uconn)
{
	struct worker *worker = uconn->pool->worker;
	struct buf *buf = buf_get(worker);
	ssize_t n = io_read(&uconn->io, buf->bytes, buf->room);

	if (n == IO_EOF || n == IO_BROKEN)
		uconn_close(uconn);
	else if (n > 0 && uconn->state == UCONN_DRAINING) {
		if (!uconn_skip(uconn, buf->bytes, (size_t)n))
			uconn_end(uconn);
		else if (!uconn->reply.ended)
			;
		else if (uconn->is_stuck)
			uconn_end(uconn);
		else
			pool_uconn_clean(uconn);
	}
	buf_put(worker, &buf);
}

static void
on_readable(struct io *io)
{
	struct uconn *uconn = CONTAINER_OF(io, struct uconn, io);

	switch (uconn->state) {
	case UCONN_BUSY:
		if (uconn->exchange != NULL)
			uconn->exchange->ops->readable(uconn->exchange);
		else
			io_read_pause(io); /* its next user will see it */
		return;
	case UCONN_IDLE:
		/* Closed, or bytes that nobody asked for; or a ticket of TLS.
		 */
		if (!io_looks_alive(io))
			uconn_close(uconn);
		return;
	case UCONN_ENDING:
	case UCONN_DRAINING:
		drop_bytes(uconn);
		return;
	case UCONN_CONNECTING:
	case UCONN_CLOSED:
		return;
	}
}

static void
on_drained(struct io *io)
{
	struct uconn *uconn = CONTAINER_OF(io, struct uconn, io);

	if (uconn->state == UCONN_BUSY && uconn->exchange != NULL)
		uconn->exchange->ops->drained(uconn->exchange);
}

static void
on_closed(struct io *io, int error)
{
	struct uconn *uconn = CONTAINER_OF(io, struct uconn, io);

	switch (uconn->state) {
	case UCONN_BUSY:
		if (uconn->exchange != NULL)
			uconn->exchange->ops->closed(uconn->exchange, error);
		return;
	case UCONN_IDLE:
		uconn_close(uconn);
		return;
	case UCONN_ENDING:
	case UCONN_DRAINING:
		/* Reading goes on until the peer's end. */
	case UCONN_CONNECTING:
	case UCONN_CLOSED:
		return;
	}
}

static void
on_connected(struct io *io, int error)
{
	struct uconn *uconn = CONTAINER_OF(io, struct uconn, io);

	if (uconn->state != UCONN_CONNECTING)
		return;
	if (error == EPROTO && tls_of(io) != NULL) {
		pool_uconn_failed(
		    uconn, POOL_TLS_FAILED, tls_why(tls_of(io), "no reason"));
		return;
	}
	if (error != 0) {
		pool_uconn_failed(uconn, POOL_CONNECT_FAILED, strerror(error));
		return;
	}
	come_up(uconn);
	pool_uconn_up(uconn);
}
