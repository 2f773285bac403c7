/*
 * Anything else: the command of the configuration, told where to listen by
 * {socket} or {port} in its arguments, PORT, or LISTEN_FDS.
 * Called by runtime_build.
 */
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "supervisor/runtimes.h"

/* `word` with every {socket} and {port} replaced. */
static void
add_word(const char *word, const struct runtime_place *place,
    struct spawn_spec *spec)
{
	struct strbuf text = STRBUF_EMPTY;
	char *made;

	strbuf_add_text(&text, "");
	while (*word != '\0') {
		if (place->socket != NULL &&
		    strncmp(word, "{socket}", 8) == 0) {
			strbuf_add_text(&text, place->socket);
			word += 8;
		} else if (place->port != 0 &&
			   strncmp(word, "{port}", 6) == 0) {
			strbuf_printf(&text, "%u", place->port);
			word += 6;
		} else {
			strbuf_add(&text, word++, 1);
		}
	}
	made = strbuf_take(&text);
	words_add(&spec->argv, made);
	mem_free(made);
}

void
runtime_command(const struct conf_app *conf, const struct runtime_place *place,
    struct spawn_spec *spec)
{
	struct runtime_traits traits;
	char text[16];

	for (const char **word = conf->command; *word != NULL; word++)
		add_word(*word, place, spec);
	for (const char **word = conf->arguments; word != NULL && *word != NULL;
	     word++)
		add_word(*word, place, spec);
	runtime_traits(conf, &traits);
	if (traits.port) {
		snprintf(text, sizeof(text), "%u", place->port);
		runtime_default(spec, "PORT", text);
		runtime_default(spec, "HOST", "127.0.0.1");
	}
	if (traits.listener) {
		spawn_env_set(spec, "LISTEN_FDS", "1");
		spec->listen_pid = true;
	}
}
