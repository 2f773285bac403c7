/*
 * From a parsed head to the handler that takes it: host, client, path, site,
 * route, limits, actions. Called once a request by the front.
 * Answers by itself only what no handler could: 400, 404, 405, 413, 421.
 */
#include "proxy/core/dispatch.h"

#include <stdio.h>
#include <string.h>

#include "proxy/core/request.h"
#include "proxy/core/response.h"
#include "proxy/core/snapshot.h"
#include "proxy/core/tls_io.h"
#include "proxy/http/uri.h"

/* Room for a Host that no name could fill. */
#define HOST_MAX 264

static const char *const method_names[METHOD_COUNT] = {
	[METHOD_GET] = "GET",
	[METHOD_HEAD] = "HEAD",
	[METHOD_POST] = "POST",
	[METHOD_PUT] = "PUT",
	[METHOD_DELETE] = "DELETE",
	[METHOD_OPTIONS] = "OPTIONS",
	[METHOD_PATCH] = "PATCH",
};

static int
refuse(struct request *request, unsigned status, const char *why)
{
	request->why = why;
	response_error(request, status, STR(""), why);
	return -1;
}

/* "Allow: GET, HEAD\r\n" (RFC 9110 section 10.2.1) into `to`. */
static struct str
allow_line(uint32_t allowed, char to[128])
{
	char *at = stpcpy(to, "Allow: ");
	const char *between = "";

	for (unsigned i = 0; i < METHOD_COUNT; i++) {
		if (method_names[i] == NULL || (allowed & 1u << i) == 0)
			continue;
		at = stpcpy(at, between);
		at = stpcpy(at, method_names[i]);
		between = ", ";
	}
	at = stpcpy(at, "\r\n");
	return (struct str){ to, (size_t)(at - to) };
}

/* OPTIONS * asks about the server itself (RFC 9110 section 9.3.7). */
static int
answer_asterisk(struct request *request)
{
	char line[128];
	struct response_head head = { .status = 204, .length = 0 };

	head.lines = allow_line(UINT32_MAX, line);
	if (response_start(request, &head) != RESPONSE_GONE)
		response_end(request);
	return -1;
}

static int
find_client(struct request *request)
{
	const struct conf *conf = request->snapshot->conf;

	if (request->listener == NULL) {
		/* Its listener went with a reload; the connection ends too. */
		request->forwarded =
		    (struct forwarded){ .client = request->peer };
		return refuse(request, 421, "no such listener any more");
	}
	forwarded_resolve(&request->head.headers, request->base, &request->peer,
	    request->tls != NULL, conf->trusted_proxies,
	    conf->n_trusted_proxies, &request->forwarded);
	return 0;
}

/* The listener's address is as good as a name: installing a snapshot forgets it
 * before another could stand there. */
static bool
recall_site(struct request *request, struct str value)
{
	const struct host_memo *memo = &request->worker->memo;
	char *to;

	if (memo->listener != request->listener || memo->raw_len != value.len ||
	    memcmp(memo->raw, value.ptr, value.len) != 0)
		return false;
	to = request_scratch(request, memo->host_len);
	memcpy(to, memo->host, memo->host_len);
	request->host = (struct str){ to, memo->host_len };
	request->site = memo->site;
	return true;
}

static void
remember_site(struct request *request, struct str value)
{
	struct host_memo *memo = &request->worker->memo;

	if (value.len > WORKER_MEMO_BYTES)
		return;
	memo->listener = request->listener;
	memo->site = request->site;
	memo->raw_len = (uint8_t)value.len;
	memo->host_len = (uint8_t)request->host.len;
	memcpy(memo->raw, value.ptr, value.len);
	memcpy(memo->host, request->host.ptr, request->host.len);
}

/* A handshake for one name says nothing about what another one's site asks of
 * its clients (RFC 9110 section 15.5.20). */
static int
check_tls(struct request *request)
{
	const struct tls_site *tls = request->site->tls;

	if (LIKELY(request->tls == NULL) || tls == NULL ||
	    tls_suits(request->tls, tls))
		return 0;
	return refuse(request, 421, "not by this connection");
}

static int
find_site(struct request *request)
{
	const struct h1_request *head = &request->head;
	struct str value = { request->base + head->host, head->host_len };
	size_t room = value.len < HOST_MAX ? value.len : HOST_MAX;
	struct str port;
	char *to;

	if (value.len == 0) {
		request->site = request->listener->default_site;
		return check_tls(request);
	}
	if (LIKELY(recall_site(request, value)))
		return check_tls(request);
	request->site = request->listener->default_site; /* for the log */
	to = request_scratch(request, room);
	if (to == NULL ||
	    uri_host(value, to, room, &request->host, &port) == -1)
		return refuse(request, 400, "bad host");
	request->site = snapshot_site(request->listener, request->host);
	remember_site(request, value);
	return check_tls(request);
}

static int
find_path(struct request *request)
{
	const struct h1_request *head = &request->head;
	struct str path = { request->base + head->path, head->path_len };
	char *room;

	if (path.len == 0) {
		request->path = STR("/");
		return 0;
	}
	/* Most are normal already and need no room. */
	if (LIKELY(uri_normalize(path, NULL, 0, &request->path) == URI_OK))
		return 0;
	room = request_scratch(request, path.len);
	if (room == NULL)
		return refuse(request, 414, "target too long");
	if (uri_normalize(path, room, path.len, &request->path) != URI_OK)
		return refuse(request, 400, "bad path");
	return 0;
}

#define ACME_PATH "/.well-known/acme-challenge/"

/* A site may want all of its requests by TLS; those that get its certificate
 * cannot come so. */
static int
send_to_https(struct request *request)
{
	const struct h1_request *head = &request->head;
	struct response_head answer = { .status = 308 };
	struct str host =
	    request->host.len > 0 ? request->host : request->site->name;
	struct str path = STR("/"), query = STR("");
	char port[8] = "", *line;
	int len;

	if (head->path_len > 0)
		path =
		    (struct str){ request->base + head->path, head->path_len };
	if (head->query != 0)
		query = (struct str){ request->base + head->query - 1,
			head->query_len + 1 };
	if (request->site->https_port != 0 && request->site->https_port != 443)
		snprintf(port, sizeof(port), ":%u", request->site->https_port);
	line = request_scratch(request, host.len + path.len + query.len + 64);
	if (line == NULL || host.ptr[0] == '*' || host.ptr[0] == '_')
		return refuse(request, 400, "no host to send it to");
	len = sprintf(line, "Location: https://%.*s%s%.*s%.*s\r\n",
	    (int)host.len, host.ptr, port, (int)path.len, path.ptr,
	    (int)query.len, query.ptr);
	answer.lines = (struct str){ line, (size_t)len };
	if (response_start(request, &answer) != RESPONSE_GONE)
		response_end(request);
	return -1;
}

static bool
wants_https(const struct request *request)
{
	return UNLIKELY(request->site->conf->https_redirect) &&
	       !request->forwarded.https &&
	       !str_starts_with(request->path, STR(ACME_PATH));
}

static int
find_route(struct request *request)
{
	uint32_t allowed;
	char line[128];

	request->route = site_route(
	    request->site, request->path, request->head.method, &allowed);
	if (request->route == NULL && allowed != 0) {
		request->why = "method not allowed";
		response_error(request, 405, allow_line(allowed, line), NULL);
		return -1;
	}
	if (request->route == NULL)
		return refuse(request, 404, "no route");
	if (request->head.body == BODY_LENGTH &&
	    request->head.content_length > request->route->max_body_bytes) {
		request->body_refused = true;
		return refuse(request, 413, "body too large");
	}
	return 0;
}

static void
run_actions(struct request *request)
{
	const struct route *route = request->route;

	while (request->next_action < route->n_actions) {
		const struct route_action *action =
		    &route->actions[request->next_action++];

		request->handler = action->handler;
		if (action->handler->on_request(request, action->prepared) ==
		    HANDLER_HANDLED)
			return;
		request->handler = NULL;
	}
	refuse(request, 404, "declined");
}

bool
request_dispatch(struct request *request)
{
	const struct h1_request *head = &request->head;

	request->method =
	    (struct str){ request->base + head->method_at, head->method_len };
	request->target =
	    (struct str){ request->base + head->target, head->target_len };
	request->body_is_whole =
	    head->body == BODY_NONE ||
	    (head->body == BODY_LENGTH && head->content_length == 0);
	request_begin(request);
	request_enter(request);
	if (find_client(request) == 0 && find_site(request) == 0) {
		if (head->form == TARGET_ASTERISK)
			answer_asterisk(request);
		else if (find_path(request) == 0) {
			if (wants_https(request))
				send_to_https(request);
			else if (find_route(request) == 0)
				run_actions(request);
		}
	}
	return request_leave(request);
}
