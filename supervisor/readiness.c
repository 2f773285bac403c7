/*
 * Waits until a new process is ready.
 * Made by instance.c for each start; asks the proxy (proxy_proc.c), because
 * the supervisor itself reads nothing that apps or clients send over HTTP.
 */
#include "supervisor/readiness.h"

#include <stddef.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/str.h"
#include "supervisor/proxy_proc.h"
#include "supervisor/supervisor.h"

#define PAUSE_FIRST_MS 20
#define PAUSE_MAX_MS 250
#define ALIVE_MS 1000
/* A held listener takes the connection before the app does: the answer may
 * take as long as the app starts. Short where another address is tried too. */
#define PROBE_MS 10000
#define PROBE_ONE_OF_TWO_MS 500
#define NOTIFY_BYTES_MAX 4096

struct readiness {
	struct supervisor *supervisor;
	struct readiness_plan plan;
	readiness_cb *on_ready;         /* NULL: it was called */
	readiness_silent_cb *on_silent; /* NULL: it is not ready yet */
	void *arg;
	struct event *timer;
	uint64_t probe; /* running, or 0 */
	unsigned at;    /* of plan.addrs */
	int pause_ms;
	int notify_fd;
	struct event *notify;
	char notify_name[64];
	char last_error[200];
};

static void
set_timer(struct readiness *readiness, int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	event_add(readiness->timer, &tv);
}

static void
ready(struct readiness *readiness, unsigned at)
{
	readiness_cb *on_ready = readiness->on_ready;

	readiness->on_ready = NULL;
	event_del(readiness->timer);
	if (on_ready != NULL)
		on_ready(at, readiness->arg); /* may free us */
}

static bool
is_good(const struct readiness_plan *plan, const struct channel_probed *probed)
{
	if (plan->status == 0 || plan->protocol != CHANNEL_HTTP)
		return probed->ok;
	return probed->status == plan->status;
}

static void
on_probed(const struct channel_probed *probed, void *arg)
{
	struct readiness *readiness = arg;

	readiness->probe = 0;
	if (readiness->on_ready == NULL)
		return;
	if (is_good(&readiness->plan, probed)) {
		ready(readiness, readiness->at);
		return;
	}
	if (probed->ok)
		snprintf(readiness->last_error, sizeof(readiness->last_error),
		    "status %u, not %u", probed->status,
		    readiness->plan.status);
	else
		snprintf(readiness->last_error, sizeof(readiness->last_error),
		    "%s", probed->text);
	if (readiness->plan.n_addrs > 1)
		readiness->at = (readiness->at + 1) % readiness->plan.n_addrs;
	set_timer(readiness, readiness->pause_ms);
	readiness->pause_ms = readiness->pause_ms * 2 > PAUSE_MAX_MS
				  ? PAUSE_MAX_MS
				  : readiness->pause_ms * 2;
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct readiness *readiness = arg;
	const struct readiness_plan *plan = &readiness->plan;
	struct channel_probe probe;

	if (readiness->on_silent != NULL) {
		set_timer(readiness, plan->watchdog_ms);
		readiness->on_silent(readiness->arg); /* may free us */
		return;
	}
	if (!plan->probe) {
		ready(readiness, 0);
		return;
	}
	memset(&probe, 0, sizeof(probe));
	probe.protocol = plan->protocol;
	probe.timeout_ms = plan->n_addrs > 1 ? PROBE_ONE_OF_TWO_MS : PROBE_MS;
	probe.path = plan->path;
	probe.host = plan->host;
	probe.addr = plan->addrs[readiness->at];
	readiness->probe = proxy_proc_probe(
	    readiness->supervisor->proxy, &probe, on_probed, readiness);
	if (readiness->probe == 0) {
		snprintf(readiness->last_error, sizeof(readiness->last_error),
		    "the proxy is not there to probe it");
		set_timer(readiness, PAUSE_MAX_MS);
	}
}

/* ---- READY=1, WATCHDOG=1 ---- */

/* Is `what` a line of the message? */
static bool
says(const char *text, size_t len, struct str what)
{
	struct str rest = { text, len }, line;

	while (str_split(&rest, '\n', &line))
		if (str_eq(line, what))
			return true;
	return false;
}

static void
hear(struct readiness *readiness, const char *text, size_t len)
{
	const struct readiness_plan *plan = &readiness->plan;

	if (readiness->on_silent != NULL) {
		if (says(text, len, STR("WATCHDOG=1")))
			set_timer(readiness, plan->watchdog_ms);
		return;
	}
	/* It does not say where: with two addresses the probe finds out. */
	if (plan->notify && plan->n_addrs < 2 &&
	    says(text, len, STR("READY=1")))
		ready(readiness, plan->first);
}

static void
on_notify(evutil_socket_t fd, short what, void *arg)
{
	struct readiness *readiness = arg;
	char text[NOTIFY_BYTES_MAX];
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = { text, sizeof(text) };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *header = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	struct ucred from;

	/* Anybody may send to an abstract socket: only the app's own user
	 * counts. */
	if (header == NULL || header->cmsg_level != SOL_SOCKET ||
	    header->cmsg_type != SCM_CREDENTIALS)
		return;
	memcpy(&from, CMSG_DATA(header), sizeof(from));
	if (from.uid == readiness->plan.uid)
		hear(readiness, text, (size_t)n);
}

static int
hear_notify(struct readiness *readiness)
{
	readiness->notify = event_new(readiness->supervisor->base,
	    readiness->notify_fd, EV_READ | EV_PERSIST, on_notify, readiness);
	return readiness->notify == NULL ? -1
					 : event_add(readiness->notify, NULL);
}

static int
open_notify(struct readiness *readiness)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	unsigned long long random = 0;
	int on = 1, len;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -1;
	len = snprintf(readiness->notify_name, sizeof(readiness->notify_name),
	    "@scalws/notify/%d/%016llx", (int)getpid(), random);
	memcpy(addr.sun_path, readiness->notify_name, (size_t)len);
	addr.sun_path[0] = '\0';
	readiness->notify_fd =
	    socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (readiness->notify_fd == -1 ||
	    setsockopt(readiness->notify_fd, SOL_SOCKET, SO_PASSCRED, &on,
		sizeof(on)) == -1 ||
	    bind(readiness->notify_fd, (struct sockaddr *)&addr,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			    (size_t)len)) == -1)
		return -1;
	return hear_notify(readiness);
}

static struct readiness *
make(struct supervisor *supervisor, const struct readiness_plan *plan,
    readiness_cb *on_ready, void *arg)
{
	struct readiness *readiness = mem_alloc(sizeof(*readiness));

	readiness->supervisor = supervisor;
	readiness->plan = *plan;
	readiness->plan.path = mem_strdup(plan->path);
	readiness->plan.host = mem_strdup(plan->host);
	readiness->at = plan->first;
	readiness->on_ready = on_ready;
	readiness->arg = arg;
	readiness->pause_ms = PAUSE_FIRST_MS;
	readiness->notify_fd = -1;
	readiness->timer = evtimer_new(supervisor->base, on_timer, readiness);
	return readiness;
}

struct readiness *
readiness_new(struct supervisor *supervisor, const struct readiness_plan *plan,
    readiness_cb *on_ready, void *arg)
{
	struct readiness *readiness = make(supervisor, plan, on_ready, arg);

	/* Without it there is still the probe. */
	if ((plan->notify || plan->watchdog_ms > 0) &&
	    open_notify(readiness) == -1) {
		log_errno("no notify socket for an app");
		readiness->notify_name[0] = '\0';
	}
	return readiness;
}

const char *
readiness_notify_name(const struct readiness *readiness)
{
	return readiness->notify_name[0] == '\0' ? NULL
						 : readiness->notify_name;
}

void
readiness_begin(struct readiness *readiness)
{
	set_timer(readiness, readiness->plan.probe ? PAUSE_FIRST_MS : ALIVE_MS);
}

const char *
readiness_last_error(const struct readiness *readiness)
{
	return readiness->last_error;
}

void
readiness_watch(struct readiness *readiness, readiness_silent_cb *on_silent)
{
	readiness->on_ready = NULL;
	readiness->on_silent = on_silent;
	set_timer(readiness, readiness->plan.watchdog_ms);
}

int
readiness_notify_fd(const struct readiness *readiness, uint32_t *uid)
{
	*uid = (uint32_t)readiness->plan.uid;
	return readiness->notify_fd;
}

struct readiness *
readiness_adopt(struct supervisor *supervisor,
    const struct readiness_plan *plan, int fd, readiness_cb *on_ready,
    void *arg)
{
	struct readiness *readiness = make(supervisor, plan, on_ready, arg);

	readiness->notify_fd = fd;
	if (fd != -1 && hear_notify(readiness) == -1)
		log_error("a process cannot be heard any more");
	return readiness;
}

void
readiness_free(struct readiness **readiness_ptr)
{
	struct readiness *readiness = *readiness_ptr;

	if (readiness == NULL)
		return;
	if (readiness->probe != 0)
		proxy_proc_probe_cancel(
		    readiness->supervisor->proxy, readiness->probe);
	if (readiness->notify != NULL)
		event_free(readiness->notify);
	fd_close(&readiness->notify_fd);
	event_free(readiness->timer);
	mem_free((void *)(uintptr_t)readiness->plan.path);
	mem_free((void *)(uintptr_t)readiness->plan.host);
	mem_free(readiness);
	*readiness_ptr = NULL;
}
