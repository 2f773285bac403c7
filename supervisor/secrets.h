/*
 * The files that TLS needs, read with the supervisor's rights and kept as
 * sealed memfds for as long as their configuration is in force: a proxy that
 * is started again gets the same bytes, whatever has become of the files.
 */
#ifndef SUPERVISOR_SECRETS_H
#define SUPERVISOR_SECRETS_H

#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/strbuf.h"
#include "src/conf/conf.h"
#include "supervisor/proxy_load.h"

struct secrets; /* opaque */

/* NULL with findings: a file cannot be read. */
struct secrets *secrets_read(
    const struct conf *conf, struct conf_errors *errors) MUST_CHECK;
void secrets_free(struct secrets **secrets);
/* A line for each file of `conf` that is not on the disk what it is here; those
 * that are not here, or cannot be read, are others' to tell. */
void secrets_describe(
    const struct secrets *secrets, const struct conf *conf, struct strbuf *to);
/* One SECRET for each file. 0, or -1: `send` failed. */
int secrets_send(const struct secrets *secrets, uint32_t serial,
    proxy_load_cb *send, void *arg) MUST_CHECK;

/* Handed on to another process: the caller frees *list and each path. */
struct saved_secret;
void secrets_save(
    const struct secrets *secrets, struct saved_secret **list, uint32_t *n);
struct secrets *secrets_adopt(
    const struct saved_secret *list, uint32_t n) MUST_CHECK;

#endif
