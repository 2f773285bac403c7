/*
 * respond: a fixed answer from the configuration.
 */
#ifndef HANDLER_RESPOND_H
#define HANDLER_RESPOND_H

#include "proxy/core/handler.h"

extern const struct handler_ops handler_respond;

#endif
