/*
 * The full table of an instance's life.
 * Read by instance_event() in instance.c and by its unit test.
 * Every pair has an entry: a missing one does not compile away silently.
 */
#include "supervisor/instance_state.h"

#define IGN INSTANCE_IGNORE
#define SPN INSTANCE_SPAWN
#define SRV INSTANCE_SERVE
#define WDR INSTANCE_WITHDRAW
#define SIG INSTANCE_SIGNAL
#define EXP INSTANCE_EXPIRE
#define LNG INSTANCE_LINGER
#define GUP INSTANCE_GIVE_UP
#define REC INSTANCE_RECOVER
#define FAI INSTANCE_FAIL
#define RST INSTANCE_REST
#define FIN INSTANCE_FINISH

/* clang-format off */
static const enum instance_action
    table[INSTANCE_N_STATES][INSTANCE_N_EVENTS] = {
/*                       START READY STOP KILL DRAIN QUIET EXPIR CANNOT GONE */
[INSTANCE_DOWN]     = {  SPN,  IGN,  IGN, IGN, IGN,  IGN,  IGN,  FAI,   IGN },
[INSTANCE_STARTING] = {  IGN,  SRV,  SIG, SIG, IGN,  IGN,  GUP,  FAI,   REC },
[INSTANCE_RUNNING]  = {  IGN,  IGN,  WDR, SIG, IGN,  IGN,  IGN,  IGN,   REC },
[INSTANCE_DRAINING] = {  IGN,  IGN,  IGN, SIG, SIG,  LNG,  EXP,  IGN,   FIN },
[INSTANCE_STOPPING] = {  IGN,  IGN,  IGN, SIG, IGN,  IGN,  IGN,  IGN,   FIN },
[INSTANCE_BACKOFF]  = {  SPN,  IGN,  RST, RST, IGN,  IGN,  SPN,  FAI,   IGN },
[INSTANCE_FAILED]   = {  SPN,  IGN,  RST, RST, IGN,  IGN,  SPN,  FAI,   IGN },
};
/* clang-format on */

enum instance_action
instance_state_action(enum instance_state state, enum instance_event event)
{
	return table[state][event];
}

const char *
instance_state_name(enum instance_state state)
{
	switch (state) {
	case INSTANCE_DOWN:
		return "down";
	case INSTANCE_STARTING:
		return "starting";
	case INSTANCE_RUNNING:
		return "running";
	case INSTANCE_DRAINING:
		return "draining";
	case INSTANCE_STOPPING:
		return "stopping";
	case INSTANCE_BACKOFF:
		return "backoff";
	case INSTANCE_FAILED:
		return "failed";
	case INSTANCE_N_STATES:
		break;
	}
	return "?";
}

const char *
instance_event_name(enum instance_event event)
{
	static const char *const names[INSTANCE_N_EVENTS] = {
		[INSTANCE_START] = "start",
		[INSTANCE_READY] = "ready",
		[INSTANCE_STOP] = "stop",
		[INSTANCE_KILL] = "kill",
		[INSTANCE_DRAINED] = "drained",
		[INSTANCE_QUIET] = "quiet",
		[INSTANCE_EXPIRED] = "expired",
		[INSTANCE_CANNOT] = "cannot",
		[INSTANCE_GONE] = "gone",
	};

	return event < INSTANCE_N_EVENTS ? names[event] : "?";
}
