/*
 * Keys of session tickets (RFC 5077, RFC 8446 section 4.6.1). Made by the
 * supervisor, so that every worker and every proxy opens the tickets of all.
 * Pure functions.
 */
#ifndef CORE_TLS_TICKETS_H
#define CORE_TLS_TICKETS_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/str.h"

#define TLS_TICKET_KEYS_MAX 16
#define TLS_TICKET_NAME_BYTES 16

/* As they stand in a file: 80 bytes each. */
struct tls_ticket_key {
	uint8_t name[TLS_TICKET_NAME_BYTES]; /* goes with the ticket */
	uint8_t hmac[32];                    /* SHA-256 */
	uint8_t aes[32];                     /* AES-256-CBC */
};
_Static_assert(sizeof(struct tls_ticket_key) == 80, "as in the file");

struct tls_tickets {
	unsigned count;
	struct tls_ticket_key keys[TLS_TICKET_KEYS_MAX]; /* newest first */
};

/* -1: the bytes are not 1 to 16 whole keys; nothing is changed. */
int tls_tickets_parse(struct tls_tickets *tickets, struct str bytes) MUST_CHECK;
/* The key that a ticket names, or NULL. */
const struct tls_ticket_key *tls_tickets_find(
    const struct tls_tickets *tickets, const uint8_t *name);

#endif
