/*
 * What the files of the proxy process share: the main thread's state.
 * The main thread runs a worker's loop too, without clients: other threads
 * reach it by mail. All functions: main thread, except where noted.
 */
#ifndef PROXY_STATE_H
#define PROXY_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/core/snapshot.h"
#include "proxy/core/tls_files.h"
#include "proxy/core/tls_tickets.h"
#include "proxy/core/worker.h"
#include "proxy/upstream/registry.h"
#include "src/base/list.h"
#include "src/conf/conf.h"
#include "src/ipc/channel.h"
#include "src/ipc/frame.h"

/* The sockets of one listener, as the supervisor sent them. */
struct socket_set {
	struct list node; /* in proxy->sets, or in pending */
	uint32_t key;
	uint32_t serial; /* the last configuration that names it */
	bool is_shared;
	size_t n_fds;
	int *fds;
};

/* A configuration on its way: PREPARE ... COMMIT. */
struct pending {
	enum { PENDING_NONE, PENDING_LOADING, PENDING_PREPARED } state;
	uint32_t serial;
	struct conf *conf;         /* until the snapshot owns it */
	struct snapshot *snapshot; /* PREPARED */
	struct conf_errors errors;
	size_t n_logs;
	int log_fds[FRAME_FDS_MAX]; /* until the snapshot owns them */
	struct tls_files files;     /* until the snapshot is made */
	struct list sets;           /* that came with it */
	uint32_t *keys;             /* per listener of conf; 0: none came */
};

struct address_count;
struct proxy {
	struct worker *main;
	struct frame_link *link;
	struct event channel_in, channel_out;
	bool said_hello;   /* the supervisor did */
	bool is_gone;      /* the supervisor is */
	struct list early; /* frames that came before there were workers */
	unsigned n_early;

	unsigned n_workers; /* 0 until the first configuration */
	unsigned n_running; /* threads */
	struct worker **workers;
	struct worker_tick **ticks; /* per worker: flushes its logs */
	struct worker_load *load;
	struct address_count *addresses; /* of clients, front/'s */
	struct upstream_registry *registry;

	struct tls_tickets tickets; /* none before they came */
	struct pending pending;
	struct list sets;         /* struct socket_set, in use */
	struct snapshot *current; /* committed last */
	unsigned n_commits;       /* not yet installed by every worker */
	unsigned n_old;           /* snapshots that are still used */
	atomic_uint n_output;     /* OUTPUT not yet sent; all threads */

	bool is_draining;
	bool keeps_idle;
	bool has_closed;    /* listeners, at every worker */
	bool ended_streams; /* told them to end: the last before the cut */
	bool was_aborted;
	bool is_ending; /* all other threads have stopped */
	bool is_mute;   /* and the last is said */
	int64_t deadline_ms;
	int64_t streams_until_ms; /* that of the connections while there are
				   * streams, if it is later */
	struct worker_tick tick;
	int exit_code;

	struct frame_in in;
	struct frame_out out;
};

/* ---- proxy.c ---- */

/* Become the user of `conf`, make and start the workers. Once. 0, or -1 with a
 * finding in `errors`. */
int proxy_start(struct proxy *proxy, const struct conf *conf,
    struct conf_errors *errors) MUST_CHECK;
/* Close the listeners now, let requests end for `deadline_ms`, then return
 * `exit_code` from proxy_run. `keeps_idle`: connections without a request may
 * stay as long and have one more. */
void proxy_drain(
    struct proxy *proxy, int64_t deadline_ms, bool keeps_idle, int exit_code);

/* ---- proxy_config.c ---- */

/* -1: out of order, the channel is broken. They close what they do not keep. */
int proxy_config_prepare(
    struct proxy *proxy, const struct channel_prepare *message) MUST_CHECK;
int proxy_config_listen(
    struct proxy *proxy, const struct channel_listen *message) MUST_CHECK;
int proxy_config_secret(
    struct proxy *proxy, const struct channel_secret *message) MUST_CHECK;
int proxy_config_loaded(struct proxy *proxy, uint32_t serial) MUST_CHECK;
int proxy_config_commit(struct proxy *proxy, uint32_t serial) MUST_CHECK;
void proxy_config_abort(struct proxy *proxy);
void proxy_config_reopen_logs(
    struct proxy *proxy, const struct channel_reopen *message);
/* Give the ticket keys to all workers, if any came. */
void proxy_config_tell_tickets(struct proxy *proxy);
/* Close the sockets of sets that only configurations before `serial` name. */
void proxy_config_close_sets(struct proxy *proxy, uint32_t serial);

/* ---- proxy_channel.c ---- */

/* Begin to speak. */
int proxy_channel_start(struct proxy *proxy, int fd) MUST_CHECK;
void proxy_channel_end(struct proxy *proxy);
/* The workers are there: handle what came too early. */
void proxy_channel_replay(struct proxy *proxy);
/* Send proxy->out, which a channel_put_... has filled. */
void proxy_channel_send(struct proxy *proxy);
void proxy_channel_say(struct proxy *proxy, enum channel_type type,
    uint32_t serial, const char *text);
/* What is still to be told, and all counters, before we end; waits a moment
 * for room. */
void proxy_channel_last_words(struct proxy *proxy);

/* ---- proxy_tell.c: any thread ---- */

extern const struct registry_events proxy_tell_registry_events;
/* The texts are copied. */
void proxy_tell_probed(
    struct proxy *proxy, const struct channel_probed *probed);

#endif
