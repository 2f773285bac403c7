/*
 * The proxy process: workers, channel to the supervisor, snapshots.
 */
#ifndef PROXY_PROXY_H
#define PROXY_PROXY_H

#include <stdbool.h>

#include "src/base/compiler.h"
#include "src/conf/conf.h"

/* Run the proxy until it has drained or the supervisor is gone. `channel_fd` is
 * the supervisor's socket. Returns the exit code: 0 after a drain. Becomes the
 * configured user before it reads from the network. Main thread. */
int proxy_run(int channel_fd);

/* For -t and a check by the daemon: look into the files that TLS needs, with
 * the rights of the caller. 0, or -1 with findings; what may not be read is a
 * warning, unless it must. */
int proxy_check_tls(const struct conf *conf, bool must_read,
    struct conf_errors *errors) MUST_CHECK;

#endif
