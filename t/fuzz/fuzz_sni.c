/*
 * Fuzz target: the server_name extension of a client's handshake.
 * What is taken is a whole, lower-case name that is where it says it is.
 */
#include <stdlib.h>
#include <string.h>

#include "proxy/core/tls_names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TLS_NAME_MAX + 1];
	struct str name;

	if (tls_names_parse(data, size, text, &name) == -1)
		return 0;
	if (name.len == 0 || name.len + 5 != size || strlen(text) != name.len ||
	    name.ptr != text)
		abort();
	for (size_t i = 0; i < name.len; i++)
		if (text[i] <= ' ' || text[i] >= 0x7f ||
		    (text[i] >= 'A' && text[i] <= 'Z'))
			abort();
	return 0;
}
