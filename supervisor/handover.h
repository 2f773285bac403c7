/*
 * The supervisor's state as plain values, taken from its parts and given to
 * those of another process. upgrade.c decides when. Supervisor thread only.
 */
#ifndef SUPERVISOR_HANDOVER_H
#define SUPERVISOR_HANDOVER_H

#include "src/base/compiler.h"

struct conf;
struct control_client;
struct saved;
struct supervisor;

/* What is under way that cannot be handed on, one line; NULL: nothing. */
const char *handover_obstacle(const struct supervisor *supervisor);
/* Only without an obstacle. The caller frees it (saved_free). */
void handover_take(const struct supervisor *supervisor, struct saved *saved);

/* In the new process. First, before anything is made: do state and
 * configuration fit? NULL, or why not. */
const char *handover_check(
    const struct saved *saved, const struct conf *conf) MUST_CHECK;
/* Are these descriptors what the state says? They get their CLOEXEC back, all
 * others but 0 to 2 are closed. NULL, or why not. */
const char *handover_check_fds(
    const struct saved *saved, const int *fds, size_t n_fds) MUST_CHECK;
/* The supervisor has its loop, its process table and its log writer. */
int handover_give(
    struct supervisor *supervisor, const struct saved *saved) MUST_CHECK;
/* After that. Returns the one that waits for the end of the upgrade, or NULL.
 */
struct control_client *handover_give_clients(
    struct supervisor *supervisor, const struct saved *saved) MUST_CHECK;

#endif
