/*
 * One log file on the disk, with a size cap, rotation, and a count of the lines
 * that are missing in it. log_writer.c is its only user.
 * A file is used by one thread at a time; every call may wait for the disk.
 */
#ifndef SUPERVISOR_LOG_DISK_H
#define SUPERVISOR_LOG_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct log_limits {
	uint64_t max_bytes; /* rotate at this size; 0: never */
	int64_t max_age_ms; /* rotate at this age, and remove rotated files
			     * that are older; 0: never */
	unsigned keep;      /* rotated files */
};

/* Zeroed at first, with fd -1. */
struct log_disk {
	int fd;
	uint64_t size;
	int64_t begun_ms; /* when its first line was written; wall clock */
	uint64_t lost;    /* lines that could not be written, not yet told */
	bool is_torn;     /* its last line has no end */
	bool is_stale;    /* to be opened by its name again */
	int64_t complained_ms;
};

/* Write whole lines to `path`, which is opened when it is not. What cannot be
 * written is counted, and told in the file with the next lines. */
void log_disk_write(struct log_disk *disk, const char *path,
    const struct log_limits *limits, const char *text, size_t len);
/* So many lines were dropped after what was written last. */
void log_disk_lost(struct log_disk *disk, uint64_t lines);
/* Open `path` anew, and the directory it is in is made if that is `directory`.
 * Returns 0, or an errno; then what is open stays open, and each write tries
 * again. */
int log_disk_reopen(
    struct log_disk *disk, const char *path, const char *directory);
void log_disk_close(struct log_disk *disk);
/* What an errno of opening a log means. */
const char *log_disk_reason(int error);

uint64_t log_count_lines(const char *text, size_t len);

#endif
