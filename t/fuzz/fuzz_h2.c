/*
 * Any HTTP/2 fields at all: what is taken is a request that HTTP/1 would have
 * taken too, and all of it lies where the table says.
 * The input: a byte of flags, then fields, each as the lengths of name and
 * value (a byte each, the value's times eight with flag 2) and their bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/front/h2_head.h"
#include "proxy/http/chars.h"
#include "proxy/http/uri.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool holds)
{
	if (!holds)
		abort();
}

/* Grows as h2_stream.c does: never more than was asked for. */
static void
make_room(struct h2_head *head, char **base, size_t bytes)
{
	if (head->end + bytes <= head->room)
		return;
	*base = realloc(*base, head->end + bytes);
	check(*base != NULL);
	h2_head_move(head, *base, head->end + (uint32_t)bytes);
}

static void
check_field(const struct h2_head *head, const struct header_field *field)
{
	check((size_t)field->name + field->name_len <= head->end);
	check((size_t)field->value + field->value_len <= head->end);
	check(field->name_len > 0);
	for (unsigned i = 0; i < field->name_len; i++)
		check(char_is(head->base[field->name + i], CHAR_TOKEN));
	for (unsigned i = 0; i < field->value_len; i++)
		check(char_is(head->base[field->value + i], CHAR_TEXT));
	check(field->id != HEADER_CONNECTION &&
	      field->id != HEADER_TRANSFER_ENCODING);
}

static void
check_request(const struct h2_head *head, const struct h1_request *request,
    bool ends_stream)
{
	const char *base = head->base;
	struct str host = { base + request->host, request->host_len };

	check((size_t)request->host + request->host_len <= head->end);
	check((size_t)request->target + request->target_len <= head->end);
	check(uri_host_is_valid(host));
	check(
	    base[request->target] == '/' || request->method == METHOD_OPTIONS);
	for (unsigned i = 0; i < request->target_len; i++)
		check((unsigned char)base[request->target + i] > ' ');
	for (unsigned i = 0; i < request->headers.count; i++)
		check_field(head, &request->headers.fields[i]);
	check(header_get(&request->headers, HEADER_HOST) != NULL);
	if (ends_stream)
		check(request->body == BODY_NONE);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct h1_limits limits = { 1000, 4000, 20 };
	static const uint8_t nonce[16];
	struct h1_request request;
	struct h2_head head;
	char *base = NULL;
	unsigned flags = size > 0 ? data[0] : 0, status;
	const char *why;
	size_t at = 1;

	h2_head_init(&head, &request, &limits, base, 0);
	while (at + 2 <= size && !h2_head_is_bomb(&head)) {
		struct str name = { NULL, data[at] };
		struct str value = { NULL,
			(size_t)data[at + 1] * ((flags & 2) != 0 ? 8 : 1) };

		at += 2;
		if (name.len > size - at)
			name.len = size - at;
		name.ptr = (const char *)data + at;
		at += name.len;
		if (value.len > size - at)
			value.len = size - at;
		value.ptr = (const char *)data + at;
		at += value.len;
		if (!head.is_too_large)
			make_room(&head, &base,
			    h2_head_add_bytes(name.len, value.len));
		h2_head_add(&head, name, value);
		(void)h2_head_check_trailer(name, value);
	}
	if (!head.is_too_large)
		make_room(&head, &base, h2_head_end_bytes(&head));
	if (h2_head_end(&head, (flags & 1) != 0, nonce, &status, &why) ==
	    H2_HEAD_GOOD)
		check_request(&head, &request, (flags & 1) != 0);
	free(base);
	return 0;
}
