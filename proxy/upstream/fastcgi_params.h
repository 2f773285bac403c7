/*
 * The parameters of a FastCGI request: what a CGI program knows of it.
 * For exchange_fastcgi.c and its test. Writes to memory only.
 */
#ifndef UPSTREAM_FASTCGI_PARAMS_H
#define UPSTREAM_FASTCGI_PARAMS_H

#include <stddef.h>

#include "fcgi/fcgi.h"
#include "proxy/upstream/exchange.h"
#include "src/base/compiler.h"

struct request;

/* Add all parameters (RFC 3875 section 4.1, and what PHP expects beyond). What
 * the client sent appears as HTTP_... only, never hop-by-hop fields, Proxy, odd
 * names or claims about where it came from. Fields that occur twice become one
 * value. */
void fastcgi_params_put(struct fcgi_params *params,
    const struct request *request, const struct exchange_target *target,
    const struct exchange_body *body);

#endif
