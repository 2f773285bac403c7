/*
 * Tables of counters, sorted by what they are about.
 * proxy_counts.c keeps one for each proxy and one of those that have ended.
 * Knows neither proxies nor apps.
 */
#include "supervisor/counts.h"

#include <string.h>

#include "src/base/mem.h"

/* An instance is known by its number alone. */
static int
compare(
    const struct count *one, uint32_t kind, const char *name, uint64_t instance)
{
	if (one->kind != kind)
		return one->kind < kind ? -1 : 1;
	if (kind != CHANNEL_STATS_INSTANCE)
		return strcmp(one->name, name);
	if (one->instance != instance)
		return one->instance < instance ? -1 : 1;
	return 0;
}

/* Where it is, or belongs. */
static size_t
find_place(const struct counts *counts, uint32_t kind, const char *name,
    uint64_t instance, bool *found)
{
	size_t low = 0, high = counts->n;

	*found = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare(&counts->all[middle], kind, name, instance);

		if (order == 0)
			*found = true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct count *
get(struct counts *counts, uint32_t kind, const char *name, uint64_t instance)
{
	bool found;
	size_t at = find_place(counts, kind, name, instance, &found);

	if (found)
		return &counts->all[at];
	counts->all =
	    mem_realloc(counts->all, counts->n + 1, sizeof(*counts->all));
	memmove(counts->all + at + 1, counts->all + at,
	    (counts->n++ - at) * sizeof(*counts->all));
	counts->all[at] = (struct count){
		.kind = kind, .instance = instance, .name = mem_strdup(name)
	};
	return &counts->all[at];
}

void
counts_note(struct counts *counts, const struct channel_stats *stats)
{
	struct count *to =
	    get(counts, stats->kind, stats->name, stats->instance);

	to->requests += stats->requests;
	to->errors += stats->errors;
	to->accepted += stats->accepted;
	to->in_flight += stats->in_flight;
	to->queued += stats->queued;
	if (stats->oldest_wait_ms > to->oldest_wait_ms)
		to->oldest_wait_ms = stats->oldest_wait_ms;
	to->connections += stats->connections;
}

void
counts_add(struct counts *counts, const struct counts *more, bool past)
{
	for (size_t i = 0; i < more->n; i++) {
		const struct count *one = &more->all[i];
		struct channel_stats stats = { .kind = one->kind,
			.name = one->name,
			.instance = one->instance,
			.requests = one->requests,
			.errors = one->errors,
			.accepted = one->accepted };

		if (!past) {
			stats.in_flight = one->in_flight;
			stats.queued = one->queued;
			stats.oldest_wait_ms = one->oldest_wait_ms;
			stats.connections = one->connections;
		}
		counts_note(counts, &stats);
	}
}

const struct count *
counts_find(const struct counts *counts, enum channel_stats_kind kind,
    const char *name, uint64_t instance)
{
	static const struct count none;
	bool found;
	size_t at = find_place(counts, kind, name, instance, &found);

	return found ? &counts->all[at] : &none;
}

bool
counts_has(const struct counts *counts, const struct count *like)
{
	bool found;

	find_place(counts, like->kind, like->name, like->instance, &found);
	return found;
}

void
counts_keep(struct counts *counts, counts_wanted_cb *is_wanted, const void *arg)
{
	size_t kept = 0;

	for (size_t i = 0; i < counts->n; i++)
		if (is_wanted(&counts->all[i], arg))
			counts->all[kept++] = counts->all[i];
		else
			mem_free(counts->all[i].name);
	counts->n = kept;
}

void
counts_clear(struct counts *counts)
{
	for (size_t i = 0; i < counts->n; i++)
		mem_free(counts->all[i].name);
	mem_free(counts->all);
	*counts = (struct counts){ NULL, 0 };
}
