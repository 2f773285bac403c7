/*
 * The text that the supervisor sends, from arbitrary bytes.
 * What is accepted must be written as a text that is accepted again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/conf/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf_errors errors;
	struct strbuf first = STRBUF_EMPTY, second = STRBUF_EMPTY;
	struct conf *conf, *again;

	conf_errors_init(&errors);
	conf = conf_from_flat((const char *)data, size, &errors);
	if ((conf == NULL) != (errors.count > 0))
		abort();
	if (conf != NULL) {
		conf_to_flat(conf, &first);
		again = conf_from_flat(first.ptr, first.len, &errors);
		if (again == NULL)
			abort();
		conf_to_flat(again, &second);
		if (strcmp(first.ptr, second.ptr) != 0)
			abort();
		conf_free(again);
	}
	conf_free(conf);
	strbuf_free(&first);
	strbuf_free(&second);
	conf_errors_free(&errors);
	return 0;
}
