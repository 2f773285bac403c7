/*
 * A configuration as the frames that a proxy is given: PREPARE with its text
 * and logs, LISTEN with all sockets, LOADED.
 */
#ifndef SUPERVISOR_PROXY_LOAD_H
#define SUPERVISOR_PROXY_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/conf/conf.h"
#include "src/ipc/frame.h"

struct conf_hold;
struct listen_set;

typedef int proxy_load_cb(const struct frame_out *out, void *arg);

/* Calls `send` for each frame. `all`: a new process, which has no sockets yet;
 * else it polls all but the new ones. -1 when `send` fails, or with `errors`
 * filled. */
int proxy_load_send(const struct conf_hold *hold,
    const struct listen_set *listens, uint32_t serial, bool all,
    proxy_load_cb *send, void *arg, struct conf_errors *errors) MUST_CHECK;

#endif
