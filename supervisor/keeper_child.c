/*
 * Between fork and exec: the keeper's child becomes the app.
 * Called by keeper.c in the child. The order matters: what needs root comes
 * before it is given up, what must act as the user after.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fdutil.h"
#include "src/base/signals.h"
#include "supervisor/keeper.h"
#include "supervisor/spawn.h"

#define SPARE_FD 100 /* above all that an app is given */

_Noreturn static void
fail(int error_fd, const char *what, const char *which)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "%s%s%s: %s", what,
	    which[0] == '\0' ? "" : " ", which, strerror(errno));

	if (n > 0)
		n = (int)write(error_fd, text, strnlen(text, sizeof(text)));
	_exit(127);
}

/* 0 is /dev/null, 1.. are `fds`, all others are closed by exec. Returns the
 * new place of error_fd. */
static int
arrange_fds(const int *fds, unsigned n_fds, int error_fd)
{
	int copies[KEEPER_FDS_MAX];
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int error = fcntl(error_fd, F_DUPFD_CLOEXEC, SPARE_FD);

	if (null == -1 || error == -1)
		fail(error_fd, "descriptors", "");
	for (unsigned i = 0; i < n_fds; i++) {
		copies[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, SPARE_FD);
		if (copies[i] == -1)
			fail(error_fd, "descriptors", "");
	}
	null = fcntl(null, F_DUPFD_CLOEXEC, SPARE_FD);
	if (null == -1 || dup2(null, 0) == -1)
		fail(error, "descriptors", "");
	for (unsigned i = 0; i < n_fds; i++)
		if (dup2(copies[i], (int)i + 1) == -1)
			fail(error, "descriptors", "");
	if (close_range(n_fds + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC) == -1)
		for (int fd = (int)n_fds + 1; fd < 1024; fd++)
			if (fd_set_cloexec(fd, true) == -1)
				continue;
	return error;
}

static void
set_limits(const struct spawn_spec *spec, int error_fd)
{
	for (size_t i = 0; i < spec->n_limits; i++) {
		const struct conf_limit *limit = &spec->limits[i];
		struct rlimit value = { .rlim_cur = limit->soft,
			.rlim_max = limit->hard };

		if (limit->soft == UINT64_MAX)
			value.rlim_cur = RLIM_INFINITY;
		if (limit->hard == UINT64_MAX)
			value.rlim_max = RLIM_INFINITY;
		if (setrlimit((__rlimit_resource_t)limit->resource, &value) ==
		    -1)
			fail(error_fd, "cannot set its limits", "");
	}
	errno = 0;
	if (spec->nice != 0 && nice(spec->nice) == -1 && errno != 0)
		fail(error_fd, "cannot set its nice value", "");
}

void
keeper_child_run(struct spawn_spec *spec, bool before, const int *fds,
    unsigned n_fds, int error_fd)
{
	pid_t keeper = getppid();
	const char *directory = spec->directory == NULL ? "/" : spec->directory;
	char **argv = before ? spec->before.items : spec->argv.items;
	const char *stage;

	setpgid(0, 0);
	signals_reset();
	/* Its output alone. */
	error_fd = arrange_fds(fds, before ? 2 : n_fds, error_fd);
	set_limits(spec, error_fd);
	if (spec->become && priv_become(&spec->identity, &stage) == -1)
		fail(error_fd, "cannot become user", spec->identity.user);
	umask((mode_t)spec->umask);
	if (chdir(directory) == -1)
		fail(error_fd, "cannot enter directory", directory);
	if (spec->no_new_privileges &&
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		fail(error_fd, "cannot set no_new_privileges", "");
	/* After the change of user, which clears it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 || getppid() != keeper)
		_exit(127);
	if (spec->listen_pid && !before) {
		char pid[16];

		snprintf(pid, sizeof(pid), "%d", (int)getpid());
		spawn_env_set(spec, "LISTEN_PID", pid);
	}
	environ = spec->env.items;
	execvp(argv[0], argv);
	fail(error_fd, before ? "before_start: cannot run" : "cannot run",
	    argv[0]);
}
