/*
 * What the TLS connections of one worker share: the context that every
 * handshake begins with, the keys of session tickets, the buffer that
 * ciphertext leaves from, and the order in which handshakes take their turns.
 * The worker's thread, except where noted.
 */
#ifndef CORE_TLS_WORKER_H
#define CORE_TLS_WORKER_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/core/tls_tickets.h"
#include "proxy/core/worker.h"
#include "src/base/compiler.h"
#include "src/base/list.h"

struct bio_method_st;
struct evp_cipher_st;
struct ssl_ctx_st;
struct ssl_st;

/* The largest record, and what it gets around it. */
#define TLS_RECORD_BYTES 16384
#define TLS_RECORD_ROOM (TLS_RECORD_BYTES + 512)
/* Ciphertext leaves in writes of at most this (HACKING.md: measured). */
#define TLS_WRITE_BYTES 65536

struct tls_worker {
	struct worker *worker;
	/* Of servers, without a certificate; see tls_worker_base. NULL, with
	 * all that OpenSSL makes: there was no TLS connection yet. */
	struct ssl_ctx_st *base;
	struct bio_method_st *method;
	struct evp_cipher_st *ticket_cipher;
	struct tls_tickets tickets;
	struct pool_of connections; /* struct tls */

	/* A record in the making, of pieces; and what was encrypted and leaves
	 * at the end of the call. */
	char *plain;
	char *out;
	size_t out_len;

	/* Connections whose buffers stay while they are in use. */
	struct timer_class *quiet;
	unsigned n_keeping;

	/* Handshakes begin at most TLS_HANDSHAKES_PER_ROUND a loop round; the
	 * others wait in their order. */
	struct list waiting; /* struct tls */
	struct event pump;
	bool is_pumping;
	unsigned round, begun;
};

/* Connections of a worker that keep their buffers (at most 33 KiB each), and
 * for how long after the client's last bytes. */
#define TLS_KEEPING_MAX 128
#define TLS_QUIET_MS 1000

/* Each may take a millisecond (RSA), in which nobody is served. */
#define TLS_HANDSHAKES_PER_ROUND 4

/* Before the worker runs: sets worker->tls. */
void tls_worker_new(struct worker *worker);
/* What TLS connections need, made for the first of them: who has none does not
 * pay for OpenSSL (0.7 MiB). Never NULL. */
struct ssl_ctx_st *tls_worker_base(struct tls_worker *tls);
/* When all its connections are closed; worker->tls is NULL then. */
void tls_worker_free(struct worker *worker);

/* Keys from the supervisor; until then the worker has one of its own. */
void tls_worker_set_tickets(
    struct tls_worker *tls, const struct tls_tickets *tickets);
/* May a handshake begin now? If not, ask again from the pump: it calls
 * `begin` of tls_io.c for who waits. */
bool tls_worker_may_begin(struct tls_worker *tls);
/* Have the pump look at `waiting` in the next round. */
void tls_worker_pump(struct tls_worker *tls);

/* Any thread. A context of a server with all that no configuration changes; the
 * process ends when there is none. */
struct ssl_ctx_st *tls_worker_new_context(void);

#endif
