/*
 * The counters of all proxies that there are and were: what one counted is not
 * lost when it ends. proxy_proc.c is the only user. Supervisor thread only.
 */
#ifndef SUPERVISOR_PROXY_COUNTS_H
#define SUPERVISOR_PROXY_COUNTS_H

#include "src/base/compiler.h"
#include "supervisor/counts.h"
#include "supervisor/proxy_proc.h"

struct proxy_counts; /* opaque */
struct proxy_gen;
struct saved_proxy;
struct supervisor;

/* Asks once a second, so that not much is lost with a proxy that dies. */
struct proxy_counts *proxy_counts_new(struct supervisor *supervisor) MUST_CHECK;
/* All proxies must be gone. */
void proxy_counts_free(struct proxy_counts **counts);

/* A proxy begins, and has ended. */
void proxy_counts_join(
    struct proxy_counts *counts, unsigned side, struct proxy_gen *gen);
void proxy_counts_leave(struct proxy_counts *counts, unsigned side);
/* It says this, asked or at its end. */
void proxy_counts_hear(struct proxy_counts *counts, unsigned side,
    const struct channel_stats *stats);

/* Ask all. `on_counts` comes once, perhaps before it returns; see
 * proxy_proc_query. */
void proxy_counts_ask(
    struct proxy_counts *counts, proxy_counts_cb *on_counts, void *arg);
/* As last heard. The caller clears it. */
void proxy_counts_sum(const struct proxy_counts *counts, struct counts *sum);

/* Handed on to another process, by the one proxy there is. */
void proxy_counts_save(
    const struct proxy_counts *counts, unsigned side, struct saved_proxy *to);
void proxy_counts_adopt(
    struct proxy_counts *counts, unsigned side, const struct saved_proxy *from);

#endif
