/*
 * Words of libconfig's language, cut exactly as libconfig 1.5 cuts them.
 * Under conf_source.c. Knows no grammar.
 */
#include "src/conf/conf_lexer.h"

#include <stdint.h>

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f';
}

static bool
is_word_byte(char c)
{
	return is_letter(c) || is_digit(c) || c == '_' || c == '-' ||
	       c == '*' || c == '.' || c == '+';
}

static struct conf_token
take(struct str *rest, enum conf_token_type type, size_t len)
{
	struct conf_token token = { type, { rest->ptr, len }, 0 };

	for (size_t i = 0; i < len; i++)
		token.newlines += rest->ptr[i] == '\n';
	rest->ptr += len;
	rest->len -= len;
	return token;
}

static struct conf_token
take_line_comment(struct str *rest)
{
	const char *end = memchr(rest->ptr, '\n', rest->len);

	return take(rest, CONF_TOKEN_COMMENT,
	    end == NULL ? rest->len : (size_t)(end - rest->ptr));
}

static struct conf_token
take_block_comment(struct str *rest)
{
	for (size_t i = 2; i + 1 < rest->len; i++) {
		if (rest->ptr[i] == '*' && rest->ptr[i + 1] == '/')
			return take(rest, CONF_TOKEN_COMMENT, i + 2);
	}
	return take(rest, CONF_TOKEN_OPEN_COMMENT, rest->len);
}

/* libconfig lets strings run over line ends; then a forgotten quote shows up
 * anywhere but where it is missing. So for us a string ends on its line. */
static struct conf_token
take_string(struct str *rest)
{
	size_t i = 1;

	while (i < rest->len && rest->ptr[i] != '\n') {
		if (rest->ptr[i] == '"')
			return take(rest, CONF_TOKEN_STRING, i + 1);
		/* A backslash takes the next byte with it, a newline not. */
		if (rest->ptr[i] == '\\' && i + 1 < rest->len &&
		    rest->ptr[i + 1] != '\n')
			i++;
		i++;
	}
	return take(rest, CONF_TOKEN_OPEN_STRING, i);
}

static struct conf_token
take_while(struct str *rest, enum conf_token_type type, bool (*is)(char))
{
	size_t len = 1;

	while (len < rest->len && is(rest->ptr[len]))
		len++;
	return take(rest, type, len);
}

struct conf_token
conf_lexer_next(struct str *rest)
{
	char c, next;

	if (rest->len == 0)
		return take(rest, CONF_TOKEN_END, 0);
	c = rest->ptr[0];
	next = rest->len > 1 ? rest->ptr[1] : '\0';
	if (c == '\n')
		return take(rest, CONF_TOKEN_NEWLINE, 1);
	if (is_space(c))
		return take_while(rest, CONF_TOKEN_SPACE, is_space);
	if (c == '#' || (c == '/' && next == '/'))
		return take_line_comment(rest);
	if (c == '/' && next == '*')
		return take_block_comment(rest);
	if (c == '"')
		return take_string(rest);
	if (is_word_byte(c))
		return take_while(rest, CONF_TOKEN_WORD, is_word_byte);
	if (str_starts_with(*rest, STR("@include")))
		return take(rest, CONF_TOKEN_INCLUDE, 8);
	if (memchr("=:,;{}[]()", c, 10) != NULL)
		return take(rest, CONF_TOKEN_PUNCTUATION, 1);
	return take(rest, CONF_TOKEN_GARBAGE, 1);
}

static bool
is_name(struct str word)
{
	if (!is_letter(word.ptr[0]) && word.ptr[0] != '*')
		return false;
	for (size_t i = 1; i < word.len; i++) {
		if (word.ptr[i] == '.' || word.ptr[i] == '+')
			return false;
	}
	return true;
}

static size_t
count_digits(struct str text)
{
	size_t count = 0;

	while (count < text.len && is_digit(text.ptr[count]))
		count++;
	return count;
}

static enum conf_word_type
integer_type(bool negative, bool is_long, struct str digits)
{
	uint64_t value, bias = negative ? 1 : 0;

	if (str_to_u64(digits, (uint64_t)INT64_MAX, &value) == -1)
		return CONF_WORD_TOO_LARGE;
	if (is_long || value <= (uint64_t)INT32_MAX + bias)
		return CONF_WORD_SMALL;
	return CONF_WORD_LARGE;
}

static bool
is_hex_digit(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* What begins with 0x. libconfig takes 32 bits as a signed number. */
static enum conf_word_type
hex_type(struct str word)
{
	size_t digits, zeros = 0;
	bool is_long = false;

	word.ptr += 2;
	word.len -= 2;
	for (digits = 0; digits < word.len && is_hex_digit(word.ptr[digits]);)
		digits++;
	if (digits == 0)
		return CONF_WORD_BAD;
	if (digits < word.len) {
		struct str rest = { word.ptr + digits, word.len - digits };

		is_long = str_eq(rest, STR("L")) || str_eq(rest, STR("LL"));
		if (!is_long)
			return CONF_WORD_BAD;
	}
	while (zeros < digits && word.ptr[zeros] == '0')
		zeros++;
	digits -= zeros;
	if (digits > 16 || (digits == 16 && word.ptr[zeros] > '7'))
		return CONF_WORD_TOO_LARGE;
	if (is_long || digits < 8 || (digits == 8 && word.ptr[zeros] <= '7'))
		return CONF_WORD_SMALL;
	return CONF_WORD_LARGE;
}

/* [0-9]*\.[0-9]*([eE][-+]?[0-9]+)? or [0-9]+[eE][-+]?[0-9]+ */
static bool
is_float(struct str word)
{
	size_t before = count_digits(word), after;
	bool point;

	word.ptr += before;
	word.len -= before;
	point = word.len > 0 && word.ptr[0] == '.';
	if (point) {
		word.ptr++;
		word.len--;
		after = count_digits(word);
		word.ptr += after;
		word.len -= after;
		if (before + after == 0)
			return false;
		if (word.len == 0)
			return true;
	}
	if (word.len < 2 || (word.ptr[0] != 'e' && word.ptr[0] != 'E'))
		return false;
	word.ptr++;
	word.len--;
	if (word.len > 1 && (word.ptr[0] == '-' || word.ptr[0] == '+')) {
		word.ptr++;
		word.len--;
	}
	return word.len > 0 && count_digits(word) == word.len;
}

enum conf_word_type
conf_lexer_word_type(struct str word)
{
	struct str number = word, unit;
	bool negative = word.ptr[0] == '-';
	size_t digits;

	if (is_name(word))
		return CONF_WORD_NAME;
	if (word.len > 2 && word.ptr[0] == '0' &&
	    (word.ptr[1] == 'x' || word.ptr[1] == 'X'))
		return hex_type(word);
	if (negative || word.ptr[0] == '+') {
		number.ptr++;
		number.len--;
	}
	digits = count_digits(number);
	unit = (struct str){ number.ptr + digits, number.len - digits };
	number.len = digits;
	if (digits > 0 && unit.len == 0)
		return integer_type(negative, false, number);
	if (digits > 0 && (str_eq(unit, STR("L")) || str_eq(unit, STR("LL"))))
		return integer_type(negative, true, number);
	if (is_float((struct str){ number.ptr, digits + unit.len }))
		return CONF_WORD_FLOAT;
	if (digits > 0 && is_letter(unit.ptr[0]))
		return CONF_WORD_UNIT;
	return CONF_WORD_BAD;
}
