/*
 * What a keeper must know to start one process: command line, environment,
 * identity, limits, how to stop it. Built by runtimes.c, carried in a memfd.
 */
#ifndef SUPERVISOR_SPAWN_H
#define SUPERVISOR_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/priv.h"
#include "src/conf/conf.h"

/* A list of texts that it owns; NULL-terminated once something was added. */
struct words {
	char **items;
	size_t n;
};

void words_add(struct words *words, const char *text);
void words_printf(struct words *words, const char *fmt, ...) PRINTF_LIKE(2, 3);
void words_add_all(struct words *words, const char *const *texts);
void words_free(struct words *words);

#define SPAWN_LIMITS_MAX 32

struct spawn_spec {
	struct words argv;
	struct words before; /* argv of what runs to its end first; n 0: none */
	struct words env;    /* "NAME=value" */
	char *directory;     /* NULL: "/" */
	char *cgroup;        /* cgroup_path's home, or NULL */
	char *name;          /* of the app, for it */
	bool become;         /* take on `identity` (we are root) */
	struct priv identity;
	bool no_new_privileges;
	bool listen_pid; /* add LISTEN_PID=<its own pid> */
	int umask, nice;
	struct conf_limit limits[SPAWN_LIMITS_MAX];
	size_t n_limits;
	/* Stopping: the signal, after stop_timeout_ms the second one (0: none)
	 * for a second, then SIGKILL. */
	int stop_signal, second_signal, stop_timeout_ms;
};

/* Zero it first. */
void spawn_spec_free(struct spawn_spec *spec);
/* The value of NAME in `spec->env`, or NULL. */
const char *spawn_env_get(const struct spawn_spec *spec, const char *name);
/* Set NAME, or replace what it was. */
void spawn_env_set(
    struct spawn_spec *spec, const char *name, const char *value);

/* As text for a memfd, and back. spawn_decode returns -1 when the text is not
 * what spawn_encode makes; free the spec in both cases. */
void spawn_encode(const struct spawn_spec *spec, struct strbuf *to);
int spawn_decode(
    const char *text, size_t len, struct spawn_spec *spec) MUST_CHECK;

#endif
