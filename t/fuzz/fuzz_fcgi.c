/*
 * Fuzzes FastCGI: replies from an application, and the parameters we write.
 * Invariants: fed in pieces a reply is what it is as a whole; parameters made
 * of any bytes are read back as these, or the room was too small.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fcgi/fcgi.h"
#include "t/fuzz/require.h"

#define SIZE_MAX_INPUT 4096

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct outcome {
	struct fcgi_reply reply;
	enum fcgi_reply_result result;
	size_t used, out_len, err_len;
	unsigned char out[SIZE_MAX_INPUT], err[SIZE_MAX_INPUT];
};

/* Feed one piece; true when the reply is over. */
static bool
feed(const unsigned char *from, size_t len, struct outcome *outcome)
{
	unsigned char *copy = malloc(len > 0 ? len : 1);
	size_t at = 0;
	bool go_on;

	memcpy(copy, from, len);
	do {
		const unsigned char *data;
		size_t used, data_len;

		go_on = false;
		outcome->result = fcgi_reply_read(&outcome->reply, copy + at,
		    len - at, &used, &data, &data_len);
		REQUIRE(used <= len - at);
		at += used;
		if (outcome->result == FCGI_REPLY_STDOUT) {
			memcpy(outcome->out + outcome->out_len, data, data_len);
			outcome->out_len += data_len;
			go_on = true;
		} else if (outcome->result == FCGI_REPLY_STDERR) {
			memcpy(outcome->err + outcome->err_len, data, data_len);
			outcome->err_len += data_len;
			go_on = true;
		}
		if (go_on)
			REQUIRE(data_len > 0 && data_len <= used);
	} while (go_on);
	if (outcome->result == FCGI_REPLY_MORE)
		REQUIRE(at == len);
	outcome->used += at;
	free(copy);
	return outcome->result != FCGI_REPLY_MORE;
}

static void
read_in_steps(
    const unsigned char *from, size_t len, size_t step, struct outcome *outcome)
{
	size_t at = 0;

	outcome->used = outcome->out_len = outcome->err_len = 0;
	fcgi_reply_init(&outcome->reply, 1);
	while (!feed(from + at, len - at < step ? len - at : step, outcome) &&
	       at < len)
		at += len - at < step ? len - at : step;
	REQUIRE(outcome->reply.ended || outcome->result != FCGI_REPLY_END);
}

static void
check_steps(const unsigned char *from, size_t len, size_t step,
    const struct outcome *whole)
{
	static struct outcome got;

	read_in_steps(from, len, step, &got);
	REQUIRE(got.result == whole->result);
	REQUIRE(got.used == whole->used);
	REQUIRE(got.out_len == whole->out_len);
	REQUIRE(got.err_len == whole->err_len);
	REQUIRE(memcmp(got.out, whole->out, got.out_len) == 0);
	REQUIRE(memcmp(got.err, whole->err, got.err_len) == 0);
	REQUIRE(got.reply.app_status == whole->reply.app_status);
	REQUIRE(got.reply.protocol_status == whole->reply.protocol_status);
}

static size_t
read_len(const unsigned char **at)
{
	size_t len = *(*at)++;

	if (len < 128)
		return len;
	len = (len & 0x7f) << 24 | (size_t)(*at)[0] << 16 |
	      (size_t)(*at)[1] << 8 | (*at)[2];
	*at += 3;
	return len;
}

/* Two parameters whose texts are cut from the input; the value repeated, so
 * that it needs several records. */
static void
check_params(const unsigned char *bytes, size_t size)
{
	static unsigned char stream[400000];
	static char big[150000];
	struct fcgi_params params;
	size_t name_len = size > 2 ? bytes[0] % (size - 1) : 0, big_len, room;
	size_t len, at = 0, out = 0, content = 1;
	struct str name = { (const char *)bytes + 1, name_len }, value;
	const unsigned char *read = stream;

	if (size < 3)
		return;
	big_len = bytes[1] < 128 ? size : bytes[1] * 550u + bytes[2];
	for (size_t i = 0; i < big_len; i++)
		big[i] = (char)bytes[i % size];
	value = (struct str){ big, big_len };
	room = bytes[2] < 200 ? sizeof(stream) : bytes[2] * 2u;
	fcgi_params_begin(&params, stream, room, 0, 1);
	fcgi_params_add(&params, name, value);
	fcgi_params_add_header(&params, name, value);
	len = fcgi_params_end(&params);
	REQUIRE(len <= room);
	if (len == 0) {
		REQUIRE(room < sizeof(stream));
		return;
	}
	while (content > 0) {
		REQUIRE(at + 8 <= len && stream[at + 1] == FCGI_PARAMS);
		content = (size_t)stream[at + 4] << 8 | stream[at + 5];
		REQUIRE(at + 8 + content <= len);
		memmove(stream + out, stream + at + 8, content);
		out += content;
		at += 8 + content;
	}
	REQUIRE(at == len);
	for (size_t i = 0; i < 2; i++) {
		size_t prefix = i * 5;

		REQUIRE(read_len(&read) == name_len + prefix);
		REQUIRE(read_len(&read) == big_len);
		REQUIRE(memcmp(read, "HTTP_", prefix) == 0);
		read += prefix;
		REQUIRE(i == 1 || memcmp(read, name.ptr, name_len) == 0);
		read += name_len;
		REQUIRE(memcmp(read, big, big_len) == 0);
		read += big_len;
	}
	REQUIRE(read == stream + out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static struct outcome whole;

	if (size > SIZE_MAX_INPUT)
		return 0;
	read_in_steps(bytes, size, size + 1, &whole);
	check_steps(bytes, size, 1, &whole);
	check_steps(bytes, size, 5, &whole);
	check_params(bytes, size);
	return 0;
}
