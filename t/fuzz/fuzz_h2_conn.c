/*
 * A whole connection of a client, HTTP/2 first of all: its bytes go through a
 * socket into the front of a real worker, behind which h2_app.c answers. What
 * comes back is HTTP/2, and at the end nothing is left.
 * The input: a byte of flags, H2_APP_PLANS bytes for h2_app.h, then what the
 * client sends.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/core/snapshot.h"
#include "proxy/front/conn.h"
#include "src/base/log.h"
#include "t/fuzz/h2_app.h"
#include "t/fuzz/h2_said.h"

/* The preface is put in front. */
#define HAS_PREFACE 0x01u
/* Reads nothing before it has sent all. */
#define IS_SLOW 0x02u
/* The worker drains when half of it was sent. */
#define DRAINS 0x04u
/* Time passes between its pieces. */
#define PAUSES 0x08u
/* How it is cut into pieces. */
#define CUT(flags) ((flags) >> 4 & 3u)
/* Falls silent at the end, instead of closing. */
#define STAYS 0x40u
/* Closes in both directions, not its own alone. */
#define BREAKS_OFF 0x80u

#define PAUSE_MS 600
/* Single bytes show all there is to see soon. */
#define SINGLE_BYTES 300
/* What the server's socket keeps for a client that does not read. */
#define SOCKET_BYTES 8192
/* At the end: rounds for what is under way, then so many with so long a pause;
 * more than any timeout. */
#define LAST_ROUNDS 8
#define LONG_ROUNDS 80
#define LONG_PAUSE_MS 5000

static const char config[] =
    "access_log = \"none\";\n"
    "limits = { request_line_bytes = 1024; header_bytes = 2048;\n"
    "  h2_streams = 4; h2_resets = 6; h2_control_frames = 30;\n"
    "  h2_window_bytes = 16384; h2_connection_bytes = 65536;\n"
    "  requests_per_connection = 20; body_bytes = 6000; };\n"
    "sites = ( { listen = [ \"127.0.0.1:8001\" ];\n"
    "  routes = ( { path = \"*\"; respond = { status = 200; }; } ); } );\n";

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

static struct {
	struct worker *worker;
	struct worker_load load;
	struct front *front;

	/* Of one connection. */
	struct deferred pacer;
	int fd; /* the client's end; -1: closed */
	unsigned flags;
	const uint8_t *from;
	size_t size, at;
	unsigned n_rounds; /* since all was sent */
	bool is_closing;
	bool speaks_h2; /* for certain */
} run;

static void
check(bool holds)
{
	if (!holds)
		abort();
}

/* ---- the proxy, made once ---- */

static void
on_unused(struct snapshot *snapshot, void *arg)
{
	snapshot_free(&snapshot);
}

static struct conf *
load_config(void)
{
	char path[] = "/tmp/scalws-fuzz-XXXXXX";
	int fd = mkstemp(path);
	FILE *file = fd == -1 ? NULL : fdopen(fd, "w");
	struct conf_errors errors;
	struct conf *conf;

	check(file != NULL);
	if (geteuid() == 0)
		fputs("user = \"nobody\";\n", file);
	fputs(config, file);
	check(fclose(file) == 0);
	conf_errors_init(&errors);
	conf = conf_load(path, &errors);
	unlink(path);
	if (conf == NULL)
		fputs(errors.text.ptr, stderr);
	check(conf != NULL);
	conf_errors_free(&errors);
	return conf;
}

static void
install_config(void)
{
	static const struct handler_ops *const handlers[] = {
		[CONF_RESPOND] = &h2_app,
		[CONF_REDIRECT] = &h2_app,
		[CONF_APP] = &h2_app,
		[CONF_UPSTREAM] = &h2_app,
		[CONF_STATUS] = &h2_app,
	};
	const struct handler_env env = { NULL };
	struct conf_errors errors;
	struct snapshot *snapshot;

	conf_errors_init(&errors);
	snapshot = snapshot_new(load_config(), 1, 1, NULL, 0, handlers, &env,
	    NULL, on_unused, NULL, &errors);
	check(snapshot != NULL);
	conf_errors_free(&errors);
	snapshot->listeners[0].key = 1;
	snapshot_commit(snapshot);
	snapshot_install(run.worker, snapshot);
}

static void
take_down(void)
{
	front_free(&run.front);
	snapshot_install(run.worker, NULL);
	worker_free(run.worker);
}

static void
set_up(void)
{
	signal(SIGPIPE, SIG_IGN);
	log_init("fuzz", LOG_LEVEL_ERROR, 2);
	run.worker = worker_new(0, 1);
	check(run.worker != NULL);
	/* It ticks when we say so. */
	event_del(&run.worker->tick);
	run.worker->all = &run.worker;
	run.worker->load = &run.load;
	install_config();
	run.front = front_new(run.worker, NULL);
	front_configure(run.front, NULL, 0);
	atexit(take_down);
}

/* ---- the client ---- */

static void
let_pass(int ms)
{
	worker_tick_at(run.worker, run.worker->tick_ms + ms);
}

static void
hang_up(void)
{
	close(run.fd);
	run.fd = -1;
}

/* Returns whether there was anything. */
static bool
read_all(void)
{
	static char said[65536];
	bool came = false;
	ssize_t n;

	if (run.fd == -1 || ((run.flags & IS_SLOW) != 0 && run.at < run.size))
		return false;
	while ((n = recv(run.fd, said, sizeof(said), MSG_DONTWAIT)) > 0) {
		came = true;
		if (run.speaks_h2)
			h2_said(said, (size_t)n);
	}
	return came;
}

static size_t
next_piece(void)
{
	static const size_t sizes[] = { SIZE_MAX, 1, 17, 1000 };
	size_t left = run.size - run.at, piece = sizes[CUT(run.flags)];

	if (piece == 1 && run.at > SINGLE_BYTES)
		piece = 64;
	return left < piece ? left : piece;
}

static void
send_piece(void)
{
	size_t piece = next_piece();
	ssize_t n =
	    send(run.fd, run.from + run.at, piece, MSG_DONTWAIT | MSG_NOSIGNAL);
	size_t half = run.size / 2;

	if (n == -1 && errno != EAGAIN) {
		run.at = run.size;
		return;
	}
	/* Nobody is heard who does not listen. */
	if (n == -1) {
		run.flags &= ~IS_SLOW;
		let_pass(PAUSE_MS);
		return;
	}
	if ((run.flags & DRAINS) != 0 && run.at <= half &&
	    run.at + (size_t)n > half) {
		run.worker->draining = true;
		front_drain(run.front);
	}
	run.at += (size_t)n;
	if ((run.flags & PAUSES) != 0)
		let_pass(PAUSE_MS);
}

/* All was sent. False: that was the last round. */
static bool
wind_up(void)
{
	unsigned round = ++run.n_rounds;

	if (run.front->n_open == 0)
		return false;
	if (round <= LAST_ROUNDS)
		return true;
	if (!run.is_closing && (run.flags & STAYS) != 0 &&
	    round < LONG_ROUNDS) {
		let_pass(LONG_PAUSE_MS);
		return true;
	}
	if (!run.is_closing) {
		/* Only a tunnel may stay so long. */
		check((run.flags & STAYS) == 0 || !h2_app_is_idle());
		run.is_closing = true;
		run.n_rounds = 0;
		if ((run.flags & BREAKS_OFF) != 0)
			hang_up();
		else
			shutdown(run.fd, SHUT_WR);
		return true;
	}
	let_pass(LONG_PAUSE_MS);
	check(round < LONG_ROUNDS);
	return true;
}

/* Once in every round of the loop. */
static void
pace(struct worker *worker, struct deferred *pacer)
{
	bool came = read_all();

	h2_app_round();
	if (run.at < run.size)
		send_piece();
	else if (!came && !wind_up())
		atomic_store(&worker->stopping, true);
	/* Or the loop would wait for something to happen. */
	worker_defer(worker, pacer);
}

/* ---- one connection ---- */

static void
connect_client(void)
{
	static const struct conn_peer peer = {
		.len = sizeof(struct sockaddr_in),
		.u.in = { .sin_family = AF_INET },
	};
	int fds[2], size = SOCKET_BYTES;

	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		  fds) == 0);
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	run.fd = fds[1];
	run.load.connections = 1;
	conn_open(run.front, fds[0], &peer, 1, false, false);
}

static void
check_all_is_gone(void)
{
	const struct front *front = run.front;

	check(h2_app_is_idle());
	check(front->n_open == 0 && run.load.connections == 0);
	check(front->conns.n_used == 0);
	check(front->h2.conns.n_used == 0 && front->h2.streams.n_used == 0);
	check(run.worker->requests.n_used == 0);
	check(run.worker->buffers.n_used == 0);
	check(run.worker->bulk_buffers.n_used == 0);
	for (struct list *node = run.worker->classes.next;
	     node != &run.worker->classes; node = node->next)
		check(list_is_empty(
		    &LIST_ENTRY(node, struct timer_class, node)->entries));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size <= 1 + H2_APP_PLANS)
		return 0;
	if (run.worker == NULL)
		set_up();
	run.flags = data[0];
	run.from = data + 1 + H2_APP_PLANS;
	run.size = size - 1 - H2_APP_PLANS;
	run.at = run.n_rounds = 0;
	run.is_closing = false;
	run.speaks_h2 = (run.flags & HAS_PREFACE) != 0;
	h2_app_begin(data + 1);
	h2_said_begin();
	connect_client();
	if (run.speaks_h2)
		check(send(run.fd, preface, sizeof(preface) - 1, 0) ==
		      sizeof(preface) - 1);
	run.pacer.release = pace;
	worker_defer(run.worker, &run.pacer);
	worker_run(run.worker);
	list_remove(&run.pacer.node);
	atomic_store(&run.worker->stopping, false);
	(void)read_all();
	if (run.fd != -1)
		hang_up();
	run.worker->draining = false;
	worker_finish(run.worker);
	h2_said_end();
	check_all_is_gone();
	return 0;
}
