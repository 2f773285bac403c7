/*
 * The status document as a table for people.
 * Pure.
 */
#ifndef SUPERVISOR_STATUS_TEXT_H
#define SUPERVISOR_STATUS_TEXT_H

#include <jansson.h>

#include "src/base/strbuf.h"

void status_text_put(const json_t *root, struct strbuf *to);

#endif
