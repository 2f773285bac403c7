/*
 * Our own NOTIFY_SOCKET, which is never passed on to apps.
 * Called by supervisor.c and reload.c.
 */
#include "supervisor/notify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <stddef.h>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/base/str.h"

void
notify_state(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = path == NULL ? 0 : strlen(path);
	int fd;

	if (len == 0 || len >= sizeof(addr.sun_path) ||
	    (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(addr.sun_path, path, len);
	if (path[0] == '@')
		addr.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return;
	if (sendto(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
		(struct sockaddr *)&addr,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) ==
	    -1)
		log_errno("cannot notify %s", path);
	close(fd);
}

void
notify_reloading(void)
{
	char text[80];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld",
	    (long long)clock_now_us());
	notify_state(text);
}

int
notify_watchdog_ms(void)
{
	const char *usec = getenv("WATCHDOG_USEC"),
		   *pid = getenv("WATCHDOG_PID");
	uint64_t number, ours;

	if (usec == NULL || getenv("NOTIFY_SOCKET") == NULL ||
	    str_to_u64(str_of(usec), INT32_MAX * UINT64_C(1000), &number) == -1)
		return 0;
	if (pid != NULL && (str_to_u64(str_of(pid), INT32_MAX, &ours) == -1 ||
			       (pid_t)ours != getpid()))
		return 0;
	number /= 1000;
	return number == 0 ? 1 : (int)number;
}
