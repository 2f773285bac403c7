/*
 * A supervisor of a few lines, see proxy_driver.h.
 * Speaks the real channel; keeps the listening sockets as the supervisor does.
 */
#include "t/unit/proxy_driver.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proxy/proxy.h"
#include "src/base/fdutil.h"
#include "src/conf/conf.h"

#define AWAIT_MS 10000

static void
die(const char *what)
{
	perror(what);
	abort();
}

int
driver_port(struct driver *driver, unsigned n_fds, bool is_deferred)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	unsigned set = driver->n_sets++;
	int one = 1;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (unsigned i = 0; i < n_fds; i++) {
		int fd = socket(
		    AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		if (fd == -1 ||
		    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one,
			sizeof(one)) == -1 ||
		    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one,
			sizeof(one)) == -1 ||
		    (is_deferred &&
			setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &one,
			    sizeof(one)) == -1) ||
		    bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == -1 ||
		    listen(fd, 512) == -1 ||
		    getsockname(fd, (struct sockaddr *)&addr, &len) == -1)
			die("listening socket");
		driver->sets[set].fds[i] = fd;
	}
	driver->sets[set].n_fds = n_fds;
	driver->sets[set].port = ntohs(addr.sin_port);
	return driver->sets[set].port;
}

void
driver_start(struct driver *driver)
{
	struct channel_hello hello = { CHANNEL_VERSION, 1 };
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == -1)
		die("socketpair");
	driver->pid = fork();
	if (driver->pid == -1)
		die("fork");
	if (driver->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[0]);
		for (unsigned i = 0; i < driver->n_sets; i++)
			for (unsigned j = 0; j < driver->sets[i].n_fds; j++)
				close(driver->sets[i].fds[j]);
		/* Not _exit: sanitizers look for leaks at exit. */
		exit(proxy_run(ends[1]));
	}
	close(ends[1]);
	driver->link = frame_link_new(ends[0], 1 << 20);
	driver_await(driver, CHANNEL_HELLO);
	channel_put_hello(&driver->out, CHANNEL_HELLO, &hello);
	driver_send(driver);
}

void
driver_send(struct driver *driver)
{
	if (frame_link_send(driver->link, &driver->out) == -1)
		die("send");
}

/* The next message of one of two types. */
static uint16_t
await_either(struct driver *driver, uint16_t one, uint16_t other)
{
	for (;;) {
		struct pollfd fd = { frame_link_fd(driver->link), POLLIN, 0 };
		enum frame_result result =
		    frame_link_recv(driver->link, &driver->in);

		if (result == FRAME_GOT &&
		    (driver->in.type == one || driver->in.type == other))
			return driver->in.type;
		if (result == FRAME_GOT) {
			frame_done(&driver->in);
			continue;
		}
		if (result != FRAME_AGAIN || poll(&fd, 1, AWAIT_MS) != 1)
			die("the proxy says nothing");
	}
}

void
driver_await(struct driver *driver, uint16_t type)
{
	await_either(driver, type, type);
	frame_done(&driver->in);
}

/* ---- configurations ---- */

static struct conf *
load(const char *text, struct conf_errors *errors)
{
	char path[] = "/tmp/scalws-driver-XXXXXX";
	int fd = mkstemp(path);
	struct conf *conf;

	/* Root must name the user that the proxy becomes. */
	static const char user[] = "user = \"nobody\"; group = \"nogroup\";\n";

	if (fd == -1 ||
	    (geteuid() == 0 &&
		fd_write_all(fd, user, sizeof(user) - 1) == -1) ||
	    fd_write_all(fd, text, strlen(text)) == -1)
		die("configuration file");
	close(fd);
	conf_errors_init(errors);
	conf = conf_load(path, errors);
	unlink(path);
	return conf;
}

static void
send_prepare(struct driver *driver, const struct conf *conf)
{
	struct channel_prepare message = { .serial = driver->serial };
	struct strbuf flat = STRBUF_EMPTY;

	conf_to_flat(conf, &flat);
	message.conf_fd = fd_memfd_sealed("conf", flat.ptr, flat.len);
	strbuf_free(&flat);
	if (conf->access_log != NULL) {
		message.log_fds[message.n_logs++] = open(conf->access_log,
		    O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
		if (message.log_fds[0] == -1)
			die(conf->access_log);
	}
	channel_put_prepare(&driver->out, CHANNEL_PREPARE, &message);
	driver_send(driver);
	close(message.conf_fd);
	for (unsigned i = 0; i < message.n_logs; i++)
		close(message.log_fds[i]);
}

static void
send_listen(struct driver *driver, const struct conf *conf)
{
	for (size_t i = 0; i < conf->n_listeners; i++) {
		struct channel_listen message = { .serial = driver->serial,
			.index = (uint32_t)i };
		uint16_t port = addr_port(&conf->listeners[i].addr);

		for (unsigned j = 0; j < driver->n_sets; j++) {
			if (driver->sets[j].port != port)
				continue;
			message.reuseport = driver->sets[j].n_fds > 1;
			if (driver->sets[j].key == 0) {
				driver->sets[j].key = ++driver->next_key;
				message.n_fds = driver->sets[j].n_fds;
				memcpy(message.fds, driver->sets[j].fds,
				    sizeof(message.fds));
			}
			message.key = driver->sets[j].key;
		}
		channel_put_listen(&driver->out, CHANNEL_LISTEN, &message);
		driver_send(driver);
	}
}

static void
send_serial(struct driver *driver, uint16_t type)
{
	struct channel_serial message = { driver->serial, "" };

	channel_put_serial(&driver->out, type, &message);
	driver_send(driver);
}

const char *
driver_configure(struct driver *driver, const char *text)
{
	struct conf_errors errors;
	struct conf *conf = load(text, &errors);
	struct channel_serial answer;

	if (conf == NULL) {
		fprintf(stderr, "%s", errors.text.ptr);
		die("configuration");
	}
	driver->serial++;
	send_prepare(driver, conf);
	send_listen(driver, conf);
	conf_free(conf);
	conf_errors_free(&errors);
	send_serial(driver, CHANNEL_LOADED);
	if (await_either(driver, CHANNEL_PREPARED, CHANNEL_REJECTED) ==
	    CHANNEL_REJECTED) {
		if (channel_get_serial(&driver->in, &answer) == -1)
			die("REJECTED");
		return answer.text;
	}
	frame_done(&driver->in);
	send_serial(driver, CHANNEL_COMMIT);
	driver_await(driver, CHANNEL_READY);
	return NULL;
}

/* ---- the end ---- */

static int
await_exit(struct driver *driver)
{
	int status = -1;

	for (int i = 0; i < AWAIT_MS / 10; i++) {
		if (waitpid(driver->pid, &status, WNOHANG) == driver->pid)
			return status;
		poll(NULL, 0, 10);
	}
	kill(driver->pid, SIGKILL);
	waitpid(driver->pid, &status, 0);
	return status;
}

static void
close_sets(struct driver *driver)
{
	for (unsigned i = 0; i < driver->n_sets; i++)
		for (unsigned j = 0; j < driver->sets[i].n_fds; j++)
			close(driver->sets[i].fds[j]);
	driver->n_sets = 0;
}

int
driver_stop(struct driver *driver, uint32_t deadline_ms)
{
	struct channel_drain message = { deadline_ms, 0 };
	int status;

	channel_put_drain(&driver->out, CHANNEL_DRAIN, &message);
	driver_send(driver);
	status = await_exit(driver);
	frame_link_free(&driver->link);
	close_sets(driver);
	return status;
}

int
driver_vanish(struct driver *driver)
{
	close_sets(driver);
	frame_link_free(&driver->link);
	return await_exit(driver);
}
