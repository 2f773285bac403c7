/*
 * What signals do to a process of ours, and how its children get the usual
 * back. Handlers are not made here: the supervisor's are libevent's.
 */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <signal.h>

/*
 * Ignores every signal that would end the process, whoever sends it, other
 * than those in `but` (may be NULL) and those that tell of a fault of its own.
 * Is inherited through exec. Safe between fork and exec.
 */
void signals_ignore(const sigset_t *but);

/* As signals_ignore(NULL), for a process in a group of its own: those that a
 * terminal stops it with do nothing either. */
void signals_ignore_terminal(void);

/* Nothing is blocked any more. */
void signals_let_in(void);

/* All as a program expects it: nothing is ignored, handled or blocked. Safe
 * between fork and exec. */
void signals_reset(void);

#endif
