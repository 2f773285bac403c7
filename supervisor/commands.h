/*
 * What scalwsctl can ask for. One function per verb; answers through
 * control_server.h, at once or when the work is done.
 */
#ifndef SUPERVISOR_COMMANDS_H
#define SUPERVISOR_COMMANDS_H

#include "src/ipc/control.h"

struct control_client;

/* Do it; ends with control_end, now or later. `request` is only valid during
 * the call. */
void commands_run(
    struct control_client *client, const struct control_request *request);

#endif
