/*
 * The channel to the supervisor, proxy's end: reads messages and acts on them.
 * Main thread; what other threads have to say comes through proxy_tell.c.
 * Decides nothing about requests.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "proxy/proxy_state.h"
#include "proxy/upstream/probe.h"
#include "src/base/log.h"
#include "src/base/mem.h"

/* Frames that may wait for the supervisor; more means that it is stuck. */
#define QUEUE_BYTES_MAX ((size_t)4 << 20)
/* What may come before the first configuration. */
#define EARLY_MAX 4096
/* Nobody tells how long: the supervisor is gone and no configuration came. */
#define DRAIN_PRESET_MS 10000
/* At the end, for a supervisor that is slow to listen. */
#define LAST_WORDS_MS 500
#define LAST_WORDS_STEP_MS 50

static void on_writable(evutil_socket_t fd, short what, void *arg);

/* ---- saying ---- */

static void
lose_supervisor(struct proxy *proxy, int exit_code)
{
	int64_t drain_ms = proxy->current == NULL
			       ? DRAIN_PRESET_MS
			       : proxy->current->conf->limits.drain_timeout_ms;

	if (proxy->is_gone)
		return;
	proxy->is_gone = true;
	event_del(&proxy->channel_in);
	event_del(&proxy->channel_out);
	proxy_drain(proxy, drain_ms, false, exit_code);
}

/* A write failed: because nobody is there to read it, or worse. */
static void
lose_channel(struct proxy *proxy)
{
	bool is_gone = errno == EPIPE || errno == ECONNRESET;

	if (is_gone)
		log_warn("the supervisor is gone");
	else
		log_errno("channel to the supervisor");
	lose_supervisor(proxy, is_gone ? 0 : 1);
}

void
proxy_channel_send(struct proxy *proxy)
{
	if (proxy->is_gone || proxy->is_mute)
		return;
	if (frame_link_send(proxy->link, &proxy->out) == -1) {
		lose_channel(proxy);
		return;
	}
	if (frame_link_wants_write(proxy->link))
		event_add(&proxy->channel_out, NULL);
}

void
proxy_channel_say(struct proxy *proxy, enum channel_type type, uint32_t serial,
    const char *text)
{
	struct channel_serial message = { serial, text };

	channel_put_serial(&proxy->out, (uint16_t)type, &message);
	proxy_channel_send(proxy);
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct proxy *proxy = arg;

	if (frame_link_flush(proxy->link) == -1) {
		lose_channel(proxy);
	} else if (!frame_link_wants_write(proxy->link)) {
		event_del(&proxy->channel_out);
	}
}

/* ---- apps and instances ---- */

static int
take_announce(struct proxy *proxy, struct frame_in *in)
{
	struct channel_announce message;
	struct registry_instance instance;

	if (channel_get_announce(in, &message) == -1)
		return -1;
	instance.id = message.instance;
	instance.app = message.app;
	instance.pid = message.pid;
	instance.protocol = message.protocol == CHANNEL_FASTCGI
				? UPSTREAM_FASTCGI
				: UPSTREAM_HTTP1;
	instance.cap =
	    message.cap == CHANNEL_NO_CAP ? REGISTRY_NO_CAP : message.cap;
	instance.cap_counts_idle = message.cap_counts_idle != 0;
	instance.idle_ms = message.idle_timeout_ms;
	instance.addr = message.addr;
	if (registry_announce(proxy->registry, &instance) == -1)
		log_error("instance %llu of %s was announced twice",
		    (unsigned long long)instance.id, instance.app);
	return 0;
}

static int
take_withdraw(struct proxy *proxy, struct frame_in *in)
{
	struct channel_instance message;

	if (channel_get_instance(in, &message) == -1)
		return -1;
	if (message.count == CHANNEL_WITHDRAW_LATE)
		registry_hurry(proxy->registry, message.instance);
	else if (registry_withdraw(proxy->registry, message.instance,
		     message.count == CHANNEL_WITHDRAW_DEAD) == -1)
		log_debug("instance %llu is not known here",
		    (unsigned long long)message.instance);
	return 0;
}

/* LEND, RECALL */
static int
take_lease(struct proxy *proxy, struct frame_in *in)
{
	struct channel_instance message;

	if (channel_get_instance(in, &message) == -1)
		return -1;
	if (in->type == CHANNEL_LEND)
		registry_lend(proxy->registry, message.instance, message.count);
	else
		registry_recall(
		    proxy->registry, message.instance, message.count);
	return 0;
}

static enum upstream_app_state
app_state(uint32_t state)
{
	switch ((enum channel_app_state)state) {
	case CHANNEL_APP_UP:
		return UPSTREAM_APP_UP;
	case CHANNEL_APP_STARTING:
		return UPSTREAM_APP_STARTING;
	case CHANNEL_APP_BACKOFF:
		return UPSTREAM_APP_BACKOFF;
	case CHANNEL_APP_FAILED:
		return UPSTREAM_APP_FAILED;
	case CHANNEL_APP_STOPPED:
		return UPSTREAM_APP_STOPPED;
	}
	return UPSTREAM_APP_UNKNOWN;
}

static int
take_app_state(struct proxy *proxy, struct frame_in *in)
{
	struct channel_app message;

	if (channel_get_app(in, &message) == -1)
		return -1;
	registry_app_state(proxy->registry, message.app,
	    app_state(message.state), message.retry_ms, message.text);
	return 0;
}

struct probing {
	struct proxy *proxy;
	uint64_t probe;
};

static void
probe_done(void *arg, const struct probe_answer *answer)
{
	struct probing *probing = arg;
	struct channel_probed probed = { probing->probe, answer->ok,
		answer->status, answer->text };

	proxy_tell_probed(probing->proxy, &probed);
	mem_free(probing);
}

static int
take_probe(struct proxy *proxy, struct frame_in *in)
{
	struct channel_probe message;
	struct probing *probing;
	struct probe_ask ask;

	if (channel_get_probe(in, &message) == -1)
		return -1;
	probing = mem_alloc(sizeof(*probing));
	probing->proxy = proxy;
	probing->probe = message.probe;
	ask.protocol = message.protocol == CHANNEL_FASTCGI ? UPSTREAM_FASTCGI
							   : UPSTREAM_HTTP1;
	ask.timeout_ms = message.timeout_ms;
	ask.path = message.path;
	ask.host = message.host;
	ask.addr = message.addr;
	probe_start(proxy->workers[message.probe % proxy->n_workers], &ask,
	    probe_done, probing);
	return 0;
}

/* ---- statistics ---- */

struct answering {
	struct proxy *proxy;
	uint32_t query;
};

static void
send_upstream_stats(void *arg, const struct registry_stats *stats)
{
	struct answering *answering = arg;
	struct channel_stats message = { .query = answering->query };

	message.kind =
	    stats->instance == 0 ? CHANNEL_STATS_APP : CHANNEL_STATS_INSTANCE;
	message.name = stats->name;
	message.instance = stats->instance;
	message.requests = stats->requests;
	message.errors = stats->errors;
	message.in_flight = stats->in_flight;
	message.queued = stats->queued;
	message.oldest_wait_ms = stats->oldest_wait_ms;
	message.connections = stats->connections;
	channel_put_stats(&answering->proxy->out, CHANNEL_STATS, &message);
	proxy_channel_send(answering->proxy);
}

static uint64_t
counter(const _Atomic uint64_t *one)
{
	return atomic_load_explicit(one, memory_order_relaxed);
}

static void
send_stats(struct proxy *proxy, uint32_t query)
{
	struct answering answering = { proxy, query };
	struct channel_stats sum = {
		.query = query, .kind = CHANNEL_STATS_PROXY, .name = ""
	};
	struct channel_stats end = {
		.query = query, .kind = CHANNEL_STATS_END, .name = ""
	};

	for (unsigned i = 0; i < proxy->n_workers; i++) {
		const struct metrics *one = &proxy->workers[i]->metrics;

		sum.requests += counter(&one->requests);
		sum.errors += counter(&one->status[5]);
		sum.in_flight += counter(&one->requests_open);
		sum.accepted += counter(&one->accepted);
		sum.connections += atomic_load_explicit(
		    &proxy->load[i].connections, memory_order_relaxed);
	}
	channel_put_stats(&proxy->out, CHANNEL_STATS, &sum);
	proxy_channel_send(proxy);
	if (proxy->registry != NULL)
		registry_each(proxy->registry, send_upstream_stats, &answering);
	channel_put_stats(&proxy->out, CHANNEL_STATS, &end);
	proxy_channel_send(proxy);
}

static int
take_query(struct proxy *proxy, struct frame_in *in)
{
	struct channel_query message;

	if (channel_get_query(in, &message) == -1)
		return -1;
	send_stats(proxy, message.query);
	return 0;
}

void
proxy_channel_last_words(struct proxy *proxy)
{
	struct pollfd room;

	if (proxy->link == NULL || proxy->is_gone)
		return;
	/* Slots that were given up count for who serves now. */
	if (proxy->main != NULL)
		worker_finish(proxy->main);
	send_stats(proxy, 0);
	room = (struct pollfd){ .fd = frame_link_fd(proxy->link),
		.events = POLLOUT };
	for (int tries = 0;
	     tries < LAST_WORDS_MS / LAST_WORDS_STEP_MS && !proxy->is_gone &&
	     frame_link_wants_write(proxy->link);
	     tries++)
		if (poll(&room, 1, LAST_WORDS_STEP_MS) != 0)
			on_writable(-1, 0, proxy);
}

/* ---- configurations ---- */

static int
take_prepare(struct proxy *proxy, struct frame_in *in)
{
	struct channel_prepare message;

	if (channel_get_prepare(in, &message) == -1)
		return -1;
	return proxy_config_prepare(proxy, &message);
}

static int
take_secret(struct proxy *proxy, struct frame_in *in)
{
	struct channel_secret message;

	if (channel_get_secret(in, &message) == -1)
		return -1;
	return proxy_config_secret(proxy, &message);
}

static int
take_listen(struct proxy *proxy, struct frame_in *in)
{
	struct channel_listen message;

	if (channel_get_listen(in, &message) == -1)
		return -1;
	return proxy_config_listen(proxy, &message);
}

static int
take_serial(struct proxy *proxy, struct frame_in *in)
{
	struct channel_serial message;

	if (channel_get_serial(in, &message) == -1)
		return -1;
	if (in->type == CHANNEL_LOADED)
		return proxy_config_loaded(proxy, message.serial);
	if (in->type == CHANNEL_COMMIT)
		return proxy_config_commit(proxy, message.serial);
	if (proxy->pending.serial == message.serial)
		proxy_config_abort(proxy);
	return 0;
}

static int
take_reopen(struct proxy *proxy, struct frame_in *in)
{
	struct channel_reopen message;

	if (channel_get_reopen(in, &message) == -1)
		return -1;
	proxy_config_reopen_logs(proxy, &message);
	return 0;
}

static int
take_drain(struct proxy *proxy, struct frame_in *in)
{
	struct channel_drain message;

	if (channel_get_drain(in, &message) == -1)
		return -1;
	proxy_drain(proxy, message.deadline_ms, message.keeps_idle == 1, 0);
	return 0;
}

static int
take_hello(struct proxy *proxy, struct frame_in *in)
{
	struct channel_hello message;

	if (proxy->said_hello || channel_get_hello(in, &message) == -1)
		return -1;
	if (message.version != CHANNEL_VERSION) {
		log_error("the supervisor speaks version %u, we %u",
		    message.version, (unsigned)CHANNEL_VERSION);
		return -1;
	}
	proxy->said_hello = true;
	return 0;
}

/* ---- hearing ---- */

/* What is about apps needs workers; it may come before them. */
struct early {
	struct list node;
	size_t len;
	unsigned char bytes[];
};

static int
keep_early(struct proxy *proxy, const struct frame_in *in)
{
	struct early *early;

	if (++proxy->n_early > EARLY_MAX)
		return -1;
	early = mem_alloc(sizeof(*early) + in->len);
	early->len = in->len;
	memcpy(early->bytes, in->bytes, in->len);
	list_push_back(&proxy->early, &early->node);
	return 0;
}

static int
take_about_apps(struct proxy *proxy, struct frame_in *in)
{
	if (proxy->n_workers == 0)
		return keep_early(proxy, in);
	switch (in->type) {
	case CHANNEL_ANNOUNCE:
		return take_announce(proxy, in);
	case CHANNEL_WITHDRAW:
		return take_withdraw(proxy, in);
	case CHANNEL_LEND:
	case CHANNEL_RECALL:
		return take_lease(proxy, in);
	case CHANNEL_APP_STATE:
		return take_app_state(proxy, in);
	case CHANNEL_PROBE:
		return take_probe(proxy, in);
	}
	return -1;
}

void
proxy_channel_replay(struct proxy *proxy)
{
	struct frame_in *in = mem_alloc(sizeof(*in));
	struct list *node;

	while ((node = list_first(&proxy->early)) != NULL) {
		struct early *early = LIST_ENTRY(node, struct early, node);

		list_remove(node);
		memcpy(in->bytes, early->bytes, early->len);
		if (frame_open(in, early->len) == -1 ||
		    take_about_apps(proxy, in) == -1)
			log_error("a message of the supervisor is malformed");
		mem_free(early);
	}
	mem_free(in);
}

static int
take(struct proxy *proxy, struct frame_in *in)
{
	if (in->type != CHANNEL_HELLO && !proxy->said_hello)
		return -1;
	switch (in->type) {
	case CHANNEL_HELLO:
		return take_hello(proxy, in);
	case CHANNEL_PREPARE:
		return take_prepare(proxy, in);
	case CHANNEL_LISTEN:
		return take_listen(proxy, in);
	case CHANNEL_SECRET:
		return take_secret(proxy, in);
	case CHANNEL_LOADED:
	case CHANNEL_COMMIT:
	case CHANNEL_ABORT:
		return take_serial(proxy, in);
	case CHANNEL_ANNOUNCE:
	case CHANNEL_WITHDRAW:
	case CHANNEL_LEND:
	case CHANNEL_RECALL:
	case CHANNEL_APP_STATE:
	case CHANNEL_PROBE:
		return take_about_apps(proxy, in);
	case CHANNEL_DRAIN:
		return take_drain(proxy, in);
	case CHANNEL_REOPEN_LOGS:
		return take_reopen(proxy, in);
	case CHANNEL_QUERY:
		return take_query(proxy, in);
	}
	return -1;
}

static void
on_frames(evutil_socket_t fd, short what, void *arg)
{
	struct proxy *proxy = arg;

	while (!proxy->is_gone) {
		enum frame_result result =
		    frame_link_recv(proxy->link, &proxy->in);
		int taken;

		if (result == FRAME_AGAIN)
			return;
		if (result == FRAME_CLOSED) {
			log_warn("the supervisor is gone");
			lose_supervisor(proxy, 0);
			return;
		}
		if (result == FRAME_BROKEN) {
			log_errno("channel to the supervisor");
			lose_supervisor(proxy, 1);
			return;
		}
		taken = take(proxy, &proxy->in);
		frame_done(&proxy->in);
		if (taken == -1) {
			log_error("scalwsd sent its proxy a wrong message (%s, "
				  "number %u), a defect of ours: another proxy "
				  "takes over",
			    channel_type_name(proxy->in.type), proxy->in.type);
			lose_supervisor(proxy, 1);
		}
	}
}

/* ---- begin and end ---- */

int
proxy_channel_start(struct proxy *proxy, int fd)
{
	struct channel_hello hello = { CHANNEL_VERSION, 0 };

	proxy->link = frame_link_new(fd, QUEUE_BYTES_MAX);
	event_assign(&proxy->channel_in, proxy->main->base, fd,
	    EV_READ | EV_PERSIST, on_frames, proxy);
	event_assign(&proxy->channel_out, proxy->main->base, fd,
	    EV_WRITE | EV_PERSIST, on_writable, proxy);
	if (event_add(&proxy->channel_in, NULL) == -1) {
		log_errno("channel to the supervisor");
		return -1;
	}
	channel_put_hello(&proxy->out, CHANNEL_HELLO, &hello);
	proxy_channel_send(proxy);
	return 0;
}

void
proxy_channel_end(struct proxy *proxy)
{
	struct list *node;

	while ((node = list_first(&proxy->early)) != NULL) {
		list_remove(node);
		mem_free(LIST_ENTRY(node, struct early, node));
	}
	frame_link_free(&proxy->link);
}
