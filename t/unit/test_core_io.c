/*
 * The sockets of a worker's loop: io over real socket pairs and connections.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/core/io.h"
#include "proxy/core/worker.h"
#include "src/base/fdutil.h"
#include "t/unit/loop.h"
#include "t/unit/run.h"

struct owner {
	struct io io;
	int far; /* the other end, blocking */
	int n_readable, n_drained, n_closed, n_connected;
	int error;
	bool stops; /* the loop, at any event */
	char got[64];
	ssize_t n_got;
};

static void
noted(struct io *io)
{
	if (CONTAINER_OF(io, struct owner, io)->stops)
		worker_stop(io->worker);
}

static void
on_readable(struct io *io)
{
	struct owner *owner = CONTAINER_OF(io, struct owner, io);

	owner->n_readable++;
	owner->n_got = io_read(io, owner->got, sizeof(owner->got));
	noted(io);
}

static void
on_drained(struct io *io)
{
	CONTAINER_OF(io, struct owner, io)->n_drained++;
	noted(io);
}

static void
on_closed(struct io *io, int error)
{
	struct owner *owner = CONTAINER_OF(io, struct owner, io);

	owner->n_closed++;
	owner->error = error;
	noted(io);
}

static void
on_connected(struct io *io, int error)
{
	struct owner *owner = CONTAINER_OF(io, struct owner, io);

	owner->n_connected++;
	owner->error = error;
	noted(io);
}

static const struct io_events events = {
	.on_readable = on_readable,
	.on_drained = on_drained,
	.on_closed = on_closed,
	.on_connected = on_connected,
};

#define HIGH_BYTES 40000

static void
set_up(struct owner *owner, struct worker *worker)
{
	int ends[2];

	memset(owner, 0, sizeof(*owner));
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	ck_assert_int_eq(fd_set_nonblock(ends[0]), 0);
	owner->far = ends[1];
	owner->stops = true;
	io_init(
	    &owner->io, worker, ends[0], &io_plain, &events, HIGH_BYTES, false);
}

/* A real connection: sockets that can be reset. */
static void
set_up_tcp(struct owner *owner, struct worker *worker)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM, 0), near;

	memset(owner, 0, sizeof(*owner));
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(
	    bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(
	    getsockname(listener, (struct sockaddr *)&addr, &len), 0);
	near = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(
	    connect(near, (struct sockaddr *)&addr, sizeof(addr)), 0);
	owner->far = accept(listener, NULL, NULL);
	ck_assert_int_ge(owner->far, 0);
	close(listener);
	ck_assert_int_eq(fd_set_nonblock(near), 0);
	owner->stops = true;
	io_init(
	    &owner->io, worker, near, &io_plain, &events, HIGH_BYTES, false);
}

static void
reset_far(struct owner *owner)
{
	struct linger linger = { 1, 0 };

	ck_assert_int_eq(setsockopt(owner->far, SOL_SOCKET, SO_LINGER, &linger,
			     sizeof(linger)),
	    0);
	close(owner->far);
	owner->far = -1;
}

static void
tear_down(struct owner *owner, struct worker *worker)
{
	io_close(&owner->io);
	io_close(&owner->io);
	fd_close(&owner->far);
	ck_assert_uint_eq(worker->buffers.n_used, 0);
	worker_free(worker);
}

static enum io_result
write_text(struct io *io, const char *text, size_t len)
{
	struct iovec piece = { (void *)(uintptr_t)text, len };

	return io_write(io, &piece, 1);
}

START_TEST(io_reads_and_writes)
{
	struct worker *worker = worker_new(0, 1);
	struct owner owner;
	char text[] = "abc", got[8];
	struct iovec pieces[3] = { { text, 1 }, { text + 1, 0 },
		{ text + 1, 2 } };

	set_up(&owner, worker);
	ck_assert_int_eq(io_read(&owner.io, got, sizeof(got)), IO_AGAIN);
	ck_assert_int_eq(io_write(&owner.io, pieces, 3), IO_OK);
	ck_assert_int_eq(read(owner.far, got, sizeof(got)), 3);
	ck_assert_mem_eq(got, "abc", 3);
	ck_assert_uint_eq(owner.io.sent_bytes, 3);
	io_read_start(&owner.io);
	ck_assert_int_eq(write(owner.far, "xyz", 3), 3);
	loop_run(worker);
	ck_assert_int_eq(owner.n_got, 3);
	ck_assert_mem_eq(owner.got, "xyz", 3);
	close(owner.far);
	owner.far = -1;
	loop_run(worker);
	ck_assert_int_eq(owner.n_got, IO_EOF);
	ck_assert_int_eq(owner.n_closed, 0);
	tear_down(&owner, worker);
}
END_TEST

/* Byte i of the stream. */
static char
byte_at(size_t i)
{
	return (char)((i * 7 + i / 251) & 0xff);
}

START_TEST(io_keeps_what_the_socket_does_not_take)
{
	struct worker *worker = worker_new(0, 1);
	struct owner owner;
	static char chunk[10000];
	enum io_result result = IO_OK;
	size_t sent = 0, got = 0;

	set_up(&owner, worker);
	owner.stops = false;
	while (result == IO_OK) {
		for (size_t i = 0; i < sizeof(chunk); i++)
			chunk[i] = byte_at(sent + i);
		result = write_text(&owner.io, chunk, sizeof(chunk));
		sent += sizeof(chunk);
		ck_assert_uint_lt(sent, 10000000);
	}
	ck_assert_int_eq(result, IO_FULL);
	ck_assert_uint_gt(owner.io.out_bytes, HIGH_BYTES);
	ck_assert_uint_le(owner.io.out_bytes, HIGH_BYTES + sizeof(chunk));
	ck_assert(!io_is_drained(&owner.io));
	ck_assert_int_eq(owner.n_drained, 0);
	while (got < sent) {
		ssize_t n = read(owner.far, chunk, sizeof(chunk));

		ck_assert_int_gt(n, 0);
		for (ssize_t i = 0; i < n; i++)
			ck_assert_int_eq(chunk[i], byte_at(got + (size_t)i));
		got += (size_t)n;
		event_base_loop(worker->base, EVLOOP_NONBLOCK);
		/* Not before it is half empty, and once. */
		ck_assert_int_eq(owner.n_drained,
		    owner.io.out_bytes <= HIGH_BYTES / 2 ? 1 : 0);
	}
	ck_assert(io_is_drained(&owner.io));
	ck_assert_uint_eq(owner.io.sent_bytes, sent);
	ck_assert_int_eq(owner.io.mask, 0);
	tear_down(&owner, worker);
}
END_TEST

START_TEST(io_tells_when_all_is_out)
{
	struct worker *worker = worker_new(0, 1);
	struct owner owner;
	static char chunk[600000];
	size_t got = 0;

	set_up(&owner, worker);
	io_await_empty(&owner.io); /* nothing waits: from the loop, at once */
	ck_assert_int_eq(owner.n_drained, 0);
	loop_run(worker);
	ck_assert_int_eq(owner.n_drained, 1);
	ck_assert_int_ne(write_text(&owner.io, chunk, sizeof(chunk)), IO_DEAD);
	io_await_empty(&owner.io);
	io_shutdown(&owner.io);
	owner.stops = false;
	for (;;) {
		ssize_t n = read(owner.far, chunk, 50000);

		if (n == 0)
			break; /* shut down behind the last byte */
		ck_assert_int_gt(n, 0);
		got += (size_t)n;
		event_base_loop(worker->base, EVLOOP_NONBLOCK);
	}
	ck_assert_uint_eq(got, sizeof(chunk));
	ck_assert(io_is_drained(&owner.io));
	/* Once at the low mark and once, or in one, when empty. */
	ck_assert_int_ge(owner.n_drained, 2);
	ck_assert(!owner.io.awaits_empty && !owner.io.owes_drained);
	tear_down(&owner, worker);
}
END_TEST

static double
cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* 0: close, 1: shut down writing, 2: reset; each with unread bytes before it.
 */
START_TEST(io_sees_a_close_while_paused)
{
	struct worker *worker = worker_new(0, 1);
	struct owner owner;
	double before;

	set_up_tcp(&owner, worker);
	io_read_start(&owner.io);
	io_read_pause(&owner.io);
	ck_assert_int_eq(owner.io.mask, EV_READ); /* lazy */
	ck_assert_int_eq(write(owner.far, "unread", 6), 6);
	loop_run_for(worker, 50);
	ck_assert_int_eq(owner.n_closed + owner.n_readable, 0);
	if (_i == 0) {
		close(owner.far);
		owner.far = -1;
	} else if (_i == 1) {
		shutdown(owner.far, SHUT_WR);
	} else {
		reset_far(&owner);
	}
	loop_run(worker);
	ck_assert_int_eq(owner.n_closed, 1);
	ck_assert_int_eq(owner.n_readable, 0);
	/* It is told once, and the loop does not spin on it. */
	before = cpu_seconds();
	loop_run_for(worker, 400);
	ck_assert_int_eq(owner.n_closed, 1);
	ck_assert(cpu_seconds() - before < 0.2);
	if (_i < 2) {
		ck_assert_int_eq(
		    io_read(&owner.io, owner.got, sizeof(owner.got)), 6);
		ck_assert(!io_looks_alive(&owner.io));
	}
	tear_down(&owner, worker);
}
END_TEST

/* The first request of a connection may come before its event is there. */
START_TEST(io_paused_from_the_start_sees_a_close)
{
	struct worker *worker = worker_new(0, 1);
	struct owner owner;

	set_up_tcp(&owner, worker);
	io_read_pause(&owner.io);
	ck_assert_int_eq(write(owner.far, "x", 1), 1);
	close(owner.far);
	owner.far = -1;
	loop_run(worker);
	ck_assert_int_eq(owner.n_closed, 1);
	ck_assert_int_eq(owner.n_readable, 0);
	tear_down(&owner, worker);
}
END_TEST

/* End-of-file, then the rest of it: 0 of a unix socket, which knows that nobody
 * is left, 1 a reset, 2 both directions are shut down. */
START_TEST(io_at_the_end_sees_the_other_direction)
{
	struct worker *worker = worker_new(0, 1);
	struct owner owner;
	double before = cpu_seconds();

	if (_i == 0)
		set_up(&owner, worker);
	else
		set_up_tcp(&owner, worker);
	io_read_start(&owner.io);
	shutdown(owner.far, SHUT_WR);
	loop_run(worker);
	ck_assert_int_eq(owner.n_got, 0);
	io_read_end(&owner.io);
	loop_run_for(worker, 200);
	/* The half that is open goes on, and the loop does not spin. */
	ck_assert_int_eq(owner.n_closed, 0);
	ck_assert_int_eq(owner.n_readable, 1);
	ck_assert(cpu_seconds() - before < 0.1);
	if (_i == 0) {
		close(owner.far);
		owner.far = -1;
	} else if (_i == 1) {
		ck_assert_int_eq(write_text(&owner.io, "x", 1), IO_OK);
		reset_far(&owner);
	} else {
		io_shutdown(&owner.io);
	}
	loop_run(worker);
	ck_assert_int_eq(owner.n_closed, 1);
	ck_assert(_i == 1 ? owner.error != 0 : owner.error == 0);
	loop_run_for(worker, 100);
	ck_assert_int_eq(owner.n_closed, 1);
	ck_assert_int_eq(owner.n_readable, 1);
	tear_down(&owner, worker);
}
END_TEST

/* The same, of bytes that the socket did not take. */
START_TEST(io_is_told_of_a_close_and_then_of_an_error)
{
	struct worker *worker = worker_new(0, 1);
	struct owner owner;
	char much[1000] = { 0 };

	set_up(&owner, worker);
	io_read_start(&owner.io);
	io_read_pause(&owner.io);
	shutdown(owner.far, SHUT_WR);
	loop_run(worker);
	ck_assert_int_eq(owner.n_closed, 1);
	ck_assert_int_eq(owner.error, 0);
	while (write_text(&owner.io, much, sizeof(much)) == IO_OK)
		;
	close(owner.far);
	owner.far = -1;
	loop_run(worker);
	ck_assert_int_eq(owner.n_closed, 2);
	ck_assert_int_ne(owner.error, 0);
	loop_run_for(worker, 20);
	ck_assert_int_eq(owner.n_closed, 2);
	tear_down(&owner, worker);
}
END_TEST

START_TEST(io_paused_ignores_more_bytes)
{
	struct worker *worker = worker_new(0, 1);
	struct owner owner;

	set_up_tcp(&owner, worker);
	io_read_start(&owner.io);
	io_read_pause(&owner.io);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(write(owner.far, "more", 4), 4);
		loop_run_for(worker, 10);
	}
	ck_assert_int_eq(owner.n_readable + owner.n_closed, 0);
	io_read_start(&owner.io);
	loop_run(worker);
	ck_assert_int_eq(owner.n_got, 12);
	tear_down(&owner, worker);
}
END_TEST

START_TEST(io_write_to_the_dead_is_told_from_the_loop)
{
	struct worker *worker = worker_new(0, 1);
	struct owner owner;

	set_up(&owner, worker);
	close(owner.far);
	owner.far = -1;
	ck_assert_int_eq(write_text(&owner.io, "x", 1), IO_DEAD);
	ck_assert_int_eq(write_text(&owner.io, "y", 1), IO_DEAD);
	ck_assert_int_eq(owner.n_closed, 0);
	loop_run(worker);
	ck_assert_int_eq(owner.n_closed, 1);
	ck_assert_int_eq(owner.error, EPIPE);
	loop_run_for(worker, 10);
	ck_assert_int_eq(owner.n_closed, 1);
	tear_down(&owner, worker);
}
END_TEST

START_TEST(io_queued_write_fails)
{
	struct worker *worker = worker_new(0, 1);
	struct owner owner;
	static char chunk[1000000];

	set_up(&owner, worker);
	ck_assert_int_eq(write_text(&owner.io, chunk, sizeof(chunk)), IO_FULL);
	close(owner.far);
	owner.far = -1;
	loop_run(worker);
	ck_assert_int_eq(owner.n_closed, 1);
	ck_assert_int_eq(owner.n_drained, 0);
	ck_assert_int_ne(owner.error, 0);
	ck_assert_int_eq(write_text(&owner.io, "x", 1), IO_DEAD);
	tear_down(&owner, worker);
}
END_TEST

START_TEST(io_wakes_its_owner)
{
	struct worker *worker = worker_new(0, 1);
	struct owner owner;

	set_up(&owner, worker);
	io_wake(&owner.io);
	io_wake(&owner.io);
	ck_assert_int_eq(owner.n_readable, 0);
	loop_run(worker);
	ck_assert_int_eq(owner.n_readable, 1);
	ck_assert_int_eq(owner.n_got, IO_AGAIN);
	io_wake(&owner.io);
	io_close(&owner.io); /* then nothing comes */
	loop_run_for(worker, 10);
	ck_assert_int_eq(owner.n_readable, 1);
	ck_assert_int_eq(
	    io_read(&owner.io, owner.got, sizeof(owner.got)), IO_BROKEN);
	ck_assert_int_eq(write_text(&owner.io, "x", 1), IO_DEAD);
	tear_down(&owner, worker);
}
END_TEST

START_TEST(io_connects)
{
	struct worker *worker = worker_new(0, 1);
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd;
	struct owner owner;
	char got[4];

	memset(&owner, 0, sizeof(owner));
	owner.stops = true;
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(
	    bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(
	    getsockname(listener, (struct sockaddr *)&addr, &len), 0);
	if (_i == 0)
		ck_assert_int_eq(listen(listener, 1), 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	ck_assert_int_eq(
	    connect(fd, (struct sockaddr *)&addr, sizeof(addr)), -1);
	ck_assert_int_eq(errno, EINPROGRESS);
	io_init(&owner.io, worker, fd, &io_plain, &events, HIGH_BYTES, true);
	ck_assert_int_eq(write_text(&owner.io, "head", 4), IO_OK);
	ck_assert_uint_eq(owner.io.sent_bytes, 0);
	loop_run(worker);
	ck_assert_int_eq(owner.n_connected, 1);
	if (_i == 0) {
		ck_assert_int_eq(owner.error, 0);
		owner.far = accept(listener, NULL, NULL);
		loop_run_for(worker, 10);
		ck_assert_int_eq(read(owner.far, got, sizeof(got)), 4);
		ck_assert_mem_eq(got, "head", 4);
		ck_assert(io_looks_alive(&owner.io));
	} else {
		owner.far = -1;
		ck_assert_int_eq(owner.error, ECONNREFUSED);
		ck_assert_uint_eq(owner.io.sent_bytes, 0);
		loop_run_for(worker, 10);
		ck_assert_int_eq(owner.n_closed, 0);
	}
	close(listener);
	tear_down(&owner, worker);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { io_reads_and_writes,
		io_keeps_what_the_socket_does_not_take,
		io_tells_when_all_is_out, io_paused_from_the_start_sees_a_close,
		io_paused_ignores_more_bytes,
		io_is_told_of_a_close_and_then_of_an_error,
		io_write_to_the_dead_is_told_from_the_loop,
		io_queued_write_fails, io_wakes_its_owner };
	Suite *suite = suite_create("core_io");
	TCase *all = tcase_create("loop");

	signal(SIGPIPE, SIG_IGN);
	tcase_set_timeout(all, 30);
	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		tcase_add_test(all, tests[i]);
	tcase_add_loop_test(all, io_sees_a_close_while_paused, 0, 3);
	tcase_add_loop_test(all, io_at_the_end_sees_the_other_direction, 0, 3);
	tcase_add_loop_test(all, io_connects, 0, 2);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
