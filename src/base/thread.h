/*
 * Threads beside the loop's: the one way in which they are started.
 * Knows nothing of what they do; the proxy's workers, which are joined and keep
 * the process's signals out themselves, are proxy.c's.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <stddef.h>

/*
 * Starts a detached thread with a stack of `stack` bytes that gets no signal:
 * signals are the loop's. What `run` returns goes nowhere.
 * Returns 0, or -1 with errno.
 */
int thread_start(void *(*run)(void *arg), void *arg, size_t stack);

#endif
