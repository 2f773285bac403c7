/*
 * What must hold, in a fuzz target: a fault ends the process with its line.
 * Works in a build with NDEBUG, which assert() does not.
 */
#ifndef FUZZ_REQUIRE_H
#define FUZZ_REQUIRE_H

#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(what)                                                      \
	do {                                                               \
		if (!(what)) {                                             \
			fprintf(stderr, "line %d: %s\n", __LINE__, #what); \
			abort();                                           \
		}                                                          \
	} while (0)

#endif
