/*
 * Certificates, keys and ciphers from their texts, and what all contexts have
 * in common. Below tls_site.c and tls_upstream.c.
 * Opens no file and makes no connection.
 */
#include "proxy/core/tls_parts.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/log.h"
#include "src/base/strbuf.h"

/* The intermediate set of Mozilla's recommendations, without finite-field
 * groups: forward secrecy and authenticated encryption alone. */
#define CIPHERS                                                      \
	"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:" \
	"ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:" \
	"ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define CIPHERS_1_3                                      \
	"TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:" \
	"TLS_CHACHA20_POLY1305_SHA256"
#define GROUPS "X25519:P-256:P-384"
/* Who renews by hand should hear of it in time. */
#define SOON_DAYS 14

/* ---- findings ---- */

int
tls_refuse(const struct tls_owner *owner, const char *key, const char *path,
    const char *what)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);
	struct conf_place place;

	ERR_clear_error();
	if (owner->site != NULL)
		conf_place_site(&place, owner->conf, owner->site, NULL, key);
	else
		conf_place_upstream(&place, owner->conf, owner->upstream, key);
	return conf_errors_add(owner->errors, &place.where, place.path,
	    "%s: %s%s%s", path, what, reason == NULL ? "" : ": ",
	    reason == NULL ? "" : reason);
}

void
tls_warn(const struct tls_owner *owner, const char *key, const char *path,
    const char *what)
{
	struct conf_place place;

	if (owner->site != NULL)
		conf_place_site(&place, owner->conf, owner->site, NULL, key);
	else
		conf_place_upstream(&place, owner->conf, owner->upstream, key);
	conf_errors_warn(
	    owner->errors, &place.where, place.path, "%s: %s", path, what);
}

/* ---- certificates and keys ---- */

static int
open_file(
    const struct tls_owner *owner, const char *key, const char *path, BIO **bio)
{
	struct str text;

	if (!tls_files_get(owner->files, path, &text))
		return tls_refuse(owner, key, path, "the file did not come");
	*bio = BIO_new_mem_buf(text.ptr, (int)text.len);
	return *bio == NULL ? tls_refuse(owner, key, path, "no memory") : 0;
}

STACK_OF(X509) * tls_read_certificates(const struct tls_owner *owner,
		     const char *key, const char *path)
{
	STACK_OF(X509) * all;
	X509 *one;
	BIO *bio;

	if (open_file(owner, key, path, &bio) == -1)
		return NULL;
	all = sk_X509_new_null();
	while ((one = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL)
		sk_X509_push(all, one);
	BIO_free(bio);
	/* "No start line" is the end of the file. */
	if (sk_X509_num(all) > 0 &&
	    ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE) {
		ERR_clear_error();
		return all;
	}
	tls_refuse(owner, key, path, "is no PEM file of certificates");
	sk_X509_pop_free(all, X509_free);
	return NULL;
}

static int
no_pass_phrase(char *to, int room, int is_writing, void *arg)
{
	bool *is_asked = arg;

	*is_asked = true;
	return 0;
}

static int
read_key(const struct tls_owner *owner, const char *path, EVP_PKEY **key)
{
	bool is_asked = false;
	BIO *bio;

	if (open_file(owner, "tls.key", path, &bio) == -1)
		return -1;
	*key = PEM_read_bio_PrivateKey(bio, NULL, no_pass_phrase, &is_asked);
	BIO_free(bio);
	if (*key != NULL)
		return 0;
	if (!is_asked)
		return tls_refuse(
		    owner, "tls.key", path, "is no PEM file of a private key");
	/* What OpenSSL says of it is about the cipher. */
	ERR_clear_error();
	return tls_refuse(owner, "tls.key", path,
	    "has a pass phrase; scalwsd takes keys without one");
}

/* "expires in 5 days, on 2027-03-01: CN=example.com" */
static void
warn_of_date(const struct tls_owner *owner, const char *path, const X509 *leaf,
    const char *what, const ASN1_TIME *time)
{
	char text[512], date[16] = "?", subject[256] = "";
	BIO *bio = BIO_new(BIO_s_mem());
	struct tm when;

	if (ASN1_TIME_to_tm(time, &when) == 1)
		strftime(date, sizeof(date), "%F", &when);
	/* What is not printable is escaped. */
	if (bio != NULL && X509_NAME_print_ex(bio, X509_get_subject_name(leaf),
			       0, XN_FLAG_RFC2253) > 0)
		BIO_read(bio, subject, sizeof(subject) - 1);
	BIO_free(bio);
	snprintf(text, sizeof(text), "%s, on %s: %s", what, date,
	    subject[0] == '\0' ? "no subject" : subject);
	tls_warn(owner, "tls.certificate", path, text);
}

static void
look_at_dates(const struct tls_owner *owner, const char *path, const X509 *leaf)
{
	const ASN1_TIME *from = X509_get0_notBefore(leaf);
	const ASN1_TIME *until = X509_get0_notAfter(leaf);
	int days = 0, seconds = 0;
	char what[64];

	if (X509_cmp_current_time(from) > 0) {
		warn_of_date(owner, path, leaf, "is not in force yet", from);
		return;
	}
	if (ASN1_TIME_diff(&days, &seconds, NULL, until) != 1)
		return;
	if (days < 0 || seconds < 0) {
		warn_of_date(owner, path, leaf, "has expired", until);
	} else if (days < SOON_DAYS) {
		snprintf(what, sizeof(what), "expires in %d days", days);
		warn_of_date(owner, path, leaf, what, until);
	}
}

static bool
is_signed_by(X509 *one, X509 *next)
{
	bool is = X509_check_issued(next, one) == X509_V_OK &&
		  X509_verify(one, X509_get0_pubkey(next)) == 1;

	ERR_clear_error();
	return is;
}

/* Many clients take what they get in its order. */
static void
look_at_chain(const struct tls_owner *owner, const char *path,
    const struct tls_pair *pair)
{
	X509 *one = pair->leaf, *next;
	char what[128];

	for (int i = 0; i < sk_X509_num(pair->chain); i++, one = next) {
		next = sk_X509_value(pair->chain, i);
		if (is_signed_by(one, next))
			continue;
		snprintf(what, sizeof(what),
		    "certificate %d is not signed by the next: clients may "
		    "not find the way to the root",
		    i + 1);
		tls_warn(owner, "tls.certificate", path, what);
		return;
	}
}

static int
refuse_pair(const struct tls_owner *owner, const char *path,
    const char *key_path, const struct tls_pair *pair)
{
	char what[1200];
	int at = 0, n = sk_X509_num(pair->chain);

	while (at < n && X509_check_private_key(
			     sk_X509_value(pair->chain, at), pair->key) != 1)
		at++;
	ERR_clear_error();
	if (at < n) {
		snprintf(what, sizeof(what),
		    "certificate %d, which belongs to the key %.1000s, must "
		    "come first",
		    at + 2, key_path);
		return tls_refuse(owner, "tls.certificate", path, what);
	}
	snprintf(what, sizeof(what),
	    "is not the key of the certificate %.1000s", path);
	return tls_refuse(owner, "tls.key", key_path, what);
}

int
tls_read_pair(const struct tls_owner *owner, const char *path,
    const char *key_path, struct tls_pair *pair)
{
	pair->chain = tls_read_certificates(owner, "tls.certificate", path);
	if (pair->chain == NULL)
		return -1;
	pair->leaf = sk_X509_shift(pair->chain);
	if (read_key(owner, key_path, &pair->key) == -1)
		return -1;
	if (X509_check_private_key(pair->leaf, pair->key) != 1)
		return refuse_pair(owner, path, key_path, pair);
	look_at_dates(owner, path, pair->leaf);
	look_at_chain(owner, path, pair);
	return 0;
}

void
tls_free_pair(struct tls_pair *pair)
{
	X509_free(pair->leaf);
	sk_X509_pop_free(pair->chain, X509_free);
	EVP_PKEY_free(pair->key);
}

/* ---- contexts ---- */

SSL_CTX *
tls_new_context(bool is_client)
{
	SSL_CTX *context =
	    SSL_CTX_new(is_client ? TLS_client_method() : TLS_server_method());

	if (context == NULL) {
		log_error("OpenSSL: no context: %s",
		    ERR_reason_error_string(ERR_peek_last_error()));
		abort();
	}
	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_options(
	    context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS |
				      SSL_MODE_ENABLE_PARTIAL_WRITE |
				      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_read_ahead(context, 1);
	SSL_CTX_set1_groups_list(context, GROUPS);
	return context;
}

int
tls_use_pair(const struct tls_owner *owner, SSL_CTX *context,
    const struct tls_pair *pair, const char *path)
{
	if (SSL_CTX_use_cert_and_key(
		context, pair->leaf, pair->key, pair->chain, 1) == 1)
		return 0;
	return tls_refuse(owner, "tls.certificate", path, "cannot be used");
}

/* Names that begin with TLS_ are those of TLS 1.3 (OpenSSL has two lists). */
int
tls_set_ciphers(
    const struct tls_owner *owner, SSL_CTX *context, const char *text)
{
	struct strbuf old = STRBUF_EMPTY, now = STRBUF_EMPTY;
	struct str rest = str_of(text == NULL ? "" : text), part;
	int result = 0;

	while (text != NULL && str_split(&rest, ':', &part)) {
		struct strbuf *to =
		    str_starts_with(part, STR("TLS_")) ? &now : &old;

		strbuf_add_text(to, to->len == 0 ? "" : ":");
		strbuf_add(to, part.ptr, part.len);
	}
	/* What is not named keeps our own choice. */
	if (SSL_CTX_set_cipher_list(
		context, old.len == 0 ? CIPHERS : old.ptr) != 1 ||
	    SSL_CTX_set_ciphersuites(
		context, now.len == 0 ? CIPHERS_1_3 : now.ptr) != 1)
		result = tls_refuse(owner, "tls.ciphers",
		    text == NULL ? "ours" : text,
		    "is no list of ciphers that OpenSSL knows");
	strbuf_free(&old);
	strbuf_free(&now);
	return result;
}
