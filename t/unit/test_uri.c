/*
 * Targets: normal form, hosts, patterns, prefixes, encoding.
 * Run by make check.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/http/uri.h"
#include "t/unit/run.h"

#define RAW(text) text, sizeof(text) - 1

START_TEST(normalized)
{
	static const struct {
		const char *in;
		size_t len;
		const char *out; /* NULL: bad */
	} rows[] = {
		{ RAW("/"), "/" },
		{ RAW("/a/b"), "/a/b" },
		{ RAW("/a/b/"), "/a/b/" },
		{ RAW("/.a/..b/c."), "/.a/..b/c." },
		{ RAW("/.well-known/x"), "/.well-known/x" },
		{ RAW("/..."), "/..." },
		{ RAW("/a[1]|b^"), "/a[1]|b^" },
		{ RAW("/a;b=c,d@e:f!$&'()*+~-_"), "/a;b=c,d@e:f!$&'()*+~-_" },
		/* Dot segments and slashes. */
		{ RAW("/a/./b/../c"), "/a/c" },
		{ RAW("/."), "/" },
		{ RAW("/./"), "/" },
		{ RAW("/a/."), "/a/" },
		{ RAW("/a/.."), "/" },
		{ RAW("/a/../"), "/" },
		{ RAW("/a/b/.."), "/a/" },
		{ RAW("/a/b/../.."), "/" },
		{ RAW("/a/b/../../c"), "/c" },
		{ RAW("//"), "/" },
		{ RAW("//a///b//"), "/a/b/" },
		{ RAW("/a//../b"), "/b" },
		{ RAW("/a/..//b"), "/b" },
		{ RAW("/.."), NULL },
		{ RAW("/../etc"), NULL },
		{ RAW("//../etc"), NULL },
		{ RAW("/./../etc"), NULL },
		{ RAW("/a/../../b"), NULL },
		{ RAW("/a/../.."), NULL },
		{ RAW("/..;/a"), "/..;/a" }, /* an ordinary segment */
		/* Escapes. */
		{ RAW("/%61%2Db"), "/a-b" },
		{ RAW("/%C3%BC"), "/\xc3\xbc" },
		{ RAW("/%c3%bc%20x"), "/\xc3\xbc x" },
		{ RAW("/%2e%2e/etc"), NULL },
		{ RAW("/.%2e/etc"), NULL },
		{ RAW("/%2E./etc"), NULL },
		{ RAW("/a/%2e%2E/b"), "/b" },
		{ RAW("/a/%2e/b"), "/a/b" },
		{ RAW("/a%2fb"), "/a%2Fb" },
		{ RAW("/a%2F..%2Fb"), "/a%2F..%2Fb" }, /* one segment */
		{ RAW("/..%2fetc"), "/..%2Fetc" },
		{ RAW("/%2f%2e%2e/etc"), "/%2F../etc" },
		{ RAW("/a%5Cb"), "/a\\b" },
		{ RAW("/..%5c..%5cetc"), "/..\\..\\etc" },
		{ RAW("/%3F%23"), "/?#" },
		{ RAW("/%25"), "/%" },
		{ RAW("/100%25.txt"), "/100%.txt" },
		{ RAW("/%252e%252e/etc"), "/%2e%2e/etc" }, /* once only */
		{ RAW("/%252F"), "/%252F" },
		{ RAW("/%252f"), "/%252f" },
		{ RAW("/%25252F"), "/%25252F" },
		{ RAW("/%25%32F"), "/%252F" },
		{ RAW("/%25%32%46"), "/%252F" },
		{ RAW("/%2525"), "/%2525" },
		{ RAW("/%2541"), "/%41" },
		{ RAW("/%00"), NULL },
		{ RAW("/a%00.php"), NULL },
		{ RAW("/%0d%0a"), NULL },
		{ RAW("/%09"), NULL },
		{ RAW("/%1f"), NULL },
		{ RAW("/%7f"), NULL },
		{ RAW("/%c0%ae%c0%ae/etc"), "/\xc0\xae\xc0\xae/etc" },
		{ RAW("/%"), NULL },
		{ RAW("/%2"), NULL },
		{ RAW("/%zz"), NULL },
		{ RAW("/%u002e"), NULL },
		{ RAW("/%+1"), NULL },
		{ RAW("/% 1"), NULL },
		{ RAW("/a%2"), NULL },
		/* Bytes. */
		{ RAW(""), NULL },
		{ RAW("a"), NULL },
		{ RAW("*"), NULL },
		{ RAW("%2Fa"), NULL },
		{ RAW("\\a"), NULL },
		{ RAW("/a b"), NULL },
		{ RAW("/a\\b"), NULL },
		{ RAW("/a\0b"), NULL },
		{ RAW("/a\nb"), NULL },
		{ RAW("/a\x7f"), NULL },
		{ RAW("/\xc3\xbc"), NULL },
		{ RAW("/a?b"), NULL },
		{ RAW("/a#b"), NULL },
		{ RAW("/<a>"), NULL },
		{ RAW("/\"a\""), NULL },
		{ RAW("/{a}"), NULL },
		{ RAW("/`a"), NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t len = rows[i].len;
		char *in = malloc(len + 1), *to = malloc(len + 1);
		struct str normal;
		enum uri_result got;

		memcpy(in, rows[i].in, len);
		got = uri_normalize((struct str){ in, len }, to, len, &normal);
		ck_assert_msg(
		    (got == URI_OK) == (rows[i].out != NULL), "%s", rows[i].in);
		if (got == URI_OK)
			ck_assert_msg(str_eq(normal, str_of(rows[i].out)),
			    "%s: %.*s", rows[i].in, (int)normal.len,
			    normal.ptr);
		/* What is normal already is not copied. */
		if (got == URI_OK && strchr(rows[i].in, '%') == NULL &&
		    strcmp(rows[i].in, rows[i].out) == 0)
			ck_assert_ptr_eq(normal.ptr, in);
		free(in);
		free(to);
	}
}
END_TEST

START_TEST(no_room)
{
	char to[2];
	struct str normal;

	ck_assert_int_eq(
	    uri_normalize(STR("//a"), to, sizeof(to), &normal), URI_BAD);
	ck_assert_int_eq(
	    uri_normalize(STR("/long/but/normal"), to, 0, &normal), URI_OK);
}
END_TEST

START_TEST(hosts)
{
	static const struct {
		const char *in;
		size_t len;
		const char *host, *port; /* host NULL: bad */
	} rows[] = {
		{ RAW("a"), "a", "" },
		{ RAW("WWW.Example.COM"), "www.example.com", "" },
		{ RAW("example.com."), "example.com", "" },
		{ RAW("example.com:80"), "example.com", "80" },
		{ RAW("example.com.:80"), "example.com", "80" },
		{ RAW("example.com:"), "example.com", "" },
		{ RAW("a_b-c~d.e"), "a_b-c~d.e", "" },
		{ RAW("xn--bcher-kva.example"), "xn--bcher-kva.example", "" },
		{ RAW("192.0.2.1"), "192.0.2.1", "" },
		{ RAW("192.0.2.1:65535"), "192.0.2.1", "65535" },
		{ RAW("[::1]"), "[::1]", "" },
		{ RAW("[2001:DB8::1]:80"), "[2001:db8::1]", "80" },
		{ RAW("[::ffff:192.0.2.1]:"), "[::ffff:192.0.2.1]", "" },
		{ RAW(""), NULL, NULL },
		{ RAW("."), NULL, NULL },
		{ RAW(".a"), NULL, NULL },
		{ RAW("a.."), NULL, NULL },
		{ RAW("a..b"), NULL, NULL },
		{ RAW(":80"), NULL, NULL },
		{ RAW("a:b"), NULL, NULL },
		{ RAW("a:65536"), NULL, NULL },
		{ RAW("a:-1"), NULL, NULL },
		{ RAW("a: 80"), NULL, NULL },
		{ RAW("a:80:80"), NULL, NULL },
		{ RAW("a b"), NULL, NULL },
		{ RAW(" a"), NULL, NULL },
		{ RAW("a/b"), NULL, NULL },
		{ RAW("a\\b"), NULL, NULL },
		{ RAW("a?b"), NULL, NULL },
		{ RAW("a@b"), NULL, NULL },
		{ RAW("a,b"), NULL, NULL },
		{ RAW("a;b"), NULL, NULL },
		{ RAW("a%41"), NULL, NULL },
		{ RAW("a\0b"), NULL, NULL },
		{ RAW("a\xff"), NULL, NULL },
		{ RAW("::1"), NULL, NULL },
		{ RAW("["), NULL, NULL },
		{ RAW("[]"), NULL, NULL },
		{ RAW("[]:80"), NULL, NULL },
		{ RAW("[a]"), NULL, NULL },
		{ RAW("[::1"), NULL, NULL },
		{ RAW("[::1]]"), NULL, NULL },
		{ RAW("[::1]80"), NULL, NULL },
		{ RAW("[::1]:x"), NULL, NULL },
		{ RAW("[::1%25lo]"), NULL, NULL },
		{ RAW("[::1\0]"), NULL, NULL },
		{ RAW("[v1.x]"), NULL, NULL },
		{ RAW("[1:2:3:4:5:6:7:8:9]"), NULL, NULL },
		{ RAW("x[::1]"), NULL, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *in = malloc(rows[i].len + 1), to[64];
		struct str host, port, value = { in, rows[i].len };
		int got;

		memcpy(in, rows[i].in, value.len);
		got = uri_host(value, to, sizeof(to), &host, &port);
		ck_assert_msg(
		    (got == 0) == (rows[i].host != NULL), "%s", rows[i].in);
		ck_assert(uri_host_is_valid(value) == (got == 0));
		if (got == 0) {
			ck_assert_msg(str_eq(host, str_of(rows[i].host)), "%s",
			    rows[i].in);
			ck_assert_msg(str_eq(port, str_of(rows[i].port)), "%s",
			    rows[i].in);
		}
		free(in);
	}
}
END_TEST

START_TEST(host_lengths)
{
	char name[257], to[8];
	struct str host, port;

	memset(name, 'a', sizeof(name));
	ck_assert(uri_host_is_valid((struct str){ name, 255 }));
	ck_assert(!uri_host_is_valid((struct str){ name, 256 }));
	ck_assert_int_eq(uri_host(STR("12345678"), to, 8, &host, &port), 0);
	ck_assert_int_eq(uri_host(STR("12345678."), to, 8, &host, &port), 0);
	ck_assert_int_eq(uri_host(STR("123456789"), to, 8, &host, &port), -1);
}
END_TEST

START_TEST(matches)
{
	static const struct {
		const char *pattern, *path;
		bool is_match;
	} rows[] = {
		{ "*", "/", true },
		{ "*", "/a/b", true },
		{ "/", "/", true },
		{ "/", "/a", false },
		{ "/a", "/a", true },
		{ "/a", "/A", false },
		{ "/a", "/a/", false },
		{ "/a", "/ab", false },
		{ "/a/", "/a", false },
		{ "/*", "/", true },
		{ "/*", "/a/b", true },
		{ "/static/*", "/static", true },
		{ "/static/*", "/static/", true },
		{ "/static/*", "/static/a/b", true },
		{ "/static/*", "/static_secret", false },
		{ "/static/*", "/static../x", false },
		{ "/static/*", "/a/static/b", false },
		{ "/static*", "/static_secret", true },
		{ "*.php", "/a/b.php", true },
		{ "*.php", "/a/b.php/c", false },
		{ "*.php", "/.php", true },
		{ "*.php", ".ph", false },
		{ "/a/*/b", "/a/x/b", true },
		{ "/a/*/b", "/a/x/y/b", true },
		{ "/a/*/b", "/a//b", true },
		{ "/a/*/b", "/a/b", false },
		{ "/a*b*c", "/abc", true },
		{ "/a*b*c", "/axbxbxc", true },
		{ "/a*b*c", "/axcxb", false },
		{ "/**", "/x", true },
		{ "/*/x/*", "/a/x", true },
		{ "/*/x/*", "/a/xy", false },
		{ "", "", true },
		{ "", "/", false },
		{ "/*aab", "/aaaaaab", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ck_assert_msg(uri_match(str_of(rows[i].pattern),
				  str_of(rows[i].path)) == rows[i].is_match,
		    "%s %s", rows[i].pattern, rows[i].path);
}
END_TEST

START_TEST(prefixes)
{
	static const struct {
		const char *target, *prefix, *rest; /* NULL: -1 */
	} rows[] = {
		{ "/shop/cart?x=1", "/shop", "/cart?x=1" },
		{ "/shop/cart?x=1", "/shop/", "/cart?x=1" },
		{ "/shop", "/shop", "/" },
		{ "/shop/", "/shop", "/" },
		{ "/shop/?a/../b//", "/shop", "/?a/../b//" },
		{ "/shop?x=1", "/shop", NULL },
		{ "/shopping", "/shop", NULL },
		{ "/sho", "/shop", NULL },
		{ "/Shop/a", "/shop", NULL },
		{ "/%73hop/a", "/shop", NULL },
		{ "/shop//a", "/shop", NULL },
		{ "/shop/a//b", "/shop", "/a//b" },
		{ "/shop/../a", "/shop", NULL },
		{ "/shop/a/..", "/shop", NULL },
		{ "/shop/./a", "/shop", NULL },
		{ "/shop/%2e%2E/a", "/shop", NULL },
		{ "/shop/.%2e", "/shop", NULL },
		{ "/shop/%2e?a", "/shop", NULL },
		{ "/shop/...", "/shop", "/..." },
		{ "/shop/.a/a..", "/shop", "/.a/a.." },
		{ "/a", "", "/a" },
		{ "/a", "/", "/a" },
		{ "/", "/", "/" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str rest;
		int got = uri_strip_prefix(
		    str_of(rows[i].target), str_of(rows[i].prefix), &rest);

		ck_assert_msg(
		    (got == 0) == (rows[i].rest != NULL), "%s", rows[i].target);
		if (got == 0)
			ck_assert_msg(str_eq(rest, str_of(rows[i].rest)), "%s",
			    rows[i].target);
	}
}
END_TEST

START_TEST(encoded)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "/a/b", "/a/b" },
		{ "/a b", "/a%20b" },
		{ "/\xc3\xbc", "/%C3%BC" },
		{ "/?#[]|^", "/%3F%23%5B%5D%7C%5E" },
		{ "/a%2Fb", "/a%2Fb" },
		{ "/%252F", "/%252F" },
		{ "/%", "/%25" },
		{ "/%2", "/%252" },
		{ "/%2e", "/%252e" },
		{ "/a\\b", "/a%5Cb" },
		{ "/;=,@:!$&'()*+~", "/;=,@:!$&'()*+~" },
	};
	char to[64];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str in = str_of(rows[i].in);
		size_t want = strlen(rows[i].out);
		size_t len = uri_encode_path(in, to, sizeof(to));

		ck_assert_msg(
		    str_eq((struct str){ to, len }, str_of(rows[i].out)),
		    "%s: %.*s", rows[i].in, (int)len, to);
		ck_assert_uint_eq(uri_encode_path(in, to, want), want);
		ck_assert_uint_eq(uri_encode_path(in, to, want - 1), want);
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { normalized, no_room, hosts, host_lengths,
		matches, prefixes, encoded };
	Suite *suite = suite_create("uri");
	TCase *all = tcase_create("uri");

	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		tcase_add_test(all, tests[i]);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
