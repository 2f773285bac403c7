/*
 * Takes a supervisor apart into a struct saved, and puts one together from it.
 * Used by upgrade.c before, and by supervisor.c after another binary took over.
 * Executes nothing.
 */
#include "supervisor/handover.h"

#include <dirent.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/strbuf.h"
#include "src/ipc/channel.h"
#include "supervisor/app.h"
#include "supervisor/app_log.h"
#include "supervisor/control_server.h"
#include "supervisor/instance.h"
#include "supervisor/instance_proc.h"
#include "supervisor/listen_fds.h"
#include "supervisor/log_tail.h"
#include "supervisor/proxy_proc.h"
#include "supervisor/readiness.h"
#include "supervisor/saved.h"
#include "supervisor/secrets.h"
#include "supervisor/supervisor.h"
#include "supervisor/ticket_keys.h"

/* ---- may it be handed on now? ---- */

static const char *
instance_obstacle(const struct instance *instance)
{
	if (!instance_proc_is_flushed(instance))
		return "a keeper does not listen";
	return NULL;
}

static const char *
app_obstacle(const struct app *app)
{
	const char *obstacle = NULL;
	struct list *node;

	if (!list_is_empty(&app->waiters))
		return "somebody waits for an app to start, stop or restart";
	if (app->removed || app->ending)
		return "an app that was removed is being stopped";
	if (!app_log_is_written(app->log))
		return "the log of an app is being written";
	LIST_FOREACH(node, &app->instances)
	if (obstacle == NULL)
		obstacle =
		    instance_obstacle(LIST_ENTRY(node, struct instance, node));
	return obstacle;
}

const char *
handover_obstacle(const struct supervisor *supervisor)
{
	const char *obstacle = NULL;
	pid_t draining;

	if (supervisor->reload != NULL)
		return "a reload is under way";
	if (proxy_proc_has_two(supervisor->proxy, &draining))
		return "the proxy of the last upgrade still drains";
	if (!proxy_proc_is_simple(supervisor->proxy))
		return "the proxy does not serve yet";
	if (supervisor->sweeps_left > 0)
		return "what a dead keeper left is being ended";
	for (size_t i = 0; i < supervisor->n_apps && obstacle == NULL; i++)
		obstacle = app_obstacle(supervisor->apps[i]);
	return obstacle;
}

/* ---- taking ---- */

static int64_t
left_ms(const struct event *timer)
{
	struct timeval at, now;

	if (!event_pending(timer, EV_TIMEOUT, &at))
		return -1;
	gettimeofday(&now, NULL);
	if (!timercmp(&at, &now, >))
		return 0;
	timersub(&at, &now, &at);
	return at.tv_sec * 1000 + at.tv_usec / 1000;
}

static void
copy_text(char to[SAVED_TEXT_MAX], const char *from)
{
	snprintf(to, SAVED_TEXT_MAX, "%s", from);
}

static void
take_instance(const struct instance *instance, struct saved_instance *to)
{
	const struct supervisor *supervisor = instance->app->supervisor;

	to->state = (int)instance->state;
	to->since_ms = instance->since_ms;
	to->retry_at_ms = instance->retry_at_ms;
	to->timer_left_ms = left_ms(instance->timer);
	copy_text(to->reason, instance->reason);
	copy_text(to->last_exit, instance->last_exit);
	copy_text(to->replace_why, instance->replace_why);
	to->backoff_ms = instance->backoff.next_ms;
	to->restarts = instance->restarts;
	to->generation = instance->generation;
	to->chance = instance->chance;
	to->wanted = instance->wanted;
	to->trial = instance->trial;
	to->is_old = instance->is_old;
	to->given_up = instance->given_up;
	to->retiring = instance->retiring;
	to->quiet = instance->quiet;
	to->exited = instance->exited;
	to->announced = instance->announced;
	to->drains = proxy_proc_drains(supervisor->proxy, instance->id);
	to->id = instance->id;
	to->keeper = (int)instance->keeper;
	to->pid = (int)instance->pid;
	to->ready_at_ms = instance->ready_at_ms;
	to->link_fd =
	    instance->link == NULL ? -1 : frame_link_fd(instance->link);
	to->notify_fd = -1;
	if (instance->readiness != NULL)
		to->notify_fd =
		    readiness_notify_fd(instance->readiness, &to->notify_uid);
	to->listen_fd = instance->listen_fd;
	to->status_fd = instance->status_fd;
	to->port = instance->port;
	to->n_addrs = instance->n_addrs;
	memcpy(to->addrs, instance->addrs, sizeof(to->addrs));
	to->addr = instance->addr;
	for (int i = 0; i < 2; i++)
		app_pipe_save(instance->pipes[i], &to->pipes[i]);
}

static void
take_lines(const struct app *app, struct saved_app *to)
{
	struct strbuf text = STRBUF_EMPTY;
	struct str rest, line;

	to->lines = mem_alloc_array(APP_LOG_LAST_LINES + 1, sizeof(char *));
	app_log_last(app->log, APP_LOG_LAST_LINES, APP_LOG_ALL, &text);
	rest = (struct str){ text.ptr, text.len };
	while (text.len > 0 && to->n_lines < APP_LOG_LAST_LINES &&
	       str_split(&rest, '\n', &line))
		if (line.len > 0)
			to->lines[to->n_lines++] =
			    mem_memdup0(line.ptr, strnlen(line.ptr, line.len));
	strbuf_free(&text);
}

static void
take_app(const struct app *app, struct saved_app *to)
{
	struct list *node;
	size_t n = 0;

	to->name = mem_strdup(app->name);
	to->stopped = app->stopped;
	to->before_done = app->before_done;
	to->rolling = app->rolling;
	to->roll_wish = app->roll_wish;
	to->roll_all = app->roll_all;
	to->lost_lines = app_log_lost(app->log);
	copy_text(to->env_problem, app->env_problem);
	to->generation = app->generation;
	to->scale = app->scale;
	to->restarts = app->restarts;
	to->since_ms = app->since_ms;
	to->replace_after_ms = app->replace_after_ms;
	copy_text(to->last_exit, app->last_exit);
	to->words = mem_alloc_array(app->environment.n + 1, sizeof(*to->words));
	for (size_t i = 0; i < app->environment.n; i++)
		to->words[to->n_words++] =
		    mem_strdup(app->environment.items[i]);
	take_lines(app, to);
	LIST_FOREACH(node, &app->instances)
	n++;
	to->instances = mem_alloc_array(n + 1, sizeof(*to->instances));
	LIST_FOREACH(node, &app->instances)
	take_instance(LIST_ENTRY(node, struct instance, node),
	    &to->instances[to->n_instances++]);
}

static char *
flatten(const struct conf *conf, size_t *len)
{
	struct strbuf flat = STRBUF_EMPTY;

	conf_to_flat(conf, &flat);
	*len = flat.len;
	return strbuf_take(&flat);
}

void
handover_take(const struct supervisor *supervisor, struct saved *saved)
{
	memset(saved, 0, sizeof(*saved));
	saved->conf_path = mem_strdup(supervisor->conf_path);
	saved->exe_path = mem_strdup(supervisor->exe_path);
	saved->run_path = mem_strdup(supervisor->run.path);
	saved->lock_fd = supervisor->run.lock_fd;
	saved->run_root = supervisor->run.root;
	saved->proxy_gid = supervisor->run.proxy_gid;
	saved->control_fd = control_server_fd(supervisor->control);
	saved->last_id = supervisor->last_id;
	saved->nofile_was = supervisor->nofile_was;
	saved->started_ms = supervisor->started_ms;
	saved->told_ready = supervisor->told_ready;
	saved->told_port = supervisor->told_port;
	saved->why = mem_strdup("");
	saved->conf = flatten(supervisor->hold->conf, &saved->conf_len);
	saved->first = flatten(supervisor->first->conf, &saved->first_len);
	secrets_save(
	    supervisor->hold->secrets, &saved->secrets, &saved->n_secrets);
	ticket_keys_save(supervisor->tickets, &saved->tickets,
	    &saved->tickets_len, &saved->tickets_ms);
	listen_set_save(supervisor->listens, &saved->listeners,
	    &saved->n_listeners, &saved->last_key);
	proxy_proc_save(supervisor->proxy, &saved->proxy);
	saved->apps =
	    mem_alloc_array(supervisor->n_apps + 1, sizeof(*saved->apps));
	for (size_t i = 0; i < supervisor->n_apps; i++)
		take_app(supervisor->apps[i], &saved->apps[saved->n_apps++]);
}

/* ---- giving ---- */

static bool
is_kept(int fd, const int *fds, size_t n_fds)
{
	for (size_t i = 0; i < n_fds; i++)
		if (fds[i] == fd)
			return true;
	return false;
}

/* Nothing else was meant for us: what got through exec by mistake must not
 * stay open for the life of the daemon. */
static void
close_others(const int *fds, size_t n_fds)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		int fd = atoi(entry->d_name);

		if (fd > STDERR_FILENO && fd != dirfd(dir) &&
		    !is_kept(fd, fds, n_fds))
			close(fd);
	}
	if (dir != NULL)
		closedir(dir);
}

const char *
handover_check(const struct saved *saved, const struct conf *conf)
{
	if (saved->proxy.channel != CHANNEL_VERSION)
		return "the proxy that runs speaks another version of the "
		       "channel: only a restart of the daemon helps";
	for (uint32_t i = 0; i < saved->n_apps; i++)
		if (conf_find_app(conf, saved->apps[i].name) == NULL)
			return "an app is not in the configuration";
	return NULL;
}

const char *
handover_check_fds(const struct saved *saved, const int *fds, size_t n_fds)
{
	struct run_dir run = { .path = saved->run_path,
		.lock_fd = saved->lock_fd };

	for (size_t i = 0; i < n_fds; i++)
		if (fds[i] <= STDERR_FILENO ||
		    fd_set_cloexec(fds[i], true) == -1)
			return "a descriptor is not open";
	if (!run_dir_is_locked(&run))
		return "the lock is not that of the run directory";
	close_others(fds, n_fds);
	return NULL;
}

static int
give_instance(struct app *app, const struct saved_instance *from)
{
	struct instance *instance = instance_new(app);
	struct timeval tv = { from->timer_left_ms / 1000,
		from->timer_left_ms % 1000 * 1000 };
	struct channel_announce announce;

	instance->state = (enum instance_state)from->state;
	instance->since_ms = from->since_ms;
	instance->retry_at_ms = from->retry_at_ms;
	snprintf(
	    instance->reason, sizeof(instance->reason), "%s", from->reason);
	snprintf(instance->last_exit, sizeof(instance->last_exit), "%s",
	    from->last_exit);
	snprintf(instance->replace_why, sizeof(instance->replace_why), "%.95s",
	    from->replace_why);
	instance->backoff.next_ms = from->backoff_ms;
	instance->restarts = from->restarts;
	instance->generation = from->generation;
	instance->chance = from->chance;
	instance->wanted = from->wanted;
	instance->trial = from->trial;
	instance->is_old = from->is_old;
	instance->given_up = from->given_up;
	instance->retiring = from->retiring;
	instance->quiet = from->quiet;
	instance->announced = from->announced;
	instance->ready_at_ms = from->ready_at_ms;
	if (from->timer_left_ms != -1 && event_add(instance->timer, &tv) == -1)
		return -1;
	if (instance_proc_adopt(instance, from) == -1)
		return -1;
	instance_describe(instance, &announce);
	if (from->announced || from->drains)
		proxy_proc_adopt_instance(
		    app->supervisor->proxy, &announce, from->drains);
	return 0;
}

static int
give_app(struct supervisor *supervisor, const struct saved_app *from)
{
	const struct conf_app *conf =
	    conf_find_app(supervisor->hold->conf, from->name);
	struct app *app = app_new(supervisor, supervisor->hold, conf);

	supervisor->apps[supervisor->n_apps++] = app;
	app->stopped = from->stopped;
	app->before_done = from->before_done;
	app->rolling = from->rolling;
	app->roll_wish = from->roll_wish;
	app->roll_all = from->roll_all;
	app_log_add_lost(app->log, from->lost_lines);
	snprintf(app->env_problem, sizeof(app->env_problem), "%s",
	    from->env_problem);
	app->generation = from->generation;
	app->scale = from->scale;
	app->restarts = from->restarts;
	app->replace_after_ms = from->replace_after_ms;
	snprintf(app->last_exit, sizeof(app->last_exit), "%s", from->last_exit);
	words_free(&app->environment);
	for (uint32_t i = 0; i < from->n_words; i++)
		words_add(&app->environment, from->words[i]);
	for (uint32_t i = 0; i < from->n_lines; i++)
		app_log_remember(app->log, from->lines[i]);
	for (uint32_t i = 0; i < from->n_instances; i++)
		if (give_instance(app, &from->instances[i]) == -1)
			return -1;
	app->state_name = app_state_name(app);
	app->since_ms = from->since_ms;
	app_changed(app);
	return 0;
}

int
handover_give(struct supervisor *supervisor, const struct saved *saved)
{
	supervisor->run.path = mem_strdup(saved->run_path);
	supervisor->run.lock_fd = saved->lock_fd;
	supervisor->run.root = saved->run_root;
	supervisor->run.proxy_gid = (gid_t)saved->proxy_gid;
	supervisor->last_id = saved->last_id;
	supervisor->nofile_was = (size_t)saved->nofile_was;
	supervisor->started_ms = saved->started_ms;
	supervisor->told_ready = saved->told_ready;
	supervisor->told_port = saved->told_port;
	ticket_keys_adopt(supervisor->tickets, saved->tickets,
	    saved->tickets_len, saved->tickets_ms);
	supervisor->listens = listen_set_new();
	listen_set_adopt(supervisor->listens, saved->listeners,
	    saved->n_listeners, saved->last_key);
	supervisor->control = control_server_adopt(
	    supervisor, supervisor->hold->conf, saved->control_fd);
	proxy_proc_adopt(supervisor->proxy, &saved->proxy);
	supervisor->apps =
	    mem_alloc_array(saved->n_apps + 1, sizeof(*supervisor->apps));
	for (uint32_t i = 0; i < saved->n_apps; i++)
		if (give_app(supervisor, &saved->apps[i]) == -1)
			return -1;
	return 0;
}

struct control_client *
handover_give_clients(struct supervisor *supervisor, const struct saved *saved)
{
	struct control_client *waiting = NULL;

	for (uint32_t i = 0; i < saved->n_clients; i++) {
		const struct saved_client *from = &saved->clients[i];
		struct control_client *client =
		    control_client_adopt(supervisor->control, from);
		struct app *app = app_find(supervisor, from->follows);

		if (app != NULL)
			log_tail_resume(client, app);
		if (from->waits)
			waiting = client;
	}
	return waiting;
}
