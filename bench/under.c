/*
 * Preloaded into scalwsd's supervisor by bench/run: its proxy is then started
 * under the command in BENCH_UNDER (valgrind, which cannot follow an exec of
 * /proc/self/exe). BENCH_PROGRAM is scalwsd. Changes nothing else.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS_MAX 64

extern char **environ;

int
execv(const char *path, char *const argv[])
{
	char *under = getenv("BENCH_UNDER");
	char *words[WORDS_MAX + 1];
	size_t n = 0;

	if (under == NULL || strcmp(path, "/proc/self/exe") != 0 ||
	    argv[1] == NULL || strcmp(argv[1], "--role=proxy") != 0)
		return execve(path, argv, environ);
	for (char *word = strtok(under, " "); word != NULL && n < WORDS_MAX / 2;
	     word = strtok(NULL, " "))
		words[n++] = word;
	words[n++] = getenv("BENCH_PROGRAM");
	for (size_t i = 1; argv[i] != NULL && n < WORDS_MAX; i++)
		words[n++] = argv[i];
	words[n] = NULL;
	unsetenv("LD_PRELOAD");
	return execve(words[0], words, environ);
}
