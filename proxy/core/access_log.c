/*
 * Access log files: a buffer and a descriptor per worker.
 * request_free adds, the tick and full buffers flush, REOPEN_LOGS swaps files.
 * What a line looks like is access_log_line.c's.
 */
#include "proxy/core/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "proxy/core/request.h"
#include "proxy/core/worker.h"
#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "src/base/mem.h"

#define BUFFER_BYTES ((size_t)2 * ACCESS_LOG_LINE_MAX)
#define COMPLAIN_EVERY_MS 60000

/* What one worker has; only its thread touches it. */
struct part {
	int fd;
	size_t len;
	char *bytes; /* BUFFER_BYTES; NULL until the first line */
	int64_t complained_ms;
	char pad[32];
};

struct access_log {
	enum conf_log_format format;
	unsigned n_workers;
	char *path; /* for complaints */
	struct part parts[];
};

struct access_log *
access_log_new(
    int fd, const char *path, enum conf_log_format format, unsigned n_workers)
{
	struct access_log *log =
	    mem_alloc(sizeof(*log) + n_workers * sizeof(log->parts[0]));

	log->format = format;
	log->n_workers = n_workers;
	log->path = mem_strdup(path);
	for (unsigned i = 0; i < n_workers; i++) {
		log->parts[i].fd = i == 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (log->parts[i].fd == -1)
			log_errno("%s: no descriptor for worker %u", path, i);
	}
	return log;
}

void
access_log_free(struct access_log **log_ptr)
{
	struct access_log *log = *log_ptr;

	if (log == NULL)
		return;
	for (unsigned i = 0; i < log->n_workers; i++) {
		fd_close(&log->parts[i].fd);
		mem_free(log->parts[i].bytes);
	}
	mem_free(log->path);
	mem_free(log);
	*log_ptr = NULL;
}

enum conf_log_format
access_log_format(const struct access_log *log)
{
	return log->format;
}

static void
complain(struct access_log *log, struct part *part, int64_t now_ms)
{
	if (part->complained_ms != 0 &&
	    now_ms - part->complained_ms < COMPLAIN_EVERY_MS)
		return;
	part->complained_ms = now_ms;
	log_errno("%s: access log lines are lost", log->path);
}

void
access_log_flush(struct access_log *log, struct worker *worker)
{
	struct part *part = &log->parts[worker->index];
	size_t done = 0;

	while (done < part->len) {
		ssize_t n =
		    write(part->fd, part->bytes + done, part->len - done);

		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0) {
			/* A full disk or pipe must not stop the worker. */
			complain(log, part, worker->tick_ms);
			break;
		}
		done += (size_t)n;
	}
	part->len = 0;
}

void
access_log_add(struct access_log *log, const struct request *request)
{
	struct worker *worker = request->worker;
	struct part *part = &log->parts[worker->index];

	if (UNLIKELY(part->bytes == NULL))
		part->bytes = mem_alloc(BUFFER_BYTES);
	if (BUFFER_BYTES - part->len < ACCESS_LOG_LINE_MAX)
		access_log_flush(log, worker);
	part->len += access_log_format_line(
	    log->format, request, part->bytes + part->len);
}

void
access_log_reopen(struct access_log *log, struct worker *worker, int fd)
{
	struct part *part = &log->parts[worker->index];

	access_log_flush(log, worker);
	fd_close(&part->fd);
	part->fd = fd;
}

void
access_log_leave(struct access_log *log, struct worker *worker)
{
	struct part *part = &log->parts[worker->index];

	access_log_flush(log, worker);
	fd_close(&part->fd);
}
