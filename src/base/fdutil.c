/*
 * Small things done to descriptors and files.
 * For start-up and reload; blocking, so not for event loops. No sockets.
 */
#include "src/base/fdutil.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/mem.h"

int
fd_set_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags == -1)
		return -1;
	return fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

int
fd_set_cloexec(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFD);

	if (flags == -1)
		return -1;
	flags = on ? flags | FD_CLOEXEC : flags & ~FD_CLOEXEC;
	return fcntl(fd, F_SETFD, flags);
}

void
fd_close(int *fd)
{
	int saved = errno;

	if (*fd == -1)
		return;
	close(*fd);
	*fd = -1;
	errno = saved;
}

int
fd_write_all(int fd, const void *from, size_t len)
{
	const char *at = from;

	while (len > 0) {
		ssize_t done = write(fd, at, len);

		if (done == -1 && errno == EINTR)
			continue;
		if (done == -1)
			return -1;
		at += done;
		len -= (size_t)done;
	}
	return 0;
}

int
fd_read_file(const char *path, size_t max, char **text, size_t *len)
{
	/* O_NONBLOCK: a fifo must not hold us before we see what it is. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int result;

	if (fd == -1)
		return -1;
	result = fd_read_whole(fd, max, text, len);
	fd_close(&fd);
	return result;
}

/* The size that stat gives is a hint only: files in /proc say 0, and others
 * may grow while we read. */
static int
read_until_end(int fd, size_t hint, size_t max, char **text, size_t *len)
{
	size_t room = (hint < max ? hint : max) + 1, have = 0;
	char *at = mem_alloc(room + 1);

	for (;;) {
		ssize_t got = pread(fd, at + have, room - have, (off_t)have);

		if (got == -1 && errno == EINTR)
			continue;
		if (got == -1)
			break;
		have += (size_t)got;
		if (have > max) {
			errno = EFBIG;
			break;
		}
		if (got == 0) {
			at[have] = '\0';
			*text = at;
			*len = have;
			return 0;
		}
		if (have == room) {
			room = room > max / 2 ? max + 1 : room * 2;
			at = mem_realloc(at, room + 1, 1);
		}
	}
	mem_free(at);
	return -1;
}

int
fd_read_whole(int fd, size_t max, char **text, size_t *len)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
		return -1;
	}
	if (max > SIZE_MAX / 4)
		max = SIZE_MAX / 4;
	if ((uintmax_t)st.st_size > max) {
		errno = EFBIG;
		return -1;
	}
	return read_until_end(fd, (size_t)st.st_size, max, text, len);
}

int
fd_memfd_sealed(const char *name, const void *from, size_t len)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd == -1)
		return -1;
	if (fd_write_all(fd, from, len) == -1 || lseek(fd, 0, SEEK_SET) == -1 ||
	    fcntl(fd, F_ADD_SEALS,
		F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == -1)
		fd_close(&fd);
	return fd;
}

int
fd_raise_limit(size_t *was, size_t *now)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == -1)
		return -1;
	if (was != NULL)
		*was = limit.rlim_cur;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) == -1)
		return -1;
	*now = limit.rlim_cur;
	return 0;
}
