/*
 * Heads of HTTP/1: what is taken, what is refused, and with which status.
 * Every row is parsed whole, and again with a byte more each time.
 * Bodies are in test_h1_body.c.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/http/h1_parse.h"
#include "t/unit/run.h"

#define RAW(text) text, sizeof(text) - 1
/* A request with these fields behind a Host. */
#define WITH(fields) RAW("GET / HTTP/1.1\r\nHost: a\r\n" fields "\r\n")
/* Only these. */
#define ONLY(fields) RAW("GET / HTTP/1.1\r\n" fields "\r\n")
#define OLD(fields) RAW("GET / HTTP/1.0\r\n" fields "\r\n")
/* This first line. */
#define LINE(line) RAW(line "\r\nHost: a\r\n\r\n")

static const struct h1_limits limits = { 200, 2000, 20 };

struct request_case {
	const char *raw;
	size_t len;
	unsigned status; /* 0: taken; 1: more is needed */
};

static const struct request_case request_lines[] = {
	{ LINE("GET / HTTP/1.1"), 0 },
	{ LINE("GET / HTTP/1.0"), 0 },
	{ LINE("HEAD /a/b?c=d&e HTTP/1.1"), 0 },
	{ LINE("M-SEARCH / HTTP/1.1"), 0 },
	{ LINE("get / HTTP/1.1"), 0 }, /* another method than GET */
	{ LINE("BREW /pot HTTP/1.1"), 0 },
	{ LINE("!#$%&'*+-.^_`|~09az / HTTP/1.1"), 0 },
	{ LINE("ABCDEFGHIJKLMNOPQRSTUVWXYZ012345 / HTTP/1.1"), 0 },
	{ LINE("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456 / HTTP/1.1"), 501 },
	{ LINE("CONNECT a:443 HTTP/1.1"), 501 },
	{ LINE("CONNECT / HTTP/1.1"), 501 },
	{ LINE("connect / HTTP/1.1"), 501 },
	{ LINE("TRACE / HTTP/1.1"), 501 },
	{ LINE("Trace / HTTP/1.1"), 501 },
	{ LINE(" GET / HTTP/1.1"), 400 },
	{ LINE("\tGET / HTTP/1.1"), 400 },
	{ LINE("GE(T / HTTP/1.1"), 400 },
	{ LINE("GE\x80T / HTTP/1.1"), 400 },
	{ LINE("GET: / HTTP/1.1"), 400 },
	{ LINE("\"GET\" / HTTP/1.1"), 400 },
	{ LINE("/ HTTP/1.1"), 400 },
	{ LINE("GET"), 400 },
	{ LINE("GET /"), 400 }, /* HTTP/0.9 */
	{ RAW("GET /\r\n"), 400 },
	{ LINE("GET HTTP/1.1"), 400 },
	{ LINE("GET  / HTTP/1.1"), 400 },
	{ LINE("GET /  HTTP/1.1"), 400 },
	{ LINE("GET\t/ HTTP/1.1"), 400 },
	{ LINE("GET /\tHTTP/1.1"), 400 },
	{ LINE("GET / HTTP/1.1 "), 400 },
	{ LINE("GET / HTTP/1.1\t"), 400 },
	{ LINE("GET / HTTP/1.1 x"), 400 },
	{ LINE("GET /a b HTTP/1.1"), 400 },
	{ LINE("GET / http/1.1"), 400 },
	{ LINE("GET / Http/1.1"), 400 },
	{ LINE("GET / HTTP/1"), 400 },
	{ LINE("GET / HTTP/1."), 400 },
	{ LINE("GET / HTTP/.1"), 400 },
	{ LINE("GET / HTTP/11"), 400 },
	{ LINE("GET / HTTP/1.10"), 400 },
	{ LINE("GET / HTTP/01.1"), 400 },
	{ LINE("GET / HTTP/1,1"), 400 },
	{ LINE("GET / HTTP/1.x"), 400 },
	{ LINE("GET / HTTP /1.1"), 400 },
	{ LINE("GET / HTTP\\1.1"), 400 },
	{ LINE("GET / HTTPS/1.1"), 400 },
	{ LINE("GET / ICY/1.1"), 400 },
	{ LINE("GET / HTTP/+1.1"), 400 },
	{ LINE("GET / HTTP/1.2"), 505 },
	{ LINE("GET / HTTP/1.9"), 505 },
	{ LINE("GET / HTTP/0.9"), 505 },
	{ LINE("GET / HTTP/2.0"), 505 },
	{ LINE("GET / HTTP/3.0"), 505 },
	{ RAW("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 400 },
	/* Empty lines before it (RFC 9112 section 2.2). */
	{ RAW("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 0 },
	{ RAW("\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 0 },
	{ RAW("\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400 },
	{ RAW("\r\n\r\n"), 1 },
	{ RAW("\r"), 1 },
	{ RAW(""), 1 },
	{ RAW("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400 },
	{ RAW("\rGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400 },
	{ RAW("\r\rGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400 },
	{ RAW("\0GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400 },
	{ RAW("\x16\x03\x01\x02"), 400 }, /* a TLS client */
	{ RAW("G"), 1 },
	{ RAW("GET / HTTP/1.1\r\nHost: a\r\n"), 1 },
	{ RAW("GET / HTTP/1.1\r\nHost: a\r\n\r"), 1 },
};

static const struct request_case targets[] = {
	{ LINE("GET /%20%zz HTTP/1.1"), 0 }, /* uri_normalize refuses it */
	{ LINE("GET //a//b HTTP/1.1"), 0 },
	{ LINE("GET /a[1]|^ HTTP/1.1"), 0 }, /* as browsers send them */
	{ LINE("GET /?a[]=1|`{}\\^ HTTP/1.1"), 0 },
	{ LINE("GET /?? HTTP/1.1"), 0 },
	{ LINE("GET /a;b=c,d@e:f!$&'()*+ HTTP/1.1"), 0 },
	{ LINE("GET a HTTP/1.1"), 400 },
	{ LINE("GET ?a HTTP/1.1"), 400 },
	{ LINE("GET /#a HTTP/1.1"), 400 },
	{ LINE("GET /?a#b HTTP/1.1"), 400 },
	{ LINE("GET /\\a HTTP/1.1"), 400 },
	{ LINE("GET \\a HTTP/1.1"), 400 },
	{ LINE("GET /\"a HTTP/1.1"), 400 },
	{ LINE("GET /<a> HTTP/1.1"), 400 },
	{ LINE("GET /?<a> HTTP/1.1"), 400 },
	{ LINE("GET /{a} HTTP/1.1"), 400 },
	{ LINE("GET /`a HTTP/1.1"), 400 },
	{ LINE("GET /\x7f HTTP/1.1"), 400 },
	{ LINE("GET /\xc3\xbc HTTP/1.1"), 400 },
	{ LINE("GET /?\xc3\xbc HTTP/1.1"), 400 },
	{ LINE("GET /\x01 HTTP/1.1"), 400 },
	{ LINE("GET /\0 HTTP/1.1"), 400 },
	{ LINE("GET /\x0b HTTP/1.1"), 400 },
	{ LINE("OPTIONS * HTTP/1.1"), 0 },
	{ LINE("GET * HTTP/1.1"), 400 },
	{ LINE("options * HTTP/1.1"), 400 },
	{ LINE("OPTIONS ** HTTP/1.1"), 400 },
	{ LINE("OPTIONS */ HTTP/1.1"), 400 },
	{ LINE("OPTIONS *?a HTTP/1.1"), 400 },
	{ LINE("GET http://b/c HTTP/1.1"), 0 },
	{ LINE("GET HTTPS://b:8443/c?d HTTP/1.1"), 0 },
	{ LINE("GET http://b HTTP/1.1"), 0 },
	{ LINE("GET http://b?c HTTP/1.1"), 0 },
	{ LINE("GET http://[::1]:80/ HTTP/1.1"), 0 },
	{ LINE("OPTIONS http://b HTTP/1.1"), 0 },
	{ LINE("GET http:///c HTTP/1.1"), 400 },
	{ LINE("GET http:// HTTP/1.1"), 400 },
	{ LINE("GET http:/c HTTP/1.1"), 400 },
	{ LINE("GET http:c HTTP/1.1"), 400 },
	{ LINE("GET http://u@b/ HTTP/1.1"), 400 },
	{ LINE("GET http://u:p@b/ HTTP/1.1"), 400 },
	{ LINE("GET http://b:x/ HTTP/1.1"), 400 },
	{ LINE("GET http://b:65536/ HTTP/1.1"), 400 },
	{ LINE("GET http://b#c HTTP/1.1"), 400 },
	{ LINE("GET http://b\\c HTTP/1.1"), 400 },
	{ LINE("GET http://[::1/ HTTP/1.1"), 400 },
	{ LINE("GET http://[b]/ HTTP/1.1"), 400 },
	{ LINE("GET ftp://b/ HTTP/1.1"), 400 },
	{ LINE("GET ws://b/ HTTP/1.1"), 400 },
	{ LINE("GET file:///etc/passwd HTTP/1.1"), 400 },
	{ LINE("GET b:80 HTTP/1.1"), 400 },
};

static const struct request_case fields[] = {
	{ WITH("A: b\r\n"), 0 },
	{ WITH("A:b\r\n"), 0 },
	{ WITH("A:\r\n"), 0 },
	{ WITH("A: \t \r\n"), 0 },
	{ WITH("A:\tb c\t\r\n"), 0 },
	{ WITH("A: \xe4\xff\r\n"), 0 }, /* obs-text */
	{ WITH("!#$%&'*+-.^_`|~09aZ: b\r\n"), 0 },
	{ WITH("A: b: c\r\n"), 0 },
	{ WITH("A : b\r\n"), 400 },
	{ WITH("A\t: b\r\n"), 400 },
	{ WITH("A b: c\r\n"), 400 },
	{ WITH(": b\r\n"), 400 },
	{ WITH("A\r\n"), 400 },
	{ WITH("A b\r\n"), 400 },
	{ WITH("A: b\r\n c\r\n"), 400 },
	{ WITH("A: b\r\n\tc\r\n"), 400 },
	{ WITH("A: b\r\n \r\n"), 400 },
	{ ONLY(" A: b\r\nHost: a\r\n"), 400 }, /* right behind the line */
	{ ONLY("\tHost: a\r\n"), 400 },
	{ WITH("A\x80: b\r\n"), 400 },
	{ WITH("A(b): c\r\n"), 400 },
	{ WITH("A/b: c\r\n"), 400 },
	{ WITH("\"A\": c\r\n"), 400 },
	{ WITH("A[0]: c\r\n"), 400 },
	{ WITH("A\0: c\r\n"), 400 },
	{ WITH("A: b\0c\r\n"), 400 },
	{ WITH("A: b\x01\r\n"), 400 },
	{ WITH("A: b\x0b\r\n"), 400 },
	{ WITH("A: b\x0c\r\n"), 400 },
	{ WITH("A: b\x1b[0m\r\n"), 400 },
	{ WITH("A: b\x7f\r\n"), 400 },
	{ WITH("A: b\rC: d\r\n"), 400 },
	{ WITH("A: b\r\r\n"), 400 },
	{ WITH("A: b\nC: d\r\n"), 400 },
	{ WITH("A: b\n"), 400 },
	{ RAW("GET / HTTP/1.1\nHost: a\n\n"), 400 },
	{ RAW("GET / HTTP/1.1\r\nHost: a\r\n\n"), 400 },
	{ RAW("GET / HTTP/1.1\r\nHost: a\n\r\n"), 400 },
	{ RAW("GET / HTTP/1.1\rHost: a\r\r"), 400 },
	{ RAW("GET / HTTP/1.1\r\n\rHost: a\r\n\r\n"), 400 },
};

static const struct request_case hosts[] = {
	{ ONLY("Host: example.com\r\n"), 0 },
	{ ONLY("HOST: example.com:8080\r\n"), 0 },
	{ ONLY("host:example.com.\r\n"), 0 },
	{ ONLY("Host: a:\r\n"), 0 },
	{ ONLY("Host: 192.0.2.1:80\r\n"), 0 },
	{ ONLY("Host: [2001:db8::1]:80\r\n"), 0 },
	{ ONLY("Host: a_b-c~d\r\n"), 0 },
	{ ONLY(""), 400 },
	{ ONLY("Host:\r\n"), 400 },
	{ ONLY("Host: a\r\nHost: a\r\n"), 400 },
	{ ONLY("Host: a\r\nhost: b\r\n"), 400 },
	{ ONLY("Host: a, b\r\n"), 400 },
	{ ONLY("Host: a,b\r\n"), 400 },
	{ ONLY("Host: a b\r\n"), 400 },
	{ ONLY("Host: a/b\r\n"), 400 },
	{ ONLY("Host: a?b\r\n"), 400 },
	{ ONLY("Host: a#b\r\n"), 400 },
	{ ONLY("Host: u@a\r\n"), 400 },
	{ ONLY("Host: http://a\r\n"), 400 },
	{ ONLY("Host: a%00\r\n"), 400 },
	{ ONLY("Host: a\xc3\xbc\r\n"), 400 },
	{ ONLY("Host: a:b\r\n"), 400 },
	{ ONLY("Host: a:80:80\r\n"), 400 },
	{ ONLY("Host: a:+80\r\n"), 400 },
	{ ONLY("Host: a:99999\r\n"), 400 },
	{ ONLY("Host: :80\r\n"), 400 },
	{ ONLY("Host: .\r\n"), 400 },
	{ ONLY("Host: a..b\r\n"), 400 },
	{ ONLY("Host: .a\r\n"), 400 },
	{ ONLY("Host: [::1\r\n"), 400 },
	{ ONLY("Host: [::1]a\r\n"), 400 },
	{ ONLY("Host: []\r\n"), 400 },
	{ ONLY("Host: [::1%eth0]\r\n"), 400 },
	{ ONLY("Host: ::1\r\n"), 400 },
	{ ONLY("Host : a\r\n"), 400 },
	{ ONLY("X-Host: a\r\n"), 400 },
	{ OLD(""), 0 },
	{ OLD("Host: a\r\n"), 0 },
	{ OLD("Host: a\r\nHost: a\r\n"), 400 },
	{ OLD("Host: a b\r\n"), 400 },
	{ RAW("GET http://b/ HTTP/1.1\r\n\r\n"), 400 },
	{ RAW("GET http://b/ HTTP/1.1\r\nHost: a/b\r\n\r\n"), 400 },
	{ RAW("GET http://b/ HTTP/1.0\r\n\r\n"), 0 },
};

static const struct request_case lengths[] = {
	{ WITH("Content-Length: 0\r\n"), 0 },
	{ WITH("Content-Length: 5\r\n"), 0 },
	{ WITH("Content-Length: 005\r\n"), 0 },
	{ WITH("content-length:\t 5 \r\n"), 0 },
	{ WITH("Content-Length: 9223372036854775807\r\n"), 0 },
	{ WITH("Content-Length: 9223372036854775808\r\n"), 400 },
	{ WITH("Content-Length: 18446744073709551616\r\n"), 400 },
	{ WITH("Content-Length: 99999999999999999999999\r\n"), 400 },
	{ WITH("Content-Length:\r\n"), 400 },
	{ WITH("Content-Length: 5 \t\r\n"), 400 },
	{ WITH("Content-Length: +5\r\n"), 400 },
	{ WITH("Content-Length: -5\r\n"), 400 },
	{ WITH("Content-Length: -0\r\n"), 400 },
	{ WITH("Content-Length: 5.0\r\n"), 400 },
	{ WITH("Content-Length: 5,5\r\n"), 400 },
	{ WITH("Content-Length: 5, 6\r\n"), 400 },
	{ WITH("Content-Length: ,5\r\n"), 400 },
	{ WITH("Content-Length: 5 5\r\n"), 400 },
	{ WITH("Content-Length: 0x5\r\n"), 400 },
	{ WITH("Content-Length: 5e1\r\n"), 400 },
	{ WITH("Content-Length: five\r\n"), 400 },
	{ WITH("Content-Length: \"5\"\r\n"), 400 },
	{ WITH("Content-Length: 5;\r\n"), 400 },
	{ WITH("Content-Length: 1_000\r\n"), 400 },
	{ WITH("Content-Length: \xb2\r\n"), 400 },
	{ WITH("Content-Length: 5\r\nContent-Length: 5\r\n"), 400 },
	{ WITH("Content-Length: 5\r\ncontent-length: 6\r\n"), 400 },
	{ WITH("Content-Length: 5\r\nContent-Length:\r\n"), 400 },
	{ WITH("Content-Length : 5\r\n"), 400 },
	{ WITH("Content-Length\r\n"), 400 },
	{ WITH("Content_Length: five\r\n"), 0 }, /* another field, odd */
	{ WITH("Transfer-Encoding: chunked\r\n"), 0 },
	{ WITH("transfer-encoding:CHUNKED \r\n"), 0 },
	{ WITH("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), 400 },
	{ WITH("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), 400 },
	{ WITH("Content-Length: 5\r\nTransfer-Encoding: gzip, chunked\r\n"),
	    400 },
	{ WITH("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
	    400 },
	{ WITH("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"),
	    400 },
	{ WITH("Transfer-Encoding: chunked, chunked\r\n"), 400 },
	{ WITH("Transfer-Encoding: chunked, gzip\r\n"), 400 },
	{ WITH("Transfer-Encoding: gzip, chunked\r\n"), 501 },
	{ WITH("Transfer-Encoding: x-gzip ,deflate,Chunked\r\n"), 501 },
	{ WITH("Transfer-Encoding: gzip\r\n"), 400 },
	{ WITH("Transfer-Encoding: identity\r\n"), 400 },
	{ WITH("Transfer-Encoding: identity, chunked\r\n"), 400 },
	{ WITH("Transfer-Encoding: foo, chunked\r\n"), 400 },
	{ WITH("Transfer-Encoding:\r\n"), 400 },
	{ WITH("Transfer-Encoding: ,chunked\r\n"), 400 },
	{ WITH("Transfer-Encoding: chunked,\r\n"), 400 },
	{ WITH("Transfer-Encoding: xchunked\r\n"), 400 },
	{ WITH("Transfer-Encoding: chunkedx\r\n"), 400 },
	{ WITH("Transfer-Encoding: chunke\r\n"), 400 },
	{ WITH("Transfer-Encoding: \"chunked\"\r\n"), 400 },
	{ WITH("Transfer-Encoding: 'chunked'\r\n"), 400 },
	{ WITH("Transfer-Encoding: chunked;q=1\r\n"), 400 },
	{ WITH("Transfer-Encoding: chunked foo\r\n"), 400 },
	{ WITH("Transfer-Encoding: \x0b"
	       "chunked\r\n"),
	    400 },
	{ WITH("Transfer-Encoding: chunked\x0b\r\n"), 400 },
	{ WITH("Transfer-Encoding: chunked\0\r\n"), 400 },
	{ WITH("Transfer-Encoding: \xa0"
	       "chunked\r\n"),
	    400 },
	{ WITH("Transfer-Encoding: gzip\r\n chunked\r\n"), 400 },
	{ WITH("Transfer-Encoding : chunked\r\n"), 400 },
	{ WITH("Transfer-Encoding\t: chunked\r\n"), 400 },
	{ WITH(" Transfer-Encoding: chunked\r\n"), 400 },
	{ WITH("Transfer\r-Encoding: chunked\r\n"), 400 },
	{ WITH("Foo: bar\r\r\nTransfer-Encoding: chunked\r\n"), 400 },
	{ WITH("Foo: bar\nTransfer-Encoding: chunked\r\n"), 400 },
	{ OLD("Transfer-Encoding: chunked\r\n"), 400 },
	{ OLD("Transfer-Encoding: gzip, chunked\r\n"), 400 },
	{ OLD("Content-Length: 5\r\n"), 0 },
};

static const struct request_case others[] = {
	{ WITH("Expect: 100-continue\r\nContent-Length: 5\r\n"), 0 },
	{ WITH("Expect: 100-Continue\r\n"), 0 },
	{ WITH("Expect: 200-ok\r\n"), 417 },
	{ WITH("Expect:\r\n"), 417 },
	{ WITH("Expect: 100-continue, foo\r\n"), 417 },
	{ WITH("Expect: 100-continue\r\nExpect: foo\r\n"), 417 },
	{ OLD("Expect: foo\r\n"), 0 },
	{ WITH("Connection: close, keep-alive\r\n"), 0 },
	{ WITH("Connection: ,, close ,\r\n"), 0 },
	{ WITH("Connection:\r\n"), 0 },
	{ WITH("Connection: upgrade\r\nUpgrade: websocket\r\n"), 0 },
	{ WITH("Max-Forwards: x\r\n"), 0 },
/* line_bytes is 200, head_bytes 2000, header_count 20. */
#define TEN "0123456789"
#define FIFTY TEN TEN TEN TEN TEN
#define TWO_HUNDRED FIFTY FIFTY FIFTY FIFTY
	{ LINE("GET /" FIFTY FIFTY FIFTY TEN TEN TEN TEN "a HTTP/1.1"), 414 },
	{ LINE("GET /" FIFTY FIFTY FIFTY TEN TEN TEN "123456 HTTP/1.1"), 0 },
	{ LINE("GET /" FIFTY FIFTY FIFTY TEN TEN TEN "1234567 HTTP/1.1"), 414 },
	{ RAW("GET /" TWO_HUNDRED), 414 },
	{ WITH("A: " TWO_HUNDRED TWO_HUNDRED "\r\n"), 0 },
	{ WITH("A: " TWO_HUNDRED TWO_HUNDRED TWO_HUNDRED TWO_HUNDRED TWO_HUNDRED
		  TWO_HUNDRED TWO_HUNDRED TWO_HUNDRED TWO_HUNDRED TWO_HUNDRED
	       "\r\n"),
	    431 },
	{ WITH("A: " TWO_HUNDRED "\r\nA: " TWO_HUNDRED "\r\nA: " TWO_HUNDRED
	       "\r\nA: " TWO_HUNDRED "\r\nA: " TWO_HUNDRED "\r\nA: " TWO_HUNDRED
	       "\r\nA: " TWO_HUNDRED "\r\nA: " TWO_HUNDRED "\r\nA: " TWO_HUNDRED
	       "\r\nA: " TWO_HUNDRED "\r\n"),
	    431 },
#define FIELDS "A: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\n"
	{ WITH(FIELDS FIELDS FIELDS "A:\r\nA:\r\nA:\r\nA:\r\n"), 0 },
	{ WITH(FIELDS FIELDS FIELDS FIELDS), 431 },
};

/* Parse `len` bytes in a block of that size. Returns 0 when a head was taken, 1
 * when more is needed, else the status. */
static unsigned
parse(const char *raw, size_t len, size_t *scanned, size_t *used)
{
	static struct h1_request request;
	char *copy = malloc(len > 0 ? len : 1);
	unsigned status = 0;
	const char *why = NULL;
	enum h1_result result;

	memcpy(copy, raw, len);
	memset(&request, 0xa5, sizeof(request));
	result = h1_parse_request(
	    copy, len, &limits, scanned, &request, used, &status, &why);
	if (result == H1_DONE) {
		ck_assert_uint_le(*used, len);
		ck_assert_uint_le(request.target + request.target_len, *used);
		ck_assert_uint_le(request.host + request.host_len, *used);
	}
	free(copy);
	if (result != H1_BAD)
		return result == H1_DONE ? 0 : 1;
	ck_assert_ptr_nonnull(why);
	return status;
}

static void
check_request(const struct request_case *row)
{
	size_t scanned = 0, used = 0, whole = 0, len = 0;
	unsigned got = parse(row->raw, row->len, &scanned, &whole);

	ck_assert_msg(
	    got == row->status, "%u, not %u: %s", got, row->status, row->raw);
	/* A byte more each time: never another verdict, only a later one. */
	scanned = 0;
	do {
		got = parse(row->raw, len, &scanned, &used);
	} while (got == 1 && len++ < row->len);
	if (row->status == 1)
		ck_assert_msg(got == 1, "%u: %s", got, row->raw);
	else
		ck_assert_msg(
		    got == row->status || (got >= 400 && row->status >= 400),
		    "in pieces %u, not %u: %s", got, row->status, row->raw);
	if (row->status == 0)
		ck_assert_uint_eq(used, whole);
}

START_TEST(requests)
{
	static const struct {
		const struct request_case *rows;
		size_t count;
	} tables[] = {
		{ request_lines, ARRAY_LEN(request_lines) },
		{ targets, ARRAY_LEN(targets) },
		{ fields, ARRAY_LEN(fields) },
		{ hosts, ARRAY_LEN(hosts) },
		{ lengths, ARRAY_LEN(lengths) },
		{ others, ARRAY_LEN(others) },
	};

	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		for (size_t k = 0; k < tables[i].count; k++)
			check_request(&tables[i].rows[k]);
	}
}
END_TEST

/* What a request that was taken means. */
START_TEST(request_meaning)
{
	static const struct {
		const char *raw;
		size_t len;
		enum http_method method;
		enum http_target_form form;
		enum http_body_kind body;
		uint64_t length;
		bool keep_alive, expect, websocket;
		const char *host, *path, *query; /* NULL: there is none */
	} rows[] = {
		{ LINE("GET /a?b HTTP/1.1"), METHOD_GET, TARGET_ORIGIN,
		    BODY_NONE, 0, true, false, false, "a", "/a", "b" },
		{ LINE("POST /a? HTTP/1.1"), METHOD_POST, TARGET_ORIGIN,
		    BODY_NONE, 0, true, false, false, "a", "/a", "" },
		{ LINE("PUT http://B:80/c HTTP/1.1"), METHOD_PUT,
		    TARGET_ABSOLUTE, BODY_NONE, 0, true, false, false, "B:80",
		    "/c", NULL },
		{ LINE("PATCH http://b?q HTTP/1.1"), METHOD_PATCH,
		    TARGET_ABSOLUTE, BODY_NONE, 0, true, false, false, "b", "",
		    "q" },
		{ LINE("OPTIONS * HTTP/1.1"), METHOD_OPTIONS, TARGET_ASTERISK,
		    BODY_NONE, 0, true, false, false, "a", "*", NULL },
		{ LINE("DELETE / HTTP/1.0"), METHOD_DELETE, TARGET_ORIGIN,
		    BODY_NONE, 0, false, false, false, "a", "/", NULL },
		{ LINE("delete / HTTP/1.0"), METHOD_OTHER, TARGET_ORIGIN,
		    BODY_NONE, 0, false, false, false, "a", "/", NULL },
		{ RAW("\r\nHEAD / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"),
		    METHOD_HEAD, TARGET_ORIGIN, BODY_NONE, 0, true, false,
		    false, "", "/", NULL },
		{ OLD("Connection: keep-alive, close\r\nHost: a\r\n"),
		    METHOD_GET, TARGET_ORIGIN, BODY_NONE, 0, false, false,
		    false, "a", "/", NULL },
		{ WITH("Connection: x\r\nConnection: foo,CLOSE\r\n"),
		    METHOD_GET, TARGET_ORIGIN, BODY_NONE, 0, false, false,
		    false, "a", "/", NULL },
		{ WITH("Content-Length: 12\r\nExpect: 100-continue\r\n"),
		    METHOD_GET, TARGET_ORIGIN, BODY_LENGTH, 12, true, true,
		    false, "a", "/", NULL },
		{ WITH("Expect: 100-continue\r\n"), METHOD_GET, TARGET_ORIGIN,
		    BODY_NONE, 0, true, false, false, "a", "/", NULL },
		{ OLD("Host: a\r\nContent-Length: 1\r\n"
		      "Expect: 100-continue\r\n"),
		    METHOD_GET, TARGET_ORIGIN, BODY_LENGTH, 1, false, false,
		    false, "a", "/", NULL },
		{ WITH("Transfer-Encoding: chunked\r\n"), METHOD_GET,
		    TARGET_ORIGIN, BODY_CHUNKED, 0, true, false, false, "a",
		    "/", NULL },
		{ WITH("Connection: keep-alive, Upgrade\r\n"
		       "Upgrade: websocket\r\n"),
		    METHOD_GET, TARGET_ORIGIN, BODY_NONE, 0, true, false, true,
		    "a", "/", NULL },
		{ WITH("Upgrade: websocket\r\n"), METHOD_GET, TARGET_ORIGIN,
		    BODY_NONE, 0, true, false, false, "a", "/", NULL },
		{ WITH("Connection: upgrade\r\n"), METHOD_GET, TARGET_ORIGIN,
		    BODY_NONE, 0, true, false, false, "a", "/", NULL },
#define WS(want, fields)                                                      \
	{ WITH(fields), METHOD_GET, TARGET_ORIGIN, BODY_NONE, 0, true, false, \
		want, "a", "/", NULL }
		WS(true, "Upgrade: WebSocket\r\nConnection:UPGRADE\r\n"),
		WS(true, "Connection: upgrade\r\n"
			 "Upgrade: h2c , websocket\r\n"),
		WS(true, "Connection: x\r\nConnection: ,Upgrade ,\r\n"
			 "Upgrade: h2c\r\nUpgrade: websocket\r\n"),
		WS(false, "Connection: upgrade\r\nUpgrade: h2c\r\n"),
		WS(false, "Connection: upgrade\r\nUpgrade:\r\n"),
		WS(false, "Connection: upgrades\r\nUpgrade: websocket\r\n"),
		WS(false, "Connection: up grade\r\nUpgrade: websocket\r\n"),
		WS(false, "Connection: upgrade\r\nUpgrade: websockets\r\n"),
		WS(false, "Connection: upgrade\r\n"
			  "Upgrade: web, socket\r\n"),
		WS(false, "Connection: upgrade\r\n"
			  "Upgrade: websocket/13\r\n"),
#undef WS
		{ RAW("POST / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n"
		      "Upgrade: websocket\r\n\r\n"),
		    METHOD_POST, TARGET_ORIGIN, BODY_NONE, 0, true, false,
		    false, "a", "/", NULL },
		{ RAW("get / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n"
		      "Upgrade: websocket\r\n\r\n"),
		    METHOD_OTHER, TARGET_ORIGIN, BODY_NONE, 0, true, false,
		    false, "a", "/", NULL },
		{ WITH("Connection: upgrade\r\nUpgrade: websocket\r\n"
		       "Content-Length: 0\r\n"),
		    METHOD_GET, TARGET_ORIGIN, BODY_LENGTH, 0, true, false,
		    true, "a", "/", NULL },
		{ WITH("Connection: upgrade\r\nUpgrade: websocket\r\n"
		       "Content-Length: 1\r\n"),
		    METHOD_GET, TARGET_ORIGIN, BODY_LENGTH, 1, true, false,
		    false, "a", "/", NULL },
		{ WITH("Connection: upgrade\r\nUpgrade: websocket\r\n"
		       "Transfer-Encoding: chunked\r\n"),
		    METHOD_GET, TARGET_ORIGIN, BODY_CHUNKED, 0, true, false,
		    false, "a", "/", NULL },
		{ OLD("Host: a\r\nConnection: upgrade\r\n"
		      "Upgrade: websocket\r\n"),
		    METHOD_GET, TARGET_ORIGIN, BODY_NONE, 0, false, false,
		    false, "a", "/", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t scanned = 0, used;
		struct h1_request r;
		const char *raw = rows[i].raw, *why = NULL;
		unsigned status;

		ck_assert_int_eq(h1_parse_request(raw, rows[i].len, &limits,
				     &scanned, &r, &used, &status, &why),
		    H1_DONE);
		ck_assert_uint_eq(used, rows[i].len);
		ck_assert_int_eq(r.method, rows[i].method);
		ck_assert_int_eq(r.form, rows[i].form);
		ck_assert_int_eq(r.body, rows[i].body);
		ck_assert_uint_eq(r.content_length, rows[i].length);
		ck_assert_msg(r.keep_alive == rows[i].keep_alive, "%s", raw);
		ck_assert_msg(r.expect_continue == rows[i].expect, "%s", raw);
		ck_assert_msg(r.websocket == rows[i].websocket, "%s", raw);
		ck_assert(str_eq((struct str){ raw + r.host, r.host_len },
		    str_of(rows[i].host)));
		ck_assert(str_eq((struct str){ raw + r.path, r.path_len },
		    str_of(rows[i].path)));
		ck_assert_int_eq(r.query != 0, rows[i].query != NULL);
		if (rows[i].query != NULL)
			ck_assert(
			    str_eq((struct str){ raw + r.query, r.query_len },
				str_of(rows[i].query)));
	}
}
END_TEST

/* Two requests in one read: the second begins where the first ends. */
START_TEST(pipelined)
{
	static const char raw[] = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n"
				  "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n";
	size_t scanned = 0, used, first;

	ck_assert_uint_eq(parse(RAW(raw), &scanned, &used), 0);
	first = used;
	ck_assert_uint_eq(scanned, 0);
	ck_assert_uint_eq(
	    parse(raw + first, sizeof(raw) - 1 - first, &scanned, &used), 0);
	ck_assert_uint_eq(first + used, sizeof(raw) - 1);
}
END_TEST

/* The table has room for 128 fields, whatever the limits say. */
START_TEST(many_fields)
{
	static const struct h1_limits wide = { 8192, UINT32_MAX, UINT32_MAX };
	static struct h1_request request;

	for (unsigned count = 127; count <= 131; count++) {
		char raw[2048] = "GET / HTTP/1.1\r\nHost: a\r\n";
		size_t len = strlen(raw), scanned = 0, used;
		enum h1_result result;
		unsigned status = 0;
		const char *why;

		for (unsigned i = 1; i < count; i++, len += 7)
			memcpy(raw + len, "A: bc\r\n", 7);
		memcpy(raw + len, "\r\n", 2);
		result = h1_parse_request(raw, len + 2, &wide, &scanned,
		    &request, &used, &status, &why);
		ck_assert_int_eq(result, count <= 128 ? H1_DONE : H1_BAD);
		if (result == H1_DONE)
			ck_assert_uint_eq(request.headers.count, count);
		else
			ck_assert_uint_eq(status, 431);
	}
}
END_TEST

/* A head of nearly H1_HEAD_MAX passes http-parser; a larger one is 431. */
START_TEST(large_heads)
{
	static const struct h1_limits wide = { 8192, UINT32_MAX, UINT32_MAX };
	static struct h1_request request;
	static const char begin[] = "X / HTTP/1.1\r\nHost: a\r\nA: ";

	for (int over = 0; over <= 1; over++) {
		size_t len = H1_HEAD_MAX + (size_t)over, scanned = 0, used;
		char *raw = malloc(len);
		unsigned status = 0;
		const char *why;
		enum h1_result result;

		memset(raw, 'b', len);
		memcpy(raw, begin, sizeof(begin) - 1);
		memcpy(raw + len - 4, "\r\n\r\n", 4);
		result = h1_parse_request(
		    raw, len, &wide, &scanned, &request, &used, &status, &why);
		ck_assert_int_eq(result, over ? H1_BAD : H1_DONE);
		if (over)
			ck_assert_uint_eq(status, 431);
		free(raw);
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { requests, request_meaning, pipelined,
		many_fields, large_heads };
	Suite *suite = suite_create("h1");
	TCase *all = tcase_create("heads");

	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		tcase_add_test(all, tests[i]);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
