/*
 * Files of the run directory: the lock and the private sockets.
 * Opened by supervisor.c before anything else; sockets by instance.c.
 * Only we create and remove sockets here, apps never.
 */
#include "supervisor/run_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/priv.h"
#include "src/base/str.h"
#include "supervisor/runtimes.h"

#define LOCK_NAME "scalwsd.lock"

int
run_dir_make_path(const char *path, mode_t mode)
{
	char *copy = mem_strdup(path), *at = copy;
	struct stat st;
	int result;

	while ((at = strchr(at + 1, '/')) != NULL) {
		*at = '\0';
		if (mkdir(copy, 0755) == 0 && chmod(copy, 0755) == -1)
			break;
		*at = '/';
	}
	result = mkdir(copy, mode);
	if (result == 0)
		result = chmod(copy, mode);
	else if (errno == EEXIST && stat(copy, &st) == 0)
		result = S_ISDIR(st.st_mode) ? 0 : (errno = ENOTDIR, -1);
	mem_free(copy);
	return result;
}

static void
path_of(const struct run_dir *run, const char *name, char *to, size_t size)
{
	snprintf(to, size, "%s/%s", run->path, name);
}

static bool
app_makes_socket(const struct conf *conf)
{
	for (size_t i = 0; i < conf->n_apps; i++) {
		struct runtime_traits traits;

		runtime_traits(&conf->apps[i], &traits);
		if (traits.own_socket)
			return true;
	}
	return false;
}

static int
set_owner(
    struct run_dir *run, const struct conf *conf, struct conf_errors *errors)
{
	const char *what = "";
	struct priv proxy;
	mode_t mode;

	run->root = geteuid() == 0;
	if (!run->root)
		return 0;
	run->proxy_gid = getegid();
	if (conf->user != NULL) {
		if (priv_lookup(conf->user, conf->group, &proxy, &what) == -1)
			return conf_errors_add(
			    errors, NULL, "user", "there is no %s", what);
		run->proxy_gid = proxy.gid;
	}
	/* An app that makes its own socket must get through to its place; it
	 * cannot list, and the other sockets are closed to it. */
	mode =
	    app_makes_socket(conf) || conf->control.group != NULL ? 0751 : 0750;
	if (chown(run->path, 0, run->proxy_gid) == -1 ||
	    chmod(run->path, mode) == -1)
		return conf_errors_add_errno(errors, NULL, "run_directory",
		    "cannot give %s to the proxy's group", run->path);
	return 0;
}

/* The one who had it before us may have removed it at its end: then the lock is
 * on a file that nobody else will see. */
static bool
is_in_place(int fd, const char *path)
{
	struct stat ours, there;

	return fstat(fd, &ours) == 0 && lstat(path, &there) == 0 &&
	       ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

static int
lock(struct run_dir *run, struct conf_errors *errors)
{
	char path[4096], pid[32];
	int n;

	path_of(run, LOCK_NAME, path, sizeof(path));
	run->lock_fd =
	    open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (run->lock_fd == -1)
		return conf_errors_add_errno(
		    errors, NULL, "run_directory", "cannot open %s", path);
	if (flock(run->lock_fd, LOCK_EX | LOCK_NB) == -1 ||
	    !is_in_place(run->lock_fd, path)) {
		n = (int)pread(run->lock_fd, pid, sizeof(pid) - 1, 0);
		pid[n > 0 ? n : 0] = '\0';
		pid[strcspn(pid, "\n")] = '\0';
		fd_close(&run->lock_fd);
		return conf_errors_add(errors, NULL, "run_directory",
		    "another scalwsd (process %s) runs in %s", pid, run->path);
	}
	n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	if (ftruncate(run->lock_fd, 0) == -1 ||
	    pwrite(run->lock_fd, pid, (size_t)n, 0) != n)
		log_errno("cannot write %s", path);
	return 0;
}

/* Sockets and places of a daemon that was killed; we hold the lock. */
static void
remove_stale(const struct run_dir *run)
{
	DIR *dir = opendir(run->path);
	struct dirent *entry;

	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL) {
		struct str name = str_of(entry->d_name);

		if (str_ends_with(name, STR(".sock")))
			run_dir_remove(run, entry->d_name);
		else if (str_ends_with(name, STR(".place")))
			run_dir_remove_place(run, entry->d_name);
	}
	closedir(dir);
}

int
run_dir_open(
    struct run_dir *run, const struct conf *conf, struct conf_errors *errors)
{
	memset(run, 0, sizeof(*run));
	run->lock_fd = -1;
	run->path = mem_strdup(conf->run_directory);
	if (run_dir_make_path(run->path, 0750) == -1) {
		conf_errors_add_errno(
		    errors, NULL, "run_directory", "cannot make %s", run->path);
		run_dir_close(run);
		return -1;
	}
	if (lock(run, errors) == -1 || set_owner(run, conf, errors) == -1) {
		run_dir_close(run);
		return -1;
	}
	remove_stale(run);
	return 0;
}

void
run_dir_close(struct run_dir *run)
{
	/* While it is ours. */
	if (run->lock_fd != -1)
		run_dir_remove(run, LOCK_NAME);
	fd_close(&run->lock_fd);
	mem_free((void *)(uintptr_t)run->path);
	run->path = NULL;
}

bool
run_dir_is_locked(const struct run_dir *run)
{
	char path[4096];
	struct stat here, there;

	path_of(run, LOCK_NAME, path, sizeof(path));
	return fstat(run->lock_fd, &here) == 0 && stat(path, &there) == 0 &&
	       here.st_dev == there.st_dev && here.st_ino == there.st_ino &&
	       flock(run->lock_fd, LOCK_EX | LOCK_NB) == 0;
}

int
run_dir_listen(const struct run_dir *run, const char *name, struct addr *addr)
{
	mode_t mode = run->root ? 0660 : 0600;
	char path[4096];
	int fd, error;

	path_of(run, name, path, sizeof(path));
	if (addr_unix(path, addr) == -1) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return -1;
	unlink(path);
	if (bind(fd, &addr->u.sa, addr->len) == -1 ||
	    (run->root && chown(path, 0, run->proxy_gid) == -1) ||
	    chmod(path, mode) == -1 || listen(fd, RUNTIME_BACKLOG) == -1) {
		error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

int
run_dir_make_place(const struct run_dir *run, const char *name, uid_t uid)
{
	char path[4096];

	run_dir_remove_place(run, name);
	path_of(run, name, path, sizeof(path));
	if (mkdir(path, 0700) == -1)
		return -1;
	if (!run->root)
		return 0;
	/* Set-group-ID: what the app makes there has the proxy's group. */
	if (chown(path, uid, run->proxy_gid) == -1 || chmod(path, 02750) == -1)
		return -1;
	return 0;
}

void
run_dir_remove(const struct run_dir *run, const char *name)
{
	char path[4096];

	path_of(run, name, path, sizeof(path));
	unlink(path);
}

void
run_dir_remove_place(const struct run_dir *run, const char *name)
{
	char path[4096];
	struct dirent *entry;
	int fd;
	DIR *dir;

	path_of(run, name, path, sizeof(path));
	/* The app owns it: follow no link that it may have put there. */
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dir = fd == -1 ? NULL : fdopendir(fd);
	if (dir == NULL) {
		fd_close(&fd);
		return;
	}
	while ((entry = readdir(dir)) != NULL)
		unlinkat(fd, entry->d_name, 0);
	closedir(dir);
	rmdir(path);
}
