/*
 * Dispositions of signals, for the daemon's processes and what they start.
 * Called first thing in a process, or between fork and exec.
 * Installs no handler.
 */
#include "src/base/signals.h"

#include <stdbool.h>
#include <string.h>

static void
set_action(int signal_no, void (*handler)(int))
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = handler;
	/* Fails for those that nobody can change, and those of the C
	 * library. */
	sigaction(signal_no, &action, NULL);
}

/* Is the end of the process what it does by default, and not for a fault of
 * the process itself, which must be seen? */
static bool
ends_by_default(int signal_no)
{
	switch (signal_no) {
	case SIGSEGV:
	case SIGBUS:
	case SIGILL:
	case SIGFPE:
	case SIGABRT:
	case SIGSYS:
	case SIGTRAP:
		return false;
	case SIGCHLD: /* ignored, children could not be waited for */
	case SIGCONT:
	case SIGURG:
	case SIGWINCH:
		return false;
	case SIGSTOP:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
		return false;
	default:
		return true;
	}
}

void
signals_ignore(const sigset_t *but)
{
	for (int signal_no = 1; signal_no < NSIG; signal_no++)
		if (ends_by_default(signal_no) &&
		    (but == NULL || sigismember(but, signal_no) == 0))
			set_action(signal_no, SIG_IGN);
}

void
signals_ignore_terminal(void)
{
	signals_ignore(NULL);
	set_action(SIGTSTP, SIG_IGN);
	set_action(SIGTTIN, SIG_IGN);
	set_action(SIGTTOU, SIG_IGN);
}

void
signals_let_in(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void
signals_reset(void)
{
	for (int signal_no = 1; signal_no < NSIG; signal_no++)
		set_action(signal_no, SIG_DFL);
	signals_let_in();
}
