/*
 * Opens the files that the proxy may only write to.
 * Used by proxy_proc.c for PREPARE and REOPEN_LOGS, and for the error log.
 */
#include "supervisor/access_logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fdutil.h"
#include "src/base/log_thread.h"
#include "supervisor/run_dir.h"

int
access_logs_open_file(const char *path)
{
	struct stat st;
	int fd;

	/* What the container or the terminal gave us. */
	if (strcmp(path, "/dev/stdout") == 0 ||
	    strcmp(path, "/dev/stderr") == 0)
		return fcntl(strcmp(path, "/dev/stdout") == 0 ? 1 : 2,
		    F_DUPFD_CLOEXEC, 3);
	fd = open(path,
	    O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
	    0640);
	if (fd == -1)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_uid == geteuid() && fchmod(fd, 0640) == -1) {
		fd_close(&fd);
		return -1;
	}
	return fd;
}

int
access_logs_open(const struct conf *conf, int fds[FRAME_FDS_MAX - 1],
    uint32_t *n, struct conf_errors *errors)
{
	const char *paths[FRAME_FDS_MAX];
	int result = 0;

	*n = 0;
	for (size_t i = 0; i < conf->n_sites + 1; i++) {
		const char *path =
		    i == 0 ? conf->access_log : conf->sites[i - 1].access_log;
		const struct conf_where *where =
		    i == 0 ? NULL : &conf->sites[i - 1].where;
		bool known = path == NULL;

		for (uint32_t j = 0; j < *n && !known; j++)
			known = strcmp(paths[j], path) == 0;
		if (known)
			continue;
		if (*n == FRAME_FDS_MAX - 1) {
			result = conf_errors_add(errors, where, "access_log",
			    "more than %d different files", FRAME_FDS_MAX - 1);
			break;
		}
		fds[*n] = access_logs_open_file(path);
		if (fds[*n] == -1)
			result = conf_errors_add_errno(errors, where,
			    "access_log", "cannot open %s", path);
		paths[(*n)++] = path;
	}
	if (result == -1)
		while (*n > 0)
			fd_close(&fds[--*n]);
	return result;
}

int
access_logs_open_error(const struct conf *conf, struct conf_errors *errors)
{
	int fd;

	if (conf->error_log == NULL)
		return 0;
	fd = access_logs_open_file(conf->error_log);
	if (fd == -1 || dup2(fd, STDERR_FILENO) == -1) {
		fd_close(&fd);
		return conf_errors_add_errno(errors, NULL, "error_log",
		    "cannot open %s", conf->error_log);
	}
	fd_close(&fd);
	log_thread_begin();
	return 0;
}

int
access_logs_make_directory(const struct conf *conf, struct conf_errors *errors)
{
	if (run_dir_make_path(conf->log_directory, 0750) == -1)
		return conf_errors_add_errno(errors, NULL, "log_directory",
		    "cannot make %s", conf->log_directory);
	return 0;
}
