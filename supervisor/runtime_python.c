/*
 * Python: uvicorn (ASGI) and gunicorn (WSGI) on an inherited unix listener.
 * Called by runtime_build. One process an instance, never the server's own
 * manager of workers.
 */
#include <stdbool.h>
#include <string.h>

#include "supervisor/runtimes.h"

/* uvloop and httptools where the app's own interpreter has them: a missing one
 * makes an explicit --loop or --http fail. The interpreter is asked in the
 * process that becomes the app (exec keeps the pid), so nobody waits. */
static const char choose_parts[] =
    "import os, sys\n"
    "more = []\n"
    "for name, option in (('uvloop', '--loop'), ('httptools', '--http')):\n"
    "    try:\n"
    "        __import__(name)\n"
    "        more += [option, name]\n"
    "    except Exception:\n"
    "        pass\n"
    "args = sys.argv[1:]\n"
    "os.execv(sys.executable, [sys.executable] + args[:2] + more + args[2:])\n";

/* Both together or neither: one alone switches off glibc's own adaptation and
 * is worse than none. */
static void
tune_malloc(struct spawn_spec *spec)
{
	for (size_t i = 0; i < spec->env.n; i++)
		if (strncmp(spec->env.items[i], "MALLOC_", 7) == 0)
			return;
	spawn_env_set(spec, "MALLOC_MMAP_THRESHOLD_", "524288");
	spawn_env_set(spec, "MALLOC_TRIM_THRESHOLD_", "1048576");
}

static void
add_interpreter(const struct conf_app *conf, struct spawn_spec *spec)
{
	if (conf->python != NULL)
		words_add(&spec->argv, conf->python);
	else if (conf->venv != NULL)
		words_printf(&spec->argv, "%s/bin/python", conf->venv);
	else
		words_add(&spec->argv, "python3");
}

/* Has the user named one of the parts already? */
static bool
argument_given(const struct conf_app *conf, const char *option)
{
	size_t len = strlen(option);
	const char **word;

	for (word = conf->arguments; word != NULL && *word != NULL; word++)
		if (strncmp(*word, option, len) == 0 &&
		    ((*word)[len] == '\0' || (*word)[len] == '='))
			return true;
	return false;
}

static void
uvicorn(const struct conf_app *conf, struct spawn_spec *spec)
{
	static const char *const fixed[] = { "--no-access-log",
		"--forwarded-allow-ips", "*", "--no-server-header",
		"--no-date-header", NULL };

	add_interpreter(conf, spec);
	if (!argument_given(conf, "--loop") &&
	    !argument_given(conf, "--http")) {
		words_add(&spec->argv, "-c");
		words_add(&spec->argv, choose_parts);
	}
	words_add(&spec->argv, "-m");
	words_add(&spec->argv, "uvicorn");
	words_printf(&spec->argv, "--fd");
	words_printf(&spec->argv, "%d", RUNTIME_LISTEN_FD);
	words_printf(&spec->argv, "--backlog");
	words_printf(&spec->argv, "%d", RUNTIME_BACKLOG);
	words_printf(&spec->argv, "--timeout-keep-alive");
	words_printf(&spec->argv, "%d", RUNTIME_KEEP_ALIVE_S);
	words_add_all(&spec->argv, fixed);
	if (conf->factory)
		words_add(&spec->argv, "--factory");
	words_add_all(&spec->argv, (const char *const *)conf->arguments);
	words_add(&spec->argv, conf->module);
}

static void
gunicorn(const struct conf_app *conf, struct spawn_spec *spec)
{
	int grace_s = conf->stop_timeout_ms / 1000;

	add_interpreter(conf, spec);
	words_add(&spec->argv, "-m");
	words_add(&spec->argv, "gunicorn");
	words_add(&spec->argv, "-w");
	words_add(&spec->argv, "1");
	words_add(&spec->argv, "-k");
	if (conf->threads > 1) {
		words_add(&spec->argv, "gthread");
		words_add(&spec->argv, "--threads");
		words_printf(&spec->argv, "%u", conf->threads);
	} else {
		words_add(&spec->argv, "sync");
	}
	words_add(&spec->argv, "--keep-alive");
	words_printf(&spec->argv, "%d", RUNTIME_KEEP_ALIVE_S);
	words_add(&spec->argv, "--forwarded-allow-ips");
	words_add(&spec->argv, "*");
	words_add(&spec->argv, "--backlog");
	words_printf(&spec->argv, "%d", RUNTIME_BACKLOG);
	/* Its own deadline lies before our SIGKILL. */
	words_add(&spec->argv, "--graceful-timeout");
	words_printf(&spec->argv, "%d", grace_s > 6 ? grace_s - 5 : 1);
	words_add_all(&spec->argv, (const char *const *)conf->arguments);
	words_printf(
	    &spec->argv, "%s%s", conf->module, conf->factory ? "()" : "");
	/* Not fd://3, which unlinks the path of the socket at exit. */
	spawn_env_set(spec, "LISTEN_FDS", "1");
	spec->listen_pid = true;
}

void
runtime_python(const struct conf_app *conf, struct spawn_spec *spec)
{
	tune_malloc(spec);
	runtime_default(spec, "PYTHONUNBUFFERED", "1");
	if (conf->server == CONF_GUNICORN)
		gunicorn(conf, spec);
	else
		uvicorn(conf, spec);
}
