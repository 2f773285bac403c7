/*
 * One socket of a worker: reading, writing, and what waits to be written.
 * Used for clients and for peers. Plain here; TLS is a second table of the same
 * operations. Knows no HTTP.
 *
 * Reading is pulled: on_readable says "there is something", the owner calls
 * io_read once into a buffer of its own. Writing is pushed: io_write takes all
 * of it, always; what the socket does not take is copied and kept, and the
 * answer FULL asks the owner to stop until on_drained. So memory is bounded by
 * high mark + the owner's last write.
 *
 * All functions: only the worker's thread. Callbacks come from the event loop
 * alone, never from inside a call of the owner's, and none after io_close.
 */
#ifndef CORE_IO_H
#define CORE_IO_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "src/base/compiler.h"

struct buf;
struct io;
struct worker;

/* What the owner is told. One static const table per kind of owner; the owner
 * is found with CONTAINER_OF. A callback may close the io, or free its owner
 * through worker_defer. */
struct io_events {
	/* Bytes, end-of-file or an error wait: io_read tells which. */
	void (*on_readable)(struct io *io);
	/* After IO_FULL: what is left is at or below half the high mark. */
	void (*on_drained)(struct io *io);
	/* The peer has closed (both or its writing side) while reading is off,
	 * or a queued write failed (`error` is its errno, else 0). Comes at most once;
	 * the io is still to be closed by the owner. */
	void (*on_closed)(struct io *io, int error);
};

enum io_result {
	IO_OK,   /* written, or queued below the high mark */
	IO_FULL, /* taken as well, but stop until on_drained */
	IO_DEAD, /* the connection is broken; nothing more will be written */
};

#define IO_EOF 0     /* io_read: end-of-file */
#define IO_AGAIN -1  /* io_read: nothing now */
#define IO_BROKEN -2 /* io_read: errno says why */

/* Transport. Returns as read(2)/writev(2) with errno. */
struct io_ops {
	const char *name;
	ssize_t (*read)(struct io *io, void *to, size_t room);
	ssize_t (*writev)(struct io *io, const struct iovec *from, int count);
	void (*close)(struct io *io);
};
extern const struct io_ops io_plain;

struct io {
	const struct io_ops *ops;
	const struct io_events *owner;
	struct worker *worker;
	struct event event; /* one, its mask is changed when it must be */
	int fd;             /* -1: closed */
	short mask;         /* what `event` waits for; 0: not added */
	bool wants_read;
	bool was_full;  /* on_drained is owed */
	bool closing;   /* shut down writing once drained */
	bool told_closed;
	uint32_t high_bytes;
	uint32_t out_bytes;          /* queued */
	struct buf *out_first, *out_last;
	void *transport; /* of ops */
};

/* Take over `fd` (non-blocking). Nothing is registered until io_read_start. */
void io_init(struct io *io, struct worker *worker, int fd,
    const struct io_ops *ops, const struct io_events *owner,
    uint32_t high_bytes);

/* Ask for on_readable; the event stays registered from now on (HACKING.md: no
 * epoll_ctl in the normal course of a request). */
void io_read_start(struct io *io);
/* Not now. Lazy: the event is changed to "tell me when the peer closes" only if
 * it fires meanwhile. io_read_start undoes it. */
void io_read_pause(struct io *io);

/* One read. > 0: bytes; else IO_EOF, IO_AGAIN, IO_BROKEN. May be called at any
 * time, also without on_readable (after accept with deferred data). */
ssize_t io_read(struct io *io, void *to, size_t room) MUST_CHECK;

/* Write all pieces (at most 8) in order. Tries the socket at once if nothing is
 * queued. */
enum io_result io_write(struct io *io, const struct iovec *from, int count)
    MUST_CHECK;
static inline bool
io_is_drained(const struct io *io)
{
	return io->out_bytes == 0;
}

/* Shut down the writing side once all is written; reading goes on. */
void io_shutdown(struct io *io);
/* Close at once; what is queued is lost. Safe to call twice. */
void io_close(struct io *io);
/* Is the other end still there, as far as the kernel knows? For idle uconns before they
 * are used again: one recv(MSG_PEEK), only called when the loop may be late. */
bool io_looks_alive(struct io *io);

#endif
