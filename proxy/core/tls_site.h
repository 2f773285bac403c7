/*
 * What handshakes of one site use: certificates, versions, ciphers, the rule
 * about client certificates. Made by snapshot.c in the main thread, then
 * immutable and shared by the workers.
 */
#ifndef CORE_TLS_SITE_H
#define CORE_TLS_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include "proxy/core/tls_files.h"
#include "src/base/compiler.h"
#include "src/base/str.h"
#include "src/conf/conf.h"

struct ssl_ctx_st;
struct tls_site; /* opaque */

/* Says who a site is and what it asks of clients; the same over reloads, and on
 * every machine with the same configuration. */
#define TLS_SITE_ID_BYTES 32

/* NULL with a finding that names the file. Certificates that do not fit the
 * site's names, or the time, are warnings. */
struct tls_site *tls_site_new(const struct conf *conf,
    const struct conf_site *site, const struct tls_files *files,
    struct conf_errors *errors) MUST_CHECK;
/* Connections keep what they use of it. */
void tls_site_free(struct tls_site **site);

const struct conf_site_tls *tls_site_conf(const struct tls_site *site);
const uint8_t *tls_site_id(const struct tls_site *site);
/* May "h2" be agreed on? */
bool tls_site_offers_h2(const struct tls_site *site);
/* For tls_worker.c: the certificates for a name that a client asked for (lower
 * case; empty: none). */
struct ssl_ctx_st *tls_site_context(
    const struct tls_site *site, struct str name);

#endif
