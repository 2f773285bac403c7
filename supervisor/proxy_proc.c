/*
 * The proxy process: fork+exec, handshake, configuration, restart.
 * Driven by supervisor.c and reload.c; instances speak to it through here.
 * Sends what proxy_load.c makes of a configuration.
 */
#include "supervisor/proxy_proc.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "supervisor/access_logs.h"
#include "supervisor/backoff.h"
#include "supervisor/process.h"
#include "supervisor/proxy_load.h"
#include "supervisor/proxy_questions.h"
#include "supervisor/supervisor.h"

#define QUEUE_MAX (8 * 1024 * 1024)
#define HANDSHAKE_MS 10000 /* start to READY, and PREPARE to PREPARED */
#define QUERY_MS 1000
#define PROBE_SLACK_MS 1000
#define MIN_UPTIME_MS 10000

struct proxy_proc {
	struct supervisor *supervisor;
	enum proxy_state state;
	int64_t since_ms;
	pid_t pid;
	unsigned generation; /* also: how often it was started */
	struct frame_link *link;
	struct event *readable, *writable;
	struct event *timer; /* of the restart, or of the handshake */
	struct backoff backoff;
	bool hears;
	bool stop_wanted;               /* do not restart */
	uint32_t serial;                /* of the last PREPARE */
	bool preparing;                 /* its answer is awaited */
	proxy_prepared_cb *on_prepared; /* NULL: the first of this process */
	void *prepared_arg;
	proxy_committed_cb *on_committed; /* NULL: nobody waits */
	void *committed_arg;
	struct proxy_questions *questions;
	char last_exit[PROCESS_EXIT_TEXT_MAX]; /* "": none has ended */
};

static void start_process(struct proxy_proc *proxy);

static void
set_state(struct proxy_proc *proxy, enum proxy_state state, const char *why)
{
	static const char *const names[] = { "down", "starting", "ready",
		"stopping" };

	log_info("proxy pid=%d %s -> %s%s%s", (int)proxy->pid,
	    names[proxy->state], names[state], why[0] == '\0' ? "" : ": ", why);
	proxy->state = state;
	proxy->since_ms = clock_now_ms();
}

static void
set_timer(struct event *timer, int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	event_add(timer, &tv);
}

/* ---- sending ---- */

/* A proxy that cannot be spoken to is of no use. */
static void
kill_process(struct proxy_proc *proxy, const char *why)
{
	log_error("proxy pid=%d killed: %s", (int)proxy->pid, why);
	proxy->hears = false;
	if (proxy->pid > 0)
		kill(-proxy->pid, SIGKILL);
}

static int
send_frame(struct proxy_proc *proxy, const struct frame_out *out)
{
	if (frame_link_send(proxy->link, out) == -1) {
		if (proxy->hears)
			kill_process(proxy, strerror(errno));
		return -1;
	}
	if (frame_link_wants_write(proxy->link))
		event_add(proxy->writable, NULL);
	return 0;
}

/* A small message; what does not arrive is told again to the next proxy. */
static void
tell(struct proxy_proc *proxy, const struct frame_out *out)
{
	if (proxy->hears && send_frame(proxy, out) == -1)
		log_debug(
		    "proxy did not hear a message of %zu bytes", out->len);
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_proc *proxy = arg;

	if (frame_link_flush(proxy->link) == -1)
		kill_process(proxy, strerror(errno));
	else if (frame_link_wants_write(proxy->link))
		event_add(proxy->writable, NULL);
}

static int
send_from_load(const struct frame_out *out, void *arg)
{
	return send_frame(arg, out);
}

static void
load(struct proxy_proc *proxy, const struct conf *conf,
    proxy_prepared_cb *on_prepared, void *arg)
{
	struct conf_errors errors;
	int result;

	conf_errors_init(&errors);
	proxy->preparing = true;
	proxy->on_prepared = on_prepared;
	proxy->prepared_arg = arg;
	result =
	    proxy_load_send(conf, proxy->supervisor->listens, ++proxy->serial,
		on_prepared == NULL, send_from_load, proxy, &errors);
	set_timer(proxy->timer, HANDSHAKE_MS);
	if (result == -1) {
		const char *why = errors.text.len > 0
				      ? errors.text.ptr
				      : "the proxy cannot be reached";

		proxy->preparing = false;
		proxy->on_prepared = NULL;
		if (on_prepared != NULL)
			on_prepared(why, arg);
		else
			kill_process(proxy, why);
	}
	conf_errors_free(&errors);
}

/* ---- hearing ---- */

static int
hear_hello(struct proxy_proc *proxy, struct frame_in *in)
{
	static struct frame_out out;
	struct channel_hello hello;

	if (proxy->hears || channel_get_hello(in, &hello) == -1 ||
	    hello.version != CHANNEL_VERSION)
		return -1;
	hello.generation = proxy->generation;
	channel_put_hello(&out, CHANNEL_HELLO, &hello);
	proxy->hears = true;
	if (send_frame(proxy, &out) == -1)
		return 0; /* it is being killed */
	supervisor_on_proxy_hello(proxy->supervisor);
	load(proxy, proxy->supervisor->hold->conf, NULL, NULL);
	return 0;
}

static int
hear_prepared(struct proxy_proc *proxy, struct frame_in *in)
{
	bool rejected = in->type == CHANNEL_REJECTED;
	proxy_prepared_cb *on_prepared = proxy->on_prepared;
	struct channel_serial answer;

	if (channel_get_serial(in, &answer) == -1)
		return -1;
	if (!proxy->preparing || answer.serial != proxy->serial)
		return 0; /* of one that was given up */
	proxy->preparing = false;
	proxy->on_prepared = NULL;
	if (proxy->state == PROXY_READY)
		event_del(proxy->timer);
	if (on_prepared != NULL) {
		on_prepared(rejected ? answer.text : NULL, proxy->prepared_arg);
		return 0;
	}
	if (rejected)
		kill_process(proxy, answer.text);
	else
		proxy_proc_commit(proxy, NULL, NULL);
	return 0;
}

static void
tell_committed(struct proxy_proc *proxy)
{
	proxy_committed_cb *on_committed = proxy->on_committed;

	proxy->on_committed = NULL;
	if (on_committed != NULL)
		on_committed(proxy->committed_arg);
}

static int
hear_ready(struct proxy_proc *proxy, struct frame_in *in)
{
	struct channel_serial ready;

	if (channel_get_serial(in, &ready) == -1)
		return -1;
	if (in->type == CHANNEL_RETIRED)
		return 0;
	if (ready.serial == proxy->serial)
		tell_committed(proxy);
	if (proxy->state != PROXY_STARTING)
		return 0;
	event_del(proxy->timer);
	set_state(proxy, PROXY_READY, "");
	supervisor_on_proxy_ready(proxy->supervisor);
	return 0;
}

static int
hear_instance(struct proxy_proc *proxy, struct frame_in *in)
{
	struct channel_instance instance;

	if (channel_get_instance(in, &instance) == -1)
		return -1;
	if (in->type == CHANNEL_DRAINED)
		supervisor_on_drained(proxy->supervisor, instance.instance);
	return 0;
}

static int
hear_stuck(struct proxy_proc *proxy, struct frame_in *in)
{
	struct channel_stuck stuck;

	if (channel_get_stuck(in, &stuck) == -1)
		return -1;
	supervisor_on_stuck(proxy->supervisor, &stuck);
	return 0;
}

static int
hear(struct proxy_proc *proxy, struct frame_in *in)
{
	struct channel_app app;

	if (!proxy->hears && in->type != CHANNEL_HELLO)
		return -1;
	switch (in->type) {
	case CHANNEL_HELLO:
		return hear_hello(proxy, in);
	case CHANNEL_READY:
	case CHANNEL_RETIRED: /* nobody waits for it */
		return hear_ready(proxy, in);
	case CHANNEL_PREPARED:
	case CHANNEL_REJECTED:
		return hear_prepared(proxy, in);
	case CHANNEL_PROBED:
		return proxy_questions_probed(proxy->questions, in);
	case CHANNEL_DRAINED:
	case CHANNEL_RELEASED: /* of use with two proxies only */
		return hear_instance(proxy, in);
	case CHANNEL_STUCK:
		return hear_stuck(proxy, in);
	case CHANNEL_STATS:
		return proxy_questions_stats(proxy->questions, in);
	case CHANNEL_WANT: /* every app runs anyway */
		return channel_get_app(in, &app);
	default:
		return -1;
	}
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_proc *proxy = arg;
	static struct frame_in in;

	while (proxy->link != NULL) {
		switch (frame_link_recv(proxy->link, &in)) {
		case FRAME_AGAIN:
			return;
		case FRAME_GOT:
			if (hear(proxy, &in) == -1 && proxy->pid > 0)
				kill_process(
				    proxy, "it said what it should not");
			frame_done(&in);
			break;
		case FRAME_CLOSED:
		case FRAME_BROKEN:
			event_del(proxy->readable);
			if (proxy->state != PROXY_STOPPING)
				kill_process(proxy, "it closed the channel");
			return;
		}
	}
}

/* ---- the process ---- */

static void
release(struct proxy_proc *proxy)
{
	proxy_prepared_cb *on_prepared = proxy->on_prepared;

	proxy->hears = false;
	event_del(proxy->timer);
	if (proxy->readable != NULL)
		event_free(proxy->readable);
	if (proxy->writable != NULL)
		event_free(proxy->writable);
	proxy->readable = proxy->writable = NULL;
	frame_link_free(&proxy->link);
	proxy->pid = 0;
	proxy->preparing = false;
	proxy->on_prepared = NULL;
	proxy_questions_end(proxy->questions, "the proxy has ended");
	if (on_prepared != NULL)
		on_prepared(
		    "the proxy died while it read it", proxy->prepared_arg);
	tell_committed(proxy);
}

static void
on_exit_of_proxy(pid_t pid, int status, void *arg)
{
	struct proxy_proc *proxy = arg;
	char text[PROCESS_EXIT_TEXT_MAX];
	bool was_ready = proxy->state == PROXY_READY;
	int64_t lived_ms = clock_now_ms() - proxy->since_ms;
	int delay_ms;

	process_exit_text(status, text);
	snprintf(proxy->last_exit, sizeof(proxy->last_exit), "%s", text);
	release(proxy);
	set_state(proxy, PROXY_DOWN, text);
	supervisor_on_proxy_gone(proxy->supervisor);
	if (proxy->stop_wanted)
		return;
	delay_ms = backoff_after_death(
	    &proxy->backoff, was_ready, lived_ms, MIN_UPTIME_MS);
	log_error("the proxy ended (%s), again in %d ms", text, delay_ms);
	if (delay_ms == 0)
		start_process(proxy);
	else
		set_timer(proxy->timer, delay_ms);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_proc *proxy = arg;

	switch (proxy->state) {
	case PROXY_DOWN:
		if (!proxy->stop_wanted)
			start_process(proxy);
		break;
	case PROXY_STARTING:
	case PROXY_READY:
		kill_process(proxy, "it did not answer in time");
		break;
	case PROXY_STOPPING:
		kill_process(proxy, "it did not end in time");
		break;
	}
}

static void
start_process(struct proxy_proc *proxy)
{
	struct event_base *base = proxy->supervisor->base;
	char label[32];
	int channel = -1;

	proxy->generation++;
	snprintf(label, sizeof(label), "%u", proxy->generation);
	proxy->pid = process_start(proxy->supervisor->processes, "proxy", label,
	    &channel, on_exit_of_proxy, proxy);
	if (proxy->pid == -1) {
		log_errno("cannot start the proxy");
		proxy->pid = 0;
		set_timer(proxy->timer,
		    backoff_after_death(&proxy->backoff, false, 0, 0));
		return;
	}
	proxy->link = frame_link_new(channel, QUEUE_MAX);
	proxy->readable =
	    event_new(base, channel, EV_READ | EV_PERSIST, on_readable, proxy);
	proxy->writable =
	    event_new(base, channel, EV_WRITE, on_writable, proxy);
	if (proxy->readable == NULL || proxy->writable == NULL ||
	    event_add(proxy->readable, NULL) == -1)
		log_error("cannot watch the proxy's channel");
	set_state(proxy, PROXY_STARTING, "");
	set_timer(proxy->timer, HANDSHAKE_MS);
}

struct proxy_proc *
proxy_proc_new(struct supervisor *supervisor)
{
	struct proxy_proc *proxy = mem_alloc(sizeof(*proxy));

	proxy->supervisor = supervisor;
	proxy->since_ms = clock_now_ms();
	proxy->timer = evtimer_new(supervisor->base, on_timer, proxy);
	proxy->questions = proxy_questions_new(supervisor);
	return proxy;
}

void
proxy_proc_free(struct proxy_proc **proxy_ptr)
{
	struct proxy_proc *proxy = *proxy_ptr;

	if (proxy == NULL)
		return;
	if (proxy->pid > 0)
		process_forget(proxy->supervisor->processes, proxy->pid);
	release(proxy);
	proxy_questions_free(&proxy->questions);
	event_free(proxy->timer);
	mem_free(proxy);
	*proxy_ptr = NULL;
}

void
proxy_proc_start(struct proxy_proc *proxy)
{
	if (proxy->state == PROXY_DOWN)
		start_process(proxy);
}

void
proxy_proc_stop(struct proxy_proc *proxy, int deadline_ms)
{
	static struct frame_out out;
	struct channel_drain drain = { (uint32_t)deadline_ms };

	proxy->stop_wanted = true;
	if (proxy->state == PROXY_DOWN) {
		event_del(proxy->timer);
		return;
	}
	if (deadline_ms == 0 || !proxy->hears) {
		if (proxy->state != PROXY_STOPPING)
			set_state(proxy, PROXY_STOPPING, "at once");
		kill_process(proxy, "told to stop at once");
		return;
	}
	channel_put_drain(&out, CHANNEL_DRAIN, &drain);
	set_state(proxy, PROXY_STOPPING, "drains");
	set_timer(proxy->timer, deadline_ms + 2000);
	tell(proxy, &out);
}

enum proxy_state
proxy_proc_state(const struct proxy_proc *proxy)
{
	return proxy->state;
}

pid_t
proxy_proc_pid(const struct proxy_proc *proxy)
{
	return proxy->pid;
}

unsigned
proxy_proc_restarts(const struct proxy_proc *proxy)
{
	return proxy->generation == 0 ? 0 : proxy->generation - 1;
}

const char *
proxy_proc_last_exit(const struct proxy_proc *proxy)
{
	return proxy->last_exit;
}

int64_t
proxy_proc_since_ms(const struct proxy_proc *proxy)
{
	return proxy->since_ms;
}

bool
proxy_proc_hears(const struct proxy_proc *proxy)
{
	return proxy->hears;
}

void
proxy_proc_announce(
    struct proxy_proc *proxy, const struct channel_announce *announce)
{
	static struct frame_out out;

	channel_put_announce(&out, CHANNEL_ANNOUNCE, announce);
	tell(proxy, &out);
}

void
proxy_proc_withdraw(struct proxy_proc *proxy, uint64_t instance, bool dead)
{
	static struct frame_out out;
	struct channel_instance withdraw = { instance, dead };

	channel_put_instance(&out, CHANNEL_WITHDRAW, &withdraw);
	tell(proxy, &out);
}

void
proxy_proc_app_state(struct proxy_proc *proxy, const struct channel_app *app)
{
	static struct frame_out out;

	channel_put_app(&out, CHANNEL_APP_STATE, app);
	tell(proxy, &out);
}

void
proxy_proc_reopen_logs(struct proxy_proc *proxy)
{
	static struct frame_out out;
	struct channel_reopen reopen;
	struct conf_errors errors;

	if (!proxy->hears)
		return;
	conf_errors_init(&errors);
	if (access_logs_open(proxy->supervisor->hold->conf, reopen.log_fds,
		&reopen.n_logs, &errors) == -1) {
		log_error("access logs not reopened: %s", errors.text.ptr);
	} else {
		channel_put_reopen(&out, CHANNEL_REOPEN_LOGS, &reopen);
		tell(proxy, &out);
		for (uint32_t i = 0; i < reopen.n_logs; i++)
			close(reopen.log_fds[i]);
	}
	conf_errors_free(&errors);
}

uint64_t
proxy_proc_probe(struct proxy_proc *proxy, struct channel_probe *probe,
    proxy_probed_cb *on_probed, void *arg)
{
	static struct frame_out out;

	if (!proxy->hears || proxy->state == PROXY_STOPPING)
		return 0;
	probe->probe = proxy_questions_probe(proxy->questions,
	    (int)probe->timeout_ms + PROBE_SLACK_MS, on_probed, arg);
	channel_put_probe(&out, CHANNEL_PROBE, probe);
	tell(proxy, &out);
	return probe->probe;
}

void
proxy_proc_probe_cancel(struct proxy_proc *proxy, uint64_t probe)
{
	proxy_questions_cancel(proxy->questions, probe);
}

void
proxy_proc_query(struct proxy_proc *proxy, proxy_stats_cb *on_stats, void *arg)
{
	static struct frame_out out;
	struct channel_query query;

	if (!proxy->hears) {
		on_stats(NULL, arg);
		return;
	}
	query.query =
	    proxy_questions_query(proxy->questions, QUERY_MS, on_stats, arg);
	channel_put_query(&out, CHANNEL_QUERY, &query);
	tell(proxy, &out);
}

void
proxy_proc_prepare(struct proxy_proc *proxy, const struct conf *conf,
    proxy_prepared_cb *on_prepared, void *arg)
{
	if (proxy->state != PROXY_READY || proxy->preparing) {
		on_prepared("the proxy is not ready, try again", arg);
		return;
	}
	load(proxy, conf, on_prepared, arg);
}

static void
tell_serial(struct proxy_proc *proxy, enum channel_type type)
{
	static struct frame_out out;
	struct channel_serial serial = { proxy->serial, "" };

	channel_put_serial(&out, (uint16_t)type, &serial);
	tell(proxy, &out);
}

void
proxy_proc_commit(
    struct proxy_proc *proxy, proxy_committed_cb *on_committed, void *arg)
{
	proxy->on_committed = on_committed;
	proxy->committed_arg = arg;
	tell_serial(proxy, CHANNEL_COMMIT);
}

void
proxy_proc_abort(struct proxy_proc *proxy)
{
	tell_serial(proxy, CHANNEL_ABORT);
}
