/*
 * Bodies of HTTP/1: chunks by their grammar, lengths, and the chunk writer.
 * Every row is fed whole, byte by byte, and split in two at every place.
 * Heads are in test_h1.c.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/http/h1_body.h"
#include "t/unit/run.h"

#define RAW(text) text, sizeof(text) - 1

struct body_case {
	const char *raw;
	size_t len;
	const char *body; /* NULL: bad */
	size_t rest;      /* bytes behind the body */
	bool is_open;     /* more is needed */
};

static const struct body_case chunked[] = {
	{ RAW("0\r\n\r\n"), "", 0, false },
	{ RAW("5\r\nhello\r\n0\r\n\r\n"), "hello", 0, false },
	{ RAW("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"), "hello world", 0,
	    false },
	{ RAW("a\r\n0123456789\r\n0\r\n\r\n"), "0123456789", 0, false },
	{ RAW("A\r\n0123456789\r\n0\r\n\r\n"), "0123456789", 0, false },
	{ RAW("00005\r\nhello\r\n000\r\n\r\n"), "hello", 0, false },
	{ RAW("0000000000000005\r\nhello\r\n0\r\n\r\n"), "hello", 0, false },
	{ RAW("2\r\n\r\n\r\n0\r\n\r\n"), "\r\n", 0, false },
	{ RAW("5\r\nhello\r\n0\r\n\r\nGET /"), "hello", 5, false },
	{ RAW("5\r\nhello\r\n0\r\n\r\n\r\n"), "hello", 2, false },
	{ RAW(""), "", 0, true },
	{ RAW("5"), "", 0, true },
	{ RAW("5\r\nhel"), "hel", 0, true },
	{ RAW("5\r\nhello\r\n0\r\n"), "hello", 0, true },
	{ RAW("5\r\nhello\r\n0\r\n\r"), "hello", 0, true },
	{ RAW("7fffffffffffffff\r\nx"), "x", 0, true },
	/* Sizes. */
	{ RAW("\r\n"), NULL, 0, false },
	{ RAW(" 5\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5 \r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5\t\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("0 \r\n\r\n"), NULL, 0, false },
	{ RAW("+5\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("-5\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("0x5\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5h\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("g\r\n"), NULL, 0, false },
	{ RAW("5_0\r\n"), NULL, 0, false },
	{ RAW("5,5\r\n"), NULL, 0, false },
	{ RAW("5.\r\n"), NULL, 0, false },
	{ RAW("\xb2\r\n"), NULL, 0, false },
	{ RAW("5\0\r\nhello"), NULL, 0, false },
	{ RAW("8000000000000000\r\n"), NULL, 0, false },
	{ RAW("ffffffffffffffff\r\n"), NULL, 0, false },
	{ RAW("10000000000000005\r\nhello"), NULL, 0, false },
	{ RAW("00000000000000005\r\nhello"), NULL, 0, false },
	/* Line ends. */
	{ RAW("5\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5\rhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5\r\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5\r\nhello\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5\r\nhello\r0\r\n\r\n"), NULL, 0, false },
	{ RAW("5\r\nhello0\r\n\r\n"), NULL, 0, false },
	{ RAW("5\r\nhelloXX0\r\n\r\n"), NULL, 0, false },
	{ RAW("5\r\nhello \r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5\r\nhello!\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("6\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5\r\nhello\r\n\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("0\n\r\n"), NULL, 0, false },
	{ RAW("0\r\n\n"), NULL, 0, false },
	{ RAW("0\r\n\rX"), NULL, 0, false },
	/* Extensions. */
	{ RAW("5;a\r\nhello\r\n0;b\r\n\r\n"), "hello", 0, false },
	{ RAW("5;a=b;c=\"d\"\r\nhello\r\n0\r\n\r\n"), "hello", 0, false },
	{ RAW("5 ; a = b ; c\r\nhello\r\n0\r\n\r\n"), "hello", 0, false },
	{ RAW("5;a=\"\\\"; \\\\\xff\t\"\r\nhello\r\n0\r\n\r\n"), "hello", 0,
	    false },
	{ RAW("5;a=\"\"\r\nhello\r\n0\r\n\r\n"), "hello", 0, false },
	{ RAW("5;\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5;;a\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5;a=\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5;=b\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5;a b\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5;a \r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5;a=b \r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5;a=b=c\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5;a=\"b\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5;a=\"b\\\r\"\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5;a=\"b\"c\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5;a\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5;a\n\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5;a=\"\n\"\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5;a\0\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5;a=\"\0\"\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5;a\x80\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5;a=\"\x7f\"\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5,a\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	{ RAW("5 a\r\nhello\r\n0\r\n\r\n"), NULL, 0, false },
	/* Trailers. */
	{ RAW("0\r\nA: b\r\n\r\n"), "", 0, false },
	{ RAW("0\r\nA:\r\nB: \xff\tc\r\n\r\n"), "", 0, false },
	{ RAW("0\r\nContent-Length: 5\r\n\r\nhello"), "", 5, false },
	{ RAW("0\r\nA : b\r\n\r\n"), NULL, 0, false },
	{ RAW("0\r\nA\r\n\r\n"), NULL, 0, false },
	{ RAW("0\r\n: b\r\n\r\n"), NULL, 0, false },
	{ RAW("0\r\n A: b\r\n\r\n"), NULL, 0, false },
	{ RAW("0\r\nA: b\r\n c\r\n\r\n"), NULL, 0, false },
	{ RAW("0\r\nA: b\n\r\n"), NULL, 0, false },
	{ RAW("0\r\nA: b\rB: c\r\n\r\n"), NULL, 0, false },
	{ RAW("0\r\nA: b\r\n\n"), NULL, 0, false },
	{ RAW("0\r\nA\0: b\r\n\r\n"), NULL, 0, false },
	{ RAW("0\r\nA: \0\r\n\r\n"), NULL, 0, false },
	{ RAW("0\r\nA: \x7f\r\n\r\n"), NULL, 0, false },
	{ RAW("0\r\nGET / HTTP/1.1\r\n\r\n"), NULL, 0, false },
};

struct feed {
	struct h1_body body;
	char got[256];
	size_t len;  /* of got */
	size_t used; /* of the input */
	enum h1_body_result result;
};

/* Feed a piece in a block of its own size, until it is used up or the reader
 * says something final. */
static void
feed_piece(struct feed *feed, const char *from, size_t len)
{
	char *copy = malloc(len > 0 ? len : 1);
	size_t at = 0;

	memcpy(copy, from, len);
	do {
		const char *data = NULL;
		size_t used, data_len = 0;

		feed->result = h1_body_read(
		    &feed->body, copy + at, len - at, &used, &data, &data_len);
		ck_assert_uint_le(used, len - at);
		at += used;
		if (feed->result == H1_BODY_DATA) {
			ck_assert_uint_gt(data_len, 0);
			ck_assert_uint_le(
			    feed->len + data_len, sizeof(feed->got));
			memcpy(feed->got + feed->len, data, data_len);
			feed->len += data_len;
		}
	} while (feed->result == H1_BODY_DATA);
	if (feed->result == H1_BODY_MORE)
		ck_assert_uint_eq(at, len);
	feed->used += at;
	free(copy);
}

static void
check_feed(const struct body_case *row, struct feed *feed, const char *how)
{
	if (row->body == NULL) {
		ck_assert_msg(
		    feed->result == H1_BODY_BAD, "%s: %s", how, row->raw);
		feed_piece(feed, "0\r\n\r\n", 5);
		ck_assert_int_eq(feed->result, H1_BODY_BAD);
		return;
	}
	ck_assert_msg(
	    feed->result == (row->is_open ? H1_BODY_MORE : H1_BODY_END),
	    "%s: %s", how, row->raw);
	ck_assert(h1_body_is_done(&feed->body) == !row->is_open);
	ck_assert_uint_eq(feed->len, strlen(row->body));
	ck_assert_mem_eq(feed->got, row->body, feed->len);
	ck_assert_uint_eq(feed->body.seen, feed->len);
	ck_assert_uint_eq(feed->used, row->len - row->rest);
}

static bool
is_over(const struct feed *feed)
{
	return feed->result == H1_BODY_END || feed->result == H1_BODY_BAD;
}

static void
begin(struct feed *feed)
{
	memset(feed, 0, sizeof(*feed));
	h1_body_init(&feed->body, BODY_CHUNKED, 0);
}

START_TEST(chunks)
{
	for (size_t i = 0; i < ARRAY_LEN(chunked); i++) {
		const struct body_case *row = &chunked[i];
		struct feed feed;

		begin(&feed);
		feed_piece(&feed, row->raw, row->len);
		check_feed(row, &feed, "whole");
		begin(&feed);
		feed_piece(&feed, row->raw, 0);
		for (size_t k = 0; k < row->len && !is_over(&feed); k++)
			feed_piece(&feed, row->raw + k, 1);
		check_feed(row, &feed, "byte by byte");
		for (size_t at = 0; at <= row->len; at++) {
			begin(&feed);
			feed_piece(&feed, row->raw, at);
			if (!is_over(&feed))
				feed_piece(&feed, row->raw + at, row->len - at);
			check_feed(row, &feed, "in two");
		}
	}
}
END_TEST

/* A line or trailers over the limit are refused, at the limit they pass. */
START_TEST(limits_hold)
{
	static char raw[H1_TRAILER_MAX + 64];

	for (size_t over = 0; over <= 1; over++) {
		size_t len = H1_CHUNK_LINE_MAX + over;
		struct feed feed;

		memset(raw, 'a', len);
		memcpy(raw, "1;", 2);
		memcpy(raw + len - 2, "\r\n", 2);
		begin(&feed);
		feed_piece(&feed, raw, len);
		ck_assert_int_eq(
		    feed.result, over ? H1_BODY_BAD : H1_BODY_MORE);
		len = 3 + H1_TRAILER_MAX + over;
		memset(raw, 'a', len);
		memcpy(raw, "0\r\nA:", 5);
		memcpy(raw + len - 4, "\r\n\r\n", 4);
		begin(&feed);
		feed_piece(&feed, raw, len);
		ck_assert_int_eq(feed.result, over ? H1_BODY_BAD : H1_BODY_END);
	}
}
END_TEST

START_TEST(other_kinds)
{
	struct feed feed;

	memset(&feed, 0, sizeof(feed));
	h1_body_init(&feed.body, BODY_NONE, 5);
	ck_assert(h1_body_is_done(&feed.body));
	feed_piece(&feed, "hello", 5);
	ck_assert_int_eq(feed.result, H1_BODY_END);
	ck_assert_uint_eq(feed.used, 0);

	memset(&feed, 0, sizeof(feed));
	h1_body_init(&feed.body, BODY_LENGTH, 5);
	feed_piece(&feed, "hel", 3);
	ck_assert(!h1_body_is_done(&feed.body));
	ck_assert_int_eq(feed.result, H1_BODY_MORE);
	feed_piece(&feed, "lo!", 3);
	ck_assert(h1_body_is_done(&feed.body));
	ck_assert_int_eq(feed.result, H1_BODY_END);
	ck_assert_uint_eq(feed.used, 5);
	ck_assert_mem_eq(feed.got, "hello", 5);

	memset(&feed, 0, sizeof(feed));
	h1_body_init(&feed.body, BODY_LENGTH, 0);
	ck_assert(h1_body_is_done(&feed.body));
	feed_piece(&feed, "x", 1);
	ck_assert_int_eq(feed.result, H1_BODY_END);

	memset(&feed, 0, sizeof(feed));
	h1_body_init(&feed.body, BODY_UNTIL_CLOSE, 0);
	feed_piece(&feed, "0\r\n", 3);
	feed_piece(&feed, "\r\n", 2);
	ck_assert_int_eq(feed.result, H1_BODY_MORE);
	ck_assert(!h1_body_is_done(&feed.body));
	ck_assert_uint_eq(feed.len, 5);
}
END_TEST

START_TEST(chunk_heads)
{
	char to[H1_CHUNK_HEAD_MAX];

	ck_assert_uint_eq(h1_chunk_head(to, 31), 4);
	ck_assert_mem_eq(to, "1f\r\n", 4);
	ck_assert_uint_eq(h1_chunk_head(to, UINT64_MAX), H1_CHUNK_HEAD_MAX);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { chunks, limits_hold, other_kinds,
		chunk_heads };
	Suite *suite = suite_create("h1_body");
	TCase *all = tcase_create("bodies");

	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		tcase_add_test(all, tests[i]);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
