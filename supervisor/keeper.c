/*
 * The keeper process: starts one app, waits, and ends its whole tree.
 * Started by instance.c through process.c; runs keeper_child_run in its child.
 * Stays root where the supervisor is root, and does nothing but this.
 */
#include "supervisor/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/ipc/frame.h"
#include "supervisor/cgroup.h"
#include "supervisor/spawn.h"
#include "supervisor/tree.h"

#define QUEUE_MAX 65536
#define SPEC_BYTES_MAX (8 * 1024 * 1024)
#define SECOND_SIGNAL_MS 1000
/* The supervisor is gone: nobody drains, so nothing is waited for long. */
#define ORPHAN_STOP_MS 5000
#define WALK_PAUSE_NS 2000000

enum phase {
	PHASE_RUNNING,
	PHASE_STOPPING, /* the stop signal was sent */
	PHASE_FORCING,  /* the second signal was sent */
	PHASE_KILLING,  /* SIGKILL was sent */
};

struct keeper {
	struct frame_link *link; /* NULL: the supervisor is gone */
	struct spawn_spec spec;
	pid_t child; /* leader of the app's process group; 0: none yet */
	bool before; /* `child` is before_start */
	int fds[KEEPER_FDS_MAX]; /* the app's, until it has them */
	unsigned n_fds;
	char cgroup[CGROUP_PATH_MAX];
	int cgroup_fd; /* -1: there is none */
	enum phase phase;
	int64_t deadline_ms; /* of the phase */
	bool done;
};

static void
tell(struct keeper *keeper, const struct frame_out *out)
{
	/* A supervisor that is gone shows as end of file in the loop. */
	if (keeper->link != NULL && frame_link_send(keeper->link, out) == -1)
		log_debug("supervisor does not listen");
}

static void
tell_cannot(struct keeper *keeper, const char *why)
{
	static struct frame_out out;

	frame_begin(&out, KEEPER_CANNOT);
	frame_put_text(&out, why);
	tell(keeper, &out);
	keeper->done = true;
}

static void
tell_number(struct keeper *keeper, enum keeper_message type, uint32_t number)
{
	static struct frame_out out;

	frame_begin(&out, (uint16_t)type);
	frame_put_u32(&out, number);
	tell(keeper, &out);
}

static void
signal_group(struct keeper *keeper, int signal_no)
{
	if (keeper->child > 0)
		kill(-keeper->child, signal_no);
}

static void
stop(struct keeper *keeper, int timeout_ms)
{
	if (keeper->phase != PHASE_RUNNING)
		return;
	keeper->phase = PHASE_STOPPING;
	keeper->deadline_ms = clock_now_ms() + timeout_ms;
	signal_group(keeper, keeper->spec.stop_signal);
	/* A stopped process would not see it. */
	signal_group(keeper, SIGCONT);
}

static void
kill_now(struct keeper *keeper)
{
	keeper->phase = PHASE_KILLING;
	keeper->deadline_ms = INT64_MAX;
	signal_group(keeper, SIGKILL);
	if (keeper->cgroup_fd != -1)
		cgroup_kill(keeper->cgroup);
}

static void
next_phase(struct keeper *keeper)
{
	if (keeper->phase == PHASE_STOPPING &&
	    keeper->spec.second_signal != 0) {
		keeper->phase = PHASE_FORCING;
		keeper->deadline_ms = clock_now_ms() + SECOND_SIGNAL_MS;
		signal_group(keeper, keeper->spec.second_signal);
		return;
	}
	kill_now(keeper);
}

/* SIGKILL to every descendant until there is none: those that left the group
 * by setsid or a double fork are ours as subreaper. */
static void
end_tree(const struct keeper *keeper)
{
	struct timespec pause = { 0, WALK_PAUSE_NS };
	struct tree tree;
	size_t left;

	/* None of those that are in it can fork meanwhile. */
	if (keeper->cgroup_fd != -1)
		cgroup_kill(keeper->cgroup);
	do {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			continue;
		if (tree_read(&tree) == -1)
			return;
		left = tree_mark_below(&tree, getpid());
		for (size_t i = 0; i < tree.n; i++)
			if (tree.processes[i].below)
				kill(tree.processes[i].pid, SIGKILL);
		tree_free(&tree);
		if (left > 0)
			nanosleep(&pause, NULL);
	} while (left > 0);
}

/* ---- starting ---- */

/* The pipes must end when the app's ends are closed. */
static void
close_fds(struct keeper *keeper)
{
	while (keeper->n_fds > 0)
		fd_close(&keeper->fds[--keeper->n_fds]);
}

static void
make_cgroup(struct keeper *keeper)
{
	const struct spawn_spec *spec = &keeper->spec;

	if (spec->cgroup == NULL || spec->name == NULL)
		return;
	cgroup_path(spec->cgroup, spec->name, getpid(), keeper->cgroup);
	keeper->cgroup_fd = cgroup_make(keeper->cgroup);
}

/* Fork; in the child become the app, or what runs before it. Waits until exec
 * has worked or failed. */
static void
start(struct keeper *keeper)
{
	char text[512];
	int error[2];
	ssize_t n;
	pid_t pid;

	if (pipe2(error, O_CLOEXEC) == -1) {
		tell_cannot(keeper, "no pipe");
		return;
	}
	pid = cgroup_fork(keeper->cgroup_fd);
	if (pid == 0) {
		close(error[0]);
		keeper_child_run(&keeper->spec, keeper->before, keeper->fds,
		    keeper->n_fds, error[1]);
	}
	close(error[1]);
	if (pid == -1) {
		snprintf(
		    text, sizeof(text), "cannot fork: %s", strerror(errno));
		close(error[0]);
		tell_cannot(keeper, text);
		return;
	}
	setpgid(pid, pid);
	keeper->child = pid;
	tell_number(keeper, KEEPER_FORKED, (uint32_t)pid);
	do {
		n = read(error[0], text, sizeof(text) - 1);
	} while (n == -1 && errno == EINTR);
	close(error[0]);
	if (n > 0) {
		text[n] = '\0';
		waitpid(pid, NULL, 0);
		keeper->child = 0;
		tell_cannot(keeper, text);
		return;
	}
	if (!keeper->before)
		tell_number(keeper, KEEPER_STARTED, (uint32_t)pid);
}

/* ---- its end ---- */

/* Some kernels kill whoever is born into a cgroup that was killed before. */
static void
renew_cgroup(struct keeper *keeper)
{
	if (keeper->cgroup_fd == -1)
		return;
	cgroup_remove(keeper->cgroup);
	fd_close(&keeper->cgroup_fd);
	make_cgroup(keeper);
}

/* What ran before the app has ended, and with it all that it left. */
static void
after_before(struct keeper *keeper, int status)
{
	keeper->child = 0;
	if (status == 0 && keeper->phase == PHASE_RUNNING) {
		keeper->before = false;
		renew_cgroup(keeper);
		start(keeper);
	} else {
		tell_number(keeper, KEEPER_BEFORE, (uint32_t)status);
		keeper->done = true;
	}
	close_fds(keeper);
}

static void
on_child_signal(struct keeper *keeper)
{
	siginfo_t info;
	int status = 0;

	memset(&info, 0, sizeof(info));
	/* Looked at before it is waited for: as long as it is a zombie its
	 * group's number cannot be another's. */
	if (keeper->child > 0 &&
	    waitid(P_PID, (id_t)keeper->child, &info,
		WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    info.si_pid == keeper->child) {
		signal_group(keeper, SIGKILL);
		if (waitpid(keeper->child, &status, 0) == keeper->child &&
		    !keeper->before)
			tell_number(keeper, KEEPER_EXITED, (uint32_t)status);
		end_tree(keeper);
		if (keeper->before)
			after_before(keeper, status);
		else
			keeper->done = true;
		return;
	}
	/* Orphans of the app: everyone but the app itself. */
	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid != 0 && info.si_pid != keeper->child)
		waitpid(info.si_pid, NULL, WNOHANG);
}

static void
take_spec(struct keeper *keeper, struct frame_in *in)
{
	int spec_fd = frame_take_fd(in);
	char *text = NULL;
	size_t len = 0;

	if (keeper->child != 0 || keeper->n_fds > 0) {
		tell_cannot(keeper, "the keeper has its process");
		fd_close(&spec_fd);
		return;
	}
	while (in->next_fd < in->n_fds && keeper->n_fds < KEEPER_FDS_MAX)
		keeper->fds[keeper->n_fds++] = frame_take_fd(in);
	if (keeper->n_fds < 2 || !frame_is_whole(in) ||
	    fd_read_whole(spec_fd, SPEC_BYTES_MAX, &text, &len) == -1 ||
	    spawn_decode(text, len, &keeper->spec) == -1) {
		tell_cannot(keeper, "the keeper does not understand");
	} else {
		keeper->before = keeper->spec.before.n > 0;
		make_cgroup(keeper);
		start(keeper);
	}
	mem_free(text);
	fd_close(&spec_fd);
	if (!keeper->before)
		close_fds(keeper);
}

static void
on_message(struct keeper *keeper, struct frame_in *in)
{
	switch (in->type) {
	case KEEPER_SPEC:
		take_spec(keeper, in);
		break;
	case KEEPER_STOP:
		stop(keeper, keeper->spec.stop_timeout_ms);
		break;
	case KEEPER_KILL:
		kill_now(keeper);
		break;
	default:
		log_warn("keeper: unknown message %u", in->type);
		break;
	}
}

static void
on_supervisor_gone(struct keeper *keeper)
{
	int timeout_ms = keeper->spec.stop_timeout_ms;

	frame_link_free(&keeper->link);
	if (keeper->child == 0)
		keeper->done = true;
	else
		stop(keeper,
		    timeout_ms < ORPHAN_STOP_MS ? timeout_ms : ORPHAN_STOP_MS);
}

static void
on_readable(struct keeper *keeper)
{
	static struct frame_in in;

	while (!keeper->done && keeper->link != NULL) {
		switch (frame_link_recv(keeper->link, &in)) {
		case FRAME_AGAIN:
			return;
		case FRAME_GOT:
			on_message(keeper, &in);
			frame_done(&in);
			break;
		case FRAME_CLOSED:
		case FRAME_BROKEN:
			on_supervisor_gone(keeper);
			break;
		}
	}
}

/* ---- the process ---- */

static int
watch_children(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int
ms_to_deadline(const struct keeper *keeper)
{
	int64_t left;

	if (keeper->phase == PHASE_RUNNING || keeper->phase == PHASE_KILLING)
		return -1;
	left = keeper->deadline_ms - clock_now_ms();
	return left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left;
}

static void
run_loop(struct keeper *keeper, int children_fd)
{
	while (!keeper->done) {
		struct signalfd_siginfo info;
		struct pollfd fds[2] = {
			{ .fd = children_fd, .events = POLLIN },
			{ .fd = keeper->link == NULL
				    ? -1
				    : frame_link_fd(keeper->link),
			    .events = POLLIN },
		};
		int timeout_ms = ms_to_deadline(keeper);

		if (poll(fds, 2, timeout_ms) == -1 && errno != EINTR)
			break;
		if (fds[1].revents != 0)
			on_readable(keeper);
		if (fds[0].revents != 0) {
			while (read(children_fd, &info, sizeof(info)) > 0)
				continue;
			on_child_signal(keeper);
		}
		if (timeout_ms != -1 && !keeper->done &&
		    keeper->phase != PHASE_KILLING &&
		    clock_now_ms() >= keeper->deadline_ms)
			next_phase(keeper);
	}
}

int
keeper_run(int channel_fd)
{
	struct keeper keeper;
	int children_fd;

	memset(&keeper, 0, sizeof(keeper));
	keeper.cgroup_fd = -1;
	keeper.link = frame_link_new(channel_fd, QUEUE_MAX);
	children_fd = watch_children();
	if (children_fd == -1 || prctl(PR_SET_CHILD_SUBREAPER, 1) == -1) {
		tell_cannot(&keeper, "the keeper cannot watch processes");
		return 1;
	}
	run_loop(&keeper, children_fd);
	end_tree(&keeper);
	if (keeper.cgroup_fd != -1)
		cgroup_remove(keeper.cgroup);
	fd_close(&keeper.cgroup_fd);
	/* What the supervisor reads last must not be lost in our queue. */
	if (keeper.link != NULL && frame_link_wants_write(keeper.link) &&
	    frame_link_flush(keeper.link) == -1)
		log_debug("supervisor is gone");
	frame_link_free(&keeper.link);
	spawn_spec_free(&keeper.spec);
	fd_close(&children_fd);
	return 0;
}
