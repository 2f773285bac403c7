/*
 * A client's connection and the HTTP/1 state on it: what the files of front/
 * share. front_new's caller sees front.h only. The worker's thread.
 */
#ifndef FRONT_CONN_H
#define FRONT_CONN_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/core/io.h"
#include "proxy/core/request.h"
#include "proxy/core/worker.h"
#include "proxy/front/address_count.h"
#include "proxy/front/front.h"
#include "proxy/http/h1_body.h"
#include "proxy/http/h1_parse.h"
#include "src/base/list.h"

/* Small pieces are copied behind the head, so that both leave in one write. */
#define HOLD_SMALL_BYTES 16384
/* The largest head of an app, our own lines, and a small body. */
#define HOLD_BYTES (H1_HEAD_MAX + 65536)
/* An unread body up to this size is read and dropped to keep a connection. */
#define SKIP_BYTES_MAX 65536
/* After a refused body: how long and how much to read and drop, so that the
 * client gets to see the answer before the reset. */
#define LINGER_MS 5000
#define LINGER_BYTES_MAX ((uint64_t)16 << 20)

/* Who has taken so much may have more waiting in the kernel. */
#define READER_BYTES ((uint64_t)512 << 10)
#define READER_UNSENT_BYTES (1u << 20)

enum conn_state {
	CONN_HANDSHAKE, /* of TLS */
	CONN_IDLE,      /* no byte of a request is here */
	CONN_HEAD,      /* a part of a head is here */
	CONN_REQUEST,   /* a request is under way */
	CONN_H2,        /* speaks HTTP/2: all else is h2_conn.c's */
	CONN_SKIP,      /* answered; the rest of its body is dropped */
	CONN_LAST,      /* the last answer is going out, then close */
	CONN_LINGER,    /* all is said; reading and dropping until they close */
	CONN_CLOSED,    /* waits to be freed at the end of the loop round */
};

/* How the end of an answer's body is known. */
enum body_end { END_NONE, END_LENGTH, END_CHUNKED, END_CLOSE, END_TUNNEL };

/* Without the room of a unix path: there are many connections. */
struct conn_peer {
	socklen_t len;
	bool is_counted; /* in front->addresses */
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} u;
};

struct conn {
	struct io io;
	struct front *front;
	struct list node;         /* in front->open */
	struct timer timer;       /* by state: idle, header, body, linger */
	struct timer send_timer;  /* while output waits for the client */
	uint64_t received_before; /* by the client, when it was armed */
	int64_t body_since_ms;    /* a window of the body's rate began, with */
	uint64_t body_before;     /* so many bytes of it */
	struct deferred later;    /* goes on from the loop, or frees */

	struct request *request; /* CONN_HEAD, CONN_REQUEST */
	struct buf *in;          /* what was read; NULL while idle */
	struct buf *head; /* holds the head when `in` does not, or NULL */
	uint32_t floor;   /* of `in`: below is the head */
	uint32_t piece_at,
	    piece_len;  /* of `in`: body the handler did not take */
	size_t scanned; /* h1_parse's */
	struct h1_body body;
	uint64_t left; /* of the answer's announced length; LINGER, SKIP: of
			* what may be dropped */

	struct h2_conn *h2; /* CONN_H2 */

	uint32_t listener_key;
	uint32_t n_requests;
	struct conn_peer peer;

	uint8_t state;    /* enum conn_state */
	uint8_t body_end; /* enum body_end of the answer */
	bool keeps;       /* after this answer */
	bool wants_body;  /* the handler does */
	bool piece_waits; /* a piece (or the end) is to be given again */
	bool piece_last;
	bool body_done;  /* all of it was read and given */
	bool is_blocked; /* until body_resume */
	bool said_continue;
	bool flushes_always;
	bool is_running; /* h1_run is below us */
	bool is_reader;  /* of READER_BYTES */
	bool is_cut;     /* an answer cannot go on: abort from the loop */
	bool may_be_h2;  /* what it says first may be HTTP/2's preface */
};

struct listener; /* listener.c's */

/* What the HTTP/2 connections of a worker share. */
struct h2_front {
	struct pool_of conns, streams;
	struct nghttp2_session_callbacks *callbacks; /* made at first use, as */
	struct nghttp2_option *options; /* of the current configuration, and */
	struct h2_mem *mem;             /* for nghttp2 */
	char *in;                       /* H2_IN_BYTES: read into, by one */
	uint32_t max_streams;
	uint32_t window_bytes;     /* of a stream */
	uint32_t connection_bytes; /* of all, each way */
	uint32_t max_resets, max_control;
	struct timer_class *body, *send, *linger, *hold, *drain;
};
#define H2_IN_BYTES 65536

struct front {
	struct worker *worker;
	struct pool_of conns;
	struct list open; /* struct conn */
	unsigned n_open;
	struct list listeners; /* struct listener */
	struct event rest;     /* accepting again after EMFILE */
	bool is_resting;
	int64_t complained_ms;
	struct address_count *addresses; /* of all workers, borrowed */

	/* Of the current configuration. */
	struct h1_limits limits;
	uint32_t buffer_bytes;
	uint32_t max_connections;
	uint32_t max_per_address; /* 0: no limit */
	uint32_t max_requests;
	int body_timeout_ms;
	uint64_t body_window_bytes; /* least of a body in that time */
	struct timer_class *idle, *header, *body, *send, *linger;

	struct h2_front h2;

	/* What waits to leave in one write: of one connection at a time. */
	struct conn *held_by;
	size_t held_len;
	char held[HOLD_BYTES];
};

/* ---- conn.c ---- */

/* Take over an accepted descriptor; it counts in worker->load already.
 * `has_data`: read at once. */
void conn_open(struct front *front, int fd, const struct conn_peer *peer,
    uint32_t listener_key, bool has_data, bool is_tls);
/* Take over the configuration's limits and times. */
struct conf_limits;
void conn_configure(struct front *front, const struct conf_limits *limits);
/* Only writer of the state CLOSED; there is no request any more. */
void conn_close(struct conn *conn, const char *why);
/* Bytes came and were read: are they enough, if they are of a body? If not the
 * request is given up. */
void conn_check_rate(struct conn *conn);
/* Nobody is there to get an answer: end the request, then close. */
void conn_gone(struct conn *conn, const char *why);
/* Go on from the loop: bodies, the next request. */
void conn_later(struct conn *conn);
/* After bytes were handed to io: watch that they leave. */
void conn_watch_send(struct conn *conn);
/* The last answer is said. `linger`: bytes of the client may still come. */
void conn_finish(struct conn *conn, bool linger);

/* ---- h1_read.c ---- */

/* Something can be read. */
void h1_readable(struct conn *conn);
/* Go on with what is buffered: bodies, then requests; then say what to wait
 * for. */
void h1_run(struct conn *conn);

/* ---- h1_write.c ---- */

extern const struct front_ops h1_front_ops;
/* Let the held bytes go, whoever's they are. */
enum response_result h1_flush(struct front *front);

/* ---- h2_conn.c ---- */

/* The first bytes are (the beginning of) HTTP/2's preface: no request of
 * HTTP/1 begins so. */
bool h2_is_preface(const char *from, size_t len);
/* From now on this connection speaks HTTP/2; these bytes have come. */
void h2_begin(struct conn *conn, const char *from, size_t len);
void h2_readable(struct conn *conn);
/* Go on from the loop: bodies, what is to be sent, the end. */
void h2_run(struct conn *conn);
/* No new requests: the client is told so, and the connection closed after the
 * last. */
void h2_drain(struct conn *conn);
/* Nothing came while something should have. */
void h2_idle(struct conn *conn);
void h2_header_expired(struct conn *conn);
/* Abort what is under way. */
void h2_abort(struct conn *conn, const char *why);
/* Release what is HTTP/2's; there are no requests any more. */
void h2_free(struct conn *conn);
void h2_configure(struct front *front, const struct conf_limits *limits);
void h2_front_free(struct front *front);

/* ---- h1_tunnel.c ---- */

/* The head that says so is being written. */
void h1_tunnel_begin(struct conn *conn);
/* settle()'s part for a tunnel. */
void h1_tunnel_settle(struct conn *conn);
/* The client has closed its writing side. */
void h1_tunnel_eof(struct conn *conn);
void h1_shutdown(struct request *request);

static inline bool
conn_is_tunnel(const struct conn *conn)
{
	return conn->state == CONN_REQUEST && conn->body_end == END_TUNNEL;
}

static inline void
conn_set_state(struct conn *conn, enum conn_state state)
{
	conn->state = (uint8_t)state;
}

/* We begin to read a body, or go on: its rate counts from now. */
static inline void
conn_begin_window(struct conn *conn)
{
	conn->body_since_ms = conn->front->worker->tick_ms;
	conn->body_before = conn->body.seen;
}

static inline size_t
conn_buffered(const struct conn *conn)
{
	return conn->in == NULL ? 0 : conn->in->end - conn->in->start;
}

#endif
