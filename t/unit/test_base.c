/*
 * Unit tests of the pure half of src/base: text, addresses, hashing, dates.
 * Run by make check. Touches no file and no socket.
 */
#include <arpa/inet.h>
#include <check.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/addr.h"
#include "src/base/arena.h"
#include "src/base/clock.h"
#include "src/base/hash.h"
#include "src/base/list.h"
#include "src/base/mem.h"
#include "src/base/str.h"
#include "src/base/strbuf.h"
#include "t/unit/run.h"

START_TEST(str_compare)
{
	ck_assert(str_eq_nocase(STR("Content-Type"), STR("cONTENT-tYPE")));
	ck_assert(!str_eq_nocase(STR("a"), STR("ab")));
	/* '[' and '{' differ by the case bit but are no letters. */
	ck_assert(!str_eq_nocase(STR("["), STR("{")));
	ck_assert(str_starts_with(STR("unix:/x"), STR("unix:")));
	ck_assert(!str_starts_with(STR("uni"), STR("unix:")));
	ck_assert(str_ends_with(STR("a.php"), STR(".php")));
	ck_assert(!str_ends_with(STR("php"), STR(".php")));
	ck_assert(str_ends_with(STR("x"), STR("")));
	ck_assert(str_eq((struct str){ NULL, 0 }, STR("")));
}
END_TEST

START_TEST(str_trimmed)
{
	ck_assert(str_eq(str_trim(STR(" \t a b\t ")), STR("a b")));
	ck_assert_uint_eq(str_trim(STR(" \t ")).len, 0);
	ck_assert_uint_eq(str_trim(STR("")).len, 0);
}
END_TEST

START_TEST(str_split_cases)
{
	static const struct {
		const char *in, *out; /* parts, each followed by '|' */
	} cases[] = {
		{ "", "|" },
		{ "a", "a|" },
		{ "a,b", "a|b|" },
		{ ",", "||" },
		{ "a,,b,", "a||b||" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct str rest = str_of(cases[i].in), part;
		struct strbuf out = STRBUF_EMPTY;

		while (str_split(&rest, ',', &part)) {
			strbuf_add(&out, part.ptr, part.len);
			strbuf_add(&out, "|", 1);
		}
		ck_assert_str_eq(out.ptr, cases[i].out);
		ck_assert(!str_split(&rest, ',', &part));
		strbuf_free(&out);
	}
}
END_TEST

START_TEST(str_numbers_in)
{
	static const struct {
		const char *in;
		uint64_t max, out;
		int result;
	} cases[] = {
		{ "0", 9, 0, 0 },
		{ "65535", 65535, 65535, 0 },
		{ "65536", 65535, 0, -1 },
		{ "18446744073709551615", UINT64_MAX, UINT64_MAX, 0 },
		{ "18446744073709551616", UINT64_MAX, 0, -1 },
		{ "99999999999999999999999", UINT64_MAX, 0, -1 },
		{ "007", 10, 7, 0 },
		{ "", 10, 0, -1 },
		{ "+1", 10, 0, -1 },
		{ "-1", 10, 0, -1 },
		{ " 1", 10, 0, -1 },
		{ "1 ", 10, 0, -1 },
		{ "0x1", 10, 0, -1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t value = 0;

		ck_assert_int_eq(
		    str_to_u64(str_of(cases[i].in), cases[i].max, &value),
		    cases[i].result);
		ck_assert_uint_eq(value, cases[i].out);
	}
}
END_TEST

START_TEST(str_numbers_out)
{
	static const uint64_t values[] = { 0, 9, 10, 255, 4096, UINT64_MAX };

	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		char text[21], expected[32];

		text[str_put_u64(text, values[i])] = '\0';
		snprintf(
		    expected, sizeof(expected), "%ju", (uintmax_t)values[i]);
		ck_assert_str_eq(text, expected);
		text[str_put_hex(text, values[i])] = '\0';
		snprintf(
		    expected, sizeof(expected), "%jx", (uintmax_t)values[i]);
		ck_assert_str_eq(text, expected);
	}
}
END_TEST

START_TEST(str_lines)
{
	static const struct {
		const char *lines, *line;
	} cases[] = {
		{ "", "" },
		{ "\n", "" },
		{ "one", "one" },
		{ "one\n", "one" },
		{ "a\nb\nc\n", "a; b; c" },
		{ "1234567", "1234567" },
		{ "12345678", "1234567" },
		{ "123456\n8", "123456" },
		{ "12345\n8", "12345; " },
	};
	char to[8];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		str_put_line(to, sizeof(to), cases[i].lines);
		ck_assert_str_eq(to, cases[i].line);
	}
}
END_TEST

START_TEST(str_lowered)
{
	char text[] = "AbZ[@`{\xc3";

	str_lower(text, text, sizeof(text));
	ck_assert_str_eq(text, "abz[@`{\xc3");
}
END_TEST

START_TEST(str_distances)
{
	static const struct {
		const char *a, *b;
		unsigned edits;
	} cases[] = {
		{ "", "", 0 },
		{ "", "abc", 3 },
		{ "abc", "", 3 },
		{ "module", "module", 0 },
		{ "modul", "module", 1 },
		{ "modlue", "module", 1 },
		{ "kitten", "sitting", 3 },
		{ "ca", "abc", 3 },
	};
	char longest[65];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		ck_assert_uint_eq(
		    str_distance(cases[i].a, cases[i].b), cases[i].edits);
	memset(longest, 'x', 64);
	longest[64] = '\0';
	ck_assert_uint_gt(str_distance(longest, longest), 63);
	longest[63] = '\0';
	ck_assert_uint_eq(str_distance(longest, longest), 0);
}
END_TEST

START_TEST(strbuf_grows)
{
	struct strbuf buf = STRBUF_EMPTY;
	char *text;

	for (int i = 0; i < 1000; i++)
		strbuf_printf(&buf, "%d,", i);
	strbuf_add_text(&buf, "end");
	ck_assert_uint_eq(buf.len, strlen(buf.ptr));
	ck_assert_uint_eq(buf.len, 10 * 2 + 90 * 3 + 900 * 4 + 3);
	text = strbuf_take(&buf);
	ck_assert(memcmp(text, "0,1,2,", 6) == 0);
	ck_assert_ptr_null(buf.ptr);
	mem_free(text);
	text = strbuf_take(&buf);
	ck_assert_str_eq(text, "");
	mem_free(text);
}
END_TEST

START_TEST(arena_gives_zeroed_aligned)
{
	struct arena *arena = arena_new();
	size_t dirty = 0;
	char *text;

	for (size_t size = 0; size < 5000; size += 7) {
		unsigned char *piece = arena_alloc(arena, size);

		ck_assert_uint_eq((uintptr_t)piece % _Alignof(max_align_t), 0);
		for (size_t i = 0; i < size; i++)
			dirty += piece[i] != 0;
		memset(piece, 0xa5, size);
	}
	ck_assert_uint_eq(dirty, 0);
	text = arena_printf(arena, "%s:%d", "a", 7);
	ck_assert_str_eq(text, "a:7");
	ck_assert_str_eq(arena_memdup0(arena, "abcdef", 3), "abc");
	ck_assert_ptr_null(arena_strdup(arena, NULL));
	ck_assert_str_eq(arena_strdup(arena, "x"), "x");
	arena_free(arena);
	arena_free(NULL);
}
END_TEST

START_TEST(mem_copies)
{
	char *text = mem_printf("%d-%s", 5, "x");
	unsigned *numbers = mem_alloc_array(10, sizeof(*numbers));

	ck_assert_str_eq(text, "5-x");
	for (int i = 0; i < 10; i++)
		ck_assert_uint_eq(numbers[i], 0);
	numbers = mem_realloc(numbers, 1000, sizeof(*numbers));
	numbers[999] = 1;
	mem_free(numbers);
	mem_free(text);
	ck_assert_ptr_null(mem_strdup(NULL));
	text = mem_memdup0(NULL, 0);
	ck_assert_str_eq(text, "");
	mem_free(text);
}
END_TEST

START_TEST(mem_overflow_aborts)
{
	mem_free(mem_alloc_array(SIZE_MAX / 2, 3));
}
END_TEST

START_TEST(hash_map_cases)
{
	enum { COUNT = 2000 };
	struct hash_map *map = hash_map_new();
	static int values[COUNT];
	char key[16];

	for (int i = 0; i < COUNT; i++) {
		snprintf(key, sizeof(key), "key%d", i);
		ck_assert_int_eq(hash_map_add(map, str_of(key), &values[i]), 0);
		ck_assert_int_eq(
		    hash_map_add(map, str_of(key), &values[0]), -1);
	}
	ck_assert_uint_eq(hash_map_count(map), COUNT);
	for (int i = 0; i < COUNT; i += 2) {
		snprintf(key, sizeof(key), "key%d", i);
		ck_assert_ptr_eq(hash_map_remove(map, str_of(key)), &values[i]);
		ck_assert_ptr_null(hash_map_remove(map, str_of(key)));
	}
	for (int i = 0; i < COUNT; i++) {
		snprintf(key, sizeof(key), "key%d", i);
		ck_assert_ptr_eq(hash_map_get(map, str_of(key)),
		    i % 2 == 0 ? NULL : &values[i]);
	}
	ck_assert_uint_eq(hash_map_count(map), COUNT / 2);
	/* Keys are bytes: a NUL inside is one of them. */
	ck_assert_int_eq(hash_map_add(map, STR("a\0b"), &values[1]), 0);
	ck_assert_ptr_null(hash_map_get(map, STR("a")));
	ck_assert_int_eq(hash_map_add(map, STR(""), &values[2]), 0);
	ck_assert_ptr_eq(hash_map_get(map, STR("")), &values[2]);
	hash_map_free(map);
	hash_map_free(NULL);
}
END_TEST

START_TEST(hash_spreads)
{
	ck_assert(hash_bytes("abc", 3) == hash_bytes("abc", 3));
	ck_assert(hash_bytes("abc", 3) != hash_bytes("abd", 3));
	ck_assert(hash_bytes("", 0) != hash_bytes("\0", 1));
	ck_assert(hash_bytes("12345678", 8) != hash_bytes("12345678\0", 9));
}
END_TEST

struct item {
	int number;
	struct list node;
};

START_TEST(list_cases)
{
	struct list head, *node, *after;
	struct item items[4] = { { .number = 0 } };
	int expected = 0;

	list_init(&head);
	ck_assert(list_is_empty(&head));
	ck_assert_ptr_null(list_first(&head));
	list_remove(&items[0].node); /* in no list: nothing happens */
	for (int i = 1; i < 4; i++) {
		items[i].number = i;
		list_push_back(&head, &items[i].node);
	}
	list_push_front(&head, &items[0].node);
	LIST_FOREACH_SAFE(node, after, &head)
	{
		struct item *item = LIST_ENTRY(node, struct item, node);

		ck_assert_int_eq(item->number, expected++);
		list_remove(node);
		ck_assert(!list_is_linked(node));
	}
	ck_assert_int_eq(expected, 4);
	ck_assert(list_is_empty(&head));
}
END_TEST

START_TEST(clock_dates)
{
	static const struct {
		int64_t ms;
		const char *iso, *http, *clf;
	} cases[] = {
		{ 0, "1970-01-01T00:00:00.000Z",
		    "Thu, 01 Jan 1970 00:00:00 GMT",
		    "01/Jan/1970:00:00:00 +0000" },
		{ 784111777123, "1994-11-06T08:49:37.123Z",
		    "Sun, 06 Nov 1994 08:49:37 GMT",
		    "06/Nov/1994:08:49:37 +0000" },
		{ 951782399999, "2000-02-28T23:59:59.999Z",
		    "Mon, 28 Feb 2000 23:59:59 GMT",
		    "28/Feb/2000:23:59:59 +0000" },
		{ 951782400000, "2000-02-29T00:00:00.000Z",
		    "Tue, 29 Feb 2000 00:00:00 GMT",
		    "29/Feb/2000:00:00:00 +0000" },
		{ 4107542400000, "2100-03-01T00:00:00.000Z",
		    "Mon, 01 Mar 2100 00:00:00 GMT",
		    "01/Mar/2100:00:00:00 +0000" },
		{ -5, "1970-01-01T00:00:00.000Z",
		    "Thu, 01 Jan 1970 00:00:00 GMT",
		    "01/Jan/1970:00:00:00 +0000" },
		{ INT64_MAX, "9999-12-31T23:59:59.807Z",
		    "Fri, 31 Dec 9999 23:59:59 GMT",
		    "31/Dec/9999:23:59:59 +0000" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[64] = { 0 };

		clock_put_iso(text, cases[i].ms);
		ck_assert_str_eq(text, cases[i].iso);
		memset(text, 0, sizeof(text));
		clock_put_http(text, cases[i].ms / 1000);
		ck_assert_str_eq(text, cases[i].http);
		memset(text, 0, sizeof(text));
		clock_put_clf(text, cases[i].ms / 1000);
		ck_assert_str_eq(text, cases[i].clf);
	}
}
END_TEST

START_TEST(clock_agrees_with_libc)
{
	/* A prime step of days, so that all months and weekdays come up. */
	for (int64_t s = 0; s < INT64_C(10000000000); s += 86400 * 37 + 3601) {
		time_t when = (time_t)s;
		struct tm tm;
		char ours[CLOCK_HTTP_LEN + 1] = { 0 }, theirs[64];

		ck_assert_ptr_nonnull(gmtime_r(&when, &tm));
		strftime(
		    theirs, sizeof(theirs), "%a, %d %b %Y %H:%M:%S GMT", &tm);
		clock_put_http(ours, s);
		ck_assert_str_eq(ours, theirs);
	}
}
END_TEST

START_TEST(addr_parsed)
{
	static const struct {
		const char *in;
		enum addr_error error;
		const char *out;
	} cases[] = {
		{ "10.0.0.5:80", ADDR_OK, "10.0.0.5:80" },
		{ "[::1]:8080", ADDR_OK, "[::1]:8080" },
		{ "[::]:1", ADDR_OK, "[::]:1" },
		{ "[::ffff:10.0.0.5]:80", ADDR_OK, "10.0.0.5:80" },
		{ "[2001:DB8:0::1]:65535", ADDR_OK, "[2001:db8::1]:65535" },
		{ "unix:/run/x.sock", ADDR_OK, "unix:/run/x.sock" },
		{ "/run/x.sock", ADDR_OK, "unix:/run/x.sock" },
		{ "unix:x.sock", ADDR_BAD, NULL },
		{ "unix:", ADDR_BAD, NULL },
		{ "", ADDR_BAD, NULL },
		{ ":80", ADDR_BAD, NULL },
		{ "::1", ADDR_BAD, NULL },
		{ "[::1", ADDR_BAD, NULL },
		{ "[]:80", ADDR_BAD, NULL },
		{ "[10.0.0.5]:80", ADDR_BAD, NULL },
		{ "[fe80::1%eth0]:80", ADDR_BAD, NULL },
		{ "10.0.0.256:80", ADDR_BAD, NULL },
		{ "10.0.0:80", ADDR_BAD, NULL },
		{ "http://a.example/", ADDR_BAD, NULL },
		{ "10.0.0.5", ADDR_BAD_PORT, NULL },
		{ "10.0.0.5:", ADDR_BAD_PORT, NULL },
		{ "10.0.0.5:0", ADDR_BAD_PORT, NULL },
		{ "10.0.0.5:65536", ADDR_BAD_PORT, NULL },
		{ "10.0.0.5:80x", ADDR_BAD_PORT, NULL },
		{ "[::1]80", ADDR_BAD_PORT, NULL },
		{ "[::1]", ADDR_BAD_PORT, NULL },
		{ "localhost:80", ADDR_NAME, NULL },
		{ "localhost", ADDR_NAME, NULL },
		{ "db-1.example.com:5432", ADDR_NAME, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct addr addr;
		char text[ADDR_TEXT_MAX];

		ck_assert_msg(
		    addr_parse(str_of(cases[i].in), &addr) == cases[i].error,
		    "%s", cases[i].in);
		if (cases[i].error == ADDR_OK)
			ck_assert_str_eq(
			    addr_format(&addr, text), cases[i].out);
	}
}
END_TEST

START_TEST(addr_unix_lengths)
{
	char path[128];
	struct addr addr;
	char text[ADDR_TEXT_MAX];

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[107] = '\0';
	ck_assert_int_eq(addr_unix(path, &addr), 0);
	ck_assert_str_eq(addr_format(&addr, text) + 5, path);
	path[107] = 'x';
	path[108] = '\0';
	ck_assert_int_eq(addr_unix(path, &addr), -1);
	ck_assert_int_eq(addr_parse(str_of(path), &addr), ADDR_TOO_LONG);
	ck_assert_int_eq(addr_unix("relative", &addr), -1);
	ck_assert_int_eq(addr_parse(STR("/run/\0x"), &addr), ADDR_BAD);
	ck_assert_int_eq(addr_parse(STR("10.0.0.5\0:80"), &addr), ADDR_BAD);
}
END_TEST

START_TEST(addr_odd_forms)
{
	char text[ADDR_TEXT_MAX];
	struct addr none = { .len = 0 };
	struct addr unnamed = { .len = sizeof(sa_family_t) };

	unnamed.u.sa.sa_family = AF_UNIX;
	ck_assert_str_eq(addr_format(&none, text), "none");
	ck_assert_str_eq(addr_format(&unnamed, text), "unix:");
	ck_assert_uint_eq(addr_format_host(&unnamed, text), 4);
	ck_assert_str_eq(text, "unix");
	ck_assert_uint_eq(addr_port(&unnamed), 0);
	ck_assert(!addr_eq(&none, &unnamed));
}
END_TEST

static struct addr
host_of(const char *text)
{
	struct addr addr = { .len = 0 };

	if (strcmp(text, "unix") == 0)
		ck_assert_int_eq(addr_unix("/x", &addr), 0);
	else
		ck_assert_int_eq(addr_parse_host(str_of(text), &addr), 0);
	return addr;
}

START_TEST(addr_hosts)
{
	static const char *const bad[] = { "", "10.0.0.1:80", "10.0.0", "::g",
		"[::1", "[::1]:80", "unknown", "1.2.3.4 ", "_hidden" };
	struct addr addr;
	char text[ADDR_TEXT_MAX];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ck_assert_int_eq(addr_parse_host(str_of(bad[i]), &addr), -1);
	addr = host_of("[2001:db8::7]");
	ck_assert_uint_eq(addr_format_host(&addr, text), 11);
	ck_assert_str_eq(text, "2001:db8::7");
}
END_TEST

/* The same as libc's, over all patterns of zero words. */
START_TEST(addr_hosts_as_libc)
{
	struct addr four = host_of("1.2.3.4"), six = host_of("1::2");
	uint8_t *bytes = six.u.in6.sin6_addr.s6_addr;
	char ours[ADDR_TEXT_MAX], theirs[INET6_ADDRSTRLEN];

	for (unsigned i = 0; i < 256 * 5; i++) {
		static const uint8_t values[] = { 0x20, 0x01, 0x0d, 0, 0xff };

		/* ::a.b.c.d is libc's way to write some; ours is hex. */
		for (unsigned w = 0; w < 8; w++) {
			bool zero = (i >> w & 1) == 0 && w != 1;

			bytes[2 * w] = zero ? 0 : values[(i + w) % 5];
			bytes[2 * w + 1] = zero ? 0 : 1;
		}
		inet_ntop(AF_INET6, bytes, theirs, sizeof(theirs));
		ck_assert_uint_eq(addr_format_host(&six, ours), strlen(theirs));
		ck_assert_str_eq(ours, theirs);
		memset(&four.u.in.sin_addr, (int)(i & 255), 4);
		inet_ntop(AF_INET, &four.u.in.sin_addr, theirs, sizeof(theirs));
		ck_assert_uint_eq(
		    addr_format_host(&four, ours), strlen(theirs));
		ck_assert_str_eq(ours, theirs);
	}
}
END_TEST

START_TEST(addr_equal_and_hash)
{
	struct addr a = host_of("10.0.0.1"), b = host_of("10.0.0.1");
	struct addr mapped = host_of("::ffff:10.0.0.1");
	struct addr six = host_of("2001:db8::1");
	struct addr neighbour = host_of("2001:db8::ffff:1");
	struct addr other = host_of("2001:db8:0:1::1");

	ck_assert(addr_eq(&a, &b));
	ck_assert(addr_eq(&a, &mapped));
	b.u.in.sin_port = htons(1);
	ck_assert(!addr_eq(&a, &b));
	ck_assert(!addr_eq(&a, &six));
	ck_assert(addr_hash_client(&a) == addr_hash_client(&b));
	ck_assert(addr_hash_client(&a) == addr_hash_client(&mapped));
	ck_assert(addr_hash_client(&six) == addr_hash_client(&neighbour));
	ck_assert(addr_hash_client(&six) != addr_hash_client(&other));
}
END_TEST

START_TEST(addr_ranges)
{
	static const struct {
		const char *range, *addr;
		bool in;
	} cases[] = {
		{ "10.0.0.0/8", "10.255.0.1", true },
		{ "10.0.0.0/8", "11.0.0.1", false },
		{ "10.0.0.0/9", "10.128.0.0", false },
		{ "10.0.0.0/8", "::ffff:10.1.1.1", true },
		{ "::ffff:10.0.0.0/104", "10.1.1.1", true },
		{ "::ffff:10.0.0.0/104", "11.1.1.1", false },
		{ "0.0.0.0/0", "255.255.255.255", true },
		{ "0.0.0.0/0", "::1", false },
		{ "192.0.2.7", "192.0.2.7", true },
		{ "192.0.2.7", "192.0.2.6", false },
		{ "192.0.2.7/32", "192.0.2.7", true },
		{ "::1", "::1", true },
		{ "fd00::/8", "fdff::1", true },
		{ "fd00::/8", "fc00::1", false },
		{ "::/0", "::1", true },
		{ "unix", "unix", true },
		{ "unix", "10.0.0.1", false },
		{ "10.0.0.0/8", "unix", false },
	};
	static const char *const bad[] = { "", "/8", "10.0.0.0/", "10.0.0.0/33",
		"10.0.0.0/-1", "::/129", "example.com", "10.0.0.0/8/8",
		"::ffff:10.0.0.0/95", "10.0.0.0/255.0.0.0" };
	struct addr_range range;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct addr addr = host_of(cases[i].addr);

		ck_assert_int_eq(
		    addr_range_parse(str_of(cases[i].range), &range), 0);
		ck_assert_msg(addr_in_range(&addr, &range) == cases[i].in,
		    "%s in %s", cases[i].addr, cases[i].range);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ck_assert_msg(addr_range_parse(str_of(bad[i]), &range) == -1,
		    "%s", bad[i]);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { str_compare, str_trimmed,
		str_split_cases, str_numbers_in, str_numbers_out, str_lines,
		str_lowered, str_distances, strbuf_grows,
		arena_gives_zeroed_aligned, mem_copies, hash_map_cases,
		hash_spreads, list_cases, clock_dates, clock_agrees_with_libc,
		addr_parsed, addr_unix_lengths, addr_odd_forms, addr_hosts,
		addr_hosts_as_libc, addr_equal_and_hash, addr_ranges };
	Suite *suite = suite_create("base");
	TCase *all = tcase_create("pure");

	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		tcase_add_test(all, tests[i]);
	tcase_add_test_raise_signal(all, mem_overflow_aborts, 6);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
