/*
 * Keeps the listening socket of a dead process, because of the connections that
 * it had not accepted: closing it would reset them, and then they look like
 * those on which a request was begun. While it is open they are seen to be
 * whole, and the proxies repeat their requests at another process.
 * Used by proxy_proc.c, which knows until when. Accepts nothing.
 */
#include "supervisor/kept_sockets.h"

#include <fcntl.h>

#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "src/base/mem.h"

/* It takes milliseconds, unless a client reads slowly what its dead process
 * said last. */
#define KEPT_MAX 64

struct kept_socket {
	struct list node;
	uint64_t instance;
	int fd;
};

void
kept_sockets_init(struct kept_sockets *kept)
{
	list_init(&kept->all);
	kept->n = 0;
}

static void
forget(struct kept_sockets *kept, struct kept_socket *one)
{
	list_remove(&one->node);
	kept->n--;
	fd_close(&one->fd);
	mem_free(one);
}

static void
forget_oldest(struct kept_sockets *kept)
{
	forget(
	    kept, LIST_ENTRY(list_first(&kept->all), struct kept_socket, node));
}

void
kept_sockets_end(struct kept_sockets *kept)
{
	while (kept->n > 0)
		forget_oldest(kept);
}

void
kept_sockets_add(struct kept_sockets *kept, uint64_t instance, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct kept_socket *one;

	if (copy == -1) {
		log_errno("instance=%llu: its socket is not kept",
		    (unsigned long long)instance);
		return;
	}
	one = mem_alloc(sizeof(*one));
	one->instance = instance;
	one->fd = copy;
	list_push_back(&kept->all, &one->node);
	if (++kept->n > KEPT_MAX)
		forget_oldest(kept);
}

void
kept_sockets_close(struct kept_sockets *kept, uint64_t instance)
{
	struct list *node, *after;

	LIST_FOREACH_SAFE(node, after, &kept->all)
	{
		struct kept_socket *one =
		    LIST_ENTRY(node, struct kept_socket, node);

		if (one->instance == instance)
			forget(kept, one);
	}
}
