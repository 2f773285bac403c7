/*
 * The delay before a restart: at once, 1 s, 2 s ... 60 s.
 * Called by instance.c and proxy_proc.c when their process is gone.
 * Never gives up: that is the callers' promise too.
 */
#include "supervisor/backoff.h"

int
backoff_after_death(
    struct backoff *backoff, bool ready, int64_t ready_ms, int min_uptime_ms)
{
	int delay_ms;

	if (ready && ready_ms >= min_uptime_ms) {
		backoff->next_ms = 0;
		return 0;
	}
	if (ready && backoff->next_ms == 0) {
		backoff->next_ms = BACKOFF_FIRST_MS;
		return 0;
	}
	delay_ms = backoff->next_ms == 0 ? BACKOFF_FIRST_MS : backoff->next_ms;
	backoff->next_ms =
	    delay_ms > BACKOFF_MAX_MS / 2 ? BACKOFF_MAX_MS : delay_ms * 2;
	return delay_ms;
}

int
backoff_after_failure(struct backoff *backoff)
{
	backoff->next_ms = BACKOFF_MAX_MS;
	return BACKOFF_MAX_MS;
}

void
backoff_reset(struct backoff *backoff)
{
	backoff->next_ms = 0;
}
