/*
 * What request.c and dispatch.c share. Not for fronts or handlers.
 */
#ifndef CORE_DISPATCH_H
#define CORE_DISPATCH_H

#include <stdbool.h>

struct request;

/* Around everything that may end the request: request_free inside only marks
 * it. request_leave releases it when it was the outermost and says whether the
 * request is still open. */
void request_enter(struct request *request);
bool request_leave(struct request *request);

/* From here it is counted, timed and logged. */
void request_begin(struct request *request);

#endif
