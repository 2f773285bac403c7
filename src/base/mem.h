/*
 * Heap memory with one policy: running out of it ends the process.
 * For objects whose number a limit bounds; sizes from outside are checked
 * by the caller before they come here. Not for the hot path.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

#include "src/base/compiler.h"

/* Zeroed memory, never NULL: abort() when there is none (the kernel
 * overcommits; a process that gets here cannot go on). Free with mem_free. */
void *mem_alloc(size_t bytes) MUST_CHECK;
void *mem_alloc_array(size_t count, size_t bytes) MUST_CHECK;
/* The same, but with whatever was there. */
void *mem_alloc_dirty(size_t bytes) MUST_CHECK;
/* Grow or shrink; what is new is not zeroed. */
void *mem_realloc(void *old, size_t count, size_t bytes) MUST_CHECK;
/* A copy of `text` (NULL gives NULL), of `len` bytes plus a NUL. */
char *mem_strdup(const char *text) MUST_CHECK;
char *mem_memdup0(const char *from, size_t len) MUST_CHECK;
char *mem_printf(const char *fmt, ...) MUST_CHECK PRINTF_LIKE(1, 2);
void mem_free(void *ptr);
/* That policy, for memory that comes from a library. */
NORETURN void mem_exhausted(void);

#endif
