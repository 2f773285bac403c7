/*
 * The keys of session tickets: made and changed here, or read from the file
 * that several machines share; every proxy gets the same. Supervisor thread.
 */
#ifndef SUPERVISOR_TICKET_KEYS_H
#define SUPERVISOR_TICKET_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/conf/conf.h"

struct supervisor;
struct ticket_keys; /* opaque */

struct ticket_keys *ticket_keys_new(struct supervisor *supervisor) MUST_CHECK;
void ticket_keys_free(struct ticket_keys **keys);

/* Is the file that `conf` names, if any, good for it? -1 with a finding. */
int ticket_keys_check(
    const struct conf *conf, struct conf_errors *errors) MUST_CHECK;
/* The configuration in force is another one. */
void ticket_keys_configure(struct ticket_keys *keys, const struct conf *conf);
/* Tell the proxy, which has just come up. */
void ticket_keys_tell(struct ticket_keys *keys);

/* Handed on to another process: our own keys; the caller frees *bytes. Those of
 * a file are read there again. */
void ticket_keys_save(const struct ticket_keys *keys, char **bytes, size_t *len,
    int64_t *rotated_ms);
/* Does nothing with what is no keys. */
void ticket_keys_adopt(struct ticket_keys *keys, const char *bytes, size_t len,
    int64_t rotated_ms);

#endif
