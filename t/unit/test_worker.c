/*
 * A worker's loop without sockets: timers, mail, deferred frees and buffers.
 */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/core/worker.h"
#include "src/base/clock.h"
#include "t/unit/loop.h"
#include "t/unit/run.h"

/* ---- timers ---- */

struct timed {
	struct timer timer;
	int64_t armed_ms, fired_ms;
	int *order, number;
};

static void
note_fired(struct worker *worker, struct timer *timer)
{
	struct timed *timed = CONTAINER_OF(timer, struct timed, timer);

	ck_assert(!list_is_linked(&timer->node));
	timed->fired_ms = clock_now_ms();
	timed->number = (*timed->order)++;
}

START_TEST(timers_fire_in_their_time)
{
	static const int lengths[] = { 100, 300, 0 };
	struct worker *worker = worker_new(0, 1);
	struct timed timed[3];
	int order = 0;

	memset(timed, 0, sizeof(timed));
	for (size_t i = 0; i < ARRAY_LEN(timed); i++) {
		timed[i].order = &order;
		timed[i].armed_ms = clock_now_ms();
		timer_arm(worker,
		    timer_class_of(worker, lengths[i], note_fired),
		    &timed[i].timer);
	}
	loop_run_for(worker, 900);
	ck_assert_int_eq(order, 3);
	for (size_t i = 0; i < ARRAY_LEN(timed); i++) {
		int64_t took_ms = timed[i].fired_ms - timed[i].armed_ms;

		ck_assert_msg(
		    took_ms >= lengths[i] &&
			took_ms < lengths[i] + 2 * WORKER_TICK_MS + 200,
		    "%d ms took %lld", lengths[i], (long long)took_ms);
	}
	worker_free(worker);
}
END_TEST

START_TEST(timers_are_pushed_and_disarmed)
{
	struct worker *worker = worker_new(0, 1);
	struct timer_class *cls = timer_class_of(worker, 100, note_fired);
	struct timer_class *other = timer_class_of(worker, 600, note_fired);
	struct timed timed[2];
	int order = 0;

	memset(timed, 0, sizeof(timed));
	for (size_t i = 0; i < 2; i++) {
		timed[i].order = &order;
		timer_arm(worker, cls, &timed[i].timer);
	}
	ck_assert_ptr_eq(cls, timer_class_of(worker, 100, note_fired));
	timer_disarm(&timed[0].timer);
	timer_disarm(&timed[0].timer);
	timer_arm(worker, other, &timed[1].timer); /* leaves the first list */
	loop_run_for(worker, 300);
	ck_assert_int_eq(order, 0);
	loop_run_for(worker, 700);
	ck_assert_int_eq(order, 1);
	ck_assert(timed[1].fired_ms != 0);
	worker_free(worker);
}
END_TEST

/* ---- mail and deferred frees ---- */

#define LETTERS 2000

struct letter {
	struct mail mail;
	int number;
	int *next;
};

static void
deliver(struct worker *worker, struct mail *mail)
{
	struct letter *letter = CONTAINER_OF(mail, struct letter, mail);

	ck_assert_int_eq(letter->number, (*letter->next)++);
	if (*letter->next == LETTERS)
		worker_stop(worker);
	free(letter);
}

struct sender {
	struct worker *to;
	int next;
};

static void *
send_letters(void *arg)
{
	struct sender *sender = arg;

	for (int i = 0; i < LETTERS; i++) {
		struct letter *letter = malloc(sizeof(*letter));

		letter->mail.deliver = deliver;
		letter->number = i;
		letter->next = &sender->next;
		worker_post(sender->to, &letter->mail);
	}
	return NULL;
}

START_TEST(mail_comes_in_order)
{
	struct worker *worker = worker_new(0, 1);
	struct sender sender = { worker, 0 };
	pthread_t thread;

	ck_assert_int_eq(
	    pthread_create(&thread, NULL, send_letters, &sender), 0);
	loop_run(worker);
	pthread_join(thread, NULL);
	ck_assert_int_eq(sender.next, LETTERS);
	/* What nobody was left to read is delivered at the end. */
	sender.next = 0;
	send_letters(&sender);
	worker_free(worker);
	ck_assert_int_eq(sender.next, LETTERS);
}
END_TEST

struct later {
	struct deferred deferred;
	int *count;
	int again;
};

static void
release_later(struct worker *worker, struct deferred *deferred)
{
	struct later *later = CONTAINER_OF(deferred, struct later, deferred);

	++*later->count;
	if (later->again-- > 0)
		worker_defer(worker, deferred);
	else
		worker_stop(worker);
}

START_TEST(deferred_may_defer_again)
{
	struct worker *worker = worker_new(0, 1);
	int count = 0;
	struct later later = {
		.deferred.release = release_later, .count = &count, .again = 3
	};

	worker_defer(worker, &later.deferred);
	loop_run(worker);
	ck_assert_int_eq(count, 4);
	worker_free(worker);
}
END_TEST

START_TEST(buffers_are_used_again)
{
	struct worker *worker = worker_new(0, 1);
	struct buf *buf = buf_get(worker), *large;

	ck_assert_uint_eq(buf->room, BUF_BYTES);
	memset(buf->bytes, 'x', BUF_BYTES + BUF_PADDING);
	buf->start = buf->end = 7;
	buf_put(worker, &buf);
	ck_assert_ptr_null(buf);
	buf = buf_get(worker);
	ck_assert_uint_eq(buf->start + buf->end, 0);
	ck_assert_uint_eq(worker->buffers.n_free, 0);
	large = buf_get_large(worker, 100000);
	memset(large->bytes, 'x', 100000 + BUF_PADDING);
	buf_put(worker, &large);
	buf_put(worker, &large); /* NULL is fine */
	buf_put(worker, &buf);
	ck_assert_uint_eq(worker->buffers.n_used, 0);
	worker_free(worker);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { timers_fire_in_their_time,
		timers_are_pushed_and_disarmed, mail_comes_in_order,
		deferred_may_defer_again, buffers_are_used_again };
	Suite *suite = suite_create("worker");
	TCase *all = tcase_create("loop");

	tcase_set_timeout(all, 30);
	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		tcase_add_test(all, tests[i]);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
