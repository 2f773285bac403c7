/*
 * redirect: another place to ask, made from a template.
 */
#ifndef HANDLER_REDIRECT_H
#define HANDLER_REDIRECT_H

#include "proxy/core/handler.h"

extern const struct handler_ops handler_redirect;

#endif
