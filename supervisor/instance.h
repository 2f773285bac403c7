/*
 * One instance of an app: a process (or a master with its children) with a
 * private socket, from birth to death. Supervisor thread only.
 */
#ifndef SUPERVISOR_INSTANCE_H
#define SUPERVISOR_INSTANCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/addr.h"
#include "src/base/compiler.h"
#include "src/base/list.h"
#include "supervisor/backoff.h"
#include "supervisor/instance_state.h"
#include "supervisor/process.h"
#include "supervisor/readiness.h"
#include "supervisor/runtimes.h"

struct app;
struct app_pipe;
struct event;
struct frame_link;

#define INSTANCE_REASON_MAX 256

struct instance {
	struct list node; /* in app->instances */
	struct app *app;
	enum instance_state state;           /* changed by set_state alone */
	int64_t since_ms;                    /* monotonic, of the state */
	int64_t retry_at_ms;                 /* BACKOFF, FAILED: the next try */
	char reason[INSTANCE_REASON_MAX];    /* of the state */
	char last_exit[INSTANCE_REASON_MAX]; /* how the last process ended */
	struct backoff backoff;
	unsigned restarts; /* starts after the first */
	bool wanted;
	bool trial;           /* new in a restart: one try, the app decides */
	bool is_old;          /* a restart replaces it */
	bool given_up;        /* it was not ready in time */
	bool retiring;        /* its streams may go on for stream_grace */
	bool hurried;         /* DRAINING: its plain requests were cut */
	bool quiet;           /* DRAINING: nothing but streams is left */
	unsigned generation;  /* of the app, when it was made */
	unsigned chance;      /* 0 to 255, for what should not come at once */
	char replace_why[96]; /* "": it is not to be replaced */
	struct event *timer;  /* of the state */

	/* One process; `id` is new for each. */
	uint64_t id; /* 0: never started */
	pid_t keeper, pid;
	bool exited; /* the app's first process has; its tree may not */
	bool announced;
	int64_t ready_at_ms; /* 0: not ready */
	struct frame_link *link;
	struct event *link_event;
	struct app_pipe *pipes[2];
	pid_t said_by; /* before_start or app: who printed; stays after its end;
			* 0: nobody was started */
	int listen_fd, status_fd;
	unsigned port;
	struct addr addrs[2]; /* where it may be reached */
	unsigned n_addrs;
	struct addr addr; /* where it is */
	struct readiness *readiness;
	struct runtime_traits traits;
};

struct instance *instance_new(struct app *app) MUST_CHECK;
/* Only when it is DOWN, BACKOFF or FAILED. */
void instance_free(struct instance **instance);

void instance_start(struct instance *instance);
/* Drain, then stop. */
void instance_stop(struct instance *instance, const char *why);
/* The same, but another one takes its place: its streams have stream_grace. */
void instance_retire(struct instance *instance, const char *why);
/* SIGKILL its whole tree. */
void instance_kill(struct instance *instance, const char *why);
/* The only way to change a state. `why` may be NULL. */
void instance_event(
    struct instance *instance, enum instance_event event, const char *why);

/* It runs, and its watchdog was heard of in the process before this one. */
void instance_watch(struct instance *instance);
/* What the proxies are to know of it. */
struct channel_announce;
void instance_describe(
    const struct instance *instance, struct channel_announce *announce);
/* Tell the proxy (again) that it may be sent requests. */
void instance_announce(struct instance *instance);
/* Has a process, or will have one by itself. */
bool instance_is_alive(const struct instance *instance);

#endif
