/*
 * The access log: one line a request, combined or JSON.
 * Each worker gathers lines in a buffer of its own and writes whole lines to a
 * descriptor of its own, so no lock and no torn line. Knows no configuration
 * beyond the format.
 */
#ifndef CORE_ACCESS_LOG_H
#define CORE_ACCESS_LOG_H

#include <stddef.h>

#include "src/base/compiler.h"
#include "src/conf/conf.h"

struct access_log; /* opaque */
struct request;
struct worker;

/* Takes over `fd` (opened for appending). Main thread. */
struct access_log *access_log_new(int fd, const char *path,
    enum conf_log_format format, unsigned n_workers) MUST_CHECK;
/* Every worker has left it, or never came. */
void access_log_free(struct access_log **log);
enum conf_log_format access_log_format(const struct access_log *log);

/* Add the line of a finished request. The worker's thread, like all below. A
 * log that cannot be written loses lines and says so in the daemon's log, at
 * most once a minute. */
void access_log_add(struct access_log *log, const struct request *request);
/* Write what this worker has gathered; the tick calls it. */
void access_log_flush(struct access_log *log, struct worker *worker);
/* Flush to the old file and go on in `fd`, which is taken over. */
void access_log_reopen(struct access_log *log, struct worker *worker, int fd);
/* This worker writes no more to it. */
void access_log_leave(struct access_log *log, struct worker *worker);

/* One line with its newline into `to`; returns its length, never more than
 * ACCESS_LOG_LINE_MAX. Here for tests. */
#define ACCESS_LOG_LINE_MAX 49152
size_t access_log_format_line(enum conf_log_format format,
    const struct request *request, char to[ACCESS_LOG_LINE_MAX]);

#endif
