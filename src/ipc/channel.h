/*
 * What supervisor and proxy say to each other: the only place they meet.
 * Message = struct + one put and one get function, over ipc/frame.h.
 * Both ends are the same binary; the version guards binary upgrades, where an
 * old proxy may still be draining.
 *
 * Order: the proxy says HELLO first, the supervisor answers HELLO (its layout
 * never changes). Then PREPARE, SECRET..., LISTEN..., (all frames of one
 * serial) LOADED -> PREPARED or REJECTED; COMMIT or ABORT. REJECTED ends its
 * serial: no ABORT need follow. READY follows every COMMIT, when every worker
 * runs on it and polls its listeners and the old ones are closed; RETIRED when
 * nothing runs on an older configuration any more. Peers and app states may be
 * told from the first HELLO on, they belong to no serial.
 *
 * The slots of a capped instance are leased. A proxy has as many as its first
 * ANNOUNCE said, plus LEND, minus RELEASED; only these change the number, each
 * by a difference, so it does not matter how they cross. RELEASED follows a
 * RECALL, as far as slots are free at once, later for the rest; and a proxy
 * that drains gives up whatever it does not use, says WANT for each request
 * that waits for a slot, and is lent one.
 *
 * Messages cross: ABORT of a serial that is not prepared here, and PREPARED,
 * REJECTED, PROBED, DRAINED, RELEASED, QUIET, STUCK, OUTPUT, STATS, LEND,
 * RECALL or WITHDRAW about a number unknown here are ignored. What breaks the
 * channel: an unknown type, a malformed frame, PREPARE before the end of the
 * last serial, COMMIT without PREPARED. An app before its first APP_STATE
 * counts as STARTING.
 */
#ifndef IPC_CHANNEL_H
#define IPC_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/addr.h"
#include "src/base/compiler.h"
#include "src/ipc/frame.h"

#define CHANNEL_VERSION 3
#define CHANNEL_FD 3 /* in the proxy process */

enum channel_type {
	CHANNEL_HELLO = 1, /* both ways */

	/* supervisor -> proxy */
	CHANNEL_PREPARE,     /* a configuration: memfd, log fds follow */
	CHANNEL_LISTEN,      /* sockets of one listener of that serial */
	CHANNEL_LOADED,      /* end of the frames of that serial */
	CHANNEL_COMMIT,      /* use what was prepared */
	CHANNEL_ABORT,       /* forget what was prepared */
	CHANNEL_ANNOUNCE,    /* an instance may be sent requests */
	CHANNEL_WITHDRAW,    /* ... no more: drain it, then DRAINED */
	CHANNEL_LEND,        /* more slots of a capped instance */
	CHANNEL_RECALL,      /* give up as many slots when they are free */
	CHANNEL_APP_STATE,   /* what to tell clients that wait for an app */
	CHANNEL_PROBE,       /* is an instance ready? -> PROBED */
	CHANNEL_DRAIN,       /* stop accepting, finish, exit 0 */
	CHANNEL_REOPEN_LOGS, /* new access log fds, order as in PREPARE */
	CHANNEL_QUERY,       /* -> STATS..., each for one thing, then an end */

	/* proxy -> supervisor */
	CHANNEL_READY,   /* a serial, after each COMMIT */
	CHANNEL_RETIRED, /* a serial: all older ones are out of use */
	CHANNEL_PREPARED,
	CHANNEL_REJECTED,
	CHANNEL_PROBED,
	CHANNEL_DRAINED,  /* nothing is open to that instance any more */
	CHANNEL_RELEASED, /* slots of a capped instance that were given up */
	CHANNEL_STATS,
	CHANNEL_WANT,   /* a request waits for an app that has no process; while
			   draining: each that waits for a slot */
	CHANNEL_QUIET,  /* only streams are open to a withdrawn instance */
	CHANNEL_STUCK,  /* a process goes on with what nobody waits for */
	CHANNEL_OUTPUT, /* a line that an instance wrote beside an answer */

	/* supervisor -> proxy again */
	CHANNEL_SECRET, /* a file that TLS needs, or the ticket keys */
};

/* "COMMIT"; "?" when it is none. Static. */
const char *channel_type_name(unsigned type);

enum channel_protocol { CHANNEL_HTTP = 1, CHANNEL_FASTCGI = 2 };

struct channel_hello {
	uint32_t version;
	uint32_t generation; /* of the proxy; the supervisor's number */
};

/* PREPARE: fds are the sealed memfd of conf_to_flat, then one per distinct
 * access log path, in the order of first use: the global one, then sites. */
struct channel_prepare {
	uint32_t serial;
	uint32_t n_logs;
	int conf_fd;
	int log_fds[FRAME_FDS_MAX - 1];
};

/* LISTEN: fds are all sockets of conf->listeners[index]: one per worker when
 * `reuseport` (socket i is polled by worker i modulo their number), else a
 * single shared one. More than FRAME_FDS_MAX: several frames with the same
 * index. `key` is the supervisor's number of that set of sockets, the same as
 * long as they are kept: a key that the proxy polls already comes without fds.
 */
struct channel_listen {
	uint32_t serial;
	uint32_t index;
	uint32_t key;
	uint32_t reuseport;
	uint32_t n_fds;
	int fds[FRAME_FDS_MAX];
};

enum channel_secret_kind {
	/* A certificate, key or CA file that the configuration of that serial
	 * names as `path`; once for each path. */
	CHANNEL_SECRET_FILE = 1,
	/* The keys of session tickets (80 bytes each, the first one
	 * makes tickets). Belongs to no serial; counts at once. */
	CHANNEL_SECRET_TICKETS,
};

/* SECRET: fd is a sealed memfd, which is closed as soon as it is read. */
struct channel_secret {
	uint32_t serial;
	uint32_t kind;
	const char *path; /* TICKETS: "" */
	int fd;
};

/* LOADED, COMMIT, ABORT, PREPARED, READY, RETIRED: a serial alone. REJECTED
 * adds `text`. */
struct channel_serial {
	uint32_t serial;
	const char *text; /* REJECTED: why, one or more lines; else "" */
};

#define CHANNEL_NO_CAP UINT32_MAX

/* ANNOUNCE. `instance` is unique for the life of the supervisor. A second one
 * about a known instance changes its idle_timeout only. */
struct channel_announce {
	uint64_t instance;
	const char *app;
	uint32_t pid;
	uint32_t protocol; /* enum channel_protocol */
	/* This proxy's share of the requests (one a connection) that the
	 * instance can have at a time, to begin with; CHANNEL_NO_CAP: no cap.
	 */
	uint32_t cap;
	uint32_t cap_counts_idle; /* kept idle connections use up the cap too */
	uint32_t
	    idle_timeout_ms; /* keep idle connections no longer than this */
	struct addr addr;
};

enum channel_withdraw {
	CHANNEL_WITHDRAW_DRAIN, /* what is open may come to its end */
	CHANNEL_WITHDRAW_DEAD,  /* the process is dead, fail what is open */
	/* Its time is up: if there are streams, fail all the rest. Comes after
	 * the first. */
	CHANNEL_WITHDRAW_LATE,
};

/* WITHDRAW, LEND, RECALL, DRAINED, RELEASED, QUIET: an instance. */
struct channel_instance {
	uint64_t instance;
	/* LEND, RECALL, RELEASED: slots; WITHDRAW: enum channel_withdraw; else
	 * 0 */
	uint32_t count;
};

/* STUCK. For each connection once; the proxy never uses it again, so that only
 * who works for nobody can be at its other end. */
enum channel_stuck_reason {
	CHANNEL_STUCK_ABANDONED = 1, /* its client left abort_grace ago */
	CHANNEL_STUCK_TIMEOUT,       /* request_timeout is up */
};

struct channel_stuck {
	uint64_t instance;
	uint32_t reason; /* enum channel_stuck_reason */
	uint64_t inode;  /* of our end of the connection; 0: not known */
};

/* OUTPUT: for the app's log. */
struct channel_output {
	uint64_t instance;
	const char *request; /* id of the request it came with */
	const char *line;    /* without its end; any bytes but NUL */
};

enum channel_app_state {
	CHANNEL_APP_UP = 1,   /* at least one instance is ready */
	CHANNEL_APP_STARTING, /* the next instance is being started */
	CHANNEL_APP_BACKOFF,  /* next try in retry_ms */
	CHANNEL_APP_FAILED,   /* cannot be started as configured; as BACKOFF */
	CHANNEL_APP_STOPPED,  /* by the administrator: 503 at once */
};

struct channel_app {
	const char *app;
	uint32_t state;
	uint32_t retry_ms;
	const char *text; /* last exit reason, for logs and status */
};

/* PROBE -> PROBED. The proxy answers exactly once, after one try; the
 * supervisor repeats until start_timeout. */
struct channel_probe {
	uint64_t probe;
	uint32_t protocol;
	uint32_t timeout_ms;
	const char *path; /* http: target; fastcgi: ping path */
	const char *host;
	struct addr addr;
};

struct channel_probed {
	uint64_t probe;
	uint32_t ok;
	uint32_t status;  /* of the answer, 0: none */
	const char *text; /* when not ok: why, one line */
};

/* A second one can make the deadline shorter and end keeping idle ones. */
struct channel_drain {
	uint32_t deadline_ms;
	uint32_t keeps_idle; /* 1: another proxy serves now; clients that are
			      * idle are not cut off before the deadline, their
			      * next answer says Connection: close */
};

struct channel_reopen {
	uint32_t n_logs;
	int log_fds[FRAME_FDS_MAX];
};

struct channel_query {
	uint32_t query;
};

enum channel_stats_kind {
	CHANNEL_STATS_END = 1,  /* of this query */
	CHANNEL_STATS_PROXY,    /* name "" */
	CHANNEL_STATS_APP,      /* name of the app or upstream */
	CHANNEL_STATS_INSTANCE, /* `instance` */
};

struct channel_stats {
	uint32_t query; /* 0: unasked, the last before it ends */
	uint32_t kind;
	const char *name;
	uint64_t instance;
	uint64_t requests; /* finished */
	uint64_t errors;   /* of them 5xx by us or by the app */
	uint64_t in_flight;
	uint64_t queued;         /* APP: requests that wait */
	uint64_t oldest_wait_ms; /* ... and how long the first of them has */
	uint64_t connections;    /* PROXY: clients now; INSTANCE: open to it */
	uint64_t accepted;       /* PROXY: connections since start */
};

/* Each put starts the frame itself; send it with frame_link_send. Each get
 * returns 0, or -1 when the frame is malformed (fields missing or left over,
 * values out of range); texts are views into the frame; descriptors are
 * handed to the caller on 0 and closed by frame_done on -1. */
#define CHANNEL_MESSAGE(name, type)                                            \
	void channel_put_##name(                                               \
	    struct frame_out *out, uint16_t kind, const struct type *message); \
	int channel_get_##name(struct frame_in *in, struct type *message)      \
	    MUST_CHECK

CHANNEL_MESSAGE(hello, channel_hello);     /* HELLO */
CHANNEL_MESSAGE(prepare, channel_prepare); /* PREPARE */
CHANNEL_MESSAGE(listen, channel_listen);   /* LISTEN */
CHANNEL_MESSAGE(secret, channel_secret);   /* SECRET */
/* LOADED COMMIT ABORT PREPARED REJECTED READY RETIRED */
CHANNEL_MESSAGE(serial, channel_serial);
CHANNEL_MESSAGE(announce, channel_announce); /* ANNOUNCE */
/* WITHDRAW LEND RECALL DRAINED RELEASED QUIET */
CHANNEL_MESSAGE(instance, channel_instance);
CHANNEL_MESSAGE(stuck, channel_stuck);   /* STUCK */
CHANNEL_MESSAGE(output, channel_output); /* OUTPUT */
CHANNEL_MESSAGE(app, channel_app);       /* APP_STATE, WANT */
CHANNEL_MESSAGE(probe, channel_probe);   /* PROBE */
CHANNEL_MESSAGE(probed, channel_probed); /* PROBED */
CHANNEL_MESSAGE(drain, channel_drain);   /* DRAIN */
CHANNEL_MESSAGE(reopen, channel_reopen); /* REOPEN_LOGS */
CHANNEL_MESSAGE(query, channel_query);   /* QUERY */
CHANNEL_MESSAGE(stats, channel_stats);   /* STATS */
#endif
