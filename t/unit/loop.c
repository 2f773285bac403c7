/*
 * For tests: a worker's loop with a guard against waiting for ever.
 */
#include <check.h>
#include <event2/event_struct.h>

#include "proxy/core/worker.h"
#include "t/unit/loop.h"

#define GUARD_MS 5000

static void
guard_expired(struct worker *worker, struct timer *timer)
{
	ck_abort_msg("nothing happened for %d ms", GUARD_MS);
}

void
loop_run(struct worker *worker)
{
	struct timer guard = { { NULL, NULL }, 0, NULL };

	timer_arm(
	    worker, timer_class_of(worker, GUARD_MS, guard_expired), &guard);
	worker_run(worker);
	timer_disarm(&guard);
	atomic_store(&worker->stopping, false);
}

static void
on_time(evutil_socket_t fd, short what, void *arg)
{
	worker_stop(arg);
}

void
loop_run_for(struct worker *worker, int ms)
{
	struct timeval time = { ms / 1000, ms % 1000 * 1000 };
	struct event event;

	evtimer_assign(&event, worker->base, on_time, worker);
	evtimer_add(&event, &time);
	worker_run(worker);
	event_del(&event);
	atomic_store(&worker->stopping, false);
}
