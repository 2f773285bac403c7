/*
 * Configuration files from arbitrary bytes: read, sent, built, checked.
 * What is accepted must print as a text that is accepted and prints the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/arena.h"
#include "src/base/mem.h"
#include "src/conf/conf_flat.h"
#include "src/conf/conf_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As conf_load and conf_from_flat do, but no file is opened. */
static struct conf *
build(const char *text, size_t len)
{
	struct arena *arena = arena_new();
	struct conf_errors errors;
	struct strbuf flat = STRBUF_EMPTY;
	struct conf_node *root;
	struct conf *conf = NULL;

	conf_errors_init(&errors);
	root = conf_read_text(arena, "fuzz", text, len, &errors);
	if (root == NULL && errors.count == 0)
		abort();
	if (root != NULL) {
		conf_flat_write(root, &flat);
		conf = conf_from_flat(flat.ptr, flat.len, &errors);
		if ((conf == NULL) != (errors.count > 0))
			abort();
	}
	strbuf_free(&flat);
	conf_errors_free(&errors);
	arena_free(arena);
	return conf;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf *conf = build((const char *)data, size), *again;
	struct strbuf first = STRBUF_EMPTY, second = STRBUF_EMPTY;

	if (conf == NULL)
		return 0;
	conf_print(conf, &first);
	again = build(first.ptr, first.len);
	if (again == NULL)
		abort();
	conf_print(again, &second);
	if (strcmp(first.ptr, second.ptr) != 0)
		abort();
	strbuf_free(&first);
	strbuf_free(&second);
	conf_free(conf);
	conf_free(again);
	return 0;
}
