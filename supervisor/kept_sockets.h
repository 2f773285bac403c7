/*
 * The listening sockets of processes that have died, kept open for as long as a
 * proxy has connections to them. Supervisor thread only.
 */
#ifndef SUPERVISOR_KEPT_SOCKETS_H
#define SUPERVISOR_KEPT_SOCKETS_H

#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/list.h"

struct kept_sockets {
	struct list all;
	unsigned n;
};

void kept_sockets_init(struct kept_sockets *kept);
/* Closes all. */
void kept_sockets_end(struct kept_sockets *kept);
/* A copy of `fd` is kept; of too many the oldest goes. */
void kept_sockets_add(struct kept_sockets *kept, uint64_t instance, int fd);
void kept_sockets_close(struct kept_sockets *kept, uint64_t instance);

#endif
