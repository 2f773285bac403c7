/*
 * What each of at most two proxies knows of each instance, and how the slots of
 * capped instances are shared between them: their sum never exceeds the cap.
 * A side is a proxy's place, 0 or 1. Pure: speaks through leases_ops.
 */
#ifndef SUPERVISOR_LEASES_H
#define SUPERVISOR_LEASES_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/list.h"
#include "src/ipc/channel.h"

#define LEASES_SIDES 2

/* One instance that a proxy has heard of. */
struct lease {
	struct list node;
	/* As announced; `cap` is that of the instance, `app` owned here. */
	struct channel_announce announce;
	bool withdrawn;
	struct lease_side {
		bool knows;        /* was announced, has not said DRAINED */
		bool quiet;        /* ... nothing but streams is open there */
		uint32_t slots;    /* at most so many does it use */
		uint32_t recalled; /* of them it was told to give back */
	} sides[LEASES_SIDES];
	/* Of a proxy that has ended: the processes may still be busy. */
	uint32_t lost;
};

struct leases_ops {
	/* To a proxy. */
	void (*announce)(
	    void *arg, unsigned side, const struct channel_announce *announce);
	void (*tell)(void *arg, unsigned side, enum channel_type type,
	    uint64_t instance, uint32_t count);
	/* Nobody has anything open to a withdrawn instance any more. */
	void (*drained)(void *arg, uint64_t instance);
	/* ... anything but streams. May come again. */
	void (*quiet)(void *arg, uint64_t instance);
	/* A proxy ended with slots in use: call leases_found when some of
	 * lease->lost are seen to be free. */
	void (*lost)(void *arg, const struct lease *lease);
};

struct leases; /* opaque */

struct leases *leases_new(const struct leases_ops *ops, void *arg) MUST_CHECK;
void leases_free(struct leases **leases);

/* A proxy hears: all instances are announced to it. `main`: free slots are its
 * from now on; the other side only has what it uses, and what it asks for. */
void leases_join(struct leases *leases, unsigned side, bool main);
void leases_set_main(struct leases *leases, unsigned side);
/* Its process is gone: it gets nothing more. What it said before may still
 * come (RELEASED, DRAINED, QUIET), then leases_leave. */
void leases_end(struct leases *leases, unsigned side);
/* What it had left is lost until lost_slots finds it. */
void leases_leave(struct leases *leases, unsigned side);

/* An instance may be sent requests; of a known one only idle_timeout_ms
 * counts. Texts are copied. */
void leases_announce(
    struct leases *leases, const struct channel_announce *announce);
/* ... no more. True: `drained` will be called, later. */
bool leases_withdraw(struct leases *leases, uint64_t instance, bool dead);
/* The time of its requests is up: what is no stream fails where there are
 * streams. Then `quiet` will be called. */
void leases_hurry(struct leases *leases, uint64_t instance);

/* What proxies say. */
void leases_drained(struct leases *leases, unsigned side, uint64_t instance);
void leases_quiet(struct leases *leases, unsigned side, uint64_t instance);
void leases_released(
    struct leases *leases, unsigned side, uint64_t instance, uint32_t slots);
void leases_want(struct leases *leases, unsigned side, const char *app);
/* It ends with so many connections open to the instance: it uses no more slots
 * than that, whatever was lent to it since. Before leases_leave. */
void leases_left(struct leases *leases, unsigned side, uint64_t instance,
    uint64_t connections);

/* So many lost slots of it are free. */
void leases_found(struct leases *leases, uint64_t instance, uint32_t slots);

/* For the state that is handed on: all, in order. NULL at the end. */
const struct lease *leases_next(
    const struct leases *leases, const struct lease *lease);
/* Is all as with one proxy: every slot at `side`, nothing on its way? */
bool leases_are_simple(const struct leases *leases, unsigned side);
/* Take over what `side` knows already, in the process before us. */
void leases_adopt(struct leases *leases, unsigned side,
    const struct channel_announce *announce, bool withdrawn);

#endif
