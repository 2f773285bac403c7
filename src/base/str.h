/*
 * Bounded strings and numbers as text, without locale and without printf.
 * Pure functions, any thread.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/compiler.h"

/* A piece of text that somebody else owns; not NUL-terminated. */
struct str {
	const char *ptr;
	size_t len;
};

#define STR(literal) ((struct str){ (literal), sizeof(literal) - 1 })

static inline struct str
str_of(const char *text)
{
	return (struct str){ text, strlen(text) };
}

static inline bool
str_eq(struct str a, struct str b)
{
	/* An empty text may have no pointer, which memcmp must not see. */
	return a.len == b.len &&
	       (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* ASCII letters compared without case. */
bool str_eq_nocase(struct str a, struct str b);
bool str_starts_with(struct str text, struct str prefix);
bool str_ends_with(struct str text, struct str suffix);
/* Without spaces and tabs at both ends. */
struct str str_trim(struct str text);
/* Cut off the part before the first `sep` (all of it when there is none) and
 * return it; `rest` is moved behind the separator. False when `rest` was used
 * up before the call: `rest->ptr` is NULL then. An empty text gives one empty
 * part. */
bool str_split(struct str *rest, char sep, struct str *part);
/* Lower the ASCII letters of `len` bytes from `from` to `to` (may be equal). */
void str_lower(char *to, const char *from, size_t len);

/* Decimal digits only, the whole text, no sign, no space; -1 if it is none or
 * above `max`. */
int str_to_u64(struct str text, uint64_t max, uint64_t *value) MUST_CHECK;

/* Write `value` in decimal without a NUL; returns the length. `to` has room
 * for 20 bytes. */
size_t str_put_u64(char *to, uint64_t value);
/* Lower-case hexadecimal without leading zeros, room for 16 bytes. */
size_t str_put_hex(char *to, uint64_t value);
/* Lines as one line, "; " between them, cut at `room` bytes with the NUL. */
void str_put_line(char *to, size_t room, const char *lines);

/* How many single edits turn a into b; for "did you mean". Texts over 63
 * bytes count as far apart. */
unsigned str_distance(const char *a, const char *b);

#endif
