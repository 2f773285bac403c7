/*
 * Who a process is: looking users up, and becoming one for good.
 * Between fork and exec, and at the proxy's start. Sets no capabilities.
 */
#include "src/base/priv.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/base/str.h"

#define LOOKUP_BYTES 65536 /* a group with thousands of members fits */
#define GROUPS_MAX 4096

/* (uid_t)-1 means "leave it" to the kernel, so it is no id. */
static bool
parse_id(const char *text, uint64_t *id)
{
	return str_to_u64(str_of(text), UINT32_MAX - 1, id) == 0;
}

static int
lookup_group(const char *group, gid_t *gid)
{
	struct group entry, *found = NULL;
	char *room = mem_alloc(LOOKUP_BYTES);
	uint64_t number;
	int error = 0;

	if (parse_id(group, &number)) {
		*gid = (gid_t)number;
		mem_free(room);
		return 0;
	}
	error = getgrnam_r(group, &entry, room, LOOKUP_BYTES, &found);
	if (found != NULL)
		*gid = found->gr_gid;
	mem_free(room);
	errno = error == ENOENT ? 0 : error;
	return found == NULL ? -1 : 0;
}

static int
lookup_user(const char *user, struct priv *priv, bool *has_group)
{
	struct passwd entry, *found = NULL;
	char *room = mem_alloc(LOOKUP_BYTES);
	const char *name = user;
	uint64_t number = 0;
	bool is_number = parse_id(user, &number);
	int error =
	    is_number
		? getpwuid_r((uid_t)number, &entry, room, LOOKUP_BYTES, &found)
		: getpwnam_r(user, &entry, room, LOOKUP_BYTES, &found);
	int result = -1;

	if (found != NULL) {
		name = found->pw_name;
		priv->uid = found->pw_uid;
		priv->gid = found->pw_gid;
	} else if (is_number) {
		/* Containers use numbers nobody entered in /etc/passwd. */
		priv->uid = (uid_t)number;
		error = 0;
	}
	*has_group = found != NULL;
	if ((found != NULL || is_number) && strlen(name) < sizeof(priv->user)) {
		memcpy(priv->user, name, strlen(name) + 1);
		result = 0;
	}
	mem_free(room);
	errno = error == ENOENT ? 0 : error;
	return result;
}

int
priv_lookup(
    const char *user, const char *group, struct priv *priv, const char **what)
{
	bool has_group;

	*what = "user";
	if (lookup_user(user, priv, &has_group) == -1)
		return -1;
	if (group != NULL) {
		*what = "group";
		return lookup_group(group, &priv->gid);
	}
	if (!has_group) {
		errno = 0;
		return -1;
	}
	return 0;
}

static int
verify_ids(const struct priv *priv, const char **stage)
{
	uid_t ruid, euid, suid;
	gid_t rgid, egid, sgid;

	*stage = "verifying the group";
	if (getresgid(&rgid, &egid, &sgid) == -1)
		return -1;
	if (rgid != priv->gid || egid != priv->gid || sgid != priv->gid) {
		errno = EPERM;
		return -1;
	}
	*stage = "verifying the user";
	if (getresuid(&ruid, &euid, &suid) == -1)
		return -1;
	if (ruid != priv->uid || euid != priv->uid || suid != priv->uid) {
		errno = EPERM;
		return -1;
	}
	return 0;
}

static bool
contains(const gid_t *list, int count, gid_t gid)
{
	for (int i = 0; i < count; i++) {
		if (list[i] == gid)
			return true;
	}
	return false;
}

/* No supplementary group may be left that the user is not a member of. */
static int
verify_groups(const struct priv *priv)
{
	gid_t *allowed = mem_alloc_array(GROUPS_MAX * 2, sizeof(*allowed));
	gid_t *have = allowed + GROUPS_MAX;
	int allowed_count = GROUPS_MAX, count, result = 0;

	count = getgroups(GROUPS_MAX, have);
	if (count == -1 ||
	    getgrouplist(priv->user, priv->gid, allowed, &allowed_count) == -1)
		result = -1;
	for (int i = 0; result == 0 && i < count; i++) {
		if (!contains(allowed, allowed_count, have[i])) {
			errno = EPERM;
			result = -1;
		}
	}
	mem_free(allowed);
	return result;
}

int
priv_become(const struct priv *priv, const char **stage)
{
	if (geteuid() == priv->uid && priv->uid != 0)
		return verify_ids(priv, stage);
	*stage = "initgroups";
	if (initgroups(priv->user, priv->gid) == -1)
		return -1;
	*stage = "verifying the groups";
	if (verify_groups(priv) == -1)
		return -1;
	*stage = "setresgid";
	if (setresgid(priv->gid, priv->gid, priv->gid) == -1)
		return -1;
	*stage = "setresuid";
	if (setresuid(priv->uid, priv->uid, priv->uid) == -1)
		return -1;
	if (verify_ids(priv, stage) == -1)
		return -1;
	*stage = "giving up root for good";
	if (priv->uid != 0 && (setresuid(0, 0, 0) == 0 || seteuid(0) == 0)) {
		errno = EPERM;
		return -1;
	}
	return 0;
}
