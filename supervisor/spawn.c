/*
 * The description of a process to be started, and its form on the way to the
 * keeper: NUL-terminated records, one letter and a value each.
 * Starts nothing itself: keeper_child.c does.
 */
#include "supervisor/spawn.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/str.h"

/* Takes over `text`. */
static void
add_owned(struct words *words, char *text)
{
	words->items =
	    mem_realloc(words->items, words->n + 2, sizeof(*words->items));
	words->items[words->n++] = text;
	words->items[words->n] = NULL;
}

void
words_add(struct words *words, const char *text)
{
	add_owned(words, mem_strdup(text));
}

void
words_printf(struct words *words, const char *fmt, ...)
{
	char *text = NULL;
	va_list args;
	int len;

	va_start(args, fmt);
	len = vasprintf(&text, fmt, args);
	va_end(args);
	if (len == -1)
		return;
	add_owned(words, mem_strdup(text));
	free(text);
}

void
words_add_all(struct words *words, const char *const *texts)
{
	for (; texts != NULL && *texts != NULL; texts++)
		words_add(words, *texts);
}

void
words_free(struct words *words)
{
	for (size_t i = 0; i < words->n; i++)
		mem_free(words->items[i]);
	mem_free(words->items);
	words->items = NULL;
	words->n = 0;
}

void
spawn_spec_free(struct spawn_spec *spec)
{
	words_free(&spec->argv);
	words_free(&spec->before);
	words_free(&spec->env);
	mem_free(spec->directory);
	mem_free(spec->cgroup);
	mem_free(spec->name);
	spec->directory = spec->cgroup = spec->name = NULL;
}

/* Where "NAME=..." stands in the environment, or -1. */
static long
find_env(const struct spawn_spec *spec, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < spec->env.n; i++)
		if (strncmp(spec->env.items[i], name, len) == 0 &&
		    spec->env.items[i][len] == '=')
			return (long)i;
	return -1;
}

const char *
spawn_env_get(const struct spawn_spec *spec, const char *name)
{
	long at = find_env(spec, name);

	return at == -1 ? NULL : spec->env.items[at] + strlen(name) + 1;
}

void
spawn_env_set(struct spawn_spec *spec, const char *name, const char *value)
{
	long at = find_env(spec, name);

	if (at == -1) {
		words_printf(&spec->env, "%s=%s", name, value);
		return;
	}
	mem_free(spec->env.items[at]);
	spec->env.items[at] = mem_printf("%s=%s", name, value);
}

/* ---- encoding ---- */

static void
put(struct strbuf *to, char kind, const char *text)
{
	strbuf_add(to, &kind, 1);
	strbuf_add(to, text, strlen(text) + 1);
}

static void
put_number(struct strbuf *to, char kind, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	put(to, kind, text);
}

void
spawn_encode(const struct spawn_spec *spec, struct strbuf *to)
{
	for (size_t i = 0; i < spec->argv.n; i++)
		put(to, 'a', spec->argv.items[i]);
	for (size_t i = 0; i < spec->before.n; i++)
		put(to, 'b', spec->before.items[i]);
	for (size_t i = 0; i < spec->env.n; i++)
		put(to, 'e', spec->env.items[i]);
	if (spec->directory != NULL)
		put(to, 'd', spec->directory);
	if (spec->cgroup != NULL)
		put(to, 'c', spec->cgroup);
	if (spec->name != NULL)
		put(to, 'N', spec->name);
	if (spec->become) {
		put(to, 'U', spec->identity.user);
		put_number(to, 'u', (int64_t)spec->identity.uid);
		put_number(to, 'g', (int64_t)spec->identity.gid);
	}
	put_number(to, 'p', spec->no_new_privileges);
	put_number(to, 'l', spec->listen_pid);
	put_number(to, 'm', spec->umask);
	put_number(to, 'n', spec->nice);
	for (size_t i = 0; i < spec->n_limits; i++) {
		const struct conf_limit *limit = &spec->limits[i];
		char text[80];

		snprintf(text, sizeof(text), "%d %llu %llu", limit->resource,
		    (unsigned long long)limit->soft,
		    (unsigned long long)limit->hard);
		put(to, 'r', text);
	}
	put_number(to, 's', spec->stop_signal);
	put_number(to, 'S', spec->second_signal);
	put_number(to, 't', spec->stop_timeout_ms);
}

static int
get_number(struct str text, int64_t max, int64_t *value)
{
	bool negative = text.len > 0 && text.ptr[0] == '-';
	uint64_t number;

	if (negative) {
		text.ptr++;
		text.len--;
	}
	if (str_to_u64(text, (uint64_t)max, &number) == -1)
		return -1;
	*value = negative ? -(int64_t)number : (int64_t)number;
	return 0;
}

static int
get_int(struct str text, int *to)
{
	int64_t value;

	if (get_number(text, INT_MAX, &value) == -1)
		return -1;
	*to = (int)value;
	return 0;
}

static int
get_bool(struct str text, bool *to)
{
	int value;

	if (get_int(text, &value) == -1)
		return -1;
	*to = value != 0;
	return 0;
}

static int
get_text(struct str text, char **to)
{
	mem_free(*to);
	*to = mem_memdup0(text.ptr, text.len);
	return 0;
}

static int
get_limit(struct str text, struct spawn_spec *spec)
{
	struct conf_limit *limit = &spec->limits[spec->n_limits];
	struct str part;
	uint64_t values[3];

	if (spec->n_limits == SPAWN_LIMITS_MAX)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		if (!str_split(&text, ' ', &part) ||
		    str_to_u64(part, UINT64_MAX, &values[i]) == -1)
			return -1;
	if (values[0] > INT_MAX)
		return -1;
	limit->resource = (int)values[0];
	limit->soft = values[1];
	limit->hard = values[2];
	spec->n_limits++;
	return 0;
}

static int
get_identity(char kind, struct str text, struct spawn_spec *spec)
{
	int64_t id;

	spec->become = true;
	if (kind == 'U') {
		if (text.len >= sizeof(spec->identity.user))
			return -1;
		memcpy(spec->identity.user, text.ptr, text.len + 1);
		return 0;
	}
	if (get_number(text, UINT32_MAX - 1, &id) == -1 || id < 0)
		return -1;
	if (kind == 'u')
		spec->identity.uid = (uid_t)id;
	else
		spec->identity.gid = (gid_t)id;
	return 0;
}

static int
get_record(char kind, struct str text, struct spawn_spec *spec)
{
	switch (kind) {
	case 'a':
		words_add(&spec->argv, text.ptr);
		return 0;
	case 'b':
		words_add(&spec->before, text.ptr);
		return 0;
	case 'e':
		words_add(&spec->env, text.ptr);
		return 0;
	case 'd':
		return get_text(text, &spec->directory);
	case 'c':
		return get_text(text, &spec->cgroup);
	case 'N':
		return get_text(text, &spec->name);
	case 'U':
	case 'u':
	case 'g':
		return get_identity(kind, text, spec);
	case 'p':
		return get_bool(text, &spec->no_new_privileges);
	case 'l':
		return get_bool(text, &spec->listen_pid);
	case 'm':
		return get_int(text, &spec->umask);
	case 'n':
		return get_int(text, &spec->nice);
	case 'r':
		return get_limit(text, spec);
	case 's':
		return get_int(text, &spec->stop_signal);
	case 'S':
		return get_int(text, &spec->second_signal);
	case 't':
		return get_int(text, &spec->stop_timeout_ms);
	default:
		return -1;
	}
}

int
spawn_decode(const char *text, size_t len, struct spawn_spec *spec)
{
	const char *at = text, *end = text + len;

	memset(spec, 0, sizeof(*spec));
	while (at < end) {
		const char *stop = memchr(at, '\0', (size_t)(end - at));

		if (stop == NULL || stop == at)
			return -1;
		if (get_record(*at,
			(struct str){ at + 1, (size_t)(stop - at - 1) },
			spec) == -1)
			return -1;
		at = stop + 1;
	}
	return spec->argv.n > 0 ? 0 : -1;
}
