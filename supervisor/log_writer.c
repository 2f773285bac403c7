/*
 * The threads that write the apps' log files, one for each, so that a disk that
 * hangs keeps back the logs that lie on it and no other.
 * Fed by app_log.c through log_file_add; they wake the loop when there is room.
 * Know nothing of lines but where they end.
 */
#include "supervisor/log_writer.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fdutil.h"
#include "src/base/list.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/strbuf.h"
#include "src/base/thread.h"
#include "supervisor/app_log.h"

#define STACK_BYTES (256 * 1024)
/* A write that hangs does not keep the daemon from its end. */
#define END_PATIENCE_S 5

struct log_file {
	struct list node;
	struct log_writer *writer;
	pthread_cond_t work;
	/* Under writer->lock. */
	char *path;
	struct log_limits limits;
	struct strbuf pending;
	size_t in_write; /* bytes that the thread is at */
	bool writing;
	int64_t writing_since_ms;
	uint64_t dropped; /* lines that found no room, not yet told */
	bool closing, reopen;
	bool is_reopening;
	int reopen_error; /* of the last time; 0: none */
	bool was_full;
	struct log_disk disk; /* of the thread alone */
};

struct log_writer {
	pthread_mutex_t lock;
	pthread_cond_t ended; /* the thread of a file has */
	struct list files;    /* each with a thread */
	char *directory;      /* made where it is missing at a reopen */
	/* Of the loop alone. */
	struct event_base *base;
	struct list rooms;
	int wake_fd;
	struct event *wake;
};

/* ---- in the thread ---- */

static bool
has_work(const struct log_file *file)
{
	return file->pending.len > 0 || file->reopen;
}

/* Do what is to be done; the lock is held at both ends. */
static void
serve(struct log_file *file)
{
	struct log_writer *writer = file->writer;
	struct strbuf text = file->pending;
	bool reopen = file->reopen;
	int reopen_error = 0;
	struct log_limits limits = file->limits;
	/* They came after what is pending now. */
	uint64_t dropped = file->dropped, one = 1;
	char path[4096], directory[4096];

	file->pending = STRBUF_EMPTY;
	file->reopen = false;
	file->is_reopening = reopen;
	file->in_write = text.len;
	file->writing = true;
	file->writing_since_ms = clock_now_ms();
	file->dropped = 0;
	snprintf(path, sizeof(path), "%s", file->path);
	snprintf(directory, sizeof(directory), "%s",
	    writer->directory == NULL ? "" : writer->directory);
	pthread_mutex_unlock(&writer->lock);

	if (reopen)
		reopen_error = log_disk_reopen(&file->disk, path, directory);
	if (text.len > 0)
		log_disk_write(&file->disk, path, &limits, text.ptr, text.len);
	if (dropped > 0)
		log_disk_lost(&file->disk, dropped);
	strbuf_free(&text);

	pthread_mutex_lock(&writer->lock);
	file->writing = false;
	file->in_write = 0;
	if (reopen)
		file->reopen_error = reopen_error;
	file->is_reopening = false;
	if (file->was_full && write(writer->wake_fd, &one, sizeof(one)) == -1)
		log_errno("log thread cannot wake the loop");
	file->was_full = false;
}

static void
free_file(struct log_file *file)
{
	log_disk_close(&file->disk);
	pthread_cond_destroy(&file->work);
	strbuf_free(&file->pending);
	mem_free(file->path);
	mem_free(file);
}

static void *
run_thread(void *arg)
{
	struct log_file *file = arg;
	struct log_writer *writer = file->writer;

	pthread_mutex_lock(&writer->lock);
	for (;;) {
		if (has_work(file))
			serve(file);
		else if (file->closing)
			break;
		else
			pthread_cond_wait(&file->work, &writer->lock);
	}
	list_remove(&file->node);
	pthread_cond_signal(&writer->ended);
	pthread_mutex_unlock(&writer->lock);
	free_file(file);
	return NULL;
}

/* ---- in the loop ---- */

static void
on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct log_writer *writer = arg;
	struct list told, *node;
	uint64_t count;

	if (read(fd, &count, sizeof(count)) == -1)
		return;
	/* Those that are full still wait again: they must not be told twice
	 * in this round. */
	list_init(&told);
	while ((node = list_first(&writer->rooms)) != NULL) {
		list_remove(node);
		list_push_back(&told, node);
	}
	while ((node = list_first(&told)) != NULL) {
		struct log_room *room = LIST_ENTRY(node, struct log_room, node);

		list_remove(node);
		room->on_room(room->arg);
	}
}

struct event_base *
log_writer_base(const struct log_writer *writer)
{
	return writer->base;
}

void
log_writer_wait(struct log_writer *writer, struct log_room *room)
{
	if (!list_is_linked(&room->node))
		list_push_back(&writer->rooms, &room->node);
}

struct log_writer *
log_writer_new(struct event_base *base)
{
	struct log_writer *writer = mem_alloc(sizeof(*writer));

	writer->base = base;
	list_init(&writer->files);
	list_init(&writer->rooms);
	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->ended, NULL);
	writer->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	writer->wake = event_new(
	    base, writer->wake_fd, EV_READ | EV_PERSIST, on_wake, writer);
	if (writer->wake == NULL || event_add(writer->wake, NULL) == -1)
		log_error("cannot watch the log threads");
	return writer;
}

/* Until all threads have ended. False: one is in a write that hangs. */
static bool
wait_for_threads(struct log_writer *writer)
{
	struct timespec until;
	struct list *node;
	bool all;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += END_PATIENCE_S;
	pthread_mutex_lock(&writer->lock);
	while (
	    !list_is_empty(&writer->files) &&
	    pthread_cond_timedwait(&writer->ended, &writer->lock, &until) == 0)
		continue;
	LIST_FOREACH(node, &writer->files)
	{
		struct log_file *file = LIST_ENTRY(node, struct log_file, node);

		log_error("%s: a write hangs, the last lines are not written",
		    file->path);
	}
	all = list_is_empty(&writer->files);
	pthread_mutex_unlock(&writer->lock);
	return all;
}

void
log_writer_free(struct log_writer **writer_ptr)
{
	struct log_writer *writer = *writer_ptr;

	*writer_ptr = NULL;
	if (writer == NULL)
		return;
	if (writer->wake != NULL)
		event_free(writer->wake);
	/* A thread that hangs still uses the rest. */
	if (!wait_for_threads(writer))
		return;
	fd_close(&writer->wake_fd);
	pthread_cond_destroy(&writer->ended);
	pthread_mutex_destroy(&writer->lock);
	mem_free(writer->directory);
	mem_free(writer);
}

void
log_writer_reopen(struct log_writer *writer, const char *directory)
{
	struct list *node;

	pthread_mutex_lock(&writer->lock);
	mem_free(writer->directory);
	writer->directory = mem_strdup(directory);
	LIST_FOREACH(node, &writer->files)
	{
		struct log_file *file = LIST_ENTRY(node, struct log_file, node);

		file->reopen = true;
		pthread_cond_signal(&file->work);
	}
	pthread_mutex_unlock(&writer->lock);
}

static bool
waits_for_reopen(const struct log_file *file)
{
	return file->reopen || file->is_reopening;
}

bool
log_writer_reopened(struct log_writer *writer)
{
	struct list *node;
	bool all = true;

	pthread_mutex_lock(&writer->lock);
	LIST_FOREACH(node, &writer->files)
	if (waits_for_reopen(LIST_ENTRY(node, struct log_file, node)))
		all = false;
	pthread_mutex_unlock(&writer->lock);
	return all;
}

void
log_writer_findings(struct log_writer *writer, struct strbuf *to)
{
	struct list *node;

	pthread_mutex_lock(&writer->lock);
	LIST_FOREACH(node, &writer->files)
	{
		struct log_file *file = LIST_ENTRY(node, struct log_file, node);

		if (waits_for_reopen(file))
			strbuf_printf(
			    to, "%s: the disk does not answer\n", file->path);
		else if (file->reopen_error != 0)
			strbuf_printf(to, "%s: cannot open: %s\n", file->path,
			    log_disk_reason(file->reopen_error));
	}
	pthread_mutex_unlock(&writer->lock);
}

struct log_file *
log_file_new(struct log_writer *writer, const char *path,
    const struct log_limits *limits)
{
	struct log_file *file = mem_alloc(sizeof(*file));

	file->writer = writer;
	file->path = mem_strdup(path);
	file->limits = *limits;
	file->disk.fd = -1;
	pthread_cond_init(&file->work, NULL);
	pthread_mutex_lock(&writer->lock);
	list_push_back(&writer->files, &file->node);
	if (thread_start(run_thread, file, STACK_BYTES) == -1) {
		log_errno("%s: no thread, lines of the app are lost", path);
		list_remove(&file->node);
		/* As if its first write hung for ever. */
		file->writing = true;
	}
	pthread_mutex_unlock(&writer->lock);
	return file;
}

void
log_file_configure(
    struct log_file *file, const char *path, const struct log_limits *limits)
{
	struct log_writer *writer = file->writer;

	pthread_mutex_lock(&writer->lock);
	if (strcmp(path, file->path) != 0) {
		mem_free(file->path);
		file->path = mem_strdup(path);
		file->reopen = true;
		pthread_cond_signal(&file->work);
	}
	file->limits = *limits;
	pthread_mutex_unlock(&writer->lock);
}

void
log_file_close(struct log_file **file_ptr)
{
	struct log_file *file = *file_ptr;
	struct log_writer *writer;
	bool has_thread;

	if (file == NULL)
		return;
	*file_ptr = NULL;
	writer = file->writer;
	pthread_mutex_lock(&writer->lock);
	has_thread = list_is_linked(&file->node);
	file->closing = true;
	pthread_cond_signal(&file->work);
	pthread_mutex_unlock(&writer->lock);
	if (!has_thread)
		free_file(file);
}

static bool
is_full(const struct log_file *file)
{
	return file->pending.len + file->in_write >= LOG_FILE_PENDING_MAX;
}

/* One write takes for ever. */
static bool
is_stalled(const struct log_file *file)
{
	return file->writing &&
	       clock_now_ms() - file->writing_since_ms > LOG_FILE_STALL_MS;
}

void
log_file_add(struct log_file *file, const char *text, size_t len)
{
	struct log_writer *writer = file->writer;
	bool first = false;

	pthread_mutex_lock(&writer->lock);
	if (is_full(file) && is_stalled(file)) {
		first = file->dropped == 0;
		file->dropped += log_count_lines(text, len);
	} else {
		strbuf_add(&file->pending, text, len);
		pthread_cond_signal(&file->work);
	}
	pthread_mutex_unlock(&writer->lock);
	if (first)
		log_error(
		    "%s: a write hangs, lines of the app are lost", file->path);
}

bool
log_file_is_full(struct log_file *file)
{
	bool full;

	pthread_mutex_lock(&file->writer->lock);
	full = is_full(file) && !is_stalled(file);
	if (full)
		file->was_full = true;
	pthread_mutex_unlock(&file->writer->lock);
	return full;
}

bool
log_file_is_written(struct log_file *file)
{
	bool written;

	pthread_mutex_lock(&file->writer->lock);
	written = file->pending.len == 0 && !file->writing;
	pthread_mutex_unlock(&file->writer->lock);
	return written;
}

uint64_t
log_file_lost(struct log_file *file)
{
	uint64_t lost;

	/* The thread does not touch it without having work. */
	pthread_mutex_lock(&file->writer->lock);
	lost = file->dropped + (file->writing ? 0 : file->disk.lost);
	pthread_mutex_unlock(&file->writer->lock);
	return lost;
}

void
log_file_add_lost(struct log_file *file, uint64_t lines)
{
	pthread_mutex_lock(&file->writer->lock);
	/* Told before the next lines, which come after them. */
	if (file->writing)
		file->dropped += lines;
	else
		file->disk.lost += lines;
	pthread_mutex_unlock(&file->writer->lock);
}
