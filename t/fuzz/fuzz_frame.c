/*
 * Channel frames from arbitrary bytes: what is understood must encode to the
 * same bytes again; what is not must not leak a descriptor.
 * First byte: how many descriptors come along. The rest: the packet.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/ipc/channel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct frame_in in;
static struct frame_out out;

static void
close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

#define TRY(name)                                      \
	{                                              \
		struct channel_##name m;               \
		if (channel_get_##name(&in, &m) == -1) \
			return false;                  \
		channel_put_##name(&out, in.type, &m); \
		return true;                           \
	}

static bool
try_with_fds(void)
{
	struct channel_prepare prepare;
	struct channel_listen listened;
	struct channel_reopen reopen;
	struct channel_secret secret;

	switch (in.type) {
	case CHANNEL_PREPARE:
		if (channel_get_prepare(&in, &prepare) == -1)
			return false;
		channel_put_prepare(&out, in.type, &prepare);
		close_all(&prepare.conf_fd, 1);
		close_all(prepare.log_fds, prepare.n_logs);
		return true;
	case CHANNEL_LISTEN:
		if (channel_get_listen(&in, &listened) == -1)
			return false;
		channel_put_listen(&out, in.type, &listened);
		close_all(listened.fds, listened.n_fds);
		return true;
	case CHANNEL_SECRET:
		if (channel_get_secret(&in, &secret) == -1)
			return false;
		channel_put_secret(&out, in.type, &secret);
		close_all(&secret.fd, 1);
		return true;
	default:
		if (channel_get_reopen(&in, &reopen) == -1)
			return false;
		channel_put_reopen(&out, in.type, &reopen);
		close_all(reopen.log_fds, reopen.n_logs);
		return true;
	}
}

static bool
try_message(void)
{
	switch (in.type) {
	case CHANNEL_HELLO:
		TRY(hello)
	case CHANNEL_LOADED:
	case CHANNEL_COMMIT:
	case CHANNEL_ABORT:
	case CHANNEL_READY:
	case CHANNEL_RETIRED:
	case CHANNEL_PREPARED:
	case CHANNEL_REJECTED:
		TRY(serial)
	case CHANNEL_ANNOUNCE:
		TRY(announce)
	case CHANNEL_WITHDRAW:
	case CHANNEL_LEND:
	case CHANNEL_RECALL:
	case CHANNEL_DRAINED:
	case CHANNEL_RELEASED:
	case CHANNEL_QUIET:
		TRY(instance)
	case CHANNEL_APP_STATE:
	case CHANNEL_WANT:
		TRY(app)
	case CHANNEL_STUCK:
		TRY(stuck)
	case CHANNEL_OUTPUT:
		TRY(output)
	case CHANNEL_PROBE:
		TRY(probe)
	case CHANNEL_PROBED:
		TRY(probed)
	case CHANNEL_DRAIN:
		TRY(drain)
	case CHANNEL_QUERY:
		TRY(query)
	case CHANNEL_STATS:
		TRY(stats)
	case CHANNEL_PREPARE:
	case CHANNEL_LISTEN:
	case CHANNEL_SECRET:
	case CHANNEL_REOPEN_LOGS:
		return try_with_fds();
	default:
		return false;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int probe;

	if (size < 1 || size - 1 > FRAME_BYTES_MAX)
		return 0;
	memcpy(in.bytes, data + 1, size - 1);
	in.n_fds = in.next_fd = 0;
	while (in.n_fds < data[0] % 5u)
		in.fds[in.n_fds++] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (frame_open(&in, size - 1) == 0 && try_message() &&
	    (out.overflow || out.len != size - 1 ||
		memcmp(out.bytes, data + 1, size - 1) != 0))
		abort();
	frame_done(&in);
	probe = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (probe > 20) /* descriptors leak */
		abort();
	close(probe);
	return 0;
}
