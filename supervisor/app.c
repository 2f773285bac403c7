/*
 * What an app should be and what it is: keeps the right number of instances,
 * answers those who wait for it. Restarts are app_roll.c's.
 * Between control/reload/supervisor and instance.c. All decisions are taken in
 * on_step, which runs once after any number of changes.
 */
#include "supervisor/app.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/ipc/channel.h"
#include "supervisor/app_log.h"
#include "supervisor/app_roll.h"
#include "supervisor/env_file.h"
#include "supervisor/instance.h"
#include "supervisor/proxy_proc.h"
#include "supervisor/supervisor.h"

enum wait_for { WAIT_UP, WAIT_DOWN, WAIT_RESTARTED };

struct waiter {
	struct list node;
	enum wait_for wait_for;
	app_done_cb *on_done;
	app_progress_cb *on_progress; /* or NULL */
	void *arg;
};

static void on_step(evutil_socket_t fd, short what, void *arg);

static void
read_environment(struct app *app, const struct conf_app *conf)
{
	char why[sizeof(app->env_problem) - sizeof("environment_file ")];

	words_free(&app->environment);
	app->env_problem[0] = '\0';
	/* Later ones win. */
	if (conf->environment_file != NULL &&
	    env_file_read(conf->environment_file, &app->environment, why,
		sizeof(why)) == -1) {
		snprintf(app->env_problem, sizeof(app->env_problem),
		    "environment_file %s", why);
		log_error("app=%s %s", app->name, app->env_problem);
	}
	words_add_all(
	    &app->environment, (const char *const *)conf->environment);
}

struct app *
app_new(struct supervisor *supervisor, struct conf_hold *hold,
    const struct conf_app *conf)
{
	struct app *app = mem_alloc(sizeof(*app));

	app->supervisor = supervisor;
	app->hold = conf_hold_ref(hold);
	app->conf = conf;
	app->name = mem_strdup(conf->name);
	app->log = app_log_new(supervisor->log_writer, conf);
	app->step = evtimer_new(supervisor->base, on_step, app);
	list_init(&app->instances);
	list_init(&app->waiters);
	app->state_name = "starting";
	app->since_ms = clock_now_ms();
	read_environment(app, conf);
	return app;
}

void
app_free(struct app **app_ptr)
{
	struct app *app = *app_ptr;
	struct list *node, *after;
	struct instance *instance;

	if (app == NULL)
		return;
	FOREACH_INSTANCE(app, node, after, instance)
	instance_free(&instance);
	LIST_FOREACH_SAFE(node, after, &app->waiters)
	mem_free(LIST_ENTRY(node, struct waiter, node));
	event_free(app->step);
	app_log_free(&app->log);
	words_free(&app->environment);
	conf_hold_unref(&app->hold);
	mem_free(app->name);
	mem_free(app);
	*app_ptr = NULL;
}

struct app *
app_find(const struct supervisor *supervisor, const char *name)
{
	for (size_t i = 0; i < supervisor->n_apps; i++)
		if (strcmp(supervisor->apps[i]->name, name) == 0)
			return supervisor->apps[i];
	return NULL;
}

void
app_changed(struct app *app)
{
	event_active(app->step, EV_TIMEOUT, 0);
}

/* ---- what it is ---- */

static unsigned
count_state(const struct app *app, enum instance_state state)
{
	struct list *node;
	unsigned count = 0;

	LIST_FOREACH(node, &app->instances)
	count += LIST_ENTRY(node, struct instance, node)->state == state;
	return count;
}

unsigned
app_running(const struct app *app)
{
	return count_state(app, INSTANCE_RUNNING);
}

static bool
is_wanted(const struct app *app)
{
	return !app->stopped && !app->removed && !app->ending;
}

bool
app_is_gone(const struct app *app)
{
	return list_is_empty(&app->instances);
}

const char *
app_state_name(const struct app *app)
{
	if (!is_wanted(app))
		return list_is_empty(&app->instances) ? "stopped" : "stopping";
	if (app_running(app) > 0)
		return "running";
	if (count_state(app, INSTANCE_STARTING) > 0)
		return "starting";
	if (count_state(app, INSTANCE_BACKOFF) > 0)
		return "backoff";
	if (count_state(app, INSTANCE_FAILED) > 0)
		return "failed";
	return "starting";
}

/* The proxy's word for it, and when the next try is. */
static enum channel_app_state
proxy_state(const struct app *app, int64_t *retry_at_ms)
{
	struct list *node;

	*retry_at_ms = 0;
	if (!is_wanted(app))
		return CHANNEL_APP_STOPPED;
	if (app_running(app) > 0)
		return CHANNEL_APP_UP;
	if (count_state(app, INSTANCE_STARTING) > 0)
		return CHANNEL_APP_STARTING;
	LIST_FOREACH(node, &app->instances)
	{
		const struct instance *instance =
		    LIST_ENTRY(node, struct instance, node);

		if (instance->retry_at_ms != 0 &&
		    (*retry_at_ms == 0 || instance->retry_at_ms < *retry_at_ms))
			*retry_at_ms = instance->retry_at_ms;
	}
	if (count_state(app, INSTANCE_BACKOFF) > 0)
		return CHANNEL_APP_BACKOFF;
	if (count_state(app, INSTANCE_FAILED) > 0)
		return CHANNEL_APP_FAILED;
	return CHANNEL_APP_STARTING;
}

static void
tell_state(struct app *app, bool always)
{
	int64_t retry_at_ms, now_ms = clock_now_ms();
	enum channel_app_state state = proxy_state(app, &retry_at_ms);
	struct channel_app message;

	if (!app->conf->http || (!always && state == app->told_state &&
				    retry_at_ms == app->told_retry_at_ms))
		return;
	app->told_state = state;
	app->told_retry_at_ms = retry_at_ms;
	message.app = app->name;
	message.state = state;
	message.retry_ms =
	    retry_at_ms > now_ms ? (uint32_t)(retry_at_ms - now_ms) : 0;
	message.text = app->last_exit;
	proxy_proc_app_state(app->supervisor->proxy, &message);
}

void
app_tell_state(struct app *app)
{
	tell_state(app, true);
}

void
app_tell_proxy(struct app *app)
{
	struct list *node;

	if (!app->conf->http)
		return;
	LIST_FOREACH(node, &app->instances)
	instance_announce(LIST_ENTRY(node, struct instance, node));
	tell_state(app, true);
}

/* ---- those who wait ---- */

static void
add_waiter(struct app *app, enum wait_for wait_for, app_done_cb *on_done,
    app_progress_cb *on_progress, void *arg)
{
	struct waiter *waiter;

	if (on_done == NULL)
		return;
	waiter = mem_alloc(sizeof(*waiter));
	waiter->wait_for = wait_for;
	waiter->on_done = on_done;
	waiter->on_progress = on_progress;
	waiter->arg = arg;
	list_push_back(&app->waiters, &waiter->node);
}

static void
answer(struct app *app, enum wait_for wait_for, bool ok, const char *why,
    pid_t failed)
{
	struct list *node, *after;

	LIST_FOREACH_SAFE(node, after, &app->waiters)
	{
		struct waiter *waiter = LIST_ENTRY(node, struct waiter, node);

		if (waiter->wait_for != wait_for)
			continue;
		list_remove(&waiter->node);
		waiter->on_done(ok, why, failed, waiter->arg);
		mem_free(waiter);
	}
}

void
app_forget(struct app *app, const void *arg)
{
	struct list *node, *after;

	LIST_FOREACH_SAFE(node, after, &app->waiters)
	{
		struct waiter *waiter = LIST_ENTRY(node, struct waiter, node);

		if (waiter->arg != arg)
			continue;
		list_remove(&waiter->node);
		mem_free(waiter);
	}
}

/* Up: as many as configured run. Not up: one of them needs another try. */
static void
answer_up(struct app *app)
{
	struct list *node;

	if (!is_wanted(app)) {
		answer(app, WAIT_UP, false, "it was stopped", 0);
		return;
	}
	if (app_running(app) >= app_number(app)) {
		answer(app, WAIT_UP, true, "", 0);
		return;
	}
	LIST_FOREACH(node, &app->instances)
	{
		struct instance *instance =
		    LIST_ENTRY(node, struct instance, node);

		if (instance->state == INSTANCE_BACKOFF ||
		    instance->state == INSTANCE_FAILED || instance->given_up) {
			char why[INSTANCE_REASON_MAX];

			snprintf(why, sizeof(why), "%s", instance->reason);
			answer(app, WAIT_UP, false, why, instance->said_by);
			return;
		}
	}
}

/* ---- restarts ---- */

void
app_roll_ended(struct app *app, bool ok, const char *why, pid_t failed)
{
	answer(app, WAIT_RESTARTED, ok, why, failed);
}

void
app_roll_progress(struct app *app, const char *text)
{
	struct list *node;

	LIST_FOREACH(node, &app->waiters)
	{
		struct waiter *waiter = LIST_ENTRY(node, struct waiter, node);

		if (waiter->wait_for == WAIT_RESTARTED && app->roll_wish &&
		    waiter->on_progress != NULL)
			waiter->on_progress(text, waiter->arg);
	}
}

/* ---- keeping the number ---- */

bool
app_waits_for_before(const struct app *app)
{
	return app->conf->before_start != NULL && !app->before_done;
}

unsigned
app_number(const struct app *app)
{
	return app->scale != 0 ? app->scale : app->conf->processes;
}

/* One that does not serve, before one that does; then the younger one, because
 * it has less in its caches. */
static bool
is_missed_less(const struct instance *one, const struct instance *other)
{
	bool serves = one->state == INSTANCE_RUNNING;

	if (serves != (other->state == INSTANCE_RUNNING))
		return !serves;
	return one->ready_at_ms >= other->ready_at_ms;
}

/* Of those that are wanted the one that is missed least. */
static struct instance *
find_spare(const struct app *app)
{
	struct instance *spare = NULL;
	struct list *node;

	LIST_FOREACH(node, &app->instances)
	{
		struct instance *instance =
		    LIST_ENTRY(node, struct instance, node);

		if (!instance->wanted)
			continue;
		if (spare == NULL || is_missed_less(instance, spare))
			spare = instance;
	}
	return spare;
}

static void
keep_number(struct app *app)
{
	unsigned number = app_number(app), wanted = 0;
	struct list *node;

	LIST_FOREACH(node, &app->instances)
	wanted += LIST_ENTRY(node, struct instance, node)->wanted;
	for (; wanted < number; wanted++) {
		if (wanted > 0 && app_waits_for_before(app))
			return;
		instance_start(instance_new(app));
	}
	for (; wanted > number; wanted--)
		instance_retire(find_spare(app), "fewer processes");
}

static void
stop_all(struct app *app, const char *why)
{
	struct list *node, *after;
	struct instance *instance;

	app_roll_cancel(app, why);
	FOREACH_INSTANCE(app, node, after, instance)
	instance_stop(instance, why);
	app_changed(app);
}

static void
note_state(struct app *app)
{
	const char *name = app_state_name(app);

	if (strcmp(name, app->state_name) == 0)
		return;
	app->state_name = name;
	app->since_ms = clock_now_ms();
}

static void
on_step(evutil_socket_t fd, short what, void *arg)
{
	struct app *app = arg;
	struct list *node, *after;
	struct instance *instance;

	if (is_wanted(app))
		app_roll_step(app);
	FOREACH_INSTANCE(app, node, after, instance)
	if (instance->state == INSTANCE_DOWN && !instance->wanted &&
	    !instance->trial)
		instance_free(&instance);
	if (is_wanted(app) && !app->rolling)
		keep_number(app);
	note_state(app);
	tell_state(app, false);
	answer_up(app);
	if (!is_wanted(app) && app_is_gone(app))
		answer(app, WAIT_DOWN, true, "", 0);
	if (is_wanted(app))
		answer(app, WAIT_DOWN, false, "it was started again", 0);
	supervisor_check_apps(app->supervisor);
}

/* ---- what is asked ---- */

void
app_start(struct app *app, app_done_cb *on_done, void *arg)
{
	struct list *node, *after;
	struct instance *instance;

	app->stopped = false;
	if (app_is_gone(app))
		app->before_done = false;
	add_waiter(app, WAIT_UP, on_done, NULL, arg);
	app_changed(app);
	if (app->rolling)
		return;
	/* Those that wait for their next try do it now. */
	FOREACH_INSTANCE(app, node, after, instance)
	if (instance->wanted)
		instance_start(instance);
	keep_number(app);
}

void
app_stop(struct app *app, app_done_cb *on_done, void *arg)
{
	app->stopped = true;
	add_waiter(app, WAIT_DOWN, on_done, NULL, arg);
	stop_all(app, "stopped by the administrator");
}

void
app_restart(struct app *app, bool all, app_done_cb *on_done,
    app_progress_cb *on_progress, void *arg)
{
	if (app->rolling && app->roll_wish) {
		if (on_done != NULL)
			on_done(false, "it is being restarted already", 0, arg);
		return;
	}
	if (app->stopped || app_is_gone(app)) {
		app_start(app, on_done, arg);
		return;
	}
	app_roll_cancel(app, "all are restarted");
	add_waiter(app, WAIT_RESTARTED, on_done, on_progress, arg);
	app_roll_begin(app, all);
}

void
app_scale(struct app *app, unsigned number, app_done_cb *on_done, void *arg)
{
	app->scale = number == app->conf->processes ? 0 : number;
	add_waiter(app, WAIT_UP, on_done, NULL, arg);
	app_changed(app);
}

void
app_end(struct app *app)
{
	app->ending = true;
	stop_all(app, "the daemon stops");
}

void
app_kill(struct app *app)
{
	struct list *node, *after;
	struct instance *instance;

	app_roll_cancel(app, "killed");
	FOREACH_INSTANCE(app, node, after, instance)
	instance_kill(instance, "killed");
	app_changed(app);
}

void
app_set_environment(struct app *app, const struct conf_app *conf)
{
	read_environment(app, conf);
}

bool
app_reconfigure(struct app *app, struct conf_hold *hold,
    const struct conf_app *conf, app_done_cb *on_done, void *arg)
{
	enum conf_change change = CONF_SAME;
	struct conf_hold *before = app->hold;

	if (conf == NULL) {
		app->removed = true;
		stop_all(app, "removed from the configuration");
		return false;
	}
	if (!app->removed)
		change = conf_app_change(app->conf, conf);
	if (conf->processes != app->conf->processes)
		app->scale = 0;
	app->removed = false;
	app->hold = conf_hold_ref(hold);
	app->conf = conf;
	conf_hold_unref(&before);
	app_log_configure(app->log, conf);
	read_environment(app, conf);
	app_changed(app);
	if (change != CONF_RESTART || app->stopped)
		return false;
	app_roll_cancel(app, "the configuration changed");
	app_restart(app, false, on_done, NULL, arg);
	return true;
}
