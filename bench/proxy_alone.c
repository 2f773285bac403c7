/*
 * Runs the proxy alone, without supervisor and apps, for measurements:
 *
 *	bench/proxy_alone [-w WORKERS] [-n] [CONF]     -n: no TCP_DEFER_ACCEPT
 *
 * Prints the port and serves until its input ends. CONF is the text of a
 * configuration with "PORT" where the port belongs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/strbuf.h"
#include "t/unit/proxy_driver.h"

static const char preset[] =
    "workers = WORKERS; defer_accept = DEFER; access_log = \"none\";\n"
    "sites = ( { names = [ \"example.com\" ]; listen = [ \"127.0.0.1:PORT\" "
    "];\n"
    "  routes = ( { path = \"/healthz\";\n"
    "    respond = { status = 200; body = \"ok\\n\"; }; } ); } );\n";

static char *
fill_in(const char *text, const char *name, const char *value)
{
	struct strbuf to = STRBUF_EMPTY;
	const char *at;

	while ((at = strstr(text, name)) != NULL) {
		strbuf_add(&to, text, (size_t)(at - text));
		strbuf_add_text(&to, value);
		text = at + strlen(name);
	}
	strbuf_add_text(&to, text);
	return strbuf_take(&to);
}

int
main(int argc, char **argv)
{
	static struct driver driver;
	const char *workers = "1", *defer = "true", *why;
	char port[16], *text;
	int option;

	while ((option = getopt(argc, argv, "w:n")) != -1) {
		if (option == 'w')
			workers = optarg;
		else
			defer = "false";
	}
	snprintf(port, sizeof(port), "%d",
	    driver_port(&driver, (unsigned)atoi(workers), *defer == 't'));
	text = fill_in(optind < argc ? argv[optind] : preset, "PORT", port);
	text = fill_in(text, "WORKERS", workers);
	text = fill_in(text, "DEFER", defer);
	driver_start(&driver);
	why = driver_configure(&driver, text);
	if (why != NULL) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	printf("%s %d\n", port, (int)driver.pid);
	fflush(stdout);
	while (getchar() != EOF)
		continue;
	return driver_stop(&driver, 1000) == 0 ? 0 : 1;
}
