/*
 * Lines of the access log: escaping, JSON, their longest, and files that are
 * swapped between two of them.
 */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxy/core/access_log.h"
#include "proxy/core/request.h"
#include "proxy/core/worker.h"
#include "src/base/fdutil.h"
#include "t/unit/run.h"

static const struct front_ops front = { .name = "HTTP/1.1" };
static struct worker *worker;

static void
set_up(void)
{
	worker = worker_new(0, 1);
}

static void
tear_down(void)
{
	worker_free(worker);
}

/* A request that is hostile to logs; nobody handles it. */
static struct request *
hostile_request(void)
{
	static struct request hostile;
	static const char base[] =
	    "User-Agent: a\"b\\c\x1b[31m\xff\xc3\xa9\r\nReferer: \r\n";
	struct request *request = &hostile;

	memset(request, 0, sizeof(*request));
	request->worker = worker;
	request->front = &front;
	request->base = base;
	request->method = STR("GET");
	request->target = STR("/\"x\\y\x7f\xe2\x82\xac");
	request->host = STR("a.example");
	request->peer.len = sizeof(struct sockaddr_in);
	request->peer.u.in.sin_family = AF_INET;
	request->peer.u.in.sin_addr.s_addr = htonl(0xc0000201);
	request->forwarded = (struct forwarded){ .client = request->peer };
	request->head.minor = 1;
	header_table_reset(&request->head.headers);
	ck_assert_int_eq(
	    header_table_add(&request->head.headers, base, 0, 10, 12, 13), 0);
	request->status = 200;
	request->bytes_sent = 42;
	return request;
}

START_TEST(combined_lines_are_escaped)
{
	static char line[ACCESS_LOG_LINE_MAX + 1];
	static const char want[] =
	    "] \"GET /\\x22x\\x5cy\\x7f\\xe2\\x82\\xac "
	    "HTTP/1.1\" 200 42 \"-\" "
	    "\"a\\x22b\\x5cc\\x1b[31m\\xff\\xc3\\xa9\"\n";
	struct request *request;
	size_t len;

	request = hostile_request();
	len = access_log_format_line(CONF_LOG_COMBINED, request, line);
	line[len] = '\0';
	ck_assert_int_eq(strncmp(line, "192.0.2.1 - - [", 15), 0);
	ck_assert_str_eq(strchr(line, ']'), want);
	request->status = 0;
	len = access_log_format_line(CONF_LOG_COMBINED, request, line);
	line[len] = '\0';
	ck_assert_ptr_nonnull(strstr(line, "\" 499 "));
	/* A head that nobody could read. */
	request->method.len = 0;
	len = access_log_format_line(CONF_LOG_COMBINED, request, line);
	line[len] = '\0';
	ck_assert_ptr_nonnull(strstr(line, "\"-\" 499 42 \"-\" \"-\"\n"));
}
END_TEST

/* Every byte at every place of a text that is looked at 16 bytes at a time. */
START_TEST(every_byte_is_escaped_anywhere)
{
	static char line[ACCESS_LOG_LINE_MAX + 1];
	struct request *request;

	request = hostile_request();
	for (int byte = 0; byte < 256; byte++) {
		bool plain =
		    byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';

		for (size_t place = 0; place < 40; place++) {
			char target[40], want[80], one[8] = { (char)byte };
			size_t len;

			memset(target, 'a', sizeof(target));
			target[place] = (char)byte;
			request->target = (struct str){ target, 40 };
			if (!plain)
				snprintf(one, sizeof(one), "\\x%02x",
				    (unsigned)byte);
			len = (size_t)snprintf(want, sizeof(want),
			    "\"GET %.*s%s%.*s HTTP/1.1\"", (int)place, target,
			    one, (int)(39 - place), target + place + 1);
			access_log_format_line(
			    CONF_LOG_COMBINED, request, line);
			ck_assert_mem_eq(strchr(line, '"'), want, len);
		}
	}
}
END_TEST

static double
number(const json_t *json, const char *name)
{
	const json_t *value = json_object_get(json, name);

	ck_assert_msg(json_is_number(value), "%s", name);
	return json_number_value(value);
}

START_TEST(json_lines_are_json)
{
	static char line[ACCESS_LOG_LINE_MAX + 1];
	struct request *request;
	json_t *json;
	size_t len;

	request = hostile_request();
	request->timed = true;
	request->times = (struct request_times){ .start_us = 1000000,
		.queued_us = 1000500,
		.taken_us = 1002000,
		.connected_us = 1002250,
		.first_byte_us = 1010000,
		.end_us = 1020007 };
	request->upstream_name = "shop";
	request->upstream_instance = 7;
	request->upstream_pid = 4711;
	request->tries = 2;
	request->why = "peer failed";
	len = access_log_format_line(CONF_LOG_JSON, request, line);
	line[len] = '\0';
	ck_assert_ptr_eq(strchr(line, '\n'), line + len - 1);
	json = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
	ck_assert_msg(json != NULL, "%s", line);
	ck_assert_str_eq(json_string_value(json_object_get(json, "target")),
	    "/\"x\\y\x7f\xe2\x82\xac");
	ck_assert_str_eq(json_string_value(json_object_get(json, "user_agent")),
	    "a\"b\\c\x1b[31m\xc3\xbf\xc3\xa9");
	ck_assert_str_eq(
	    json_string_value(json_object_get(json, "app")), "shop");
	ck_assert(number(json, "pid") == 4711);
	ck_assert(number(json, "queue_ms") == 1.5);
	ck_assert(number(json, "connect_ms") == 0.25);
	ck_assert(number(json, "first_byte_ms") == 10);
	ck_assert(number(json, "total_ms") == 20.007);
	json_decref(json);
	/* What did not happen is null, never left out. */
	request->times = (struct request_times){ .start_us = 1 };
	request->upstream_name = request->why = NULL;
	request->upstream_instance = 0;
	len = access_log_format_line(CONF_LOG_JSON, request, line);
	line[len] = '\0';
	json = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
	ck_assert_uint_eq(json_object_size(json), 22);
	ck_assert(json_is_null(json_object_get(json, "queue_ms")));
	ck_assert(json_is_null(json_object_get(json, "connect_ms")));
	ck_assert(json_is_null(json_object_get(json, "pid")));
	ck_assert(json_is_null(json_object_get(json, "request_id")));
	ck_assert(json_is_null(json_object_get(json, "why")));
	json_decref(json);
}
END_TEST

START_TEST(the_longest_line_fits)
{
	static char line[ACCESS_LOG_LINE_MAX + 1], dirt[65536];
	struct request *request;
	struct str all = { dirt, sizeof(dirt) };

	memset(dirt, 0x01, sizeof(dirt));
	dirt[sizeof(dirt) - 1] = '\0';
	request = hostile_request();
	request->base = dirt;
	header_table_reset(&request->head.headers);
	request->method = request->target = request->host = all;
	request->upstream_name = request->why = dirt;
	memset(request->id, 'x', REQUEST_ID_LEN);
	request->id[REQUEST_ID_LEN] = '\0';
	/* Both fields that are logged, as long as can be. */
	request->head.headers.count = 2;
	request->head.headers.first[HEADER_USER_AGENT] = 1;
	request->head.headers.first[HEADER_REFERER] = 2;
	request->head.headers.fields[0] =
	    (struct header_field){ 0, 0, 60000, 10, HEADER_USER_AGENT, 0 };
	request->head.headers.fields[1] =
	    (struct header_field){ 0, 0, 60000, 7, HEADER_REFERER, 0 };
	for (int format = 0; format < 2; format++) {
		size_t len;

		line[ACCESS_LOG_LINE_MAX] = 'e';
		len = access_log_format_line(
		    format == 0 ? CONF_LOG_COMBINED : CONF_LOG_JSON, request,
		    line);
		ck_assert_uint_le(len, ACCESS_LOG_LINE_MAX);
		ck_assert_int_eq(line[ACCESS_LOG_LINE_MAX], 'e');
	}
}
END_TEST

START_TEST(log_files_are_swapped)
{
	char paths[2][32] = { "/tmp/scalws-log-XXXXXX",
		"/tmp/scalws-log-XXXXXX" };
	struct access_log *log;
	struct request *request;
	char *text;
	size_t len;

	log = access_log_new(mkstemp(paths[0]), "test", CONF_LOG_COMBINED, 1);
	request = hostile_request();
	for (int i = 0; i < 1000; i++)
		access_log_add(log, request);
	access_log_reopen(log, worker, mkstemp(paths[1]));
	access_log_add(log, request);
	access_log_leave(log, worker);
	access_log_free(&log);
	ck_assert_int_eq(fd_read_file(paths[0], 1 << 20, &text, &len), 0);
	for (size_t i = 0, at_line = 0; i <= 1000; i++) {
		char *end = strchr(text + at_line, '\n');

		ck_assert((end != NULL) == (i < 1000));
		if (end != NULL)
			at_line = (size_t)(end - text) + 1;
	}
	free(text);
	ck_assert_int_eq(fd_read_file(paths[1], 1 << 20, &text, &len), 0);
	ck_assert_ptr_eq(strchr(text, '\n'), text + len - 1);
	free(text);
	unlink(paths[0]);
	unlink(paths[1]);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { combined_lines_are_escaped,
		every_byte_is_escaped_anywhere, json_lines_are_json,
		the_longest_line_fits, log_files_are_swapped };
	Suite *suite = suite_create("access_log");
	TCase *all = tcase_create("lines");

	tcase_add_checked_fixture(all, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		tcase_add_test(all, tests[i]);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
