/*
 * One log file on the disk: opening, rotation by size and age, and telling in
 * the file how many lines could not be written.
 * Called by log_writer.c in the file's thread; may wait for the disk as long as
 * that takes. Knows nothing of other files.
 */
#include "supervisor/log_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/fdutil.h"
#include "src/base/log.h"
#include "supervisor/run_dir.h"

#define COMPLAIN_MS 60000

/* What is written now: where, and by which rules. */
struct log_target {
	const char *path;
	const struct log_limits *limits;
};

const char *
log_disk_reason(int error)
{
	switch (error) {
	case EINVAL:
	case ENXIO: /* a FIFO that nobody reads */
		return "it is no regular file";
	case ELOOP:
		return "it is a symbolic link";
	default:
		return strerror(error);
	}
}

static void
complain(struct log_disk *disk, const char *path, const char *what)
{
	int64_t now_ms = clock_now_ms();

	if (disk->complained_ms != 0 &&
	    now_ms - disk->complained_ms < COMPLAIN_MS)
		return;
	disk->complained_ms = now_ms;
	log_error("%s: %s, lines of the app are lost: %s", path, what,
	    log_disk_reason(errno));
}

/* When the file was made, or changed last where the file system does not know.
 */
static int64_t
birth_ms(int fd)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME | STATX_MTIME, &st) == -1)
		return clock_wall_ms();
	if ((st.stx_mask & STATX_BTIME) != 0)
		return st.stx_btime.tv_sec * 1000;
	return st.stx_mtime.tv_sec * 1000;
}

static int
open_file(struct log_disk *disk, const char *path)
{
	struct stat st;

	if (disk->fd != -1)
		return 0;
	disk->fd = open(path,
	    O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
	    0640);
	if (disk->fd == -1)
		return -1;
	/* Our umask is 077. */
	if (fstat(disk->fd, &st) == -1 || !S_ISREG(st.st_mode) ||
	    fchmod(disk->fd, 0640) == -1) {
		fd_close(&disk->fd);
		errno = EINVAL;
		return -1;
	}
	disk->size = (uint64_t)st.st_size;
	disk->begun_ms = disk->size == 0 ? clock_wall_ms() : birth_ms(disk->fd);
	disk->is_stale = false;
	return 0;
}

/* If that fails, all is as it was. */
static int
open_anew(struct log_disk *disk, const char *path)
{
	struct log_disk before = *disk;

	disk->fd = -1;
	if (open_file(disk, path) == -1) {
		*disk = before;
		return -1;
	}
	fd_close(&before.fd);
	disk->is_torn = false;
	return 0;
}

int
log_disk_reopen(struct log_disk *disk, const char *path, const char *directory)
{
	int error;

	if (open_anew(disk, path) == 0)
		return 0;
	error = errno;
	if (error == ENOENT && run_dir_make_path(directory, 0750) == 0 &&
	    open_anew(disk, path) == 0)
		return 0;
	disk->is_stale = true;
	log_error("%s: cannot open: %s%s", path, log_disk_reason(error),
	    disk->fd == -1 ? "" : "; lines go on to where they went");
	return error;
}

/* Of rotated files those that were written last too long ago. */
static void
remove_aged(const struct log_target *target)
{
	char path[4200];
	struct stat st;

	for (unsigned i = 1; i <= target->limits->keep; i++) {
		snprintf(path, sizeof(path), "%s.%u", target->path, i);
		if (lstat(path, &st) == 0 &&
		    clock_wall_ms() - st.st_mtim.tv_sec * 1000 >
			target->limits->max_age_ms)
			unlink(path);
	}
}

/* path.(keep-1) -> path.keep ... path -> path.1 */
static void
rotate(struct log_disk *disk, const struct log_target *target)
{
	char from[4200], to[4200];

	fd_close(&disk->fd);
	if (target->limits->keep == 0)
		unlink(target->path);
	for (unsigned i = target->limits->keep; i > 0; i--) {
		snprintf(to, sizeof(to), "%s.%u", target->path, i);
		if (i == 1)
			snprintf(from, sizeof(from), "%s", target->path);
		else
			snprintf(
			    from, sizeof(from), "%s.%u", target->path, i - 1);
		if (rename(from, to) == -1 && errno != ENOENT)
			complain(disk, from, "cannot rotate");
	}
	if (target->limits->max_age_ms != 0)
		remove_aged(target);
}

uint64_t
log_count_lines(const char *text, size_t len)
{
	const char *end = text + len;
	uint64_t lines = 0;

	while (text < end &&
	       (text = memchr(text, '\n', (size_t)(end - text))) != NULL) {
		text++;
		lines++;
	}
	return lines;
}

/* As much as goes; less with errno. */
static size_t
write_most(struct log_disk *disk, const char *text, size_t len)
{
	size_t at = 0;

	while (at < len) {
		ssize_t n = write(disk->fd, text + at, len - at);

		if (n > 0)
			at += (size_t)n;
		else if (n == 0 || errno != EINTR)
			break;
	}
	if (at > 0)
		disk->is_torn = text[at - 1] != '\n';
	return at;
}

/* So many lines are missing here: said where they are missed. */
static void
tell_lost(struct log_disk *disk)
{
	char line[128];
	size_t at = CLOCK_ISO_LEN;

	if (disk->lost == 0)
		return;
	clock_put_iso(line, clock_wall_ms());
	at += (size_t)snprintf(line + at, sizeof(line) - at,
	    " [%d] scalwsd: %llu lines were lost here\n", (int)getpid(),
	    (unsigned long long)disk->lost);
	/* What the line before was cut off by. */
	if (disk->is_torn && write_most(disk, "\n", 1) == 0)
		return;
	if (write_most(disk, line, at) < at)
		return;
	disk->size += at;
	disk->lost = 0;
}

/* As many whole lines of `text` as fit into `room` bytes, at least one. */
static size_t
fitting(const char *text, size_t len, uint64_t room)
{
	const char *end;

	if (len <= room)
		return len;
	end = room == 0 || text == NULL ? NULL
					: memrchr(text, '\n', (size_t)room);
	if (end == NULL)
		end = memchr(text, '\n', len);
	return end == NULL ? len : (size_t)(end - text) + 1;
}

void
log_disk_write(struct log_disk *disk, const char *path,
    const struct log_limits *limits, const char *text, size_t len)
{
	const struct log_target target = { path, limits };

	if (disk->is_stale && open_anew(disk, path) == 0)
		log_info("%s: open again", path);
	while (len > 0) {
		uint64_t room = UINT64_MAX;
		size_t part, written;

		if (open_file(disk, path) == -1) {
			complain(disk, path, "cannot open");
			disk->lost += log_count_lines(text, len);
			return;
		}
		tell_lost(disk);
		if (limits->max_bytes != 0)
			room = limits->max_bytes > disk->size
				   ? limits->max_bytes - disk->size
				   : 0;
		if (limits->max_age_ms != 0 && disk->size > 0 &&
		    clock_wall_ms() - disk->begun_ms > limits->max_age_ms) {
			rotate(disk, &target);
			continue;
		}
		part = fitting(text, len, room);
		if (part > room && disk->size > 0) {
			rotate(disk, &target);
			continue;
		}
		written = write_most(disk, text, part);
		disk->size += written;
		if (written < part) {
			complain(disk, path, "cannot write");
			disk->lost +=
			    log_count_lines(text + written, part - written);
		}
		text += part;
		len -= part;
	}
}

void
log_disk_lost(struct log_disk *disk, uint64_t lines)
{
	disk->lost += lines;
	if (disk->fd != -1)
		tell_lost(disk);
}

void
log_disk_close(struct log_disk *disk)
{
	fd_close(&disk->fd);
}
