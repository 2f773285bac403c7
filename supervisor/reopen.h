/*
 * All log files are opened by their names again, for scalwsctl reopen and
 * SIGUSR1. Supervisor thread only.
 */
#ifndef SUPERVISOR_REOPEN_H
#define SUPERVISOR_REOPEN_H

struct control_client;
struct supervisor;

/* Open error_log, the apps' and the access logs by name again, and make
 * log_directory if that is missing. `client` (NULL: nobody waits) is told which
 * could not be opened and why; the log is, too. */
void reopen_logs(struct supervisor *supervisor, struct control_client *client);
/* What a signal asked for and is not done. */
void reopen_free(struct supervisor *supervisor);

#endif
