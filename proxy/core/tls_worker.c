/*
 * TLS of one worker: contexts, tickets, the choice of a site in a handshake,
 * and whose turn it is. Made by proxy.c; connections are tls_io.c's.
 */
#include "proxy/core/tls_worker.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/core/tls_io.h"
#include "proxy/core/tls_names.h"
#include "proxy/core/tls_parts.h"
#include "src/base/log.h"
#include "src/base/mem.h"

/* Beyond it a ticket is as good as none. */
#define SESSION_S (12 * 3600)

/* ---- contexts ---- */

static int
choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *len,
    const unsigned char *offered, unsigned offered_len, void *arg)
{
	static const unsigned char both[] = "\x02h2\x08http/1.1";
	const unsigned char *ours = both;
	unsigned ours_len = sizeof(both) - 1;
	unsigned char *found;

	if (!tls_offers_h2(ssl)) {
		ours += 3;
		ours_len -= 3;
	}
	/* RFC 7301 section 3.2: no common one is fatal. */
	if (SSL_select_next_proto(&found, len, ours, ours_len, offered,
		offered_len) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*chosen = found;
	return SSL_TLSEXT_ERR_OK;
}

SSL_CTX *
tls_worker_new_context(void)
{
	SSL_CTX *context = tls_new_context(false);

	SSL_CTX_set_options(context,
	    SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
	/* Tickets alone: a cache of sessions would be one of this process. */
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_timeout(context, SESSION_S);
	SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
	return context;
}

/* ---- the name that a client asks for ---- */

/* What follows the site's own rule; the rest is in its context. */
static void
take_site(SSL *ssl, const struct tls_site *site, struct str name)
{
	SSL_CTX *context = tls_site_context(site, name);

	SSL_set_SSL_CTX(ssl, context);
	SSL_set_verify(ssl, SSL_CTX_get_verify_mode(context),
	    SSL_CTX_get_verify_callback(context));
	if (tls_site_conf(site)->min_version == CONF_TLS_1_3)
		SSL_set_min_proto_version(ssl, TLS1_3_VERSION);
}

/* Before anything else is decided, so that versions and client certificates can
 * still be the site's. */
static int
on_client_hello(SSL *ssl, int *alert, void *arg)
{
	const struct tls_site *site;
	const unsigned char *bytes;
	char text[TLS_NAME_MAX + 1];
	struct str name = STR("");
	size_t len;

	if (SSL_client_hello_get0_ext(
		ssl, TLSEXT_TYPE_server_name, &bytes, &len) == 1 &&
	    tls_names_parse(bytes, len, text, &name) == -1) {
		*alert = SSL_AD_DECODE_ERROR;
		return SSL_CLIENT_HELLO_ERROR;
	}
	site = tls_chosen(ssl, name);
	if (site == NULL) {
		*alert = SSL_AD_UNRECOGNIZED_NAME;
		return SSL_CLIENT_HELLO_ERROR;
	}
	take_site(ssl, site, name);
	return SSL_CLIENT_HELLO_SUCCESS;
}

/* With a callback the server says that it has seen the name, and OpenSSL keeps
 * it with the session. */
static int
on_server_name(SSL *ssl, int *alert, void *arg)
{
	return SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name) == NULL
		   ? SSL_TLSEXT_ERR_NOACK
		   : SSL_TLSEXT_ERR_OK;
}

/* ---- tickets ---- */

static int
set_mac(EVP_MAC_CTX *mac, const struct tls_ticket_key *key)
{
	char digest[] = "sha256";
	OSSL_PARAM params[3];

	params[0] = OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY,
	    (void *)(uintptr_t)key->hmac, sizeof(key->hmac));
	params[1] =
	    OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0);
	params[2] = OSSL_PARAM_construct_end();
	return EVP_MAC_CTX_set_params(mac, params);
}

/* 1: go on; 2: the ticket is good, give a new one; 0: no such key, the whole
 * handshake; -1: failed. */
static int
on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv,
    EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int is_new)
{
	const struct tls_worker *tls = tls_worker_of(ssl);
	const struct tls_ticket_key *key;

	if (is_new) {
		key = &tls->tickets.keys[0];
		if (RAND_bytes(iv, EVP_MAX_IV_LENGTH) != 1)
			return -1;
		memcpy(name, key->name, sizeof(key->name));
	} else {
		key = tls_tickets_find(&tls->tickets, name);
		if (key == NULL)
			return 0;
	}
	if (EVP_CipherInit_ex2(
		cipher, tls->ticket_cipher, key->aes, iv, is_new, NULL) != 1 ||
	    set_mac(mac, key) != 1)
		return -1;
	if (is_new)
		return 1;
	/* Clients use one of TLS 1.3 once (RFC 8446 section C.4). */
	return key == &tls->tickets.keys[0] && SSL_version(ssl) < TLS1_3_VERSION
		   ? 1
		   : 2;
}

/* A session holds the certificate that its client had: one that is not in force
 * any more is not taken for good by a ticket, nor by one ticket after another.
 * The whole handshake then says so. */
static SSL_TICKET_RETURN
on_session(SSL *ssl, SSL_SESSION *session, const unsigned char *name,
    size_t name_len, SSL_TICKET_STATUS status, void *arg)
{
	X509 *client;

	if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW)
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	client = SSL_SESSION_get0_peer(session);
	if (client != NULL &&
	    X509_cmp_current_time(X509_get0_notAfter(client)) <= 0)
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE
					    : SSL_TICKET_RETURN_USE_RENEW;
}

void
tls_worker_set_tickets(
    struct tls_worker *tls, const struct tls_tickets *tickets)
{
	tls->tickets = *tickets;
}

/* ---- turns ---- */

bool
tls_worker_may_begin(struct tls_worker *tls)
{
	if (tls->round != tls->worker->round) {
		tls->round = tls->worker->round;
		tls->begun = 0;
	}
	if (tls->begun >= TLS_HANDSHAKES_PER_ROUND ||
	    !list_is_empty(&tls->waiting))
		return false;
	tls->begun++;
	return true;
}

void
tls_worker_pump(struct tls_worker *tls)
{
	static const struct timeval now = { 0, 0 };

	if (tls->is_pumping)
		return;
	/* A timer, so that the sockets are looked at before it fires. */
	tls->is_pumping = event_add(&tls->pump, &now) == 0;
}

static void
on_pump(evutil_socket_t fd, short what, void *arg)
{
	struct tls_worker *tls = arg;

	tls->is_pumping = false;
	for (unsigned i = 0;
	     i < TLS_HANDSHAKES_PER_ROUND && !list_is_empty(&tls->waiting); i++)
		tls_begin_next(tls);
	if (!list_is_empty(&tls->waiting))
		tls_worker_pump(tls);
}

/* ---- begin and end ---- */

void
tls_worker_new(struct worker *worker)
{
	struct tls_worker *tls = mem_alloc(sizeof(*tls));

	tls->worker = worker;
	pool_of_init(worker, &tls->connections, tls_bytes());
	list_init(&tls->waiting);
	tls->quiet = timer_class_of(worker, TLS_QUIET_MS, tls_quiet_expired);
	evtimer_assign(&tls->pump, worker->base, on_pump, tls);
	worker->tls = tls;
}

static void
open_tls(struct tls_worker *tls)
{
	tls->base = tls_worker_new_context();
	SSL_CTX_set_client_hello_cb(tls->base, on_client_hello, NULL);
	SSL_CTX_set_tlsext_servername_callback(tls->base, on_server_name);
	SSL_CTX_set_tlsext_ticket_key_evp_cb(tls->base, on_ticket);
	SSL_CTX_set_session_ticket_cb(tls->base, NULL, on_session, NULL);
	tls->method = tls_io_method();
	tls->ticket_cipher = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
	tls->plain = mem_alloc(TLS_RECORD_BYTES);
	tls->out = mem_alloc(TLS_WRITE_BYTES + TLS_RECORD_ROOM);
	if (tls->tickets.count > 0)
		return;
	tls->tickets.count = 1;
	if (RAND_bytes((unsigned char *)tls->tickets.keys,
		sizeof(tls->tickets.keys[0])) != 1)
		abort(); /* without randomness there is no TLS */
}

struct ssl_ctx_st *
tls_worker_base(struct tls_worker *tls)
{
	if (UNLIKELY(tls->base == NULL))
		open_tls(tls);
	return tls->base;
}

void
tls_worker_free(struct worker *worker)
{
	struct tls_worker *tls = worker->tls;

	if (tls == NULL)
		return;
	worker->tls = NULL;
	event_del(&tls->pump);
	SSL_CTX_free(tls->base);
	BIO_meth_free(tls->method);
	EVP_CIPHER_free(tls->ticket_cipher);
	pool_of_end(&tls->connections);
	explicit_bzero(&tls->tickets, sizeof(tls->tickets));
	if (tls->plain != NULL)
		explicit_bzero(tls->plain, TLS_RECORD_BYTES);
	mem_free(tls->plain);
	mem_free(tls->out);
	mem_free(tls);
}
