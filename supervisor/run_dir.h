/*
 * The run directory: lock file, instance sockets, who may reach them.
 * Supervisor thread only.
 */
#ifndef SUPERVISOR_RUN_DIR_H
#define SUPERVISOR_RUN_DIR_H

#include <stdbool.h>
#include <sys/types.h>

#include "src/base/addr.h"
#include "src/base/compiler.h"
#include "src/conf/conf.h"

struct run_dir {
	const char *path; /* of the configuration; owned here */
	int lock_fd;
	bool root;       /* we are root: owners and groups matter */
	gid_t proxy_gid; /* as root: the group that may connect */
};

/* Make the directory, lock it (a second daemon finds it locked), and remove
 * sockets that an earlier one left. -1 with `errors` filled. */
int run_dir_open(struct run_dir *run, const struct conf *conf,
    struct conf_errors *errors) MUST_CHECK;
void run_dir_close(struct run_dir *run);
/* Is run->lock_fd the lock of run->path, and ours? */
bool run_dir_is_locked(const struct run_dir *run);

/* A unix listener "<run>/<name>" that the proxy may connect to. Blocking,
 * CLOEXEC. *addr is its address. -1 with errno. */
int run_dir_listen(
    const struct run_dir *run, const char *name, struct addr *addr) MUST_CHECK;
/* A directory "<run>/<name>" in which the app may make a socket for the proxy;
 * what was in it is removed. -1 with errno. */
int run_dir_make_place(
    const struct run_dir *run, const char *name, uid_t uid) MUST_CHECK;
void run_dir_remove(const struct run_dir *run, const char *name);
/* Remove the directory and what is in it. */
void run_dir_remove_place(const struct run_dir *run, const char *name);

/* mkdir -p of our own directories. */
int run_dir_make_path(const char *path, mode_t mode) MUST_CHECK;

#endif
