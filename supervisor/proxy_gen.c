/*
 * One proxy process: fork+exec, handshake, configuration, end.
 * Under proxy_proc.c, which decides when there is one and what becomes of it.
 * Sends what proxy_load.c makes of a configuration; restarts nothing.
 */
#include "supervisor/proxy_gen.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "supervisor/process.h"
#include "supervisor/proxy_load.h"
#include "supervisor/proxy_questions.h"
#include "supervisor/saved.h"
#include "supervisor/supervisor.h"

#define QUEUE_MAX (8 * 1024 * 1024)
#define HANDSHAKE_MS 10000 /* start to READY, and PREPARE to PREPARED */
#define QUERY_MS 1000
#define PROBE_SLACK_MS 1000
#define DRAIN_SLACK_MS 4000 /* it cuts connections itself, and then ends */

struct proxy_gen {
	struct supervisor *supervisor;
	const struct proxy_gen_events *events;
	void *arg;
	struct proxy_gen_info info;
	struct frame_link *link;
	struct event *readable, *writable;
	struct event *timer; /* of the handshake, or of the drain */
	bool hears;
	bool deaf;                      /* it has closed its end since */
	bool ended;                     /* it was waited for */
	uint32_t serial;                /* of the last PREPARE */
	bool preparing;                 /* its answer is awaited */
	proxy_prepared_cb *on_prepared; /* NULL: the first of this process */
	void *prepared_arg;
	proxy_committed_cb *on_committed; /* NULL: nobody waits */
	void *committed_arg;
	struct proxy_questions *questions;
	char failure[256]; /* why we killed it; "": we did not */
};

static void
set_state(struct proxy_gen *gen, enum proxy_state state, const char *why)
{
	static const char *const names[] = { "down", "starting", "ready",
		"stopping" };

	log_info("proxy pid=%d %s -> %s%s%s", (int)gen->info.pid,
	    names[gen->info.state], names[state], why[0] == '\0' ? "" : ": ",
	    why);
	gen->info.state = state;
	gen->info.since_ms = clock_now_ms();
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
kill_process(struct proxy_gen *gen, const char *why)
{
	char line[sizeof(gen->failure)];

	str_put_line(line, sizeof(line), why);
	log_error("proxy pid=%d killed: %s", (int)gen->info.pid, line);
	if (gen->failure[0] == '\0')
		memcpy(gen->failure, line, sizeof(line));
	gen->hears = false;
	if (gen->info.pid > 0)
		kill(-gen->info.pid, SIGKILL);
}

/* One that has closed its end is about to exit, as it was told to or not: what
 * it said before is still read, see on_readable. */
static void
sending_failed(struct proxy_gen *gen)
{
	if (errno == EPIPE || errno == ECONNRESET)
		gen->deaf = true;
	else if (gen->hears)
		kill_process(gen, strerror(errno));
}

static int
send_frame(struct proxy_gen *gen, const struct frame_out *out)
{
	if (frame_link_send(gen->link, out) == -1) {
		sending_failed(gen);
		return -1;
	}
	if (frame_link_wants_write(gen->link))
		event_add(gen->writable, NULL);
	return 0;
}

/* A small message; what does not arrive is told again to the next proxy. */
static void
tell(struct proxy_gen *gen, const struct frame_out *out)
{
	if (gen->hears && !gen->deaf && send_frame(gen, out) == -1)
		log_debug(
		    "proxy did not hear a message of %zu bytes", out->len);
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_gen *gen = arg;

	if (frame_link_flush(gen->link) == -1)
		sending_failed(gen);
	else if (frame_link_wants_write(gen->link))
		event_add(gen->writable, NULL);
}

static int
send_from_load(const struct frame_out *out, void *arg)
{
	return send_frame(arg, out);
}

static void
load(struct proxy_gen *gen, const struct conf_hold *hold,
    proxy_prepared_cb *on_prepared, void *arg)
{
	struct conf_errors errors;
	int result;

	conf_errors_init(&errors);
	gen->preparing = true;
	gen->on_prepared = on_prepared;
	gen->prepared_arg = arg;
	result = proxy_load_send(hold, gen->supervisor->listens, ++gen->serial,
	    on_prepared == NULL, send_from_load, gen, &errors);
	set_timer(gen->timer, HANDSHAKE_MS);
	if (result == -1) {
		const char *why = errors.text.len > 0
				      ? errors.text.ptr
				      : "the proxy cannot be reached";

		gen->preparing = false;
		gen->on_prepared = NULL;
		if (on_prepared != NULL)
			on_prepared(why, arg);
		else
			kill_process(gen, why);
	}
	conf_errors_free(&errors);
}

/* ---- hearing ---- */

static int
hear_hello(struct proxy_gen *gen, struct frame_in *in)
{
	static struct frame_out out;
	struct channel_hello hello;

	if (gen->hears || channel_get_hello(in, &hello) == -1 ||
	    hello.version != CHANNEL_VERSION)
		return -1;
	hello.generation = gen->info.number;
	channel_put_hello(&out, CHANNEL_HELLO, &hello);
	gen->hears = true;
	if (send_frame(gen, &out) == -1)
		return 0; /* it is being killed */
	gen->events->on_hello(gen, gen->arg);
	load(gen, gen->supervisor->hold, NULL, NULL);
	return 0;
}

static int
hear_prepared(struct proxy_gen *gen, struct frame_in *in)
{
	bool rejected = in->type == CHANNEL_REJECTED;
	proxy_prepared_cb *on_prepared = gen->on_prepared;
	struct channel_serial answer;

	if (channel_get_serial(in, &answer) == -1)
		return -1;
	if (!gen->preparing || answer.serial != gen->serial)
		return 0; /* of one that was given up */
	gen->preparing = false;
	gen->on_prepared = NULL;
	if (gen->info.state == PROXY_READY)
		event_del(gen->timer);
	if (on_prepared != NULL) {
		on_prepared(rejected ? answer.text : NULL, gen->prepared_arg);
		return 0;
	}
	if (rejected && supervisor_refuse(gen->supervisor, answer.text))
		return 0;
	if (rejected)
		kill_process(gen, answer.text);
	else
		proxy_gen_commit(gen, NULL, NULL);
	return 0;
}

static void
tell_committed(struct proxy_gen *gen)
{
	proxy_committed_cb *on_committed = gen->on_committed;

	gen->on_committed = NULL;
	if (on_committed != NULL)
		on_committed(gen->committed_arg);
}

static int
hear_ready(struct proxy_gen *gen, struct frame_in *in)
{
	struct channel_serial ready;

	if (channel_get_serial(in, &ready) == -1)
		return -1;
	if (in->type == CHANNEL_RETIRED)
		return 0;
	if (ready.serial == gen->serial)
		tell_committed(gen);
	if (gen->info.state != PROXY_STARTING)
		return 0;
	event_del(gen->timer);
	set_state(gen, PROXY_READY, "");
	gen->info.ready_at_ms = gen->info.since_ms;
	gen->events->on_ready(gen, gen->arg);
	return 0;
}

static int
hear_instance(struct proxy_gen *gen, struct frame_in *in)
{
	struct channel_instance instance;

	if (channel_get_instance(in, &instance) == -1)
		return -1;
	gen->events->on_instance(
	    gen, (enum channel_type)in->type, &instance, gen->arg);
	return 0;
}

static int
hear_stuck(struct proxy_gen *gen, struct frame_in *in)
{
	struct channel_stuck stuck;

	if (channel_get_stuck(in, &stuck) == -1)
		return -1;
	supervisor_on_stuck(gen->supervisor, &stuck);
	return 0;
}

static int
hear_output(struct proxy_gen *gen, struct frame_in *in)
{
	struct channel_output output;

	if (channel_get_output(in, &output) == -1)
		return -1;
	supervisor_on_output(gen->supervisor, &output);
	return 0;
}

static int
hear_stats(struct proxy_gen *gen, struct frame_in *in)
{
	struct channel_stats stats;

	if (channel_get_stats(in, &stats) == -1)
		return -1;
	gen->events->on_stats(gen, &stats, gen->arg);
	if (stats.kind == CHANNEL_STATS_END)
		proxy_questions_answered(gen->questions, stats.query);
	return 0;
}

static int
hear_want(struct proxy_gen *gen, struct frame_in *in)
{
	struct channel_app app;

	if (channel_get_app(in, &app) == -1)
		return -1;
	gen->events->on_want(gen, app.app, gen->arg);
	return 0;
}

static int
hear(struct proxy_gen *gen, struct frame_in *in)
{
	if (!gen->hears && in->type != CHANNEL_HELLO)
		return -1;
	switch (in->type) {
	case CHANNEL_HELLO:
		return hear_hello(gen, in);
	case CHANNEL_READY:
	case CHANNEL_RETIRED: /* nobody waits for it */
		return hear_ready(gen, in);
	case CHANNEL_PREPARED:
	case CHANNEL_REJECTED:
		return hear_prepared(gen, in);
	case CHANNEL_PROBED:
		return proxy_questions_probed(gen->questions, in);
	case CHANNEL_DRAINED:
	case CHANNEL_QUIET:
	case CHANNEL_RELEASED:
		return hear_instance(gen, in);
	case CHANNEL_STUCK:
		return hear_stuck(gen, in);
	case CHANNEL_OUTPUT:
		return hear_output(gen, in);
	case CHANNEL_STATS:
		return hear_stats(gen, in);
	case CHANNEL_WANT:
		return hear_want(gen, in);
	default:
		return -1;
	}
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_gen *gen = arg;
	static struct frame_in in;

	while (gen->link != NULL) {
		switch (frame_link_recv(gen->link, &in)) {
		case FRAME_AGAIN:
			return;
		case FRAME_GOT:
			if (hear(gen, &in) == -1 && gen->info.pid > 0) {
				log_error("the proxy sent a wrong message (%s, "
					  "number %u)",
				    channel_type_name(in.type), in.type);
				kill_process(gen, "it said what it should not");
			}
			frame_done(&in);
			break;
		case FRAME_CLOSED:
		case FRAME_BROKEN:
			event_del(gen->readable);
			if (gen->info.state != PROXY_STOPPING)
				kill_process(gen, "it closed the channel");
			return;
		}
	}
}

/* ---- the process ---- */

static void
release(struct proxy_gen *gen)
{
	proxy_prepared_cb *on_prepared = gen->on_prepared;

	gen->hears = false;
	event_del(gen->timer);
	if (gen->readable != NULL)
		event_free(gen->readable);
	if (gen->writable != NULL)
		event_free(gen->writable);
	gen->readable = gen->writable = NULL;
	frame_link_free(&gen->link);
	gen->preparing = false;
	gen->on_prepared = NULL;
	proxy_questions_end(gen->questions, "the proxy has ended");
	if (on_prepared != NULL)
		on_prepared(
		    "the proxy died while it read it", gen->prepared_arg);
	tell_committed(gen);
}

/* What it said before it ended, and is not too late. */
static void
hear_last_words(struct proxy_gen *gen)
{
	static struct frame_in in;
	int result;

	while (
	    gen->link != NULL && frame_link_recv(gen->link, &in) == FRAME_GOT) {
		result = 0;
		if (in.type == CHANNEL_STATS)
			result = hear_stats(gen, &in);
		else if (in.type == CHANNEL_OUTPUT)
			result = hear_output(gen, &in);
		else if (in.type == CHANNEL_RELEASED ||
			 in.type == CHANNEL_DRAINED || in.type == CHANNEL_QUIET)
			result = hear_instance(gen, &in);
		frame_done(&in);
		if (result == -1)
			break;
	}
}

static void on_timer(evutil_socket_t fd, short what, void *arg);

static void
watch(struct proxy_gen *gen, int channel)
{
	struct event_base *base = gen->supervisor->base;

	gen->link = frame_link_new(channel, QUEUE_MAX);
	gen->timer = evtimer_new(base, on_timer, gen);
	gen->questions = proxy_questions_new(gen->supervisor);
	gen->readable =
	    event_new(base, channel, EV_READ | EV_PERSIST, on_readable, gen);
	gen->writable = event_new(base, channel, EV_WRITE, on_writable, gen);
	if (gen->readable == NULL || gen->writable == NULL ||
	    event_add(gen->readable, NULL) == -1)
		log_error("cannot watch the proxy's channel");
}

static void
on_process_exit(pid_t pid, int status, void *arg)
{
	struct proxy_gen *gen = arg;
	char text[PROCESS_EXIT_TEXT_MAX],
	    why[sizeof(gen->failure) + 2 + PROCESS_EXIT_TEXT_MAX];
	bool was_told = gen->failure[0] != '\0';

	process_exit_text(status, text);
	snprintf(why, sizeof(why), "%s%s%s", gen->failure, was_told ? ", " : "",
	    text);
	gen->ended = true;
	gen->hears = false;
	gen->events->on_end(gen, gen->arg);
	hear_last_words(gen);
	release(gen);
	set_state(gen, PROXY_DOWN, why);
	gen->events->on_exit(gen, why, gen->arg);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_gen *gen = arg;

	if (gen->info.state == PROXY_STOPPING)
		kill_process(gen, "it did not end in time");
	else
		kill_process(gen, "it did not answer in time");
}

struct proxy_gen *
proxy_gen_start(struct supervisor *supervisor, unsigned number,
    const struct proxy_gen_events *events, void *arg)
{
	struct proxy_gen *gen = mem_alloc(sizeof(*gen));
	char label[32];
	int channel = -1;

	gen->supervisor = supervisor;
	gen->info.number = number;
	gen->events = events;
	gen->arg = arg;
	snprintf(label, sizeof(label), "%u", number);
	gen->info.pid = process_start(supervisor->processes, "proxy", label,
	    &channel, on_process_exit, gen);
	if (gen->info.pid == -1) {
		mem_free(gen);
		return NULL;
	}
	watch(gen, channel);
	set_state(gen, PROXY_STARTING, "");
	set_timer(gen->timer, HANDSHAKE_MS);
	return gen;
}

void
proxy_gen_free(struct proxy_gen **gen_ptr)
{
	struct proxy_gen *gen = *gen_ptr;

	if (gen == NULL)
		return;
	*gen_ptr = NULL;
	if (!gen->ended) {
		process_forget(gen->supervisor->processes, gen->info.pid);
		release(gen);
	}
	proxy_questions_free(&gen->questions);
	event_free(gen->timer);
	mem_free(gen);
}

void
proxy_gen_kill(struct proxy_gen *gen, const char *why)
{
	if (gen->info.state != PROXY_STOPPING)
		set_state(gen, PROXY_STOPPING, "at once");
	kill_process(gen, why);
}

void
proxy_gen_drain(struct proxy_gen *gen, int deadline_ms, bool keeps_idle)
{
	static struct frame_out out;
	struct channel_drain drain = { (uint32_t)deadline_ms, keeps_idle };
	int streams_ms = 0;

	if (!gen->hears) {
		proxy_gen_kill(gen, "told to stop");
		return;
	}
	channel_put_drain(&out, CHANNEL_DRAIN, &drain);
	if (gen->info.state != PROXY_STOPPING)
		set_state(gen, PROXY_STOPPING, "drains");
	if (keeps_idle)
		streams_ms =
		    conf_stream_grace_max_ms(gen->supervisor->hold->conf);
	set_timer(
	    gen->timer, (streams_ms > deadline_ms ? streams_ms : deadline_ms) +
			    DRAIN_SLACK_MS);
	tell(gen, &out);
}

const struct proxy_gen_info *
proxy_gen_info(const struct proxy_gen *gen)
{
	return &gen->info;
}

void
proxy_gen_tell(struct proxy_gen *gen, const struct frame_out *out)
{
	tell(gen, out);
}

void
proxy_gen_reopen_logs(
    struct proxy_gen *gen, const struct channel_reopen *reopen)
{
	static struct frame_out out;

	channel_put_reopen(&out, CHANNEL_REOPEN_LOGS, reopen);
	tell(gen, &out);
}

uint64_t
proxy_gen_probe(struct proxy_gen *gen, struct channel_probe *probe,
    proxy_probed_cb *on_probed, void *arg)
{
	static struct frame_out out;

	if (!gen->hears || gen->info.state == PROXY_STOPPING)
		return 0;
	probe->probe = proxy_questions_probe(gen->questions,
	    (int)probe->timeout_ms + PROBE_SLACK_MS, on_probed, arg);
	channel_put_probe(&out, CHANNEL_PROBE, probe);
	tell(gen, &out);
	return probe->probe;
}

void
proxy_gen_probe_cancel(struct proxy_gen *gen, uint64_t probe)
{
	proxy_questions_cancel(gen->questions, probe);
}

void
proxy_gen_query(
    struct proxy_gen *gen, proxy_answered_cb *on_answered, void *arg)
{
	static struct frame_out out;
	struct channel_query query;

	if (!gen->hears) {
		on_answered(false, arg);
		return;
	}
	query.query =
	    proxy_questions_query(gen->questions, QUERY_MS, on_answered, arg);
	channel_put_query(&out, CHANNEL_QUERY, &query);
	tell(gen, &out);
}

void
proxy_gen_prepare(struct proxy_gen *gen, const struct conf_hold *hold,
    proxy_prepared_cb *on_prepared, void *arg)
{
	if (gen->info.state != PROXY_READY || gen->preparing) {
		on_prepared("the proxy is not ready, try again", arg);
		return;
	}
	load(gen, hold, on_prepared, arg);
}

static void
tell_serial(struct proxy_gen *gen, enum channel_type type)
{
	static struct frame_out out;
	struct channel_serial serial = { gen->serial, "" };

	channel_put_serial(&out, (uint16_t)type, &serial);
	tell(gen, &out);
}

void
proxy_gen_commit(
    struct proxy_gen *gen, proxy_committed_cb *on_committed, void *arg)
{
	gen->on_committed = on_committed;
	gen->committed_arg = arg;
	tell_serial(gen, CHANNEL_COMMIT);
}

/* ---- handed on to another process ---- */

bool
proxy_gen_is_flushed(const struct proxy_gen *gen)
{
	return !frame_link_wants_write(gen->link) && !gen->preparing &&
	       gen->on_committed == NULL;
}

void
proxy_gen_save(const struct proxy_gen *gen, struct saved_proxy *to)
{
	to->pid = (int)gen->info.pid;
	to->generation = gen->info.number;
	to->channel = CHANNEL_VERSION;
	to->fd = frame_link_fd(gen->link);
	to->serial = gen->serial;
	to->since_ms = gen->info.since_ms;
	to->ready_at_ms = gen->info.ready_at_ms;
}

struct proxy_gen *
proxy_gen_adopt(struct supervisor *supervisor, const struct saved_proxy *from,
    const struct proxy_gen_events *events, void *arg)
{
	struct proxy_gen *gen = mem_alloc(sizeof(*gen));

	gen->supervisor = supervisor;
	gen->events = events;
	gen->arg = arg;
	gen->info.pid = (pid_t)from->pid;
	gen->info.number = from->generation;
	gen->info.state = PROXY_READY;
	gen->hears = true;
	gen->serial = from->serial;
	gen->info.since_ms = from->since_ms;
	gen->info.ready_at_ms = from->ready_at_ms;
	watch(gen, from->fd);
	process_adopt(
	    supervisor->processes, gen->info.pid, on_process_exit, gen);
	return gen;
}
