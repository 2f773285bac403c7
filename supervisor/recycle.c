/*
 * Looks once a second which instances have reached a limit of `recycle`.
 * Looks at what the proxies counted and in /proc for memory; app_roll.c
 * replaces them. Costs nothing where no app has such a limit.
 */
#include "supervisor/recycle.h"

#include <event2/event.h>
#include <stdint.h>
#include <stdio.h>

#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/ipc/channel.h"
#include "supervisor/app.h"
#include "supervisor/app_roll.h"
#include "supervisor/counts.h"
#include "supervisor/instance.h"
#include "supervisor/proxy_proc.h"
#include "supervisor/supervisor.h"
#include "supervisor/tree.h"

#define PERIOD_S 1
/* Reading all of /proc is not for every second. */
#define MEMORY_PERIODS 5

struct recycle {
	struct supervisor *supervisor;
	struct event *timer;
	unsigned periods;
};

typedef void each_cb(
    struct recycle *recycle, struct instance *instance, void *arg);

static void
each_running(struct recycle *recycle, each_cb *each, void *arg)
{
	struct supervisor *supervisor = recycle->supervisor;
	struct list *node, *after;
	struct instance *instance;

	for (size_t i = 0; i < supervisor->n_apps; i++)
		FOREACH_INSTANCE(supervisor->apps[i], node, after, instance)
	if (instance->state == INSTANCE_RUNNING)
		each(recycle, instance, arg);
}

/* Less up to a tenth: instances that were started together are not due
 * together. */
static int64_t
limit_of(const struct instance *instance, int64_t limit)
{
	return limit - limit / 10 * instance->chance / 255;
}

/* ---- requests ---- */

static void
look_at_count(struct recycle *recycle, struct instance *instance, void *arg)
{
	uint64_t requests =
	    counts_find(arg, CHANNEL_STATS_INSTANCE, "", instance->id)
		->requests;
	unsigned most = instance->app->conf->recycle.requests;
	char why[64];

	if (most == 0 || requests < (uint64_t)limit_of(instance, most))
		return;
	snprintf(why, sizeof(why), "after %llu requests",
	    (unsigned long long)requests);
	app_replace(instance, why);
}

/* ---- age and memory ---- */

static void
look_at_age(struct recycle *recycle, struct instance *instance, void *arg)
{
	int most_ms = instance->app->conf->recycle.age_ms;
	int64_t age_ms = clock_now_ms() - instance->ready_at_ms;
	char why[64];

	if (most_ms == 0 || age_ms < limit_of(instance, most_ms))
		return;
	snprintf(why, sizeof(why), "after %lld s", (long long)age_ms / 1000);
	app_replace(instance, why);
}

static void
look_at_memory(struct recycle *recycle, struct instance *instance, void *arg)
{
	uint64_t most = instance->app->conf->recycle.memory_bytes;
	uint64_t bytes;
	char why[64];

	if (most == 0)
		return;
	bytes = tree_rss_bytes(arg, instance->pid);
	if (bytes < most)
		return;
	snprintf(why, sizeof(why), "it has %.1f MiB of memory",
	    (double)bytes / (1024 * 1024));
	app_replace(instance, why);
}

/* ---- the timer ---- */

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct recycle *recycle = arg;
	const struct supervisor *supervisor = recycle->supervisor;
	bool requests = false, memory = false;
	struct counts counts;
	struct tree tree;

	if (supervisor->stopping)
		return;
	for (size_t i = 0; i < supervisor->n_apps; i++) {
		const struct conf_app *conf = supervisor->apps[i]->conf;

		requests |= conf->recycle.requests != 0 && conf->http;
		memory |= conf->recycle.memory_bytes != 0;
	}
	each_running(recycle, look_at_age, NULL);
	if (requests) {
		proxy_proc_counts(supervisor->proxy, &counts);
		each_running(recycle, look_at_count, &counts);
		counts_clear(&counts);
	}
	if (!memory || recycle->periods++ % MEMORY_PERIODS != 0 ||
	    tree_read(&tree) == -1)
		return;
	each_running(recycle, look_at_memory, &tree);
	tree_free(&tree);
}

struct recycle *
recycle_new(struct supervisor *supervisor)
{
	static const struct timeval period = { PERIOD_S, 0 };
	struct recycle *recycle = mem_alloc(sizeof(*recycle));

	recycle->supervisor = supervisor;
	recycle->timer =
	    event_new(supervisor->base, -1, EV_PERSIST, on_timer, recycle);
	if (recycle->timer == NULL || event_add(recycle->timer, &period) == -1)
		recycle_free(&recycle);
	return recycle;
}

void
recycle_free(struct recycle **recycle_ptr)
{
	struct recycle *recycle = *recycle_ptr;

	*recycle_ptr = NULL;
	if (recycle == NULL)
		return;
	if (recycle->timer != NULL)
		event_free(recycle->timer);
	mem_free(recycle);
}
