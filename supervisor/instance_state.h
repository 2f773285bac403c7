/*
 * The life of an instance as a table: states, events, and what happens where
 * they meet. Pure; instance.c carries the actions out.
 */
#ifndef SUPERVISOR_INSTANCE_STATE_H
#define SUPERVISOR_INSTANCE_STATE_H

enum instance_state {
	INSTANCE_DOWN,     /* no process, none wanted */
	INSTANCE_STARTING, /* a process runs; it has not said it is ready */
	INSTANCE_RUNNING,  /* ready; the proxy may send it requests */
	INSTANCE_DRAINING, /* withdrawn; waits for its last requests */
	INSTANCE_STOPPING, /* told to end; SIGKILL at stop_timeout */
	INSTANCE_BACKOFF,  /* died too soon; the restart timer runs */
	INSTANCE_FAILED,   /* cannot be started as configured; retried slowly */
	INSTANCE_N_STATES,
};

enum instance_event {
	INSTANCE_START,   /* the app wants it */
	INSTANCE_READY,   /* the probe succeeded, READY=1, or it just lived */
	INSTANCE_STOP,    /* the app wants it no more: drain first */
	INSTANCE_KILL,    /* ... without draining */
	INSTANCE_DRAINED, /* the proxy has nothing open to it any more */
	INSTANCE_QUIET,   /* ... nothing but streams */
	INSTANCE_EXPIRED, /* the timer of the state is up: start_timeout,
			   * drain_timeout, stream_grace, the delay before a
			   * restart */
	INSTANCE_CANNOT,  /* no such user, program, directory */
	INSTANCE_GONE,    /* its whole tree of processes has ended */
	INSTANCE_N_EVENTS,
};

enum instance_action {
	INSTANCE_IGNORE,   /* late or repeated; nothing is to be done */
	INSTANCE_SPAWN,    /* start a process -> STARTING */
	INSTANCE_SERVE,    /* announce it -> RUNNING */
	INSTANCE_WITHDRAW, /* no new requests -> DRAINING */
	INSTANCE_SIGNAL,   /* stop signal -> STOPPING */
	INSTANCE_EXPIRE,   /* what drains has had its time */
	INSTANCE_LINGER,   /* its streams have stream_grace, DRAINING */
	INSTANCE_GIVE_UP,  /* not ready in time: stop signal -> STOPPING, and
			    * it counts as an early death */
	INSTANCE_RECOVER,  /* it died: at once or later again -> STARTING,
			    * BACKOFF */
	INSTANCE_FAIL,     /* -> FAILED, and a slow retry */
	INSTANCE_REST,     /* it ended as wanted -> DOWN */
	INSTANCE_FINISH,   /* the process we stopped has ended -> DOWN, or again
			    * when it was given up or is wanted again */
};

enum instance_action instance_state_action(
    enum instance_state state, enum instance_event event);
/* "running", for log, status and control. */
const char *instance_state_name(enum instance_state state);
const char *instance_event_name(enum instance_event event);

#endif
