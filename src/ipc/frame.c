/*
 * Frames: fields in a flat buffer, one packet of a SOCK_SEQPACKET socket each.
 * Below channel.c (supervisor and proxy) and the supervisor's keepers.
 * Knows no message and no order of messages.
 */
#include "src/ipc/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/fdutil.h"
#include "src/base/list.h"
#include "src/base/mem.h"

#define TYPE_BYTES 2
/* Room in the socket for some frames of the largest size. */
#define SOCKET_BUFFER_BYTES (4 * FRAME_BYTES_MAX)

struct queued {
	struct list node;
	size_t len;
	unsigned n_fds;
	int fds[FRAME_FDS_MAX];
	unsigned char bytes[];
};

struct frame_link {
	int fd;
	size_t queue_bytes, queue_max;
	struct list queue; /* of struct queued, oldest first */
};

/* ---- writing ---- */

static void
append(struct frame_out *out, const void *from, size_t len)
{
	if (out->overflow || len > sizeof(out->bytes) - out->len) {
		out->overflow = true;
		return;
	}
	if (len > 0)
		memcpy(out->bytes + out->len, from, len);
	out->len += len;
}

void
frame_begin(struct frame_out *out, uint16_t type)
{
	unsigned char bytes[TYPE_BYTES] = { type & 0xff, type >> 8 };

	out->len = 0;
	out->overflow = false;
	out->n_fds = 0;
	append(out, bytes, sizeof(bytes));
}

void
frame_put_u32(struct frame_out *out, uint32_t value)
{
	unsigned char bytes[4];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (value >> (8 * i)) & 0xff;
	append(out, bytes, sizeof(bytes));
}

void
frame_put_u64(struct frame_out *out, uint64_t value)
{
	frame_put_u32(out, (uint32_t)(value & UINT32_MAX));
	frame_put_u32(out, (uint32_t)(value >> 32));
}

void
frame_put_str(struct frame_out *out, struct str text)
{
	if (text.len > FRAME_BYTES_MAX) {
		out->overflow = true;
		return;
	}
	frame_put_u32(out, (uint32_t)text.len);
	append(out, text.ptr, text.len);
	append(out, "", 1);
}

void
frame_put_text(struct frame_out *out, const char *text)
{
	frame_put_str(out, str_of(text == NULL ? "" : text));
}

void
frame_put_fd(struct frame_out *out, int fd)
{
	if (fd < 0 || out->n_fds == FRAME_FDS_MAX) {
		out->overflow = true;
		return;
	}
	out->fds[out->n_fds++] = fd;
}

/* ---- reading ---- */

int
frame_open(struct frame_in *in, size_t len)
{
	in->bad = false;
	in->pos = TYPE_BYTES;
	in->len = len;
	in->type = 0;
	if (len < TYPE_BYTES || len > FRAME_BYTES_MAX) {
		in->pos = in->len = 0;
		in->bad = true;
		return -1;
	}
	in->type = (uint16_t)(in->bytes[0] | in->bytes[1] << 8);
	in->bytes[len] = '\0';
	return 0;
}

/* The next `len` bytes of the frame, or NULL when there are not as many. */
static const unsigned char *
take(struct frame_in *in, size_t len)
{
	const unsigned char *at = in->bytes + in->pos;

	if (in->bad || len > in->len - in->pos) {
		in->bad = true;
		return NULL;
	}
	in->pos += len;
	return at;
}

uint32_t
frame_get_u32(struct frame_in *in)
{
	const unsigned char *at = take(in, 4);

	if (at == NULL)
		return 0;
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

uint64_t
frame_get_u64(struct frame_in *in)
{
	uint64_t low = frame_get_u32(in);
	uint64_t high = frame_get_u32(in);

	return in->bad ? 0 : high << 32 | low;
}

struct str
frame_get_str(struct frame_in *in)
{
	size_t len = frame_get_u32(in);
	const unsigned char *at = in->bad ? NULL : take(in, len);
	const unsigned char *end = at == NULL ? NULL : take(in, 1);

	if (end == NULL || *end != '\0') {
		in->bad = true;
		return STR("");
	}
	return (struct str){ (const char *)at, len };
}

const char *
frame_get_text(struct frame_in *in)
{
	struct str text = frame_get_str(in);

	if (memchr(text.ptr, '\0', text.len) != NULL) {
		in->bad = true;
		return "";
	}
	return text.ptr;
}

int
frame_take_fd(struct frame_in *in)
{
	if (in->bad || in->next_fd == in->n_fds) {
		in->bad = true;
		return -1;
	}
	return in->fds[in->next_fd++];
}

bool
frame_is_whole(const struct frame_in *in)
{
	return !in->bad && in->pos == in->len && in->next_fd == in->n_fds;
}

void
frame_done(struct frame_in *in)
{
	while (in->next_fd < in->n_fds)
		fd_close(&in->fds[in->next_fd++]);
	in->n_fds = in->next_fd = 0;
}

/* ---- the socket ---- */

struct frame_link *
frame_link_new(int fd, size_t queue_max)
{
	struct frame_link *link = mem_alloc(sizeof(*link));
	int bytes = SOCKET_BUFFER_BYTES;

	/* A flag that cannot be set shows at the first send or receive, which
	 * do not block by themselves (MSG_DONTWAIT). */
	if (fd_set_nonblock(fd) == -1 || fd_set_cloexec(fd, true) == -1 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) == -1)
		errno = 0;
	link->fd = fd;
	link->queue_max = queue_max;
	list_init(&link->queue);
	return link;
}

static void
free_queued(struct frame_link *link, struct queued *queued)
{
	for (unsigned i = 0; i < queued->n_fds; i++)
		fd_close(&queued->fds[i]);
	list_remove(&queued->node);
	link->queue_bytes -= queued->len;
	mem_free(queued);
}

void
frame_link_free(struct frame_link **link_ptr)
{
	struct frame_link *link = *link_ptr;
	struct list *node, *after;

	if (link == NULL)
		return;
	LIST_FOREACH_SAFE(node, after, &link->queue)
	free_queued(link, LIST_ENTRY(node, struct queued, node));
	fd_close(&link->fd);
	mem_free(link);
	*link_ptr = NULL;
}

int
frame_link_fd(const struct frame_link *link)
{
	return link->fd;
}

bool
frame_link_wants_write(const struct frame_link *link)
{
	return !list_is_empty(&link->queue);
}

/* 1: sent, 0: the socket is full, -1: broken. */
static int
send_packet(struct frame_link *link, const void *bytes, size_t len,
    const int *fds, unsigned n_fds)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int) * FRAME_FDS_MAX)];
	} control;
	struct iovec iov = { (void *)(uintptr_t)bytes, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (n_fds > 0) {
		memset(&control, 0, sizeof(control));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * n_fds);
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
	}
	do {
		n = sendmsg(link->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n == -1 && errno == EINTR);
	if (n == -1)
		return errno == EAGAIN || errno == ENOBUFS ? 0 : -1;
	return 1;
}

static int
enqueue(struct frame_link *link, const struct frame_out *out)
{
	struct queued *queued;

	if (out->len > link->queue_max - link->queue_bytes) {
		errno = ENOBUFS;
		return -1;
	}
	queued = mem_alloc(sizeof(*queued) + out->len);
	list_push_back(&link->queue, &queued->node);
	queued->len = out->len;
	link->queue_bytes += out->len;
	memcpy(queued->bytes, out->bytes, out->len);
	for (unsigned i = 0; i < out->n_fds; i++) {
		queued->fds[i] = fcntl(out->fds[i], F_DUPFD_CLOEXEC, 0);
		if (queued->fds[i] == -1)
			return -1;
		queued->n_fds++;
	}
	return 0;
}

int
frame_link_send(struct frame_link *link, const struct frame_out *out)
{
	int sent;

	if (out->overflow) {
		errno = EMSGSIZE;
		return -1;
	}
	if (frame_link_wants_write(link) && frame_link_flush(link) == -1)
		return -1;
	if (frame_link_wants_write(link))
		return enqueue(link, out);
	sent = send_packet(link, out->bytes, out->len, out->fds, out->n_fds);
	if (sent == 0)
		return enqueue(link, out);
	return sent == 1 ? 0 : -1;
}

int
frame_link_flush(struct frame_link *link)
{
	while (frame_link_wants_write(link)) {
		struct queued *queued =
		    LIST_ENTRY(list_first(&link->queue), struct queued, node);
		int sent = send_packet(link, queued->bytes, queued->len,
		    queued->fds, queued->n_fds);

		if (sent <= 0)
			return sent;
		free_queued(link, queued);
	}
	return 0;
}

/* Keep the descriptors of a packet; those beyond the limit are closed. */
static void
keep_fds(struct frame_in *in, struct msghdr *msg)
{
	struct cmsghdr *header;

	for (header = CMSG_FIRSTHDR(msg); header != NULL;
	     header = CMSG_NXTHDR(msg, header)) {
		size_t len, n;

		if (header->cmsg_level != SOL_SOCKET ||
		    header->cmsg_type != SCM_RIGHTS)
			continue;
		len = header->cmsg_len - CMSG_LEN(0);
		n = len / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(header) + i * sizeof(int),
			    sizeof(fd));
			if (in->n_fds < FRAME_FDS_MAX)
				in->fds[in->n_fds++] = fd;
			else
				close(fd);
		}
	}
}

enum frame_result
frame_link_recv(struct frame_link *link, struct frame_in *in)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int) * FRAME_FDS_MAX)];
	} control;
	struct iovec iov = { in->bytes, FRAME_BYTES_MAX };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	msg.msg_control = &control;
	msg.msg_controllen = sizeof(control);
	in->n_fds = in->next_fd = 0;
	in->bad = true;
	do {
		n = recvmsg(link->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n == -1 && errno == EINTR);
	if (n == -1) {
		if (errno == EAGAIN)
			return FRAME_AGAIN;
		return errno == ECONNRESET ? FRAME_CLOSED : FRAME_BROKEN;
	}
	keep_fds(in, &msg);
	if (n == 0 && in->n_fds == 0)
		return FRAME_CLOSED;
	if ((msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ||
	    frame_open(in, (size_t)n) == -1) {
		frame_done(in);
		errno = EPROTO;
		return FRAME_BROKEN;
	}
	return FRAME_GOT;
}
