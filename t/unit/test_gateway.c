/*
 * The gateway's decisions: when a request is repeated, which script answers,
 * what applications are told, bodies that wait.
 */
#include "proxy/core/worker.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fcgi/fcgi.h"
#include "proxy/core/request.h"
#include "proxy/core/snapshot.h"
#include "proxy/handler/gateway_retry.h"
#include "proxy/handler/gateway_script.h"
#include "proxy/handler/spool.h"
#include "proxy/http/ws_frames.h"
#include "proxy/upstream/fastcgi_params.h"
#include "proxy/upstream/http1_head.h"
#include "src/base/mem.h"
#include "t/unit/run.h"

/* ---- second tries ---- */

#define KEPT .was_kept = true
#define SENT .sent_bytes = true
#define IDEMPOTENT .is_idempotent = true
#define WHOLE .is_whole = true

static const struct {
	struct attempt_end end;
	bool again;
} attempts[] = {
	{ { EXCHANGE_CONNECT, 1, WHOLE }, true },
	{ { EXCHANGE_CONNECT, 3, WHOLE, IDEMPOTENT }, false },
	/* No process has seen it. */
	{ { EXCHANGE_UNTAKEN, 5, WHOLE, SENT }, true },
	{ { EXCHANGE_UNTAKEN, 6, WHOLE, SENT }, false },
	{ { EXCHANGE_UNTAKEN, 1, SENT, IDEMPOTENT }, false },
	/* A kept connection was too old. */
	{ { EXCHANGE_CLOSED, 1, WHOLE, KEPT, SENT, IDEMPOTENT }, true },
	{ { EXCHANGE_CLOSED, 2, WHOLE, KEPT, SENT, IDEMPOTENT }, true },
	{ { EXCHANGE_CLOSED, 3, WHOLE, KEPT, SENT, IDEMPOTENT }, false },
	/* A POST that went out is never sent twice; one that did not may be. */
	{ { EXCHANGE_CLOSED, 1, WHOLE, KEPT, SENT }, false },
	{ { EXCHANGE_CLOSED, 1, WHOLE, KEPT }, true },
	{ { EXCHANGE_CLOSED, 1, WHOLE }, true },
	/* The request may be what killed it. */
	{ { EXCHANGE_CLOSED, 1, WHOLE, SENT, IDEMPOTENT }, false },
	/* Part of the body is gone. */
	{ { EXCHANGE_CLOSED, 1, KEPT, SENT, IDEMPOTENT }, false },
	{ { EXCHANGE_CONNECT, 1 }, false },
	/* Something was said. */
	{ { EXCHANGE_CLOSED, 1, WHOLE, KEPT, SENT, IDEMPOTENT,
	      .got_bytes = true },
	    false },
	{ { EXCHANGE_CLOSED, 1, WHOLE, KEPT, SENT, IDEMPOTENT,
	      .is_answered = true },
	    false },
	{ { EXCHANGE_TRUNCATED, 1, WHOLE, KEPT, SENT, IDEMPOTENT }, false },
	{ { EXCHANGE_MALFORMED, 1, WHOLE, KEPT, SENT, IDEMPOTENT }, false },
	{ { EXCHANGE_TOO_LARGE, 1, WHOLE, KEPT, SENT, IDEMPOTENT }, false },
	{ { EXCHANGE_REFUSED, 1, WHOLE, KEPT, IDEMPOTENT }, false },
};

START_TEST(second_tries)
{
	ck_assert(gateway_may_retry(&attempts[_i].end) == attempts[_i].again);
}
END_TEST

/* ---- where a close frame may stand ---- */

#define BYTES(text) text, sizeof(text) - 1

static const struct {
	const char *bytes;
	size_t len;
	bool may_close;
} streams[] = {
	{ BYTES(""), true },
	{ BYTES("\x81"), false },
	{ BYTES("\x81\x02"), false },
	{ BYTES("\x81\x02h"), false },
	{ BYTES("\x81\x02hi"), true },
	{ BYTES("\x81\x00"), true },
	{ BYTES("\x81\x00\x89"), false },
	/* between fragments, too */
	{ BYTES("\x01\x01h"), true },
	{ BYTES("\x81\x7e\x00"), false },
	{ BYTES("\x81\x7e\x00\x03hi"), false },
	{ BYTES("\x81\x7e\x00\x03hi!"), true },
	{ BYTES("\x81\x7e\x00\x00"), true },
	{ BYTES("\x81\x7f\x00\x00\x00\x00\x00\x00\x00\x02hi"), true },
	{ BYTES("\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xffhi"), false },
	{ BYTES("\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff"), false },
	{ BYTES("\x81\x80"), false },
	{ BYTES("\x81\x80mas"), false },
	{ BYTES("\x81\x80mask"), true },
	{ BYTES("\x81\x82maskhi\x8a\x80mask"), true },
	/* nothing behind a close frame */
	{ BYTES("\x88\x00"), false },
	{ BYTES(WS_GOING_AWAY), false },
	{ BYTES(WS_GOING_AWAY_MASKED), false },
	{ BYTES("\x88\x02\x03"), false },
	{ BYTES("\x88\x00\x81\x00"), false },
};

START_TEST(ends_of_frames)
{
	size_t len = streams[_i].len;

	/* In two parts, cut anywhere. */
	for (size_t cut = 0; cut <= len; cut++) {
		struct ws_frames frames;

		memset(&frames, 0, sizeof(frames));
		ws_frames_pass(&frames, streams[_i].bytes, cut);
		ws_frames_pass(&frames, streams[_i].bytes + cut, len - cut);
		ck_assert(
		    ws_frames_may_close(&frames) == streams[_i].may_close);
	}
}
END_TEST

/* ---- scripts ---- */

static char root[] = "/tmp/test-gateway-XXXXXX";
static char outside[64];

static void
put_file(const char *path)
{
	char name[256];
	FILE *file;

	snprintf(name, sizeof(name), "%s/%s", root, path);
	file = fopen(name, "w");
	ck_assert_ptr_nonnull(file);
	fclose(file);
}

static void
put_dir(const char *path)
{
	char name[256];

	snprintf(name, sizeof(name), "%s/%s", root, path);
	ck_assert_int_eq(mkdir(name, 0755), 0);
}

static void
put_link(const char *target, const char *path)
{
	char name[256];

	snprintf(name, sizeof(name), "%s/%s", root, path);
	ck_assert_int_eq(symlink(target, name), 0);
}

static void
make_tree(void)
{
	ck_assert_ptr_nonnull(mkdtemp(root));
	snprintf(outside, sizeof(outside), "%s-secret.php", root);
	fclose(fopen(outside, "w"));
	put_file("index.php");
	put_file("info.php");
	put_file("logo.png");
	put_file("evil.php.png");
	put_file(".php");
	put_dir("admin");
	put_file("admin/index.php");
	put_dir("empty");
	put_dir("dir.php");
	put_file("dir.php/in.php");
	put_link(outside, "leak.php");
	put_link("..", "up");
	put_link("info.php", "alias.php");
	put_link("nowhere", "dangling.php");
}

static void
drop_tree(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s %s", root, outside);
	ck_assert_int_eq(system(command), 0);
}

static const struct {
	const char *path;
	enum script_result result;
	const char *name, *file, *info;
} scripts[] = {
	{ "/", SCRIPT_FOUND, "/index.php", "/index.php", "" },
	{ "/info.php", SCRIPT_FOUND, "/info.php", "/info.php", "" },
	{ "/info.php/a/b", SCRIPT_FOUND, "/info.php", "/info.php", "/a/b" },
	{ "/info.php/", SCRIPT_FOUND, "/info.php", "/info.php", "/" },
	/* The longest one. */
	{ "/info.php/index.php", SCRIPT_FOUND, "/info.php", "/info.php",
	    "/index.php" },
	{ "/dir.php/in.php/x", SCRIPT_FOUND, "/dir.php/in.php",
	    "/dir.php/in.php", "/x" },
	{ "/admin/", SCRIPT_FOUND, "/admin/index.php", "/admin/index.php", "" },
	{ "/admin", SCRIPT_DIRECTORY, NULL, NULL, NULL },
	/* What is no file at all is the front controller's. */
	{ "/a/page", SCRIPT_FOUND, "/index.php", "/index.php", "" },
	{ "/missing.php", SCRIPT_FOUND, "/index.php", "/index.php", "" },
	{ "/missing.php/x", SCRIPT_FOUND, "/index.php", "/index.php", "" },
	{ "/empty/", SCRIPT_FOUND, "/index.php", "/index.php", "" },
	{ "/logo.png/x.php", SCRIPT_FOUND, "/index.php", "/index.php", "" },
	/* Files that are no scripts are nobody's. */
	{ "/logo.png", SCRIPT_NONE, NULL, NULL, NULL },
	{ "/evil.php.png", SCRIPT_NONE, NULL, NULL, NULL },
	{ "/.php", SCRIPT_NONE, NULL, NULL, NULL },
	/* A link inside is the file it leads to; outside there is nothing. */
	{ "/alias.php", SCRIPT_FOUND, "/alias.php", "/info.php", "" },
	{ "/leak.php", SCRIPT_FOUND, "/index.php", "/index.php", "" },
	{ "/dangling.php", SCRIPT_FOUND, "/index.php", "/index.php", "" },
	{ "/up/etc/x.php", SCRIPT_FOUND, "/index.php", "/index.php", "" },
	{ "/a%2finfo.php", SCRIPT_FOUND, "/index.php", "/index.php", "" },
	{ "/a\nb", SCRIPT_BAD, NULL, NULL, NULL },
	{ "info.php", SCRIPT_BAD, NULL, NULL, NULL },
	{ "", SCRIPT_BAD, NULL, NULL, NULL },
};

static void
assert_str(struct str text, const char *before, const char *expected)
{
	char all[256];

	snprintf(all, sizeof(all), "%s%s", before, expected);
	ck_assert_uint_eq(text.len, strlen(all));
	ck_assert_int_eq(memcmp(text.ptr, all, text.len), 0);
}

START_TEST(which_script)
{
	struct script_rules rules = { .root = root,
		.index = "index.php",
		.front_controller = "/index.php" };
	struct script script;

	ck_assert_int_eq(script_find(&rules, str_of(scripts[_i].path), &script),
	    scripts[_i].result);
	if (scripts[_i].result != SCRIPT_FOUND)
		return;
	assert_str(script.name, "", scripts[_i].name);
	assert_str(script.filename, root, scripts[_i].file);
	assert_str(script.path_info, "", scripts[_i].info);
	assert_str(script.document_root, root, "");
}
END_TEST

START_TEST(no_front_controller)
{
	struct script_rules rules = { .root = root, .index = "index.php" };
	struct script script;
	char nul[] = "/info.php\0x.php";

	ck_assert_int_eq(
	    script_find(&rules, STR("/page"), &script), SCRIPT_NONE);
	ck_assert_int_eq(
	    script_find(&rules, STR("/missing.php"), &script), SCRIPT_NONE);
	ck_assert_int_eq(
	    script_find(&rules, (struct str){ nul, sizeof(nul) - 1 }, &script),
	    SCRIPT_BAD);
	rules.root = "/nonexistent/root";
	ck_assert_int_eq(
	    script_find(&rules, STR("/info.php"), &script), SCRIPT_BROKEN);
}
END_TEST

START_TEST(scripts_elsewhere)
{
	struct script_rules rules = { .root = "/srv/app",
		.front_controller = "index.php",
		.is_remote = true };
	struct script script;

	ck_assert_int_eq(
	    script_find(&rules, STR("/a/b.php/c"), &script), SCRIPT_FOUND);
	assert_str(script.name, "", "/a/b.php");
	assert_str(script.filename, "", "/srv/app/a/b.php");
	assert_str(script.path_info, "", "/c");
	ck_assert_int_eq(
	    script_find(&rules, STR("/page"), &script), SCRIPT_FOUND);
	assert_str(script.filename, "", "/srv/app/index.php");
	assert_str(script.path_info, "", "");
}
END_TEST

/* ---- what applications are told ---- */

struct made {
	struct request *request;
	struct worker *worker;
	struct conf_listener listener;
	struct snapshot_listener snapshot_listener;
	struct site site;
	struct front_ops front;
	struct exchange_target target;
};

static void
make_request(struct made *made, const char *head)
{
	static const struct h1_limits limits = { 8192, 16384, 64 };
	struct request *request = mem_alloc(sizeof(*request));
	size_t scanned = 0, used;
	const char *why = "";
	unsigned status;

	memset(made, 0, sizeof(*made));
	made->request = request;
	made->worker = worker_new(0, 1);
	request->worker = made->worker;
	request->base = head;
	ck_assert_int_eq(h1_parse_request(head, strlen(head), &limits, &scanned,
			     &request->head, &used, &status, &why),
	    H1_DONE);
	request->method = (struct str){ head + request->head.method_at,
		request->head.method_len };
	request->target = (struct str){ head + request->head.target,
		request->head.target_len };
	request->host = STR("www.example.org");
	ck_assert_int_eq(
	    addr_parse(STR("192.0.2.7:4711"), &request->peer), ADDR_OK);
	request->forwarded.client = request->peer;
	memcpy(request->id, "0123456789abcdef", 17);
	ck_assert_int_eq(
	    addr_parse(STR("10.0.0.1:8080"), &made->listener.addr), ADDR_OK);
	made->snapshot_listener.conf = &made->listener;
	request->listener = &made->snapshot_listener;
	made->site.name = STR("example.org");
	request->site = &made->site;
	made->front.name = "HTTP/1.1";
	request->front = &made->front;
	made->target.target = request->target;
}

static void
free_request(struct made *made)
{
	mem_free(made->request);
	worker_free(made->worker);
}

#define OURS                                                        \
	"X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\n" \
	"X-Forwarded-Host: www.example.org:80\r\n"                  \
	"X-Request-Id: 0123456789abcdef\r\n"
#define HOST "Host: www.example.org:80\r\n"

static const struct {
	const char *in;
	struct exchange_body body;
	const char *prefix, *out;
} heads[] = {
	{ "GET /a?b HTTP/1.1\r\n" HOST "Accept: */*\r\nCookie: a=b\r\n\r\n",
	    { BODY_NONE, 0 }, "",
	    "GET /a?b HTTP/1.1\r\n" HOST "Accept: */*\r\nCookie: a=b\r\n" OURS
	    "\r\n" },
	/* Claims about where it came from, hop-by-hop, odd names, Proxy. */
	{ "GET / HTTP/1.1\r\nA: 1\r\nX-Forwarded-For: 1.1.1.1\r\n" HOST
	  "X-Real-IP: 1.1.1.1\r\nForwarded: for=1.1.1.1\r\nB: 2\r\n"
	  "Connection: close, x-hop\r\nX-Hop: 1\r\nX_Odd: 1\r\nProxy: x\r\n"
	  "TE: trailers\r\nX-Forwarded-Proto: https\r\n"
	  "X-Forwarded-Host: evil\r\nX-Request-Id: mine\r\nC:3\r\n\r\n",
	    { BODY_NONE, 0 }, "/shop",
	    "GET / HTTP/1.1\r\n" HOST "A: 1\r\nB: 2\r\nC: 3\r\n" OURS
	    "X-Forwarded-Prefix: /shop\r\n\r\n" },
	{ "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n"
	  "Expect: 100-continue\r\n\r\n",
	    { BODY_LENGTH, 5 }, "",
	    "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n" OURS "\r\n" },
	{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n",
	    { BODY_CHUNKED, 0 }, "",
	    "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n" OURS
	    "\r\n" },
	/* Gathered: now it has a length. */
	{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n",
	    { BODY_LENGTH, 70000 }, "",
	    "POST / HTTP/1.1\r\n" HOST "Content-Length: 70000\r\n" OURS
	    "\r\n" },
	{ "POST / HTTP/1.1\r\n" HOST "\r\n", { BODY_NONE, 0 }, "",
	    "POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n" OURS "\r\n" },
};

START_TEST(head_for_an_app)
{
	struct made made;
	char to[4096];
	size_t len, room = strlen(heads[_i].out);

	make_request(&made, heads[_i].in);
	made.target.prefix = str_of(heads[_i].prefix);
	len = http1_head_put(
	    to, sizeof(to), made.request, &made.target, &heads[_i].body);
	to[len] = '\0';
	ck_assert_str_eq(to, heads[_i].out);
	/* Never beyond the room, and what was foretold is enough. */
	for (size_t i = 0; i < room; i++)
		ck_assert_uint_eq(http1_head_put(to, i, made.request,
				      &made.target, &heads[_i].body),
		    0);
	ck_assert_uint_ge(http1_head_bound(made.request, &made.target), len);
	free_request(&made);
}
END_TEST

/* The value of a parameter in a stream of one record, "" + NULL if none. */
static const char *
param(const unsigned char *stream, size_t len, const char *name)
{
	static char value[512];
	const unsigned char *at = stream + FCGI_HEADER_LEN;
	const unsigned char *end = stream + len - FCGI_HEADER_LEN;
	const char *found = NULL;

	while (at < end) {
		size_t lens[2];

		for (int i = 0; i < 2; i++) {
			lens[i] = *at < 128 ? *at
					    : (size_t)(at[0] & 127) << 24 |
						  (size_t)at[1] << 16 |
						  (size_t)at[2] << 8 | at[3];
			at += *at < 128 ? 1 : 4;
		}
		if (lens[0] == strlen(name) && memcmp(at, name, lens[0]) == 0) {
			ck_assert_ptr_null(found); /* once only */
			ck_assert_uint_lt(lens[1], sizeof(value));
			memcpy(value, at + lens[0], lens[1]);
			value[lens[1]] = '\0';
			found = value;
		}
		at += lens[0] + lens[1];
	}
	return found;
}

static const struct {
	const char *name, *value; /* NULL: must not be there */
} params[] = {
	{ "GATEWAY_INTERFACE", "CGI/1.1" },
	{ "SERVER_PROTOCOL", "HTTP/1.1" },
	{ "REQUEST_METHOD", "POST" },
	{ "REQUEST_URI", "/i.php/x?q=1" },
	{ "QUERY_STRING", "q=1" },
	{ "CONTENT_TYPE", "text/plain" },
	{ "CONTENT_LENGTH", "5" },
	{ "SCRIPT_NAME", "/i.php" },
	{ "SCRIPT_FILENAME", "/srv/i.php" },
	{ "DOCUMENT_ROOT", "/srv" },
	{ "DOCUMENT_URI", "/i.php" },
	{ "PATH_INFO", "/x" },
	{ "PATH_TRANSLATED", "/srv/x" },
	{ "REMOTE_ADDR", "192.0.2.7" },
	{ "REMOTE_PORT", "4711" },
	{ "SERVER_ADDR", "10.0.0.1" },
	{ "SERVER_PORT", "8080" },
	{ "SERVER_NAME", "example.org" },
	{ "REQUEST_SCHEME", "http" },
	{ "REDIRECT_STATUS", "200" },
	{ "HTTPS", NULL },
	{ "HTTP_HOST", "www.example.org:80" },
	{ "HTTP_AUTHORIZATION", "Basic eA==" },
	{ "HTTP_X_REQUEST_ID", "0123456789abcdef" },
	{ "HTTP_COOKIE", "a=1; b=2" },
	{ "HTTP_X_TWICE", "1, 2, 3" },
	{ "HTTP_X_ONCE", "1" },
	{ "HTTP_PROXY", NULL },
	{ "HTTP_CONTENT_LENGTH", NULL },
	{ "HTTP_CONTENT_TYPE", NULL },
	{ "HTTP_X_FORWARDED_FOR", NULL },
	{ "HTTP_X_FORWARDED_PROTO", NULL },
	{ "HTTP_EXPECT", NULL },
	{ "HTTP_X_ODD", NULL },
	{ "PHP_VALUE", NULL },
	{ "HTTP_PHP_VALUE", NULL },
	{ "HTTP_CONNECTION", NULL },
};

static const char params_head[] =
    "POST /i.php/x?q=1 HTTP/1.1\r\n" HOST
    "Content-Type: text/plain\r\nContent-Length: 5\r\nCookie: a=1\r\n"
    "X-Twice: 1\r\nAuthorization: Basic eA==\r\nProxy: x\r\nx-twice: 2\r\n"
    "X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-Proto: https\r\n"
    "Expect: 100-continue\r\nX_Odd: 1\r\nPHP_VALUE: a=b\r\nCookie: b=2\r\n"
    "Connection: close\r\nX-Request-Id: mine\r\nX-TWICE: 3\r\n"
    "X-Once: 1\r\n\r\n";

START_TEST(params_for_php)
{
	unsigned char stream[8192];
	struct exchange_body body = { BODY_LENGTH, 5 };
	struct fcgi_params out;
	struct made made;
	const char *value;
	size_t len;

	make_request(&made, params_head);
	made.target.script_name = STR("/i.php");
	made.target.script_filename = STR("/srv/i.php");
	made.target.document_root = STR("/srv");
	made.target.path_info = STR("/x");
	fcgi_params_begin(&out, stream, sizeof(stream), 0, 1);
	fastcgi_params_put(&out, made.request, &made.target, &body);
	len = fcgi_params_end(&out);
	ck_assert_uint_gt(len, 0);
	value = param(stream, len, params[_i].name);
	if (params[_i].value == NULL)
		ck_assert_ptr_null(value);
	else
		ck_assert_str_eq(value, params[_i].value);
	free_request(&made);
}
END_TEST

/* ---- bodies that wait ---- */

static void
check_spool(struct spool *spool, struct worker *worker, size_t total)
{
	struct buf *room = NULL;

	for (uint64_t at = 0; at < total;) {
		const char *from;
		size_t len = spool_piece(spool, worker, at, &room, &from);

		ck_assert_uint_gt(len, 0);
		for (size_t i = 0; i < len; i++)
			ck_assert_int_eq(
			    (unsigned char)from[i], (int)((at + i) * 7 % 251));
		at += len;
	}
	buf_put(worker, &room);
}

START_TEST(bodies_in_memory_and_file)
{
	static struct worker_load load[1];
	struct spool_limits limits = { .memory_bytes = 2 * BUF_BYTES,
		.file_bytes = 100000,
		.total_bytes = 1000000,
		.directory = root };
	struct worker *worker = worker_new(0, 1);
	char piece[3001];
	struct spool spool;
	size_t total = 0;

	worker->load = load;
	spool_init(&spool);
	while (total + sizeof(piece) <= limits.file_bytes) {
		for (size_t i = 0; i < sizeof(piece); i++)
			piece[i] = (char)((total + i) * 7 % 251);
		ck_assert_int_eq(
		    spool_add(&spool, worker, &limits, piece, sizeof(piece)),
		    0);
		total += sizeof(piece);
		ck_assert_uint_eq(spool.bytes, total);
	}
	ck_assert_int_ne(spool.fd, -1);
	ck_assert_uint_eq(spool.memory_bytes, limits.memory_bytes);
	check_spool(&spool, worker, total);
	ck_assert_int_eq(
	    spool_add(&spool, worker, &limits, piece, sizeof(piece)), -1);
	ck_assert_int_eq(errno, EFBIG);
	spool_free(&spool, worker);
	limits.directory = "/nonexistent";
	ck_assert_int_eq(
	    spool_add(&spool, worker, &limits, piece, sizeof(piece)), 0);
	ck_assert_uint_eq(spool_memory_left(&spool, &limits),
	    limits.memory_bytes - sizeof(piece));
	spool_free(&spool, worker);
	worker_free(worker);
}
END_TEST

static Suite *
suite(void)
{
	Suite *all = suite_create("gateway");
	TCase *tcase = tcase_create("gateway");

	tcase_add_unchecked_fixture(tcase, make_tree, drop_tree);
	tcase_add_loop_test(tcase, second_tries, 0, (int)ARRAY_LEN(attempts));
	tcase_add_loop_test(tcase, ends_of_frames, 0, (int)ARRAY_LEN(streams));
	tcase_add_loop_test(tcase, which_script, 0, (int)ARRAY_LEN(scripts));
	tcase_add_test(tcase, no_front_controller);
	tcase_add_test(tcase, scripts_elsewhere);
	tcase_add_loop_test(tcase, head_for_an_app, 0, (int)ARRAY_LEN(heads));
	tcase_add_loop_test(tcase, params_for_php, 0, (int)ARRAY_LEN(params));
	tcase_add_test(tcase, bodies_in_memory_and_file);
	suite_add_tcase(all, tcase);
	return all;
}

int
main(void)
{
	return run_suite(suite());
}
