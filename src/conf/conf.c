/*
 * The configuration, step by step: read, fill in, build, check.
 * The face of src/conf to everybody else. Does none of the steps itself.
 */
#include "src/conf/conf.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/arena.h"
#include "src/base/priv.h"
#include "src/conf/conf_build.h"
#include "src/conf/conf_flat.h"
#include "src/conf/conf_read.h"

/* Defaults that depend on who and where we are are put into the tree, because
 * the proxy is another user and must come to the same result. */
static void
fill_in(struct conf *conf, const char *name, const char *text)
{
	struct conf_where where = { conf->file, 0 };

	if (conf_node_find(conf->tree, name) == NULL)
		conf_node_append(conf->tree,
		    conf_node_new_text(conf->arena, name, text, where));
}

static const char *
from_environment(const char *name)
{
	const char *value = getenv(name);

	return value == NULL || value[0] != '/' ? NULL : value;
}

static void
fill_in_directories(struct conf *conf)
{
	const char *run = from_environment("XDG_RUNTIME_DIR");
	const char *state = from_environment("XDG_STATE_HOME");
	const char *home = from_environment("HOME");

	if (geteuid() == 0) {
		fill_in(conf, "run_directory", SCALWS_RUNSTATEDIR "/scalws");
		fill_in(
		    conf, "log_directory", SCALWS_LOCALSTATEDIR "/log/scalws");
		return;
	}
	if (run != NULL)
		fill_in(conf, "run_directory",
		    arena_printf(conf->arena, "%s/scalws", run));
	else
		fill_in(conf, "run_directory",
		    arena_printf(conf->arena, "/tmp/scalws-%lu",
			(unsigned long)geteuid()));
	if (state != NULL)
		fill_in(conf, "log_directory",
		    arena_printf(conf->arena, "%s/scalws", state));
	else if (home != NULL)
		fill_in(conf, "log_directory",
		    arena_printf(conf->arena, "%s/.local/state/scalws", home));
	else
		fill_in(conf, "log_directory",
		    arena_printf(conf->arena, "/tmp/scalws-%lu/log",
			(unsigned long)geteuid()));
}

static void
fill_in_workers(struct conf *conf)
{
	struct conf_where where = { conf->file, 0 };
	struct conf_node *node = conf_node_find(conf->tree, "workers");
	cpu_set_t cpus;
	int count = 1;

	if (node == NULL) {
		node =
		    conf_node_new(conf->arena, CONF_NODE_INT, "workers", where);
		conf_node_append(conf->tree, node);
	}
	if (node->type != CONF_NODE_INT || node->number != 0)
		return;
	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
		count = CPU_COUNT(&cpus);
	node->number = count > 256 ? 256 : count;
}

/* Without root nobody can become somebody else: everything runs as the
 * caller. The users are checked all the same, for what they are worth. */
static void
drop_user(struct conf_node *group, const char *path, struct conf_errors *errors)
{
	struct conf_node *user = conf_node_find(group, "user");
	struct conf_node *its_group = conf_node_find(group, "group");
	const char *what, *name = NULL;
	struct priv priv;

	if (its_group != NULL)
		conf_node_remove(group, its_group);
	if (user == NULL || user->type != CONF_NODE_STRING)
		return;
	if (its_group != NULL && its_group->type == CONF_NODE_STRING)
		name = its_group->text;
	if (user->text[0] == '\0' || strlen(user->text) > 63)
		return; /* the walk will say so */
	if (priv_lookup(user->text, name, &priv, &what) == -1)
		conf_errors_add(errors, &user->where, path,
		    "there is no such %s: \"%.63s\"", what,
		    strcmp(what, "group") == 0 && name != NULL ? name
							       : user->text);
	else if (priv.uid != geteuid())
		conf_errors_warn(errors, &user->where, path,
		    "is not used: scalwsd was not started as root, everything "
		    "runs as its caller");
	conf_node_remove(group, user);
}

static void
fill_in_users(struct conf *conf, struct conf_errors *errors)
{
	struct conf_node *apps = conf_node_find(conf->tree, "apps");
	struct conf_node *app;

	if (geteuid() == 0) {
		fill_in(conf, "user", "scalws");
		return;
	}
	drop_user(conf->tree, "user", errors);
	if (apps == NULL || apps->type != CONF_NODE_GROUP)
		return;
	for (app = apps->first; app != NULL; app = app->next)
		drop_user(app,
		    arena_printf(conf->arena, "apps.%s.user", app->name),
		    errors);
}

static struct conf *
conf_new(const char *file)
{
	struct arena *arena = arena_new();
	struct conf *conf = arena_alloc(arena, sizeof(*conf));

	conf->arena = arena;
	conf->file = arena_strdup(arena, file);
	return conf;
}

static struct conf *
finish(struct conf *conf, struct conf_errors *errors, int before, bool files)
{
	/* All steps run even when one found something: several mistakes are
	 * told at once. */
	if (conf->tree != NULL) {
		conf_build(conf, errors, files);
		conf_check(conf, errors);
		if (files)
			conf_check_system(conf, errors);
	}
	if (conf->tree != NULL && errors->count == before)
		return conf;
	conf_free(conf);
	return NULL;
}

struct conf *
conf_load(const char *path, struct conf_errors *errors)
{
	struct conf *conf = conf_new(path);
	int before = errors->count;

	conf->tree = conf_read_files(conf->arena, path, errors);
	if (conf->tree != NULL) {
		fill_in_directories(conf);
		fill_in_workers(conf);
		fill_in_users(conf, errors);
	}
	return finish(conf, errors, before, true);
}

void
conf_to_flat(const struct conf *conf, struct strbuf *flat)
{
	conf_flat_write(conf->tree, flat);
}

struct conf *
conf_from_flat(const char *flat, size_t len, struct conf_errors *errors)
{
	struct conf *conf = conf_new("");
	int before = errors->count;

	conf->tree = conf_flat_parse(conf->arena, flat, len, errors);
	if (conf->tree != NULL)
		conf->file = conf->tree->where.file;
	return finish(conf, errors, before, false);
}

void
conf_free(struct conf *conf)
{
	/* The arena holds `conf` itself. */
	if (conf != NULL)
		arena_free(conf->arena);
}

const struct conf_app *
conf_find_app(const struct conf *conf, const char *name)
{
	for (size_t i = 0; i < conf->n_apps; i++) {
		if (strcmp(conf->apps[i].name, name) == 0)
			return &conf->apps[i];
	}
	return NULL;
}

int
conf_stream_grace_max_ms(const struct conf *conf)
{
	int max_ms = 0;

	for (size_t i = 0; i < conf->n_apps; i++)
		if (conf->apps[i].stream_grace_ms > max_ms)
			max_ms = conf->apps[i].stream_grace_ms;
	return max_ms;
}
