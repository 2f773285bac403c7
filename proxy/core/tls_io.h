/*
 * TLS on an io (io.h): handshakes, records, close_notify. To its owner it is an
 * io as any other. The worker's thread.
 */
#ifndef CORE_TLS_IO_H
#define CORE_TLS_IO_H

#include <stdbool.h>

#include "proxy/core/io.h"
#include "proxy/core/tls_site.h"
#include "proxy/core/tls_subject.h"
#include "proxy/core/tls_upstream.h"
#include "src/base/compiler.h"
#include "src/base/str.h"

struct tls; /* one connection; lives as long as its io is open */

/* Whose certificate a client gets that asks for `name` (lower case; empty:
 * none). NULL: nobody's, the handshake ends with unrecognized_name. Called from
 * inside of a handshake: it must not touch the io. */
typedef const struct tls_site *tls_choose_cb(struct io *io, struct str name);

/* Right after io_init of an accepted connection: it begins with a handshake.
 * Then io_handshake (if bytes are there) or io_read_start; on_connected tells
 * how it went. Nothing may be written before that. */
void tls_accept(struct io *io, tls_choose_cb *choose);

/* Right after io_init of a connection to a peer, with `connecting`: it begins
 * with a handshake once it is up, and on_connected tells how that went; nothing
 * may be written before. The peer is who `upstream` wants, or it fails.
 * *session (NULL: none) is taken up if the peer still knows it, and is where
 * the newest one is kept, whenever it comes: it lives longer than the io, the
 * owner frees it. Only this worker's. */
void tls_connect(struct io *io, const struct tls_upstream *upstream,
    const struct addr *peer, struct ssl_session_st **session);

/* The TLS of an io, or NULL: it is plain. */
const struct tls *tls_of(const struct io *io);
/* Why the handshake failed, or what broke the connection; static text, or
 * `preset` when TLS has nothing to say. */
const char *tls_why(const struct tls *tls, const char *preset);
/* Was the handshake as `site` wants it, though it may have been for another
 * one's name? If not, the answer is 421 (RFC 9110 section 15.5.20). */
bool tls_suits(const struct tls *tls, const struct tls_site *site);

/* What the certificate of a client says. */
struct tls_client {
	bool is_verified; /* there is one, and its roots are the site's */
	char subject[TLS_SUBJECT_MAX];
	char fingerprint[65]; /* SHA-256 of the whole, in hexadecimal */
};
void tls_client(const struct tls *tls, struct tls_client *client);

/* For tls_worker.c. */
struct bio_method_st;
struct ssl_st;
struct tls_worker;
size_t tls_bytes(void); /* of a struct tls */
timer_cb tls_quiet_expired;
struct bio_method_st *tls_io_method(void) MUST_CHECK;
/* The turn of the first of those that wait has come. */
void tls_begin_next(struct tls_worker *worker);
/* Whose connection it is, and its choice of a site. */
struct tls_worker *tls_worker_of(const struct ssl_st *ssl);
const struct tls_site *tls_chosen(struct ssl_st *ssl, struct str name);
/* Where a session with that peer is kept. */
struct ssl_session_st **tls_session_of(const struct ssl_st *ssl);
/* Does the site that was chosen? */
bool tls_offers_h2(const struct ssl_st *ssl);

#endif
