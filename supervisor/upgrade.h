/*
 * Upgrade: the binary that lies at our path takes over, and no request, no app
 * and no log line is lost. Asked for by commands.c. Supervisor thread only.
 */
#ifndef SUPERVISOR_UPGRADE_H
#define SUPERVISOR_UPGRADE_H

struct control_client;
struct saved;
struct supervisor;

/* Answers `client` when it is done: what was done, or why not (then all goes on
 * as it was). */
void upgrade_start(
    struct supervisor *supervisor, struct control_client *client);
/* We are the new binary (`back_fd`: the old one), or the old one again (-1): go
 * on with what the process before us had begun. */
void upgrade_resume(
    struct supervisor *supervisor, const struct saved *saved, int back_fd);
/* The daemon stops. */
void upgrade_cancel(struct supervisor *supervisor);
void upgrade_free(struct supervisor *supervisor);

#endif
