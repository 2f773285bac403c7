/*
 * Another binary in our place: rehearsed in a child first, then executed.
 * For upgrade.c, and for the way back. Supervisor thread only.
 */
#ifndef SUPERVISOR_SUCCESSOR_H
#define SUPERVISOR_SUCCESSOR_H

#include <stddef.h>
#include <sys/types.h>

#include "src/base/compiler.h"

struct process_table;
struct saved;

/* The program at `path`, which must be as safe as the one that we run. -1 with
 * `why` filled. */
int successor_open(const char *path, char *why, size_t why_size) MUST_CHECK;

/* Run it in a child with this state; it says whether it could take over. Called
 * once, later: `why` is "" or the reason. */
struct rehearsal; /* opaque */
typedef void rehearsal_cb(const char *why, void *arg);
struct rehearsal *rehearsal_start(struct process_table *table, int exe_fd,
    struct saved *saved, rehearsal_cb *on_done, void *arg) MUST_CHECK;
/* It takes too long: it is killed, on_done follows. */
void rehearsal_end(struct rehearsal *rehearsal, const char *why);
/* It is killed and not heard of any more. */
void rehearsal_forget(struct rehearsal **rehearsal);

/* Become the program `exe_fd`; `back_fd` is the one to go back to, or -1: it is
 * the way back. Returns only when that fails, with errno and all as before. */
void successor_exec(int exe_fd, int back_fd, struct saved *saved);
/* The same with a state that lies in `state_fd` already. */
void successor_exec_state(const struct saved *saved, int exe_fd, int state_fd,
    const int *fds, size_t n_fds);

#endif
