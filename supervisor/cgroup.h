/*
 * cgroup v2, where it may be used: one cgroup for each keeper's tree, below the
 * daemon's own, so that SIGKILL reaches all of it at once and even when its
 * keeper is gone. No controllers: the daemon may stay where it is.
 * Where it may not be used nothing is an error; the keeper goes on alone.
 */
#ifndef SUPERVISOR_CGROUP_H
#define SUPERVISOR_CGROUP_H

#include <stddef.h>
#include <sys/types.h>

#include "src/base/compiler.h"

#define CGROUP_PATH_MAX 4096

/* The directory of a process' cgroup, from the texts of /proc/PID/cgroup and
 * /proc/PID/mountinfo. -1: it has none that can be seen here. */
int cgroup_parse(const char *cgroups, const char *mounts,
    char to[CGROUP_PATH_MAX]) MUST_CHECK;

/* The directory for the cgroups of the daemon whose run directory (locked) is
 * `run`. What keepers left that were killed is ended and removed. NULL: cgroups
 * cannot be used; else the caller frees it by cgroup_leave. */
char *cgroup_enter(const char *run);
/* While keepers come and go: end and remove what those left that are dead, as
 * far as that goes without waiting. `home` may be NULL. */
void cgroup_tidy(const char *home);
/* The same at the end, with the directory itself. */
void cgroup_leave(char **home);

/* The cgroup for the tree of keeper `pid`, which keeps an app of this name. */
void cgroup_path(
    const char *home, const char *app, pid_t pid, char to[CGROUP_PATH_MAX]);
/* In the keeper: make it. The directory's descriptor (caller closes it), whose
 * lock says that the keeper lives; -1 when that is not possible. */
int cgroup_make(const char *path);
/* fork(), with the child in the cgroup `fd` where that works. */
pid_t cgroup_fork(int fd);
/* SIGKILL to all that is in it. */
void cgroup_kill(const char *path);
/* Remove it once what was killed has ended. */
void cgroup_remove(const char *path);

#endif
