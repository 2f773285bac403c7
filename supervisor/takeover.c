/*
 * A supervisor that takes the place of the process it was before, or only looks
 * whether it could. Entered from src/scalwsd.c; the old side is successor.c.
 * Checks all before it touches anything, so that there is a way back.
 */
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "src/base/log_thread.h"
#include "src/base/mem.h"
#include "src/base/signals.h"
#include "supervisor/handover.h"
#include "supervisor/process.h"
#include "supervisor/saved.h"
#include "supervisor/secrets.h"
#include "supervisor/state.h"
#include "supervisor/successor.h"
#include "supervisor/supervisor.h"
#include "supervisor/upgrade.h"

/* What was handed to us. */
struct given {
	struct state *state;
	struct saved saved;
	struct conf *conf, *first;
	char why[256]; /* "": all is well */
	char proof[STATE_PROOF_MAX];
};

static void
read_given(struct given *given, int state_fd)
{
	const char *why = "it cannot be read";
	struct conf_errors errors;
	char *text = NULL;
	size_t len;

	memset(given, 0, sizeof(*given));
	conf_errors_init(&errors);
	if (fd_read_whole(state_fd, STATE_BYTES_MAX, &text, &len) == 0) {
		state_proof((struct str){ text, len }, given->proof);
		given->state = state_read(text, len, &why);
	}
	mem_free(text);
	if (given->state != NULL) {
		if (saved_exchange(&given->saved, given->state) == 0) {
			given->conf = conf_from_flat(
			    given->saved.conf, given->saved.conf_len, &errors);
			given->first = conf_from_flat(given->saved.first,
			    given->saved.first_len, &errors);
		}
		why = state_error(given->state);
	}
	if (given->conf != NULL && given->first != NULL)
		why = handover_check(&given->saved, given->conf);
	else if (why == NULL)
		why =
		    errors.text.len > 0 ? errors.text.ptr : "no configuration";
	snprintf(given->why, sizeof(given->why), "%s", why == NULL ? "" : why);
	conf_errors_free(&errors);
}

static void
free_given(struct given *given)
{
	saved_free(&given->saved);
	state_free(&given->state);
	conf_free(given->conf);
	conf_free(given->first);
}

int
supervisor_rehearse(int state_fd)
{
	struct given given;
	int result;

	read_given(&given, state_fd);
	result = given.why[0] == '\0' ? 0 : 1;
	if (result == 0)
		printf("%s\n", given.proof);
	else
		fprintf(stderr,
		    "version %s does not understand the state: %s\n",
		    SCALWS_VERSION, given.why);
	free_given(&given);
	return result;
}

/* All that the process before us left open, and what the state came in. */
static void
check_fds(struct given *given, int state_fd, int back_fd)
{
	const char *why;
	const int *named;
	size_t n = 0;
	int *fds;

	if (given->why[0] != '\0')
		return;
	named = state_fds(given->state, &n);
	fds = mem_alloc_array(n + 2, sizeof(int));
	if (n > 0)
		memcpy(fds, named, n * sizeof(int));
	fds[n++] = state_fd;
	if (back_fd != -1)
		fds[n++] = back_fd;
	why = handover_check_fds(&given->saved, fds, n);
	snprintf(given->why, sizeof(given->why), "%s", why == NULL ? "" : why);
	mem_free(fds);
}

/* Returns when there is no way back, or none any more. */
static void
go_back(const struct given *given, int state_fd, int back_fd)
{
	const int *fds;
	size_t n;

	log_error(
	    "version %s cannot take over: %s", SCALWS_VERSION, given->why);
	if (back_fd == -1 || given->state == NULL)
		return;
	fds = state_fds(given->state, &n);
	successor_exec_state(&given->saved, back_fd, state_fd, fds, n);
	log_errno("cannot go back to the old version");
}

int
supervisor_run_restored(int state_fd, int back_fd)
{
	struct supervisor supervisor;
	struct given given;
	enum log_level level;

	log_init("supervisor", LOG_LEVEL_INFO, STDERR_FILENO);
	read_given(&given, state_fd);
	check_fds(&given, state_fd, back_fd);
	if (given.why[0] != '\0') {
		go_back(&given, state_fd, back_fd);
		free_given(&given);
		return 1;
	}
	supervisor_init(&supervisor, given.saved.conf_path);
	mem_free(supervisor.exe_path);
	supervisor.exe_path = mem_strdup(given.saved.exe_path);
	if (log_level_parse(given.conf->log_level, &level) == 0)
		log_init("supervisor", level, STDERR_FILENO);
	if (given.conf->error_log != NULL)
		log_thread_begin();
	supervisor.hold = conf_hold_adopt(given.conf,
	    secrets_adopt(given.saved.secrets, given.saved.n_secrets));
	supervisor.first = conf_hold_adopt(given.first, NULL);
	given.conf = given.first = NULL;
	supervisor.base = event_base_new();
	if (supervisor.base == NULL ||
	    supervisor_make_parts(&supervisor) == -1 ||
	    handover_give(&supervisor, &given.saved) == -1) {
		log_error("cannot take over: apps and proxy end");
		supervisor_release(&supervisor);
		free_given(&given);
		log_thread_end();
		return 1;
	}
	log_info(
	    "scalwsd %s goes on as process %d", SCALWS_VERSION, (int)getpid());
	fd_close(&state_fd);
	upgrade_resume(&supervisor, &given.saved, back_fd);
	signals_let_in();
	process_look(supervisor.processes);
	event_base_dispatch(supervisor.base);
	log_info("stopped");
	supervisor_release(&supervisor);
	free_given(&given);
	log_thread_end();
	return 0;
}
