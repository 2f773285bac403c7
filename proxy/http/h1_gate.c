/*
 * The strict gate: bytes, lines and fields of an HTTP/1 head.
 * First on every head, from clients and from apps, before http-parser.
 * Does not know what a field means, except that three stand only once.
 */
#include "proxy/http/h1_gate.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "proxy/http/chars.h"

static bool
is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

#ifdef __SSE2__
static inline __m128i
load(const char *from)
{
	return _mm_loadu_si128((const __m128i *)(const void *)from);
}

/* Bytes from `low` to `low + span`. */
static inline __m128i
in_range(__m128i bytes, char low, char span)
{
	__m128i offset = _mm_sub_epi8(bytes, _mm_set1_epi8(low));

	return _mm_cmpeq_epi8(
	    _mm_min_epu8(offset, _mm_set1_epi8(span)), offset);
}

/* Which of 16 bytes are controls: bit i for byte i. */
static inline unsigned
find_controls(const char *from)
{
	__m128i bytes = load(from);
	__m128i is_low = in_range(bytes, 0, 0x1f);
	__m128i is_del = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f));

	return (unsigned)_mm_movemask_epi8(_mm_or_si128(is_low, is_del));
}

/* Which of 16 bytes are not CHAR_PLAIN. */
static inline unsigned
find_odd(const char *from)
{
	__m128i bytes = load(from);
	__m128i lower = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
	__m128i plain = _mm_or_si128(in_range(lower, 'a', 'z' - 'a'),
	    _mm_or_si128(in_range(bytes, '0', 9),
		_mm_cmpeq_epi8(bytes, _mm_set1_epi8('-'))));

	return (unsigned)_mm_movemask_epi8(plain) ^ 0xffff;
}
#endif

/* Move to the next control byte, or to the end. `wide`: where 16 bytes can no
 * longer be loaded. */
static inline size_t
skip_text(const char *from, size_t i, size_t wide, size_t len)
{
#ifdef __SSE2__
	for (; LIKELY(i < wide); i += 16) {
		unsigned controls = find_controls(from + i);

		if (controls != 0)
			return i + (unsigned)__builtin_ctz(controls);
	}
#endif
	while (i < len && !is_control(from[i]))
		i++;
	return i;
}

static inline size_t
wide_end(size_t len)
{
	return len < 16 ? 0 : len - 15;
}

/* A line that does not end with CR LF, or a control byte: may it be there?
 * Returns how many bytes to go on, 0: it is no text and `*result` says what. */
static size_t
judge_control(
    const char *from, size_t i, size_t len, bool lf_ends, enum h1_scan *result)
{
	*result = H1_SCAN_DONE; /* of this line */
	if (from[i] == '\n' && lf_ends)
		return 1;
	*result = H1_SCAN_MORE;
	if (from[i] == '\t')
		return 1;
	if (from[i] != '\r' || i + 1 < len)
		*result = H1_SCAN_BAD;
	return 0;
}

enum h1_scan
h1_gate_scan(const char *from, uint32_t len, uint32_t *at, bool lf_ends,
    struct h1_lines *lines)
{
	size_t i = *at, count = 0, wide = wide_end(len);
	/* Where the line begins, if that is known to be here. */
	size_t begin = i == 0 || from[i - 1] == '\n' ? i : SIZE_MAX;

	lines->count = 0;
	lines->used = 0;
	for (;;) {
		size_t width = 2;

		i = skip_text(from, i, wide, len);
		if (UNLIKELY(i + 2 > len || from[i] != '\r' ||
			     from[i + 1] != '\n')) {
			enum h1_scan result = H1_SCAN_MORE;

			*at = (uint32_t)i;
			if (i == len)
				return H1_SCAN_MORE;
			width = judge_control(from, i, len, lf_ends, &result);
			if (width == 0)
				return result;
			if (result == H1_SCAN_MORE) {
				i += width;
				continue;
			}
		}
		if (i == begin) {
			*at = lines->used = (uint32_t)(i + width);
			lines->count = (uint32_t)count;
			return H1_SCAN_DONE;
		}
		if (UNLIKELY(count == H1_GATE_LINES_MAX)) {
			*at = (uint32_t)i;
			return H1_SCAN_TOO_MANY;
		}
		lines->end[count++] = (uint32_t)i;
		i += width;
		begin = i;
	}
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static const char *
why_no_colon(const char *line, const char *at)
{
	if (at == line && is_blank(*at))
		return "a field is continued on the next line";
	if (at == line && *at == ':')
		return "a field without a name";
	if (is_blank(*at))
		return "space in or behind a field name";
	if (*at == '\r' || *at == '\n')
		return "a field line without a colon";
	return "a field name that is no token";
}

static bool
stands_once(unsigned id)
{
	return id == HEADER_HOST || id == HEADER_CONTENT_LENGTH ||
	       id == HEADER_TRANSFER_ENCODING;
}

/* Behind the plain bytes a name begins with. */
static inline size_t
skip_plain(const char *from, size_t i, size_t wide)
{
#ifdef __SSE2__
	for (; LIKELY(i < wide); i += 16) {
		unsigned odd = find_odd(from + i);

		if (odd != 0)
			return i + (unsigned)__builtin_ctz(odd);
	}
#endif
	while (char_is(from[i], CHAR_PLAIN))
		i++;
	return i;
}

/* Returns NULL, or what is wrong. The line's end is no token byte, so the
 * search for the name's end stops there at the latest. */
static inline const char *
read_field(const char *from, size_t start, size_t end, size_t wide,
    struct header_field *field)
{
	unsigned flags = 0, class;
	size_t i = skip_plain(from, start, wide);

	if (UNLIKELY(from[i] != ':')) {
		flags = HEADER_FLAG_ODD_NAME;
		while (char_is(from[i], CHAR_TOKEN))
			i++;
	}
	if (UNLIKELY(from[i] != ':' || i == start))
		return why_no_colon(from + start, from + i);
	if (UNLIKELY(i - start > UINT16_MAX))
		return "too long a field name";
	field->name = (uint32_t)start;
	field->name_len = (uint16_t)(i - start);
	class = header_classify(from + start, i - start);
	field->id = (uint8_t) class;
	field->flags = (uint8_t)(class >> 8 | flags);
	while (++i < end && is_blank(from[i]))
		continue;
	while (end > i && is_blank(from[end - 1]))
		end--;
	field->value = (uint32_t)i;
	field->value_len = (uint32_t)(end - i);
	return NULL;
}

const char *
h1_gate_fields(const char *from, const struct h1_lines *lines, uint32_t first,
    uint32_t start, struct header_table *table)
{
	struct header_field *field = table->fields;
	size_t wide = wide_end(lines->used), begin = start;
	const uint32_t *at = lines->end + first;

	header_table_reset(table);
	for (; at < lines->end + lines->count; at++) {
		size_t end = *at;
		const char *wrong = read_field(from, begin, end, wide, field);
		uint8_t *seen;

		if (UNLIKELY(wrong != NULL))
			return wrong;
		seen = &table->first[field->id];
		field++;
		if (LIKELY(*seen == 0))
			*seen = (uint8_t)(field - table->fields);
		else if (stands_once(field[-1].id))
			return "a field that may stand only once stands twice";
		begin = end + (from[end] == '\r' ? 2 : 1);
	}
	table->count = (uint16_t)(field - table->fields);
	return NULL;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

int
h1_gate_version(const char *from, size_t len)
{
	if (len != 8)
		return -400;
	if (memcmp(from, "HTTP/1.1", 8) == 0)
		return 1;
	if (memcmp(from, "HTTP/1.0", 8) == 0)
		return 0;
	if (memcmp(from, "HTTP/", 5) == 0 && is_digit(from[5]) &&
	    from[6] == '.' && is_digit(from[7]))
		return -505;
	return -400;
}
