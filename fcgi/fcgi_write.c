/*
 * FastCGI records that go to the application.
 * Written by the FastCGI exchange into its own buffer, then sent.
 * Knows no HTTP beyond the spelling of HTTP_... names.
 */
#include "fcgi/fcgi.h"

#include <string.h>

#define FCGI_VERSION 1
#define ROLE_RESPONDER 1
#define FLAG_KEEP_CONN 1

void
fcgi_put_header(
    unsigned char *to, enum fcgi_type type, uint16_t id, uint16_t content_len)
{
	to[0] = FCGI_VERSION;
	to[1] = (unsigned char)type;
	to[2] = (unsigned char)(id >> 8);
	to[3] = (unsigned char)id;
	to[4] = (unsigned char)(content_len >> 8);
	to[5] = (unsigned char)content_len;
	to[6] = 0;
	to[7] = 0;
}

size_t
fcgi_put_begin(unsigned char *to, uint16_t id, bool keep)
{
	fcgi_put_header(to, FCGI_BEGIN_REQUEST, id, 8);
	memset(to + FCGI_HEADER_LEN, 0, 8);
	to[FCGI_HEADER_LEN + 1] = ROLE_RESPONDER;
	to[FCGI_HEADER_LEN + 2] = keep ? FLAG_KEEP_CONN : 0;
	return FCGI_HEADER_LEN + 8;
}

static void
fail(struct fcgi_params *params)
{
	params->overflow = true;
	params->limit = 0;
}

/* A header at params->len, its length filled in when the record is closed. */
static void
open_record(struct fcgi_params *params)
{
	if (params->overflow || params->room - params->len < FCGI_HEADER_LEN) {
		fail(params);
		return;
	}
	params->record = params->len;
	fcgi_put_header(params->buf + params->len, FCGI_PARAMS, params->id, 0);
	params->len += FCGI_HEADER_LEN;
	params->limit = params->len + FCGI_CONTENT_MAX;
	if (params->limit > params->room)
		params->limit = params->room;
}

static size_t
content_len(const struct fcgi_params *params)
{
	return params->len - params->record - FCGI_HEADER_LEN;
}

static void
close_record(struct fcgi_params *params)
{
	fcgi_put_header(params->buf + params->record, FCGI_PARAMS, params->id,
	    (uint16_t)content_len(params));
}

void
fcgi_params_begin(struct fcgi_params *params, unsigned char *buf, size_t room,
    size_t len, uint16_t id)
{
	*params = (struct fcgi_params){
		.buf = buf,
		.room = room,
		.len = len,
		.id = id,
		.overflow = len > room,
	};
	open_record(params);
}

/* How much of `len` goes into the open record; a full one is closed and another
 * opened. 0: no room. */
static size_t
make_room(struct fcgi_params *params, size_t len)
{
	size_t room;

	if (!params->overflow && content_len(params) == FCGI_CONTENT_MAX) {
		close_record(params);
		open_record(params);
	}
	if (params->overflow || params->room - params->len < len) {
		fail(params);
		return 0;
	}
	room = FCGI_CONTENT_MAX - content_len(params);
	return len < room ? len : room;
}

static void
put(struct fcgi_params *params, const void *from, size_t len)
{
	const char *at = from;

	while (len > 0) {
		size_t piece = make_room(params, len);

		if (piece == 0)
			return;
		memcpy(params->buf + params->len, at, piece);
		params->len += piece;
		at += piece;
		len -= piece;
	}
}

/* Eight bytes of a field name in a CGI variable's spelling: a-z in upper case,
 * '-' as '_'. No sum of two bytes goes over into the next. */
static uint64_t
upper_of(uint64_t word)
{
	const uint64_t ones = ~(uint64_t)0 / 255, high = ones * 0x80;
	uint64_t low = word & ~high;
	uint64_t is_letter = (low + ones * (0x80 - 'a')) &
			     ~(low + ones * (0x80 - 'z' - 1)) & ~word & high;
	uint64_t other = low ^ ones * '-';
	uint64_t is_dash = ~(other + ones * 0x7f) & ~word & high;

	word ^= is_letter >> 2;
	/* 0x2d and 0x5f differ in 0x72. */
	return word ^ ((is_dash >> 1) | (is_dash >> 2) | (is_dash >> 3) |
			  (is_dash >> 6));
}

static void
copy_upper(unsigned char *to, const char *from, size_t len)
{
	uint64_t word = 0;
	size_t at = 0;

	if (UNLIKELY(len < sizeof(word))) {
		memcpy(&word, from, len);
		word = upper_of(word);
		memcpy(to, &word, len);
		return;
	}
	/* The last word may begin inside the one before it. */
	for (;;) {
		memcpy(&word, from + at, sizeof(word));
		word = upper_of(word);
		memcpy(to + at, &word, sizeof(word));
		if (at == len - sizeof(word))
			return;
		at += sizeof(word);
		if (at > len - sizeof(word))
			at = len - sizeof(word);
	}
}

static void
put_upper(struct fcgi_params *params, struct str name)
{
	while (name.len > 0) {
		size_t piece = make_room(params, name.len);

		if (piece == 0)
			return;
		copy_upper(params->buf + params->len, name.ptr, piece);
		params->len += piece;
		name.ptr += piece;
		name.len -= piece;
	}
}

/* FastCGI 1.0 section 3.4: one byte up to 127, else four. */
static size_t
encode_len(unsigned char *to, size_t len)
{
	if (len < 128) {
		to[0] = (unsigned char)len;
		return 1;
	}
	to[0] = (unsigned char)(0x80 | len >> 24);
	to[1] = (unsigned char)(len >> 16);
	to[2] = (unsigned char)(len >> 8);
	to[3] = (unsigned char)len;
	return 4;
}

static void
put_lens(struct fcgi_params *params, size_t name_len, size_t value_len)
{
	unsigned char lens[8];
	size_t used;

	if (name_len > INT32_MAX || value_len > INT32_MAX) {
		fail(params);
		return;
	}
	used = encode_len(lens, name_len);
	used += encode_len(lens + used, value_len);
	put(params, lens, used);
}

void
fcgi_params_add_long(
    struct fcgi_params *params, struct str name, struct str value)
{
	put_lens(params, name.len, value.len);
	put(params, name.ptr, name.len);
	put(params, value.ptr, value.len);
}

#define PREFIX "HTTP_"
#define PREFIX_LEN (sizeof(PREFIX) - 1)

void
fcgi_params_add_header(
    struct fcgi_params *params, struct str name, struct str value)
{
	unsigned char *to = params->buf + params->len;
	size_t most = 8 + PREFIX_LEN + name.len + value.len;

	/* Nearly always all of it fits into the open record: then it is not
	 * looked at again for each piece. */
	if (LIKELY(name.len < 256 && value.len <= FCGI_CONTENT_MAX &&
		   params->len + most <= params->limit)) {
		to += encode_len(to, PREFIX_LEN + name.len);
		to += encode_len(to, value.len);
		memcpy(to, PREFIX, PREFIX_LEN);
		copy_upper(to + PREFIX_LEN, name.ptr, name.len);
		to += PREFIX_LEN + name.len;
		if (value.len > 0)
			memcpy(to, value.ptr, value.len);
		params->len = (size_t)(to - params->buf) + value.len;
		return;
	}
	put_lens(params, PREFIX_LEN + name.len, value.len);
	put(params, PREFIX, PREFIX_LEN);
	put_upper(params, name);
	put(params, value.ptr, value.len);
}

size_t
fcgi_params_end(struct fcgi_params *params)
{
	if (params->overflow)
		return 0;
	/* Without a parameter the open record is the empty one already. */
	if (content_len(params) > 0) {
		close_record(params);
		open_record(params);
	}
	return params->overflow ? 0 : params->len;
}
