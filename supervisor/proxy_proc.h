/*
 * The proxy process as the supervisor sees it: started, told, restarted.
 * One at a time; supervisor thread only.
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
struct supervisor;

enum proxy_state {
	PROXY_DOWN, /* no process; the restart timer runs, or it is stopped */
	PROXY_STARTING, /* started; configuration not in use yet */
	PROXY_READY,    /* serves */
	PROXY_STOPPING, /* told to drain and exit */
};

struct proxy_proc *proxy_proc_new(struct supervisor *supervisor) MUST_CHECK;
/* The process must have ended (proxy_proc_stop). */
void proxy_proc_free(struct proxy_proc **proxy);

void proxy_proc_start(struct proxy_proc *proxy);
/* Drain for at most `deadline_ms` and end; a second call with 0 kills. */
void proxy_proc_stop(struct proxy_proc *proxy, int deadline_ms);
enum proxy_state proxy_proc_state(const struct proxy_proc *proxy);
pid_t proxy_proc_pid(const struct proxy_proc *proxy);
unsigned proxy_proc_restarts(const struct proxy_proc *proxy);
/* "": none has ended yet. */
const char *proxy_proc_last_exit(const struct proxy_proc *proxy);
int64_t proxy_proc_since_ms(const struct proxy_proc *proxy);

/* Does it hear us? The tellers below do nothing when not: a new proxy is told
 * everything after its HELLO. */
bool proxy_proc_hears(const struct proxy_proc *proxy);
void proxy_proc_announce(
    struct proxy_proc *proxy, const struct channel_announce *announce);
void proxy_proc_withdraw(
    struct proxy_proc *proxy, uint64_t instance, bool dead);
void proxy_proc_app_state(
    struct proxy_proc *proxy, const struct channel_app *app);
void proxy_proc_reopen_logs(struct proxy_proc *proxy);

/* One probe. The callback comes exactly once, later, unless cancelled; also
 * when the proxy ends. Returns the probe's number; 0: no proxy, no callback. */
typedef void proxy_probed_cb(const struct channel_probed *probed, void *arg);
uint64_t proxy_proc_probe(struct proxy_proc *proxy, struct channel_probe *probe,
    proxy_probed_cb *on_probed, void *arg) MUST_CHECK;
void proxy_proc_probe_cancel(struct proxy_proc *proxy, uint64_t probe);

/* Counters: on_stats for each, at last with NULL (complete, or the proxy does
 * not answer). Always calls back, perhaps before it returns. */
typedef void proxy_stats_cb(const struct channel_stats *stats, void *arg);
void proxy_proc_query(
    struct proxy_proc *proxy, proxy_stats_cb *on_stats, void *arg);

/* Give it a new configuration: its listeners must be in the listen set. The
 * callback comes once: NULL when it is prepared (then commit or abort), else
 * the reason. */
typedef void proxy_prepared_cb(const char *error, void *arg);
void proxy_proc_prepare(struct proxy_proc *proxy, const struct conf *conf,
    proxy_prepared_cb *on_prepared, void *arg);
/* Put it in force. `on_committed` comes once, later: every worker runs on it,
 * or the process is gone (the next one begins with it). */
typedef void proxy_committed_cb(void *arg);
void proxy_proc_commit(
    struct proxy_proc *proxy, proxy_committed_cb *on_committed, void *arg);
void proxy_proc_abort(struct proxy_proc *proxy);

#endif
