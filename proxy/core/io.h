/*
 * One socket of a worker: reading, writing, and what waits to be written.
 * Used for clients and for peers. Plain here; TLS is a second table of the same
 * operations (tls_io.h). Knows no HTTP.
 *
 * Reading is pulled: on_readable says "there is something", the owner calls
 * io_read once into a buffer of its own. Writing is pushed: io_write takes all
 * of it, always; what the socket does not take is copied and kept, and the
 * answer FULL asks the owner to stop until on_drained. So memory is bounded by
 * high mark + the owner's last write.
 *
 * All functions: only the worker's thread. Callbacks come from the event loop
 * alone, never from inside a call of the owner's, and none after io_close.
 * After io_close io_write answers IO_DEAD and io_read IO_BROKEN.
 */
#ifndef CORE_IO_H
#define CORE_IO_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "proxy/core/worker.h"
#include "src/base/compiler.h"

struct io;

/* What the owner is told. One static const table per kind of owner; the owner
 * is found with CONTAINER_OF. A callback may close the io, or free its owner
 * through worker_defer. */
struct io_events {
	/* Bytes, end-of-file or an error wait: io_read tells which. */
	void (*on_readable)(struct io *io);
	/* After IO_FULL: what is left is at or below half the high mark. After
	 * io_await_empty: nothing is left. */
	void (*on_drained)(struct io *io);
	/* The peer has closed (both or its writing side) while reading was
	 * paused
	 * (`error` 0 or its errno), or a write failed, direct or queued
	 * (`error` is its errno; also while reading is on). Each of the two
	 * comes at most once; the io is still to be closed by the owner. Unread
	 * bytes may wait: io_read still gives them, so on a uconn this alone is
	 * no failure. After io_read_end 0 means that nobody is there any more
	 * to read what we write. */
	void (*on_closed)(struct io *io, int error);
	/* Only after io_init with `connecting`, or with TLS: the connection is
	 * up (0), with TLS the handshake is done and io_protocol is known, and
	 * what was queued is going out; or it failed (errno; EPROTO: the
	 * handshake), nothing of the owner's was sent. EPROTOTYPE: a client
	 * spoke plain HTTP; the io is a plain one now and can be written to,
	 * but the first bytes are lost. Comes once, before any
	 * on_readable. */
	void (*on_connected)(struct io *io, int error);
};

enum io_result {
	IO_OK,   /* written, or queued below the high mark */
	IO_FULL, /* taken as well, but stop until on_drained */
	/* The connection is broken, nothing more will be written. on_closed
	 * follows once, from the loop; until then reading may still give bytes.
	 */
	IO_DEAD,
};

#define IO_EOF 0     /* io_read: end-of-file */
#define IO_AGAIN -1  /* io_read: nothing now */
#define IO_BROKEN -2 /* io_read: errno says why */

/* What both ends agreed to speak above this io (ALPN, RFC 7301). */
enum io_protocol {
	IO_PROTOCOL_NONE,  /* plain, or nobody asked: the owner's own choice */
	IO_PROTOCOL_HTTP1, /* "http/1.1" */
	IO_PROTOCOL_H2,    /* "h2" */
};

enum io_handshake {
	IO_HANDSHAKE_WAITS,  /* for bytes of the other end */
	IO_HANDSHAKE_QUEUED, /* the transport calls io_handshake again */
	IO_HANDSHAKE_DONE,
	IO_HANDSHAKE_FAILED,
	IO_HANDSHAKE_PLAIN, /* what came is HTTP as it is */
};

/* Transport: what is between the owner's bytes and the socket's. All but `read`
 * are NULL for the plain one. */
struct io_ops {
	const char *name;
	/* As read(2), with errno. Sets io->has_more when it kept bytes that the
	 * socket will not tell of. */
	ssize_t (*read)(struct io *io, void *to, size_t room);
	/* io_looks_alive; NULL: the socket alone tells. */
	bool (*is_silent)(struct io *io);
	/* io_write's pieces as the socket's: io_send, or io_break. */
	void (*seal)(struct io *io, const struct iovec *from, int count);
	enum io_handshake (*handshake)(struct io *io);
	/* Say that no more comes, with io_send. */
	void (*shutdown)(struct io *io);
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
	bool owes_drained;
	bool awaits_empty;
	bool shuts_down; /* once all is written */
	bool told_closed, told_broken;
	bool at_end; /* io_read_end */
	bool connecting;
	bool is_shaking; /* hands, until on_connected */
	bool has_more;   /* the transport kept bytes to read */
	bool is_cut;     /* the owner closes in the midst of something: do not
			  * tell the other end that this was all */
	bool woken;
	bool broken;      /* a write failed; nothing more goes out */
	uint8_t protocol; /* enum io_protocol */
	int error;        /* of a failed write, until on_closed told it */
	uint32_t high_bytes;
	uint32_t out_bytes;  /* queued */
	uint64_t sent_bytes; /* taken by the socket, ever */
	struct buf *out_first, *out_last;
	struct deferred later; /* what must be said from the loop */
	void *transport;       /* of ops */
};

/* Take over `fd` (non-blocking). Nothing is registered until io_read_start,
 * unless it is `connecting`: then writes are queued until on_connected. */
void io_init(struct io *io, struct worker *worker, int fd,
    const struct io_ops *ops, const struct io_events *owner,
    uint32_t high_bytes, bool connecting);

/* Known from on_connected on; NONE for a plain io. */
static inline enum io_protocol
io_protocol(const struct io *io)
{
	return (enum io_protocol)io->protocol;
}

/* Ask for on_readable; the event stays registered from now on (HACKING.md: no
 * epoll_ctl in the normal course of a request). */
void io_read_start(struct io *io);
/* Not now, but watch (from now on, if it was not yet) whether the peer
 * closes. Lazy: the event is changed to "tell me when the peer closes" only if
 * it fires meanwhile. io_read_start undoes it. (The paused mask is
 * EV_READ|EV_CLOSED|EV_ET: with EV_CLOSED alone libevent never reports a
 * reset, and a level-triggered epoll would spin on it. New data is ignored;
 * after on_closed the event is deleted.) */
void io_read_pause(struct io *io);

/* End-of-file was read and we go on writing: on_readable comes no more, only
 * on_closed when the connection breaks or is closed in both directions. */
void io_read_end(struct io *io);
/* From now on the kernel looks after a silent peer: one that is not there any
 * more is found within IO_DEAD_PEER_S. No effect on unix sockets. */
#define IO_DEAD_PEER_S 240
void io_keep_alive(struct io *io);

/* on_readable comes once from the loop, in this round or the next, even if the
 * socket has nothing and reading is paused: for bytes that are already in user
 * space. No system call. Nothing comes after io_close. */
void io_wake(struct io *io);

/* One read. > 0: bytes; else IO_EOF, IO_AGAIN, IO_BROKEN. May be called at any
 * time, also without on_readable (after accept with deferred data). */
ssize_t io_read(struct io *io, void *to, size_t room) MUST_CHECK;

/* Write all pieces (at most 8) in order. Tries the socket at once if nothing is
 * queued. */
enum io_result io_write(
    struct io *io, const struct iovec *from, int count) MUST_CHECK;
static inline bool
io_is_drained(const struct io *io)
{
	return io->out_bytes == 0;
}

/* on_drained comes once when nothing is queued any more (from the loop, also
 * when that is so already): how an owner closes after its last byte. */
void io_await_empty(struct io *io);
/* Shut down the writing side once all is written; reading goes on. With TLS the
 * other end is told first (close_notify). */
void io_shutdown(struct io *io);
/* Closing will reset the connection: nothing that waits in the kernel is sent,
 * or kept until somebody reads that never will. No effect on unix sockets. */
void io_will_reset(struct io *io);
/* Has the other end done so? One system call; what it sent before stays to be
 * read. */
bool io_is_reset(const struct io *io);
/* Close at once; what is queued is lost. Safe to call twice. With TLS the other
 * end is told, if all was written and is_cut is not set. */
void io_close(struct io *io);
/* Give up the descriptor of a plain io without closing it: it is the caller's,
 * and this io is closed. Nothing may be queued. */
int io_detach(struct io *io) MUST_CHECK;
/* Is the other end still there and silent, as far as the kernel knows? For idle
 * uconns before they are used again: one recv(MSG_PEEK), only called when the
 * loop may be late. Bytes that nobody asked for count as no; what belongs to
 * TLS alone does not. Nothing of the owner's is read. */
bool io_looks_alive(struct io *io);

/* ---- for transports and those that begin them ---- */

/* One step of the handshake, from the loop, or by the owner right after it has
 * begun it: on_connected may come from inside. */
void io_handshake(struct io *io);
/* As read(2) on the socket, EINTR left out. */
ssize_t io_receive(struct io *io, void *to, size_t room) MUST_CHECK;
/* Send the socket's bytes now, queue what it does not take. */
void io_send(struct io *io, const struct iovec *from, int count);
/* Nothing more can be written: on_closed follows from the loop. */
void io_break(struct io *io, int error);

#endif
