/*
 * Reads /proc/PID/stat of all processes and finds descendants.
 * Used by keeper.c and status.c. Signals nobody.
 */
#include "supervisor/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"

int
tree_parse_stat(const char *text, struct tree_process *process)
{
	/* The name is in brackets and may hold brackets and spaces itself. */
	const char *end = strrchr(text, ')');
	unsigned long long user, system;
	long long rss;
	int pid, ppid;

	memset(process, 0, sizeof(*process));
	if (end == NULL || sscanf(text, "%d (", &pid) != 1)
		return -1;
	if (sscanf(end + 1,
		" %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu "
		"%*s %*s %*s %*s %*s %*s %*s %*s %lld",
		&process->state, &ppid, &user, &system, &rss) != 5)
		return -1;
	process->pid = pid;
	process->ppid = ppid;
	process->cpu_ms =
	    (user + system) * 1000 / (unsigned long long)sysconf(_SC_CLK_TCK);
	process->rss_bytes =
	    rss < 0 ? 0 : (uint64_t)rss * (uint64_t)sysconf(_SC_PAGESIZE);
	return 0;
}

static int
read_process(int proc_fd, const char *pid, struct tree_process *process)
{
	char path[64], text[1024];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%.20s/stat", pid);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	return tree_parse_stat(text, process);
}

int
tree_read(struct tree *tree)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	size_t room = 0;

	tree->processes = NULL;
	tree->n = 0;
	if (proc == NULL)
		return -1;
	while ((entry = readdir(proc)) != NULL) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		if (tree->n == room) {
			room = room == 0 ? 256 : room * 2;
			tree->processes = mem_realloc(
			    tree->processes, room, sizeof(*tree->processes));
		}
		if (read_process(dirfd(proc), entry->d_name,
			&tree->processes[tree->n]) == 0)
			tree->n++;
	}
	closedir(proc);
	return 0;
}

void
tree_free(struct tree *tree)
{
	mem_free(tree->processes);
	tree->processes = NULL;
	tree->n = 0;
}

static bool
is_below(const struct tree *tree, pid_t pid, pid_t top)
{
	if (pid == top)
		return true;
	for (size_t i = 0; i < tree->n; i++)
		if (tree->processes[i].pid == pid)
			return tree->processes[i].below;
	return false;
}

size_t
tree_mark_below(struct tree *tree, pid_t pid)
{
	size_t count = 0, before;

	for (size_t i = 0; i < tree->n; i++)
		tree->processes[i].below = false;
	do {
		before = count;
		for (size_t i = 0; i < tree->n; i++) {
			struct tree_process *process = &tree->processes[i];

			if (process->below || process->pid == pid ||
			    !is_below(tree, process->ppid, pid))
				continue;
			process->below = true;
			count++;
		}
	} while (count != before);
	return count;
}

uint64_t
tree_rss_bytes(struct tree *tree, pid_t pid)
{
	uint64_t bytes = 0;

	tree_mark_below(tree, pid);
	for (size_t i = 0; i < tree->n; i++)
		if (tree->processes[i].below || tree->processes[i].pid == pid)
			bytes += tree->processes[i].rss_bytes;
	return bytes;
}
