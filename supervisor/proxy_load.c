/*
 * Makes the frames of one configuration for the proxy.
 * Called by proxy_proc.c, for a new process and for a reload.
 * Opens the access logs; binds nothing.
 */
#include "supervisor/proxy_load.h"

#include <string.h>
#include <unistd.h>

#include "src/base/fdutil.h"
#include "src/ipc/channel.h"
#include "supervisor/access_logs.h"
#include "supervisor/listen_fds.h"
#include "supervisor/secrets.h"
#include "supervisor/supervisor.h"

static int
send_prepare(const struct conf *conf, uint32_t serial, proxy_load_cb *send,
    void *arg, struct conf_errors *errors)
{
	static struct frame_out out;
	struct channel_prepare prepare = { .serial = serial, .conf_fd = -1 };
	struct strbuf flat = STRBUF_EMPTY;
	int result;

	if (access_logs_open(conf, prepare.log_fds, &prepare.n_logs, errors) ==
	    -1)
		return -1;
	conf_to_flat(conf, &flat);
	prepare.conf_fd = fd_memfd_sealed("scalws-conf", flat.ptr, flat.len);
	strbuf_free(&flat);
	if (prepare.conf_fd == -1) {
		result = conf_errors_add_errno(errors, NULL, NULL, "memfd");
	} else {
		channel_put_prepare(&out, CHANNEL_PREPARE, &prepare);
		result = send(&out, arg);
	}
	fd_close(&prepare.conf_fd);
	for (uint32_t i = 0; i < prepare.n_logs; i++)
		fd_close(&prepare.log_fds[i]);
	return result;
}

static int
send_listener(const struct listen_view *view, bool with_fds, uint32_t index,
    uint32_t serial, proxy_load_cb *send, void *arg)
{
	static struct frame_out out;
	struct channel_listen listened = { .serial = serial,
		.index = index,
		.key = view->key,
		.reuseport = view->n > 1 };
	size_t at = 0;

	if (view->n == 0)
		return 0;
	do {
		size_t part = with_fds ? view->n - at : 0;

		if (part > FRAME_FDS_MAX)
			part = FRAME_FDS_MAX;
		listened.n_fds = (uint32_t)part;
		memcpy(listened.fds, view->fds + at, part * sizeof(int));
		channel_put_listen(&out, CHANNEL_LISTEN, &listened);
		if (send(&out, arg) == -1)
			return -1;
		at += part;
	} while (with_fds && at < view->n);
	return 0;
}

int
proxy_load_send(const struct conf_hold *hold, const struct listen_set *listens,
    uint32_t serial, bool all, proxy_load_cb *send, void *arg,
    struct conf_errors *errors)
{
	static struct frame_out out;
	struct channel_serial loaded = { serial, "" };
	const struct conf *conf = hold->conf;

	if (send_prepare(conf, serial, send, arg, errors) == -1 ||
	    secrets_send(hold->secrets, serial, send, arg) == -1)
		return -1;
	for (size_t i = 0; i < conf->n_listeners; i++) {
		struct listen_view view;

		listen_set_view(listens, &conf->listeners[i], &view);
		if (send_listener(&view, all || view.is_new, (uint32_t)i,
			serial, send, arg) == -1)
			return -1;
	}
	channel_put_serial(&out, CHANNEL_LOADED, &loaded);
	return send(&out, arg);
}
