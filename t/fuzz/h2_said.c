/*
 * For fuzz_h2_conn.c: the frames of a server, each against those before it, and
 * the fields of its answers. Flow control is left to nghttp2.
 */
#include "t/fuzz/h2_said.h"

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/http/chars.h"
#include "src/base/compiler.h"
#include "src/base/str.h"

#define FRAME_BYTES 16384
#define STREAMS 512

static struct {
	uint8_t frame[9 + FRAME_BYTES];
	size_t have;
	bool has_settings;
	uint32_t in_block; /* a header block of this stream goes on */
	bool is_start;     /* nothing of it was inflated yet */
	bool is_answer;    /* it began with :status */
	nghttp2_hd_inflater *inflater;
	/* By half of its number; those beyond are not watched. */
	struct {
		bool is_answered, is_ended;
	} streams[STREAMS];
} said;

static void
check(bool holds)
{
	if (!holds)
		abort();
}

void
h2_said_begin(void)
{
	memset(&said, 0, sizeof(said));
	check(nghttp2_hd_inflate_new(&said.inflater) == 0);
}

void
h2_said_end(void)
{
	nghttp2_hd_inflate_del(said.inflater);
	said.inflater = NULL;
}

/* RFC 9113 section 8.2. */
static void
check_field(const nghttp2_nv *nv)
{
	static const struct str never[] = { { "connection", 10 },
		{ "keep-alive", 10 }, { "upgrade", 7 },
		{ "transfer-encoding", 17 }, { "proxy-connection", 16 },
		{ "x-mine", 6 } };
	struct str name = { (const char *)nv->name, nv->namelen };

	if (str_eq(name, STR(":status"))) {
		check(said.is_start && nv->valuelen == 3);
		said.is_answer = true;
		return;
	}
	check(name.len > 0);
	for (size_t i = 0; i < name.len; i++)
		check(char_is(name.ptr[i], CHAR_TOKEN) &&
		      !(name.ptr[i] >= 'A' && name.ptr[i] <= 'Z'));
	for (size_t i = 0; i < nv->valuelen; i++)
		check(char_is((char)nv->value[i], CHAR_TEXT));
	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		check(!str_eq(name, never[i]));
}

static void
inflate(const uint8_t *from, size_t len, bool is_last)
{
	for (;;) {
		nghttp2_nv nv;
		int flags = 0;
		ssize_t n = nghttp2_hd_inflate_hd2(
		    said.inflater, &nv, &flags, from, len, is_last);

		check(n >= 0);
		from += n;
		len -= (size_t)n;
		if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
			check_field(&nv);
			said.is_start = false;
		}
		if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0)
			nghttp2_hd_inflate_end_headers(said.inflater);
		if ((flags &
			(NGHTTP2_HD_INFLATE_FINAL | NGHTTP2_HD_INFLATE_EMIT)) !=
			NGHTTP2_HD_INFLATE_EMIT &&
		    len == 0)
			return;
	}
}

static void
take_stream_frame(uint8_t type, uint8_t flags, uint32_t id)
{
	uint32_t at = id / 2;

	check(id % 2 == 1);
	if (at >= STREAMS)
		return;
	check(!said.streams[at].is_ended);
	if (type == NGHTTP2_HEADERS)
		said.streams[at].is_answered = true;
	check(said.streams[at].is_answered);
	said.streams[at].is_ended = (flags & NGHTTP2_FLAG_END_STREAM) != 0;
}

static void
take_frame(const uint8_t *frame, size_t len)
{
	uint8_t type = frame[3], flags = frame[4];
	uint32_t id = (uint32_t)frame[5] << 24 | (uint32_t)frame[6] << 16 |
		      (uint32_t)frame[7] << 8 | frame[8];
	bool ends_block = (flags & NGHTTP2_FLAG_END_HEADERS) != 0;

	check(said.has_settings ||
	      (type == NGHTTP2_SETTINGS && (flags & NGHTTP2_FLAG_ACK) == 0));
	said.has_settings = true;
	check((said.in_block != 0) == (type == NGHTTP2_CONTINUATION));
	if (type == NGHTTP2_HEADERS) {
		check((flags & (NGHTTP2_FLAG_PADDED | NGHTTP2_FLAG_PRIORITY)) ==
		      0);
		said.is_start = true;
		said.is_answer = false;
		take_stream_frame(type, flags, id);
	}
	switch (type) {
	case NGHTTP2_HEADERS:
	case NGHTTP2_CONTINUATION:
		check(said.in_block == 0 || said.in_block == id);
		inflate(frame + 9, len, ends_block);
		said.in_block = ends_block ? 0 : id;
		/* Else it is a trailer section. */
		check(!ends_block || said.is_answer ||
		      (flags & NGHTTP2_FLAG_END_STREAM) != 0);
		break;
	case NGHTTP2_DATA:
		take_stream_frame(type, flags, id);
		break;
	case NGHTTP2_RST_STREAM:
		check(id != 0 && len == 4);
		break;
	case NGHTTP2_WINDOW_UPDATE:
		check(len == 4);
		break;
	case NGHTTP2_SETTINGS:
	case NGHTTP2_PING:
	case NGHTTP2_GOAWAY:
		check(id == 0);
		break;
	default:
		abort();
	}
}

/* Of the frame that is coming, as far as that is known. */
static size_t
frame_bytes(void)
{
	if (said.have < 9)
		return 9;
	return 9 + ((size_t)said.frame[0] << 16 | (size_t)said.frame[1] << 8 |
		       said.frame[2]);
}

void
h2_said(const char *from, size_t len)
{
	while (len > 0) {
		size_t n = frame_bytes() - said.have;

		if (n > len)
			n = len;
		memcpy(said.frame + said.have, from, n);
		said.have += n;
		from += n;
		len -= n;
		check(frame_bytes() <= sizeof(said.frame));
		if (said.have < 9 || said.have < frame_bytes())
			continue;
		take_frame(said.frame, said.have - 9);
		said.have = 0;
	}
}
