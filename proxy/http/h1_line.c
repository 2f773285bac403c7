/*
 * The first line of an HTTP/1 head, by RFC 9112 sections 3 and 4.
 * Between the gate's scan and its fields. Does not decode the target.
 */
#include "proxy/http/h1_line.h"

#include <string.h>

#include "proxy/http/chars.h"
#include "proxy/http/h1_gate.h"
#include "proxy/http/uri.h"

static const struct {
	struct str name;
	enum http_method method;
} methods[] = {
	{ { "GET", 3 }, METHOD_GET },
	{ { "POST", 4 }, METHOD_POST },
	{ { "HEAD", 4 }, METHOD_HEAD },
	{ { "PUT", 3 }, METHOD_PUT },
	{ { "DELETE", 6 }, METHOD_DELETE },
	{ { "OPTIONS", 7 }, METHOD_OPTIONS },
	{ { "PATCH", 5 }, METHOD_PATCH },
};

static enum http_method
method_of(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (str_eq(methods[i].name, name))
			return methods[i].method;
	}
	return METHOD_OTHER;
}

bool
http_method_is_idempotent(enum http_method method)
{
	switch (method) {
	case METHOD_GET:
	case METHOD_HEAD:
	case METHOD_PUT:
	case METHOD_DELETE:
	case METHOD_OPTIONS:
		return true;
	case METHOD_OTHER:
	case METHOD_POST:
	case METHOD_PATCH:
	case METHOD_COUNT:
		break;
	}
	return false;
}

/* Returns where the target must begin, or 0 with *status and *why. */
static uint32_t
read_method(const char *from, uint32_t start, struct h1_request *request,
    unsigned *status, const char **why)
{
	uint32_t i = start;
	struct str name;

	while (char_is(from[i], CHAR_TOKEN))
		i++;
	name = (struct str){ from + start, i - start };
	*status = 400;
	*why = "a method that is no token, or not followed by one space";
	if (name.len == 0 || from[i] != ' ')
		return 0;
	request->method_at = start;
	request->method_len = (uint32_t)name.len;
	request->method = method_of(name);
	if (LIKELY(request->method != METHOD_OTHER))
		return i + 1;
	/* In any case: a peer might not care about it. */
	*status = 501;
	*why = "a method that is not served";
	if (name.len > H1_METHOD_MAX || str_eq_nocase(name, STR("CONNECT")) ||
	    str_eq_nocase(name, STR("TRACE")))
		return 0;
	return i + 1;
}

/* From the path's first byte to the space. Returns where it is, or 0. */
static uint32_t
read_path(
    const char *from, uint32_t i, struct h1_request *request, const char **why)
{
	request->path = i;
	while (char_is(from[i], CHAR_PATH))
		i++;
	request->path_len = i - request->path;
	request->query = 0;
	request->query_len = 0;
	if (from[i] == '?') {
		request->query = ++i;
		while (char_is(from[i], CHAR_QUERY))
			i++;
		request->query_len = i - request->query;
	}
	if (LIKELY(from[i] == ' '))
		return i;
	if (from[i] == '#')
		*why = "a fragment in the target";
	else if (from[i] == '\r')
		*why = "no version: HTTP/0.9 is not served";
	else
		*why = "a byte that may not stand in a target";
	return 0;
}

/* "http://host/path". User information would end up in logs and hides the real
 * host from people (RFC 9110 section 4.2.4). Returns where the space is, or 0.
 */
static uint32_t
read_absolute(const char *from, uint32_t start, uint32_t end,
    struct h1_request *request, const char **why)
{
	struct str line = { from + start, end - start }, host;
	uint32_t i = start;

	if (line.len >= 7 &&
	    str_eq_nocase((struct str){ line.ptr, 7 }, STR("http://")))
		i += 7;
	else if (line.len >= 8 &&
		 str_eq_nocase((struct str){ line.ptr, 8 }, STR("https://")))
		i += 8;
	if (i == start) {
		*why = "a target in none of the forms that are served";
		return 0;
	}
	request->form = TARGET_ABSOLUTE;
	request->host = i;
	while (i < end && from[i] != '/' && from[i] != '?' && from[i] != ' ')
		i++;
	request->host_len = i - request->host;
	host = (struct str){ from + request->host, request->host_len };
	if (!uri_host_is_valid(host)) {
		*why = "a target whose host is not valid";
		return 0;
	}
	if (from[i] == '/')
		return read_path(from, i, request, why);
	/* An empty path: read_path stops at once at '?' or the space. */
	return read_path(from, i, request, why);
}

static uint32_t
read_target(const char *from, uint32_t start, uint32_t end,
    struct h1_request *request, const char **why)
{
	request->host = 0;
	request->host_len = 0;
	request->target = start;
	if (LIKELY(from[start] == '/')) {
		request->form = TARGET_ORIGIN;
		return read_path(from, start, request, why);
	}
	if (from[start] != '*')
		return read_absolute(from, start, end, request, why);
	*why = "a target that begins with '*'";
	if (from[start + 1] != ' ' || request->method != METHOD_OPTIONS)
		return 0;
	request->form = TARGET_ASTERISK;
	request->path = start;
	request->path_len = 1;
	request->query = 0;
	request->query_len = 0;
	return start + 1;
}

int
h1_line_request(const char *from, uint32_t start, uint32_t end,
    struct h1_request *request, unsigned *status, const char **why)
{
	uint32_t i = read_method(from, start, request, status, why);
	int version;

	if (UNLIKELY(i == 0))
		return -1;
	*status = 400;
	i = read_target(from, i, end, request, why);
	if (UNLIKELY(i == 0))
		return -1;
	request->target_len = i - request->target;
	version = h1_gate_version(from + i + 1, end - i - 1);
	if (UNLIKELY(version < 0)) {
		*status = (unsigned)-version;
		*why = "neither HTTP/1.0 nor HTTP/1.1";
		return -1;
	}
	request->minor = (uint8_t)version;
	return 0;
}

int
h1_line_code(const char *from, uint32_t start, uint32_t end,
    struct h1_response *response)
{
	uint64_t status;

	if (end - start < 3 ||
	    str_to_u64((struct str){ from + start, 3 }, 599, &status) == -1 ||
	    status < 100)
		return -1;
	if (end - start > 3 && from[start + 3] != ' ')
		return -1;
	response->status = (uint16_t)status;
	response->reason = end - start > 3 ? start + 4 : end;
	response->reason_len = end - response->reason;
	return 0;
}

int
h1_line_status(const char *from, uint32_t start, uint32_t end,
    struct h1_response *response, const char **why)
{
	int version = -1;

	*why = "a malformed status line";
	if (end - start < 12 || from[start + 8] != ' ')
		return -1;
	version = h1_gate_version(from + start, 8);
	if (version < 0)
		return -1;
	response->minor = (uint8_t)version;
	return h1_line_code(from, start + 9, end, response);
}
