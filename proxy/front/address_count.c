/*
 * Counts of connections by client address, in parts with a lock each.
 * Between the listeners of all workers and the ends of their connections.
 * Decides nothing but whether the number is reached.
 */
#include "proxy/front/address_count.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/hash.h"
#include "src/base/mem.h"

/* More than there are workers, so that two rarely meet. */
#define PARTS 64

struct part {
	pthread_mutex_t lock;
	struct hash_map *counts; /* key -> struct count; under lock */
	char pad[16];
};

struct address_count {
	struct part parts[PARTS];
};

struct count {
	uint32_t n;
};

/* A family and what of the address counts. */
struct key {
	unsigned char bytes[9];
	size_t len;
};

struct address_count *
address_count_new(void)
{
	struct address_count *counts = mem_alloc(sizeof(*counts));

	for (size_t i = 0; i < PARTS; i++) {
		pthread_mutex_init(&counts->parts[i].lock, NULL);
		counts->parts[i].counts = hash_map_new();
	}
	return counts;
}

void
address_count_free(struct address_count **counts_at)
{
	struct address_count *counts = *counts_at;

	if (counts == NULL)
		return;
	*counts_at = NULL;
	for (size_t i = 0; i < PARTS; i++) {
		hash_map_free(counts->parts[i].counts);
		pthread_mutex_destroy(&counts->parts[i].lock);
	}
	mem_free(counts);
}

static struct key
key_of(const struct sockaddr *from)
{
	struct key key = { .bytes = { 4 }, .len = 5 };
	const uint8_t *six;

	if (from->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)from;

		memcpy(key.bytes + 1, &in->sin_addr, 4);
		return key;
	}
	six = ((const struct sockaddr_in6 *)(const void *)from)
		  ->sin6_addr.s6_addr;
	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)six)) {
		memcpy(key.bytes + 1, six + 12, 4);
		return key;
	}
	key.bytes[0] = 6;
	memcpy(key.bytes + 1, six, 8);
	key.len = 9;
	return key;
}

static struct part *
part_of(struct address_count *counts, const struct key *key)
{
	return &counts->parts[hash_bytes(key->bytes, key->len) % PARTS];
}

bool
address_count_take(
    struct address_count *counts, const struct sockaddr *from, uint32_t most)
{
	struct key key = key_of(from);
	struct str name = { (const char *)key.bytes, key.len };
	struct part *part = part_of(counts, &key);
	struct count *count;
	bool is_taken;

	pthread_mutex_lock(&part->lock);
	count = hash_map_get(part->counts, name);
	if (count == NULL) {
		count = mem_alloc(sizeof(*count));
		if (hash_map_add(part->counts, name, count) == -1)
			abort(); /* it was not there a line ago */
	}
	is_taken = count->n < most;
	if (is_taken)
		count->n++;
	pthread_mutex_unlock(&part->lock);
	return is_taken;
}

void
address_count_put(struct address_count *counts, const struct sockaddr *from)
{
	struct key key = key_of(from);
	struct str name = { (const char *)key.bytes, key.len };
	struct part *part = part_of(counts, &key);
	struct count *count;

	pthread_mutex_lock(&part->lock);
	count = hash_map_get(part->counts, name);
	if (count != NULL && --count->n == 0) {
		hash_map_remove(part->counts, name);
		mem_free(count);
	}
	pthread_mutex_unlock(&part->lock);
}
