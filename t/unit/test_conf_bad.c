/*
 * Unit tests of src/conf: files that are wrong in one way each, with the
 * message that has to come.
 * Run by make check, as any user. Writes below a directory in /tmp.
 */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/fdutil.h"
#include "src/base/mem.h"
#include "src/conf/conf.h"
#include "t/unit/conf_files.h"
#include "t/unit/run.h"

/* Two lines that every case but those about them begins with. */
#define USER "user = \"www-data\";\n"
#define SITE                                            \
	"sites = ( { listen = [ \"127.0.0.1:8080\" ]; " \
	"routes = ( { respond = { body = \"hi\"; }; } ); } );\n"
#define BASE USER SITE
/* An app that is right for root and for others. */
#define APP(keys) "apps = { a = { user = \"nobody\"; " keys " }; };\n"
#define COMMAND "runtime = \"command\"; command = [ \"/bin/true\" ]; "
#define ROUTES(routes)                                                     \
	USER "sites = ( { listen = \"127.0.0.1:8080\"; routes = ( " routes \
	     " ); } );\n"

static struct conf *
load(const char *text, struct conf_errors *errors)
{
	conf_files_write("scalws.conf", text);
	conf_errors_init(errors);
	return conf_load("scalws.conf", errors);
}

static const struct {
	const char *text, *message;
} bad_syntax[] = {
	{ "", "scalws.conf: there are no sites and no apps: nothing to do" },
	{ BASE "workers = = 3;\n", "scalws.conf:3: syntax error" },
	{ BASE "workers 3;\n", "scalws.conf:3: syntax error" },
	{ BASE "log_level \"info\";\n",
	    "scalws.conf:3: syntax error: a text stands here where none can" },
	{ BASE "control = { group = \"a\", \"b\" };\n",
	    "scalws.conf:3: syntax error: a text stands here where none can" },
	{ BASE "trusted_proxies = [ 1, \"b\" ];\n",
	    "scalws.conf:3: mismatched element type in array" },
	{ BASE "/* open\nworkers = 1;\n",
	    "scalws.conf:3: this comment is never closed" },
	{ BASE "log_level = \"info;\nworkers = 1;\n",
	    "scalws.conf:3: this text has no closing quote on its line" },
	{ BASE "log_level = \"in\\x00fo\";\n",
	    "scalws.conf:3: \\x00 cannot be in a text" },
	{ BASE "backlog = 4294967297;\n",
	    "scalws.conf:3: backlog: 4294967297 is outside of 1 to 65535" },
	{ BASE "backlog = 0x100000001;\n",
	    "scalws.conf:3: backlog: 4294967297 is outside of 1 to 65535" },
	{ BASE "backlog = 99999999999999999999;\n",
	    "scalws.conf:3: 99999999999999999999 is too large for any" },
	{ BASE "backlog = -9999999999;\n",
	    "scalws.conf:3: backlog: -9999999999 is outside of" },
	{ BASE "limits = { idle_timeout = 5s; };\n",
	    "scalws.conf:3: 5s is no number; with a unit it stands in "
	    "quotes: \"5s\"" },
	{ BASE "_x = 1;\n", "scalws.conf:3: _x: a name cannot begin with _" },
	{ BASE "log_level = .a;\n",
	    "scalws.conf:3: .a is neither a name nor a number" },
	{ BASE "workers = 1;\nworkers = 2;\n",
	    "scalws.conf:4: workers stands here a second time, the first is "
	    "in line 3" },
	{ BASE "control = {\n", "scalws.conf:3: the bracket opened here is "
				"never closed with }" },
	{ BASE "control = { ];\n",
	    "scalws.conf:3: ] where the bracket of line 3 needs }" },
	{ BASE "}\n", "scalws.conf:3: } closes nothing" },
	{ BASE "trusted_proxies = [ \"::1\", ];\n",
	    "scalws.conf:3: a comma before ]" },
	{ BASE "a = @x;\n", "scalws.conf:3: \"@\" has no meaning here" },
	{ BASE "@include \"/etc\"\n",
	    "scalws.conf:3: /etc: is not a regular file" },
	{ BASE "@include \"missing.conf\"\n",
	    "scalws.conf:3: missing.conf: cannot be read: No such file" },
	{ BASE "@include \"scalws.conf\"\n",
	    "scalws.conf:3: @include \"scalws.conf\" goes in circles" },
	{ BASE "@include scalws\n",
	    "scalws.conf:3: @include needs a file name in quotes" },
	{ BASE "workers = 1; @include \"x\"\n",
	    "scalws.conf:3: @include stands at the start of a line" },
	{ BASE "include = \"missing.conf\";\n",
	    "scalws.conf:3: include: there is no missing.conf" },
	{ BASE "include = 5;\n", "scalws.conf:3: include: takes a file "
				 "pattern or a list of them, not an integer" },
};

static const struct {
	const char *text, *message;
} bad_values[] = {
	{ BASE "wokers = 1;\n", "scalws.conf:3: wokers: there is no such key; "
				"did you mean \"workers\"?" },
	{ BASE "xyzzyplugh = 1;\n",
	    "scalws.conf:3: xyzzyplugh: there is no such key\n" },
	{ BASE "workers = \"2\";\n",
	    "scalws.conf:3: workers: takes an integer, not a string" },
	{ BASE "workers = 2.5;\n",
	    "scalws.conf:3: workers: takes an integer, not a fraction" },
	{ BASE "workers = 257;\n",
	    "scalws.conf:3: workers: 257 is outside of 0 to 256" },
	{ BASE "workers = -1;\n",
	    "scalws.conf:3: workers: -1 is outside of 0 to 256" },
	{ BASE "defer_accept = 1;\n",
	    "scalws.conf:3: defer_accept: takes true or false, not an" },
	{ BASE "log_level = \"loud\";\n",
	    "scalws.conf:3: log_level: \"loud\" is none of error, warn, "
	    "info, debug" },
	{ BASE "access_log_format = \"xml\";\n",
	    "scalws.conf:3: access_log_format: \"xml\" is none of combined, "
	    "json" },
	{ BASE "limits = 5;\n",
	    "scalws.conf:3: limits: takes a group { ... }, not an integer" },
	{ BASE "limits = { idle_timeout = 5; };\n",
	    "scalws.conf:3: limits.idle_timeout: a time has a unit and "
	    "quotes: \"5s\"" },
	{ BASE "limits = { idle_timeout = \"5 parsecs\"; };\n",
	    "limits.idle_timeout: \"5 parsecs\" is no time" },
	{ BASE "limits = { idle_timeout = \"-5s\"; };\n",
	    "limits.idle_timeout: \"-5s\" is no time" },
	{ BASE "limits = { idle_timeout = \"99999999999999999999s\"; };\n",
	    "limits.idle_timeout: \"99999999999999999999s\" is no time" },
	{ BASE "limits = { idle_timeout = \"9223372036854775807d\"; };\n",
	    "limits.idle_timeout: \"9223372036854775807d\" is no time" },
	{ BASE "limits = { idle_timeout = \"2d\"; };\n",
	    "limits.idle_timeout: \"2d\" is outside of 100ms to 1d" },
	{ BASE "limits = { body_bytes = \"5X\"; };\n",
	    "limits.body_bytes: \"5X\" is no size" },
	{ BASE "limits = { body_bytes = -1; };\n",
	    "limits.body_bytes: takes a size such as \"64K\"" },
	{ BASE "limits = { header_bytes = \"1G\"; };\n",
	    "limits.header_bytes: 1073741824 bytes is outside of 1K to 78K" },
	{ BASE "limits = { header_bytes = \"2K\"; };\n",
	    "limits.request_line_bytes: is above header_bytes" },
	{ BASE "trusted_proxies = [ \"10.0.0.0/33\" ];\n",
	    "scalws.conf:3: trusted_proxies: \"10.0.0.0/33\" is no address "
	    "range" },
	{ BASE "trusted_proxies = [ 5 ];\n",
	    "scalws.conf:3: trusted_proxies: takes texts in quotes, not an" },
	{ BASE "control = { group = \"no-such-group\"; };\n",
	    "scalws.conf:3: control.group: there is no such group: "
	    "\"no-such-group\"" },
	{ BASE "control = { socket = \"\"; };\n",
	    "scalws.conf:3: control.socket: is empty" },
	{ BASE "log_directory = \"/a\\nb\";\n",
	    "scalws.conf:3: log_directory: has control characters" },
	{ "user = \"no-such-user\";\n" SITE,
	    "scalws.conf:1: user: there is no such user: \"no-such-user\"" },
	{ USER, "scalws.conf: there are no sites and no apps" },
	/* upstreams */
	{ BASE "upstreams = { u = { }; };\n",
	    "scalws.conf:3: upstreams.u.peers: is missing" },
	{ BASE "upstreams = { u = { peers = ( ); }; };\n",
	    "scalws.conf:3: upstreams.u.peers: is empty" },
	{ BASE "upstreams = { u = { peers = ( \"db.example.com:80\" ); }; };\n",
	    "scalws.conf:3: upstreams.u.peers[0]: \"db.example.com:80\": host "
	    "names of peers are not supported" },
	{ BASE "upstreams = { u = {\n peers = ( \"10.0.0.1:80\",\n"
	       " { address = \"10.0.0.1\"; } ); }; };\n",
	    "scalws.conf:5: upstreams.u.peers[1]: \"10.0.0.1\" has no port" },
	{ BASE "upstreams = { u = { peers = ( { weight = 1; } ); }; };\n",
	    "upstreams.u.peers[0].address: is missing" },
	{ BASE "upstreams = { u = { peers = ( \"10.0.0.300:80\" ); }; };\n",
	    "upstreams.u.peers[0]: \"10.0.0.300:80\" is no address" },
	{ BASE "upstreams = { u = { protocol = \"fastcgi\"; "
	       "peers = ( \"10.0.0.3:80\" ); }; };\n",
	    "upstreams.u.root: is missing; protocol \"fastcgi\" needs it" },
	{ BASE "upstreams = { u = { peers = ( \"10.0.0.3:80\" );\n"
	       "tls = { min_version = \"1.3\"; }; }; };\n",
	    "scalws.conf:4: upstreams.u.tls: is for protocol = \"https\"" },
	{ BASE "upstreams = { u = { peers = ( \"10.0.0.3:80\" ); "
	       "protocol = \"fastcgi\"; root = \"/r\";\n"
	       "tls = { }; }; };\n",
	    "scalws.conf:4: upstreams.u.tls: is for protocol = \"https\"; "
	    "FastCGI is never spoken over TLS" },
	{ BASE "upstreams = { u = { peers = ( \"10.0.0.3:80\" ); "
	       "protocol = \"https\"; root = \"/r\"; }; };\n",
	    "upstreams.u.root: is for protocol = \"fastcgi\"" },
	{ BASE "upstreams = { u = { peers = ( \"unix:/run/x\" ); "
	       "protocol = \"https\"; }; };\n",
	    "upstreams.u.tls.server_name: is missing: unix:/run/x has no "
	    "name" },
	{ BASE "upstreams = { u = { peers = ( \"10.0.0.3:443\" ); "
	       "protocol = \"https\";\n"
	       "tls = { server_name = \"*.example.com\"; }; }; };\n",
	    "scalws.conf:4: upstreams.u.tls.server_name: \"*.example.com\" is "
	    "no host name and no address" },
	{ BASE "upstreams = { u = { peers = ( \"10.0.0.3:443\" ); "
	       "protocol = \"https\"; tls = { key = \"/k\"; }; }; };\n",
	    "upstreams.u.tls.certificate: is missing: certificate and key "
	    "belong together" },
	{ BASE "upstreams = { u = { peers = ( \"10.0.0.3:443\" ); "
	       "protocol = \"https\"; tls = { certificate = \"/c\"; }; "
	       "}; };\n",
	    "upstreams.u.tls.key: is missing" },
	{ BASE "upstreams = { u = { peers = ( \"10.0.0.3:443\" ); "
	       "protocol = \"https\"; tls = { verify = false; "
	       "ca = \"/c\"; }; }; };\n",
	    "upstreams.u.tls.ca: has no meaning with verify = false" },
	{ BASE "upstreams = { u = { peers = ( \"10.0.0.3:443\" ); "
	       "protocol = \"https\"; tls = { ca_file = \"/c\"; }; }; };\n",
	    "upstreams.u.tls.ca_file: there is no such key" },
	/* sites */
	{ USER "sites = { };\n",
	    "sites: takes a list of groups: ( { ... }, ... ), not a group" },
	{ USER "sites = ( 3 );\n",
	    "sites[0]: takes a group { ... }, not an integer" },
	{ USER "sites = ( { routes = ( { respond = { }; } ); } );\n",
	    "scalws.conf:2: sites[0].listen: is missing" },
	{ USER "sites = ( { listen = \"80\"; } );\n",
	    "scalws.conf:2: sites[0].routes: is missing" },
	{ USER "sites = ( { listen = \"80\"; rotues = ( ); } );\n",
	    "sites[0].rotues: there is no such key; did you mean \"routes\"" },
	{ USER "sites = ( { listen = \"443 tls\"; routes = ( "
	       "{ respond = { }; } ); } );\n",
	    "scalws.conf:2: sites[0].listen: \"443 tls\": the site has no "
	    "tls.certificate" },
	{ USER "sites = ( { listen = \"80\"; tls = { key = \"/x\"; }; "
	       "routes = ( { respond = { }; } ); } );\n",
	    "scalws.conf:2: sites[0].tls.key: there are 0 certificates and 1 "
	    "keys" },
	{ USER "sites = ( { listen = \"80\"; tls = { certificate = [ ]; "
	       "key = [ ]; }; routes = ( { respond = { }; } ); } );\n",
	    "sites[0].tls.certificate: is empty" },
	{ USER "sites = ( { listen = \"80\"; tls = { client_certificate = "
	       "{ ca = \"/x\"; }; }; routes = ( { respond = { }; } ); } );\n",
	    "sites[0].tls.client_certificate.verify: is missing" },
	{ USER "sites = ( { listen = \"80\"; tls = { client_certificate = "
	       "{ verify = \"required\"; }; }; routes = "
	       "( { respond = { }; } ); } );\n",
	    "sites[0].tls.client_certificate.ca: is missing" },
	{ USER "sites = ( { listen = \"443 tls\"; tls = { certificate = "
	       "\"/c\"; key = \"/k\"; }; routes = ( { respond = { }; } ); }, "
	       "{ listen = \"0.0.0.0:443\"; routes = ( { respond = { }; } ); "
	       "} );\n",
	    "sites[1].listen: 0.0.0.0:443 is with TLS at" },
	{ USER "sites = ( { listen = \"80\"; hsts = \"31536000\"; "
	       "routes = ( { respond = { }; } ); } );\n",
	    "sites[0].hsts: \"31536000\" is not of the form" },
	{ USER "sites = ( { listen = \"80 fast\"; routes = ( "
	       "{ respond = { }; } ); } );\n",
	    "sites[0].listen: \"80 fast\": there is no option \"fast\"" },
	{ USER "sites = ( { listen = \"99999\"; routes = ( "
	       "{ respond = { }; } ); } );\n",
	    "sites[0].listen: \"99999\" is no port between 1 and 65535" },
	{ USER "sites = ( { listen = \"example.com:80\"; routes = ( "
	       "{ respond = { }; } ); } );\n",
	    "a listener is an address, not a name" },
	{ USER "sites = ( { names = [ \"a.example:80\" ]; listen = \"80\"; "
	       "routes = ( { respond = { }; } ); } );\n",
	    "sites[0].names: \"a.example:80\": a name has no port" },
	{ USER "sites = ( { names = [ \"*\" ]; listen = \"80\"; "
	       "routes = ( { respond = { }; } ); } );\n",
	    "default = true makes the site answer for all others" },
	{ USER "sites = ( { names = [ \"a.*.b\" ]; listen = \"80\"; "
	       "routes = ( { respond = { }; } ); } );\n",
	    "\"a.*.b\" is no host name" },
	{ USER "sites = ( { listen = \"80\"; names = \"A.example\";\n"
	       "routes = ( { respond = { }; } ); },\n"
	       "{ listen = \"0.0.0.0:80\"; names = \"a.example\";\n"
	       "routes = ( { respond = { }; } ); } );\n",
	    "scalws.conf:4: sites[1].listen: 0.0.0.0:80: the name a.example "
	    "belongs to the site at scalws.conf:2 already" },
	{ USER "sites = ( { listen = \"80\"; default = true;\n"
	       "routes = ( { respond = { }; } ); },\n"
	       "{ listen = \"80\"; default = true;\n"
	       "routes = ( { respond = { }; } ); } );\n",
	    "0.0.0.0:80: the site at scalws.conf:2 is the default already" },
	{ USER "sites = ( { listen = [ \"80\", \"127.0.0.1:80\" ]; "
	       "routes = ( { respond = { }; } ); } );\n",
	    "listen: 127.0.0.1:80 is a part of 0.0.0.0:80, which is listened "
	    "to at scalws.conf:2" },
	/* routes */
	{ ROUTES("{ }"), "scalws.conf:2: sites[0].routes[0]: has no action" },
	{ ROUTES("{ respond = { }; app = \"x\"; }"),
	    "sites[0].routes[0]: has two actions: app here and respond" },
	{ ROUTES("{ files = { root = \"/x\"; }; }"),
	    "sites[0].routes[0].files: static files is not in this build" },
	{ ROUTES("{ app = \"x\"; }"),
	    "scalws.conf:2: sites[0].routes[0].app: there is no app \"x\"" },
	{ ROUTES("{ app = \"b\"; }") APP(COMMAND),
	    "there is no app \"b\"; did you mean \"a\"?" },
	{ ROUTES("{ app = \"a\"; }") APP(COMMAND "http = false;"),
	    "sites[0].routes[0].app: \"a\" has http = false" },
	{ ROUTES("{ upstream = \"u\"; }"), "there is no upstream \"u\"" },
	{ ROUTES("{ app = 5; }"), "app: takes a name in quotes, not an" },
	{ ROUTES("{ status = false; }"), "status: takes true" },
	{ ROUTES("{ path = \"x\"; status = true; }"),
	    "path: \"x\" begins neither with / nor with *" },
	{ ROUTES("{ path = \"/a?b\"; status = true; }"),
	    "path: \"/a?b\" can match no path" },
	{ ROUTES("{ path = \"/a//b\"; status = true; }"),
	    "path: \"/a//b\" can match no path" },
	{ ROUTES("{ path = [ ]; status = true; }"), "path: is empty" },
	{ ROUTES("{ methods = \"get\"; status = true; }"),
	    "methods: \"get\" is no method such as \"GET\"" },
	{ ROUTES("{ strip_prefix = \"/a\"; status = true; }"),
	    "strip_prefix: is for the actions app and upstream" },
	{ ROUTES("{ strip_prefix = \"/a/\"; app = \"a\"; }") APP(COMMAND),
	    "strip_prefix: \"/a/\" is not of the form \"/shop\"" },
	{ ROUTES("{ respond = { status = 99; }; }"),
	    "routes[0].respond.status: 99 is outside of 200 to 599" },
	{ ROUTES("{ respond = { status = 204; body = \"x\"; }; }"),
	    "respond: status 204 has no body" },
	{ ROUTES("{ redirect = { }; }"), "redirect.location: is missing" },
	{ ROUTES("{ redirect = { location = \"ftp://x\"; }; }"),
	    "redirect: the location \"ftp://x\" begins neither" },
	{ ROUTES("{ redirect = { location = \"/\"; status = 304; }; }"),
	    "redirect: 304 is none of 301" },
	{ ROUTES("{ status = true; response_headers = { Connection = \"x\"; "
		 "}; }"),
	    "response_headers: Connection is set by scalwsd itself" },
	{ ROUTES("{ status = true; response_headers = [ \"X: a\\r\\nB: c\" ]; "
		 "}"),
	    "response_headers.X: has control characters" },
	{ ROUTES("{ status = true; response_headers = [ \"no colon\" ]; }"),
	    "response_headers: \"no colon\" has no : between" },
	{ ROUTES("{ status = true; response_headers = [ \"a b: c\" ]; }"),
	    "\"a b\" cannot be the name of a field" },
};

static const struct {
	const char *text, *message;
} bad_apps[] = {
	{ USER "apps = ( );\n",
	    "apps: takes a group of groups: { NAME = { ... }; }, not a list" },
	{ USER "apps = { a = 1; };\n",
	    "scalws.conf:2: apps.a: takes a group { ... }, not an integer" },
	{ USER "apps = { a = { }; };\n",
	    "scalws.conf:2: apps.a.runtime: is missing: python, node, php or "
	    "command" },
	{ USER "apps = { a*b = { }; };\n",
	    "apps.a*b: a name here has at most 32 letters" },
	{ USER APP("runtime = \"ruby\";"),
	    "apps.a.runtime: \"ruby\" is none of python, node, php, command" },
	{ USER APP("runtime = \"command\";"),
	    "apps.a.command: is missing; runtime command needs it" },
	{ USER APP("runtime = \"command\"; comand = [ \"x\" ];"),
	    "apps.a.comand: there is no such key; did you mean \"command\"" },
	{ USER APP("runtime = \"command\"; command = [ ];"),
	    "apps.a.command: is empty" },
	{ USER APP("runtime = \"command\"; command = \"a b\";"),
	    "apps.a.command: is one program with spaces in its name" },
	{ USER APP(COMMAND "children = 3;"),
	    "apps.a.children: is for runtime php only" },
	{ USER APP(COMMAND "module = \"a:b\";"),
	    "apps.a.module: is for runtime python only" },
	{ USER APP(COMMAND "umask = 22;"),
	    "apps.a.umask: takes octal digits in quotes such as \"022\"" },
	{ USER APP(COMMAND "umask = \"8\";"),
	    "apps.a.umask: \"8\" is not between \"000\" and \"777\"" },
	{ USER APP(COMMAND "umask = \"1777\";"), "apps.a.umask: \"1777\" is" },
	{ USER APP(COMMAND "nice = 20;"),
	    "apps.a.nice: 20 is outside of -20 to 19" },
	{ USER APP(COMMAND "probe = { status = 199; };"),
	    "scalws.conf:2: apps.a.probe.status: 199 is outside of 200 to 599, "
	    "and is not 0" },
	{ USER APP(COMMAND "probe = { status = 600; };"),
	    "apps.a.probe.status: 600 is outside of 200 to 599" },
	{ USER APP(COMMAND "probe = { status = -1; };"),
	    "apps.a.probe.status: -1 is outside of" },
	{ USER APP(COMMAND "watchdog = \"1ms\";"),
	    "scalws.conf:2: apps.a.watchdog: \"1ms\" is outside of 1s to 1d, "
	    "and is not 0" },
	{ USER APP(COMMAND "recycle = { memory = \"1\"; };"),
	    "scalws.conf:2: apps.a.recycle.memory: 1 bytes is outside of 1M to "
	    "1024T, and is not 0" },
	{ USER APP(COMMAND "recycle = { age = \"999ms\"; };"),
	    "apps.a.recycle.age: \"999ms\" is outside of 1s to 24d" },
	{ USER APP(COMMAND "log = { max_bytes = 10; };"),
	    "apps.a.log.max_bytes: 10 bytes is outside of 4K to 1024T" },
	{ USER APP(COMMAND "stop_signal = \"FOO\";"),
	    "apps.a.stop_signal: \"FOO\" is none of TERM" },
	{ USER APP(COMMAND "limits = { files = 5; };"),
	    "apps.a.limits.files: there is no such limit" },
	{ USER APP(COMMAND "limits = { nofile = \"9:5\"; };"),
	    "apps.a.limits.nofile: takes a number, a size" },
	{ USER APP(COMMAND "environment = [ \"NAME\" ];"),
	    "apps.a.environment: \"NAME\" has no = between name and value" },
	{ USER APP(COMMAND "environment = [ \"A-B=1\" ];"),
	    "apps.a.environment: \"A-B\" cannot be the name of a variable" },
	{ USER APP(COMMAND "environment = [ \"A=1\", \"A=2\" ];"),
	    "apps.a.environment: A stands here twice" },
	{ USER APP(COMMAND "environment = { NOTIFY_SOCKET = \"x\"; };"),
	    "apps.a.environment: NOTIFY_SOCKET is set by scalwsd itself" },
	{ USER APP(COMMAND "environment = { A = true; };"),
	    "apps.a.environment.A: takes a text in quotes, not true or" },
	{ USER APP(COMMAND "probe = { path = \"x\"; };"),
	    "apps.a.probe: the path does not begin with /" },
	{ USER APP(COMMAND "log = { max_bytes = \"x\"; };"),
	    "apps.a.log.max_bytes: \"x\" is no size" },
	{ USER "apps = { a = { user = \"no-such-user\"; " COMMAND "}; };\n",
	    "scalws.conf:2: apps.a.user: there is no such user: "
	    "\"no-such-user\"" },
	{ USER "apps = { a = { user = \"nobody\"; " COMMAND
	       "log = { file = \"/x\"; }; };\nb = { user = \"nobody\"; " COMMAND
	       "log = { file = \"/x\"; }; }; };\n",
	    "scalws.conf:3: apps.b.log.file: /x is the log of the app \"a\"" },
	{ USER SITE
	    "access_log = \"/x\";\n" APP(COMMAND "log = {\nfile = \"/x\"; };"),
	    "scalws.conf:5: apps.a.log.file: /x is an access log" },
	{ USER "log_directory = \"/l\";\n" APP(
	      COMMAND "log = { file = \"/l/./y/..//access.log\"; };"),
	    "scalws.conf:3: apps.a.log.file: /l/./y/..//access.log is an "
	    "access log" },
	{ USER
	    "sites = ( { listen = \"127.0.0.1:8080\"; access_log = \"/l/a\"; "
	    "routes = ( { app = \"a\"; } ); } );\n" APP(
		COMMAND "log = { file = \"/l/a\"; };"),
	    "scalws.conf:3: apps.a.log.file: /l/a is an access log" },
	{ USER "error_log = \"/x/a.log\";\nlog_directory = \"/x/\";\n" APP(
	      COMMAND),
	    "scalws.conf:4: apps.a.log.file: /x//a.log is the error log" },
	{ BASE "error_log = \"/x\";\naccess_log = \"/x\";\n",
	    "scalws.conf:4: access_log: /x is the error log" },
	{ USER
	    "error_log = \"/x\";\nsites = ( { listen = \"127.0.0.1:8080\"; "
	    "access_log = \"/x\"; routes = ( { respond = { body = \"\"; }; } "
	    "); } );\n",
	    "scalws.conf:3: sites[0].access_log: /x is the error log" },
	{ USER "run_directory = \"/" /* 88 bytes */
	       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	       "aaaaaaaaaaaaaaaaaaaaaaaaaaa\";\n" APP(COMMAND),
	    "apps.a.runtime: the paths of its sockets would be longer than "
	    "107 bytes; shorten run_directory (88 bytes)" },
	/* python */
	{ USER APP("runtime = \"python\"; directory = \"/\";"),
	    "apps.a.module: is missing; runtime python needs it" },
	{ USER APP("runtime = \"python\"; module = \"m:a\";"),
	    "apps.a.directory: is missing; runtime python needs it" },
	{ USER APP("runtime = \"python\"; directory = \"/\"; module = \"m\";"),
	    "apps.a.module: \"m\" is not of the form" },
	{ USER APP("runtime = \"python\"; directory = \"/\"; "
		   "module = \"m:a\"; threads = 4;"),
	    "apps.a.threads: is for server = \"gunicorn\"" },
	{ USER APP("runtime = \"python\"; directory = \"/\"; "
		   "module = \"m:a\"; server = \"gunicorn\"; factory = true;"),
	    "apps.a.factory: is for uvicorn" },
	{ USER APP("runtime = \"python\"; directory = \"/\"; "
		   "module = \"m:a\"; server = \"gunicorn\"; threads = 2; "
		   "concurrency = 3;"),
	    "apps.a.concurrency: 3 is more than the 2 threads" },
	{ USER APP("runtime = \"python\"; directory = \"/\"; "
		   "module = \"m:a\"; venv = \"v\"; python = \"p\";"),
	    "apps.a.python: there is a venv already" },
	/* node */
	{ USER APP("runtime = \"node\";"),
	    "apps.a.script: is missing; runtime node needs it" },
	{ USER APP("runtime = \"node\"; script = \"server.js\";"),
	    "apps.a.directory: is missing; the script is relative to it" },
	{ USER APP("runtime = \"node\"; directory = \"/\"; script = \"-e\";"),
	    "apps.a.script: begins with -" },
	/* php */
	{ USER APP("runtime = \"php\";"),
	    "apps.a.root: is missing; runtime php needs it" },
	{ USER APP("runtime = \"php\"; root = \"/\"; processes = 2;"),
	    "apps.a.processes: 2 is outside of 1 to 1" },
	{ USER APP("runtime = \"php\"; root = \"/\"; index = \"a/b\";"),
	    "apps.a.index: \"a/b\" is no file name" },
	{ USER APP("runtime = \"php\"; root = \"/\"; "
		   "front_controller = \"../x.php\";"),
	    "apps.a.front_controller: \"../x.php\" is no path below" },
	{ USER APP("runtime = \"php\"; root = \"/\"; children = 2; "
		   "concurrency = 3;"),
	    "apps.a.concurrency: 3 is more than the 2 children" },
	{ USER APP("runtime = \"php\"; root = \"/\"; ini = [ \"a=b\\nc=d\" ];"),
	    "apps.a.ini: has control characters" },
};

static void
expect_message(const char *text, const char *message)
{
	struct conf_errors errors;
	struct conf *conf = load(text, &errors);

	ck_assert_msg(conf == NULL, "accepted: %s", text);
	ck_assert_int_gt(errors.count, 0);
	ck_assert_msg(strstr(errors.text.ptr, message) != NULL,
	    "no \"%s\" in:\n%s\nfor: %s", message, errors.text.ptr, text);
	conf_free(conf);
	conf_errors_free(&errors);
}

START_TEST(refuses_syntax)
{
	expect_message(bad_syntax[_i].text, bad_syntax[_i].message);
}
END_TEST

START_TEST(refuses_value)
{
	expect_message(bad_values[_i].text, bad_values[_i].message);
}
END_TEST

START_TEST(refuses_app)
{
	expect_message(bad_apps[_i].text, bad_apps[_i].message);
}
END_TEST

/* What is wrong is not taken for a value that somebody wrote. */
START_TEST(tells_one_mistake_once)
{
	struct conf_errors errors;
	struct conf *conf =
	    load(USER "upstreams = { u = { protocol = \"https\"; "
		      "peers = ( { address = \"127.0.0.1:9\"; } ); "
		      "tls = { verify = \"yes\"; }; }; };\n" SITE,
		&errors);

	ck_assert_ptr_null(conf);
	ck_assert_int_eq(errors.count, 1);
	ck_assert_int_eq(errors.warnings, 0);
	ck_assert_ptr_nonnull(strstr(errors.text.ptr,
	    "upstreams.u.tls.verify: takes true or false, not a string\n"));
	conf_errors_free(&errors);
}
END_TEST

START_TEST(tells_all_mistakes)
{
	struct conf_errors errors;
	struct conf *conf =
	    load("user = \"no-such-user\";\nwokers = 1;\n"
		 "upstreams = { u = { peers = ( \"host.name:1\" ); }; };\n"
		 "apps = { a = { runtime = \"ruby\"; }; };\n" SITE,
		&errors);

	ck_assert_ptr_null(conf);
	ck_assert_int_ge(errors.count, 4);
	ck_assert_ptr_nonnull(strstr(errors.text.ptr, "scalws.conf:1: user"));
	ck_assert_ptr_nonnull(strstr(errors.text.ptr, "scalws.conf:2: wok"));
	ck_assert_ptr_nonnull(strstr(errors.text.ptr, "scalws.conf:3: up"));
	ck_assert_ptr_nonnull(strstr(errors.text.ptr, "scalws.conf:4: apps"));
	conf_errors_free(&errors);
}
END_TEST

START_TEST(stops_telling)
{
	struct conf_errors errors;
	struct conf_where where = { "f", 1 };
	char line[32];
	int lines = 0;

	conf_errors_init(&errors);
	for (int i = 0; i < CONF_ERRORS_MAX + 12; i++)
		ck_assert_int_eq(
		    conf_errors_add(&errors, &where, "p", "no\n%d", i), -1);
	ck_assert_int_eq(errors.count, CONF_ERRORS_MAX + 12);
	for (const char *at = errors.text.ptr; *at != '\0'; at++)
		lines += *at == '\n';
	ck_assert_int_eq(lines, CONF_ERRORS_MAX + 1);
	/* A control byte of a text cannot begin a line of its own. */
	ck_assert(strncmp(errors.text.ptr, "f:1: p: no?0\n", 13) == 0);
	strcpy(line, "\nand 12 more like these\n");
	ck_assert_str_eq(
	    errors.text.ptr + errors.text.len - strlen(line), line);
	conf_errors_free(&errors);
}
END_TEST

START_TEST(missing_and_strange_files)
{
	static const char *const bad[] = { ";", "{", "sites",
		"sites = ", "a.b = 1;", "sites = ( { listen = [ \"\" ]; } );",
		"sites = ( { names = [ \"\" ]; } );", "@include \"\"\n",
		"\xff\xfe\xff", "\"", "\\", "sites = ( \"", "workers = 0x;" };
	struct conf_errors errors;
	struct conf *conf;
	struct strbuf deep = STRBUF_EMPTY;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		conf = load(bad[i], &errors);
		ck_assert_msg(conf == NULL, "%s", bad[i]);
		ck_assert_int_gt(errors.count, 0);
		conf_errors_free(&errors);
	}
	for (int i = 0; i < 5000; i++)
		strbuf_add_text(&deep, "( ");
	conf = load(deep.ptr, &errors);
	ck_assert_ptr_null(conf);
	ck_assert_ptr_nonnull(strstr(errors.text.ptr, "nested too deeply"));
	conf_errors_free(&errors);
	strbuf_free(&deep);

	conf_errors_init(&errors);
	ck_assert_ptr_null(conf_load("/nonexistent/x.conf", &errors));
	ck_assert_str_eq(errors.text.ptr,
	    "/nonexistent/x.conf: cannot be read: No such file or "
	    "directory\n");
	ck_assert_ptr_null(conf_load("/", &errors));
	ck_assert_ptr_nonnull(
	    strstr(errors.text.ptr, "/: is not a regular file\n"));
	conf_errors_free(&errors);
}
END_TEST

START_TEST(refuses_nul)
{
	struct conf_errors errors;
	int fd = open("nul.conf", O_WRONLY | O_CREAT, 0644);

	ck_assert_int_eq(fd_write_all(fd, BASE "\0", sizeof(BASE)), 0);
	close(fd);
	conf_errors_init(&errors);
	ck_assert_ptr_null(conf_load("nul.conf", &errors));
	ck_assert_ptr_nonnull(strstr(errors.text.ptr, "NUL bytes"));
	conf_errors_free(&errors);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { tells_all_mistakes,
		tells_one_mistake_once, stops_telling,
		missing_and_strange_files, refuses_nul };
	Suite *suite = suite_create("conf_bad");
	TCase *all = tcase_create("bad");

	tcase_add_checked_fixture(all, conf_files_enter, conf_files_leave);
	tcase_add_loop_test(all, refuses_syntax, 0, (int)ARRAY_LEN(bad_syntax));
	tcase_add_loop_test(all, refuses_value, 0, (int)ARRAY_LEN(bad_values));
	tcase_add_loop_test(all, refuses_app, 0, (int)ARRAY_LEN(bad_apps));
	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		tcase_add_test(all, tests[i]);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
