/*
 * The processes of this machine as a tree, read from /proc.
 * Used by keepers to end what they started, and for status.
 */
#ifndef SUPERVISOR_TREE_H
#define SUPERVISOR_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/compiler.h"

struct tree_process {
	pid_t pid, ppid;
	char state; /* 'Z': ended, not yet waited for */
	uint64_t rss_bytes;
	uint64_t cpu_ms; /* user and system */
	bool below;      /* tree_mark_below: a descendant */
};

struct tree {
	struct tree_process *processes;
	size_t n;
};

/* Read all processes. -1 with errno when /proc cannot be read. */
int tree_read(struct tree *tree) MUST_CHECK;
void tree_free(struct tree *tree);
/* Mark all descendants of `pid` (not itself); returns how many. */
size_t tree_mark_below(struct tree *tree, pid_t pid);
/* Of `pid` and all below it. */
uint64_t tree_rss_bytes(struct tree *tree, pid_t pid);

/* Understand the text of /proc/PID/stat. -1 when it is none. */
int tree_parse_stat(const char *text, struct tree_process *process) MUST_CHECK;

#endif
