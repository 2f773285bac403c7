/*
 * Bodies that wait: a chain of buffers, then an unnamed file.
 * Filled and emptied by the gateway.
 * Knows no HTTP.
 */
#include "proxy/handler/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxy/core/worker.h"
#include "src/base/fdutil.h"
#include "src/base/mem.h"

void
spool_init(struct spool *spool)
{
	*spool = (struct spool){ .fd = -1 };
}

void
spool_free(struct spool *spool, struct worker *worker)
{
	struct buf *buf;

	while ((buf = spool->first) != NULL) {
		spool->first = buf->next;
		buf_put(worker, &buf);
	}
	if (spool->file_bytes > 0)
		atomic_fetch_sub_explicit(
		    &worker->load[worker->index].spooled_bytes,
		    spool->file_bytes, memory_order_relaxed);
	fd_close(&spool->fd);
	spool_init(spool);
}

/* In the files of all workers. Each counts its own, so that two may both find
 * room for their last piece: over by a buffer each, no more. */
static uint64_t
spooled_by_all(const struct worker *worker)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < worker->n_workers; i++)
		bytes += atomic_load_explicit(
		    &worker->load[i].spooled_bytes, memory_order_relaxed);
	return bytes;
}

/* A file without a name: nothing is left of it whatever happens. Where the file
 * system has no O_TMPFILE it has a name for a moment. */
static int
open_unnamed(const char *directory)
{
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char *name;

	if (fd != -1 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	name = mem_printf("%s/spool-XXXXXX", directory);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd != -1)
		unlink(name);
	mem_free(name);
	return fd;
}

static int
write_at(int fd, const char *from, size_t len, uint64_t offset)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, from, len, (off_t)offset);

		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return -1;
		from += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static void
add_memory(
    struct spool *spool, struct worker *worker, const char *from, size_t len)
{
	while (len > 0) {
		struct buf *buf = spool->last;
		size_t n;

		if (buf == NULL || buf->end == buf->room) {
			buf = buf_get(worker);
			if (spool->last == NULL)
				spool->first = buf;
			else
				spool->last->next = buf;
			spool->last = buf;
		}
		n = buf->room - buf->end;
		if (n > len)
			n = len;
		memcpy(buf->bytes + buf->end, from, n);
		buf->end += (uint32_t)n;
		spool->memory_bytes += n;
		spool->bytes += n;
		from += n;
		len -= n;
	}
}

size_t
spool_memory_left(const struct spool *spool, const struct spool_limits *limits)
{
	uint64_t most =
	    (limits->memory_bytes + BUF_BYTES - 1) / BUF_BYTES * BUF_BYTES;

	if (spool->fd != -1 || spool->memory_bytes >= most)
		return 0;
	return (size_t)(most - spool->memory_bytes);
}

int
spool_add(struct spool *spool, struct worker *worker,
    const struct spool_limits *limits, const char *from, size_t len)
{
	size_t n = spool_memory_left(spool, limits);

	if (n > len)
		n = len;
	if (len > n && spool->bytes + len > limits->file_bytes) {
		errno = EFBIG;
		return -1;
	}
	add_memory(spool, worker, from, n);
	if (n == len)
		return 0;
	from += n;
	len -= n;
	if (spooled_by_all(worker) + len > limits->total_bytes) {
		errno = ENOSPC;
		return -1;
	}
	if (spool->fd == -1)
		spool->fd = open_unnamed(limits->directory);
	if (spool->fd == -1 ||
	    write_at(spool->fd, from, len, spool->file_bytes) == -1)
		return -1;
	spool->bytes += len;
	spool->file_bytes += len;
	atomic_fetch_add_explicit(&worker->load[worker->index].spooled_bytes,
	    len, memory_order_relaxed);
	return 0;
}

static size_t
read_at(int fd, struct buf *buf, uint64_t offset)
{
	ssize_t n;

	do {
		n = pread(fd, buf->bytes, buf->room, (off_t)offset);
	} while (n == -1 && errno == EINTR);
	if (n == 0)
		errno = EIO;
	return n > 0 ? (size_t)n : 0;
}

size_t
spool_piece(const struct spool *spool, struct worker *worker, uint64_t offset,
    struct buf **room, const char **from)
{
	struct buf *buf = spool->first;

	if (offset >= spool->memory_bytes) {
		if (*room == NULL)
			*room = buf_get(worker);
		*from = (*room)->bytes;
		return read_at(spool->fd, *room, offset - spool->memory_bytes);
	}
	/* All but the last are full. */
	while (offset >= BUF_BYTES) {
		buf = buf->next;
		offset -= BUF_BYTES;
	}
	*from = buf->bytes + offset;
	return buf->end - (size_t)offset;
}
