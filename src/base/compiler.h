/*
 * Attributes and small macros that every file may use.
 * Knows nothing of the product.
 */
#ifndef BASE_COMPILER_H
#define BASE_COMPILER_H

#include <stddef.h>

/* The caller must look at the result: it says whether the call failed. */
#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))
#define NORETURN __attribute__((noreturn))
#define UNUSED __attribute__((unused))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The object of type `type` whose member `member` is at `ptr`. */
#define CONTAINER_OF(ptr, type, member) \
	((type *)((char *)(ptr)-offsetof(type, member)))

#endif
