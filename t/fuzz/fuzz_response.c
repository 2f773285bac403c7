/*
 * Fuzzes answer heads: h1_parse_response and h1_parse_cgi on bytes from an app.
 * Invariants: fed in pieces they say what they say of the whole; the gate and
 * http-parser agree; one way to know the body.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/http/h1_parse.h"
#include "proxy/http/h1_witness.h"
#include "proxy/http/status.h"
#include "t/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const struct h1_limits limits = { 300, 2000, 40 };

typedef enum h1_result parser(const char *from, size_t len,
    const struct h1_limits *how_much, size_t *scanned,
    struct h1_response *response, size_t *used, const char **why);

struct outcome {
	enum h1_result result;
	size_t used;
	struct h1_response response;
};

static void
parse(parser *with, const char *from, size_t len, size_t *scanned,
    struct outcome *outcome)
{
	const char *why = NULL;
	char *copy = malloc(len > 0 ? len : 1);

	memcpy(copy, from, len);
	outcome->result = with(copy, len, &limits, scanned, &outcome->response,
	    &outcome->used, &why);
	free(copy);
	if (outcome->result == H1_BAD)
		REQUIRE(why != NULL);
}

static void
check_pieces(parser *with, const char *from, size_t len, size_t step,
    const struct outcome *whole)
{
	static struct outcome got;
	const struct header_table *a = &got.response.headers;
	const struct header_table *b = &whole->response.headers;
	size_t scanned = 0, have = 0;

	do {
		have = have + step < len ? have + step : len;
		parse(with, from, have, &scanned, &got);
	} while (got.result == H1_MORE && have < len);
	REQUIRE(got.result == whole->result);
	if (got.result != H1_DONE)
		return;
	REQUIRE(got.used == whole->used);
	REQUIRE(got.response.status == whole->response.status);
	REQUIRE(got.response.body == whole->response.body);
	REQUIRE(got.response.keep_alive == whole->response.keep_alive);
	REQUIRE(got.response.content_length == whole->response.content_length);
	REQUIRE(a->count == b->count);
	REQUIRE(
	    memcmp(a->fields, b->fields, a->count * sizeof(a->fields[0])) == 0);
}

static void
check_meaning(const char *from, const struct outcome *outcome)
{
	const struct h1_response *response = &outcome->response;
	const struct header_table *table = &response->headers;
	unsigned lengths = 0;

	REQUIRE(response->status >= 100 && response->status <= 599);
	REQUIRE(
	    status_has_body(response->status) || response->body == BODY_NONE);
	REQUIRE(response->reason + response->reason_len <= outcome->used);
	for (unsigned i = 0; i < table->count; i++) {
		const struct header_field *field = &table->fields[i];

		lengths += field->id == HEADER_CONTENT_LENGTH;
		REQUIRE(field->name + field->name_len <= outcome->used);
		REQUIRE(field->value + field->value_len <= outcome->used);
		REQUIRE(memchr(from + field->value, '\n', field->value_len) ==
			NULL);
		REQUIRE(memchr(from + field->value, '\r', field->value_len) ==
			NULL);
		REQUIRE(memchr(from + field->value, '\0', field->value_len) ==
			NULL);
	}
	REQUIRE(lengths <= 1);
	if (response->body == BODY_LENGTH)
		REQUIRE(lengths == 1);
	if (response->body == BODY_UNTIL_CLOSE)
		REQUIRE(lengths == 0);
}

static void
check(parser *with, const char *from, size_t size)
{
	static struct outcome whole;
	size_t scanned = 0;

	parse(with, from, size, &scanned, &whole);
	check_pieces(with, from, size, 1, &whole);
	check_pieces(with, from, size, 7, &whole);
	if (whole.result == H1_DONE) {
		REQUIRE(whole.used <= size);
		check_meaning(from, &whole);
		REQUIRE(with != h1_parse_response ||
			h1_witness_is_misled(from, &whole.response.headers) ||
			h1_witness_response(
			    from, (uint32_t)whole.used, &whole.response));
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const char *from = (const char *)bytes;

	if (size > 4096)
		return 0;
	check(h1_parse_response, from, size);
	check(h1_parse_cgi, from, size);
	return 0;
}
