/*
 * Connections to the control socket.
 * Reads one request line, hands it to commands_run, writes the answer.
 * Trusts nobody who can open the socket: lengths, numbers and times are
 * bounded.
 */
#include "supervisor/control_server.h"

#include <errno.h>
#include <event2/event.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fdutil.h"
#include "src/base/list.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "supervisor/commands.h"
#include "supervisor/saved.h"
#include "supervisor/supervisor.h"

#define CLIENTS_MAX 64
#define CLIENTS_MORE 16  /* for those who may change things */
#define REQUEST_MS 10000 /* a request line must be there by then */
#define ANSWER_MS 60000  /* the last of the answer must be read by then */
#define OUT_MAX (4 * 1024 * 1024)
#define BACKLOG 128
/* Of an answer that is not read yet: more is not handed on. */
#define LAG_MAX (256 * 1024)

struct control_server {
	struct supervisor *supervisor;
	int fd;
	char *path;
	struct event *acceptable;
	struct list clients;
	unsigned n_clients;
};

struct control_client {
	struct list node;
	struct control_server *server;
	int fd;
	uid_t uid;
	struct event *readable, *writable, *timer;
	bool asked, ended;
	char *follows; /* the log of an app, or NULL */
	size_t in_len;
	char in[CONTROL_LINE_MAX + 1];
	struct strbuf out;
	size_t sent;
	control_gone_cb *on_gone;
	void *gone_arg;
};

static void
free_client(struct control_client *client)
{
	control_gone_cb *on_gone = client->on_gone;

	client->on_gone = NULL;
	if (on_gone != NULL && !client->ended)
		on_gone(client, client->gone_arg);
	list_remove(&client->node);
	client->server->n_clients--;
	event_free(client->readable);
	event_free(client->writable);
	event_free(client->timer);
	fd_close(&client->fd);
	strbuf_free(&client->out);
	mem_free(client->follows);
	mem_free(client);
}

static void
set_timer(struct control_client *client, int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	event_add(client->timer, &tv);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	free_client(arg);
}

/* Only from the loop: it may free the client. */
static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct control_client *client = arg;

	while (client->sent < client->out.len) {
		ssize_t n = send(client->fd, client->out.ptr + client->sent,
		    client->out.len - client->sent, MSG_NOSIGNAL);

		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && errno == EAGAIN) {
			event_add(client->writable, NULL);
			return;
		}
		if (n == -1) {
			free_client(client);
			return;
		}
		client->sent += (size_t)n;
	}
	strbuf_free(&client->out);
	client->out = STRBUF_EMPTY;
	client->sent = 0;
	if (client->ended)
		free_client(client);
}

static void
take_request(struct control_client *client, size_t len)
{
	static struct control_request request;
	const char *why;

	client->asked = true;
	event_del(client->timer);
	if (control_parse((struct str){ client->in, len }, &request, &why) ==
	    -1) {
		control_printf(client, 'e', "request not understood: %s", why);
		control_end(client, CONTROL_USAGE);
		return;
	}
	log_debug("control uid=%d %s %s", (int)client->uid, request.verb,
	    request.n_args > 0 ? request.args[0] : "");
	commands_run(client, &request);
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct control_client *client = arg;
	char *end;
	ssize_t n;

	if (client->asked) { /* the end, or noise, which is thrown away */
		char noise[256];

		n = recv(fd, noise, sizeof(noise), MSG_DONTWAIT);
		if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR))
			free_client(client);
		return;
	}
	n = recv(fd, client->in + client->in_len,
	    sizeof(client->in) - client->in_len, MSG_DONTWAIT);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		free_client(client);
		return;
	}
	client->in_len += (size_t)n;
	end = memchr(client->in, '\n', client->in_len);
	if (end != NULL) {
		take_request(client, (size_t)(end - client->in));
	} else if (client->in_len == sizeof(client->in)) {
		client->asked = true;
		control_printf(client, 'e', "the request is too long");
		control_end(client, CONTROL_USAGE);
	}
}

/* Who only holds a place gives way to who comes: the longest silent one first.
 * Who reads (logs -f of a group's members) keeps no administrator out. */
static bool
make_room(struct control_server *server, uid_t uid)
{
	bool may_change = uid == 0 || uid == geteuid();
	struct list *node;

	if (server->n_clients < CLIENTS_MAX)
		return true;
	LIST_FOREACH(node, &server->clients)
	{
		struct control_client *client =
		    LIST_ENTRY(node, struct control_client, node);

		if (!client->asked) {
			free_client(client);
			return true;
		}
	}
	return may_change && server->n_clients < CLIENTS_MAX + CLIENTS_MORE;
}

static struct control_client *
new_client(struct control_server *server, int fd, uid_t uid)
{
	struct event_base *base = server->supervisor->base;
	struct control_client *client = mem_alloc(sizeof(*client));

	client->server = server;
	client->fd = fd;
	client->uid = uid;
	client->readable =
	    event_new(base, fd, EV_READ | EV_PERSIST, on_readable, client);
	client->writable = event_new(base, fd, EV_WRITE, on_writable, client);
	client->timer = evtimer_new(base, on_timer, client);
	list_push_back(&server->clients, &client->node);
	server->n_clients++;
	event_add(client->readable, NULL);
	return client;
}

static void
on_acceptable(evutil_socket_t fd, short what, void *arg)
{
	struct control_server *server = arg;
	struct control_client *client;
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int client_fd = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (client_fd == -1)
		return;
	if (getsockopt(client_fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == -1 ||
	    !make_room(server, peer.uid)) {
		close(client_fd);
		return;
	}
	client = new_client(server, client_fd, peer.uid);
	set_timer(client, REQUEST_MS);
}

/* ---- for commands ---- */

struct supervisor *
control_supervisor(const struct control_client *client)
{
	return client->server->supervisor;
}

bool
control_may_change(const struct control_client *client)
{
	return client->uid == 0 || client->uid == geteuid();
}

void
control_say(struct control_client *client, char kind, struct str text)
{
	static const struct timeval now = { 0, 0 };

	if (client->ended)
		return;
	if (client->out.len - client->sent > OUT_MAX) {
		/* Too slow for what it follows; freed from the loop. */
		event_add(client->timer, &now);
		return;
	}
	control_put_line(&client->out, kind, text);
	event_add(client->writable, NULL);
}

void
control_printf(struct control_client *client, char kind, const char *fmt, ...)
{
	char *text = NULL;
	va_list args;
	int len;

	va_start(args, fmt);
	len = vasprintf(&text, fmt, args);
	va_end(args);
	if (len == -1)
		return;
	control_say(client, kind, (struct str){ text, (size_t)len });
	free(text);
}

void
control_end(struct control_client *client, enum control_exit code)
{
	client->ended = true;
	control_put_exit(&client->out, code);
	event_add(client->writable, NULL);
	set_timer(client, ANSWER_MS);
}

void
control_on_gone(
    struct control_client *client, control_gone_cb *on_gone, void *arg)
{
	client->on_gone = on_gone;
	client->gone_arg = arg;
}

/* ---- the socket ---- */

static int
set_rights(
    const char *path, const struct conf *conf, struct conf_errors *errors)
{
	struct group *group;

	if (conf->control.group == NULL) {
		if (chmod(path, 0600) == -1)
			return conf_errors_add_errno(errors, NULL,
			    "control.socket", "cannot protect %s", path);
		return 0;
	}
	errno = 0;
	group = getgrnam(conf->control.group);
	if (group == NULL)
		return conf_errors_add(errors, NULL, "control.group",
		    "there is no group \"%s\"", conf->control.group);
	if (chown(path, (uid_t)-1, group->gr_gid) == -1 ||
	    chmod(path, 0660) == -1)
		return conf_errors_add_errno(errors, NULL, "control.group",
		    "cannot give %s to the group", path);
	return 0;
}

static void
watch(struct control_server *server)
{
	server->acceptable = event_new(server->supervisor->base, server->fd,
	    EV_READ | EV_PERSIST, on_acceptable, server);
	event_add(server->acceptable, NULL);
}

struct control_server *
control_server_new(struct supervisor *supervisor, const struct conf *conf,
    struct conf_errors *errors)
{
	struct control_server *server = mem_alloc(sizeof(*server));
	struct addr addr;

	list_init(&server->clients);
	server->supervisor = supervisor;
	server->path = mem_strdup(conf->control.socket);
	server->fd =
	    socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (addr_unix(server->path, &addr) == -1) {
		conf_errors_add(errors, NULL, "control.socket",
		    "the path is longer than 107 bytes");
		goto fail;
	}
	/* We hold the lock of the run directory: what is there is stale. */
	unlink(server->path);
	if (server->fd == -1 || bind(server->fd, &addr.u.sa, addr.len) == -1) {
		conf_errors_add_errno(errors, NULL, "control.socket",
		    "cannot make %s", server->path);
		goto fail;
	}
	if (set_rights(server->path, conf, errors) == -1)
		goto fail;
	if (listen(server->fd, BACKLOG) == -1) {
		conf_errors_add_errno(errors, NULL, "control.socket",
		    "cannot listen on %s", server->path);
		goto fail;
	}
	watch(server);
	return server;
fail:
	control_server_free(&server);
	return NULL;
}

/* Send what the socket takes, and close. */
static void
free_flushed(struct control_client *client)
{
	if (client->sent < client->out.len &&
	    send(client->fd, client->out.ptr + client->sent,
		client->out.len - client->sent, MSG_NOSIGNAL) == -1)
		log_debug("control: an answer was lost");
	free_client(client);
}

void
control_server_free(struct control_server **server_ptr)
{
	struct control_server *server = *server_ptr;
	struct list *node, *after;

	if (server == NULL)
		return;
	LIST_FOREACH_SAFE(node, after, &server->clients)
	{
		struct control_client *client =
		    LIST_ENTRY(node, struct control_client, node);

		free_flushed(client);
	}
	if (server->acceptable != NULL)
		event_free(server->acceptable);
	if (server->fd != -1)
		unlink(server->path);
	fd_close(&server->fd);
	mem_free(server->path);
	mem_free(server);
	*server_ptr = NULL;
}

/* ---- handed on to another process ---- */

void
control_follows(struct control_client *client, const char *app)
{
	client->follows = mem_strdup(app);
}

static bool
is_waiting(const struct control_client *client)
{
	return client->asked && !client->ended && client->follows == NULL;
}

static bool
lags(const struct control_client *client)
{
	return client->out.len - client->sent > LAG_MAX;
}

bool
control_server_is_busy(
    const struct control_server *server, const struct control_client *client)
{
	struct list *node;

	LIST_FOREACH(node, &server->clients)
	{
		const struct control_client *one =
		    LIST_ENTRY(node, struct control_client, node);

		if (one != client && is_waiting(one))
			return true;
	}
	return false;
}

void
control_server_cut(
    struct control_server *server, const struct control_client *client)
{
	struct list *node, *after;

	LIST_FOREACH_SAFE(node, after, &server->clients)
	{
		struct control_client *one =
		    LIST_ENTRY(node, struct control_client, node);

		if (one == client || (!is_waiting(one) && !lags(one)))
			continue;
		if (!one->ended) {
			control_printf(
			    one, 'e', "scalwsd is being upgraded, ask again");
			control_put_exit(&one->out, CONTROL_FAILED);
		}
		free_flushed(one);
	}
}

static void
save_client(const struct control_client *client, struct saved_client *to)
{
	to->fd = client->fd;
	to->uid = (uint32_t)client->uid;
	to->asked = client->asked;
	to->ended = client->ended;
	to->in_len = client->asked ? 0 : client->in_len;
	to->in = mem_memdup0(client->in, to->in_len);
	to->out_len = client->out.len - client->sent;
	to->out =
	    mem_memdup0(to->out_len == 0 ? "" : client->out.ptr + client->sent,
		to->out_len);
	to->follows =
	    mem_strdup(client->follows == NULL ? "" : client->follows);
}

void
control_server_save(const struct control_server *server,
    const struct control_client *client, struct saved_client **clients,
    uint32_t *n)
{
	struct list *node;

	*n = 0;
	*clients = mem_alloc_array(server->n_clients + 1, sizeof(**clients));
	LIST_FOREACH(node, &server->clients)
	{
		const struct control_client *one =
		    LIST_ENTRY(node, struct control_client, node);
		struct saved_client *to = &(*clients)[*n];

		if (one != client && (is_waiting(one) || lags(one)))
			continue;
		save_client(one, to);
		to->waits = one == client;
		(*n)++;
	}
}

int
control_server_fd(const struct control_server *server)
{
	return server->fd;
}

struct control_server *
control_server_adopt(
    struct supervisor *supervisor, const struct conf *conf, int fd)
{
	struct control_server *server = mem_alloc(sizeof(*server));

	list_init(&server->clients);
	server->supervisor = supervisor;
	server->path = mem_strdup(conf->control.socket);
	server->fd = fd;
	watch(server);
	return server;
}

struct control_client *
control_client_adopt(
    struct control_server *server, const struct saved_client *from)
{
	struct control_client *client =
	    new_client(server, from->fd, (uid_t)from->uid);

	client->asked = from->asked;
	client->ended = from->ended;
	memcpy(client->in, from->in, from->in_len);
	client->in_len = from->in_len;
	strbuf_add(&client->out, from->out, from->out_len);
	if (from->out_len > 0)
		event_add(client->writable, NULL);
	if (!client->asked || client->ended)
		set_timer(client, client->asked ? ANSWER_MS : REQUEST_MS);
	return client;
}
