/*
 * What each runtime needs: command line, environment, sockets, signals.
 * Facts were measured (see HACKING.md); the user's own values always win.
 * Pure but for looking for php-fpm and the app's user.
 */
#ifndef SUPERVISOR_RUNTIMES_H
#define SUPERVISOR_RUNTIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/strbuf.h"
#include "src/conf/conf.h"
#include "supervisor/spawn.h"

/* The listener is always this descriptor in the app; what else it inherits
 * follows. */
#define RUNTIME_LISTEN_FD 3
/* Idle connections are closed by the app after this, by the proxy before. */
#define RUNTIME_KEEP_ALIVE_S 75
#define RUNTIME_BACKLOG 4096

/* How an instance is reached and stopped; depends on the configuration only. */
struct runtime_traits {
	bool listener;        /* we make, hold and pass on a unix listener */
	bool own_socket;      /* the app makes {socket} itself, at our path */
	bool port;            /* it is told a free loopback port */
	bool port_first;      /* more likely there than on the listener */
	bool status_listener; /* php: a second unix listener */
	bool notify;          /* READY=1 on NOTIFY_SOCKET is to be believed */
	uint32_t protocol;    /* enum channel_protocol */
	uint32_t cap;         /* requests at a time, or CHANNEL_NO_CAP */
	bool cap_counts_idle;
	int stop_signal, second_signal;
	const char *probe_path;
};

void runtime_traits(const struct conf_app *conf, struct runtime_traits *traits);

/* What is particular to one start. */
struct runtime_place {
	const char *socket;             /* path of its unix socket, or NULL */
	unsigned port;                  /* or 0 */
	const char *notify;             /* NOTIFY_SOCKET, or NULL */
	const char *datadir;            /* where node-preload.js is */
	const char *const *environment; /* the app's, read anew */
	bool before;                    /* before_start runs first */
};

/* Fill argv, env, directory, limits and how to stop of the zeroed `spec` (not
 * the identity). `file` gets what the runtime reads from RUNTIME_LISTEN_FD + 2,
 * if anything. -1 with `why` filled when there is no such program. */
int runtime_build(const struct conf_app *conf,
    const struct runtime_place *place, const char *home, const char *user,
    struct spawn_spec *spec, struct strbuf *file, char *why,
    size_t why_size) MUST_CHECK;

/* ---- one per runtime, called by runtime_build ---- */

void runtime_python(const struct conf_app *conf, struct spawn_spec *spec);
void runtime_node(const struct conf_app *conf,
    const struct runtime_place *place, struct spawn_spec *spec);
int runtime_php(const struct conf_app *conf, struct spawn_spec *spec,
    struct strbuf *file, char *why, size_t why_size) MUST_CHECK;
void runtime_command(const struct conf_app *conf,
    const struct runtime_place *place, struct spawn_spec *spec);

/* Set NAME unless the user did. */
void runtime_default(
    struct spawn_spec *spec, const char *name, const char *value);
/* FPM's path for pings. */
#define RUNTIME_PHP_PING "/scalws-ping"

#endif
