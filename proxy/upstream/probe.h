/*
 * Is an instance ready? One request on a connection of its own, that is all.
 * On behalf of the supervisor, which repeats and decides. Not a health check
 * of peers in use.
 */
#ifndef UPSTREAM_PROBE_H
#define UPSTREAM_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "proxy/upstream/registry.h"
#include "src/base/addr.h"

struct worker;

struct probe_ask {
	enum upstream_protocol protocol;
	uint32_t timeout_ms; /* for all of it; rounded up to a tick */
	const char *path;    /* HTTP: target; FastCGI: ping.path */
	const char *host;
	struct addr addr;
};
struct probe_answer {
	bool ok;          /* HTTP: a whole answer below 500; FastCGI: 200 */
	unsigned status;  /* 0: none */
	const char *text; /* not ok: why, one line; borrowed */
};
typedef void probe_done_cb(void *arg, const struct probe_answer *answer);

/* Any thread; `ask` is copied. `done` is called exactly once, in the worker's
 * thread, also (not ok) when the worker ends before the answer came. The
 * connection is closed by us before that. */
void probe_start(struct worker *worker, const struct probe_ask *ask,
    probe_done_cb *done, void *arg);

/* Ends those of a pool (pool_free). */
struct list;
void probe_end_all(struct list *probes);

#endif
