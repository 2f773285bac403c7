/*
 * One upgrade after the other: the new binary rehearses in a child, takes our
 * place, and starts a new proxy beside the old one. What fails before leaves
 * all as it was; a proxy that fails brings the old binary back.
 * Asked for by commands.c; handover.c and successor.c do it. Restarts no app.
 */
#include "supervisor/upgrade.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "supervisor/control_server.h"
#include "supervisor/handover.h"
#include "supervisor/notify.h"
#include "supervisor/proxy_proc.h"
#include "supervisor/saved.h"
#include "supervisor/successor.h"
#include "supervisor/supervisor.h"

#define LOOK_MS 50
/* Beyond the drain of an old proxy: for a restart or reload to end. */
#define PATIENCE_MS 30000
#define REHEARSAL_MS 10000
#define TEXT_MAX 768

enum stage {
	STAGE_WAIT,     /* for what else is under way, before the rehearsal */
	STAGE_REHEARSE, /* a child reads our state */
	STAGE_HANDOVER, /* it can: for the moment to do it */
	STAGE_PROXY,    /* we are it: the new proxy starts */
};

struct upgrade {
	struct supervisor *supervisor;
	struct control_client *client; /* NULL: nobody waits any more */
	enum stage stage;
	struct event *timer;
	int64_t deadline_ms;
	int new_fd;  /* the binary that was rehearsed, or -1 */
	int back_fd; /* the one before us, or -1 */
	struct rehearsal *rehearsal;
};

static void
on_client_gone(struct control_client *client, void *arg)
{
	((struct upgrade *)arg)->client = NULL;
}

static void
release(struct upgrade *upgrade)
{
	upgrade->supervisor->upgrade = NULL;
	rehearsal_forget(&upgrade->rehearsal);
	fd_close(&upgrade->new_fd);
	fd_close(&upgrade->back_fd);
	event_free(upgrade->timer);
	mem_free(upgrade);
}

static void
finish(struct upgrade *upgrade, bool ok, const char *text)
{
	struct control_client *client = upgrade->client;
	char state[64];

	if (ok)
		log_info("upgrade: %s", text);
	else
		log_error("upgrade: %s", text);
	release(upgrade);
	snprintf(state, sizeof(state), "READY=1\nMAINPID=%d", (int)getpid());
	notify_state(state);
	if (client == NULL)
		return;
	control_on_gone(client, NULL, NULL);
	control_printf(client, ok ? 'o' : 'e', "%s", text);
	control_end(client, ok ? CONTROL_OK : CONTROL_FAILED);
}

static void
fail(struct upgrade *upgrade, const char *what, const char *why)
{
	char text[TEXT_MAX];

	snprintf(
	    text, sizeof(text), "%s: %s; all goes on as it was", what, why);
	finish(upgrade, false, text);
}

static void
look_later(struct upgrade *upgrade)
{
	static const struct timeval soon = { 0, LOOK_MS * 1000 };

	event_add(upgrade->timer, &soon);
}

/* ---- handing over ---- */

static void
take(struct upgrade *upgrade, struct saved *saved)
{
	handover_take(upgrade->supervisor, saved);
	control_server_save(upgrade->supervisor->control, upgrade->client,
	    &saved->clients, &saved->n_clients);
}

/* Does not come back, unless it fails. */
static void
hand_over(struct upgrade *upgrade)
{
	struct supervisor *supervisor = upgrade->supervisor;
	struct saved saved;
	int error;

	control_server_cut(supervisor->control, upgrade->client);
	take(upgrade, &saved);
	log_info("upgrade: %s takes over", supervisor->exe_path);
	successor_exec(upgrade->new_fd, supervisor->exe_fd, &saved);
	error = errno;
	saved_free(&saved);
	fail(upgrade, "the new binary cannot be executed", strerror(error));
}

/* Back to the binary that was before us, because ours has no proxy that
 * works. */
static void
go_back(struct upgrade *upgrade, const char *why)
{
	struct supervisor *supervisor = upgrade->supervisor;
	struct saved saved;
	char text[TEXT_MAX];

	snprintf(text, sizeof(text),
	    "the new proxy did not start: %s; all goes on as it was", why);
	if (upgrade->back_fd != -1 && handover_obstacle(supervisor) == NULL) {
		log_error("upgrade: %s", text);
		control_server_cut(supervisor->control, upgrade->client);
		take(upgrade, &saved);
		mem_free(saved.why);
		saved.why = mem_strdup(text);
		successor_exec(upgrade->back_fd, -1, &saved);
		log_errno("upgrade: cannot go back to the old version");
		saved_free(&saved);
	}
	finish(upgrade, false, text);
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
		if (supervisor->stopping)
			fail(upgrade, "the new proxy did not start", why);
		else
			go_back(upgrade, why);
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

/* ---- the rehearsal ---- */

static void
on_rehearsed(const char *why, void *arg)
{
	struct upgrade *upgrade = arg;

	upgrade->rehearsal = NULL;
	event_del(upgrade->timer);
	if (why[0] != '\0') {
		fail(upgrade, "the new binary cannot take over", why);
		return;
	}
	upgrade->stage = STAGE_HANDOVER;
	look_later(upgrade);
}

static void
rehearse(struct upgrade *upgrade)
{
	static const struct timeval limit = { REHEARSAL_MS / 1000, 0 };
	struct supervisor *supervisor = upgrade->supervisor;
	char why[TEXT_MAX / 2];
	struct saved saved;

	upgrade->new_fd =
	    successor_open(supervisor->exe_path, why, sizeof(why));
	if (upgrade->new_fd == -1) {
		fail(upgrade, "there is no binary to take over", why);
		return;
	}
	take(upgrade, &saved);
	upgrade->rehearsal = rehearsal_start(supervisor->processes,
	    upgrade->new_fd, &saved, on_rehearsed, upgrade);
	saved_free(&saved);
	if (upgrade->rehearsal == NULL) {
		fail(upgrade, "no rehearsal", strerror(errno));
		return;
	}
	upgrade->stage = STAGE_REHEARSE;
	event_add(upgrade->timer, &limit);
}

/* ---- waiting for quiet ---- */

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct upgrade *upgrade = arg;
	const struct supervisor *supervisor = upgrade->supervisor;
	const char *obstacle;

	if (upgrade->stage == STAGE_REHEARSE) {
		rehearsal_end(upgrade->rehearsal, "it does not answer in time");
		return;
	}
	if (upgrade->stage == STAGE_PROXY) {
		proxy_proc_upgrade(supervisor->proxy, on_proxy, upgrade);
		return;
	}
	obstacle = handover_obstacle(supervisor);
	if (obstacle == NULL && upgrade->stage == STAGE_HANDOVER &&
	    control_server_is_busy(supervisor->control, upgrade->client))
		obstacle = "somebody waits for an answer of the daemon";
	if (obstacle != NULL && clock_now_ms() < upgrade->deadline_ms)
		look_later(upgrade);
	else if (obstacle != NULL)
		fail(upgrade, "not done", obstacle);
	else if (upgrade->stage == STAGE_WAIT)
		rehearse(upgrade);
	else
		hand_over(upgrade);
}

static struct upgrade *
new_upgrade(struct supervisor *supervisor, struct control_client *client,
    enum stage stage)
{
	const struct conf *conf = supervisor->hold->conf;
	struct upgrade *upgrade = mem_alloc(sizeof(*upgrade));

	upgrade->supervisor = supervisor;
	upgrade->client = client;
	upgrade->stage = stage;
	upgrade->new_fd = upgrade->back_fd = -1;
	upgrade->timer = evtimer_new(supervisor->base, on_timer, upgrade);
	upgrade->deadline_ms =
	    clock_now_ms() + conf->limits.drain_timeout_ms + PATIENCE_MS;
	supervisor->upgrade = upgrade;
	if (client != NULL)
		control_on_gone(client, on_client_gone, upgrade);
	event_active(upgrade->timer, EV_TIMEOUT, 0);
	return upgrade;
}

void
upgrade_start(struct supervisor *supervisor, struct control_client *client)
{
	if (supervisor->upgrade != NULL) {
		control_printf(
		    client, 'e', "an upgrade is under way, wait for it");
		control_end(client, CONTROL_FAILED);
		return;
	}
	log_info("upgrade to what is at %s", supervisor->exe_path);
	notify_reloading();
	new_upgrade(supervisor, client, STAGE_WAIT);
}

void
upgrade_resume(
    struct supervisor *supervisor, const struct saved *saved, int back_fd)
{
	struct control_client *client =
	    handover_give_clients(supervisor, saved);
	struct upgrade *upgrade = new_upgrade(supervisor, client, STAGE_PROXY);

	upgrade->back_fd = back_fd;
	if (back_fd != -1)
		return;
	event_del(upgrade->timer);
	if (saved->why[0] != '\0')
		finish(upgrade, false, saved->why);
	else
		fail(upgrade, "the new binary could not take over",
		    "its reason is in the daemon's log");
}

void
upgrade_cancel(struct supervisor *supervisor)
{
	struct upgrade *upgrade = supervisor->upgrade;

	/* A new proxy that is being started comes back with its end. */
	if (upgrade != NULL &&
	    (upgrade->stage != STAGE_PROXY ||
		event_pending(upgrade->timer, EV_TIMEOUT, NULL)))
		fail(upgrade, "not done", "the daemon stops");
}

void
upgrade_free(struct supervisor *supervisor)
{
	if (supervisor->upgrade != NULL)
		release(supervisor->upgrade);
}
