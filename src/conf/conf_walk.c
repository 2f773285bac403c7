/*
 * Reading one group of the tree into one object, as the schema says.
 * Between tree and conf_build.c. Does not look from one object to another.
 */
#include "src/conf/conf_walk.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/hash.h"
#include "src/conf/conf_value.h"

static void PRINTF_LIKE(2, 3)
    extend(struct conf_walk *walk, const char *fmt, ...)
{
	size_t room = sizeof(walk->path) - walk->path_len;
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(walk->path + walk->path_len, room, fmt, args);
	va_end(args);
	/* Names from outside may be too long; then the path is cut. */
	if (len > 0)
		walk->path_len += (size_t)len < room ? (size_t)len : room - 1;
}

size_t
conf_walk_enter(struct conf_walk *walk, const char *name)
{
	size_t mark = walk->path_len;

	extend(walk, "%s%s", mark == 0 ? "" : ".", name);
	return mark;
}

size_t
conf_walk_enter_index(struct conf_walk *walk, size_t index)
{
	size_t mark = walk->path_len;

	extend(walk, "[%zu]", index);
	return mark;
}

void
conf_walk_leave(struct conf_walk *walk, size_t mark)
{
	walk->path_len = mark;
	walk->path[mark] = '\0';
}

static int PRINTF_LIKE(3, 0) add_error(struct conf_walk *walk,
    const struct conf_node *node, const char *fmt, va_list args)
{
	char *text = NULL;

	if (vasprintf(&text, fmt, args) == -1)
		abort();
	conf_errors_add(walk->errors, &node->where, walk->path, "%s", text);
	free(text);
	return -1;
}

int
conf_walk_error(
    struct conf_walk *walk, const struct conf_node *node, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	add_error(walk, node, fmt, args);
	va_end(args);
	return -1;
}

int
conf_walk_error_at(struct conf_walk *walk, const struct conf_node *node,
    const char *name, const char *fmt, ...)
{
	size_t mark = conf_walk_enter(walk, name);
	va_list args;

	va_start(args, fmt);
	add_error(walk, node, fmt, args);
	va_end(args);
	conf_walk_leave(walk, mark);
	return -1;
}

int
conf_walk_unique(struct conf_walk *walk, const struct conf_node *group)
{
	struct hash_map *names = hash_map_new();
	struct conf_node *node, *first;
	int result = 0;

	for (node = group->first; node != NULL; node = node->next) {
		if (hash_map_add(names, str_of(node->name), node) == 0)
			continue;
		first = hash_map_get(names, str_of(node->name));
		result = conf_walk_error_at(walk, node, node->name,
		    "stands here a second time, the first is at %s:%d",
		    first->where.file, first->where.line);
	}
	hash_map_free(names);
	return result;
}

static int
refuse_unknown(struct conf_walk *walk, const char *prefix,
    const struct conf_node *node, unsigned runtimes)
{
	const char *nearest = NULL;

	/* Costly, and nobody reads it beyond the limit. */
	if (walk->errors->count < CONF_ERRORS_MAX)
		nearest = conf_schema_nearest(prefix, node->name, runtimes);
	if (nearest == NULL)
		return conf_walk_error(walk, node, "there is no such key");
	return conf_walk_error(
	    walk, node, "there is no such key; did you mean \"%s\"?", nearest);
}

static int
read_key(struct conf_walk *walk, const char *prefix, struct conf_node *node,
    unsigned runtimes, void *object)
{
	const struct conf_key *key =
	    conf_schema_find(prefix, node->name, runtimes);
	char text[64];

	if (key == NULL)
		return refuse_unknown(walk, prefix, node, runtimes);
	if (!conf_schema_is_for(key, runtimes))
		return conf_walk_error(walk, node, "is for runtime %s only",
		    conf_schema_runtimes(key->runtimes, text));
	if (key->type == CONF_TYPE_ABSENT)
		return conf_walk_error(
		    walk, node, "%s is not in this build", key->help);
	if (key->type == CONF_TYPE_GROUP) {
		if (node->type != CONF_NODE_GROUP)
			return conf_walk_error(walk, node,
			    "takes a group { ... }, not %s",
			    conf_node_kind(node));
		return conf_walk_group(walk, key->path, node, runtimes, object);
	}
	if (key->unstored)
		return 0;
	if (conf_value_read(walk, key, node, object) == 0)
		return 0;
	/* One mistake is one finding: nothing is to be said of a zero that
	 * nobody wrote. */
	if (key->preset != NULL)
		conf_value_preset(walk, key, object);
	return -1;
}

/* What the file does not say. */
static int
read_preset(struct conf_walk *walk, const struct conf_key *key,
    const struct conf_node *group, unsigned runtimes, void *object)
{
	char text[64];

	if (group != NULL && (key->required & runtimes) != 0) {
		if (key->required == CONF_FOR_ALL)
			return conf_walk_error_at(
			    walk, group, conf_schema_name(key), "is missing");
		return conf_walk_error_at(walk, group, conf_schema_name(key),
		    "is missing; runtime %s needs it",
		    conf_schema_runtimes(key->required & runtimes, text));
	}
	if (key->type == CONF_TYPE_GROUP)
		return conf_walk_group(walk, key->path, NULL, runtimes, object);
	if (key->preset != NULL && !key->unstored)
		conf_value_preset(walk, key, object);
	return 0;
}

int
conf_walk_group(struct conf_walk *walk, const char *prefix,
    const struct conf_node *group, unsigned runtimes, void *object)
{
	struct conf_node *node;
	int result = 0;

	if (group != NULL) {
		result = conf_walk_unique(walk, group);
		for (node = group->first; node != NULL; node = node->next) {
			size_t mark = conf_walk_enter(walk, node->name);

			if (read_key(walk, prefix, node, runtimes, object) ==
			    -1)
				result = -1;
			conf_walk_leave(walk, mark);
		}
	}
	for (size_t i = 0; i < conf_keys_count; i++) {
		const struct conf_key *key = &conf_keys[i];

		if (!conf_schema_is_below(key, prefix) ||
		    !conf_schema_is_for(key, runtimes) ||
		    conf_node_find(group, conf_schema_name(key)) != NULL)
			continue;
		if (read_preset(walk, key, group, runtimes, object) == -1)
			result = -1;
	}
	return result;
}
