/*
 * The state that a supervisor hands to the one that takes its place: records of
 * named fields, as text. One description of a record both writes and reads it.
 * Pure.
 *
 *   scalws-state 2
 *   instance id=17 pid=4711 reason=ready%20after%2080%20ms
 *   ...
 *   end
 *
 * Strict: a version, record, field or value that is not known or missing is an
 * error, so a binary that would lose something refuses to take over.
 */
#ifndef SUPERVISOR_STATE_H
#define SUPERVISOR_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/addr.h"
#include "src/base/compiler.h"
#include "src/base/str.h"

#define STATE_BYTES_MAX ((size_t)128 << 20)

struct state; /* opaque: being written, or being read */

struct state *state_write(void) MUST_CHECK;
/* NULL with `why` (static text) when it is no state of ours. */
struct state *state_read(
    const char *text, size_t len, const char **why) MUST_CHECK;
void state_free(struct state **state);

/* What a program says that has read this text: a line, without its newline,
 * that no other program would say by chance. */
#define STATE_PROOF_MAX 48
void state_proof(struct str text, char proof[STATE_PROOF_MAX]);

bool state_is_reading(const struct state *state);
/* Writing: the whole text, valid until state_free. */
struct str state_text(struct state *state);
/* The descriptors that it names. */
const int *state_fds(const struct state *state, size_t *n);
/* Reading: all was read, and nothing was wrong? */
bool state_is_whole(struct state *state) MUST_CHECK;
/* Reading: what was wrong first; NULL: nothing. */
const char *state_error(const struct state *state);
void state_fail(struct state *state, const char *what);

/* Reading: bytes that are left. */
size_t state_left(const struct state *state);

/* Begin a record. Reading: false when the next one is of another type. */
bool state_record(struct state *state, const char *type);

/* A field: written from *value; or read into it, in the same order. What is
 * wrong is remembered, *value is then `min`, empty or -1. */
void state_i64(struct state *state, const char *key, int64_t *value,
    int64_t min, int64_t max);
void state_u64(struct state *state, const char *key, uint64_t *value);
void state_u32(
    struct state *state, const char *key, uint32_t *value, uint32_t max);
void state_int(
    struct state *state, const char *key, int *value, int min, int max);
void state_bool(struct state *state, const char *key, bool *value);
/* Read: a copy, which the caller frees. */
void state_string(struct state *state, const char *key, char **value);
/* Into an array of `size` bytes. */
void state_chars(
    struct state *state, const char *key, char *value, size_t size);
/* Any bytes; read: a copy, NUL-terminated. */
void state_bytes(
    struct state *state, const char *key, char **value, size_t *len);
void state_addr(struct state *state, const char *key, struct addr *value);
/* A descriptor that is kept, or -1. */
void state_fd(struct state *state, const char *key, int *value);

#endif
