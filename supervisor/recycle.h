/*
 * Replaces instances that have done enough: requests, age, memory.
 * Supervisor thread only.
 */
#ifndef SUPERVISOR_RECYCLE_H
#define SUPERVISOR_RECYCLE_H

#include "src/base/compiler.h"

struct recycle; /* opaque */
struct supervisor;

/* NULL when there is no memory for its timer. */
struct recycle *recycle_new(struct supervisor *supervisor) MUST_CHECK;
void recycle_free(struct recycle **recycle);

#endif
