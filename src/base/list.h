/*
 * An intrusive, circular, doubly linked list.
 * A node is a member of the object it links; the head is a node of its own.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/compiler.h"

struct list {
	struct list *next, *prev; /* both NULL: a node in no list */
};

static inline void
list_init(struct list *head)
{
	head->next = head->prev = head;
}

static inline bool
list_is_empty(const struct list *head)
{
	return head->next == head;
}

/* Is this node in a list? (Not for heads.) */
static inline bool
list_is_linked(const struct list *node)
{
	return node->next != NULL;
}

static inline void
list_insert_before(struct list *at, struct list *node)
{
	node->prev = at->prev;
	node->next = at;
	at->prev->next = node;
	at->prev = node;
}

static inline void
list_push_back(struct list *head, struct list *node)
{
	list_insert_before(head, node);
}

static inline void
list_push_front(struct list *head, struct list *node)
{
	list_insert_before(head->next, node);
}

/* Take the node out; safe for a node in no list. */
static inline void
list_remove(struct list *node)
{
	if (node->next == NULL)
		return;
	node->prev->next = node->next;
	node->next->prev = node->prev;
	node->next = node->prev = NULL;
}

/* The first node, still linked, or NULL. */
static inline struct list *
list_first(const struct list *head)
{
	return head->next == head ? NULL : head->next;
}

#define LIST_ENTRY(node, type, member) CONTAINER_OF(node, type, member)

/* `node` and `after` are struct list *; `node` may be removed in the body. */
#define LIST_FOREACH_SAFE(node, after, head)                                  \
	for ((node) = (head)->next, (after) = (node)->next; (node) != (head); \
	     (node) = (after), (after) = (node)->next)
#define LIST_FOREACH(node, head) \
	for ((node) = (head)->next; (node) != (head); (node) = (node)->next)

#endif
