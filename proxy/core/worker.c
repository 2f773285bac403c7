/*
 * The loop of one thread: tick, timers, mailbox, buffers, deferred frees.
 * Everything that a worker does happens below worker_run.
 * Knows no sockets of clients or peers.
 */
#include "proxy/core/worker.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "src/base/mem.h"

/* Free objects that a pool keeps in any case. */
#define SPARE_KEPT 16
/* So often the pools give back memory; when that comes to rest after so many
 * bytes, the heap gives its free pages back to the system. */
#define SETTLE_TICKS (1000 / WORKER_TICK_MS)
#define SETTLED_BYTES (64 * 1024)
#define TRIM_BYTES (4 * 1024 * 1024)

/* ---- timers ---- */

struct timer_class *
timer_class_of(struct worker *worker, int length_ms, timer_cb *expired)
{
	struct timer_class *cls;
	struct list *node;

	LIST_FOREACH(node, &worker->classes)
	{
		cls = LIST_ENTRY(node, struct timer_class, node);
		if (cls->length_ms == length_ms && cls->expired == expired)
			return cls;
	}
	cls = mem_alloc(sizeof(*cls));
	list_init(&cls->entries);
	cls->length_ms = length_ms;
	cls->expired = expired;
	list_push_back(&worker->classes, &cls->node);
	return cls;
}

void
timer_arm(struct worker *worker, struct timer_class *cls, struct timer *timer)
{
	/* The last tick may be nearly a whole one ago: one more, so that
	 * nothing expires early. */
	int64_t deadline_ms = worker->tick_ms + WORKER_TICK_MS + cls->length_ms;

	if (timer->deadline_ms == deadline_ms && timer->cls == cls &&
	    list_is_linked(&timer->node))
		return;
	list_remove(&timer->node);
	timer->deadline_ms = deadline_ms;
	timer->cls = cls;
	list_push_back(&cls->entries, &timer->node);
}

static void
expire(struct worker *worker, struct timer_class *cls)
{
	struct list *node;

	while ((node = list_first(&cls->entries)) != NULL) {
		struct timer *timer = LIST_ENTRY(node, struct timer, node);

		if (timer->deadline_ms > worker->tick_ms)
			return;
		list_remove(node);
		cls->expired(worker, timer);
	}
}

/* ---- the tick ---- */

static void
renew_date(struct worker *worker)
{
	int64_t now_s = clock_wall_ms() / 1000;

	if (now_s == worker->date_s)
		return;
	worker->date_s = now_s;
	memcpy(worker->date, "Date: ", 6);
	clock_put_http(worker->date + 6, now_s);
	memcpy(worker->date + 6 + CLOCK_HTTP_LEN, "\r\n", 2);
	clock_put_clf(worker->clf_date, now_s);
}

static void
release_all_but(struct pool_of *pool, unsigned keep)
{
	while (pool->n_free > keep) {
		void *object = pool->free;

		memcpy(&pool->free, object, sizeof(pool->free));
		pool->n_free--;
		mem_free(object);
	}
}

/* Half of what was not needed, so that what comes and goes within seconds finds
 * most of it still there. Returns the bytes. */
static size_t
settle(struct pool_of *pool)
{
	unsigned before = pool->n_free;
	unsigned keep = before - (pool->n_spare + 1) / 2;

	release_all_but(pool, keep > SPARE_KEPT ? keep : SPARE_KEPT);
	pool->n_spare = pool->n_free;
	return (before - pool->n_free) * pool->bytes;
}

static void
settle_pools(struct worker *worker)
{
	struct list *node;
	size_t now = 0;

	LIST_FOREACH(node, &worker->pools)
	now += settle(LIST_ENTRY(node, struct pool_of, node));
	worker->given_back += now;
	if (now >= SETTLED_BYTES || worker->given_back < TRIM_BYTES)
		return;
	worker->given_back = 0;
#if defined(__GLIBC__)
	/* It keeps free pages that lie below used ones. */
	malloc_trim(0);
#endif
}

void
worker_tick_at(struct worker *worker, int64_t now_ms)
{
	struct list *node, *after;

	worker->tick_ms = now_ms;
	renew_date(worker);
	LIST_FOREACH(node, &worker->classes)
	expire(worker, LIST_ENTRY(node, struct timer_class, node));
	LIST_FOREACH_SAFE(node, after, &worker->on_tick)
	{
		struct worker_tick *tick =
		    LIST_ENTRY(node, struct worker_tick, node);

		tick->run(worker, tick->arg);
	}
	if (++worker->ticks == SETTLE_TICKS) {
		worker->ticks = 0;
		settle_pools(worker);
	}
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	worker_tick_at(arg, clock_now_ms());
}

void
worker_on_tick(struct worker *worker, struct worker_tick *tick)
{
	list_push_back(&worker->on_tick, &tick->node);
}

/* ---- mailbox ---- */

static void
wake(struct worker *worker)
{
	uint64_t one = 1;
	ssize_t n;

	do {
		n = write(worker->wake_fd, &one, sizeof(one));
	} while (n == -1 && errno == EINTR);
}

static bool
is_own_thread(struct worker *worker)
{
	return atomic_load_explicit(&worker->running, memory_order_relaxed) ==
	       pthread_self();
}

void
worker_post(struct worker *worker, struct mail *mail)
{
	bool was_empty;

	mail->next = NULL;
	pthread_mutex_lock(&worker->mail_lock);
	was_empty = worker->mail_first == NULL;
	if (was_empty)
		worker->mail_first = mail;
	else
		worker->mail_last->next = mail;
	worker->mail_last = mail;
	pthread_mutex_unlock(&worker->mail_lock);
	if (is_own_thread(worker))
		worker->has_own_mail = true;
	else if (was_empty)
		wake(worker);
}

static void
deliver_mail(struct worker *worker)
{
	struct mail *mail, *next;

	pthread_mutex_lock(&worker->mail_lock);
	mail = worker->mail_first;
	worker->mail_first = worker->mail_last = NULL;
	pthread_mutex_unlock(&worker->mail_lock);
	for (; mail != NULL; mail = next) {
		next = mail->next;
		mail->deliver(worker, mail);
	}
}

static void
on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct worker *worker = arg;
	uint64_t count;

	/* Emptied before the mail is taken: what comes later wakes us again. */
	if (read(worker->wake_fd, &count, sizeof(count)) == -1 &&
	    errno != EAGAIN && errno != EINTR)
		log_errno("worker %u: mailbox", worker->index);
	worker->tick_ms = clock_now_ms();
	deliver_mail(worker);
}

/* ---- memory ---- */

#if defined(__SANITIZE_ADDRESS__)
#define KEEP_FREE_OBJECTS 0 /* let the sanitizer see every use after free */
#else
#define KEEP_FREE_OBJECTS 1
#endif

void
pool_of_init(struct worker *worker, struct pool_of *pool, size_t bytes)
{
	*pool = (struct pool_of){ .bytes = bytes };
	list_push_back(&worker->pools, &pool->node);
}

void *
pool_of_get(struct pool_of *pool)
{
	void *object = pool->free;

	pool->n_used++;
	if (UNLIKELY(object == NULL))
		return mem_alloc_dirty(pool->bytes);
	memcpy(&pool->free, object, sizeof(pool->free));
	if (UNLIKELY(--pool->n_free < pool->n_spare))
		pool->n_spare = pool->n_free;
	return object;
}

void
pool_of_put(struct pool_of *pool, void *object)
{
	pool->n_used--;
	if (!KEEP_FREE_OBJECTS) {
		mem_free(object);
		return;
	}
	memcpy(object, &pool->free, sizeof(pool->free));
	pool->free = object;
	pool->n_free++;
}

void
pool_of_end(struct pool_of *pool)
{
	release_all_but(pool, 0);
	list_remove(&pool->node);
}

static struct buf *
take_buf(struct pool_of *pool, uint32_t room)
{
	struct buf *buf = pool_of_get(pool);

	buf->next = NULL;
	buf->start = buf->end = 0;
	buf->room = room;
	return buf;
}

struct buf *
buf_get(struct worker *worker)
{
	return take_buf(&worker->buffers, BUF_BYTES);
}

struct buf *
buf_get_bulk(struct worker *worker)
{
	return take_buf(&worker->bulk_buffers, BUF_BULK_BYTES);
}

struct buf *
buf_get_large(struct worker *worker, size_t room)
{
	struct buf *buf;

	if (room == BUF_BULK_BYTES)
		return buf_get_bulk(worker);
	buf = mem_alloc(sizeof(*buf) + room + BUF_PADDING);
	buf->room = (uint32_t)room;
	return buf;
}

void
buf_put(struct worker *worker, struct buf **buf_ptr)
{
	struct buf *buf = *buf_ptr;

	if (buf == NULL)
		return;
	*buf_ptr = NULL;
	if (LIKELY(buf->room == BUF_BYTES))
		pool_of_put(&worker->buffers, buf);
	else if (buf->room == BUF_BULK_BYTES)
		pool_of_put(&worker->bulk_buffers, buf);
	else
		mem_free(buf);
}

void
worker_defer(struct worker *worker, struct deferred *deferred)
{
	list_push_back(&worker->deferred, &deferred->node);
}

/* One pass: what is deferred meanwhile waits for the next, so that a loop of
 * deferrals cannot keep the sockets from being looked at. */
static void
run_deferred(struct worker *worker)
{
	struct list now, *node;

	list_init(&now);
	while ((node = list_first(&worker->deferred)) != NULL) {
		list_remove(node);
		list_push_back(&now, node);
	}
	while ((node = list_first(&now)) != NULL) {
		struct deferred *deferred =
		    LIST_ENTRY(node, struct deferred, node);

		list_remove(node);
		deferred->release(worker, deferred);
	}
}

/* ---- the worker ---- */

static struct event_base *
new_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base = NULL;

	/* Bases are private to their thread, and the environment must not
	 * choose the method. */
	if (config != NULL) {
		event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
		event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV);
		base = event_base_new_with_config(config);
		event_config_free(config);
	}
	return base;
}

static void
seed(struct worker *worker)
{
	if (getrandom(worker->random, sizeof(worker->random), 0) !=
	    sizeof(worker->random))
		worker->random[0] = (uint64_t)clock_now_us();
	/* The generator stands still on zero. */
	worker->random[1] |= 1;
}

struct worker *
worker_new(unsigned index, unsigned n_workers)
{
	struct worker *worker = mem_alloc(sizeof(*worker));
	struct timeval tick = { 0, WORKER_TICK_MS * 1000 };

	worker->index = index;
	worker->n_workers = n_workers;
	list_init(&worker->pools);
	pool_of_init(worker, &worker->buffers,
	    sizeof(struct buf) + BUF_BYTES + BUF_PADDING);
	pool_of_init(worker, &worker->bulk_buffers,
	    sizeof(struct buf) + BUF_BULK_BYTES + BUF_PADDING);
	pool_of_init(worker, &worker->requests, 0); /* request.c knows */
	list_init(&worker->classes);
	list_init(&worker->deferred);
	list_init(&worker->on_tick);
	pthread_mutex_init(&worker->mail_lock, NULL);
	seed(worker);
	worker->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	worker->base = new_base();
	if (worker->wake_fd == -1 || worker->base == NULL)
		goto fail;
	event_assign(
	    &worker->tick, worker->base, -1, EV_PERSIST, on_tick, worker);
	event_assign(&worker->wake, worker->base, worker->wake_fd,
	    EV_READ | EV_PERSIST, on_wake, worker);
	if (event_add(&worker->tick, &tick) == -1 ||
	    event_add(&worker->wake, NULL) == -1)
		goto fail;
	worker->tick_ms = clock_now_ms();
	renew_date(worker);
	return worker;
fail:
	log_errno("worker %u: no event base", index);
	worker_free(worker);
	return NULL;
}

void
worker_run(struct worker *worker)
{
	atomic_store_explicit(
	    &worker->running, pthread_self(), memory_order_relaxed);
	while (!atomic_load_explicit(&worker->stopping, memory_order_relaxed)) {
		int flags = EVLOOP_ONCE;

		if (!list_is_empty(&worker->deferred))
			run_deferred(worker);
		/* What we posted to ourselves needs no wake-up. Mail of others
		 * may be with it: they did not find an empty box. */
		if (worker->has_own_mail) {
			worker->has_own_mail = false;
			deliver_mail(worker);
		}
		if (worker->has_own_mail || !list_is_empty(&worker->deferred))
			flags |= EVLOOP_NONBLOCK;
		worker->round++;
		event_base_loop(worker->base, flags);
	}
	atomic_store_explicit(&worker->running, 0, memory_order_relaxed);
}

void
worker_stop(struct worker *worker)
{
	atomic_store_explicit(&worker->stopping, true, memory_order_relaxed);
	wake(worker);
}

void
worker_finish(struct worker *worker)
{
	while (
	    worker->mail_first != NULL || !list_is_empty(&worker->deferred)) {
		deliver_mail(worker);
		run_deferred(worker);
	}
}

void
worker_free(struct worker *worker)
{
	struct list *node, *after;

	if (worker == NULL)
		return;
	worker_finish(worker);
	LIST_FOREACH_SAFE(node, after, &worker->classes)
	mem_free(LIST_ENTRY(node, struct timer_class, node));
	if (worker->base != NULL) {
		if (event_initialized(&worker->tick))
			event_del(&worker->tick);
		if (event_initialized(&worker->wake))
			event_del(&worker->wake);
		event_base_free(worker->base);
	}
	fd_close(&worker->wake_fd);
	pool_of_end(&worker->buffers);
	pool_of_end(&worker->bulk_buffers);
	pool_of_end(&worker->requests);
	pthread_mutex_destroy(&worker->mail_lock);
	mem_free(worker);
}
