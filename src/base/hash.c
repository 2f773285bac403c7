/*
 * SipHash-1-3 with a key of this process, and a chained hash map.
 * For keys that clients or files choose. Not ordered, not concurrent.
 */
#include "src/base/hash.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "src/base/mem.h"

/* One key for the process: values must agree between threads. Written once,
 * under pthread_once, then only read. */
static uint64_t seed[2];
static pthread_once_t seed_once = PTHREAD_ONCE_INIT;

static void
make_seed(void)
{
	/* 16 bytes are never cut short once the kernel's pool is ready. */
	if (getrandom(seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		abort();
}

struct sip {
	uint64_t a, b, c, d;
};

static inline uint64_t
rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void
sip_round(struct sip *sip)
{
	sip->a += sip->b;
	sip->b = rotate(sip->b, 13) ^ sip->a;
	sip->a = rotate(sip->a, 32);
	sip->c += sip->d;
	sip->d = rotate(sip->d, 16) ^ sip->c;
	sip->a += sip->d;
	sip->d = rotate(sip->d, 21) ^ sip->a;
	sip->c += sip->b;
	sip->b = rotate(sip->b, 17) ^ sip->c;
	sip->c = rotate(sip->c, 32);
}

static inline void
sip_word(struct sip *sip, uint64_t word)
{
	sip->d ^= word;
	sip_round(sip);
	sip->a ^= word;
}

static uint64_t
sip13(const uint64_t key[2], const unsigned char *from, size_t len)
{
	struct sip sip = {
		key[0] ^ UINT64_C(0x736f6d6570736575),
		key[1] ^ UINT64_C(0x646f72616e646f6d),
		key[0] ^ UINT64_C(0x6c7967656e657261),
		key[1] ^ UINT64_C(0x7465646279746573),
	};
	uint64_t last = (uint64_t)len << 56, word;
	size_t i;

	for (i = 0; len - i >= 8; i += 8) {
		memcpy(&word, from + i, 8);
		sip_word(&sip, word);
	}
	for (unsigned shift = 0; i < len; i++, shift += 8)
		last |= (uint64_t)from[i] << shift;
	sip_word(&sip, last);
	sip.c ^= 0xff;
	for (int i_round = 0; i_round < 3; i_round++)
		sip_round(&sip);
	return sip.a ^ sip.b ^ sip.c ^ sip.d;
}

uint64_t
hash_bytes(const void *from, size_t len)
{
	pthread_once(&seed_once, make_seed);
	return sip13(seed, from, len);
}

struct entry {
	struct entry *next;
	void *value;
	uint64_t hash;
	size_t key_len;
	char key[];
};

struct hash_map {
	struct entry **buckets;
	size_t bucket_count; /* a power of two */
	size_t count;
};

struct hash_map *
hash_map_new(void)
{
	struct hash_map *map = mem_alloc(sizeof(*map));

	map->bucket_count = 16;
	map->buckets =
	    mem_alloc_array(map->bucket_count, sizeof(struct entry *));
	return map;
}

void
hash_map_free(struct hash_map *map)
{
	if (map == NULL)
		return;
	for (size_t i = 0; i < map->bucket_count; i++) {
		struct entry *entry = map->buckets[i], *next;

		for (; entry != NULL; entry = next) {
			next = entry->next;
			mem_free(entry);
		}
	}
	mem_free(map->buckets);
	mem_free(map);
}

/* The pointer that points to the entry of `key`, or to the NULL at the end of
 * its chain. */
static struct entry **
find(const struct hash_map *map, struct str key, uint64_t hash)
{
	struct entry **at = &map->buckets[hash & (map->bucket_count - 1)];

	for (; *at != NULL; at = &(*at)->next) {
		struct str have = { (*at)->key, (*at)->key_len };

		if ((*at)->hash == hash && str_eq(have, key))
			break;
	}
	return at;
}

static void
grow(struct hash_map *map)
{
	size_t count = map->bucket_count * 2;
	struct entry **buckets = mem_alloc_array(count, sizeof(*buckets));

	for (size_t i = 0; i < map->bucket_count; i++) {
		struct entry *entry = map->buckets[i], *next;

		for (; entry != NULL; entry = next) {
			struct entry **to = &buckets[entry->hash & (count - 1)];

			next = entry->next;
			entry->next = *to;
			*to = entry;
		}
	}
	mem_free(map->buckets);
	map->buckets = buckets;
	map->bucket_count = count;
}

int
hash_map_add(struct hash_map *map, struct str key, void *value)
{
	uint64_t hash = hash_bytes(key.ptr, key.len);
	struct entry **at = find(map, key, hash);
	struct entry *entry;

	if (*at != NULL)
		return -1;
	entry = mem_alloc(sizeof(*entry) + key.len);
	entry->value = value;
	entry->hash = hash;
	entry->key_len = key.len;
	if (key.len > 0)
		memcpy(entry->key, key.ptr, key.len);
	*at = entry;
	if (++map->count > map->bucket_count)
		grow(map);
	return 0;
}

void *
hash_map_get(const struct hash_map *map, struct str key)
{
	struct entry **at = find(map, key, hash_bytes(key.ptr, key.len));

	return *at == NULL ? NULL : (*at)->value;
}

void *
hash_map_remove(struct hash_map *map, struct str key)
{
	struct entry **at = find(map, key, hash_bytes(key.ptr, key.len));
	struct entry *entry = *at;
	void *value;

	if (entry == NULL)
		return NULL;
	value = entry->value;
	*at = entry->next;
	mem_free(entry);
	map->count--;
	return value;
}

size_t
hash_map_count(const struct hash_map *map)
{
	return map->count;
}
