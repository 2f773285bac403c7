/*
 * Starts the keeper of an instance with all that its app inherits, and hears
 * from it. Called by instance.c; tells it by instance_event.
 * Knows no policy: no back-off, no draining.
 */
#include "supervisor/instance_proc.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/ipc/frame.h"
#include "supervisor/app.h"
#include "supervisor/app_log.h"
#include "supervisor/cgroup.h"
#include "supervisor/keeper.h"
#include "supervisor/proxy_proc.h"
#include "supervisor/saved.h"
#include "supervisor/supervisor.h"

#define QUEUE_MAX (256 * 1024)
#define NAME_MAX_BYTES 96
#define LAST_WORDS 10 /* lines */

enum name_kind { NAME_SOCKET, NAME_STATUS, NAME_PLACE };

/* Of a file in the run directory; new for each process, so that nobody can
 * hold on to an older one's. */
static void
name_of(const struct instance *instance, enum name_kind kind,
    char to[NAME_MAX_BYTES])
{
	static const char *const suffixes[] = { ".sock", ".status.sock",
		".place" };

	snprintf(to, NAME_MAX_BYTES, "%s.%llu%s", instance->app->name,
	    (unsigned long long)instance->id, suffixes[kind]);
}

/* ---- who it runs as ---- */

struct account {
	struct priv priv;
	bool become;
	char home[256];
};

static int
find_account(const struct conf_app *conf, struct account *account, char *why,
    size_t why_size)
{
	const char *what = "";
	struct passwd *entry;
	char number[32];
	const char *user = conf->user;

	memset(account, 0, sizeof(*account));
	account->become = geteuid() == 0 && conf->user != NULL;
	if (!account->become) {
		snprintf(number, sizeof(number), "%u", (unsigned)geteuid());
		user = number;
	}
	if (priv_lookup(user, account->become ? conf->group : NULL,
		&account->priv, &what) == -1) {
		snprintf(why, why_size, "there is no %s", what);
		return -1;
	}
	/* Single user of the passwd functions in this thread; the log thread
	 * does not look anybody up. */
	entry = getpwuid(account->priv.uid);
	snprintf(account->home, sizeof(account->home), "%s",
	    entry != NULL && entry->pw_dir[0] == '/' ? entry->pw_dir : "/");
	if (account->become && account->priv.uid == 0 && !conf->allow_root) {
		snprintf(why, why_size, "it must not run as root");
		return -1;
	}
	return 0;
}

/* ---- sockets ---- */

/* A loopback port that is free now. The app binds it itself: somebody else may
 * be quicker, then the app fails and is started with another one. */
static unsigned
find_port(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	unsigned port = 0;

	if (fd != -1 && bind(fd, (struct sockaddr *)&addr, len) == 0 &&
	    getsockname(fd, (struct sockaddr *)&addr, &len) == 0)
		port = ntohs(addr.sin_port);
	fd_close(&fd);
	return port;
}

static void
add_port_addr(struct instance *instance)
{
	struct addr *addr = &instance->addrs[instance->n_addrs++];

	memset(addr, 0, sizeof(*addr));
	addr->len = sizeof(addr->u.in);
	addr->u.in.sin_family = AF_INET;
	addr->u.in.sin_port = htons((uint16_t)instance->port);
	addr->u.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

static int
make_listeners(struct instance *instance)
{
	const struct run_dir *run = &instance->app->supervisor->run;
	char name[NAME_MAX_BYTES];
	struct addr status;

	name_of(instance, NAME_SOCKET, name);
	instance->listen_fd =
	    run_dir_listen(run, name, &instance->addrs[instance->n_addrs]);
	if (instance->listen_fd == -1)
		return -1;
	instance->n_addrs++;
	if (!instance->traits.status_listener)
		return 0;
	name_of(instance, NAME_STATUS, name);
	instance->status_fd = run_dir_listen(run, name, &status);
	return instance->status_fd == -1 ? -1 : 0;
}

static int
make_place(struct instance *instance, uid_t uid)
{
	const struct run_dir *run = &instance->app->supervisor->run;
	char name[NAME_MAX_BYTES], path[4096];

	name_of(instance, NAME_PLACE, name);
	if (run_dir_make_place(run, name, uid) == -1)
		return -1;
	snprintf(path, sizeof(path), "%s/%s/app.sock", run->path, name);
	if (addr_unix(path, &instance->addrs[instance->n_addrs]) == -1) {
		errno = ENAMETOOLONG;
		return -1;
	}
	instance->n_addrs++;
	return 0;
}

static int
make_sockets(struct instance *instance, uid_t uid)
{
	const struct runtime_traits *traits = &instance->traits;
	struct supervisor *supervisor = instance->app->supervisor;

	instance->n_addrs = 0;
	if (traits->port) {
		instance->port = find_port();
		if (instance->port == 0)
			return -1;
		if (!traits->listener && !supervisor->told_port) {
			supervisor->told_port = true;
			log_warn("app=%s listens on a loopback port, which "
				 "every local user can reach",
			    instance->app->name);
		}
	}
	if (traits->port && traits->port_first)
		add_port_addr(instance);
	if (traits->listener && make_listeners(instance) == -1)
		return -1;
	if (traits->own_socket && make_place(instance, uid) == -1)
		return -1;
	if (traits->port && !traits->port_first)
		add_port_addr(instance);
	return 0;
}

/* ---- the description for the keeper ---- */

static const char *
socket_path(const struct instance *instance)
{
	for (unsigned i = 0; i < instance->n_addrs; i++)
		if (instance->addrs[i].u.sa.sa_family == AF_UNIX)
			return instance->addrs[i].u.un.sun_path;
	return NULL;
}

/* Our own limit was raised: the app gets the usual one. */
static void
restore_nofile(const struct instance *instance, struct spawn_spec *spec)
{
	struct rlimit now;

	for (size_t i = 0; i < spec->n_limits; i++)
		if (spec->limits[i].resource == RLIMIT_NOFILE)
			return;
	if (spec->n_limits == SPAWN_LIMITS_MAX ||
	    getrlimit(RLIMIT_NOFILE, &now) == -1)
		return;
	spec->limits[spec->n_limits++] = (struct conf_limit){
		.resource = RLIMIT_NOFILE,
		.soft = instance->app->supervisor->nofile_was,
		.hard =
		    now.rlim_max == RLIM_INFINITY ? UINT64_MAX : now.rlim_max,
	};
}

/* Both memfds; -1 with `why`. *config_fd is -1 when the runtime has no file. */
static int
describe(struct instance *instance, const struct account *account, int *spec_fd,
    int *config_fd, char *why, size_t why_size)
{
	const struct app *app = instance->app;
	struct runtime_place place = {
		.socket = socket_path(instance),
		.port = instance->port,
		.notify = readiness_notify_name(instance->readiness),
		.datadir = app->supervisor->datadir,
		.environment = (const char *const *)app->environment.items,
		.before = !app->before_done,
	};
	struct strbuf text = STRBUF_EMPTY, file = STRBUF_EMPTY;
	struct spawn_spec spec;
	int result;

	memset(&spec, 0, sizeof(spec));
	result = runtime_build(app->conf, &place, account->home,
	    account->priv.user, &spec, &file, why, why_size);
	if (result == 0) {
		spec.cgroup = mem_strdup(app->supervisor->cgroups);
		spec.name = mem_strdup(app->name);
		spec.become = account->become;
		spec.identity = account->priv;
		restore_nofile(instance, &spec);
		spawn_encode(&spec, &text);
		*spec_fd = fd_memfd_sealed("scalws-spec", text.ptr, text.len);
		if (file.len > 0)
			*config_fd =
			    fd_memfd_sealed("scalws-conf", file.ptr, file.len);
		if (*spec_fd == -1 || (file.len > 0 && *config_fd == -1)) {
			snprintf(why, why_size, "memfd: %s", strerror(errno));
			result = -1;
		}
	}
	strbuf_free(&text);
	strbuf_free(&file);
	spawn_spec_free(&spec);
	return result;
}

/* ---- the keeper ---- */

static void
on_keeper_message(struct instance *instance, struct frame_in *in)
{
	char text[PROCESS_EXIT_TEXT_MAX], why[INSTANCE_REASON_MAX];
	uint32_t number;
	size_t said;

	switch (in->type) {
	case KEEPER_FORKED:
		instance->said_by = (pid_t)frame_get_u32(in);
		app_pipe_set_pid(instance->pipes[0], instance->said_by);
		app_pipe_set_pid(instance->pipes[1], instance->said_by);
		break;
	case KEEPER_STARTED:
		instance->pid = (pid_t)frame_get_u32(in);
		if (!instance->app->before_done) {
			instance->app->before_done = true;
			app_changed(instance->app);
		}
		if (instance->readiness != NULL)
			readiness_begin(instance->readiness);
		break;
	case KEEPER_CANNOT:
		snprintf(why, sizeof(why), "%s", frame_get_text(in));
		instance_event(instance, INSTANCE_CANNOT, why);
		break;
	case KEEPER_BEFORE:
		number = frame_get_u32(in);
		instance->exited = true;
		snprintf(instance->last_exit, sizeof(instance->last_exit),
		    "before_start: %s", process_exit_text((int)number, text));
		break;
	case KEEPER_EXITED:
		number = frame_get_u32(in);
		instance->exited = true;
		/* How it ended is no answer where we gave it up. */
		said = instance->given_up ? strlen(instance->last_exit) : 0;
		snprintf(instance->last_exit + said,
		    sizeof(instance->last_exit) - said, "%spid %d: %s",
		    said == 0 ? "" : "; ", (int)instance->pid,
		    process_exit_text((int)number, text));
		break;
	default:
		log_warn(
		    "app=%s: keeper says %u", instance->app->name, in->type);
		break;
	}
}

static void
on_keeper_readable(evutil_socket_t fd, short what, void *arg)
{
	struct instance *instance = arg;
	static struct frame_in in;

	/* A message may release the instance and with it the link. */
	while (instance->link != NULL) {
		switch (frame_link_recv(instance->link, &in)) {
		case FRAME_AGAIN:
			return;
		case FRAME_GOT:
			on_keeper_message(instance, &in);
			frame_done(&in);
			break;
		case FRAME_CLOSED:
		case FRAME_BROKEN:
			/* Its exit is reported by on_keeper_exit. */
			event_del(instance->link_event);
			return;
		}
	}
}

/* It never became ready: what it printed last stands in the daemon's own log,
 * where people look first. */
static void
log_last_words(const struct instance *instance)
{
	struct strbuf text = STRBUF_EMPTY;
	struct str rest, line;

	app_log_last(instance->app->log, LAST_WORDS, instance->said_by, &text);
	rest = (struct str){ text.ptr, text.len };
	while (text.len > 0 && str_split(&rest, '\n', &line))
		if (line.len > CLOCK_ISO_LEN)
			log_warn("app=%s said%.*s", instance->app->name,
			    (int)(line.len - CLOCK_ISO_LEN),
			    line.ptr + CLOCK_ISO_LEN);
	strbuf_free(&text);
}

/* Its directory is removed at our end. */
static void
kill_cgroup(const struct instance *instance)
{
	const struct app *app = instance->app;
	char path[CGROUP_PATH_MAX];

	if (app->supervisor->cgroups == NULL)
		return;
	cgroup_path(
	    app->supervisor->cgroups, app->name, instance->keeper, path);
	cgroup_kill(path);
}

static void
on_keeper_exit(pid_t pid, int status, void *arg)
{
	struct instance *instance = arg;
	char text[PROCESS_EXIT_TEXT_MAX];

	/* What it said last comes first. */
	on_keeper_readable(-1, 0, instance);
	if (instance->keeper != pid)
		return; /* released by that message */
	if (!instance->exited) {
		snprintf(instance->last_exit, sizeof(instance->last_exit),
		    "its keeper was %s", process_exit_text(status, text));
		log_error("app=%s pid=%d %s", instance->app->name,
		    (int)instance->pid, instance->last_exit);
		if (instance->pid > 0)
			kill(-instance->pid, SIGKILL);
		kill_cgroup(instance);
		supervisor_sweep(instance->app->supervisor);
	}
	snprintf(instance->app->last_exit, sizeof(instance->app->last_exit),
	    "%s", instance->last_exit);
	proxy_proc_withdraw_dead(instance->app->supervisor->proxy, instance->id,
	    instance->listen_fd);
	instance->announced = false;
	instance_proc_release(instance);
	if (instance->state == INSTANCE_STARTING || instance->given_up)
		log_last_words(instance);
	app_log_note(instance->app->log, "%s", instance->last_exit);
	instance_event(instance, INSTANCE_GONE, NULL);
}

static void
on_ready(unsigned at, void *arg)
{
	struct instance *instance = arg;

	instance->addr = instance->addrs[at];
	instance_event(instance, INSTANCE_READY, NULL);
}

static void
plan_readiness(
    const struct instance *instance, uid_t uid, struct readiness_plan *plan)
{
	const struct conf_app *conf = instance->app->conf;

	memset(plan, 0, sizeof(*plan));
	plan->probe = conf->http;
	plan->protocol = instance->traits.protocol;
	plan->path = instance->traits.probe_path;
	plan->host = conf->probe.host == NULL ? "localhost" : conf->probe.host;
	memcpy(plan->addrs, instance->addrs, sizeof(plan->addrs));
	plan->n_addrs = instance->n_addrs;
	plan->status = conf->probe.status;
	plan->notify = instance->traits.notify;
	plan->watchdog_ms = conf->watchdog_ms;
	plan->uid = uid;
}

/* stdout and stderr: our ends become app_pipes, the app's ends go to `ends`. */
static int
make_pipes(struct instance *instance, int ends[2])
{
	for (int i = 0; i < 2; i++) {
		int fds[2];

		if (pipe2(fds, O_CLOEXEC) == -1)
			return -1;
		instance->pipes[i] = app_pipe_new(instance->app->log, fds[0]);
		ends[i] = fds[1];
	}
	return 0;
}

static int
watch_keeper(struct instance *instance, int channel)
{
	instance->link = frame_link_new(channel, QUEUE_MAX);
	instance->link_event = event_new(instance->app->supervisor->base,
	    channel, EV_READ | EV_PERSIST, on_keeper_readable, instance);
	return instance->link_event == NULL
		   ? -1
		   : event_add(instance->link_event, NULL);
}

static int
start_keeper(
    struct instance *instance, int spec_fd, const int *pipe_ends, int config_fd)
{
	struct supervisor *supervisor = instance->app->supervisor;
	static struct frame_out out;
	char label[NAME_MAX_BYTES];
	int channel = -1;

	snprintf(label, sizeof(label), "%s/%llu", instance->app->name,
	    (unsigned long long)instance->id);
	instance->keeper = process_start(supervisor->processes, "keeper", label,
	    &channel, on_keeper_exit, instance);
	if (instance->keeper == -1) {
		instance->keeper = 0;
		return -1;
	}
	if (watch_keeper(instance, channel) == -1)
		return -1;
	frame_begin(&out, KEEPER_SPEC);
	frame_put_fd(&out, spec_fd);
	frame_put_fd(&out, pipe_ends[0]);
	frame_put_fd(&out, pipe_ends[1]);
	if (instance->listen_fd != -1)
		frame_put_fd(&out, instance->listen_fd);
	if (instance->status_fd != -1)
		frame_put_fd(&out, instance->status_fd);
	if (config_fd != -1)
		frame_put_fd(&out, config_fd);
	return frame_link_send(instance->link, &out);
}

int
instance_proc_start(struct instance *instance, char *why, size_t why_size)
{
	int spec_fd = -1, config_fd = -1, ends[2] = { -1, -1 };
	struct readiness_plan plan;
	struct account account;
	int result = -1;

	instance->exited = false;
	instance->said_by = 0;
	instance->ready_at_ms = 0;
	runtime_traits(instance->app->conf, &instance->traits);
	if (instance->app->env_problem[0] != '\0') {
		snprintf(why, why_size, "%s", instance->app->env_problem);
		return -1;
	}
	if (find_account(instance->app->conf, &account, why, why_size) == -1)
		return -1;
	if (make_sockets(instance, account.priv.uid) == -1) {
		snprintf(why, why_size, "cannot make its socket: %s",
		    strerror(errno));
		return -1;
	}
	plan_readiness(instance, account.priv.uid, &plan);
	instance->readiness =
	    readiness_new(instance->app->supervisor, &plan, on_ready, instance);
	if (describe(instance, &account, &spec_fd, &config_fd, why, why_size) ==
	    0) {
		if (make_pipes(instance, ends) == 0)
			result =
			    start_keeper(instance, spec_fd, ends, config_fd);
		if (result == -1)
			snprintf(why, why_size, "cannot start a process: %s",
			    strerror(errno));
	}
	fd_close(&spec_fd);
	fd_close(&config_fd);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
	return result;
}

void
instance_proc_stop(struct instance *instance, bool now)
{
	static struct frame_out out;

	if (instance->link == NULL)
		return;
	frame_begin(&out, now ? KEEPER_KILL : KEEPER_STOP);
	if (frame_link_send(instance->link, &out) == -1)
		log_errno("app=%s: keeper", instance->app->name);
}

void
instance_proc_release(struct instance *instance)
{
	const struct run_dir *run = &instance->app->supervisor->run;
	char name[NAME_MAX_BYTES];

	if (instance->keeper != 0)
		process_forget(
		    instance->app->supervisor->processes, instance->keeper);
	instance->keeper = instance->pid = 0;
	readiness_free(&instance->readiness);
	if (instance->link_event != NULL)
		event_free(instance->link_event);
	instance->link_event = NULL;
	/* A keeper that still lives sees the end and stops its app. */
	frame_link_free(&instance->link);
	app_pipe_close(&instance->pipes[0]);
	app_pipe_close(&instance->pipes[1]);
	if (instance->listen_fd != -1) {
		name_of(instance, NAME_SOCKET, name);
		run_dir_remove(run, name);
	}
	if (instance->status_fd != -1) {
		name_of(instance, NAME_STATUS, name);
		run_dir_remove(run, name);
	}
	fd_close(&instance->listen_fd);
	fd_close(&instance->status_fd);
	if (instance->traits.own_socket && instance->id != 0) {
		name_of(instance, NAME_PLACE, name);
		run_dir_remove_place(run, name);
	}
	instance->port = 0;
	instance->n_addrs = 0;
}

bool
instance_proc_is_flushed(const struct instance *instance)
{
	return instance->link == NULL ||
	       !frame_link_wants_write(instance->link);
}

/* It is not ready, or has a watchdog. */
static void
adopt_readiness(struct instance *instance, const struct saved_instance *from)
{
	bool starts = instance->state == INSTANCE_STARTING;
	struct readiness_plan plan;
	int fd = from->notify_fd;

	plan_readiness(instance, (uid_t)from->notify_uid, &plan);
	if (!starts && (fd == -1 || plan.watchdog_ms == 0)) {
		fd_close(&fd);
		return;
	}
	instance->readiness = readiness_adopt(
	    instance->app->supervisor, &plan, fd, on_ready, instance);
	if (!starts)
		instance_watch(instance);
	else if (instance->pid > 0)
		readiness_begin(instance->readiness);
}

int
instance_proc_adopt(
    struct instance *instance, const struct saved_instance *from)
{
	struct app *app = instance->app;

	instance->id = from->id;
	instance->keeper = (pid_t)from->keeper;
	instance->pid = (pid_t)from->pid;
	instance->exited = from->exited;
	instance->listen_fd = from->listen_fd;
	instance->status_fd = from->status_fd;
	instance->port = from->port;
	instance->n_addrs = from->n_addrs;
	memcpy(instance->addrs, from->addrs, sizeof(instance->addrs));
	instance->addr = from->addr;
	for (int i = 0; i < 2; i++)
		instance->pipes[i] = app_pipe_adopt(app->log, &from->pipes[i]);
	instance->said_by = (pid_t)from->pipes[0].pid;
	adopt_readiness(instance, from);
	if (instance->keeper == 0)
		return 0;
	process_adopt(app->supervisor->processes, instance->keeper,
	    on_keeper_exit, instance);
	return watch_keeper(instance, from->link_fd);
}
