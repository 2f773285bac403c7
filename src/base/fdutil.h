/*
 * Small things done to descriptors and files.
 * Returns 0 / -1 with errno unless said otherwise. Any thread.
 */
#ifndef BASE_FDUTIL_H
#define BASE_FDUTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "src/base/compiler.h"

int fd_set_nonblock(int fd) MUST_CHECK;
int fd_set_cloexec(int fd, bool on) MUST_CHECK;
/* Close unless it is -1, and set it to -1. Keeps errno. */
void fd_close(int *fd);
/* Write all of it to a blocking fd, over EINTR. */
int fd_write_all(int fd, const void *from, size_t len) MUST_CHECK;
/* The whole regular file, at most `max` bytes (EFBIG beyond, EISDIR or EINVAL
 * if it is no regular file). The caller frees *text (mem_free), which has a
 * NUL behind its *len bytes. */
int fd_read_file(
    const char *path, size_t max, char **text, size_t *len) MUST_CHECK;
/* The whole of an open file or memfd, from offset 0. */
int fd_read_whole(int fd, size_t max, char **text, size_t *len) MUST_CHECK;
/* A memfd with this content that nobody can change (sealed), CLOEXEC, or -1. */
int fd_memfd_sealed(const char *name, const void *from, size_t len) MUST_CHECK;
/* How many descriptors may be open: raise the soft limit to the hard one.
 * *was (may be NULL) is the soft limit before. */
int fd_raise_limit(size_t *was, size_t *now) MUST_CHECK;

#endif
