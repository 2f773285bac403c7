/*
 * When a process that died is started again.
 * Pure: no timers, no clock of its own. Used for instances and for the proxy.
 */
#ifndef SUPERVISOR_BACKOFF_H
#define SUPERVISOR_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#define BACKOFF_FIRST_MS 1000
#define BACKOFF_MAX_MS 60000

struct backoff {
	int next_ms; /* the delay after the next early death; 0: none yet */
};

/* A process that was `ready` for `ready_ms` died: the delay before the next
 * start, in ms. 0 (at once) when it had been ready for `min_uptime_ms`, or when
 * this is the first death of a ready one; else 1 s doubling to 60 s. */
int backoff_after_death(
    struct backoff *backoff, bool ready, int64_t ready_ms, int min_uptime_ms);
/* It cannot be started as configured: always the longest delay. */
int backoff_after_failure(struct backoff *backoff);
/* The administrator wants it now: begin again with the shortest delay. */
void backoff_reset(struct backoff *backoff);

#endif
