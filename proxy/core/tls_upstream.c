/*
 * TLS towards peers: one context for each upstream, made at PREPARE.
 * Beside tls_site.c; the connections are tls_io.c's.
 * Keeps no session: that is the peer's, for each worker.
 */
#include "proxy/core/tls_upstream.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <string.h>

#include "proxy/core/tls_io.h"
#include "proxy/core/tls_parts.h"
#include "src/base/mem.h"

/* RFC 9110 section 4.3.4: the subject's common name is no host name. */
#define HOST_FLAGS                              \
	(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | \
	    X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)
/* How long a session may be taken up again; peers may say less. */
#define SESSION_S (4 * 3600)

struct tls_upstream {
	_Atomic unsigned refs;
	SSL_CTX *context;
	/* What must stand in their certificate: a name, or an address; both
	 * "": the peer's address. */
	char name[256];
	char ip[ADDR_TEXT_MAX];
	bool verifies, uses_system;
	uint8_t id[32]; /* of all that it is made of */
};

/* ---- what it is made of ---- */

static void
add_text(EVP_MD_CTX *hash, const char *text)
{
	/* With its NUL, so that no two lists look alike. */
	EVP_DigestUpdate(hash, text == NULL ? "" : text,
	    text == NULL ? 1 : strlen(text) + 1);
}

static void
add_certificate(EVP_MD_CTX *hash, const X509 *certificate)
{
	unsigned char of_one[EVP_MAX_MD_SIZE];
	unsigned len = 0;

	if (X509_digest(certificate, EVP_sha256(), of_one, &len) == 1)
		EVP_DigestUpdate(hash, of_one, len);
}

static void
add_roots(EVP_MD_CTX *hash, SSL_CTX *context)
{
	X509_STORE *store = SSL_CTX_get_cert_store(context);
	STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(store);

	for (int i = 0; i < sk_X509_OBJECT_num(all); i++) {
		const X509 *one =
		    X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));

		if (one != NULL)
			add_certificate(hash, one);
	}
}

static void
make_id(struct tls_upstream *upstream, const struct conf_upstream_tls *conf,
    const struct tls_pair *pair)
{
	EVP_MD_CTX *hash = EVP_MD_CTX_new();
	char rules[] = { (char)('0' + conf->verify),
		(char)('0' + conf->min_version),
		(char)('0' + upstream->uses_system), '\0' };

	EVP_DigestInit_ex(hash, EVP_sha256(), NULL);
	add_text(hash, conf->server_name);
	add_text(hash, conf->ciphers);
	add_text(hash, rules);
	if (pair->leaf != NULL)
		add_certificate(hash, pair->leaf);
	for (int i = 0; i < sk_X509_num(pair->chain); i++)
		add_certificate(hash, sk_X509_value(pair->chain, i));
	add_text(hash, "");
	add_roots(hash, upstream->context);
	EVP_DigestFinal_ex(hash, upstream->id, NULL);
	EVP_MD_CTX_free(hash);
}

/* ---- the context ---- */

/* What a file names is believed, be it a root or not. */
static int
read_roots(const struct tls_owner *owner, const char *path, SSL_CTX *context)
{
	STACK_OF(X509) *roots = tls_read_certificates(owner, "tls.ca", path);
	X509_STORE *store = SSL_CTX_get_cert_store(context);

	if (roots == NULL)
		return -1;
	for (int i = 0; i < sk_X509_num(roots); i++)
		X509_STORE_add_cert(store, sk_X509_value(roots, i));
	sk_X509_pop_free(roots, X509_free);
	X509_VERIFY_PARAM_set_flags(
	    SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
	return 0;
}

static int
set_roots(struct tls_upstream *upstream, const struct tls_owner *owner,
    const struct tls_upstream *other)
{
	const struct conf_upstream_tls *conf = &owner->upstream->tls;

	if (!conf->verify)
		return 0;
	SSL_CTX_set_verify(upstream->context, SSL_VERIFY_PEER, NULL);
	if (conf->ca != NULL)
		return read_roots(owner, conf->ca, upstream->context);
	upstream->uses_system = true;
	/* A store without roots believes nobody. */
	if (other != NULL)
		SSL_CTX_set1_cert_store(
		    upstream->context, SSL_CTX_get_cert_store(other->context));
	else
		SSL_CTX_set_default_verify_paths(upstream->context);
	ERR_clear_error();
	return 0;
}

/* Takes the newest; true: the reference is ours. */
static int
on_session(SSL *ssl, SSL_SESSION *session)
{
	SSL_SESSION **kept = tls_session_of(ssl);

	tls_session_free(kept);
	*kept = session;
	return 1;
}

static void
set_names(struct tls_upstream *upstream, const struct conf_upstream_tls *conf)
{
	struct addr addr;

	upstream->verifies = conf->verify;
	if (conf->server_name == NULL)
		return;
	if (addr_parse_host(str_of(conf->server_name), &addr) == 0)
		addr_format_host(&addr, upstream->ip);
	else if (strlen(conf->server_name) < sizeof(upstream->name))
		strcpy(upstream->name, conf->server_name);
}

static int
build(struct tls_upstream *upstream, const struct tls_owner *owner,
    const struct tls_upstream *other, struct tls_pair *pair)
{
	static const unsigned char http1[] = "\x08http/1.1";
	const struct conf_upstream_tls *conf = &owner->upstream->tls;
	SSL_CTX *context = tls_new_context(true);

	upstream->context = context;
	SSL_CTX_set_alpn_protos(context, http1, sizeof(http1) - 1);
	SSL_CTX_set_session_cache_mode(
	    context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(context, on_session);
	SSL_CTX_set_timeout(context, SESSION_S);
	if (conf->min_version == CONF_TLS_1_3)
		SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
	set_names(upstream, conf);
	if (tls_set_ciphers(owner, context, conf->ciphers) == -1 ||
	    set_roots(upstream, owner, other) == -1)
		return -1;
	if (conf->certificate != NULL &&
	    (tls_read_pair(owner, conf->certificate, conf->key, pair) == -1 ||
		tls_use_pair(owner, context, pair, conf->certificate) == -1))
		return -1;
	make_id(upstream, conf, pair);
	return 0;
}

struct tls_upstream *
tls_upstream_new(const struct conf *conf,
    const struct conf_upstream *conf_upstream, const struct tls_files *files,
    const struct tls_upstream *other, struct conf_errors *errors)
{
	struct tls_owner owner = { conf, NULL, conf_upstream, files, errors };
	struct tls_upstream *upstream = mem_alloc(sizeof(*upstream));
	struct tls_pair pair = { NULL, NULL, NULL };

	atomic_init(&upstream->refs, 1);
	ERR_clear_error();
	if (build(upstream, &owner, other, &pair) == -1)
		tls_upstream_unref(&upstream);
	tls_free_pair(&pair);
	return upstream;
}

struct tls_upstream *
tls_upstream_ref(struct tls_upstream *upstream)
{
	atomic_fetch_add(&upstream->refs, 1);
	return upstream;
}

void
tls_upstream_unref(struct tls_upstream **upstream_ptr)
{
	struct tls_upstream *upstream = *upstream_ptr;

	*upstream_ptr = NULL;
	if (upstream == NULL || atomic_fetch_sub(&upstream->refs, 1) != 1)
		return;
	SSL_CTX_free(upstream->context);
	mem_free(upstream);
}

bool
tls_upstream_eq(const struct tls_upstream *a, const struct tls_upstream *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return memcmp(a->id, b->id, sizeof(a->id)) == 0;
}

bool
tls_upstream_uses_system(const struct tls_upstream *upstream)
{
	return upstream->uses_system;
}

/* ---- in handshakes ---- */

void
tls_session_free(struct ssl_session_st **session)
{
	SSL_SESSION_free(*session);
	*session = NULL;
}

struct ssl_ctx_st *
tls_upstream_context(const struct tls_upstream *upstream)
{
	return upstream->context;
}

static int
expect_address(const struct tls_upstream *upstream, X509_VERIFY_PARAM *param,
    const struct addr *peer)
{
	char text[ADDR_TEXT_MAX];

	if (upstream->ip[0] != '\0')
		return X509_VERIFY_PARAM_set1_ip_asc(param, upstream->ip);
	addr_format_host(peer, text);
	return X509_VERIFY_PARAM_set1_ip_asc(param, text);
}

/* RFC 6066 section 3: an address is never asked for by name. */
int
tls_upstream_begin(const struct tls_upstream *upstream, SSL *ssl,
    const struct addr *peer, SSL_SESSION *session)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
	int result = 1;

	if (upstream->name[0] != '\0' &&
	    SSL_set_tlsext_host_name(ssl, upstream->name) != 1)
		result = 0;
	X509_VERIFY_PARAM_set_hostflags(param, HOST_FLAGS);
	if (upstream->verifies && upstream->name[0] != '\0')
		result &= X509_VERIFY_PARAM_set1_host(param, upstream->name, 0);
	else if (upstream->verifies)
		result &= expect_address(upstream, param, peer);
	if (session != NULL)
		result &= SSL_set_session(ssl, session);
	return result == 1 ? 0 : -1;
}
