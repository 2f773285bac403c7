/*
 * The load where wrk cannot be used: exact numbers of requests (to count
 * instructions and system calls), kept idle connections, and what exactly
 * failed while a server reloads. Started by bench/run. Measures no times.
 *
 *	load -n COUNT -c CONNS [-1] -r FILE ADDRESS   all connections in step
 *	load -t SECONDS -c CONNS [-1] -r FILE ADDRESS each as fast as it can
 *	load -h -c CONNS [-r FILE] ADDRESS            hold them until stdin ends
 *
 * ADDRESS is IPV4:PORT. FILE is one request as it is sent. -1: a connection
 * per request. -b BYTES: the longest answer. -s NAME: TLS 1.3, for that name;
 * -u: sessions are resumed. Writes one line of JSON.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_MAX 8192
#define ANSWER_BYTES 8192 /* without -b */
#define WAIT_S 120        /* a longer answer has failed */
/* Between two tries to reach a server that refuses. */
#define PAUSE_US 2000

enum outcome {
	MORE,   /* the answer is not whole */
	DONE,   /* a whole answer came */
	CLOSED, /* the connection ended before its first byte: may be sent
		 * again */
	BROKEN, /* it ended inside an answer */
	LATE,   /* no answer in WAIT_S */
};

struct conn {
	int fd; /* -1: none */
	size_t len;
	double sent_at;
	bool is_waiting; /* for an answer */
	bool is_shaking; /* the handshake is not done, nor the request sent */
	char *answer;    /* NUL-terminated */
	SSL *ssl;        /* or NULL */
	SSL_SESSION *session; /* of its last connection, or NULL */
};

struct load {
	struct sockaddr_in to;
	char request[REQUEST_MAX];
	size_t request_len;
	size_t answer_bytes;
	SSL_CTX *tls; /* or NULL */
	const char *name;
	long count;
	double seconds;
	int n_conns;
	bool one_shot, holds, resumes;
	struct conn *conns;
	/* What came of it. */
	long done, ok, not_2xx, refused, closed, broken, late, opened, resumed;
	double longest;
};

static void
die(const char *what)
{
	perror(what);
	exit(1);
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- TLS ---- */

/* A ticket comes behind the handshake. */
static int
on_session(SSL *ssl, SSL_SESSION *session)
{
	struct conn *conn = SSL_get_app_data(ssl);

	SSL_SESSION_free(conn->session);
	conn->session = session;
	return 1; /* it is ours now */
}

static SSL_CTX *
new_tls(void)
{
	SSL_CTX *tls = SSL_CTX_new(TLS_client_method());

	if (tls == NULL)
		die("SSL_CTX_new");
	SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION);
	SSL_CTX_set_session_cache_mode(
	    tls, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(tls, on_session);
	return tls;
}

static void
begin_tls(struct load *load, struct conn *conn)
{
	conn->ssl = SSL_new(load->tls);
	if (conn->ssl == NULL || SSL_set_fd(conn->ssl, conn->fd) != 1 ||
	    SSL_set_tlsext_host_name(conn->ssl, load->name) != 1)
		die("SSL_new");
	SSL_set_app_data(conn->ssl, conn);
	if (load->resumes && conn->session != NULL)
		SSL_set_session(conn->ssl, conn->session);
	SSL_set_connect_state(conn->ssl);
	conn->is_shaking = true;
	if (fcntl(conn->fd, F_SETFL, O_NONBLOCK) == -1)
		die("fcntl");
}

/* As recv(2), with MSG_DONTWAIT. */
static ssize_t
tls_result(struct conn *conn, int result)
{
	switch (SSL_get_error(conn->ssl, result)) {
	case SSL_ERROR_NONE:
		return result;
	case SSL_ERROR_WANT_READ:
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default:
		errno = ECONNRESET;
		return -1;
	}
}

static enum outcome
shake_hands(struct load *load, struct conn *conn)
{
	int result = SSL_do_handshake(conn->ssl);

	if (result != 1)
		return tls_result(conn, result) == -1 && errno == EAGAIN
			   ? MORE
			   : CLOSED;
	conn->is_shaking = false;
	load->resumed += SSL_session_reused(conn->ssl);
	/* A failure shows at the read that follows. */
	SSL_write(conn->ssl, load->request, (int)load->request_len);
	return MORE;
}

/* ---- connections ---- */

static bool
conn_open(struct load *load, struct conn *conn)
{
	struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	int on = 1;

	conn->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (conn->fd == -1)
		die("socket");
	setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	/* No TIME_WAIT at our end: 28,000 ports are soon used up. */
	setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	if (connect(conn->fd, (struct sockaddr *)&load->to, sizeof(load->to)) ==
	    -1) {
		close(conn->fd);
		conn->fd = -1;
		load->refused++;
		return false;
	}
	load->opened++;
	if (load->tls != NULL)
		begin_tls(load, conn);
	return true;
}

static void
conn_close(struct conn *conn)
{
	if (conn->ssl != NULL) /* or its session would be no good */
		SSL_set_shutdown(conn->ssl, SSL_SENT_SHUTDOWN);
	SSL_free(conn->ssl);
	conn->ssl = NULL;
	if (conn->fd != -1)
		close(conn->fd);
	conn->fd = -1;
	conn->is_waiting = false;
}

/* False: no connection could be made. */
static bool
conn_send(struct load *load, struct conn *conn)
{
	if (conn->fd == -1 && !conn_open(load, conn))
		return false;
	conn->len = 0;
	conn->answer[0] = '\0';
	conn->sent_at = now();
	conn->is_waiting = true;
	if (conn->ssl == NULL)
		/* A failure shows at the read that follows. */
		(void)!send(
		    conn->fd, load->request, load->request_len, MSG_NOSIGNAL);
	else if (conn->is_shaking)
		shake_hands(load, conn);
	else
		SSL_write(conn->ssl, load->request, (int)load->request_len);
	return true;
}

static const char *
find_field(const struct conn *conn, const char *end, const char *field)
{
	const char *at = strcasestr(conn->answer, field);

	return at != NULL && at < end ? at + strlen(field) : NULL;
}

/* Is the whole answer there? The last chunk is taken by its text: answers
 * here are fixed and do not hold it elsewhere. */
static bool
is_whole(const struct conn *conn)
{
	const char *end = strstr(conn->answer, "\r\n\r\n");
	const char *value;
	size_t body;

	if (end == NULL)
		return false;
	body = conn->len - (size_t)(end + 4 - conn->answer);
	value = find_field(conn, end, "\r\ncontent-length:");
	if (value != NULL)
		return body >= strtoul(value, NULL, 10);
	if (find_field(conn, end, "\r\ntransfer-encoding: chunked") != NULL)
		return body >= 5 && memcmp(conn->answer + conn->len - 5,
					"0\r\n\r\n", 5) == 0;
	return false; /* its end is the end of the connection */
}

static bool
is_last(const struct conn *conn)
{
	const char *end = strstr(conn->answer, "\r\n\r\n");

	return find_field(conn, end, "\r\nconnection: close") != NULL;
}

static ssize_t
receive(struct conn *conn, char *to, size_t room)
{
	if (conn->ssl == NULL)
		return recv(conn->fd, to, room, MSG_DONTWAIT);
	return tls_result(conn, SSL_read(conn->ssl, to, (int)room));
}

static enum outcome
conn_read(struct load *load, struct conn *conn)
{
	ssize_t n = receive(
	    conn, conn->answer + conn->len, load->answer_bytes - conn->len);

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return MORE;
	if (n == 0 && strstr(conn->answer, "\r\n\r\n") != NULL)
		return is_last(conn) ? DONE : BROKEN;
	if (n <= 0)
		return conn->len == 0 ? CLOSED : BROKEN;
	conn->len += (size_t)n;
	conn->answer[conn->len] = '\0';
	if (conn->len == load->answer_bytes)
		return BROKEN;
	return is_whole(conn) ? DONE : MORE;
}

static enum outcome
conn_readable(struct load *load, struct conn *conn)
{
	enum outcome outcome;

	if (conn->is_shaking) {
		outcome = shake_hands(load, conn);
		if (outcome != MORE || conn->is_shaking)
			return outcome;
	}
	do {
		outcome = conn_read(load, conn);
	} while (
	    outcome == MORE && conn->ssl != NULL && SSL_has_pending(conn->ssl));
	return outcome;
}

static void
count(struct load *load, struct conn *conn, enum outcome outcome)
{
	double took = now() - conn->sent_at;

	conn->is_waiting = false;
	load->done++;
	if (took > load->longest)
		load->longest = took;
	if (outcome == DONE && strncmp(conn->answer, "HTTP/1.1 2", 10) == 0)
		load->ok++;
	else if (outcome == DONE)
		load->not_2xx++;
	else if (outcome == CLOSED)
		load->closed++;
	else if (outcome == BROKEN)
		load->broken++;
	else
		load->late++;
	if (outcome != DONE || load->one_shot || is_last(conn))
		conn_close(conn);
}

/* Waits for bytes at any connection and takes them. Returns how many of the
 * connections still wait. */
static int
take_answers(struct load *load, struct pollfd *fds)
{
	int waiting = 0;

	for (int i = 0; i < load->n_conns; i++) {
		struct conn *conn = &load->conns[i];

		fds[i].fd = conn->is_waiting ? conn->fd : -1;
		fds[i].events = POLLIN;
		fds[i].revents = 0;
		waiting += conn->is_waiting;
	}
	if (waiting == 0)
		return 0;
	if (poll(fds, (nfds_t)load->n_conns, 100) == -1)
		die("poll");
	for (int i = 0; i < load->n_conns; i++) {
		struct conn *conn = &load->conns[i];
		enum outcome outcome = MORE;

		if (!conn->is_waiting)
			continue;
		if (fds[i].revents != 0)
			outcome = conn_readable(load, conn);
		else if (now() - conn->sent_at > WAIT_S)
			outcome = LATE;
		if (outcome == MORE)
			continue;
		count(load, conn, outcome);
		waiting--;
	}
	return waiting;
}

/* Every connection sends, then all answers are awaited, and so on. */
static void
run_in_step(struct load *load, struct pollfd *fds)
{
	while (load->done < load->count) {
		for (int i = 0; i < load->n_conns; i++)
			if (!conn_send(load, &load->conns[i]))
				die("connect");
		while (take_answers(load, fds) > 0)
			;
	}
}

static void
run_for_a_time(struct load *load, struct pollfd *fds)
{
	double end = now() + load->seconds;
	bool is_over = false;

	while (!is_over || take_answers(load, fds) > 0) {
		is_over = is_over || now() >= end;
		for (int i = 0; i < load->n_conns && !is_over; i++) {
			struct conn *conn = &load->conns[i];

			if (!conn->is_waiting && !conn_send(load, conn))
				usleep(PAUSE_US);
		}
		if (!is_over)
			take_answers(load, fds);
	}
}

/* The connection stays, silent. */
static void
forget_tls(struct conn *conn)
{
	SSL_free(conn->ssl);
	SSL_SESSION_free(conn->session);
	conn->ssl = NULL;
	conn->session = NULL;
}

static void
hold(struct load *load, struct pollfd *fds)
{
	char byte;

	for (int i = 0; i < load->n_conns; i++) {
		if (!conn_open(load, &load->conns[i]))
			die("connect");
		if (load->request_len == 0)
			continue;
		conn_send(load, &load->conns[i]);
		/* 64 in the air are enough: no backlog overflows. */
		while (i % 64 == 63 && take_answers(load, fds) > 0)
			;
	}
	while (take_answers(load, fds) > 0)
		;
	for (int i = 0; i < load->n_conns; i++)
		forget_tls(&load->conns[i]);
	printf("{\"held\": %d, \"ok\": %ld}\n", load->n_conns, load->ok);
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

static void
parse_address(struct load *load, char *text)
{
	char *colon = strrchr(text, ':');

	if (colon == NULL) {
		fprintf(stderr, "load: an address is IPV4:PORT\n");
		exit(1);
	}
	*colon = '\0';
	load->to.sin_family = AF_INET;
	load->to.sin_port = htons((uint16_t)atoi(colon + 1));
	if (inet_pton(AF_INET, text, &load->to.sin_addr) != 1)
		die("address");
}

static void
read_request(struct load *load, const char *path)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = fd == -1 ? -1 : read(fd, load->request, REQUEST_MAX);

	if (n <= 0)
		die(path);
	load->request_len = (size_t)n;
	close(fd);
}

static void
parse_options(struct load *load, int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "n:t:c:r:b:s:u1h")) != -1) {
		switch (option) {
		case 'n':
			load->count = atol(optarg);
			break;
		case 't':
			load->seconds = atof(optarg);
			break;
		case 'c':
			load->n_conns = atoi(optarg);
			break;
		case 'r':
			read_request(load, optarg);
			break;
		case 'b':
			load->answer_bytes = strtoul(optarg, NULL, 10);
			break;
		case 's':
			load->tls = new_tls();
			load->name = optarg;
			break;
		case 'u':
			load->resumes = true;
			break;
		case '1':
			load->one_shot = true;
			break;
		case 'h':
			load->holds = true;
			break;
		default:
			exit(1);
		}
	}
	if (optind + 1 != argc || load->n_conns < 1) {
		fprintf(stderr, "load: see the top of load.c\n");
		exit(1);
	}
	parse_address(load, argv[optind]);
}

int
main(int argc, char **argv)
{
	static struct load load = { .answer_bytes = ANSWER_BYTES };
	struct rlimit files;
	struct pollfd *fds;

	parse_options(&load, argc, argv);
	/* Each connection is a descriptor. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	load.conns = calloc((size_t)load.n_conns, sizeof(*load.conns));
	fds = calloc((size_t)load.n_conns, sizeof(*fds));
	if (load.conns == NULL || fds == NULL)
		die("calloc");
	for (int i = 0; i < load.n_conns; i++) {
		load.conns[i].fd = -1;
		load.conns[i].answer = malloc(load.answer_bytes + 1);
		if (load.conns[i].answer == NULL)
			die("malloc");
	}
	if (load.holds) {
		hold(&load, fds);
		return 0;
	}
	if (load.count > 0)
		run_in_step(&load, fds);
	else
		run_for_a_time(&load, fds);
	printf("{\"requests\": %ld, \"ok\": %ld, \"not_2xx\": %ld, "
	       "\"refused\": %ld, \"closed\": %ld, \"broken\": %ld, "
	       "\"late\": %ld, \"opened\": %ld, \"resumed\": %ld, "
	       "\"longest_s\": %.3f}\n",
	    load.done, load.ok, load.not_2xx, load.refused, load.closed,
	    load.broken, load.late, load.opened, load.resumed, load.longest);
	return 0;
}
