/*
 * Max-Forwards: how many proxies an OPTIONS request may still pass.
 * For the gateway, which answers the last one, and for both kinds of heads.
 * Pure.
 */
#ifndef HTTP_MAX_FORWARDS_H
#define HTTP_MAX_FORWARDS_H

#include <stdbool.h>
#include <stdint.h>

#include "proxy/http/h1_parse.h"
#include "src/base/compiler.h"
#include "src/base/str.h"

/* The number, if the field means anything to us (RFC 9110 section 7.6.2: with
 * OPTIONS, and only when it is a number). `base` is the head's. */
bool max_forwards_read(
    const struct h1_request *head, const char *base, uint64_t *left) MUST_CHECK;

/* What the next one is told: one less, or the value as it came when it means
 * nothing to us; nothing (ptr NULL) when there is no such field. `room` has 20
 * bytes. */
struct str max_forwards_next(
    const struct h1_request *head, const char *base, char *room);

#endif
