/*
 * The strict gate: what every byte of an HTTP/1 head must be.
 * Runs before http-parser and fills the header table; h1_parse.c then has
 * http-parser confirm it and looks at what the fields mean. Pure functions.
 */
#ifndef HTTP_H1_GATE_H
#define HTTP_H1_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/http/headers.h"
#include "src/base/compiler.h"

/* Start line, fields, and the empty line. */
#define H1_GATE_LINES_MAX (HEADER_FIELDS_MAX + 2)

/* Where the lines of a head end. Offsets from the buffer's first byte. */
struct h1_lines {
	uint32_t count;                  /* the empty one not counted */
	uint32_t end[H1_GATE_LINES_MAX]; /* of the text: at CR (or LF) */
	uint32_t used;                   /* behind the empty line */
};

enum h1_scan {
	H1_SCAN_MORE,
	H1_SCAN_DONE,
	H1_SCAN_BAD,      /* a bare CR or LF, a control byte, DEL */
	H1_SCAN_TOO_MANY, /* lines */
};

/* Look for the empty line that ends a head which began at or before `*at`,
 * refusing bytes that no line may hold (HTAB may, RFC 9110 section 5.5). *at is
 * moved to where the next call must go on. Only when *at was the head's first
 * byte do `lines` tell all of it. `lf_ends`: LF alone ends a line (CGI). */
enum h1_scan h1_gate_scan(const char *from, uint32_t len, uint32_t *at,
    bool lf_ends, struct h1_lines *lines) MUST_CHECK;

/* The field lines, `lines->end[first]` being the end of the first of them,
 * which starts at `start`. They went through h1_gate_scan and are no more than
 * HEADER_FIELDS_MAX. Returns NULL, or what is wrong (static text, the table's
 * content is undefined then): no token as the name, space before the colon,
 * obs-fold, a name over 65535 bytes, a second Host, Content-Length or
 * Transfer-Encoding. */
const char *h1_gate_fields(const char *from, const struct h1_lines *lines,
    uint32_t first, uint32_t start, struct header_table *table) MUST_CHECK;

/* "HTTP/1.0" or "HTTP/1.1": 0 or 1. "HTTP/d.d": -505. Else -400. */
int h1_gate_version(const char *from, size_t len) MUST_CHECK;

#endif
