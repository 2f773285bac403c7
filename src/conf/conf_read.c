/*
 * Files to tree: the only door to libconfig.
 * After conf_source.c, which hands libconfig no byte that it mistakes, and
 * before the schema. Merges the drop-ins that `include` names.
 */
#include "src/conf/conf_read.h"

#include <errno.h>
#include <glob.h>
#include <libconfig.h>
#include <string.h>

#include "src/base/arena.h"
#include "src/conf/conf_source.h"

#define DROP_INS_MAX 1000

/* ---- libconfig's tree to ours ---- */

static enum conf_node_type
type_of(const config_setting_t *setting)
{
	switch (config_setting_type(setting)) {
	case CONFIG_TYPE_GROUP:
		return CONF_NODE_GROUP;
	case CONFIG_TYPE_INT:
	case CONFIG_TYPE_INT64:
		return CONF_NODE_INT;
	case CONFIG_TYPE_FLOAT:
		return CONF_NODE_FLOAT;
	case CONFIG_TYPE_STRING:
		return CONF_NODE_STRING;
	case CONFIG_TYPE_BOOL:
		return CONF_NODE_BOOL;
	default:
		return CONF_NODE_LIST;
	}
}

/* The depth is bounded by conf_source.c. */
static struct conf_node *
copy_setting(struct arena *arena, const struct conf_source *source,
    const config_setting_t *setting)
{
	struct conf_where where =
	    conf_source_where(source, (int)config_setting_source_line(setting));
	struct conf_node *node = conf_node_new(
	    arena, type_of(setting), config_setting_name(setting), where);
	const char *text;
	int length;

	switch (node->type) {
	case CONF_NODE_INT:
		node->number = config_setting_get_int64(setting);
		break;
	case CONF_NODE_BOOL:
		node->number = config_setting_get_bool(setting) != 0;
		break;
	case CONF_NODE_STRING:
		text = config_setting_get_string(setting);
		node->text = arena_strdup(arena, text == NULL ? "" : text);
		break;
	case CONF_NODE_GROUP:
	case CONF_NODE_LIST:
		length = config_setting_length(setting);
		for (int i = 0; i < length; i++)
			conf_node_append(node,
			    copy_setting(arena, source,
				config_setting_get_elem(setting, (unsigned)i)));
		break;
	case CONF_NODE_FLOAT:
		break;
	}
	return node;
}

static struct conf_node *
parse_source(struct arena *arena, const struct conf_source *source)
{
	const char *text = source->text.ptr == NULL ? "" : source->text.ptr;
	struct conf_node *root = NULL;
	config_t config;

	config_init(&config);
	/* An int that is asked for as int64 must not read as 0. */
	config_set_auto_convert(&config, CONFIG_TRUE);
	if (config_read_string(&config, text) == CONFIG_TRUE) {
		root =
		    copy_setting(arena, source, config_root_setting(&config));
	} else {
		struct conf_where where =
		    conf_source_where(source, config_error_line(&config));
		const char *error = config_error_text(&config);

		conf_errors_add(source->errors, &where, NULL,
		    "%s (here or just before)",
		    error == NULL ? "syntax error" : error);
	}
	config_destroy(&config);
	return root;
}

static struct conf_node *
read_one(struct arena *arena, const char *path, struct conf_errors *errors)
{
	struct conf_source source = {
		.arena = arena, .includes = true, .errors = errors
	};
	struct conf_node *root = NULL;

	if (conf_source_read(&source, path) == 0)
		root = parse_source(arena, &source);
	conf_source_free(&source);
	return root;
}

struct conf_node *
conf_read_text(struct arena *arena, const char *name, const char *text,
    size_t len, struct conf_errors *errors)
{
	struct conf_source source = { .arena = arena, .errors = errors };
	struct conf_node *root = NULL;

	if (conf_source_add(&source, name, text, len) == 0)
		root = parse_source(arena, &source);
	conf_source_free(&source);
	return root;
}

/* ---- drop-ins ---- */

static void
move_children(struct conf_node *to, struct conf_node *from)
{
	struct conf_node *child = from->first, *next;

	for (; child != NULL; child = next) {
		next = child->next;
		conf_node_append(to, child);
	}
	from->first = from->last = NULL;
	from->count = 0;
}

/* Equal names in two files are found by the walk, which names both lines. */
static void
merge(struct conf_node *root, struct conf_node *drop_in,
    struct conf_errors *errors)
{
	struct conf_node *part = drop_in->first, *next, *have;

	for (; part != NULL; part = next) {
		next = part->next;
		if (strcmp(part->name, "apps") != 0 &&
		    strcmp(part->name, "upstreams") != 0 &&
		    strcmp(part->name, "sites") != 0) {
			conf_errors_add(errors, &part->where, part->name,
			    "only apps, upstreams and sites may stand in an "
			    "included drop-in; this belongs into the main "
			    "file");
			continue;
		}
		have = conf_node_find(root, part->name);
		if (have == NULL)
			conf_node_append(root, part);
		else if (have->type == part->type)
			move_children(have, part);
		else
			conf_errors_add(errors, &part->where, part->name,
			    "is %s here and %s at %s:%d", conf_node_kind(part),
			    conf_node_kind(have), have->where.file,
			    have->where.line);
	}
}

/* A directory of drop-ins that is not there is as good as an empty one. */
static int
on_unreadable(const char *path UNUSED, int error)
{
	return error != ENOENT && error != ENOTDIR;
}

static void
read_drop_ins(struct arena *arena, struct conf_node *root,
    const struct conf_node *pattern, const char *main_file,
    struct conf_errors *errors)
{
	const char *text = conf_source_beside(arena, main_file, pattern->text);
	glob_t found;
	int result = glob(text, 0, on_unreadable, &found);

	if (result == GLOB_NOMATCH) {
		/* An empty directory of drop-ins is no mistake, a file that is
		 * named and missing is. */
		if (strpbrk(text, "*?[") == NULL)
			conf_errors_add(errors, &pattern->where, "include",
			    "there is no %s", text);
		return;
	}
	if (result != 0) {
		conf_errors_add(errors, &pattern->where, "include",
		    "%s cannot be searched", text);
	} else if (found.gl_pathc > DROP_INS_MAX) {
		conf_errors_add(errors, &pattern->where, "include",
		    "%s matches more than %d files", text, DROP_INS_MAX);
	} else {
		for (size_t i = 0; i < found.gl_pathc; i++) {
			struct conf_node *drop_in =
			    read_one(arena, found.gl_pathv[i], errors);

			if (drop_in != NULL)
				merge(root, drop_in, errors);
		}
	}
	globfree(&found);
}

static void
take_include(struct arena *arena, struct conf_node *root, const char *main_file,
    struct conf_errors *errors)
{
	struct conf_node *include = conf_node_find(root, "include");
	struct conf_node *element;

	if (include == NULL)
		return;
	conf_node_remove(root, include);
	if (include->type == CONF_NODE_STRING) {
		read_drop_ins(arena, root, include, main_file, errors);
		return;
	}
	if (include->type != CONF_NODE_LIST) {
		conf_errors_add(errors, &include->where, "include",
		    "takes a file pattern or a list of them, not %s",
		    conf_node_kind(include));
		return;
	}
	for (element = include->first; element != NULL;
	     element = element->next) {
		if (element->type == CONF_NODE_STRING)
			read_drop_ins(arena, root, element, main_file, errors);
		else
			conf_errors_add(errors, &element->where, "include",
			    "takes file patterns, not %s",
			    conf_node_kind(element));
	}
}

struct conf_node *
conf_read_files(
    struct arena *arena, const char *path, struct conf_errors *errors)
{
	int before = errors->count;
	struct conf_node *root = read_one(arena, path, errors);

	if (root == NULL)
		return NULL;
	/* A file that holds nothing has no first setting to take it from. */
	root->where = (struct conf_where){ arena_strdup(arena, path), 0 };
	take_include(arena, root, path, errors);
	return errors->count == before ? root : NULL;
}
