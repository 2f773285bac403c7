/*
 * Listening sockets of one worker: accept, hand over to a less busy worker,
 * limits on connections; and the front that they belong to.
 * The sockets are the main thread's; here they are polled.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/core/snapshot.h"
#include "proxy/front/conn.h"
#include "src/base/log.h"
#include "src/base/mem.h"

#define ACCEPTS_PER_WAKE 16 /* where the request is there at once */
#define REST_MS 100         /* after running out of descriptors */
#define COMPLAIN_EVERY_MS 60000

/* One polled socket. */
struct listener {
	struct event event;
	struct list node; /* in front->listeners */
	struct front *front;
	uint32_t key;
	int fd; /* borrowed */
	bool is_deferred;
	bool is_tls;
	bool stays; /* front_configure's mark */
};

/* ---- who takes a connection ---- */

static struct front *
front_of(struct worker *worker)
{
	return worker->slots[WORKER_FRONT];
}

static unsigned
load_of(const struct worker *worker, unsigned index)
{
	return atomic_load_explicit(
	    &worker->load[index].connections, memory_order_relaxed);
}

static void
add_load(struct worker *worker, unsigned index, unsigned n)
{
	atomic_fetch_add_explicit(
	    &worker->load[index].connections, n, memory_order_relaxed);
}

/* Ourselves, or the least busy worker if it is clearly less busy (measured:
 * HACKING.md). *total is the number of connections of all. */
static unsigned
choose_worker(const struct worker *worker, unsigned *total)
{
	unsigned own = load_of(worker, worker->index);
	unsigned least = own, best = worker->index;

	*total = 0;
	for (unsigned i = 0; i < worker->n_workers; i++) {
		unsigned load = load_of(worker, i);

		*total += load;
		if (load < least) {
			least = load;
			best = i;
		}
	}
	return own - least >= (least > 16 ? least / 8 : 2) ? best
							   : worker->index;
}

struct handed {
	struct mail mail;
	struct address_count *addresses;
	uint32_t serial; /* of the configuration it was accepted under */
	int fd;
	uint32_t listener_key;
	bool has_data;
	bool is_tls;
	struct conn_peer peer;
};

/* Workers take over a configuration one after the other: this one may not know
 * the listener yet, or have no configuration at all. */
static bool
is_ahead_of(const struct handed *handed, struct worker *worker)
{
	return !atomic_load(&worker->stopping) &&
	       (worker->snapshot == NULL ||
		   (int32_t)(worker->snapshot->serial - handed->serial) < 0);
}

static void
take_handed(struct worker *worker, struct mail *mail)
{
	struct handed *handed = CONTAINER_OF(mail, struct handed, mail);
	struct front *front = front_of(worker);

	if (UNLIKELY(is_ahead_of(handed, worker))) {
		/* Behind the mail that brings it. */
		worker_post(worker, mail);
		return;
	}
	if (front == NULL || worker->snapshot == NULL) {
		/* It came after the end. */
		close(handed->fd);
		if (handed->peer.is_counted)
			address_count_put(
			    handed->addresses, &handed->peer.u.sa);
		add_load(worker, worker->index, (unsigned)-1);
	} else {
		conn_open(front, handed->fd, &handed->peer,
		    handed->listener_key, handed->has_data, handed->is_tls);
	}
	mem_free(handed);
}

static void
hand_over(struct front *front, unsigned to, int fd,
    const struct conn_peer *peer, const struct listener *listener)
{
	struct handed *handed = mem_alloc(sizeof(*handed));

	handed->mail.deliver = take_handed;
	handed->addresses = front->addresses;
	handed->serial = front->worker->snapshot->serial;
	handed->fd = fd;
	handed->listener_key = listener->key;
	handed->has_data = listener->is_deferred;
	handed->is_tls = listener->is_tls;
	handed->peer = *peer;
	METRIC_ADD(front->worker->metrics.handed_off, 1);
	worker_post(front->worker->all[to], &handed->mail);
}

static void
complain(struct front *front, const struct conn_peer *peer, bool is_total)
{
	struct addr addr = { .len = peer->len };
	char text[ADDR_TEXT_MAX];

	if (front->worker->tick_ms - front->complained_ms < COMPLAIN_EVERY_MS)
		return;
	front->complained_ms = front->worker->tick_ms;
	if (is_total) {
		log_warn(
		    "limits.connections (%u) reached: turning clients away",
		    front->max_connections);
		return;
	}
	memcpy(&addr.u, &peer->u, sizeof(peer->u));
	log_warn("limits.connections_per_address (%u) reached by %s: turning "
		 "it away",
	    front->max_per_address, addr_format(&addr, text));
}

/* More connections than configured: say so and close. What they sent is read
 * first, or the reset would overtake the answer. Who has said nothing when we
 * are told of him late (deferred) gets no answer either. */
static void
turn_away(const struct listener *listener, int fd)
{
	struct front *front = listener->front;
	static const char answer[] = "HTTP/1.1 503 Service Unavailable\r\n"
				     "Retry-After: 1\r\n"
				     "Content-Length: 0\r\n"
				     "Connection: close\r\n\r\n";
	struct buf *buf = buf_get(front->worker);

	/* With TLS it would take a handshake to say so. */
	if (!listener->is_tls &&
	    (read(fd, buf->bytes, buf->room) > 0 || !listener->is_deferred) &&
	    write(fd, answer, sizeof(answer) - 1) == -1)
		log_debug("c=%d: not even turned away", fd);
	buf_put(front->worker, &buf);
	close(fd);
}

/* Count the client's address, where that is limited. False: it has as many
 * connections as it may. */
static bool
count_address(struct front *front, struct conn_peer *peer)
{
	const struct conf *conf = front->worker->snapshot->conf;
	struct addr addr = { .len = peer->len };

	if (LIKELY(front->max_per_address == 0) ||
	    peer->u.sa.sa_family == AF_UNIX)
		return true;
	memcpy(&addr.u, &peer->u, sizeof(peer->u));
	for (size_t i = 0; i < conf->n_trusted_proxies; i++)
		if (addr_in_range(&addr, &conf->trusted_proxies[i]))
			return true;
	peer->is_counted = address_count_take(
	    front->addresses, &peer->u.sa, front->max_per_address);
	return peer->is_counted;
}

/* ---- accept ---- */

static void
rest(struct front *front)
{
	struct timeval pause = { 0, REST_MS * 1000 };
	struct list *node;

	if (front->worker->tick_ms - front->complained_ms >=
	    COMPLAIN_EVERY_MS) {
		front->complained_ms = front->worker->tick_ms;
		log_errno(
		    "worker %u cannot accept, resting", front->worker->index);
	}
	LIST_FOREACH(node, &front->listeners)
	event_del(&LIST_ENTRY(node, struct listener, node)->event);
	front->is_resting = event_add(&front->rest, &pause) == 0;
}

static void
on_rested(evutil_socket_t fd, short what, void *arg)
{
	struct front *front = arg;
	struct list *node;

	front->is_resting = false;
	LIST_FOREACH(node, &front->listeners)
	event_add(&LIST_ENTRY(node, struct listener, node)->event, NULL);
}

/* False: nothing more to accept now. */
static bool
accept_one(struct listener *listener)
{
	struct front *front = listener->front;
	struct worker *worker = front->worker;
	struct conn_peer peer = { .len = sizeof(peer.u) };
	unsigned to, total;
	int fd = accept4(
	    listener->fd, &peer.u.sa, &peer.len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd == -1) {
		/* The client may have gone already: that is no reason. */
		if (errno == ECONNABORTED || errno == EINTR)
			return true;
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
		    errno == ENOMEM)
			rest(front);
		return false;
	}
	if (peer.u.sa.sa_family == AF_UNIX || peer.len > sizeof(peer.u))
		peer.len = sizeof(peer.u.sa.sa_family);
	METRIC_ADD(worker->metrics.accepted, 1);
	to = choose_worker(worker, &total);
	if (total >= front->max_connections || !count_address(front, &peer)) {
		turn_away(listener, fd);
		complain(front, &peer, total >= front->max_connections);
		return true;
	}
	add_load(worker, to, 1);
	if (to != worker->index)
		hand_over(front, to, fd, &peer, listener);
	else
		conn_open(front, fd, &peer, listener->key,
		    listener->is_deferred, listener->is_tls);
	return true;
}

static void
on_accept(evutil_socket_t fd, short what, void *arg)
{
	struct listener *listener = arg;
	unsigned n = listener->is_deferred ? ACCEPTS_PER_WAKE : 1;

	while (n-- > 0 && accept_one(listener))
		continue;
}

/* ---- listeners ---- */

/* How much of an answer may wait in the kernel unsent, beyond what is on its
 * way; connections inherit it (conn.c raises it for those that read). Without
 * it a client that does not read costs megabytes there, and its app never feels
 * it. */
static void
bound_unsent(const struct front *front, int fd)
{
	unsigned bytes = 2 * front->buffer_bytes;

	/* Not for unix sockets: they have no such option, and little room. */
	if (setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes,
		sizeof(bytes)) == -1 &&
	    errno != EOPNOTSUPP && errno != ENOPROTOOPT)
		log_errno("a listener's TCP_NOTSENT_LOWAT cannot be set");
}

static void
add_listener(struct front *front, const struct front_sockets *sockets, int fd)
{
	struct listener *listener = mem_alloc(sizeof(*listener));

	listener->front = front;
	listener->key = sockets->key;
	listener->fd = fd;
	listener->is_deferred = sockets->is_deferred;
	listener->is_tls = sockets->is_tls;
	listener->stays = true;
	bound_unsent(front, fd);
	list_push_back(&front->listeners, &listener->node);
	event_assign(&listener->event, front->worker->base, fd,
	    EV_READ | EV_PERSIST, on_accept, listener);
	if (!front->is_resting && event_add(&listener->event, NULL) == -1)
		log_errno(
		    "worker %u cannot poll a listener", front->worker->index);
}

static void
remove_listeners(struct front *front, bool all)
{
	struct list *node, *after;

	LIST_FOREACH_SAFE(node, after, &front->listeners)
	{
		struct listener *listener =
		    LIST_ENTRY(node, struct listener, node);

		if (listener->stays && !all)
			continue;
		list_remove(node);
		event_del(&listener->event);
		mem_free(listener);
	}
}

/* Mark those with this key. True if there are any. */
static bool
mark_listeners(struct front *front, const struct front_sockets *sockets)
{
	struct list *node;
	bool found = false;

	LIST_FOREACH(node, &front->listeners)
	{
		struct listener *listener =
		    LIST_ENTRY(node, struct listener, node);

		if (listener->key != sockets->key)
			continue;
		listener->stays = found = true;
		bound_unsent(front, listener->fd);
		listener->is_deferred = sockets->is_deferred;
		listener->is_tls = sockets->is_tls;
	}
	return found;
}

static void
poll_sockets(struct front *front, const struct front_sockets *sockets)
{
	const struct worker *worker = front->worker;

	for (size_t i = 0; i < sockets->n_fds; i++)
		if (sockets->is_shared ||
		    i % worker->n_workers == worker->index)
			add_listener(front, sockets, sockets->fds[i]);
}

/* ---- the front ---- */

struct front *
front_new(struct worker *worker, struct address_count *addresses)
{
	struct front *front = mem_alloc(sizeof(*front));

	front->worker = worker;
	front->addresses = addresses;
	pool_of_init(worker, &front->conns, sizeof(struct conn));
	list_init(&front->open);
	list_init(&front->listeners);
	front->complained_ms = -COMPLAIN_EVERY_MS;
	evtimer_assign(&front->rest, worker->base, on_rested, front);
	worker->slots[WORKER_FRONT] = front;
	return front;
}

void
front_free(struct front **front_ptr)
{
	struct front *front = *front_ptr;

	if (front == NULL)
		return;
	front_close_listeners(front);
	/* Mail may bring connections that were handed over. */
	do {
		front_abort_all(front);
		worker_finish(front->worker);
	} while (front->n_open > 0);
	front->worker->slots[WORKER_FRONT] = NULL;
	pool_of_end(&front->conns);
	h2_front_free(front);
	mem_free(front);
	*front_ptr = NULL;
}

void
front_configure(
    struct front *front, const struct front_sockets *sockets, size_t n_sockets)
{
	struct list *node;

	conn_configure(front, &front->worker->snapshot->conf->limits);
	LIST_FOREACH(node, &front->listeners)
	LIST_ENTRY(node, struct listener, node)->stays = false;
	for (size_t i = 0; i < n_sockets; i++)
		if (!mark_listeners(front, &sockets[i]))
			poll_sockets(front, &sockets[i]);
	remove_listeners(front, false);
}

void
front_close_listeners(struct front *front)
{
	remove_listeners(front, true);
	if (front->is_resting)
		event_del(&front->rest);
	front->is_resting = false;
}

void
front_drain(struct front *front)
{
	struct list *node, *after;

	front_close_listeners(front);
	LIST_FOREACH_SAFE(node, after, &front->open)
	{
		struct conn *conn = LIST_ENTRY(node, struct conn, node);

		if (conn->state == CONN_IDLE && !front->worker->keeps_idle)
			conn_finish(conn, false);
		else if (conn->state == CONN_H2)
			h2_drain(conn);
	}
}

void
front_abort_all(struct front *front)
{
	struct list *node;

	while ((node = list_first(&front->open)) != NULL)
		conn_gone(LIST_ENTRY(node, struct conn, node), "shut down");
}

unsigned
front_open_count(const struct front *front)
{
	return load_of(front->worker, front->worker->index);
}
