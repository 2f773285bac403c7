/*
 * A request's body while it waits: in memory, then in an unnamed temporary
 * file. For bodies that must be whole before they are sent on (FastCGI wants
 * their length), and so that they can be sent again.
 * Bounded by its limits. Only the worker's thread; the disk is written to
 * directly, as the page cache takes it.
 */
#ifndef HANDLER_SPOOL_H
#define HANDLER_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"

struct buf;
struct worker;

struct spool {
	struct buf *first, *last; /* the first `memory_bytes` of it */
	uint64_t bytes;           /* in all */
	uint64_t memory_bytes;
	uint64_t file_bytes; /* ... and the rest: counted in worker->load */
	int fd;              /* of the rest, or -1 */
};

struct spool_limits {
	uint64_t memory_bytes; /* kept in memory; rounded up to a buffer */
	uint64_t file_bytes;   /* in all, above that: EFBIG; 0: no file */
	uint64_t total_bytes;  /* in files of all workers, above that: ENOSPC */
	const char *directory; /* of the file */
};

void spool_init(struct spool *spool);
void spool_free(struct spool *spool, struct worker *worker);
/* Take all of it: 0. Or nothing that counts: -1 with errno; EFBIG: this body is
 * over its limits, anything else: there is no room for it. */
int spool_add(struct spool *spool, struct worker *worker,
    const struct spool_limits *limits, const char *from, size_t len) MUST_CHECK;
/* How much fits before a file would be needed. */
size_t spool_memory_left(
    const struct spool *spool, const struct spool_limits *limits) MUST_CHECK;
/* The piece that begins at `offset` (< spool->bytes), as long as it is
 * contiguous: in memory, or read from the file into *room, a buffer that is
 * taken when needed and is the caller's. Returns its length; 0: the file
 * cannot be read (errno). */
size_t spool_piece(const struct spool *spool, struct worker *worker,
    uint64_t offset, struct buf **room, const char **from) MUST_CHECK;

#endif
