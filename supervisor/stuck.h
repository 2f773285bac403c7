/*
 * A process that handles one request at a time and goes on with one that nobody
 * waits for any more: it is ended, and another takes its place.
 * Supervisor thread only.
 */
#ifndef SUPERVISOR_STUCK_H
#define SUPERVISOR_STUCK_H

#include <stdint.h>
#include <sys/types.h>

#include "src/base/compiler.h"
#include "src/ipc/channel.h"

struct instance;

/* What the proxy says of this instance: end the one child that is at the other
 * end of the connection (PHP), or replace all of it (one request at a time);
 * else only a line in the log. */
void stuck_end(struct instance *instance, const struct channel_stuck *stuck);

/* SIGKILL to that child of `parent` which holds the other end of the unix
 * socket `inode`. Its pid; 0: there is none (any more); -1 with errno. */
pid_t stuck_kill_peer(pid_t parent, uint64_t inode) MUST_CHECK;

#endif
