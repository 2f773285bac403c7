/*
 * PHP: one php-fpm master per app, with a generated pool on our listener.
 * Called by runtime_build. The configuration is read from an inherited memfd:
 * the app's user cannot look into our run directory.
 */
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "supervisor/runtimes.h"

/* Keys of FPM_SOCKETS, not paths: FPM unlinks at exit what `listen` names. */
#define LISTEN_KEY "/nonexistent/%s.sock"
#define STATUS_KEY "/nonexistent/%s.status.sock"
#define STATUS_FD (RUNTIME_LISTEN_FD + 1)
#define CONFIG_FD (RUNTIME_LISTEN_FD + 2)

/* The newest of Debian's php-fpm8.x, or an unversioned one. The caller frees
 * it; NULL: none. */
static char *
find_master(void)
{
	static const char *const patterns[] = { "/usr/sbin/php-fpm[0-9]*",
		"/usr/sbin/php-fpm", "/usr/local/sbin/php-fpm" };
	char *found = NULL;

	for (size_t i = 0; i < ARRAY_LEN(patterns) && found == NULL; i++) {
		glob_t names;

		if (glob(patterns[i], 0, NULL, &names) == 0)
			found = mem_strdup(names.gl_pathv[names.gl_pathc - 1]);
		globfree(&names);
	}
	return found;
}

/* "name=value" of `ini`: php_admin_value, so that scripts cannot undo it. */
static void
add_ini(const struct conf_app *conf, struct strbuf *file)
{
	for (const char **ini = conf->ini; ini != NULL && *ini != NULL; ini++) {
		const char *sign = strchr(*ini, '=');

		if (sign == NULL)
			continue;
		strbuf_printf(file, "php_admin_value[%.*s] = \"",
		    (int)(sign - *ini), *ini);
		for (const char *at = sign + 1; *at != '\0'; at++) {
			if (*at == '"' || *at == '\\')
				strbuf_add(file, "\\", 1);
			strbuf_add(file, at, 1);
		}
		strbuf_add_text(file, "\"\n");
	}
}

static void
write_config(const struct conf_app *conf, struct strbuf *file)
{
	int grace_s = conf->stop_timeout_ms / 1000;

	strbuf_add_text(file, "[global]\n"
			      "daemonize = no\n"
			      "error_log = /dev/null\n"
			      "log_limit = 8192\n"
			      "systemd_interval = 0\n");
	/* Without it SIGQUIT kills requests in flight. */
	strbuf_printf(
	    file, "process_control_timeout = %ds\n", grace_s < 1 ? 1 : grace_s);
	strbuf_printf(
	    file, "[%s]\nlisten = " LISTEN_KEY "\n", conf->name, conf->name);
	strbuf_printf(
	    file, "pm = static\npm.max_children = %u\n", conf->children);
	strbuf_printf(file,
	    "pm.status_path = /scalws-status\n"
	    "pm.status_listen = " STATUS_KEY "\n",
	    conf->name);
	strbuf_add_text(file, "ping.path = " RUNTIME_PHP_PING "\n"
			      "request_terminate_timeout = 0\n"
			      "catch_workers_output = yes\n"
			      "decorate_workers_output = no\n"
			      "clear_env = no\n"
			      "security.limit_extensions = .php\n");
	add_ini(conf, file);
}

int
runtime_php(const struct conf_app *conf, struct spawn_spec *spec,
    struct strbuf *file, char *why, size_t why_size)
{
	char *found = conf->php_fpm == NULL ? find_master() : NULL;
	char text[256];

	if (conf->php_fpm == NULL && found == NULL) {
		snprintf(why, why_size,
		    "no php-fpm: apt-get install php-fpm, or set "
		    "apps.%s.php_fpm",
		    conf->name);
		return -1;
	}
	words_add(&spec->argv, found != NULL ? found : conf->php_fpm);
	mem_free(found);
	words_add(&spec->argv, "-F"); /* foreground */
	words_add(&spec->argv, "-O"); /* log to stderr, though no terminal */
	/* The pool would refuse to start as root; allow_root was asked for. */
	if (conf->allow_root)
		words_add(&spec->argv, "-R");
	words_add(&spec->argv, "-y");
	words_printf(&spec->argv, "/proc/self/fd/%d", CONFIG_FD);
	words_add_all(&spec->argv, (const char *const *)conf->arguments);
	snprintf(text, sizeof(text), LISTEN_KEY "=%d," STATUS_KEY "=%d",
	    conf->name, RUNTIME_LISTEN_FD, conf->name, STATUS_FD);
	spawn_env_set(spec, "FPM_SOCKETS", text);
	write_config(conf, file);
	return 0;
}
