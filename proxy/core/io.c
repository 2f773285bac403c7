/*
 * Reading and writing on one socket: one event, and a queue for what the socket
 * does not take. Below the client's side and the peers' side alike.
 * Decides nothing about timeouts or protocols.
 */
#include "proxy/core/io.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proxy/core/worker.h"
#include "src/base/log.h"

/* Pieces of one write from the queue. */
#define QUEUE_PIECES 8
#define IO_PIECES_MAX 8

/* While reading is off. Edge-triggered, because a level-triggered event that
 * waits for EV_CLOSED alone is never told of EPOLLERR (libevent reports that as
 * readable and writable) and the loop would spin. */
#define MASK_PAUSED (EV_READ | EV_CLOSED | EV_ET)

/* ---- plain transport ---- */

/* Not read(2) and write(2), which go through the layer of files first: on a
 * unix socket that is a tenth of the whole exchange. Not recv(3) and send(3),
 * which are cancellation points: in a program with threads glibc enters and
 * leaves asynchronous cancellation around each. */
static ssize_t
plain_read(struct io *io, void *to, size_t room)
{
	return syscall(SYS_recvfrom, io->fd, to, room, 0, NULL, NULL);
}

static ssize_t
plain_writev(struct io *io, const struct iovec *from, int count)
{
	struct msghdr message = {
		.msg_iov = (struct iovec *)(uintptr_t)from,
		.msg_iovlen = (size_t)count,
	};

	if (count == 1)
		return syscall(SYS_sendto, io->fd, from->iov_base,
		    from->iov_len, MSG_NOSIGNAL, NULL, 0);
	return syscall(SYS_sendmsg, io->fd, &message, MSG_NOSIGNAL);
}

ssize_t
io_receive(struct io *io, void *to, size_t room)
{
	ssize_t n;

	do {
		n = plain_read(io, to, room);
	} while (n == -1 && errno == EINTR);
	return n;
}

const struct io_ops io_plain = {
	.name = "plain",
	.read = plain_read,
};

/* ---- the event ---- */

static void on_event(evutil_socket_t fd, short what, void *arg);
static void on_later(struct worker *worker, struct deferred *later);

static void
set_mask(struct io *io, short mask)
{
	if (mask == io->mask)
		return;
	if (io->mask != 0)
		event_del(&io->event);
	io->mask = mask;
	if (mask == 0)
		return;
	event_assign(&io->event, io->worker->base, io->fd, mask | EV_PERSIST,
	    on_event, io);
	if (event_add(&io->event, NULL) == -1) {
		log_errno("fd %d: cannot be watched", io->fd);
		io->mask = 0;
	}
}

static short
write_mask(const struct io *io)
{
	return (io->out_bytes > 0 || io->connecting) && !io->broken ? EV_WRITE
								    : 0;
}

void
io_init(struct io *io, struct worker *worker, int fd, const struct io_ops *ops,
    const struct io_events *owner, uint32_t high_bytes, bool connecting)
{
	io->ops = ops;
	io->owner = owner;
	io->worker = worker;
	io->fd = fd;
	io->mask = 0;
	io->wants_read = io->owes_drained = io->awaits_empty = false;
	io->shuts_down = io->woken = io->broken = io->at_end = false;
	io->told_closed = io->told_broken = false;
	io->connecting = connecting;
	io->is_shaking = io->has_more = io->is_cut = false;
	io->protocol = IO_PROTOCOL_NONE;
	io->error = 0;
	io->high_bytes = high_bytes;
	io->out_bytes = 0;
	io->sent_bytes = 0;
	io->out_first = io->out_last = NULL;
	io->later.node.next = io->later.node.prev = NULL;
	io->later.release = on_later;
	io->transport = NULL;
	if (connecting)
		set_mask(io, EV_WRITE);
}

static void
say_later(struct io *io)
{
	if (!list_is_linked(&io->later.node))
		worker_defer(io->worker, &io->later);
}

void
io_read_start(struct io *io)
{
	if (io->fd == -1)
		return;
	io->wants_read = true;
	io->at_end = false;
	if (UNLIKELY(io->has_more))
		say_later(io);
	if ((io->mask & (EV_READ | EV_ET)) != EV_READ)
		set_mask(io, EV_READ | write_mask(io));
}

void
io_read_pause(struct io *io)
{
	io->wants_read = false;
	/* A first request came without the event, and its client may leave
	 * while the answer is made. io_read_start finds it there. */
	if (UNLIKELY((io->mask & EV_READ) == 0) && io->fd != -1 &&
	    !io->told_closed)
		set_mask(io, io->mask | EV_READ);
}

void
io_read_end(struct io *io)
{
	if (io->fd == -1 || io->at_end)
		return;
	io->wants_read = false;
	io->at_end = true;
	io->told_closed = false; /* of both directions now */
	set_mask(io, MASK_PAUSED | write_mask(io));
}

/* The last is for bytes that nobody acknowledges: the others only look at a
 * connection on which nothing is under way. */
void
io_keep_alive(struct io *io)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, IO_DEAD_PEER_S / 2 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, IO_DEAD_PEER_S / 8 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 4 },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, IO_DEAD_PEER_S * 1000 },
	};

	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		if (setsockopt(io->fd, options[i].level, options[i].name,
			&options[i].value, sizeof(int)) == 0)
			continue;
		if (errno != EOPNOTSUPP) /* a unix socket */
			log_errno("fd %d: no keep-alive", io->fd);
		return;
	}
}

void
io_wake(struct io *io)
{
	if (io->fd == -1)
		return;
	io->woken = true;
	say_later(io);
}

ssize_t
io_read(struct io *io, void *to, size_t room)
{
	ssize_t n;

	if (io->fd == -1) {
		errno = EBADF;
		return IO_BROKEN;
	}
	do {
		n = io->ops->read(io, to, room);
	} while (n == -1 && errno == EINTR);
	if (UNLIKELY(io->has_more) && io->wants_read)
		say_later(io);
	if (LIKELY(n >= 0))
		return n;
	return errno == EAGAIN ? IO_AGAIN : IO_BROKEN;
}

/* ---- writing ---- */

static void
drop_queue(struct io *io)
{
	struct buf *buf;

	while ((buf = io->out_first) != NULL) {
		io->out_first = buf->next;
		buf_put(io->worker, &buf);
	}
	io->out_last = NULL;
	io->out_bytes = 0;
}

static void
enqueue(struct io *io, const char *from, size_t len)
{
	while (len > 0) {
		struct buf *buf = io->out_last;
		size_t n;

		if (buf == NULL || buf->end == buf->room) {
			buf = buf_get(io->worker);
			if (io->out_last == NULL)
				io->out_first = buf;
			else
				io->out_last->next = buf;
			io->out_last = buf;
		}
		n = buf->room - buf->end;
		if (n > len)
			n = len;
		memcpy(buf->bytes + buf->end, from, n);
		buf->end += (uint32_t)n;
		io->out_bytes += (uint32_t)n;
		from += n;
		len -= n;
	}
}

/* How many bytes the socket took, 0 when it is full, -1 when it is broken. */
static ssize_t
push(struct io *io, const struct iovec *from, int count)
{
	ssize_t n;

	do {
		n = plain_writev(io, from, count);
	} while (n == -1 && errno == EINTR);
	if (LIKELY(n >= 0)) {
		io->sent_bytes += (uint64_t)n;
		return n;
	}
	if (errno == EAGAIN)
		return 0;
	io->error = errno;
	io->broken = true;
	return -1;
}

void
io_break(struct io *io, int error)
{
	io->error = error;
	io->broken = true;
	say_later(io);
}

void
io_send(struct io *io, const struct iovec *from, int count)
{
	ssize_t n = 0;

	if (io->broken)
		return;
	if (io->out_bytes == 0 && !io->connecting)
		n = push(io, from, count);
	if (n == -1) {
		say_later(io);
		return;
	}
	for (int i = 0; i < count; i++) {
		size_t done =
		    (size_t)n < from[i].iov_len ? (size_t)n : from[i].iov_len;

		n -= (ssize_t)done;
		if (done < from[i].iov_len)
			enqueue(io, (const char *)from[i].iov_base + done,
			    from[i].iov_len - done);
	}
	if (UNLIKELY(io->out_bytes > 0) && (io->mask & EV_WRITE) == 0)
		set_mask(io, io->mask | EV_WRITE);
}

enum io_result
io_write(struct io *io, const struct iovec *from, int count)
{
	if (io->fd == -1 || io->broken)
		return IO_DEAD;
	if (LIKELY(io->ops->seal == NULL))
		io_send(io, from, count);
	else
		io->ops->seal(io, from, count);
	if (UNLIKELY(io->broken))
		return IO_DEAD;
	if (LIKELY(io->out_bytes <= io->high_bytes))
		return IO_OK;
	io->owes_drained = true;
	return IO_FULL;
}

static void
used_up(struct io *io, size_t n)
{
	io->out_bytes -= (uint32_t)n;
	while (n > 0) {
		struct buf *buf = io->out_first;
		size_t have = buf->end - buf->start;

		if (n < have) {
			buf->start += (uint32_t)n;
			return;
		}
		n -= have;
		io->out_first = buf->next;
		if (io->out_first == NULL)
			io->out_last = NULL;
		buf_put(io->worker, &buf);
	}
}

/* Write from the queue until it is empty or the socket is full. */
static int
write_queue(struct io *io)
{
	while (io->out_bytes > 0) {
		struct iovec pieces[QUEUE_PIECES];
		size_t offered = 0;
		int count = 0;
		ssize_t n;

		for (struct buf *buf = io->out_first;
		     buf != NULL && count < QUEUE_PIECES; buf = buf->next) {
			pieces[count].iov_base = buf->bytes + buf->start;
			pieces[count].iov_len = buf->end - buf->start;
			offered += pieces[count++].iov_len;
		}
		n = push(io, pieces, count);
		if (n == -1)
			return -1;
		used_up(io, (size_t)n);
		if ((size_t)n < offered)
			return 0;
	}
	return 0;
}

void
io_shutdown(struct io *io)
{
	if (io->fd == -1)
		return;
	if (io->ops->shutdown != NULL && !io->shuts_down && !io->broken)
		io->ops->shutdown(io);
	io->shuts_down = true;
	/* A failure means that the other end is gone: reading will tell. */
	if (io->out_bytes == 0 && !io->broken &&
	    shutdown(io->fd, SHUT_WR) == -1)
		log_debug("fd %d: shutdown: %s", io->fd, strerror(errno));
}

void
io_await_empty(struct io *io)
{
	if (io->fd == -1)
		return;
	io->awaits_empty = true;
	if (io->out_bytes == 0)
		say_later(io);
}

/* ---- what the loop says ---- */

static void
tell_closed(struct io *io, int error)
{
	bool is_told = error == 0 ? io->told_closed : io->told_broken;

	io->error = 0;
	if (io->broken)
		drop_queue(io);
	/* When a write failed an answer may still wait to be read. */
	set_mask(io, write_mask(io) | (io->wants_read ? EV_READ : 0));
	if (is_told)
		return;
	io->told_closed = true;
	io->told_broken = error != 0;
	io->owner->on_closed(io, error);
}

static void
tell_drained(struct io *io)
{
	bool is_due = io->owes_drained && io->out_bytes <= io->high_bytes / 2;

	if (io->awaits_empty && io->out_bytes == 0)
		is_due = true;
	if (!is_due)
		return;
	io->owes_drained = false;
	if (io->out_bytes == 0)
		io->awaits_empty = false;
	io->owner->on_drained(io);
}

static void
connected(struct io *io)
{
	int error = 0;
	socklen_t len = sizeof(error);

	io->connecting = false;
	if (getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1)
		error = errno;
	if (error != 0) {
		io->broken = io->told_closed = io->told_broken = true;
		drop_queue(io);
		set_mask(io, 0);
	}
	if (io->is_shaking && error == 0) {
		io_handshake(io);
		return;
	}
	io->is_shaking = false;
	io->owner->on_connected(io, error);
}

static void
shaken(struct io *io, int error)
{
	io->is_shaking = false;
	if (error != 0) {
		io->error = 0;
		io->broken = io->told_closed = io->told_broken = true;
		drop_queue(io);
		set_mask(io, 0);
	}
	io->owner->on_connected(io, error);
}

void
io_handshake(struct io *io)
{
	enum io_handshake result = io->ops->handshake(io);

	switch (io->broken ? IO_HANDSHAKE_FAILED : result) {
	case IO_HANDSHAKE_WAITS:
		io->wants_read = true;
		set_mask(io, EV_READ | write_mask(io));
		return;
	case IO_HANDSHAKE_QUEUED:
		set_mask(io, 0); /* or the loop would turn and turn */
		return;
	case IO_HANDSHAKE_DONE:
		shaken(io, 0);
		return;
	case IO_HANDSHAKE_FAILED:
		shaken(io, EPROTO);
		return;
	case IO_HANDSHAKE_PLAIN:
		io->ops->close(io);
		io->ops = &io_plain;
		io->is_shaking = false;
		io->owner->on_connected(io, EPROTOTYPE);
		return;
	}
}

static void
writable(struct io *io)
{
	if (write_queue(io) == -1) {
		tell_closed(io, io->error);
		return;
	}
	if (io->out_bytes == 0) {
		set_mask(io, io->mask & ~EV_WRITE);
		if (io->shuts_down)
			io_shutdown(io);
	}
	tell_drained(io);
}

static void
on_later(struct worker *worker, struct deferred *later)
{
	struct io *io = CONTAINER_OF(later, struct io, later);

	if (io->error != 0)
		tell_closed(io, io->error);
	if (io->fd != -1 && io->awaits_empty)
		tell_drained(io);
	if (io->fd != -1 && (io->woken || (io->has_more && io->wants_read))) {
		io->woken = false;
		io->owner->on_readable(io);
	}
}

/* We have read all and know that they send no more. */
static void
look_at_end(struct io *io)
{
	struct pollfd now = { io->fd, 0, 0 };
	socklen_t len = sizeof(int);
	int error = 0;

	if (poll(&now, 1, 0) != 1)
		return; /* half-closed, as it was */
	if ((now.revents & POLLERR) != 0 &&
	    getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1)
		error = errno;
	tell_closed(io, error);
}

/* Reading is off and the event fired all the same. */
static void
unwanted(struct io *io, short what)
{
	struct pollfd now = { io->fd, POLLRDHUP, 0 };

	if (io->at_end) {
		look_at_end(io);
		return;
	}
	if ((what & EV_CLOSED) == 0) {
		if ((io->mask & EV_ET) == 0) {
			/* Watch for the close only; a close that is there
			 * already is reported again at once. */
			set_mask(io, MASK_PAUSED | write_mask(io));
			return;
		}
		if (poll(&now, 1, 0) != 1 ||
		    (now.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0)
			return; /* only more bytes */
	}
	tell_closed(io, 0);
}

static void
on_event(evutil_socket_t fd, short what, void *arg)
{
	struct io *io = arg;

	/* After each callback: the owner may have closed it; its memory stays
	 * until the end of the loop round. */
	if ((what & EV_WRITE) != 0) {
		if (io->connecting)
			connected(io);
		if (io->fd != -1 && (io->mask & EV_WRITE) != 0)
			writable(io);
		if (io->fd == -1)
			return;
	}
	if ((what & (EV_READ | EV_CLOSED)) == 0)
		return;
	if (UNLIKELY(io->is_shaking))
		io_handshake(io);
	else if (LIKELY(io->wants_read))
		io->owner->on_readable(io);
	else
		unwanted(io, what);
}

/* ---- the end ---- */

void
io_will_reset(struct io *io)
{
	struct linger reset = { 1, 0 };

	io->is_cut = true;
	if (io->fd != -1 && setsockopt(io->fd, SOL_SOCKET, SO_LINGER, &reset,
				sizeof(reset)) == -1)
		log_errno("fd %d: no reset", io->fd);
}

bool
io_is_reset(const struct io *io)
{
	struct pollfd now = { io->fd, 0, 0 };

	return poll(&now, 1, 0) == 1 && (now.revents & POLLERR) != 0;
}

/* First close, then event_del: its epoll_ctl finds nothing and is cheap
 * (HACKING.md). Nobody else holds this descriptor. Another thread may have got
 * its number by then, for a file that is not in our epoll set: as good as none,
 * but ThreadSanitizer cannot know that. */
#if defined(__SANITIZE_THREAD__)
#define CLOSE_FIRST 0
#else
#define CLOSE_FIRST 1
#endif

void
io_close(struct io *io)
{
	int fd = io->fd;

	if (fd == -1)
		return;
	if (io->ops->close != NULL)
		io->ops->close(io);
	io->fd = -1;
	if (CLOSE_FIRST)
		close(fd);
	if (io->mask != 0)
		event_del(&io->event);
	if (!CLOSE_FIRST)
		close(fd);
	io->mask = 0;
	io->wants_read = false;
	list_remove(&io->later.node);
	drop_queue(io);
}

int
io_detach(struct io *io)
{
	int fd = io->fd;

	if (io->mask != 0)
		event_del(&io->event);
	io->fd = -1;
	io->mask = 0;
	io->wants_read = false;
	list_remove(&io->later.node);
	drop_queue(io);
	return fd;
}

bool
io_looks_alive(struct io *io)
{
	char byte;

	if (io->fd == -1 || io->broken)
		return false;
	if (UNLIKELY(io->ops->is_silent != NULL))
		return io->ops->is_silent(io);
	return recv(io->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == -1 &&
	       errno == EAGAIN;
}
