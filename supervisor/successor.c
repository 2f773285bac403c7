/*
 * Hands the state to another binary: in a child that only reads it, then in our
 * own process. Called by upgrade.c; the other side is supervisor.c.
 * Knows nothing of what is in the state.
 */
#include "supervisor/successor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "src/base/log_thread.h"
#include "src/base/mem.h"
#include "src/base/signals.h"
#include "supervisor/process.h"
#include "supervisor/saved.h"
#include "supervisor/state.h"

#define STATE_AT 3
#define EXE_AT 4
#define WHY_MAX 400

int
successor_open(const char *path, char *why, size_t why_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd == -1 || fstat(fd, &st) == -1) {
		snprintf(why, why_size, "%s: %s", path, strerror(errno));
		fd_close(&fd);
		return -1;
	}
	/* Whoever can write to it would become us. */
	if (!S_ISREG(st.st_mode) || (st.st_mode & 0111) == 0)
		snprintf(why, why_size, "%s is no program", path);
	else if ((st.st_uid != 0 && st.st_uid != geteuid()) ||
		 (st.st_mode & 022) != 0)
		snprintf(why, why_size,
		    "%s belongs to another user, or others may write to it",
		    path);
	else
		return fd;
	fd_close(&fd);
	return -1;
}

/* The state as a sealed memfd, which descriptors it names, and the proof that
 * it was read. -1 with errno. */
static int
write_state(
    struct saved *saved, int **fds, size_t *n_fds, char proof[STATE_PROOF_MAX])
{
	struct state *state = state_write();
	const int *named;
	struct str text;
	int fd = -1;

	if (saved_exchange(saved, state) == 0) {
		text = state_text(state);
		state_proof(text, proof);
		fd = fd_memfd_sealed("scalws-state", text.ptr, text.len);
		named = state_fds(state, n_fds);
		*fds = mem_alloc_array(*n_fds + 1, sizeof(int));
		if (*n_fds > 0)
			memcpy(*fds, named, *n_fds * sizeof(int));
	}
	state_free(&state);
	return fd;
}

/* ---- the rehearsal ---- */

struct rehearsal {
	struct process_table *table;
	pid_t pid;
	int output; /* what it says */
	char why[WHY_MAX];
	char proof[STATE_PROOF_MAX];
	rehearsal_cb *on_done;
	void *arg;
};

/* In the child: only calls that are safe after fork in a threaded process. */
_Noreturn static void
become_rehearsal(int exe_fd, int state_fd, int output, char *const argv[])
{
	int null = open("/dev/null", O_RDONLY);
	/* Out of the way of where they go. */
	int exe = fcntl(exe_fd, F_DUPFD, EXE_AT + 1);
	int state = fcntl(state_fd, F_DUPFD, EXE_AT + 1);

	setpgid(0, 0);
	/* One that hangs must not outlive us. */
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	signals_reset();
	signals_ignore_terminal();
	if (null == -1 || exe == -1 || state == -1 || dup2(null, 0) == -1 ||
	    dup2(output, 1) == -1 || dup2(output, 2) == -1 ||
	    dup2(state, STATE_AT) == -1 || dup2(exe, EXE_AT) == -1 ||
	    close_range(EXE_AT + 1, UINT_MAX, 0) == -1)
		_exit(127);
	fexecve(EXE_AT, argv, environ);
	_exit(126);
}

static void
free_rehearsal(struct rehearsal *rehearsal)
{
	fd_close(&rehearsal->output);
	mem_free(rehearsal);
}

/* The last line that it printed: the proof, or why not. */
static void
read_answer(struct rehearsal *rehearsal, int status)
{
	char text[4096], *line = text, *end, exit_text[PROCESS_EXIT_TEXT_MAX];
	ssize_t n = read(rehearsal->output, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	end = text + strlen(text);
	while (end > text && end[-1] == '\n')
		*--end = '\0';
	if (strrchr(text, '\n') != NULL)
		line = strrchr(text, '\n') + 1;
	/* Any program may end well. */
	if (status == 0 && strcmp(line, rehearsal->proof) == 0)
		return;
	snprintf(rehearsal->why, sizeof(rehearsal->why), "%s%s%.256s",
	    status == 0 ? "it does not say that it understands the state"
			: process_exit_text(status, exit_text),
	    line[0] == '\0' ? "" : ": ", line);
}

static void
on_rehearsal_exit(pid_t pid, int status, void *arg)
{
	struct rehearsal *rehearsal = arg;

	if (rehearsal->why[0] == '\0')
		read_answer(rehearsal, status);
	rehearsal->on_done(rehearsal->why, rehearsal->arg);
	free_rehearsal(rehearsal);
}

struct rehearsal *
rehearsal_start(struct process_table *table, int exe_fd, struct saved *saved,
    rehearsal_cb *on_done, void *arg)
{
	struct rehearsal *rehearsal = NULL;
	char name[] = "scalwsd", option[] = "--rehearse=3";
	char *argv[] = { name, option, NULL };
	int *fds = NULL, ends[2];
	size_t n_fds;
	char proof[STATE_PROOF_MAX];
	int state_fd = write_state(saved, &fds, &n_fds, proof);
	pid_t pid = -1;

	mem_free(fds);
	if (state_fd == -1 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) == -1) {
		fd_close(&state_fd);
		return NULL;
	}
	pid = fork();
	if (pid == 0)
		become_rehearsal(exe_fd, state_fd, ends[1], argv);
	fd_close(&state_fd);
	close(ends[1]);
	if (pid == -1) {
		close(ends[0]);
		return NULL;
	}
	setpgid(pid, pid);
	rehearsal = mem_alloc(sizeof(*rehearsal));
	rehearsal->table = table;
	rehearsal->pid = pid;
	rehearsal->output = ends[0];
	memcpy(rehearsal->proof, proof, sizeof(proof));
	rehearsal->on_done = on_done;
	rehearsal->arg = arg;
	process_adopt(table, pid, on_rehearsal_exit, rehearsal);
	return rehearsal;
}

void
rehearsal_end(struct rehearsal *rehearsal, const char *why)
{
	snprintf(rehearsal->why, sizeof(rehearsal->why), "%s", why);
	kill(-rehearsal->pid, SIGKILL);
}

void
rehearsal_forget(struct rehearsal **rehearsal_ptr)
{
	struct rehearsal *rehearsal = *rehearsal_ptr;

	if (rehearsal == NULL)
		return;
	*rehearsal_ptr = NULL;
	kill(-rehearsal->pid, SIGKILL);
	process_forget(rehearsal->table, rehearsal->pid);
	free_rehearsal(rehearsal);
}

/* ---- exec ---- */

static void
set_cloexec(const int *fds, size_t n, bool on)
{
	for (size_t i = 0; i < n; i++)
		if (fds[i] != -1 && fd_set_cloexec(fds[i], on) == -1)
			log_errno("descriptor %d", fds[i]);
}

static void
exec_with(const char *path, const char *conf_path, int exe_fd, int state_fd,
    int back_fd)
{
	char option[64], c[] = "-c";
	char *argv[] = { (char *)(uintptr_t)path, c,
		(char *)(uintptr_t)conf_path, option, NULL };
	int also[] = { exe_fd, state_fd, back_fd };
	sigset_t all, before;
	bool has_thread = log_thread_end();

	snprintf(option, sizeof(option), "--restore=%d:%d", state_fd, back_fd);
	/* What comes meanwhile waits for the new program's handlers. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	set_cloexec(also, ARRAY_LEN(also), false);
	fexecve(exe_fd, argv, environ);
	set_cloexec(also, ARRAY_LEN(also), true);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (has_thread)
		log_thread_begin();
}

void
successor_exec(int exe_fd, int back_fd, struct saved *saved)
{
	int *fds = NULL, error;
	size_t n_fds;
	char proof[STATE_PROOF_MAX];
	int state_fd = write_state(saved, &fds, &n_fds, proof);

	if (state_fd == -1)
		return;
	set_cloexec(fds, n_fds, false);
	exec_with(saved->exe_path, saved->conf_path, exe_fd, state_fd, back_fd);
	error = errno;
	set_cloexec(fds, n_fds, true);
	mem_free(fds);
	fd_close(&state_fd);
	errno = error;
}

void
successor_exec_state(const struct saved *saved, int exe_fd, int state_fd,
    const int *fds, size_t n_fds)
{
	set_cloexec(fds, n_fds, false);
	exec_with(saved->exe_path, saved->conf_path, exe_fd, state_fd, -1);
}
