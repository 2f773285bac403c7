/*
 * Keys of session tickets: read and found. Used by tls_worker.c.
 * When they change is the supervisor's.
 */
#include "proxy/core/tls_tickets.h"

#include <string.h>

int
tls_tickets_parse(struct tls_tickets *tickets, struct str bytes)
{
	size_t count = bytes.len / sizeof(struct tls_ticket_key);

	if (count == 0 || count > TLS_TICKET_KEYS_MAX ||
	    bytes.len % sizeof(struct tls_ticket_key) != 0)
		return -1;
	tickets->count = (unsigned)count;
	memcpy(tickets->keys, bytes.ptr, bytes.len);
	return 0;
}

const struct tls_ticket_key *
tls_tickets_find(const struct tls_tickets *tickets, const uint8_t *name)
{
	for (unsigned i = 0; i < tickets->count; i++)
		if (memcmp(tickets->keys[i].name, name,
			TLS_TICKET_NAME_BYTES) == 0)
			return &tickets->keys[i];
	return NULL;
}
