/*
 * Files to tree: the main file, its @includes, and its drop-ins.
 * Before the schema: knows no key but `include`. Never exits.
 */
#ifndef CONF_CONF_READ_H
#define CONF_CONF_READ_H

#include "src/conf/conf_node.h"

/* Returns the root, a group, with all drop-ins merged into it; NULL with
 * findings added. */
struct conf_node *conf_read_files(struct arena *arena, const char *path,
    struct conf_errors *errors) MUST_CHECK;
/* The same for one text in memory; it can include nothing. */
struct conf_node *conf_read_text(struct arena *arena, const char *name,
    const char *text, size_t len, struct conf_errors *errors) MUST_CHECK;

#endif
