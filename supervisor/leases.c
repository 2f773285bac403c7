/*
 * The slots of capped instances, shared between two proxies: what one has not
 * got the other may have. A proxy that drains gives back what it does not use
 * and asks for each request that waits; then the main one is asked for a slot.
 * Used by proxy_proc.c. Knows no processes and no channel.
 */
#include "supervisor/leases.h"

#include <string.h>

#include "src/base/mem.h"

/* Requests that wait at the side that is not the main one. */
struct want {
	struct list node;
	char *app;
	uint32_t n;
};

struct leases {
	const struct leases_ops *ops;
	void *arg;
	struct list all; /* struct lease */
	struct list wants;
	bool joined[LEASES_SIDES];
	unsigned main;
};

#define FOREACH_LEASE(leases, node, lease) \
	LIST_FOREACH(node, &(leases)->all) \
	if (((lease) = LIST_ENTRY(node, struct lease, node)), true)

struct leases *
leases_new(const struct leases_ops *ops, void *arg)
{
	struct leases *leases = mem_alloc(sizeof(*leases));

	leases->ops = ops;
	leases->arg = arg;
	list_init(&leases->all);
	list_init(&leases->wants);
	return leases;
}

static void
forget(struct lease *lease)
{
	list_remove(&lease->node);
	mem_free((void *)(uintptr_t)lease->announce.app);
	mem_free(lease);
}

static void
forget_wants(struct leases *leases)
{
	struct list *node;

	while ((node = list_first(&leases->wants)) != NULL) {
		struct want *want = LIST_ENTRY(node, struct want, node);

		list_remove(node);
		mem_free(want->app);
		mem_free(want);
	}
}

void
leases_free(struct leases **leases_ptr)
{
	struct leases *leases = *leases_ptr;
	struct list *node;

	if (leases == NULL)
		return;
	while ((node = list_first(&leases->all)) != NULL)
		forget(LIST_ENTRY(node, struct lease, node));
	forget_wants(leases);
	mem_free(leases);
	*leases_ptr = NULL;
}

static struct lease *
find(const struct leases *leases, uint64_t instance)
{
	struct list *node;
	struct lease *lease;

	FOREACH_LEASE(leases, node, lease)
	if (lease->announce.instance == instance)
		return lease;
	return NULL;
}

static struct want *
find_want(const struct leases *leases, const char *app)
{
	struct list *node;

	LIST_FOREACH(node, &leases->wants)
	{
		struct want *want = LIST_ENTRY(node, struct want, node);

		if (strcmp(want->app, app) == 0)
			return want;
	}
	return NULL;
}

/* ---- who gets what ---- */

static bool
is_capped(const struct lease *lease)
{
	return lease->announce.cap != CHANNEL_NO_CAP;
}

static uint32_t
free_slots(const struct lease *lease)
{
	uint64_t used = (uint64_t)lease->sides[0].slots +
			lease->sides[1].slots + lease->lost;

	return used < lease->announce.cap
		   ? (uint32_t)(lease->announce.cap - used)
		   : 0;
}

/* May `side` get slots of it? */
static bool
is_lent_to(
    const struct leases *leases, const struct lease *lease, unsigned side)
{
	return is_capped(lease) && !lease->withdrawn && leases->joined[side] &&
	       lease->sides[side].knows;
}

static void
lend(struct leases *leases, struct lease *lease, unsigned side, uint32_t n)
{
	lease->sides[side].slots += n;
	leases->ops->tell(
	    leases->arg, side, CHANNEL_LEND, lease->announce.instance, n);
}

static bool
is_of(const struct lease *lease, const char *app)
{
	return strcmp(lease->announce.app, app) == 0;
}

/* Serve those that wait at the side that drains with what is free. */
static void
serve_wants(struct leases *leases, const char *app, struct want *want)
{
	unsigned side = !leases->main;
	struct list *node;
	struct lease *lease;

	FOREACH_LEASE(leases, node, lease)
	while (want->n > 0 && is_of(lease, app) && free_slots(lease) > 0 &&
	       is_lent_to(leases, lease, side)) {
		want->n--;
		lend(leases, lease, side, 1);
	}
}

/* As many slots as are still waited for are asked back from the main side,
 * each from the instance of which it has most. */
static void
recall(struct leases *leases, const char *app, uint32_t wanted)
{
	struct list *node;
	struct lease *lease;
	uint32_t coming = 0;

	FOREACH_LEASE(leases, node, lease)
	if (is_of(lease, app))
		coming += lease->sides[leases->main].recalled;
	for (; coming < wanted; coming++) {
		struct lease *best = NULL;
		uint32_t most = 0;

		FOREACH_LEASE(leases, node, lease)
		{
			const struct lease_side *at =
			    &lease->sides[leases->main];

			if (is_of(lease, app) &&
			    is_lent_to(leases, lease, leases->main) &&
			    is_lent_to(leases, lease, !leases->main) &&
			    at->slots - at->recalled > most) {
				most = at->slots - at->recalled;
				best = lease;
			}
		}
		if (best == NULL)
			return;
		best->sides[leases->main].recalled++;
		leases->ops->tell(leases->arg, leases->main, CHANNEL_RECALL,
		    best->announce.instance, 1);
	}
}

static void
balance(struct leases *leases, const char *app)
{
	struct want *want = find_want(leases, app);
	struct list *node;
	struct lease *lease;

	if (want != NULL && want->n > 0) {
		serve_wants(leases, app, want);
		recall(leases, app, want->n);
	}
	FOREACH_LEASE(leases, node, lease)
	if (is_of(lease, app) && is_lent_to(leases, lease, leases->main) &&
	    free_slots(lease) > 0)
		lend(leases, lease, leases->main, free_slots(lease));
}

/* `app` may be a lease's own text, which goes with the last one. */
static void
balance_all(struct leases *leases)
{
	struct list *node;
	struct lease *lease;

	FOREACH_LEASE(leases, node, lease)
	balance(leases, lease->announce.app);
}

/* ---- proxies come and go ---- */

static void
announce_to(struct leases *leases, struct lease *lease, unsigned side)
{
	struct lease_side *at = &lease->sides[side];
	struct channel_announce announce = lease->announce;

	if (!at->knows && is_capped(lease)) {
		at->slots = side == leases->main ? free_slots(lease) : 0;
		announce.cap = at->slots;
	}
	at->knows = true;
	leases->ops->announce(leases->arg, side, &announce);
}

void
leases_join(struct leases *leases, unsigned side, bool main)
{
	struct list *node;
	struct lease *lease;

	leases->joined[side] = true;
	if (main)
		leases->main = side;
	FOREACH_LEASE(leases, node, lease)
	if (!lease->withdrawn)
		announce_to(leases, lease, side);
}

void
leases_set_main(struct leases *leases, unsigned side)
{
	leases->main = side;
	forget_wants(leases);
	balance_all(leases);
}

/* Somebody has streams with it, and nobody anything else? */
static void
tell_if_quiet(struct leases *leases, const struct lease *lease)
{
	bool is_quiet = false;

	for (unsigned side = 0; side < LEASES_SIDES; side++) {
		if (lease->sides[side].knows && !lease->sides[side].quiet)
			return;
		is_quiet |= lease->sides[side].knows;
	}
	if (lease->withdrawn && is_quiet)
		leases->ops->quiet(leases->arg, lease->announce.instance);
}

/* Nobody has it any more? */
static bool
end_if_drained(struct leases *leases, struct lease *lease)
{
	uint64_t instance = lease->announce.instance;

	if (!lease->withdrawn || lease->sides[0].knows ||
	    lease->sides[1].knows) {
		tell_if_quiet(leases, lease);
		return false;
	}
	forget(lease);
	leases->ops->drained(leases->arg, instance);
	return true;
}

void
leases_end(struct leases *leases, unsigned side)
{
	leases->joined[side] = false;
	if (side != leases->main)
		forget_wants(leases);
}

void
leases_leave(struct leases *leases, unsigned side)
{
	struct list *node, *after;

	leases_end(leases, side);
	LIST_FOREACH_SAFE(node, after, &leases->all)
	{
		struct lease *lease = LIST_ENTRY(node, struct lease, node);
		uint32_t slots = lease->sides[side].slots;

		memset(&lease->sides[side], 0, sizeof(lease->sides[side]));
		if (end_if_drained(leases, lease) || slots == 0)
			continue;
		lease->lost += slots;
		leases->ops->lost(leases->arg, lease);
	}
	balance_all(leases);
}

/* ---- instances come and go ---- */

void
leases_announce(struct leases *leases, const struct channel_announce *announce)
{
	struct lease *lease = find(leases, announce->instance);

	if (lease == NULL) {
		lease = mem_alloc(sizeof(*lease));
		lease->announce = *announce;
		lease->announce.app = mem_strdup(announce->app);
		list_push_back(&leases->all, &lease->node);
	}
	lease->announce.idle_timeout_ms = announce->idle_timeout_ms;
	for (unsigned side = 0; side < LEASES_SIDES; side++)
		if (leases->joined[side] && !lease->withdrawn)
			announce_to(leases, lease, side);
	balance(leases, lease->announce.app);
}

bool
leases_withdraw(struct leases *leases, uint64_t instance, bool dead)
{
	struct lease *lease = find(leases, instance);

	if (lease == NULL)
		return false;
	lease->withdrawn = true;
	for (unsigned side = 0; side < LEASES_SIDES; side++)
		if (lease->sides[side].knows)
			leases->ops->tell(leases->arg, side, CHANNEL_WITHDRAW,
			    instance,
			    dead ? CHANNEL_WITHDRAW_DEAD
				 : CHANNEL_WITHDRAW_DRAIN);
	if (!lease->sides[0].knows && !lease->sides[1].knows) {
		forget(lease);
		return false;
	}
	return true;
}

void
leases_hurry(struct leases *leases, uint64_t instance)
{
	const struct lease *lease = find(leases, instance);

	if (lease == NULL || !lease->withdrawn)
		return;
	for (unsigned side = 0; side < LEASES_SIDES; side++)
		if (lease->sides[side].knows && !lease->sides[side].quiet)
			leases->ops->tell(leases->arg, side, CHANNEL_WITHDRAW,
			    instance, CHANNEL_WITHDRAW_LATE);
}

/* ---- what proxies say ---- */

void
leases_drained(struct leases *leases, unsigned side, uint64_t instance)
{
	struct lease *lease = find(leases, instance);

	if (lease == NULL || !lease->withdrawn)
		return;
	memset(&lease->sides[side], 0, sizeof(lease->sides[side]));
	end_if_drained(leases, lease);
}

void
leases_quiet(struct leases *leases, unsigned side, uint64_t instance)
{
	struct lease *lease = find(leases, instance);

	if (lease == NULL || !lease->withdrawn)
		return;
	lease->sides[side].quiet = true;
	tell_if_quiet(leases, lease);
}

void
leases_released(
    struct leases *leases, unsigned side, uint64_t instance, uint32_t slots)
{
	struct lease *lease = find(leases, instance);
	struct lease_side *at;

	if (lease == NULL || !is_capped(lease))
		return;
	at = &lease->sides[side];
	/* More than it has: it is mistaken, and gets no more for it. */
	at->slots = slots < at->slots ? at->slots - slots : 0;
	at->recalled = slots < at->recalled ? at->recalled - slots : 0;
	balance(leases, lease->announce.app);
}

void
leases_left(struct leases *leases, unsigned side, uint64_t instance,
    uint64_t connections)
{
	struct lease *lease = find(leases, instance);

	if (lease != NULL && lease->sides[side].slots > connections)
		lease->sides[side].slots = (uint32_t)connections;
}

void
leases_want(struct leases *leases, unsigned side, const char *app)
{
	struct want *want;

	if (side == leases->main)
		return; /* it has all there is */
	want = find_want(leases, app);
	if (want == NULL) {
		want = mem_alloc(sizeof(*want));
		want->app = mem_strdup(app);
		list_push_back(&leases->wants, &want->node);
	}
	want->n++;
	balance(leases, app);
}

void
leases_found(struct leases *leases, uint64_t instance, uint32_t slots)
{
	struct lease *lease = find(leases, instance);

	if (lease == NULL)
		return;
	lease->lost -= slots < lease->lost ? slots : lease->lost;
	balance(leases, lease->announce.app);
}

/* ---- handed on to another process ---- */

const struct lease *
leases_next(const struct leases *leases, const struct lease *lease)
{
	const struct list *node =
	    lease == NULL ? leases->all.next : lease->node.next;

	return node == &leases->all ? NULL
				    : LIST_ENTRY(node, struct lease, node);
}

bool
leases_are_simple(const struct leases *leases, unsigned side)
{
	struct list *node;
	struct lease *lease;

	FOREACH_LEASE(leases, node, lease)
	if (!lease->sides[side].knows || lease->sides[!side].knows ||
	    lease->sides[side].recalled != 0 || lease->lost != 0 ||
	    (is_capped(lease) && !lease->withdrawn && free_slots(lease) != 0))
		return false;
	return !leases->joined[!side];
}

void
leases_adopt(struct leases *leases, unsigned side,
    const struct channel_announce *announce, bool withdrawn)
{
	struct lease *lease = mem_alloc(sizeof(*lease));

	lease->announce = *announce;
	lease->announce.app = mem_strdup(announce->app);
	lease->withdrawn = withdrawn;
	lease->sides[side].knows = true;
	if (is_capped(lease))
		lease->sides[side].slots = announce->cap;
	list_push_back(&leases->all, &lease->node);
}
