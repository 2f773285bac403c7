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
static __m128i
load(const char *from)
{
	return _mm_loadu_si128((const __m128i *)(const void *)from);
}

/* Bytes from `low` to `low + span`. */
static __m128i
in_range(__m128i bytes, char low, char span)
{
	__m128i offset = _mm_sub_epi8(bytes, _mm_set1_epi8(low));

	return _mm_cmpeq_epi8(
	    _mm_min_epu8(offset, _mm_set1_epi8(span)), offset);
}

/* Which of 16 bytes are controls: bit i for byte i. */
static unsigned
find_controls(const char *from)
{
	__m128i bytes = load(from);
	__m128i is_low = in_range(bytes, 0, 0x1f);
	__m128i is_del = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f));

	return (unsigned)_mm_movemask_epi8(_mm_or_si128(is_low, is_del));
}

/* Which of 16 bytes are not CHAR_PLAIN. */
static unsigned
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

/* Move to the next control byte, or to the end. */
static inline uint32_t
skip_text(const char *from, uint32_t i, uint32_t len)
{
#ifdef __SSE2__
	while (i + 16 <= len) {
		unsigned controls = find_controls(from + i);

		if (controls != 0)
			return i + (unsigned)__builtin_ctz(controls);
		i += 16;
	}
#endif
	while (i < len && !is_control(from[i]))
		i++;
	return i;
}

/* How many bytes from `i` on end a line: 2 or 1; 0: none. */
static inline uint32_t
line_end(const char *from, uint32_t i, uint32_t len, bool lf_ends)
{
	if (LIKELY(from[i] == '\r'))
		return i + 1 < len && from[i + 1] == '\n' ? 2 : 0;
	return lf_ends && from[i] == '\n' ? 1 : 0;
}

enum h1_scan
h1_gate_scan(const char *from, uint32_t len, uint32_t *at, bool lf_ends,
    struct h1_lines *lines)
{
	uint32_t i = *at, count = 0, width;

	lines->count = 0;
	lines->used = 0;
	for (;;) {
		i = skip_text(from, i, len);
		*at = i;
		if (i == len)
			return H1_SCAN_MORE;
		width = line_end(from, i, len, lf_ends);
		if (UNLIKELY(width == 0)) {
			if (from[i] == '\r' && i + 1 == len)
				return H1_SCAN_MORE;
			if (from[i] != '\t')
				return H1_SCAN_BAD;
			i++;
			continue;
		}
		if (i == 0 || from[i - 1] == '\n')
			break;
		if (UNLIKELY(count == H1_GATE_LINES_MAX))
			return H1_SCAN_TOO_MANY;
		lines->end[count++] = i;
		i += width;
	}
	lines->count = count;
	lines->used = *at = i + width;
	return H1_SCAN_DONE;
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

/* Behind the plain bytes a name begins with. The head has `used` bytes. */
static uint32_t
skip_plain(const char *from, uint32_t i, uint32_t used)
{
#ifdef __SSE2__
	while (i + 16 <= used) {
		unsigned odd = find_odd(from + i);

		if (odd != 0)
			return i + (unsigned)__builtin_ctz(odd);
		i += 16;
	}
#endif
	while (char_is(from[i], CHAR_PLAIN))
		i++;
	return i;
}

/* Where the name that begins at `start` ends: at its colon, or at a byte that
 * is wrong there. The line's end is no token byte, so this stops there at the
 * latest. */
static inline uint32_t
read_name(const char *from, uint32_t start, uint32_t used, unsigned *flags)
{
	uint32_t i = skip_plain(from, start, used);

	*flags = 0;
	if (UNLIKELY(from[i] != ':')) {
		*flags = HEADER_FLAG_ODD_NAME;
		while (char_is(from[i], CHAR_TOKEN))
			i++;
	}
	return i;
}

/* Returns NULL, or what is wrong. */
static inline const char *
read_field(const char *from, uint32_t start, uint32_t end, uint32_t used,
    struct header_field *field)
{
	unsigned flags;
	uint32_t i = read_name(from, start, used, &flags), len = i - start;
	enum header_id id;

	if (UNLIKELY(from[i] != ':' || len == 0))
		return why_no_colon(from + start, from + i);
	if (UNLIKELY(len > UINT16_MAX))
		return "too long a field name";
	while (++i < end && is_blank(from[i]))
		continue;
	while (end > i && is_blank(from[end - 1]))
		end--;
	id = header_lookup(from + start, len);
	flags |= header_flags(id, from + start, len);
	*field = (struct header_field){ start, i, end - i, (uint16_t)len,
		(uint8_t)id, (uint8_t)flags };
	return NULL;
}

const char *
h1_gate_fields(const char *from, const struct h1_lines *lines, uint32_t first,
    uint32_t start, struct header_table *table)
{
	struct header_field *field = table->fields;

	header_table_reset(table);
	for (uint32_t i = first; i < lines->count; i++) {
		uint32_t end = lines->end[i];
		const char *wrong =
		    read_field(from, start, end, lines->used, field);
		uint8_t *seen;

		if (UNLIKELY(wrong != NULL))
			return wrong;
		seen = &table->first[field->id];
		field++;
		if (*seen == 0)
			*seen = (uint8_t)(field - table->fields);
		else if (stands_once(field[-1].id))
			return "a field that may stand only once stands twice";
		start = end + (from[end] == '\r' ? 2 : 1);
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
