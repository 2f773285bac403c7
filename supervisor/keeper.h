/*
 * The keeper: one small process per instance, parent and subreaper of all of
 * it. Starts the app, says how it ended, and leaves none of its processes.
 * A role of scalwsd; talks frames with the supervisor (instance.c).
 */
#ifndef SUPERVISOR_KEEPER_H
#define SUPERVISOR_KEEPER_H

#include <stdbool.h>

#include "src/base/compiler.h"

/* First the supervisor sends SPEC. The keeper says FORKED for what it starts,
 * before that can print, answers STARTED or CANNOT, later EXITED, and exits
 * when nothing is left of the tree: its own exit is the news. The supervisor's
 * end closed means the same as STOP. */
enum keeper_message {
	KEEPER_SPEC = 1, /* fds: memfd of spawn_encode, the app's descriptors
			  * 1, 2, 3 ... */
	KEEPER_STOP,     /* stop signal, second signal, SIGKILL by the spec */
	KEEPER_KILL,     /* SIGKILL now */
	KEEPER_STARTED,  /* u32 pid */
	KEEPER_CANNOT,   /* text: what failed and why */
	KEEPER_BEFORE,   /* u32 wait status of before_start, which failed */
	KEEPER_EXITED,   /* u32 wait status of the app's first process */
	KEEPER_FORKED,   /* u32 pid, of before_start or the app */
};

/* Run as keeper; `channel_fd` is the supervisor's socket. Returns the exit
 * code. */
int keeper_run(int channel_fd);

#define KEEPER_FDS_MAX 16
struct spawn_spec;

/* In the child of the keeper: become the app, or (`before`) what runs first.
 * `fds` are its descriptors from 1
 * on. Does not return; says what failed on `error_fd`, as one line. */
_Noreturn void keeper_child_run(struct spawn_spec *spec, bool before,
    const int *fds, unsigned n_fds, int error_fd);

#endif
