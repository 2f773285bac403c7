/*
 * A supervisor of a few lines: runs the real proxy in a child process with a
 * configuration, without apps. For tests and measurements of the proxy alone.
 */
#ifndef UNIT_PROXY_DRIVER_H
#define UNIT_PROXY_DRIVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/ipc/channel.h"
#include "src/ipc/frame.h"

#define DRIVER_SETS 16

struct driver {
	pid_t pid;
	struct frame_link *link;
	uint32_t serial;
	uint32_t next_key;
	/* Listening sockets by the port they stand for. */
	struct {
		int port;
		uint32_t key;
		unsigned n_fds;
		int fds[FRAME_FDS_MAX];
	} sets[DRIVER_SETS];
	unsigned n_sets;
	struct frame_in in;
	struct frame_out out;
};

/* A free port of 127.0.0.1, bound (SO_REUSEPORT) and listened on by `n_fds`
 * sockets; configurations name it from now on. */
int driver_port(struct driver *driver, unsigned n_fds, bool is_deferred);

/* Start the proxy in a child; the process ends when the test does not. */
void driver_start(struct driver *driver);
/* Hand it a configuration (the text of a file), commit it and wait for READY;
 * NULL, or what REJECTED said (valid until the next message). */
const char *driver_configure(struct driver *driver, const char *text);
/* Wait for a message of that type; others are skipped. Aborts at the end of the
 * channel, or after 10 s. */
void driver_await(struct driver *driver, uint16_t type);
void driver_send(struct driver *driver);
/* Drain, and return the exit status as waitpid gives it. */
int driver_stop(struct driver *driver, uint32_t deadline_ms);
/* The supervisor dies: only the channel is closed. */
int driver_vanish(struct driver *driver);

#endif
