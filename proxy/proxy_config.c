/*
 * Configurations of the proxy: PREPARE and LISTEN gather, LOADED builds a
 * snapshot, COMMIT swaps it into the workers with its listeners.
 * Called by proxy_channel.c. Nothing a worker sees changes before COMMIT.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "proxy/core/access_log.h"
#include "proxy/core/tls_worker.h"
#include "proxy/front/front.h"
#include "proxy/handler/gateway.h"
#include "proxy/handler/redirect.h"
#include "proxy/handler/respond.h"
#include "proxy/handler/status.h"
#include "proxy/proxy_state.h"
#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "src/base/mem.h"

#define CONF_BYTES_MAX ((size_t)64 << 20)

static const struct handler_ops *const handlers[] = {
	[CONF_RESPOND] = &handler_respond,
	[CONF_REDIRECT] = &handler_redirect,
	[CONF_APP] = &handler_gateway,
	[CONF_UPSTREAM] = &handler_gateway,
	[CONF_STATUS] = &handler_status,
};

/* ---- sockets ---- */

static void
free_set(struct socket_set *set)
{
	for (size_t i = 0; i < set->n_fds; i++)
		fd_close(&set->fds[i]);
	list_remove(&set->node);
	mem_free(set->fds);
	mem_free(set);
}

static struct socket_set *
find_set(struct list *sets, uint32_t key)
{
	struct list *node;

	LIST_FOREACH(node, sets)
	{
		struct socket_set *set =
		    LIST_ENTRY(node, struct socket_set, node);

		if (set->key == key)
			return set;
	}
	return NULL;
}

void
proxy_config_close_sets(struct proxy *proxy, uint32_t serial)
{
	struct list *node, *after;

	LIST_FOREACH_SAFE(node, after, &proxy->sets)
	{
		struct socket_set *set =
		    LIST_ENTRY(node, struct socket_set, node);

		if (serial == UINT32_MAX || (int32_t)(set->serial - serial) < 0)
			free_set(set);
	}
}

/* ---- PREPARE, LISTEN ---- */

void
proxy_config_abort(struct proxy *proxy)
{
	struct pending *pending = &proxy->pending;
	struct list *node;

	if (pending->state == PENDING_NONE)
		return;
	pending->state = PENDING_NONE;
	snapshot_free(&pending->snapshot);
	conf_free(pending->conf);
	pending->conf = NULL;
	for (size_t i = 0; i < pending->n_logs; i++)
		fd_close(&pending->log_fds[i]);
	pending->n_logs = 0;
	while ((node = list_first(&pending->sets)) != NULL)
		free_set(LIST_ENTRY(node, struct socket_set, node));
	mem_free(pending->keys);
	pending->keys = NULL;
	tls_files_wipe(&pending->files);
	conf_errors_free(&pending->errors);
}

static void
read_conf(struct pending *pending, int fd)
{
	char *text;
	size_t len;

	if (fd_read_whole(fd, CONF_BYTES_MAX, &text, &len) == -1) {
		conf_errors_add_errno(&pending->errors, NULL, NULL,
		    "the configuration cannot be read");
		return;
	}
	pending->conf = conf_from_flat(text, len, &pending->errors);
	mem_free(text);
	if (pending->conf != NULL)
		pending->keys = mem_alloc_array(
		    pending->conf->n_listeners + 1, sizeof(uint32_t));
}

int
proxy_config_prepare(struct proxy *proxy, const struct channel_prepare *message)
{
	struct pending *pending = &proxy->pending;
	int conf_fd = message->conf_fd;
	bool is_free = pending->state == PENDING_NONE;

	if (is_free) {
		pending->state = PENDING_LOADING;
		pending->serial = message->serial;
		conf_errors_init(&pending->errors);
		pending->n_logs = message->n_logs;
		memcpy(pending->log_fds, message->log_fds,
		    message->n_logs * sizeof(int));
		read_conf(pending, conf_fd);
	}
	fd_close(&conf_fd);
	for (size_t i = 0; !is_free && i < message->n_logs; i++) {
		int fd = message->log_fds[i];

		fd_close(&fd);
	}
	return is_free ? 0 : -1;
}

static void
add_fds(struct socket_set *set, const struct channel_listen *message)
{
	set->fds =
	    mem_realloc(set->fds, set->n_fds + message->n_fds, sizeof(int));
	memcpy(
	    set->fds + set->n_fds, message->fds, message->n_fds * sizeof(int));
	set->n_fds += message->n_fds;
}

static void
keep_listen(struct proxy *proxy, const struct channel_listen *message)
{
	struct pending *pending = &proxy->pending;
	struct socket_set *set = find_set(&pending->sets, message->key);

	pending->keys[message->index] = message->key;
	if (message->n_fds == 0)
		return; /* polled already; LOADED looks whether that is so */
	if (set == NULL) {
		set = mem_alloc(sizeof(*set));
		set->key = message->key;
		set->serial = message->serial;
		set->is_shared = message->reuseport == 0;
		list_push_back(&pending->sets, &set->node);
	}
	add_fds(set, message);
}

int
proxy_config_listen(struct proxy *proxy, const struct channel_listen *message)
{
	struct pending *pending = &proxy->pending;
	bool is_due = pending->state == PENDING_LOADING &&
		      pending->serial == message->serial;

	if (is_due && pending->conf != NULL &&
	    message->index < pending->conf->n_listeners && message->key != 0) {
		keep_listen(proxy, message);
		return 0;
	}
	if (is_due && pending->errors.count == 0)
		conf_errors_add(&pending->errors, NULL, NULL,
		    "sockets came for listener %u, which there is not",
		    message->index);
	for (size_t i = 0; i < message->n_fds; i++) {
		int fd = message->fds[i];

		fd_close(&fd);
	}
	return is_due ? 0 : -1;
}

/* ---- SECRET ---- */

/* What every worker's tickets are made with from now on. */
struct new_tickets {
	struct mail mail;
	struct tls_tickets tickets;
};

static void
take_tickets(struct worker *worker, struct mail *mail)
{
	struct new_tickets *new = CONTAINER_OF(mail, struct new_tickets, mail);

	if (worker->tls != NULL)
		tls_worker_set_tickets(worker->tls, &new->tickets);
	explicit_bzero(&new->tickets, sizeof(new->tickets));
	mem_free(new);
}

void
proxy_config_tell_tickets(struct proxy *proxy)
{
	for (unsigned i = 0; i < proxy->n_workers && proxy->tickets.count > 0;
	     i++) {
		struct new_tickets *new = mem_alloc(sizeof(*new));

		new->mail.deliver = take_tickets;
		new->tickets = proxy->tickets;
		worker_post(proxy->workers[i], &new->mail);
	}
}

static int
keep_tickets(struct proxy *proxy, int fd)
{
	char *bytes;
	size_t len;
	int result;

	if (fd_read_whole(fd, sizeof(proxy->tickets), &bytes, &len) == -1) {
		log_errno("ticket keys cannot be read");
		fd_close(&fd);
		return 0;
	}
	fd_close(&fd);
	result = tls_tickets_parse(&proxy->tickets, (struct str){ bytes, len });
	explicit_bzero(bytes, len);
	mem_free(bytes);
	proxy_config_tell_tickets(proxy);
	return result;
}

int
proxy_config_secret(struct proxy *proxy, const struct channel_secret *message)
{
	struct pending *pending = &proxy->pending;
	int fd = message->fd;

	if (message->kind == CHANNEL_SECRET_TICKETS)
		return keep_tickets(proxy, fd);
	if (pending->state != PENDING_LOADING ||
	    pending->serial != message->serial) {
		fd_close(&fd);
		return -1;
	}
	if (tls_files_add(&pending->files, message->path, fd) == -1)
		conf_errors_add_errno(&pending->errors, NULL, NULL,
		    "%s did not reach the proxy", message->path);
	return 0;
}

/* ---- LOADED ---- */

/* May come from any worker's thread: the last to leave it. */
struct unused {
	struct mail mail;
	struct proxy *proxy;
	struct snapshot *snapshot;
};

static void
say_retired(struct proxy *proxy)
{
	if (proxy->n_old == 0 && proxy->n_commits == 0 &&
	    proxy->current != NULL && !proxy->is_ending)
		proxy_channel_say(
		    proxy, CHANNEL_RETIRED, proxy->current->serial, "");
}

static void
free_unused(struct proxy *proxy, struct snapshot *snapshot)
{
	if (snapshot == proxy->current)
		proxy->current = NULL;
	else
		proxy->n_old--;
	snapshot_free(&snapshot);
	say_retired(proxy);
}

static void
take_unused(struct worker *worker, struct mail *mail)
{
	struct unused *unused = CONTAINER_OF(mail, struct unused, mail);

	free_unused(unused->proxy, unused->snapshot);
	mem_free(unused);
}

static void
snapshot_unused(struct snapshot *snapshot, void *arg)
{
	struct proxy *proxy = arg;
	struct unused *unused;

	if (proxy->is_ending) {
		free_unused(proxy, snapshot);
		return;
	}
	unused = mem_alloc(sizeof(*unused));
	unused->mail.deliver = take_unused;
	unused->proxy = proxy;
	unused->snapshot = snapshot;
	worker_post(proxy->main, &unused->mail);
}

static int
check_sockets(struct proxy *proxy)
{
	struct pending *pending = &proxy->pending;

	for (size_t i = 0; i < pending->conf->n_listeners; i++) {
		const struct conf_listener *listener =
		    &pending->conf->listeners[i];
		uint32_t key = pending->keys[i];

		/* An optional one may have no socket: it is not polled. */
		if (key == 0 && listener->optional)
			continue;
		if (key == 0 || (find_set(&pending->sets, key) == NULL &&
				    find_set(&proxy->sets, key) == NULL))
			return conf_errors_add(&pending->errors,
			    &listener->where, "listen", "no socket came for %s",
			    listener->text);
	}
	return 0;
}

/* What the supervisor could not see: it does not look into certificates. */
static void
log_warnings(const struct strbuf *text, size_t from)
{
	struct str rest = { text->ptr + from, text->len - from }, line;

	while (from < text->len && str_split(&rest, '\n', &line))
		if (line.len > 0)
			log_warn("%.*s", (int)line.len, line.ptr);
}

static int
build(struct proxy *proxy)
{
	struct pending *pending = &proxy->pending;
	struct handler_env env;
	struct conf *conf = pending->conf;
	size_t n_logs = pending->n_logs, told;

	if (conf == NULL || pending->errors.count > 0 ||
	    check_sockets(proxy) == -1)
		return -1;
	if (proxy->n_workers == 0 &&
	    proxy_start(proxy, conf, &pending->errors) == -1)
		return -1;
	env.registry = proxy->registry;
	pending->conf = NULL;
	pending->n_logs = 0;
	told = pending->errors.warnings_text.len;
	pending->snapshot = snapshot_new(conf, pending->serial,
	    proxy->n_workers, pending->log_fds, n_logs, handlers, &env,
	    &pending->files, snapshot_unused, proxy, &pending->errors);
	tls_files_wipe(&pending->files);
	if (pending->snapshot == NULL)
		return -1;
	log_warnings(&pending->errors.warnings_text, told);
	for (size_t i = 0; i < conf->n_listeners; i++)
		pending->snapshot->listeners[i].key = pending->keys[i];
	return 0;
}

int
proxy_config_loaded(struct proxy *proxy, uint32_t serial)
{
	struct pending *pending = &proxy->pending;

	if (pending->state != PENDING_LOADING || pending->serial != serial)
		return -1;
	if (build(proxy) == 0) {
		pending->state = PENDING_PREPARED;
		proxy_channel_say(proxy, CHANNEL_PREPARED, serial, "");
		return 0;
	}
	proxy_channel_say(proxy, CHANNEL_REJECTED, serial,
	    pending->errors.text.ptr == NULL ? "refused"
					     : pending->errors.text.ptr);
	proxy_config_abort(proxy);
	return 0;
}

/* ---- COMMIT ---- */

/* What every worker takes over; the last one to have done so says so. */
struct commit {
	struct proxy *proxy;
	struct snapshot *snapshot;
	uint32_t serial;
	struct front_sockets *sockets;
	size_t n_sockets;
	_Atomic unsigned left;
	struct mail done;
	struct mail mails[]; /* per worker */
};

static void
commit_done(struct worker *worker, struct mail *mail)
{
	struct commit *commit = CONTAINER_OF(mail, struct commit, done);
	struct proxy *proxy = commit->proxy;

	proxy->n_commits--;
	proxy_config_close_sets(proxy, commit->serial);
	proxy_channel_say(proxy, CHANNEL_READY, commit->serial, "");
	say_retired(proxy);
	mem_free(commit->sockets);
	mem_free(commit);
}

static void
commit_worker(struct worker *worker, struct mail *mail)
{
	struct commit *commit =
	    CONTAINER_OF(mail - worker->index, struct commit, mails[0]);

	snapshot_install(worker, commit->snapshot);
	/* A configuration that crossed with a drain opens nothing again. */
	front_configure(worker->slots[WORKER_FRONT], commit->sockets,
	    worker->draining ? 0 : commit->n_sockets);
	if (atomic_fetch_sub(&commit->left, 1) == 1)
		worker_post(commit->proxy->main, &commit->done);
}

/* The sets that the configuration names are in use from now on. */
static void
take_sockets(struct proxy *proxy, struct commit *commit)
{
	struct pending *pending = &proxy->pending;
	const struct conf *conf = commit->snapshot->conf;
	struct list *node;

	while ((node = list_first(&pending->sets)) != NULL) {
		list_remove(node);
		list_push_back(&proxy->sets, node);
	}
	commit->sockets =
	    mem_alloc_array(conf->n_listeners + 1, sizeof(*commit->sockets));
	for (size_t i = 0; i < conf->n_listeners; i++) {
		const struct conf_listener *listener = &conf->listeners[i];
		struct socket_set *set =
		    find_set(&proxy->sets, pending->keys[i]);
		struct front_sockets *to;

		if (set == NULL)
			continue;
		set->serial = commit->serial;
		to = &commit->sockets[commit->n_sockets++];
		to->key = set->key;
		to->is_shared = set->is_shared;
		to->is_deferred = conf->defer_accept &&
				  listener->addr.u.sa.sa_family != AF_UNIX;
		to->is_tls = listener->tls;
		to->n_fds = set->n_fds;
		to->fds = set->fds;
	}
}

int
proxy_config_commit(struct proxy *proxy, uint32_t serial)
{
	struct pending *pending = &proxy->pending;
	struct commit *commit;

	if (pending->state != PENDING_PREPARED || pending->serial != serial)
		return -1;
	commit =
	    mem_alloc(sizeof(*commit) + proxy->n_workers * sizeof(struct mail));
	commit->proxy = proxy;
	commit->snapshot = pending->snapshot;
	commit->serial = serial;
	pending->snapshot = NULL;
	snapshot_commit(commit->snapshot);
	take_sockets(proxy, commit);
	if (proxy->current != NULL)
		proxy->n_old++;
	proxy->current = commit->snapshot;
	proxy->n_commits++;
	atomic_init(&commit->left, proxy->n_workers);
	commit->done.deliver = commit_done;
	for (unsigned i = 0; i < proxy->n_workers; i++) {
		commit->mails[i].deliver = commit_worker;
		worker_post(proxy->workers[i], &commit->mails[i]);
	}
	proxy_config_abort(proxy); /* what is left of `pending` */
	return 0;
}

/* ---- logs ---- */

struct reopen {
	struct mail mail;
	size_t n_fds;
	int fds[FRAME_FDS_MAX];
};

static void
reopen_worker(struct worker *worker, struct mail *mail)
{
	struct reopen *reopen = CONTAINER_OF(mail, struct reopen, mail);
	struct snapshot *snapshot = worker->snapshot;

	for (size_t i = 0; i < reopen->n_fds; i++) {
		if (snapshot != NULL && i < snapshot->n_logs &&
		    reopen->fds[i] != -1)
			access_log_reopen(
			    snapshot->logs[i], worker, reopen->fds[i]);
		else
			fd_close(&reopen->fds[i]);
	}
	mem_free(reopen);
}

void
proxy_config_reopen_logs(
    struct proxy *proxy, const struct channel_reopen *message)
{
	for (unsigned i = 0; i < proxy->n_workers; i++) {
		struct reopen *reopen = mem_alloc(sizeof(*reopen));

		reopen->mail.deliver = reopen_worker;
		reopen->n_fds = message->n_logs;
		for (size_t j = 0; j < message->n_logs; j++) {
			reopen->fds[j] =
			    fcntl(message->log_fds[j], F_DUPFD_CLOEXEC, 0);
			if (reopen->fds[j] == -1)
				log_errno("access log: not reopened");
		}
		worker_post(proxy->workers[i], &reopen->mail);
	}
	for (size_t j = 0; j < message->n_logs; j++) {
		int fd = message->log_fds[j];

		fd_close(&fd);
	}
}
