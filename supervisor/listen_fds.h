/*
 * The listeners' sockets: bound and kept by the supervisor, polled by proxies.
 * Supervisor thread only.
 */
#ifndef SUPERVISOR_LISTEN_FDS_H
#define SUPERVISOR_LISTEN_FDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/conf/conf.h"

struct listen_set; /* opaque */

/* Begins with the sockets that the service manager gave (LISTEN_FDS), which are
 * used for what the configuration names; call it once. */
struct listen_set *listen_set_new(void) MUST_CHECK;
/* Closes all. */
void listen_set_free(struct listen_set **set);

/* Open what `conf` needs and the set does not have; what it has stays open as
 * it is. An address that is in use is tried again for `in_use_ms`, one that the
 * machine does not have yet for `absent_ms` (both block: only at the start).
 * -1 with `errors` filled and the set as it was; also when it waits and a stop
 * signal is pending (blocked). Then commit or abort. */
int listen_set_prepare(struct listen_set *set, const struct conf *conf,
    int in_use_ms, int absent_ms, struct conf_errors *errors) MUST_CHECK;
/* Close what the prepared configuration does not name. */
void listen_set_commit(struct listen_set *set);
/* Close what the last prepare opened. */
void listen_set_abort(struct listen_set *set);

/* The sockets of a listener, kept by the set. */
struct listen_view {
	const int *fds;
	size_t n;     /* 0: it has none (no IPv6 here); more than one: they
		       * share the address by SO_REUSEPORT */
	uint32_t key; /* a number for as long as they are open */
	bool is_new;  /* opened by a prepare that is not committed */
};
void listen_set_view(const struct listen_set *set,
    const struct conf_listener *listener, struct listen_view *view);

/* For another process that takes over: the caller frees *list and each `fds`
 * (saved_free). Only without a prepare that is not committed. */
struct saved_listener;
void listen_set_save(const struct listen_set *set, struct saved_listener **list,
    uint32_t *n, uint32_t *last_key);
/* Take over these open sockets, as the only ones. */
void listen_set_adopt(struct listen_set *set, const struct saved_listener *list,
    uint32_t n, uint32_t last_key);

#endif
