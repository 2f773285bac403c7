/*
 * What the proxies before us say of a request's way: who the client is, and how
 * many more may follow.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/http/forwarded.h"
#include "proxy/http/h1_parse.h"
#include "proxy/http/max_forwards.h"
#include "t/unit/run.h"

static const struct h1_limits limits = { 200, 2000, 20 };

/* --- who the client is --------------------------------------------------- */

#define FOR(value) "X-Forwarded-For: " value "\r\n"
#define PROTO(value) "X-Forwarded-Proto: " value "\r\n"
#define VIA_HOST(value) "X-Forwarded-Host: " value "\r\n"

START_TEST(clients)
{
	static const struct {
		const char *peer, *fields, *client, *host;
		bool before, https;
	} rows[] = {
		{ "10.0.0.1", "", "10.0.0.1", "", false, false },
		{ "192.0.2.9", FOR("1.1.1.1") PROTO("https") VIA_HOST("x"),
		    "192.0.2.9", "", false, false },
		{ "192.0.2.9", PROTO("http"), "192.0.2.9", "", true, true },
		{ "10.0.0.1", FOR("1.1.1.1"), "1.1.1.1", "", false, false },
		{ "10.0.0.1", FOR("6.6.6.6, 1.1.1.1"), "1.1.1.1", "", false,
		    false },
		{ "10.0.0.1", FOR("1.1.1.1, 10.0.0.2"), "1.1.1.1", "", false,
		    false },
		{ "10.0.0.1", FOR("6.6.6.6") FOR("1.1.1.1") FOR("10.2.2.2"),
		    "1.1.1.1", "", false, false },
		{ "10.0.0.1", FOR("10.0.0.3,10.0.0.2"), "10.0.0.3", "", false,
		    false },
		{ "10.0.0.1", FOR("1.1.1.1, unknown"), "10.0.0.1", "", false,
		    false },
		{ "10.0.0.1", FOR("1.1.1.1, junk, 10.0.0.2"), "10.0.0.2", "",
		    false, false },
		{ "10.0.0.1", FOR("1.1.1.1,"), "10.0.0.1", "", false, false },
		{ "10.0.0.1", FOR(""), "10.0.0.1", "", false, false },
		{ "10.0.0.1", FOR("1.1.1.1:4711"), "1.1.1.1", "", false,
		    false },
		{ "10.0.0.1", FOR("1.1.1.1:x"), "10.0.0.1", "", false, false },
		{ "10.0.0.1", FOR("1.1.1.1:99999"), "10.0.0.1", "", false,
		    false },
		{ "10.0.0.1", FOR("2001:db8::1"), "2001:db8::1", "", false,
		    false },
		{ "10.0.0.1", FOR("[2001:db8::1]"), "2001:db8::1", "", false,
		    false },
		{ "10.0.0.1", FOR("[2001:db8::1]:80"), "2001:db8::1", "", false,
		    false },
		{ "10.0.0.1", FOR("[2001:db8::1]80"), "10.0.0.1", "", false,
		    false },
		{ "::ffff:10.0.0.1", FOR("1.1.1.1"), "1.1.1.1", "", false,
		    false },
		{ "10.0.0.1", PROTO("https"), "10.0.0.1", "", false, true },
		{ "10.0.0.1", PROTO("HTTPS"), "10.0.0.1", "", false, true },
		{ "10.0.0.1", PROTO("http"), "10.0.0.1", "", true, false },
		{ "10.0.0.1", PROTO("http, https"), "10.0.0.1", "", false,
		    true },
		{ "10.0.0.1", PROTO("https") PROTO("http"), "10.0.0.1", "",
		    true, false },
		{ "10.0.0.1", PROTO("gopher"), "10.0.0.1", "", true, true },
		{ "10.0.0.1", VIA_HOST("A.b:81"), "10.0.0.1", "A.b:81", false,
		    false },
		{ "10.0.0.1", VIA_HOST("a, b"), "10.0.0.1", "b", false, false },
		{ "10.0.0.1", VIA_HOST("a/b"), "10.0.0.1", "", false, false },
	};
	struct addr_range trusted[1];

	ck_assert_int_eq(addr_range_parse(STR("10.0.0.0/8"), trusted), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char raw[512] = "GET / HTTP/1.0\r\n", text[ADDR_TEXT_MAX];
		size_t scanned = 0, used, len;
		static struct h1_request request;
		struct forwarded got;
		struct addr peer;
		unsigned status;
		const char *why;

		strcat(raw, rows[i].fields);
		strcat(raw, "\r\n");
		ck_assert_int_eq(h1_parse_request(raw, strlen(raw), &limits,
				     &scanned, &request, &used, &status, &why),
		    H1_DONE);
		ck_assert_int_eq(
		    addr_parse_host(str_of(rows[i].peer), &peer), 0);
		forwarded_resolve(&request.headers, raw, &peer, rows[i].before,
		    trusted, 1, &got);
		len = addr_format_host(&got.client, text);
		ck_assert_msg(
		    str_eq((struct str){ text, len }, str_of(rows[i].client)),
		    "%s: %s, not %s", rows[i].fields, text, rows[i].client);
		ck_assert_msg(got.https == rows[i].https, "%s", rows[i].fields);
		ck_assert_msg(str_eq(got.host, str_of(rows[i].host)), "%s",
		    rows[i].fields);
	}
}
END_TEST

/* --- how many more may follow -------------------------------------------- */

START_TEST(max_forwards)
{
	static const struct {
		const char *method, *fields, *next;
		bool is_read;
		uint64_t left;
	} rows[] = {
		{ "OPTIONS", "", NULL, false, 0 },
		{ "OPTIONS", "Max-Forwards: 0\r\n", "0", true, 0 },
		{ "OPTIONS", "Max-Forwards: 1\r\n", "0", true, 1 },
		{ "OPTIONS", "max-forwards: 10\r\n", "9", true, 10 },
		{ "OPTIONS", "Max-Forwards: 18446744073709551615\r\n",
		    "18446744073709551614", true, UINT64_MAX },
		{ "OPTIONS", "Max-Forwards: 18446744073709551616\r\n",
		    "18446744073709551616", false, 0 },
		{ "OPTIONS", "Max-Forwards: -1\r\n", "-1", false, 0 },
		{ "OPTIONS", "Max-Forwards: 5 5\r\n", "5 5", false, 0 },
		{ "OPTIONS", "Max-Forwards:\r\n", "", false, 0 },
		{ "GET", "Max-Forwards: 0\r\n", "0", false, 0 },
		{ "PUT", "Max-Forwards: 7\r\n", "7", false, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char raw[512], room[20];
		static struct h1_request request;
		size_t scanned = 0, used;
		uint64_t left = 0;
		unsigned status;
		const char *why;
		struct str next;

		snprintf(raw, sizeof(raw), "%s / HTTP/1.0\r\n%s\r\n",
		    rows[i].method, rows[i].fields);
		ck_assert_int_eq(h1_parse_request(raw, strlen(raw), &limits,
				     &scanned, &request, &used, &status, &why),
		    H1_DONE);
		ck_assert(
		    max_forwards_read(&request, raw, &left) == rows[i].is_read);
		if (rows[i].is_read)
			ck_assert_uint_eq(left, rows[i].left);
		next = max_forwards_next(&request, raw, room);
		ck_assert((next.ptr == NULL) == (rows[i].next == NULL));
		if (next.ptr != NULL)
			ck_assert_msg(str_eq(next, str_of(rows[i].next)),
			    "%s: %.*s", rows[i].fields, (int)next.len,
			    next.ptr);
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { clients, max_forwards };
	Suite *suite = suite_create("hops");
	TCase *all = tcase_create("hops");

	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		tcase_add_test(all, tests[i]);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
