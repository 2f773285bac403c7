/*
 * For fuzz_h2_conn.c: what stands in for an app behind the proxy's front. Takes
 * each request, and does with it what a byte of the input says.
 */
#ifndef FUZZ_H2_APP_H
#define FUZZ_H2_APP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/core/handler.h"

#define H2_APP_PLANS 4

/* A plan. When the answer comes: */
#define H2_APP_WHEN 0x03u
enum h2_app_when {
	H2_APP_AT_ONCE,
	H2_APP_LATER, /* some rounds of the loop later */
	H2_APP_ON_BODY,
	H2_APP_AFTER_BODY,
};
/* What it is: */
#define H2_APP_WHAT(plan) ((plan) >> 2 & 7u)
enum h2_app_what {
	H2_APP_FIXED,      /* the snapshot's own */
	H2_APP_NO_CONTENT, /* the same, without a body */
	H2_APP_ERROR,
	H2_APP_HEAD, /* with length 0 */
	/* To who asks for a WebSocket these are a tunnel that echoes: */
	H2_APP_LARGE,   /* of known length */
	H2_APP_TRAILED, /* of unknown length, with fields behind it */
	H2_APP_ECHO,
	H2_APP_CUT, /* cannot be completed */
};
#define H2_APP_TAKES_BODY 0x20u
#define H2_APP_TAKES_HALVES 0x40u
/* Says 103 first, writes small pieces, and shuts down before it ends. */
#define H2_APP_IS_ODD 0x80u

extern const struct handler_ops h2_app;

/* From now on the n-th request is answered by plans[n % H2_APP_PLANS]. */
void h2_app_begin(const uint8_t plans[H2_APP_PLANS]);
/* The loop has gone round: what was to be done later. */
void h2_app_round(void);
/* Nothing is under way. */
bool h2_app_is_idle(void);

#endif
