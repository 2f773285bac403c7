/*
 * Names in handshakes. Used by tls_worker.c (what a client asks for) and
 * tls_site.c (what to show it). Looks at no certificate itself.
 */
#include "proxy/core/tls_names.h"

#include <string.h>

/* Of a list of (type 1, length 2, name); HostName is type 0. Only one name of
 * a type may be there, and no other type exists. */
int
tls_names_parse(const uint8_t *bytes, size_t len, char to[TLS_NAME_MAX + 1],
    struct str *name)
{
	size_t list, host;

	if (len < 5)
		return -1;
	list = (size_t)bytes[0] << 8 | bytes[1];
	host = (size_t)bytes[3] << 8 | bytes[4];
	if (list != len - 2 || bytes[2] != 0 || host != len - 5 || host == 0 ||
	    host > TLS_NAME_MAX)
		return -1;
	for (size_t i = 0; i < host; i++)
		if (bytes[5 + i] <= ' ' || bytes[5 + i] >= 0x7f)
			return -1;
	str_lower(to, (const char *)bytes + 5, host);
	to[host] = '\0';
	*name = (struct str){ to, host };
	return 0;
}

static uint64_t
first_of_each(const int *kinds, unsigned count, uint64_t among)
{
	uint64_t chosen = 0;

	for (unsigned i = 0; i < count; i++) {
		bool is_there = false;

		if ((among & UINT64_C(1) << i) == 0)
			continue;
		for (unsigned j = 0; j < i; j++)
			is_there |= (chosen & UINT64_C(1) << j) != 0 &&
				    kinds[j] == kinds[i];
		if (!is_there)
			chosen |= UINT64_C(1) << i;
	}
	return chosen;
}

uint64_t
tls_names_choose(const int *kinds, unsigned count, uint64_t for_name)
{
	return first_of_each(
	    kinds, count, for_name != 0 ? for_name : UINT64_MAX);
}
