/*
 * Message bodies of HTTP/1: lengths and chunks, read strictly.
 * After the head, for both sides; http-parser never sees a body.
 * Copies nothing: pieces are views into the input.
 */
#include "proxy/http/h1_body.h"

#include "proxy/http/chars.h"
#include "src/base/str.h"

/* Where in RFC 9112 section 7.1's grammar the next byte stands. */
enum state {
	END = H1_BODY_STATE_END,
	BAD,
	SIZE_FIRST, /* a hexadecimal digit must come */
	SIZE,       /* another, or what follows the size */
	EXT_WAIT,   /* space was read: only ';' may come (BWS) */
	EXT_NAME,   /* behind ';': space or the name's first byte */
	EXT_IN_NAME,
	EXT_NAMED, /* space behind the name: '=' or ';' */
	EXT_VALUE, /* behind '=': space or the value's first byte */
	EXT_IN_TOKEN,
	EXT_IN_QUOTES,
	EXT_ESCAPED, /* behind a backslash in quotes */
	EXT_QUOTED,  /* behind the closing quote */
	LINE_LF,     /* the CR of a chunk line was read */
	DATA,
	DATA_CR, /* the chunk's data is whole */
	DATA_LF,
	TRAILER, /* at the start of a trailer line */
	TRAILER_NAME,
	TRAILER_VALUE,
	TRAILER_LF,
	LAST_LF, /* the CR of the empty line was read */
};

void
h1_body_init(
    struct h1_body *body, enum http_body_kind kind, uint64_t content_length)
{
	*body = (struct h1_body){ .kind = kind, .state = SIZE_FIRST };
	if (kind == BODY_LENGTH)
		body->left = content_length;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* 16 digits hold 64 bits; leading zeros count, so that nobody can send them for
 * ever. */
static enum state
take_digit(struct h1_body *body, char c)
{
	int digit = char_hex(c);

	if (digit < 0 || ++body->digits > 16 ||
	    body->left > (H1_LENGTH_MAX - (uint64_t)digit) / 16)
		return BAD;
	body->left = body->left * 16 + (uint64_t)digit;
	return SIZE;
}

/* A byte behind something that is complete: the line's end, or one more
 * extension. */
static enum state
after_item(char c)
{
	if (c == '\r')
		return LINE_LF;
	if (c == ';')
		return EXT_NAME;
	return is_blank(c) ? EXT_WAIT : BAD;
}

static enum state
take_extension(enum state state, char c)
{
	switch (state) {
	case EXT_WAIT:
		if (is_blank(c))
			return EXT_WAIT;
		return c == ';' ? EXT_NAME : BAD;
	case EXT_NAME:
		if (is_blank(c))
			return EXT_NAME;
		return char_is(c, CHAR_TOKEN) ? EXT_IN_NAME : BAD;
	case EXT_IN_NAME:
		if (char_is(c, CHAR_TOKEN))
			return EXT_IN_NAME;
		if (c == '=')
			return EXT_VALUE;
		return is_blank(c) ? EXT_NAMED : after_item(c);
	case EXT_NAMED:
		if (is_blank(c))
			return EXT_NAMED;
		if (c == '=')
			return EXT_VALUE;
		return c == ';' ? EXT_NAME : BAD;
	case EXT_VALUE:
		if (is_blank(c))
			return EXT_VALUE;
		if (c == '"')
			return EXT_IN_QUOTES;
		return char_is(c, CHAR_TOKEN) ? EXT_IN_TOKEN : BAD;
	case EXT_IN_TOKEN:
		return char_is(c, CHAR_TOKEN) ? EXT_IN_TOKEN : after_item(c);
	case EXT_IN_QUOTES:
		if (c == '"')
			return EXT_QUOTED;
		if (c == '\\')
			return EXT_ESCAPED;
		return char_is(c, CHAR_QUOTED) ? EXT_IN_QUOTES : BAD;
	case EXT_ESCAPED:
		return char_is(c, CHAR_TEXT) ? EXT_IN_QUOTES : BAD;
	case EXT_QUOTED:
		return after_item(c);
	default:
		return BAD;
	}
}

static enum state
take_trailer(enum state state, char c)
{
	switch (state) {
	case TRAILER:
		if (c == '\r')
			return LAST_LF;
		return char_is(c, CHAR_TOKEN) ? TRAILER_NAME : BAD;
	case TRAILER_NAME:
		if (c == ':')
			return TRAILER_VALUE;
		return char_is(c, CHAR_TOKEN) ? TRAILER_NAME : BAD;
	case TRAILER_VALUE:
		if (c == '\r')
			return TRAILER_LF;
		return char_is(c, CHAR_TEXT) ? TRAILER_VALUE : BAD;
	case TRAILER_LF:
		return c == '\n' ? TRAILER : BAD;
	case LAST_LF:
		return c == '\n' ? END : BAD;
	default:
		return BAD;
	}
}

/* A chunk line is whole: its size is in body->left. */
static enum state
end_chunk_line(struct h1_body *body)
{
	body->digits = 0;
	body->line_bytes = 0;
	return body->left == 0 ? TRAILER : DATA;
}

/* The state behind one byte that is not data. */
static enum state
take_byte(struct h1_body *body, char c)
{
	enum state state = body->state;

	body->line_bytes++;
	if (state >= TRAILER)
		return body->line_bytes > H1_TRAILER_MAX
			   ? BAD
			   : take_trailer(state, c);
	if (body->line_bytes > H1_CHUNK_LINE_MAX)
		return BAD;
	switch (state) {
	case SIZE_FIRST:
		return take_digit(body, c);
	case SIZE:
		if (char_hex(c) >= 0)
			return take_digit(body, c);
		return after_item(c);
	case LINE_LF:
		return c == '\n' ? end_chunk_line(body) : BAD;
	case DATA_CR:
		return c == '\r' ? DATA_LF : BAD;
	case DATA_LF:
		body->line_bytes = 0;
		return c == '\n' ? SIZE_FIRST : BAD;
	default:
		return take_extension(state, c);
	}
}

/* Hand out what is there of the length or the chunk. */
static enum h1_body_result
take_data(struct h1_body *body, const char *from, size_t len, size_t *used,
    const char **data, size_t *data_len)
{
	size_t at = *used;
	size_t piece = len - at;

	if (piece == 0)
		return H1_BODY_MORE;
	if (body->kind == BODY_LENGTH || body->kind == BODY_CHUNKED) {
		if (piece > body->left)
			piece = (size_t)body->left;
		body->left -= piece;
	}
	body->seen += piece;
	*data = from + at;
	*data_len = piece;
	*used = at + piece;
	return H1_BODY_DATA;
}

/* All there is of it. */
static bool
take_trailers(struct h1_body *body, const char *from, size_t len, size_t *used,
    const char **data, size_t *data_len)
{
	size_t start = *used;

	while (*used < len && body->state != END && body->state != BAD) {
		body->state = (uint8_t)take_byte(body, from[(*used)++]);
		body->has_trailer |= body->state == TRAILER_NAME;
	}
	*data = from + start;
	*data_len = *used - start;
	return body->tells_trailers && body->has_trailer && *data_len > 0 &&
	       body->state != BAD;
}

static enum h1_body_result
read_chunks(struct h1_body *body, const char *from, size_t len, size_t *used,
    const char **data, size_t *data_len)
{
	enum h1_body_result result;

	for (;;) {
		switch ((enum state)body->state) {
		case END:
			return H1_BODY_END;
		case BAD:
			return H1_BODY_BAD;
		case DATA:
			result =
			    take_data(body, from, len, used, data, data_len);
			if (body->left == 0)
				body->state = DATA_CR;
			return result;
		case TRAILER:
		case TRAILER_NAME:
		case TRAILER_VALUE:
		case TRAILER_LF:
		case LAST_LF:
			if (*used == len)
				return H1_BODY_MORE;
			if (take_trailers(
				body, from, len, used, data, data_len))
				return H1_BODY_TRAILER;
			break;
		default:
			if (*used == len)
				return H1_BODY_MORE;
			body->state = (uint8_t)take_byte(body, from[(*used)++]);
		}
	}
}

enum h1_body_result
h1_body_read(struct h1_body *body, const char *from, size_t len, size_t *used,
    const char **data, size_t *data_len)
{
	*used = 0;
	switch (body->kind) {
	case BODY_NONE:
		return H1_BODY_END;
	case BODY_LENGTH:
		if (body->left == 0)
			return H1_BODY_END;
		break;
	case BODY_CHUNKED:
		return read_chunks(body, from, len, used, data, data_len);
	case BODY_UNTIL_CLOSE:
	case BODY_TUNNEL:
		break;
	}
	return take_data(body, from, len, used, data, data_len);
}

size_t
h1_chunk_head(char *to, uint64_t len)
{
	size_t digits = str_put_hex(to, len);

	to[digits] = '\r';
	to[digits + 1] = '\n';
	return digits + 2;
}
