/*
 * `scalwsctl status`: apps and instances as the supervisor knows them, with
 * the counters of the proxy and figures from /proc.
 */
#ifndef SUPERVISOR_STATUS_H
#define SUPERVISOR_STATUS_H

#include <stdbool.h>

struct control_client;

/* Answer for all apps or the one named; ends with control_end, as soon as the
 * proxy has told its counters (or does not answer). */
void status_answer(struct control_client *client, const char *name, bool json);

#endif
