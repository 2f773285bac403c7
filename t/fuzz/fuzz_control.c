/*
 * Control protocol lines from arbitrary bytes, as request and as answer.
 * A request that is understood must say the same after encoding it again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/ipc/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_request(struct str line)
{
	static struct control_request first, second;
	struct strbuf again = STRBUF_EMPTY;
	const char *why = NULL;

	if (control_parse(line, &first, &why) == -1) {
		if (why == NULL)
			abort();
		return;
	}
	control_encode(&again, first.verb, first.args);
	/* What is decoded is never longer than the line it came from, but its
	 * encoding may be. */
	if (again.len - 1 <= CONTROL_LINE_MAX) {
		struct str text = { again.ptr, again.len - 1 };

		if (control_parse(text, &second, &why) == -1 ||
		    second.n_args != first.n_args ||
		    strcmp(second.verb, first.verb) != 0)
			abort();
		for (size_t i = 0; i < first.n_args; i++)
			if (strcmp(first.args[i], second.args[i]) != 0)
				abort();
	}
	strbuf_free(&again);
}

static void
check_output(struct str text)
{
	struct strbuf lines = STRBUF_EMPTY;
	struct str rest, line;
	int code;

	control_put_line(&lines, 'o', text);
	if (lines.len < 3 || lines.ptr[lines.len - 1] != '\n')
		abort();
	rest = (struct str){ lines.ptr, lines.len - 1 };
	while (str_split(&rest, '\n', &line)) {
		struct str shown;

		if (control_parse_answer(line, &shown, &code) != CONTROL_OUT)
			abort();
	}
	strbuf_free(&lines);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str line = { (const char *)data, size };
	struct str text;
	int code;

	check_request(line);
	check_output(line);
	switch (control_parse_answer(line, &text, &code)) {
	case CONTROL_OUT:
	case CONTROL_ERR:
	case CONTROL_EXIT:
	case CONTROL_BAD:
		break;
	}
	return 0;
}
