/*
 * Child processes of the supervisor: roles of this same binary (proxy, keeper,
 * check), started by fork and exec, and the news of their end.
 * Supervisor thread only.
 */
#ifndef SUPERVISOR_PROCESS_H
#define SUPERVISOR_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

#include "src/base/compiler.h"

struct event_base;
struct process_table; /* opaque */

/* Called once, when the process has ended and was waited for. */
typedef void process_exit_cb(pid_t pid, int status, void *arg);

struct process_table *process_table_new(struct event_base *base) MUST_CHECK;
void process_table_free(struct process_table **table);

/* Start `scalwsd --role=ROLE LABEL` in its own process group, with a new
 * socket as descriptor 3; *channel is our end. -1 with errno. */
pid_t process_start(struct process_table *table, const char *role,
    const char *label, int *channel, process_exit_cb *on_exit,
    void *arg) MUST_CHECK;
/* One that was started by us before another binary took our place. */
void process_adopt(struct process_table *table, pid_t pid,
    process_exit_cb *on_exit, void *arg);
/* Wait for what has ended already. */
void process_look(struct process_table *table);
/* Do not call back for this process any more; it is still waited for. */
void process_forget(struct process_table *table, pid_t pid);
/* How many of those started are still there. */
size_t process_count(const struct process_table *table);
/* SIGKILL whatever is below us and was not started by us: a keeper was killed
 * and its app's processes came to us. Returns how many were seen. */
size_t process_kill_strays(struct process_table *table);

#define PROCESS_EXIT_TEXT_MAX 64
/* "exit code 1", "killed by SIGKILL" into `to`; returns `to`. */
const char *process_exit_text(int status, char to[PROCESS_EXIT_TEXT_MAX]);

#endif
