/*
 * The supervisor's own life: start in an order that never leaves half a daemon,
 * signals, and an end that leaves nothing behind.
 * Entered from src/scalwsd.c. The parts do the work; here they are put
 * together.
 */
#include "supervisor/supervisor.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "src/base/log_thread.h"
#include "src/base/mem.h"
#include "src/base/signals.h"
#include "src/base/str.h"
#include "supervisor/access_logs.h"
#include "supervisor/app.h"
#include "supervisor/app_log.h"
#include "supervisor/cgroup.h"
#include "supervisor/control_server.h"
#include "supervisor/instance.h"
#include "supervisor/keeper.h"
#include "supervisor/listen_fds.h"
#include "supervisor/notify.h"
#include "supervisor/process.h"
#include "supervisor/proxy_proc.h"
#include "supervisor/recycle.h"
#include "supervisor/reload.h"
#include "supervisor/reopen.h"
#include "supervisor/secrets.h"
#include "supervisor/stuck.h"
#include "supervisor/ticket_keys.h"
#include "supervisor/upgrade.h"

/* A daemon that was killed a moment ago: its proxy closes the listeners at
 * once, but not before we may be here. */
#define IN_USE_MS 1000
#define ABSENT_MS 30000
#define SELF "/proc/self/exe"
#define SWEEP_MS 20
#define SWEEPS 50 /* passes without a stray until it is over */
#define STOP_CHECK_MS 20
/* timeout(1) and some init programs signal the process and then its group: two
 * signals within this time are one wish. */
#define SAME_STOP_MS 200

static const int signal_numbers[] = { SIGTERM, SIGINT, SIGQUIT, SIGHUP,
	SIGUSR1 };

struct conf_hold *
conf_hold_adopt(struct conf *conf, struct secrets *secrets)
{
	struct conf_hold *hold = mem_alloc(sizeof(*hold));

	hold->conf = conf;
	hold->refs = 1;
	hold->secrets = secrets;
	return hold;
}

struct conf_hold *
conf_hold_new(struct conf *conf, struct conf_errors *errors)
{
	struct conf_hold *hold =
	    conf_hold_adopt(conf, secrets_read(conf, errors));

	if (hold->secrets == NULL || ticket_keys_check(conf, errors) == -1)
		conf_hold_unref(&hold);
	return hold;
}

struct conf_hold *
conf_hold_ref(struct conf_hold *hold)
{
	hold->refs++;
	return hold;
}

void
conf_hold_unref(struct conf_hold **hold_ptr)
{
	struct conf_hold *hold = *hold_ptr;

	*hold_ptr = NULL;
	if (hold == NULL || --hold->refs > 0)
		return;
	secrets_free(&hold->secrets);
	conf_free(hold->conf);
	mem_free(hold);
}

/* ---- what the parts report ---- */

static void
set_sweep_timer(struct supervisor *supervisor)
{
	static const struct timeval soon = { 0, SWEEP_MS * 1000 };

	event_add(supervisor->sweep, &soon);
}

static void
on_sweep(evutil_socket_t fd, short what, void *arg)
{
	struct supervisor *supervisor = arg;

	/* Orphans of the killed come to us one generation at a time, and not
	 * before their parents have quite ended: a pass that sees none is not
	 * the last. */
	if (process_kill_strays(supervisor->processes) > 0)
		supervisor->sweeps_left = SWEEPS;
	else
		supervisor->sweeps_left--;
	cgroup_tidy(supervisor->cgroups);
	if (supervisor->sweeps_left > 0)
		set_sweep_timer(supervisor);
}

void
supervisor_sweep(struct supervisor *supervisor)
{
	supervisor->sweeps_left = SWEEPS;
	set_sweep_timer(supervisor);
}

void
supervisor_on_proxy_hello(struct supervisor *supervisor)
{
	for (size_t i = 0; i < supervisor->n_apps; i++)
		app_tell_state(supervisor->apps[i]);
	ticket_keys_tell(supervisor->tickets);
}

void
supervisor_on_proxy_ready(struct supervisor *supervisor)
{
	if (supervisor->told_ready)
		return;
	supervisor->told_ready = true;
	log_info("serving");
	notify_state("READY=1");
}

static struct instance *
find_instance(const struct supervisor *supervisor, uint64_t id)
{
	struct list *node;

	for (size_t i = 0; i < supervisor->n_apps; i++)
		LIST_FOREACH(node, &supervisor->apps[i]->instances)
		{
			struct instance *instance =
			    LIST_ENTRY(node, struct instance, node);

			if (instance->id == id)
				return instance;
		}
	return NULL;
}

void
supervisor_on_drained(
    struct supervisor *supervisor, uint64_t id, bool but_streams)
{
	struct instance *instance = find_instance(supervisor, id);

	if (instance != NULL)
		instance_event(instance,
		    but_streams ? INSTANCE_QUIET : INSTANCE_DRAINED, NULL);
}

void
supervisor_on_stuck(
    struct supervisor *supervisor, const struct channel_stuck *stuck)
{
	struct instance *instance = find_instance(supervisor, stuck->instance);

	if (instance != NULL && !supervisor->stopping)
		stuck_end(instance, stuck);
}

void
supervisor_on_output(
    struct supervisor *supervisor, const struct channel_output *output)
{
	struct instance *instance = find_instance(supervisor, output->instance);

	if (instance != NULL)
		app_log_line(instance->app->log, instance->pid, output->request,
		    output->line);
}

void
supervisor_on_proxy_gone(struct supervisor *supervisor)
{
	for (size_t i = 0; i < supervisor->n_apps; i++)
		if (supervisor->stopping)
			app_end(supervisor->apps[i]);
}

/* ---- the end ---- */

/* Is anything left of proxy, apps and keepers? */
static void
on_stop_timer(evutil_socket_t fd, short what, void *arg)
{
	struct supervisor *supervisor = arg;
	bool gone = proxy_proc_is_gone(supervisor->proxy) &&
		    process_count(supervisor->processes) == 0;

	for (size_t i = 0; i < supervisor->n_apps && gone; i++)
		gone = app_is_gone(supervisor->apps[i]);
	if (gone)
		event_base_loopbreak(supervisor->base);
}

static void
begin_stop(struct supervisor *supervisor)
{
	static const struct timeval often = { 0, STOP_CHECK_MS * 1000 };
	const struct conf *conf = supervisor->hold->conf;

	log_info("stopping: requests have %d s to end",
	    conf->limits.drain_timeout_ms / 1000);
	supervisor->stopping = true;
	supervisor->stop_ms = clock_now_ms();
	notify_state("STOPPING=1");
	reload_cancel(supervisor);
	upgrade_cancel(supervisor);
	proxy_proc_stop(supervisor->proxy, conf->limits.drain_timeout_ms);
	/* New clients are refused from now on, not left waiting. */
	listen_set_free(&supervisor->listens);
	for (size_t i = 0; i < supervisor->n_apps; i++)
		if (!supervisor->apps[i]->conf->http ||
		    proxy_proc_is_gone(supervisor->proxy))
			app_end(supervisor->apps[i]);
	event_add(supervisor->stop_timer, &often);
}

bool
supervisor_refuse(struct supervisor *supervisor, const char *findings)
{
	struct str rest = str_of(findings), line;

	if (supervisor->told_ready || supervisor->stopping)
		return false;
	while (str_split(&rest, '\n', &line))
		if (line.len > 0)
			log_error("%.*s", (int)line.len, line.ptr);
	supervisor->exit_code = 1;
	begin_stop(supervisor);
	return true;
}

static void
stop_now(struct supervisor *supervisor)
{
	log_warn("stopping at once");
	supervisor->stopping_now = true;
	proxy_proc_stop(supervisor->proxy, 0);
	for (size_t i = 0; i < supervisor->n_apps; i++) {
		app_end(supervisor->apps[i]);
		app_kill(supervisor->apps[i]);
	}
}

void
supervisor_check_apps(struct supervisor *supervisor)
{
	for (size_t i = 0; i < supervisor->n_apps;) {
		struct app *app = supervisor->apps[i];

		if (!app->removed || !app_is_gone(app)) {
			i++;
			continue;
		}
		log_info("app=%s is gone", app->name);
		app_free(&app);
		supervisor->n_apps--;
		memmove(&supervisor->apps[i], &supervisor->apps[i + 1],
		    (supervisor->n_apps - i) * sizeof(app));
	}
}

/* ---- signals ---- */

static void
on_signal(evutil_socket_t signal_no, short what, void *arg)
{
	struct supervisor *supervisor = arg;

	switch (signal_no) {
	case SIGHUP:
		if (!supervisor->stopping)
			reload_start(supervisor, NULL, NULL);
		break;
	case SIGUSR1:
		reopen_logs(supervisor, NULL);
		break;
	default: /* SIGTERM, SIGINT, SIGQUIT */
		if (!supervisor->stopping)
			begin_stop(supervisor);
		else if (!supervisor->stopping_now &&
			 clock_now_ms() - supervisor->stop_ms >= SAME_STOP_MS)
			stop_now(supervisor);
		break;
	}
}

static int
watch_signals(struct supervisor *supervisor)
{
	for (size_t i = 0; i < ARRAY_LEN(signal_numbers); i++) {
		supervisor->signals[i] = evsignal_new(
		    supervisor->base, signal_numbers[i], on_signal, supervisor);
		if (supervisor->signals[i] == NULL ||
		    event_add(supervisor->signals[i], NULL) == -1)
			return -1;
	}
	return 0;
}

/* ---- the start ---- */

/* All that can go wrong for reasons outside: nothing runs before it is done. */
static int
take_resources(struct supervisor *supervisor, struct conf_errors *errors)
{
	const struct conf *conf = supervisor->hold->conf;
	int fds[FRAME_FDS_MAX - 1];
	size_t limit;
	uint32_t n;

	if (access_logs_make_directory(conf, errors) == -1 ||
	    run_dir_open(&supervisor->run, conf, errors) == -1)
		return -1;
	supervisor->listens = listen_set_new();
	if (listen_set_prepare(
		supervisor->listens, conf, IN_USE_MS, ABSENT_MS, errors) == -1)
		return -1;
	listen_set_commit(supervisor->listens);
	if (access_logs_open(conf, fds, &n, errors) == -1)
		return -1;
	while (n > 0)
		fd_close(&fds[--n]);
	if (fd_raise_limit(&supervisor->nofile_was, &limit) == -1)
		log_errno("cannot raise the limit of descriptors");
	supervisor->control = control_server_new(supervisor, conf, errors);
	if (supervisor->control == NULL)
		return -1;
	/* Last: what fails before goes to where the administrator looks. */
	return access_logs_open_error(conf, errors);
}

static void
on_watchdog(evutil_socket_t fd, short what, void *arg)
{
	notify_state("WATCHDOG=1");
}

/* The loop turns: twice as often as it must be. */
static int
begin_watchdog(struct supervisor *supervisor)
{
	int ms = notify_watchdog_ms() / 2;
	struct timeval often = { ms / 1000, ms % 1000 * 1000 };

	if (ms == 0)
		return 0;
	supervisor->watchdog =
	    event_new(supervisor->base, -1, EV_PERSIST, on_watchdog, NULL);
	if (supervisor->watchdog == NULL)
		return -1;
	return event_add(supervisor->watchdog, &often);
}

int
supervisor_make_parts(struct supervisor *supervisor)
{
	const struct conf *conf = supervisor->hold->conf;

	supervisor->cgroups =
	    cgroup_enter(supervisor->first->conf->run_directory);
	supervisor->processes = process_table_new(supervisor->base);
	supervisor->log_writer = log_writer_new(supervisor->base);
	supervisor->proxy = proxy_proc_new(supervisor);
	supervisor->recycle = recycle_new(supervisor);
	supervisor->tickets = ticket_keys_new(supervisor);
	ticket_keys_configure(supervisor->tickets, conf);
	supervisor->sweep = evtimer_new(supervisor->base, on_sweep, supervisor);
	supervisor->stop_timer = event_new(
	    supervisor->base, -1, EV_PERSIST, on_stop_timer, supervisor);
	if (supervisor->log_writer == NULL || supervisor->sweep == NULL ||
	    supervisor->recycle == NULL || begin_watchdog(supervisor) == -1 ||
	    supervisor->stop_timer == NULL || watch_signals(supervisor) == -1)
		return -1;
	return 0;
}

static void
make_apps(struct supervisor *supervisor)
{
	const struct conf *conf = supervisor->hold->conf;

	supervisor->apps =
	    mem_alloc_array(conf->n_apps + 1, sizeof(*supervisor->apps));
	for (size_t i = 0; i < conf->n_apps; i++)
		supervisor->apps[supervisor->n_apps++] =
		    app_new(supervisor, supervisor->hold, &conf->apps[i]);
}

void
supervisor_release(struct supervisor *supervisor)
{
	upgrade_free(supervisor);
	reopen_free(supervisor);
	control_server_free(&supervisor->control);
	recycle_free(&supervisor->recycle);
	ticket_keys_free(&supervisor->tickets);
	proxy_proc_free(&supervisor->proxy);
	for (size_t i = 0; i < supervisor->n_apps; i++)
		app_free(&supervisor->apps[i]);
	mem_free(supervisor->apps);
	log_writer_free(&supervisor->log_writer);
	process_table_free(&supervisor->processes);
	for (size_t i = 0; i < ARRAY_LEN(supervisor->signals); i++)
		if (supervisor->signals[i] != NULL)
			event_free(supervisor->signals[i]);
	if (supervisor->sweep != NULL)
		event_free(supervisor->sweep);
	if (supervisor->stop_timer != NULL)
		event_free(supervisor->stop_timer);
	if (supervisor->watchdog != NULL)
		event_free(supervisor->watchdog);
	listen_set_free(&supervisor->listens);
	cgroup_leave(&supervisor->cgroups);
	run_dir_close(&supervisor->run);
	conf_hold_unref(&supervisor->hold);
	conf_hold_unref(&supervisor->first);
	fd_close(&supervisor->exe_fd);
	mem_free(supervisor->exe_path);
	if (supervisor->base != NULL)
		event_base_free(supervisor->base);
}

/* stdin is /dev/null and 1 and 2 are open, so that no socket becomes one. */
static void
settle_descriptors(void)
{
	int fd = open("/dev/null", O_RDWR);

	while (fd != -1 && fd < STDERR_FILENO)
		fd = dup(fd);
	if (fd > STDERR_FILENO) {
		if (dup2(fd, STDIN_FILENO) == -1)
			log_errno("cannot close standard input");
		close(fd);
	}
}

static struct conf *
load(const char *path, struct conf_errors *errors)
{
	struct conf *conf = conf_load(path, errors);
	enum log_level level;

	if (errors->warnings_text.len > 0)
		fprintf(stderr, "%s", errors->warnings_text.ptr);
	if (conf != NULL && log_level_parse(conf->log_level, &level) == 0)
		log_init("supervisor", level, STDERR_FILENO);
	return conf;
}

/* A signal that comes while we start waits until the loop can serve it: the
 * default action would leave a lock and sockets behind. What else would end us
 * does nothing (a log at its file size limit is an error of write). */
static void
hold_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(signal_numbers); i++)
		sigaddset(&set, signal_numbers[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals_ignore(&set);
}

static bool
stop_is_pending(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 &&
	       (sigismember(&pending, SIGTERM) == 1 ||
		   sigismember(&pending, SIGINT) == 1 ||
		   sigismember(&pending, SIGQUIT) == 1);
}

/* Which binary we are: an upgrade takes what lies at this path, and comes back
 * to this descriptor. */
static void
find_binary(struct supervisor *supervisor)
{
	char path[4096];
	ssize_t n = readlink(SELF, path, sizeof(path) - 1);

	if (n > 0)
		supervisor->exe_path = mem_memdup0(path, (size_t)n);
	supervisor->exe_fd = open(SELF, O_RDONLY | O_CLOEXEC);
}

void
supervisor_init(struct supervisor *supervisor, const char *conf_path)
{
	const char *datadir = secure_getenv("SCALWS_DATADIR");

	hold_signals();
	memset(supervisor, 0, sizeof(*supervisor));
	supervisor->run.lock_fd = -1;
	supervisor->conf_path = conf_path;
	supervisor->datadir = datadir != NULL ? datadir : SCALWS_DATADIR;
	supervisor->started_ms = clock_now_ms();
	find_binary(supervisor);
	umask(077);
	log_init("supervisor", LOG_LEVEL_INFO, STDERR_FILENO);
}

int
supervisor_run(const char *conf_path)
{
	struct supervisor supervisor;
	struct conf_errors errors;
	struct conf *conf;
	int result;

	settle_descriptors();
	supervisor_init(&supervisor, conf_path);
	conf_errors_init(&errors);
	conf = load(conf_path, &errors);
	if (conf != NULL)
		supervisor.hold = conf_hold_new(conf, &errors);
	if (supervisor.hold != NULL)
		supervisor.first = conf_hold_ref(supervisor.hold);
	supervisor.base = event_base_new();
	if (supervisor.hold == NULL || supervisor.base == NULL ||
	    take_resources(&supervisor, &errors) == -1 ||
	    supervisor_make_parts(&supervisor) == -1) {
		result = stop_is_pending() ? 0 : 1;
		fprintf(stderr, "%s",
		    result == 0           ? ""
		    : errors.text.len > 0 ? errors.text.ptr
					  : "scalwsd: cannot start\n");
		conf_errors_free(&errors);
		supervisor_release(&supervisor);
		log_thread_end();
		return result;
	}
	conf_errors_free(&errors);
	make_apps(&supervisor);
	signals_let_in();
	log_info("scalwsd %s starts with %s", SCALWS_VERSION, conf_path);
	proxy_proc_start(supervisor.proxy);
	for (size_t i = 0; i < supervisor.n_apps; i++)
		app_start(supervisor.apps[i], NULL, NULL);
	event_base_dispatch(supervisor.base);
	log_info("stopped");
	result = supervisor.exit_code;
	supervisor_release(&supervisor);
	log_thread_end();
	return result;
}

int
supervisor_run_keeper(int channel_fd)
{
	log_init("keeper", LOG_LEVEL_INFO, STDERR_FILENO);
	return keeper_run(channel_fd);
}
