/*
 * The checked, typed configuration: what all other parts read.
 * Made by conf_load (files) or conf_from_flat (what the supervisor sent).
 * Immutable after that; everything lives in one arena.
 * A key is named as its member without `_ms`; the exceptions say so.
 */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/addr.h"
#include "src/base/compiler.h"
#include "src/base/strbuf.h"

struct arena;

/* Where a value stands; `file` as the administrator named it. line 0: a
 * default. */
struct conf_where {
	const char *file;
	int line;
};

/* What is wrong, one finding a line ("scalws.conf:14: apps.api.module: ...\n"),
 * at most CONF_ERRORS_MAX of them; the rest are counted in a last line. */
#define CONF_ERRORS_MAX 20
struct conf_errors {
	int count;
	int warnings; /* lines in `warnings_text`: work, but look odd */
	struct strbuf text;
	struct strbuf warnings_text;
};
void conf_errors_init(struct conf_errors *errors);
void conf_errors_free(struct conf_errors *errors);
/* Add a finding at `where` (NULL: no place) about `path` (NULL: none). Always
 * returns -1, so that a failing function can end with it. */
int conf_errors_add(struct conf_errors *errors, const struct conf_where *where,
    const char *path, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* The same followed by ": " and the text of errno. */
int conf_errors_add_errno(struct conf_errors *errors,
    const struct conf_where *where, const char *path, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
void conf_errors_warn(struct conf_errors *errors,
    const struct conf_where *where, const char *path, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

/* ---- listeners: made from the `listen` lists of all sites ---- */

struct conf_listener {
	struct conf_where where; /* the first site that named it */
	const char *text;        /* the resolved address: "0.0.0.0:80" */
	struct addr addr;
	bool v6only;
	bool optional; /* the [::] half of "80": no IPv6 is only a warning */
	bool tls;
	/* The sites behind it in file order. */
	struct conf_site **sites;
	size_t n_sites;
	struct conf_site *default_site; /* one marked so, else the first */
};

/* ---- applications ---- */

enum conf_runtime {
	CONF_PYTHON,
	CONF_NODE,
	CONF_PHP,
	CONF_COMMAND,
};

enum conf_server {
	CONF_UVICORN,  /* ASGI */
	CONF_GUNICORN, /* WSGI */
};

struct conf_limit {          /* one resource limit of an app */
	int resource;        /* RLIMIT_NOFILE, ... */
	uint64_t soft, hard; /* UINT64_MAX: no limit */
};

/* Instance sockets are "<run_directory>/<app>" and at most this many bytes
 * more, NUL included; a run directory that is too long for it is refused. */
#define CONF_SOCKET_ROOM 24

struct conf_app {
	struct conf_where where;
	const char *name; /* [A-Za-z0-9][A-Za-z0-9_-]*, at most 32 bytes */
	size_t index;     /* in conf->apps */
	enum conf_runtime runtime;
	/* Every string below is NULL when it is not set. */
	const char *directory; /* working directory; absolute */
	const char *user, *group;
	bool allow_root;

	/* python */
	enum conf_server server;
	const char *venv;   /* <venv>/bin/python is the interpreter */
	const char *python; /* interpreter path */
	const char *module; /* "pkg.mod:app" */
	bool factory;
	unsigned threads; /* gunicorn: threads a process (1: sync worker) */

	/* node */
	const char *script;
	const char *node; /* interpreter, default "node" */

	/* php */
	const char *php_fpm; /* master binary, default: found */
	const char *root;    /* document root; absolute */
	const char
	    *php_index; /* key `index`: "index.php", a directory's script */
	/* Script below root that answers for paths that are no script, or NULL:
	 * 404. Default: the index of the root. */
	const char *front_controller;
	unsigned children;
	const char **ini; /* "name=value", NULL-terminated, or NULL */

	/* command */
	const char **command; /* argv, NULL-terminated, or NULL */
	bool http;            /* false: a worker without a listener */

	const char **arguments; /* appended to the command line, or NULL */
	const char *
	    *environment;   /* "NAME=value", NULL-terminated, never NULL */
	unsigned processes; /* instances; php: always 1 */
	/* Requests one instance may have at a time; 0: no cap. The runtime's
	 * own number is filled in here (php: children, gunicorn: threads). */
	unsigned concurrency;

	int start_timeout_ms, stop_timeout_ms, drain_timeout_ms, min_uptime_ms;
	int stop_signal; /* 0: the runtime's own */
	int umask;       /* -1: 022 */
	int nice;
	bool no_new_privileges;
	struct conf_limit *limits;
	size_t n_limits;

	struct {
		const char *path; /* default "/" (php: FPM's ping) */
		const char *host; /* default: first name of the first site
				   * that uses the app, else "localhost" */
		unsigned status;  /* the only one that is ready; 0: below 500 */
	} probe;
	int watchdog_ms; /* replaced when it says nothing for so long; 0: no */
	const char **before_start;    /* argv, NULL-terminated, or NULL */
	const char *environment_file; /* or NULL */

	/* Requests that wait because no instance can take them. */
	unsigned queue_length;
	int queue_timeout_ms;

	/* Upstream times, as in struct conf_upstream. */
	int connect_timeout_ms, response_timeout_ms, idle_timeout_ms;
	int pause_timeout_ms, stream_timeout_ms;
	int request_timeout_ms; /* of a whole request; 0: none */
	/* Of a process that handles one request at a time: how long it may work
	 * for a client that has left. */
	int abort_grace_ms;
	/* Of an instance that is replaced: how long its streams may go on. */
	int stream_grace_ms;
	struct { /* replaced after so much; 0: never */
		unsigned requests;
		int age_ms;
		uint64_t memory_bytes; /* key `memory` */
	} recycle;

	struct {
		const char *file;   /* default: <log_directory>/<name>.log */
		uint64_t max_bytes; /* rotate at this size; 0: never */
		int64_t max_age_ms; /* rotate, and remove, at this age */
		unsigned keep;      /* rotated files kept */
	} log;
};

/* ---- upstreams that we do not start ---- */

struct conf_peer {
	struct conf_where where;
	const char *text; /* as written */
	struct addr addr;
	unsigned weight;
	unsigned max_connections; /* 0: no cap */
};

/* The enums of keys stand in the order of the key's words. */
enum conf_tls_version { CONF_TLS_1_2, CONF_TLS_1_3 };
enum conf_protocol { CONF_HTTP, CONF_FASTCGI, CONF_HTTPS };

/* With protocol "https": how to speak TLS to the peers. */
struct conf_upstream_tls {
	/* The name asked for and verified; NULL: a peer's address is. */
	const char *server_name;
	bool verify;
	const char *ca;                /* NULL: the system's roots */
	const char *certificate, *key; /* both, or NULL */
	enum conf_tls_version min_version;
	const char *ciphers; /* NULL: ours */
};

struct conf_upstream {
	struct conf_where where;
	const char *name;
	size_t index;
	enum conf_protocol protocol;
	const char *root; /* fastcgi: document root at the peer */
	struct conf_upstream_tls tls;
	struct conf_peer *peers;
	size_t n_peers;
	unsigned queue_length;
	int queue_timeout_ms;
	int connect_timeout_ms;  /* longest wait for a connection */
	int response_timeout_ms; /* longest wait for an answer's head */
	int pause_timeout_ms;    /* longest pause within an answer */
	int stream_timeout_ms;   /* the same where pauses are normal */
	int idle_timeout_ms;     /* how long an idle connection is kept */
	unsigned idle_max;       /* idle connections kept per worker */
};

/* ---- sites, routes, actions ---- */

enum conf_action_kind {
	CONF_RESPOND,
	CONF_REDIRECT,
	CONF_APP,
	CONF_UPSTREAM,
	CONF_STATUS, /* counters as JSON */
};

struct conf_field {
	const char *name, *value;
};

struct conf_action {
	enum conf_action_kind kind;
	struct {
		unsigned status;
		const char *body; /* NULL: none */
		size_t body_len;
		const char *type; /* content type; default text/plain */
	} respond;
	struct {
		unsigned status; /* 301, 302, 303, 307, 308 */
		/* Target; "{path}" (with its query) and "{host}" are replaced.
		 */
		const char *location;
	} redirect;
	const struct conf_app *app;
	const struct conf_upstream *upstream;
};

struct conf_route {
	struct conf_where where;
	/* Patterns over the normalised path, any of them: exact unless they
	 * hold
	 * '*'; a final slash-star stops at segment boundaries ("/static/" +
	 * star matches "/static" and "/static/x", never "/static_secret"). */
	const char **paths;   /* key `path`, a text or a list; NULL-terminated;
			       * default { "*", NULL } */
	const char **methods; /* NULL-terminated, or NULL: all */
	const char *strip_prefix; /* removed before it goes to the app */
	/* Key `response_headers`: fields added to our answers, or NULL. */
	struct conf_field *response_fields;
	size_t n_response_fields;
	uint64_t max_body_bytes;
	bool spool_body; /* large bodies are whole before an app is asked */
	struct conf_action action;
};

/* ---- TLS of a site ---- */

enum conf_verify {
	CONF_VERIFY_NONE,
	CONF_VERIFY_OPTIONAL,
	CONF_VERIFY_REQUIRED
};

#define CONF_CERTIFICATES_MAX 64

struct conf_site_tls {
	/* Keys `certificate` and `key`: files, the nth key belongs to the nth
	 * certificate; NULL-terminated. NULL: no TLS. */
	const char **certificates, **keys;
	enum conf_tls_version min_version;
	const char *ciphers; /* NULL: ours */
	/* Of a listener's default site: clients that ask for a name which no
	 * site has, or for none, are turned away in the handshake. */
	bool refuse_unknown_names;
	const char *client_ca;          /* key client_certificate.ca */
	enum conf_verify client_verify; /* client_certificate.verify */
};

struct conf_site {
	struct conf_where where;
	size_t index;
	const char **names;  /* lower case; exact or "*.example.com"; may be
			      * empty (NULL-terminated, never NULL) */
	bool is_default;     /* key `default` */
	bool http2;          /* without TLS: the listener's default site's */
	const char **listen; /* as written, NULL-terminated */
	struct conf_site_tls tls;
	const char *hsts;    /* value of Strict-Transport-Security, or NULL */
	bool https_redirect; /* what comes without TLS is sent to https: */
	struct conf_route *routes;
	size_t n_routes;
	const char *access_log; /* path, or NULL: the global one */
};

enum conf_log_format { CONF_LOG_COMBINED, CONF_LOG_JSON };

/* Sizes and times of the client side; every one a key. */
struct conf_limits {
	uint32_t request_line_bytes;    /* 414 */
	uint32_t header_bytes;          /* the whole head: 431 */
	uint32_t header_count;          /* 431 */
	uint32_t response_header_bytes; /* answers of apps: 502 */
	uint64_t body_bytes;            /* default of max_body_bytes: 413 */
	uint32_t buffer_bytes; /* high mark of what waits for a slow side */
	uint64_t spool_bytes;  /* body kept in a temporary file: 413 */
	uint64_t spool_total_bytes;  /* of all such files: 507 */
	uint32_t spool_memory_bytes; /* body kept in memory before a file */
	uint32_t connections;        /* of clients, over all workers */
	uint32_t connections_per_address; /* 0: no limit */
	uint32_t requests_per_connection;
	int header_timeout_ms; /* first byte of a head to its end: 408 */
	int body_timeout_ms;   /* between two reads of a body: 408 */
	/* Least rate of a body, over each body_timeout: 408. 0: any. */
	uint32_t body_bytes_per_second;
	int send_timeout_ms;  /* between two writes to a client */
	int idle_timeout_ms;  /* kept connection without a request */
	int drain_timeout_ms; /* stop: how long requests may still run */
	/* HTTP/2, of each connection */
	uint32_t h2_streams;          /* at a time */
	uint32_t h2_window_bytes;     /* of a request's body, not yet taken */
	uint32_t h2_connection_bytes; /* of all of them; and of answers */
	uint32_t h2_resets;           /* in 10 s: ENHANCE_YOUR_CALM */
	uint32_t h2_control_frames;   /* the same */
};

struct conf {
	struct arena *arena;
	const char *file;       /* the main file */
	struct conf_node *tree; /* what it was built from; for src/conf alone */

	const char *user, *group; /* of the proxy; NULL: as the caller */
	unsigned workers;         /* resolved: at least 1 */
	const char *run_directory, *log_directory;
	const char *temp_directory; /* of spooled bodies */
	const char *log_level;
	const char *error_log;  /* NULL: stderr */
	const char *access_log; /* NULL: none */
	enum conf_log_format access_log_format;
	struct {
		const char *socket; /* default: <run_directory>/control.sock */
		const char *group;  /* may read status; NULL: owner alone */
	} control;
	struct addr_range *trusted_proxies;
	size_t n_trusted_proxies;
	struct {
		const char *ticket_keys; /* file, or NULL: our own */
	} tls;
	bool defer_accept;
	unsigned backlog;
	struct conf_limits limits;

	struct conf_app *apps;
	size_t n_apps;
	struct conf_upstream *upstreams;
	size_t n_upstreams;
	struct conf_site *sites;
	size_t n_sites;
	struct conf_listener *listeners;
	size_t n_listeners;
};

/* Read `path` and its drop-ins, check all of it, and build it. Returns NULL
 * with errors->count > 0. The caller frees it with conf_free. Never exits.
 * Only the supervisor and -t/-T call this: it opens files and looks up users.
 */
struct conf *conf_load(const char *path, struct conf_errors *errors) MUST_CHECK;

/* The same configuration as one text, with the file and line of each value:
 * what the supervisor hands to the proxy. The caller frees it (strbuf_free). */
void conf_to_flat(const struct conf *conf, struct strbuf *flat);
/* Build from that text; checks everything that does not need files or users. */
struct conf *conf_from_flat(
    const char *flat, size_t len, struct conf_errors *errors) MUST_CHECK;

/* Every file that TLS needs, once for each key that names it, in the order of
 * the configuration: the supervisor reads them, and the proxy gets them under
 * these paths. */
typedef int conf_tls_file_cb(const char *path, const struct conf_where *where,
    const char *key, void *arg);
/* Stops at the first -1 and returns it. */
int conf_each_tls_file(
    const struct conf *conf, conf_tls_file_cb *call, void *arg);
/* The same for the file of ticket keys, if there is one, which is the
 * supervisor's alone. */
int conf_ticket_file(
    const struct conf *conf, conf_tls_file_cb *call, void *arg);

/* A key and where it stands in the file, or what it belongs to when it has no
 * place there. For messages. */
struct conf_place {
	char path[160];
	struct conf_where where;
};
/* "sites[I].routes[J].KEY"; route NULL: of the site; key NULL: none. */
void conf_place_site(struct conf_place *place, const struct conf *conf,
    const struct conf_site *site, const struct conf_route *route,
    const char *key);
/* A key that stands in no group of its own: "error_log". */
void conf_place_top(
    struct conf_place *place, const struct conf *conf, const char *key);
/* "apps.NAME.KEY" */
void conf_place_app(struct conf_place *place, const struct conf *conf,
    const struct conf_app *app, const char *key);
/* "upstreams.NAME.KEY" */
void conf_place_upstream(struct conf_place *place, const struct conf *conf,
    const struct conf_upstream *upstream, const char *key);

/* The effective configuration, defaults included, in the syntax of the file. */
void conf_print(const struct conf *conf, struct strbuf *to);
/* The options part of scalws.conf(5), made from the schema table. */
void conf_print_man(struct strbuf *to);
/* One "path type default" line a key, for completion. */
void conf_print_keys(struct strbuf *to);

void conf_free(struct conf *conf);

const struct conf_app *conf_find_app(const struct conf *conf, const char *name);

/* The longest stream_grace of an app. */
int conf_stream_grace_max_ms(const struct conf *conf);

/* What a new configuration changes for the app of that name: nothing, only
 * things the proxy or supervisor take over at once, or its processes. */
enum conf_change { CONF_SAME, CONF_ADJUST, CONF_RESTART };
enum conf_change conf_app_change(
    const struct conf_app *old, const struct conf_app *now);
/* The same in words. Keys of an app, "module, umask"; listeners, sites,
 * upstreams and keys of the top that a reload takes over, a line each; keys
 * that only a restart of the daemon does. */
void conf_describe_app(
    const struct conf_app *old, const struct conf_app *now, struct strbuf *to);
void conf_describe_changes(
    const struct conf *old, const struct conf *now, struct strbuf *to);
void conf_describe_restart(
    const struct conf *running, const struct conf *now, struct strbuf *to);

#endif
