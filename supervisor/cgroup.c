/*
 * cgroup v2: finding our own, and directories below it for keepers' trees.
 * Home and stale ones by supervisor.c, the rest by keeper.c. Touches nothing
 * that is not below "scalws-..." in the daemon's own cgroup.
 */
#include "supervisor/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/str.h"

#define PROC_TEXT_MAX (1024 * 1024)
#define REMOVE_TRIES 100 /* a pause each */
#define PAUSE_NS 2000000

/* ---- where we are ---- */

/* The path after "0::", which is that of cgroup v2. */
static bool
find_v2(const char *cgroups, struct str *path)
{
	struct str rest = str_of(cgroups), line;

	while (str_split(&rest, '\n', &line))
		if (str_starts_with(line, STR("0::/"))) {
			*path = (struct str){ line.ptr + 3, line.len - 3 };
			return true;
		}
	return false;
}

/* A line of mountinfo: is it cgroup2, and what is mounted where? */
static bool
parse_mount(struct str line, struct str *root, struct str *point)
{
	struct str word;
	int at = 0;

	*root = *point = STR("");

	while (str_split(&line, ' ', &word)) {
		at++;
		if (at == 4)
			*root = word;
		else if (at == 5)
			*point = word;
		else if (at > 6 && str_eq(word, STR("-")))
			return str_split(&line, ' ', &word) &&
			       str_eq(word, STR("cgroup2"));
	}
	return false;
}

int
cgroup_parse(const char *cgroups, const char *mounts, char to[CGROUP_PATH_MAX])
{
	struct str rest = str_of(mounts), path, line, root, point, below;
	int n;

	if (!find_v2(cgroups, &path))
		return -1;
	while (str_split(&rest, '\n', &line)) {
		if (!parse_mount(line, &root, &point))
			continue;
		below = path;
		if (root.len > 1) {
			if (!str_starts_with(path, root))
				continue;
			below.ptr += root.len;
			below.len -= root.len;
		}
		if (below.len > 0 && below.ptr[0] != '/')
			continue;
		n = snprintf(to, CGROUP_PATH_MAX, "%.*s%.*s", (int)point.len,
		    point.ptr, (int)below.len, below.ptr);
		/* "/.." is above what is mounted; a backslash is a blank. */
		if (n > 0 && n < CGROUP_PATH_MAX && strstr(to, "/..") == NULL &&
		    strchr(to, '\\') == NULL)
			return 0;
	}
	return -1;
}

static int
find_own(char to[CGROUP_PATH_MAX])
{
	char *cgroups = NULL, *mounts = NULL;
	int result = -1;
	size_t len;

	if (fd_read_file("/proc/self/cgroup", PROC_TEXT_MAX, &cgroups, &len) ==
		0 &&
	    fd_read_file(
		"/proc/self/mountinfo", PROC_TEXT_MAX, &mounts, &len) == 0)
		result = cgroup_parse(cgroups, mounts, to);
	mem_free(cgroups);
	mem_free(mounts);
	return result;
}

/* ---- one cgroup ---- */

void
cgroup_path(
    const char *home, const char *app, pid_t pid, char to[CGROUP_PATH_MAX])
{
	snprintf(to, CGROUP_PATH_MAX, "%s/%s.%d", home, app, (int)pid);
}

static int
open_file(const char *path, const char *file)
{
	char name[CGROUP_PATH_MAX + 32];

	snprintf(name, sizeof(name), "%s/%s", path, file);
	return open(name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
}

void
cgroup_kill(const char *path)
{
	int fd = open_file(path, "cgroup.kill");

	if (fd != -1 && write(fd, "1", 1) == -1)
		log_debug("cannot kill %s: %s", path, strerror(errno));
	fd_close(&fd);
}

void
cgroup_remove(const char *path)
{
	struct timespec pause = { 0, PAUSE_NS };

	for (int i = 0; rmdir(path) == -1 && errno == EBUSY; i++) {
		if (i == REMOVE_TRIES) {
			log_warn(
			    "%s cannot be removed: somebody is in it", path);
			return;
		}
		nanosleep(&pause, NULL);
	}
}

int
cgroup_make(const char *path)
{
	int fd;

	if (mkdir(path, 0755) == -1 && errno != EEXIST)
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd == -1 || flock(fd, LOCK_EX | LOCK_NB) == -1) {
		fd_close(&fd);
		return -1;
	}
	return fd;
}

pid_t
cgroup_fork(int fd)
{
	struct clone_args how;
	long pid;

	if (fd == -1)
		return fork();
	memset(&how, 0, sizeof(how));
	how.flags = CLONE_INTO_CGROUP;
	how.exit_signal = SIGCHLD;
	how.cgroup = (unsigned)fd;
	/* Not written to cgroup.procs later: that waits for the whole machine
	 * for milliseconds. */
	pid = syscall(SYS_clone3, &how, sizeof(how));
	return pid == -1 ? fork() : (pid_t)pid;
}

/* ---- all of them ---- */

/* Also of one that begins, and has no lock yet. */
static bool
keeper_is_there(const char *name)
{
	const char *dot = strrchr(name, '.');
	uint64_t pid;

	return dot != NULL &&
	       str_to_u64(str_of(dot + 1), INT32_MAX, &pid) == 0 && pid > 0 &&
	       (kill((pid_t)pid, 0) == 0 || errno != ESRCH);
}

/* What has no living keeper is ended and removed; `waits`: until it has ended,
 * and nobody begins a keeper meanwhile. */
static void
end_stale(const char *home, bool waits)
{
	char path[CGROUP_PATH_MAX + 256];
	struct dirent *entry;
	DIR *dir = opendir(home);

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		int fd;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
		    (!waits && keeper_is_there(entry->d_name)))
			continue;
		snprintf(path, sizeof(path), "%s/%s", home, entry->d_name);
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd != -1 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
			cgroup_kill(path);
			if (waits)
				cgroup_remove(path);
			else
				rmdir(path);
		}
		fd_close(&fd);
	}
	if (dir != NULL)
		closedir(dir);
}

char *
cgroup_enter(const char *run)
{
	char own[CGROUP_PATH_MAX];
	struct stat st;
	char *home;
	int kill_fd;

	if (stat(run, &st) == -1 || find_own(own) == -1) {
		log_info("no cgroup v2 here: keepers do without");
		return NULL;
	}
	/* Not by its path: another mount namespace may have the same one. */
	home = mem_printf("%s%sscalws-%llx-%llx", own,
	    str_ends_with(str_of(own), STR("/")) ? "" : "/",
	    (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	if (mkdir(home, 0755) == -1 && errno != EEXIST) {
		log_info("%s cannot be made (%s): keepers do without", home,
		    strerror(errno));
		mem_free(home);
		return NULL;
	}
	kill_fd = open_file(home, "cgroup.kill");
	if (kill_fd == -1) {
		log_info("this kernel has no cgroup.kill: keepers do without");
		rmdir(home);
		mem_free(home);
		return NULL;
	}
	fd_close(&kill_fd);
	end_stale(home, true);
	return home;
}

void
cgroup_tidy(const char *home)
{
	if (home != NULL)
		end_stale(home, false);
}

void
cgroup_leave(char **home_ptr)
{
	char *home = *home_ptr;

	*home_ptr = NULL;
	if (home == NULL)
		return;
	end_stale(home, true);
	rmdir(home);
	mem_free(home);
}
