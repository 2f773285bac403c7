/*
 * The process of an instance: its sockets, pipes and keeper.
 * instance.c is the only caller. Supervisor thread only.
 */
#ifndef SUPERVISOR_INSTANCE_PROC_H
#define SUPERVISOR_INSTANCE_PROC_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/compiler.h"
#include "supervisor/instance.h"

/* Make sockets and start the keeper. -1 with `why` filled when it cannot be
 * started as configured; what was made is released by instance_proc_release. */
int instance_proc_start(
    struct instance *instance, char *why, size_t why_size) MUST_CHECK;
/* Stop signal, deadline, SIGKILL; or SIGKILL now. */
void instance_proc_stop(struct instance *instance, bool now);
/* Close and remove all that belongs to the process, which has ended or never
 * began. Safe to call twice. */
void instance_proc_release(struct instance *instance);

/* The process as another binary left it to us. -1: its keeper cannot be
 * watched. */
struct saved_instance;
int instance_proc_adopt(
    struct instance *instance, const struct saved_instance *from) MUST_CHECK;
/* Its keeper was told all? */
bool instance_proc_is_flushed(const struct instance *instance);

#endif
