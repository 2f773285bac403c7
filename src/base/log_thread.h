/*
 * A thread that writes the daemon's own log, so that a file on a disk that
 * hangs stops nobody. For a process whose log is a file.
 */
#ifndef BASE_LOG_THREAD_H
#define BASE_LOG_THREAD_H

#include <stdbool.h>
#include <stddef.h>

/* What waits to be written, at most; lines that come beyond are dropped, and
 * counted in the log. */
#define LOG_THREAD_PENDING_MAX ((size_t)256 * 1024)

/* From now on the thread writes what is logged, to the descriptor that log_init
 * named. A second call changes nothing. Without a thread lines are written at
 * once, as before. The process' first thread calls it. */
void log_thread_begin(void);
/* Wait until all is written, for a second; from then on lines are written at
 * once, or not at all when the disk hangs. Before the process ends, or becomes
 * another by exec. Returns whether there was a thread. */
bool log_thread_end(void);

#endif
