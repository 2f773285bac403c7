/*
 * Hashing of keys from outside, and a map from text to pointer.
 * Seeded once per process, so that clients cannot choose collisions.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/str.h"

/* SipHash-1-3 with this process's random key. Any thread. */
uint64_t hash_bytes(const void *from, size_t len);

struct hash_map; /* opaque; one thread at a time while it changes */

struct hash_map *hash_map_new(void) MUST_CHECK;
/* Does not free what it points to. NULL is fine. */
void hash_map_free(struct hash_map *map);
/* The key is copied. Returns 0, or -1 when the key is there already. */
int hash_map_add(struct hash_map *map, struct str key, void *value) MUST_CHECK;
/* NULL when it is not there. */
void *hash_map_get(const struct hash_map *map, struct str key);
/* Takes it out and returns what it was, or NULL. */
void *hash_map_remove(struct hash_map *map, struct str key);
size_t hash_map_count(const struct hash_map *map);

#endif
