/*
 * environment_file: variables from a file, one NAME=value a line.
 */
#ifndef SUPERVISOR_ENV_FILE_H
#define SUPERVISOR_ENV_FILE_H

#include <stddef.h>

#include "src/base/compiler.h"
#include "supervisor/spawn.h"

/* Add what `path` says to `to` as "NAME=value". -1 with `why` filled when it
 * cannot be read or has a line that is none; then `to` holds a part of it. No
 * value is ever in `why`. */
int env_file_read(
    const char *path, struct words *to, char *why, size_t why_size) MUST_CHECK;

/* The same of a text; `why` tells the line. */
int env_file_parse(const char *text, size_t len, struct words *to, char *why,
    size_t why_size) MUST_CHECK;

#endif
