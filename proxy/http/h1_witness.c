/*
 * http-parser as a witness: did it read the same head as our own gate?
 * Asked by h1_parse for every request; for answers by tests and fuzzing.
 * The only door to http-parser. Decides nothing by itself.
 */
#include "proxy/http/h1_witness.h"

/* Its enum has a name of ours. */
#define http_method http_parser_method
#include <http_parser.h>
#undef http_method

#include "proxy/http/status.h"

struct witness {
	struct http_parser parser; /* data points to this */
	const char *from;
	const struct header_field *next, *end;
	uint32_t target, target_len;
};

static int
on_url(struct http_parser *parser, const char *at, size_t len)
{
	const struct witness *witness = parser->data;

	return at != witness->from + witness->target ||
	       len != witness->target_len;
}

/* Values that begin at the same places come from the same lines and colons, so
 * that names need no call of their own. http-parser leaves spaces behind a
 * value, and says nothing of use about where an empty one is. */
static int
on_header_value(struct http_parser *parser, const char *at, size_t len)
{
	struct witness *witness = parser->data;
	const struct header_field *field = witness->next;

	if (UNLIKELY(field == witness->end))
		return 1;
	witness->next = field + 1;
	if (field->value_len == 0)
		return 0;
	return at != witness->from + field->value || len < field->value_len;
}

/* Any value above 2 stops the parser. */
static int
on_headers_complete(struct http_parser *parser)
{
	return 3;
}

static const struct http_parser_settings request_settings = {
	.on_url = on_url,
	.on_header_value = on_header_value,
	.on_headers_complete = on_headers_complete,
};

static const struct http_parser_settings response_settings = {
	.on_header_value = on_header_value,
	.on_headers_complete = on_headers_complete,
};

/* The whole head from `at` on: it stops at the last LF, in our callback. */
static bool
has_read_all(struct witness *witness, const struct http_parser_settings *how,
    uint32_t at, uint32_t used)
{
	size_t read = http_parser_execute(
	    &witness->parser, how, witness->from + at, used - at);

	return read == used - at - 1 &&
	       HTTP_PARSER_ERRNO(&witness->parser) == HPE_CB_headers_complete &&
	       witness->next == witness->end;
}

static bool
agrees_on_body(const struct http_parser *parser, enum http_body_kind body,
    uint64_t content_length)
{
	if ((body == BODY_CHUNKED) != ((parser->flags & F_CHUNKED) != 0))
		return false;
	return body != BODY_LENGTH || parser->content_length == content_length;
}

bool
h1_witness_request(
    const char *from, uint32_t used, const struct h1_request *request)
{
	struct witness witness;
	uint32_t at = request->method_at;

	http_parser_init(&witness.parser, HTTP_REQUEST);
	witness.parser.data = &witness;
	witness.from = from;
	witness.next = request->headers.fields;
	witness.end = witness.next + request->headers.count;
	witness.target = request->target;
	witness.target_len = request->target_len;
	/* It knows a fixed set of methods; for ours any will do. */
	if (request->method == METHOD_OTHER) {
		if (http_parser_execute(
			&witness.parser, &request_settings, "GET", 3) != 3)
			return false;
		at += request->method_len;
	}
	return has_read_all(&witness, &request_settings, at, used) &&
	       witness.parser.http_major == 1 &&
	       witness.parser.http_minor == request->minor &&
	       agrees_on_body(
		   &witness.parser, request->body, request->content_length);
}

bool
h1_witness_response(
    const char *from, uint32_t used, const struct h1_response *response)
{
	struct witness witness;

	http_parser_init(&witness.parser, HTTP_RESPONSE);
	witness.parser.data = &witness;
	witness.from = from;
	witness.next = response->headers.fields;
	witness.end = witness.next + response->headers.count;
	if (!has_read_all(&witness, &response_settings, 0, used) ||
	    witness.parser.status_code != response->status ||
	    witness.parser.http_minor != response->minor)
		return false;
	/* It does not know that some statuses never have one. */
	return !status_has_body(response->status) ||
	       agrees_on_body(
		   &witness.parser, response->body, response->content_length);
}

bool
h1_witness_is_misled(const char *from, const struct header_table *headers)
{
	static const struct str prefix = { "transfer-encoding", 17 };

	for (unsigned i = 0; i < headers->count; i++) {
		const struct header_field *field = &headers->fields[i];

		if (field->name_len > prefix.len &&
		    str_eq_nocase(
			(struct str){ from + field->name, prefix.len }, prefix))
			return true;
	}
	return false;
}
