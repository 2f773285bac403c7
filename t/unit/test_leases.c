/*
 * Slots of capped instances between two proxies: every order in which messages
 * may cross, the sum never above the cap, no request that waits is forgotten.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/compiler.h"
#include "src/base/mem.h"
#include "supervisor/leases.h"
#include "t/unit/run.h"

#define CAP 3
#define INSTANCE 7

/* What the proxies were told: their caps as they see them. */
struct seen {
	uint32_t cap[2];      /* as announced, plus lent */
	uint32_t recalled[2]; /* asked back, not yet released */
	unsigned announced[2], withdrawn[2], hurried[2];
	unsigned drained, quiet, lost;
};

static void
see_announce(void *arg, unsigned side, const struct channel_announce *announce)
{
	struct seen *seen = arg;

	if (seen->announced[side]++ == 0)
		seen->cap[side] = announce->cap;
}

static void
see_change(void *arg, unsigned side, enum channel_type type, uint64_t instance,
    uint32_t count)
{
	struct seen *seen = arg;

	ck_assert_uint_eq(instance, INSTANCE);
	if (type == CHANNEL_LEND)
		seen->cap[side] += count;
	else if (type == CHANNEL_RECALL)
		seen->recalled[side] += count;
	else if (count == CHANNEL_WITHDRAW_LATE)
		seen->hurried[side]++;
	else
		seen->withdrawn[side]++;
}

static void
see_drained(void *arg, uint64_t instance)
{
	((struct seen *)arg)->drained++;
}

static void
see_quiet(void *arg, uint64_t instance)
{
	((struct seen *)arg)->quiet++;
}

static void
see_lost(void *arg, const struct lease *lease)
{
	((struct seen *)arg)->lost = lease->lost;
}

static const struct leases_ops ops = {
	.announce = see_announce,
	.tell = see_change,
	.drained = see_drained,
	.quiet = see_quiet,
	.lost = see_lost,
};

static struct seen seen;

static struct leases *
begin(uint32_t cap)
{
	struct leases *leases;
	struct channel_announce announce = {
		.instance = INSTANCE, .app = "app", .cap = cap
	};

	memset(&seen, 0, sizeof(seen));
	leases = leases_new(&ops, &seen);
	leases_join(leases, 0, true);
	leases_announce(leases, &announce);
	ck_assert_uint_eq(seen.cap[0], cap);
	return leases;
}

static void
release_some(struct leases *leases, unsigned side, uint32_t n)
{
	seen.cap[side] -= n;
	if (seen.recalled[side] >= n)
		seen.recalled[side] -= n;
	leases_released(leases, side, INSTANCE, n);
}

START_TEST(the_new_one_gets_what_the_old_gives_up)
{
	struct leases *leases = begin(CAP);

	leases_join(leases, 1, false);
	ck_assert_uint_eq(seen.cap[1], 0);
	leases_set_main(leases, 1);
	ck_assert_uint_eq(seen.cap[1], 0);
	release_some(leases, 0, 2);
	ck_assert_uint_eq(seen.cap[1], 2);
	release_some(leases, 0, 1);
	ck_assert_uint_eq(seen.cap[1], CAP);
	leases_leave(leases, 0);
	ck_assert_uint_eq(seen.lost, 0);
	ck_assert(leases_are_simple(leases, 1));
	leases_free(&leases);
}
END_TEST

START_TEST(who_waits_at_the_old_one_is_lent_a_slot)
{
	struct leases *leases = begin(1);

	leases_join(leases, 1, false);
	leases_set_main(leases, 1);
	release_some(leases, 0, 1);
	ck_assert_uint_eq(seen.cap[1], 1);
	leases_want(leases, 0, "app");
	leases_want(leases, 0, "app");
	ck_assert_uint_eq(seen.recalled[1], 1);
	ck_assert_uint_eq(seen.cap[0], 0);
	release_some(leases, 1, 1);
	ck_assert_uint_eq(seen.cap[0], 1);
	ck_assert_uint_eq(seen.cap[1], 0);
	/* The second wish is still there when the first is served. */
	release_some(leases, 0, 1);
	ck_assert_uint_eq(seen.cap[0], 1);
	release_some(leases, 0, 1);
	ck_assert_uint_eq(seen.cap[1], 1);
	leases_want(leases, 0, "other app");
	ck_assert_uint_eq(seen.recalled[1], 0);
	leases_free(&leases);
}
END_TEST

START_TEST(slots_of_the_dead_are_lost_until_found)
{
	struct leases *leases = begin(CAP);

	leases_leave(leases, 0);
	ck_assert_uint_eq(seen.lost, CAP);
	leases_join(leases, 1, true);
	ck_assert_uint_eq(seen.cap[1], 0);
	leases_found(leases, INSTANCE, 2);
	ck_assert_uint_eq(seen.cap[1], 2);
	leases_found(leases, INSTANCE, 1);
	leases_found(leases, INSTANCE, 1);
	ck_assert_uint_eq(seen.cap[1], CAP);
	leases_free(&leases);
}
END_TEST

/* It gave them up before it ended, which is heard after it ended: they are the
 * other's, whoever waited at the dead one. */
START_TEST(last_words_count)
{
	struct leases *leases = begin(CAP);

	leases_join(leases, 1, false);
	leases_set_main(leases, 1);
	leases_want(leases, 0, "app");
	leases_end(leases, 0);
	release_some(leases, 0, CAP);
	ck_assert_uint_eq(seen.cap[0], 0);
	ck_assert_uint_eq(seen.cap[1], CAP);
	leases_leave(leases, 0);
	ck_assert_uint_eq(seen.lost, 0);
	ck_assert(leases_are_simple(leases, 1));
	leases_free(&leases);
}
END_TEST

START_TEST(what_was_lent_too_late_is_not_lost)
{
	struct leases *leases = begin(CAP);

	leases_join(leases, 1, false);
	leases_set_main(leases, 1);
	release_some(leases, 0, 1);
	/* It waits no more, and ends before it reads what it is lent. */
	leases_want(leases, 0, "app");
	release_some(leases, 1, 1);
	ck_assert_uint_eq(seen.cap[0], CAP);
	leases_end(leases, 0);
	leases_left(leases, 0, INSTANCE, 1);
	leases_left(leases, 0, INSTANCE, 2); /* cannot grow again */
	leases_left(leases, 0, INSTANCE + 1, 0);
	leases_leave(leases, 0);
	ck_assert_uint_eq(seen.lost, 1);
	ck_assert_uint_eq(seen.cap[1], CAP - 1);
	leases_found(leases, INSTANCE, 1);
	ck_assert_uint_eq(seen.cap[1], CAP);
	ck_assert(leases_are_simple(leases, 1));
	leases_free(&leases);
}
END_TEST

START_TEST(drained_when_both_say_so)
{
	struct leases *leases = begin(CHANNEL_NO_CAP);

	leases_join(leases, 1, false);
	ck_assert_uint_eq(seen.cap[1], CHANNEL_NO_CAP);
	ck_assert(leases_withdraw(leases, INSTANCE, false));
	ck_assert_uint_eq(seen.withdrawn[0], 1);
	ck_assert_uint_eq(seen.withdrawn[1], 1);
	leases_drained(leases, 0, INSTANCE);
	ck_assert_uint_eq(seen.drained, 0);
	leases_leave(leases, 1);
	ck_assert_uint_eq(seen.drained, 1);
	ck_assert(!leases_withdraw(leases, INSTANCE, false));
	ck_assert_ptr_null(leases_next(leases, NULL));
	leases_free(&leases);
}
END_TEST

/* Streams at one, and requests at the other until it is quiet or drained. */
START_TEST(quiet_when_nobody_has_more_than_streams)
{
	for (int end = 0; end < 2; end++) {
		struct leases *leases = begin(CHANNEL_NO_CAP);

		leases_quiet(leases, 0, INSTANCE);
		ck_assert_uint_eq(seen.quiet, 0); /* not withdrawn */
		leases_join(leases, 1, true);
		ck_assert(leases_withdraw(leases, INSTANCE, false));
		leases_quiet(leases, 0, INSTANCE);
		ck_assert_uint_eq(seen.quiet, 0);
		if (end == 0)
			leases_drained(leases, 1, INSTANCE);
		else
			leases_quiet(leases, 1, INSTANCE);
		ck_assert_uint_eq(seen.quiet, 1);
		ck_assert_uint_eq(seen.drained, 0);
		leases_leave(leases, 0);
		leases_leave(leases, 1);
		ck_assert_uint_eq(seen.drained, 1);
		leases_free(&leases);
	}
}
END_TEST

/* Only who has more than streams is told that the time is up. */
START_TEST(late_where_requests_are)
{
	struct leases *leases = begin(CHANNEL_NO_CAP);

	leases_join(leases, 1, true);
	leases_hurry(leases, INSTANCE);
	ck_assert_uint_eq(seen.hurried[0] + seen.hurried[1], 0);
	ck_assert(leases_withdraw(leases, INSTANCE, false));
	leases_quiet(leases, 0, INSTANCE);
	leases_hurry(leases, INSTANCE);
	ck_assert_uint_eq(seen.hurried[0], 0);
	ck_assert_uint_eq(seen.hurried[1], 1);
	leases_quiet(leases, 1, INSTANCE);
	ck_assert_uint_eq(seen.quiet, 1);
	leases_drained(leases, 0, INSTANCE);
	leases_drained(leases, 1, INSTANCE);
	leases_hurry(leases, INSTANCE);
	ck_assert_uint_eq(seen.hurried[1], 1);
	leases_free(&leases);
}
END_TEST

START_TEST(nobody_knows_it)
{
	struct leases *leases = begin(CAP);

	leases_leave(leases, 0);
	ck_assert(!leases_withdraw(leases, INSTANCE, true));
	ck_assert_uint_eq(seen.drained, 0);
	leases_released(leases, 0, INSTANCE, 5);
	leases_drained(leases, 1, 99);
	leases_found(leases, 99, 1);
	leases_free(&leases);
}
END_TEST

/* Two proxies that do what they like within what they were told: as the old one
 * drains and its clients ask once more. */
START_TEST(never_above_the_cap)
{
	struct leases *leases = begin(CAP);
	unsigned seed = 1 + (unsigned)_i, used[2] = { 0, 0 }, waiting = 0;
	unsigned served = 0, asked = 0;

	leases_join(leases, 1, false);
	leases_set_main(leases, 1);
	for (int round = 0; round < 20000; round++) {
		unsigned side = (unsigned)rand_r(&seed) % 2;
		bool takes = rand_r(&seed) % 2 == 0;

		ck_assert_uint_le(used[0] + used[1], CAP);
		ck_assert_uint_le(seen.cap[0] + seen.cap[1], CAP);
		if (side == 0 && takes && round < 10000) {
			waiting++;
			asked++;
			leases_want(leases, 0, "app");
		} else if (side == 1 && takes &&
			   used[1] + seen.recalled[1] < seen.cap[1]) {
			used[1]++;
		} else if (used[side] > 0 && !takes) {
			used[side]--;
		}
		/* Who drains uses what it was lent, or gives it back. */
		while (waiting > 0 && used[0] < seen.cap[0]) {
			waiting--;
			served++;
			used[0]++;
		}
		if (waiting == 0 && used[0] < seen.cap[0])
			release_some(leases, 0, seen.cap[0] - used[0]);
		while (seen.recalled[1] > 0 && used[1] < seen.cap[1])
			release_some(leases, 1, 1);
	}
	ck_assert_uint_eq(waiting, 0);
	ck_assert_uint_eq(served, asked);
	leases_free(&leases);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("leases");
	TCase *tcase = tcase_create("leases");

	tcase_add_test(tcase, the_new_one_gets_what_the_old_gives_up);
	tcase_add_test(tcase, who_waits_at_the_old_one_is_lent_a_slot);
	tcase_add_test(tcase, slots_of_the_dead_are_lost_until_found);
	tcase_add_test(tcase, last_words_count);
	tcase_add_test(tcase, what_was_lent_too_late_is_not_lost);
	tcase_add_test(tcase, drained_when_both_say_so);
	tcase_add_test(tcase, quiet_when_nobody_has_more_than_streams);
	tcase_add_test(tcase, late_where_requests_are);
	tcase_add_test(tcase, nobody_knows_it);
	tcase_add_loop_test(tcase, never_above_the_cap, 0, 5);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
