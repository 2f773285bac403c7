/*
 * Fuzzes request heads: h1_parse_request on bytes from a client.
 * Invariants: fed in pieces it says what it says of the whole; the gate and
 * http-parser agree; what is taken, written anew, means the same.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/http/h1_parse.h"
#include "proxy/http/uri.h"
#include "t/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const struct h1_limits limits = { 300, 2000, 40 };

struct outcome {
	enum h1_result result;
	unsigned status;
	size_t used;
	struct h1_request request;
};

static void
parse(const char *from, size_t len, size_t *scanned, struct outcome *outcome)
{
	const char *why = NULL;
	char *copy = malloc(len > 0 ? len : 1);

	memcpy(copy, from, len);
	outcome->status = 0;
	outcome->result = h1_parse_request(copy, len, &limits, scanned,
	    &outcome->request, &outcome->used, &outcome->status, &why);
	free(copy);
	if (outcome->result == H1_BAD) {
		REQUIRE(why != NULL && outcome->status >= 400);
		REQUIRE(strcmp(why, "two parsers disagree") != 0);
	}
}

static bool
is_same_table(const struct header_table *a, const struct header_table *b)
{
	return a->count == b->count &&
	       memcmp(a->first, b->first, sizeof(a->first)) == 0 &&
	       memcmp(a->fields, b->fields, a->count * sizeof(a->fields[0])) ==
		   0;
}

static void
check_pieces(
    const char *from, size_t len, size_t step, const struct outcome *whole)
{
	static struct outcome got;
	size_t scanned = 0, have = 0;

	do {
		have = have + step < len ? have + step : len;
		parse(from, have, &scanned, &got);
	} while (got.result == H1_MORE && have < len);
	REQUIRE(got.result == whole->result);
	if (got.result != H1_DONE)
		return;
	REQUIRE(got.used == whole->used);
	REQUIRE(got.request.body == whole->request.body);
	REQUIRE(got.request.content_length == whole->request.content_length);
	REQUIRE(got.request.keep_alive == whole->request.keep_alive);
	REQUIRE(is_same_table(&got.request.headers, &whole->request.headers));
}

static void
check_fields(const char *from, const struct h1_request *request)
{
	const struct header_table *table = &request->headers;
	unsigned hosts = 0, lengths = 0, codings = 0;

	for (unsigned i = 0; i < table->count; i++) {
		const struct header_field *field = &table->fields[i];
		struct str value = header_value(from, field);

		REQUIRE(field->name_len > 0);
		hosts += field->id == HEADER_HOST;
		lengths += field->id == HEADER_CONTENT_LENGTH;
		codings += field->id == HEADER_TRANSFER_ENCODING;
		for (size_t k = 0; k < value.len; k++) {
			unsigned char c = (unsigned char)value.ptr[k];

			REQUIRE(c == '\t' || (c >= ' ' && c != 0x7f));
		}
	}
	REQUIRE(hosts <= 1 && lengths + codings <= 1);
	REQUIRE(hosts == 1 || request->minor == 0);
	REQUIRE((request->body == BODY_LENGTH) == (lengths == 1));
	REQUIRE((request->body == BODY_CHUNKED) == (codings == 1));
	if (request->host_len > 0)
		REQUIRE(uri_host_is_valid(
		    (struct str){ from + request->host, request->host_len }));
}

/* Written anew, without what may vary: it must be taken, and be the same. */
static void
check_rewritten(const char *from, const struct h1_request *request)
{
	static char to[8192];
	static struct outcome again;
	const struct header_table *table = &request->headers;
	size_t scanned = 0;
	int len = sprintf(to, "%.*s %.*s HTTP/1.%d\r\n",
	    (int)request->method_len, from + request->method_at,
	    (int)request->target_len, from + request->target, request->minor);

	for (unsigned i = 0; i < table->count; i++)
		len += sprintf(to + len, "%.*s:%.*s\r\n",
		    (int)table->fields[i].name_len,
		    from + table->fields[i].name,
		    (int)table->fields[i].value_len,
		    from + table->fields[i].value);
	len += sprintf(to + len, "\r\n");
	parse(to, (size_t)len, &scanned, &again);
	REQUIRE(again.result == H1_DONE);
	REQUIRE(again.used == (size_t)len);
	REQUIRE(again.request.method == request->method);
	REQUIRE(again.request.body == request->body);
	REQUIRE(again.request.content_length == request->content_length);
	REQUIRE(again.request.keep_alive == request->keep_alive);
	REQUIRE(again.request.websocket == request->websocket);
	REQUIRE(again.request.path_len == request->path_len);
	REQUIRE(again.request.headers.count == table->count);
	for (unsigned i = 0; i < table->count; i++) {
		REQUIRE(
		    again.request.headers.fields[i].id == table->fields[i].id);
		REQUIRE(again.request.headers.fields[i].flags ==
			table->fields[i].flags);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static struct outcome whole;
	const char *from = (const char *)bytes;
	size_t scanned = 0;

	if (size > 4096)
		return 0;
	parse(from, size, &scanned, &whole);
	check_pieces(from, size, 1, &whole);
	check_pieces(from, size, 7, &whole);
	if (whole.result == H1_DONE) {
		REQUIRE(whole.used <= size);
		check_fields(from, &whole.request);
		check_rewritten(from, &whole.request);
	}
	return 0;
}
