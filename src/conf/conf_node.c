/*
 * The configuration as it was written: making and searching the tree.
 * Between the readers and the schema. Checks nothing.
 */
#include "src/conf/conf_node.h"

#include <string.h>

#include "src/base/arena.h"

struct conf_node *
conf_node_new(struct arena *arena, enum conf_node_type type, const char *name,
    struct conf_where where)
{
	struct conf_node *node = arena_alloc(arena, sizeof(*node));

	node->type = type;
	node->name = name == NULL ? NULL : arena_strdup(arena, name);
	node->where = where;
	return node;
}

struct conf_node *
conf_node_new_text(struct arena *arena, const char *name, const char *text,
    struct conf_where where)
{
	struct conf_node *node =
	    conf_node_new(arena, CONF_NODE_STRING, name, where);

	node->text = arena_strdup(arena, text);
	return node;
}

void
conf_node_append(struct conf_node *parent, struct conf_node *child)
{
	child->next = NULL;
	if (parent->last == NULL)
		parent->first = child;
	else
		parent->last->next = child;
	parent->last = child;
	parent->count++;
}

void
conf_node_remove(struct conf_node *parent, struct conf_node *child)
{
	struct conf_node *before = NULL, *at = parent->first;

	for (; at != NULL && at != child; at = at->next)
		before = at;
	if (at == NULL)
		return;
	if (before == NULL)
		parent->first = child->next;
	else
		before->next = child->next;
	if (parent->last == child)
		parent->last = before;
	parent->count--;
	child->next = NULL;
}

struct conf_node *
conf_node_find(const struct conf_node *parent, const char *name)
{
	struct conf_node *at;

	if (parent == NULL || parent->type != CONF_NODE_GROUP)
		return NULL;
	for (at = parent->first; at != NULL; at = at->next) {
		if (strcmp(at->name, name) == 0)
			return at;
	}
	return NULL;
}

const char *
conf_node_kind(const struct conf_node *node)
{
	switch (node->type) {
	case CONF_NODE_GROUP:
		return "a group";
	case CONF_NODE_LIST:
		return "a list";
	case CONF_NODE_INT:
		return "an integer";
	case CONF_NODE_BOOL:
		return "true or false";
	case CONF_NODE_FLOAT:
		return "a fraction";
	case CONF_NODE_STRING:
		return "a string";
	}
	return "something else";
}
