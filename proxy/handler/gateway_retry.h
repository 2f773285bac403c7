/*
 * May a failed attempt be repeated, and what is a client told if not?
 * A table of its own, because a POST sent twice is money spent twice.
 * Pure.
 */
#ifndef HANDLER_GATEWAY_RETRY_H
#define HANDLER_GATEWAY_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "proxy/upstream/exchange.h"

#define GATEWAY_TRIES_MAX 3
/* When it is certain that no process of an app has seen it. */
#define GATEWAY_APP_TRIES_MAX 6

struct attempt_end {
	enum exchange_failure failure;
	unsigned tries;     /* begun so far, this one included */
	bool was_kept;      /* on a connection that had served before */
	bool sent_bytes;    /* something of the request has left us */
	bool got_bytes;     /* of an answer */
	bool is_answered;   /* the client has been sent a head */
	bool is_idempotent; /* RFC 9110 section 9.2.2 */
	bool is_whole;      /* the body can be sent again from its start */
};

/* Repeated only when nothing of an answer came, the body is still here, and
 * either nothing was sent (or seen), or repeating does no harm and the
 * connection had
 * been kept, so that it may just have been too old. A fresh one that was closed
 * without an answer may mean that the request itself kills the process. */
bool gateway_may_retry(const struct attempt_end *end);
/* 502 or 504. */
unsigned gateway_status(enum exchange_failure failure);

#endif
