/*
 * Replacing instances: new ones first, then the old ones are withdrawn, drained
 * and stopped. For app.c, and for whoever finds that one must be replaced.
 * Supervisor thread only.
 */
#ifndef SUPERVISOR_APP_ROLL_H
#define SUPERVISOR_APP_ROLL_H

#include "supervisor/app.h"

struct instance;

/* Replace all: one after the other, or (`all`) all new ones at once beside the
 * old ones. `wish`: somebody asked for it and waits (app_roll_ended). */
void app_roll_begin(struct app *app, bool all);
/* The old ones stay. */
void app_roll_cancel(struct app *app, const char *why);
/* After any change. Begins with an instance that is to be replaced, if any. */
void app_roll_step(struct app *app);
/* As soon as nothing else is being replaced. `why` is copied; the first one
 * counts. Nothing happens to one that does not serve. */
void app_replace(struct instance *instance, const char *why);

/* ---- app.c's ---- */

/* Tell those who wait for a restart; app_roll_progress: how far it is. */
void app_roll_ended(struct app *app, bool ok, const char *why, pid_t failed);
void app_roll_progress(struct app *app, const char *text);
/* How many instances it should have. */
unsigned app_number(const struct app *app);

#endif
