/*
 * RFC 9110 section 7.6.2, for OPTIONS; TRACE is not served at all.
 * Called where a request goes on, and where it would.
 * Writes no field.
 */
#include "proxy/http/max_forwards.h"

static const struct header_field *
find(const struct h1_request *head)
{
	return header_get(&head->headers, HEADER_MAX_FORWARDS);
}

bool
max_forwards_read(
    const struct h1_request *head, const char *base, uint64_t *left)
{
	const struct header_field *field = find(head);

	return field != NULL && head->method == METHOD_OPTIONS &&
	       str_to_u64(header_value(base, field), UINT64_MAX, left) == 0;
}

struct str
max_forwards_next(const struct h1_request *head, const char *base, char *room)
{
	const struct header_field *field = find(head);
	uint64_t left;

	if (LIKELY(field == NULL))
		return (struct str){ NULL, 0 };
	if (!max_forwards_read(head, base, &left) || left == 0)
		return header_value(base, field);
	return (struct str){ room, str_put_u64(room, left - 1) };
}
