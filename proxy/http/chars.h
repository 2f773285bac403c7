/*
 * Which byte may stand where: one table of classes for heads and targets.
 * Read by the gate, the chunk reader and uri.c. No state.
 */
#ifndef HTTP_CHARS_H
#define HTTP_CHARS_H

#include <stdbool.h>
#include <stdint.h>

#define CHAR_TOKEN 1u   /* RFC 9110 section 5.6.2: tchar */
#define CHAR_PLAIN 2u   /* letters, digits, '-': a CGI-safe field name */
#define CHAR_PATH 4u    /* taken in a path, see chars.c */
#define CHAR_QUERY 8u   /* taken in a query, see chars.c */
#define CHAR_PCHAR 16u  /* RFC 3986 section 3.3 without '%'; and '/' */
#define CHAR_HOST 32u   /* in a label of a host name */
#define CHAR_QUOTED 64u /* RFC 9110 section 5.6.4: qdtext */
#define CHAR_TEXT 128u  /* HTAB, SP, VCHAR, obs-text: in a field value */

extern const uint8_t char_class[256];

static inline bool
char_is(char c, unsigned classes)
{
	return (char_class[(unsigned char)c] & classes) != 0;
}

/* The value of a hexadecimal digit, or -1. */
static inline int
char_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
