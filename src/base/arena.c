/*
 * A chain of blocks, cut from the front, freed together.
 * Under configurations and snapshots. Does not give single pieces back.
 */
#include "src/base/arena.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

#define BLOCK_BYTES 4000
#define ALIGN (_Alignof(max_align_t))

struct block {
	struct block *next;
	size_t used;
	size_t room;
	max_align_t bytes[];
};

struct arena {
	struct block *blocks; /* the first one is being cut */
};

static struct block *
block_new(size_t room)
{
	struct block *block;

	if (room > SIZE_MAX - sizeof(*block))
		abort();
	block = mem_alloc(sizeof(*block) + room);
	block->room = room;
	return block;
}

struct arena *
arena_new(void)
{
	return mem_alloc(sizeof(struct arena));
}

void
arena_free(struct arena *arena)
{
	struct block *block, *next;

	if (arena == NULL)
		return;
	for (block = arena->blocks; block != NULL; block = next) {
		next = block->next;
		mem_free(block);
	}
	mem_free(arena);
}

/* Large pieces get a block of their own behind the first, so that the rest of
 * the first one is not lost. */
static void *
alloc_large(struct arena *arena, size_t bytes)
{
	struct block *block = block_new(bytes);

	block->used = bytes;
	if (arena->blocks == NULL) {
		arena->blocks = block;
	} else {
		block->next = arena->blocks->next;
		arena->blocks->next = block;
	}
	return block->bytes;
}

void *
arena_alloc(struct arena *arena, size_t bytes)
{
	struct block *block = arena->blocks;
	void *piece;

	if (bytes > SIZE_MAX - ALIGN)
		abort();
	bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
	if (bytes > BLOCK_BYTES / 4)
		return alloc_large(arena, bytes);
	if (block == NULL || block->room - block->used < bytes) {
		block = block_new(BLOCK_BYTES);
		block->next = arena->blocks;
		arena->blocks = block;
	}
	piece = (char *)block->bytes + block->used;
	block->used += bytes;
	return piece;
}

char *
arena_strdup(struct arena *arena, const char *text)
{
	return text == NULL ? NULL : arena_memdup0(arena, text, strlen(text));
}

char *
arena_memdup0(struct arena *arena, const char *from, size_t len)
{
	char *copy;

	if (len == SIZE_MAX)
		abort();
	copy = arena_alloc(arena, len + 1);
	if (len > 0)
		memcpy(copy, from, len);
	return copy;
}

char *
arena_printf(struct arena *arena, const char *fmt, ...)
{
	va_list args;
	char *text = NULL, *copy;
	int len;

	va_start(args, fmt);
	len = vasprintf(&text, fmt, args);
	va_end(args);
	if (len == -1)
		abort();
	copy = arena_memdup0(arena, text, (size_t)len);
	free(text);
	return copy;
}
