/*
 * The proxy alone: the real process, driven over its channel, asked by a client
 * that sends bytes as it likes. No supervisor, no apps.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fdutil.h"
#include "src/base/mem.h"
#include "src/base/strbuf.h"
#include "t/unit/proxy_driver.h"
#include "t/unit/run.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS_MALLOC 0
#else
#define COUNTS_MALLOC 1
#endif

/* ---- heap allocations of the proxy, counted in shared memory ---- */

#if COUNTS_MALLOC
static _Atomic unsigned long *n_allocations;
static pid_t test_pid; /* its own are not counted: check allocates */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);

static void
note_allocation(void)
{
	if (n_allocations != NULL && getpid() != test_pid)
		atomic_fetch_add(n_allocations, 1);
}

void *
malloc(size_t bytes)
{
	note_allocation();
	return __libc_malloc(bytes);
}

void *
calloc(size_t count, size_t bytes)
{
	note_allocation();
	return __libc_calloc(count, bytes);
}
#endif

/* ---- proxy and client ---- */

static struct driver driver;
static int port;

#define AWAIT_MS 10000

#define OK_ROUTE \
	"{ path = \"/ok\"; respond = { status = 200; body = \"ok\\n\"; }; }"

/* A configuration of one site; `top` and `routes` in its syntax. */
static char *
conf_text(const char *top, const char *routes)
{
	return mem_printf("access_log = \"none\"; log_level = \"warn\"; %s\n"
			  "sites = ( { names = [ \"t.example\" ];\n"
			  "  listen = [ \"127.0.0.1:%d\" ];\n"
			  "  routes = ( %s ); } );\n",
	    top, port, routes);
}

static void
configure(const char *top, const char *routes)
{
	char *text = conf_text(top, routes);
	const char *why = driver_configure(&driver, text);

	ck_assert_msg(why == NULL, "%s", why);
	mem_free(text);
}

static void
start(unsigned n_sockets, const char *top, const char *routes)
{
	memset(&driver, 0, sizeof(driver));
	port = driver_port(&driver, n_sockets, false);
	driver_start(&driver);
	configure(top, routes);
}

static void
stop(void)
{
	ck_assert_int_eq(driver_stop(&driver, 2000), 0);
}

static int
try_connect(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	addr.sin_port = htons((uint16_t)port);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == -1) {
		close(fd);
		return -1;
	}
	return fd;
}

static int
dial(void)
{
	int fd = try_connect();

	ck_assert_int_ge(fd, 0);
	return fd;
}

static void
say(int fd, const char *text)
{
	ck_assert_int_eq(
	    send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* What comes until `until` bytes are there, or the end; -1 after a reset. */
static ssize_t
hear(int fd, char *to, size_t room, size_t until)
{
	size_t len = 0;

	while (len < until && len < room - 1) {
		struct pollfd poll_fd = { fd, POLLIN, 0 };
		ssize_t n;

		ck_assert_msg(poll(&poll_fd, 1, AWAIT_MS) == 1, "nothing came");
		n = recv(fd, to + len, room - 1 - len, 0);
		if (n == -1)
			return -1;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	to[len] = '\0';
	return (ssize_t)len;
}

static char heard[1 << 20];

static const char *
hear_all(int fd)
{
	ck_assert_int_ge(hear(fd, heard, sizeof(heard), SIZE_MAX), 0);
	close(fd);
	return heard;
}

/* One answer with Content-Length. */
static const char *
hear_one(int fd, bool is_head)
{
	size_t len = 0, want = SIZE_MAX;

	while (len < want) {
		const char *end, *field;
		ssize_t n = hear(fd, heard + len, sizeof(heard) - len, 1);

		ck_assert_msg(n > 0, "the answer ends early: %s", heard);
		len += (size_t)n;
		end = strstr(heard, "\r\n\r\n");
		field = strstr(heard, "Content-Length: ");
		if (end == NULL)
			continue;
		want = (size_t)(end - heard) + 4;
		if (!is_head && field != NULL && field < end)
			want += (size_t)atoi(field + 16);
	}
	ck_assert_uint_eq(len, want);
	return heard;
}

static unsigned
status_of(const char *answer)
{
	return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? (unsigned)atoi(answer + 9)
						    : 0;
}

static unsigned
count(const char *text, const char *what)
{
	unsigned n = 0;

	while ((text = strstr(text, what)) != NULL) {
		text += strlen(what);
		n++;
	}
	return n;
}

#define GET_OK "GET /ok HTTP/1.1\r\nHost: t.example\r\n\r\n"

/* ---- requests and answers ---- */

START_TEST(kept_and_pipelined)
{
	int fd;

	start(1, "", OK_ROUTE);
	fd = dial();
	for (int i = 0; i < 3; i++) {
		say(fd, GET_OK);
		hear_one(fd, false);
		ck_assert_uint_eq(status_of(heard), 200);
		ck_assert_ptr_nonnull(strstr(heard, "\r\n\r\nok\n"));
		ck_assert_uint_eq(count(heard, "Server: "), 1);
		ck_assert_uint_eq(count(heard, "Date: "), 1);
		ck_assert_ptr_null(strstr(heard, "Connection:"));
	}
	say(fd, "HEAD /ok HTTP/1.1\r\nHost: t.example\r\n\r\n");
	hear_one(fd, true);
	ck_assert_ptr_nonnull(strstr(heard, "Content-Length: 3\r\n"));
	ck_assert_str_eq(strstr(heard, "\r\n\r\n"), "\r\n\r\n");
	/* In order, also when cut anywhere. */
	say(fd, GET_OK "GET /no HTTP/1.1\r\nHost: t.example\r\n\r\nGET /ok HT");
	say(fd, "TP/1.1\r\nHost: t.example\r\nConnection: close\r\n\r\n");
	hear_all(fd);
	ck_assert_uint_eq(count(heard, "HTTP/1.1 200 OK"), 2);
	ck_assert_uint_eq(count(heard, "HTTP/1.1 404 Not Found"), 1);
	ck_assert(strstr(heard, "200 OK") < strstr(heard, "404 Not"));
	ck_assert_uint_eq(count(heard, "Connection: close\r\n"), 1);
	stop();
}
END_TEST

START_TEST(http_1_0)
{
	int fd;

	start(1, "", OK_ROUTE);
	fd = dial();
	say(fd, "GET /ok HTTP/1.0\r\n\r\n");
	hear_all(fd);
	ck_assert_uint_eq(status_of(heard), 200);
	fd = dial();
	say(fd, "GET /ok HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	hear_one(fd, false);
	ck_assert_ptr_nonnull(strstr(heard, "Connection: keep-alive\r\n"));
	say(fd, "GET /ok HTTP/1.0\r\n\r\n");
	hear_all(fd);
	ck_assert_uint_eq(status_of(heard), 200);
	stop();
}
END_TEST

START_TEST(bad_heads_are_answered_and_closed)
{
	static const struct {
		const char *head;
		unsigned status;
	} cases[] = {
		{ "GET /ok HTTP/1.1\r\n\r\n", 400 },
		{ "GET /ok HTTP/1.1\r\nHost: a b\r\n\r\n", 400 },
		{ "GET /ok HTTP/1.1\r\nHost: t\r\nA: b\r\n c\r\n\r\n", 400 },
		{ "POST /ok HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n"
		  "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		    400 },
		{ "GET /ok HTTP/3.1\r\nHost: t\r\n\r\n", 505 },
		{ "\x16\x03\x01\x02\x00\x01", 400 },
	};
	char *long_head = mem_alloc(40000);
	int fd;

	start(1, "", OK_ROUTE);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		fd = dial();
		say(fd, cases[i].head);
		hear_all(fd);
		ck_assert_msg(status_of(heard) == cases[i].status,
		    "%s gives %s", cases[i].head, heard);
		ck_assert_ptr_nonnull(strstr(heard, "Connection: close\r\n"));
	}
	/* More than a buffer, within and over the limit. */
	memset(long_head, 'x', 40000);
	for (int i = 0; i < 2; i++) {
		long_head[i == 0 ? 20000 : 39999] = '\0';
		fd = dial();
		say(fd, "GET /ok HTTP/1.1\r\nHost: t.example\r\nX: ");
		say(fd, long_head);
		say(fd, "\r\nConnection: close\r\n\r\n");
		hear_all(fd);
		ck_assert_uint_eq(status_of(heard), i == 0 ? 200 : 431);
		long_head[20000] = 'x';
	}
	mem_free(long_head);
	stop();
}
END_TEST

START_TEST(unread_bodies)
{
	char *body = mem_alloc(1 << 20);
	int fd;

	start(1, "", OK_ROUTE);
	memset(body, 'b', (1 << 20) - 1);
	/* Short ones are dropped, the connection stays. */
	fd = dial();
	say(fd, "POST /ok HTTP/1.1\r\nHost: t.example\r\n"
		"Content-Length: 5\r\n\r\nabc");
	hear_one(fd, false);
	say(fd, "de" GET_OK);
	hear_one(fd, false);
	ck_assert_uint_eq(status_of(heard), 200);
	say(fd, "POST /ok HTTP/1.1\r\nHost: t.example\r\n"
		"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
	hear_one(fd, false);
	say(fd, GET_OK);
	hear_one(fd, false);
	ck_assert_uint_eq(status_of(heard), 200);
	/* Whoever asks first is not told to go on. */
	say(fd, "POST /ok HTTP/1.1\r\nHost: t.example\r\n"
		"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n");
	hear_all(fd);
	ck_assert_uint_eq(status_of(heard), 200);
	ck_assert_ptr_nonnull(strstr(heard, "Connection: close\r\n"));
	/* A long one: the answer must not be lost to a reset. */
	fd = dial();
	say(fd, "POST /ok HTTP/1.1\r\nHost: t.example\r\n"
		"Content-Length: 1048575\r\n\r\n");
	say(fd, body);
	hear_all(fd);
	ck_assert_uint_eq(status_of(heard), 200);
	ck_assert_ptr_nonnull(strstr(heard, "Connection: close\r\n"));
	mem_free(body);
	stop();
}
END_TEST

START_TEST(body_limit)
{
	int fd;

	start(1, "limits = { body_bytes = 4; };", OK_ROUTE);
	fd = dial();
	say(fd, "POST /ok HTTP/1.1\r\nHost: t.example\r\n"
		"Content-Length: 5\r\n\r\nabcde");
	hear_all(fd);
	ck_assert_uint_eq(status_of(heard), 413);
	ck_assert_ptr_nonnull(strstr(heard, "Connection: close\r\n"));
	stop();
}
END_TEST

START_TEST(requests_per_connection)
{
	int fd;

	start(1, "limits = { requests_per_connection = 2; };", OK_ROUTE);
	fd = dial();
	say(fd, GET_OK GET_OK GET_OK);
	hear_all(fd);
	ck_assert_uint_eq(count(heard, "HTTP/1.1 200"), 2);
	ck_assert_uint_eq(count(heard, "Connection: close"), 1);
	stop();
}
END_TEST

/* A large answer to somebody who asks often and reads slowly. */
START_TEST(slow_reader_gets_all)
{
	struct strbuf routes = STRBUF_EMPTY;
	size_t len = 0;
	int fd;

	strbuf_add_text(
	    &routes, "{ path = \"/big\"; respond = { status = 200; body = \"");
	for (int i = 0; i < 20000; i++)
		strbuf_printf(&routes, "%05d", i);
	strbuf_add_text(&routes, "\"; }; }");
	start(1, "", routes.ptr);
	strbuf_free(&routes);
	fd = dial();
	for (int i = 0; i < 100; i++)
		say(fd, "GET /big HTTP/1.1\r\nHost: t.example\r\n\r\n");
	say(fd, "GET /no HTTP/1.1\r\nHost: t.example\r\n"
		"Connection: close\r\n\r\n");
	for (ssize_t n = 1; n > 0;) {
		static char piece[65537];

		n = hear(fd, piece, sizeof(piece), 1);
		ck_assert_int_ge(n, 0);
		/* Every byte of the bodies is known by its place. */
		for (char *at = piece;
		     (at = strstr(at, "\r\n\r\n0000")) != NULL; at++)
			ck_assert_int_eq(strncmp(at + 4, "0000000001", 10) *
					     (at + 14 < piece + n),
			    0);
		len += (size_t)n;
		poll(NULL, 0, 1);
	}
	ck_assert_uint_gt(len, 100 * 100000);
	ck_assert_uint_lt(len, 100 * 100000 + 101 * 300);
	close(fd);
	stop();
}
END_TEST

/* ---- times ---- */

START_TEST(times_of_heads_and_idle_connections)
{
	int64_t begin;
	int fds[3];

	start(1,
	    "limits = { header_timeout = \"1s\"; idle_timeout = \"1s\"; };",
	    OK_ROUTE);
	begin = clock_now_ms();
	for (int i = 0; i < 3; i++)
		fds[i] = dial();
	say(fds[0], "GET /ok HT");
	say(fds[1], GET_OK);
	hear_one(fds[1], false);
	hear_all(fds[0]);
	ck_assert_uint_eq(status_of(heard), 408);
	ck_assert_int_ge(clock_now_ms() - begin, 1000);
	hear_all(fds[1]);
	ck_assert_str_eq(heard, ""); /* kept and idle: just closed */
	hear_all(fds[2]);
	ck_assert_str_eq(heard, "");
	ck_assert_int_lt(clock_now_ms() - begin, 6000);
	stop();
}
END_TEST

/* A peer that takes a connection and says nothing. */
static int
silent_peer(int *peer_port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(listen(fd, 8), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	*peer_port = ntohs(addr.sin_port);
	return fd;
}

START_TEST(times_of_bodies)
{
	int peer_port, peer = silent_peer(&peer_port), fd;
	char *top = mem_printf(
	    "limits = { body_timeout = \"1s\"; body_bytes = 100000; };\n"
	    "upstreams = { quiet = { peers = ( { address = \"127.0.0.1:%d\"; "
	    "} ); }; };",
	    peer_port);

	start(1, top, "{ path = \"/*\"; upstream = \"quiet\"; }");
	mem_free(top);
	fd = dial();
	say(fd, "POST /x HTTP/1.1\r\nHost: t.example\r\n"
		"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n");
	hear(fd, heard, sizeof(heard), 25);
	ck_assert_str_eq(heard, "HTTP/1.1 100 Continue\r\n\r\n");
	say(fd, "abc");
	hear_all(fd);
	ck_assert_uint_eq(status_of(heard), 408);
	/* Chunks that are none, and too many of them. */
	fd = dial();
	say(fd, "POST /x HTTP/1.1\r\nHost: t.example\r\n"
		"Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n");
	hear_all(fd);
	ck_assert_uint_eq(status_of(heard), 400);
	fd = dial();
	say(fd, "POST /x HTTP/1.1\r\nHost: t.example\r\n"
		"Transfer-Encoding: chunked\r\n\r\n");
	for (int i = 0; i < 101; i++) {
		static char chunk[1100];

		memcpy(chunk, "3e8\r\n", 5);
		memset(chunk + 5, 'c', 1000);
		memcpy(chunk + 1005, "\r\n", 3);
		say(fd, chunk);
	}
	hear_all(fd);
	ck_assert_uint_eq(status_of(heard), 413);
	/* The client that goes away is noticed. */
	fd = dial();
	say(fd, GET_OK);
	close(fd);
	close(peer);
	stop();
}
END_TEST

/* ---- connections ---- */

START_TEST(connections_are_limited)
{
	int fds[2], fd;

	start(1, "limits = { connections = 2; };", OK_ROUTE);
	for (int i = 0; i < 2; i++) {
		fds[i] = dial();
		say(fds[i], GET_OK);
		hear_one(fds[i], false);
		ck_assert_uint_eq(status_of(heard), 200);
	}
	fd = dial();
	hear(fd, heard, sizeof(heard), 12); /* closed, or 503 */
	ck_assert(heard[0] == '\0' || status_of(heard) == 503);
	close(fd);
	close(fds[0]);
	for (int i = 0; i < 100; i++) {
		fd = dial();
		say(fd, "GET /ok HTTP/1.0\r\n\r\n");
		if (hear(fd, heard, sizeof(heard), SIZE_MAX) > 0 &&
		    status_of(heard) == 200)
			break;
		close(fd);
		poll(NULL, 0, 50);
	}
	ck_assert_uint_eq(status_of(heard), 200);
	close(fd);
	close(fds[1]);
	stop();
}
END_TEST

static void *
ask_often(void *arg)
{
	static const char ask[] = "GET /ok HTTP/1.1\r\nHost: t.example\r\n"
				  "Connection: close\r\n\r\n";

	for (int i = 0; i < 50; i++) {
		char got[1024];
		int fd = dial();

		say(fd, ask);
		if (hear(fd, got, sizeof(got), SIZE_MAX) > 0 &&
		    status_of(got) == 200)
			++*(int *)arg;
		close(fd);
	}
	return NULL;
}

/* With a socket for each of the workers, one for all, and more than workers. */
START_TEST(many_workers)
{
	static const unsigned n_sockets[] = { 4, 1, 7 };
	int kept[40], n_good[4] = { 0 };
	pthread_t threads[4];

	start(n_sockets[_i], "workers = 4;", OK_ROUTE);
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		kept[i] = dial();
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		pthread_create(&threads[i], NULL, ask_often, &n_good[i]);
	/* Configurations come and go meanwhile. */
	for (int i = 0; i < 5; i++)
		configure("workers = 4;", OK_ROUTE);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
		pthread_join(threads[i], NULL);
		ck_assert_int_eq(n_good[i], 50);
	}
	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		say(kept[i], GET_OK);
		hear_one(kept[i], false);
		ck_assert_uint_eq(status_of(heard), 200);
		close(kept[i]);
	}
	stop();
}
END_TEST

/* ---- configurations ---- */

START_TEST(reloads)
{
	const char *why;
	char *text;
	int fd;

	start(1, "", OK_ROUTE);
	fd = dial();
	say(fd, GET_OK);
	hear_one(fd, false);
	configure("", "{ path = \"/ok\"; respond = { status = 203; }; }");
	driver_await(&driver, CHANNEL_RETIRED);
	say(fd, GET_OK);
	hear_one(fd, false);
	ck_assert_uint_eq(status_of(heard), 203);
	/* A listener without sockets is refused, and nothing has changed. */
	text = conf_text("", OK_ROUTE);
	memcpy(strstr(text, "127.0.0.1"), "127.0.0.9", 9);
	driver.sets[0].key = 99;
	why = driver_configure(&driver, text);
	ck_assert_ptr_nonnull(why);
	ck_assert_ptr_nonnull(strstr(why, "no socket came for"));
	mem_free(text);
	say(fd, GET_OK);
	hear_one(fd, false);
	ck_assert_uint_eq(status_of(heard), 203);
	close(fd);
	stop();
}
END_TEST

START_TEST(listeners_come_and_go)
{
	int old_port, kept;

	start(1, "", OK_ROUTE);
	old_port = port;
	kept = dial();
	say(kept, GET_OK);
	hear_one(kept, false);
	port = driver_port(&driver, 1, false);
	configure("", OK_ROUTE);
	close(dial());
	/* The sockets of the first one are closed: ours was the last. */
	close(driver.sets[0].fds[0]);
	driver.sets[0].fds[0] = driver.sets[1].fds[0];
	driver.sets[0].n_fds = 0;
	port = old_port;
	ck_assert_int_eq(try_connect(), -1);
	/* What was accepted there is told so. */
	say(kept, GET_OK);
	hear_all(kept);
	ck_assert_uint_eq(status_of(heard), 421);
	stop();
}
END_TEST

/* ---- the end ---- */

START_TEST(drains)
{
	int idle, busy, status;

	/* One worker: when it has closed one it knows for the other too. */
	start(1, "workers = 1;", OK_ROUTE);
	idle = dial();
	say(idle, GET_OK);
	hear_one(idle, false);
	busy = dial();
	say(busy, "GET /ok HTTP/1.1\r\nHost: t.exa");
	poll(NULL, 0, 100);
	{
		struct channel_drain message = { 5000, 0 };

		channel_put_drain(&driver.out, CHANNEL_DRAIN, &message);
		driver_send(&driver);
	}
	hear_all(idle);
	ck_assert_str_eq(heard, "");
	say(busy, "mple\r\n\r\n");
	hear_all(busy);
	ck_assert_uint_eq(status_of(heard), 200);
	ck_assert_ptr_nonnull(strstr(heard, "Connection: close\r\n"));
	status = driver_stop(&driver, 5000);
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(drain_has_a_deadline)
{
	int64_t begin;
	int fd;

	start(2, "workers = 2;", OK_ROUTE);
	fd = dial();
	say(fd, "GET /ok HTTP/1.1\r\nHost: t.exa");
	poll(NULL, 0, 100);
	begin = clock_now_ms();
	ck_assert_int_eq(driver_stop(&driver, 500), 0);
	ck_assert_int_ge(clock_now_ms() - begin, 400);
	ck_assert_int_lt(clock_now_ms() - begin, 4000);
	close(fd);
}
END_TEST

START_TEST(a_lost_supervisor_is_the_end)
{
	start(2, "workers = 2;", OK_ROUTE);
	close(dial());
	ck_assert_int_eq(driver_vanish(&driver), 0);
	ck_assert_int_eq(try_connect(), -1);
}
END_TEST

/* ---- what it tells ---- */

START_TEST(access_log_has_every_request)
{
	char path[] = "/tmp/scalws-access-XXXXXX", *moved, *top, *text;
	struct channel_reopen message = { .n_logs = 1 };
	const struct channel_query query = { .query = 1 };
	size_t len;
	unsigned n = 0;
	int fd;

	close(mkstemp(path));
	moved = mem_printf("%s.1", path);
	top = mem_printf("workers = 2; access_log = \"%s\"; "
			 "access_log_format = \"json\";",
	    path);
	memset(&driver, 0, sizeof(driver));
	port = driver_port(&driver, 2, false);
	driver_start(&driver);
	text = conf_text(top, OK_ROUTE);
	memmove(text, text + 21, strlen(text) - 20); /* access_log = "none" */
	ck_assert_ptr_null(driver_configure(&driver, text));
	mem_free(text);
	for (int i = 0; i < 60; i++) {
		fd = dial();
		say(fd, "GET /ok?x HTTP/1.1\r\nHost: t.example\r\n"
			"User-Agent: \"x\\\r\nConnection: close\r\n\r\n");
		hear_all(fd);
		if (i == 30) {
			ck_assert_int_eq(rename(path, moved), 0);
			message.log_fds[0] =
			    open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
			channel_put_reopen(
			    &driver.out, CHANNEL_REOPEN_LOGS, &message);
			driver_send(&driver);
			close(message.log_fds[0]);
			/* Answered in the order of coming: it is done. */
			channel_put_query(&driver.out, CHANNEL_QUERY, &query);
			driver_send(&driver);
			driver_await(&driver, CHANNEL_STATS);
		}
	}
	stop();
	for (int i = 0; i < 2; i++) {
		const char *name = i == 0 ? moved : path;
		char *line, *rest;

		ck_assert_int_eq(fd_read_file(name, 1 << 20, &text, &len), 0);
		ck_assert_uint_gt(len, 0);
		for (line = strtok_r(text, "\n", &rest); line != NULL;
		     line = strtok_r(NULL, "\n", &rest)) {
			json_t *json = json_loads(line, 0, NULL);

			ck_assert_msg(json != NULL, "%s", line);
			ck_assert_str_eq(
			    json_string_value(json_object_get(json, "target")),
			    "/ok?x");
			ck_assert_str_eq(json_string_value(json_object_get(
					     json, "user_agent")),
			    "\"x\\");
			json_decref(json);
			n++;
		}
		mem_free(text);
		unlink(name);
	}
	ck_assert_uint_eq(n, 60);
	mem_free(moved);
	mem_free(top);
}
END_TEST

START_TEST(status_is_json)
{
	json_t *json;
	int fd;

	start(1, "", OK_ROUTE ", { path = \"/status\"; status = true; }");
	fd = dial();
	say(fd, GET_OK);
	hear_one(fd, false);
	say(fd, "GET /status HTTP/1.1\r\nHost: t.example\r\n\r\n");
	hear_one(fd, false);
	json = json_loads(strstr(heard, "\r\n\r\n") + 4, 0, NULL);
	ck_assert_ptr_nonnull(json);
	ck_assert_int_eq(
	    json_integer_value(json_object_get(json, "requests")), 1);
	ck_assert_int_eq(
	    json_integer_value(json_object_get(json, "connections")), 1);
	json_decref(json);
	close(fd);
	stop();
}
END_TEST

START_TEST(redirects)
{
	static const struct {
		const char *target, *location;
	} cases[] = {
		{ "/a/x%20y?q=1&r=%0d%0aSet-Cookie:x",
		    "https://t.example/a/x%20y?q=1&r=%0d%0aSet-Cookie:x" },
		{ "http://t.example?q", "https://t.example/?q" },
		{ "/b/x", "/new/b/x/" },
		{ "/c/x?y", "/c/x?y" },
		{ "//evil.example/../c/x", "/evil.example/../c/x" },
		{ "///c/x", "/c/x" },
	};
	int fd;

	start(1, "",
	    "{ path = \"/b/*\"; redirect = { location = \"/new{path}/\"; }; },"
	    "{ path = \"/c/*\"; redirect = { status = 307; location = "
	    "\"/{path}\"; }; },"
	    "{ redirect = { location = \"https://{host}{path}\"; }; }");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *ask = mem_printf("GET %s HTTP/1.0\r\n"
				       "Host: T.example:80\r\n\r\n",
		    cases[i].target);
		char *want =
		    mem_printf("\r\nLocation: %s\r\n", cases[i].location);

		fd = dial();
		say(fd, ask);
		hear_all(fd);
		ck_assert_msg(strstr(heard, want) != NULL, "%s gives %s",
		    cases[i].target, heard);
		ck_assert_uint_eq(count(heard, "Set-Cookie:"),
		    count(cases[i].target, "Set-Cookie:"));
		ck_assert_ptr_null(strstr(heard, "\nSet-Cookie"));
		mem_free(ask);
		mem_free(want);
	}
	stop();
}
END_TEST

#if COUNTS_MALLOC
START_TEST(no_allocation_per_request)
{
	unsigned long before = 0;
	int fds[8];

	test_pid = getpid();
	n_allocations = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	start(1, "", OK_ROUTE);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = dial();
	for (int round = 0; round < 120; round++) {
		if (round == 20)
			before = atomic_load(n_allocations);
		for (size_t i = 0; i < ARRAY_LEN(fds); i++)
			say(fds[i], GET_OK);
		for (size_t i = 0; i < ARRAY_LEN(fds); i++)
			hear_one(fds[i], false);
	}
	ck_assert_uint_gt(before, 0);
	ck_assert_uint_eq(atomic_load(n_allocations), before);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
	stop();
	n_allocations = NULL;
}
END_TEST
#endif

int
main(void)
{
	const TTest *const tests[] = {
		kept_and_pipelined,
		http_1_0,
		bad_heads_are_answered_and_closed,
		unread_bodies,
		body_limit,
		requests_per_connection,
		slow_reader_gets_all,
		times_of_heads_and_idle_connections,
		times_of_bodies,
		connections_are_limited,
		reloads,
		listeners_come_and_go,
		drains,
		drain_has_a_deadline,
		a_lost_supervisor_is_the_end,
		access_log_has_every_request,
		status_is_json,
		redirects,
#if COUNTS_MALLOC
		no_allocation_per_request,
#endif
	};
	Suite *suite = suite_create("proxy");
	TCase *all = tcase_create("alone");

	tcase_set_timeout(all, 60);
	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		tcase_add_test(all, tests[i]);
	tcase_add_loop_test(all, many_workers, 0, 3);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
