/*
 * Comparing configurations, member by member, as the schema says.
 */
#ifndef CONF_DIFF_H
#define CONF_DIFF_H

#include <stdbool.h>

#include "src/conf/conf_schema.h"

/* Is the member of this key the same in both objects (of the key's own type:
 * struct conf, struct conf_app)? Not for FIELDS, RANGES and containers, which
 * always are. */
bool conf_same_member(
    const struct conf_key *key, const void *a, const void *b) MUST_CHECK;

#endif
