/*
 * Shows an app's log to a client of the control socket.
 * Called by commands.c. Reads the file that log_writer.c writes, after that
 * has caught up.
 */
#include "supervisor/log_tail.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fdutil.h"
#include "src/base/mem.h"
#include "supervisor/app.h"
#include "supervisor/app_log.h"
#include "supervisor/control_server.h"
#include "supervisor/log_disk.h"
#include "supervisor/supervisor.h"

#define TAIL_BYTES_MAX (1024 * 1024)
#define CATCH_UP_MS 10
#define CATCH_UP_TRIES 100

struct tail {
	struct control_client *client;
	struct app *app;
	size_t lines;
	bool follow;
	bool has_begun; /* what was there before is said */
	int tries;
	struct event *timer;
	struct app_follower *follower;
};

int
log_tail_read(const char *path, size_t lines, struct strbuf *to)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char *text = NULL, *at;
	struct stat st;
	off_t from;
	ssize_t n;

	if (fd == -1)
		return -1;
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode)) {
		fd_close(&fd);
		errno = EINVAL;
		return -1;
	}
	from = st.st_size > TAIL_BYTES_MAX ? st.st_size - TAIL_BYTES_MAX : 0;
	text = mem_alloc(TAIL_BYTES_MAX);
	n = pread(fd, text, TAIL_BYTES_MAX, from);
	fd_close(&fd);
	if (n > 0 && lines > 0) {
		size_t len = (size_t)n, start = len - 1;

		/* The newline at the very end ends the last line. */
		while (start > 0) {
			at = memrchr(text, '\n', start);
			if (at == NULL) {
				start = 0;
				break;
			}
			start = (size_t)(at - text);
			if (--lines == 0) {
				start++;
				break;
			}
		}
		/* The first line that was read may be half of one. */
		if (start == 0 && from > 0 &&
		    (at = memchr(text, '\n', len)) != NULL)
			start = (size_t)(at - text) + 1;
		strbuf_add(to, text + start, len - start);
	}
	mem_free(text);
	return n == -1 ? -1 : 0;
}

static void
free_tail(struct tail *tail)
{
	app_log_unfollow(&tail->follower);
	event_free(tail->timer);
	mem_free(tail);
}

static void
on_gone(struct control_client *client, void *arg)
{
	free_tail(arg);
}

static void
on_line(struct str line, void *arg)
{
	struct tail *tail = arg;
	struct control_client *client = tail->client;

	if (line.ptr != NULL) {
		if (tail->has_begun)
			control_say(client, 'o', line);
		return;
	}
	/* The log is gone. */
	tail->follower = NULL;
	control_on_gone(client, NULL, NULL);
	control_printf(client, 'e', "%s is no more", tail->app->name);
	control_end(client, CONTROL_FAILED);
	free_tail(tail);
}

/* What is in the file; false: it cannot be read. */
static bool
say_past(struct tail *tail)
{
	const char *path = app_log_path(tail->app->log);
	struct control_client *client = tail->client;
	struct strbuf text = STRBUF_EMPTY;
	bool good = log_tail_read(path, tail->lines, &text) == 0;

	if (good) {
		control_say(client, 'o', (struct str){ text.ptr, text.len });
	} else if (errno != ENOENT) {
		control_printf(
		    client, 'e', "%s: %s", path, log_disk_reason(errno));
	} else {
		good = true;
		app_log_last(tail->app->log, 1, APP_LOG_ALL, &text);
		control_printf(client, 'e',
		    text.len == 0 ? "no log file yet: %s"
				  : "the log file is gone: %s, see: scalwsctl "
				    "reopen",
		    path);
	}
	strbuf_free(&text);
	return good;
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval soon = { 0, CATCH_UP_MS * 1000 };
	struct tail *tail = arg;
	struct control_client *client = tail->client;
	bool good;

	if (!app_log_is_written(tail->app->log) &&
	    tail->tries++ < CATCH_UP_TRIES) {
		event_add(tail->timer, &soon);
		return;
	}
	good = say_past(tail);
	if (tail->follow) {
		control_follows(client, tail->app->name);
		tail->has_begun = true;
		return;
	}
	control_on_gone(client, NULL, NULL);
	control_end(client, good ? CONTROL_OK : CONTROL_FAILED);
	free_tail(tail);
}

static struct tail *
new_tail(struct control_client *client, struct app *app)
{
	struct tail *tail = mem_alloc(sizeof(*tail));

	tail->client = client;
	tail->app = app;
	tail->timer =
	    evtimer_new(control_supervisor(client)->base, on_timer, tail);
	tail->follower = app_log_follow(app->log, on_line, tail);
	control_on_gone(client, on_gone, tail);
	return tail;
}

void
log_tail_answer(
    struct control_client *client, struct app *app, size_t lines, bool follow)
{
	struct tail *tail = new_tail(client, app);

	tail->lines = lines;
	tail->follow = follow;
	event_active(tail->timer, EV_TIMEOUT, 0);
}

void
log_tail_resume(struct control_client *client, struct app *app)
{
	new_tail(client, app)->has_begun = true;
	control_follows(client, app->name);
}
