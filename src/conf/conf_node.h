/*
 * The configuration as it was written: our own tree, free of libconfig.
 * Made by conf_read.c or conf_flat.c, read by conf_walk.c and conf_build.c.
 * Knows no key and no meaning. Everything lives in one arena.
 */
#ifndef CONF_CONF_NODE_H
#define CONF_CONF_NODE_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/conf/conf.h"

/* Deeper nesting than this is refused by all that make trees: what walks
 * them may recurse. */
#define CONF_NODE_DEPTH_MAX 32

enum conf_node_type {
	CONF_NODE_GROUP,  /* { name = value; ... } */
	CONF_NODE_LIST,   /* ( ... ) or [ ... ] */
	CONF_NODE_INT,    /* `number` */
	CONF_NODE_BOOL,   /* `number`: 0 or 1 */
	CONF_NODE_FLOAT,  /* no key takes one: only the type is kept */
	CONF_NODE_STRING, /* `text` */
};

struct conf_node {
	enum conf_node_type type;
	const char *name; /* NULL in a list, and for the root */
	struct conf_where where;
	int64_t number;
	const char *text;
	struct conf_node *first, *last; /* children in file order */
	struct conf_node *next;
	size_t count; /* of children */
};

struct conf_node *conf_node_new(struct arena *arena, enum conf_node_type type,
    const char *name, struct conf_where where) MUST_CHECK;
/* A string node; the text is copied. */
struct conf_node *conf_node_new_text(struct arena *arena, const char *name,
    const char *text, struct conf_where where) MUST_CHECK;
void conf_node_append(struct conf_node *parent, struct conf_node *child);
/* Take a child out of its parent. */
void conf_node_remove(struct conf_node *parent, struct conf_node *child);
/* The child of that name, or NULL; also NULL when `parent` is NULL or no
 * group. */
struct conf_node *conf_node_find(
    const struct conf_node *parent, const char *name);
/* "a group", "a string", ...: for messages. */
const char *conf_node_kind(const struct conf_node *node);

#endif
