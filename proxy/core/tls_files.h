/*
 * The files that TLS needs, as the supervisor sent them: certificates, keys,
 * roots. Kept from SECRET to the end of LOADED, then wiped. Main thread.
 */
#ifndef CORE_TLS_FILES_H
#define CORE_TLS_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/compiler.h"
#include "src/base/str.h"

#define TLS_FILE_BYTES_MAX ((size_t)1 << 20)

struct tls_file;
struct tls_files { /* all zero: empty */
	struct tls_file *first;
};

/* Take over `fd` and read it; under a path that is there already it is closed
 * unread. 0, or -1 with errno. */
int tls_files_add(struct tls_files *files, const char *path, int fd) MUST_CHECK;
/* False: nothing came under that path. The text stays the list's. */
bool tls_files_get(
    const struct tls_files *files, const char *path, struct str *text);
/* Wipe and forget all of them; may be called twice. */
void tls_files_wipe(struct tls_files *files);

#endif
