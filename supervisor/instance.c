/*
 * The life of an instance: carries out what the table of instance_state.c says.
 * Between app.c (who wants it), instance_proc.c (its process) and the proxy.
 * Does not decide how many there are.
 */
#include "supervisor/instance.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "supervisor/app.h"
#include "supervisor/app_log.h"
#include "supervisor/app_roll.h"
#include "supervisor/instance_proc.h"
#include "supervisor/proxy_proc.h"
#include "supervisor/supervisor.h"

/* The app's own keep-alive is 75 s where we set it, else unknown: 5 s is the
 * common default. */
#define IDLE_OURS_MS 60000
#define IDLE_UNKNOWN_MS 4000
/* For the proxy to say that only streams are left. */
#define HURRY_MS 2000

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	instance_event(arg, INSTANCE_EXPIRED, NULL);
}

struct instance *
instance_new(struct app *app)
{
	struct instance *instance = mem_alloc(sizeof(*instance));

	instance->app = app;
	instance->listen_fd = instance->status_fd = -1;
	instance->since_ms = clock_now_ms();
	instance->timer =
	    evtimer_new(app->supervisor->base, on_timer, instance);
	instance->generation = app->generation;
	runtime_traits(app->conf, &instance->traits);
	list_push_back(&app->instances, &instance->node);
	return instance;
}

void
instance_free(struct instance **instance_ptr)
{
	struct instance *instance = *instance_ptr;

	if (instance == NULL)
		return;
	instance_proc_release(instance);
	event_free(instance->timer);
	list_remove(&instance->node);
	mem_free(instance);
	*instance_ptr = NULL;
}

/* The only writer of ->state. */
static void
set_state(struct instance *instance, enum instance_state state, const char *why)
{
	struct app *app = instance->app;

	char pid[24] = "";

	if (instance->pid > 0)
		snprintf(pid, sizeof(pid), " pid=%d", (int)instance->pid);
	log_info("app=%s instance=%llu%s %s -> %s%s%s", app->name,
	    (unsigned long long)instance->id, pid,
	    instance_state_name(instance->state), instance_state_name(state),
	    why[0] == '\0' ? "" : ": ", why);
	instance->state = state;
	instance->since_ms = clock_now_ms();
	instance->retry_at_ms = 0;
	snprintf(instance->reason, sizeof(instance->reason), "%s", why);
	event_del(instance->timer);
	app_changed(app);
}

static void
set_timer(struct instance *instance, int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	event_add(instance->timer, &tv);
}

/* ---- what the table's actions do ---- */

static void
spawn(struct instance *instance, const char *why)
{
	char problem[INSTANCE_REASON_MAX];

	if (instance->id != 0) {
		instance->restarts++;
		instance->app->restarts++;
	}
	instance->given_up = instance->quiet = instance->retiring = false;
	instance->hurried = false;
	instance->chance = (unsigned)(random() & 0xff);
	instance->replace_why[0] = '\0';
	instance_proc_release(instance);
	instance->id = ++instance->app->supervisor->last_id;
	set_state(instance, INSTANCE_STARTING, why);
	set_timer(instance, instance->app->conf->start_timeout_ms);
	if (instance_proc_start(instance, problem, sizeof(problem)) == -1)
		instance_event(instance, INSTANCE_CANNOT, problem);
}

void
instance_describe(
    const struct instance *instance, struct channel_announce *announce)
{
	const struct conf_app *conf = instance->app->conf;
	bool ours = conf->runtime != CONF_COMMAND &&
		    instance->addr.u.sa.sa_family == AF_UNIX;
	int idle_max_ms = ours ? IDLE_OURS_MS : IDLE_UNKNOWN_MS;

	memset(announce, 0, sizeof(*announce));
	announce->instance = instance->id;
	announce->app = instance->app->name;
	announce->pid = (uint32_t)instance->pid;
	announce->protocol = instance->traits.protocol;
	announce->cap = instance->traits.cap;
	announce->cap_counts_idle = instance->traits.cap_counts_idle;
	announce->idle_timeout_ms =
	    (uint32_t)(conf->idle_timeout_ms < idle_max_ms
			   ? conf->idle_timeout_ms
			   : idle_max_ms);
	announce->addr = instance->addr;
}

void
instance_announce(struct instance *instance)
{
	struct channel_announce announce;

	if (instance->state != INSTANCE_RUNNING || !instance->app->conf->http)
		return;
	instance_describe(instance, &announce);
	proxy_proc_announce(instance->app->supervisor->proxy, &announce);
	instance->announced = true;
}

/* True: INSTANCE_DRAINED will come. */
static bool
withdraw(struct instance *instance)
{
	bool waits =
	    instance->announced &&
	    proxy_proc_withdraw(instance->app->supervisor->proxy, instance->id);

	instance->announced = false;
	return waits;
}

static void
on_silent(void *arg)
{
	struct instance *instance = arg;

	app_replace(instance, "its watchdog is silent");
}

void
instance_watch(struct instance *instance)
{
	if (instance->readiness != NULL)
		readiness_watch(instance->readiness, on_silent);
}

static void
serve(struct instance *instance)
{
	char text[64];
	int64_t now_ms = clock_now_ms();

	snprintf(text, sizeof(text), "ready after %lld ms",
	    (long long)(now_ms - instance->since_ms));
	instance->ready_at_ms = now_ms;
	if (instance->app->conf->watchdog_ms > 0)
		readiness_watch(instance->readiness, on_silent);
	else
		readiness_free(&instance->readiness);
	set_state(instance, INSTANCE_RUNNING, text);
	instance_announce(instance);
}

static void
drain(struct instance *instance, const char *why)
{
	bool waits = withdraw(instance);

	set_state(instance, INSTANCE_DRAINING, why);
	if (waits)
		set_timer(instance, instance->app->conf->drain_timeout_ms);
	else
		instance_event(instance, INSTANCE_DRAINED, NULL);
}

/* Of an app that is to stop, streams have no more time than other requests. */
static void
linger(struct instance *instance)
{
	if (instance->quiet)
		return;
	instance->quiet = true;
	if (instance->retiring)
		set_timer(instance, instance->app->conf->stream_grace_ms);
	app_changed(instance->app);
}

static void
signal_process(
    struct instance *instance, enum instance_event event, const char *why)
{
	withdraw(instance);
	readiness_free(&instance->readiness);
	if (instance->state != INSTANCE_STOPPING)
		set_state(instance, INSTANCE_STOPPING, why);
	instance_proc_stop(instance, event == INSTANCE_KILL);
}

/* Its time to drain, or that of its streams, is up. What is no stream fails;
 * streams, if it has any, have their time still before them. */
static void
expire(struct instance *instance)
{
	if (!instance->retiring || instance->hurried || instance->quiet ||
	    instance->app->conf->stream_grace_ms == 0) {
		signal_process(instance, INSTANCE_EXPIRED,
		    instance->quiet ? "stream grace" : "drain timeout");
		return;
	}
	instance->hurried = true;
	set_timer(instance, HURRY_MS);
	proxy_proc_hurry(instance->app->supervisor->proxy, instance->id);
}

static void
give_up(struct instance *instance)
{
	const char *error = instance->readiness == NULL
				? ""
				: readiness_last_error(instance->readiness);
	char text[INSTANCE_REASON_MAX];

	snprintf(text, sizeof(text), "not ready after %d s%s%s",
	    instance->app->conf->start_timeout_ms / 1000,
	    error[0] == '\0' ? "" : ": ", error);
	snprintf(instance->last_exit, sizeof(instance->last_exit), "%s", text);
	snprintf(instance->app->last_exit, sizeof(instance->app->last_exit),
	    "%s", text);
	app_log_note(instance->app->log, "%s", text);
	instance->given_up = true;
	signal_process(instance, INSTANCE_EXPIRED, text);
}

/* Wait for the next try. */
static void
wait_again(struct instance *instance, enum instance_state state, int delay_ms,
    const char *why)
{
	set_state(instance, state, why);
	instance->retry_at_ms = clock_now_ms() + delay_ms;
	set_timer(instance, delay_ms);
}

/* It has ended though it was wanted: how soon again? */
static void
recover(struct instance *instance)
{
	const struct conf_app *conf = instance->app->conf;
	bool ready = instance->ready_at_ms != 0 && !instance->given_up;
	int64_t ready_ms = ready ? clock_now_ms() - instance->ready_at_ms : 0;
	char why[INSTANCE_REASON_MAX];
	int delay_ms;

	snprintf(why, sizeof(why), "%s", instance->last_exit);
	instance->ready_at_ms = 0;
	if (instance->trial) {
		instance->wanted = false;
		set_state(instance, INSTANCE_DOWN, why);
		return;
	}
	delay_ms = backoff_after_death(
	    &instance->backoff, ready, ready_ms, conf->min_uptime_ms);
	if (delay_ms == 0)
		spawn(instance, why);
	else
		wait_again(instance, INSTANCE_BACKOFF, delay_ms, why);
}

static void
fail(struct instance *instance, const char *why)
{
	int delay_ms = backoff_after_failure(&instance->backoff);

	instance_proc_release(instance);
	snprintf(instance->last_exit, sizeof(instance->last_exit), "%s", why);
	snprintf(instance->app->last_exit, sizeof(instance->app->last_exit),
	    "%s", why);
	app_log_note(instance->app->log, "%s", why);
	log_error("app=%s cannot be started: %s", instance->app->name, why);
	if (instance->trial) {
		instance->wanted = false;
		set_state(instance, INSTANCE_DOWN, why);
		return;
	}
	wait_again(instance, INSTANCE_FAILED, delay_ms, why);
}

static void
finish(struct instance *instance)
{
	if (instance->wanted) {
		recover(instance);
		return;
	}
	instance->ready_at_ms = 0;
	set_state(instance, INSTANCE_DOWN, instance->last_exit);
}

void
instance_event(
    struct instance *instance, enum instance_event event, const char *why)
{
	enum instance_action action =
	    instance_state_action(instance->state, event);

	if (why == NULL)
		why = "";
	switch (action) {
	case INSTANCE_IGNORE:
		log_debug("app=%s instance=%llu %s: nothing to do for %s",
		    instance->app->name, (unsigned long long)instance->id,
		    instance_state_name(instance->state),
		    instance_event_name(event));
		break;
	case INSTANCE_SPAWN:
		spawn(instance, why);
		break;
	case INSTANCE_SERVE:
		serve(instance);
		break;
	case INSTANCE_WITHDRAW:
		drain(instance, why);
		break;
	case INSTANCE_SIGNAL:
		signal_process(instance, event, why);
		break;
	case INSTANCE_EXPIRE:
		expire(instance);
		break;
	case INSTANCE_LINGER:
		linger(instance);
		break;
	case INSTANCE_GIVE_UP:
		give_up(instance);
		break;
	case INSTANCE_RECOVER:
		recover(instance);
		break;
	case INSTANCE_FAIL:
		fail(instance, why);
		break;
	case INSTANCE_REST:
		set_state(instance, INSTANCE_DOWN, why);
		break;
	case INSTANCE_FINISH:
		finish(instance);
		break;
	}
}

void
instance_start(struct instance *instance)
{
	instance->wanted = true;
	backoff_reset(&instance->backoff);
	instance_event(instance, INSTANCE_START, NULL);
}

void
instance_stop(struct instance *instance, const char *why)
{
	instance->wanted = false;
	instance_event(instance, INSTANCE_STOP, why);
}

void
instance_retire(struct instance *instance, const char *why)
{
	instance->retiring = true;
	instance_stop(instance, why);
}

void
instance_kill(struct instance *instance, const char *why)
{
	instance->wanted = false;
	instance_event(instance, INSTANCE_KILL, why);
}

bool
instance_is_alive(const struct instance *instance)
{
	return instance->state != INSTANCE_DOWN;
}
