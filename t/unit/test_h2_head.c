/*
 * HTTP/2 fields made a request: what is taken and how, what is malformed, and
 * what is answered with which status.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/front/h2_head.h"
#include "t/unit/run.h"

#define MALFORMED 1 /* in place of a status; 0: taken */

/* "name=value|name=value": no name or value here holds either sign, but for
 * the first '=' of a field, behind its name. */
struct head_case {
	const char *fields;
	unsigned status;
	bool ends; /* the stream, with the head */
};

#define PLAIN ":method=GET|:scheme=http|:path=/|:authority=a"

static const struct h1_limits limits = { 200, 2000, 10 };
static const uint8_t nonce[16] = { "0123456789abcdef"[0], '1', '2', '3', '4',
	'5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f' };

static const struct head_case cases[] = {
	{ PLAIN, 0, true },
	{ ":path=/|:authority=a|:scheme=https|:method=HEAD", 0, true },
	{ PLAIN "|accept=*/*|x-empty=", 0, true },
	{ ":method=GET|:scheme=http|:path=/|host=a", 0, true },
	{ PLAIN "|host=a", 0, true },
	{ PLAIN "|host=A", 0, true },
	{ PLAIN "|te=trailers", 0, true },
	{ PLAIN "|x_odd=1", 0, true },
	{ ":method=OPTIONS|:scheme=http|:path=*|:authority=a", 0, true },
	{ ":method=POST|:scheme=http|:path=/|:authority=a", 0, false },
	{ PLAIN "|content-length=0", 0, true },
	{ PLAIN "|content-length=5", 0, false },
	/* pseudo fields: RFC 9113 section 8.3 */
	{ "", MALFORMED, true },
	{ ":method=GET|:scheme=http|:path=/", MALFORMED, true },
	{ ":method=GET|:scheme=http|:authority=a", MALFORMED, true },
	{ ":method=GET|:path=/|:authority=a", MALFORMED, true },
	{ ":scheme=http|:path=/|:authority=a", MALFORMED, true },
	{ PLAIN "|:method=GET", MALFORMED, true },
	{ PLAIN "|:path=/", MALFORMED, true },
	{ PLAIN "|:authority=a", MALFORMED, true },
	{ PLAIN "|:status=200", MALFORMED, true },
	{ PLAIN "|:x=1", MALFORMED, true },
	{ PLAIN "|:=1", MALFORMED, true },
	{ "x=1|" PLAIN, MALFORMED, true },
	{ ":method=GET|:scheme=http|x=1|:path=/|:authority=a", MALFORMED,
	    true },
	{ ":method=|:scheme=http|:path=/|:authority=a", MALFORMED, true },
	{ ":method=GET|:scheme=|:path=/|:authority=a", MALFORMED, true },
	{ ":method=GET|:scheme=1|:path=/|:authority=a", MALFORMED, true },
	{ ":method=GET|:scheme=http|:path=|:authority=a", MALFORMED, true },
	{ ":method=GET|:scheme=http|:path=/|:authority=", MALFORMED, true },
	{ ":method=G T|:scheme=http|:path=/|:authority=a", MALFORMED, true },
	{ ":method=GET|:scheme=http|:path=x|:authority=a", MALFORMED, true },
	{ ":method=GET|:scheme=http|:path=*|:authority=a", MALFORMED, true },
	{ ":method=GET|:scheme=http|:path=/a b|:authority=a", MALFORMED, true },
	{ ":method=GET|:scheme=http|:path=/a HTTP/1.1|:authority=a", MALFORMED,
	    true },
	{ ":method=GET|:scheme=http|:path=/#a|:authority=a", MALFORMED, true },
	{ ":method=GET|:scheme=http|:path=http://b/|:authority=a", MALFORMED,
	    true },
	{ ":method=GET|:scheme=http|:path=/|:authority=u@a", MALFORMED, true },
	{ ":method=GET|:scheme=http|:path=/|:authority=a/b", MALFORMED, true },
	{ PLAIN "|host=b", MALFORMED, true },
	{ PLAIN "|host=a|host=a", MALFORMED, true },
	{ ":method=GET|:scheme=http|:path=/|host=a|host=a", MALFORMED, true },
	/* fields: section 8.2 */
	{ PLAIN "|Accept=1", MALFORMED, true },
	{ PLAIN "|x y=1", MALFORMED, true },
	{ PLAIN "|x:=1", MALFORMED, true },
	{ PLAIN "|=1", MALFORMED, true },
	{ PLAIN "|x\x80=1", MALFORMED, true },
	{ PLAIN "|x= 1", MALFORMED, true },
	{ PLAIN "|x=1 ", MALFORMED, true },
	{ PLAIN "|x=\t1", MALFORMED, true },
	{ PLAIN "|x=1\t", MALFORMED, true },
	{ PLAIN "|x=1\r\ny: 2", MALFORMED, true },
	{ PLAIN "|x=1\n2", MALFORMED, true },
	{ PLAIN "|x=\x01", MALFORMED, true },
	{ PLAIN "|x=\x7f", MALFORMED, true },
	{ PLAIN "|x=a\tb \xe4", 0, true },
	{ PLAIN "|connection=close", MALFORMED, true },
	{ PLAIN "|keep-alive=1", MALFORMED, true },
	{ PLAIN "|proxy-connection=close", MALFORMED, true },
	{ PLAIN "|transfer-encoding=chunked", MALFORMED, false },
	{ PLAIN "|upgrade=websocket", MALFORMED, true },
	{ PLAIN "|te=gzip", MALFORMED, true },
	{ PLAIN "|te=trailers, gzip", MALFORMED, true },
	{ PLAIN "|content-length=5", MALFORMED, true },
	{ PLAIN "|content-length=x", MALFORMED, false },
	{ PLAIN "|content-length=5, 5", MALFORMED, false },
	{ PLAIN "|content-length=5|content-length=5", MALFORMED, false },
	{ PLAIN "|content-length=99999999999999999999", MALFORMED, false },
	/* CONNECT: section 8.5, RFC 8441 */
	{ ":method=CONNECT|:authority=a:1", 501, false },
	{ ":method=CONNECT", MALFORMED, false },
	{ ":method=CONNECT|:authority=a|:path=/", MALFORMED, false },
	{ ":method=CONNECT|:authority=a|:scheme=http", MALFORMED, false },
	{ ":method=CONNECT|:authority=a|:scheme=http|:path=/|"
	  ":protocol=websocket",
	    0, false },
	{ ":method=CONNECT|:authority=a|:scheme=http|:path=/|"
	  ":protocol=websocket",
	    400, true },
	{ ":method=CONNECT|:authority=a|:scheme=http|:path=/|:protocol=x", 501,
	    false },
	{ ":method=CONNECT|:authority=a|:scheme=http|:path=*|"
	  ":protocol=websocket",
	    MALFORMED, false },
	{ PLAIN "|:protocol=websocket", MALFORMED, false },
	{ ":method=CONNECT|:scheme=http|:path=/|:protocol=websocket|host=a",
	    MALFORMED, false },
	/* what is not served, or too much */
	{ ":method=TRACE|:scheme=http|:path=/|:authority=a", 501, true },
	{ PLAIN "|expect=100-continue", 0, false },
	{ PLAIN "|expect=x", 417, false },
	{ PLAIN "|a=|b=|c=|d=|e=|f=|g=|h=|i=", 0, true },
	{ PLAIN "|a=|b=|c=|d=|e=|f=|g=|h=|i=|j=|k=", 431, true },
};

static char text[65536];
static struct h1_request request;

static void
feed(struct h2_head *head, const char *fields)
{
	struct str rest = str_of(fields), one;

	h2_head_init(head, &request, &limits, text, sizeof(text));
	if (rest.len == 0)
		return;
	while (str_split(&rest, '|', &one)) {
		struct str name = one, value;
		const char *sign = memchr(one.ptr, '=', one.len);

		ck_assert_ptr_nonnull(sign);
		name.len = (size_t)(sign - one.ptr);
		value = (struct str){ sign + 1, one.len - name.len - 1 };
		ck_assert_uint_le(
		    h2_head_add_bytes(name.len, value.len), head->room);
		h2_head_add(head, name, value);
	}
}

static enum h2_head_result
read_head(const char *fields, bool ends, unsigned *status)
{
	struct h2_head head;
	const char *why = NULL;
	enum h2_head_result result;
	size_t before, room;

	feed(&head, fields);
	before = head.end;
	room = h2_head_end_bytes(&head);
	result = h2_head_end(&head, ends, nonce, status, &why);
	ck_assert_uint_le(head.end, before + room);
	if (result != H2_HEAD_GOOD)
		ck_assert_ptr_nonnull(why);
	return result;
}

START_TEST(test_case)
{
	const struct head_case *now = &cases[_i];
	unsigned status = 0;

	switch (read_head(now->fields, now->ends, &status)) {
	case H2_HEAD_GOOD:
		ck_assert_msg(now->status == 0, "%s is taken", now->fields);
		break;
	case H2_HEAD_MALFORMED:
		ck_assert_msg(
		    now->status == MALFORMED, "%s is malformed", now->fields);
		break;
	case H2_HEAD_REFUSED:
		ck_assert_msg(
		    now->status == status, "%s gives %u", now->fields, status);
		break;
	}
}
END_TEST

static struct str
field(enum header_id id)
{
	const struct header_field *found = header_get(&request.headers, id);

	if (found == NULL)
		return (struct str){ NULL, 0 };
	return header_value(text, found);
}

static void
expect(struct str got, const char *wanted)
{
	ck_assert_msg(str_eq(got, str_of(wanted)), "\"%.*s\", not \"%s\"",
	    (int)got.len, got.ptr, wanted);
}

static struct str
part(uint32_t at, uint32_t len)
{
	return (struct str){ text + at, len };
}

START_TEST(test_what_comes_of_it)
{
	unsigned status;

	ck_assert_int_eq(
	    read_head(":method=POST|:scheme=http|:path=/a/b?c=d|"
		      ":authority=example.com:80|cookie=a|x-one=1|cookie=b|"
		      "cookie=c|content-length=7|user-agent=me",
		false, &status),
	    H2_HEAD_GOOD);
	ck_assert_int_eq(request.method, METHOD_POST);
	ck_assert_int_eq(request.form, TARGET_ORIGIN);
	ck_assert_int_eq(request.body, BODY_LENGTH);
	ck_assert_uint_eq(request.content_length, 7);
	ck_assert_uint_eq(request.minor, 1);
	ck_assert(request.keep_alive && !request.websocket);
	expect(part(request.method_at, request.method_len), "POST");
	expect(part(request.target, request.target_len), "/a/b?c=d");
	expect(part(request.path, request.path_len), "/a/b");
	expect(part(request.query, request.query_len), "c=d");
	expect(part(request.host, request.host_len), "example.com:80");
	expect(field(HEADER_HOST), "example.com:80");
	expect(field(HEADER_COOKIE), "a; b; c");
	expect(field(HEADER_USER_AGENT), "me");
	ck_assert_uint_eq(request.headers.count, 5);
	ck_assert_ptr_null(header_next(
	    &request.headers, header_get(&request.headers, HEADER_COOKIE)));
}
END_TEST

START_TEST(test_websocket)
{
	unsigned status;

	ck_assert_int_eq(
	    read_head(":method=CONNECT|:protocol=websocket|:scheme=https|"
		      ":path=/chat|:authority=a|sec-websocket-version=13|"
		      "sec-websocket-key=mine",
		false, &status),
	    H2_HEAD_GOOD);
	ck_assert_int_eq(request.method, METHOD_GET);
	ck_assert(request.websocket);
	ck_assert_int_eq(request.body, BODY_NONE);
	expect(part(request.method_at, request.method_len), "GET");
	expect(field(HEADER_SEC_WEBSOCKET_KEY), "MDEyMzQ1Njc4OWFiY2RlZg==");
	ck_assert_ptr_null(header_next(&request.headers,
	    header_get(&request.headers, HEADER_SEC_WEBSOCKET_KEY)));
}
END_TEST

START_TEST(test_too_much)
{
	struct h2_head head;
	static char long_value[3000];
	unsigned status;
	const char *why;

	memset(long_value, 'x', sizeof(long_value));
	feed(&head, PLAIN);
	ck_assert(!h2_head_is_bomb(&head));
	h2_head_add(
	    &head, STR("a"), (struct str){ long_value, sizeof(long_value) });
	ck_assert(head.is_too_large && !h2_head_is_bomb(&head));
	ck_assert_int_eq(
	    h2_head_end(&head, true, nonce, &status, &why), H2_HEAD_REFUSED);
	ck_assert_uint_eq(status, 431);
	for (unsigned i = 0; i < 3; i++)
		h2_head_add(&head, STR("a"),
		    (struct str){ long_value, sizeof(long_value) });
	ck_assert(h2_head_is_bomb(&head));
	/* The request line has a limit of its own. */
	feed(&head, ":method=GET|:scheme=http|:authority=a");
	h2_head_add(&head, STR(":path"),
	    (struct str){ memset(long_value, '/', 300), 300 });
	ck_assert_int_eq(
	    h2_head_end(&head, true, nonce, &status, &why), H2_HEAD_REFUSED);
	ck_assert_uint_eq(status, 414);
}
END_TEST

/* RFC 9113 section 8.2.3: however many there are, they are one field. */
START_TEST(test_crumbs)
{
	const unsigned most = limits.header_count;
	struct h2_head head;
	unsigned status;
	const char *why;

	feed(&head, PLAIN "|x=1");
	for (unsigned i = 0; i < 3 * most; i++)
		h2_head_add(&head, STR("cookie"), STR("a"));
	ck_assert_int_eq(
	    h2_head_end(&head, true, nonce, &status, &why), H2_HEAD_GOOD);
	ck_assert_uint_eq(request.headers.count, 3); /* host, x */
	ck_assert_uint_eq(field(HEADER_COOKIE).len, 3 * most * 3 - 2);
	/* Elsewhere again. */
	feed(&head, PLAIN "|cookie=a|cookie=b|x=1|cookie=|cookie=c");
	ck_assert_int_eq(
	    h2_head_end(&head, true, nonce, &status, &why), H2_HEAD_GOOD);
	expect(field(HEADER_COOKIE), "a; b; ; c");
	ck_assert_uint_eq(request.headers.count, 3);
	/* The last one that goes, and one too many. */
	for (unsigned i = most; i <= most + 1; i++) {
		feed(&head, PLAIN);
		for (unsigned j = request.headers.count; j < i - 1; j++)
			h2_head_add(&head, STR("x"), STR("1"));
		h2_head_add(&head, STR("cookie"), STR("a"));
		h2_head_add(&head, STR("cookie"), STR("b"));
		ck_assert_int_eq(h2_head_end(&head, true, nonce, &status, &why),
		    i == most ? H2_HEAD_GOOD : H2_HEAD_REFUSED);
	}
	ck_assert_uint_eq(status, 431);
	feed(&head, PLAIN "|cookie=a|Cookie=b");
	ck_assert_int_eq(
	    h2_head_end(&head, true, nonce, &status, &why), H2_HEAD_MALFORMED);
}
END_TEST

START_TEST(test_priority)
{
	static const struct {
		const char *value;
		struct h2_priority is;
	} rows[] = {
		{ "u=0", { 0, false, true } },
		{ "u=7, i", { 7, true, true } },
		{ "i=?1", { 3, true, true } },
		{ "i , u=2", { 2, true, true } },
		{ "i=?0,u=5", { 5, false, true } },
		{ "u=8", { 3, false, false } },
		{ "u=-1", { 3, false, false } },
		{ "u=33", { 3, false, false } },
		{ "x=1, y", { 3, false, false } },
		{ "", { 3, false, false } },
		{ ",,u=1,", { 1, false, true } },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct h2_priority got = { .urgency = 3 };

		h2_head_read_priority(str_of(rows[i].value), &got);
		ck_assert_uint_eq(got.urgency, rows[i].is.urgency);
		ck_assert(got.incremental == rows[i].is.incremental);
		ck_assert(got.is_given == rows[i].is.is_given);
	}
}
END_TEST

START_TEST(test_trailers)
{
	ck_assert_ptr_null(h2_head_check_trailer(STR("x-sum"), STR("1")));
	ck_assert_ptr_nonnull(h2_head_check_trailer(STR(":path"), STR("/")));
	ck_assert_ptr_nonnull(h2_head_check_trailer(STR("X"), STR("1")));
	ck_assert_ptr_nonnull(h2_head_check_trailer(STR("x"), STR("1\n")));
	ck_assert_ptr_nonnull(
	    h2_head_check_trailer(STR("connection"), STR("close")));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("h2_head");
	TCase *tests = tcase_create("all");

	tcase_add_loop_test(tests, test_case, 0, ARRAY_LEN(cases));
	tcase_add_test(tests, test_what_comes_of_it);
	tcase_add_test(tests, test_websocket);
	tcase_add_test(tests, test_too_much);
	tcase_add_test(tests, test_crumbs);
	tcase_add_test(tests, test_priority);
	tcase_add_test(tests, test_trailers);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
