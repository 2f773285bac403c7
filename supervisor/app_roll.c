/*
 * Restarts without a gap, of all instances of an app or of one.
 * Stepped by app.c after each change; instance.c does the starting and ending.
 * Never fewer that serve than before: a new one that fails leaves the old one.
 */
#include "supervisor/app_roll.h"

#include <event2/event.h>
#include <stdio.h>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "supervisor/instance.h"

/* After a replacement that failed, before the next is tried. */
#define TRY_AGAIN_MS 30000

/* Still to be replaced: it runs what was before. */
static struct instance *
find_old(const struct app *app)
{
	struct instance *found = NULL;
	struct list *node;

	LIST_FOREACH(node, &app->instances)
	{
		struct instance *instance =
		    LIST_ENTRY(node, struct instance, node);

		if (!instance->is_old || !instance->wanted)
			continue;
		/* Those that do not serve first. */
		if (found == NULL || instance->state != INSTANCE_RUNNING)
			found = instance;
	}
	return found;
}

static unsigned
count_new(const struct app *app, bool trials)
{
	struct list *node;
	unsigned count = 0;

	LIST_FOREACH(node, &app->instances)
	{
		const struct instance *instance =
		    LIST_ENTRY(node, struct instance, node);

		count += instance->wanted && !instance->is_old &&
			 (!trials || instance->trial);
	}
	return count;
}

/* An old one with requests that are no streams uses memory: wait for it. */
static bool
old_one_drains(const struct app *app)
{
	struct list *node;

	LIST_FOREACH(node, &app->instances)
	{
		const struct instance *instance =
		    LIST_ENTRY(node, struct instance, node);

		if (instance->is_old && !instance->wanted &&
		    instance_is_alive(instance) && !instance->quiet)
			return true;
	}
	return false;
}

static void
end_roll(struct app *app, bool ok, const char *why, pid_t failed)
{
	bool was_wish = app->roll_wish;
	struct list *node;

	app->rolling = app->roll_wish = false;
	LIST_FOREACH(node, &app->instances)
	{
		struct instance *instance =
		    LIST_ENTRY(node, struct instance, node);

		instance->is_old = false;
		if (!instance->trial)
			continue;
		instance->trial = false;
		if (!ok)
			instance_stop(instance, "the restart has ended");
	}
	/* Meanwhile another one may have asked. */
	app_changed(app);
	if (was_wish)
		app_roll_ended(app, ok, why, failed);
}

static void
start_trial(struct app *app)
{
	struct instance *instance = instance_new(app);

	instance->trial = true;
	instance_start(instance);
}

static void
replace_next(struct app *app, const struct instance *by)
{
	struct instance *old = find_old(app);
	char text[160];

	if (old == NULL) {
		snprintf(text, sizeof(text), "pid %d is ready", (int)by->pid);
	} else {
		snprintf(text, sizeof(text), "pid %d is ready, pid %d ends: %s",
		    (int)by->pid, (int)old->pid,
		    old->replace_why[0] == '\0' ? "replaced"
						: old->replace_why);
		instance_retire(old, old->replace_why[0] == '\0'
					 ? "replaced"
					 : old->replace_why);
	}
	app_roll_progress(app, text);
}

/* Those that were started: which serve, which have failed? */
static bool
look_at_trials(struct app *app, char why[INSTANCE_REASON_MAX], pid_t *failed)
{
	struct list *node, *after;
	struct instance *instance;

	FOREACH_INSTANCE(app, node, after, instance)
	{
		if (!instance->trial)
			continue;
		if (instance->state == INSTANCE_RUNNING) {
			instance->trial = false;
			replace_next(app, instance);
		} else if (instance->state == INSTANCE_DOWN) {
			instance->trial = false;
			snprintf(
			    why, INSTANCE_REASON_MAX, "%s", instance->reason);
			*failed = instance->said_by;
			return false;
		}
	}
	return true;
}

static void
fail(struct app *app, const char *why, pid_t failed)
{
	if (!app->roll_wish) {
		log_error(
		    "app=%s no process could be replaced: %s", app->name, why);
		app->replace_after_ms = clock_now_ms() + TRY_AGAIN_MS;
	}
	end_roll(app, false, why, failed);
}

/* One is replaced after the other: the next begins when the old one of the
 * last has no request left and its successor serves. */
static void
step(struct app *app)
{
	unsigned number = app_number(app);
	char why[INSTANCE_REASON_MAX];
	struct instance *old;
	pid_t failed = 0;

	if (!look_at_trials(app, why, &failed)) {
		fail(app, why, failed);
		return;
	}
	if (!app->roll_all && old_one_drains(app))
		return;
	while (count_new(app, false) < number &&
	       (count_new(app, true) == 0 ||
		   (app->roll_all && !app_waits_for_before(app)))) {
		start_trial(app);
		/* It may fail at once. */
		if (!look_at_trials(app, why, &failed)) {
			fail(app, why, failed);
			return;
		}
	}
	if (count_new(app, true) > 0 || old_one_drains(app))
		return;
	old = find_old(app);
	if (old != NULL)
		instance_retire(old, "fewer processes");
	else
		end_roll(app, true, "", 0);
}

/* Then the step comes again. */
static bool
is_too_soon(struct app *app)
{
	int64_t left_ms = app->replace_after_ms - clock_now_ms();
	struct timeval later = { left_ms / 1000 + 1, 0 };

	if (left_ms <= 0)
		return false;
	event_add(app->step, &later);
	return true;
}

/* One that asked to be replaced. */
static void
begin_one(struct app *app)
{
	struct list *node, *after;
	struct instance *instance;

	FOREACH_INSTANCE(app, node, after, instance)
	{
		if (instance->replace_why[0] == '\0' || !instance->wanted ||
		    instance->state != INSTANCE_RUNNING)
			continue;
		if (is_too_soon(app))
			return;
		log_info("app=%s instance=%llu pid=%d is replaced: %s",
		    app->name, (unsigned long long)instance->id,
		    (int)instance->pid, instance->replace_why);
		instance->is_old = true;
		app->rolling = true;
		app->roll_all = false;
		return;
	}
}

void
app_roll_step(struct app *app)
{
	if (!app->rolling)
		begin_one(app);
	if (app->rolling)
		step(app);
}

void
app_replace(struct instance *instance, const char *why)
{
	if (instance->state != INSTANCE_RUNNING ||
	    instance->replace_why[0] != '\0')
		return;
	snprintf(
	    instance->replace_why, sizeof(instance->replace_why), "%s", why);
	app_changed(instance->app);
}

/* With streams alone left an instance may stay for long: of an app there are at
 * most two generations of such. */
static void
end_oldest(struct app *app)
{
	struct list *node, *after;
	struct instance *instance;

	app->generation++;
	FOREACH_INSTANCE(app, node, after, instance)
	if (instance->state == INSTANCE_DRAINING && instance->quiet &&
	    instance->generation + 2 < app->generation)
		instance_event(instance, INSTANCE_EXPIRED, NULL);
}

void
app_roll_begin(struct app *app, bool all)
{
	struct list *node;

	end_oldest(app);
	LIST_FOREACH(node, &app->instances)
	LIST_ENTRY(node, struct instance, node)->is_old = true;
	app->rolling = app->roll_wish = true;
	app->before_done = false;
	app->roll_all = all;
	app_changed(app);
}

void
app_roll_cancel(struct app *app, const char *why)
{
	if (app->rolling)
		end_roll(app, false, why, 0);
}
