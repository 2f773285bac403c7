/*
 * Reading one group of the tree into one object, as the schema says.
 * Used by conf_build.c, which knows how objects hang together. Unknown keys,
 * keys of another runtime, keys given twice, wrong types and ranges are
 * findings; members without a key get their preset.
 */
#ifndef CONF_CONF_WALK_H
#define CONF_CONF_WALK_H

#include "src/conf/conf_node.h"
#include "src/conf/conf_schema.h"

struct conf_walk {
	struct arena *arena;
	struct conf_errors *errors;
	bool files; /* file names may be made absolute (they are files' text) */
	char path[256]; /* of the group at hand, as messages name it */
	size_t path_len;
};

/* Go down to a name, or to a place in a list; give the result to leave. */
size_t conf_walk_enter(struct conf_walk *walk, const char *name);
size_t conf_walk_enter_index(struct conf_walk *walk, size_t index);
void conf_walk_leave(struct conf_walk *walk, size_t mark);

/* A finding at the path at hand. Returns -1. */
int conf_walk_error(struct conf_walk *walk, const struct conf_node *node,
    const char *fmt, ...) PRINTF_LIKE(3, 4);
/* The same one step below. */
int conf_walk_error_at(struct conf_walk *walk, const struct conf_node *node,
    const char *name, const char *fmt, ...) PRINTF_LIKE(4, 5);

/* Read `group` (NULL: it is not there, only presets; `where` is the place to
 * name when a required key is missing) into `object`. Keys that the schema
 * marks unstored, and lists and groups of objects, are left to the caller.
 * Returns 0, or -1 when anything was found. */
int conf_walk_group(struct conf_walk *walk, const char *prefix,
    const struct conf_node *group, unsigned runtimes, void *object);

/* Every name in the group once? Findings name both places. */
int conf_walk_unique(struct conf_walk *walk, const struct conf_node *group);

#endif
