/*
 * The text of the control protocol: request and answer lines.
 * Between scalwsctl and the supervisor's control server; both link this.
 * Does no reading or writing, and knows no verb.
 */
#include "src/ipc/control.h"

#include <stdbool.h>
#include <string.h>

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static bool
is_control_byte(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

/* Decode `word` to *to, NUL-terminated, and move *to behind it. */
static int
decode_word(struct str word, char **to, const char **why)
{
	for (size_t i = 0; i < word.len; i++) {
		char c = word.ptr[i];

		if (is_control_byte(c)) {
			*why = "a control byte that is not encoded";
			return -1;
		}
		if (c == '%') {
			int high = -1, low = -1;

			if (word.len - i > 2) {
				high = hex_digit(word.ptr[i + 1]);
				low = hex_digit(word.ptr[i + 2]);
			}
			if (high == -1 || low == -1) {
				*why = "a % without two hexadecimal digits";
				return -1;
			}
			c = (char)(high << 4 | low);
			i += 2;
			if (c == '\0') {
				*why = "an encoded NUL";
				return -1;
			}
		}
		*(*to)++ = c;
	}
	*(*to)++ = '\0';
	return 0;
}

int
control_parse(
    struct str line, struct control_request *request, const char **why)
{
	char *to = request->text;
	struct str word;

	memset(request->args, 0, sizeof(request->args));
	request->verb = NULL;
	request->n_args = 0;
	if (line.len > CONTROL_LINE_MAX) {
		*why = "the line is too long";
		return -1;
	}
	while (str_split(&line, ' ', &word)) {
		const char *start = to;

		if (word.len == 0) {
			*why = "an empty word";
			return -1;
		}
		if (request->n_args == CONTROL_ARGS_MAX) {
			*why = "too many arguments";
			return -1;
		}
		if (decode_word(word, &to, why) == -1)
			return -1;
		if (request->verb == NULL)
			request->verb = start;
		else
			request->args[request->n_args++] = start;
	}
	if (request->verb == NULL) {
		*why = "an empty line";
		return -1;
	}
	return 0;
}

static void
encode_word(struct strbuf *to, const char *word)
{
	static const char digits[] = "0123456789ABCDEF";

	for (; *word != '\0'; word++) {
		unsigned char byte = (unsigned char)*word;
		char code[3] = { '%', digits[byte >> 4], digits[byte & 15] };

		if (*word == ' ' || *word == '%' || is_control_byte(*word))
			strbuf_add(to, code, sizeof(code));
		else
			strbuf_add(to, word, 1);
	}
}

void
control_encode(struct strbuf *to, const char *verb, const char *const *args)
{
	encode_word(to, verb);
	for (; args != NULL && *args != NULL; args++) {
		strbuf_add(to, " ", 1);
		encode_word(to, *args);
	}
	strbuf_add(to, "\n", 1);
}

void
control_put_line(struct strbuf *to, char kind, struct str text)
{
	struct str line;

	if (text.len > 0 && text.ptr[text.len - 1] == '\n')
		text.len--;
	while (str_split(&text, '\n', &line)) {
		strbuf_add(to, &kind, 1);
		strbuf_add(to, " ", 1);
		for (size_t i = 0; i < line.len; i++) {
			char c = line.ptr[i];

			/* What an app printed must not drive a terminal. */
			if (is_control_byte(c) && c != '\t')
				c = '?';
			strbuf_add(to, &c, 1);
		}
		strbuf_add(to, "\n", 1);
	}
}

void
control_put_exit(struct strbuf *to, int code)
{
	strbuf_printf(to, "x %d\n", code);
}

enum control_kind
control_parse_answer(struct str line, struct str *text, int *code)
{
	uint64_t value;

	*text = STR("");
	*code = 0;
	if (line.len < 2 || line.ptr[1] != ' ')
		return CONTROL_BAD;
	text->ptr = line.ptr + 2;
	text->len = line.len - 2;
	switch (line.ptr[0]) {
	case 'o':
		return CONTROL_OUT;
	case 'e':
		return CONTROL_ERR;
	case 'x':
		if (str_to_u64(*text, 255, &value) == -1)
			return CONTROL_BAD;
		*code = (int)value;
		return CONTROL_EXIT;
	default:
		return CONTROL_BAD;
	}
}
