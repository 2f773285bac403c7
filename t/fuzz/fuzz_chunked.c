/*
 * Fuzzes chunked bodies: h1_body_read on bytes from either side.
 * Invariants: fed in pieces it gives what it gives of the whole; what our own
 * writer makes of any bytes is read back as these bytes.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/http/h1_body.h"
#include "t/fuzz/require.h"

#define SIZE_MAX_INPUT 4096

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct outcome {
	enum h1_body_result result;
	size_t used, len;
	char got[SIZE_MAX_INPUT];
};

/* Feed one piece; true when the body is over. */
static bool
feed(
    struct h1_body *body, const char *from, size_t len, struct outcome *outcome)
{
	char *copy = malloc(len > 0 ? len : 1);
	size_t at = 0;

	memcpy(copy, from, len);
	do {
		const char *data;
		size_t used, data_len;

		outcome->result = h1_body_read(
		    body, copy + at, len - at, &used, &data, &data_len);
		REQUIRE(used <= len - at);
		at += used;
		if (outcome->result == H1_BODY_DATA) {
			REQUIRE(data_len > 0 && data_len <= used);
			memcpy(outcome->got + outcome->len, data, data_len);
			outcome->len += data_len;
		}
	} while (outcome->result == H1_BODY_DATA);
	if (outcome->result == H1_BODY_MORE)
		REQUIRE(at == len);
	outcome->used += at;
	free(copy);
	return outcome->result != H1_BODY_MORE;
}

static void
read_in_steps(
    const char *from, size_t len, size_t step, struct outcome *outcome)
{
	struct h1_body body;
	size_t at = 0;

	outcome->used = outcome->len = 0;
	h1_body_init(&body, BODY_CHUNKED, 0);
	while (!feed(&body, from + at, len - at < step ? len - at : step,
		   outcome) &&
	       at < len)
		at += len - at < step ? len - at : step;
	REQUIRE(body.seen == outcome->len);
	REQUIRE(h1_body_is_done(&body) == (outcome->result == H1_BODY_END));
}

static void
check_steps(
    const char *from, size_t len, size_t step, const struct outcome *whole)
{
	static struct outcome got;

	read_in_steps(from, len, step, &got);
	REQUIRE(got.result == whole->result);
	REQUIRE(got.used == whole->used);
	REQUIRE(got.len == whole->len);
	REQUIRE(memcmp(got.got, whole->got, got.len) == 0);
}

/* Chunks of growing sizes. */
static void
check_written(const char *from, size_t len)
{
	static char to[SIZE_MAX_INPUT * 20];
	static struct outcome got;
	size_t at = 0, used = 0, step = 1;

	while (at < len) {
		size_t piece = len - at < step ? len - at : step;

		used += h1_chunk_head(to + used, piece);
		memcpy(to + used, from + at, piece);
		used += piece;
		memcpy(to + used, "\r\n", 2);
		used += 2;
		at += piece;
		step = step * 2 + 1;
	}
	memcpy(to + used, "0\r\n\r\n", 5);
	used += 5;
	read_in_steps(to, used, 5, &got);
	REQUIRE(got.result == H1_BODY_END);
	REQUIRE(got.used == used && got.len == len);
	REQUIRE(memcmp(got.got, from, len) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static struct outcome whole;
	const char *from = (const char *)bytes;

	if (size > SIZE_MAX_INPUT)
		return 0;
	read_in_steps(from, size, size + 1, &whole);
	check_steps(from, size, 1, &whole);
	check_steps(from, size, 3, &whole);
	check_written(from, size);
	return 0;
}
