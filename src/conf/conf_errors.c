/*
 * Findings about a configuration: collected, numbered, cut at a limit.
 * Used by every step from reading to checking. Prints nothing itself.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/conf/conf.h"

void
conf_errors_init(struct conf_errors *errors)
{
	*errors = (struct conf_errors){ .count = 0 };
}

void
conf_errors_free(struct conf_errors *errors)
{
	strbuf_free(&errors->text);
	strbuf_free(&errors->warnings_text);
}

/* Text of the file goes into messages, and messages go to terminals. */
static void
add_printable(struct strbuf *to, const char *text)
{
	size_t len = strlen(text), start = to->len;

	strbuf_add(to, text, len);
	for (size_t i = start; i < to->len; i++) {
		unsigned char byte = (unsigned char)to->ptr[i];

		if (byte < 0x20 || byte == 0x7f)
			to->ptr[i] = '?';
	}
}

/* "file:line: kind: path: message: reason\n", each part only where there is
 * one.
 */
static void PRINTF_LIKE(6, 0) add_line(struct strbuf *to,
    const struct conf_where *where, const char *kind, const char *path,
    const char *reason, const char *fmt, va_list args)
{
	char *message = NULL;

	if (vasprintf(&message, fmt, args) == -1)
		abort();
	if (where != NULL && where->file != NULL && where->file[0] != '\0') {
		add_printable(to, where->file);
		if (where->line > 0)
			strbuf_printf(to, ":%d", where->line);
		strbuf_add_text(to, ": ");
	}
	strbuf_add_text(to, kind);
	if (path != NULL && path[0] != '\0') {
		add_printable(to, path);
		strbuf_add_text(to, ": ");
	}
	add_printable(to, message);
	if (reason != NULL) {
		strbuf_add_text(to, ": ");
		add_printable(to, reason);
	}
	strbuf_add_text(to, "\n");
	free(message);
}

/* Replace the last line, which counts what was left out. */
static void
count_more(struct strbuf *text, int more)
{
	if (more > 1) {
		text->len--;
		while (text->len > 0 && text->ptr[text->len - 1] != '\n')
			text->len--;
		text->ptr[text->len] = '\0';
	}
	strbuf_printf(text, "and %d more like these\n", more);
}

static int PRINTF_LIKE(5, 0)
    add_error(struct conf_errors *errors, const struct conf_where *where,
	const char *path, const char *reason, const char *fmt, va_list args)
{
	errors->count++;
	if (errors->count > CONF_ERRORS_MAX)
		count_more(&errors->text, errors->count - CONF_ERRORS_MAX);
	else
		add_line(&errors->text, where, "", path, reason, fmt, args);
	return -1;
}

int
conf_errors_add(struct conf_errors *errors, const struct conf_where *where,
    const char *path, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	add_error(errors, where, path, NULL, fmt, args);
	va_end(args);
	return -1;
}

int
conf_errors_add_errno(struct conf_errors *errors,
    const struct conf_where *where, const char *path, const char *fmt, ...)
{
	char room[128];
	const char *reason = strerror_r(errno, room, sizeof(room));
	va_list args;

	va_start(args, fmt);
	add_error(errors, where, path, reason, fmt, args);
	va_end(args);
	return -1;
}

void
conf_errors_warn(struct conf_errors *errors, const struct conf_where *where,
    const char *path, const char *fmt, ...)
{
	va_list args;

	errors->warnings++;
	va_start(args, fmt);
	if (errors->warnings > CONF_ERRORS_MAX)
		count_more(
		    &errors->warnings_text, errors->warnings - CONF_ERRORS_MAX);
	else
		add_line(&errors->warnings_text, where, "warning: ", path, NULL,
		    fmt, args);
	va_end(args);
}
