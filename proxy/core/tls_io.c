/*
 * TLS as the transport of an io: OpenSSL above our own BIO, which reads from
 * the socket and writes into the worker's buffer. What is encrypted in one call
 * leaves in one write; what the socket does not take waits in the io's queue as
 * ciphertext. Chooses no certificate and knows no HTTP.
 */
#include "proxy/core/tls_io.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

#include "proxy/core/tls_worker.h"
#include "src/base/log.h"
#include "src/base/mem.h"

/* Until so much has left, or after a pause, records of long writes are short:
 * a client can use what came before the network has seen how much it bears. */
#define COLD_BYTES (64u << 10)
#define COLD_RECORD_BYTES 4096
#define COLD_AFTER_MS 1000

struct tls {
	SSL *ssl; /* NULL: there was no memory for it */
	struct io *io;
	tls_choose_cb *choose;
	SSL_SESSION **session; /* with a peer; NULL: it is a client */
	const char *why;
	struct list waiting; /* for its turn, in the worker's list */
	struct timer quiet;  /* while it keeps its buffers */
	int64_t sent_ms;     /* tick of the last record */
	uint32_t warm_bytes; /* sent without a pause */
	int error;           /* errno of the socket, or 0 */
	bool has_begun;      /* its first turn has come */
	bool has_bytes;      /* ... and bytes of the other end */
	bool is_http;        /* a client's are no TLS but a method */
	bool is_up;          /* the handshake is done */
	bool has_failed;     /* nothing more may be asked of `ssl` */
	bool is_dry;         /* the socket gave all it had, in this call */
	bool said_close;     /* close_notify */
	bool offers_h2;      /* the site does */
	bool keeps_buffers;
	uint8_t site_id[TLS_SITE_ID_BYTES];
};

/* ---- the BIO ---- */

static int
bio_read(BIO *bio, char *to, size_t room, size_t *got)
{
	struct tls *tls = BIO_get_data(bio);
	ssize_t n;

	/* The flags say why nothing came; nobody looks at them otherwise. */
	*got = 0;
	if (tls->is_dry) {
		BIO_set_retry_read(bio);
		return -1;
	}
	n = io_receive(tls->io, to, room);
	/* A short read has emptied the socket; the end is asked for anew. */
	tls->is_dry = n != 0 && n < (ssize_t)room;
	if (UNLIKELY(!tls->has_bytes) && n > 0) {
		tls->has_bytes = true;
		/* No record and no hello of old begins so. */
		tls->is_http = tls->session == NULL && *to >= 'A' && *to <= 'Z';
	}
	if (n > 0 && LIKELY(!tls->is_http)) {
		*got = (size_t)n;
		return 1;
	}
	BIO_clear_retry_flags(bio);
	if (tls->is_http)
		return -1;
	if (n == -1 && errno == EAGAIN)
		BIO_set_retry_read(bio);
	else if (n == -1)
		tls->error = errno;
	return (int)n;
}

static void
flush(struct tls *tls)
{
	struct tls_worker *worker = tls->io->worker->tls;
	struct iovec all = { worker->out, worker->out_len };

	if (worker->out_len == 0)
		return;
	worker->out_len = 0;
	io_send(tls->io, &all, 1);
}

static int
bio_write(BIO *bio, const char *from, size_t len, size_t *done)
{
	struct tls *tls = BIO_get_data(bio);
	struct tls_worker *worker = tls->io->worker->tls;
	size_t room = TLS_WRITE_BYTES + TLS_RECORD_ROOM - worker->out_len;

	if (len > room) {
		flush(tls);
		room = TLS_WRITE_BYTES + TLS_RECORD_ROOM;
	}
	*done = len < room ? len : room;
	memcpy(worker->out + worker->out_len, from, *done);
	worker->out_len += *done;
	return 1;
}

static long
bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
	return command == BIO_CTRL_FLUSH ? 1 : 0;
}

struct bio_method_st *
tls_io_method(void)
{
	BIO_METHOD *method = BIO_meth_new(
	    BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "scalws io");

	if (method == NULL)
		return NULL;
	BIO_meth_set_read_ex(method, bio_read);
	BIO_meth_set_write_ex(method, bio_write);
	BIO_meth_set_ctrl(method, bio_ctrl);
	return method;
}

/* ---- results ---- */

/* Texts that live for ever. */
static const char *
verify_reason(const struct tls *tls)
{
	long result = SSL_get_verify_result(tls->ssl);

	return result == X509_V_ERR_APPLICATION_VERIFICATION
		   ? "the subject of its certificate is too long"
		   : X509_verify_cert_error_string(result);
}

static const char *
reason_of(const struct tls *tls, unsigned long code)
{
	if (ERR_GET_LIB(code) == ERR_LIB_SSL &&
	    ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED)
		return verify_reason(tls);
	if (ERR_GET_LIB(code) != ERR_LIB_SSL || tls->session == NULL)
		return code == 0 ? NULL : ERR_reason_error_string(code);
	switch (ERR_GET_REASON(code)) {
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_HTTP_REQUEST:
	case SSL_R_PACKET_LENGTH_TOO_LONG:
		return tls->is_up ? "broken record" : "it does not speak TLS";
	default:
		return ERR_reason_error_string(code);
	}
}

/* What OpenSSL did not do, as read(2) would say it. */
static ssize_t
failure(struct tls *tls, int result)
{
	unsigned long code;

	switch (SSL_get_error(tls->ssl, result)) {
	case SSL_ERROR_WANT_READ:
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		/* Without close_notify it may have been cut by anybody. */
		tls->has_failed = true;
		tls->why = tls->is_up ? "closed without close_notify"
				      : "closed in the handshake";
		errno = tls->error != 0 ? tls->error : ECONNRESET;
		return -1;
	default:
		break;
	}
	code = ERR_peek_error();
	tls->why = reason_of(tls, code);
	ERR_clear_error();
	tls->has_failed = true;
	errno = EPROTO;
	return -1;
}

/* ---- OpenSSL's buffers ---- */

/* A record that comes and one that leaves need 33 KiB. To take and release them
 * for each costs 1,300 instructions a request, so a connection in use keeps
 * them for a while. */
static void
keep_buffers(struct tls *tls)
{
	struct worker *worker = tls->io->worker;

	if (!tls->keeps_buffers) {
		if (worker->tls->n_keeping >= TLS_KEEPING_MAX)
			return;
		worker->tls->n_keeping++;
		tls->keeps_buffers = true;
		SSL_clear_mode(tls->ssl, SSL_MODE_RELEASE_BUFFERS);
	}
	timer_arm(worker, worker->tls->quiet, &tls->quiet);
}

static void
keep_no_buffers(struct tls *tls)
{
	if (!tls->keeps_buffers)
		return;
	tls->keeps_buffers = false;
	tls->io->worker->tls->n_keeping--;
	timer_disarm(&tls->quiet);
}

void
tls_quiet_expired(struct worker *worker, struct timer *timer)
{
	struct tls *tls = CONTAINER_OF(timer, struct tls, quiet);

	keep_no_buffers(tls);
	SSL_set_mode(tls->ssl, SSL_MODE_RELEASE_BUFFERS);
	/* It keeps those that hold something, until that is read. */
	if (SSL_free_buffers(tls->ssl) != 1)
		log_debug(
		    "fd %d: bytes wait in a quiet connection", tls->io->fd);
}

/* ---- reading ---- */

static ssize_t
tls_read(struct io *io, void *to, size_t room)
{
	struct tls *tls = io->transport;
	size_t got = 0, n = 0;
	int result = 1;
	ssize_t failed = 1;

	io->has_more = false;
	if (tls->has_failed) {
		errno = tls->error != 0 ? tls->error : ECONNRESET;
		return -1;
	}
	tls->is_dry = false;
	while (got < room) {
		result =
		    SSL_read_ex(tls->ssl, (char *)to + got, room - got, &n);
		if (result != 1)
			break;
		got += n;
		if (tls->is_dry && !SSL_has_pending(tls->ssl))
			break;
	}
	if (result != 1)
		failed = failure(tls, result);
	/* A new key, or its confirmation. */
	flush(tls);
	if (got == 0)
		return failed;
	keep_buffers(tls);
	if (result == 1)
		io->has_more = got == room && SSL_has_pending(tls->ssl);
	else
		io->has_more = failed == 0 || errno != EAGAIN;
	return (ssize_t)got;
}

/* Between two requests: what belongs to TLS alone is dealt with (tickets come
 * whenever the peer likes), anything else is no silence. */
static bool
tls_is_silent(struct io *io)
{
	struct tls *tls = io->transport;
	char byte;
	size_t n;
	int result;
	bool is_silent;

	if (tls->has_failed)
		return false;
	tls->is_dry = false;
	result = SSL_peek_ex(tls->ssl, &byte, 1, &n);
	is_silent =
	    result != 1 && failure(tls, result) == -1 && errno == EAGAIN;
	flush(tls);
	return is_silent;
}

/* ---- writing ---- */

static size_t
record_bytes(const struct tls *tls, size_t left)
{
	return left <= TLS_RECORD_BYTES || tls->warm_bytes >= COLD_BYTES
		   ? TLS_RECORD_BYTES
		   : COLD_RECORD_BYTES;
}

static void
put_record(struct tls *tls, const char *from, size_t len)
{
	size_t done;
	int result;

	if (tls->has_failed)
		return;
	result = SSL_write_ex(tls->ssl, from, len, &done);
	if (result != 1) {
		if (failure(tls, result) == 0 || errno == EAGAIN)
			tls->has_failed = true; /* cannot be: it all fits */
		io_break(tls->io, EPROTO);
		return;
	}
	tls->warm_bytes += (uint32_t)len;
	if (tls->io->worker->tls->out_len >= TLS_WRITE_BYTES)
		flush(tls);
}

static void
note_pause(struct tls *tls)
{
	int64_t now_ms = tls->io->worker->tick_ms;

	if (now_ms - tls->sent_ms >= COLD_AFTER_MS ||
	    tls->warm_bytes > UINT32_MAX / 2)
		tls->warm_bytes =
		    now_ms - tls->sent_ms >= COLD_AFTER_MS ? 0 : COLD_BYTES;
	tls->sent_ms = now_ms;
}

/* What does not fit into a record, or comes in pieces. */
static void
put_records(struct tls *tls, const struct iovec *from, int count)
{
	char *plain = tls->io->worker->tls->plain;
	size_t left = 0, held = 0, most;

	for (int i = 0; i < count; i++)
		left += from[i].iov_len;
	most = record_bytes(tls, left);
	for (int i = 0; i < count; i++) {
		const char *at = from[i].iov_base;
		size_t len = from[i].iov_len;

		while (len > 0) {
			size_t n = len < most - held ? len : most - held;

			/* Head and body share a record; what fills one by
			 * itself is not copied. */
			if (held == 0 && (n == most || n == left)) {
				put_record(tls, at, n);
			} else {
				memcpy(plain + held, at, n);
				held += n;
			}
			if (held == most || (held > 0 && n == left)) {
				put_record(tls, plain, held);
				held = 0;
			}
			at += n;
			len -= n;
			left -= n;
			if (held == 0)
				most = record_bytes(tls, left);
		}
	}
}

static void
tls_seal(struct io *io, const struct iovec *from, int count)
{
	struct tls *tls = io->transport;

	note_pause(tls);
	if (LIKELY(count == 1 && from->iov_len > 0 &&
		   from->iov_len <= TLS_RECORD_BYTES))
		put_record(tls, from->iov_base, from->iov_len);
	else
		put_records(tls, from, count);
	flush(tls);
}

static void
tls_say_close(struct io *io)
{
	struct tls *tls = io->transport;

	if (!tls->is_up || tls->has_failed || tls->said_close)
		return;
	tls->said_close = true;
	if (SSL_shutdown(tls->ssl) < 0)
		ERR_clear_error();
	flush(tls);
}

/* ---- the handshake ---- */

static enum io_protocol
agreed_protocol(const SSL *ssl)
{
	const unsigned char *name;
	unsigned len;

	SSL_get0_alpn_selected(ssl, &name, &len);
	if (len == 2 && memcmp(name, "h2", 2) == 0)
		return IO_PROTOCOL_H2;
	if (len == 8 && memcmp(name, "http/1.1", 8) == 0)
		return IO_PROTOCOL_HTTP1;
	return IO_PROTOCOL_NONE;
}

/* A peer was offered HTTP/1.1 alone. */
static bool
agrees(const struct tls *tls, enum io_protocol protocol)
{
	const unsigned char *name;
	unsigned len;

	SSL_get0_alpn_selected(tls->ssl, &name, &len);
	return len == 0 || protocol == IO_PROTOCOL_HTTP1 ||
	       tls->session == NULL;
}

static enum io_handshake
tls_handshake(struct io *io)
{
	struct tls *tls = io->transport;
	int result;
	bool waits;

	if (tls->has_failed)
		return IO_HANDSHAKE_FAILED;
	if (list_is_linked(&tls->waiting))
		return IO_HANDSHAKE_QUEUED;
	if (!tls->has_begun && !tls_worker_may_begin(io->worker->tls)) {
		list_push_back(&io->worker->tls->waiting, &tls->waiting);
		tls_worker_pump(io->worker->tls);
		return IO_HANDSHAKE_QUEUED;
	}
	tls->has_begun = true;
	tls->is_dry = false;
	result = SSL_do_handshake(tls->ssl);
	waits = result != 1 && failure(tls, result) == -1 && errno == EAGAIN;
	flush(tls); /* of a failed one: why, for the other end */
	if (waits)
		return IO_HANDSHAKE_WAITS;
	if (UNLIKELY(tls->is_http))
		return IO_HANDSHAKE_PLAIN;
	if (result != 1) {
		/* It may have been the old session that they did not bear. */
		if (tls->session != NULL)
			tls_session_free(tls->session);
		return IO_HANDSHAKE_FAILED;
	}
	tls->is_up = true;
	io->protocol = (uint8_t)agreed_protocol(tls->ssl);
	if (!agrees(tls, io_protocol(io))) {
		tls->why = "it chose a protocol that was not offered";
		return IO_HANDSHAKE_FAILED;
	}
	io->has_more = SSL_has_pending(tls->ssl);
	return IO_HANDSHAKE_DONE;
}

void
tls_begin_next(struct tls_worker *worker)
{
	struct list *node = list_first(&worker->waiting);
	struct tls *tls = LIST_ENTRY(node, struct tls, waiting);

	list_remove(node);
	tls->has_begun = true;
	io_handshake(tls->io);
}

/* ---- begin and end ---- */

static void
tls_close(struct io *io)
{
	struct tls *tls = io->transport;

	if (!io->broken && !io->is_cut && io->out_bytes == 0)
		tls_say_close(io);
	io->transport = NULL;
	list_remove(&tls->waiting);
	keep_no_buffers(tls);
	SSL_free(tls->ssl);
	pool_of_put(&io->worker->tls->connections, tls);
}

static const struct io_ops io_tls = {
	.name = "TLS",
	.read = tls_read,
	.is_silent = tls_is_silent,
	.seal = tls_seal,
	.handshake = tls_handshake,
	.shutdown = tls_say_close,
	.close = tls_close,
};

size_t
tls_bytes(void)
{
	return sizeof(struct tls);
}

/* With the worker's own context if there is no `context`. */
static struct tls *
begin(struct io *io, SSL_CTX *context)
{
	struct tls_worker *worker = io->worker->tls;
	SSL_CTX *base = tls_worker_base(worker);
	struct tls *tls = pool_of_get(&worker->connections);
	BIO *bio = BIO_new(worker->method);

	memset(tls, 0, sizeof(*tls));
	tls->io = io;
	if (bio != NULL)
		tls->ssl = SSL_new(context != NULL ? context : base);
	if (tls->ssl == NULL) {
		tls->has_failed = true;
		tls->why = "no memory";
		BIO_free(bio);
	} else {
		BIO_set_data(bio, tls);
		BIO_set_init(bio, 1);
		SSL_set_bio(tls->ssl, bio, bio);
		SSL_set_app_data(tls->ssl, tls);
	}
	io->ops = &io_tls;
	io->transport = tls;
	io->is_shaking = true;
	return tls;
}

void
tls_accept(struct io *io, tls_choose_cb *choose)
{
	struct tls *tls = begin(io, NULL);

	tls->choose = choose;
	if (tls->ssl != NULL)
		SSL_set_accept_state(tls->ssl);
}

void
tls_connect(struct io *io, const struct tls_upstream *upstream,
    const struct addr *peer, SSL_SESSION **session)
{
	struct tls *tls = begin(io, tls_upstream_context(upstream));

	tls->session = session;
	/* Requests wait for it: it is never queued behind new clients. */
	tls->has_begun = true;
	if (tls->ssl == NULL)
		return;
	SSL_set_connect_state(tls->ssl);
	if (tls_upstream_begin(upstream, tls->ssl, peer, *session) == 0)
		return;
	ERR_clear_error();
	tls->has_failed = true;
	tls->why = "no memory";
}

/* ---- questions ---- */

struct tls_worker *
tls_worker_of(const struct ssl_st *ssl)
{
	const struct tls *tls = SSL_get_app_data(ssl);

	return tls->io->worker->tls;
}

const struct tls_site *
tls_chosen(struct ssl_st *ssl, struct str name)
{
	struct tls *tls = SSL_get_app_data(ssl);
	const struct tls_site *site = tls->choose(tls->io, name);

	if (site != NULL) {
		memcpy(tls->site_id, tls_site_id(site), sizeof(tls->site_id));
		tls->offers_h2 = tls_site_offers_h2(site);
	}
	return site;
}

SSL_SESSION **
tls_session_of(const struct ssl_st *ssl)
{
	const struct tls *tls = SSL_get_app_data(ssl);

	return tls->session;
}

bool
tls_offers_h2(const struct ssl_st *ssl)
{
	const struct tls *tls = SSL_get_app_data(ssl);

	return tls->offers_h2;
}

const struct tls *
tls_of(const struct io *io)
{
	return io->ops == &io_tls ? io->transport : NULL;
}

const char *
tls_why(const struct tls *tls, const char *preset)
{
	return tls->why == NULL ? preset : tls->why;
}

static bool
speaks_h2(const struct tls *tls)
{
	const unsigned char *name;
	unsigned len;

	SSL_get0_alpn_selected(tls->ssl, &name, &len);
	return len == 2 && memcmp(name, "h2", 2) == 0;
}

bool
tls_suits(const struct tls *tls, const struct tls_site *site)
{
	const struct conf_site_tls *conf = tls_site_conf(site);

	if (UNLIKELY(!tls_site_offers_h2(site)) && speaks_h2(tls))
		return false;
	if (conf->min_version == CONF_TLS_1_3 &&
	    SSL_version(tls->ssl) < TLS1_3_VERSION)
		return false;
	return conf->client_verify == CONF_VERIFY_NONE ||
	       memcmp(tls->site_id, tls_site_id(site), sizeof(tls->site_id)) ==
		   0;
}

void
tls_client(const struct tls *tls, struct tls_client *client)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char hash[32];
	X509 *certificate = SSL_get0_peer_certificate(tls->ssl);
	unsigned len = sizeof(hash);

	client->is_verified = false;
	client->subject[0] = client->fingerprint[0] = '\0';
	if (certificate == NULL ||
	    SSL_get_verify_result(tls->ssl) != X509_V_OK ||
	    X509_digest(certificate, EVP_sha256(), hash, &len) != 1)
		return;
	/* Also one that comes by a ticket of somebody who told less. */
	client->is_verified = tls_subject_put(certificate, client->subject,
				  sizeof(client->subject)) == 0;
	for (unsigned i = 0; i < len; i++) {
		client->fingerprint[2 * i] = digits[hash[i] >> 4];
		client->fingerprint[2 * i + 1] = digits[hash[i] & 15];
	}
	client->fingerprint[2 * len] = '\0';
}
