/*
 * Counters of one worker. Only its thread writes (relaxed stores), any thread
 * reads; sums are made when somebody asks.
 */
#ifndef CORE_METRICS_H
#define CORE_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

struct metrics {
	_Atomic uint64_t accepted;   /* connections */
	_Atomic uint64_t handed_off; /* to a less busy worker */
	_Atomic uint64_t requests;   /* finished, any status */
	_Atomic uint64_t status[6];  /* by class; [0]: aborted before a head */
	_Atomic uint64_t bytes_in, bytes_out; /* bodies */
	_Atomic uint64_t bad_requests;        /* refused by the parser */
	_Atomic uint64_t requests_open;       /* now */
};

/* Not a read-modify-write: there is one writer. */
#define METRIC_ADD(counter, n)                                            \
	atomic_store_explicit(&(counter),                                 \
	    atomic_load_explicit(&(counter), memory_order_relaxed) + (n), \
	    memory_order_relaxed)

#endif
