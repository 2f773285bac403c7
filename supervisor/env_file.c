/*
 * Reads files of variables: NAME=value, "#" comments, quotes around a value.
 * Called by app.c at each start and restart of an app, so that secrets need
 * not be in the configuration. Nothing is expanded; values are not logged.
 */
#include "supervisor/env_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/base/fdutil.h"
#include "src/base/mem.h"
#include "src/base/str.h"

#define FILE_BYTES_MAX (1024 * 1024)
#define NAME_BYTES_MAX 255

static bool
is_name(struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];
		bool letter = (c >= 'A' && c <= 'Z') ||
			      (c >= 'a' && c <= 'z') || c == '_';

		if (!letter && (i == 0 || c < '0' || c > '9'))
			return false;
	}
	return name.len > 0 && name.len <= NAME_BYTES_MAX;
}

static struct str
trim(struct str text)
{
	while (text.len > 0 && strchr(" \t", text.ptr[0]) != NULL) {
		text.ptr++;
		text.len--;
	}
	while (text.len > 0 && strchr(" \t\r", text.ptr[text.len - 1]) != NULL)
		text.len--;
	return text;
}

/* 'as it is', "as it is", or as it is. */
static int
unquote(struct str *value)
{
	char quote = value->len > 0 ? value->ptr[0] : '\0';

	if (quote != '"' && quote != '\'')
		return 0;
	if (value->len < 2 || value->ptr[value->len - 1] != quote)
		return -1;
	value->ptr++;
	value->len -= 2;
	return 0;
}

/* NULL, or what is wrong with the line. */
static const char *
take_line(struct str line, struct words *to)
{
	struct str name, value;
	const char *sign;

	line = trim(line);
	if (line.len == 0 || line.ptr[0] == '#')
		return NULL;
	if (str_starts_with(line, STR("export ")))
		line = trim((struct str){ line.ptr + 7, line.len - 7 });
	sign = memchr(line.ptr, '=', line.len);
	if (sign == NULL)
		return "no NAME=value";
	name = trim((struct str){ line.ptr, (size_t)(sign - line.ptr) });
	value = trim(
	    (struct str){ sign + 1, line.len - (size_t)(sign - line.ptr) - 1 });
	if (!is_name(name))
		return "no name of a variable";
	if (unquote(&value) == -1)
		return "a quote is not closed";
	words_printf(to, "%.*s=%.*s", (int)name.len, name.ptr, (int)value.len,
	    value.ptr);
	return NULL;
}

int
env_file_parse(
    const char *text, size_t len, struct words *to, char *why, size_t why_size)
{
	struct str rest = { text, len }, line;
	unsigned number = 0;

	if (memchr(text, '\0', len) != NULL) {
		snprintf(why, why_size, "it is no text");
		return -1;
	}
	while (str_split(&rest, '\n', &line)) {
		const char *wrong = take_line(line, to);

		number++;
		if (wrong == NULL)
			continue;
		snprintf(why, why_size, "line %u: %s", number, wrong);
		return -1;
	}
	return 0;
}

int
env_file_read(const char *path, struct words *to, char *why, size_t why_size)
{
	char *text = NULL, wrong[80];
	size_t len;
	int result;

	if (fd_read_file(path, FILE_BYTES_MAX, &text, &len) == -1) {
		snprintf(why, why_size, "%s: %s", path, strerror(errno));
		return -1;
	}
	result = env_file_parse(text, len, to, wrong, sizeof(wrong));
	if (result == -1)
		snprintf(why, why_size, "%s: %s", path, wrong);
	explicit_bzero(text, len);
	mem_free(text);
	return result;
}
