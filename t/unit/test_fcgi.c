/*
 * FastCGI: the records we write, and replies of every kind, good and bad.
 * Every reply is fed whole, byte by byte, and split in two at every place.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "fcgi/fcgi.h"
#include "t/unit/run.h"

#define RAW(text) text, sizeof(text) - 1
/* Record headers for request 1, content below 256 bytes. */
#define HEAD(type, len, padding) "\1" type "\0\1\0" len padding "\0"
#define OUT(len) HEAD("\6", len, "\0")
#define ERR(len) HEAD("\7", len, "\0")
#define END HEAD("\3", "\10", "\0")
#define DONE END "\0\0\0\0\0\0\0\0"

static const struct {
	const char *raw;
	size_t len;
	enum fcgi_reply_result result;
	const char *out, *err;
	uint32_t app_status;
	uint8_t protocol_status;
	size_t rest;
} replies[] = {
	{ RAW(""), FCGI_REPLY_MORE, "", "", 0, 0, 0 },
	{ RAW(DONE), FCGI_REPLY_END, "", "", 0, 0, 0 },
	{ RAW(OUT("\2") "hi" DONE), FCGI_REPLY_END, "hi", "", 0, 0, 0 },
	{ RAW(OUT("\2") "hi" OUT("\1") "!" DONE), FCGI_REPLY_END, "hi!", "", 0,
	    0, 0 },
	{ RAW(ERR("\2") "no" DONE), FCGI_REPLY_END, "", "no", 0, 0, 0 },
	{ RAW(OUT("\1") "a" ERR("\1") "x" OUT("\1") "b" ERR("\1") "y" DONE),
	    FCGI_REPLY_END, "ab", "xy", 0, 0, 0 },
	{ RAW(OUT("\2") "hi" OUT("\0") DONE), FCGI_REPLY_END, "hi", "", 0, 0,
	    0 },
	{ RAW(OUT("\2") "hi" OUT("\0") ERR("\2") "no" ERR("\0") DONE),
	    FCGI_REPLY_END, "hi", "no", 0, 0, 0 },
	{ RAW(OUT("\0") DONE), FCGI_REPLY_END, "", "", 0, 0, 0 },
	{ RAW(HEAD("\6", "\2", "\3") "hixyz" DONE), FCGI_REPLY_END, "hi", "", 0,
	    0, 0 },
	{ RAW(HEAD("\6", "\0", "\3") "xyz" DONE), FCGI_REPLY_END, "", "", 0, 0,
	    0 },
	{ RAW(HEAD("\3", "\10", "\2") "\0\0\0\0\0\0\0\0xy"), FCGI_REPLY_END, "",
	    "", 0, 0, 0 },
	{ RAW(HEAD("\3", "\10", "\2") "\0\0\0\0\0\0\0\0x"), FCGI_REPLY_MORE, "",
	    "", 0, 0, 0 },
	{ RAW(END "\1\2\3\4\0\0\0\0"), FCGI_REPLY_END, "", "", 0x01020304, 0,
	    0 },
	{ RAW(END "\377\377\377\377\0abc"), FCGI_REPLY_END, "", "", 0xffffffff,
	    0, 0 },
	{ RAW(END "\0\0\0\0\1\0\0\0"), FCGI_REPLY_END, "", "", 0, 1, 0 },
	{ RAW(END "\0\0\0\0\2\0\0\0"), FCGI_REPLY_END, "", "", 0, 2, 0 },
	{ RAW(END "\0\0\0\0\3\0\0\0"), FCGI_REPLY_END, "", "", 0, 3, 0 },
	{ RAW(END "\0\0\0\0\377\0\0\0"), FCGI_REPLY_END, "", "", 0, 255, 0 },
	{ RAW(DONE "x"), FCGI_REPLY_END, "", "", 0, 0, 1 },
	{ RAW(DONE OUT("\1") "a"), FCGI_REPLY_END, "", "", 0, 0, 9 },
	/* The reserved byte is not looked at. */
	{ RAW("\1\6\0\1\0\1\0\377a" DONE), FCGI_REPLY_END, "a", "", 0, 0, 0 },
	/* Cut off. */
	{ RAW("\1\6\0\1\0\2\0"), FCGI_REPLY_MORE, "", "", 0, 0, 0 },
	{ RAW(OUT("\5") "hi"), FCGI_REPLY_MORE, "hi", "", 0, 0, 0 },
	{ RAW(OUT("\2") "hi"), FCGI_REPLY_MORE, "hi", "", 0, 0, 0 },
	{ RAW(HEAD("\6", "\2", "\3") "hix"), FCGI_REPLY_MORE, "hi", "", 0, 0,
	    0 },
	{ RAW(END "\0\0\0\0\0"), FCGI_REPLY_MORE, "", "", 0, 0, 0 },
	/* Bad. */
	{ RAW("\0\6\0\1\0\1\0\0a"), FCGI_REPLY_BAD, "", "", 0, 0, 0 },
	{ RAW("\2\6\0\1\0\1\0\0a"), FCGI_REPLY_BAD, "", "", 0, 0, 0 },
	{ RAW("HTTP/1.1 200 OK\r\n"), FCGI_REPLY_BAD, "", "", 0, 0, 0 },
	{ RAW("\1\6\0\2\0\1\0\0a"), FCGI_REPLY_BAD, "", "", 0, 0, 0 },
	{ RAW("\1\6\1\1\0\1\0\0a"), FCGI_REPLY_BAD, "", "", 0, 0, 0 },
	{ RAW("\1\6\0\0\0\1\0\0a"), FCGI_REPLY_BAD, "", "", 0, 0, 0 },
	{ RAW(HEAD("\0", "\1", "\0") "a"), FCGI_REPLY_BAD, "", "", 0, 0, 0 },
	{ RAW(HEAD("\1", "\10", "\0") "12345678"), FCGI_REPLY_BAD, "", "", 0, 0,
	    0 },
	{ RAW(HEAD("\2", "\0", "\0")), FCGI_REPLY_BAD, "", "", 0, 0, 0 },
	{ RAW(HEAD("\4", "\0", "\0")), FCGI_REPLY_BAD, "", "", 0, 0, 0 },
	{ RAW(HEAD("\5", "\1", "\0") "a"), FCGI_REPLY_BAD, "", "", 0, 0, 0 },
	{ RAW(HEAD("\10", "\1", "\0") "a"), FCGI_REPLY_BAD, "", "", 0, 0, 0 },
	{ RAW(HEAD("\12", "\0", "\0")), FCGI_REPLY_BAD, "", "", 0, 0, 0 },
	{ RAW(HEAD("\13", "\10", "\0") "12345678"), FCGI_REPLY_BAD, "", "", 0,
	    0, 0 },
	{ RAW(HEAD("\377", "\0", "\0")), FCGI_REPLY_BAD, "", "", 0, 0, 0 },
	{ RAW(HEAD("\3", "\0", "\0")), FCGI_REPLY_BAD, "", "", 0, 0, 0 },
	{ RAW(HEAD("\3", "\7", "\0") "1234567"), FCGI_REPLY_BAD, "", "", 0, 0,
	    0 },
	{ RAW(HEAD("\3", "\11", "\0") "123456789"), FCGI_REPLY_BAD, "", "", 0,
	    0, 0 },
	{ RAW("\1\3\0\1\1\10\0\0"), FCGI_REPLY_BAD, "", "", 0, 0, 0 },
	{ RAW(OUT("\2") "hi"
			"garbage!"),
	    FCGI_REPLY_BAD, "hi", "", 0, 0, 0 },
	{ RAW(OUT("\0") OUT("\1") "a"), FCGI_REPLY_BAD, "", "", 0, 0, 0 },
	{ RAW(ERR("\0") ERR("\1") "a"), FCGI_REPLY_BAD, "", "", 0, 0, 0 },
};

struct feed {
	struct fcgi_reply reply;
	char out[64], err[64];
	size_t out_len, err_len, used;
	enum fcgi_reply_result result;
};

static void
keep(char *to, size_t *len, const unsigned char *data, size_t data_len)
{
	ck_assert_uint_gt(data_len, 0);
	ck_assert_uint_le(*len + data_len, 64);
	memcpy(to + *len, data, data_len);
	*len += data_len;
}

static void
feed_piece(struct feed *feed, const char *from, size_t len)
{
	unsigned char *copy = malloc(len > 0 ? len : 1);
	const unsigned char *data;
	size_t at = 0, used, data_len;
	bool go_on = true;

	memcpy(copy, from, len);
	while (go_on) {
		go_on = false;
		feed->result = fcgi_reply_read(
		    &feed->reply, copy + at, len - at, &used, &data, &data_len);
		ck_assert_uint_le(used, len - at);
		at += used;
		switch (feed->result) {
		case FCGI_REPLY_STDOUT:
			keep(feed->out, &feed->out_len, data, data_len);
			go_on = true;
			break;
		case FCGI_REPLY_STDERR:
			keep(feed->err, &feed->err_len, data, data_len);
			go_on = true;
			break;
		case FCGI_REPLY_MORE:
			ck_assert_uint_eq(at, len);
			break;
		case FCGI_REPLY_END:
		case FCGI_REPLY_BAD:
			break;
		}
	}
	feed->used += at;
	free(copy);
}

static void
check_feed(size_t row, const struct feed *feed, const char *how)
{
	ck_assert_msg(feed->result == replies[row].result, "row %zu %s: %u",
	    row, how, feed->result);
	ck_assert_uint_eq(feed->out_len, strlen(replies[row].out));
	ck_assert_mem_eq(feed->out, replies[row].out, feed->out_len);
	ck_assert_uint_eq(feed->err_len, strlen(replies[row].err));
	ck_assert_mem_eq(feed->err, replies[row].err, feed->err_len);
	if (feed->result != FCGI_REPLY_END)
		return;
	ck_assert_uint_eq(feed->used, replies[row].len - replies[row].rest);
	ck_assert_uint_eq(feed->reply.app_status, replies[row].app_status);
	ck_assert_uint_eq(
	    feed->reply.protocol_status, replies[row].protocol_status);
}

static bool
is_over(const struct feed *feed)
{
	return feed->result == FCGI_REPLY_END || feed->result == FCGI_REPLY_BAD;
}

static void
begin(struct feed *feed)
{
	memset(feed, 0, sizeof(*feed));
	fcgi_reply_init(&feed->reply, 1);
	feed_piece(feed, "", 0);
}

START_TEST(replies_read)
{
	for (size_t i = 0; i < ARRAY_LEN(replies); i++) {
		const char *raw = replies[i].raw;
		size_t len = replies[i].len;
		struct feed feed;

		begin(&feed);
		feed_piece(&feed, raw, len);
		check_feed(i, &feed, "whole");
		begin(&feed);
		for (size_t k = 0; k < len && !is_over(&feed); k++)
			feed_piece(&feed, raw + k, 1);
		check_feed(i, &feed, "byte by byte");
		for (size_t at = 0; at <= len; at++) {
			begin(&feed);
			feed_piece(&feed, raw, at);
			if (!is_over(&feed))
				feed_piece(&feed, raw + at, len - at);
			check_feed(i, &feed, "in two");
		}
	}
}
END_TEST

START_TEST(headers_written)
{
	unsigned char to[16];

	fcgi_put_header(to, FCGI_STDIN, 0x1234, 0xabcd);
	ck_assert_mem_eq(to, "\1\5\x12\x34\xab\xcd\0\0", 8);
	ck_assert_uint_eq(fcgi_put_begin(to, 1, true), 16);
	ck_assert_mem_eq(to, "\1\1\0\1\0\10\0\0\0\1\1\0\0\0\0\0", 16);
	ck_assert_uint_eq(fcgi_put_begin(to, 0xffff, false), 16);
	ck_assert_mem_eq(to, "\1\1\xff\xff\0\10\0\0\0\1\0\0\0\0\0\0", 16);
}
END_TEST

START_TEST(params_written)
{
	static const char want[] = "before\1\4\0\1\0\26\0\0\1\2AbC\0\1X\13\1HTT"
				   "P_A_B_CZ9\1\4\0\1\0\0\0\0";
	unsigned char buf[128] = "before";
	struct fcgi_params params;
	size_t len;

	fcgi_params_begin(&params, buf, sizeof(buf), 6, 1);
	fcgi_params_add(&params, STR("A"), STR("bC"));
	fcgi_params_add(&params, STR(""), STR("X"));
	fcgi_params_add_header(&params, STR("a-b_cz"), STR("9"));
	len = fcgi_params_end(&params);
	ck_assert_uint_eq(len, sizeof(want) - 1);
	ck_assert_mem_eq(buf, want, len);

	/* None at all: one empty record. */
	fcgi_params_begin(&params, buf, sizeof(buf), 0, 1);
	ck_assert_uint_eq(fcgi_params_end(&params), 8);
	ck_assert_mem_eq(buf, "\1\4\0\1\0\0\0\0", 8);
}
END_TEST

/* Every byte at every place of a word, and in the rest behind the words. */
START_TEST(params_upper_case)
{
	for (int c = 0; c < 256; c++) {
		for (size_t at = 0; at < 11; at++) {
			char name[] = "aaaaazz-z~{";
			unsigned char buf[64], want[] = "HTTP_AAAAAZZ_Z~{";
			struct fcgi_params params;

			name[at] = (char)c;
			want[5 + at] =
			    (unsigned char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A'
					    : c == '-'           ? '_'
								 : c);
			fcgi_params_begin(&params, buf, sizeof(buf), 0, 1);
			fcgi_params_add_header(
			    &params, (struct str){ name, 11 }, STR(""));
			ck_assert_uint_eq(fcgi_params_end(&params), 34);
			ck_assert_mem_eq(buf + 10, want, 16);
		}
	}
}
END_TEST

/* Read the stream back: returns its length without the record headers, which
 * are taken out of `buf`. */
static size_t
unpack(unsigned char *buf, size_t len)
{
	size_t at = 0, out = 0, content = 1;

	while (content > 0) {
		ck_assert_uint_ge(len - at, 8);
		ck_assert_mem_eq(buf + at, "\1\4\0\7", 4);
		content = (size_t)buf[at + 4] << 8 | buf[at + 5];
		ck_assert_uint_ge(len - at - 8, content);
		memmove(buf + out, buf + at + 8, content);
		out += content;
		at += 8 + content;
	}
	ck_assert_uint_eq(at, len);
	return out;
}

/* Lengths around 127 and around the record's end. */
START_TEST(params_split)
{
	static const size_t lens[] = { 126, 127, 128, 255, 65520, 65524, 65525,
		65526, 65527, 65528, 65529, 65530, 65535, 65536, 131070,
		200000 };
	static unsigned char buf[300000];
	char *value = malloc(200000);

	memset(value, 'v', 200000);
	for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
		struct fcgi_params params;
		size_t len = lens[i], head = len < 128 ? 1 : 4, used;

		fcgi_params_begin(&params, buf, sizeof(buf), 0, 7);
		fcgi_params_add(
		    &params, STR("name"), (struct str){ value, len });
		fcgi_params_add_header(&params, STR("x-y"), STR("last"));
		used = fcgi_params_end(&params);
		ck_assert_uint_gt(used, 0);
		used = unpack(buf, used);
		ck_assert_uint_eq(used, 1 + head + 4 + len + 2 + 8 + 4);
		ck_assert_int_eq(buf[0], 4);
		if (head == 4)
			ck_assert_uint_eq((size_t)(buf[1] & 0x7f) << 24 |
					      (size_t)buf[2] << 16 |
					      (size_t)buf[3] << 8 | buf[4],
			    len);
		ck_assert_mem_eq(buf + 1 + head, "name", 4);
		ck_assert_mem_eq(buf + used - 12, "HTTP_X_Ylast", 12);
	}
	free(value);
}
END_TEST

/* Every room below what is needed is an overflow, and nothing is written
 * beyond it. */
START_TEST(params_overflow)
{
	for (size_t room = 0; room <= 60; room++) {
		unsigned char *buf = malloc(room > 0 ? room : 1);
		struct fcgi_params params;
		size_t len;

		fcgi_params_begin(&params, buf, room, 0, 1);
		fcgi_params_add(&params, STR("QUERY_STRING"), STR("a=b"));
		fcgi_params_add_header(&params, STR("accept"), STR("*/*"));
		len = fcgi_params_end(&params);
		ck_assert_uint_eq(len, room < 49 ? 0 : 49);
		free(buf);
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { replies_read, headers_written,
		params_written, params_upper_case, params_split,
		params_overflow };
	Suite *suite = suite_create("fcgi");
	TCase *all = tcase_create("codec");

	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		tcase_add_test(all, tests[i]);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
