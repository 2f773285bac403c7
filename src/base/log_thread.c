/*
 * Lines of the daemon's own log wait in memory until their thread has written
 * them. Behind log.c, which hands them over one by one.
 * Does not open files; logs nothing itself but what was lost.
 */
#include "src/base/log_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/thread.h"

#define STACK_BYTES ((size_t)256 * 1024)
#define END_PATIENCE_S 1

enum state {
	STATE_NONE,   /* lines are written at once */
	STATE_RUNS,   /* the thread takes them */
	STATE_MUTE,   /* it hangs, and we end: nobody writes */
	STATE_RESTED, /* as NONE, but the thread is there */
};

/* As the sink of log.c: one a process. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t work, idle;
	_Atomic enum state state;
	pid_t pid; /* a child after fork has no such thread */
	int fd;
	/* Under the lock. */
	char *pending, *spare;
	size_t len;
	unsigned long dropped;
	bool writing;
} thread = { .lock = PTHREAD_MUTEX_INITIALIZER,
	.work = PTHREAD_COND_INITIALIZER,
	.idle = PTHREAD_COND_INITIALIZER };

static void
write_all(const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(thread.fd, text, len);

		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0)
			return; /* full or gone: it must not stop us */
		text += n;
		len -= (size_t)n;
	}
}

static void
tell_dropped(unsigned long dropped)
{
	char line[128];

	clock_put_iso(line, clock_wall_ms());
	snprintf(line + CLOCK_ISO_LEN, sizeof(line) - CLOCK_ISO_LEN,
	    " warn scalwsd[%d]: %lu lines were lost here\n", (int)thread.pid,
	    dropped);
	write_all(line, strlen(line));
}

static void *
run_thread(void *arg)
{
	pthread_mutex_lock(&thread.lock);
	for (;;) {
		char *text = thread.pending;
		size_t len = thread.len;
		unsigned long dropped = thread.dropped;

		if (len == 0 && dropped == 0) {
			pthread_cond_broadcast(&thread.idle);
			pthread_cond_wait(&thread.work, &thread.lock);
			continue;
		}
		thread.pending = thread.spare;
		thread.spare = text;
		thread.len = 0;
		thread.dropped = 0;
		thread.writing = true;
		pthread_mutex_unlock(&thread.lock);
		write_all(text, len);
		/* They came after what was pending. */
		if (dropped > 0)
			tell_dropped(dropped);
		pthread_mutex_lock(&thread.lock);
		thread.writing = false;
	}
	return NULL;
}

/* log_take_cb */
static bool
take_line(const char *line, size_t len)
{
	enum state state = atomic_load(&thread.state);

	if (state == STATE_MUTE)
		return true;
	if (state != STATE_RUNS || getpid() != thread.pid)
		return false;
	pthread_mutex_lock(&thread.lock);
	if (len > LOG_THREAD_PENDING_MAX - thread.len || thread.dropped > 0) {
		thread.dropped++;
	} else {
		memcpy(thread.pending + thread.len, line, len);
		thread.len += len;
	}
	pthread_cond_signal(&thread.work);
	pthread_mutex_unlock(&thread.lock);
	return true;
}

void
log_thread_begin(void)
{
	enum state state = atomic_load(&thread.state);

	if (state == STATE_RUNS)
		return;
	if (state == STATE_NONE) {
		thread.pid = getpid();
		thread.pending = mem_alloc_dirty(LOG_THREAD_PENDING_MAX);
		thread.spare = mem_alloc_dirty(LOG_THREAD_PENDING_MAX);
		thread.fd = log_hand_to(take_line);
		if (thread_start(run_thread, NULL, STACK_BYTES) == -1) {
			log_hand_to(NULL);
			mem_free(thread.pending);
			mem_free(thread.spare);
			log_errno("no thread for the log");
			return;
		}
	}
	atomic_store(&thread.state, STATE_RUNS);
}

bool
log_thread_end(void)
{
	struct timespec until;
	bool done;

	if (atomic_load(&thread.state) != STATE_RUNS)
		return false;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += END_PATIENCE_S;
	pthread_mutex_lock(&thread.lock);
	while (thread.len > 0 || thread.dropped > 0 || thread.writing)
		if (pthread_cond_timedwait(
			&thread.idle, &thread.lock, &until) != 0)
			break;
	done = thread.len == 0 && thread.dropped == 0 && !thread.writing;
	atomic_store(&thread.state, done ? STATE_RESTED : STATE_MUTE);
	pthread_mutex_unlock(&thread.lock);
	return true;
}
