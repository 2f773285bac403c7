/*
 * From a head to a handler: routing, refusals, bodies and their limit, error
 * pages, and who counts a snapshot. With a front that only writes down what it
 * is told.
 */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxy/core/error_page.h"
#include "proxy/core/request.h"
#include "proxy/core/response.h"
#include "proxy/core/snapshot.h"
#include "src/base/fdutil.h"
#include "t/unit/run.h"

/* ---- a front that writes down ---- */

static struct {
	struct request *request; /* NULL once it was ended */
	unsigned status;
	uint64_t length;
	char lines[1024];
	char body[1024];
	size_t body_len;
	int n_end, n_abort, n_fixed, n_shutdown;
	bool is_full, is_gone;
} told;

static enum response_result
tell(void)
{
	return told.is_gone   ? RESPONSE_GONE
	       : told.is_full ? RESPONSE_FULL
			      : RESPONSE_OK;
}

static enum response_result
front_start(struct request *request, const struct response_head *head)
{
	told.status = head->status;
	told.length = head->length;
	ck_assert_uint_lt(head->lines.len, sizeof(told.lines));
	if (head->lines.len > 0)
		memcpy(told.lines, head->lines.ptr, head->lines.len);
	told.lines[head->lines.len] = '\0';
	return tell();
}

static enum response_result
front_write(struct request *request, const char *from, size_t len)
{
	ck_assert_uint_lt(told.body_len + len, sizeof(told.body));
	memcpy(told.body + told.body_len, from, len);
	told.body_len += len;
	told.body[told.body_len] = '\0';
	return tell();
}

static enum response_result
front_flush(struct request *request)
{
	return tell();
}

static void
front_end(struct request *request)
{
	told.n_end++;
	request_free(&told.request);
}

static void
front_abort(struct request *request)
{
	told.n_abort++;
	request_free(&told.request);
}

static void
front_fixed(struct request *request, const struct response_fixed *fixed)
{
	told.n_fixed++;
	told.status = fixed->status;
	request_free(&told.request);
}

static void
front_shutdown(struct request *request)
{
	told.n_shutdown++;
}

static void
front_body(struct request *request)
{
}

static const struct front_ops front = {
	.name = "HTTP/1.1",
	.start = front_start,
	.write = front_write,
	.flush = front_flush,
	.end = front_end,
	.abort = front_abort,
	.fixed = front_fixed,
	.body_resume = front_body,
	.body_wanted = front_body,
	.shutdown = front_shutdown,
};

/* ---- a handler that writes down ---- */

static struct {
	int n_requests, n_aborts, n_prepared, n_released, n_committed;
	char body[256];
	size_t body_len;
	bool got_last;
	size_t takes; /* of a piece at most */
	bool declines, ends_in_body;
	struct str site, path, host;
	char path_room[256], host_room[256];
} heard;

static void *
prepare(const struct conf_route *route, const struct conf_action *action,
    const struct handler_env *env, struct conf_errors *errors)
{
	if (action->respond.status == 418) {
		conf_errors_add(errors, &route->where, NULL, "no tea");
		return NULL;
	}
	heard.n_prepared++;
	return malloc(1);
}

static void
commit(void *prepared)
{
	heard.n_committed++;
}

static void
release(void *prepared)
{
	heard.n_released++;
	free(prepared);
}

static struct str
copy(char to[256], struct str text)
{
	ck_assert_uint_lt(text.len, 256);
	if (text.len > 0)
		memcpy(to, text.ptr, text.len);
	return (struct str){ to, text.len };
}

static enum handler_result
on_request(struct request *request, const void *prepared)
{
	heard.n_requests++;
	heard.site = request->site->name;
	heard.path = copy(heard.path_room, request->path);
	heard.host = copy(heard.host_room, request->host);
	return heard.declines ? HANDLER_DECLINED : HANDLER_HANDLED;
}

static size_t
on_body(struct request *request, const char *from, size_t len, bool last)
{
	size_t n = len < heard.takes ? len : heard.takes;

	ck_assert_uint_lt(heard.body_len + n, sizeof(heard.body));
	if (n > 0)
		memcpy(heard.body + heard.body_len, from, n);
	heard.body_len += n;
	heard.got_last |= last && n == len;
	if (heard.ends_in_body) {
		struct response_head head = { .status = 200 };

		ck_assert_int_eq(response_start(request, &head), RESPONSE_OK);
		response_end(request);
	}
	return n;
}

static void
on_abort(struct request *request)
{
	heard.n_aborts++;
}

static const struct handler_ops handler = {
	.name = "test",
	.prepare = prepare,
	.commit = commit,
	.release = release,
	.on_request = on_request,
	.on_body = on_body,
	.on_abort = on_abort,
};
static const struct handler_ops *const handlers[] = {
	[CONF_RESPOND] = &handler,
	[CONF_REDIRECT] = &handler,
	[CONF_APP] = &handler,
	[CONF_UPSTREAM] = &handler,
	[CONF_STATUS] = &handler,
};

/* ---- a worker with a snapshot ---- */

#define R "respond = { status = 200; body = \"x\"; };"

static const char sites[] =
    "access_log = \"none\"; trusted_proxies = [ \"10.0.0.0/8\" ];\n"
    "sites = (\n"
    " { names = [ \"a.example\", \"*.a.example\" ];"
    "   listen = [ \"127.0.0.1:8001\" ];\n"
    "   routes = ( { path = \"/get\"; methods = [ \"GET\" ]; " R " },\n"
    "     { path = \"/get\"; methods = [ \"PUT\" ]; " R " },\n"
    "     { path = \"/static/*\"; " R " },\n"
    "     { path = \"/small\"; max_body_bytes = 10; " R " } ); },\n"
    " { names = [ \"*.deep.a.example\" ]; listen = [ \"127.0.0.1:8001\" ];\n"
    "   routes = ( { path = \"*\"; " R " } ); },\n"
    " { names = [ \"b.example\" ]; listen = [ \"127.0.0.1:8001\" ];\n"
    "   default = true;\n"
    "   routes = ( { path = \"*.php\"; " R " }, { path = \"/*\"; " R
    " } ); } );\n";

static struct {
	struct worker *worker;
	struct worker_load load;
	struct snapshot *unused[4];
	size_t n_unused;
} at;

static void
on_unused(struct snapshot *snapshot, void *arg)
{
	at.unused[at.n_unused++] = snapshot;
}

static struct snapshot *
new_snapshot(const char *text, struct conf_errors *errors)
{
	char path[] = "/tmp/scalws-core-XXXXXX";
	int fd = mkstemp(path);
	struct handler_env env = { NULL };
	struct conf *conf;

	if (geteuid() == 0)
		ck_assert_int_eq(
		    fd_write_all(fd, "user = \"nobody\";\n", 17), 0);
	ck_assert_int_eq(fd_write_all(fd, text, strlen(text)), 0);
	close(fd);
	conf_errors_init(errors);
	conf = conf_load(path, errors);
	unlink(path);
	ck_assert_msg(conf != NULL, "%s", errors->text.ptr);
	return snapshot_new(
	    conf, 1, 1, NULL, 0, handlers, &env, NULL, on_unused, NULL, errors);
}

static void
install(const char *text)
{
	struct conf_errors errors;
	struct snapshot *snapshot = new_snapshot(text, &errors);

	ck_assert_msg(snapshot != NULL, "%s", errors.text.ptr);
	conf_errors_free(&errors);
	for (size_t i = 0; i < snapshot->conf->n_listeners; i++)
		snapshot->listeners[i].key = (uint32_t)i + 1;
	snapshot_commit(snapshot);
	snapshot_install(at.worker, snapshot);
}

static void
set_up(void)
{
	memset(&told, 0, sizeof(told));
	memset(&heard, 0, sizeof(heard));
	memset(&at, 0, sizeof(at));
	heard.takes = SIZE_MAX;
	at.worker = worker_new(0, 1);
	at.worker->all = &at.worker;
	at.worker->load = &at.load;
	install(sites);
}

static void
tear_down(void)
{
	request_free(&told.request);
	snapshot_install(at.worker, NULL);
	while (at.n_unused > 0)
		snapshot_free(&at.unused[--at.n_unused]);
	ck_assert_int_eq(heard.n_prepared, heard.n_released);
	ck_assert_uint_eq(at.worker->requests.n_used, 0);
	ck_assert_uint_eq(at.worker->buffers.n_used, 0);
	worker_free(at.worker);
}

/* A request from its head; what became of it is in `told` and `heard`. */
static bool
ask(const char *head)
{
	static const struct h1_limits limits = { 8192, 32768, 100 };
	struct request *request = request_new(at.worker, &front, NULL);
	size_t scanned = 0, used;
	unsigned status;
	const char *why;
	struct addr peer = { .len = sizeof(struct sockaddr_in) };
	static char kept[16384];

	request_free(&told.request);
	told.request = request;
	told.status = 0;
	told.body_len = 0;
	peer.u.in.sin_family = AF_INET;
	peer.u.in.sin_addr.s_addr = htonl(0x0a000001);
	request->peer = peer;
	request->listener = snapshot_listener_of(request->snapshot, 1);
	strcpy(kept, head);
	request->base = kept;
	ck_assert_int_eq(h1_parse_request(kept, strlen(kept), &limits, &scanned,
			     &request->head, &used, &status, &why),
	    H1_DONE);
	return request_dispatch(request);
}

#define HOST(name) "\r\nHost: " name "\r\n\r\n"

/* ---- sites and routes ---- */

START_TEST(routing)
{
	static const struct {
		const char *head;
		unsigned status; /* 0: the handler has it */
		const char *site, *path;
	} cases[] = {
		{ "GET /get HTTP/1.1" HOST("a.example"), 0, "a.example",
		    "/get" },
		{ "GET /get HTTP/1.1" HOST("A.EXAMPLE:8001"), 0, "a.example",
		    "/get" },
		{ "GET /get HTTP/1.1" HOST("a.example."), 0, "a.example",
		    "/get" },
		{ "GET /%67et?x=/y HTTP/1.1" HOST("x.y.a.example"), 0,
		    "a.example", "/get" },
		{ "GET /any HTTP/1.1" HOST("x.deep.a.example"), 0,
		    "*.deep.a.example", "/any" },
		{ "GET /get HTTP/1.1" HOST("deep.a.example"), 0, "a.example",
		    "/get" },
		{ "HEAD /get HTTP/1.1" HOST("a.example"), 0, "a.example",
		    "/get" },
		{ "PUT /get HTTP/1.1\r\nContent-Length: 0" HOST("a.example"), 0,
		    "a.example", "/get" },
		{ "GET /static HTTP/1.1" HOST("a.example"), 0, "a.example",
		    "/static" },
		{ "GET /static/x HTTP/1.1" HOST("a.example"), 0, "a.example",
		    "/static/x" },
		{ "GET /x/../static//y HTTP/1.1" HOST("a.example"), 0,
		    "a.example", "/static/y" },
		{ "GET /static_secret HTTP/1.1" HOST("a.example"), 404, NULL,
		    NULL },
		{ "GET /GET HTTP/1.1" HOST("a.example"), 404, NULL, NULL },
		{ "POST /get HTTP/1.1\r\nContent-Length: 0" HOST("a.example"),
		    405, NULL, NULL },
		{ "GET /../x HTTP/1.1" HOST("a.example"), 400, NULL, NULL },
		{ "GET /%00 HTTP/1.1" HOST("a.example"), 400, NULL, NULL },
		/* The default site, also without any host. */
		{ "GET / HTTP/1.1" HOST("nobody.example"), 0, "b.example",
		    "/" },
		{ "GET /x.php HTTP/1.0\r\n\r\n", 0, "b.example", "/x.php" },
		{ "GET http://a.example/static/z HTTP/1.1" HOST("b.example"), 0,
		    "a.example", "/static/z" },
		{ "GET http://b.example HTTP/1.1" HOST("b.example"), 0,
		    "b.example", "/" },
		{ "OPTIONS * HTTP/1.1" HOST("b.example"), 204, NULL, NULL },
	};

	set_up();
	/* Twice: the second time the host is remembered. */
	for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
		const char *head = cases[i / 2].head;

		memset(&heard.site, 0, sizeof(heard.site));
		ck_assert_msg(
		    ask(head) == (cases[i / 2].status == 0), "%s", head);
		ck_assert_msg(told.status == cases[i / 2].status, "%u for %s",
		    told.status, head);
		if (cases[i / 2].site == NULL)
			continue;
		ck_assert_msg(str_eq(heard.site, str_of(cases[i / 2].site)) &&
				  str_eq(heard.path, str_of(cases[i / 2].path)),
		    "%.*s %.*s for %s", (int)heard.site.len, heard.site.ptr,
		    (int)heard.path.len, heard.path.ptr, head);
	}
	tear_down();
}
END_TEST

START_TEST(method_not_allowed_says_which_are)
{
	set_up();
	ask("DELETE /get HTTP/1.1" HOST("a.example"));
	ck_assert_uint_eq(told.status, 405);
	ck_assert_ptr_nonnull(strstr(told.lines, "Allow: GET, HEAD, PUT\r\n"));
	ask("OPTIONS * HTTP/1.1" HOST("a.example"));
	ck_assert_ptr_nonnull(strstr(told.lines, "DELETE, OPTIONS"));
	tear_down();
}
END_TEST

START_TEST(declined_is_not_found)
{
	set_up();
	heard.declines = true;
	ck_assert(!ask("GET /get HTTP/1.1" HOST("a.example")));
	ck_assert_uint_eq(told.status, 404);
	ck_assert_int_eq(heard.n_requests, 1);
	ck_assert_int_eq(heard.n_aborts, 0);
	tear_down();
}
END_TEST

START_TEST(a_lost_listener_is_misdirected)
{
	struct request *request;

	set_up();
	request = request_new(at.worker, &front, NULL);
	request->base = "";
	told.request = request;
	memset(&request->head, 0, sizeof(request->head));
	ck_assert_ptr_null(snapshot_listener_of(request->snapshot, 77));
	ck_assert(!request_dispatch(request));
	ck_assert_uint_eq(told.status, 421);
	tear_down();
}
END_TEST

/* ---- bodies ---- */

START_TEST(bodies_reach_the_handler)
{
	set_up();
	ck_assert(
	    ask("POST /small HTTP/1.1\r\nContent-Length: 9" HOST("a.example")));
	ck_assert(!told.request->body_is_whole);
	heard.takes = 3;
	ck_assert_uint_eq(request_body(told.request, "abcde", 5, false), 3);
	heard.takes = SIZE_MAX;
	ck_assert_uint_eq(request_body(told.request, "de", 2, false), 2);
	ck_assert_uint_eq(request_body(told.request, "fghi", 4, true), 4);
	ck_assert(told.request->body_is_whole && heard.got_last);
	ck_assert_uint_eq(told.request->body_seen, 9);
	ck_assert_str_eq(heard.body, "abcdefghi");
	tear_down();
}
END_TEST

START_TEST(bodies_have_a_limit)
{
	set_up();
	ck_assert(!ask(
	    "POST /small HTTP/1.1\r\nContent-Length: 11" HOST("a.example")));
	ck_assert_uint_eq(told.status, 413);
	ck_assert_int_eq(heard.n_requests, 0);
	ck_assert(ask("POST /small HTTP/1.1\r\nTransfer-Encoding: chunked" HOST(
	    "a.example")));
	ck_assert_uint_eq(
	    request_body(told.request, "0123456789", 10, false), 10);
	ck_assert_uint_eq(request_body(told.request, "", 0, false), 0);
	ck_assert_int_eq(heard.n_aborts, 0);
	ck_assert_uint_eq(request_body(told.request, "x", 1, true), 1);
	ck_assert_uint_eq(told.status, 413);
	ck_assert_int_eq(heard.n_aborts, 1);
	ck_assert_ptr_null(told.request);
	tear_down();
}
END_TEST

START_TEST(a_handler_may_end_inside_a_body)
{
	struct request *request;

	set_up();
	ask("POST /small HTTP/1.1\r\nContent-Length: 9" HOST("a.example"));
	request = told.request;
	heard.ends_in_body = true;
	ck_assert_uint_eq(request_body(request, "abc", 3, false), 3);
	ck_assert_ptr_null(told.request);
	ck_assert_int_eq(told.n_end, 1);
	tear_down();
}
END_TEST

/* ---- answers ---- */

START_TEST(abort_before_and_after_the_head)
{
	struct response_head head = { .status = 200, .length = 5 };

	set_up();
	ask("GET /get HTTP/1.1" HOST("a.example"));
	response_abort(told.request, 502, "peer failed");
	ck_assert_uint_eq(told.status, 502);
	ck_assert_int_eq(told.n_end, 1);
	ask("GET /get HTTP/1.1" HOST("a.example"));
	ck_assert_int_eq(response_start(told.request, &head), RESPONSE_OK);
	response_abort(told.request, 502, "peer failed");
	ck_assert_int_eq(told.n_abort, 1);
	/* The client goes: the handler hears it once, nothing is answered. */
	ask("GET /get HTTP/1.1" HOST("a.example"));
	request_abort(told.request, 0, "client closed");
	ck_assert_int_eq(heard.n_aborts, 1);
	ck_assert_int_eq(told.n_abort, 2);
	ck_assert_uint_eq(told.status, 0);
	/* Its body is refused before and after a head. */
	ask("GET /get HTTP/1.1" HOST("a.example"));
	request_abort(told.request, 408, "body timeout");
	ck_assert_uint_eq(told.status, 408);
	ask("GET /get HTTP/1.1" HOST("a.example"));
	ck_assert_int_eq(response_start(told.request, &head), RESPONSE_OK);
	request_abort(told.request, 408, "body timeout");
	ck_assert_int_eq(told.n_abort, 3);
	ck_assert_int_eq(heard.n_aborts, 3);
	tear_down();
}
END_TEST

START_TEST(a_gone_client_gets_nothing_more)
{
	struct response_head head = { .status = 200, .length = 5 };

	set_up();
	ask("GET /get HTTP/1.1" HOST("a.example"));
	told.is_gone = true;
	ck_assert_int_eq(response_start(told.request, &head), RESPONSE_GONE);
	told.is_gone = false;
	ck_assert_int_eq(
	    response_write(told.request, "hello", 5), RESPONSE_GONE);
	response_end(told.request);
	ck_assert_uint_eq(told.body_len, 0);
	ck_assert_int_eq(told.n_end, 0);
	request_abort(told.request, 0, "client broke off");
	ck_assert_int_eq(heard.n_aborts, 1);
	tear_down();
}
END_TEST

START_TEST(head_has_no_body)
{
	struct response_head head = { .status = 200, .length = 5 };

	set_up();
	ask("HEAD /get HTTP/1.1" HOST("a.example"));
	ck_assert_int_eq(response_start(told.request, &head), RESPONSE_OK);
	ck_assert_int_eq(response_write(told.request, "hello", 5), RESPONSE_OK);
	ck_assert_uint_eq(told.request->bytes_sent, 0);
	response_end(told.request);
	ck_assert_uint_eq(told.body_len, 0);
	ck_assert_uint_eq(told.length, 5);
	tear_down();
}
END_TEST

/* No limit of bodies, bytes although a 101 has none, two ends. */
START_TEST(a_tunnel_carries_what_comes)
{
	struct response_head head = { .status = 101, .tunnel = true };
	struct request *request;

	set_up();
	ck_assert(ask("GET /small HTTP/1.1\r\nHost: a.example\r\n"
		      "Connection: upgrade\r\nUpgrade: websocket\r\n\r\n"));
	request = told.request;
	ck_assert(request->body_is_whole);
	ck_assert_int_eq(response_start(request, &head), RESPONSE_OK);
	ck_assert(!request->body_is_whole);
	ck_assert_int_eq(response_write(request, "down", 4), RESPONSE_OK);
	ck_assert_str_eq(told.body, "down");
	ck_assert_uint_eq(
	    request_body(request, "more than ten bytes", 19, false), 19);
	ck_assert_uint_eq(request_body(request, NULL, 0, true), 0);
	ck_assert(heard.got_last);
	ck_assert(request->body_is_whole);
	ck_assert_uint_eq(request->body_seen, 19);
	response_shutdown(request);
	ck_assert_int_eq(told.n_shutdown, 1);
	ck_assert_int_eq(told.n_end + told.n_abort, 0);
	response_end(request);
	ck_assert_int_eq(told.n_end, 1);
	tear_down();
}
END_TEST

START_TEST(refused_heads_are_answered_and_counted)
{
	struct request *request;

	set_up();
	request = request_new(at.worker, &front, NULL);
	request->listener = snapshot_listener_of(request->snapshot, 1);
	request->peer.len = 0;
	/* What a parser leaves behind in the middle. */
	memset(&request->head, 0xff, sizeof(request->head));
	told.request = request;
	request_refuse(request, 431, "head too large");
	ck_assert_uint_eq(told.status, 431);
	ck_assert_uint_eq(at.worker->metrics.bad_requests, 1);
	ck_assert_uint_eq(at.worker->metrics.requests, 1);
	ck_assert_uint_eq(at.worker->metrics.status[4], 1);
	ck_assert_uint_eq(at.worker->metrics.requests_open, 0);
	tear_down();
}
END_TEST

START_TEST(request_ids)
{
	static const struct {
		const char *given;
		bool is_taken;
	} cases[] = {
		{ "abc-1.2_Z", true },
		{ "01234567890123456789012345678901", true },
		{ "012345678901234567890123456789012", false },
		{ "a b", false },
		{ "a\"b", false },
	};
	char head[256], first[REQUEST_ID_LEN + 1];
	struct str id;

	set_up();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		snprintf(head, sizeof(head),
		    "GET /get HTTP/1.1\r\nHost: a.example\r\n"
		    "X-Request-Id: %s\r\n\r\n",
		    cases[i].given);
		ask(head);
		id = request_id(told.request);
		ck_assert_msg(
		    str_eq(id, str_of(cases[i].given)) == cases[i].is_taken,
		    "%s", cases[i].given);
		ck_assert(str_eq(id, request_id(told.request)));
	}
	ask("GET /get HTTP/1.1" HOST("a.example"));
	id = request_id(told.request);
	ck_assert_uint_eq(id.len, REQUEST_ID_LEN);
	ck_assert_uint_eq(strspn(id.ptr, "0123456789abcdef"), REQUEST_ID_LEN);
	strcpy(first, id.ptr);
	ask("GET /get HTTP/1.1" HOST("a.example"));
	ck_assert_str_ne(request_id(told.request).ptr, first);
	/* Nobody we trust. */
	ask("GET /get HTTP/1.1\r\nX-Request-Id: mine" HOST("a.example"));
	told.request->forwarded.is_trusted = false;
	ck_assert_uint_eq(request_id(told.request).len, REQUEST_ID_LEN);
	tear_down();
}
END_TEST

START_TEST(scratch_is_bounded)
{
	char *small, *large;

	set_up();
	ask("GET /get HTTP/1.1" HOST("a.example"));
	small = request_scratch(told.request, 10);
	memset(small, 's', 10);
	large = request_scratch(told.request, 10000);
	memset(large, 'l', 10000);
	ck_assert_ptr_null(request_scratch(told.request, 10000));
	ck_assert_ptr_nonnull(request_scratch(told.request, 5000));
	ck_assert_mem_eq(small, "ssssssssss", 10);
	tear_down();
}
END_TEST

/* ---- error pages ---- */

START_TEST(error_pages_follow_accept)
{
	static const struct {
		const char *accept;
		enum error_page_kind kind;
	} cases[] = {
		{ "", ERROR_PAGE_TEXT },
		{ "*/*", ERROR_PAGE_TEXT },
		{ "text/html,application/xhtml+xml,application/xml;q=0.9,"
		  "image/webp,*/*;q=0.8",
		    ERROR_PAGE_HTML },
		{ "application/json", ERROR_PAGE_JSON },
		{ "Application/JSON ; charset=utf-8", ERROR_PAGE_JSON },
		{ "application/json, text/plain, */*", ERROR_PAGE_JSON },
		{ "text/html;q=0.5, application/json;q=0.75", ERROR_PAGE_JSON },
		{ "text/html;q=0.9, application/json;q=0.75", ERROR_PAGE_HTML },
		{ "application/json;q=0", ERROR_PAGE_TEXT },
		{ "application/json;q=0.000, text/html;q=0.001",
		    ERROR_PAGE_HTML },
		{ "image/png", ERROR_PAGE_TEXT },
		{ ",,;,;q=,", ERROR_PAGE_TEXT },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		ck_assert_msg(
		    error_page_choose(str_of(cases[i].accept)) == cases[i].kind,
		    "%s", cases[i].accept);
}
END_TEST

START_TEST(error_pages_are_whole)
{
	json_t *json;

	set_up();
	ask("GET /no HTTP/1.1\r\nAccept: application/json" HOST("a.example"));
	ck_assert_uint_eq(told.length, told.body_len);
	json = json_loads(told.body, 0, NULL);
	ck_assert_ptr_nonnull(json);
	ck_assert_int_eq(
	    json_integer_value(json_object_get(json, "status")), 404);
	json_decref(json);
	ck_assert_ptr_nonnull(
	    strstr(told.lines, "Content-Type: application/json\r\n"));
	ask("GET /get HTTP/1.1\r\nAccept: text/html" HOST("a.example"));
	response_error(told.request, 503, STR("Retry-After: 5\r\n"),
	    "<script>\"x\"</script>");
	ck_assert_ptr_nonnull(strstr(told.lines, "Retry-After: 5\r\n"));
	ck_assert_ptr_nonnull(strstr(told.body, "Service Unavailable"));
	ck_assert_ptr_null(strstr(told.body, "<script"));
	tear_down();
}
END_TEST

/* ---- snapshots ---- */

START_TEST(snapshots_live_as_long_as_their_requests)
{
	struct snapshot *first;

	set_up();
	first = at.worker->snapshot;
	ck_assert(ask("GET /get HTTP/1.1" HOST("a.example")));
	install(sites);
	ck_assert_uint_eq(at.n_unused, 0);
	install(sites); /* the second has no request: it goes at once */
	ck_assert_uint_eq(at.n_unused, 1);
	ck_assert_ptr_ne(at.unused[0], first);
	request_free(&told.request);
	ck_assert_uint_eq(at.n_unused, 2);
	ck_assert_ptr_eq(at.unused[1], first);
	tear_down();
}
END_TEST

START_TEST(a_rejected_snapshot_leaves_nothing)
{
	struct conf_errors errors;
	int committed;

	set_up();
	committed = heard.n_committed;
	ck_assert_int_gt(committed, 0);
	ck_assert_ptr_null(new_snapshot(
	    "access_log = \"none\"; sites = ( { names = [ \"a.example\" ];\n"
	    "listen = [ \"127.0.0.1:8001\" ]; routes = (\n"
	    "{ path = \"/1\"; " R " },\n"
	    "{ path = \"/2\"; respond = { status = 418; }; } ); } );",
	    &errors));
	ck_assert_int_eq(errors.count, 1);
	ck_assert_ptr_nonnull(strstr(errors.text.ptr, ":5: "));
	conf_errors_free(&errors);
	ck_assert_int_eq(heard.n_committed, committed);
	ck_assert_uint_eq(at.n_unused, 0);
	tear_down();
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { routing,
		method_not_allowed_says_which_are, declined_is_not_found,
		a_lost_listener_is_misdirected, bodies_reach_the_handler,
		bodies_have_a_limit, a_handler_may_end_inside_a_body,
		abort_before_and_after_the_head,
		a_gone_client_gets_nothing_more, head_has_no_body,
		a_tunnel_carries_what_comes,
		refused_heads_are_answered_and_counted, request_ids,
		scratch_is_bounded, error_pages_follow_accept,
		error_pages_are_whole, snapshots_live_as_long_as_their_requests,
		a_rejected_snapshot_leaves_nothing };
	Suite *suite = suite_create("core");
	TCase *all = tcase_create("requests");

	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		tcase_add_test(all, tests[i]);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
