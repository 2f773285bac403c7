/*
 * Checks against this machine: users, groups, directories, limits.
 * Only when files are loaded, by the supervisor and by -t. Changes nothing.
 */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/base/priv.h"
#include "src/conf/conf_build.h"

struct check {
	const struct conf *conf;
	struct conf_errors *errors;
	bool is_root;
	struct priv proxy; /* as root: who the proxy will be */
	bool has_proxy;
};

/* 0, or -1 with a finding. */
static int
look_up(const struct check *check, const char *user, const char *group,
    struct priv *priv, const struct conf_where *where, const char *path)
{
	const char *what;

	if (priv_lookup(user, group, priv, &what) == 0)
		return 0;
	if (errno != 0)
		return conf_errors_add_errno(check->errors, where, path,
		    "the %s cannot be looked up", what);
	return conf_errors_add(check->errors, where, path,
	    "there is no such %s: \"%.63s\"", what,
	    strcmp(what, "group") == 0 && group != NULL ? group : user);
}

static void
check_proxy_user(struct check *check)
{
	const struct conf *conf = check->conf;
	const struct conf_node *node = conf_node_find(conf->tree, "user");
	struct conf_where where = { conf->file, 0 };

	const char *what;

	if (conf->user == NULL)
		return;
	if (node != NULL && node->where.line > 0) {
		where = node->where;
	} else if (priv_lookup(conf->user, conf->group, &check->proxy, &what) ==
		   -1) {
		conf_errors_add(check->errors, &where, "user",
		    "is missing, and there is no such user as the default, "
		    "\"%s\"",
		    conf->user);
		return;
	}
	if (look_up(check, conf->user, conf->group, &check->proxy, &where,
		"user") == -1)
		return;
	check->has_proxy = true;
	if (check->is_root && check->proxy.uid == 0)
		conf_errors_add(check->errors, &where, "user",
		    "the proxy must not run as root");
}

static void
check_control_group(struct check *check)
{
	const struct conf *conf = check->conf;
	const struct conf_node *node =
	    conf_node_find(conf_node_find(conf->tree, "control"), "group");
	struct priv priv;

	if (conf->control.group != NULL && node != NULL)
		(void)!look_up(check, "0", conf->control.group, &priv,
		    &node->where, "control.group");
}

static void
check_app_user(const struct check *check, const struct conf_app *app)
{
	struct conf_place place;
	struct priv priv;

	conf_place_app(&place, check->conf, app, "user");
	if (app->user == NULL) {
		if (check->is_root)
			conf_errors_add(check->errors, &place.where, place.path,
			    "is missing; scalwsd runs as root, so each app "
			    "needs a user of its own");
		return;
	}
	if (look_up(check, app->user, app->group, &priv, &place.where,
		place.path) == -1 ||
	    !check->is_root)
		return;
	if (priv.uid == 0 && !app->allow_root)
		conf_errors_add(check->errors, &place.where, place.path,
		    "is root; that takes allow_root = true");
	if (priv.uid != 0 && check->has_proxy && priv.uid == check->proxy.uid)
		conf_errors_add(check->errors, &place.where, place.path,
		    "\"%s\" is the user of the proxy; an app that shares it "
		    "could read the proxy's memory",
		    app->user);
}

/* Only warnings: it may be mounted before the app is started, and one broken
 * app keeps no other site from being served. */
static void
check_directory(const struct check *check, const struct conf_app *app,
    const char *key, const char *path)
{
	struct conf_place place;
	struct stat st;

	if (path == NULL)
		return;
	conf_place_app(&place, check->conf, app, key);
	if (stat(path, &st) == -1)
		conf_errors_warn(check->errors, &place.where, place.path,
		    "%.200s: %s", path, strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		conf_errors_warn(check->errors, &place.where, place.path,
		    "%.200s is no directory", path);
}

/* A program may still be installed before the app is started, and the app
 * alone suffers: only a warning. Names without a slash are looked for later,
 * in the PATH that the app gets. */
static void
check_program(const struct check *check, const struct conf_app *app,
    const char *key, const char *path, int mode)
{
	struct conf_place place;
	char *full;

	if (path == NULL || (strchr(path, '/') == NULL && mode == X_OK))
		return;
	full = path[0] == '/' || app->directory == NULL
		   ? mem_strdup(path)
		   : mem_printf("%s/%s", app->directory, path);
	conf_place_app(&place, check->conf, app, key);
	if (access(full, mode) == -1)
		conf_errors_warn(check->errors, &place.where, place.path,
		    "%.200s: %s", full, strerror(errno));
	mem_free(full);
}

static void
check_app(const struct check *check, const struct conf_app *app)
{
	char *python;

	check_app_user(check, app);
	check_directory(check, app, "directory", app->directory);
	switch (app->runtime) {
	case CONF_PYTHON:
		check_program(check, app, "python", app->python, X_OK);
		if (app->venv == NULL)
			break;
		python = mem_printf("%s/bin/python", app->venv);
		check_program(check, app, "venv", python, X_OK);
		mem_free(python);
		break;
	case CONF_NODE:
		check_program(check, app, "node", app->node, X_OK);
		check_program(check, app, "script", app->script, R_OK);
		break;
	case CONF_PHP:
		if (app->root != app->directory)
			check_directory(check, app, "root", app->root);
		check_program(check, app, "php_fpm", app->php_fpm, X_OK);
		break;
	case CONF_COMMAND:
		if (app->command != NULL)
			check_program(
			    check, app, "command", app->command[0], X_OK);
		break;
	}
}

/* Whose content is right is seen when it is used. Who only checks the file may
 * well have no right to a key. */
static int
check_tls_file(const char *path, const struct conf_where *where,
    const char *key, void *arg)
{
	const struct check *check = arg;
	struct stat st;

	if (stat(path, &st) == -1 && errno == EACCES && !check->is_root)
		conf_errors_warn(check->errors, where, key, "%.200s: %s", path,
		    strerror(errno));
	else if (stat(path, &st) == -1)
		conf_errors_add_errno(
		    check->errors, where, key, "%.200s cannot be read", path);
	else if (!S_ISREG(st.st_mode) || st.st_size == 0)
		conf_errors_add(check->errors, where, key, "%.200s is %s", path,
		    S_ISREG(st.st_mode) ? "empty" : "not a regular file");
	return 0;
}

/* A client connection needs one descriptor, and one more when proxied. */
static void
check_limits(const struct check *check)
{
	const struct conf *conf = check->conf;
	const struct conf_node *node =
	    conf_node_find(conf_node_find(conf->tree, "limits"), "connections");
	struct conf_where where = { conf->file, 0 };
	struct rlimit limit;
	uint64_t wanted = (uint64_t)conf->limits.connections * 2;

	if (node != NULL)
		where = node->where;
	if (getrlimit(RLIMIT_NOFILE, &limit) == -1 ||
	    limit.rlim_max == RLIM_INFINITY || wanted <= limit.rlim_max)
		return;
	conf_errors_warn(check->errors, &where, "limits.connections",
	    "%u connections may need %ju descriptors; the limit of the "
	    "process is %ju",
	    conf->limits.connections, (uintmax_t)wanted,
	    (uintmax_t)limit.rlim_max);
}

void
conf_check_system(const struct conf *conf, struct conf_errors *errors)
{
	struct check check = {
		.conf = conf, .errors = errors, .is_root = geteuid() == 0
	};

	check_proxy_user(&check);
	check_control_group(&check);
	for (size_t i = 0; i < conf->n_apps; i++)
		check_app(&check, &conf->apps[i]);
	(void)!conf_each_tls_file(conf, check_tls_file, &check);
	(void)!conf_ticket_file(conf, check_tls_file, &check);
	check_limits(&check);
}
