/*
 * One upgrade after the other: wait until nothing else is under way, then start
 * a new proxy beside the old one.
 * Between commands.c and proxy_proc.c. Restarts no app.
 */
#include "supervisor/upgrade.h"

#include <event2/event.h>
#include <stdio.h>
#include <sys/types.h>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/strbuf.h"
#include "supervisor/notify.h"
#include "supervisor/proxy_proc.h"
#include "supervisor/supervisor.h"

#define LOOK_MS 50
/* Beyond the drain of an old proxy: for a restart or reload to end. */
#define PATIENCE_MS 30000
#define TEXT_MAX 512

struct upgrade {
	struct supervisor *supervisor;
	upgrade_done_cb *on_done; /* NULL: nobody waits any more */
	void *arg;
	struct event *timer;
	int64_t deadline_ms;
};

static void
finish(struct upgrade *upgrade, bool ok, const char *text)
{
	upgrade_done_cb *on_done = upgrade->on_done;
	void *arg = upgrade->arg;

	if (ok)
		log_info("upgrade: %s", text);
	else
		log_error("upgrade: %s", text);
	upgrade->supervisor->upgrade = NULL;
	notify_state("READY=1");
	event_free(upgrade->timer);
	mem_free(upgrade);
	if (on_done != NULL)
		on_done(ok, text, arg);
}

/* ---- the proxy ---- */

static void
on_proxy(const char *why, void *arg)
{
	struct upgrade *upgrade = arg;
	const struct supervisor *supervisor = upgrade->supervisor;
	const struct proxy_proc *proxy = supervisor->proxy;
	char text[TEXT_MAX], drains[128] = "";
	pid_t old;

	if (why != NULL) {
		snprintf(text, sizeof(text),
		    "the new proxy did not start: %s; the old one (pid %d) "
		    "goes on serving",
		    why, (int)proxy_proc_pid(proxy));
		finish(upgrade, false, text);
		return;
	}
	if (proxy_proc_has_two(proxy, &old))
		snprintf(drains, sizeof(drains),
		    "; the old one (pid %d) ends its requests within %d s",
		    (int)old,
		    supervisor->hold->conf->limits.drain_timeout_ms / 1000);
	snprintf(text, sizeof(text),
	    "scalwsd %s serves with proxy generation %u (pid %d)%s",
	    SCALWS_VERSION, proxy_proc_generation(proxy),
	    (int)proxy_proc_pid(proxy), drains);
	finish(upgrade, true, text);
}

/* ---- waiting for quiet ---- */

/* What is under way that an upgrade must not cut through; NULL: nothing. */
static const char *
find_obstacle(const struct supervisor *supervisor)
{
	pid_t draining;

	if (supervisor->reload != NULL)
		return "a reload is under way";
	if (proxy_proc_has_two(supervisor->proxy, &draining))
		return "the proxy of the last upgrade still drains";
	if (proxy_proc_state(supervisor->proxy) != PROXY_READY)
		return "the proxy does not serve yet";
	return NULL;
}

static void
look_later(struct upgrade *upgrade)
{
	static const struct timeval soon = { 0, LOOK_MS * 1000 };

	event_add(upgrade->timer, &soon);
}

static void
on_look(evutil_socket_t fd, short what, void *arg)
{
	struct upgrade *upgrade = arg;
	const char *obstacle = find_obstacle(upgrade->supervisor);
	char text[TEXT_MAX];

	if (obstacle == NULL) {
		proxy_proc_upgrade(
		    upgrade->supervisor->proxy, on_proxy, upgrade);
	} else if (clock_now_ms() < upgrade->deadline_ms) {
		look_later(upgrade);
	} else {
		snprintf(text, sizeof(text), "not begun: %s", obstacle);
		finish(upgrade, false, text);
	}
}

void
upgrade_start(
    struct supervisor *supervisor, upgrade_done_cb *on_done, void *arg)
{
	const struct conf *conf = supervisor->hold->conf;
	struct upgrade *upgrade;

	if (supervisor->upgrade != NULL) {
		on_done(false, "an upgrade is under way, wait for it", arg);
		return;
	}
	upgrade = mem_alloc(sizeof(*upgrade));
	upgrade->supervisor = supervisor;
	upgrade->on_done = on_done;
	upgrade->arg = arg;
	upgrade->timer = evtimer_new(supervisor->base, on_look, upgrade);
	upgrade->deadline_ms =
	    clock_now_ms() + conf->limits.drain_timeout_ms + PATIENCE_MS;
	supervisor->upgrade = upgrade;
	log_info("upgrade asked for");
	notify_reloading();
	event_active(upgrade->timer, EV_TIMEOUT, 0);
}

void
upgrade_forget(struct supervisor *supervisor, const void *arg)
{
	struct upgrade *upgrade = supervisor->upgrade;

	if (upgrade != NULL && upgrade->arg == arg)
		upgrade->on_done = NULL;
}

void
upgrade_cancel(struct supervisor *supervisor)
{
	struct upgrade *upgrade = supervisor->upgrade;

	/* A new proxy that is being started comes back with its end. */
	if (upgrade != NULL && event_pending(upgrade->timer, EV_TIMEOUT, NULL))
		finish(upgrade, false, "the daemon stops");
}
