/*
 * The log threads, one per file: they take whole lines in memory and write them
 * to files with a size cap and rotation. app_log.c is their only user.
 * Calls come from the supervisor's thread; a file belongs to its thread.
 */
#ifndef SUPERVISOR_LOG_WRITER_H
#define SUPERVISOR_LOG_WRITER_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/compiler.h"
#include "src/base/list.h"
#include "supervisor/log_disk.h"

struct event_base;
struct log_writer; /* opaque */
struct log_file;   /* opaque */

/* What waits for the disk or is being written, per file; beyond it the app's
 * pipe is left unread. */
#define LOG_FILE_PENDING_MAX (1024 * 1024)
#define LOG_FILE_STALL_MS 1000

struct event_base *log_writer_base(const struct log_writer *writer);

/* In the loop, once: some file has room again; look whether it is yours. */
typedef void log_writer_room_cb(void *arg);
struct log_room {
	struct list node;
	log_writer_room_cb *on_room;
	void *arg;
};
/* Be told once (list_remove takes the wish back). */
void log_writer_wait(struct log_writer *writer, struct log_room *room);

struct log_file *log_file_new(struct log_writer *writer, const char *path,
    const struct log_limits *limits) MUST_CHECK;
void log_file_configure(
    struct log_file *file, const char *path, const struct log_limits *limits);
/* Written out by the thread, then closed and freed; *file is NULL at once. */
void log_file_close(struct log_file **file);
/* `text` is whole lines. The caller asks log_file_is_full before it reads more.
 * Dropped, and counted in the file, when there is no room and the disk does not
 * move, or when it cannot be written. */
void log_file_add(struct log_file *file, const char *text, size_t len);
/* LOG_FILE_PENDING_MAX waits. Then a log_room is told when it is written. False
 * when a write hangs for longer than LOG_FILE_STALL_MS: nobody waits for that
 * one. */
bool log_file_is_full(struct log_file *file);
bool log_file_is_written(struct log_file *file);
/* Lines that were lost and are not told in the file yet, for who takes over
 * (only when it is written); and told there, when it has. */
uint64_t log_file_lost(struct log_file *file);
void log_file_add_lost(struct log_file *file, uint64_t lines);

#endif
