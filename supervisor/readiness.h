/*
 * Is a new process ready? Asked by probes through the proxy, told by READY=1
 * on its own NOTIFY_SOCKET, or simply alive for a second (http = false). Later:
 * does it still say WATCHDOG=1 there?
 * Supervisor thread only.
 */
#ifndef SUPERVISOR_READINESS_H
#define SUPERVISOR_READINESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/addr.h"
#include "src/base/compiler.h"

struct readiness; /* opaque */
struct supervisor;

/* Called once. `at`: which of the addresses answered. */
typedef void readiness_cb(unsigned at, void *arg);

struct readiness_plan {
	bool probe; /* false: being alive for a second is enough */
	uint32_t protocol;
	const char *path, *host; /* copied */
	uint32_t status;         /* the only one that is ready; 0: any good */
	struct addr addrs[2];
	unsigned n_addrs, first; /* which address is tried first */
	bool notify;             /* READY=1 counts */
	int watchdog_ms;         /* 0: none */
	uid_t uid;               /* whose messages count */
};

/* Makes the notify socket at once, so that its name can go into the
 * environment; waits for readiness_begin. */
struct readiness *readiness_new(struct supervisor *supervisor,
    const struct readiness_plan *plan, readiness_cb *on_ready,
    void *arg) MUST_CHECK;
/* For NOTIFY_SOCKET; NULL when there is none. */
const char *readiness_notify_name(const struct readiness *readiness);
/* The process runs: begin to ask. */
void readiness_begin(struct readiness *readiness);
/* Why it is not ready yet, one line. */
const char *readiness_last_error(const struct readiness *readiness);
/* It is ready: from now on only its watchdog is waited for. `on_silent` comes
 * each time that it said nothing for watchdog_ms. */
typedef void readiness_silent_cb(void *arg);
void readiness_watch(
    struct readiness *readiness, readiness_silent_cb *on_silent);
/* Handed on to another process: the notify socket, and whose messages count;
 * -1: there is none. */
int readiness_notify_fd(const struct readiness *readiness, uint32_t *uid);
/* As readiness_new, there, with that socket (taken over). */
struct readiness *readiness_adopt(struct supervisor *supervisor,
    const struct readiness_plan *plan, int fd, readiness_cb *on_ready,
    void *arg) MUST_CHECK;
/* Also cancels. */
void readiness_free(struct readiness **readiness);

#endif
