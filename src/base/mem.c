/*
 * Heap memory that is always there: the one place that calls malloc.
 * Below everything else. Does not count, pool or limit.
 */
#include "src/base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
mem_exhausted(void)
{
	static const char text[] = "scalwsd: out of memory\n";
	ssize_t done = write(STDERR_FILENO, text, sizeof(text) - 1);

	(void)done;
	abort();
}

/* Never 0, so that NULL always means failure. */
static size_t
total_of(size_t count, size_t bytes)
{
	size_t total;

	if (__builtin_mul_overflow(count, bytes, &total))
		mem_exhausted();
	return total == 0 ? 1 : total;
}

void *
mem_alloc(size_t bytes)
{
	return mem_alloc_array(1, bytes);
}

void *
mem_alloc_array(size_t count, size_t bytes)
{
	void *ptr = calloc(1, total_of(count, bytes));

	if (ptr == NULL)
		mem_exhausted();
	return ptr;
}

void *
mem_alloc_dirty(size_t bytes)
{
	return mem_realloc(NULL, 1, bytes);
}

void *
mem_realloc(void *old, size_t count, size_t bytes)
{
	void *ptr = realloc(old, total_of(count, bytes));

	if (ptr == NULL)
		mem_exhausted();
	return ptr;
}

char *
mem_strdup(const char *text)
{
	return text == NULL ? NULL : mem_memdup0(text, strlen(text));
}

char *
mem_memdup0(const char *from, size_t len)
{
	char *copy;

	if (len == SIZE_MAX)
		mem_exhausted();
	copy = mem_alloc(len + 1);
	if (len > 0)
		memcpy(copy, from, len);
	return copy;
}

char *
mem_printf(const char *fmt, ...)
{
	va_list args;
	char *text = NULL;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) == -1)
		mem_exhausted();
	va_end(args);
	return text;
}

void
mem_free(void *ptr)
{
	free(ptr);
}
