/*
 * The state of a supervisor, from arbitrary bytes.
 * What is accepted must be written as the same text again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/saved.h"
#include "supervisor/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct saved saved, again;
	struct state *state, *second;
	struct str first, text;
	const char *why;

	memset(&saved, 0, sizeof(saved));
	state = state_read((const char *)data, size, &why);
	if ((state == NULL) != (why != NULL))
		abort();
	if (state == NULL)
		return 0;
	if (saved_exchange(&saved, state) == 0) {
		struct state *out = state_write(), *third = state_write();

		if (saved_exchange(&saved, out) == -1)
			abort();
		first = state_text(out);
		memset(&again, 0, sizeof(again));
		second = state_read(first.ptr, first.len, &why);
		if (second == NULL || saved_exchange(&again, second) == -1 ||
		    saved_exchange(&again, third) == -1)
			abort();
		text = state_text(third);
		if (!str_eq(first, text))
			abort();
		saved_free(&again);
		state_free(&out);
		state_free(&second);
		state_free(&third);
	} else if (state_error(state) == NULL) {
		abort();
	}
	saved_free(&saved);
	state_free(&state);
	return 0;
}
