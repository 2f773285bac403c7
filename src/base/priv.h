/*
 * Who a process is: looking users up, and becoming one for good.
 */
#ifndef BASE_PRIV_H
#define BASE_PRIV_H

#include <stdbool.h>
#include <sys/types.h>

#include "src/base/compiler.h"

struct priv {
	char user[64];
	uid_t uid;
	gid_t gid; /* the primary group, or the one that was asked for */
};

/* Look `user` up (a name or a number) and, if not NULL, `group`. Returns 0; -1
 * with errno 0 when there is no such user or group (*what names which). */
int priv_lookup(const char *user, const char *group, struct priv *priv,
    const char **what) MUST_CHECK;
/* initgroups, setresgid, setresuid, each verified; afterwards the old rights
 * cannot be had back (checked). When the process is that user already and not
 * root, only the identity is verified. 0, or -1 with errno and *stage naming
 * the call. */
int priv_become(const struct priv *priv, const char **stage) MUST_CHECK;

#endif
