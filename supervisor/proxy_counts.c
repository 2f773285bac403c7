/*
 * Asks the proxies what they counted and adds up what those said that have
 * ended. Under proxy_proc.c, beside leases.c; the tables are counts.c's.
 * Reads and writes no channel.
 */
#include "supervisor/proxy_counts.h"

#include <event2/event.h>

#include "src/base/log.h"
#include "src/base/mem.h"
#include "supervisor/app.h"
#include "supervisor/instance.h"
#include "supervisor/leases.h"
#include "supervisor/proxy_gen.h"
#include "supervisor/saved.h"
#include "supervisor/supervisor.h"

#define PERIOD_S 1
/* What a proxy may tell of, at most. */
#define HEARD_MAX 20000

struct side {
	struct proxy_gen *gen; /* NULL: none */
	struct counts heard;   /* the last whole answer */
	struct counts coming;  /* until its end */
};

struct proxy_counts {
	struct supervisor *supervisor;
	struct event *timer;
	bool asking; /* for the timer */
	struct counts past;
	struct side sides[LEASES_SIDES];
};

/* One question to all. */
struct ask {
	struct proxy_counts *counts;
	unsigned waiting; /* for so many */
	bool answered;    /* by one at least */
	proxy_counts_cb *on_counts;
	void *arg;
};

/* ---- asking ---- */

static void
end_of_one(struct ask *ask, bool answered)
{
	struct counts sum = { NULL, 0 };

	ask->answered |= answered;
	if (--ask->waiting > 0)
		return;
	proxy_counts_sum(ask->counts, &sum);
	ask->on_counts(&sum, ask->answered, ask->arg);
	counts_clear(&sum);
	mem_free(ask);
}

static void
on_answered(bool answered, void *arg)
{
	end_of_one(arg, answered);
}

void
proxy_counts_ask(
    struct proxy_counts *counts, proxy_counts_cb *on_counts, void *arg)
{
	struct ask *ask = mem_alloc(sizeof(*ask));

	ask->counts = counts;
	ask->on_counts = on_counts;
	ask->arg = arg;
	ask->waiting = 1; /* us: answers may come at once */
	for (unsigned side = 0; side < LEASES_SIDES; side++) {
		if (counts->sides[side].gen == NULL)
			continue;
		ask->waiting++;
		proxy_gen_query(counts->sides[side].gen, on_answered, ask);
	}
	end_of_one(ask, false);
}

static void
on_periodic(const struct counts *sum, bool complete, void *arg)
{
	((struct proxy_counts *)arg)->asking = false;
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_counts *counts = arg;

	if (counts->asking)
		return;
	counts->asking = true;
	proxy_counts_ask(counts, on_periodic, counts);
}

/* ---- hearing ---- */

/* Instances come and go for ever: only those that are there. */
static bool
is_wanted(const struct count *count, const void *arg)
{
	const struct supervisor *supervisor = arg;
	struct list *node;

	if (count->kind == CHANNEL_STATS_APP)
		return app_find(supervisor, count->name) != NULL;
	if (count->kind != CHANNEL_STATS_INSTANCE)
		return true;
	for (size_t i = 0; i < supervisor->n_apps; i++)
		LIST_FOREACH(node, &supervisor->apps[i]->instances)
	if (LIST_ENTRY(node, struct instance, node)->id == count->instance)
		return true;
	return false;
}

/* A proxy forgets an instance before its process has ended. */
static void
keep_unmentioned(struct proxy_counts *counts, const struct side *from)
{
	struct counts gone = { NULL, 0 };

	for (size_t i = 0; i < from->heard.n; i++) {
		const struct count *one = &from->heard.all[i];
		struct counts alone = { &from->heard.all[i], 1 };

		if (one->kind == CHANNEL_STATS_INSTANCE &&
		    !counts_has(&from->coming, one))
			counts_add(&gone, &alone, true);
	}
	if (gone.n == 0)
		return;
	counts_add(&counts->past, &gone, true);
	counts_keep(&counts->past, is_wanted, counts->supervisor);
	counts_clear(&gone);
}

void
proxy_counts_hear(struct proxy_counts *counts, unsigned side,
    const struct channel_stats *stats)
{
	struct side *from = &counts->sides[side];

	if (stats->kind == CHANNEL_STATS_PROXY)
		counts_clear(&from->coming);
	if (stats->kind != CHANNEL_STATS_END) {
		if (from->coming.n < HEARD_MAX)
			counts_note(&from->coming, stats);
		return;
	}
	keep_unmentioned(counts, from);
	counts_clear(&from->heard);
	from->heard = from->coming;
	from->coming = (struct counts){ NULL, 0 };
}

void
proxy_counts_sum(const struct proxy_counts *counts, struct counts *sum)
{
	*sum = (struct counts){ NULL, 0 };
	counts_add(sum, &counts->past, true);
	for (unsigned side = 0; side < LEASES_SIDES; side++)
		counts_add(sum, &counts->sides[side].heard, false);
}

/* ---- coming and going ---- */

struct proxy_counts *
proxy_counts_new(struct supervisor *supervisor)
{
	static const struct timeval period = { PERIOD_S, 0 };
	struct proxy_counts *counts = mem_alloc(sizeof(*counts));

	counts->supervisor = supervisor;
	counts->timer =
	    event_new(supervisor->base, -1, EV_PERSIST, on_timer, counts);
	if (counts->timer == NULL || event_add(counts->timer, &period) == -1)
		log_error("the counters of the proxy are not asked for");
	return counts;
}

void
proxy_counts_free(struct proxy_counts **counts_ptr)
{
	struct proxy_counts *counts = *counts_ptr;

	if (counts == NULL)
		return;
	for (unsigned side = 0; side < LEASES_SIDES; side++) {
		counts_clear(&counts->sides[side].heard);
		counts_clear(&counts->sides[side].coming);
	}
	counts_clear(&counts->past);
	if (counts->timer != NULL)
		event_free(counts->timer);
	mem_free(counts);
	*counts_ptr = NULL;
}

void
proxy_counts_join(
    struct proxy_counts *counts, unsigned side, struct proxy_gen *gen)
{
	counts->sides[side].gen = gen;
}

void
proxy_counts_leave(struct proxy_counts *counts, unsigned side)
{
	struct side *from = &counts->sides[side];

	counts_add(&counts->past, &from->heard, true);
	counts_keep(&counts->past, is_wanted, counts->supervisor);
	counts_clear(&from->heard);
	counts_clear(&from->coming);
	from->gen = NULL;
}

/* ---- handed on to another process ---- */

static struct saved_count *
save(const struct counts *counts, uint32_t *n)
{
	struct saved_count *all = mem_alloc_array(counts->n + 1, sizeof(*all));

	*n = (uint32_t)counts->n;
	for (size_t i = 0; i < counts->n; i++) {
		const struct count *one = &counts->all[i];

		all[i] = (struct saved_count){ .kind = one->kind,
			.instance = one->instance,
			.name = mem_strdup(one->name),
			.requests = one->requests,
			.errors = one->errors,
			.accepted = one->accepted };
	}
	return all;
}

static void
adopt(struct counts *counts, const struct saved_count *all, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct channel_stats stats = { .kind = all[i].kind,
			.instance = all[i].instance,
			.name = all[i].name,
			.requests = all[i].requests,
			.errors = all[i].errors,
			.accepted = all[i].accepted };

		counts_note(counts, &stats);
	}
}

void
proxy_counts_save(
    const struct proxy_counts *counts, unsigned side, struct saved_proxy *to)
{
	to->past = save(&counts->past, &to->n_past);
	to->heard = save(&counts->sides[side].heard, &to->n_heard);
}

void
proxy_counts_adopt(
    struct proxy_counts *counts, unsigned side, const struct saved_proxy *from)
{
	adopt(&counts->past, from->past, from->n_past);
	adopt(&counts->sides[side].heard, from->heard, from->n_heard);
}
