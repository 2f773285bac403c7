/*
 * Frames, channel messages and control lines: what goes in comes out, and
 * every cut or forged frame is refused without losing a descriptor.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/ipc/channel.h"
#include "src/ipc/control.h"
#include "t/unit/run.h"

#define QUEUE_MAX (1024 * 1024)

static struct frame_link *ends[2];
static struct frame_out out;
static struct frame_in in;

static void
open_pair(void)
{
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	ends[0] = frame_link_new(fds[0], QUEUE_MAX);
	ends[1] = frame_link_new(fds[1], QUEUE_MAX);
}

static void
close_pair(void)
{
	frame_link_free(&ends[0]);
	frame_link_free(&ends[1]);
}

static int
count_fds(void)
{
	int count = 0;

	for (int fd = 0; fd < 1000; fd++)
		count += fcntl(fd, F_GETFD) != -1;
	return count;
}

static void
pass(void)
{
	ck_assert_int_eq(frame_link_send(ends[0], &out), 0);
	ck_assert_int_eq(frame_link_recv(ends[1], &in), FRAME_GOT);
}

START_TEST(fields_arrive)
{
	frame_begin(&out, 0x1234);
	frame_put_u32(&out, 0xfedcba98);
	frame_put_u64(&out, 0x0123456789abcdefULL);
	frame_put_text(&out, "hello");
	frame_put_text(&out, NULL);
	frame_put_str(&out, (struct str){ "a\0b", 3 });
	pass();
	ck_assert_uint_eq(in.type, 0x1234);
	ck_assert_uint_eq(frame_get_u32(&in), 0xfedcba98);
	ck_assert_uint_eq(frame_get_u64(&in), 0x0123456789abcdefULL);
	ck_assert_str_eq(frame_get_text(&in), "hello");
	ck_assert(!frame_is_whole(&in));
	ck_assert_str_eq(frame_get_text(&in), "");
	ck_assert_str_eq(frame_get_text(&in), ""); /* the NUL inside is bad */
	ck_assert(in.bad);
	ck_assert(!frame_is_whole(&in));
	ck_assert_uint_eq(frame_get_u32(&in), 0);
	frame_done(&in);
}
END_TEST

START_TEST(long_string_is_bad)
{
	frame_begin(&out, 1);
	frame_put_u32(&out, 0xffffffff); /* a length without its text */
	pass();
	ck_assert_uint_eq(frame_get_str(&in).len, 0);
	ck_assert(in.bad);
	frame_done(&in);
}
END_TEST

START_TEST(overflow_fails_the_send)
{
	char text[1000];

	memset(text, 'x', sizeof(text));
	frame_begin(&out, 1);
	for (int i = 0; i < 70; i++)
		frame_put_str(&out, (struct str){ text, sizeof(text) });
	ck_assert_int_eq(frame_link_send(ends[0], &out), -1);
	ck_assert_int_eq(errno, EMSGSIZE);
}
END_TEST

START_TEST(descriptors_arrive)
{
	int fds[2], got, before;
	char byte = 0;

	ck_assert_int_eq(pipe(fds), 0);
	before = count_fds();
	frame_begin(&out, 1);
	frame_put_fd(&out, fds[0]);
	frame_put_fd(&out, fds[1]);
	pass();
	ck_assert_uint_eq(in.n_fds, 2);
	got = frame_take_fd(&in);
	ck_assert_int_ne(fcntl(got, F_GETFD) & FD_CLOEXEC, 0);
	ck_assert_int_eq((int)write(fds[1], "x", 1), 1);
	ck_assert_int_eq((int)read(got, &byte, 1), 1);
	ck_assert_int_eq(byte, 'x');
	ck_assert(!frame_is_whole(&in)); /* one was not taken */
	frame_done(&in);
	close(got);
	ck_assert_int_eq(count_fds(), before);
	ck_assert_int_eq(frame_take_fd(&in), -1);
	ck_assert(in.bad);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

/* More than the socket holds is queued with its descriptors, in order; beyond
 * queue_max the link fails. */
START_TEST(full_socket_queues)
{
	char text[60000];
	unsigned sent = 0, got = 0;
	int before = count_fds();

	memset(text, 'q', sizeof(text));
	while (sent < 1000) {
		frame_begin(&out, 7);
		frame_put_u32(&out, sent);
		frame_put_str(&out, (struct str){ text, sizeof(text) });
		frame_put_fd(&out, 0);
		if (frame_link_send(ends[0], &out) == -1)
			break;
		sent++;
	}
	ck_assert_int_eq(errno, ENOBUFS);
	ck_assert_uint_lt(sent, 1000);
	ck_assert(frame_link_wants_write(ends[0]));
	while (got < sent) {
		enum frame_result result = frame_link_recv(ends[1], &in);

		if (result == FRAME_AGAIN) {
			ck_assert_int_eq(frame_link_flush(ends[0]), 0);
			continue;
		}
		ck_assert_int_eq(result, FRAME_GOT);
		ck_assert_uint_eq(frame_get_u32(&in), got);
		ck_assert_uint_eq(in.n_fds, 1);
		frame_done(&in);
		got++;
	}
	ck_assert_int_eq(frame_link_flush(ends[0]), 0);
	ck_assert(!frame_link_wants_write(ends[0]));
	ck_assert_int_eq(count_fds(), before);
}
END_TEST

START_TEST(end_and_nonsense)
{
	ck_assert_int_eq(frame_link_recv(ends[1], &in), FRAME_AGAIN);
	ck_assert_int_eq((int)send(frame_link_fd(ends[0]), "x", 1, 0), 1);
	ck_assert_int_eq(frame_link_recv(ends[1], &in), FRAME_BROKEN);
	frame_link_free(&ends[0]);
	ck_assert_int_eq(frame_link_recv(ends[1], &in), FRAME_CLOSED);
	frame_begin(&out, 1);
	ck_assert_int_eq(frame_link_send(ends[1], &out), -1);
	ck_assert_int_eq(errno, EPIPE);
}
END_TEST

/* ---- channel ---- */

/* Does the packet in `out`, cut to `len` bytes, still pass as a message? */
typedef int get_cb(struct frame_in *frame);

#define GETTER(name)                                  \
	static int get_##name(struct frame_in *frame) \
	{                                             \
		struct channel_##name m;              \
		return channel_get_##name(frame, &m); \
	}
GETTER(hello)
GETTER(serial)
GETTER(announce)
GETTER(instance)
GETTER(stuck)
GETTER(output)
GETTER(app)
GETTER(probe)
GETTER(probed)
GETTER(drain)
GETTER(query)
GETTER(stats)

static void
expect_only_whole(get_cb *get)
{
	for (size_t len = 2; len <= out.len + 1; len++) {
		memcpy(in.bytes, out.bytes, sizeof(out.bytes));
		in.n_fds = in.next_fd = 0;
		ck_assert_int_eq(frame_open(&in, len), 0);
		ck_assert_int_eq(get(&in), len == out.len ? 0 : -1);
	}
}

static struct addr
some_addr(const char *text)
{
	struct addr addr;

	ck_assert_int_eq(addr_parse(str_of(text), &addr), ADDR_OK);
	return addr;
}

START_TEST(messages_are_whole_or_refused)
{
	struct channel_hello hello = { CHANNEL_VERSION, 3 };
	struct channel_serial serial = { 9, "x:1: no\nand more" };
	struct channel_announce announce = { 1ULL << 40, "api", 77,
		CHANNEL_FASTCGI, 8, 1, 2000, some_addr("/run/x.sock") };
	struct channel_instance instance = { 5, 1 };
	struct channel_stuck stuck = { 5, CHANNEL_STUCK_TIMEOUT, 1ULL << 33 };
	struct channel_output output = { 5, "1f", "PHP Warning: x" };
	struct channel_app app = { "api", CHANNEL_APP_BACKOFF, 4000, "exit 1" };
	struct channel_probe probe = { 6, CHANNEL_HTTP, 1000, "/", "a.b",
		some_addr("[::1]:80") };
	struct channel_probed probed = { 6, 0, 503, "status 503" };
	struct channel_drain drain = { 10000, 1 };
	struct channel_query query = { 4 };
	struct channel_stats stats = { 4, CHANNEL_STATS_APP, "api", 0, 1, 2, 3,
		4, 5, 6, 7 };

#define CHECK(name, type)                      \
	channel_put_##name(&out, type, &name); \
	ck_assert(!out.overflow);              \
	expect_only_whole(get_##name)
	CHECK(hello, CHANNEL_HELLO);
	CHECK(serial, CHANNEL_REJECTED);
	CHECK(announce, CHANNEL_ANNOUNCE);
	CHECK(instance, CHANNEL_WITHDRAW);
	CHECK(stuck, CHANNEL_STUCK);
	CHECK(output, CHANNEL_OUTPUT);
	CHECK(app, CHANNEL_APP_STATE);
	CHECK(probe, CHANNEL_PROBE);
	CHECK(probed, CHANNEL_PROBED);
	CHECK(drain, CHANNEL_DRAIN);
	CHECK(query, CHANNEL_QUERY);
	CHECK(stats, CHANNEL_STATS);
}
END_TEST

START_TEST(announce_arrives)
{
	struct channel_announce sent = { 1ULL << 40, "api", 77, CHANNEL_HTTP, 1,
		1, 60000, some_addr("/run/scalws/api.1.sock") };
	struct channel_announce got;

	channel_put_announce(&out, CHANNEL_ANNOUNCE, &sent);
	pass();
	ck_assert_int_eq(channel_get_announce(&in, &got), 0);
	ck_assert_uint_eq(got.instance, 1ULL << 40);
	ck_assert_str_eq(got.app, "api");
	ck_assert_uint_eq(got.pid, 77);
	ck_assert_uint_eq(got.cap, 1);
	ck_assert_uint_eq(got.idle_timeout_ms, 60000);
	ck_assert(addr_eq(&got.addr, &sent.addr));
	frame_done(&in);
}
END_TEST

START_TEST(forged_values_are_refused)
{
	struct channel_announce announce = { 1, "api", 7, CHANNEL_HTTP, 0, 0, 0,
		some_addr("10.0.0.1:80") };
	struct channel_app app = { "api", 9, 0, "" };
	struct channel_stuck stuck = { 5, 3, 0 };

	announce.addr.u.sa.sa_family = AF_NETLINK;
	channel_put_announce(&out, CHANNEL_ANNOUNCE, &announce);
	pass();
	ck_assert_int_eq(get_announce(&in), -1);
	announce.addr = some_addr("10.0.0.1:80");
	announce.protocol = 3;
	channel_put_announce(&out, CHANNEL_ANNOUNCE, &announce);
	pass();
	ck_assert_int_eq(get_announce(&in), -1);
	channel_put_app(&out, CHANNEL_APP_STATE, &app);
	pass();
	ck_assert_int_eq(get_app(&in), -1);
	channel_put_stuck(&out, CHANNEL_STUCK, &stuck);
	pass();
	ck_assert_int_eq(get_stuck(&in), -1);
}
END_TEST

START_TEST(descriptor_messages)
{
	struct channel_prepare prepare = { 2, 2, 0, { 0, 0 } };
	struct channel_listen listened = {
		.serial = 2, .index = 1, .key = 4, .reuseport = 1, .n_fds = 3
	};
	struct channel_reopen reopen = { 1, { 0 } };
	int before = count_fds();

	channel_put_prepare(&out, CHANNEL_PREPARE, &prepare);
	pass();
	ck_assert_int_eq(channel_get_prepare(&in, &prepare), 0);
	ck_assert_uint_eq(prepare.n_logs, 2);
	frame_done(&in);
	close(prepare.conf_fd);
	close(prepare.log_fds[0]);
	close(prepare.log_fds[1]);

	/* One descriptor less than the message says: all are closed. */
	channel_put_listen(&out, CHANNEL_LISTEN, &listened);
	ck_assert_uint_eq(out.n_fds, 3);
	out.n_fds--;
	pass();
	ck_assert_int_eq(channel_get_listen(&in, &listened), -1);
	frame_done(&in);
	ck_assert_int_eq(count_fds(), before);
	/* One more. */
	channel_put_reopen(&out, CHANNEL_REOPEN_LOGS, &reopen);
	frame_put_fd(&out, 0);
	pass();
	ck_assert_int_eq(channel_get_reopen(&in, &reopen), -1);
	frame_done(&in);
	ck_assert_int_eq(count_fds(), before);
	/* More than a frame takes. */
	listened.n_fds = FRAME_FDS_MAX + 1;
	channel_put_listen(&out, CHANNEL_LISTEN, &listened);
	ck_assert(out.overflow);
}
END_TEST

/* ---- control ---- */

static const struct {
	const char *line, *verb,
	    *args; /* args joined with '|'; NULL: refused */
} requests[] = {
	{ "version", "version", "" },
	{ "status api", "status", "api" },
	{ "logs a%20b 10 1", "logs", "a b|10|1" },
	{ "x %25%0a", "x", "%\n" },
	{ "", NULL, NULL },
	{ " status", NULL, NULL },
	{ "status ", NULL, NULL },
	{ "a  b", NULL, NULL },
	{ "a %", NULL, NULL },
	{ "a %2", NULL, NULL },
	{ "a %zz", NULL, NULL },
	{ "a %00", NULL, NULL },
	{ "a\tb", NULL, NULL },
	{ "v 1 2 3 4 5 6 7 8", "v", "1|2|3|4|5|6|7|8" },
	{ "v 1 2 3 4 5 6 7 8 9", NULL, NULL },
};

START_TEST(control_requests)
{
	static struct control_request request;
	struct strbuf joined = STRBUF_EMPTY;
	const char *why = NULL;
	int result = control_parse(str_of(requests[_i].line), &request, &why);

	if (requests[_i].verb == NULL) {
		ck_assert_int_eq(result, -1);
		ck_assert_ptr_nonnull(why);
		return;
	}
	ck_assert_int_eq(result, 0);
	ck_assert_str_eq(request.verb, requests[_i].verb);
	strbuf_add_text(&joined, "");
	for (size_t i = 0; i < request.n_args; i++)
		strbuf_printf(
		    &joined, "%s%s", i == 0 ? "" : "|", request.args[i]);
	ck_assert_str_eq(joined.len == 0 ? "" : joined.ptr, requests[_i].args);
	ck_assert_ptr_null(request.args[request.n_args]);
	strbuf_free(&joined);
}
END_TEST

START_TEST(control_too_long)
{
	static struct control_request request;
	static char line[CONTROL_LINE_MAX + 1];
	const char *why;

	memset(line, 'a', sizeof(line));
	ck_assert_int_eq(
	    control_parse((struct str){ line, sizeof(line) }, &request, &why),
	    -1);
	ck_assert_int_eq(control_parse((struct str){ line, sizeof(line) - 1 },
			     &request, &why),
	    0);
	ck_assert_uint_eq(strlen(request.verb), CONTROL_LINE_MAX);
}
END_TEST

START_TEST(control_answers)
{
	static const char *const args[] = { "a b", "100%", NULL };
	struct strbuf to = STRBUF_EMPTY;
	struct str text;
	int code;

	control_encode(&to, "logs", args);
	ck_assert_str_eq(to.ptr, "logs a%20b 100%25\n");
	strbuf_free(&to);
	to = STRBUF_EMPTY;
	control_put_line(&to, 'o', STR("one\n\x1b[2Jtwo\tx\n"));
	control_put_exit(&to, 5);
	ck_assert_str_eq(to.ptr, "o one\no ?[2Jtwo\tx\nx 5\n");
	strbuf_free(&to);
	ck_assert_int_eq(
	    control_parse_answer(STR("o a b"), &text, &code), CONTROL_OUT);
	ck_assert(str_eq(text, STR("a b")));
	ck_assert_int_eq(
	    control_parse_answer(STR("e "), &text, &code), CONTROL_ERR);
	ck_assert_int_eq(
	    control_parse_answer(STR("x 3"), &text, &code), CONTROL_EXIT);
	ck_assert_int_eq(code, 3);
	ck_assert_int_eq(
	    control_parse_answer(STR("x 300"), &text, &code), CONTROL_BAD);
	ck_assert_int_eq(
	    control_parse_answer(STR("ox"), &text, &code), CONTROL_BAD);
	ck_assert_int_eq(
	    control_parse_answer(STR(""), &text, &code), CONTROL_BAD);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("ipc");
	TCase *frames = tcase_create("frames");
	TCase *control = tcase_create("control");

	tcase_add_checked_fixture(frames, open_pair, close_pair);
	tcase_add_test(frames, fields_arrive);
	tcase_add_test(frames, long_string_is_bad);
	tcase_add_test(frames, overflow_fails_the_send);
	tcase_add_test(frames, descriptors_arrive);
	tcase_add_test(frames, full_socket_queues);
	tcase_add_test(frames, end_and_nonsense);
	tcase_add_test(frames, messages_are_whole_or_refused);
	tcase_add_test(frames, announce_arrives);
	tcase_add_test(frames, forged_values_are_refused);
	tcase_add_test(frames, descriptor_messages);
	tcase_add_loop_test(
	    control, control_requests, 0, (int)ARRAY_LEN(requests));
	tcase_add_test(control, control_too_long);
	tcase_add_test(control, control_answers);
	suite_add_tcase(suite, frames);
	suite_add_tcase(suite, control);
	return run_suite(suite);
}
