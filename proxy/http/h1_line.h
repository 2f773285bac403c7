/*
 * The first line of an HTTP/1 head: request line or status line.
 * Called by h1_parse.c on a line that went through h1_gate_scan. Pure.
 */
#ifndef HTTP_H1_LINE_H
#define HTTP_H1_LINE_H

#include <stdint.h>

#include "proxy/http/h1_parse.h"
#include "src/base/compiler.h"

/* Methods with more bytes are answered 501 (RFC 9112 section 3). */
#define H1_METHOD_MAX 32

/* The line from `start` to `end`, which a CR follows. Fills method, minor,
 * form, target, path, query, and host of an absolute-form. Returns 0, or -1
 * with *status (400, 501, 505) and *why (static text). */
int h1_line_request(const char *from, uint32_t start, uint32_t end,
    struct h1_request *request, unsigned *status, const char **why) MUST_CHECK;

/* "HTTP/1.1 200 OK"; the reason may be missing, with the space before it too.
 * Fills status, minor and reason. -1: *why. */
int h1_line_status(const char *from, uint32_t start, uint32_t end,
    struct h1_response *response, const char **why) MUST_CHECK;

/* "200" or "200 OK", status 100 to 599: the end of a status line, and the value
 * of a CGI Status field. -1: it is not. */
int h1_line_code(const char *from, uint32_t start, uint32_t end,
    struct h1_response *response) MUST_CHECK;

#endif
