/*
 * The smallest pieces of OpenSSL's memory, kept by the thread that gave them
 * back: each record takes and gives back two, and malloc and free were 3 % of
 * a small request over TLS. All other memory is malloc's, and so are these.
 */
#ifndef CORE_TLS_MEM_H
#define CORE_TLS_MEM_H

/* In the main thread, before anything else is asked of OpenSSL. Later it has
 * no effect. With AddressSanitizer it has none either, so that every use after
 * free is seen. */
void tls_mem_init(void);

#endif
