/*
 * Runs a fuzz target over files, so that every seed is a test of each build.
 * Linked with t/fuzz/fuzz_NAME.c into replay_NAME, run by make check.
 * Makes no new inputs: that is libFuzzer's work (--enable-fuzzing).
 *
 *	replay_NAME [FILE | DIRECTORY]...
 *
 * Without arguments: the directory $top_srcdir/t/fuzz/corpus/NAME.
 */
#include <sys/stat.h>

#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each input lies in a block of its exact size: a sanitizer sees one byte
 * beyond. Returns 0, or -1 when the file cannot be read. */
static int
run_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = NULL, *more;
	size_t size = 0, room = 0, got = 0;

	if (file == NULL)
		return -1;
	do {
		size += got;
		if (size == room) {
			room = room == 0 ? 4096 : room * 2;
			more = realloc(data, room);
			if (more == NULL)
				abort();
			data = more;
		}
		got = fread(data + size, 1, room - size, file);
	} while (got > 0);
	fclose(file);
	more = malloc(size > 0 ? size : 1);
	if (more == NULL)
		abort();
	memcpy(more, data, size);
	free(data);
	LLVMFuzzerTestOneInput(more, size);
	free(more);
	return 0;
}

/* Returns how many inputs were run, or -1. */
static long
run_path(const char *path)
{
	char below[PATH_MAX];
	struct dirent *entry;
	struct stat status;
	long count = 0, more;
	DIR *dir;

	if (stat(path, &status) == -1)
		return -1;
	if (!S_ISDIR(status.st_mode))
		return run_file(path) == 0 ? 1 : -1;
	dir = opendir(path);
	if (dir == NULL)
		return -1;
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		if (snprintf(below, sizeof(below), "%s/%s", path,
			entry->d_name) >= (int)sizeof(below))
			continue;
		more = run_path(below);
		if (more == -1) {
			count = -1;
			break;
		}
		count += more;
	}
	closedir(dir);
	return count;
}

int
main(int argc, char **argv)
{
	const char *top = getenv("top_srcdir");
	const char *name = strrchr(argv[0], '/');
	char corpus[PATH_MAX];
	char *standard[] = { argv[0], corpus, NULL };
	long count = 0, more;
	int i;

	name = name == NULL ? argv[0] : name + 1;
	if (strncmp(name, "replay_", 7) == 0)
		name += 7;
	if (argc < 2) {
		snprintf(corpus, sizeof(corpus), "%s/t/fuzz/corpus/%s",
		    top == NULL ? "." : top, name);
		argv = standard;
		argc = 2;
	}
	for (i = 1; i < argc; i++) {
		more = run_path(argv[i]);
		if (more == -1) {
			fprintf(stderr, "cannot read %s\n", argv[i]);
			return 1;
		}
		count += more;
	}
	printf("%s: %ld inputs\n", name, count);
	/* An empty corpus tests nothing and must not pass for a test. */
	return count > 0 ? 0 : 1;
}
