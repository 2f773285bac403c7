/*
 * The proxy process: from the channel it was started with to its end.
 * Makes the workers, becomes the configured user before any of them runs, and
 * watches the drain. Configurations are proxy_config.c's, messages
 * proxy_channel.c's.
 */
#include "proxy/proxy.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "proxy/core/access_log.h"
#include "proxy/core/tls_mem.h"
#include "proxy/core/tls_worker.h"
#include "proxy/front/address_count.h"
#include "proxy/front/front.h"
#include "proxy/handler/gateway.h"
#include "proxy/proxy_state.h"
#include "proxy/upstream/pool.h"
#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "src/base/log_thread.h"
#include "src/base/mem.h"
#include "src/base/priv.h"

/* After the deadline: how long connections may take to be closed. */
#define ABORT_MS 2000

/* ---- workers ---- */

static void *
run(void *arg)
{
	worker_run(arg);
	return NULL;
}

static void
flush_logs(struct worker *worker, void *arg)
{
	struct snapshot *snapshot = worker->snapshot;

	for (size_t i = 0; snapshot != NULL && i < snapshot->n_logs; i++)
		access_log_flush(snapshot->logs[i], worker);
}

static int
become_user(const struct conf *conf, struct conf_errors *errors)
{
	struct priv priv;
	const char *what = "";

	if (conf->user == NULL)
		return 0;
	if (priv_lookup(conf->user, conf->group, &priv, &what) == -1)
		return conf_errors_add(
		    errors, NULL, "user", "there is no %s", what);
	if (priv_become(&priv, &what) == -1)
		return conf_errors_add_errno(errors, NULL, "user",
		    "cannot become %s: %s", conf->user, what);
	return 0;
}

static int
make_worker(struct proxy *proxy, unsigned index)
{
	struct worker *worker = worker_new(index, proxy->n_workers);
	struct worker_tick *tick;

	if (worker == NULL)
		return -1;
	proxy->workers[index] = worker;
	worker->all = proxy->workers;
	worker->load = proxy->load;
	tls_worker_new(worker);
	tick = mem_alloc(sizeof(*tick));
	tick->run = flush_logs;
	worker_on_tick(worker, tick);
	proxy->ticks[index] = tick;
	worker->slots[WORKER_FRONT] = front_new(worker, proxy->addresses);
	return 0;
}

int
proxy_start(
    struct proxy *proxy, const struct conf *conf, struct conf_errors *errors)
{
	unsigned n = conf->workers;
	enum log_level level;

	if (become_user(conf, errors) == -1)
		return -1;
	if (log_level_parse(conf->log_level, &level) == 0)
		log_init("proxy", level, STDERR_FILENO);
	if (conf->error_log != NULL)
		log_thread_begin();
	proxy->n_workers = n;
	proxy->workers = mem_alloc_array(n, sizeof(struct worker *));
	proxy->ticks = mem_alloc_array(n, sizeof(struct worker_tick *));
	proxy->load = mem_alloc_array(n, sizeof(struct worker_load));
	proxy->addresses = address_count_new();
	for (unsigned i = 0; i < n; i++)
		if (make_worker(proxy, i) == -1)
			return conf_errors_add(errors, NULL, "workers",
			    "worker %u could not be made", i);
	proxy->registry =
	    registry_new(proxy->workers, n, &proxy_tell_registry_events, proxy);
	for (unsigned i = 0; i < n; i++)
		proxy->workers[i]->slots[WORKER_POOL] =
		    pool_new(proxy->workers[i], proxy->registry);
	for (unsigned i = 0; i < n; i++) {
		int error = pthread_create(
		    &proxy->workers[i]->thread, NULL, run, proxy->workers[i]);

		if (error != 0) {
			errno = error;
			return conf_errors_add_errno(errors, NULL, "workers",
			    "thread %u could not be started", i);
		}
		proxy->n_running++;
	}
	proxy_config_tell_tickets(proxy);
	proxy_channel_replay(proxy);
	return 0;
}

/* ---- the drain ---- */

/* One order to all workers; the last to have carried it out says so. */
struct order {
	struct proxy *proxy;
	void (*carry_out)(struct worker *worker);
	void (*done)(struct proxy *proxy); /* main thread, or NULL */
	_Atomic unsigned left;
	struct mail done_mail;
	struct mail mails[]; /* per worker */
};

static void
order_done(struct worker *worker, struct mail *mail)
{
	struct order *order = CONTAINER_OF(mail, struct order, done_mail);

	if (order->done != NULL)
		order->done(order->proxy);
	mem_free(order);
}

static void
order_deliver(struct worker *worker, struct mail *mail)
{
	struct order *order =
	    CONTAINER_OF(mail - worker->index, struct order, mails[0]);

	order->carry_out(worker);
	if (atomic_fetch_sub(&order->left, 1) == 1)
		worker_post(order->proxy->main, &order->done_mail);
}

static void
order_all(struct proxy *proxy, void (*carry_out)(struct worker *),
    void (*done)(struct proxy *))
{
	struct order *order =
	    mem_alloc(sizeof(*order) + proxy->n_workers * sizeof(struct mail));

	order->proxy = proxy;
	order->carry_out = carry_out;
	order->done = done;
	atomic_init(&order->left, proxy->n_workers);
	order->done_mail.deliver = order_done;
	for (unsigned i = 0; i < proxy->n_workers; i++) {
		order->mails[i].deliver = order_deliver;
		worker_post(proxy->workers[i], &order->mails[i]);
	}
}

static void
drain_worker(struct worker *worker)
{
	worker->draining = true;
	worker->keeps_idle = false;
	front_drain(worker->slots[WORKER_FRONT]);
}

static void
hand_on_worker(struct worker *worker)
{
	worker->draining = worker->keeps_idle = true;
	front_drain(worker->slots[WORKER_FRONT]);
}

static void
end_streams_of_worker(struct worker *worker)
{
	pool_end_streams(worker->slots[WORKER_POOL]);
}

static void
abort_worker(struct worker *worker)
{
	front_abort_all(worker->slots[WORKER_FRONT]);
}

static void
listeners_closed(struct proxy *proxy)
{
	proxy_config_close_sets(proxy, UINT32_MAX);
	proxy->has_closed = true;
}

static void
end_idle(struct proxy *proxy)
{
	proxy->keeps_idle = false;
	order_all(proxy, drain_worker, NULL);
}

void
proxy_drain(
    struct proxy *proxy, int64_t deadline_ms, bool keeps_idle, int exit_code)
{
	if (proxy->is_draining) {
		/* The second word can only make it shorter. */
		if (clock_now_ms() + deadline_ms < proxy->deadline_ms)
			proxy->deadline_ms = clock_now_ms() + deadline_ms;
		if (!keeps_idle)
			proxy->streams_until_ms = 0;
		if (proxy->keeps_idle && !keeps_idle)
			end_idle(proxy);
		return;
	}
	proxy->is_draining = true;
	proxy->keeps_idle = keeps_idle;
	proxy->deadline_ms = clock_now_ms() + deadline_ms;
	proxy->exit_code = exit_code;
	proxy_config_abort(proxy);
	if (proxy->n_workers == 0) {
		worker_stop(proxy->main);
		return;
	}
	log_info("draining, at most %lld ms", (long long)deadline_ms);
	/* Another one serves: who replaces us is not why they should end. */
	if (keeps_idle && proxy->current != NULL)
		proxy->streams_until_ms =
		    clock_now_ms() +
		    conf_stream_grace_max_ms(proxy->current->conf);
	registry_drain(proxy->registry);
	order_all(proxy, keeps_idle ? hand_on_worker : drain_worker,
	    listeners_closed);
}

/* Is anything left to wait for? Four times a second while draining. */
static void
look_at_drain(struct worker *main, void *arg)
{
	struct proxy *proxy = arg;
	unsigned open = 0;

	if (!proxy->is_draining)
		return;
	for (unsigned i = 0; i < proxy->n_workers; i++)
		open += atomic_load_explicit(
		    &proxy->load[i].connections, memory_order_relaxed);
	if (open == 0 && proxy->has_closed && proxy->n_commits == 0) {
		worker_stop(main);
		return;
	}
	if (main->tick_ms < proxy->deadline_ms)
		return;
	if (proxy->keeps_idle) {
		end_idle(proxy);
	} else if (main->tick_ms < proxy->streams_until_ms &&
		   registry_has_streams(proxy->registry)) {
		return;
	} else if (!proxy->ended_streams) {
		proxy->ended_streams = true;
		order_all(proxy, end_streams_of_worker, NULL);
	} else if (!proxy->was_aborted) {
		log_warn("drain deadline: cutting %u connections", open);
		proxy->was_aborted = true;
		proxy->deadline_ms = main->tick_ms;
		order_all(proxy, abort_worker, NULL);
	} else if (main->tick_ms >= proxy->deadline_ms + ABORT_MS) {
		worker_stop(main);
	}
}

/* ---- begin and end ---- */

static void
stop_workers(struct proxy *proxy)
{
	for (unsigned i = 0; i < proxy->n_running; i++)
		worker_stop(proxy->workers[i]);
	for (unsigned i = 0; i < proxy->n_running; i++)
		pthread_join(proxy->workers[i]->thread, NULL);
	proxy->is_ending = true;
	proxy_channel_last_words(proxy);
	proxy->is_mute = true;
}

static void
free_workers(struct proxy *proxy)
{
	for (unsigned i = 0; i < proxy->n_workers; i++) {
		struct worker *worker = proxy->workers[i];
		struct front *front =
		    worker == NULL ? NULL : worker->slots[WORKER_FRONT];

		front_free(&front);
	}
	for (unsigned i = 0; i < proxy->n_workers; i++)
		if (proxy->workers[i] != NULL)
			snapshot_install(proxy->workers[i], NULL);
	worker_finish(proxy->main);
	for (unsigned i = 0; i < proxy->n_workers; i++) {
		struct worker *worker = proxy->workers[i];
		struct pool *pool =
		    worker == NULL ? NULL : worker->slots[WORKER_POOL];

		if (worker != NULL)
			gateway_free(worker);
		pool_free(&pool);
	}
	for (unsigned i = 0; i < proxy->n_workers; i++) {
		if (proxy->workers[i] != NULL)
			tls_worker_free(proxy->workers[i]);
		worker_free(proxy->workers[i]);
		mem_free(proxy->ticks[i]);
	}
}

static void
end(struct proxy *proxy)
{
	stop_workers(proxy);
	proxy_config_abort(proxy);
	free_workers(proxy);
	worker_free(proxy->main);
	if (proxy->registry != NULL)
		registry_free(&proxy->registry);
	proxy_config_close_sets(proxy, UINT32_MAX);
	proxy_channel_end(proxy);
	mem_free(proxy->workers);
	mem_free(proxy->ticks);
	mem_free(proxy->load);
	explicit_bzero(&proxy->tickets, sizeof(proxy->tickets));
	address_count_free(&proxy->addresses);
	mem_free(proxy);
}

int
proxy_run(int channel_fd)
{
	struct proxy *proxy = mem_alloc(sizeof(*proxy));
	size_t descriptors;
	int exit_code;

	tls_mem_init();
	log_init("proxy", LOG_LEVEL_INFO, STDERR_FILENO);
	signal(SIGPIPE, SIG_IGN);
	if (fd_raise_limit(NULL, &descriptors) == -1)
		log_errno("descriptor limit");
	list_init(&proxy->sets);
	list_init(&proxy->early);
	list_init(&proxy->pending.sets);
	proxy->main = worker_new(0, 0);
	if (proxy->main == NULL || proxy_channel_start(proxy, channel_fd) == -1)
		return 1; /* the process ends: nothing to give back */
	proxy->tick.run = look_at_drain;
	proxy->tick.arg = proxy;
	worker_on_tick(proxy->main, &proxy->tick);
	worker_run(proxy->main);
	exit_code = proxy->exit_code;
	end(proxy);
	log_thread_end();
	return exit_code;
}
