/*
 * What contexts are made of, for sites and upstreams alike: certificates and
 * keys from the files that the supervisor sent, ciphers, roots. Every failure
 * is a finding that names the key and the file. Main thread, at PREPARE.
 */
#ifndef CORE_TLS_PARTS_H
#define CORE_TLS_PARTS_H

#include "proxy/core/tls_files.h"
#include "src/base/compiler.h"
#include "src/conf/conf.h"

struct evp_pkey_st;
struct ssl_ctx_st;
struct stack_st_X509;
struct x509_st;

/* Whose parts they are: a site's or an upstream's, the other is NULL. */
struct tls_owner {
	const struct conf *conf;
	const struct conf_site *site;
	const struct conf_upstream *upstream;
	const struct tls_files *files;
	struct conf_errors *errors;
};

struct tls_pair {
	struct x509_st *leaf;
	struct stack_st_X509 *chain; /* those above it */
	struct evp_pkey_st *key;
};

/* "sites[0].tls.key: PATH: WHAT: what OpenSSL says". Always -1. */
int tls_refuse(const struct tls_owner *owner, const char *key, const char *path,
    const char *what);

/* The same as a warning: it works, but not for all or not for long. */
void tls_warn(const struct tls_owner *owner, const char *key, const char *path,
    const char *what);

/* All certificates of a file, in their order; the caller frees them. */
struct stack_st_X509 *tls_read_certificates(const struct tls_owner *owner,
    const char *key, const char *path) MUST_CHECK;
/* Keys `tls.certificate` and `tls.key`. What was read is in `pair` in any case,
 * for tls_free_pair. A certificate that is not in force, or soon will not be,
 * is a warning, and so is one that the next in the file has not signed. */
int tls_read_pair(const struct tls_owner *owner, const char *path,
    const char *key_path, struct tls_pair *pair) MUST_CHECK;
void tls_free_pair(struct tls_pair *pair);

/* A context for clients (of upstreams) or servers, with all that no
 * configuration changes; the process ends when there is none. Any thread. */
struct ssl_ctx_st *tls_new_context(bool is_client) MUST_CHECK;
int tls_use_pair(const struct tls_owner *owner, struct ssl_ctx_st *context,
    const struct tls_pair *pair, const char *path) MUST_CHECK;
/* Key `tls.ciphers`; `text` NULL: ours. */
int tls_set_ciphers(const struct tls_owner *owner, struct ssl_ctx_st *context,
    const char *text) MUST_CHECK;

#endif
