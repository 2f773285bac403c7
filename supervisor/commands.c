/*
 * The verbs of the control socket.
 * Called by control_server.c; asks app.c, reload.c, status.c.
 * Every refusal says what to do instead.
 */
#include "supervisor/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/str.h"
#include "supervisor/app.h"
#include "supervisor/app_log.h"
#include "supervisor/control_server.h"
#include "supervisor/file_check.h"
#include "supervisor/log_tail.h"
#include "supervisor/reload.h"
#include "supervisor/reopen.h"
#include "supervisor/status.h"
#include "supervisor/supervisor.h"
#include "supervisor/upgrade.h"

#define USAGE_DISTANCE 3
#define SCALE_MAX 1000

typedef void command_cb(
    struct control_client *client, const struct control_request *request);

/* ---- finding the app ---- */

/* The app that is named, or NULL after having answered. */
static struct app *
named_app(struct control_client *client, const char *name)
{
	struct supervisor *supervisor = control_supervisor(client);
	struct app *app = app_find(supervisor, name);
	unsigned best = USAGE_DISTANCE;
	const char *nearest = NULL;

	if (app != NULL)
		return app;
	for (size_t i = 0; i < supervisor->n_apps; i++) {
		unsigned distance =
		    str_distance(name, supervisor->apps[i]->name);

		if (distance < best) {
			best = distance;
			nearest = supervisor->apps[i]->name;
		}
	}
	if (nearest != NULL)
		control_printf(client, 'e',
		    "there is no app \"%s\", did you mean \"%s\"?", name,
		    nearest);
	else
		control_printf(client, 'e',
		    "there is no app \"%s\", see: scalwsctl status", name);
	control_end(client, CONTROL_USAGE);
	return NULL;
}

/* ---- start, stop, restart ---- */

struct job {
	struct control_client *client; /* NULL: it went away */
	struct app *app;
	const char *did, *did_not; /* static: "started" */
};

static void
on_client_gone(struct control_client *client, void *arg)
{
	struct job *job = arg;

	app_forget(job->app, job);
	mem_free(job);
}

static void
on_done(bool ok, const char *why, pid_t failed, void *arg)
{
	struct job *job = arg;
	struct control_client *client = job->client;
	struct strbuf last = STRBUF_EMPTY;

	if (ok) {
		control_printf(client, 'o', "%s %s", job->app->name, job->did);
	} else {
		control_printf(client, 'e', "%s %s: %s", job->app->name,
		    job->did_not, why);
		app_log_last(job->app->log, APP_LOG_LAST_LINES, failed, &last);
		if (last.len > 0) {
			control_printf(
			    client, 'e', "last lines of its output:");
			control_say(
			    client, 'e', (struct str){ last.ptr, last.len });
		}
		control_printf(client, 'e',
		    "see also: scalwsctl status %s, "
		    "scalwsctl logs %s",
		    job->app->name, job->app->name);
		strbuf_free(&last);
	}
	control_on_gone(client, NULL, NULL);
	control_end(client, ok ? CONTROL_OK : CONTROL_FAILED);
	mem_free(job);
}

static void
on_progress(const char *text, void *arg)
{
	const struct job *job = arg;

	control_printf(job->client, 'o', "%s: %s", job->app->name, text);
}

static struct job *
new_job(struct control_client *client, struct app *app, const char *did,
    const char *did_not)
{
	struct job *job = mem_alloc(sizeof(*job));

	job->client = client;
	job->app = app;
	job->did = did;
	job->did_not = did_not;
	control_on_gone(client, on_client_gone, job);
	return job;
}

/* The environment is read anew from the file, so that what was removed there
 * is gone and what was added is there. Other changes need a reload. */
static void
refresh_environment(struct control_client *client, struct app *app)
{
	struct conf_errors errors;
	struct conf *conf;
	const struct conf_app *now;

	conf_errors_init(&errors);
	conf = conf_load(control_supervisor(client)->conf_path, &errors);
	now = conf == NULL ? NULL : conf_find_app(conf, app->name);
	if (conf == NULL)
		control_printf(client, 'e',
		    "the configuration has errors, "
		    "going on with the one in force; see: scalwsctl check");
	if (now != NULL)
		app_set_environment(app, now);
	conf_free(conf);
	conf_errors_free(&errors);
}

static void
start(struct control_client *client, const struct control_request *request)
{
	struct app *app = named_app(client, request->args[0]);

	if (app == NULL)
		return;
	refresh_environment(client, app);
	app_start(
	    app, on_done, new_job(client, app, "started", "did not start"));
}

static void
stop(struct control_client *client, const struct control_request *request)
{
	struct app *app = named_app(client, request->args[0]);

	if (app != NULL)
		app_stop(app, on_done,
		    new_job(client, app, "stopped", "was not stopped"));
}

static void
restart(struct control_client *client, const struct control_request *request)
{
	struct app *app = named_app(client, request->args[0]);
	bool all = request->n_args > 1 && strcmp(request->args[1], "all") == 0;

	if (app == NULL)
		return;
	refresh_environment(client, app);
	app_restart(app, all, on_done, on_progress,
	    new_job(client, app, "restarted", "was not restarted"));
}

static void
scale(struct control_client *client, const struct control_request *request)
{
	struct app *app = named_app(client, request->args[0]);
	uint64_t number = 0;

	if (app == NULL)
		return;
	if (str_to_u64(str_of(request->args[1]), SCALE_MAX, &number) == -1 ||
	    number == 0) {
		control_printf(client, 'e',
		    "the number of processes must be 1 to %d; see also: "
		    "scalwsctl stop %s",
		    SCALE_MAX, app->name);
		control_end(client, CONTROL_USAGE);
	} else if (app->conf->runtime == CONF_PHP) {
		control_printf(client, 'e',
		    "%s is PHP, which has children in one process: change "
		    "apps.%s.children and reload",
		    app->name, app->name);
		control_end(client, CONTROL_USAGE);
	} else if (app->stopped) {
		control_printf(client, 'e',
		    "%s is stopped, see: scalwsctl start %s", app->name,
		    app->name);
		control_end(client, CONTROL_FAILED);
	} else {
		app_scale(app, (unsigned)number, on_done,
		    new_job(client, app, "scaled", "was not scaled"));
	}
}

/* ---- reload, check, version, status ---- */

/* A look at the file that somebody waits for. */
struct look {
	struct control_client *client;
	struct file_check *check;
	bool dry_reload; /* if the file is good, say what would change */
};

static void
on_look_gone(struct control_client *client, void *arg)
{
	struct look *look = arg;

	file_check_cancel(&look->check);
	mem_free(look);
}

static bool
tell_changes(struct control_client *client)
{
	struct strbuf text = STRBUF_EMPTY;
	bool ok = reload_describe(control_supervisor(client), &text);

	control_say(client, ok ? 'o' : 'e', (struct str){ text.ptr, text.len });
	strbuf_free(&text);
	return ok;
}

static void
on_looked(bool good, const char *text, void *arg)
{
	struct look *look = arg;
	struct control_client *client = look->client;

	if (text[0] != '\0')
		control_say(client, 'e', str_of(text));
	if (good && look->dry_reload)
		good = tell_changes(client);
	else if (good)
		control_printf(client, 'o', "%s: good",
		    control_supervisor(client)->conf_path);
	mem_free(look);
	control_on_gone(client, NULL, NULL);
	control_end(client, good ? CONTROL_OK : CONTROL_FAILED);
}

static void
start_look(struct control_client *client, bool dry_reload)
{
	struct look *look = mem_alloc(sizeof(*look));

	look->client = client;
	look->dry_reload = dry_reload;
	look->check =
	    file_check_start(control_supervisor(client), on_looked, look);
	if (look->check != NULL) {
		control_on_gone(client, on_look_gone, look);
		return;
	}
	control_printf(
	    client, 'e', "the check cannot be started: %s", strerror(errno));
	mem_free(look);
	control_end(client, CONTROL_FAILED);
}

static void
check(struct control_client *client, const struct control_request *request)
{
	start_look(client, false);
}

static void
version(struct control_client *client, const struct control_request *request)
{
	control_printf(client, 'o', "scalwsd %s", SCALWS_VERSION);
	control_end(client, CONTROL_OK);
}

static void
on_reload_client_gone(struct control_client *client, void *arg)
{
	reload_forget(control_supervisor(client), client);
}

static void
on_reloaded(bool ok, const char *text, void *arg)
{
	struct control_client *client = arg;

	if (text[0] != '\0')
		control_say(client, ok ? 'o' : 'e', str_of(text));
	control_on_gone(client, NULL, NULL);
	control_end(client, ok ? CONTROL_OK : CONTROL_FAILED);
}

static void
reload(struct control_client *client, const struct control_request *request)
{
	control_on_gone(client, on_reload_client_gone, NULL);
	reload_start(control_supervisor(client), on_reloaded, client);
}

/* Only looks. */
static void
dry_reload(struct control_client *client, const struct control_request *request)
{
	if (strcmp(request->args[0], "dry") == 0) {
		start_look(client, true);
		return;
	}
	control_printf(client, 'e', "reload takes dry, or nothing");
	control_end(client, CONTROL_USAGE);
}

static void
upgrade(struct control_client *client, const struct control_request *request)
{
	upgrade_start(control_supervisor(client), client);
}

static void
status(struct control_client *client, const struct control_request *request)
{
	bool json = strcmp(request->verb, "status-json") == 0;
	const char *name = request->n_args > 0 ? request->args[0] : NULL;

	if (name == NULL || named_app(client, name) != NULL)
		status_answer(client, name, json);
}

/* ---- logs ---- */

static void
reopen(struct control_client *client, const struct control_request *request)
{
	reopen_logs(control_supervisor(client), client);
}

static void
logs(struct control_client *client, const struct control_request *request)
{
	struct app *app;
	uint64_t lines, follow;

	if (str_to_u64(str_of(request->args[1]), LOG_TAIL_MAX, &lines) == -1 ||
	    str_to_u64(str_of(request->args[2]), 1, &follow) == -1) {
		control_printf(client, 'e',
		    "\"%.40s\" is no number of lines: 0 to %d are possible",
		    request->args[1], LOG_TAIL_MAX);
		control_end(client, CONTROL_USAGE);
		return;
	}
	app = named_app(client, request->args[0]);
	if (app != NULL)
		log_tail_answer(client, app, (size_t)lines, follow == 1);
}

static const struct {
	const char *verb;
	size_t min_args, max_args;
	bool changes;
	command_cb *run;
} verbs[] = {
	{ "version", 0, 0, false, version },
	{ "status", 0, 1, false, status },
	{ "status-json", 0, 1, false, status },
	{ "logs", 3, 3, false, logs },
	{ "reopen", 0, 0, true, reopen },
	{ "check", 0, 0, false, check },
	{ "start", 1, 1, true, start },
	{ "stop", 1, 1, true, stop },
	{ "restart", 1, 2, true, restart },
	{ "scale", 2, 2, true, scale },
	{ "reload", 0, 0, true, reload },
	{ "reload", 1, 1, false, dry_reload },
	{ "upgrade", 0, 0, true, upgrade },
};

void
commands_run(
    struct control_client *client, const struct control_request *request)
{
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		if (strcmp(request->verb, verbs[i].verb) != 0 ||
		    request->n_args < verbs[i].min_args ||
		    request->n_args > verbs[i].max_args)
			continue;
		if (verbs[i].changes && !control_may_change(client)) {
			control_printf(client, 'e',
			    "only root and the daemon's own user may %s, try "
			    "sudo",
			    request->verb);
			control_end(client, CONTROL_DENIED);
		} else if (verbs[i].changes &&
			   control_supervisor(client)->stopping) {
			control_printf(client, 'e', "the daemon stops");
			control_end(client, CONTROL_FAILED);
		} else {
			verbs[i].run(client, request);
		}
		return;
	}
	control_printf(client, 'e', "unknown command, see: man scalwsctl");
	control_end(client, CONTROL_USAGE);
}
