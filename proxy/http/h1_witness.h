/*
 * http-parser's word on a head that h1_parse has understood. Built without its
 * strict mode it accepts far too much, so it never decides alone; but a head
 * that it reads differently is one that somebody behind us may read
 * differently too. Pure functions.
 */
#ifndef HTTP_H1_WITNESS_H
#define HTTP_H1_WITNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "proxy/http/h1_parse.h"
#include "proxy/http/headers.h"
#include "src/base/compiler.h"

/* The `used` bytes at `from`, as parsed: the same target, the same values at
 * the same places, version and body? Called for every request (it costs about
 * 3,000 instructions for a small one). */
bool h1_witness_request(const char *from, uint32_t used,
    const struct h1_request *request) MUST_CHECK;
/* The same for an answer. Not called for each: our own applications are behind
 * it, nobody parses an answer again before us, and http-parser's 23
 * instructions a byte would be a third of a proxied request. Unit tests and the
 * fuzz target call it on everything that h1_parse_response accepts. */
bool h1_witness_response(const char *from, uint32_t used,
    const struct h1_response *response) MUST_CHECK;
/* Does a name only begin with Transfer-Encoding? http-parser then believes to
 * have read that field, and refuses a length beside it: a legal head, but one
 * that is not read alike everywhere. */
bool h1_witness_is_misled(const char *from, const struct header_table *headers);

#endif
