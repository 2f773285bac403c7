/*
 * For fuzz_h2_conn.c: a handler that does all that handlers may do, and aborts
 * when the front does what it may not (proxy/core/handler.h).
 * Knows nothing of HTTP/2.
 */
#include "t/fuzz/h2_app.h"

#include <stdlib.h>
#include <string.h>

#include "proxy/core/request.h"
#include "proxy/core/response.h"
#include "src/base/list.h"

#define LARGE_BYTES 200000
#define LATER_ROUNDS 3

struct job {
	struct list node; /* in app.jobs */
	struct request *request;
	unsigned plan;
	unsigned rounds;
	uint64_t left, took; /* of the answer; of the request's body */
	bool is_started;
	bool is_full;     /* until on_writable */
	bool owes_resume; /* it did not take all of a piece */
	bool saw_last;
	bool echoes, is_shut;
};

static struct {
	const uint8_t *plans;
	unsigned n_requests;
	struct list jobs;
} app;

static const char app_head[] = "HTTP/1.1 200 OK\r\n"
			       "Server: App\r\n"
			       "X-Mixed-CASE: value\r\n"
			       "Set-Cookie: a=1\r\n"
			       "Set-Cookie: b=2\r\n"
			       "Connection: keep-alive, X-Mine\r\n"
			       "X-Mine: gone\r\n"
			       "Sec-WebSocket-Accept: x\r\n"
			       "X-Empty:\r\n"
			       "\r\n";

static void
check(bool holds)
{
	if (!holds)
		abort();
}

static unsigned
when(const struct job *job)
{
	return job->plan & H2_APP_WHEN;
}

static void
let_go(struct job *job)
{
	job->request->handler_state = NULL;
	list_remove(&job->node);
	free(job);
}

/* ---- answers ---- */

static const struct h1_response *
app_answer(void)
{
	static struct h1_response response;
	const char *why;
	size_t scanned = 0, used;

	if (response.status == 0)
		check(h1_parse_response(app_head, sizeof(app_head) - 1,
			  &(struct h1_limits){ 8192, 8192, 20 }, &scanned,
			  &response, &used, &why) == H1_DONE);
	return &response;
}

static void
finish(struct job *job)
{
	struct request *request = job->request;

	/* Else on_abort is still to come. */
	if (request->is_gone)
		return;
	if (H2_APP_WHAT(job->plan) == H2_APP_TRAILED)
		response_trailers(request, &app_answer()->headers, app_head);
	let_go(job);
	response_end(request);
}

static void
write_more(struct job *job)
{
	static const char filler[20000];
	size_t piece = (job->plan & H2_APP_IS_ODD) != 0 ? 999 : sizeof(filler);

	while (job->left > 0) {
		size_t n = job->left < piece ? (size_t)job->left : piece;
		enum response_result result;

		job->left -= n;
		result = response_write(job->request, filler, n);
		if (piece == 999 && result == RESPONSE_OK)
			result = response_flush(job->request);
		if (result == RESPONSE_FULL)
			job->is_full = true;
		if (result != RESPONSE_OK)
			return;
	}
	finish(job);
}

static void
fail(struct job *job, unsigned status)
{
	struct request *request = job->request;

	let_go(job);
	response_abort(request, status, "the app failed");
}

static void
start(struct job *job, unsigned what)
{
	struct request *request = job->request;
	struct response_head head = {
		.status = 200,
		.length = RESPONSE_LENGTH_UNKNOWN,
		.fields = &app_answer()->headers,
		.base = app_head,
		.lines = STR("X-Line: of a route\r\n"),
		.flush_always = (job->plan & H2_APP_IS_ODD) != 0,
	};

	if (what == H2_APP_HEAD)
		head.length = job->left = 0;
	else if (what == H2_APP_LARGE || what == H2_APP_CUT)
		head.length = job->left = LARGE_BYTES;
	else if (what == H2_APP_TRAILED)
		job->left = LARGE_BYTES;
	if (request->head.websocket && what >= H2_APP_LARGE) {
		head.status = 101;
		head.tunnel = true;
	}
	job->echoes = head.tunnel || what == H2_APP_ECHO;
	if (response_start(request, &head) == RESPONSE_GONE)
		return;
	if (job->echoes) {
		if (!head.tunnel && (job->saw_last || request->body_is_whole))
			finish(job);
	} else if (what == H2_APP_CUT) {
		if (response_write(request, app_head, sizeof(app_head)) !=
		    RESPONSE_GONE)
			fail(job, 502);
	} else {
		write_more(job);
	}
}

static void
answer(struct job *job)
{
	static const struct response_line lines[] = { { { "x-fixed", 7 },
	    { "1", 1 } } };
	static char body[70000];
	static const struct response_fixed page = { .status = 200,
		.lines = lines,
		.n_lines = 1,
		.body = { body, sizeof(body) } };
	static const struct response_fixed nothing = { .status = 204 };
	struct request *request = job->request;
	unsigned what = H2_APP_WHAT(job->plan);

	job->is_started = true;
	switch (what) {
	case H2_APP_FIXED:
	case H2_APP_NO_CONTENT:
		let_go(job);
		response_fixed_send(
		    request, what == H2_APP_FIXED ? &page : &nothing);
		break;
	case H2_APP_ERROR:
		let_go(job);
		response_error(request, 404, STR("X-Line: 1\r\n"), "none");
		break;
	default:
		start(job, what);
		break;
	}
}

/* ---- what the front says ---- */

static enum handler_result
on_request(struct request *request, const void *prepared)
{
	struct job *job = calloc(1, sizeof(*job));
	const struct response_head hints = { .status = 103,
		.fields = &app_answer()->headers,
		.base = app_head };

	check(job != NULL);
	job->request = request;
	job->plan = app.plans[app.n_requests++ % H2_APP_PLANS];
	request->handler_state = job;
	list_push_back(&app.jobs, &job->node);
	if ((job->plan & H2_APP_IS_ODD) != 0 && request->front->inform != NULL)
		request->front->inform(request, &hints);
	if ((job->plan & H2_APP_TAKES_BODY) != 0 ||
	    when(job) >= H2_APP_ON_BODY ||
	    H2_APP_WHAT(job->plan) == H2_APP_ECHO)
		request->front->body_wanted(request);
	if (when(job) == H2_APP_AT_ONCE ||
	    (when(job) >= H2_APP_ON_BODY && request->body_is_whole))
		answer(job);
	return HANDLER_HANDLED;
}

/* Has it the length that was announced? */
static void
check_length(const struct job *job)
{
	const struct h1_request *head = &job->request->head;

	if (job->request->is_tunnel || head->body != BODY_LENGTH)
		return;
	check(job->took <= head->content_length);
	if (job->saw_last)
		check(job->took == head->content_length);
}

static void
say_back(struct job *job, const char *from, size_t len)
{
	if (response_write(job->request, from, len) == RESPONSE_FULL)
		job->is_full = true;
	if (!job->saw_last)
		return;
	if (job->request->is_tunnel && (job->plan & H2_APP_IS_ODD) != 0) {
		response_shutdown(job->request);
		job->is_shut = true;
	} else {
		finish(job);
	}
}

static size_t
on_body(struct request *request, const char *from, size_t len, bool last)
{
	struct job *job = request->handler_state;
	size_t taken = len;

	check(job != NULL && job->request == request);
	check(!job->saw_last && !job->owes_resume && !request->is_ended);
	check(len > 0 || last);
	if ((job->plan & H2_APP_TAKES_HALVES) != 0)
		taken = (len + 1) / 2;
	if (job->echoes && job->is_full && len > 0)
		taken = 0;
	job->owes_resume = taken < len;
	job->took += taken;
	job->saw_last = last && taken == len;
	check_length(job);
	if (job->echoes)
		say_back(job, from, taken);
	else if (!job->is_started &&
		 (when(job) == H2_APP_ON_BODY ||
		     (when(job) == H2_APP_AFTER_BODY && job->saw_last)))
		answer(job);
	return taken;
}

static void
on_writable(struct request *request)
{
	struct job *job = request->handler_state;

	check(job != NULL && job->is_started);
	job->is_full = false;
	if (!job->echoes)
		write_more(job);
}

static void
on_abort(struct request *request)
{
	struct job *job = request->handler_state;

	if (job != NULL)
		let_go(job);
	else
		check(request->is_gone);
}

const struct handler_ops h2_app = {
	.name = "app",
	.on_request = on_request,
	.on_body = on_body,
	.on_writable = on_writable,
	.on_abort = on_abort,
};

/* ---- the run ---- */

void
h2_app_begin(const uint8_t plans[H2_APP_PLANS])
{
	app.plans = plans;
	app.n_requests = 0;
	list_init(&app.jobs);
}

bool
h2_app_is_idle(void)
{
	return list_is_empty(&app.jobs);
}

void
h2_app_round(void)
{
	struct list *node, *after;

	LIST_FOREACH_SAFE(node, after, &app.jobs)
	{
		struct job *job = LIST_ENTRY(node, struct job, node);

		if (job->request->is_gone)
			continue;
		if (!job->is_started && when(job) == H2_APP_LATER &&
		    ++job->rounds == LATER_ROUNDS) {
			answer(job);
		} else if (job->owes_resume && !(job->echoes && job->is_full)) {
			job->owes_resume = false;
			job->request->front->body_resume(job->request);
		} else if (job->is_shut) {
			finish(job);
		}
	}
}
