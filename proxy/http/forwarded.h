/*
 * Who the client is: the walk over X-Forwarded-For through trusted proxies.
 * Pure functions.
 */
#ifndef HTTP_FORWARDED_H
#define HTTP_FORWARDED_H

#include <stdbool.h>
#include <stddef.h>

#include "proxy/http/headers.h"
#include "src/base/addr.h"

struct forwarded {
	struct addr client; /* port 0 unless it is the peer itself */
	bool is_trusted;    /* the peer is: its fields may be believed */
	bool https;
	struct str host; /* X-Forwarded-Host of a trusted peer; len 0: none */
};

/* Right to left over all X-Forwarded-For fields: the first address that is
 * not trusted is the client; an entry that is no address ends the walk at the
 * last good one. An untrusted peer is the client itself and none of its fields
 * count. `https` starts as what our own listener saw. */
void forwarded_resolve(const struct header_table *headers, const char *base,
    const struct addr *peer, bool https, const struct addr_range *trusted,
    size_t n_trusted, struct forwarded *result);

#endif
