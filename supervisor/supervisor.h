/*
 * The supervisor: one event loop that owns listeners, proxy, apps and their
 * logs, and the control socket. Everything here runs in its main thread.
 */
#ifndef SUPERVISOR_SUPERVISOR_H
#define SUPERVISOR_SUPERVISOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/conf/conf.h"
#include "supervisor/run_dir.h"

/* For main(): run until told to stop. Returns the exit code: 0 after a stop,
 * 1 when it could not start (the reasons went to standard error). */
int supervisor_run(const char *conf_path);
/* For main(): take the place of the process that we were (same pid), whose
 * state lies in the memfd `state_fd`. If that fails before anything was
 * changed, become the program `back_fd` again; -1: that is what we are. */
int supervisor_run_restored(int state_fd, int back_fd);
/* For main(): could we? Says why not on standard error. Returns the exit code.
 */
int supervisor_rehearse(int state_fd);
/* For main(): be a keeper (--role=keeper) on this channel. */
int supervisor_run_keeper(int channel_fd);

/* For -t and a check by the daemon: look at the files and directories of logs,
 * sockets and environments. 0, or -1 with findings that a start would have as
 * well; what an app alone would fail by is a warning, and so is what may not be
 * seen, unless it must. In start_check.c. */
int supervisor_check_files(const struct conf *conf, bool must_read,
    struct conf_errors *errors) MUST_CHECK;

struct app;
struct channel_output;
struct channel_stuck;
struct control_server;
struct event;
struct event_base;
struct listen_set;
struct log_writer;
struct process_table;
struct proxy_proc;
struct recycle;
struct reload;
struct secrets;
struct ticket_keys;
struct upgrade;

/* A configuration in use by more than one: the supervisor, apps that are being
 * stopped and are in no new one. */
struct conf_hold {
	struct conf *conf;
	struct secrets *secrets; /* the files it names for TLS */
	unsigned refs;
};

/* Takes over `conf`, and reads what it needs for TLS; NULL with findings: then
 * `conf` is freed. */
struct conf_hold *conf_hold_new(
    struct conf *conf, struct conf_errors *errors) MUST_CHECK;
/* With secrets that were read before (may be NULL: none are needed). */
struct conf_hold *conf_hold_adopt(
    struct conf *conf, struct secrets *secrets) MUST_CHECK;
struct conf_hold *conf_hold_ref(struct conf_hold *hold) MUST_CHECK;
void conf_hold_unref(struct conf_hold **hold);

/* What the parts of the supervisor share. */
struct supervisor {
	struct event_base *base;
	const char *conf_path;
	char *exe_path; /* of our binary, as it was found at the first start */
	int exe_fd;     /* the binary that runs, whatever lies there now */
	const char *datadir;     /* node-preload.js is here */
	struct conf_hold *hold;  /* the configuration in force */
	struct conf_hold *first; /* the one that the daemon started with */
	struct run_dir run;
	char *cgroups; /* of cgroup_enter; NULL: keepers do without */
	struct process_table *processes;
	struct log_writer *log_writer;
	struct listen_set *listens;
	struct proxy_proc *proxy;
	struct ticket_keys *tickets;
	struct app **apps;
	size_t n_apps;
	struct control_server *control;
	struct reload *reload;   /* NULL: none is going on */
	struct upgrade *upgrade; /* the same */
	struct reopen *reopen;   /* that a signal asked for; the same */
	struct recycle *recycle;
	struct event *signals[6];
	struct event *sweep; /* while strays of a killed keeper are ended */
	int sweeps_left;
	struct event *stop_timer;
	struct event *watchdog; /* NULL: nobody wants to hear of us */
	uint64_t last_id;       /* instances and probes */
	size_t nofile_was;      /* soft limit that apps get back */
	int64_t started_ms;
	bool stopping, stopping_now;
	int64_t stop_ms; /* monotonic; when stopping began */
	bool told_ready; /* READY=1 was sent */
	bool told_port;  /* that PORT can be reached by local users */
	int log_fd;      /* error_log, or 2 */
	int exit_code;
};

/* For takeover.c: what every supervisor begins with (from then on signals wait
 * until signals_let_in()), its loop-bound parts (-1:
 * not all could be made), and its end. */
void supervisor_init(struct supervisor *supervisor, const char *conf_path);
int supervisor_make_parts(struct supervisor *supervisor) MUST_CHECK;
void supervisor_release(struct supervisor *supervisor);

/* A keeper died before its app: end what came to us. */
void supervisor_sweep(struct supervisor *supervisor);
/* A new proxy is connected: it must hear of all apps. */
void supervisor_on_proxy_hello(struct supervisor *supervisor);
/* The proxy serves. */
void supervisor_on_proxy_ready(struct supervisor *supervisor);
/* The proxy found what the check of the file could not: a key of another
 * certificate. False if we serve already; else the daemon ends with 1, as for
 * any other mistake in the file. */
bool supervisor_refuse(struct supervisor *supervisor, const char *findings);
/* No proxy is left; while stopping that is the end of what apps do. */
void supervisor_on_proxy_gone(struct supervisor *supervisor);
/* No proxy has anything, or anything but streams, open to this instance any
 * more. */
void supervisor_on_drained(
    struct supervisor *supervisor, uint64_t instance, bool but_streams);
/* It wrote a line beside an answer. */
void supervisor_on_output(
    struct supervisor *supervisor, const struct channel_output *output);
/* A process of it works on for nobody. */
void supervisor_on_stuck(
    struct supervisor *supervisor, const struct channel_stuck *stuck);
/* An app changed: forget those that are removed, see whether a stop is
 * complete. Frees apps: nothing of the caller's app may be used afterwards. */
void supervisor_check_apps(struct supervisor *supervisor);

#endif
