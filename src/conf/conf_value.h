/*
 * Values: from a node into a member, one function for each type of the schema.
 * Used by conf_walk.c. The way back is conf_print.c.
 */
#ifndef CONF_CONF_VALUE_H
#define CONF_CONF_VALUE_H

#include "src/conf/conf_walk.h"

/* Read `node` into the member of `object` that `key` names. Returns 0, or -1
 * with a finding; the member is then unchanged. A file name that is made
 * absolute is changed in the node too, so that the proxy sees the same. */
int conf_value_read(struct conf_walk *walk, const struct conf_key *key,
    struct conf_node *node, void *object);
/* The preset of the schema instead. The table is tested: it cannot fail. */
void conf_value_preset(
    struct conf_walk *walk, const struct conf_key *key, void *object);

#endif
