/*
 * What handshakes with the peers of one upstream use: whom to believe, what to
 * show, which name to ask for. Made by snapshot.c in the main thread, then
 * immutable, counted and shared by the workers.
 */
#ifndef CORE_TLS_UPSTREAM_H
#define CORE_TLS_UPSTREAM_H

#include <stdbool.h>

#include "proxy/core/tls_files.h"
#include "src/base/addr.h"
#include "src/base/compiler.h"
#include "src/conf/conf.h"

struct ssl_ctx_st;
struct ssl_session_st;
struct ssl_st;
struct tls_upstream; /* opaque */

/* With one reference; NULL with a finding that names the file. `other` (may be
 * NULL) is one whose system's roots are used too, where these are asked for. */
struct tls_upstream *tls_upstream_new(const struct conf *conf,
    const struct conf_upstream *upstream, const struct tls_files *files,
    const struct tls_upstream *other, struct conf_errors *errors) MUST_CHECK;
struct tls_upstream *tls_upstream_ref(struct tls_upstream *upstream);
/* Sets it to NULL; NULL is fine. Any thread. */
void tls_upstream_unref(struct tls_upstream **upstream);

/* Would both make the same connections: the same rules, roots, certificate?
 * NULL is none, the same as itself. */
bool tls_upstream_eq(
    const struct tls_upstream *a, const struct tls_upstream *b);
/* Does it believe the system's roots? */
bool tls_upstream_uses_system(const struct tls_upstream *upstream);

/* Give back what tls_connect kept (tls_io.h), when nothing is open that would
 * use it. */
void tls_session_free(struct ssl_session_st **session);

/* For tls_io.c: the context, and what is said in one handshake. */
struct ssl_ctx_st *tls_upstream_context(const struct tls_upstream *upstream);
int tls_upstream_begin(const struct tls_upstream *upstream, struct ssl_st *ssl,
    const struct addr *peer, struct ssl_session_st *session) MUST_CHECK;

#endif
