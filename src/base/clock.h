/*
 * Time: one monotonic clock for everything that waits, wall time for people.
 * Any thread.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* Milliseconds, microseconds of CLOCK_MONOTONIC. */
int64_t clock_now_ms(void);
int64_t clock_now_us(void);
/* Milliseconds since 1970, UTC. */
int64_t clock_wall_ms(void);

#define CLOCK_ISO_LEN 24
/* "2026-11-30T12:00:00.123Z" and a NUL into `to` (CLOCK_ISO_LEN + 1 bytes). */
void clock_put_iso(char *to, int64_t wall_ms);
#define CLOCK_HTTP_LEN 29
/* "Mon, 30 Nov 2026 12:00:00 GMT" (IMF-fixdate, RFC 9110 section 5.6.7), no
 * NUL, CLOCK_HTTP_LEN bytes. */
void clock_put_http(char *to, int64_t wall_s);
#define CLOCK_CLF_LEN 26
/* "30/Nov/2026:12:00:00 +0000", no NUL: the access log's combined format. */
void clock_put_clf(char *to, int64_t wall_s);

#endif
