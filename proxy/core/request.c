/*
 * A request's life: made by the front, ended by its handler or its client,
 * logged and counted at the end. Passes bodies down to the handler.
 * Finding who answers is dispatch.c's, the answer response.c's.
 */
#include "proxy/core/request.h"

#include <stddef.h>
#include <string.h>

#include "proxy/core/access_log.h"
#include "proxy/core/dispatch.h"
#include "proxy/core/response.h"
#include "proxy/core/snapshot.h"

/* ---- memory ---- */

struct request *
request_new(
    struct worker *worker, const struct front_ops *front, void *front_state)
{
	struct request *request;

	worker->requests.bytes = sizeof(*request);
	request = pool_of_get(&worker->requests);
	memset(request, 0, offsetof(struct request, id));
	request->id[0] = '\0';
	request->worker = worker;
	request->front = front;
	request->front_state = front_state;
	request->snapshot = snapshot_hold(worker);
	return request;
}

static void
release(struct request *request)
{
	struct worker *worker = request->worker;

	buf_put(worker, &request->scratch);
	snapshot_release(worker, &request->snapshot);
	pool_of_put(&worker->requests, request);
}

/* Count it and write its line, while its head can still be read. */
static void
conclude(struct request *request)
{
	struct metrics *metrics = &request->worker->metrics;
	unsigned class = request->status / 100;

	METRIC_ADD(metrics->requests, 1);
	METRIC_ADD(metrics->status[class < 6 ? class : 0], 1);
	METRIC_ADD(metrics->bytes_in, request->body_seen);
	METRIC_ADD(metrics->bytes_out, request->bytes_sent);
	METRIC_ADD(metrics->requests_open, UINT64_MAX);
	if (request->site == NULL || request->site->access_log == NULL)
		return;
	if (request->timed)
		request->times.end_us = clock_now_us();
	access_log_add(request->site->access_log, request);
}

void
request_free(struct request **request_ptr)
{
	struct request *request = *request_ptr;

	if (request == NULL)
		return;
	*request_ptr = NULL;
	if (request->is_begun)
		conclude(request);
	if (request->depth > 0)
		request->is_freed = true;
	else
		release(request);
}

void
request_enter(struct request *request)
{
	request->depth++;
}

bool
request_leave(struct request *request)
{
	bool is_open = !request->is_freed;

	if (--request->depth == 0 && !is_open)
		release(request);
	return is_open;
}

void
request_begin(struct request *request)
{
	const struct conf *conf = request->snapshot->conf;

	request->is_begun = true;
	METRIC_ADD(request->worker->metrics.requests_open, 1);
	if (request->snapshot->n_logs > 0 &&
	    conf->access_log_format == CONF_LOG_JSON) {
		request->timed = true;
		request->times.start_us = clock_now_us();
	}
}

char *
request_scratch(struct request *request, size_t bytes)
{
	struct buf *buf = request->scratch;
	char *at;

	bytes = (bytes + 7) & ~(size_t)7;
	if (bytes <= sizeof(request->small) - request->small_used) {
		at = request->small + request->small_used;
		request->small_used += (unsigned)bytes;
		return at;
	}
	if (buf == NULL)
		buf = request->scratch = buf_get(request->worker);
	if (bytes > buf->room - buf->end)
		return NULL;
	at = buf->bytes + buf->end;
	buf->end += (uint32_t)bytes;
	return at;
}

/* ---- the body and the client ---- */

size_t
request_body(struct request *request, const char *from, size_t len, bool last)
{
	const struct handler_ops *handler = request->handler;
	size_t taken = len;

	if (handler == NULL || handler->on_body == NULL || request->is_ended) {
		request->body_seen += len;
		request->body_is_whole |= last;
		return len;
	}
	request_enter(request);
	if (!request->is_tunnel &&
	    len > request->route->max_body_bytes - request->body_seen) {
		request_abort(request, 413, "body too large");
	} else {
		taken = handler->on_body(request, from, len, last);
		request->body_seen += taken;
		if (last && taken == len)
			request->body_is_whole = true;
	}
	request_leave(request);
	return taken;
}

void
request_writable(struct request *request)
{
	const struct handler_ops *handler = request->handler;

	if (handler == NULL || handler->on_writable == NULL ||
	    request->is_ended || request->is_gone)
		return;
	request_enter(request);
	handler->on_writable(request);
	request_leave(request);
}

void
request_abort(struct request *request, unsigned status, const char *why)
{
	const struct handler_ops *handler = request->handler;

	request_enter(request);
	request->handler = NULL;
	if (request->why == NULL)
		request->why = why;
	if (handler != NULL && handler->on_abort != NULL && !request->is_ended)
		handler->on_abort(request);
	/* The handler may have been the last to hope for it. */
	if (!request->is_freed) {
		request->body_refused = true;
		if (status != 0 && request->status == 0 && !request->is_gone) {
			response_error(request, status, STR(""), why);
		} else {
			request->is_ended = true;
			request->front->abort(request);
		}
	}
	request_leave(request);
}

void
request_refuse(struct request *request, unsigned status, const char *why)
{
	request_begin(request);
	request_enter(request);
	/* What the parser left behind is not to be looked at. */
	request->method = request->target = STR("");
	memset(&request->head, 0, offsetof(struct h1_request, headers));
	request->head.method = METHOD_OTHER;
	request->head.minor = 1;
	request->head.body = BODY_NONE;
	header_table_reset(&request->head.headers);
	request->body_is_whole = false;
	request->body_refused = true;
	request->forwarded = (struct forwarded){ .client = request->peer };
	request->why = why;
	if (request->listener != NULL)
		request->site = request->listener->default_site;
	METRIC_ADD(request->worker->metrics.bad_requests, 1);
	response_error(request, status, STR(""), why);
	request_leave(request);
}

static void
move(struct str *text, const char *from, const char *to, size_t len)
{
	if (text->ptr >= from && text->ptr < from + len)
		text->ptr = to + (text->ptr - from);
}

void
request_move(struct request *request, const char *base, size_t len)
{
	const char *from = request->base;

	move(&request->method, from, base, len);
	move(&request->target, from, base, len);
	move(&request->host, from, base, len);
	move(&request->path, from, base, len);
	move(&request->forwarded.host, from, base, len);
	request->base = base;
}

/* ---- its name ---- */

static bool
is_good_id(struct str id)
{
	if (id.len == 0 || id.len > REQUEST_ID_LEN)
		return false;
	for (size_t i = 0; i < id.len; i++) {
		char c = id.ptr[i];

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
			(c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
			c == '-'))
			return false;
	}
	return true;
}

/* xorshift128+: names for people who read logs, no secrets. */
static uint64_t
next_random(struct worker *worker)
{
	uint64_t a = worker->random[0], b = worker->random[1];

	worker->random[0] = b;
	a ^= a << 23;
	worker->random[1] = a ^ b ^ (a >> 17) ^ (b >> 26);
	return worker->random[1] + b;
}

/* Eight hexadecimal digits of 32 bits, all at once. */
static void
put_digits(char to[8], uint32_t bits)
{
	uint64_t v = bits, is_letter;

	v = (v | v << 16) & 0x0000ffff0000ffff;
	v = (v | v << 8) & 0x00ff00ff00ff00ff;
	v = (v | v << 4) & 0x0f0f0f0f0f0f0f0f;
	is_letter = (v + 0x0606060606060606) >> 4 & 0x0101010101010101;
	v += 0x3030303030303030 + is_letter * ('a' - '0' - 10);
	memcpy(to, &v, 8);
}

struct str
request_id(struct request *request)
{
	const struct header_field *field;
	struct str given;

	if (request->id[0] != '\0')
		return str_of(request->id);
	field = header_get(&request->head.headers, HEADER_X_REQUEST_ID);
	if (field != NULL && request->forwarded.is_trusted) {
		given = header_value(request->base, field);
		if (is_good_id(given)) {
			memcpy(request->id, given.ptr, given.len);
			request->id[given.len] = '\0';
			return str_of(request->id);
		}
	}
	for (unsigned i = 0; i < REQUEST_ID_LEN; i += 16) {
		uint64_t bits = next_random(request->worker);

		put_digits(request->id + i, (uint32_t)bits);
		put_digits(request->id + i + 8, (uint32_t)(bits >> 32));
	}
	request->id[REQUEST_ID_LEN] = '\0';
	return (struct str){ request->id, REQUEST_ID_LEN };
}

struct str
request_secure_lines(const struct request *request)
{
	if (LIKELY(request->tls == NULL) || request->site == NULL)
		return STR("");
	return request->site->secure_lines;
}

bool
request_shows_client(const struct request *request)
{
	return UNLIKELY(request->tls != NULL) && request->site != NULL &&
	       request->site->conf->tls.client_verify != CONF_VERIFY_NONE;
}
