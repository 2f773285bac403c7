/*
 * A site's certificates and rules as OpenSSL contexts: one for each different
 * set of certificates that its names need, mostly one in all.
 * Made at PREPARE; the handshakes themselves are tls_worker.c's.
 */
#include "proxy/core/tls_site.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "proxy/core/tls_names.h"
#include "proxy/core/tls_worker.h"
#include "src/base/hash.h"
#include "src/base/mem.h"
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

struct certificate {
	X509 *leaf;
	STACK_OF(X509) * chain;
	EVP_PKEY *key;
};

struct tls_site {
	const struct conf_site *conf; /* as long as its snapshot */
	uint8_t id[TLS_SITE_ID_BYTES];
	unsigned n_contexts;
	SSL_CTX **contexts;
	uint64_t *sets;       /* which certificates are in contexts[i] */
	struct hash_map *map; /* name -> SSL_CTX; NULL: there is only one */
};

/* While one is made. */
struct making {
	const struct conf *conf;
	const struct conf_site *site;
	const struct tls_files *files;
	struct conf_errors *errors;
	struct tls_site *to;
	unsigned n;
	struct certificate certificates[CONF_CERTIFICATES_MAX];
	int kinds[CONF_CERTIFICATES_MAX];
};

/* ---- findings ---- */

static int
refuse(const struct making *making, const char *key, const char *path,
    const char *what)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);

	ERR_clear_error();
	return conf_errors_add_site(making->errors, making->conf, making->site,
	    key, "%s: %s%s%s", path, what, reason == NULL ? "" : ": ",
	    reason == NULL ? "" : reason);
}

static int
open_file(
    const struct making *making, const char *key, const char *path, BIO **bio)
{
	struct str text;

	if (!tls_files_get(making->files, path, &text))
		return refuse(making, key, path, "the file did not come");
	*bio = BIO_new_mem_buf(text.ptr, (int)text.len);
	return *bio == NULL ? refuse(making, key, path, "no memory") : 0;
}

/* ---- certificates and keys ---- */

/* All certificates of a file, in their order. */
static STACK_OF(X509) * read_certificates(const struct making *making,
			    const char *key, const char *path)
{
	STACK_OF(X509) * all;
	X509 *one;
	BIO *bio;

	if (open_file(making, key, path, &bio) == -1)
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
	refuse(making, key, path, "is no PEM file of certificates");
	sk_X509_pop_free(all, X509_free);
	return NULL;
}

static int
no_pass_phrase(char *to, int room, int is_writing, void *arg)
{
	return 0;
}

static int
read_key(const struct making *making, const char *path, EVP_PKEY **key)
{
	BIO *bio;

	if (open_file(making, "tls.key", path, &bio) == -1)
		return -1;
	*key = PEM_read_bio_PrivateKey(bio, NULL, no_pass_phrase, NULL);
	BIO_free(bio);
	return *key != NULL ? 0
			    : refuse(making, "tls.key", path,
				  "is no PEM file of a private key without "
				  "pass phrase");
}

static int
read_pair(struct making *making, const char *path, const char *key_path)
{
	struct certificate *one = &making->certificates[making->n++];
	char what[1200];

	one->chain = read_certificates(making, "tls.certificate", path);
	if (one->chain == NULL)
		return -1;
	one->leaf = sk_X509_shift(one->chain);
	if (read_key(making, key_path, &one->key) == -1)
		return -1;
	making->kinds[making->n - 1] = EVP_PKEY_get_base_id(one->key);
	if (X509_check_private_key(one->leaf, one->key) == 1)
		return 0;
	ERR_clear_error();
	snprintf(what, sizeof(what),
	    "is not the key of the certificate %.1000s", path);
	return refuse(making, "tls.key", key_path, what);
}

static void
free_certificates(struct making *making)
{
	for (unsigned i = 0; i < making->n; i++) {
		X509_free(making->certificates[i].leaf);
		sk_X509_pop_free(making->certificates[i].chain, X509_free);
		EVP_PKEY_free(making->certificates[i].key);
	}
}

/* ---- the context ---- */

/* Names that begin with TLS_ are those of TLS 1.3 (OpenSSL has two lists). */
static int
set_ciphers(const struct making *making, SSL_CTX *context)
{
	const char *text = making->site->tls.ciphers;
	struct strbuf old = STRBUF_EMPTY, now = STRBUF_EMPTY;
	struct str rest, part;
	int result = 0;

	if (text == NULL)
		return SSL_CTX_set_cipher_list(context, CIPHERS) == 1 &&
			       SSL_CTX_set_ciphersuites(context, CIPHERS_1_3) ==
				   1
			   ? 0
			   : refuse(making, "tls", "ciphers", "refused");
	rest = str_of(text);
	while (str_split(&rest, ':', &part)) {
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
		result = refuse(making, "tls.ciphers", text,
		    "is no list of ciphers that OpenSSL knows");
	strbuf_free(&old);
	strbuf_free(&now);
	return result;
}

static int
set_client_rule(const struct making *making, SSL_CTX *context)
{
	const struct conf_site_tls *tls = &making->site->tls;
	STACK_OF(X509) * roots;
	X509_STORE *store = SSL_CTX_get_cert_store(context);
	int mode = SSL_VERIFY_PEER;

	if (tls->client_ca == NULL)
		return 0;
	roots = read_certificates(
	    making, "tls.client_certificate.ca", tls->client_ca);
	if (roots == NULL)
		return -1;
	for (int i = 0; i < sk_X509_num(roots); i++) {
		X509_STORE_add_cert(store, sk_X509_value(roots, i));
		SSL_CTX_add_client_CA(context, sk_X509_value(roots, i));
	}
	sk_X509_pop_free(roots, X509_free);
	if (tls->client_verify == CONF_VERIFY_REQUIRED)
		mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	SSL_CTX_set_verify(context, mode, NULL);
	return 0;
}

static int
use_certificates(const struct making *making, SSL_CTX *context, uint64_t set)
{
	for (unsigned i = 0; i < making->n; i++) {
		const struct certificate *one = &making->certificates[i];

		if ((set & UINT64_C(1) << i) != 0 &&
		    SSL_CTX_use_cert_and_key(
			context, one->leaf, one->key, one->chain, 1) != 1)
			return refuse(making, "tls.certificate",
			    making->site->tls.certificates[i],
			    "cannot be used");
	}
	return 0;
}

/* The context for this set of certificates, made at first use; NULL with a
 * finding. */
static SSL_CTX *
get_context(struct making *making, uint64_t set)
{
	struct tls_site *site = making->to;
	SSL_CTX *context;

	for (unsigned i = 0; i < site->n_contexts; i++)
		if (site->sets[i] == set)
			return site->contexts[i];
	context = tls_worker_new_context();
	site->contexts = mem_realloc(
	    site->contexts, site->n_contexts + 1, sizeof(*site->contexts));
	site->sets =
	    mem_realloc(site->sets, site->n_contexts + 1, sizeof(*site->sets));
	site->contexts[site->n_contexts] = context;
	site->sets[site->n_contexts++] = set;
	SSL_CTX_set_session_id_context(context, site->id, sizeof(site->id));
	if (set_ciphers(making, context) == -1 ||
	    set_client_rule(making, context) == -1 ||
	    use_certificates(making, context, set) == -1)
		return NULL;
	return context;
}

/* ---- the site ---- */

static void
add_text(EVP_MD_CTX *hash, const char *text)
{
	/* With its NUL, so that no two lists look alike. */
	EVP_DigestUpdate(hash, text, strlen(text) + 1);
}

/* A session of one site must not be taken up at another, nor after the rule
 * about client certificates has changed. */
static void
make_id(const struct making *making)
{
	const struct conf_site_tls *tls = &making->site->tls;
	EVP_MD_CTX *hash = EVP_MD_CTX_new();
	struct str roots = STR("");
	char rule = (char)('0' + tls->client_verify);

	EVP_DigestInit_ex(hash, EVP_sha256(), NULL);
	for (const char **name = making->site->names; *name != NULL; name++)
		add_text(hash, *name);
	add_text(hash, "");
	EVP_DigestUpdate(hash, &rule, 1);
	if (tls->client_ca != NULL &&
	    tls_files_get(making->files, tls->client_ca, &roots))
		EVP_DigestUpdate(hash, roots.ptr, roots.len);
	EVP_DigestFinal_ex(hash, making->to->id, NULL);
	EVP_MD_CTX_free(hash);
}

static uint64_t
for_name(const struct making *making, const char *name)
{
	uint64_t set = 0;

	for (unsigned i = 0; i < making->n; i++)
		if (X509_check_host(making->certificates[i].leaf, name,
			strlen(name), 0, NULL) == 1)
			set |= UINT64_C(1) << i;
	return set;
}

static int
build(struct making *making)
{
	struct tls_site *site = making->to;
	const struct conf_site_tls *tls = &making->site->tls;

	make_id(making);
	for (unsigned i = 0; tls->certificates[i] != NULL; i++)
		if (read_pair(making, tls->certificates[i], tls->keys[i]) == -1)
			return -1;
	/* The first one is for clients that name no host. */
	if (get_context(
		making, tls_names_choose(making->kinds, making->n, 0)) == NULL)
		return -1;
	site->map = hash_map_new();
	for (const char **name = making->site->names; *name != NULL; name++) {
		SSL_CTX *context = get_context(
		    making, tls_names_choose(making->kinds, making->n,
				for_name(making, *name)));

		if (context == NULL)
			return -1;
		(void)!hash_map_add(site->map, str_of(*name), context);
	}
	if (site->n_contexts == 1) {
		hash_map_free(site->map);
		site->map = NULL;
	}
	return 0;
}

struct tls_site *
tls_site_new(const struct conf *conf, const struct conf_site *conf_site,
    const struct tls_files *files, struct conf_errors *errors)
{
	struct making *making = mem_alloc(sizeof(*making));
	struct tls_site *site = mem_alloc(sizeof(*site));

	site->conf = conf_site;
	making->conf = conf;
	making->site = conf_site;
	making->files = files;
	making->errors = errors;
	making->to = site;
	ERR_clear_error();
	if (build(making) == -1)
		tls_site_free(&site);
	free_certificates(making);
	mem_free(making);
	return site;
}

void
tls_site_free(struct tls_site **site_ptr)
{
	struct tls_site *site = *site_ptr;

	if (site == NULL)
		return;
	*site_ptr = NULL;
	for (unsigned i = 0; i < site->n_contexts; i++)
		SSL_CTX_free(site->contexts[i]);
	hash_map_free(site->map);
	mem_free(site->contexts);
	mem_free(site->sets);
	mem_free(site);
}

/* ---- used in handshakes ---- */

const struct conf_site_tls *
tls_site_conf(const struct tls_site *site)
{
	return &site->conf->tls;
}

const uint8_t *
tls_site_id(const struct tls_site *site)
{
	return site->id;
}

bool
tls_site_offers_h2(const struct tls_site *site)
{
	return site->conf->http2;
}

struct ssl_ctx_st *
tls_site_context(const struct tls_site *site, struct str name)
{
	char pattern[TLS_NAME_MAX + 3];
	SSL_CTX *context = NULL;

	if (site->map == NULL)
		return site->contexts[0];
	context = hash_map_get(site->map, name);
	/* "*.example.com" from the longest on. */
	while (context == NULL && name.len > 0) {
		const char *dot = memchr(name.ptr, '.', name.len);
		size_t rest;

		if (dot == NULL)
			break;
		rest = name.len - (size_t)(dot - name.ptr);
		pattern[0] = '*';
		memcpy(pattern + 1, dot, rest);
		context =
		    hash_map_get(site->map, (struct str){ pattern, rest + 1 });
		name = (struct str){ dot + 1, rest - 1 };
	}
	return context == NULL ? site->contexts[0] : context;
}
