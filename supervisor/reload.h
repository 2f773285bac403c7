/*
 * Taking on a changed configuration, in two phases: everything is checked and
 * prepared before anything changes.
 * Supervisor thread only.
 */
#ifndef SUPERVISOR_RELOAD_H
#define SUPERVISOR_RELOAD_H

#include <stdbool.h>

#include "src/base/compiler.h"
#include "src/base/strbuf.h"

struct supervisor;

/* `text`: what was done, or why nothing was, one or more lines. Called once. */
typedef void reload_done_cb(bool ok, const char *text, void *arg);

/* Load, check, bind, prepare the proxy, commit; then apps whose processes are
 * affected are restarted, and `on_done` waits for them. on_done may be NULL
 * (SIGHUP): the result is logged either way. */
void reload_start(
    struct supervisor *supervisor, reload_done_cb *on_done, void *arg);
/* What a reload would do now, one line each; false: why it would not. */
bool reload_describe(
    struct supervisor *supervisor, struct strbuf *to) MUST_CHECK;
/* Nobody waits with this `arg` any more; the reload goes on. */
void reload_forget(struct supervisor *supervisor, const void *arg);
/* The daemon stops: end it. */
void reload_cancel(struct supervisor *supervisor);

#endif
