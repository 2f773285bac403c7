/*
 * Bounded strings and numbers as text.
 * Used by every parser. Knows no locale, no allocation, no printf.
 */
#include "src/base/str.h"

#include <limits.h>

static unsigned char
lower_of(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

bool
str_eq_nocase(struct str a, struct str b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++) {
		if (lower_of(a.ptr[i]) != lower_of(b.ptr[i]))
			return false;
	}
	return true;
}

bool
str_starts_with(struct str text, struct str prefix)
{
	if (text.len < prefix.len)
		return false;
	return str_eq((struct str){ text.ptr, prefix.len }, prefix);
}

bool
str_ends_with(struct str text, struct str suffix)
{
	if (text.len < suffix.len)
		return false;
	if (suffix.len == 0)
		return true;
	text.ptr += text.len - suffix.len;
	text.len = suffix.len;
	return str_eq(text, suffix);
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct str
str_trim(struct str text)
{
	while (text.len > 0 && is_blank(text.ptr[0])) {
		text.ptr++;
		text.len--;
	}
	while (text.len > 0 && is_blank(text.ptr[text.len - 1]))
		text.len--;
	return text;
}

bool
str_split(struct str *rest, char sep, struct str *part)
{
	const char *at = NULL;

	if (rest->ptr == NULL)
		return false;
	if (rest->len > 0)
		at = memchr(rest->ptr, sep, rest->len);
	*part = *rest;
	if (at == NULL) {
		*rest = (struct str){ NULL, 0 };
		return true;
	}
	part->len = (size_t)(at - rest->ptr);
	rest->ptr = at + 1;
	rest->len -= part->len + 1;
	return true;
}

void
str_lower(char *to, const char *from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (char)lower_of(from[i]);
}

int
str_to_u64(struct str text, uint64_t max, uint64_t *value)
{
	uint64_t sum = 0;

	if (text.len == 0)
		return -1;
	for (size_t i = 0; i < text.len; i++) {
		unsigned digit = (unsigned char)text.ptr[i] - (unsigned)'0';

		if (digit > 9 || __builtin_mul_overflow(sum, 10, &sum) ||
		    __builtin_add_overflow(sum, digit, &sum) || sum > max)
			return -1;
	}
	*value = sum;
	return 0;
}

static size_t
put_reversed(char *to, const char *reversed, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = reversed[len - 1 - i];
	return len;
}

size_t
str_put_u64(char *to, uint64_t value)
{
	char reversed[20];
	size_t len = 0;

	do {
		reversed[len++] = (char)('0' + value % 10);
		value /= 10;
	} while (value != 0);
	return put_reversed(to, reversed, len);
}

size_t
str_put_hex(char *to, uint64_t value)
{
	char reversed[16];
	size_t len = 0;

	do {
		reversed[len++] = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value != 0);
	return put_reversed(to, reversed, len);
}

void
str_put_line(char *to, size_t room, const char *lines)
{
	size_t len = 0;

	for (; *lines != '\0'; lines++) {
		bool is_break = *lines == '\n';

		if (is_break && lines[1] == '\0')
			break;
		if (len + (is_break ? 2 : 1) >= room)
			break;
		to[len++] = is_break ? ';' : *lines;
		if (is_break)
			to[len++] = ' ';
	}
	to[len] = '\0';
}

#define DISTANCE_MAX_BYTES 63

static unsigned
min_of(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* An edit is a byte inserted, dropped or replaced, or two neighbours
 * swapped: what fingers do to key names. */
unsigned
str_distance(const char *a, const char *b)
{
	unsigned rows[3][DISTANCE_MAX_BYTES + 1];
	size_t a_len = strlen(a), b_len = strlen(b);

	if (a_len > DISTANCE_MAX_BYTES || b_len > DISTANCE_MAX_BYTES)
		return UINT_MAX;
	for (size_t j = 0; j <= b_len; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= a_len; i++) {
		unsigned *now = rows[i % 3];
		const unsigned *above = rows[(i - 1) % 3];

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= b_len; j++) {
			unsigned best = above[j - 1] + (a[i - 1] != b[j - 1]);

			best = min_of(best, min_of(above[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				best =
				    min_of(best, rows[(i - 2) % 3][j - 2] + 1);
			now[j] = best;
		}
	}
	return rows[a_len % 3][b_len];
}
