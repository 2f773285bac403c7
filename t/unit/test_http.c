/*
 * Heads of answers (HTTP/1 and CGI), the header table, and statuses.
 * Requests are in test_h1.c, who the client is in test_hops.c.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/http/h1_parse.h"
#include "proxy/http/h1_witness.h"
#include "proxy/http/status.h"
#include "t/unit/run.h"

#define RAW(text) text, sizeof(text) - 1
#define OK(fields) RAW("HTTP/1.1 200 OK\r\n" fields "\r\n")
#define NO(status, fields) RAW("HTTP/1.1 " status " x\r\n" fields "\r\n")

static const struct h1_limits limits = { 200, 2000, 20 };

struct answer_case {
	const char *raw;
	size_t len;
	enum h1_result result;
	unsigned status;
	enum http_body_kind body;
	uint64_t length;
	bool keep_alive;
};

static const struct answer_case answers[] = {
	{ OK("Content-Length: 5\r\n"), H1_DONE, 200, BODY_LENGTH, 5, true },
	{ OK(""), H1_DONE, 200, BODY_UNTIL_CLOSE, 0, false },
	{ OK("Transfer-Encoding: chunked\r\n"), H1_DONE, 200, BODY_CHUNKED, 0,
	    true },
	{ OK("Content-Length: 0\r\nConnection: close\r\n"), H1_DONE, 200,
	    BODY_LENGTH, 0, false },
	{ RAW("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n"), H1_DONE, 200,
	    BODY_LENGTH, 5, false },
	{ RAW("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n"
	      "Connection: keep-alive\r\n\r\n"),
	    H1_DONE, 200, BODY_LENGTH, 5, true },
	{ RAW("HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\n"), H1_DONE, 200,
	    BODY_LENGTH, 5, true },
	{ RAW("HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n"), H1_DONE, 200,
	    BODY_LENGTH, 5, true },
	{ RAW("HTTP/1.1 599 a\tb \xff\r\n\r\n"), H1_DONE, 599, BODY_UNTIL_CLOSE,
	    0, false },
	{ NO("100", ""), H1_DONE, 100, BODY_NONE, 0, true },
	{ NO("103", "Link: a\r\n"), H1_DONE, 103, BODY_NONE, 0, true },
	{ NO("204", ""), H1_DONE, 204, BODY_NONE, 0, true },
	{ NO("204", "Content-Length: 0\r\n"), H1_DONE, 204, BODY_NONE, 0,
	    true },
	{ NO("304", "Content-Length: 5\r\n"), H1_DONE, 304, BODY_NONE, 5,
	    true },
	{ NO("304", "Transfer-Encoding: chunked\r\n"), H1_DONE, 304, BODY_NONE,
	    0, true },
	{ NO("205", "Content-Length: 0\r\n"), H1_DONE, 205, BODY_LENGTH, 0,
	    true },
	{ RAW(""), H1_MORE, 0, 0, 0, false },
	{ RAW("HT"), H1_MORE, 0, 0, 0, false },
	{ RAW("HTTP/1.1 200 OK\r\nA: b\r\n"), H1_MORE, 0, 0, 0, false },
#define BAD H1_BAD, 0, 0, 0, false
	{ RAW("XTTP/1.1 200 OK\r\n\r\n"), BAD },
	{ RAW("http/1.1 200 OK\r\n\r\n"), BAD },
	{ RAW("SSH-2.0-OpenSSH\r\n"), BAD },
	{ RAW("\r\nHTTP/1.1 200 OK\r\n\r\n"), BAD },
	{ RAW(" HTTP/1.1 200 OK\r\n\r\n"), BAD },
	{ RAW("\0HTTP/1.1 200 OK\r\n\r\n"), BAD },
	{ RAW("<html>"), BAD },
	{ RAW("HTTP/1.2 200 OK\r\n\r\n"), BAD },
	{ RAW("HTTP/2 200 OK\r\n\r\n"), BAD },
	{ RAW("HTTP/2.0 200 OK\r\n\r\n"), BAD },
	{ RAW("HTTP/0.9 200 OK\r\n\r\n"), BAD },
	{ RAW("HTTP/1.1\r\n\r\n"), BAD },
	{ RAW("HTTP/1.1 \r\n\r\n"), BAD },
	{ RAW("HTTP/1.1 20\r\n\r\n"), BAD },
	{ RAW("HTTP/1.1 20 OK\r\n\r\n"), BAD },
	{ RAW("HTTP/1.1 2000 OK\r\n\r\n"), BAD },
	{ RAW("HTTP/1.1 200OK\r\n\r\n"), BAD },
	{ RAW("HTTP/1.1 200\tOK\r\n\r\n"), BAD },
	{ RAW("HTTP/1.1  200 OK\r\n\r\n"), BAD },
	{ RAW("HTTP/1.1\t200 OK\r\n\r\n"), BAD },
	{ RAW("HTTP/1.1 +20 OK\r\n\r\n"), BAD },
	{ RAW("HTTP/1.1 2x0 OK\r\n\r\n"), BAD },
	{ RAW("HTTP/1.1 000 OK\r\n\r\n"), BAD },
	{ RAW("HTTP/1.1 099 OK\r\n\r\n"), BAD },
	{ RAW("HTTP/1.1 600 OK\r\n\r\n"), BAD },
	{ RAW("HTTP/1.1 999 OK\r\n\r\n"), BAD },
	{ RAW("HTTP/1.1 200 O\0K\r\n\r\n"), BAD },
	{ RAW("HTTP/1.1 200 O\rK\r\n\r\n"), BAD },
	{ RAW("HTTP/1.1 200 O\x7fK\r\n\r\n"), BAD },
	{ RAW("HTTP/1.1 200 OK\n\n"), BAD },
	{ OK("A : b\r\n"), BAD },
	{ OK("A: b\r\n c\r\n"), BAD },
	{ OK(" A: b\r\n"), BAD },
	{ OK(": b\r\n"), BAD },
	{ OK("A\r\n"), BAD },
	{ OK("A: b\0\r\n"), BAD },
	{ OK("A: b\nB: c\r\n"), BAD },
	{ OK("A: b\rB: c\r\n"), BAD },
	{ OK("Content-Length: 5\r\nContent-Length: 5\r\n"), BAD },
	{ OK("Content-Length: 5\r\nContent-Length: 6\r\n"), BAD },
	{ OK("Content-Length: 5, 5\r\n"), BAD },
	{ OK("Content-Length: -1\r\n"), BAD },
	{ OK("Content-Length: +1\r\n"), BAD },
	{ OK("Content-Length:\r\n"), BAD },
	{ OK("Content-Length: x\r\n"), BAD },
	{ OK("Content-Length: 9223372036854775808\r\n"), BAD },
	{ OK("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), BAD },
	{ OK("Transfer-Encoding: gzip\r\n"), BAD },
	{ OK("Transfer-Encoding: gzip, chunked\r\n"), BAD },
	{ OK("Transfer-Encoding: identity\r\n"), BAD },
	{ OK("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
	    BAD },
	{ RAW("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), BAD },
	{ NO("204", "Content-Length: 5\r\n"), BAD },
	{ NO("204", "Transfer-Encoding: chunked\r\n"), BAD },
	{ NO("100", "Content-Length: 5\r\n"), BAD },
	{ NO("101", "Transfer-Encoding: chunked\r\n"), BAD },
};

static const struct answer_case cgi_answers[] = {
	{ RAW("Content-Type: a\r\n\r\n"), H1_DONE, 200, BODY_UNTIL_CLOSE, 0,
	    true },
	{ RAW("Content-Type: a\n\n"), H1_DONE, 200, BODY_UNTIL_CLOSE, 0, true },
	{ RAW("A: b\nC: d\r\n\n"), H1_DONE, 200, BODY_UNTIL_CLOSE, 0, true },
	{ RAW("A: b\r\nC: d\n\r\n"), H1_DONE, 200, BODY_UNTIL_CLOSE, 0, true },
	{ RAW("Status: 404 Not Found\r\n\r\n"), H1_DONE, 404, BODY_UNTIL_CLOSE,
	    0, true },
	{ RAW("status:404\r\n\r\n"), H1_DONE, 404, BODY_UNTIL_CLOSE, 0, true },
	{ RAW("Location: /a\r\n\r\n"), H1_DONE, 302, BODY_UNTIL_CLOSE, 0,
	    true },
	{ RAW("Location: /a\r\nStatus: 201 Created\r\n\r\n"), H1_DONE, 201,
	    BODY_UNTIL_CLOSE, 0, true },
	{ RAW("A: b\r\nContent-Length: 7\r\n\r\n"), H1_DONE, 200, BODY_LENGTH,
	    7, true },
	{ RAW("Status: 204\r\n\r\n"), H1_DONE, 204, BODY_NONE, 0, true },
	{ RAW("Status: 304 x\r\nContent-Length: 5\r\n\r\n"), H1_DONE, 304,
	    BODY_NONE, 5, true },
	{ RAW("Transfer-Encoding: chunked\r\n\r\n"), H1_DONE, 200,
	    BODY_UNTIL_CLOSE, 0, true },
	{ RAW("A: b\n"), H1_MORE, 0, 0, 0, false },
	{ RAW("A: b\r\n\r"), H1_MORE, 0, 0, 0, false },
	{ RAW(""), H1_MORE, 0, 0, 0, false },
	{ RAW("\r\n"), BAD },
	{ RAW("\n"), BAD },
	{ RAW("HTTP/1.1 200 OK\r\nA: b\r\n\r\n"), BAD },
	{ RAW("<br>\n<b>Fatal error</b>: x\n\n"), BAD },
	{ RAW("A b\n\n"), BAD },
	{ RAW("A : b\n\n"), BAD },
	{ RAW(": b\n\n"), BAD },
	{ RAW("A: b\n c\n\n"), BAD },
	{ RAW("A: b\rC: d\n\n"), BAD },
	{ RAW("A: b\r\r\n\n"), BAD },
	{ RAW("A: b\0\n\n"), BAD },
	{ RAW("A: b\x7f\n\n"), BAD },
	{ RAW("Status: 100 Continue\n\n"), BAD },
	{ RAW("Status: 101 Switching Protocols\n\n"), BAD },
	{ RAW("Status: 600\n\n"), BAD },
	{ RAW("Status: 20\n\n"), BAD },
	{ RAW("Status: 2000\n\n"), BAD },
	{ RAW("Status: OK\n\n"), BAD },
	{ RAW("Status:\n\n"), BAD },
	{ RAW("Status: HTTP/1.1 200 OK\n\n"), BAD },
	{ RAW("Status: 200\nStatus: 200\n\n"), BAD },
	{ RAW("Content-Length: 5\nContent-Length: 5\n\n"), BAD },
	{ RAW("Content-Length: 5x\n\n"), BAD },
	{ RAW("Content-Length: -5\n\n"), BAD },
};

typedef enum h1_result parser(const char *from, size_t len,
    const struct h1_limits *limits, size_t *scanned,
    struct h1_response *response, size_t *used, const char **why);

static enum h1_result
parse(parser *with, const char *raw, size_t len, size_t *scanned,
    struct h1_response *response, size_t *used)
{
	char *copy = malloc(len > 0 ? len : 1);
	const char *why = NULL;
	enum h1_result result;

	memcpy(copy, raw, len);
	memset(response, 0xa5, sizeof(*response));
	result = with(copy, len, &limits, scanned, response, used, &why);
	if (result == H1_BAD)
		ck_assert_ptr_nonnull(why);
	free(copy);
	return result;
}

static void
check_answer(parser *with, const struct answer_case *row)
{
	static struct h1_response response;
	size_t scanned = 0, used = 0, len = 0;
	enum h1_result got =
	    parse(with, row->raw, row->len, &scanned, &response, &used);

	ck_assert_msg(got == row->result, "%u: %s", got, row->raw);
	if (got == H1_DONE) {
		ck_assert_uint_eq(used, row->len);
		ck_assert_msg(response.status == row->status, "%s", row->raw);
		ck_assert_msg(response.body == row->body, "%s", row->raw);
		ck_assert_uint_eq(response.content_length, row->length);
		ck_assert_msg(
		    response.keep_alive == row->keep_alive, "%s", row->raw);
		ck_assert_msg(
		    with == h1_parse_cgi || h1_witness_response(row->raw,
						(uint32_t)used, &response),
		    "http-parser reads it differently: %s", row->raw);
	}
	scanned = 0;
	do {
		got = parse(with, row->raw, len, &scanned, &response, &used);
	} while (got == H1_MORE && len++ < row->len);
	ck_assert_msg(got == row->result, "in pieces %u: %s", got, row->raw);
}

START_TEST(responses)
{
	for (size_t i = 0; i < ARRAY_LEN(answers); i++)
		check_answer(h1_parse_response, &answers[i]);
}
END_TEST

START_TEST(cgi_responses)
{
	for (size_t i = 0; i < ARRAY_LEN(cgi_answers); i++)
		check_answer(h1_parse_cgi, &cgi_answers[i]);
}
END_TEST

START_TEST(response_pieces)
{
	static const char raw[] = "HTTP/1.1 200 Fine by me\r\n"
				  "Keep-Alive: max=5, Timeout=17\r\n"
				  "Content-Length: 1\r\n\r\nx";
	static const char cgi[] = "A: b\nStatus: 404 Not Here\n\nbody";
	static struct h1_response r;
	size_t scanned = 0, used;
	const char *why;

	ck_assert_int_eq(
	    h1_parse_response(RAW(raw), &limits, &scanned, &r, &used, &why),
	    H1_DONE);
	ck_assert_uint_eq(used, sizeof(raw) - 2);
	ck_assert_uint_eq(r.keep_alive_s, 17);
	ck_assert(str_eq(
	    (struct str){ raw + r.reason, r.reason_len }, STR("Fine by me")));
	scanned = 0;
	ck_assert_int_eq(
	    h1_parse_cgi(RAW(cgi), &limits, &scanned, &r, &used, &why),
	    H1_DONE);
	ck_assert_str_eq(cgi + used, "body");
	ck_assert(str_eq(
	    (struct str){ cgi + r.reason, r.reason_len }, STR("Not Here")));
	ck_assert(
	    header_get(&r.headers, HEADER_STATUS)->flags == HEADER_FLAG_HOP);
	ck_assert(r.headers.fields[0].flags == 0);
}
END_TEST

/* `count` times `part` behind `begin`, then `end`: H1_BAD or not? */
static enum h1_result
parse_repeated(parser *with, const char *begin, const char *part, size_t count,
    const char *end)
{
	static struct h1_response response;
	static char raw[8192];
	size_t len = strlen(begin), scanned = 0, used;

	memcpy(raw, begin, len);
	for (size_t i = 0; i < count; i++, len += strlen(part))
		memcpy(raw + len, part, strlen(part));
	memcpy(raw + len, end, strlen(end));
	return parse(with, raw, len + strlen(end), &scanned, &response, &used);
}

/* header_count is 20, head_bytes 2000, line_bytes 200. */
START_TEST(websocket_answers)
{
#define SWITCH(status, fields) RAW("HTTP/1.1 " status " x\r\n" fields "\r\n")
	static const struct {
		const char *raw;
		size_t len;
		bool websocket;
	} rows[] = {
		{ SWITCH("101", "Connection: Upgrade\r\n"
				"Upgrade: websocket\r\n"),
		    true },
		{ SWITCH("101", "upgrade: WebSocket\r\n"
				"connection: keep-alive, upgrade\r\n"),
		    true },
		{ SWITCH("200", "Connection: Upgrade\r\n"
				"Upgrade: websocket\r\n"),
		    false },
		{ SWITCH("103", "Connection: Upgrade\r\n"
				"Upgrade: websocket\r\n"),
		    false },
		{ SWITCH("101", "Upgrade: websocket\r\n"), false },
		{ SWITCH("101", "Connection: Upgrade\r\n"), false },
		{ SWITCH("101", "Connection: Upgrade\r\nUpgrade: h2c\r\n"),
		    false },
		{ SWITCH("101", "Connection: Upgrade\r\n"
				"Upgrade: websocket, h2c\r\n"),
		    false },
		{ SWITCH("101", "Connection: Upgrade\r\n"
				"Upgrade: websocket\r\nUpgrade: h2c\r\n"),
		    false },
		{ RAW("HTTP/1.0 101 x\r\nConnection: Upgrade\r\n"
		      "Upgrade: websocket\r\n\r\n"),
		    false },
	};
	static struct h1_response r;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t scanned = 0, used;
		const char *why;

		ck_assert_int_eq(h1_parse_response(rows[i].raw, rows[i].len,
				     &limits, &scanned, &r, &used, &why),
		    H1_DONE);
		ck_assert_msg(
		    r.websocket == rows[i].websocket, "%s", rows[i].raw);
	}
#undef SWITCH
}
END_TEST

START_TEST(answer_limits)
{
	static const struct {
		parser *with;
		const char *begin, *part, *end;
		size_t passes, fails;
		enum h1_result result; /* of what passes */
	} rows[] = {
		{ h1_parse_response, "HTTP/1.1 200 OK\r\n", "A: b\r\n", "\r\n",
		    20, 21, H1_DONE },
		{ h1_parse_response, "HTTP/1.1 200 OK\r\n", "A: b\r\n", "\r\n",
		    20, 140, H1_DONE },
		{ h1_parse_response, "HTTP/1.1 200 ", "O", "\r\n\r\n", 187, 188,
		    H1_DONE },
		{ h1_parse_response, "HTTP/1.1 200 OK\r\nA: ", "b", "\r\n\r\n",
		    1976, 1977, H1_DONE },
		{ h1_parse_response, "HTTP/1.1 200 OK\r\nA: ", "b", "", 1980,
		    1981, H1_MORE },
		{ h1_parse_response, "HTTP/1.1 200 OK\r\nConnection: ", ",",
		    "\r\n\r\n", 63, 64, H1_DONE },
		{ h1_parse_cgi, "", "A: b\n", "\n", 20, 21, H1_DONE },
		{ h1_parse_cgi, "", "A: b\n", "\n", 20, 140, H1_DONE },
		{ h1_parse_cgi, "A: ", "b", "\n\n", 1995, 1996, H1_DONE },
		{ h1_parse_cgi, "A: ", "b", "", 1997, 1998, H1_MORE },
		{ h1_parse_cgi, "Connection: ", ",", "\n\n", 63, 64, H1_DONE },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		enum h1_result got = parse_repeated(rows[i].with, rows[i].begin,
		    rows[i].part, rows[i].passes, rows[i].end);

		ck_assert_msg(got == rows[i].result, "row %zu: %u", i, got);
		got = parse_repeated(rows[i].with, rows[i].begin, rows[i].part,
		    rows[i].fails, rows[i].end);
		ck_assert_msg(got == H1_BAD, "row %zu: %u", i, got);
	}
}
END_TEST

/* --- the table ----------------------------------------------------------- */

START_TEST(known_names)
{
	for (int id = 1; id < HEADER_ID_COUNT; id++) {
		struct str name = header_name((enum header_id)id);
		char other[32];

		ck_assert_uint_gt(name.len, 1);
		ck_assert_int_eq(header_lookup(name.ptr, name.len), id);
		str_lower(other, name.ptr, name.len);
		ck_assert_int_eq(header_lookup(other, name.len), id);
		for (size_t i = 0; i < name.len; i++) {
			char kept = other[i];

			if (kept >= 'a' && kept <= 'z')
				other[i] = (char)(kept - 0x20);
			ck_assert_int_eq(header_lookup(other, name.len), id);
			other[i] = (char)(kept ^ 0x40);
			ck_assert_int_eq(
			    header_lookup(other, name.len), HEADER_OTHER);
			/* '-' and CR differ in the case bit only. */
			if (kept == '-') {
				other[i] = '\r';
				ck_assert_int_eq(header_lookup(other, name.len),
				    HEADER_OTHER);
			}
			other[i] = kept;
		}
		ck_assert_int_ne(header_lookup(other, name.len - 1), id);
	}
	ck_assert_int_eq(header_lookup("", 0), HEADER_OTHER);
	ck_assert_int_eq(header_lookup("x", 1), HEADER_OTHER);
	ck_assert_int_eq(
	    header_lookup("a-name-of-more-than-24-bytes", 28), HEADER_OTHER);
}
END_TEST

/* Fields as "name: flags" behind a Connection with that value. */
START_TEST(hops_marked)
{
	static const struct {
		const char *connection, *name;
		unsigned flags;
	} rows[] = {
		{ "close", "Foo", 0 },
		{ "foo", "Foo", HEADER_FLAG_HOP },
		{ "a, FOO ,b", "foo", HEADER_FLAG_HOP },
		{ "fo", "Foo", 0 },
		{ "", "Keep-Alive", HEADER_FLAG_HOP },
		{ "", "Proxy", HEADER_FLAG_HOP },
		{ "", "Proxy-Connection", HEADER_FLAG_HOP },
		{ "", "pROXY-Authorization", HEADER_FLAG_HOP },
		{ "", "Proxy-Foo", HEADER_FLAG_HOP },
		{ "", "Proxyfoo", 0 },
		{ "", "TE", HEADER_FLAG_HOP },
		{ "", "Trailer", HEADER_FLAG_HOP },
		{ "", "Transfer-Encoding", HEADER_FLAG_HOP },
		{ "", "Upgrade", HEADER_FLAG_HOP },
		{ "", "HTTP2-Settings", HEADER_FLAG_HOP },
		{ "referer", "Referer", HEADER_FLAG_HOP },
		{ "Content-Length, host", "Content-Length", 0 },
		{ "Host", "Host", 0 },
		{ "x-forwarded-for", "X-Forwarded-For", 0 },
		{ "authorization", "Authorization", 0 },
		{ "", "X_Foo", HEADER_FLAG_ODD_NAME },
		{ "", "X.Foo", HEADER_FLAG_ODD_NAME },
		{ "x_foo", "X_Foo", HEADER_FLAG_ODD_NAME | HEADER_FLAG_HOP },
		{ "", "Content_Length", HEADER_FLAG_ODD_NAME },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct header_table table;
		char base[128] = "Connection";
		uint32_t at = 10, len = (uint32_t)strlen(rows[i].connection);

		header_table_reset(&table);
		strcat(base, rows[i].connection);
		ck_assert_int_eq(
		    header_table_add(&table, base, 0, 10, at, len), 0);
		at = (uint32_t)strlen(base);
		strcat(base, rows[i].name);
		ck_assert_int_eq(header_table_add(&table, base, at,
				     (uint16_t)strlen(rows[i].name), 0, 0),
		    0);
		header_mark_hops(&table, base);
		ck_assert(table.fields[0].flags == HEADER_FLAG_HOP);
		ck_assert_msg(table.fields[1].flags == rows[i].flags, "%s: %s",
		    rows[i].connection, rows[i].name);
	}
}
END_TEST

START_TEST(table_cases)
{
	static const char base[] = "VaryaVarya , Bx";
	struct header_table table;
	const struct header_field *field;

	header_table_reset(&table);
	ck_assert(header_get(&table, HEADER_VARY) == NULL);
	ck_assert_int_eq(header_table_add(&table, base, 0, 4, 4, 1), 0);
	ck_assert_int_eq(header_table_add(&table, base, 14, 1, 0, 0), 0);
	ck_assert_int_eq(header_table_add(&table, base, 5, 4, 9, 5), 0);
	field = header_get(&table, HEADER_VARY);
	ck_assert(str_eq(header_value(base, field), STR("a")));
	field = header_next(&table, field);
	ck_assert(str_eq(header_value(base, field), STR("a , B")));
	ck_assert(header_next(&table, field) == NULL);
	ck_assert(header_has_token(&table, base, HEADER_VARY, STR("b")));
	ck_assert(!header_has_token(&table, base, HEADER_VARY, STR("x")));
	ck_assert(!header_has_token(&table, base, HEADER_TE, STR("b")));
	while (table.count < HEADER_FIELDS_MAX)
		ck_assert_int_eq(
		    header_table_add(&table, base, 14, 1, 0, 0), 0);
	ck_assert_int_eq(header_table_add(&table, base, 14, 1, 0, 0), -1);
	header_table_reset(&table);
	ck_assert(!header_has(&table, HEADER_VARY));
}
END_TEST

/* Each option costs a walk: their number is bounded. */
START_TEST(many_options)
{
	char raw[512] = "GET / HTTP/1.0\r\nConnection: ";

	for (unsigned commas = HEADER_OPTIONS_MAX - 1;
	     commas <= HEADER_OPTIONS_MAX; commas++) {
		size_t len = 28, scanned = 0, used;
		struct h1_request request;
		unsigned status = 0;
		const char *why;
		bool is_ok = commas < HEADER_OPTIONS_MAX;

		memset(raw + len, ',', commas);
		len += commas;
		memcpy(raw + len, "\r\n\r\n", 4);
		ck_assert_int_eq(h1_parse_request(raw, len + 4, &limits,
				     &scanned, &request, &used, &status, &why),
		    is_ok ? H1_DONE : H1_BAD);
	}
}
END_TEST

START_TEST(statuses)
{
	ck_assert(str_eq(status_reason(200), STR("OK")));
	ck_assert(
	    str_eq(status_reason(511), STR("Network Authentication Required")));
	ck_assert(str_eq(status_reason(299), STR("Unknown")));
	ck_assert(str_eq(status_reason(0), STR("Unknown")));
	ck_assert(str_eq(status_reason(512), STR("Unknown")));
	ck_assert(!status_has_body(101) && !status_has_body(204));
	ck_assert(!status_has_body(304) && status_has_body(205));
	ck_assert(!http_method_is_idempotent(METHOD_POST));
	ck_assert(!http_method_is_idempotent(METHOD_PATCH));
	ck_assert(!http_method_is_idempotent(METHOD_OTHER));
	ck_assert(http_method_is_idempotent(METHOD_DELETE));
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { responses, cgi_responses,
		response_pieces, websocket_answers, answer_limits, known_names,
		hops_marked, table_cases, many_options, statuses };
	Suite *suite = suite_create("http");
	TCase *all = tcase_create("http");

	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		tcase_add_test(all, tests[i]);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
