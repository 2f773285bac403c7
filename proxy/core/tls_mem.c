/*
 * OpenSSL's memory functions: malloc's, with a few small pieces of each thread
 * in front of them. Below all of tls_*.c; proxy.c begins with it.
 * Clears nothing: OpenSSL wipes what is secret before it gives it back.
 */
#include "proxy/core/tls_mem.h"

#include <malloc.h>
#include <openssl/crypto.h>
#include <stdbool.h>
#include <stdlib.h>

#include "src/base/compiler.h"

/* What a WPACKET needs (OpenSSL's writer of records), which is malloc's second
 * smallest size; at most three of them are in use at once. */
#define PIECE_BYTES 40
#define KEPT_MAX 4

struct piece {
	struct piece *next;
	const void *keeper; /* &kept, while it is there */
};

/* OpenSSL hands no argument through. A worker's last pieces go with the
 * process. */
static _Thread_local struct {
	struct piece *first;
	unsigned count;
} kept;

static void *
take(size_t bytes, const char *file, int line)
{
	struct piece *piece = kept.first;

	if (bytes == PIECE_BYTES && piece != NULL) {
		kept.first = piece->next;
		kept.count--;
		piece->keeper = NULL;
		return piece;
	}
	return bytes == 0 ? NULL : malloc(bytes); /* as OpenSSL's own does */
}

static void *
resize(void *piece, size_t bytes, const char *file, int line)
{
	return realloc(piece, bytes);
}

static bool
is_kept(const struct piece *piece)
{
	const struct piece *one = kept.first;

	while (one != NULL && one != piece)
		one = one->next;
	return one != NULL;
}

static void
give_back(void *memory, const char *file, int line)
{
	struct piece *piece = memory;

	if (piece == NULL || kept.count == KEPT_MAX ||
	    malloc_usable_size(piece) != PIECE_BYTES) {
		free(piece);
		return;
	}
	/* Twice: malloc would notice it as well. */
	if (UNLIKELY(piece->keeper == &kept) && is_kept(piece))
		abort();
	piece->keeper = &kept;
	piece->next = kept.first;
	kept.first = piece;
	kept.count++;
}

void
tls_mem_init(void)
{
#if !defined(__SANITIZE_ADDRESS__)
	(void)!CRYPTO_set_mem_functions(take, resize, give_back);
#else
	(void)take, (void)resize, (void)give_back;
#endif
}
