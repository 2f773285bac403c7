/*
 * Peers, queue and pool: caps that hold over threads, fairness, nobody
 * forgotten. Real workers, and a server that counts its connections.
 */
#include "proxy/core/worker.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/upstream/peer.h"
#include "proxy/upstream/pool.h"
#include "proxy/upstream/queue.h"
#include "proxy/upstream/registry.h"
#include "proxy/upstream/upstream.h"
#include "src/base/mem.h"
#include "t/unit/run.h"

/* ---- the queue alone ---- */

struct item {
	struct queue_node node;
	int name;
};

static int
pop_name(struct queue *queue)
{
	struct queue_node *node = queue_pop(queue);

	return node == NULL ? -1 : CONTAINER_OF(node, struct item, node)->name;
}

START_TEST(queue_is_fair_between_clients)
{
	struct queue queue;
	struct queue_node *node = NULL;
	struct item items[8];
	/* Clients 7, 7, 7, 9, 9, 71: 71 shares a bucket with 7. */
	static const uint64_t clients[] = { 7, 7, 7, 9, 9, 71 };
	static const int order[] = { 0, 3, 5, 1, 4, 2 };

	queue_init(&queue);
	for (int i = 0; i < 6; i++) {
		items[i].name = i;
		queue_push(&queue, &items[i].node, clients[i]);
	}
	/* Of each client the oldest. */
	for (int i = 0; i < 4; i++) {
		node = queue_next_client(&queue, node);
		if (i < 3)
			ck_assert_int_eq(
			    CONTAINER_OF(node, struct item, node)->name,
			    order[i]);
	}
	ck_assert_ptr_null(node);
	for (int i = 0; i < 6; i++) {
		ck_assert_uint_eq(queue.count, 6 - (unsigned)i);
		ck_assert_int_eq(pop_name(&queue), order[i]);
	}
	ck_assert_int_eq(pop_name(&queue), -1);
	queue_free(&queue);
}
END_TEST

START_TEST(queue_forgets_who_leaves)
{
	struct queue queue;
	struct item items[4];

	queue_init(&queue);
	for (int i = 0; i < 4; i++) {
		items[i].name = i;
		queue_push(&queue, &items[i].node, (uint64_t)(i / 2));
	}
	queue_remove(&queue, &items[0].node);
	queue_remove(&queue, &items[3].node);
	ck_assert_int_eq(pop_name(&queue), 1);
	ck_assert_int_eq(pop_name(&queue), 2);
	ck_assert_int_eq(pop_name(&queue), -1);
	queue_free(&queue);
}
END_TEST

/* ---- a proxy without requests ---- */

#define WORKERS_MAX 4

struct bench {
	unsigned n;
	struct worker *workers[WORKERS_MAX];
	struct upstream_registry *registry;
	_Atomic unsigned drained, wanted;
	/* The server. */
	char path[64];
	int listener, stop[2];
	pthread_t server;
	_Atomic int open, most_open, accepted;
};

static void
on_drained(void *arg, uint64_t instance)
{
	atomic_fetch_add(&((struct bench *)arg)->drained, 1);
}

static void
on_wanted(void *arg, const char *app)
{
	atomic_fetch_add(&((struct bench *)arg)->wanted, 1);
}

static const struct registry_events bench_events = {
	.on_drained = on_drained,
	.on_wanted = on_wanted,
};

static void *
run_worker(void *arg)
{
	worker_run(arg);
	return NULL;
}

static void
note_most(struct bench *bench, int open)
{
	int most = atomic_load(&bench->most_open);

	while (open > most &&
	       !atomic_compare_exchange_weak(&bench->most_open, &most, open))
		;
}

/* Accepts, and closes when the other side has shut down; counts what is open
 * in the only place that sees all workers. */
static void *
serve(void *arg)
{
	struct bench *bench = arg;
	struct pollfd fds[256] = { { bench->listener, POLLIN, 0 },
		{ bench->stop[0], POLLIN, 0 } };
	nfds_t n = 2;

	while (poll(fds, n, -1) >= 0 && fds[1].revents == 0) {
		for (nfds_t i = n; i-- > 2;) {
			char byte[16];

			if (fds[i].revents == 0 ||
			    read(fds[i].fd, byte, sizeof(byte)) > 0)
				continue;
			atomic_fetch_sub(&bench->open, 1);
			close(fds[i].fd);
			fds[i] = fds[--n];
		}
		if (fds[0].revents == 0)
			continue;
		fds[n] = (struct pollfd){ accept(bench->listener, NULL, NULL),
			POLLIN, 0 };
		ck_assert_int_ne(fds[n].fd, -1);
		atomic_fetch_add(&bench->accepted, 1);
		note_most(bench, atomic_fetch_add(&bench->open, 1) + 1);
		if (++n == 256)
			abort();
	}
	while (n-- > 2)
		close(fds[n].fd);
	return NULL;
}

static void
start_server(struct bench *bench)
{
	struct addr addr;

	snprintf(bench->path, sizeof(bench->path), "/tmp/test-upstream-%d",
	    (int)getpid());
	unlink(bench->path);
	ck_assert_int_eq(addr_unix(bench->path, &addr), 0);
	bench->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(bench->listener, &addr.u.sa, addr.len), 0);
	ck_assert_int_eq(listen(bench->listener, 64), 0);
	ck_assert_int_eq(pipe2(bench->stop, O_CLOEXEC), 0);
	pthread_create(&bench->server, NULL, serve, bench);
}

static struct bench *
bench_new(unsigned n)
{
	struct bench *bench = mem_alloc(sizeof(*bench));
	static struct worker_load load[WORKERS_MAX];

	bench->n = n;
	start_server(bench);
	for (unsigned i = 0; i < n; i++) {
		bench->workers[i] = worker_new(i, n);
		bench->workers[i]->all = bench->workers;
		bench->workers[i]->load = load;
	}
	bench->registry = registry_new(bench->workers, n, &bench_events, bench);
	for (unsigned i = 0; i < n; i++)
		ck_assert_ptr_nonnull(
		    pool_new(bench->workers[i], bench->registry));
	for (unsigned i = 0; i < n; i++)
		pthread_create(&bench->workers[i]->thread, NULL, run_worker,
		    bench->workers[i]);
	return bench;
}

static void
bench_free(struct bench *bench)
{
	for (unsigned i = 0; i < bench->n; i++)
		worker_stop(bench->workers[i]);
	for (unsigned i = 0; i < bench->n; i++)
		pthread_join(bench->workers[i]->thread, NULL);
	for (unsigned i = 0; i < bench->n; i++) {
		struct pool *pool = bench->workers[i]->slots[WORKER_POOL];

		pool_free(&pool);
	}
	for (unsigned i = 0; i < bench->n; i++)
		worker_free(bench->workers[i]);
	registry_free(&bench->registry);
	ck_assert_int_eq(write(bench->stop[1], "x", 1), 1);
	pthread_join(bench->server, NULL);
	close(bench->listener);
	close(bench->stop[0]);
	close(bench->stop[1]);
	unlink(bench->path);
	mem_free(bench);
}

static void
announce(struct bench *bench, uint64_t id, uint32_t cap, bool counts_idle)
{
	struct registry_instance instance = { .id = id,
		.app = "app",
		.cap = cap,
		.cap_counts_idle = counts_idle };

	ck_assert_int_eq(addr_unix(bench->path, &instance.addr), 0);
	ck_assert_int_eq(registry_announce(bench->registry, &instance), 0);
}

/* ---- one who asks, uses and gives back, again and again ---- */

enum give { GIVE_RELEASE, GIVE_CLOSE, GIVE_ABANDON };

struct asker {
	struct mail mail;
	struct bench *bench;
	struct worker *worker;
	struct upstream *upstream;
	struct addr client;
	unsigned left; /* rounds */
	unsigned seed;
	bool may_cancel;
	int hold; /* loop rounds that it is still held */
	struct uconn *uconn;
	struct pool_wait *wait;
	_Atomic unsigned *running;
	_Atomic unsigned *served;
	enum pool_failure failure;
};

static const struct pool_limits limits = { .queue_length = 1000,
	.queue_timeout_ms = 20000,
	.connect_timeout_ms = 5000,
	.idle_timeout_ms = 5000,
	.idle_max = 16 };

static void step(struct worker *worker, struct mail *mail);

static void
step_later(struct asker *asker)
{
	asker->mail.deliver = step;
	worker_post(asker->worker, &asker->mail);
}

static void
on_ready(void *arg, struct uconn *uconn, enum pool_failure failure)
{
	struct asker *asker = arg;

	asker->wait = NULL;
	asker->uconn = uconn;
	asker->failure = failure;
	asker->hold = rand_r(&asker->seed) % 4;
	step_later(asker);
}

static void
ask(struct asker *asker)
{
	struct pool *pool = asker->worker->slots[WORKER_POOL];
	struct pool_ask what = { .limits = &limits,
		.buffer_bytes = 65536,
		.client = &asker->client,
		.careful = rand_r(&asker->seed) % 2 == 0 };
	enum pool_failure failure;

	asker->uconn = pool_acquire(pool, asker->upstream, &what, on_ready,
	    asker, &asker->wait, &failure);
	asker->failure = failure;
	asker->hold = rand_r(&asker->seed) % 4;
	if (asker->uconn != NULL || failure != POOL_OK)
		step_later(asker);
	else if (asker->may_cancel && rand_r(&asker->seed) % 3 == 0)
		step_later(asker); /* and cancels, or is overtaken */
}

static void
give_back(struct asker *asker)
{
	struct pool *pool = asker->worker->slots[WORKER_POOL];

	atomic_fetch_add(asker->served, 1);
	switch (asker->may_cancel ? rand_r(&asker->seed) % 6 : 0) {
	case GIVE_CLOSE:
		pool_close(pool, &asker->uconn, false);
		break;
	case GIVE_ABANDON:
		pool_abandon(pool, &asker->uconn);
		break;
	default:
		pool_release(pool, &asker->uconn);
		break;
	}
}

static void
step(struct worker *worker, struct mail *mail)
{
	struct asker *asker = CONTAINER_OF(mail, struct asker, mail);

	if (asker->uconn != NULL && asker->hold-- > 0) {
		step_later(asker);
		return;
	}
	if (asker->uconn != NULL)
		give_back(asker);
	else if (asker->wait != NULL)
		pool_cancel(worker->slots[WORKER_POOL], &asker->wait);
	if (asker->left-- > 0)
		ask(asker);
	else
		atomic_fetch_sub(asker->running, 1);
}

static void
wait_for(_Atomic unsigned *running)
{
	for (int i = 0; atomic_load(running) > 0; i++) {
		ck_assert_msg(
		    i < 6000, "%u still wait after 60 s", atomic_load(running));
		usleep(10000);
	}
}

#define ASKERS 24

static unsigned
run_askers(struct bench *bench, unsigned rounds, bool may_cancel)
{
	static struct asker askers[ASKERS];
	static _Atomic unsigned running, served;
	struct upstream *upstream = registry_get_app(bench->registry, "app");

	atomic_store(&running, ASKERS);
	atomic_store(&served, 0);
	for (unsigned i = 0; i < ASKERS; i++) {
		askers[i] = (struct asker){ .bench = bench,
			.worker = bench->workers[i % bench->n],
			.upstream = upstream,
			.left = rounds,
			.seed = i + 1,
			.may_cancel = may_cancel,
			.running = &running,
			.served = &served };
		askers[i].client.len = sizeof(askers[i].client.u.in);
		askers[i].client.u.in.sin_family = AF_INET;
		askers[i].client.u.in.sin_addr.s_addr = htonl(i / 4);
		step_later(&askers[i]);
	}
	wait_for(&running);
	ck_assert_uint_eq(atomic_load(&upstream->n_waiting), 0);
	registry_put(bench->registry, &upstream);
	return atomic_load(&served);
}

static void
add_stats(void *arg, const struct registry_stats *stats)
{
	if (stats->instance == 0)
		*(struct registry_stats *)arg = *stats;
}

START_TEST(cap_holds_over_all_workers)
{
	struct bench *bench = bench_new(3);
	struct registry_stats stats;

	announce(bench, 1, 3, true);
	ck_assert_uint_eq(run_askers(bench, 200, false), ASKERS * 200);
	ck_assert_int_le(atomic_load(&bench->most_open), 3);
	ck_assert_int_ge(atomic_load(&bench->most_open), 2);
	/* Connections wander between workers; none is closed for another. */
	ck_assert_int_le(atomic_load(&bench->accepted), 3);
	registry_each(bench->registry, add_stats, &stats);
	ck_assert_uint_eq(stats.in_flight, 0);
	ck_assert_uint_le(stats.connections, 3);
	bench_free(bench);
}
END_TEST

START_TEST(cap_holds_when_many_leave)
{
	struct bench *bench = bench_new(4);

	announce(bench, 1, 2, true);
	ck_assert_uint_gt(run_askers(bench, 150, true), 0);
	ck_assert_int_le(atomic_load(&bench->most_open), 2);
	bench_free(bench);
}
END_TEST

START_TEST(cap_of_requests_lets_idle_ones_be)
{
	struct bench *bench = bench_new(2);

	announce(bench, 1, 2, false);
	ck_assert_uint_eq(run_askers(bench, 100, false), ASKERS * 100);
	/* Two requests at a time never need more than two a worker. */
	ck_assert_int_le(atomic_load(&bench->most_open), 4);
	bench_free(bench);
}
END_TEST

START_TEST(no_cap_no_queue)
{
	struct bench *bench = bench_new(2);

	announce(bench, 1, REGISTRY_NO_CAP, false);
	announce(bench, 2, REGISTRY_NO_CAP, false);
	ck_assert_uint_eq(run_askers(bench, 100, false), ASKERS * 100);
	ck_assert_int_le(atomic_load(&bench->accepted), 2 * ASKERS);
	bench_free(bench);
}
END_TEST

/* An instance leaves and another comes, again and again, under load. */
static void *
restart_often(void *arg)
{
	struct bench *bench = arg;

	for (uint64_t id = 2; id < 40; id++) {
		announce(bench, id, 2, true);
		ck_assert_int_eq(
		    registry_withdraw(bench->registry, id - 1, false), 0);
		usleep(3000);
	}
	return NULL;
}

START_TEST(restarts_lose_nobody)
{
	struct bench *bench = bench_new(3);
	pthread_t thread;

	announce(bench, 1, 2, true);
	pthread_create(&thread, NULL, restart_often, bench);
	ck_assert_uint_eq(run_askers(bench, 200, false), ASKERS * 200);
	pthread_join(thread, NULL);
	ck_assert_int_eq(registry_withdraw(bench->registry, 39, false), 0);
	for (int i = 0; atomic_load(&bench->drained) < 39 && i < 500; i++)
		usleep(10000);
	ck_assert_uint_eq(atomic_load(&bench->drained), 39);
	ck_assert_int_eq(registry_withdraw(bench->registry, 777, true), -1);
	bench_free(bench);
}
END_TEST

/* ---- states of an app ---- */

struct one {
	struct asker asker;
	_Atomic unsigned running, served;
};

static void
begin_one(struct bench *bench, struct one *one, struct upstream *upstream)
{
	*one = (struct one){ .asker = { .bench = bench,
				 .worker = bench->workers[0],
				 .upstream = upstream,
				 .left = 1,
				 .seed = 1 } };
	one->asker.client.len = sizeof(one->asker.client.u.in);
	one->asker.client.u.in.sin_family = AF_INET;
	one->asker.running = &one->running;
	one->asker.served = &one->served;
	atomic_store(&one->running, 1);
	step_later(&one->asker);
}

static void
wait_until_queued(struct upstream *upstream)
{
	for (int i = 0; !upstream_has_waiters(upstream); i++) {
		ck_assert_int_lt(i, 1000);
		usleep(1000);
	}
}

static const struct {
	enum upstream_app_state state;
	uint32_t retry_ms;
	enum pool_failure failure; /* POOL_OK: it waits */
} states[] = {
	{ UPSTREAM_APP_STOPPED, 0, POOL_STOPPED },
	{ UPSTREAM_APP_BACKOFF, 60000, POOL_BACKOFF },
	{ UPSTREAM_APP_FAILED, 60000, POOL_BACKOFF },
	{ UPSTREAM_APP_BACKOFF, 1000, POOL_OK },
	{ UPSTREAM_APP_STARTING, 0, POOL_OK },
	{ UPSTREAM_APP_UNKNOWN, 0, POOL_OK },
};

START_TEST(states_decide_who_waits)
{
	struct bench *bench = bench_new(1);
	struct upstream *upstream = registry_get_app(bench->registry, "app");
	struct one one;

	registry_app_state(bench->registry, "app", states[_i].state,
	    states[_i].retry_ms, "a reason");
	begin_one(bench, &one, upstream);
	if (states[_i].failure == POOL_OK) {
		wait_until_queued(upstream);
		/* Told with no lock held, so a moment later. */
		for (int i = 0; atomic_load(&bench->wanted) == 0; i++) {
			ck_assert_int_lt(i, 1000);
			usleep(1000);
		}
		ck_assert_uint_eq(atomic_load(&bench->wanted), 1);
		announce(bench, 1, REGISTRY_NO_CAP, false);
	}
	wait_for(&one.running);
	ck_assert_int_eq(one.asker.failure, states[_i].failure);
	ck_assert_uint_eq(
	    atomic_load(&one.served), states[_i].failure == POOL_OK);
	registry_put(bench->registry, &upstream);
	bench_free(bench);
}
END_TEST

START_TEST(a_stop_ends_waiting)
{
	struct bench *bench = bench_new(1);
	struct upstream *upstream = registry_get_app(bench->registry, "app");
	char text[UPSTREAM_SAY_MAX];
	struct one one;

	begin_one(bench, &one, upstream);
	wait_until_queued(upstream);
	registry_app_state(
	    bench->registry, "app", UPSTREAM_APP_STOPPED, 0, NULL);
	wait_for(&one.running);
	ck_assert_int_eq(one.asker.failure, POOL_STOPPED);
	upstream_say(upstream, POOL_STOPPED, text);
	ck_assert_str_eq(text, "The application app is stopped.");
	registry_put(bench->registry, &upstream);
	bench_free(bench);
}
END_TEST

/* ---- choosing ---- */

START_TEST(the_least_busy_is_chosen)
{
	struct bench *bench = bench_new(1);
	struct registry_peer told[3] = { { .weight = 1 }, { .weight = 2 },
		{ .weight = 1 } };
	struct upstream *upstream;
	const struct peer_set *set;
	unsigned picked[3] = { 0 };

	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(addr_unix(bench->path, &told[i].addr), 0);
	upstream = registry_get_peers(
	    bench->registry, "u", UPSTREAM_HTTP1, NULL, told, 3);
	set = upstream->set;
	/* Idle peers take turns by weight. */
	for (unsigned turn = 0; turn < 40; turn++)
		for (unsigned i = 0; i < 3; i++)
			picked[i] +=
			    peer_set_pick(set, 0, turn, 1000) == set->peers[i];
	ck_assert_uint_eq(picked[0], 10);
	ck_assert_uint_eq(picked[1], 20);
	ck_assert_uint_eq(picked[2], 10);
	atomic_store(&set->peers[0]->in_flight, 2);
	atomic_store(&set->peers[1]->in_flight, 3);
	atomic_store(&set->peers[2]->in_flight, 2);
	ck_assert_ptr_eq(peer_set_pick(set, 0, 0, 1000), set->peers[1]);
	/* A peer that failed is avoided, unless all have. */
	peer_failed(set->peers[1], 1000);
	ck_assert_ptr_ne(peer_set_pick(set, 0, 0, 1100), set->peers[1]);
	ck_assert_ptr_eq(peer_set_pick(set, 0, 0, 9000), set->peers[1]);
	peer_failed(set->peers[0], 1000);
	peer_failed(set->peers[2], 1000);
	ck_assert_ptr_eq(peer_set_pick(set, 0, 0, 1100), set->peers[1]);
	for (unsigned i = 0; i < 3; i++)
		atomic_store(&set->peers[i]->in_flight, 0);
	registry_put(bench->registry, &upstream);
	bench_free(bench);
}
END_TEST

static Suite *
suite(void)
{
	Suite *all = suite_create("upstream");
	TCase *tcase = tcase_create("upstream");

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, queue_is_fair_between_clients);
	tcase_add_test(tcase, queue_forgets_who_leaves);
	tcase_add_test(tcase, cap_holds_over_all_workers);
	tcase_add_test(tcase, cap_holds_when_many_leave);
	tcase_add_test(tcase, cap_of_requests_lets_idle_ones_be);
	tcase_add_test(tcase, no_cap_no_queue);
	tcase_add_test(tcase, restarts_lose_nobody);
	tcase_add_loop_test(
	    tcase, states_decide_who_waits, 0, (int)ARRAY_LEN(states));
	tcase_add_test(tcase, a_stop_ends_waiting);
	tcase_add_test(tcase, the_least_busy_is_chosen);
	suite_add_tcase(all, tcase);
	return all;
}

int
main(void)
{
	return run_suite(suite());
}
