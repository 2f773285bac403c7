/*
 * The one or two proxies: which serves, which drains, restart and upgrade.
 * Between the rest of the supervisor and proxy_gen.c (one process) and leases.c
 * (who has which slots). Reads and writes no channel.
 */
#include "supervisor/proxy_proc.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "supervisor/backoff.h"
#include "supervisor/kept_sockets.h"
#include "supervisor/leases.h"
#include "supervisor/lost_slots.h"
#include "supervisor/proxy_counts.h"
#include "supervisor/proxy_gen.h"
#include "supervisor/saved.h"
#include "supervisor/supervisor.h"

#define MIN_UPTIME_MS 10000

struct proxy_proc {
	struct supervisor *supervisor;
	struct proxy_gen *gens[LEASES_SIDES];
	unsigned current; /* the side of the one that serves, if there is one */
	unsigned generation; /* of the last that was started */
	bool stop_wanted;    /* do not restart */
	bool is_outdated;    /* the other one has not the configuration in
			      * force */
	struct event *timer; /* of the restart */
	struct backoff backoff;
	int64_t down_ms; /* since when none serves */
	unsigned restarts;
	char last_exit[256];
	struct leases *leases;
	struct lost_slots *lost;
	struct proxy_counts *counts;
	struct kept_sockets kept;
	bool upgrading; /* the other one is to take over */
	proxy_upgraded_cb *on_upgraded;
	void *upgraded_arg;
};

static void start_current(struct proxy_proc *proxy);

static struct proxy_gen *
current(const struct proxy_proc *proxy)
{
	return proxy->gens[proxy->current];
}

static struct proxy_gen *
other(const struct proxy_proc *proxy)
{
	return proxy->gens[!proxy->current];
}

static unsigned
side_of(const struct proxy_proc *proxy, const struct proxy_gen *gen)
{
	return gen == proxy->gens[0] ? 0 : 1;
}

static void
tell_all(struct proxy_proc *proxy, const struct frame_out *out)
{
	for (unsigned side = 0; side < LEASES_SIDES; side++)
		if (proxy->gens[side] != NULL)
			proxy_gen_tell(proxy->gens[side], out);
}

/* ---- what leases.c wants to be done ---- */

static void
send_announce(void *arg, unsigned side, const struct channel_announce *announce)
{
	static struct frame_out out;
	struct proxy_proc *proxy = arg;

	channel_put_announce(&out, CHANNEL_ANNOUNCE, announce);
	if (proxy->gens[side] != NULL)
		proxy_gen_tell(proxy->gens[side], &out);
}

static void
send_change(void *arg, unsigned side, enum channel_type type, uint64_t instance,
    uint32_t count)
{
	static struct frame_out out;
	struct proxy_proc *proxy = arg;
	struct channel_instance message = { instance, count };

	channel_put_instance(&out, (uint16_t)type, &message);
	if (proxy->gens[side] != NULL)
		proxy_gen_tell(proxy->gens[side], &out);
}

static void
pass_drained(void *arg, uint64_t instance)
{
	struct proxy_proc *proxy = arg;

	kept_sockets_close(&proxy->kept, instance);
	supervisor_on_drained(proxy->supervisor, instance, false);
}

static void
pass_quiet(void *arg, uint64_t instance)
{
	struct proxy_proc *proxy = arg;

	supervisor_on_drained(proxy->supervisor, instance, true);
}

static void
watch_lost(void *arg, const struct lease *lease)
{
	struct proxy_proc *proxy = arg;

	lost_slots_watch(proxy->lost, lease->announce.instance,
	    &lease->announce.addr, lease->lost);
}

static const struct leases_ops leases_ops = {
	.announce = send_announce,
	.tell = send_change,
	.drained = pass_drained,
	.quiet = pass_quiet,
	.lost = watch_lost,
};

static void
on_found(uint64_t instance, uint32_t slots, void *arg)
{
	struct proxy_proc *proxy = arg;

	leases_found(proxy->leases, instance, slots);
}

/* ---- what a process says ---- */

static void
end_upgrade(struct proxy_proc *proxy, const char *why)
{
	proxy_upgraded_cb *on_upgraded = proxy->on_upgraded;

	proxy->upgrading = false;
	proxy->on_upgraded = NULL;
	if (on_upgraded != NULL)
		on_upgraded(why, proxy->upgraded_arg);
}

static void
on_hello(struct proxy_gen *gen, void *arg)
{
	struct proxy_proc *proxy = arg;
	unsigned side = side_of(proxy, gen);

	leases_join(proxy->leases, side, side == proxy->current);
	proxy_counts_join(proxy->counts, side, gen);
	supervisor_on_proxy_hello(proxy->supervisor);
}

/* The new one polls every listener: the old one may stop. */
static void
change_over(struct proxy_proc *proxy)
{
	int drain_ms = proxy->supervisor->hold->conf->limits.drain_timeout_ms;
	struct proxy_gen *old = current(proxy);

	proxy->current = !proxy->current;
	proxy->is_outdated = false;
	leases_set_main(proxy->leases, proxy->current);
	if (old != NULL)
		proxy_gen_drain(old, drain_ms, true);
}

static void
on_ready(struct proxy_gen *gen, void *arg)
{
	struct proxy_proc *proxy = arg;

	if (gen != current(proxy))
		change_over(proxy);
	supervisor_on_proxy_ready(proxy->supervisor);
	if (proxy->upgrading)
		end_upgrade(proxy, NULL);
}

static void
on_instance(struct proxy_gen *gen, enum channel_type type,
    const struct channel_instance *about, void *arg)
{
	struct proxy_proc *proxy = arg;
	unsigned side = side_of(proxy, gen);

	if (type == CHANNEL_DRAINED)
		leases_drained(proxy->leases, side, about->instance);
	else if (type == CHANNEL_QUIET)
		leases_quiet(proxy->leases, side, about->instance);
	else
		leases_released(
		    proxy->leases, side, about->instance, about->count);
}

static void
on_want(struct proxy_gen *gen, const char *app, void *arg)
{
	struct proxy_proc *proxy = arg;

	leases_want(proxy->leases, side_of(proxy, gen), app);
}

static void
on_stats(struct proxy_gen *gen, const struct channel_stats *stats, void *arg)
{
	struct proxy_proc *proxy = arg;
	unsigned side = side_of(proxy, gen);

	proxy_counts_hear(proxy->counts, side, stats);
	if (stats->query == 0 && stats->kind == CHANNEL_STATS_INSTANCE)
		leases_left(
		    proxy->leases, side, stats->instance, stats->connections);
}

/* The one that serves has ended unasked. */
static void
recover(struct proxy_proc *proxy, int64_t ready_at_ms, const char *why)
{
	int64_t lived_ms = clock_now_ms() - ready_at_ms;
	struct timeval tv;
	int delay_ms;

	proxy->restarts++;
	snprintf(proxy->last_exit, sizeof(proxy->last_exit), "%s", why);
	if (proxy->upgrading && other(proxy) != NULL) {
		log_error("the proxy ended (%s), its successor starts", why);
		proxy->current = !proxy->current;
		leases_set_main(proxy->leases, proxy->current);
		return;
	}
	delay_ms = backoff_after_death(
	    &proxy->backoff, ready_at_ms != 0, lived_ms, MIN_UPTIME_MS);
	/* One that gets ready serves somebody, and all wait meanwhile. */
	if (ready_at_ms != 0 && proxy->backoff.next_ms > BACKOFF_FIRST_MS)
		proxy->backoff.next_ms = BACKOFF_FIRST_MS;
	log_error("the proxy ended (%s), again in %d ms", why, delay_ms);
	if (delay_ms == 0) {
		start_current(proxy);
		return;
	}
	tv.tv_sec = delay_ms / 1000;
	tv.tv_usec = delay_ms % 1000 * 1000;
	event_add(proxy->timer, &tv);
}

static void
on_end_of_gen(struct proxy_gen *gen, void *arg)
{
	struct proxy_proc *proxy = arg;

	leases_end(proxy->leases, side_of(proxy, gen));
}

static void
on_exit_of_gen(struct proxy_gen *gen, const char *why, void *arg)
{
	struct proxy_proc *proxy = arg;
	unsigned side = side_of(proxy, gen);
	bool was_current = side == proxy->current;
	int64_t ready_at_ms = proxy_gen_info(gen)->ready_at_ms;

	leases_leave(proxy->leases, side);
	proxy_counts_leave(proxy->counts, side);
	proxy_gen_free(&proxy->gens[side]);
	if (was_current)
		proxy->down_ms = clock_now_ms();
	if (!was_current && proxy->upgrading)
		end_upgrade(proxy, why);
	if (was_current && !proxy->stop_wanted)
		recover(proxy, ready_at_ms, why);
	if (proxy_proc_is_gone(proxy))
		supervisor_on_proxy_gone(proxy->supervisor);
}

static const struct proxy_gen_events gen_events = {
	.on_hello = on_hello,
	.on_ready = on_ready,
	.on_instance = on_instance,
	.on_want = on_want,
	.on_stats = on_stats,
	.on_end = on_end_of_gen,
	.on_exit = on_exit_of_gen,
};

/* ---- starting and ending ---- */

static void
start_current(struct proxy_proc *proxy)
{
	struct timeval tv = { 0, 0 };
	unsigned side = proxy->gens[0] == NULL ? 0 : 1;

	proxy->gens[side] = proxy_gen_start(
	    proxy->supervisor, ++proxy->generation, &gen_events, proxy);
	if (proxy->gens[side] != NULL) {
		/* What the other one is does not change by that. */
		proxy->current = side;
		return;
	}
	log_errno("cannot start the proxy");
	tv.tv_sec = backoff_after_death(&proxy->backoff, false, 0, 0) / 1000;
	event_add(proxy->timer, &tv);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_proc *proxy = arg;

	if (!proxy->stop_wanted && current(proxy) == NULL)
		start_current(proxy);
}

struct proxy_proc *
proxy_proc_new(struct supervisor *supervisor)
{
	struct proxy_proc *proxy = mem_alloc(sizeof(*proxy));

	proxy->supervisor = supervisor;
	proxy->down_ms = clock_now_ms();
	proxy->timer = evtimer_new(supervisor->base, on_timer, proxy);
	proxy->leases = leases_new(&leases_ops, proxy);
	proxy->lost = lost_slots_new(supervisor->base, on_found, proxy);
	proxy->counts = proxy_counts_new(supervisor);
	kept_sockets_init(&proxy->kept);
	return proxy;
}

void
proxy_proc_free(struct proxy_proc **proxy_ptr)
{
	struct proxy_proc *proxy = *proxy_ptr;

	if (proxy == NULL)
		return;
	proxy_gen_free(&proxy->gens[0]);
	proxy_gen_free(&proxy->gens[1]);
	proxy_counts_free(&proxy->counts);
	lost_slots_free(&proxy->lost);
	kept_sockets_end(&proxy->kept);
	leases_free(&proxy->leases);
	event_free(proxy->timer);
	mem_free(proxy);
	*proxy_ptr = NULL;
}

void
proxy_proc_start(struct proxy_proc *proxy)
{
	if (current(proxy) == NULL)
		start_current(proxy);
}

void
proxy_proc_stop(struct proxy_proc *proxy, int deadline_ms)
{
	proxy->stop_wanted = true;
	event_del(proxy->timer);
	for (unsigned side = 0; side < LEASES_SIDES; side++) {
		struct proxy_gen *gen = proxy->gens[side];

		if (gen != NULL && deadline_ms > 0)
			proxy_gen_drain(gen, deadline_ms, false);
		else if (gen != NULL)
			proxy_gen_kill(gen, "told to stop at once");
	}
}

bool
proxy_proc_is_gone(const struct proxy_proc *proxy)
{
	return proxy->gens[0] == NULL && proxy->gens[1] == NULL;
}

void
proxy_proc_upgrade(
    struct proxy_proc *proxy, proxy_upgraded_cb *on_done, void *arg)
{
	unsigned side = !proxy->current;

	if (proxy->stop_wanted || other(proxy) != NULL ||
	    proxy_proc_state(proxy) != PROXY_READY) {
		on_done("there is no proxy that serves alone", arg);
		return;
	}
	proxy->gens[side] = proxy_gen_start(
	    proxy->supervisor, ++proxy->generation, &gen_events, proxy);
	if (proxy->gens[side] == NULL) {
		on_done(strerror(errno), arg);
		return;
	}
	proxy->upgrading = true;
	proxy->on_upgraded = on_done;
	proxy->upgraded_arg = arg;
}

bool
proxy_proc_has_two(const struct proxy_proc *proxy, pid_t *draining)
{
	const struct proxy_gen *gen = other(proxy);

	*draining =
	    gen == NULL || proxy->upgrading ? 0 : proxy_gen_info(gen)->pid;
	return gen != NULL;
}

/* ---- what it is ---- */

enum proxy_state
proxy_proc_state(const struct proxy_proc *proxy)
{
	const struct proxy_gen *gen = current(proxy);

	return gen == NULL ? PROXY_DOWN : proxy_gen_info(gen)->state;
}

pid_t
proxy_proc_pid(const struct proxy_proc *proxy)
{
	const struct proxy_gen *gen = current(proxy);

	return gen == NULL ? 0 : proxy_gen_info(gen)->pid;
}

int64_t
proxy_proc_since_ms(const struct proxy_proc *proxy)
{
	const struct proxy_gen *gen = current(proxy);

	return gen == NULL ? proxy->down_ms : proxy_gen_info(gen)->since_ms;
}

unsigned
proxy_proc_generation(const struct proxy_proc *proxy)
{
	const struct proxy_gen *gen = current(proxy);

	return gen == NULL ? proxy->generation : proxy_gen_info(gen)->number;
}

unsigned
proxy_proc_restarts(const struct proxy_proc *proxy)
{
	return proxy->restarts;
}

const char *
proxy_proc_last_exit(const struct proxy_proc *proxy)
{
	return proxy->last_exit;
}

/* ---- telling ---- */

void
proxy_proc_announce(
    struct proxy_proc *proxy, const struct channel_announce *announce)
{
	leases_announce(proxy->leases, announce);
}

bool
proxy_proc_withdraw(struct proxy_proc *proxy, uint64_t instance)
{
	return leases_withdraw(proxy->leases, instance, false);
}

void
proxy_proc_hurry(struct proxy_proc *proxy, uint64_t instance)
{
	leases_hurry(proxy->leases, instance);
}

void
proxy_proc_withdraw_dead(
    struct proxy_proc *proxy, uint64_t instance, int listen_fd)
{
	if (listen_fd != -1)
		kept_sockets_add(&proxy->kept, instance, listen_fd);
	if (!leases_withdraw(proxy->leases, instance, true))
		kept_sockets_close(&proxy->kept, instance);
}

void
proxy_proc_app_state(struct proxy_proc *proxy, const struct channel_app *app)
{
	static struct frame_out out;

	channel_put_app(&out, CHANNEL_APP_STATE, app);
	tell_all(proxy, &out);
}

void
proxy_proc_tickets(struct proxy_proc *proxy, int fd)
{
	static struct frame_out out;
	struct channel_secret tickets = {
		.kind = CHANNEL_SECRET_TICKETS, .path = "", .fd = fd
	};

	channel_put_secret(&out, CHANNEL_SECRET, &tickets);
	tell_all(proxy, &out);
}

void
proxy_proc_reopen_logs(
    struct proxy_proc *proxy, const struct channel_reopen *reopen)
{
	if (current(proxy) != NULL)
		proxy_gen_reopen_logs(current(proxy), reopen);
	/* Another configuration has other logs: those of the old one stay. */
	if (other(proxy) != NULL && !proxy->is_outdated)
		proxy_gen_reopen_logs(other(proxy), reopen);
}

/* ---- asking ---- */

uint64_t
proxy_proc_probe(struct proxy_proc *proxy, struct channel_probe *probe,
    proxy_probed_cb *on_probed, void *arg)
{
	struct proxy_gen *gen = current(proxy);

	return gen == NULL ? 0 : proxy_gen_probe(gen, probe, on_probed, arg);
}

void
proxy_proc_probe_cancel(struct proxy_proc *proxy, uint64_t probe)
{
	for (unsigned side = 0; side < LEASES_SIDES; side++)
		if (proxy->gens[side] != NULL)
			proxy_gen_probe_cancel(proxy->gens[side], probe);
}

void
proxy_proc_query(
    struct proxy_proc *proxy, proxy_counts_cb *on_counts, void *arg)
{
	proxy_counts_ask(proxy->counts, on_counts, arg);
}

void
proxy_proc_counts(const struct proxy_proc *proxy, struct counts *sum)
{
	proxy_counts_sum(proxy->counts, sum);
}

/* ---- a new configuration ---- */

void
proxy_proc_prepare(struct proxy_proc *proxy, const struct conf_hold *hold,
    proxy_prepared_cb *on_prepared, void *arg)
{
	if (proxy->upgrading)
		on_prepared("an upgrade is under way, try again", arg);
	else if (current(proxy) == NULL)
		on_prepared("the proxy is not ready, try again", arg);
	else
		proxy_gen_prepare(current(proxy), hold, on_prepared, arg);
}

void
proxy_proc_commit(
    struct proxy_proc *proxy, proxy_committed_cb *on_committed, void *arg)
{
	proxy->is_outdated = true;
	if (current(proxy) == NULL)
		on_committed(arg); /* the next one begins with it */
	else
		proxy_gen_commit(current(proxy), on_committed, arg);
}

/* ---- handed on to another process ---- */

bool
proxy_proc_is_simple(const struct proxy_proc *proxy)
{
	return proxy_proc_state(proxy) == PROXY_READY && other(proxy) == NULL &&
	       proxy_gen_is_flushed(current(proxy)) &&
	       leases_are_simple(proxy->leases, proxy->current);
}

void
proxy_proc_save(const struct proxy_proc *proxy, struct saved_proxy *to)
{
	proxy_gen_save(current(proxy), to);
	to->restarts = proxy->restarts;
	snprintf(to->last_exit, sizeof(to->last_exit), "%s", proxy->last_exit);
	to->backoff_ms = proxy->backoff.next_ms;
	proxy_counts_save(proxy->counts, proxy->current, to);
}

void
proxy_proc_adopt(struct proxy_proc *proxy, const struct saved_proxy *from)
{
	proxy->generation = from->generation;
	proxy->restarts = from->restarts;
	snprintf(
	    proxy->last_exit, sizeof(proxy->last_exit), "%s", from->last_exit);
	proxy->backoff.next_ms = from->backoff_ms;
	proxy->current = 0;
	leases_join(proxy->leases, 0, true);
	proxy->gens[0] =
	    proxy_gen_adopt(proxy->supervisor, from, &gen_events, proxy);
	proxy_counts_join(proxy->counts, 0, proxy->gens[0]);
	proxy_counts_adopt(proxy->counts, 0, from);
}

void
proxy_proc_adopt_instance(struct proxy_proc *proxy,
    const struct channel_announce *announce, bool withdrawn)
{
	leases_adopt(proxy->leases, proxy->current, announce, withdrawn);
}

bool
proxy_proc_drains(const struct proxy_proc *proxy, uint64_t instance)
{
	const struct lease *lease = NULL;

	while ((lease = leases_next(proxy->leases, lease)) != NULL)
		if (lease->announce.instance == instance)
			return lease->withdrawn;
	return false;
}
