/*
 * The proxy process: workers, channel to the supervisor, snapshots.
 */
#ifndef PROXY_PROXY_H
#define PROXY_PROXY_H

/* Run the proxy until it has drained or the supervisor is gone. `channel_fd` is
 * the supervisor's socket. Returns the exit code: 0 after a drain. Becomes the
 * configured user before it reads from the network. Main thread. */
int proxy_run(int channel_fd);

#endif
