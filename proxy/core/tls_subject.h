/*
 * The subject of a client's certificate as apps are told it. Any thread.
 */
#ifndef CORE_TLS_SUBJECT_H
#define CORE_TLS_SUBJECT_H

#include <stddef.h>

#include "src/base/compiler.h"

#define TLS_SUBJECT_MAX 1024 /* with its NUL */

struct x509_st;
struct x509_store_ctx_st;

/* RFC 2253, other bytes than printable ASCII escaped. -1, and "", when there is
 * no room for it: a part of it, or nothing, could be somebody else's. */
int tls_subject_put(
    const struct x509_st *certificate, char *to, size_t size) MUST_CHECK;

/* OpenSSL's callback of that name (SSL_CTX_set_verify): no client whose subject
 * cannot be told comes in; the error is X509_V_ERR_APPLICATION_VERIFICATION. */
int tls_subject_on_verify(int ok, struct x509_store_ctx_st *store);

#endif
