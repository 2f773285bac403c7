/*
 * What all runtimes have in common: a clean environment, limits, signals.
 * Called by instance.c at each start. The particulars are in runtime_*.c.
 * Starts nothing.
 */
#include "supervisor/runtimes.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/ipc/channel.h"

#define UMASK_PRESET 022
#define CLEAN_PATH \
	"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static bool
command_holds(const struct conf_app *conf, const char *what)
{
	const char *const *word;

	for (word = (const char *const *)conf->command;
	     word != NULL && *word != NULL; word++)
		if (strstr(*word, what) != NULL)
			return true;
	for (word = (const char *const *)conf->arguments;
	     word != NULL && *word != NULL; word++)
		if (strstr(*word, what) != NULL)
			return true;
	return false;
}

/* Anything else: its own socket or a port when it names one, else whichever
 * of LISTEN_FDS and PORT it takes. */
static void
command_traits(const struct conf_app *conf, struct runtime_traits *traits)
{
	traits->notify = true;
	if (!conf->http)
		return;
	traits->own_socket = command_holds(conf, "{socket}");
	traits->port = !traits->own_socket;
	traits->port_first = true;
	traits->listener = traits->port && !command_holds(conf, "{port}");
}

static void
python_traits(const struct conf_app *conf, struct runtime_traits *traits)
{
	traits->listener = true;
	if (conf->server == CONF_UVICORN) {
		traits->notify = true;
		/* uvicorn waits for ever; only SIGINT after SIGTERM forces. */
		traits->second_signal = SIGINT;
		return;
	}
	/* gunicorn says READY=1 before its worker has loaded the app: it is
	 * not to be believed. */
	traits->notify = false;
	traits->cap_counts_idle = true;
}

void
runtime_traits(const struct conf_app *conf, struct runtime_traits *traits)
{
	memset(traits, 0, sizeof(*traits));
	traits->protocol = CHANNEL_HTTP;
	traits->cap = CHANNEL_NO_CAP;
	traits->stop_signal = SIGTERM;
	traits->probe_path = conf->probe.path;
	switch (conf->runtime) {
	case CONF_PYTHON:
		python_traits(conf, traits);
		break;
	case CONF_NODE:
		traits->listener = true;
		traits->port = true;
		traits->notify = true;
		break;
	case CONF_PHP:
		traits->listener = true;
		traits->status_listener = true;
		traits->notify = true;
		traits->protocol = CHANNEL_FASTCGI;
		traits->cap_counts_idle = true;
		traits->stop_signal = SIGQUIT;
		traits->probe_path = RUNTIME_PHP_PING;
		break;
	case CONF_COMMAND:
		command_traits(conf, traits);
		break;
	}
	if (conf->stop_signal != 0)
		traits->stop_signal = conf->stop_signal;
	/* The runtime's own number is in it (children, threads). */
	if (conf->concurrency != 0)
		traits->cap = conf->concurrency;
	/* FPM has no more processes than `children`, whatever is asked for. */
	if (conf->runtime == CONF_PHP && traits->cap > conf->children)
		traits->cap = conf->children;
	if (traits->probe_path == NULL)
		traits->probe_path = "/";
}

void
runtime_default(struct spawn_spec *spec, const char *name, const char *value)
{
	if (spawn_env_get(spec, name) == NULL)
		spawn_env_set(spec, name, value);
}

/* Nothing of our own environment but the time zone: what starts the daemon
 * must not decide how apps behave. */
static void
clean_environment(const struct conf_app *conf,
    const struct runtime_place *place, const char *home, const char *user,
    struct spawn_spec *spec)
{
	const char *zone = getenv("TZ");
	const char *bin = conf->venv;

	if (conf->runtime == CONF_PYTHON && bin != NULL) {
		words_printf(&spec->env, "PATH=%s/bin:" CLEAN_PATH, bin);
		words_printf(&spec->env, "VIRTUAL_ENV=%s", bin);
	} else {
		words_add(&spec->env, "PATH=" CLEAN_PATH);
	}
	words_printf(&spec->env, "HOME=%s", home);
	words_printf(&spec->env, "USER=%s", user);
	words_printf(&spec->env, "LOGNAME=%s", user);
	words_add(&spec->env, "SHELL=/bin/sh");
	words_add(&spec->env, "LANG=C.UTF-8");
	if (zone != NULL)
		spawn_env_set(spec, "TZ", zone);
	for (const char *const *set = place->environment;
	     set != NULL && *set != NULL; set++) {
		const char *sign = strchr(*set, '=');
		char name[256];

		if (sign == NULL || (size_t)(sign - *set) >= sizeof(name))
			continue;
		memcpy(name, *set, (size_t)(sign - *set));
		name[sign - *set] = '\0';
		spawn_env_set(spec, name, sign + 1);
	}
}

static void
how_to_run(const struct conf_app *conf, struct spawn_spec *spec)
{
	struct runtime_traits traits;

	runtime_traits(conf, &traits);
	spec->directory =
	    mem_strdup(conf->directory != NULL ? conf->directory : conf->root);
	spec->umask = conf->umask == -1 ? UMASK_PRESET : conf->umask;
	/* The proxy reaches a socket that the app makes by its group, which the
	 * preset would keep out. */
	if (traits.own_socket && spec->umask == UMASK_PRESET)
		spec->umask = 007;
	spec->nice = conf->nice;
	spec->no_new_privileges = conf->no_new_privileges;
	for (size_t i = 0;
	     i < conf->n_limits && spec->n_limits < SPAWN_LIMITS_MAX; i++)
		spec->limits[spec->n_limits++] = conf->limits[i];
	spec->stop_signal = traits.stop_signal;
	spec->second_signal = traits.second_signal;
	spec->stop_timeout_ms = conf->stop_timeout_ms;
}

int
runtime_build(const struct conf_app *conf, const struct runtime_place *place,
    const char *home, const char *user, struct spawn_spec *spec,
    struct strbuf *file, char *why, size_t why_size)
{
	clean_environment(conf, place, home, user, spec);
	how_to_run(conf, spec);
	switch (conf->runtime) {
	case CONF_PYTHON:
		runtime_python(conf, spec);
		break;
	case CONF_NODE:
		runtime_node(conf, place, spec);
		break;
	case CONF_PHP:
		if (runtime_php(conf, spec, file, why, why_size) == -1)
			return -1;
		break;
	case CONF_COMMAND:
		runtime_command(conf, place, spec);
		break;
	}
	if (place->notify != NULL)
		spawn_env_set(spec, "NOTIFY_SOCKET", place->notify);
	if (conf->watchdog_ms > 0) {
		char usec[32];

		snprintf(usec, sizeof(usec), "%lld",
		    (long long)conf->watchdog_ms * 1000);
		spawn_env_set(spec, "WATCHDOG_USEC", usec);
	}
	if (place->before)
		words_add_all(
		    &spec->before, (const char *const *)conf->before_start);
	return 0;
}
