/*
 * Which name a client asks for, and which certificates are for a name.
 * Pure functions; they see bytes of clients.
 */
#ifndef CORE_TLS_NAMES_H
#define CORE_TLS_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/str.h"

#define TLS_NAME_MAX 255

/* The host name in the body of a server_name extension (RFC 6066 section 3),
 * lower case, into `to`. 0 and *name; -1: malformed, or no name that a host can
 * have. */
int tls_names_parse(const uint8_t *bytes, size_t len, char to[TLS_NAME_MAX + 1],
    struct str *name) MUST_CHECK;

/* Of `count` (at most 64) certificates, as bits: the first of each kind of key
 * among those that are `for_name`; none is: the first of each kind. */
uint64_t tls_names_choose(
    const int *kinds, unsigned count, uint64_t for_name) MUST_CHECK;

#endif
