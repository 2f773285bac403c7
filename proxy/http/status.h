/*
 * Status codes and their reason phrases. Pure.
 */
#ifndef HTTP_STATUS_H
#define HTTP_STATUS_H

#include <stdbool.h>

#include "src/base/str.h"

/* "Not Found"; "Unknown" for codes without a registered phrase. */
struct str status_reason(unsigned status);
/* May an answer with this status have a body (RFC 9110 section 6.4.1)? */
bool status_has_body(unsigned status);

#endif
