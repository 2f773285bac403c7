/*
 * Finding rows of the schema table, also by names that are nearly right.
 * Between conf_keys.c and all that reads it. Does not look at values.
 */
#include "src/conf/conf_schema.h"

#include <stdio.h>
#include <string.h>

#include "src/base/str.h"

static const char *const runtime_names[] = {
	[CONF_PYTHON] = "python",
	[CONF_NODE] = "node",
	[CONF_PHP] = "php",
	[CONF_COMMAND] = "command",
};

bool
conf_schema_is_below(const struct conf_key *key, const char *prefix)
{
	size_t len = strlen(prefix);
	const char *name = key->path;

	if (len > 0) {
		if (strncmp(key->path, prefix, len) != 0 ||
		    key->path[len] != '.')
			return false;
		name += len + 1;
	}
	return strchr(name, '.') == NULL;
}

const char *
conf_schema_name(const struct conf_key *key)
{
	const char *dot = strrchr(key->path, '.');

	return dot == NULL ? key->path : dot + 1;
}

bool
conf_schema_is_for(const struct conf_key *key, unsigned runtimes)
{
	return key->runtimes == 0 || (key->runtimes & runtimes) != 0;
}

const struct conf_key *
conf_schema_find(const char *prefix, const char *name, unsigned runtimes)
{
	const struct conf_key *other = NULL;

	for (size_t i = 0; i < conf_keys_count; i++) {
		const struct conf_key *key = &conf_keys[i];

		if (!conf_schema_is_below(key, prefix) ||
		    strcmp(conf_schema_name(key), name) != 0)
			continue;
		if (conf_schema_is_for(key, runtimes))
			return key;
		other = key;
	}
	return other;
}

const char *
conf_schema_nearest(const char *prefix, const char *name, unsigned runtimes)
{
	/* A third of the letters may be wrong, at least two. */
	unsigned limit = (unsigned)strlen(name) / 3;
	unsigned best = limit < 2 ? 3 : limit + 1;
	const char *nearest = NULL;

	for (size_t i = 0; i < conf_keys_count; i++) {
		const struct conf_key *key = &conf_keys[i];
		unsigned distance;

		if (!conf_schema_is_below(key, prefix) ||
		    !conf_schema_is_for(key, runtimes) ||
		    key->type == CONF_TYPE_ABSENT)
			continue;
		distance = str_distance(name, conf_schema_name(key));
		if (distance < best) {
			best = distance;
			nearest = conf_schema_name(key);
		}
	}
	return nearest;
}

const char *
conf_schema_runtimes(unsigned runtimes, char to[64])
{
	size_t len = 0;

	to[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(runtime_names); i++) {
		if ((runtimes & 1u << i) == 0)
			continue;
		len += (size_t)snprintf(to + len, 64 - len, "%s%s",
		    len == 0 ? "" : " or ", runtime_names[i]);
	}
	return to;
}

const char *
conf_schema_runtime_name(enum conf_runtime runtime)
{
	return runtime_names[runtime];
}
