/*
 * Reload: LOAD and check, bind, PREPARE, COMMIT, restart what changed.
 * Started by commands.c or SIGHUP. An error before COMMIT leaves all as it was.
 */
#include "supervisor/reload.h"

#include <string.h>

#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/str.h"
#include "src/base/strbuf.h"
#include "supervisor/app.h"
#include "supervisor/app_log.h"
#include "supervisor/app_roll.h"
#include "supervisor/listen_fds.h"
#include "supervisor/notify.h"
#include "supervisor/proxy_proc.h"
#include "supervisor/secrets.h"
#include "supervisor/supervisor.h"
#include "supervisor/ticket_keys.h"

struct reload {
	struct supervisor *supervisor;
	struct conf_hold *hold; /* the new one, until it is in force */
	reload_done_cb *on_done;
	void *arg;
	struct strbuf text;
	bool failed;
	unsigned restarting; /* apps whose restart is awaited */
};

/* One restart that is awaited. */
struct part {
	struct reload *reload;
	char *name;
};

static void
log_result(bool ok, const char *text)
{
	struct str rest = str_of(text), line;

	while (str_split(&rest, '\n', &line)) {
		if (line.len == 0)
			continue;
		if (ok)
			log_info("reload: %.*s", (int)line.len, line.ptr);
		else
			log_error("reload: %.*s", (int)line.len, line.ptr);
	}
}

static void
finish(struct reload *reload)
{
	struct supervisor *supervisor = reload->supervisor;
	reload_done_cb *on_done = reload->on_done;
	void *arg = reload->arg;
	bool ok = !reload->failed;
	char *text;

	supervisor->reload = NULL;
	notify_state("READY=1");
	strbuf_add_text(&reload->text, ok ? "configuration reloaded" : "");
	text = strbuf_take(&reload->text);
	log_result(ok, text);
	conf_hold_unref(&reload->hold);
	mem_free(reload);
	if (on_done != NULL)
		on_done(ok, text, arg);
	mem_free(text);
}

static void
fail(struct reload *reload, const char *why)
{
	size_t len = strlen(why);

	reload->failed = true;
	strbuf_add(&reload->text, why, len);
	if (len == 0 || why[len - 1] != '\n')
		strbuf_add_text(&reload->text, "\n");
	strbuf_add_text(&reload->text,
	    "nothing was changed, the old configuration stays in force");
	finish(reload);
}

/* Why it did not come up stands in its own output. */
static void
add_last_lines(struct reload *reload, const char *name, pid_t failed)
{
	struct supervisor *supervisor = reload->supervisor;
	struct strbuf last = STRBUF_EMPTY;

	for (size_t i = 0; i < supervisor->n_apps; i++) {
		const struct app *app = supervisor->apps[i];

		if (strcmp(app->name, name) != 0)
			continue;
		app_log_last(app->log, APP_LOG_LAST_LINES, failed, &last);
		if (last.len > 0)
			strbuf_add_text(
			    &reload->text, "last lines of its output:\n");
		strbuf_add(&reload->text, last.ptr, last.len);
		strbuf_free(&last);
		return;
	}
}

static void
on_restarted(bool ok, const char *why, pid_t failed, void *arg)
{
	struct part *part = arg;
	struct reload *reload = part->reload;

	if (!ok) {
		reload->failed = true;
		strbuf_printf(&reload->text,
		    "app %s was not restarted: %s; its old processes go on, "
		    "see: scalwsctl logs %s\n",
		    part->name, why, part->name);
		add_last_lines(reload, part->name, failed);
	} else {
		strbuf_printf(&reload->text, "app %s restarted\n", part->name);
	}
	mem_free(part->name);
	mem_free(part);
	if (--reload->restarting == 0)
		finish(reload);
}

static void
add_app(struct reload *reload, const struct conf_app *conf)
{
	struct supervisor *supervisor = reload->supervisor;
	struct app *app;

	supervisor->apps = mem_realloc(supervisor->apps, supervisor->n_apps + 1,
	    sizeof(*supervisor->apps));
	app = app_new(supervisor, supervisor->hold, conf);
	supervisor->apps[supervisor->n_apps++] = app;
	app_start(app, NULL, NULL);
	strbuf_printf(&reload->text, "app %s added\n", app->name);
}

static void
change_apps(struct reload *reload)
{
	struct supervisor *supervisor = reload->supervisor;
	const struct conf *conf = supervisor->hold->conf;

	/* Own share: finish() must not come before all were asked. */
	reload->restarting = 1;
	for (size_t i = 0; i < supervisor->n_apps; i++) {
		struct app *app = supervisor->apps[i];
		const struct conf_app *row = conf_find_app(conf, app->name);
		struct part *part;

		if (row == NULL && !app->removed)
			strbuf_printf(
			    &reload->text, "app %s removed\n", app->name);
		part = mem_alloc(sizeof(*part));
		part->reload = reload;
		part->name = mem_strdup(app->name);
		reload->restarting++;
		if (app_reconfigure(
			app, supervisor->hold, row, on_restarted, part))
			continue;
		reload->restarting--;
		mem_free(part->name);
		mem_free(part);
	}
	for (size_t i = 0; i < conf->n_apps; i++)
		if (app_find(supervisor, conf->apps[i].name) == NULL)
			add_app(reload, &conf->apps[i]);
	for (size_t i = 0; i < supervisor->n_apps; i++)
		app_tell_proxy(supervisor->apps[i]);
	if (--reload->restarting == 0)
		finish(reload);
}

/* An app that comes back with a name of before must not be taken for the one
 * that was stopped then: told before requests can be for it. */
static void
tell_new_apps(struct supervisor *supervisor, const struct conf *conf)
{
	for (size_t i = 0; i < conf->n_apps; i++) {
		struct channel_app message = { conf->apps[i].name,
			CHANNEL_APP_STARTING, 0, "" };
		const struct app *app =
		    app_find(supervisor, conf->apps[i].name);

		if (conf->apps[i].http && (app == NULL || app->removed))
			proxy_proc_app_state(supervisor->proxy, &message);
	}
}

/* No request is on the old configuration's way to an app any more. */
static void
on_committed(void *arg)
{
	struct reload *reload = arg;
	struct supervisor *supervisor = reload->supervisor;

	if (supervisor->stopping) {
		finish(reload);
		return;
	}
	listen_set_commit(supervisor->listens);
	ticket_keys_configure(supervisor->tickets, supervisor->hold->conf);
	change_apps(reload);
}

static void
on_prepared(const char *error, void *arg)
{
	struct reload *reload = arg;
	struct supervisor *supervisor = reload->supervisor;
	struct conf_hold *old = supervisor->hold;

	if (error != NULL) {
		listen_set_abort(supervisor->listens);
		fail(reload, error);
		return;
	}
	/* Compared with what is in use since the start: a key that was changed
	 * and changed back needs nothing. */
	conf_describe_restart(
	    supervisor->first->conf, reload->hold->conf, &reload->text);
	supervisor->hold = reload->hold;
	reload->hold = NULL;
	tell_new_apps(supervisor, supervisor->hold->conf);
	proxy_proc_commit(supervisor->proxy, on_committed, reload);
	conf_hold_unref(&old);
}

void
reload_start(struct supervisor *supervisor, reload_done_cb *on_done, void *arg)
{
	struct reload *reload;
	struct conf_errors errors;
	struct conf *conf;

	if (supervisor->reload != NULL) {
		if (on_done != NULL)
			on_done(
			    false, "a reload is under way, wait for it", arg);
		return;
	}
	reload = mem_alloc(sizeof(*reload));
	reload->supervisor = supervisor;
	reload->on_done = on_done;
	reload->arg = arg;
	supervisor->reload = reload;
	log_info("reload of %s", supervisor->conf_path);
	notify_reloading();
	conf_errors_init(&errors);
	conf = conf_load(supervisor->conf_path, &errors);
	if (conf != NULL)
		reload->hold = conf_hold_new(conf, &errors);
	if (reload->hold != NULL) {
		if (listen_set_prepare(
			supervisor->listens, conf, 0, 0, &errors) == 0) {
			conf_errors_free(&errors);
			proxy_proc_prepare(supervisor->proxy, reload->hold,
			    on_prepared, reload);
			return;
		}
	}
	fail(reload, errors.text.len > 0 ? errors.text.ptr : "no reason");
	conf_errors_free(&errors);
}

/* ---- what it would do ---- */

static void
describe_app(
    const struct app *app, const struct conf_app *row, struct strbuf *to)
{
	enum conf_change change;

	if (row == NULL) {
		if (!app->removed)
			strbuf_printf(
			    to, "app %s: stop, it is removed\n", app->name);
		return;
	}
	change = app->removed ? CONF_RESTART : conf_app_change(app->conf, row);
	if (change == CONF_SAME)
		return;
	if (row->processes != app->conf->processes)
		strbuf_printf(to, "app %s: scale from %u to %u processes\n",
		    app->name, app_number(app), row->processes);
	strbuf_printf(to, "app %s: %s (", app->name,
	    change == CONF_ADJUST ? "change without a restart"
	    : app->stopped        ? "change, it is stopped"
				  : "restart");
	conf_describe_app(app->conf, row, to);
	strbuf_add_text(to, ")\n");
}

bool
reload_describe(struct supervisor *supervisor, struct strbuf *to)
{
	struct conf_errors errors;
	struct conf *conf;

	conf_errors_init(&errors);
	conf = conf_load(supervisor->conf_path, &errors);
	if (conf == NULL) {
		strbuf_add(to, errors.text.ptr, errors.text.len);
		conf_errors_free(&errors);
		return false;
	}
	conf_describe_restart(supervisor->first->conf, conf, to);
	conf_describe_changes(supervisor->hold->conf, conf, to);
	secrets_describe(supervisor->hold->secrets, conf, to);
	for (size_t i = 0; i < supervisor->n_apps; i++)
		describe_app(supervisor->apps[i],
		    conf_find_app(conf, supervisor->apps[i]->name), to);
	for (size_t i = 0; i < conf->n_apps; i++)
		if (app_find(supervisor, conf->apps[i].name) == NULL)
			strbuf_printf(
			    to, "app %s: start\n", conf->apps[i].name);
	if (to->len == 0)
		strbuf_add_text(to, "nothing changes\n");
	conf_free(conf);
	conf_errors_free(&errors);
	return true;
}

void
reload_forget(struct supervisor *supervisor, const void *arg)
{
	if (supervisor->reload != NULL && supervisor->reload->arg == arg)
		supervisor->reload->on_done = NULL;
}

void
reload_cancel(struct supervisor *supervisor)
{
	struct reload *reload = supervisor->reload;

	/* Its parts come back by themselves when their apps stop, and a PREPARE
	 * when the proxy does. Only the waiting ends here. */
	if (reload == NULL || reload->on_done == NULL)
		return;
	reload->on_done(false, "the daemon stops", reload->arg);
	reload->on_done = NULL;
}
