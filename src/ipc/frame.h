/*
 * Frames over a SOCK_SEQPACKET unix socket: a type, fields, descriptors.
 * Used by the supervisor-proxy channel and between supervisor and keeper.
 * Knows no message's meaning.
 */
#ifndef IPC_FRAME_H
#define IPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/str.h"

#define FRAME_BYTES_MAX 65536
#define FRAME_FDS_MAX 64

/* A frame being written: fields are appended in order, integers little-endian,
 * strings with a 32-bit length. Overflow is remembered and makes the send
 * fail. Descriptors are borrowed until the send returns. */
struct frame_out {
	size_t len;
	bool overflow;
	unsigned n_fds;
	int fds[FRAME_FDS_MAX];
	unsigned char bytes[FRAME_BYTES_MAX];
};

void frame_begin(struct frame_out *out, uint16_t type);
void frame_put_u32(struct frame_out *out, uint32_t value);
void frame_put_u64(struct frame_out *out, uint64_t value);
void frame_put_str(struct frame_out *out, struct str text);
void frame_put_text(struct frame_out *out, const char *text); /* NULL = "" */
void frame_put_fd(struct frame_out *out, int fd);

/* A frame that came. Reading beyond its end, or a string that does not fit,
 * sets `bad` and gives zeros and empty text from then on. Strings are views,
 * each followed by a NUL, valid until the next frame_recv. Descriptors not
 * taken are closed by frame_done. */
struct frame_in {
	uint16_t type;
	bool bad;
	size_t pos, len;
	unsigned n_fds, next_fd;
	int fds[FRAME_FDS_MAX];
	unsigned char bytes[FRAME_BYTES_MAX + 1];
};

/* The first `len` of in->bytes are a packet: read its type, so that fields can
 * be got. frame_link_recv does this itself; here for tests. -1: no frame. */
int frame_open(struct frame_in *in, size_t len) MUST_CHECK;
uint32_t frame_get_u32(struct frame_in *in);
uint64_t frame_get_u64(struct frame_in *in);
struct str frame_get_str(struct frame_in *in);
const char *frame_get_text(struct frame_in *in); /* no NUL inside, else bad */
int frame_take_fd(struct frame_in *in); /* -1 and bad when there is none */
/* Everything read, nothing left over, nothing bad? */
bool frame_is_whole(const struct frame_in *in);
void frame_done(struct frame_in *in);

/* One end of the socket. Sends never block: what the socket does not take is
 * queued, fds dup'ed, up to `queue_max` bytes; beyond that the link is failed
 * (the other side is stuck). */
struct frame_link; /* opaque */

/* Takes over `fd` (made non-blocking and CLOEXEC). */
struct frame_link *frame_link_new(int fd, size_t queue_max) MUST_CHECK;
void frame_link_free(struct frame_link **link);
int frame_link_fd(const struct frame_link *link);
/* Call frame_link_flush when the fd is writable as long as this says so. */
bool frame_link_wants_write(const struct frame_link *link);
/* 0, or -1 when the link is broken (errno says why). */
int frame_link_send(
    struct frame_link *link, const struct frame_out *out) MUST_CHECK;
int frame_link_flush(struct frame_link *link) MUST_CHECK;

enum frame_result {
	FRAME_GOT,
	FRAME_AGAIN,  /* nothing there now */
	FRAME_CLOSED, /* end of file */
	FRAME_BROKEN, /* truncated, too large, errno */
};
/* Descriptors arrive CLOEXEC. Call frame_done on `in` after FRAME_GOT. */
enum frame_result frame_link_recv(
    struct frame_link *link, struct frame_in *in) MUST_CHECK;

#endif
