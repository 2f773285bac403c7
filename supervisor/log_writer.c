/*
 * The thread that writes the apps' log files.
 * Fed by app_log.c through log_file_add; wakes the loop when there is room.
 * Knows nothing of lines but where they end.
 */
#include "supervisor/log_writer.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fdutil.h"
#include "src/base/list.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/strbuf.h"
#include "supervisor/app_log.h"

#define COMPLAIN_MS 60000

struct log_file {
	struct list node;
	struct log_writer *writer;
	/* Under writer->lock. */
	char *path;
	struct log_limits limits;
	struct strbuf pending;
	bool writing; /* the thread is at it */
	int64_t writing_since_ms;
	uint64_t dropped; /* lines that found no room, not yet told */
	bool closing, reopen;
	bool was_full;
	/* Of the thread alone. */
	int fd;
	uint64_t size;
	int64_t begun_ms; /* when its first line was written; wall clock */
	uint64_t lost;    /* lines that could not be written, not yet told */
	bool is_torn;     /* its last line has no end */
	int64_t complained_ms;
};

struct log_writer {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct list files;
	bool stop;
	/* Of the loop alone. */
	struct event_base *base;
	struct list rooms;
	int wake_fd;
	struct event *wake;
};

/* ---- in the thread ---- */

struct target { /* what the thread needs of a file, copied under the lock */
	char path[4096];
	struct log_limits limits;
};

static void
complain(struct log_file *file, const char *path, const char *what)
{
	int64_t now_ms = clock_now_ms();

	if (file->complained_ms != 0 &&
	    now_ms - file->complained_ms < COMPLAIN_MS)
		return;
	file->complained_ms = now_ms;
	log_errno("%s: %s, lines of the app are lost", path, what);
}

/* When the file was made, or changed last where the file system does not know.
 */
static int64_t
birth_ms(int fd)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME | STATX_MTIME, &st) == -1)
		return clock_wall_ms();
	if ((st.stx_mask & STATX_BTIME) != 0)
		return st.stx_btime.tv_sec * 1000;
	return st.stx_mtime.tv_sec * 1000;
}

static int
open_file(struct log_file *file, const struct target *target)
{
	struct stat st;

	if (file->fd != -1)
		return 0;
	file->fd = open(target->path,
	    O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
	    0640);
	if (file->fd == -1)
		return -1;
	/* Our umask is 077. */
	if (fstat(file->fd, &st) == -1 || !S_ISREG(st.st_mode) ||
	    fchmod(file->fd, 0640) == -1) {
		fd_close(&file->fd);
		errno = EINVAL;
		return -1;
	}
	file->size = (uint64_t)st.st_size;
	file->begun_ms = file->size == 0 ? clock_wall_ms() : birth_ms(file->fd);
	return 0;
}

/* Of rotated files those that were written last too long ago. */
static void
remove_aged(const struct target *target)
{
	char path[4200];
	struct stat st;

	for (unsigned i = 1; i <= target->limits.keep; i++) {
		snprintf(path, sizeof(path), "%s.%u", target->path, i);
		if (lstat(path, &st) == 0 &&
		    clock_wall_ms() - st.st_mtim.tv_sec * 1000 >
			target->limits.max_age_ms)
			unlink(path);
	}
}

/* path.(keep-1) -> path.keep ... path -> path.1 */
static void
rotate(struct log_file *file, const struct target *target)
{
	char from[4200], to[4200];

	fd_close(&file->fd);
	if (target->limits.keep == 0)
		unlink(target->path);
	for (unsigned i = target->limits.keep; i > 0; i--) {
		snprintf(to, sizeof(to), "%s.%u", target->path, i);
		if (i == 1)
			snprintf(from, sizeof(from), "%s", target->path);
		else
			snprintf(
			    from, sizeof(from), "%s.%u", target->path, i - 1);
		if (rename(from, to) == -1 && errno != ENOENT)
			complain(file, from, "cannot rotate");
	}
	if (target->limits.max_age_ms != 0)
		remove_aged(target);
}

static uint64_t
count_lines(const char *text, size_t len)
{
	const char *end = text + len;
	uint64_t lines = 0;

	while (text < end &&
	       (text = memchr(text, '\n', (size_t)(end - text))) != NULL) {
		text++;
		lines++;
	}
	return lines;
}

/* As much as goes; less with errno. */
static size_t
write_most(struct log_file *file, const char *text, size_t len)
{
	size_t at = 0;

	while (at < len) {
		ssize_t n = write(file->fd, text + at, len - at);

		if (n > 0)
			at += (size_t)n;
		else if (n == 0 || errno != EINTR)
			break;
	}
	if (at > 0)
		file->is_torn = text[at - 1] != '\n';
	return at;
}

/* So many lines are missing here: said where they are missed. */
static void
tell_lost(struct log_file *file)
{
	char line[128];
	size_t at = CLOCK_ISO_LEN;

	if (file->lost == 0)
		return;
	clock_put_iso(line, clock_wall_ms());
	at += (size_t)snprintf(line + at, sizeof(line) - at,
	    " [%d] scalwsd: %llu lines were lost here\n", (int)getpid(),
	    (unsigned long long)file->lost);
	/* What the line before was cut off by. */
	if (file->is_torn && write_most(file, "\n", 1) == 0)
		return;
	if (write_most(file, line, at) < at)
		return;
	file->size += at;
	file->lost = 0;
}

/* As many whole lines of `text` as fit into `room` bytes, at least one. */
static size_t
fitting(const char *text, size_t len, uint64_t room)
{
	const char *end;

	if (len <= room)
		return len;
	end = room == 0 || text == NULL ? NULL
					: memrchr(text, '\n', (size_t)room);
	if (end == NULL)
		end = memchr(text, '\n', len);
	return end == NULL ? len : (size_t)(end - text) + 1;
}

static void
write_out(struct log_file *file, const struct target *target, const char *text,
    size_t len)
{
	const struct log_limits *limits = &target->limits;

	while (len > 0) {
		uint64_t room = UINT64_MAX;
		size_t part, written;

		if (open_file(file, target) == -1) {
			complain(file, target->path, "cannot open");
			file->lost += count_lines(text, len);
			return;
		}
		tell_lost(file);
		if (limits->max_bytes != 0)
			room = limits->max_bytes > file->size
				   ? limits->max_bytes - file->size
				   : 0;
		if (limits->max_age_ms != 0 && file->size > 0 &&
		    clock_wall_ms() - file->begun_ms > limits->max_age_ms) {
			rotate(file, target);
			continue;
		}
		part = fitting(text, len, room);
		if (part > room && file->size > 0) {
			rotate(file, target);
			continue;
		}
		written = write_most(file, text, part);
		file->size += written;
		if (written < part) {
			complain(file, target->path, "cannot write");
			file->lost +=
			    count_lines(text + written, part - written);
		}
		text += part;
		len -= part;
	}
}

/* The next file with work, or NULL. Under the lock. */
static struct log_file *
find_work(struct log_writer *writer)
{
	struct list *node;

	LIST_FOREACH(node, &writer->files)
	{
		struct log_file *file = LIST_ENTRY(node, struct log_file, node);

		if (file->pending.len > 0 || file->closing || file->reopen)
			return file;
	}
	return NULL;
}

/* Do what is to be done for one file; the lock is held at both ends. */
static void
serve(struct log_writer *writer, struct log_file *file)
{
	struct strbuf text = file->pending;
	bool reopen = file->reopen, wake;
	struct target target;
	uint64_t one = 1;

	file->pending = STRBUF_EMPTY;
	file->reopen = false;
	file->writing = true;
	file->writing_since_ms = clock_now_ms();
	file->lost += file->dropped;
	file->dropped = 0;
	snprintf(target.path, sizeof(target.path), "%s", file->path);
	target.limits = file->limits;
	/* Others come first next time. */
	list_remove(&file->node);
	list_push_back(&writer->files, &file->node);
	pthread_mutex_unlock(&writer->lock);

	if (reopen)
		fd_close(&file->fd);
	if (text.len > 0)
		write_out(file, &target, text.ptr, text.len);
	strbuf_free(&text);

	pthread_mutex_lock(&writer->lock);
	file->writing = false;
	wake = file->was_full;
	file->was_full = false;
	if (wake && write(writer->wake_fd, &one, sizeof(one)) == -1)
		log_errno("log thread cannot wake the loop");
	if (file->closing && file->pending.len == 0) {
		list_remove(&file->node);
		fd_close(&file->fd);
		mem_free(file->path);
		mem_free(file);
	}
}

static void *
run_thread(void *arg)
{
	struct log_writer *writer = arg;

	pthread_mutex_lock(&writer->lock);
	for (;;) {
		struct log_file *file = find_work(writer);

		if (file != NULL)
			serve(writer, file);
		else if (writer->stop)
			break;
		else
			pthread_cond_wait(&writer->work, &writer->lock);
	}
	pthread_mutex_unlock(&writer->lock);
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
	sigset_t all, before;
	int error;

	writer->base = base;
	list_init(&writer->files);
	list_init(&writer->rooms);
	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->work, NULL);
	writer->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	writer->wake = event_new(
	    base, writer->wake_fd, EV_READ | EV_PERSIST, on_wake, writer);
	if (writer->wake == NULL || event_add(writer->wake, NULL) == -1)
		log_error("cannot watch the log thread");
	/* Signals are the loop's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&writer->thread, NULL, run_thread, writer);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error != 0) {
		errno = error;
		log_errno("cannot start the log thread");
		if (writer->wake != NULL)
			event_free(writer->wake);
		fd_close(&writer->wake_fd);
		mem_free(writer);
		return NULL;
	}
	return writer;
}

void
log_writer_free(struct log_writer **writer_ptr)
{
	struct log_writer *writer = *writer_ptr;

	if (writer == NULL)
		return;
	pthread_mutex_lock(&writer->lock);
	writer->stop = true;
	pthread_cond_signal(&writer->work);
	pthread_mutex_unlock(&writer->lock);
	pthread_join(writer->thread, NULL);
	if (writer->wake != NULL)
		event_free(writer->wake);
	fd_close(&writer->wake_fd);
	pthread_cond_destroy(&writer->work);
	pthread_mutex_destroy(&writer->lock);
	mem_free(writer);
	*writer_ptr = NULL;
}

void
log_writer_reopen(struct log_writer *writer)
{
	struct list *node;

	pthread_mutex_lock(&writer->lock);
	LIST_FOREACH(node, &writer->files)
	LIST_ENTRY(node, struct log_file, node)->reopen = true;
	pthread_cond_signal(&writer->work);
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
	file->fd = -1;
	pthread_mutex_lock(&writer->lock);
	list_push_back(&writer->files, &file->node);
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
		pthread_cond_signal(&writer->work);
	}
	file->limits = *limits;
	pthread_mutex_unlock(&writer->lock);
}

void
log_file_close(struct log_file **file_ptr)
{
	struct log_file *file = *file_ptr;
	struct log_writer *writer;

	if (file == NULL)
		return;
	writer = file->writer;
	pthread_mutex_lock(&writer->lock);
	file->closing = true;
	pthread_cond_signal(&writer->work);
	pthread_mutex_unlock(&writer->lock);
	*file_ptr = NULL;
}

static bool
is_full(const struct log_file *file)
{
	return file->pending.len >= LOG_FILE_PENDING_MAX;
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

	pthread_mutex_lock(&writer->lock);
	if (is_full(file) && is_stalled(file))
		file->dropped += count_lines(text, len);
	else
		strbuf_add(&file->pending, text, len);
	pthread_cond_signal(&writer->work);
	pthread_mutex_unlock(&writer->lock);
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
	lost = file->dropped + (file->writing ? 0 : file->lost);
	pthread_mutex_unlock(&file->writer->lock);
	return lost;
}

void
log_file_add_lost(struct log_file *file, uint64_t lines)
{
	pthread_mutex_lock(&file->writer->lock);
	file->dropped += lines;
	pthread_mutex_unlock(&file->writer->lock);
}
