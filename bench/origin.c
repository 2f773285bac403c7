/*
 * The application of the proxy scenarios: a fixed small JSON answer, in one
 * write, for every request head that arrives on an inherited listener.
 * Started by bench/run as `origin FD [BYTES]`; with BYTES the answer's body has
 * that length. Reads no request bodies, checks nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_MAX 16384
#define FDS_MAX 4096

static const char head[] = "HTTP/1.1 200 OK\r\n"
			   "Content-Type: application/json\r\n"
			   "Content-Length: %zu\r\n"
			   "\r\n";
static const char body[] = "{\"message\":\"Hello, World!\"}";

struct answer {
	char *bytes;
	size_t len;
};

struct conn {
	size_t owed;     /* of the answer */
	bool is_blocked; /* it waits for room to send it */
	bool is_last;
	size_t len;
	char head[HEAD_MAX + 1];
};

static void
die(const char *what)
{
	perror(what);
	exit(1);
}

static void
accept_conn(int epoll, int listener, struct conn **conns)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd == -1)
		return;
	if (fd >= FDS_MAX) {
		close(fd);
		return;
	}
	if (conns[fd] == NULL && (conns[fd] = malloc(sizeof(**conns))) == NULL)
		die("malloc");
	conns[fd]->len = conns[fd]->owed = 0;
	conns[fd]->is_blocked = false;
	event.data.fd = fd;
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == -1)
		die("epoll_ctl");
}

/* Sends what is owed, as far as it goes now; false: the connection is over. */
static bool
push(int epoll, int fd, struct conn *conn, const struct answer *answer)
{
	const char *from = answer->bytes + (answer->len - conn->owed);
	ssize_t n = send(fd, from, conn->owed, MSG_NOSIGNAL);
	struct epoll_event event = { .data.fd = fd };
	bool was_blocked = conn->is_blocked;

	if (n == -1 && errno != EAGAIN)
		return false;
	conn->owed -= n == -1 ? 0 : (size_t)n;
	conn->is_blocked = conn->owed > 0;
	event.events = conn->is_blocked ? EPOLLOUT : EPOLLIN;
	if (conn->is_blocked != was_blocked &&
	    epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) == -1)
		die("epoll_ctl");
	return conn->is_blocked || !conn->is_last;
}

/* Answers the head that ends at `end`; false: the connection is over. */
static bool
answer_head(int epoll, int fd, struct conn *conn, char *end,
    const struct answer *answer)
{
	*end = '\0';
	conn->is_last = strcasestr(conn->head, "\r\nconnection: close") != NULL;
	end += 4;
	conn->len -= (size_t)(end - conn->head);
	memmove(conn->head, end, conn->len + 1);
	conn->owed = answer->len;
	return push(epoll, fd, conn, answer);
}

static bool
serve(int epoll, int fd, struct conn *conn, const struct answer *answer)
{
	ssize_t n;
	char *end;

	if (conn->is_blocked)
		return push(epoll, fd, conn, answer);
	n = read(fd, conn->head + conn->len, HEAD_MAX - conn->len);
	if (n <= 0)
		return false;
	conn->len += (size_t)n;
	conn->head[conn->len] = '\0';
	while (
	    !conn->is_blocked && (end = strstr(conn->head, "\r\n\r\n")) != NULL)
		if (!answer_head(epoll, fd, conn, end, answer))
			return false;
	return conn->len < HEAD_MAX;
}

static struct answer
make_answer(size_t bytes)
{
	struct answer answer;
	size_t len = bytes > 0 ? bytes : sizeof(body) - 1;
	int at;

	answer.bytes = malloc(sizeof(head) + 20 + len);
	if (answer.bytes == NULL)
		die("malloc");
	at = sprintf(answer.bytes, head, len);
	if (bytes > 0)
		memset(answer.bytes + at, 'x', len);
	else
		memcpy(answer.bytes + at, body, len);
	answer.len = (size_t)at + len;
	return answer;
}

int
main(int argc, char **argv)
{
	static struct conn *conns[FDS_MAX];
	struct epoll_event events[64];
	int listener = argc >= 2 ? atoi(argv[1]) : -1;
	struct answer answer =
	    make_answer(argc == 3 ? strtoul(argv[2], NULL, 10) : 0);
	struct epoll_event event = { .events = EPOLLIN, .data.fd = listener };
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll == -1 ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) == -1)
		die("epoll");
	for (;;) {
		int n = epoll_wait(epoll, events, 64, -1);

		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;

			if (fd == listener)
				accept_conn(epoll, listener, conns);
			else if (!serve(epoll, fd, conns[fd], &answer))
				close(fd);
		}
	}
}
