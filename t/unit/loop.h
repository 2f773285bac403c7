/*
 * For tests: run a worker's loop on this thread, never for ever.
 */
#ifndef T_UNIT_LOOP_H
#define T_UNIT_LOOP_H

struct worker;

/* Run until a callback calls worker_stop; a test fails after five seconds. */
void loop_run(struct worker *worker);

/* Run for `ms`, whatever happens. */
void loop_run_for(struct worker *worker, int ms);

#endif
