/*
 * gateway: routes that an app or an upstream answers.
 * One engine for HTTP/1 and FastCGI.
 */
#ifndef HANDLER_GATEWAY_H
#define HANDLER_GATEWAY_H

#include "proxy/core/handler.h"

struct worker;

/* For both CONF_APP and CONF_UPSTREAM. */
extern const struct handler_ops handler_gateway;

/* Give back what the gateways of this worker keep (worker->slots[
 * WORKER_GATEWAY]). After the worker has stopped and has no requests, before
 * worker_free. */
void gateway_free(struct worker *worker);

#endif
