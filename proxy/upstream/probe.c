/*
 * One question to an instance that nobody uses yet.
 * Asked by proxy.c for the supervisor; a connection of its own, outside pools
 * and queues.
 * Repeats nothing, decides nothing.
 */
#include "proxy/upstream/probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "fcgi/fcgi.h"
#include "proxy/core/io.h"
#include "proxy/core/worker.h"
#include "proxy/http/h1_body.h"
#include "proxy/http/h1_parse.h"
#include "proxy/upstream/uconn.h"
#include "src/base/mem.h"
#include "src/base/strbuf.h"

#define HEAD_MAX 65536

struct probe {
	struct mail mail;
	struct list node; /* of the pool */
	struct worker *worker;
	enum upstream_protocol protocol;
	uint32_t timeout_ms;
	char *path, *host;
	struct addr addr;
	probe_done_cb *done;
	void *arg;

	struct io io;
	struct timer timer;
	struct deferred deferred;
	struct strbuf head; /* bytes of the answer until its head is whole */
	size_t scanned;
	bool head_done;
	unsigned status;
	struct h1_body body;
	struct fcgi_reply reply;
};

/* ---- the end ---- */

static void
release(struct worker *worker, struct deferred *deferred)
{
	struct probe *probe = CONTAINER_OF(deferred, struct probe, deferred);

	strbuf_free(&probe->head);
	mem_free(probe->path);
	mem_free(probe->host);
	mem_free(probe);
}

/* `why` NULL: it is ready. */
static void
finish(struct probe *probe, const char *why)
{
	struct probe_answer answer = { .ok = why == NULL,
		.status = probe->status,
		.text = why == NULL ? "" : why };

	list_remove(&probe->node);
	timer_disarm(&probe->timer);
	io_close(&probe->io);
	probe->done(probe->arg, &answer);
	probe->deferred.release = release;
	worker_defer(probe->worker, &probe->deferred);
}

static void
finish_errno(struct probe *probe, const char *what, int error)
{
	char text[128];

	snprintf(text, sizeof(text), "%s: %s", what, strerror(error));
	finish(probe, text);
}

static void
finish_status(struct probe *probe)
{
	bool ok = probe->protocol == UPSTREAM_FASTCGI ? probe->status == 200
						      : probe->status < 500;
	char text[64];

	snprintf(text, sizeof(text), "it answered %u", probe->status);
	finish(probe, ok ? NULL : text);
}

static void
on_too_long(struct worker *worker, struct timer *timer)
{
	finish(CONTAINER_OF(timer, struct probe, timer), "no answer in time");
}

void
probe_end_all(struct list *probes)
{
	struct list *node;

	while ((node = list_first(probes)) != NULL) {
		struct probe *probe = LIST_ENTRY(node, struct probe, node);

		finish(probe, "the proxy is ending");
		list_remove(&probe->deferred.node);
		release(probe->worker, &probe->deferred);
	}
}

/* ---- the question ---- */

static void
put_http(const struct probe *probe, struct strbuf *to)
{
	/* The connection is kept by them and closed by us: it makes asyncio
	 * servers leave their slow allocation mode. */
	strbuf_printf(to,
	    "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: ScalWS probe\r\n"
	    "Accept: */*\r\n\r\n",
	    probe->path, probe->host);
}

static void
put_fastcgi(const struct probe *probe, struct strbuf *to)
{
	unsigned char bytes[8192];
	struct fcgi_params params;
	size_t len = fcgi_put_begin(bytes, 1, false);

	fcgi_params_begin(
	    &params, bytes, sizeof(bytes) - FCGI_HEADER_LEN, len, 1);
	fcgi_params_add(&params, STR("REQUEST_METHOD"), STR("GET"));
	fcgi_params_add(&params, STR("SCRIPT_NAME"), str_of(probe->path));
	fcgi_params_add(&params, STR("SCRIPT_FILENAME"), str_of(probe->path));
	fcgi_params_add(&params, STR("REQUEST_URI"), str_of(probe->path));
	fcgi_params_add(&params, STR("QUERY_STRING"), STR(""));
	fcgi_params_add(&params, STR("SERVER_PROTOCOL"), STR("HTTP/1.1"));
	fcgi_params_add(&params, STR("GATEWAY_INTERFACE"), STR("CGI/1.1"));
	fcgi_params_add(&params, STR("HTTP_HOST"), str_of(probe->host));
	len = fcgi_params_end(&params);
	if (len == 0)
		return;
	fcgi_put_header(bytes + len, FCGI_STDIN, 1, 0);
	strbuf_add(to, (const char *)bytes, len + FCGI_HEADER_LEN);
}

static void
ask(struct probe *probe)
{
	struct strbuf text = STRBUF_EMPTY;
	struct iovec piece;

	if (probe->protocol == UPSTREAM_FASTCGI)
		put_fastcgi(probe, &text);
	else
		put_http(probe, &text);
	piece = (struct iovec){ text.ptr, text.len };
	io_read_start(&probe->io);
	/* A dead connection is told by on_closed or by reading. */
	if (text.len > 0 && io_write(&probe->io, &piece, 1) == IO_DEAD)
		io_wake(&probe->io);
	strbuf_free(&text);
}

/* ---- the answer ---- */

static void
take_body(struct probe *probe, const char *from, size_t len)
{
	for (;;) {
		const char *data;
		size_t used, data_len;

		switch (h1_body_read(
		    &probe->body, from, len, &used, &data, &data_len)) {
		case H1_BODY_DATA:
			from += used;
			len -= used;
			continue;
		case H1_BODY_END:
			finish_status(probe);
			return;
		case H1_BODY_TRAILER: /* not asked for */
		case H1_BODY_BAD:
			finish(probe, "its answer's body is malformed");
			return;
		case H1_BODY_MORE:
			return;
		}
	}
}

/* Bytes of an HTTP answer, or of CGI's head. Returns how many behind a head are
 * body's. */
static void
take_head(struct probe *probe, const char *from, size_t len)
{
	static const struct h1_limits limits = { HEAD_MAX, HEAD_MAX,
		HEADER_FIELDS_MAX };
	bool is_cgi = probe->protocol == UPSTREAM_FASTCGI;
	struct h1_response head;
	enum h1_result result;
	const char *why = "";
	size_t used = 0;

	strbuf_add(&probe->head, from, len);
	do {
		result = (is_cgi ? h1_parse_cgi : h1_parse_response)(
		    probe->head.ptr + used, probe->head.len - used, &limits,
		    &probe->scanned, &head, &len, &why);
		if (result == H1_DONE) {
			used += len;
			probe->scanned = 0;
		}
	} while (result == H1_DONE && head.status < 200);
	if (result == H1_BAD ||
	    (result == H1_MORE && probe->head.len > HEAD_MAX)) {
		finish(probe, result == H1_BAD ? why : "its head is too large");
		return;
	}
	if (result == H1_MORE) {
		/* Interim answers that were read are forgotten. */
		if (used > 0) {
			memmove(probe->head.ptr, probe->head.ptr + used,
			    probe->head.len - used);
			probe->head.len -= used;
		}
		return;
	}
	probe->head_done = true;
	probe->status = head.status;
	if (is_cgi)
		return; /* END_REQUEST tells the end */
	if (head.status == 204 || head.status == 304)
		head.body = BODY_NONE;
	h1_body_init(&probe->body, head.body, head.content_length);
	take_body(probe, probe->head.ptr + used, probe->head.len - used);
}

static void
take_fastcgi(struct probe *probe, const char *from, size_t len)
{
	const unsigned char *at = (const unsigned char *)from, *data;
	size_t used, data_len;

	while (list_is_linked(&probe->node)) {
		switch (fcgi_reply_read(
		    &probe->reply, at, len, &used, &data, &data_len)) {
		case FCGI_REPLY_STDOUT:
			if (!probe->head_done)
				take_head(probe, (const char *)data, data_len);
			break;
		case FCGI_REPLY_STDERR:
			break;
		case FCGI_REPLY_END:
			if (probe->head_done)
				finish_status(probe);
			else
				finish(probe, "it ended without an answer");
			return;
		case FCGI_REPLY_BAD:
			finish(probe, "it does not speak FastCGI");
			return;
		case FCGI_REPLY_MORE:
			return;
		}
		at += used;
		len -= used;
	}
}

static void
on_readable(struct io *io)
{
	struct probe *probe = CONTAINER_OF(io, struct probe, io);
	struct buf *buf = buf_get(probe->worker);
	ssize_t n = io_read(io, buf->bytes, buf->room);

	if (n == IO_EOF && probe->head_done &&
	    probe->protocol == UPSTREAM_HTTP1 &&
	    probe->body.kind == BODY_UNTIL_CLOSE)
		finish_status(probe);
	else if (n == IO_EOF)
		finish(probe, "it closed the connection");
	else if (n == IO_BROKEN)
		finish_errno(probe, "read", errno);
	else if (n > 0 && probe->protocol == UPSTREAM_FASTCGI)
		take_fastcgi(probe, buf->bytes, (size_t)n);
	else if (n > 0 && probe->head_done)
		take_body(probe, buf->bytes, (size_t)n);
	else if (n > 0)
		take_head(probe, buf->bytes, (size_t)n);
	buf_put(probe->worker, &buf);
}

static void
on_drained(struct io *io)
{
}

static void
on_closed(struct io *io, int error)
{
	io_wake(io); /* reading tells what it was */
}

static void
on_connected(struct io *io, int error)
{
	struct probe *probe = CONTAINER_OF(io, struct probe, io);

	if (error != 0)
		finish_errno(probe, "connect", error);
	else
		ask(probe);
}

static const struct io_events probe_io_events = {
	.on_readable = on_readable,
	.on_drained = on_drained,
	.on_closed = on_closed,
	.on_connected = on_connected,
};

/* ---- the beginning ---- */

static void
begin(struct probe *probe)
{
	int family = probe->addr.u.sa.sa_family;
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int result, error;

	if (fd == -1) {
		finish_errno(probe, "socket", errno);
		return;
	}
	result = connect(fd, &probe->addr.u.sa, probe->addr.len);
	error = errno;
	io_init(&probe->io, probe->worker, fd, &io_plain, &probe_io_events,
	    BUF_BYTES, result == -1 && error == EINPROGRESS);
	if (result == 0)
		ask(probe);
	else if (error != EINPROGRESS)
		finish_errno(probe, "connect", error);
}

static void
deliver(struct worker *worker, struct mail *mail)
{
	struct probe *probe = CONTAINER_OF(mail, struct probe, mail);
	struct pool *pool = worker->slots[WORKER_POOL];

	probe->worker = worker;
	probe->io.fd = -1;
	if (pool == NULL) {
		struct probe_answer none = { .text = "the proxy is ending" };

		probe->done(probe->arg, &none);
		release(worker, &probe->deferred);
		return;
	}
	list_push_back(&pool->probes, &probe->node);
	fcgi_reply_init(&probe->reply, 1);
	timer_arm(worker,
	    timer_class_of(worker, (int)probe->timeout_ms, on_too_long),
	    &probe->timer);
	begin(probe);
}

void
probe_start(struct worker *worker, const struct probe_ask *asked,
    probe_done_cb *done, void *arg)
{
	struct probe *probe = mem_alloc(sizeof(*probe));

	probe->mail.deliver = deliver;
	probe->protocol = asked->protocol;
	probe->timeout_ms = asked->timeout_ms;
	probe->path = mem_strdup(asked->path);
	probe->host = mem_strdup(asked->host);
	probe->addr = asked->addr;
	probe->done = done;
	probe->arg = arg;
	worker_post(worker, &probe->mail);
}
