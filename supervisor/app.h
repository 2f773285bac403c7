/*
 * An app: its instances, its log, and what the administrator wants of it.
 * Supervisor thread only.
 */
#ifndef SUPERVISOR_APP_H
#define SUPERVISOR_APP_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/list.h"
#include "src/base/strbuf.h"
#include "src/conf/conf.h"
#include "supervisor/spawn.h"

struct app_log;
struct conf_hold;
struct event;
struct instance;
struct supervisor;

struct app {
	struct supervisor *supervisor;
	struct conf_hold *hold; /* keeps `conf` */
	const struct conf_app *conf;
	char *name;
	struct words environment; /* read anew at start and restart */
	char env_problem[256];    /* why it cannot be used, or "" */
	struct app_log *log;
	struct list instances; /* of struct instance */
	struct list waiters;
	struct event *step; /* made active by every change; runs on_step */
	bool rolling;       /* instances are being replaced (app_roll.c) */
	bool roll_wish, roll_all;
	int64_t replace_after_ms; /* monotonic; not before */
	unsigned generation;      /* restarts of all instances */
	unsigned scale; /* processes asked for at run time; 0: as configured */
	bool stopped;   /* by the administrator */
	bool before_done;    /* before_start has run for this start */
	bool removed;        /* no longer in the configuration */
	bool ending;         /* the daemon stops */
	unsigned restarts;   /* of all instances, ever */
	uint32_t told_state; /* to the proxy; enum channel_app_state */
	int64_t told_retry_at_ms;
	char last_exit[256];    /* of any instance */
	const char *state_name; /* app_state_name, and since when (monotonic) */
	int64_t since_ms;
};

#define FOREACH_INSTANCE(app, node, after, instance)      \
	LIST_FOREACH_SAFE(node, after, &(app)->instances) \
	if (((instance) = LIST_ENTRY(node, struct instance, node)), true)

struct app *app_new(struct supervisor *supervisor, struct conf_hold *hold,
    const struct conf_app *conf) MUST_CHECK;
/* Without instances only. */
void app_free(struct app **app);
struct app *app_find(const struct supervisor *supervisor, const char *name);

/* When it is done: `ok`, or `why` not, and the process that failed, whose
 * output may tell more (0: there is none). Called once, later or at once. */
typedef void app_done_cb(bool ok, const char *why, pid_t failed, void *arg);

/* All instances up (`on_done` may be NULL). */
void app_start(struct app *app, app_done_cb *on_done, void *arg);
void app_stop(struct app *app, app_done_cb *on_done, void *arg);
/* New instances first, one at a time or (`all`) all at once. on_progress (may
 * be NULL): a line for each that was replaced. */
typedef void app_progress_cb(const char *text, void *arg);
void app_restart(struct app *app, bool all, app_done_cb *on_done,
    app_progress_cb *on_progress, void *arg);
/* So many instances from now on, until `processes` of its row changes. */
void app_scale(
    struct app *app, unsigned number, app_done_cb *on_done, void *arg);
/* Nobody waits any more with this `arg`. */
void app_forget(struct app *app, const void *arg);

/* The daemon stops: end all instances, do not start any. */
void app_end(struct app *app);
/* SIGKILL to all of it. */
void app_kill(struct app *app);

/* The new configuration's row for this app; NULL: it is in it no more. What
 * changed decides whether processes are replaced (true: they are; then on_done
 * of the restart follows). */
bool app_reconfigure(struct app *app, struct conf_hold *hold,
    const struct conf_app *conf, app_done_cb *on_done, void *arg);

/* Use the environment of this row from the next start on. */
void app_set_environment(struct app *app, const struct conf_app *conf);

/* Something about an instance changed. */
void app_changed(struct app *app);
/* Tell the proxies all about it (again), or its state alone. */
void app_tell_proxy(struct app *app);
void app_tell_state(struct app *app);

/* Only one instance may be started: its before_start comes first. */
bool app_waits_for_before(const struct app *app);
/* How many instances are RUNNING. */
unsigned app_running(const struct app *app);
/* "running", "starting", "backoff", "failed", "stopped", "stopping". */
const char *app_state_name(const struct app *app);
/* Nothing of it is left. */
bool app_is_gone(const struct app *app);

#endif
