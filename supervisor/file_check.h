/*
 * A look at the configuration file as `scalwsd -t` has it, certificates and
 * keys included, for who asks over the control socket. In a process of its own:
 * what is in those files is not read here.
 * Supervisor thread only.
 */
#ifndef SUPERVISOR_FILE_CHECK_H
#define SUPERVISOR_FILE_CHECK_H

#include <stdbool.h>

#include "src/base/compiler.h"

struct file_check; /* opaque */
struct supervisor;

/* `text`: the findings, one or more lines; may be "" or warnings alone if the
 * file is good. Called once; the check is gone then. */
typedef void file_check_cb(bool good, const char *text, void *arg);

/* Takes 20 s at most. NULL with errno. */
struct file_check *file_check_start(struct supervisor *supervisor,
    file_check_cb *on_done, void *arg) MUST_CHECK;
/* Nobody waits for it any more: it is ended, `on_done` does not come. */
void file_check_cancel(struct file_check **check);

#endif
