/*
 * Finds out when the connections that a dead proxy had to an instance are gone
 * at the instance's end too: the kernel lists unix sockets with the path they
 * were accepted at. Told by proxy_proc.c, which leases the slots anew.
 * Ends nothing.
 */
#include "supervisor/lost_slots.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/list.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/str.h"

#define LOOK_MS 20
/* An instance on a port cannot be looked at: its slots are lost this long. */
#define BLIND_MS 5000
#define WARN_MS 5000
#define LISTENS 0x10000 /* __SO_ACCEPTCON in /proc/net/unix */

struct watched {
	struct list node;
	uint64_t instance;
	struct addr addr;
	uint32_t slots; /* still lost */
	int64_t since_ms;
	bool warned;
	bool known;       /* `inodes` are those that count */
	uint64_t *inodes; /* of the instance's ends, open when it began */
	size_t n_inodes;
};

struct lost_slots {
	struct list all;
	struct event *timer;
	lost_slots_cb *on_found;
	void *arg;
};

/* One accepted unix socket. */
struct seen {
	uint64_t inode; /* 0: nobody has accepted it yet */
	const char *path;
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
	mem_free(watched->inodes);
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

/* Num RefCount Protocol Flags Type St Inode Path */
static bool
read_line(char *line, struct seen *seen)
{
	unsigned long flags;
	unsigned long long inode;
	int at = 0;

	if (sscanf(line, "%*s %*s %*s %lx %*s %*s %llu %n", &flags, &inode,
		&at) != 2 ||
	    at == 0 || line[at] != '/' || (flags & LISTENS) != 0)
		return false;
	line[strcspn(line, "\n")] = '\0';
	seen->inode = inode;
	seen->path = line + at;
	return true;
}

/* ---- one look ---- */

static void
add_inode(struct watched *watched, uint64_t inode)
{
	watched->inodes = mem_realloc(
	    watched->inodes, watched->n_inodes + 1, sizeof(*watched->inodes));
	watched->inodes[watched->n_inodes++] = inode;
}

static bool
has_inode(const struct watched *watched, uint64_t inode)
{
	for (size_t i = 0; i < watched->n_inodes; i++)
		if (watched->inodes[i] == inode)
			return true;
	return false;
}

/* How many of `watched` are still open. One that nobody has accepted has no
 * number yet: until it has, nothing is decided. */
static size_t
count_open(FILE *file, struct watched *watched)
{
	char line[512];
	struct seen seen;
	size_t open = 0, waiting = 0;

	if (!watched->known)
		watched->n_inodes = 0;
	rewind(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		if (!read_line(line, &seen) ||
		    strcmp(seen.path, watched->addr.u.un.sun_path) != 0)
			continue;
		if (seen.inode == 0)
			waiting++;
		else if (!watched->known)
			add_inode(watched, seen.inode);
		else
			open += has_inode(watched, seen.inode);
	}
	if (watched->known)
		return open;
	if (waiting > 0)
		return SIZE_MAX;
	watched->known = true;
	return watched->n_inodes;
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
look_at(struct lost_slots *lost, struct watched *watched, FILE *file)
{
	int64_t now_ms = clock_now_ms();
	size_t open = watched->slots;
	uint32_t found;

	if (file == NULL || watched->addr.u.sa.sa_family != AF_UNIX)
		open = now_ms - watched->since_ms < BLIND_MS ? open : 0;
	else
		open = count_open(file, watched);
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
	FILE *file = fopen("/proc/net/unix", "re");
	struct list *node, *after;

	LIST_FOREACH_SAFE(node, after, &lost->all)
	{
		struct watched *watched =
		    LIST_ENTRY(node, struct watched, node);

		look_at(lost, watched, file);
		if (watched->slots == 0)
			forget(watched);
	}
	if (file != NULL)
		fclose(file);
	if (!list_is_empty(&lost->all))
		look_later(lost);
}
