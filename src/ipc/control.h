/*
 * The control protocol between scalwsctl and the supervisor: lines of text
 * over a unix stream socket.
 *
 *   request   VERB [ARGUMENT...]\n           one per connection; arguments are
 *             separated by one space, %XX-encoded where they hold space, % or
 *             a control byte; at most CONTROL_LINE_MAX bytes
 *   answer    any number of   "o TEXT\n"     a line for standard output
 *                             "e TEXT\n"     a line for standard error
 *             then exactly one "x CODE\n"    exit code, and the end
 *
 * TEXT has no control bytes but TAB. Verbs: version; status [APP]; status-json
 * [APP]; start APP; stop APP; restart APP [all]; scale APP N; logs APP LINES
 * FOLLOW(0|1); reopen; reload [dry]; upgrade; check. Only the answer's end says
 * that a command is done; closing early cancels the waiting, not the command.
 */
#ifndef IPC_CONTROL_H
#define IPC_CONTROL_H

#include <stddef.h>

#include "src/base/compiler.h"
#include "src/base/str.h"
#include "src/base/strbuf.h"

#define CONTROL_LINE_MAX 4096
#define CONTROL_ARGS_MAX 8

/* Exit codes of scalwsctl, a contract for scripts. */
enum control_exit {
	CONTROL_OK = 0,
	CONTROL_FAILED = 1,      /* it was tried and did not work */
	CONTROL_USAGE = 2,       /* unknown verb, app or argument */
	CONTROL_UNREACHABLE = 3, /* no daemon, or it went away */
	CONTROL_DENIED = 4,      /* not allowed for this user */
	CONTROL_DOWN = 5,        /* status APP: it is not running */
};

struct control_request {
	const char *verb;
	const char *args[CONTROL_ARGS_MAX + 1]; /* NULL-terminated, decoded */
	size_t n_args;
	char text[CONTROL_LINE_MAX + 1]; /* owns the above */
};

/* Parse one line without its newline. 0, or -1 with a reason (static text). */
int control_parse(struct str line, struct control_request *request,
    const char **why) MUST_CHECK;
/* Append the encoded request line, newline included. */
void control_encode(
    struct strbuf *to, const char *verb, const char *const *args);

/* Append an answer line; `text` may hold several lines, each becomes one. */
void control_put_line(struct strbuf *to, char kind, struct str text);
void control_put_exit(struct strbuf *to, int code);

enum control_kind { CONTROL_OUT, CONTROL_ERR, CONTROL_EXIT, CONTROL_BAD };
/* Understand an answer line without its newline. */
enum control_kind control_parse_answer(
    struct str line, struct str *text, int *code) MUST_CHECK;

#endif
