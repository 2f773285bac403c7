/*
 * Ends what works for nobody: the one child of a master, found by the socket it
 * holds, or a whole instance, by way of app_roll.c.
 * Called for the proxy's STUCK. Knows nothing of requests.
 */
#include "supervisor/stuck.h"

#include <dirent.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "supervisor/app.h"
#include "supervisor/app_log.h"
#include "supervisor/app_roll.h"
#include "supervisor/instance.h"
#include "supervisor/tree.h"

/* ---- the other end of a socket ---- */

static int
ask_kernel(int fd, uint32_t inode)
{
	struct {
		struct nlmsghdr header;
		struct unix_diag_req ask;
	} message = {
		.header = { .nlmsg_len = sizeof(message),
		    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		    .nlmsg_flags = NLM_F_REQUEST },
		.ask = { .sdiag_family = AF_UNIX,
		    .udiag_states = UINT32_MAX,
		    .udiag_ino = inode,
		    .udiag_show = UDIAG_SHOW_PEER,
		    .udiag_cookie = { UINT32_MAX, UINT32_MAX } },
	};

	return send(fd, &message, sizeof(message), 0) ==
		       (ssize_t)sizeof(message)
		   ? 0
		   : -1;
}

/* The peer's inode of the answer; 0: it is not connected (any more). */
static int
understand(const char *answer, size_t len, uint32_t *peer)
{
	struct nlmsghdr header;
	struct nlmsgerr error;
	struct nlattr attr;
	size_t at = NLMSG_LENGTH(sizeof(struct unix_diag_msg));

	*peer = 0;
	if (len < sizeof(header))
		return -1;
	memcpy(&header, answer, sizeof(header));
	if (header.nlmsg_type == NLMSG_ERROR &&
	    len >= NLMSG_LENGTH(sizeof(error))) {
		memcpy(&error, answer + NLMSG_HDRLEN, sizeof(error));
		errno = -error.error;
		return errno == ENOENT ? 0 : -1;
	}
	while (at + sizeof(attr) <= len) {
		memcpy(&attr, answer + at, sizeof(attr));
		if (attr.nla_len < sizeof(attr) || at + attr.nla_len > len)
			return -1;
		if (attr.nla_type == UNIX_DIAG_PEER &&
		    attr.nla_len >= NLA_HDRLEN + sizeof(*peer))
			memcpy(peer, answer + at + NLA_HDRLEN, sizeof(*peer));
		at += NLA_ALIGN(attr.nla_len);
	}
	return 0;
}

static int
peer_inode(uint64_t inode, uint32_t *peer)
{
	char answer[1024];
	int fd, result = -1;
	ssize_t n;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (fd == -1)
		return -1;
	if (ask_kernel(fd, (uint32_t)inode) == 0) {
		n = recv(fd, answer, sizeof(answer), 0);
		if (n > 0)
			result = understand(answer, (size_t)n, peer);
	}
	fd_close(&fd);
	return result;
}

/* ---- who holds it ---- */

static bool
holds_socket(pid_t pid, uint32_t inode)
{
	char path[64], wanted[40], link[40];
	struct dirent *entry;
	bool found = false;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	snprintf(wanted, sizeof(wanted), "socket:[%u]", inode);
	fds = opendir(path);
	if (fds == NULL)
		return false;
	while (!found && (entry = readdir(fds)) != NULL) {
		ssize_t n = readlinkat(
		    dirfd(fds), entry->d_name, link, sizeof(link) - 1);

		if (n <= 0)
			continue;
		link[n] = '\0';
		found = strcmp(link, wanted) == 0;
	}
	closedir(fds);
	return found;
}

/* It may end what it does at any moment and take another request: it is held
 * still before the last look. */
static bool
kill_holder(pid_t pid, uint32_t inode)
{
	int fd = pidfd_open(pid, 0);
	bool holds = false;

	if (fd == -1)
		return false;
	if (holds_socket(pid, inode) &&
	    pidfd_send_signal(fd, SIGSTOP, NULL, 0) == 0) {
		holds = holds_socket(pid, inode);
		if (pidfd_send_signal(fd, holds ? SIGKILL : SIGCONT, NULL, 0) ==
		    -1)
			holds = false;
	}
	fd_close(&fd);
	return holds;
}

pid_t
stuck_kill_peer(pid_t parent, uint64_t inode)
{
	struct tree tree;
	uint32_t peer;
	pid_t found = 0;

	if (peer_inode(inode, &peer) == -1)
		return -1;
	if (peer == 0 || tree_read(&tree) == -1)
		return peer == 0 ? 0 : -1;
	for (size_t i = 0; i < tree.n && found == 0; i++)
		if (tree.processes[i].ppid == parent &&
		    kill_holder(tree.processes[i].pid, peer))
			found = tree.processes[i].pid;
	tree_free(&tree);
	return found;
}

/* ---- what is done ---- */

static void
end_child(const struct instance *instance, uint64_t inode, const char *why)
{
	const struct app *app = instance->app;
	pid_t pid = stuck_kill_peer(instance->pid, inode);

	if (pid == -1) {
		log_errno("app=%s pid=%d: the child that works for nobody is "
			  "not found",
		    app->name, (int)instance->pid);
		return;
	}
	if (pid == 0)
		return; /* it has ended it by itself */
	log_warn("app=%s pid=%d child pid=%d killed: %s", app->name,
	    (int)instance->pid, (int)pid, why);
	app_log_note(app->log, "pid %d killed: %s", (int)pid, why);
}

void
stuck_end(struct instance *instance, const struct channel_stuck *stuck)
{
	const char *why = stuck->reason == CHANNEL_STUCK_TIMEOUT
			      ? "a request took longer than request_timeout"
			      : "it works on for a client that has left";

	/* When it is to end anyway, its own deadlines count. */
	if (instance->state != INSTANCE_RUNNING)
		return;
	if (instance->app->conf->runtime == CONF_PHP)
		end_child(instance, stuck->inode, why);
	else if (instance->traits.cap == 1)
		app_replace(instance, why);
}
