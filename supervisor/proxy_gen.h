/*
 * One generation of the proxy: one process with its channel, from fork to exit.
 * proxy_proc.c is the only user. Supervisor thread only.
 */
#ifndef SUPERVISOR_PROXY_GEN_H
#define SUPERVISOR_PROXY_GEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/compiler.h"
#include "src/ipc/channel.h"
#include "supervisor/proxy_proc.h"
#include "supervisor/proxy_questions.h"

struct conf_hold;
struct proxy_gen; /* opaque */
struct supervisor;

/* What its owner hears of it. */
struct proxy_gen_events {
	/* It hears: tell it what it must know before its configuration. */
	void (*on_hello)(struct proxy_gen *gen, void *arg);
	/* It serves. Once. */
	void (*on_ready)(struct proxy_gen *gen, void *arg);
	/* DRAINED, QUIET, RELEASED */
	void (*on_instance)(struct proxy_gen *gen, enum channel_type type,
	    const struct channel_instance *about, void *arg);
	void (*on_want)(struct proxy_gen *gen, const char *app, void *arg);
	/* STATS, asked or at its end. */
	void (*on_stats)(struct proxy_gen *gen,
	    const struct channel_stats *stats, void *arg);
	/* The process is gone; what it said last may still be heard. */
	void (*on_end)(struct proxy_gen *gen, void *arg);
	/* It has ended, `why` is for people. The owner frees it. */
	void (*on_exit)(struct proxy_gen *gen, const char *why, void *arg);
};

/* Start a process; `number` is its generation. NULL with errno. */
struct proxy_gen *proxy_gen_start(struct supervisor *supervisor,
    unsigned number, const struct proxy_gen_events *events,
    void *arg) MUST_CHECK;
/* A process that is still there is not heard of any more. */
void proxy_gen_free(struct proxy_gen **gen);

/* Drain for at most `deadline_ms` and end; see channel_drain. */
void proxy_gen_drain(struct proxy_gen *gen, int deadline_ms, bool keeps_idle);
void proxy_gen_kill(struct proxy_gen *gen, const char *why);

struct proxy_gen_info {
	enum proxy_state state; /* DOWN: it has ended */
	int64_t since_ms;       /* monotonic, of the state */
	int64_t ready_at_ms;    /* when it began to serve; 0: never */
	pid_t pid;
	unsigned number;
};
const struct proxy_gen_info *proxy_gen_info(const struct proxy_gen *gen);

/* Send it a frame, if it hears. */
void proxy_gen_tell(struct proxy_gen *gen, const struct frame_out *out);

/* As in proxy_proc.h, for this one. */
uint64_t proxy_gen_probe(struct proxy_gen *gen, struct channel_probe *probe,
    proxy_probed_cb *on_probed, void *arg) MUST_CHECK;
void proxy_gen_probe_cancel(struct proxy_gen *gen, uint64_t probe);
/* Ask for its counters: they come to on_stats, then `on_answered` once. */
void proxy_gen_query(
    struct proxy_gen *gen, proxy_answered_cb *on_answered, void *arg);
void proxy_gen_reopen_logs(
    struct proxy_gen *gen, const struct channel_reopen *reopen);
void proxy_gen_prepare(struct proxy_gen *gen, const struct conf_hold *hold,
    proxy_prepared_cb *on_prepared, void *arg);
void proxy_gen_commit(
    struct proxy_gen *gen, proxy_committed_cb *on_committed, void *arg);

/* Nothing of what we told it is still on its way out of here? */
bool proxy_gen_is_flushed(const struct proxy_gen *gen);
struct saved_proxy;
void proxy_gen_save(const struct proxy_gen *gen, struct saved_proxy *to);
/* One that serves, started before another binary took our place. */
struct proxy_gen *proxy_gen_adopt(struct supervisor *supervisor,
    const struct saved_proxy *from, const struct proxy_gen_events *events,
    void *arg) MUST_CHECK;

#endif
