/*
 * Starts detached threads with all signals blocked.
 * Called where something may wait that the loop must not wait for.
 * Does not end or join them.
 */
#include "src/base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

int
thread_start(void *(*run)(void *arg), void *arg, size_t stack)
{
	pthread_attr_t how;
	sigset_t all, before;
	pthread_t id;
	int error;

	pthread_attr_init(&how);
	pthread_attr_setstacksize(&how, stack);
	pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&id, &how, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&how);
	errno = error;
	return error == 0 ? 0 : -1;
}
