/*
 * Node.js: the entry script itself (never npm), with a preload that redirects
 * the listen() of the app's HTTP server to the inherited unix listener.
 * Called by runtime_build.
 */
#include <stdio.h>

#include "supervisor/runtimes.h"

void
runtime_node(const struct conf_app *conf, const struct runtime_place *place,
    struct spawn_spec *spec)
{
	char text[256];

	words_add(&spec->argv, conf->node != NULL ? conf->node : "node");
	words_add(&spec->argv, "--require");
	words_printf(&spec->argv, "%s/node-preload.js", place->datadir);
	words_add(&spec->argv, conf->script);
	words_add_all(&spec->argv, (const char *const *)conf->arguments);

	runtime_default(spec, "NODE_ENV", "production");
	/* The preload redirects a listen() on this port. One that it does not
	 * see listens there in truth, and is found there. */
	snprintf(text, sizeof(text), "%u", place->port);
	runtime_default(spec, "PORT", text);
	runtime_default(spec, "HOST", "127.0.0.1");
	runtime_default(spec, "HOSTNAME", "127.0.0.1");
	snprintf(
	    text, sizeof(text), "fd:%d:%s", RUNTIME_LISTEN_FD, place->socket);
	spawn_env_set(spec, "SCALWS_LISTEN", text);
	snprintf(text, sizeof(text), "%d", RUNTIME_KEEP_ALIVE_S * 1000);
	runtime_default(spec, "SCALWS_KEEPALIVE_MS", text);
}
