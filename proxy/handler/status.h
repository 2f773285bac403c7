/*
 * status: the proxy's counters as JSON.
 */
#ifndef HANDLER_STATUS_H
#define HANDLER_STATUS_H

#include "proxy/core/handler.h"

extern const struct handler_ops handler_status;

#endif
