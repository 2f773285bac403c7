/*
 * HTTP/1 heads: the gate, then what the fields mean, then http-parser's word.
 * Between the bytes of a connection and the request or answer made of them.
 * Reads no bodies and decodes no targets.
 *
 * The gate fills the table. For requests, which come from anybody and go on to
 * other parsers, the witness must have read the same (h1_witness.h): where the
 * two disagree nobody knows what a third would read, so the head is refused.
 */
#include "proxy/http/h1_parse.h"

#include <string.h>

#include "proxy/http/chars.h"
#include "proxy/http/h1_gate.h"
#include "proxy/http/h1_line.h"
#include "proxy/http/h1_witness.h"
#include "proxy/http/status.h"
#include "proxy/http/uri.h"

/* --- what both kinds of head share --------------------------------------- */

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Returns 0, or -1 with *why: RFC 9112 section 6.3, without the leave it gives
 * to repair. `none` is the kind when no field speaks of a body. */
static int
read_body_kind(const struct header_table *table, const char *from, int minor,
    enum http_body_kind none, enum http_body_kind *kind, uint64_t *length,
    const char **why)
{
	const struct header_field *coding =
	    header_get(table, HEADER_TRANSFER_ENCODING);
	const struct header_field *field =
	    header_get(table, HEADER_CONTENT_LENGTH);

	*kind = none;
	*length = 0;
	if (coding != NULL) {
		*kind = BODY_CHUNKED;
		*why = "Transfer-Encoding in HTTP/1.0";
		if (minor == 0)
			return -1;
		*why = "both Content-Length and Transfer-Encoding";
		if (field != NULL)
			return -1;
		*why = "a Transfer-Encoding other than chunked";
		return str_eq_nocase(header_value(from, coding), STR("chunked"))
			   ? 0
			   : -1;
	}
	if (field == NULL)
		return 0;
	*kind = BODY_LENGTH;
	*why = "Content-Length is not one number";
	/* http-parser refuses a tab behind the digits: so do we, before it. */
	for (uint32_t i = field->value + field->value_len; is_blank(from[i]);
	     i++) {
		if (from[i] == '\t')
			return -1;
	}
	return str_to_u64(header_value(from, field), H1_LENGTH_MAX, length);
}

static bool
keeps_alive(unsigned options, int minor)
{
	if ((options & HEADER_CONNECTION_CLOSE) != 0)
		return false;
	return minor == 1 || (options & HEADER_CONNECTION_KEEP_ALIVE) != 0;
}

static uint32_t
bytes_looked_at(size_t len)
{
	return len > H1_HEAD_MAX + 64 ? H1_HEAD_MAX + 64 : (uint32_t)len;
}

/* Search on from where the last call stopped; when that was not the first byte
 * and the end is there now, go over all of it once more to learn the lines. */
static enum h1_scan
scan_head(const char *from, uint32_t start, uint32_t len, bool lf_ends,
    size_t *scanned, struct h1_lines *lines)
{
	uint32_t at =
	    *scanned > start && *scanned <= len ? (uint32_t)*scanned : start;
	bool is_first = at == start;
	enum h1_scan result = h1_gate_scan(from, len, &at, lf_ends, lines);

	*scanned = at;
	if (result == H1_SCAN_DONE && !is_first) {
		at = start;
		result = h1_gate_scan(from, len, &at, lf_ends, lines);
	}
	return result;
}

/* HEADER_FIELDS_MAX whatever the limits say. */
static uint32_t
count_limit(const struct h1_limits *limits)
{
	return limits->header_count < HEADER_FIELDS_MAX ? limits->header_count
							: HEADER_FIELDS_MAX;
}

static uint32_t
head_limit(const struct h1_limits *limits)
{
	return limits->head_bytes < H1_HEAD_MAX ? limits->head_bytes
						: H1_HEAD_MAX;
}

/* --- requests ------------------------------------------------------------ */

struct refusal {
	unsigned status;
	const char *why;
};

static int
refuse(struct refusal *refusal, unsigned status, const char *why)
{
	refusal->status = status;
	refusal->why = why;
	return -1;
}

static int
read_host(const char *from, struct h1_request *request, struct refusal *refusal)
{
	const struct header_field *field =
	    header_get(&request->headers, HEADER_HOST);

	if (field == NULL) {
		if (request->minor > 0)
			return refuse(refusal, 400, "no Host");
		return 0;
	}
	if (!uri_host_is_valid(header_value(from, field)))
		return refuse(refusal, 400, "Host is not valid");
	if (request->form != TARGET_ABSOLUTE) {
		request->host = field->value;
		request->host_len = field->value_len;
	}
	return 0;
}

/* RFC 9110 section 10.1.1: ignored in HTTP/1.0; nothing to continue with when
 * there is no body. */
static int
read_expect(
    const char *from, struct h1_request *request, struct refusal *refusal)
{
	const struct header_field *field =
	    header_get(&request->headers, HEADER_EXPECT);

	request->expect_continue = false;
	if (LIKELY(field == NULL) || request->minor == 0)
		return 0;
	for (; field != NULL; field = header_next(&request->headers, field)) {
		if (!str_eq_nocase(
			header_value(from, field), STR("100-continue")))
			return refuse(refusal, 417,
			    "an expectation other than 100-continue");
	}
	request->expect_continue = request->body != BODY_NONE;
	return 0;
}

/* "gzip, chunked" is understood but not served: 501 (RFC 9112 section 6.1).
 * Everything else in that field leaves the length unknown: 400. */
static unsigned
status_of_coding(const char *from, const struct h1_request *request)
{
	static const struct str known[] = { { "gzip", 4 }, { "x-gzip", 6 },
		{ "deflate", 7 }, { "compress", 8 }, { "x-compress", 10 } };
	const struct header_field *field =
	    header_get(&request->headers, HEADER_TRANSFER_ENCODING);
	struct str rest, part;

	if (field == NULL || request->minor == 0 ||
	    header_has(&request->headers, HEADER_CONTENT_LENGTH))
		return 400;
	rest = header_value(from, field);
	while (str_split(&rest, ',', &part)) {
		bool is_known = false;

		part = str_trim(part);
		if (rest.ptr == NULL)
			return str_eq_nocase(part, STR("chunked")) ? 501 : 400;
		for (size_t i = 0; i < ARRAY_LEN(known); i++)
			is_known = is_known || str_eq_nocase(part, known[i]);
		if (!is_known)
			return 400;
	}
	return 400;
}

/* RFC 6455 section 4.1. The app looks at the rest of it. */
static bool
asks_for_websocket(const char *from, const struct h1_request *request)
{
	return request->minor > 0 && request->method == METHOD_GET &&
	       request->body != BODY_CHUNKED && request->content_length == 0 &&
	       header_has_token(
		   &request->headers, from, HEADER_UPGRADE, STR("websocket"));
}

static int
read_meaning(
    const char *from, struct h1_request *request, struct refusal *refusal)
{
	struct header_table *table = &request->headers;
	unsigned options = 0;

	if (read_host(from, request, refusal) == -1)
		return -1;
	if (read_body_kind(table, from, request->minor, BODY_NONE,
		&request->body, &request->content_length,
		&refusal->why) == -1) {
		refusal->status = status_of_coding(from, request);
		return -1;
	}
	if (read_expect(from, request, refusal) == -1)
		return -1;
	if (header_has(table, HEADER_CONNECTION))
		options = header_read_connection(table, from);
	if ((options & HEADER_CONNECTION_TOO_MANY) != 0)
		return refuse(refusal, 400, "too many options in Connection");
	request->keep_alive = keeps_alive(options, request->minor);
	request->websocket = (options & HEADER_CONNECTION_UPGRADE) != 0 &&
			     asks_for_websocket(from, request);
	return 0;
}

/* Returns where the request line begins, or -1: too many empty lines, or a
 * first byte that begins no method. */
static int
skip_empty_lines(const char *from, size_t len)
{
	size_t i = 0;

	while (i < len && from[i] == '\r' && i / 2 < H1_EMPTY_LINES_MAX) {
		if (i + 1 == len)
			return (int)i;
		if (from[i + 1] != '\n')
			return -1;
		i += 2;
	}
	if (i < len && !char_is(from[i], CHAR_TOKEN))
		return -1;
	return (int)i;
}

/* More is to come: but what is here may be too much or wrong already. */
static int
check_partial(const char *from, uint32_t start, uint32_t len, size_t before,
    const struct h1_limits *limits, struct h1_request *request,
    struct refusal *refusal)
{
	const char *line = from + start;
	const char *lf = memchr(line, '\n', len - start);

	if (lf == NULL) {
		/* One byte more: the CR may be here. */
		if (len - start > (size_t)limits->line_bytes + 1)
			return refuse(refusal, 414, "the request line");
	} else if (lf >= from + before) {
		/* Look once, when it has come: a client of HTTP/0.9 will not
		 * send more. */
		uint32_t end = (uint32_t)(lf - 1 - from);

		if (end - start > limits->line_bytes)
			return refuse(refusal, 414, "the request line");
		if (h1_line_request(from, start, end, request, &refusal->status,
			&refusal->why) == -1)
			return -1;
	}
	if (len - start > head_limit(limits))
		return refuse(refusal, 431, "the head is too large");
	return 0;
}

static int
check_request(const char *from, uint32_t start, const struct h1_lines *lines,
    const struct h1_limits *limits, struct h1_request *request,
    struct refusal *refusal)
{
	uint32_t end = lines->end[0];
	const char *wrong;

	if (end - start > limits->line_bytes)
		return refuse(refusal, 414, "the request line");
	if (lines->used - start > head_limit(limits))
		return refuse(refusal, 431, "the head is too large");
	if (h1_line_request(from, start, end, request, &refusal->status,
		&refusal->why) == -1)
		return -1;
	if (lines->count - 1 > count_limit(limits))
		return refuse(refusal, 431, "too many fields");
	wrong = h1_gate_fields(from, lines, 1, end + 2, &request->headers);
	if (wrong != NULL)
		return refuse(refusal, 400, wrong);
	if (read_meaning(from, request, refusal) == -1)
		return -1;
	if (!h1_witness_request(from, lines->used, request))
		return refuse(refusal, 400,
		    h1_witness_is_misled(from, &request->headers)
			? "a field that may be taken for Transfer-Encoding"
			: "two parsers disagree");
	return 0;
}

enum h1_result
h1_parse_request(const char *from, size_t len, const struct h1_limits *limits,
    size_t *scanned, struct h1_request *request, size_t *used, unsigned *status,
    const char **why)
{
	struct refusal refusal = { 400, "a byte that no head may hold" };
	size_t before = *scanned;
	uint32_t size = bytes_looked_at(len);
	int start = skip_empty_lines(from, len), result = -1;
	struct h1_lines lines;

	*used = 0;
	if (start == -1) {
		refuse(&refusal, 400, "no request line");
	} else {
		switch (scan_head(
		    from, (uint32_t)start, size, false, scanned, &lines)) {
		case H1_SCAN_MORE:
			if (check_partial(from, (uint32_t)start, size, before,
				limits, request, &refusal) == 0)
				return H1_MORE;
			break;
		case H1_SCAN_DONE:
			result = check_request(from, (uint32_t)start, &lines,
			    limits, request, &refusal);
			break;
		case H1_SCAN_TOO_MANY:
			refuse(&refusal, 431, "too many fields");
			break;
		case H1_SCAN_BAD:
			break;
		}
	}
	if (result == -1) {
		*status = refusal.status;
		*why = refusal.why;
		return H1_BAD;
	}
	*used = lines.used;
	*scanned = 0;
	return H1_DONE;
}

/* --- answers ------------------------------------------------------------- */

/* RFC 6455 section 4.2.2: one protocol, and the option that names it. */
static bool
is_websocket(
    const char *from, const struct h1_response *response, unsigned options)
{
	const struct header_field *field =
	    header_get(&response->headers, HEADER_UPGRADE);

	return response->status == 101 && response->minor > 0 &&
	       (options & HEADER_CONNECTION_UPGRADE) != 0 && field != NULL &&
	       header_next(&response->headers, field) == NULL &&
	       str_eq_nocase(header_value(from, field), STR("websocket"));
}

/* Keep-Alive: timeout=N, in seconds. */
static uint32_t
read_keep_alive(const struct header_table *table, const char *from)
{
	const struct header_field *field = header_get(table, HEADER_KEEP_ALIVE);
	struct str rest, part, prefix = STR("timeout=");
	uint64_t seconds;

	if (field == NULL)
		return 0;
	rest = header_value(from, field);
	while (str_split(&rest, ',', &part)) {
		part = str_trim(part);
		if (part.len <= prefix.len ||
		    !str_eq_nocase(
			(struct str){ part.ptr, prefix.len }, prefix))
			continue;
		part.ptr += prefix.len;
		part.len -= prefix.len;
		if (str_to_u64(part, UINT32_MAX, &seconds) == 0)
			return (uint32_t)seconds;
	}
	return 0;
}

/* RFC 9110 section 6.4.1 and 8.6, RFC 9112 section 6.1: no body, and for 1xx
 * and 204 none may be announced either. */
static int
drop_body(struct h1_response *response, const char **why)
{
	if (response->status == 304) {
		response->body = BODY_NONE;
		return 0;
	}
	*why = "a body where none may be";
	if (response->body == BODY_CHUNKED ||
	    (response->body == BODY_LENGTH && response->content_length > 0))
		return -1;
	response->body = BODY_NONE;
	return 0;
}

static int
read_answer(const char *from, struct h1_response *response, const char **why)
{
	struct header_table *table = &response->headers;
	unsigned options = 0;

	if (read_body_kind(table, from, response->minor, BODY_UNTIL_CLOSE,
		&response->body, &response->content_length, why) == -1)
		return -1;
	if (!status_has_body(response->status) &&
	    drop_body(response, why) == -1)
		return -1;
	if (header_has(table, HEADER_CONNECTION))
		options = header_read_connection(table, from);
	if ((options & HEADER_CONNECTION_TOO_MANY) != 0) {
		*why = "too many options in Connection";
		return -1;
	}
	response->keep_alive = keeps_alive(options, response->minor) &&
			       response->body != BODY_UNTIL_CLOSE;
	response->websocket = is_websocket(from, response, options);
	response->keep_alive_s = read_keep_alive(table, from);
	return 0;
}

static int
check_response(const char *from, const struct h1_lines *lines,
    const struct h1_limits *limits, struct h1_response *response,
    const char **why)
{
	*why = "the head is too large";
	if (lines->count == 0 || lines->end[0] > limits->line_bytes ||
	    lines->used > head_limit(limits))
		return -1;
	if (h1_line_status(from, 0, lines->end[0], response, why) == -1)
		return -1;
	*why = "too many fields";
	if (lines->count - 1 > count_limit(limits))
		return -1;
	*why = h1_gate_fields(
	    from, lines, 1, lines->end[0] + 2, &response->headers);
	if (*why != NULL)
		return -1;
	return read_answer(from, response, why);
}

enum h1_result
h1_parse_response(const char *from, size_t len, const struct h1_limits *limits,
    size_t *scanned, struct h1_response *response, size_t *used,
    const char **why)
{
	static const char begin[] = { 'H', 'T', 'T', 'P', '/', '1', '.' };
	uint32_t size = bytes_looked_at(len);
	struct h1_lines lines;

	*used = 0;
	*why = "no status line";
	if (len > 0 &&
	    memcmp(from, begin, len < sizeof(begin) ? len : sizeof(begin)) != 0)
		return H1_BAD;
	switch (scan_head(from, 0, size, false, scanned, &lines)) {
	case H1_SCAN_MORE:
		*why = "the head is too large";
		return size > head_limit(limits) ? H1_BAD : H1_MORE;
	case H1_SCAN_DONE:
		if (check_response(from, &lines, limits, response, why) == -1)
			return H1_BAD;
		*used = lines.used;
		*scanned = 0;
		return H1_DONE;
	case H1_SCAN_TOO_MANY:
		*why = "too many fields";
		return H1_BAD;
	case H1_SCAN_BAD:
		break;
	}
	*why = "a byte that no head may hold";
	return H1_BAD;
}
