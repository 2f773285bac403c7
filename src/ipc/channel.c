/*
 * The messages between supervisor and proxy: one put and one get each.
 * Above frame.c, below the supervisor's proxy_proc and the proxy's channel end.
 * Checks form and ranges; the order of messages is checked by its users.
 */
#include "src/ipc/channel.h"

#include <stddef.h>
#include <string.h>

/* Ends every get: descriptors taken from a malformed frame go back to it, so
 * that frame_done closes them. */
static int
finish(struct frame_in *in, bool in_range)
{
	if (in_range && frame_is_whole(in))
		return 0;
	in->bad = true;
	in->next_fd = 0;
	return -1;
}

const char *
channel_type_name(unsigned type)
{
	static const char *const names[] = {
		[CHANNEL_HELLO] = "HELLO",
		[CHANNEL_PREPARE] = "PREPARE",
		[CHANNEL_LISTEN] = "LISTEN",
		[CHANNEL_LOADED] = "LOADED",
		[CHANNEL_COMMIT] = "COMMIT",
		[CHANNEL_ABORT] = "ABORT",
		[CHANNEL_ANNOUNCE] = "ANNOUNCE",
		[CHANNEL_WITHDRAW] = "WITHDRAW",
		[CHANNEL_LEND] = "LEND",
		[CHANNEL_RECALL] = "RECALL",
		[CHANNEL_APP_STATE] = "APP_STATE",
		[CHANNEL_PROBE] = "PROBE",
		[CHANNEL_DRAIN] = "DRAIN",
		[CHANNEL_REOPEN_LOGS] = "REOPEN_LOGS",
		[CHANNEL_QUERY] = "QUERY",
		[CHANNEL_READY] = "READY",
		[CHANNEL_RETIRED] = "RETIRED",
		[CHANNEL_PREPARED] = "PREPARED",
		[CHANNEL_REJECTED] = "REJECTED",
		[CHANNEL_PROBED] = "PROBED",
		[CHANNEL_DRAINED] = "DRAINED",
		[CHANNEL_RELEASED] = "RELEASED",
		[CHANNEL_STATS] = "STATS",
		[CHANNEL_WANT] = "WANT",
		[CHANNEL_QUIET] = "QUIET",
		[CHANNEL_STUCK] = "STUCK",
		[CHANNEL_OUTPUT] = "OUTPUT",
		[CHANNEL_SECRET] = "SECRET",
	};

	return type < ARRAY_LEN(names) && names[type] != NULL ? names[type]
							      : "?";
}

static void
put_addr(struct frame_out *out, const struct addr *addr)
{
	frame_put_str(out, (struct str){ (const char *)&addr->u, addr->len });
}

/* Only addresses of a known family in their own length; a unix path ends
 * with a NUL. */
static bool
get_addr(struct frame_in *in, struct addr *addr)
{
	struct str bytes = frame_get_str(in);
	size_t path_at = offsetof(struct sockaddr_un, sun_path);

	memset(addr, 0, sizeof(*addr));
	if (bytes.len < sizeof(sa_family_t) || bytes.len > sizeof(addr->u))
		return false;
	memcpy(&addr->u, bytes.ptr, bytes.len);
	addr->len = (socklen_t)bytes.len;
	switch (addr->u.sa.sa_family) {
	case AF_INET:
		return bytes.len == sizeof(addr->u.in);
	case AF_INET6:
		return bytes.len == sizeof(addr->u.in6);
	case AF_UNIX:
		return bytes.len > path_at + 1 &&
		       bytes.len <= sizeof(addr->u.un) &&
		       addr->u.un.sun_path[0] != '\0' &&
		       memchr(addr->u.un.sun_path, '\0', bytes.len - path_at) !=
			   NULL;
	default:
		return false;
	}
}

static void
put_fds(struct frame_out *out, const int *fds, uint32_t n_fds, uint32_t max)
{
	if (n_fds > max)
		out->overflow = true;
	for (uint32_t i = 0; i < n_fds && !out->overflow; i++)
		frame_put_fd(out, fds[i]);
}

static bool
get_fds(struct frame_in *in, int *fds, uint32_t n_fds, uint32_t max)
{
	if (n_fds > max)
		return false;
	for (uint32_t i = 0; i < n_fds; i++)
		fds[i] = frame_take_fd(in);
	return !in->bad;
}

void
channel_put_hello(
    struct frame_out *out, uint16_t kind, const struct channel_hello *message)
{
	frame_begin(out, kind);
	frame_put_u32(out, message->version);
	frame_put_u32(out, message->generation);
}

int
channel_get_hello(struct frame_in *in, struct channel_hello *message)
{
	message->version = frame_get_u32(in);
	message->generation = frame_get_u32(in);
	return finish(in, true);
}

void
channel_put_prepare(
    struct frame_out *out, uint16_t kind, const struct channel_prepare *message)
{
	frame_begin(out, kind);
	frame_put_u32(out, message->serial);
	frame_put_u32(out, message->n_logs);
	frame_put_fd(out, message->conf_fd);
	put_fds(out, message->log_fds, message->n_logs, FRAME_FDS_MAX - 1);
}

int
channel_get_prepare(struct frame_in *in, struct channel_prepare *message)
{
	bool good;

	message->serial = frame_get_u32(in);
	message->n_logs = frame_get_u32(in);
	message->conf_fd = frame_take_fd(in);
	good =
	    get_fds(in, message->log_fds, message->n_logs, FRAME_FDS_MAX - 1);
	return finish(in, good);
}

void
channel_put_listen(
    struct frame_out *out, uint16_t kind, const struct channel_listen *message)
{
	frame_begin(out, kind);
	frame_put_u32(out, message->serial);
	frame_put_u32(out, message->index);
	frame_put_u32(out, message->key);
	frame_put_u32(out, message->reuseport);
	frame_put_u32(out, message->n_fds);
	put_fds(out, message->fds, message->n_fds, FRAME_FDS_MAX);
}

int
channel_get_listen(struct frame_in *in, struct channel_listen *message)
{
	bool good;

	message->serial = frame_get_u32(in);
	message->index = frame_get_u32(in);
	message->key = frame_get_u32(in);
	message->reuseport = frame_get_u32(in);
	message->n_fds = frame_get_u32(in);
	good = get_fds(in, message->fds, message->n_fds, FRAME_FDS_MAX);
	return finish(in, good && message->reuseport <= 1);
}

void
channel_put_secret(
    struct frame_out *out, uint16_t kind, const struct channel_secret *message)
{
	frame_begin(out, kind);
	frame_put_u32(out, message->serial);
	frame_put_u32(out, message->kind);
	frame_put_text(out, message->path);
	frame_put_fd(out, message->fd);
}

int
channel_get_secret(struct frame_in *in, struct channel_secret *message)
{
	message->serial = frame_get_u32(in);
	message->kind = frame_get_u32(in);
	message->path = frame_get_text(in);
	message->fd = frame_take_fd(in);
	return finish(in, message->kind == CHANNEL_SECRET_FILE
			      ? message->path[0] != '\0'
			      : message->kind == CHANNEL_SECRET_TICKETS);
}

void
channel_put_serial(
    struct frame_out *out, uint16_t kind, const struct channel_serial *message)
{
	frame_begin(out, kind);
	frame_put_u32(out, message->serial);
	frame_put_text(out, message->text);
}

int
channel_get_serial(struct frame_in *in, struct channel_serial *message)
{
	message->serial = frame_get_u32(in);
	message->text = frame_get_text(in);
	return finish(in, true);
}

void
channel_put_announce(struct frame_out *out, uint16_t kind,
    const struct channel_announce *message)
{
	frame_begin(out, kind);
	frame_put_u64(out, message->instance);
	frame_put_text(out, message->app);
	frame_put_u32(out, message->pid);
	frame_put_u32(out, message->protocol);
	frame_put_u32(out, message->cap);
	frame_put_u32(out, message->cap_counts_idle);
	frame_put_u32(out, message->idle_timeout_ms);
	put_addr(out, &message->addr);
}

static bool
protocol_is_known(uint32_t protocol)
{
	return protocol == CHANNEL_HTTP || protocol == CHANNEL_FASTCGI;
}

int
channel_get_announce(struct frame_in *in, struct channel_announce *message)
{
	bool good;

	message->instance = frame_get_u64(in);
	message->app = frame_get_text(in);
	message->pid = frame_get_u32(in);
	message->protocol = frame_get_u32(in);
	message->cap = frame_get_u32(in);
	message->cap_counts_idle = frame_get_u32(in);
	message->idle_timeout_ms = frame_get_u32(in);
	good = get_addr(in, &message->addr);
	return finish(in, good && message->app[0] != '\0' &&
			      protocol_is_known(message->protocol) &&
			      message->cap_counts_idle <= 1);
}

void
channel_put_instance(struct frame_out *out, uint16_t kind,
    const struct channel_instance *message)
{
	frame_begin(out, kind);
	frame_put_u64(out, message->instance);
	frame_put_u32(out, message->count);
}

int
channel_get_instance(struct frame_in *in, struct channel_instance *message)
{
	message->instance = frame_get_u64(in);
	message->count = frame_get_u32(in);
	return finish(in, true);
}

void
channel_put_stuck(
    struct frame_out *out, uint16_t kind, const struct channel_stuck *message)
{
	frame_begin(out, kind);
	frame_put_u64(out, message->instance);
	frame_put_u32(out, message->reason);
	frame_put_u64(out, message->inode);
}

int
channel_get_stuck(struct frame_in *in, struct channel_stuck *message)
{
	message->instance = frame_get_u64(in);
	message->reason = frame_get_u32(in);
	message->inode = frame_get_u64(in);
	return finish(in, message->reason >= CHANNEL_STUCK_ABANDONED &&
			      message->reason <= CHANNEL_STUCK_TIMEOUT);
}

void
channel_put_output(
    struct frame_out *out, uint16_t kind, const struct channel_output *message)
{
	frame_begin(out, kind);
	frame_put_u64(out, message->instance);
	frame_put_text(out, message->request);
	frame_put_text(out, message->line);
}

int
channel_get_output(struct frame_in *in, struct channel_output *message)
{
	message->instance = frame_get_u64(in);
	message->request = frame_get_text(in);
	message->line = frame_get_text(in);
	return finish(in, true);
}

void
channel_put_app(
    struct frame_out *out, uint16_t kind, const struct channel_app *message)
{
	frame_begin(out, kind);
	frame_put_text(out, message->app);
	frame_put_u32(out, message->state);
	frame_put_u32(out, message->retry_ms);
	frame_put_text(out, message->text);
}

int
channel_get_app(struct frame_in *in, struct channel_app *message)
{
	message->app = frame_get_text(in);
	message->state = frame_get_u32(in);
	message->retry_ms = frame_get_u32(in);
	message->text = frame_get_text(in);
	return finish(in, message->app[0] != '\0' &&
			      message->state >= CHANNEL_APP_UP &&
			      message->state <= CHANNEL_APP_STOPPED);
}

void
channel_put_probe(
    struct frame_out *out, uint16_t kind, const struct channel_probe *message)
{
	frame_begin(out, kind);
	frame_put_u64(out, message->probe);
	frame_put_u32(out, message->protocol);
	frame_put_u32(out, message->timeout_ms);
	frame_put_text(out, message->path);
	frame_put_text(out, message->host);
	put_addr(out, &message->addr);
}

int
channel_get_probe(struct frame_in *in, struct channel_probe *message)
{
	bool good;

	message->probe = frame_get_u64(in);
	message->protocol = frame_get_u32(in);
	message->timeout_ms = frame_get_u32(in);
	message->path = frame_get_text(in);
	message->host = frame_get_text(in);
	good = get_addr(in, &message->addr);
	return finish(in, good && protocol_is_known(message->protocol) &&
			      message->path[0] == '/' &&
			      message->timeout_ms > 0);
}

void
channel_put_probed(
    struct frame_out *out, uint16_t kind, const struct channel_probed *message)
{
	frame_begin(out, kind);
	frame_put_u64(out, message->probe);
	frame_put_u32(out, message->ok);
	frame_put_u32(out, message->status);
	frame_put_text(out, message->text);
}

int
channel_get_probed(struct frame_in *in, struct channel_probed *message)
{
	message->probe = frame_get_u64(in);
	message->ok = frame_get_u32(in);
	message->status = frame_get_u32(in);
	message->text = frame_get_text(in);
	return finish(in, message->ok <= 1 && message->status <= 999);
}

void
channel_put_drain(
    struct frame_out *out, uint16_t kind, const struct channel_drain *message)
{
	frame_begin(out, kind);
	frame_put_u32(out, message->deadline_ms);
	frame_put_u32(out, message->keeps_idle);
}

int
channel_get_drain(struct frame_in *in, struct channel_drain *message)
{
	message->deadline_ms = frame_get_u32(in);
	message->keeps_idle = frame_get_u32(in);
	return finish(in, message->keeps_idle <= 1);
}

void
channel_put_reopen(
    struct frame_out *out, uint16_t kind, const struct channel_reopen *message)
{
	frame_begin(out, kind);
	frame_put_u32(out, message->n_logs);
	put_fds(out, message->log_fds, message->n_logs, FRAME_FDS_MAX);
}

int
channel_get_reopen(struct frame_in *in, struct channel_reopen *message)
{
	bool good;

	message->n_logs = frame_get_u32(in);
	good = get_fds(in, message->log_fds, message->n_logs, FRAME_FDS_MAX);
	return finish(in, good);
}

void
channel_put_query(
    struct frame_out *out, uint16_t kind, const struct channel_query *message)
{
	frame_begin(out, kind);
	frame_put_u32(out, message->query);
}

int
channel_get_query(struct frame_in *in, struct channel_query *message)
{
	message->query = frame_get_u32(in);
	return finish(in, true);
}

void
channel_put_stats(
    struct frame_out *out, uint16_t kind, const struct channel_stats *message)
{
	frame_begin(out, kind);
	frame_put_u32(out, message->query);
	frame_put_u32(out, message->kind);
	frame_put_text(out, message->name);
	frame_put_u64(out, message->instance);
	frame_put_u64(out, message->requests);
	frame_put_u64(out, message->errors);
	frame_put_u64(out, message->in_flight);
	frame_put_u64(out, message->queued);
	frame_put_u64(out, message->oldest_wait_ms);
	frame_put_u64(out, message->connections);
	frame_put_u64(out, message->accepted);
}

int
channel_get_stats(struct frame_in *in, struct channel_stats *message)
{
	message->query = frame_get_u32(in);
	message->kind = frame_get_u32(in);
	message->name = frame_get_text(in);
	message->instance = frame_get_u64(in);
	message->requests = frame_get_u64(in);
	message->errors = frame_get_u64(in);
	message->in_flight = frame_get_u64(in);
	message->queued = frame_get_u64(in);
	message->oldest_wait_ms = frame_get_u64(in);
	message->connections = frame_get_u64(in);
	message->accepted = frame_get_u64(in);
	return finish(in, message->kind >= CHANNEL_STATS_END &&
			      message->kind <= CHANNEL_STATS_INSTANCE);
}
