/*
 * Runs `scalwsd --role=check` and gathers what it says.
 * Called by commands.c; the other end is scalwsd.c's.
 * Judges nothing itself.
 */
#include "supervisor/file_check.h"

#include <event2/event.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "src/base/fdutil.h"
#include "src/base/mem.h"
#include "src/base/strbuf.h"
#include "supervisor/process.h"
#include "supervisor/supervisor.h"

#define CHECK_S 20
/* Findings are counted after CONF_ERRORS_MAX; beyond this they are dropped. */
#define TEXT_BYTES_MAX ((size_t)256 << 10)
#define PART_BYTES 65536

struct file_check {
	struct process_table *table;
	pid_t pid;
	int fd;
	struct event *readable, *timer;
	struct strbuf text;
	const char *why; /* static: we ended it */
	file_check_cb *on_done;
	void *arg;
};

static void
free_check(struct file_check *check)
{
	if (check->readable != NULL)
		event_free(check->readable);
	if (check->timer != NULL)
		event_free(check->timer);
	fd_close(&check->fd);
	strbuf_free(&check->text);
	mem_free(check);
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	static char part[PART_BYTES];
	struct file_check *check = arg;
	ssize_t n;

	while ((n = recv(fd, part, sizeof(part), MSG_DONTWAIT)) > 0)
		if (check->text.len + (size_t)n <= TEXT_BYTES_MAX)
			strbuf_add(&check->text, part, (size_t)n);
	if (n == 0)
		event_del(check->readable);
}

static void
on_too_late(evutil_socket_t fd, short what, void *arg)
{
	struct file_check *check = arg;

	check->why = "took too long";
	kill(-check->pid, SIGKILL);
}

static void
on_exit_of_it(pid_t pid, int status, void *arg)
{
	struct file_check *check = arg;
	char how[PROCESS_EXIT_TEXT_MAX], *text;
	bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;

	on_readable(check->fd, 0, check);
	/* Without a finding it did not come to its end. */
	if (!good && (check->text.len == 0 || !WIFEXITED(status)))
		strbuf_printf(&check->text, "the check failed: %s\n",
		    check->why != NULL ? check->why
				       : process_exit_text(status, how));
	text = strbuf_take(&check->text);
	check->on_done(good, text, check->arg);
	mem_free(text);
	free_check(check);
}

struct file_check *
file_check_start(
    struct supervisor *supervisor, file_check_cb *on_done, void *arg)
{
	static const struct timeval longest = { CHECK_S, 0 };
	struct file_check *check = mem_alloc(sizeof(*check));

	check->table = supervisor->processes;
	check->on_done = on_done;
	check->arg = arg;
	check->fd = -1;
	check->pid = process_start(check->table, "check", supervisor->conf_path,
	    &check->fd, on_exit_of_it, check);
	if (check->pid == -1) {
		free_check(check);
		return NULL;
	}
	check->readable = event_new(supervisor->base, check->fd,
	    EV_READ | EV_PERSIST, on_readable, check);
	check->timer = evtimer_new(supervisor->base, on_too_late, check);
	if (check->readable == NULL || check->timer == NULL)
		mem_exhausted();
	event_add(check->readable, NULL);
	event_add(check->timer, &longest);
	return check;
}

void
file_check_cancel(struct file_check **check_ptr)
{
	struct file_check *check = *check_ptr;

	if (check == NULL)
		return;
	*check_ptr = NULL;
	kill(-check->pid, SIGKILL);
	process_forget(check->table, check->pid);
	free_check(check);
}
