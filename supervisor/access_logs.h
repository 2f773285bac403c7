/*
 * The access logs: opened by the supervisor, written by the proxy; error_log;
 * and the directory of the logs.
 * Supervisor thread only.
 */
#ifndef SUPERVISOR_ACCESS_LOGS_H
#define SUPERVISOR_ACCESS_LOGS_H

#include <stdint.h>

#include "src/base/compiler.h"
#include "src/conf/conf.h"
#include "src/ipc/channel.h"

/* One descriptor per distinct path in the order of first use: the global one,
 * then the sites'. The caller closes them. -1 with `errors` filled. */
int access_logs_open(const struct conf *conf, int fds[FRAME_FDS_MAX - 1],
    uint32_t *n, struct conf_errors *errors) MUST_CHECK;
/* A file that is appended to: made 0640, no link followed. -1 with errno. */
int access_logs_open_file(const char *path) MUST_CHECK;
/* error_log becomes standard error. -1 with `errors` filled. */
int access_logs_open_error(
    const struct conf *conf, struct conf_errors *errors) MUST_CHECK;
/* log_directory, where it is missing. -1 with `errors` filled. */
int access_logs_make_directory(
    const struct conf *conf, struct conf_errors *errors) MUST_CHECK;

#endif
