/*
 * What the daemon tells the service manager (sd_notify's protocol).
 * Never blocks; silent without NOTIFY_SOCKET.
 */
#ifndef SUPERVISOR_NOTIFY_H
#define SUPERVISOR_NOTIFY_H

/* "READY=1", "STOPPING=1", "STATUS=..." */
void notify_state(const char *text);
/* RELOADING=1 with the time that Type=notify-reload wants. */
void notify_reloading(void);

/* How often the service manager wants to hear WATCHDOG=1 at least; 0: never. */
int notify_watchdog_ms(void);

#endif
