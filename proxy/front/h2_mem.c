/*
 * Small pieces of memory for nghttp2, from free lists by size.
 * Below its sessions (h2_conn.c). Running out of memory ends the process, as
 * everywhere.
 */
#include "proxy/front/h2_mem.h"

#include <stdint.h>
#include <string.h>

#include "src/base/compiler.h"
#include "src/base/mem.h"

#define SMALLEST 32
#define NO_CLASS H2_MEM_CLASSES

/* In front of each piece; keeps it aligned for anything. */
union head {
	struct {
		size_t bytes; /* that the piece has room for */
		unsigned class;
	} is;
	max_align_t align;
};

/* A free one; its head stays before it. */
struct h2_piece_free {
	struct h2_piece_free *next;
};

static union head *
head_of(void *piece)
{
	return (union head *)piece - 1;
}

static unsigned
class_of(size_t bytes)
{
#if defined(__SANITIZE_ADDRESS__)
	return NO_CLASS; /* let the sanitizer see every use after free */
#else
	if (bytes <= SMALLEST)
		return 0;
	if (bytes > (size_t)SMALLEST << (H2_MEM_CLASSES - 1))
		return NO_CLASS;
	/* The power of two above it: 32 is class 0. */
	return (unsigned)(64 - __builtin_clzll(bytes - 1)) - 5;
#endif
}

static void *
get(size_t bytes, void *user_data)
{
	struct h2_mem *mem = user_data;
	unsigned class = class_of(bytes);
	union head *head;

	if (LIKELY(class < NO_CLASS)) {
		struct h2_piece_free *piece = mem->free[class];

		if (LIKELY(piece != NULL)) {
			mem->free[class] = piece->next;
			mem->n_free[class]--;
			return piece;
		}
		bytes = (size_t)SMALLEST << class;
	}
	head = mem_alloc(sizeof(*head) + bytes);
	head->is.bytes = bytes;
	head->is.class = class;
	return head + 1;
}

static void
put(void *piece, void *user_data)
{
	struct h2_mem *mem = user_data;
	struct h2_piece_free *free_one = piece;
	unsigned class;

	if (piece == NULL)
		return;
	class = head_of(piece)->is.class;
	if (class == NO_CLASS || mem->n_free[class] >= H2_MEM_KEPT) {
		mem_free(head_of(piece));
		return;
	}
	free_one->next = mem->free[class];
	mem->free[class] = free_one;
	mem->n_free[class]++;
}

static void *
get_zeroed(size_t count, size_t bytes, void *user_data)
{
	void *piece;

	if (__builtin_mul_overflow(count, bytes, &bytes))
		return NULL;
	piece = get(bytes, user_data);
	memset(piece, 0, bytes);
	return piece;
}

static void *
resize(void *piece, size_t bytes, void *user_data)
{
	size_t have = piece == NULL ? 0 : head_of(piece)->is.bytes;
	void *larger;

	if (bytes <= have && bytes > 0)
		return piece;
	larger = get(bytes, user_data);
	if (have > 0)
		memcpy(larger, piece, have < bytes ? have : bytes);
	put(piece, user_data);
	return larger;
}

nghttp2_mem
h2_mem_functions(struct h2_mem *mem)
{
	return (nghttp2_mem){ mem, get, put, get_zeroed, resize };
}

void
h2_mem_clear(struct h2_mem *mem)
{
	for (unsigned i = 0; i < H2_MEM_CLASSES; i++) {
		struct h2_piece_free *piece;

		while ((piece = mem->free[i]) != NULL) {
			mem->free[i] = piece->next;
			mem_free(head_of(piece));
		}
		mem->n_free[i] = 0;
	}
}
