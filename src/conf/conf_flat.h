/*
 * The tree as one text, with the file and line of each node: what travels
 * from the supervisor to the proxy.
 * Format, one node a line, children behind their parent, "." ends a group or
 * list; N:TEXT is a text of N bytes; NAME is empty in lists:
 *
 *	scalws-conf 1
 *	f N:FILE                       a file; they are numbered from 0
 *	g FILE LINE N:NAME             a group (the root first of all)
 *	l FILE LINE N:NAME             a list
 *	i FILE LINE N:NAME INTEGER
 *	b FILE LINE N:NAME 0|1
 *	d FILE LINE N:NAME             a fraction
 *	s FILE LINE N:NAME N:TEXT
 *	.
 *
 * Pure functions.
 */
#ifndef CONF_CONF_FLAT_H
#define CONF_CONF_FLAT_H

#include "src/conf/conf_node.h"

void conf_flat_write(const struct conf_node *root, struct strbuf *to);
/* Trusts nothing in `text`. Returns the root, a group, or NULL with one
 * finding added. Memory is bounded by a multiple of `len`. */
struct conf_node *conf_flat_parse(struct arena *arena, const char *text,
    size_t len, struct conf_errors *errors) MUST_CHECK;

#endif
