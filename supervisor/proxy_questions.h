/*
 * Questions to the proxy that wait for their answers: probes and counters.
 * proxy_proc.c is the only user. Supervisor thread only.
 */
#ifndef SUPERVISOR_PROXY_QUESTIONS_H
#define SUPERVISOR_PROXY_QUESTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/ipc/frame.h"
#include "supervisor/proxy_proc.h"

struct proxy_questions; /* opaque */
struct supervisor;

struct proxy_questions *proxy_questions_new(
    struct supervisor *supervisor) MUST_CHECK;
/* All must have ended. */
void proxy_questions_free(struct proxy_questions **questions);

/* Remember one; its number is returned. Without an answer in time it is
 * answered for the proxy: not ready, no counters (false). */
typedef void proxy_answered_cb(bool answered, void *arg);
uint64_t proxy_questions_probe(struct proxy_questions *questions,
    int timeout_ms, proxy_probed_cb *on_probed, void *arg) MUST_CHECK;
uint32_t proxy_questions_query(struct proxy_questions *questions,
    int timeout_ms, proxy_answered_cb *on_answered, void *arg) MUST_CHECK;
/* No callback for this probe any more. */
void proxy_questions_cancel(struct proxy_questions *questions, uint64_t probe);
/* The proxy has ended: answer all. */
void proxy_questions_end(struct proxy_questions *questions, const char *why);

/* PROBED as it came. -1: malformed. */
int proxy_questions_probed(
    struct proxy_questions *questions, struct frame_in *in) MUST_CHECK;
/* The counters that were asked for have all come. */
void proxy_questions_answered(
    struct proxy_questions *questions, uint32_t query);

#endif
