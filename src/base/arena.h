/*
 * Memory that is freed all at once: configurations and snapshots.
 * One thread at a time.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "src/base/compiler.h"

struct arena; /* opaque */

struct arena *arena_new(void) MUST_CHECK;
/* Free it and all it gave; NULL is fine. */
void arena_free(struct arena *arena);
/* Zeroed memory aligned for any type, valid until arena_free. Never NULL
 * (mem.h's policy). */
void *arena_alloc(struct arena *arena, size_t bytes) MUST_CHECK;
char *arena_strdup(struct arena *arena, const char *text) MUST_CHECK;
char *arena_memdup0(
    struct arena *arena, const char *from, size_t len) MUST_CHECK;
char *arena_printf(struct arena *arena, const char *fmt, ...) MUST_CHECK
    PRINTF_LIKE(2, 3);

#endif
