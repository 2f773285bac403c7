/*
 * The proxy as the rest of the supervisor sees it: started, told, restarted,
 * upgraded. At most two processes at a time: the one that serves, and beside it
 * one that will, or one that drains. Supervisor thread only.
 */
#ifndef SUPERVISOR_PROXY_PROC_H
#define SUPERVISOR_PROXY_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/compiler.h"
#include "src/ipc/channel.h"

struct conf;
struct proxy_proc; /* opaque */
struct conf_hold;
struct supervisor;

enum proxy_state {
	PROXY_DOWN, /* no process; the restart timer runs, or it is stopped */
	PROXY_STARTING, /* started; configuration not in use yet */
	PROXY_READY,    /* serves */
	PROXY_STOPPING, /* told to drain and exit */
};

struct proxy_proc *proxy_proc_new(struct supervisor *supervisor) MUST_CHECK;
/* The processes must have ended (proxy_proc_stop). */
void proxy_proc_free(struct proxy_proc **proxy);

void proxy_proc_start(struct proxy_proc *proxy);
/* Drain for at most `deadline_ms` and end; a second call with 0 kills. */
void proxy_proc_stop(struct proxy_proc *proxy, int deadline_ms);
/* No process is left. */
bool proxy_proc_is_gone(const struct proxy_proc *proxy);

/* Start another process of the binary we run, and when it serves let the old
 * one drain. `on_done` comes once: NULL, or why the old one goes on serving. */
typedef void proxy_upgraded_cb(const char *why, void *arg);
void proxy_proc_upgrade(
    struct proxy_proc *proxy, proxy_upgraded_cb *on_done, void *arg);
/* A second process is there; *draining: it is an old one (its pid). */
bool proxy_proc_has_two(const struct proxy_proc *proxy, pid_t *draining);

/* Of the one that serves. */
enum proxy_state proxy_proc_state(const struct proxy_proc *proxy);
pid_t proxy_proc_pid(const struct proxy_proc *proxy);
int64_t proxy_proc_since_ms(const struct proxy_proc *proxy);
/* 1 for the first process, 2 for the next ... */
unsigned proxy_proc_generation(const struct proxy_proc *proxy);
/* How often it ended unasked, and how the last time; "": never. */
unsigned proxy_proc_restarts(const struct proxy_proc *proxy);
const char *proxy_proc_last_exit(const struct proxy_proc *proxy);

/* Peers and the states of apps. Every process hears of them, a new one after
 * its HELLO. */
void proxy_proc_announce(
    struct proxy_proc *proxy, const struct channel_announce *announce);
/* True: supervisor_on_drained will be called. */
bool proxy_proc_withdraw(
    struct proxy_proc *proxy, uint64_t instance) MUST_CHECK;
/* Its requests have had their time (leases_hurry). */
void proxy_proc_hurry(struct proxy_proc *proxy, uint64_t instance);
/* All its processes have ended. Where it listened (-1: not known here) is kept
 * open, by a copy, until the proxies have seen which connections it had not
 * accepted: what was asked there is asked of another one. */
void proxy_proc_withdraw_dead(
    struct proxy_proc *proxy, uint64_t instance, int listen_fd);
void proxy_proc_app_state(
    struct proxy_proc *proxy, const struct channel_app *app);
/* The access logs; the descriptors stay the caller's. */
void proxy_proc_reopen_logs(
    struct proxy_proc *proxy, const struct channel_reopen *reopen);
/* Ticket keys; `fd` stays the caller's. */
void proxy_proc_tickets(struct proxy_proc *proxy, int fd);

/* One probe. The callback comes exactly once, later, unless cancelled; also
 * when the proxy ends. Returns the probe's number; 0: no proxy, no callback. */
typedef void proxy_probed_cb(const struct channel_probed *probed, void *arg);
uint64_t proxy_proc_probe(struct proxy_proc *proxy, struct channel_probe *probe,
    proxy_probed_cb *on_probed, void *arg) MUST_CHECK;
void proxy_proc_probe_cancel(struct proxy_proc *proxy, uint64_t probe);

/* The counters of all processes that are and were, added up: what grows never
 * falls. What a process counted in the last second of its life is lost if it
 * did not drain. Always calls back once, perhaps before it returns; `is_live`:
 * a proxy has answered, so that the numbers of now are right. */
struct counts;
typedef void proxy_counts_cb(const struct counts *sum, bool is_live, void *arg);
void proxy_proc_query(
    struct proxy_proc *proxy, proxy_counts_cb *on_counts, void *arg);
/* The same as last heard, at most some seconds ago. The caller clears it. */
void proxy_proc_counts(const struct proxy_proc *proxy, struct counts *sum);

/* Give it a new configuration: its listeners must be in the listen set. The
 * callback comes once: NULL when it is prepared (then commit or abort), else
 * the reason. */
typedef void proxy_prepared_cb(const char *error, void *arg);
void proxy_proc_prepare(struct proxy_proc *proxy, const struct conf_hold *hold,
    proxy_prepared_cb *on_prepared, void *arg);
/* Put it in force. `on_committed` comes once, later: every worker runs on it,
 * or the process is gone (the next one begins with it). */
typedef void proxy_committed_cb(void *arg);
void proxy_proc_commit(
    struct proxy_proc *proxy, proxy_committed_cb *on_committed, void *arg);

/* Handed on to another process: only while one serves alone and has all slots
 * (proxy_proc_is_simple). */
struct saved_proxy;
bool proxy_proc_is_simple(const struct proxy_proc *proxy);
void proxy_proc_save(const struct proxy_proc *proxy, struct saved_proxy *to);
void proxy_proc_adopt(struct proxy_proc *proxy, const struct saved_proxy *from);
/* The proxy knows of this instance already; `withdrawn`: it was told to drain
 * it and has not said that it did. */
void proxy_proc_adopt_instance(struct proxy_proc *proxy,
    const struct channel_announce *announce, bool withdrawn);
/* Does it have anything open to an instance that was withdrawn? */
bool proxy_proc_drains(const struct proxy_proc *proxy, uint64_t instance);

#endif
