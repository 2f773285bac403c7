/*
 * Finds out when the connections that a dead proxy had to an instance are gone
 * at the instance's end too: the kernel (sock_diag(7)) lists unix sockets with
 * the path they were accepted at, and whether their other end is closed.
 * Told by proxy_proc.c, which leases the slots anew. Ends nothing.
 */
#include "supervisor/lost_slots.h"

#include <event2/event.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/compiler.h"
#include "src/base/list.h"
#include "src/base/log.h"
#include "src/base/mem.h"

#define LOOK_MS 20
/* An instance on a port, or any where the kernel tells nothing, cannot be
 * looked at: its slots are lost this long. */
#define BLIND_MS 5000
#define WARN_MS 5000
/* TCP_ESTABLISHED and TCP_LISTEN, of unix sockets too. */
#define ESTABLISHED 1
#define LISTENS 10
/* RCV_SHUTDOWN | SEND_SHUTDOWN: the other end is closed. */
#define BOTH_WAYS 3

struct watched {
	struct list node;
	uint64_t instance;
	struct addr addr;
	uint32_t slots; /* still lost */
	int64_t since_ms;
	bool warned;
	size_t open; /* of the last look */
};

struct lost_slots {
	struct list all;
	struct event *timer;
	lost_slots_cb *on_found;
	void *arg;
};

static void on_look(evutil_socket_t fd, short what, void *arg);

struct lost_slots *
lost_slots_new(struct event_base *base, lost_slots_cb *on_found, void *arg)
{
	struct lost_slots *lost = mem_alloc(sizeof(*lost));

	list_init(&lost->all);
	lost->timer = evtimer_new(base, on_look, lost);
	lost->on_found = on_found;
	lost->arg = arg;
	return lost;
}

static void
forget(struct watched *watched)
{
	list_remove(&watched->node);
	mem_free(watched);
}

void
lost_slots_free(struct lost_slots **lost_ptr)
{
	struct lost_slots *lost = *lost_ptr;
	struct list *node;

	if (lost == NULL)
		return;
	while ((node = list_first(&lost->all)) != NULL)
		forget(LIST_ENTRY(node, struct watched, node));
	event_free(lost->timer);
	mem_free(lost);
	*lost_ptr = NULL;
}

static void
look_later(struct lost_slots *lost)
{
	static const struct timeval soon = { 0, LOOK_MS * 1000 };

	if (!event_pending(lost->timer, EV_TIMEOUT, NULL))
		event_add(lost->timer, &soon);
}

void
lost_slots_watch(struct lost_slots *lost, uint64_t instance,
    const struct addr *addr, uint32_t slots)
{
	struct watched *watched = mem_alloc(sizeof(*watched));

	watched->instance = instance;
	watched->addr = *addr;
	watched->slots = slots;
	watched->since_ms = clock_now_ms();
	list_push_back(&lost->all, &watched->node);
	look_later(lost);
}

/* ---- one look ---- */

/* All unix sockets, please. -1: the kernel cannot be asked. */
static int
ask(void)
{
	struct {
		struct nlmsghdr head;
		struct unix_diag_req wanted;
	} message = {
		.head = { .nlmsg_len = sizeof(message),
		    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.wanted = { .sdiag_family = AF_UNIX,
		    .udiag_states = 1 << ESTABLISHED | 1 << LISTENS,
		    .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_ICONS },
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd != -1 &&
	    send(fd, &message, sizeof(message), 0) != sizeof(message)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool
is_at(const struct watched *watched, const struct rtattr *name)
{
	const char *path = watched->addr.u.un.sun_path;
	size_t len = strlen(path);

	/* The kernel's text may or may not have its zero. */
	return watched->addr.u.sa.sa_family == AF_UNIX &&
	       RTA_PAYLOAD(name) >= len && RTA_PAYLOAD(name) <= len + 1 &&
	       memcmp(RTA_DATA(name), path, len) == 0;
}

/* Of those that nobody has accepted yet: the other ends' numbers, 0: closed. */
static size_t
count_unaccepted(const struct rtattr *icons)
{
	const char *at = RTA_DATA(icons);
	size_t n = 0;

	for (size_t left = RTA_PAYLOAD(icons); left >= sizeof(uint32_t);
	     left -= sizeof(uint32_t), at += sizeof(uint32_t)) {
		uint32_t inode;

		memcpy(&inode, at, sizeof(inode));
		n += inode == 0;
	}
	return n;
}

/* Counts what nobody speaks to any more. */
static void
count_one(struct lost_slots *lost, const struct nlmsghdr *head)
{
	const struct unix_diag_msg *message = NLMSG_DATA(head);
	const struct rtattr *at = (const struct rtattr *)(message + 1),
			    *name = NULL;
	size_t left = head->nlmsg_len - NLMSG_LENGTH(sizeof(*message)), n = 0;
	struct list *node;

	for (; RTA_OK(at, left); at = RTA_NEXT(at, left)) {
		if (at->rta_type == UNIX_DIAG_NAME)
			name = at;
		else if (at->rta_type == UNIX_DIAG_ICONS)
			n += count_unaccepted(at);
		else if (at->rta_type == UNIX_DIAG_SHUTDOWN &&
			 message->udiag_state == ESTABLISHED &&
			 RTA_PAYLOAD(at) > 0)
			n += *(const uint8_t *)RTA_DATA(at) == BOTH_WAYS;
	}
	if (name == NULL || n == 0)
		return;
	LIST_FOREACH(node, &lost->all)
	{
		struct watched *watched =
		    LIST_ENTRY(node, struct watched, node);

		watched->open += is_at(watched, name) ? n : 0;
	}
}

/* False: the kernel did not tell all. */
static bool
count_open(struct lost_slots *lost)
{
	static _Alignas(struct nlmsghdr) char answer[32768];
	struct list *node;
	int fd = ask();
	bool is_done = false;
	ssize_t n = 0;

	LIST_FOREACH(node, &lost->all)
	LIST_ENTRY(node, struct watched, node)->open = 0;
	while (fd != -1 && !is_done &&
	       (n = recv(fd, answer, sizeof(answer), 0)) > 0) {
		const struct nlmsghdr *head = (const void *)answer;
		size_t left = (size_t)n;

		for (; NLMSG_OK(head, left) && n > 0;
		     head = NLMSG_NEXT(head, left)) {
			if (head->nlmsg_type == NLMSG_ERROR)
				n = 0;
			else if (head->nlmsg_type == NLMSG_DONE)
				is_done = true;
			else if (head->nlmsg_type == SOCK_DIAG_BY_FAMILY)
				count_one(lost, head);
		}
		if (n == 0)
			break;
	}
	if (fd != -1)
		close(fd);
	return is_done;
}

static void
warn_once(struct watched *watched, int64_t now_ms)
{
	if (watched->warned || now_ms - watched->since_ms < WARN_MS)
		return;
	watched->warned = true;
	log_warn("instance=%llu still works on %u requests of a proxy that has "
		 "ended",
	    (unsigned long long)watched->instance, watched->slots);
}

static void
look_at(struct lost_slots *lost, struct watched *watched, bool is_told)
{
	int64_t now_ms = clock_now_ms();
	size_t open = watched->open;
	uint32_t found;

	if (!is_told || watched->addr.u.sa.sa_family != AF_UNIX)
		open =
		    now_ms - watched->since_ms < BLIND_MS ? watched->slots : 0;
	if (open > 0)
		warn_once(watched, now_ms);
	if (open >= watched->slots)
		return;
	found = watched->slots - (uint32_t)open;
	watched->slots = (uint32_t)open;
	lost->on_found(watched->instance, found, lost->arg);
}

static void
on_look(evutil_socket_t fd, short what, void *arg)
{
	struct lost_slots *lost = arg;
	bool is_told = count_open(lost);
	struct list *node, *after;

	LIST_FOREACH_SAFE(node, after, &lost->all)
	{
		struct watched *watched =
		    LIST_ENTRY(node, struct watched, node);

		look_at(lost, watched, is_told);
		if (watched->slots == 0)
			forget(watched);
	}
	if (!list_is_empty(&lost->all))
		look_later(lost);
}
