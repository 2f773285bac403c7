/*
 * From the pipes of an app to whole lines with time and pid, and from there to
 * the log thread, the last lines in memory, and whoever follows.
 * Between instance.c and log_writer.c. Opens no file itself.
 */
#include "supervisor/app_log.h"

#include <errno.h>
#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fdutil.h"
#include "src/base/list.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "supervisor/log_writer.h"
#include "supervisor/saved.h"

#define LINE_MAX_BYTES 16384 /* longer lines are split */
#define READS_PER_EVENT 8
#define READS_AT_CLOSE 64
#define PARTIAL_MS 1000 /* a line without its end is written after this */

struct app_log {
	struct event_base *base;
	struct log_writer *writer;
	struct log_file *file;
	struct log_room room; /* waited for while pipes are paused */
	struct event *stall;  /* the same, for a write that hangs */
	char *path;
	char *last[APP_LOG_LAST_LINES];
	size_t n_last; /* ever; the newest is last[(n_last - 1) % MAX] */
	struct list pipes;
	struct list followers;
};

struct app_pipe {
	struct list node;
	struct app_log *log;
	int fd;
	pid_t pid;
	struct event *readable; /* NULL: at its end */
	struct event *partial;
	size_t len;
	char line[LINE_MAX_BYTES];
};

struct app_follower {
	struct list node;
	app_log_follow_cb *on_line;
	void *arg;
};

static void on_room(void *arg);

static void
on_stall(evutil_socket_t fd, short what, void *arg)
{
	on_room(arg);
}

static struct log_limits
limits_of(const struct conf_app *conf)
{
	return (struct log_limits){ .max_bytes = conf->log.max_bytes,
		.max_age_ms = conf->log.max_age_ms,
		.keep = conf->log.keep };
}

struct app_log *
app_log_new(struct log_writer *writer, const struct conf_app *conf)
{
	struct app_log *log = mem_alloc(sizeof(*log));
	struct log_limits limits;

	log->writer = writer;
	log->base = log_writer_base(writer);
	log->path = mem_strdup(conf->log.file);
	limits = limits_of(conf);
	log->file = log_file_new(writer, conf->log.file, &limits);
	log->stall = evtimer_new(log->base, on_stall, log);
	log->room.on_room = on_room;
	log->room.arg = log;
	list_init(&log->pipes);
	list_init(&log->followers);
	return log;
}

void
app_log_configure(struct app_log *log, const struct conf_app *conf)
{
	struct log_limits limits = limits_of(conf);

	mem_free(log->path);
	log->path = mem_strdup(conf->log.file);
	log_file_configure(log->file, conf->log.file, &limits);
}

void
app_log_free(struct app_log **log_ptr)
{
	struct app_log *log = *log_ptr;
	struct list *node;

	if (log == NULL)
		return;
	while ((node = list_first(&log->followers)) != NULL) {
		struct app_follower *follower =
		    LIST_ENTRY(node, struct app_follower, node);
		app_log_follow_cb *on_line = follower->on_line;
		void *arg = follower->arg;

		app_log_unfollow(&follower);
		on_line((struct str){ NULL, 0 }, arg);
	}
	list_remove(&log->room.node);
	if (log->stall != NULL)
		event_free(log->stall);
	log_file_close(&log->file);
	for (size_t i = 0; i < APP_LOG_LAST_LINES; i++)
		mem_free(log->last[i]);
	mem_free(log->path);
	mem_free(log);
	*log_ptr = NULL;
}

const char *
app_log_path(const struct app_log *log)
{
	return log->path;
}

bool
app_log_is_written(struct app_log *log)
{
	return log_file_is_written(log->file);
}

uint64_t
app_log_lost(struct app_log *log)
{
	return log_file_lost(log->file);
}

void
app_log_add_lost(struct app_log *log, uint64_t lines)
{
	log_file_add_lost(log->file, lines);
}

static void
remember(struct app_log *log, const char *line, size_t len)
{
	size_t slot = log->n_last++ % APP_LOG_LAST_LINES;

	mem_free(log->last[slot]);
	log->last[slot] = mem_memdup0(line, len);
}

void
app_log_remember(struct app_log *log, const char *line)
{
	remember(log, line, strlen(line));
}

/* One line, without newline: prefix it, keep it, pass it on. */
static void
take_line(struct app_log *log, pid_t pid, const char *text, size_t len)
{
	char line[CLOCK_ISO_LEN + 32 + LINE_MAX_BYTES + 1];
	struct list *node, *after;
	size_t at = CLOCK_ISO_LEN;

	clock_put_iso(line, clock_wall_ms());
	at += (size_t)snprintf(line + at, 32, " [%d] ", (int)pid);
	memcpy(line + at, text, len);
	line[at + len] = '\n';
	len += at;
	log_file_add(log->file, line, len + 1);

	remember(log, line, len);
	LIST_FOREACH_SAFE(node, after, &log->followers)
	{
		struct app_follower *follower =
		    LIST_ENTRY(node, struct app_follower, node);

		follower->on_line((struct str){ line, len }, follower->arg);
	}
}

void
app_log_note(struct app_log *log, const char *fmt, ...)
{
	char text[1024] = "scalwsd: ";
	size_t at = strlen(text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + at, sizeof(text) - at, fmt, args);
	va_end(args);
	take_line(log, getpid(), text, strlen(text));
}

void
app_log_line(
    struct app_log *log, pid_t pid, const char *request, const char *line)
{
	char *text = mem_printf("r=%s %s", request, line);

	take_line(log, pid, text, strlen(text));
	mem_free(text);
}

void
app_log_last(
    const struct app_log *log, size_t max, pid_t pid, struct strbuf *to)
{
	size_t kept =
	    log->n_last < APP_LOG_LAST_LINES ? log->n_last : APP_LOG_LAST_LINES;
	const char *found[APP_LOG_LAST_LINES];
	size_t n = 0;
	char mark[32];

	snprintf(mark, sizeof(mark), " [%d] ", (int)pid);
	for (size_t i = log->n_last - kept; i < log->n_last; i++) {
		const char *line = log->last[i % APP_LOG_LAST_LINES];

		if (pid == APP_LOG_ALL ||
		    (pid != 0 &&
			strncmp(line + CLOCK_ISO_LEN, mark, strlen(mark)) == 0))
			found[n++] = line;
	}
	for (size_t i = n > max ? n - max : 0; i < n; i++) {
		strbuf_add_text(to, found[i]);
		strbuf_add(to, "\n", 1);
	}
}

struct app_follower *
app_log_follow(struct app_log *log, app_log_follow_cb *on_line, void *arg)
{
	struct app_follower *follower = mem_alloc(sizeof(*follower));

	follower->on_line = on_line;
	follower->arg = arg;
	list_push_back(&log->followers, &follower->node);
	return follower;
}

void
app_log_unfollow(struct app_follower **follower)
{
	if (*follower == NULL)
		return;
	list_remove(&(*follower)->node);
	mem_free(*follower);
	*follower = NULL;
}

/* ---- pipes ---- */

static void
end_line(struct app_pipe *pipe)
{
	size_t len = pipe->len;

	if (len > 0 && pipe->line[len - 1] == '\r')
		len--;
	pipe->len = 0;
	take_line(pipe->log, pipe->pid, pipe->line, len);
}

static void
take_bytes(struct app_pipe *pipe, const char *bytes, size_t len)
{
	while (len > 0) {
		const char *end = memchr(bytes, '\n', len);
		size_t part = end == NULL ? len : (size_t)(end - bytes);

		if (part > LINE_MAX_BYTES - pipe->len)
			part = LINE_MAX_BYTES - pipe->len;
		memcpy(pipe->line + pipe->len, bytes, part);
		pipe->len += part;
		bytes += part;
		len -= part;
		if (len > 0 && *bytes == '\n') {
			bytes++;
			len--;
			end_line(pipe);
		} else if (pipe->len == LINE_MAX_BYTES && len > 0) {
			end_line(pipe);
		}
	}
}

enum took { TOOK_BYTES, TOOK_NOTHING, TOOK_END };

static enum took
take(struct app_pipe *pipe)
{
	char bytes[LINE_MAX_BYTES];
	ssize_t n = read(pipe->fd, bytes, sizeof(bytes));

	if (n > 0) {
		take_bytes(pipe, bytes, (size_t)n);
		return TOOK_BYTES;
	}
	return n == -1 && (errno == EAGAIN || errno == EINTR) ? TOOK_NOTHING
							      : TOOK_END;
}

static void
on_partial(evutil_socket_t fd, short what, void *arg)
{
	struct app_pipe *pipe = arg;

	if (pipe->len > 0)
		end_line(pipe);
}

static void
wait_for_room(struct app_log *log)
{
	static const struct timeval later = { LOG_FILE_STALL_MS / 1000,
		100000 };

	log_writer_wait(log->writer, &log->room);
	event_add(log->stall, &later);
}

static void
await_end_of_line(struct app_pipe *pipe)
{
	static const struct timeval soon = { PARTIAL_MS / 1000, 0 };

	if (pipe->len > 0)
		event_add(pipe->partial, &soon);
	else
		event_del(pipe->partial);
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct app_pipe *pipe = arg;
	enum took took = TOOK_BYTES;
	bool full = false;

	/* A byte may become a line of fifty: looked at after every read. */
	for (int i = 0; i < READS_PER_EVENT && took == TOOK_BYTES && !full;
	     i++) {
		took = take(pipe);
		full = log_file_is_full(pipe->log->file);
	}
	if (took == TOOK_END) {
		if (pipe->len > 0)
			end_line(pipe);
		event_free(pipe->readable);
		pipe->readable = NULL;
		return;
	}
	if (!full) {
		await_end_of_line(pipe);
		return;
	}
	/* The disk is slow: the app waits in its own pipe, where the end of its
	 * line may be. */
	event_del(pipe->partial);
	event_del(pipe->readable);
	wait_for_room(pipe->log);
}

static void
on_room(void *arg)
{
	struct app_log *log = arg;
	struct list *node;

	if (log_file_is_full(log->file)) {
		wait_for_room(log);
		return;
	}
	list_remove(&log->room.node);
	event_del(log->stall);
	LIST_FOREACH(node, &log->pipes)
	{
		struct app_pipe *pipe = LIST_ENTRY(node, struct app_pipe, node);

		if (pipe->readable == NULL)
			continue;
		event_add(pipe->readable, NULL);
		await_end_of_line(pipe);
	}
}

struct app_pipe *
app_pipe_new(struct app_log *log, int fd)
{
	struct app_pipe *pipe = mem_alloc(sizeof(*pipe));

	pipe->log = log;
	pipe->fd = fd;
	if (fd_set_nonblock(fd) == -1)
		log_errno("app log: pipe");
	pipe->readable =
	    event_new(log->base, fd, EV_READ | EV_PERSIST, on_readable, pipe);
	pipe->partial = evtimer_new(log->base, on_partial, pipe);
	if (pipe->readable == NULL || pipe->partial == NULL ||
	    event_add(pipe->readable, NULL) == -1)
		log_error("app log: cannot watch a pipe");
	list_push_back(&log->pipes, &pipe->node);
	return pipe;
}

void
app_pipe_save(const struct app_pipe *pipe, struct saved_pipe *to)
{
	to->fd = pipe == NULL ? -1 : pipe->fd;
	to->pid = pipe == NULL ? 0 : pipe->pid;
	to->part_len = pipe == NULL ? 0 : pipe->len;
	to->part = mem_memdup0(pipe == NULL ? "" : pipe->line, to->part_len);
}

struct app_pipe *
app_pipe_adopt(struct app_log *log, const struct saved_pipe *from)
{
	struct app_pipe *pipe;

	if (from->fd == -1)
		return NULL;
	pipe = app_pipe_new(log, from->fd);
	pipe->pid = from->pid;
	take_bytes(pipe, from->part, from->part_len);
	return pipe;
}

void
app_pipe_set_pid(struct app_pipe *pipe, pid_t pid)
{
	pipe->pid = pid;
}

void
app_pipe_close(struct app_pipe **pipe_ptr)
{
	struct app_pipe *pipe = *pipe_ptr;

	if (pipe == NULL)
		return;
	if (pipe->readable != NULL) {
		/* More than a pipe holds is written by somebody who lives. */
		for (int i = 0; i < READS_AT_CLOSE && take(pipe) == TOOK_BYTES;
		     i++)
			continue;
		event_free(pipe->readable);
	}
	if (pipe->len > 0)
		end_line(pipe);
	if (pipe->partial != NULL)
		event_free(pipe->partial);
	fd_close(&pipe->fd);
	list_remove(&pipe->node);
	mem_free(pipe);
	*pipe_ptr = NULL;
}
