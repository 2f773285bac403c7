/*
 * A request's head as it goes to an HTTP/1 application, rebuilt in one pass.
 * For exchange_http1.c and its test. Writes to memory only.
 */
#ifndef UPSTREAM_HTTP1_HEAD_H
#define UPSTREAM_HTTP1_HEAD_H

#include <stddef.h>

#include "proxy/upstream/exchange.h"
#include "src/base/compiler.h"

struct request;

/* Write the head with its empty line. Hop-by-hop fields and those that a
 * CGI-like name could stand for twice are left out; the fields that say where
 * the request came from are ours, the client's own are dropped. Returns its
 * length, or 0 when `room` is too small. */
size_t http1_head_put(char *to, size_t room, const struct request *request,
    const struct exchange_target *target,
    const struct exchange_body *body) MUST_CHECK;
/* Enough room for any head of this request. */
size_t http1_head_bound(const struct request *request,
    const struct exchange_target *target) MUST_CHECK;

#endif
