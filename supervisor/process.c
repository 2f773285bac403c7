/*
 * Starting ourselves in another role, and waiting for children.
 * Used by proxy_proc.c and instance.c. As subreaper (or process 1) the
 * supervisor also waits for processes it never started.
 */
#include "supervisor/process.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fdutil.h"
#include "src/base/list.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/signals.h"
#include "supervisor/tree.h"

#define CHANNEL_AT 3
#define SELF "/proc/self/exe"

struct process {
	struct list node;
	pid_t pid;
	process_exit_cb *on_exit; /* NULL: forgotten */
	void *arg;
};

struct process_table {
	struct event *signal;
	struct list processes;
	size_t n;
};

static struct process *
find(const struct process_table *table, pid_t pid)
{
	struct list *node;

	LIST_FOREACH(node, &table->processes)
	{
		struct process *process =
		    LIST_ENTRY(node, struct process, node);

		if (process->pid == pid)
			return process;
	}
	return NULL;
}

void
process_look(struct process_table *table)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct process *process = find(table, pid);
		process_exit_cb *on_exit;
		void *exit_arg;

		if (process == NULL)
			continue; /* an orphan that came to us */
		on_exit = process->on_exit;
		exit_arg = process->arg;
		list_remove(&process->node);
		table->n--;
		mem_free(process);
		if (on_exit != NULL)
			on_exit(pid, status, exit_arg);
	}
}

static void
on_child_signal(evutil_socket_t signal_no, short what, void *arg)
{
	process_look(arg);
}

struct process_table *
process_table_new(struct event_base *base)
{
	struct process_table *table = mem_alloc(sizeof(*table));

	list_init(&table->processes);
	table->signal = evsignal_new(base, SIGCHLD, on_child_signal, table);
	if (table->signal == NULL || event_add(table->signal, NULL) == -1)
		log_error("cannot watch for SIGCHLD");
	/* What a killed keeper leaves behind comes to us, not to init. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) == -1)
		log_errno("cannot become a subreaper");
	return table;
}

void
process_table_free(struct process_table **table_ptr)
{
	struct process_table *table = *table_ptr;
	struct list *node, *after;

	if (table == NULL)
		return;
	if (table->signal != NULL)
		event_free(table->signal);
	LIST_FOREACH_SAFE(node, after, &table->processes)
	mem_free(LIST_ENTRY(node, struct process, node));
	mem_free(table);
	*table_ptr = NULL;
}

void
process_adopt(
    struct process_table *table, pid_t pid, process_exit_cb *on_exit, void *arg)
{
	struct process *process = mem_alloc(sizeof(*process));

	process->pid = pid;
	process->on_exit = on_exit;
	process->arg = arg;
	list_push_back(&table->processes, &process->node);
	table->n++;
}

/* In the child: only calls that are safe after fork in a threaded process. */
_Noreturn static void
become_role(int channel, char *const argv[])
{
	int null;

	setpgid(0, 0);
	signals_reset();
	/* Only SIGKILL ends a role: what all of the daemon gets is the
	 * supervisor's to act upon. */
	signals_ignore_terminal();
	null = open("/dev/null", O_RDONLY);
	if (null == -1 || dup2(null, 0) == -1)
		_exit(127);
	/* dup2 of a descriptor onto itself would leave it CLOEXEC. */
	if (channel == CHANNEL_AT) {
		if (fcntl(channel, F_SETFD, 0) == -1)
			_exit(127);
	} else if (dup2(channel, CHANNEL_AT) == -1) {
		_exit(127);
	}
	if (close_range(CHANNEL_AT + 1, UINT_MAX, 0) == -1)
		for (int fd = CHANNEL_AT + 1; fd < 1024; fd++)
			close(fd);
	execv(SELF, argv);
	_exit(127);
}

pid_t
process_start(struct process_table *table, const char *role, const char *label,
    int *channel, process_exit_cb *on_exit, void *arg)
{
	char role_text[64], name[] = "scalwsd";
	char *argv[] = { name, role_text, (char *)(uintptr_t)label, NULL };
	int ends[2], error;
	pid_t pid;

	snprintf(role_text, sizeof(role_text), "--role=%s", role);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == -1)
		return -1;
	pid = fork();
	if (pid == 0)
		become_role(ends[1], argv);
	error = errno;
	close(ends[1]);
	if (pid == -1) {
		close(ends[0]);
		errno = error;
		return -1;
	}
	setpgid(pid, pid);
	process_adopt(table, pid, on_exit, arg);
	*channel = ends[0];
	return pid;
}

void
process_forget(struct process_table *table, pid_t pid)
{
	struct process *process = find(table, pid);

	if (process != NULL)
		process->on_exit = NULL;
}

size_t
process_count(const struct process_table *table)
{
	return table->n;
}

size_t
process_kill_strays(struct process_table *table)
{
	struct tree tree;
	size_t seen = 0;

	if (tree_read(&tree) == -1)
		return 0;
	for (size_t i = 0; i < tree.n; i++) {
		struct tree_process *stray = &tree.processes[i];

		if (stray->ppid != getpid() || stray->state == 'Z' ||
		    find(table, stray->pid) != NULL)
			continue;
		log_warn("process %d lost its keeper: killed", (int)stray->pid);
		kill(stray->pid, SIGKILL);
		seen++;
	}
	tree_free(&tree);
	return seen;
}

const char *
process_exit_text(int status, char to[PROCESS_EXIT_TEXT_MAX])
{
	if (WIFEXITED(status))
		snprintf(to, PROCESS_EXIT_TEXT_MAX, "exit code %d",
		    WEXITSTATUS(status));
	else if (WIFSIGNALED(status)) {
		const char *name = sigabbrev_np(WTERMSIG(status));

		if (name != NULL)
			snprintf(
			    to, PROCESS_EXIT_TEXT_MAX, "killed by SIG%s", name);
		else
			snprintf(to, PROCESS_EXIT_TEXT_MAX,
			    "killed by signal %d", WTERMSIG(status));
	} else
		snprintf(
		    to, PROCESS_EXIT_TEXT_MAX, "status %#x", (unsigned)status);
	return to;
}
