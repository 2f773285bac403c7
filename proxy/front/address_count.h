/*
 * How many connections each client address has, over all workers.
 * Asked by listener.c before it takes a connection, told by conn.c when one
 * ends. Addresses that must not be limited never come here.
 */
#ifndef FRONT_ADDRESS_COUNT_H
#define FRONT_ADDRESS_COUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "src/base/compiler.h"

/* Any thread: a few parts, each with a lock of its own that is held for one
 * look-up and taken with no other. */
struct address_count; /* opaque */

struct address_count *address_count_new(void) MUST_CHECK;
/* After the last thread that used it has ended. NULL is fine. */
void address_count_free(struct address_count **counts);

/* Count one more of this address (AF_INET, or the /64 of AF_INET6: as much as
 * a client has for itself). False: there are `most` already. */
bool address_count_take(struct address_count *counts,
    const struct sockaddr *from, uint32_t most) MUST_CHECK;
/* One that was taken is gone. */
void address_count_put(
    struct address_count *counts, const struct sockaddr *from);

#endif
