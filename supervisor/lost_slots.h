/*
 * The slots of a proxy that has ended: its connections are closed, but the
 * processes behind them may still work. Looks at them until they are free.
 * Supervisor thread only.
 */
#ifndef SUPERVISOR_LOST_SLOTS_H
#define SUPERVISOR_LOST_SLOTS_H

#include <stdint.h>

#include "src/base/addr.h"
#include "src/base/compiler.h"

struct event_base;
struct lost_slots; /* opaque */

/* So many slots of the instance are free after all. */
typedef void lost_slots_cb(uint64_t instance, uint32_t slots, void *arg);

struct lost_slots *lost_slots_new(
    struct event_base *base, lost_slots_cb *on_found, void *arg) MUST_CHECK;
void lost_slots_free(struct lost_slots **lost);

/* A proxy has ended that could have had `slots` of the instance at `addr`. All
 * are told of, in parts, by `on_found`, from the loop. */
void lost_slots_watch(struct lost_slots *lost, uint64_t instance,
    const struct addr *addr, uint32_t slots);

#endif
