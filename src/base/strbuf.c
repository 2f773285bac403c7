/*
 * Text that grows by doubling.
 * For documents made in one go. Not for the hot path; does not stream.
 */
#include "src/base/strbuf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

/* Room for `more` bytes and a NUL. */
static void
reserve(struct strbuf *buf, size_t more)
{
	size_t room = buf->room == 0 ? 64 : buf->room;

	if (more > SIZE_MAX / 4 || buf->len > SIZE_MAX / 4)
		abort();
	if (buf->ptr != NULL && buf->room - buf->len > more)
		return;
	while (room - buf->len <= more)
		room *= 2;
	buf->ptr = mem_realloc(buf->ptr, room, 1);
	buf->room = room;
}

void
strbuf_add(struct strbuf *buf, const char *from, size_t len)
{
	reserve(buf, len);
	if (len > 0)
		memcpy(buf->ptr + buf->len, from, len);
	buf->len += len;
	buf->ptr[buf->len] = '\0';
}

void
strbuf_add_text(struct strbuf *buf, const char *text)
{
	strbuf_add(buf, text, strlen(text));
}

void
strbuf_printf(struct strbuf *buf, const char *fmt, ...)
{
	va_list args;
	char *text = NULL;
	int len;

	va_start(args, fmt);
	len = vasprintf(&text, fmt, args);
	va_end(args);
	if (len == -1)
		abort();
	strbuf_add(buf, text, (size_t)len);
	free(text);
}

char *
strbuf_take(struct strbuf *buf)
{
	char *text = buf->ptr == NULL ? mem_strdup("") : buf->ptr;

	*buf = STRBUF_EMPTY;
	return text;
}

void
strbuf_free(struct strbuf *buf)
{
	mem_free(buf->ptr);
	*buf = STRBUF_EMPTY;
}
