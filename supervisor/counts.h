/*
 * What proxies counted, by proxy, app and instance: tables that are added up.
 * Pure; proxy_counts.c fills them.
 */
#ifndef SUPERVISOR_COUNTS_H
#define SUPERVISOR_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/ipc/channel.h"

struct count {
	uint32_t kind;     /* enum channel_stats_kind */
	uint64_t instance; /* of INSTANCE; else 0 */
	char *name;
	/* Only ever grow. */
	uint64_t requests, errors, accepted;
	/* Now. */
	uint64_t in_flight, queued, connections;
	uint64_t oldest_wait_ms; /* no sum: of the one that waits longest */
};

/* Empty when all zero. */
struct counts {
	struct count *all; /* in an order of their own */
	size_t n;
};

/* Add these numbers to what is there under the same kind, name and instance. */
void counts_note(struct counts *counts, const struct channel_stats *stats);
/* All of `more`; with `past` only what grows: who counted it is no more. */
void counts_add(struct counts *counts, const struct counts *more, bool past);
/* `name` counts for PROXY and APP, `instance` for INSTANCE. Zeroes when nothing
 * is known; valid until `counts` changes. */
const struct count *counts_find(const struct counts *counts,
    enum channel_stats_kind kind, const char *name, uint64_t instance);
/* Is there one under the same kind, name and instance? */
bool counts_has(const struct counts *counts, const struct count *like);
/* Forget those for which `is_wanted` is false. */
typedef bool counts_wanted_cb(const struct count *count, const void *arg);
void counts_keep(
    struct counts *counts, counts_wanted_cb *is_wanted, const void *arg);
void counts_clear(struct counts *counts);

#endif
