/*
 * Text that grows: for control answers, status documents, generated files.
 * Not for the hot path. One owner, one thread.
 */
#ifndef BASE_STRBUF_H
#define BASE_STRBUF_H

#include <stddef.h>

#include "src/base/compiler.h"
#include "src/base/str.h"

struct strbuf {
	char *ptr; /* NUL-terminated once anything was added, else NULL */
	size_t len;
	size_t room;
};

#define STRBUF_EMPTY ((struct strbuf){ NULL, 0, 0 })

void strbuf_add(struct strbuf *buf, const char *from, size_t len);
void strbuf_add_text(struct strbuf *buf, const char *text);
void strbuf_printf(struct strbuf *buf, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The text (never NULL); the caller frees it with mem_free, `buf` is empty. */
char *strbuf_take(struct strbuf *buf) MUST_CHECK;
void strbuf_free(struct strbuf *buf);

#endif
