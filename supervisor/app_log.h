/*
 * What apps print: read line-wise from their pipes by the loop, written to a
 * file per app by a thread of its own, so that a slow disk stops nobody.
 * All calls from the supervisor's thread.
 */
#ifndef SUPERVISOR_APP_LOG_H
#define SUPERVISOR_APP_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/compiler.h"
#include "src/base/str.h"
#include "src/base/strbuf.h"
#include "src/conf/conf.h"

struct event_base;
struct log_writer; /* opaque: the threads */
struct app_log;    /* opaque: one app's file and its last lines */
struct app_pipe;   /* opaque: one stdout or stderr */

#define APP_LOG_LAST_LINES 20

struct log_writer *log_writer_new(struct event_base *base) MUST_CHECK;
/* Waits until all is written and the threads have ended, for 5 s at most. The
 * logs must be freed before. */
void log_writer_free(struct log_writer **writer);
/* Open all files anew; `directory` is made where it is missing. Their threads
 * do it. */
void log_writer_reopen(struct log_writer *writer, const char *directory);
/* Have they? */
bool log_writer_reopened(struct log_writer *writer);
/* Appends a line for each that could not be opened, or still waits for it. */
void log_writer_findings(struct log_writer *writer, struct strbuf *to);

struct app_log *app_log_new(
    struct log_writer *writer, const struct conf_app *conf) MUST_CHECK;
/* Take over the file, size and number of old files of a new configuration. */
void app_log_configure(struct app_log *log, const struct conf_app *conf);
/* What was taken is written before the file is closed. */
void app_log_free(struct app_log **log);
/* A line of ours among the app's: "started", "killed by SIGKILL". */
void app_log_note(struct app_log *log, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A line that process `pid` wrote beside an answer to a request. */
void app_log_line(
    struct app_log *log, pid_t pid, const char *request, const char *line);
/* The last lines, oldest first, each with its newline, at most `max`; of all
 * processes, or of `pid` (0: there is none). */
void app_log_last(
    const struct app_log *log, size_t max, pid_t pid, struct strbuf *to);
#define APP_LOG_ALL (-1)
const char *app_log_path(const struct app_log *log);
/* Is everything taken so far in the file? */
bool app_log_is_written(struct app_log *log);
/* See log_file_lost. */
uint64_t app_log_lost(struct app_log *log);
void app_log_add_lost(struct app_log *log, uint64_t lines);

/* Every line, as it comes, without newline; at last a NULL when the log is
 * freed: then it follows no more. The follower must not free the log. */
typedef void app_log_follow_cb(struct str line, void *arg);
struct app_follower; /* opaque */
struct app_follower *app_log_follow(
    struct app_log *log, app_log_follow_cb *on_line, void *arg) MUST_CHECK;
void app_log_unfollow(struct app_follower **follower);

/* Read the pipe `fd` (taken over) into `log`; `pid` stands before its lines. */
struct app_pipe *app_pipe_new(struct app_log *log, int fd) MUST_CHECK;
void app_pipe_set_pid(struct app_pipe *pipe, pid_t pid);
/* Take what is still in the pipe, end the last line, close it. */
void app_pipe_close(struct app_pipe **pipe);

/* For another process that takes over: where the pipe is and what of a line has
 * come; the part is the caller's to free. */
struct saved_pipe;
void app_pipe_save(const struct app_pipe *pipe, struct saved_pipe *to);
/* The same pipe, there. */
struct app_pipe *app_pipe_adopt(
    struct app_log *log, const struct saved_pipe *from) MUST_CHECK;
/* Take a line, as app_log_last gave it, among the last ones. */
void app_log_remember(struct app_log *log, const char *line);

#endif
