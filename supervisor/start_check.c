/*
 * The look at files that a start would refuse, and that an app would fail by.
 * Called by main() for `scalwsd -t` and role "check", never by the daemon: a
 * disk that hangs must not keep it back. Makes nothing, opens no log.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "supervisor/env_file.h"
#include "supervisor/supervisor.h"

struct look {
	const struct conf *conf;
	struct conf_errors *errors;
	bool must_read; /* what we may not see the daemon cannot either */
};

/* `why` NULL: errno. Who only checks the file may be somebody else. */
static void
refuse(const struct look *look, const struct conf_place *place,
    const char *path, const char *why)
{
	bool is_ours = why != NULL || errno != EACCES || look->must_read;

	if (why == NULL)
		why = strerror(errno);
	if (is_ours)
		conf_errors_add(look->errors, &place->where, place->path,
		    "%.200s: %s", path, why);
	else
		conf_errors_warn(look->errors, &place->where, place->path,
		    "%.200s: %s", path, why);
}

/* Never of "/". */
static char *
parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL || slash == path
		   ? mem_strdup("/")
		   : mem_memdup0(path, (size_t)(slash - path));
}

/* A directory that we have these rights to (access); -1 with errno. */
static int
try_directory(const char *path, int rights)
{
	struct stat st;

	if (stat(path, &st) == -1)
		return -1;
	if (!S_ISDIR(st.st_mode)) {
		errno = ENOTDIR;
		return -1;
	}
	return access(path, rights);
}

/* The start makes it with all above it (run_dir_make_path). `rights`: to one
 * that is there. */
static void
look_at_directory(
    const struct look *look, const char *key, const char *path, int rights)
{
	struct conf_place place;
	char *at = mem_strdup(path), *above;
	int result;

	while ((result = try_directory(at, rights)) == -1 && errno == ENOENT &&
	       strcmp(at, "/") != 0) {
		rights = W_OK | X_OK;
		above = parent_of(at);
		mem_free(at);
		at = above;
	}
	if (result == -1) {
		conf_place_top(&place, look->conf, key);
		refuse(look, &place, at, NULL);
	}
	mem_free(at);
}

/* Is it `path`, or above it? */
static bool
holds(const char *directory, const char *path)
{
	size_t len = strlen(directory);

	return strncmp(directory, path, len) == 0 &&
	       (path[len] == '\0' || path[len] == '/');
}

/* May a file be made there, when the start has made its directories? */
static int
try_place(const struct look *look, const char *path)
{
	char *directory = parent_of(path);
	int result = try_directory(directory, W_OK | X_OK);

	if (result == -1 && errno == ENOENT &&
	    (holds(directory, look->conf->log_directory) ||
		holds(directory, look->conf->run_directory)))
		result = 0;
	mem_free(directory);
	return result;
}

/* The start opens it, the error log and access logs alike. */
static void
look_at_log(
    const struct look *look, const char *path, const struct conf_place *place)
{
	struct stat st;

	/* access_logs_open_file has these already. */
	if (path == NULL || strcmp(path, "/dev/stdout") == 0 ||
	    strcmp(path, "/dev/stderr") == 0)
		return;
	if (lstat(path, &st) == -1) {
		if (errno != ENOENT || try_place(look, path) == -1)
			refuse(look, place, path, NULL);
	} else if (S_ISLNK(st.st_mode)) {
		refuse(look, place, path,
		    "is a symbolic link, and logs follow none");
	} else if (S_ISDIR(st.st_mode) || S_ISSOCK(st.st_mode)) {
		refuse(look, place, path,
		    S_ISDIR(st.st_mode) ? "is a directory" : "is a socket");
	} else if (S_ISFIFO(st.st_mode)) {
		conf_errors_warn(look->errors, &place->where, place->path,
		    "%.200s: is a FIFO, which can be opened only while "
		    "somebody reads it",
		    path);
	} else if (access(path, W_OK) == -1) {
		refuse(look, place, path, NULL);
	}
}

/* NULL: log_disk.c can write there. */
static const char *
app_log_problem(const struct look *look, const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0)
		return S_ISREG(st.st_mode) ? NULL : "is no regular file";
	if (errno == ENOENT && try_place(look, path) == 0)
		return NULL;
	return strerror(errno);
}

/* One broken app keeps no site from being served: only warnings. */
static void
look_at_app(const struct look *look, const struct conf_app *app)
{
	const char *problem = app_log_problem(look, app->log.file);
	struct words words = { NULL, 0 };
	struct conf_place place;
	char why[512];

	conf_place_app(&place, look->conf, app, "log.file");
	if (problem != NULL)
		conf_errors_warn(look->errors, &place.where, place.path,
		    "%.200s: %s; what the app says will be lost", app->log.file,
		    problem);
	if (app->environment_file == NULL)
		return;
	conf_place_app(&place, look->conf, app, "environment_file");
	if (env_file_read(app->environment_file, &words, why, sizeof(why)) ==
	    -1)
		conf_errors_warn(look->errors, &place.where, place.path,
		    "%s; the app cannot start", why);
	words_free(&words);
}

int
supervisor_check_files(
    const struct conf *conf, bool must_read, struct conf_errors *errors)
{
	struct look look = { conf, errors, must_read };
	int before = errors->count;
	struct conf_place place;

	look_at_directory(
	    &look, "run_directory", conf->run_directory, W_OK | X_OK);
	look_at_directory(&look, "log_directory", conf->log_directory, F_OK);
	conf_place_top(&place, conf, "error_log");
	look_at_log(&look, conf->error_log, &place);
	conf_place_top(&place, conf, "access_log");
	look_at_log(&look, conf->access_log, &place);
	for (size_t i = 0; i < conf->n_sites; i++) {
		const struct conf_site *site = &conf->sites[i];

		conf_place_site(&place, conf, site, NULL, "access_log");
		look_at_log(&look, site->access_log, &place);
	}
	for (size_t i = 0; i < conf->n_apps; i++)
		look_at_app(&look, &conf->apps[i]);
	return errors->count == before ? 0 : -1;
}
