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

/* What the loops of one scan share. */
struct scan {
	const char *from;
	uint32_t len;
	bool lf_ends;
	struct h1_lines *lines;
};

static bool
is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

/* A line's text ends at `end`, the next line begins at `next`. */
static enum h1_scan
end_line(const struct scan *scan, uint32_t end, uint32_t next, uint32_t *at)
{
	struct h1_lines *lines = scan->lines;

	*at = next;
	if (end == 0 || scan->from[end - 1] == '\n') {
		lines->used = next;
		return H1_SCAN_DONE;
	}
	if (lines->count == H1_GATE_LINES_MAX)
		return H1_SCAN_TOO_MANY;
	lines->end[lines->count++] = end;
	return H1_SCAN_MORE;
}

/* The control byte at *at, which is moved behind what was understood. `stop` is
 * set when only more bytes can tell. */
static enum h1_scan
take_control(const struct scan *scan, uint32_t *at, bool *stop)
{
	uint32_t i = *at;

	switch (scan->from[i]) {
	case '\t':
		*at = i + 1;
		return H1_SCAN_MORE;
	case '\r':
		if (i + 1 == scan->len) {
			*stop = true;
			return H1_SCAN_MORE;
		}
		if (scan->from[i + 1] != '\n')
			return H1_SCAN_BAD;
		return end_line(scan, i, i + 2, at);
	case '\n':
		if (!scan->lf_ends)
			return H1_SCAN_BAD;
		return end_line(scan, i, i + 1, at);
	}
	return H1_SCAN_BAD;
}

#ifdef __SSE2__
/* Which of 16 bytes are controls: bit i for byte i. */
static unsigned
find_controls(const char *from)
{
	__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)from);
	__m128i low = _mm_min_epu8(bytes, _mm_set1_epi8(0x1f));
	__m128i is_low = _mm_cmpeq_epi8(low, bytes);
	__m128i is_del = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f));

	return (unsigned)_mm_movemask_epi8(_mm_or_si128(is_low, is_del));
}
#endif

/* Move to the next control byte, or to the end. */
static uint32_t
skip_text(const struct scan *scan, uint32_t i)
{
#ifdef __SSE2__
	while (i + 16 <= scan->len) {
		unsigned controls = find_controls(scan->from + i);

		if (controls != 0)
			return i + (unsigned)__builtin_ctz(controls);
		i += 16;
	}
#endif
	while (i < scan->len && !is_control(scan->from[i]))
		i++;
	return i;
}

enum h1_scan
h1_gate_scan(const char *from, uint32_t len, uint32_t *at, bool lf_ends,
    struct h1_lines *lines)
{
	struct scan scan = { from, len, lf_ends, lines };
	bool stop = false;

	lines->count = 0;
	lines->used = 0;
	while (!stop) {
		enum h1_scan result;

		*at = skip_text(&scan, *at);
		if (*at == len)
			break;
		result = take_control(&scan, at, &stop);
		if (result != H1_SCAN_MORE)
			return result;
	}
	return H1_SCAN_MORE;
}

static const char *
why_no_colon(const char *line, const char *at)
{
	if (at == line && (*at == ' ' || *at == '\t'))
		return "a field is continued on the next line";
	if (at == line && *at == ':')
		return "a field without a name";
	if (*at == ' ' || *at == '\t')
		return "space in or behind a field name";
	if (*at == '\r' || *at == '\n')
		return "a field line without a colon";
	return "a field name that is no token";
}

static bool
stands_once(enum header_id id)
{
	return id == HEADER_HOST || id == HEADER_CONTENT_LENGTH ||
	       id == HEADER_TRANSFER_ENCODING;
}

/* Returns NULL, or what is wrong. The line's end is no token byte, so the loop
 * over the name ends there at the latest. */
static const char *
add_field(struct header_table *table, const char *from, uint32_t start,
    uint32_t end, bool *is_limit)
{
	const unsigned char *line = (const unsigned char *)from + start;
	const unsigned char *at = line;
	unsigned all = ~0u, class;
	uint32_t value, name_len;
	enum header_id id;

	while (((class = char_class[*at]) & CHAR_TOKEN) != 0) {
		all &= class;
		at++;
	}
	if (UNLIKELY(*at != ':' || at == line))
		return why_no_colon((const char *)line, (const char *)at);
	name_len = (uint32_t)(at - line);
	value = start + name_len + 1;
	while (value < end && (from[value] == ' ' || from[value] == '\t'))
		value++;
	while (end > value && (from[end - 1] == ' ' || from[end - 1] == '\t'))
		end--;
	if (UNLIKELY(name_len > UINT16_MAX) ||
	    header_table_append(table, from, start, (uint16_t)name_len, value,
		end - value,
		(all & CHAR_PLAIN) != 0 ? 0 : HEADER_FLAG_ODD_NAME) == -1) {
		*is_limit = true;
		return "too many fields, or too long a name";
	}
	id = table->fields[table->count - 1].id;
	if (UNLIKELY(table->first[id] != table->count && stands_once(id)))
		return "a field that may stand only once stands twice";
	return NULL;
}

int
h1_gate_fields(const char *from, const struct h1_lines *lines, uint32_t first,
    uint32_t start, uint32_t count_max, struct header_table *table,
    bool *is_limit, const char **why)
{
	*is_limit = false;
	header_table_reset(table);
	if (lines->count - first > count_max) {
		*is_limit = true;
		*why = "too many fields";
		return -1;
	}
	for (uint32_t i = first; i < lines->count; i++) {
		uint32_t end = lines->end[i];
		const char *wrong =
		    add_field(table, from, start, end, is_limit);

		if (UNLIKELY(wrong != NULL)) {
			*why = wrong;
			return -1;
		}
		start = end + (from[end] == '\r' ? 2 : 1);
	}
	return 0;
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
