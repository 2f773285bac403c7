/*
 * For fuzz_h2_conn.c: is what a server says HTTP/2, whatever its client said?
 */
#ifndef FUZZ_H2_SAID_H
#define FUZZ_H2_SAID_H

#include <stddef.h>

/* A new connection. */
void h2_said_begin(void);
/* The next bytes of it; aborts when a server may not say that. */
void h2_said(const char *from, size_t len);
void h2_said_end(void);

#endif
