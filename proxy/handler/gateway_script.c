/*
 * From a path to the script that answers for it.
 * Asked by the gateway before a FastCGI request; works with the file system's
 * own idea of what lies below the root.
 * Serves no files.
 */
#include "proxy/handler/gateway_script.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/fdutil.h"

/* Segments of a path that may be scripts; a path with more is nobody's. */
#define CANDIDATES_MAX 8

static const struct str suffix = { ".php", 4 };

/* ---- room for texts ---- */

struct taker {
	char *at;
	size_t left;
};

static int
keep(struct taker *taker, const char *from, size_t len, struct str *text)
{
	if (len + 1 > taker->left)
		return -1;
	if (len > 0)
		memcpy(taker->at, from, len);
	taker->at[len] = '\0';
	*text = (struct str){ taker->at, len };
	taker->at += len + 1;
	taker->left -= len + 1;
	return 0;
}

/* ---- the file system ---- */

/* The canonical name of an open file, not NUL-terminated; 0: unknown. */
static size_t
canonical(int fd, char name[PATH_MAX])
{
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, name, PATH_MAX);
	return n <= 0 || n == PATH_MAX ? 0 : (size_t)n;
}

/* Where there is no openat2 (old kernels, sandboxes): open first, then look
 * where that has led. */
static int
open_and_check(int root, const char *path)
{
	char above[PATH_MAX], name[PATH_MAX];
	int fd = openat(root, path, O_PATH | O_CLOEXEC);
	size_t above_len, len;

	if (fd == -1)
		return -1;
	above_len = canonical(root, above);
	len = canonical(fd, name);
	if (above_len == 1)
		above_len = 0; /* "/" itself */
	if (len >= above_len && memcmp(name, above, above_len) == 0 &&
	    (len == above_len || name[above_len] == '/'))
		return fd;
	fd_close(&fd);
	errno = EXDEV;
	return -1;
}

/* Below `root`, never out of it, whatever links say. A descriptor that can be
 * asked about the file and nothing else. */
static int
open_below(int root, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	int fd;

	while (*path == '/')
		path++;
	if (*path == '\0')
		path = ".";
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd == -1 && (errno == ENOSYS || errno == EPERM))
		return open_and_check(root, path);
	return fd;
}

enum kind { KIND_NONE, KIND_FILE, KIND_DIRECTORY, KIND_OTHER };

static enum kind
kind_of(int fd)
{
	struct stat st;

	if (fd == -1 || fstat(fd, &st) == -1)
		return KIND_NONE;
	if (S_ISREG(st.st_mode))
		return KIND_FILE;
	return S_ISDIR(st.st_mode) ? KIND_DIRECTORY : KIND_OTHER;
}

static enum kind
look(int root, const char *path)
{
	int fd = open_below(root, path);
	enum kind kind = kind_of(fd);

	fd_close(&fd);
	return kind;
}

static int
name_of_fd(int fd, struct taker *taker, struct str *name)
{
	char target[PATH_MAX];
	size_t n = canonical(fd, target);

	return n == 0 ? -1 : keep(taker, target, n, name);
}

/* ---- the search ---- */

static bool
is_script_name(const char *path, size_t len)
{
	struct str text = { path, len };

	/* "/.php" is a hidden file without a name. */
	return str_ends_with(text, suffix) && len > 4 && path[len - 5] != '/';
}

/* If `name` is a regular file below root, it is the script. */
static bool
take_script(int root, struct str name, struct str path_info,
    struct taker *taker, struct script *script)
{
	struct taker before = *taker;
	int fd;
	bool ok;

	if (keep(taker, name.ptr, name.len, &script->name) == -1)
		return false;
	fd = open_below(root, script->name.ptr);
	ok = kind_of(fd) == KIND_FILE &&
	     name_of_fd(fd, taker, &script->filename) == 0;
	fd_close(&fd);
	if (!ok) {
		*taker = before;
		return false;
	}
	script->path_info = path_info;
	return true;
}

/* The longest beginning that is a script. */
static bool
find_by_name(
    int root, struct str path, struct taker *taker, struct script *script)
{
	unsigned left = CANDIDATES_MAX;

	for (size_t end = path.len; end > 1; end--) {
		struct str info = { path.ptr + end, path.len - end };

		if (end < path.len && path.ptr[end] != '/')
			continue;
		if (!is_script_name(path.ptr, end))
			continue;
		if (left-- == 0)
			return false;
		if (take_script(root, (struct str){ path.ptr, end }, info,
			taker, script))
			return true;
	}
	return false;
}

/* `dir` + "/" + `file`, or -1. */
static int
join(char *to, size_t room, struct str dir, const char *file)
{
	while (dir.len > 0 && dir.ptr[dir.len - 1] == '/')
		dir.len--;
	while (*file == '/')
		file++;
	if (dir.len + 1 + strlen(file) >= room)
		return -1;
	memcpy(to, dir.ptr, dir.len);
	to[dir.len] = '/';
	strcpy(to + dir.len + 1, file);
	return 0;
}

static enum script_result
find_index(const struct script_rules *rules, int root, struct str path,
    struct taker *taker, struct script *script)
{
	char name[PATH_MAX];
	bool has_slash = path.ptr[path.len - 1] == '/';

	if (rules->index == NULL ||
	    join(name, sizeof(name), path, rules->index) == -1)
		return SCRIPT_NONE;
	if (!is_script_name(name, strlen(name)))
		return SCRIPT_NONE;
	if (!has_slash)
		return look(root, name) == KIND_FILE ? SCRIPT_DIRECTORY
						     : SCRIPT_NONE;
	return take_script(root, str_of(name), STR(""), taker, script)
		   ? SCRIPT_FOUND
		   : SCRIPT_NONE;
}

static enum script_result
find_front(const struct script_rules *rules, int root, struct taker *taker,
    struct script *script)
{
	char name[PATH_MAX];

	if (rules->front_controller == NULL ||
	    join(name, sizeof(name), STR(""), rules->front_controller) == -1)
		return SCRIPT_NONE;
	return take_script(root, str_of(name), STR(""), taker, script)
		   ? SCRIPT_FOUND
		   : SCRIPT_NONE;
}

static enum script_result
find_below(const struct script_rules *rules, int root, struct str path,
    struct taker *taker, struct script *script)
{
	char text[PATH_MAX];
	enum script_result result;

	if (path.len >= sizeof(text))
		return SCRIPT_NONE;
	memcpy(text, path.ptr, path.len);
	text[path.len] = '\0';
	if (find_by_name(root, path, taker, script))
		return SCRIPT_FOUND;
	switch (look(root, text)) {
	case KIND_FILE:
	case KIND_OTHER:
		/* Not ours to serve, and nobody else's business. */
		return SCRIPT_NONE;
	case KIND_DIRECTORY:
		result = find_index(rules, root, path, taker, script);
		if (result != SCRIPT_NONE)
			return result;
		break;
	case KIND_NONE:
		break;
	}
	return find_front(rules, root, taker, script);
}

/* ---- without the files ---- */

static enum script_result
find_by_text(const struct script_rules *rules, struct str path,
    struct taker *taker, struct script *script)
{
	char name[PATH_MAX], file[PATH_MAX];
	size_t end = 1;

	script->path_info = STR("");
	while (
	    end <= path.len && !(is_script_name(path.ptr, end) &&
				   (end == path.len || path.ptr[end] == '/')))
		end++;
	if (end <= path.len) {
		if (end >= sizeof(name))
			return SCRIPT_NONE;
		memcpy(name, path.ptr, end);
		name[end] = '\0';
		script->path_info =
		    (struct str){ path.ptr + end, path.len - end };
	} else if (rules->front_controller == NULL ||
		   join(name, sizeof(name), STR(""), rules->front_controller) ==
		       -1) {
		return SCRIPT_NONE;
	}
	if (join(file, sizeof(file), str_of(rules->root), name) == -1 ||
	    keep(taker, name, strlen(name), &script->name) == -1 ||
	    keep(taker, file, strlen(file), &script->filename) == -1 ||
	    keep(taker, rules->root, strlen(rules->root),
		&script->document_root) == -1)
		return SCRIPT_NONE;
	return SCRIPT_FOUND;
}

static bool
is_clean(struct str path)
{
	if (path.len == 0 || path.ptr[0] != '/')
		return false;
	for (size_t i = 0; i < path.len; i++)
		if ((unsigned char)path.ptr[i] < 0x20 || path.ptr[i] == 0x7f)
			return false;
	return true;
}

enum script_result
script_find(
    const struct script_rules *rules, struct str path, struct script *script)
{
	struct taker taker = { script->room, sizeof(script->room) };
	enum script_result result = SCRIPT_BROKEN;
	int root;

	if (!is_clean(path))
		return SCRIPT_BAD;
	script->path_info = STR("");
	if (rules->is_remote)
		return find_by_text(rules, path, &taker, script);
	root = open(rules->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root == -1)
		return SCRIPT_BROKEN;
	if (name_of_fd(root, &taker, &script->document_root) == 0)
		result = find_below(rules, root, path, &taker, script);
	fd_close(&root);
	return result;
}
