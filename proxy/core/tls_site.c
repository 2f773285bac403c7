/*
 * A site's certificates and rules as OpenSSL contexts: one for each different
 * set of certificates that its names need, mostly one in all.
 * Made at PREPARE; the handshakes themselves are tls_worker.c's.
 */
#include "proxy/core/tls_site.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "proxy/core/tls_names.h"
#include "proxy/core/tls_parts.h"
#include "proxy/core/tls_subject.h"
#include "proxy/core/tls_worker.h"
#include "src/base/hash.h"
#include "src/base/mem.h"

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
	struct tls_owner owner;
	struct tls_site *to;
	unsigned n;
	struct tls_pair pairs[CONF_CERTIFICATES_MAX];
	int kinds[CONF_CERTIFICATES_MAX];
};

/* ---- the context ---- */

static int
set_client_rule(const struct making *making, SSL_CTX *context)
{
	const struct conf_site_tls *tls = &making->owner.site->tls;
	STACK_OF(X509) * roots;
	X509_STORE *store = SSL_CTX_get_cert_store(context);
	int mode = SSL_VERIFY_PEER;

	if (tls->client_ca == NULL)
		return 0;
	roots = tls_read_certificates(
	    &making->owner, "tls.client_certificate.ca", tls->client_ca);
	if (roots == NULL)
		return -1;
	for (int i = 0; i < sk_X509_num(roots); i++) {
		X509_STORE_add_cert(store, sk_X509_value(roots, i));
		SSL_CTX_add_client_CA(context, sk_X509_value(roots, i));
	}
	sk_X509_pop_free(roots, X509_free);
	if (tls->client_verify == CONF_VERIFY_REQUIRED)
		mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	SSL_CTX_set_verify(context, mode, tls_subject_on_verify);
	return 0;
}

static int
use_certificates(const struct making *making, SSL_CTX *context, uint64_t set)
{
	const char **paths = making->owner.site->tls.certificates;

	for (unsigned i = 0; i < making->n; i++)
		if ((set & UINT64_C(1) << i) != 0 &&
		    tls_use_pair(&making->owner, context, &making->pairs[i],
			paths[i]) == -1)
			return -1;
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
	if (tls_set_ciphers(&making->owner, context,
		making->owner.site->tls.ciphers) == -1 ||
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
	const struct conf_site_tls *tls = &making->owner.site->tls;
	EVP_MD_CTX *hash = EVP_MD_CTX_new();
	struct str roots = STR("");
	char rule = (char)('0' + tls->client_verify);

	EVP_DigestInit_ex(hash, EVP_sha256(), NULL);
	for (const char **name = making->owner.site->names; *name != NULL;
	     name++)
		add_text(hash, *name);
	add_text(hash, "");
	EVP_DigestUpdate(hash, &rule, 1);
	if (tls->client_ca != NULL &&
	    tls_files_get(making->owner.files, tls->client_ca, &roots))
		EVP_DigestUpdate(hash, roots.ptr, roots.len);
	EVP_DigestFinal_ex(hash, making->to->id, NULL);
	EVP_MD_CTX_free(hash);
}

static uint64_t
for_name(const struct making *making, const char *name)
{
	uint64_t set = 0;

	for (unsigned i = 0; i < making->n; i++)
		if (X509_check_host(making->pairs[i].leaf, name, strlen(name),
			0, NULL) == 1)
			set |= UINT64_C(1) << i;
	return set;
}

/* One of "*.example.com" stands for all of its kind. */
static bool
covers(X509 *leaf, const char *name)
{
	char text[300];

	snprintf(text, sizeof(text), "%s%s", name[0] == '*' ? "any" : "",
	    name[0] == '*' ? name + 1 : name);
	if (X509_check_host(leaf, text, strlen(text), 0, NULL) == 1)
		return true;
	if (text[0] == '[') { /* an IPv6 address */
		text[strlen(text) - 1] = '\0';
		return X509_check_ip_asc(leaf, text + 1, 0) == 1;
	}
	return X509_check_ip_asc(leaf, text, 0) == 1;
}

static void
look_at_names(const struct making *making)
{
	const struct conf_site *site = making->owner.site;

	for (const char **name = site->names; *name != NULL; name++) {
		char what[300];
		unsigned i = 0;

		while (i < making->n && !covers(making->pairs[i].leaf, *name))
			i++;
		if (i < making->n)
			continue;
		snprintf(what, sizeof(what), "is not for the name %s", *name);
		tls_warn(&making->owner, "tls.certificate",
		    site->tls.certificates[0], what);
	}
}

static int
build(struct making *making)
{
	struct tls_site *site = making->to;
	const struct conf_site_tls *tls = &making->owner.site->tls;

	make_id(making);
	for (unsigned i = 0; tls->certificates[i] != NULL; i++) {
		struct tls_pair *pair = &making->pairs[making->n++];

		if (tls_read_pair(&making->owner, tls->certificates[i],
			tls->keys[i], pair) == -1)
			return -1;
		making->kinds[i] = EVP_PKEY_get_base_id(pair->key);
	}
	look_at_names(making);
	/* The first one is for clients that name no host. */
	if (get_context(
		making, tls_names_choose(making->kinds, making->n, 0)) == NULL)
		return -1;
	site->map = hash_map_new();
	for (const char **name = making->owner.site->names; *name != NULL;
	     name++) {
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
	making->owner =
	    (struct tls_owner){ conf, conf_site, NULL, files, errors };
	making->to = site;
	ERR_clear_error();
	if (build(making) == -1)
		tls_site_free(&site);
	for (unsigned i = 0; i < making->n; i++)
		tls_free_pair(&making->pairs[i]);
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
