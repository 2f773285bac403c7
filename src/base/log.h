/*
 * The daemon's own log: one line a call, written to one descriptor.
 * Every process and thread writes through here; applications' output does not.
 * Not the access log.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"

enum log_level {
	LOG_LEVEL_ERROR, /* ours to mend: something does not work */
	LOG_LEVEL_WARN,  /* works, but not as the administrator would expect */
	LOG_LEVEL_INFO,  /* life of apps and listeners; what a client did wrong
			  */
	LOG_LEVEL_DEBUG, /* state changes of connections and requests */
};

/* Say who logs (`role`: "supervisor", "proxy", "keeper"; static text), down to
 * which level and to which fd (kept, not owned). Before the first call lines
 * of LOG_LEVEL_INFO and above go to fd 2. Call before threads start. */
void log_init(const char *role, enum log_level level, int fd);

/* Whole lines go to `take` (NULL: to nobody) from now on; any thread calls it.
 * False: it did not want that one, which is then written at once. Returns the
 * descriptor of log_init. For log_thread.c. */
typedef bool log_take_cb(const char *line, size_t len);
int log_hand_to(log_take_cb *take);

/* Parse "error", "warn", "info" or "debug". Returns 0, or -1. */
int log_level_parse(const char *text, enum log_level *level) MUST_CHECK;

/* A line "2026-11-30T12:00:00.123Z level role[pid]: text\n". Control bytes of
 * the text are written as \xNN. One write(2) a line, at most 4096 bytes, cut
 * beyond; any thread; never fails, keeps errno. */
void log_error(const char *fmt, ...) PRINTF_LIKE(1, 2);
void log_warn(const char *fmt, ...) PRINTF_LIKE(1, 2);
void log_info(const char *fmt, ...) PRINTF_LIKE(1, 2);
void log_debug(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* As log_error, followed by ": " and the text of errno. */
void log_errno(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* For lines that outsiders can cause by the thousand: at most so many a second;
 * how many were left out is said before the next one. Zeroed at first; one
 * thread's. */
#define LOG_BUDGET_LINES 20
struct log_budget {
	int64_t since_ms; /* monotonic: when this second began */
	unsigned lines, left_out;
};
/* May a line of this level be written now? False also when the level is off. */
bool log_may(
    struct log_budget *budget, enum log_level level, int64_t now_ms) MUST_CHECK;

#endif
