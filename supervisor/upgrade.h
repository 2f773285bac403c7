/*
 * Upgrade: the binary that lies at our path takes over, and no request, no app
 * and no log line is lost. Asked for by commands.c. Supervisor thread only.
 */
#ifndef SUPERVISOR_UPGRADE_H
#define SUPERVISOR_UPGRADE_H

#include <stdbool.h>

struct supervisor;

/* When it is done: `text` is what was done, or why not (then all goes on as it
 * was). Once, later or at once. */
typedef void upgrade_done_cb(bool ok, const char *text, void *arg);
void upgrade_start(
    struct supervisor *supervisor, upgrade_done_cb *on_done, void *arg);
/* Whoever asked with this `arg` does not wait any more. */
void upgrade_forget(struct supervisor *supervisor, const void *arg);
/* The daemon stops. */
void upgrade_cancel(struct supervisor *supervisor);

#endif
