/*
 * The state that an upgrade hands on: what was written is read, and nothing
 * else is.
 */
#include <check.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/fdutil.h"
#include "src/base/mem.h"
#include "supervisor/instance_state.h"
#include "supervisor/saved.h"
#include "supervisor/state.h"
#include "t/unit/run.h"

/* ---- fields ---- */

START_TEST(fields_come_back)
{
	struct state *out = state_write(), *in;
	int64_t low = -5, read_low;
	uint64_t high = INT64_MAX, read_high;
	char *text = mem_strdup("a b%=\n\x7f\xff"), *read_text;
	char *bytes = mem_strdup("x"), *read_bytes;
	size_t len = 2, read_len; /* the NUL too */
	struct addr addr, read_addr;
	int fd = 17, none = -1, read_fd, read_none;
	bool yes = true, read_yes;
	const char *why;
	struct str all;
	size_t n;

	ck_assert_int_eq(addr_unix("/run/x.sock", &addr), 0);
	ck_assert(state_record(out, "one"));
	state_i64(out, "low", &low, INT64_MIN, 0);
	state_u64(out, "high", &high);
	ck_assert(state_record(out, "two"));
	state_string(out, "text", &text);
	state_bytes(out, "bytes", &bytes, &len);
	state_addr(out, "addr", &addr);
	state_fd(out, "fd", &fd);
	state_fd(out, "none", &none);
	state_bool(out, "yes", &yes);
	all = state_text(out);

	in = state_read(all.ptr, all.len, &why);
	ck_assert_ptr_nonnull(in);
	ck_assert(!state_record(in, "two"));
	ck_assert(state_record(in, "one"));
	state_i64(in, "low", &read_low, -5, 0);
	state_u64(in, "high", &read_high);
	ck_assert(state_record(in, "two"));
	state_string(in, "text", &read_text);
	state_bytes(in, "bytes", &read_bytes, &read_len);
	state_addr(in, "addr", &read_addr);
	state_fd(in, "fd", &read_fd);
	state_fd(in, "none", &read_none);
	state_bool(in, "yes", &read_yes);
	ck_assert(state_is_whole(in));
	ck_assert_int_eq(read_low, low);
	ck_assert_uint_eq(read_high, high);
	ck_assert_str_eq(read_text, text);
	ck_assert_uint_eq(read_len, 2);
	ck_assert_mem_eq(read_bytes, "x", 2);
	ck_assert(addr_eq(&read_addr, &addr));
	ck_assert_int_eq(read_fd, 17);
	ck_assert_int_eq(read_none, -1);
	ck_assert(read_yes);
	ck_assert_int_eq(state_fds(out, &n)[0], 17);
	ck_assert_uint_eq(n, 1);
	ck_assert_int_eq(state_fds(in, &n)[0], 17);
	mem_free(text);
	mem_free(bytes);
	mem_free(read_text);
	mem_free(read_bytes);
	state_free(&in);
	state_free(&out);
}
END_TEST

static const struct {
	const char *text, *why;
} malformed[] = {
	{ "", "it is no state of scalwsd" },
	{ "scalws-state 1\n\nend\n", "it is of another version than 3" },
	{ "scalws-state 3\n", "it has no end" },
	{ "scalws-state 3\none n=1\nen", "it has no end" },
	{ "scalws-state 3\none n=1\nend\nmore", "it has no end" },
	{ "scalws-state 3\ntwo n=1\nend\n", "a record that is not known" },
	{ "scalws-state 3\none n=1\none n=1\nend\n",
	    "a record that is not known" },
	{ "scalws-state 3\none\nend\n", "no field n" },
	{ "scalws-state 3\none m=1\nend\n", "no field n" },
	{ "scalws-state 3\none n=1 m=1\nend\n", "a field that is not known" },
	{ "scalws-state 3\none n=x\nend\n", "a number is malformed" },
	{ "scalws-state 3\none n=\nend\n", "a number is malformed" },
	{ "scalws-state 3\none n=--1\nend\n", "a number is malformed" },
	{ "scalws-state 3\none n=99999999999999999999\nend\n",
	    "a number is malformed" },
	{ "scalws-state 3\none n=11\nend\n", "a number is out of range" },
	{ "scalws-state 3\none n=-1\nend\n", "a number is out of range" },
	{ "scalws-state 3\none n=%3\nend\n", "a value is malformed" },
	{ "scalws-state 3\none n=%zz\nend\n", "a value is malformed" },
	{ "scalws-state 3\none n=\x01\nend\n", "a value is malformed" },
};

START_TEST(malformed_is_refused)
{
	const char *why;
	struct state *in =
	    state_read(malformed[_i].text, strlen(malformed[_i].text), &why);
	int64_t number;

	if (in != NULL) {
		if (state_record(in, "one"))
			state_i64(in, "n", &number, 0, 10);
		ck_assert(!state_is_whole(in));
		why = state_error(in);
	}
	ck_assert_str_eq(why, malformed[_i].why);
	state_free(&in);
}
END_TEST

/* ---- all of it ---- */

static void
fill(struct saved *saved)
{
	struct saved_app *app;
	struct saved_instance *instance;

	memset(saved, 0, sizeof(*saved));
	saved->conf_path = mem_strdup("/etc/scalws.conf");
	saved->exe_path = mem_strdup("/usr/sbin/scalwsd");
	saved->run_path = mem_strdup("/run/scalws");
	saved->why = mem_strdup("");
	saved->conf = mem_strdup("text\nof it");
	saved->conf_len = strlen(saved->conf);
	saved->first = mem_strdup("");
	saved->tickets = mem_strdup("key");
	saved->tickets_len = 3;
	saved->n_secrets = 1;
	saved->secrets = mem_alloc_array(1, sizeof(*saved->secrets));
	saved->secrets[0].path = mem_strdup("/etc/ssl/a.pem");
	saved->secrets[0].fd = 9;
	saved->lock_fd = 5;
	saved->n_clients = 1;
	saved->clients = mem_alloc_array(1, sizeof(*saved->clients));
	saved->clients[0].fd = 10;
	saved->clients[0].in = mem_strdup("");
	saved->clients[0].out = mem_strdup("o a li");
	saved->clients[0].out_len = 6;
	saved->clients[0].follows = mem_strdup("api");
	saved->proxy.pid = 100;
	saved->proxy.fd = 6;
	saved->n_apps = 1;
	saved->apps = mem_alloc_array(1, sizeof(*saved->apps));
	app = &saved->apps[0];
	app->name = mem_strdup("api");
	app->n_words = 1;
	app->words = mem_alloc_array(1, sizeof(char *));
	app->words[0] = mem_strdup("A=b c");
	app->n_instances = 1;
	app->instances = mem_alloc_array(1, sizeof(*app->instances));
	instance = &app->instances[0];
	instance->state = INSTANCE_RUNNING;
	instance->id = 7;
	instance->timer_left_ms = -1;
	instance->pipes[0].fd = 8;
	instance->pipes[0].part = mem_strdup("half a li");
	instance->pipes[0].part_len = 9;
	instance->pipes[1].fd = -1;
	instance->pipes[1].part = mem_strdup("");
}

START_TEST(a_supervisor_comes_back)
{
	struct saved saved, again;
	struct state *out = state_write(), *in;
	const char *why;
	struct str text;
	size_t n;

	fill(&saved);
	ck_assert_int_eq(saved_exchange(&saved, out), 0);
	text = state_text(out);
	in = state_read(text.ptr, text.len, &why);
	memset(&again, 0, sizeof(again));
	ck_assert_int_eq(saved_exchange(&again, in), 0);
	ck_assert_uint_eq(again.n_apps, 1);
	ck_assert_str_eq(again.apps[0].words[0], "A=b c");
	ck_assert_uint_eq(again.apps[0].instances[0].id, 7);
	ck_assert_str_eq(again.apps[0].instances[0].pipes[0].part, "half a li");
	ck_assert_str_eq(again.conf, "text\nof it");
	ck_assert_str_eq(again.clients[0].out, "o a li");
	state_fds(in, &n);
	ck_assert_uint_eq(n, 10); /* some of them 0 here */
	saved_free(&again);
	saved_free(&saved);
	state_free(&in);
	state_free(&out);
}
END_TEST

/* Whatever is cut off, it is noticed. */
START_TEST(a_part_is_refused)
{
	struct saved saved, again;
	struct state *out = state_write(), *in;
	const char *why;
	struct str text;

	fill(&saved);
	ck_assert_int_eq(saved_exchange(&saved, out), 0);
	text = state_text(out);
	for (size_t len = 0; len + 5 < text.len; len += 7) {
		char *part = mem_printf("%.*s\nend\n", (int)len, text.ptr);

		memset(&again, 0, sizeof(again));
		in = state_read(part, strlen(part), &why);
		if (in != NULL)
			ck_assert_int_eq(saved_exchange(&again, in), -1);
		saved_free(&again);
		state_free(&in);
		mem_free(part);
	}
	saved_free(&saved);
	state_free(&out);
}
END_TEST

/* A new field makes all of them useless to the fuzzer: what an upgrade writes
 * then is the new `whole` (shortened), and the others are made of that. */
START_TEST(seeds_are_of_today)
{
	const char *top = getenv("top_srcdir"), *why = NULL;
	char *path =
	    mem_printf("%s/t/fuzz/corpus/state/whole", top == NULL ? "." : top);
	struct saved saved;
	struct state *state;
	size_t len;
	char *text;

	ck_assert_int_eq(fd_read_file(path, 1 << 20, &text, &len), 0);
	state = state_read(text, len, &why);
	ck_assert_msg(state != NULL, "%s", why);
	memset(&saved, 0, sizeof(saved));
	ck_assert_msg(
	    saved_exchange(&saved, state) == 0, "%s", state_error(state));
	saved_free(&saved);
	state_free(&state);
	mem_free(text);
	mem_free(path);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("state");
	TCase *tcase = tcase_create("state");

	tcase_add_test(tcase, fields_come_back);
	tcase_add_loop_test(
	    tcase, malformed_is_refused, 0, (int)ARRAY_LEN(malformed));
	tcase_add_test(tcase, a_supervisor_comes_back);
	tcase_add_test(tcase, a_part_is_refused);
	tcase_add_test(tcase, seeds_are_of_today);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
