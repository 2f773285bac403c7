/*
 * The client's side of one worker: its listeners, its connections and what
 * they share. proxy.c makes it and tells it about configurations and the end.
 * All functions: the worker's thread, except where noted.
 */
#ifndef FRONT_FRONT_H
#define FRONT_FRONT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"

struct address_count;
struct front;
struct worker;

/* The sockets of one listener, owned by the main thread. A front polls those
 * whose index is its worker's modulo their workers (every front polls a shared
 * one), and borrows them until the next front_listen without that key, or
 * front_close_listeners. */
struct front_sockets {
	uint32_t key;     /* channel.h, LISTEN */
	bool is_shared;   /* one socket for all workers */
	bool is_deferred; /* TCP_DEFER_ACCEPT: the request is there at once */
	bool is_tls;
	size_t n_fds;
	const int *fds;
};

/* Before the worker runs; sets its slot. `addresses` is shared by the fronts of
 * all workers and outlives them. */
struct front *front_new(
    struct worker *worker, struct address_count *addresses) MUST_CHECK;
/* After the worker has stopped: closes what is open. */
void front_free(struct front **front);

/* The worker has another snapshot: take its limits and times, poll exactly
 * these listeners. */
void front_configure(
    struct front *front, const struct front_sockets *sockets, size_t n_sockets);

/* Stop polling; what is open goes on. */
void front_close_listeners(struct front *front);
/* The same, and end kept connections as soon as they have no request, unless
 * worker->keeps_idle; may be called again without it. */
void front_drain(struct front *front);
/* The deadline of draining has come. */
void front_abort_all(struct front *front);
/* Connections that are open, or handed to this worker and on their way. */
unsigned front_open_count(const struct front *front);

#endif
