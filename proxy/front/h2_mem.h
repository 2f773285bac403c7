/*
 * Memory for nghttp2, which asks for ten small pieces a request: kept by size
 * for the next one. One per worker; only its thread.
 */
#ifndef FRONT_H2_MEM_H
#define FRONT_H2_MEM_H

#include <nghttp2/nghttp2.h>
#include <stddef.h>

/* 32, 64 ... 1024 bytes; what is larger comes from the heap. */
#define H2_MEM_CLASSES 6
/* Free pieces kept of each size. */
#define H2_MEM_KEPT 512

struct h2_mem {
	struct h2_piece_free *free[H2_MEM_CLASSES];
	unsigned n_free[H2_MEM_CLASSES];
};

/* The functions for a session; `mem` outlives it. */
nghttp2_mem h2_mem_functions(struct h2_mem *mem);
/* Release what is free. */
void h2_mem_clear(struct h2_mem *mem);

#endif
