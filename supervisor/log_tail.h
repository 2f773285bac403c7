/*
 * `scalwsctl logs`: the last lines of an app's log, and those that follow.
 * Supervisor thread only.
 */
#ifndef SUPERVISOR_LOG_TAIL_H
#define SUPERVISOR_LOG_TAIL_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/compiler.h"
#include "src/base/strbuf.h"

struct app;
struct control_client;

#define LOG_TAIL_MAX 100000

/* Answer with the last `lines` of the file; with `follow` go on until the
 * client leaves. Ends with control_end. */
void log_tail_answer(
    struct control_client *client, struct app *app, size_t lines, bool follow);
/* Go on following, with the next line that comes. */
void log_tail_resume(struct control_client *client, struct app *app);

/* Append the last `lines` lines of the file to `to`, at most about 1 MiB of
 * them. -1 with errno. */
int log_tail_read(const char *path, size_t lines, struct strbuf *to) MUST_CHECK;

#endif
