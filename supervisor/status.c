/*
 * Collects one view of both sides: states from the supervisor, counters from
 * the proxy, memory and CPU from /proc. Asked for by commands.c.
 * Changes nothing. status_text.c makes the table of it.
 */
#include "supervisor/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "src/base/clock.h"
#include "src/base/mem.h"
#include "supervisor/app.h"
#include "supervisor/app_log.h"
#include "supervisor/app_roll.h"
#include "supervisor/control_server.h"
#include "supervisor/counts.h"
#include "supervisor/instance.h"
#include "supervisor/proxy_proc.h"
#include "supervisor/status_text.h"
#include "supervisor/supervisor.h"
#include "supervisor/tree.h"

struct status {
	struct control_client *client; /* NULL: it went away */
	char *name;                    /* of the app; NULL: all */
	bool json;
	bool is_live;                /* a proxy has answered */
	const struct counts *counts; /* while it is called back */
};

/* ---- values ---- */

static json_t *
text_or_null(const char *text)
{
	/* What apps are called and say may be no UTF-8. */
	json_t *value = text[0] == '\0' ? NULL : json_string(text);

	return value == NULL ? json_null() : value;
}

static json_t *
time_of(int64_t monotonic_ms)
{
	char text[CLOCK_ISO_LEN + 1];

	clock_put_iso(text, clock_wall_ms() - (clock_now_ms() - monotonic_ms));
	return json_string(text);
}

/* Of a process and all below it: a master alone says nothing. */
static void
put_usage(json_t *to, struct tree *tree, pid_t pid)
{
	uint64_t rss_bytes = 0, cpu_ms = 0;
	bool found = false;

	if (pid > 0)
		tree_mark_below(tree, pid);
	for (size_t i = 0; i < tree->n && pid > 0; i++) {
		const struct tree_process *process = &tree->processes[i];

		if (!process->below && process->pid != pid)
			continue;
		found = true;
		rss_bytes += process->rss_bytes;
		cpu_ms += process->cpu_ms;
	}
	json_object_set_new(to, "rss_bytes",
	    found ? json_integer((json_int_t)rss_bytes) : json_null());
	json_object_set_new(to, "cpu_seconds",
	    found ? json_real((double)cpu_ms / 1000) : json_null());
}

static void
put_count(json_t *to, const char *key, bool known, uint64_t value)
{
	json_object_set_new(
	    to, key, known ? json_integer((json_int_t)value) : json_null());
}

/* ---- the document ---- */

static json_t *
instance_object(const struct status *status, const struct instance *instance,
    struct tree *tree)
{
	const struct count *count = counts_find(
	    status->counts, CHANNEL_STATS_INSTANCE, "", instance->id);
	json_t *object = json_object();

	json_object_set_new(
	    object, "id", json_integer((json_int_t)instance->id));
	json_object_set_new(
	    object, "state", json_string(instance_state_name(instance->state)));
	json_object_set_new(object, "since", time_of(instance->since_ms));
	json_object_set_new(object, "reason", text_or_null(instance->reason));
	put_count(object, "pid", instance->pid > 0, (uint64_t)instance->pid);
	put_count(object, "requests", true, count->requests);
	put_count(object, "errors", true, count->errors);
	put_count(object, "in_flight", status->is_live, count->in_flight);
	put_count(object, "connections", status->is_live, count->connections);
	put_usage(object, tree, instance->pid);
	json_object_set_new(
	    object, "restarts", json_integer(instance->restarts));
	json_object_set_new(
	    object, "last_exit", text_or_null(instance->last_exit));
	return object;
}

/* What an app that does not run, or is asked for by name, printed last. */
static json_t *
last_lines(const struct status *status, const struct app *app)
{
	json_t *lines = json_array();
	struct strbuf text = STRBUF_EMPTY;
	struct str rest, line;

	if (app_running(app) > 0 && status->name == NULL)
		return lines;
	app_log_last(app->log, APP_LOG_LAST_LINES, APP_LOG_ALL, &text);
	for (size_t i = 0; i < text.len; i++)
		/* JSON takes UTF-8 only, and apps print what they like. */
		if ((unsigned char)text.ptr[i] >= 0x80)
			text.ptr[i] = '?';
	rest = (struct str){ text.ptr, text.len };
	while (text.len > 0 && str_split(&rest, '\n', &line))
		if (line.len > 0)
			json_array_append_new(
			    lines, json_stringn(line.ptr, line.len));
	strbuf_free(&text);
	return lines;
}

static json_t *
app_object(
    const struct status *status, const struct app *app, struct tree *tree)
{
	static const char *const runtimes[] = { [CONF_PYTHON] = "python",
		[CONF_NODE] = "node",
		[CONF_PHP] = "php",
		[CONF_COMMAND] = "command" };
	const struct count *count =
	    counts_find(status->counts, CHANNEL_STATS_APP, app->name, 0);
	json_t *object = json_object(), *instances = json_array();
	struct list *node;

	json_object_set_new(object, "name", json_string(app->name));
	json_object_set_new(
	    object, "runtime", json_string(runtimes[app->conf->runtime]));
	json_object_set_new(object, "state", json_string(app_state_name(app)));
	json_object_set_new(object, "since", time_of(app->since_ms));
	json_object_set_new(object, "processes", json_integer(app_number(app)));
	json_object_set_new(
	    object, "processes_configured", json_integer(app->conf->processes));
	put_count(object, "requests", true, count->requests);
	put_count(object, "errors", true, count->errors);
	put_count(object, "in_flight", status->is_live, count->in_flight);
	put_count(object, "queued", status->is_live, count->queued);
	put_count(
	    object, "oldest_wait_ms", status->is_live, count->oldest_wait_ms);
	json_object_set_new(object, "restarts", json_integer(app->restarts));
	json_object_set_new(object, "last_exit", text_or_null(app->last_exit));
	json_object_set_new(object, "last_lines", last_lines(status, app));
	json_object_set_new(object, "instances", instances);
	LIST_FOREACH(node, &app->instances)
	json_array_append_new(
	    instances, instance_object(status,
			   LIST_ENTRY(node, struct instance, node), tree));
	return object;
}

static json_t *
proxy_object(const struct status *status, const struct supervisor *supervisor,
    struct tree *tree)
{
	static const char *const states[] = { [PROXY_DOWN] = "down",
		[PROXY_STARTING] = "starting",
		[PROXY_READY] = "running",
		[PROXY_STOPPING] = "stopping" };
	const struct proxy_proc *proxy = supervisor->proxy;
	const struct count *count =
	    counts_find(status->counts, CHANNEL_STATS_PROXY, "", 0);
	pid_t pid = proxy_proc_pid(proxy), draining;
	json_t *object = json_object();

	json_object_set_new(
	    object, "state", json_string(states[proxy_proc_state(proxy)]));
	put_count(object, "pid", pid > 0, (uint64_t)pid);
	json_object_set_new(
	    object, "since", time_of(proxy_proc_since_ms(proxy)));
	json_object_set_new(
	    object, "restarts", json_integer(proxy_proc_restarts(proxy)));
	json_object_set_new(
	    object, "generation", json_integer(proxy_proc_generation(proxy)));
	proxy_proc_has_two(proxy, &draining);
	put_count(object, "draining_pid", draining > 0, (uint64_t)draining);
	put_count(object, "connections", status->is_live, count->connections);
	put_count(object, "accepted", true, count->accepted);
	put_count(object, "requests", true, count->requests);
	put_count(object, "errors", true, count->errors);
	put_count(object, "in_flight", status->is_live, count->in_flight);
	put_usage(object, tree, pid);
	json_object_set_new(
	    object, "last_exit", text_or_null(proxy_proc_last_exit(proxy)));
	return object;
}

static json_t *
document(const struct status *status, const struct supervisor *supervisor)
{
	json_t *root = json_object(), *apps = json_array();
	struct tree tree = { NULL, 0 };

	if (tree_read(&tree) == -1)
		tree.n = 0;
	json_object_set_new(root, "version", json_string(SCALWS_VERSION));
	json_object_set_new(root, "pid", json_integer(getpid()));
	json_object_set_new(root, "since", time_of(supervisor->started_ms));
	json_object_set_new(
	    root, "configuration", text_or_null(supervisor->conf_path));
	json_object_set_new(
	    root, "proxy", proxy_object(status, supervisor, &tree));
	json_object_set_new(root, "apps", apps);
	for (size_t i = 0; i < supervisor->n_apps; i++)
		if (status->name == NULL ||
		    strcmp(status->name, supervisor->apps[i]->name) == 0)
			json_array_append_new(apps,
			    app_object(status, supervisor->apps[i], &tree));
	tree_free(&tree);
	return root;
}

/* ---- the answer ---- */

static void
free_status(struct status *status)
{
	mem_free(status->name);
	mem_free(status);
}

static void
answer(struct status *status)
{
	struct control_client *client = status->client;
	const struct supervisor *supervisor = control_supervisor(client);
	const struct app *app =
	    status->name == NULL ? NULL : app_find(supervisor, status->name);
	json_t *root = document(status, supervisor);
	char *text;

	if (status->json) {
		text = json_dumps(root, JSON_INDENT(2));
		if (text != NULL)
			control_say(client, 'o', str_of(text));
		free(text);
	} else {
		struct strbuf table = STRBUF_EMPTY;

		status_text_put(root, &table);
		control_say(client, 'o', (struct str){ table.ptr, table.len });
		strbuf_free(&table);
	}
	json_decref(root);
	control_on_gone(client, NULL, NULL);
	control_end(client,
	    app != NULL && app_running(app) == 0 ? CONTROL_DOWN : CONTROL_OK);
}

static void
on_gone(struct control_client *client, void *arg)
{
	struct status *status = arg;

	status->client = NULL; /* freed when the proxy has answered */
}

static void
on_counts(const struct counts *counts, bool is_live, void *arg)
{
	struct status *status = arg;

	status->counts = counts;
	status->is_live = is_live;
	if (status->client != NULL)
		answer(status);
	free_status(status);
}

void
status_answer(struct control_client *client, const char *name, bool json)
{
	struct status *status = mem_alloc(sizeof(*status));

	status->client = client;
	status->name = mem_strdup(name);
	status->json = json;
	control_on_gone(client, on_gone, status);
	proxy_proc_query(control_supervisor(client)->proxy, on_counts, status);
}
