/*
 * The subject of a client's certificate as apps are told it.
 * For tls_site.c, which refuses who has one that cannot be told, and tls_io.c.
 * Believes nobody: whether the certificate is good is OpenSSL's to say.
 */
#include "proxy/core/tls_subject.h"

#include <openssl/bio.h>
#include <openssl/x509.h>
#include <string.h>

int
tls_subject_put(const X509 *certificate, char *to, size_t size)
{
	BIO *bio = BIO_new(BIO_s_mem());
	int result = -1;
	char *text;
	long len;

	to[0] = '\0';
	if (bio == NULL)
		return -1;
	if (X509_NAME_print_ex(bio, X509_get_subject_name(certificate), 0,
		XN_FLAG_RFC2253) >= 0) {
		len = BIO_get_mem_data(bio, &text);
		if (len >= 0 && (size_t)len < size) {
			memcpy(to, text, (size_t)len);
			to[len] = '\0';
			result = 0;
		}
	}
	BIO_free(bio);
	return result;
}

int
tls_subject_on_verify(int ok, X509_STORE_CTX *store)
{
	char subject[TLS_SUBJECT_MAX];

	if (ok == 1 && X509_STORE_CTX_get_error_depth(store) == 0 &&
	    tls_subject_put(X509_STORE_CTX_get_current_cert(store), subject,
		sizeof(subject)) == -1) {
		X509_STORE_CTX_set_error(
		    store, X509_V_ERR_APPLICATION_VERIFICATION);
		return 0;
	}
	return ok;
}
