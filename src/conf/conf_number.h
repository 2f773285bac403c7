/*
 * Numbers with units and names for numbers, as the file writes them.
 * Pure functions.
 */
#ifndef CONF_CONF_NUMBER_H
#define CONF_CONF_NUMBER_H

#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/str.h"
#include "src/base/strbuf.h"

/* "5s", "100ms"; "64K", "100". 0, or -1 when it is none or beyond INT64_MAX. */
int conf_number_parse_duration(struct str text, int64_t *ms) MUST_CHECK;
int conf_number_parse_bytes(struct str text, uint64_t *bytes) MUST_CHECK;
/* The largest unit that leaves no rest. */
void conf_number_put_duration(struct strbuf *to, int64_t ms);
void conf_number_put_bytes(struct strbuf *to, uint64_t bytes);

/* "TERM" or "SIGTERM"; 0 when there is no such signal. */
int conf_number_signal(const char *name);
const char *conf_number_signal_name(int signal);
/* "nofile" and so on: RLIMIT_NOFILE; -1 or NULL when there is none. */
int conf_number_rlimit(const char *name);
const char *conf_number_rlimit_name(int resource);

#endif
