/*
 * THE table: every key of the configuration, one row each.
 * Read through conf_schema.h by the walk, the printer and the manual.
 * Adding a key is adding a row here and a member in conf.h.
 */
#include "src/conf/conf_schema.h"

#define IN(type, member)                         \
	.offset = offsetof(struct type, member), \
	.width = sizeof(((struct type *)NULL)->member)
#define COUNT(type, member) .count_offset = offsetof(struct type, member)
#define CHOICES(...)                     \
	.choices = (const char *const[]) \
	{                                \
		__VA_ARGS__, NULL        \
	}

#define K (INT64_C(1) << 10)
#define M (INT64_C(1) << 20)
#define SECONDS INT64_C(1000)
#define HOUR (3600 * SECONDS)
#define DAY (24 * HOUR)
/* Far beyond any disk, so that sums stay in range. */
#define ANY_SIZE (INT64_C(1) << 50)
#define PATH_BYTES 4000

/* Each member on a line of its own would make the table unreadable. */
/* clang-format off */
const struct conf_key conf_keys[] = {
	{ .path = "include", .type = CONF_TYPE_STRINGS, .unstored = true,
	    .help = "File patterns of drop-ins, relative to the main file; "
		"each is parsed alone and may hold only apps, upstreams "
		"and sites." },
	{ .path = "user", .type = CONF_TYPE_STRING,
	    .needs = CONF_NEEDS_RESTART, .min = 1, .max = 63,
	    .preset_text = "scalws as root; else the caller", IN(conf, user),
	    .help = "User that the proxy runs as, when scalwsd is started "
		"as root." },
	{ .path = "group", .type = CONF_TYPE_STRING,
	    .needs = CONF_NEEDS_RESTART, .min = 1, .max = 63, IN(conf, group),
	    .help = "Group of the proxy, in place of the user's own." },
	{ .path = "workers", .type = CONF_TYPE_NUMBER,
	    .needs = CONF_NEEDS_RESTART, .max = 256, .preset = "0",
	    IN(conf, workers),
	    .help = "Proxy threads; 0 is one for each CPU that scalwsd may "
		"use." },
	{ .path = "run_directory", .type = CONF_TYPE_PATH,
	    .needs = CONF_NEEDS_RESTART, .min = 1, .max = PATH_BYTES,
	    .preset_text = "/run/scalws as root; else $XDG_RUNTIME_DIR/scalws",
	    IN(conf, run_directory),
	    .help = "Directory of sockets and of the lock file; only one "
		"scalwsd can use it." },
	{ .path = "log_directory", .type = CONF_TYPE_PATH,
	    .needs = CONF_NEEDS_RESTART, .min = 1, .max = PATH_BYTES,
	    .preset_text = "/var/log/scalws as root; else ~/.local/state/scalws",
	    IN(conf, log_directory),
	    .help = "Directory of log files that have no path of their own." },
	{ .path = "temp_directory", .type = CONF_TYPE_PATH,
	    .min = 1, .max = PATH_BYTES, .preset = "/var/tmp",
	    IN(conf, temp_directory),
	    .help = "Directory of temporary files for large bodies." },
	{ .path = "log_level", .type = CONF_TYPE_WORD,
	    .needs = CONF_NEEDS_RESTART,
	    .preset = "info", CHOICES("error", "warn", "info", "debug"),
	    IN(conf, log_level),
	    .help = "Least important message that scalwsd writes to its own "
		"log." },
	{ .path = "error_log", .type = CONF_TYPE_PATH,
	    .needs = CONF_NEEDS_RESTART,
	    .min = 1, .max = PATH_BYTES, .preset_text = "standard error",
	    .none = true, IN(conf, error_log),
	    .help = "File of scalwsd's own log. When its disk hangs, 256K of "
		"lines wait, further ones are lost, and counted there." },
	{ .path = "access_log", .type = CONF_TYPE_PATH,
	    .min = 1, .max = PATH_BYTES,
	    .preset_text = "LOG_DIRECTORY/access.log", .none = true,
	    IN(conf, access_log),
	    .help = "File that gets one line for each request." },
	{ .path = "access_log_format", .type = CONF_TYPE_CHOICE,
	    .preset = "combined", CHOICES("combined", "json"),
	    IN(conf, access_log_format),
	    .help = "What a line of the access log looks like; json has "
		"more: the app, the pid of its process, and where the "
		"time went." },
	{ .path = "control", .type = CONF_TYPE_GROUP, .unstored = true,
	    .help = "The socket of scalwsctl." },
	{ .path = "control.socket", .type = CONF_TYPE_PATH,
	    .needs = CONF_NEEDS_RESTART, .min = 1, .max = PATH_BYTES,
	    .preset_text = "RUN_DIRECTORY/control.sock",
	    IN(conf, control.socket),
	    .help = "Where it is." },
	{ .path = "control.group", .type = CONF_TYPE_STRING,
	    .needs = CONF_NEEDS_RESTART, .min = 1, .max = 63,
	    IN(conf, control.group),
	    .help = "Group whose members may read the status. Only root and "
		"the user that scalwsd runs as may change things." },
	{ .path = "trusted_proxies", .type = CONF_TYPE_RANGES,
	    IN(conf, trusted_proxies), COUNT(conf, n_trusted_proxies),
	    .help = "Addresses of proxies in front of this one, whose "
		"X-Forwarded fields are believed: ranges such as "
		"\"10.0.0.0/8\", or \"unix\" for all clients of unix "
		"sockets." },
	{ .path = "tls", .type = CONF_TYPE_GROUP, .unstored = true,
	    .help = "What all sites with TLS share." },
	{ .path = "tls.ticket_keys", .type = CONF_TYPE_PATH,
	    .min = 1, .max = PATH_BYTES, .preset_text = "made by scalwsd",
	    IN(conf, tls.ticket_keys),
	    .help = "File of the keys of session tickets, for several "
		"machines that serve the same sites: 80 random bytes a key, "
		"up to 16 of them; the first makes tickets, all of them open "
		"some. It is read again when it changes. Without it scalwsd "
		"makes keys of its own and changes them every 8 hours." },
	{ .path = "defer_accept", .type = CONF_TYPE_BOOL,
	    .needs = CONF_NEEDS_RESTART, .preset = "true",
	    IN(conf, defer_accept),
	    .help = "Wake the proxy for a new connection only when its "
		"first bytes are there." },
	{ .path = "backlog", .type = CONF_TYPE_NUMBER,
	    .needs = CONF_NEEDS_RESTART, .min = 1, .max = 65535,
	    .preset = "4096", IN(conf, backlog),
	    .help = "Connections that may wait in a listening socket." },
	{ .path = "limits", .type = CONF_TYPE_GROUP, .unstored = true,
	    .help = "Sizes and times of the client side." },
	{ .path = "limits.request_line_bytes", .type = CONF_TYPE_BYTES,
	    .min = 256, .max = 64 * K, .preset = "8K",
	    IN(conf, limits.request_line_bytes),
	    .help = "Longest request line; beyond it the answer is 414." },
	{ .path = "limits.header_bytes", .type = CONF_TYPE_BYTES,
	    .min = 1 * K, .max = 78 * K, .preset = "32K",
	    IN(conf, limits.header_bytes),
	    .help = "Largest request head; beyond it the answer is 431." },
	{ .path = "limits.header_count", .type = CONF_TYPE_NUMBER,
	    .min = 8, .max = 128, .preset = "100",
	    IN(conf, limits.header_count),
	    .help = "Most header fields of a request; beyond it the answer "
		"is 431." },
	{ .path = "limits.response_header_bytes", .type = CONF_TYPE_BYTES,
	    .min = 4 * K, .max = 78 * K, .preset = "68K",
	    IN(conf, limits.response_header_bytes),
	    .help = "Largest head of an app's answer; beyond it the client "
		"gets 502." },
	{ .path = "limits.body_bytes", .type = CONF_TYPE_BYTES,
	    .max = ANY_SIZE, .preset = "64M", IN(conf, limits.body_bytes),
	    .help = "Largest request body where a route has no "
		"max_body_bytes; beyond it the answer is 413." },
	{ .path = "limits.buffer_bytes", .type = CONF_TYPE_BYTES,
	    .min = 16 * K, .max = 16 * M, .preset = "64K",
	    IN(conf, limits.buffer_bytes),
	    .help = "What may wait in memory for a slow client or app, each "
		"way and request. The kernel keeps twice as much again for a "
		"client, 1 MiB for one that reads." },
	{ .path = "limits.spool_bytes", .type = CONF_TYPE_BYTES,
	    .max = ANY_SIZE, .preset = "1G", IN(conf, limits.spool_bytes),
	    .help = "Largest body that is kept in a temporary file; beyond it "
		"the answer is 413." },
	{ .path = "limits.spool_total_bytes", .type = CONF_TYPE_BYTES,
	    .max = ANY_SIZE, .preset = "8G", IN(conf, limits.spool_total_bytes),
	    .help = "All temporary files together; beyond it the answer is "
		"507." },
	{ .path = "limits.spool_memory_bytes", .type = CONF_TYPE_BYTES,
	    .min = 4 * K, .max = 16 * M, .preset = "64K",
	    IN(conf, limits.spool_memory_bytes),
	    .help = "Part of such a body that is kept in memory before a "
		"file is used." },
	{ .path = "limits.connections", .type = CONF_TYPE_NUMBER,
	    .min = 1, .max = 1000000, .preset = "10000",
	    IN(conf, limits.connections),
	    .help = "Client connections at one time." },
	{ .path = "limits.connections_per_address", .type = CONF_TYPE_NUMBER,
	    .max = 1000000, .preset = "0",
	    IN(conf, limits.connections_per_address),
	    .help = "Client connections of one address (IPv6: of one /64) at "
		"one time; beyond it the answer is 503. 0 is no limit. "
		"trusted_proxies and clients of unix sockets have none." },
	{ .path = "limits.requests_per_connection", .type = CONF_TYPE_NUMBER,
	    .min = 1, .max = 1000000000, .preset = "10000",
	    IN(conf, limits.requests_per_connection),
	    .help = "Requests after which a client connection is closed." },
	{ .path = "limits.header_timeout", .type = CONF_TYPE_DURATION,
	    .min = 100, .max = HOUR, .preset = "15s",
	    IN(conf, limits.header_timeout_ms),
	    .help = "Longest time from the first byte of a request head to "
		"its end; then 408. A connection that has sent nothing yet is "
		"closed after it." },
	{ .path = "limits.body_timeout", .type = CONF_TYPE_DURATION,
	    .min = 100, .max = DAY, .preset = "30s",
	    IN(conf, limits.body_timeout_ms),
	    .help = "Longest pause within a request body; then 408." },
	{ .path = "limits.body_bytes_per_second", .type = CONF_TYPE_BYTES,
	    .max = 1 * M, .preset = "100",
	    IN(conf, limits.body_bytes_per_second),
	    .help = "Slowest request body, measured over each body_timeout "
		"in which the app would take it; then 408. 0 is any." },
	{ .path = "limits.send_timeout", .type = CONF_TYPE_DURATION,
	    .min = 100, .max = DAY, .preset = "60s",
	    IN(conf, limits.send_timeout_ms),
	    .help = "Longest time without progress in sending to a client." },
	{ .path = "limits.idle_timeout", .type = CONF_TYPE_DURATION,
	    .min = 100, .max = DAY, .preset = "60s",
	    IN(conf, limits.idle_timeout_ms),
	    .help = "How long a client connection is kept without a "
		"request." },
	{ .path = "limits.drain_timeout", .type = CONF_TYPE_DURATION,
	    .max = DAY, .preset = "30s", IN(conf, limits.drain_timeout_ms),
	    .help = "How long requests may still run when scalwsd stops." },
	{ .path = "limits.h2_streams", .type = CONF_TYPE_NUMBER,
	    .min = 1, .max = 10000, .preset = "100",
	    IN(conf, limits.h2_streams),
	    .help = "Requests that one HTTP/2 connection may have at a time." },
	{ .path = "limits.h2_window_bytes", .type = CONF_TYPE_BYTES,
	    .min = 16 * K, .max = 16 * M, .preset = "256K",
	    IN(conf, limits.h2_window_bytes),
	    .help = "Part of a request body that an HTTP/2 client may send "
		"before the app has taken it." },
	{ .path = "limits.h2_connection_bytes", .type = CONF_TYPE_BYTES,
	    .min = 64 * K, .max = 256 * M, .preset = "2M",
	    IN(conf, limits.h2_connection_bytes),
	    .help = "The same for all requests of an HTTP/2 connection; and "
		"what may wait in memory for its client, above which each of "
		"its answers may have 16 KiB there." },
	{ .path = "limits.h2_resets", .type = CONF_TYPE_NUMBER,
	    .min = 1, .max = 1000000, .preset = "1000",
	    IN(conf, limits.h2_resets),
	    .help = "Streams of an HTTP/2 connection that the client may "
		"reset, or break a rule in, within 10 seconds; beyond it the "
		"connection is closed (ENHANCE_YOUR_CALM)." },
	{ .path = "limits.h2_control_frames", .type = CONF_TYPE_NUMBER,
	    .min = 16, .max = 1000000, .preset = "1000",
	    IN(conf, limits.h2_control_frames),
	    .help = "The same for frames that bring nothing: SETTINGS, PING, "
		"PRIORITY, CONTINUATION, empty DATA, unknown ones, and window "
		"updates beyond two for each DATA frame that was sent." },
	{ .path = "apps", .type = CONF_TYPE_GROUPS, .unstored = true,
	    .help = "The programs that scalwsd runs, by name." },
	{ .path = "apps.*.runtime", .type = CONF_TYPE_CHOICE,
	    .needs = CONF_NEEDS_APP_RESTART, .required = CONF_FOR_ALL,
	    CHOICES("python", "node", "php", "command"), IN(conf_app, runtime),
	    .help = "What kind of program it is." },
	{ .path = "apps.*.directory", .type = CONF_TYPE_PATH,
	    .needs = CONF_NEEDS_APP_RESTART, .required = CONF_FOR_PYTHON,
	    .min = 1, .max = PATH_BYTES,
	    .preset_text = "php: its root; node: where an absolute script is; command: /",
	    IN(conf_app, directory),
	    .help = "Working directory." },
	{ .path = "apps.*.user", .type = CONF_TYPE_STRING,
	    .needs = CONF_NEEDS_APP_RESTART, .min = 1, .max = 63,
	    IN(conf_app, user),
	    .help = "User that the app runs as; needed when scalwsd runs as "
		"root." },
	{ .path = "apps.*.group", .type = CONF_TYPE_STRING,
	    .needs = CONF_NEEDS_APP_RESTART, .min = 1, .max = 63,
	    IN(conf_app, group),
	    .help = "Group of the app, in place of the user's own." },
	{ .path = "apps.*.allow_root", .type = CONF_TYPE_BOOL,
	    .needs = CONF_NEEDS_APP_RESTART, .preset = "false",
	    IN(conf_app, allow_root),
	    .help = "Allow root as the user." },
	{ .path = "apps.*.server", .type = CONF_TYPE_CHOICE,
	    .needs = CONF_NEEDS_APP_RESTART, .runtimes = CONF_FOR_PYTHON,
	    .preset = "uvicorn", CHOICES("uvicorn", "gunicorn"),
	    IN(conf_app, server),
	    .help = "uvicorn for ASGI applications, gunicorn for WSGI." },
	{ .path = "apps.*.venv", .type = CONF_TYPE_STRING,
	    .needs = CONF_NEEDS_APP_RESTART, .runtimes = CONF_FOR_PYTHON,
	    .min = 1, .max = PATH_BYTES, IN(conf_app, venv),
	    .help = "Virtual environment whose interpreter is used; "
		"relative to the directory." },
	{ .path = "apps.*.python", .type = CONF_TYPE_STRING,
	    .needs = CONF_NEEDS_APP_RESTART, .runtimes = CONF_FOR_PYTHON,
	    .min = 1, .max = PATH_BYTES, .preset_text = "python3",
	    IN(conf_app, python),
	    .help = "Interpreter, when there is no venv." },
	{ .path = "apps.*.module", .type = CONF_TYPE_STRING,
	    .needs = CONF_NEEDS_APP_RESTART, .runtimes = CONF_FOR_PYTHON,
	    .required = CONF_FOR_PYTHON, .min = 1, .max = 1000,
	    IN(conf_app, module),
	    .help = "Module and application object, as in main:app." },
	{ .path = "apps.*.factory", .type = CONF_TYPE_BOOL,
	    .needs = CONF_NEEDS_APP_RESTART, .runtimes = CONF_FOR_PYTHON,
	    .preset = "false", IN(conf_app, factory),
	    .help = "The object is a function that makes the application "
		"(uvicorn)." },
	{ .path = "apps.*.threads", .type = CONF_TYPE_NUMBER,
	    .needs = CONF_NEEDS_APP_RESTART, .runtimes = CONF_FOR_PYTHON,
	    .min = 1, .max = 1000, .preset = "8", IN(conf_app, threads),
	    .help = "Threads of each gunicorn process, which is the number "
		"of requests it takes at a time; 1 is a sync worker." },
	{ .path = "apps.*.script", .type = CONF_TYPE_STRING,
	    .needs = CONF_NEEDS_APP_RESTART, .runtimes = CONF_FOR_NODE,
	    .required = CONF_FOR_NODE, .min = 1, .max = PATH_BYTES,
	    IN(conf_app, script),
	    .help = "File that node runs; relative to the directory." },
	{ .path = "apps.*.node", .type = CONF_TYPE_STRING,
	    .needs = CONF_NEEDS_APP_RESTART, .runtimes = CONF_FOR_NODE,
	    .min = 1, .max = PATH_BYTES, .preset = "node", IN(conf_app, node),
	    .help = "Interpreter." },
	{ .path = "apps.*.php_fpm", .type = CONF_TYPE_STRING,
	    .needs = CONF_NEEDS_APP_RESTART, .runtimes = CONF_FOR_PHP, .min = 1,
	    .max = PATH_BYTES, .preset_text = "looked for",
	    IN(conf_app, php_fpm),
	    .help = "Program of the PHP-FPM master." },
	{ .path = "apps.*.root", .type = CONF_TYPE_PATH,
	    .needs = CONF_NEEDS_APP_RESTART, .runtimes = CONF_FOR_PHP,
	    .required = CONF_FOR_PHP, .min = 1, .max = PATH_BYTES,
	    IN(conf_app, root),
	    .help = "Document root." },
	{ .path = "apps.*.index", .type = CONF_TYPE_STRING,
	    .needs = CONF_NEEDS_APP_RESTART, .runtimes = CONF_FOR_PHP, .min = 1,
	    .max = 255, .preset = "index.php", IN(conf_app, php_index),
	    .help = "Script that answers for a directory." },
	{ .path = "apps.*.front_controller", .type = CONF_TYPE_STRING,
	    .needs = CONF_NEEDS_APP_RESTART, .runtimes = CONF_FOR_PHP, .min = 1,
	    .max = PATH_BYTES, .preset_text = "the index", .none = true,
	    IN(conf_app, front_controller),
	    .help = "Script below the root that answers for paths that are "
		"no script; none is 404." },
	{ .path = "apps.*.children", .type = CONF_TYPE_NUMBER,
	    .needs = CONF_NEEDS_APP_RESTART, .runtimes = CONF_FOR_PHP, .min = 1,
	    .max = 10000, .preset = "8", IN(conf_app, children),
	    .help = "PHP processes, which is the number of requests at a "
		"time." },
	{ .path = "apps.*.ini", .type = CONF_TYPE_PAIRS,
	    .needs = CONF_NEEDS_APP_RESTART, .runtimes = CONF_FOR_PHP,
	    IN(conf_app, ini),
	    .help = "PHP settings." },
	{ .path = "apps.*.command", .type = CONF_TYPE_STRINGS,
	    .needs = CONF_NEEDS_APP_RESTART, .runtimes = CONF_FOR_COMMAND,
	    .required = CONF_FOR_COMMAND, .max = 100000, IN(conf_app, command),
	    .help = "Program and arguments. {socket} and {port} in "
		"arguments are replaced." },
	{ .path = "apps.*.http", .type = CONF_TYPE_BOOL,
	    .needs = CONF_NEEDS_APP_RESTART, .runtimes = CONF_FOR_COMMAND,
	    .preset = "true", IN(conf_app, http),
	    .help = "Whether it answers requests; false is a worker without "
		"a listener." },
	{ .path = "apps.*.arguments", .type = CONF_TYPE_STRINGS,
	    .needs = CONF_NEEDS_APP_RESTART,
	    .runtimes = CONF_FOR_PYTHON | CONF_FOR_NODE | CONF_FOR_PHP,
	    .max = 100000, IN(conf_app, arguments),
	    .help = "Arguments added to the command line." },
	{ .path = "apps.*.environment", .type = CONF_TYPE_PAIRS,
	    .needs = CONF_NEEDS_APP_RESTART, IN(conf_app, environment),
	    .help = "Variables, as a group or as a list of \"NAME=value\". "
		"Nothing else of scalwsd's own environment reaches the "
		"app." },
	{ .path = "apps.*.environment_file", .type = CONF_TYPE_PATH,
	    .min = 1, .max = PATH_BYTES, IN(conf_app, environment_file),
	    .help = "File of more variables, lines of NAME=value with # for "
		"comments and optional quotes; read by scalwsd at each start "
		"and restart. environment counts more." },
	{ .path = "apps.*.before_start", .type = CONF_TYPE_STRINGS,
	    .needs = CONF_NEEDS_APP_RESTART, .max = 100000,
	    IN(conf_app, before_start),
	    .help = "Program and arguments that run to their end before the "
		"app's first process, at each start and restart of the app: "
		"as its user, in its directory, with its environment, within "
		"start_timeout. When it fails the app is not started and it "
		"is tried again with a growing pause." },
	{ .path = "apps.*.processes", .type = CONF_TYPE_NUMBER,
	    .runtimes = CONF_FOR_PYTHON | CONF_FOR_NODE | CONF_FOR_COMMAND,
	    .min = 1, .max = 1000, .preset = "1", IN(conf_app, processes),
	    .help = "Processes (instances) of the app." },
	{ .path = "apps.*.processes", .type = CONF_TYPE_NUMBER,
	    .needs = CONF_NEEDS_APP_RESTART, .runtimes = CONF_FOR_PHP, .min = 1,
	    .max = 1, .preset = "1", IN(conf_app, processes),
	    .help = "Always 1: PHP-FPM has children." },
	{ .path = "apps.*.concurrency", .type = CONF_TYPE_NUMBER,
	    .max = 1000000, .preset = "0", IN(conf_app, concurrency),
	    .help = "Requests that one process may have at a time; 0 is the "
		"runtime's own number: its threads or children, else any. "
		"Those whose clients have left count until the process has "
		"closed its side, without a number for at most a second, and "
		"then there may be 64 of them." },
	{ .path = "apps.*.start_timeout", .type = CONF_TYPE_DURATION,
	    .min = 100, .max = DAY, .preset = "60s",
	    IN(conf_app, start_timeout_ms),
	    .help = "Longest time from the start of a process to its "
		"readiness." },
	{ .path = "apps.*.stop_timeout", .type = CONF_TYPE_DURATION,
	    .max = DAY, .preset = "10s", IN(conf_app, stop_timeout_ms),
	    .help = "Time from the stop signal to SIGKILL." },
	{ .path = "apps.*.drain_timeout", .type = CONF_TYPE_DURATION,
	    .max = DAY, .preset = "30s", IN(conf_app, drain_timeout_ms),
	    .help = "Longest wait for the requests of a process that is to "
		"stop. Then it gets the stop signal; one that was replaced and "
		"has streams keeps these (stream_grace), and the proxy ends "
		"its other requests." },
	{ .path = "apps.*.min_uptime", .type = CONF_TYPE_DURATION,
	    .max = DAY, .preset = "10s", IN(conf_app, min_uptime_ms),
	    .help = "A process that ends sooner is restarted with a growing "
		"pause." },
	{ .path = "apps.*.stop_signal", .type = CONF_TYPE_SIGNAL,
	    .preset_text = "the runtime's own", IN(conf_app, stop_signal),
	    .help = "Signal that asks a process to end." },
	{ .path = "apps.*.umask", .type = CONF_TYPE_UMASK,
	    .needs = CONF_NEEDS_APP_RESTART, .preset = "022",
	    IN(conf_app, umask),
	    .help = "File mode creation mask; 007 in place of 022 where the app makes its socket ({socket}) itself." },
	{ .path = "apps.*.nice", .type = CONF_TYPE_NUMBER,
	    .needs = CONF_NEEDS_APP_RESTART, .min = -20, .max = 19,
	    .preset = "0", IN(conf_app, nice),
	    .help = "Niceness." },
	{ .path = "apps.*.no_new_privileges", .type = CONF_TYPE_BOOL,
	    .needs = CONF_NEEDS_APP_RESTART,
	    .runtimes = CONF_FOR_PYTHON | CONF_FOR_NODE | CONF_FOR_COMMAND,
	    .preset = "true", IN(conf_app, no_new_privileges),
	    .help = "Programs that the app starts cannot gain rights "
		"(setuid)." },
	{ .path = "apps.*.no_new_privileges", .type = CONF_TYPE_BOOL,
	    .needs = CONF_NEEDS_APP_RESTART, .runtimes = CONF_FOR_PHP,
	    .preset = "false", IN(conf_app, no_new_privileges),
	    .help = "As for the others; off, because mail() often needs it "
		"off." },
	{ .path = "apps.*.limits", .type = CONF_TYPE_RLIMITS,
	    .needs = CONF_NEEDS_APP_RESTART, IN(conf_app, limits),
	    COUNT(conf_app, n_limits),
	    .help = "Resource limits: nofile, nproc, core, as, data, stack, "
		"fsize, memlock, cpu. A number, a size, \"unlimited\", or "
		"\"SOFT:HARD\"." },
	{ .path = "apps.*.probe", .type = CONF_TYPE_GROUP, .unstored = true,
	    .help = "How readiness is found out." },
	{ .path = "apps.*.probe.path", .type = CONF_TYPE_STRING,
	    .runtimes = CONF_FOR_PYTHON | CONF_FOR_NODE | CONF_FOR_COMMAND,
	    .min = 1, .max = 1000, .preset = "/", IN(conf_app, probe.path),
	    .help = "Path that is asked for; any complete answer below 500 "
		"is ready." },
	{ .path = "apps.*.probe.host", .type = CONF_TYPE_STRING,
	    .min = 1, .max = 255,
	    .preset_text = "first name of the first site that uses the app, else localhost",
	    IN(conf_app, probe.host),
	    .help = "Host that is asked for." },
	{ .path = "apps.*.probe.status", .type = CONF_TYPE_NUMBER,
	    .runtimes = CONF_FOR_PYTHON | CONF_FOR_NODE | CONF_FOR_COMMAND,
	    .min = 200, .max = 599, .or_zero = true, .preset = "0",
	    IN(conf_app, probe.status),
	    .help = "The only status that is ready; 0 is any below 500." },
	{ .path = "apps.*.watchdog", .type = CONF_TYPE_DURATION,
	    .needs = CONF_NEEDS_APP_RESTART, .min = 1 * SECONDS, .max = DAY,
	    .or_zero = true, .preset = "0s", IN(conf_app, watchdog_ms),
	    .help = "The app gets WATCHDOG_USEC and must send WATCHDOG=1 to "
		"NOTIFY_SOCKET (sd_notify) at least so often; a process that "
		"does not is replaced. 0 is no watchdog." },
	{ .path = "apps.*.queue_length", .type = CONF_TYPE_NUMBER,
	    .max = 1000000, .preset = "1000", IN(conf_app, queue_length),
	    .help = "Requests that may wait for a process." },
	{ .path = "apps.*.queue_timeout", .type = CONF_TYPE_DURATION,
	    .max = HOUR, .preset = "30s", IN(conf_app, queue_timeout_ms),
	    .help = "How long they may wait; then 503." },
	{ .path = "apps.*.connect_timeout", .type = CONF_TYPE_DURATION,
	    .min = 1, .max = 600 * SECONDS, .preset = "5s",
	    IN(conf_app, connect_timeout_ms),
	    .help = "Longest wait for a connection to a process." },
	{ .path = "apps.*.response_timeout", .type = CONF_TYPE_DURATION,
	    .min = 1, .max = DAY, .preset = "60s",
	    IN(conf_app, response_timeout_ms),
	    .help = "Longest wait for the head of an answer once the request "
		"is sent; then 504." },
	{ .path = "apps.*.pause_timeout", .type = CONF_TYPE_DURATION,
	    .min = 1, .max = DAY, .preset = "60s",
	    IN(conf_app, pause_timeout_ms),
	    .help = "Longest pause within the body of an answer; then it is "
		"cut off." },
	{ .path = "apps.*.stream_timeout", .type = CONF_TYPE_DURATION,
	    .min = 1, .max = DAY, .preset = "1h",
	    IN(conf_app, stream_timeout_ms),
	    .help = "The same for streams: answers of type "
		"text/event-stream or with X-Accel-Buffering: no. A WebSocket "
		"is closed when both sides were silent for so long." },
	{ .path = "apps.*.request_timeout", .type = CONF_TYPE_DURATION,
	    .max = DAY, .preset = "0s", IN(conf_app, request_timeout_ms),
	    .help = "Longest time that a process may take for a request, to "
		"the end of its answer; streams, and time in which it waits "
		"for the client, do not count. Then 504, or the answer is cut "
		"off, and a process that handles one request at a time (a PHP "
		"child, a gunicorn sync worker, concurrency 1) is replaced. 0 "
		"is no limit." },
	{ .path = "apps.*.abort_grace", .type = CONF_TYPE_DURATION,
	    .min = 100, .max = DAY, .preset = "5s",
	    IN(conf_app, abort_grace_ms),
	    .help = "How long a process that handles one request at a time "
		"may work for a client that has left, before it is "
		"replaced." },
	{ .path = "apps.*.stream_grace", .type = CONF_TYPE_DURATION,
	    .max = DAY, .preset = "60s", IN(conf_app, stream_grace_ms),
	    .help = "How long WebSockets and event streams of a process that "
		"was replaced may go on; its other requests are waited for "
		"first (drain_timeout). At the end it gets the stop "
		"signal." },
	{ .path = "apps.*.recycle", .type = CONF_TYPE_GROUP, .unstored = true,
	    .help = "When a process is replaced by a new one that is ready, "
		"so that no request fails; one of the app at a time. Looked "
		"at every second." },
	{ .path = "apps.*.recycle.requests", .type = CONF_TYPE_NUMBER,
	    .max = 1000000000, .preset = "0", IN(conf_app, recycle.requests),
	    .help = "After so many requests, less up to a tenth by chance, so "
		"that not all processes are due at once; 0 is never. PHP: of "
		"all children together." },
	{ .path = "apps.*.recycle.age", .type = CONF_TYPE_DURATION,
	    .min = 1 * SECONDS, .max = 24 * DAY, .or_zero = true,
	    .preset = "0s", IN(conf_app, recycle.age_ms),
	    .help = "After this time, less up to a tenth by chance; 0 is "
		"never." },
	{ .path = "apps.*.recycle.memory", .type = CONF_TYPE_BYTES,
	    .min = INT64_C(1) << 20, .max = ANY_SIZE, .or_zero = true, .preset = "0",
	    IN(conf_app, recycle.memory_bytes),
	    .help = "When it and all that it has started are larger (resident "
		"memory); 0 is never." },
	{ .path = "apps.*.idle_timeout", .type = CONF_TYPE_DURATION,
	    .runtimes = CONF_FOR_PYTHON | CONF_FOR_NODE, .max = 70 * SECONDS,
	    .preset = "60s", IN(conf_app, idle_timeout_ms),
	    .help = "How long a connection to a process is kept idle." },
	{ .path = "apps.*.idle_timeout", .type = CONF_TYPE_DURATION,
	    .runtimes = CONF_FOR_COMMAND, .max = HOUR, .preset = "4s",
	    IN(conf_app, idle_timeout_ms),
	    .help = "As above, but its own keep-alive time is not known." },
	{ .path = "apps.*.idle_timeout", .type = CONF_TYPE_DURATION,
	    .runtimes = CONF_FOR_PHP, .max = HOUR, .preset = "5s",
	    IN(conf_app, idle_timeout_ms),
	    .help = "As above; a kept connection occupies a child." },
	{ .path = "apps.*.log", .type = CONF_TYPE_GROUP, .unstored = true,
	    .help = "Where standard output and standard error go." },
	{ .path = "apps.*.log.file", .type = CONF_TYPE_PATH,
	    .min = 1, .max = PATH_BYTES,
	    .preset_text = "LOG_DIRECTORY/NAME.log", IN(conf_app, log.file),
	    .help = "File; of this app alone, as it is rotated." },
	{ .path = "apps.*.log.max_bytes", .type = CONF_TYPE_BYTES,
	    .min = 4096, .max = ANY_SIZE, .or_zero = true, .preset = "32M",
	    IN(conf_app, log.max_bytes),
	    .help = "Size at which it is rotated; 0 is never, for logs that "
		    "another program rotates." },
	{ .path = "apps.*.log.max_age", .type = CONF_TYPE_DURATION,
	    .min = 1 * SECONDS, .max = 3650 * DAY, .or_zero = true,
	    .preset = "0s", IN(conf_app, log.max_age_ms),
	    .help = "Age at which it is rotated, and from which rotated files "
		"are removed; looked at when the app prints something. 0 is "
		"never." },
	{ .path = "apps.*.log.keep", .type = CONF_TYPE_NUMBER,
	    .max = 1000, .preset = "4", IN(conf_app, log.keep),
	    .help = "Rotated files that are kept." },
	{ .path = "upstreams", .type = CONF_TYPE_GROUPS, .unstored = true,
	    .help = "Servers that scalwsd does not start, by name." },
	{ .path = "upstreams.*.protocol", .type = CONF_TYPE_CHOICE,
	    .preset = "http", CHOICES("http", "fastcgi", "https"),
	    IN(conf_upstream, protocol),
	    .help = "What they speak." },
	{ .path = "upstreams.*.tls", .type = CONF_TYPE_GROUP,
	    .unstored = true,
	    .help = "How TLS is spoken to them (https)." },
	{ .path = "upstreams.*.tls.server_name", .type = CONF_TYPE_STRING,
	    .min = 1, .max = 253, .preset_text = "the peer's address",
	    IN(conf_upstream, tls.server_name),
	    .help = "Name that they are asked for (SNI) and that must stand in "
		"their certificate; or an address that must stand there." },
	{ .path = "upstreams.*.tls.verify", .type = CONF_TYPE_BOOL,
	    .preset = "true", IN(conf_upstream, tls.verify),
	    .help = "Send nothing unless their certificate is good: signed by "
		"one of the roots, for that name, not expired. Else the client "
		"gets 502, and the log tells why." },
	{ .path = "upstreams.*.tls.ca", .type = CONF_TYPE_PATH,
	    .min = 1, .max = PATH_BYTES, .preset_text = "the system's roots",
	    IN(conf_upstream, tls.ca),
	    .help = "PEM file of the roots that sign their certificates, or of "
		"these certificates themselves." },
	{ .path = "upstreams.*.tls.certificate", .type = CONF_TYPE_PATH,
	    .min = 1, .max = PATH_BYTES, IN(conf_upstream, tls.certificate),
	    .help = "PEM file of a certificate to show to peers that ask for "
		"one." },
	{ .path = "upstreams.*.tls.key", .type = CONF_TYPE_PATH,
	    .min = 1, .max = PATH_BYTES, IN(conf_upstream, tls.key),
	    .help = "PEM file of its private key, without a pass phrase." },
	{ .path = "upstreams.*.tls.min_version", .type = CONF_TYPE_CHOICE,
	    .preset = "1.2", CHOICES("1.2", "1.3"),
	    IN(conf_upstream, tls.min_version),
	    .help = "Oldest version of TLS." },
	{ .path = "upstreams.*.tls.ciphers", .type = CONF_TYPE_STRING,
	    .min = 1, .max = 1000, IN(conf_upstream, tls.ciphers),
	    .preset_text = "ECDHE with AES-GCM and ChaCha20",
	    .help = "Ciphers, as in tls.ciphers of a site." },
	{ .path = "upstreams.*.root", .type = CONF_TYPE_STRING,
	    .min = 1, .max = PATH_BYTES, IN(conf_upstream, root),
	    .help = "Document root at the peers (fastcgi)." },
	{ .path = "upstreams.*.peers", .type = CONF_TYPE_LIST,
	    .required = CONF_FOR_ALL, .unstored = true,
	    .help = "The servers: addresses, or groups with an address." },
	{ .path = "upstreams.*.peers.*.address", .type = CONF_TYPE_STRING,
	    .required = CONF_FOR_ALL, IN(conf_peer, text),
	    .help = "\"10.0.0.5:8080\", \"[::1]:8080\" or \"unix:/run/x.sock\"; "
		"names are not resolved." },
	{ .path = "upstreams.*.peers.*.weight", .type = CONF_TYPE_NUMBER,
	    .min = 1, .max = 1000, .preset = "1", IN(conf_peer, weight),
	    .help = "Share of the requests." },
	{ .path = "upstreams.*.peers.*.max_connections", .type = CONF_TYPE_NUMBER,
	    .max = 1000000, .preset = "0", IN(conf_peer, max_connections),
	    .help = "Most connections to it; 0 is no limit." },
	{ .path = "upstreams.*.queue_length", .type = CONF_TYPE_NUMBER,
	    .max = 1000000, .preset = "1000", IN(conf_upstream, queue_length),
	    .help = "Requests that may wait for a peer." },
	{ .path = "upstreams.*.queue_timeout", .type = CONF_TYPE_DURATION,
	    .max = HOUR, .preset = "30s", IN(conf_upstream, queue_timeout_ms),
	    .help = "How long they may wait; then 503." },
	{ .path = "upstreams.*.connect_timeout", .type = CONF_TYPE_DURATION,
	    .min = 1, .max = 600 * SECONDS, .preset = "5s",
	    IN(conf_upstream, connect_timeout_ms),
	    .help = "Longest wait for a connection before the next peer is "
		"tried." },
	{ .path = "upstreams.*.response_timeout", .type = CONF_TYPE_DURATION,
	    .min = 1, .max = DAY, .preset = "60s",
	    IN(conf_upstream, response_timeout_ms),
	    .help = "Longest wait for the head of an answer once the request "
		"is sent; then 504." },
	{ .path = "upstreams.*.pause_timeout", .type = CONF_TYPE_DURATION,
	    .min = 1, .max = DAY, .preset = "60s",
	    IN(conf_upstream, pause_timeout_ms),
	    .help = "Longest pause within the body of an answer; then it is "
		"cut off." },
	{ .path = "upstreams.*.stream_timeout", .type = CONF_TYPE_DURATION,
	    .min = 1, .max = DAY, .preset = "1h",
	    IN(conf_upstream, stream_timeout_ms),
	    .help = "The same for streams: answers of type "
		"text/event-stream or with X-Accel-Buffering: no. A WebSocket "
		"is closed when both sides were silent for so long." },
	{ .path = "upstreams.*.idle_timeout", .type = CONF_TYPE_DURATION,
	    .max = HOUR, .preset = "4s", IN(conf_upstream, idle_timeout_ms),
	    .help = "How long a connection is kept idle." },
	{ .path = "upstreams.*.idle_max", .type = CONF_TYPE_NUMBER,
	    .max = 100000, .preset = "128", IN(conf_upstream, idle_max),
	    .help = "Idle connections kept by each worker." },
	{ .path = "sites", .type = CONF_TYPE_LIST, .unstored = true,
	    .help = "The sites, in order." },
	{ .path = "sites.*.names", .type = CONF_TYPE_STRINGS,
	    .max = 255, IN(conf_site, names),
	    .help = "Host names, exact or as in \"*.example.com\"." },
	{ .path = "sites.*.default", .type = CONF_TYPE_BOOL,
	    .preset = "false", IN(conf_site, is_default),
	    .help = "Answers for names that no site of the listener has; "
		"else the first site does." },
	{ .path = "sites.*.listen", .type = CONF_TYPE_STRINGS,
	    .required = CONF_FOR_ALL, .max = 200, IN(conf_site, listen),
	    .help = "\"80\" (every address), \"127.0.0.1:80\", \"[::1]:80\" or "
		"\"unix:/run/x.sock\"; with TLS as in \"443 tls\"." },
	{ .path = "sites.*.tls", .type = CONF_TYPE_GROUP, .unstored = true,
	    .help = "Certificate and rules of its TLS listeners." },
	{ .path = "sites.*.tls.certificate", .type = CONF_TYPE_PATHS,
	    .min = 1, .max = PATH_BYTES, IN(conf_site, tls.certificates),
	    .help = "PEM file of the certificate and those between it and "
		"its root; or a list of such files: of RSA and ECDSA, or for "
		"different names. scalwsd reads it before it gives up its "
		"rights." },
	{ .path = "sites.*.tls.key", .type = CONF_TYPE_PATHS,
	    .min = 1, .max = PATH_BYTES, IN(conf_site, tls.keys),
	    .help = "PEM file of its private key, without a pass phrase; "
		"one for each certificate, in their order." },
	{ .path = "sites.*.tls.min_version", .type = CONF_TYPE_CHOICE,
	    .preset = "1.2", CHOICES("1.2", "1.3"),
	    IN(conf_site, tls.min_version),
	    .help = "Oldest version of TLS." },
	{ .path = "sites.*.tls.ciphers", .type = CONF_TYPE_STRING,
	    .min = 1, .max = 1000, IN(conf_site, tls.ciphers),
	    .preset_text = "ECDHE with AES-GCM and ChaCha20",
	    .help = "Ciphers in order of preference, as in openssl-ciphers(1); "
		"names that begin with TLS_ are those of TLS 1.3." },
	{ .path = "sites.*.tls.refuse_unknown_names", .type = CONF_TYPE_BOOL,
	    .preset = "false", IN(conf_site, tls.refuse_unknown_names),
	    .help = "Where this site is the default: turn away, in the "
		"handshake, who asks for a name that no site has, or for "
		"none. Else such a client gets this site's certificate." },
	{ .path = "sites.*.tls.client_certificate", .type = CONF_TYPE_GROUP,
	    .unstored = true,
	    .help = "Certificates that clients show. Apps get the result in "
		"X-SSL-Client-Verify (SUCCESS or NONE) and, from the "
		"certificate, X-SSL-Client-Subject and "
		"X-SSL-Client-Fingerprint (SHA-256); what clients send under "
		"these names is dropped, always." },
	{ .path = "sites.*.tls.client_certificate.ca", .type = CONF_TYPE_PATH,
	    .min = 1, .max = PATH_BYTES, IN(conf_site, tls.client_ca),
	    .help = "PEM file of the roots that sign them." },
	{ .path = "sites.*.tls.client_certificate.verify",
	    .type = CONF_TYPE_CHOICE, .preset = "none",
	    CHOICES("none", "optional", "required"),
	    IN(conf_site, tls.client_verify),
	    .help = "Whether there must be one; a bad one is refused always, and "
		"so is one whose subject has more than 1023 bytes, escaped. "
		"A request that came by a connection for another site's name "
		"gets 421." },
	{ .path = "sites.*.hsts", .type = CONF_TYPE_STRING,
	    .min = 1, .max = 200, IN(conf_site, hsts),
	    .help = "Strict-Transport-Security of answers over TLS: "
		"\"max-age=31536000\", also with \"; includeSubDomains\"." },
	{ .path = "sites.*.https_redirect", .type = CONF_TYPE_BOOL,
	    .preset = "false", IN(conf_site, https_redirect),
	    .help = "Send requests that came without TLS to the same address "
		"with https (308), but for /.well-known/acme-challenge/." },
	{ .path = "sites.*.http2", .type = CONF_TYPE_BOOL,
	    .preset = "true", IN(conf_site, http2),
	    .help = "Speak HTTP/2 too. Without TLS, where clients must know "
		"it beforehand, the listener's default site decides. "
		"A request that came by another site's HTTP/2 gets 421." },
	{ .path = "sites.*.access_log", .type = CONF_TYPE_PATH,
	    .min = 1, .max = PATH_BYTES, .preset_text = "access_log",
	    IN(conf_site, access_log),
	    .help = "Access log of this site alone." },
	{ .path = "sites.*.routes", .type = CONF_TYPE_LIST,
	    .required = CONF_FOR_ALL, .unstored = true,
	    .help = "What is answered for which path: the first route that "
		"matches." },
	{ .path = "sites.*.routes.*.path", .type = CONF_TYPE_STRINGS,
	    .max = 1000, .preset = "*", IN(conf_route, paths),
	    .help = "Patterns, any of them: exact unless they hold *; a "
		"final /* stops at segment boundaries." },
	{ .path = "sites.*.routes.*.methods", .type = CONF_TYPE_STRINGS,
	    .max = 32, .preset_text = "all", IN(conf_route, methods),
	    .help = "Methods it is for." },
	{ .path = "sites.*.routes.*.strip_prefix", .type = CONF_TYPE_STRING,
	    .min = 1, .max = 1000, IN(conf_route, strip_prefix),
	    .help = "Taken off the path before it goes to the app." },
	{ .path = "sites.*.routes.*.response_headers", .type = CONF_TYPE_FIELDS,
	    IN(conf_route, response_fields),
	    COUNT(conf_route, n_response_fields),
	    .help = "Fields added to answers." },
	{ .path = "sites.*.routes.*.max_body_bytes", .type = CONF_TYPE_BYTES,
	    .max = ANY_SIZE, .preset_text = "limits.body_bytes",
	    IN(conf_route, max_body_bytes),
	    .help = "Largest request body." },
	{ .path = "sites.*.routes.*.spool_body", .type = CONF_TYPE_BOOL,
	    .preset = "false", IN(conf_route, spool_body),
	    .help = "Keep a large request body in a temporary file until it "
		"is whole, so that a slow upload occupies no process. Small "
		"ones are always gathered first, and so are those of unknown "
		"length for PHP and gunicorn." },
	{ .path = "sites.*.routes.*.respond", .type = CONF_TYPE_GROUP,
	    .unstored = true,
	    .help = "Action: a fixed answer." },
	{ .path = "sites.*.routes.*.respond.status", .type = CONF_TYPE_NUMBER,
	    .min = 200, .max = 599, .preset = "200",
	    IN(conf_route, action.respond.status),
	    .help = "Status." },
	{ .path = "sites.*.routes.*.respond.body", .type = CONF_TYPE_TEXT,
	    .max = 1048576, IN(conf_route, action.respond.body),
	    .help = "Body." },
	{ .path = "sites.*.routes.*.respond.type", .type = CONF_TYPE_STRING,
	    .min = 1, .max = 255, .preset = "text/plain",
	    IN(conf_route, action.respond.type),
	    .help = "Content type." },
	{ .path = "sites.*.routes.*.redirect", .type = CONF_TYPE_GROUP,
	    .unstored = true,
	    .help = "Action: send the client elsewhere." },
	{ .path = "sites.*.routes.*.redirect.status", .type = CONF_TYPE_NUMBER,
	    .min = 301, .max = 308, .preset = "302",
	    IN(conf_route, action.redirect.status),
	    .help = "301, 302, 303, 307 or 308." },
	{ .path = "sites.*.routes.*.redirect.location", .type = CONF_TYPE_STRING,
	    .min = 1, .max = PATH_BYTES,
	    IN(conf_route, action.redirect.location),
	    .help = "Where to; {path} (with the query) and {host} are "
		"replaced." },
	{ .path = "sites.*.routes.*.app", .type = CONF_TYPE_NAME,
	    .unstored = true,
	    .help = "Action: the app of that name answers." },
	{ .path = "sites.*.routes.*.upstream", .type = CONF_TYPE_NAME,
	    .unstored = true,
	    .help = "Action: the upstream of that name answers." },
	{ .path = "sites.*.routes.*.status", .type = CONF_TYPE_BOOL,
	    .unstored = true,
	    .help = "Action: counters as JSON." },
	{ .path = "sites.*.routes.*.files", .type = CONF_TYPE_ABSENT,
	    .help = "static files" },
};
/* clang-format on */

const size_t conf_keys_count = ARRAY_LEN(conf_keys);
