/*
 * Slots of a dead proxy, seen by the sockets of the process it spoke to: those
 * that a living one has open do not count, those nobody has accepted yet do.
 */
#include <check.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/addr.h"
#include "src/base/clock.h"
#include "src/base/compiler.h"
#include "supervisor/lost_slots.h"
#include "t/unit/run.h"

#define INSTANCE 7
#define DEADLINE_MS 20000

static uint32_t found;

static void
on_found(uint64_t instance, uint32_t slots, void *arg)
{
	ck_assert_uint_eq(instance, INSTANCE);
	found += slots;
}

static int
connected(const struct addr *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ne(fd, -1);
	ck_assert_int_eq(connect(fd, &addr->u.sa, addr->len), 0);
	return fd;
}

static int
listening(const struct addr *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ne(fd, -1);
	ck_assert_int_eq(bind(fd, &addr->u.sa, addr->len), 0);
	ck_assert_int_eq(listen(fd, 8), 0);
	return fd;
}

static void
wait_found(struct event_base *base, uint32_t wanted)
{
	int64_t until_ms = clock_now_ms() + DEADLINE_MS;

	while (found < wanted && clock_now_ms() < until_ms)
		event_base_loop(base, EVLOOP_ONCE);
	ck_assert_uint_eq(found, wanted);
}

START_TEST(only_what_the_dead_left)
{
	struct event_base *base = event_base_new();
	struct lost_slots *lost = lost_slots_new(base, on_found, NULL);
	char dir[] = "/tmp/scalws-lost-XXXXXX", path[64], other_path[64];
	struct addr addr, other;
	int listener, stranger, living, dead, unread, ends[2];

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a.sock", dir);
	snprintf(other_path, sizeof(other_path), "%s/a.sock2", dir);
	ck_assert_int_eq(addr_unix(path, &addr), 0);
	ck_assert_int_eq(addr_unix(other_path, &other), 0);
	listener = listening(&addr);
	stranger = listening(&other);
	living = connected(&addr);
	ends[0] = accept(listener, NULL, NULL);
	dead = connected(&addr);
	ends[1] = accept(listener, NULL, NULL);
	unread = connected(&addr);
	/* Of another instance, whose path begins as ours. */
	close(connected(&other));
	close(dead);
	close(unread);

	found = 0;
	lost_slots_watch(lost, INSTANCE, &addr, 4);
	wait_found(base, 2);
	close(ends[1]);
	wait_found(base, 3);
	close(accept(listener, NULL, NULL));
	wait_found(base, 4);

	close(living);
	close(ends[0]);
	close(listener);
	close(stranger);
	unlink(path);
	unlink(other_path);
	rmdir(dir);
	lost_slots_free(&lost);
	event_base_free(base);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("lost slots");
	TCase *tcase = tcase_create("lost slots");

	tcase_add_test(tcase, only_what_the_dead_left);
	tcase_set_timeout(tcase, 4 * DEADLINE_MS / 1000);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
