/*
 * Unit tests of src/conf: files that are right, what they become, and the
 * ways to print, send and compare it. What is wrong is in test_conf_bad.c.
 * Run by make check, as any user. Writes below a directory in /tmp.
 */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fdutil.h"
#include "src/base/mem.h"
#include "src/conf/conf.h"
#include "src/conf/conf_number.h"
#include "src/conf/conf_schema.h"
#include "t/unit/conf_files.h"
#include "t/unit/run.h"

#define USER "user = \"www-data\";\n"
#define SITE                                            \
	"sites = ( { listen = [ \"127.0.0.1:8080\" ]; " \
	"routes = ( { respond = { body = \"hi\"; }; } ); } );\n"

/* For texts that must be right; prints what is not. */
static struct conf *
load(const char *text)
{
	struct conf_errors errors;
	struct conf *conf;

	conf_files_write("scalws.conf", text);
	conf_errors_init(&errors);
	conf = conf_load("scalws.conf", &errors);
	if (conf == NULL)
		ck_abort_msg("%s\n%s", errors.text.ptr, text);
	conf_errors_free(&errors);
	return conf;
}

static char *
print(const struct conf *conf)
{
	struct strbuf text = STRBUF_EMPTY;

	conf_print(conf, &text);
	return strbuf_take(&text);
}

/* Every kind of value once. */
static const char everything[] =
    USER "workers = 3; log_level = \"debug\";\n"
	 "access_log_format = \"json\"; error_log = \"/var/log/e.log\";\n"
	 "trusted_proxies = [ \"10.0.0.0/8\", \"fd00::/8\", \"unix\" ];\n"
	 "limits = { connections = 100; body_bytes = \"5G\"; "
	 "send_timeout = \"1500ms\"; };\n"
	 "run_directory = \"/run/test\"; log_directory = \"/var/log/test\";\n"
	 "apps = {\n"
	 "api = { user = \"nobody\"; runtime = \"python\"; directory = \"/\";\n"
	 "  venv = \"srv/v\"; module = \"pkg.main:app\"; factory = true;\n"
	 "  processes = 2; umask = \"0027\"; nice = -5;\n"
	 "  environment = { A = \"x \\\"y\\\"\\n\"; PORT = 80; };\n"
	 "  limits = { nofile = 4096; core = 0; as = \"1G:unlimited\"; };\n"
	 "  arguments = [ \"--root-path\", \"/api\" ];\n"
	 "  stop_signal = \"SIGINT\"; };\n"
	 "wsgi = { user = \"nobody\"; runtime = \"python\"; "
	 "directory = \"/\";\n"
	 "  server = \"gunicorn\"; module = \"m:a\"; };\n"
	 "shop = { user = \"nobody\"; runtime = \"node\"; "
	 "script = \"/srv/shop/s.js\"; directory = \"/tmp\";\n"
	 "  environment = [ \"_X=1\", \"Y=a=b\" ]; };\n"
	 "blog = { user = \"nobody\"; runtime = \"php\"; root = \"/\";\n"
	 "  children = 3; ini = [ \"opcache.enable=1\" ]; };\n"
	 "plain = { user = \"nobody\"; runtime = \"php\"; root = \"/\";\n"
	 "  front_controller = \"none\"; };\n"
	 "job = { user = \"nobody\"; runtime = \"command\"; http = false;\n"
	 "  command = [ \"/bin/sleep\", \"\" ]; };\n"
	 "};\n"
	 "upstreams = { old = { peers = ( \"unix:/run/x.sock\",\n"
	 "  { address = \"[::1]:80\"; weight = 2; } ); };\n"
	 "secure = { protocol = \"https\"; peers = ( \"10.0.0.3:443\" );\n"
	 "  tls = { server_name = \"s.example\"; min_version = \"1.3\"; }; "
	 "};\n"
	 "named = { protocol = \"https\"; peers = ( \"10.0.0.3:443\" ); "
	 "}; };\n"
	 "sites = (\n"
	 "{ names = [ \"Example.COM\", \"*.example.com\", \"[::1]\" ];\n"
	 "  listen = [ \"80\", \"unix:/run/l.sock\" ];\n"
	 "  routes = (\n"
	 "  { path = \"/a\"; respond = { status = 204; }; },\n"
	 "  { path = [ \"/b/*\", \"*.php\" ]; methods = [ \"GET\", "
	 "\"HEAD\" ];\n"
	 "    redirect = { location = \"https://{host}{path}\"; }; },\n"
	 "  { path = \"/c/*\"; app = \"api\"; strip_prefix = \"/c\";\n"
	 "    max_body_bytes = 0; },\n"
	 "  { path = \"/d\"; status = true;\n"
	 "    response_headers = { X-Foo = \"bar\"; Cache-Control = "
	 "\"no-store\"; }; },\n"
	 "  { path = \"/e\"; upstream = \"old\"; },\n"
	 "  { app = \"blog\"; } ); },\n"
	 "{ listen = \"80\"; default = true; access_log = \"/tmp/a.log\";\n"
	 "  routes = ( { app = \"shop\"; } ); }\n"
	 ");\n";

START_TEST(a_small_file_is_enough)
{
	struct conf *conf = load(USER SITE);
	const struct conf_route *route = &conf->sites[0].routes[0];

	ck_assert_uint_ge(conf->workers, 1);
	ck_assert_uint_eq(conf->n_apps, 0);
	ck_assert_uint_eq(conf->n_listeners, 1);
	ck_assert_str_eq(conf->listeners[0].text, "127.0.0.1:8080");
	ck_assert_str_eq(conf->listeners[0].where.file, "scalws.conf");
	ck_assert_int_eq(conf->listeners[0].where.line, 2);
	ck_assert_ptr_eq(conf->listeners[0].default_site, &conf->sites[0]);
	ck_assert_int_eq(route->action.kind, CONF_RESPOND);
	ck_assert_uint_eq(route->action.respond.status, 200);
	ck_assert_uint_eq(route->action.respond.body_len, 2);
	ck_assert_str_eq(route->action.respond.type, "text/plain");
	ck_assert_str_eq(route->paths[0], "*");
	ck_assert_ptr_null(route->paths[1]);
	ck_assert_uint_eq(route->max_body_bytes, UINT64_C(64) << 20);
	ck_assert_int_eq(conf->limits.idle_timeout_ms, 60000);
	ck_assert_int_eq(conf->run_directory[0], '/');
	ck_assert_str_eq(conf->log_level, "info");
	ck_assert_ptr_null(conf->error_log);
	conf_free(conf);
	conf_free(NULL);
}
END_TEST

START_TEST(apps_become_what_is_written)
{
	struct conf *conf = load(everything);
	const struct conf_app *api = conf_find_app(conf, "api");
	const struct conf_app *wsgi = conf_find_app(conf, "wsgi");
	const struct conf_app *shop = conf_find_app(conf, "shop");
	const struct conf_app *blog = conf_find_app(conf, "blog");
	const struct conf_app *plain = conf_find_app(conf, "plain");
	const struct conf_app *job = conf_find_app(conf, "job");

	ck_assert_uint_eq(conf->n_apps, 6);
	ck_assert_ptr_null(conf_find_app(conf, "nothing"));
	ck_assert_int_eq(api->where.line, 8);
	ck_assert_int_eq(api->runtime, CONF_PYTHON);
	ck_assert_int_eq(api->server, CONF_UVICORN);
	ck_assert_str_eq(api->venv, "//srv/v");
	ck_assert(api->factory && api->http && api->no_new_privileges);
	ck_assert_int_eq(api->umask, 027);
	ck_assert_int_eq(api->nice, -5);
	ck_assert_int_eq(api->stop_signal, SIGINT);
	ck_assert_str_eq(api->environment[0], "A=x \"y\"\n");
	ck_assert_str_eq(api->environment[1], "PORT=80");
	ck_assert_ptr_null(api->environment[2]);
	ck_assert_uint_eq(api->n_limits, 3);
	ck_assert_int_eq(api->limits[0].resource, RLIMIT_NOFILE);
	ck_assert_uint_eq(api->limits[2].soft, UINT64_C(1) << 30);
	ck_assert_uint_eq(api->limits[2].hard, UINT64_MAX);
	ck_assert_str_eq(api->arguments[1], "/api");
	ck_assert_uint_eq(api->concurrency, 0);
	ck_assert_int_eq(api->idle_timeout_ms, 60000);
	ck_assert_str_eq(api->log.file, "/var/log/test/api.log");
	ck_assert_str_eq(api->probe.path, "/");
	/* The names are in lower case. */
	ck_assert_str_eq(api->probe.host, "example.com");

	ck_assert_uint_eq(wsgi->threads, 8);
	ck_assert_uint_eq(wsgi->concurrency, 8);
	ck_assert_str_eq(wsgi->probe.host, "localhost");
	ck_assert_str_eq(shop->environment[0], "_X=1");
	ck_assert_str_eq(shop->environment[1], "Y=a=b");
	ck_assert_str_eq(shop->node, "node");
	ck_assert_uint_eq(blog->concurrency, 3);
	ck_assert_str_eq(blog->front_controller, "index.php");
	ck_assert_str_eq(blog->directory, "/");
	ck_assert_int_eq(blog->idle_timeout_ms, 5000);
	ck_assert_ptr_null(blog->probe.path);
	ck_assert_str_eq(blog->ini[0], "opcache.enable=1");
	ck_assert(!blog->no_new_privileges);
	ck_assert_ptr_null(plain->front_controller);
	ck_assert(!job->http);
	ck_assert_str_eq(job->command[1], "");
	ck_assert_ptr_null(job->command[2]);
	ck_assert_ptr_nonnull(job->environment);
	conf_free(conf);
}
END_TEST

START_TEST(sites_become_what_is_written)
{
	struct conf *conf = load(everything);
	const struct conf_site *site = &conf->sites[0];
	const struct conf_route *routes = site->routes;
	char text[ADDR_TEXT_MAX];

	ck_assert_uint_eq(conf->n_sites, 2);
	ck_assert_str_eq(site->names[0], "example.com");
	ck_assert_str_eq(site->names[2], "[::1]");
	ck_assert_uint_eq(site->n_routes, 6);
	ck_assert_uint_eq(routes[0].action.respond.status, 204);
	ck_assert_ptr_null(routes[0].action.respond.body);
	ck_assert_str_eq(routes[1].paths[1], "*.php");
	ck_assert_str_eq(routes[1].methods[1], "HEAD");
	ck_assert_uint_eq(routes[1].action.redirect.status, 302);
	ck_assert_ptr_eq(routes[2].action.app, &conf->apps[0]);
	ck_assert_uint_eq(routes[2].max_body_bytes, 0);
	ck_assert_int_eq(routes[3].action.kind, CONF_STATUS);
	ck_assert_uint_eq(routes[3].n_response_fields, 2);
	ck_assert_str_eq(routes[3].response_fields[1].name, "Cache-Control");
	ck_assert_str_eq(routes[3].response_fields[1].value, "no-store");
	ck_assert_ptr_eq(routes[4].action.upstream, &conf->upstreams[0]);
	ck_assert_uint_eq(routes[4].max_body_bytes, UINT64_C(5) << 30);
	ck_assert_uint_eq(conf->upstreams[0].n_peers, 2);
	ck_assert_str_eq(
	    addr_format(&conf->upstreams[0].peers[1].addr, text), "[::1]:80");
	ck_assert_uint_eq(conf->upstreams[0].peers[0].weight, 1);
	ck_assert_uint_eq(conf->upstreams[0].peers[1].weight, 2);
	ck_assert_int_eq(conf->upstreams[0].protocol, CONF_HTTP);
	ck_assert_int_eq(conf->upstreams[1].protocol, CONF_HTTPS);
	ck_assert_str_eq(conf->upstreams[1].tls.server_name, "s.example");
	ck_assert_int_eq(conf->upstreams[1].tls.min_version, CONF_TLS_1_3);
	ck_assert(conf->upstreams[1].tls.verify);
	ck_assert(conf->upstreams[2].tls.verify);
	ck_assert_ptr_null(conf->upstreams[2].tls.server_name);
	ck_assert_uint_eq(conf->n_trusted_proxies, 3);
	conf_free(conf);
}
END_TEST

START_TEST(listeners_are_made_once)
{
	struct conf *conf = load(everything);
	const struct conf_listener *four = &conf->listeners[0];
	const struct conf_listener *six = &conf->listeners[1];
	const struct conf_listener *path = &conf->listeners[2];

	ck_assert_uint_eq(conf->n_listeners, 3);
	ck_assert_str_eq(four->text, "0.0.0.0:80");
	ck_assert(!four->v6only && !four->optional && !four->tls);
	ck_assert_str_eq(six->text, "[::]:80");
	ck_assert(six->v6only && six->optional);
	ck_assert_str_eq(path->text, "unix:/run/l.sock");
	ck_assert_uint_eq(four->n_sites, 2);
	ck_assert_ptr_eq(four->sites[0], &conf->sites[0]);
	ck_assert_ptr_eq(four->sites[1], &conf->sites[1]);
	ck_assert_ptr_eq(four->default_site, &conf->sites[1]);
	ck_assert_uint_eq(path->n_sites, 1);
	ck_assert_ptr_eq(path->default_site, &conf->sites[0]);
	conf_free(conf);

	/* Who names [::]:80 wants it to be there. */
	conf = load(USER "sites = ( { listen = [ \"80\", \"[::]:80\", \"*:80\","
			 " \"80\" ]; routes = ( { status = true; } ); } );\n");
	ck_assert_uint_eq(conf->n_listeners, 2);
	ck_assert(!conf->listeners[1].optional);
	ck_assert_uint_eq(conf->listeners[0].n_sites, 1);
	conf_free(conf);
}
END_TEST

START_TEST(many_sites_on_one_listener)
{
	struct strbuf text = STRBUF_EMPTY;
	struct conf *conf;

	strbuf_add_text(&text, USER "sites = ( ");
	for (int i = 0; i < 100; i++)
		strbuf_printf(&text,
		    "%s{ names = \"s%d.example\"; listen = \"80\"; "
		    "routes = ( { status = true; } ); }",
		    i == 0 ? "" : ",\n", i);
	strbuf_add_text(&text, " );\n");
	conf = load(text.ptr);
	ck_assert_uint_eq(conf->listeners[0].n_sites, 100);
	for (size_t i = 0; i < 100; i++)
		ck_assert_ptr_eq(conf->listeners[1].sites[i], &conf->sites[i]);
	conf_free(conf);
	strbuf_free(&text);
}
END_TEST

START_TEST(printed_text_means_the_same)
{
	struct conf *conf = load(everything), *again;
	char *first = print(conf), *second;

	again = load(first);
	second = print(again);
	ck_assert_str_eq(first, second);
	for (size_t i = 0; i < conf->n_apps; i++)
		ck_assert_int_eq(
		    conf_app_change(&conf->apps[i], &again->apps[i]),
		    CONF_SAME);
	ck_assert_ptr_nonnull(strstr(first, "send_timeout = \"1500ms\";"));
	ck_assert_ptr_nonnull(strstr(first, "body_bytes = \"5G\";"));
	ck_assert_ptr_nonnull(
	    strstr(first, "environment = [ \"A=x \\\"y\\\"\\n\", "));
	conf_free(conf);
	conf_free(again);
	mem_free(first);
	mem_free(second);
}
END_TEST

START_TEST(sent_text_means_the_same)
{
	struct conf *conf, *sent;
	struct conf_errors errors;
	struct strbuf flat = STRBUF_EMPTY, again = STRBUF_EMPTY;
	char *first, *second, here[4096];

	/* Relative names are made absolute before they are sent. */
	ck_assert_int_eq(mkdir("app", 0755), 0);
	first = mem_printf("%sapps = { one = { user = \"nobody\"; "
			   "runtime = \"php\"; root = \"app\"; }; };\n"
			   "temp_directory = \"tmp\";\n" SITE,
	    USER);
	conf = load(first);
	mem_free(first);
	conf_errors_init(&errors);
	conf_to_flat(conf, &flat);
	sent = conf_from_flat(flat.ptr, flat.len, &errors);
	ck_assert_msg(sent != NULL, "%s", errors.text.ptr);
	first = print(conf);
	second = print(sent);
	ck_assert_str_eq(first, second);
	ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
	ck_assert(strncmp(sent->apps[0].root, here, strlen(here)) == 0);
	ck_assert_str_eq(sent->file, "scalws.conf");
	ck_assert_str_eq(sent->sites[0].where.file, "scalws.conf");
	ck_assert_int_eq(sent->sites[0].where.line, 4);
	conf_to_flat(sent, &again);
	ck_assert_str_eq(flat.ptr, again.ptr);
	conf_free(conf);
	conf_free(sent);
	mem_free(first);
	mem_free(second);
	strbuf_free(&flat);
	strbuf_free(&again);
	conf_errors_free(&errors);
}
END_TEST

START_TEST(damaged_flat_text)
{
	static const char *const bad[] = {
		"",
		"x",
		"scalws-conf 2\n",
		"scalws-conf 1\n",
		"scalws-conf 1\n.\n",
		"scalws-conf 1\ng 0 1 0:\n.\n",         /* no such file */
		"scalws-conf 1\nf 1:a\ng 0 1 0:\n",     /* not closed */
		"scalws-conf 1\nf 1:a\ng 0 1 1:x\n.\n", /* root with a name */
		"scalws-conf 1\nf 1:a\ni 0 1 0: 5\n",
		"scalws-conf 1\nf 1:a\ng 0 1 0:\n.\ng 0 1 0:\n.\n",
		"scalws-conf 1\nf 1:a\ng 0 1 0:\ni 0 1 0: 5\n.\n",
		"scalws-conf 1\nf 1:a\ng 0 1 0:\ni 0 1 1:x 5x\n.\n",
		"scalws-conf 1\nf 1:a\ng 0 1 0:\nb 0 1 1:x 2\n.\n",
		"scalws-conf 1\nf 1:a\ng 0 1 0:\ns 0 1 1:x 99999:y\n.\n",
		"scalws-conf 1\nf 1:a\ng 0 9999999999 0:\n.\n",
		"scalws-conf 1\nf 99999999999999999999:a\n",
		"scalws-conf 1\nf 1:a\ng 0 1 0:\nl 0 1 1:x\ni 0 1 1:y 1\n"
		".\n.\n",
	};
	struct conf *conf = load(everything);
	struct conf_errors errors;
	struct strbuf flat = STRBUF_EMPTY;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		conf_errors_init(&errors);
		ck_assert_ptr_null(
		    conf_from_flat(bad[i], strlen(bad[i]), &errors));
		ck_assert_msg(strstr(errors.text.ptr, "is damaged") != NULL,
		    "%s: %s", bad[i], errors.text.ptr);
		conf_errors_free(&errors);
	}
	conf_to_flat(conf, &flat);
	for (size_t len = 0; len < flat.len; len++) {
		/* A copy of its own, so that a read beyond it is seen. */
		char *part = mem_memdup0(flat.ptr, len);

		conf_errors_init(&errors);
		ck_assert_ptr_null(conf_from_flat(part, len, &errors));
		conf_errors_free(&errors);
		mem_free(part);
	}
	/* Deeper than anything that may come. */
	flat.len = 0;
	strbuf_add_text(&flat, "scalws-conf 1\nf 1:a\ng 0 1 0:\n");
	for (int i = 0; i < 1000; i++)
		strbuf_add_text(&flat, "g 0 1 1:x\n");
	conf_errors_init(&errors);
	ck_assert_ptr_null(conf_from_flat(flat.ptr, flat.len, &errors));
	conf_errors_free(&errors);
	strbuf_free(&flat);
	conf_free(conf);
}
END_TEST

START_TEST(byte_order_marks_are_skipped)
{
	struct conf *conf;

	ck_assert_int_eq(mkdir("d", 0755), 0);
	conf_files_write("part.conf", "\xef\xbb\xbf"
				      "connections = 7;\n");
	conf_files_write("d/1.conf", "\xef\xbb\xbf" SITE);
	conf = load("\xef\xbb\xbf" USER "limits = {\n"
		    "@include \"part.conf\"\n};\n"
		    "include = \"d/*.conf\";\n");
	ck_assert_uint_eq(conf->limits.connections, 7);
	ck_assert_uint_eq(conf->n_sites, 1);
	conf_free(conf);
}
END_TEST

START_TEST(includes_and_drop_ins)
{
	struct conf *conf;

	ck_assert_int_eq(mkdir("d", 0755), 0);
	ck_assert_int_eq(mkdir("parts", 0755), 0);
	conf_files_write("parts/limits.conf",
	    "connections = 7;\n"
	    "@include \"more.conf\"\n"
	    "header_count = 50; # no newline");
	conf_files_write("parts/more.conf", "\n\nidle_timeout = \"7s\";");
	conf_files_write("d/1.conf",
	    "apps = { one = { user = \"nobody\";\n"
	    "runtime = \"command\"; command = \"/bin/x\"; "
	    "}; };\n");
	conf_files_write("d/2.conf", "\n" SITE);
	conf_files_write("d/no.txt", "rubbish");
	conf = load(USER "limits = {\n"
			 "@include \"parts/limits.conf\"\n"
			 "};\n"
			 "include = [ \"d/*.conf\", \"none.d/*.conf\" ];\n"
			 "workers = 2;\n");
	ck_assert_uint_eq(conf->limits.connections, 7);
	ck_assert_uint_eq(conf->limits.header_count, 50);
	ck_assert_int_eq(conf->limits.idle_timeout_ms, 7000);
	ck_assert_uint_eq(conf->n_apps, 1);
	ck_assert_uint_eq(conf->n_sites, 1);
	ck_assert_str_eq(conf->apps[0].where.file, "d/1.conf");
	ck_assert_str_eq(conf->sites[0].where.file, "d/2.conf");
	ck_assert_int_eq(conf->sites[0].where.line, 2);
	conf_free(conf);
}
END_TEST

static void
expect_error(const char *text, const char *message)
{
	struct conf_errors errors;

	conf_files_write("scalws.conf", text);
	conf_errors_init(&errors);
	ck_assert_ptr_null(conf_load("scalws.conf", &errors));
	ck_assert_msg(strstr(errors.text.ptr, message) != NULL,
	    "no \"%s\" in:\n%s", message, errors.text.ptr);
	conf_errors_free(&errors);
}

START_TEST(mistakes_in_other_files)
{
	conf_files_write("a.inc", "\nbacklog = 0;\n");
	conf_files_write("b.inc", "workers = 1;\n\n= 5\n");
	expect_error(USER SITE "@include \"a.inc\"\nworkers = -1;\n",
	    "a.inc:2: backlog: 0 is outside");
	/* The lines behind an include are counted on. */
	expect_error(USER SITE "@include \"a.inc\"\nworkers = -1;\n",
	    "scalws.conf:4: workers: -1 is outside");
	expect_error(USER SITE "@include \"b.inc\"\n", "b.inc:3: syntax");
	expect_error(USER SITE "workers = 2;\n@include \"b.inc\"\n",
	    "b.inc:1: duplicate setting name");
}
END_TEST

START_TEST(mistakes_in_drop_ins)
{
	static const char app[] =
	    "apps = { one = { user = \"nobody\"; runtime = \"command\"; "
	    "command = \"/bin/x\"; }; };\n";
	char *second;

	conf_files_write("1.drop", app);
	second = mem_printf("\n%s", app);
	conf_files_write("2.drop", second);
	mem_free(second);
	expect_error(USER "include = \"?.drop\";\n",
	    "2.drop:2: apps.one: stands here a second time, the first is at "
	    "1.drop:1");
	conf_files_write("2.drop", "workers = 2;\n");
	expect_error(USER "include = \"?.drop\";\n",
	    "2.drop:1: workers: only apps, upstreams and sites may stand");
	conf_files_write("2.drop", "include = \"x\";\n");
	expect_error(USER "include = \"?.drop\";\n",
	    "2.drop:1: include: only apps, upstreams and sites");
	conf_files_write("2.drop", "apps = ( );\n");
	expect_error(USER "include = \"?.drop\";\n",
	    "2.drop:1: apps: is a list here and a group at 1.drop:1");
	ck_assert_int_eq(mkdir("3.drop", 0755), 0);
	expect_error(
	    USER "include = \"3.drop\";\n", "3.drop: is not a regular file");
}
END_TEST

START_TEST(changes_of_an_app)
{
	static const struct {
		const char *keys;
		enum conf_change change;
	} cases[] = {
		{ "", CONF_SAME },
		{ "processes = 1;", CONF_SAME },
		{ "queue_timeout = \"7s\";", CONF_ADJUST },
		{ "log = { keep = 1; };", CONF_ADJUST },
		{ "processes = 2;", CONF_ADJUST },
		{ "environment = { A = \"1\"; };", CONF_RESTART },
		{ "limits = { core = 0; };", CONF_RESTART },
		{ "umask = \"077\"; queue_length = 5;", CONF_RESTART },
		{ "arguments = [ \"x\" ];", CONF_RESTART },
	};
	static const char format[] =
	    USER "apps = { a = { user = \"nobody\"; runtime = \"node\"; "
		 "directory = \"/\"; script = \"s.js\"; %s }; };\n";

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *text = mem_printf(format, "");
		struct conf *old = load(text), *now;

		mem_free(text);
		text = mem_printf(format, cases[i].keys);
		now = load(text);
		mem_free(text);
		ck_assert_msg(conf_app_change(&old->apps[0], &now->apps[0]) ==
				  cases[i].change,
		    "%s", cases[i].keys);
		ck_assert_int_eq(conf_app_change(&now->apps[0], &old->apps[0]),
		    cases[i].change);
		conf_free(old);
		conf_free(now);
	}
}
END_TEST

START_TEST(warnings_do_not_refuse)
{
	struct conf_errors errors;
	struct conf *conf;

	conf_files_write("scalws.conf",
	    USER "apps = { a = { user = \"nobody\"; runtime = \"command\"; "
		 "command = [ \"npm\", \"start\" ]; };\n"
		 "b = { user = \"nobody\"; runtime = \"command\"; "
		 "command = [ \"/nonexistent/program\" ];\n"
		 "directory = \"/nonexistent\"; }; };\n"
		 "sites = ( { listen = \"80\"; routes = (\n"
		 "{ status = true; },\n{ path = \"/x\"; status = true; } ); "
		 "} );\n");
	conf_errors_init(&errors);
	conf = conf_load("scalws.conf", &errors);
	ck_assert_msg(conf != NULL, "%s", errors.text.ptr);
	ck_assert_int_ge(errors.warnings, 3);
	ck_assert_ptr_nonnull(strstr(errors.warnings_text.ptr,
	    "scalws.conf:2: warning: apps.a.command: "
	    "npm does not pass signals"));
	ck_assert_ptr_nonnull(strstr(errors.warnings_text.ptr,
	    "scalws.conf:3: warning: apps.b.command: "
	    "/nonexistent/program: No such"));
	ck_assert_ptr_nonnull(strstr(errors.warnings_text.ptr,
	    "scalws.conf:4: warning: apps.b.directory: /nonexistent: No such"));
	ck_assert_ptr_nonnull(strstr(errors.warnings_text.ptr,
	    "scalws.conf:7: warning: this route is "
	    "never reached: the one in line 6"));
	conf_free(conf);
	conf_errors_free(&errors);
}
END_TEST

START_TEST(numbers_with_units)
{
	static const struct {
		const char *in;
		int64_t ms;
		const char *out;
	} times[] = {
		{ "0s", 0, "0s" },
		{ "500ms", 500, "500ms" },
		{ "90s", 90000, "90s" },
		{ "60s", 60000, "1m" },
		{ "48h", 172800000, "2d" },
		{ "5", -1, NULL },
		{ "", -1, NULL },
		{ "s", -1, NULL },
		{ "5 s", -1, NULL },
		{ "5S", -1, NULL },
		{ "1m30s", -1, NULL },
		{ "106751991168d", -1, NULL },
	};
	static const struct {
		const char *in;
		uint64_t bytes;
		const char *out;
	} sizes[] = {
		{ "0", 0, "0" },
		{ "1000", 1000, "1000" },
		{ "1024", 1024, "1K" },
		{ "16M", UINT64_C(16) << 20, "16M" },
		{ "2048M", UINT64_C(2) << 30, "2G" },
		{ "1T", UINT64_C(1) << 40, "1T" },
		{ "16m", UINT64_MAX, NULL },
		{ "16MB", UINT64_MAX, NULL },
		{ "8388608T", UINT64_MAX, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		struct strbuf out = STRBUF_EMPTY;
		int64_t ms = -1;

		ck_assert_int_eq(
		    conf_number_parse_duration(str_of(times[i].in), &ms),
		    times[i].ms == -1 ? -1 : 0);
		ck_assert_int_eq(ms, times[i].ms);
		if (ms == -1)
			continue;
		conf_number_put_duration(&out, ms);
		ck_assert_str_eq(out.ptr, times[i].out);
		strbuf_free(&out);
	}
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct strbuf out = STRBUF_EMPTY;
		uint64_t bytes = UINT64_MAX;

		ck_assert_int_eq(
		    conf_number_parse_bytes(str_of(sizes[i].in), &bytes),
		    sizes[i].bytes == UINT64_MAX ? -1 : 0);
		ck_assert_uint_eq(bytes, sizes[i].bytes);
		if (bytes == UINT64_MAX)
			continue;
		conf_number_put_bytes(&out, bytes);
		ck_assert_str_eq(out.ptr, sizes[i].out);
		strbuf_free(&out);
	}
}
END_TEST

/* Mistakes in the table that no compiler sees. */
START_TEST(schema_is_sound)
{
	for (size_t i = 0; i < conf_keys_count; i++) {
		const struct conf_key *key = &conf_keys[i];
		size_t len;

		ck_assert_ptr_nonnull(key->help);
		if (key->type == CONF_TYPE_ABSENT)
			continue;
		len = strlen(key->help);
		ck_assert_msg(key->help[len - 1] == '.', "%s", key->path);
		ck_assert_msg(
		    key->unstored == (key->width == 0), "%s", key->path);
		ck_assert_msg(
		    key->min <= key->max || key->max == 0, "%s", key->path);
		if (key->type == CONF_TYPE_CHOICE ||
		    key->type == CONF_TYPE_WORD)
			ck_assert_msg(key->choices != NULL, "%s", key->path);
		if (key->type == CONF_TYPE_DURATION)
			ck_assert_msg(
			    key->max > 0 && (key->width == sizeof(int64_t) ||
						(key->width == sizeof(int) &&
						    key->max <= INT32_MAX)),
			    "%s", key->path);
		if (key->type == CONF_TYPE_NUMBER)
			ck_assert_msg(
			    key->width == 4 && key->max > 0, "%s", key->path);
		if (key->type == CONF_TYPE_BYTES && key->width == 4)
			ck_assert_msg(key->max <= UINT32_MAX, "%s", key->path);
		/* Rows of one path are for different runtimes. */
		for (size_t j = 0; j < i; j++) {
			const struct conf_key *other = &conf_keys[j];

			if (strcmp(key->path, other->path) == 0)
				ck_assert_msg(
				    key->runtimes != 0 &&
					other->runtimes != 0 &&
					(key->runtimes & other->runtimes) == 0,
				    "%s", key->path);
		}
	}
}
END_TEST

START_TEST(manual_names_every_key)
{
	struct strbuf man = STRBUF_EMPTY, keys = STRBUF_EMPTY;

	conf_print_man(&man);
	conf_print_keys(&keys);
	for (size_t i = 0; i < conf_keys_count; i++) {
		const struct conf_key *key = &conf_keys[i];
		const char *star = strrchr(key->path, '*');
		char *item = mem_printf(
		    ".It Ic %s No", star == NULL ? key->path : star + 2);

		if (key->type != CONF_TYPE_ABSENT) {
			ck_assert_msg(
			    strstr(man.ptr, item) != NULL, "%s", item);
			ck_assert_ptr_nonnull(strstr(keys.ptr, key->path));
		}
		mem_free(item);
	}
	strbuf_free(&man);
	strbuf_free(&keys);
}
END_TEST

/* The file that is installed must load, whoever the users are. */
START_TEST(shipped_example_is_right)
{
	const char *top = getenv("top_srcdir");
	char *path = mem_printf("%s/etc/scalws.conf", top);
	char *text, *at;
	size_t len;
	struct conf *conf;

	ck_assert_int_eq(fd_read_file(path, 1 << 20, &text, &len), 0);
	at = strstr(text, "user = \"scalws\";");
	ck_assert_ptr_nonnull(at);
	memcpy(at, "user = \"nobody\";", 16);
	conf = load(text);
	ck_assert_uint_ge(conf->n_sites, 1);
	conf_free(conf);
	mem_free(text);
	mem_free(path);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { a_small_file_is_enough,
		apps_become_what_is_written, sites_become_what_is_written,
		listeners_are_made_once, many_sites_on_one_listener,
		printed_text_means_the_same, sent_text_means_the_same,
		damaged_flat_text, byte_order_marks_are_skipped,
		includes_and_drop_ins, mistakes_in_other_files,
		mistakes_in_drop_ins, changes_of_an_app, warnings_do_not_refuse,
		numbers_with_units, schema_is_sound, manual_names_every_key,
		shipped_example_is_right };
	char here[4096];
	Suite *suite = suite_create("conf");
	TCase *all = tcase_create("good");

	/* make check says where the sources are; a person may stand there. */
	if (getcwd(here, sizeof(here)) != NULL)
		setenv("top_srcdir", here, 0);
	tcase_add_checked_fixture(all, conf_files_enter, conf_files_leave);
	tcase_set_timeout(all, 60);
	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		tcase_add_test(all, tests[i]);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
