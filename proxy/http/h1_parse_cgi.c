/*
 * The head of a CGI answer, as FastCGI applications write it.
 * The gate looks at it as at any head; there is no status line, so http-parser
 * cannot. Reads no body.
 */
#include "proxy/http/h1_parse.h"

#include "proxy/http/h1_gate.h"
#include "proxy/http/h1_line.h"
#include "proxy/http/status.h"

/* RFC 3875 section 6.3.3. */
static int
read_status(const char *from, struct h1_response *response, const char **why)
{
	struct header_table *table = &response->headers;
	const struct header_field *field = header_get(table, HEADER_STATUS);

	response->reason = 0;
	response->reason_len = 0;
	if (field == NULL) {
		response->status =
		    header_has(table, HEADER_LOCATION) ? 302 : 200;
		return 0;
	}
	table->fields[table->first[HEADER_STATUS] - 1].flags |= HEADER_FLAG_HOP;
	*why = "Status is not one valid status";
	if (header_next(table, field) != NULL ||
	    h1_line_code(from, field->value, field->value + field->value_len,
		response) == -1)
		return -1;
	return response->status < 200 ? -1 : 0;
}

static int
read_length(const char *from, struct h1_response *response, const char **why)
{
	const struct header_field *field =
	    header_get(&response->headers, HEADER_CONTENT_LENGTH);

	response->body = BODY_UNTIL_CLOSE;
	response->content_length = 0;
	if (field != NULL) {
		response->body = BODY_LENGTH;
		*why = "Content-Length is not one number";
		if (str_to_u64(header_value(from, field), H1_LENGTH_MAX,
			&response->content_length) == -1)
			return -1;
	}
	if (!status_has_body(response->status))
		response->body = BODY_NONE;
	return 0;
}

static int
check_fields(const char *from, const struct h1_lines *lines,
    const struct h1_limits *limits, struct h1_response *response,
    const char **why)
{
	if (lines->used > limits->head_bytes) {
		*why = "the head is too large";
		return -1;
	}
	if (lines->count == 0) {
		*why = "a head without a field";
		return -1;
	}
	if (lines->count > HEADER_FIELDS_MAX ||
	    lines->count > limits->header_count) {
		*why = "too many fields";
		return -1;
	}
	*why = h1_gate_fields(from, lines, 0, 0, &response->headers);
	if (*why != NULL || read_status(from, response, why) == -1 ||
	    read_length(from, response, why) == -1)
		return -1;
	if ((header_read_connection(&response->headers, from) &
		HEADER_CONNECTION_TOO_MANY) != 0) {
		*why = "too many options in Connection";
		return -1;
	}
	response->minor = 1;
	response->keep_alive = true;
	response->websocket = false;
	response->keep_alive_s = 0;
	return 0;
}

enum h1_result
h1_parse_cgi(const char *from, size_t len, const struct h1_limits *limits,
    size_t *scanned, struct h1_response *response, size_t *used,
    const char **why)
{
	uint32_t size = len > H1_HEAD_MAX + 1 ? H1_HEAD_MAX + 1 : (uint32_t)len;
	uint32_t at = *scanned <= size ? (uint32_t)*scanned : 0;
	bool is_first = at == 0;
	enum h1_scan result;
	struct h1_lines lines;

	*used = 0;
	result = h1_gate_scan(from, size, &at, true, &lines);
	*scanned = at;
	if (result == H1_SCAN_DONE && !is_first) {
		at = 0;
		result = h1_gate_scan(from, size, &at, true, &lines);
	}
	switch (result) {
	case H1_SCAN_MORE:
		*why = "the head is too large";
		return size > limits->head_bytes || size > H1_HEAD_MAX
			   ? H1_BAD
			   : H1_MORE;
	case H1_SCAN_DONE:
		if (check_fields(from, &lines, limits, response, why) == -1)
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
