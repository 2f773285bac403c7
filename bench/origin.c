/*
 * The application of the proxy scenarios: a fixed small JSON answer, in one
 * write, for every request head that arrives on an inherited listener.
 * Started by bench/run as `origin FD`. Reads no request bodies, checks nothing.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_MAX 16384
#define FDS_MAX 4096

static const char answer[] = "HTTP/1.1 200 OK\r\n"
			     "Content-Type: application/json\r\n"
			     "Content-Length: 27\r\n"
			     "\r\n"
			     "{\"message\":\"Hello, World!\"}";

struct conn {
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
	conns[fd]->len = 0;
	event.data.fd = fd;
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == -1)
		die("epoll_ctl");
}

/* Answers the head that ends at `end`; false: the connection is over. */
static bool
answer_head(int fd, struct conn *conn, char *end)
{
	bool is_last;

	*end = '\0';
	is_last = strcasestr(conn->head, "\r\nconnection: close") != NULL;
	if (send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL) !=
	    sizeof(answer) - 1)
		return false;
	end += 4;
	conn->len -= (size_t)(end - conn->head);
	memmove(conn->head, end, conn->len + 1);
	return !is_last;
}

static bool
serve(int fd, struct conn *conn)
{
	ssize_t n = read(fd, conn->head + conn->len, HEAD_MAX - conn->len);
	char *end;

	if (n <= 0)
		return false;
	conn->len += (size_t)n;
	conn->head[conn->len] = '\0';
	while ((end = strstr(conn->head, "\r\n\r\n")) != NULL)
		if (!answer_head(fd, conn, end))
			return false;
	return conn->len < HEAD_MAX;
}

int
main(int argc, char **argv)
{
	static struct conn *conns[FDS_MAX];
	struct epoll_event events[64];
	int listener = argc == 2 ? atoi(argv[1]) : -1;
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
			else if (!serve(fd, conns[fd]))
				close(fd);
		}
	}
}
