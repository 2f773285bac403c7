/*
 * Binds the listeners' addresses, one socket per worker.
 * Used by supervisor.c at the start and by reload.c; proxy_proc.c sends them.
 * Accepts nothing.
 */
#include "supervisor/listen_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fdutil.h"
#include "src/base/list.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/str.h"
#include "supervisor/saved.h"

#define RETRY_MS 50
#define DEFER_ACCEPT_S 1
/* sd_listen_fds(3) */
#define GIVEN_FIRST 3
#define GIVEN_MAX 256

struct bound {
	struct list node;
	struct addr addr;
	bool v6only;
	uint32_t key;
	bool is_new;    /* opened by the last prepare */
	bool is_wanted; /* named by the last prepared configuration */
	bool is_given;  /* by the service manager: its path is not ours */
	size_t n;
	int *fds;
};

struct listen_set {
	struct list bounds;
	uint32_t last_key;
};

static int
set_option(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value));
}

static bool
is_listening(int fd)
{
	int type = 0, on = 0;
	socklen_t len = sizeof(type);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == -1 ||
	    type != SOCK_STREAM)
		return false;
	len = sizeof(on);
	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) == 0 &&
	       on == 1;
}

static void
take_one(struct listen_set *set, int fd)
{
	struct bound *bound = mem_alloc(sizeof(*bound));
	char text[ADDR_TEXT_MAX];
	int only = 0;
	socklen_t len = sizeof(only);

	bound->addr.len = sizeof(bound->addr.u);
	if (!is_listening(fd) || fd_set_cloexec(fd, true) == -1 ||
	    fd_set_nonblock(fd) == -1 ||
	    getsockname(fd, &bound->addr.u.sa, &bound->addr.len) == -1) {
		log_warn("descriptor %d from the service manager is no "
			 "listening stream socket",
		    fd);
		mem_free(bound);
		return;
	}
	if (bound->addr.u.sa.sa_family == AF_INET6 &&
	    getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &len) == 0)
		bound->v6only = only != 0;
	if (bound->addr.u.sa.sa_family != AF_UNIX &&
	    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1) == -1)
		log_errno("descriptor %d: TCP_NODELAY", fd);
	bound->is_given = true;
	bound->key = ++set->last_key;
	bound->fds = mem_alloc_array(1, sizeof(*bound->fds));
	bound->fds[bound->n++] = fd;
	list_push_back(&set->bounds, &bound->node);
	addr_format(&bound->addr, text);
	log_info("%s: taken from the service manager", text);
}

static void
close_bound(struct bound *bound)
{
	for (size_t i = 0; i < bound->n; i++)
		fd_close(&bound->fds[i]);
	if (bound->n > 0 && !bound->is_given &&
	    bound->addr.u.sa.sa_family == AF_UNIX)
		unlink(bound->addr.u.un.sun_path);
	list_remove(&bound->node);
	mem_free(bound->fds);
	mem_free(bound);
}

/* Sockets that the service manager made (LISTEN_FDS): one shared socket an
 * address. They are named by no configuration yet. */
static void
take_given(struct listen_set *set)
{
	const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
	uint64_t ours = 0, count = 0;

	if (pid == NULL || n == NULL ||
	    str_to_u64(str_of(pid), INT32_MAX, &ours) == -1 ||
	    (pid_t)ours != getpid() ||
	    str_to_u64(str_of(n), GIVEN_MAX, &count) == -1)
		count = 0;
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	for (int fd = GIVEN_FIRST; fd < GIVEN_FIRST + (int)count; fd++)
		take_one(set, fd);
}

struct listen_set *
listen_set_new(void)
{
	struct listen_set *set = mem_alloc(sizeof(*set));

	list_init(&set->bounds);
	take_given(set);
	return set;
}

void
listen_set_free(struct listen_set **set_ptr)
{
	struct listen_set *set = *set_ptr;
	struct list *node, *after;

	if (set == NULL)
		return;
	LIST_FOREACH_SAFE(node, after, &set->bounds)
	close_bound(LIST_ENTRY(node, struct bound, node));
	mem_free(set);
	*set_ptr = NULL;
}

static struct bound *
find(const struct listen_set *set, const struct conf_listener *listener)
{
	struct list *node;

	LIST_FOREACH(node, &set->bounds)
	{
		struct bound *bound = LIST_ENTRY(node, struct bound, node);

		if (addr_eq(&bound->addr, &listener->addr) &&
		    bound->v6only == listener->v6only)
			return bound;
	}
	return NULL;
}

/* A socket path that nobody listens on is left from a killed daemon (we hold
 * the lock); one that answers belongs to somebody. */
static int
clear_path(const struct conf_listener *listener)
{
	const char *path = listener->addr.u.un.sun_path;
	struct stat st;
	int fd, result;

	if (lstat(path, &st) == -1)
		return 0;
	if (!S_ISSOCK(st.st_mode)) {
		errno = EEXIST;
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return -1;
	result = connect(fd, &listener->addr.u.sa, listener->addr.len);
	if (result == -1 && errno == ECONNREFUSED)
		result = unlink(path);
	else {
		errno = EADDRINUSE;
		result = -1;
	}
	fd_close(&fd);
	return result;
}

/* Bound, not yet listening. `first`: without SO_REUSEPORT, so that another
 * daemon on the address is noticed; the option is set afterwards. */
static int
bind_one(
    const struct conf_listener *listener, const struct conf *conf, bool first)
{
	const struct addr *addr = &listener->addr;
	int family = addr->u.sa.sa_family;
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int error;

	if (fd == -1)
		return -1;
	if (family == AF_UNIX) {
		if (clear_path(listener) == -1 ||
		    bind(fd, &addr->u.sa, addr->len) == -1 ||
		    chmod(addr->u.un.sun_path, 0666) == -1)
			goto fail;
		return fd;
	}
	if (set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1) == -1 ||
	    (!first && set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1) == -1) ||
	    (family == AF_INET6 && set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY,
				       listener->v6only) == -1) ||
	    bind(fd, &addr->u.sa, addr->len) == -1 ||
	    set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1) == -1 ||
	    /* Accepted sockets inherit it. */
	    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1) == -1 ||
	    (conf->defer_accept && set_option(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT,
				       DEFER_ACCEPT_S) == -1))
		goto fail;
	return fd;
fail:
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* All sockets of a listener. NULL with errno. */
static struct bound *
open_bound(const struct conf_listener *listener, const struct conf *conf)
{
	bool is_unix = listener->addr.u.sa.sa_family == AF_UNIX;
	struct bound *bound = mem_alloc(sizeof(*bound));
	size_t n = is_unix ? 1 : conf->workers;
	int error;

	list_init(&bound->node);
	bound->addr = listener->addr;
	bound->v6only = listener->v6only;
	bound->is_new = true;
	bound->fds = mem_alloc_array(n, sizeof(*bound->fds));
	while (bound->n < n) {
		int fd = bind_one(listener, conf, bound->n == 0);

		if (fd == -1)
			goto fail;
		bound->fds[bound->n++] = fd;
	}
	for (size_t i = 0; i < n; i++)
		if (listen(bound->fds[i], (int)conf->backlog) == -1)
			goto fail;
	return bound;
fail:
	error = errno;
	close_bound(bound);
	errno = error;
	return NULL;
}

static bool
stop_is_pending(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 &&
	       (sigismember(&pending, SIGTERM) == 1 ||
		   sigismember(&pending, SIGINT) == 1);
}

static struct bound *
open_patiently(const struct conf_listener *listener, const struct conf *conf,
    int in_use_ms, int absent_ms)
{
	struct timespec pause = { 0, RETRY_MS * 1000000L };
	int64_t start_ms = clock_now_ms();
	bool told = false;
	struct bound *bound;

	while ((bound = open_bound(listener, conf)) == NULL) {
		int error = errno;
		int64_t waited_ms = clock_now_ms() - start_ms;
		bool absent = error == EADDRNOTAVAIL && !listener->optional;

		if ((!(error == EADDRINUSE && waited_ms < in_use_ms) &&
			!(absent && waited_ms < absent_ms)) ||
		    stop_is_pending()) {
			errno = error;
			return NULL;
		}
		if (absent && !told)
			log_warn("%s: this machine does not have the address "
				 "yet, waiting for it",
			    listener->text);
		told = absent;
		nanosleep(&pause, NULL);
	}
	return bound;
}

int
listen_set_prepare(struct listen_set *set, const struct conf *conf,
    int in_use_ms, int absent_ms, struct conf_errors *errors)
{
	struct list *node;
	int result = 0;

	LIST_FOREACH(node, &set->bounds)
	LIST_ENTRY(node, struct bound, node)->is_wanted = false;
	for (size_t i = 0; i < conf->n_listeners; i++) {
		const struct conf_listener *listener = &conf->listeners[i];
		struct bound *bound = find(set, listener);

		if (bound == NULL) {
			bound = open_patiently(
			    listener, conf, in_use_ms, absent_ms);
			if (bound != NULL) {
				bound->key = ++set->last_key;
				list_push_back(&set->bounds, &bound->node);
			}
		}
		if (bound != NULL) {
			bound->is_wanted = true;
			continue;
		}
		if (listener->optional &&
		    (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) {
			log_warn("%s: no IPv6 on this machine, left out",
			    listener->text);
			continue;
		}
		result = conf_errors_add_errno(errors, &listener->where, NULL,
		    "cannot listen on %s", listener->text);
	}
	if (result == -1)
		listen_set_abort(set);
	return result;
}

void
listen_set_commit(struct listen_set *set)
{
	struct list *node, *after;

	LIST_FOREACH_SAFE(node, after, &set->bounds)
	{
		struct bound *bound = LIST_ENTRY(node, struct bound, node);

		if (!bound->is_wanted)
			close_bound(bound);
		else
			bound->is_new = false;
	}
}

void
listen_set_abort(struct listen_set *set)
{
	struct list *node, *after;

	LIST_FOREACH_SAFE(node, after, &set->bounds)
	{
		struct bound *bound = LIST_ENTRY(node, struct bound, node);

		if (bound->is_new)
			close_bound(bound);
		else
			bound->is_wanted = true;
	}
}

void
listen_set_view(const struct listen_set *set,
    const struct conf_listener *listener, struct listen_view *view)
{
	const struct bound *bound = find(set, listener);

	memset(view, 0, sizeof(*view));
	if (bound == NULL)
		return;
	view->fds = bound->fds;
	view->n = bound->n;
	view->key = bound->key;
	view->is_new = bound->is_new;
}

/* ---- handed on to another process ---- */

void
listen_set_save(const struct listen_set *set, struct saved_listener **list,
    uint32_t *n, uint32_t *last_key)
{
	struct list *node;

	*n = 0;
	*last_key = set->last_key;
	LIST_FOREACH(node, &set->bounds)
	++*n;
	*list = mem_alloc_array(*n + 1, sizeof(**list));
	*n = 0;
	LIST_FOREACH(node, &set->bounds)
	{
		const struct bound *bound =
		    LIST_ENTRY(node, struct bound, node);
		struct saved_listener *to = &(*list)[(*n)++];

		to->addr = bound->addr;
		to->v6only = bound->v6only;
		to->key = bound->key;
		to->is_given = bound->is_given;
		to->n = (uint32_t)bound->n;
		to->fds = mem_alloc_array(bound->n + 1, sizeof(int));
		memcpy(to->fds, bound->fds, bound->n * sizeof(int));
	}
}

void
listen_set_adopt(struct listen_set *set, const struct saved_listener *list,
    uint32_t n, uint32_t last_key)
{
	set->last_key = last_key;
	for (uint32_t i = 0; i < n; i++) {
		struct bound *bound = mem_alloc(sizeof(*bound));

		bound->addr = list[i].addr;
		bound->v6only = list[i].v6only;
		bound->key = list[i].key;
		bound->is_given = list[i].is_given;
		bound->is_wanted = true;
		bound->n = list[i].n;
		bound->fds = mem_alloc_array(bound->n + 1, sizeof(int));
		memcpy(bound->fds, list[i].fds, bound->n * sizeof(int));
		list_push_back(&set->bounds, &bound->node);
	}
}
