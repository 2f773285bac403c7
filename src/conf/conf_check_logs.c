/*
 * Every log file has one writer: a file that an app's log shared with another
 * one would be rotated away with the other's lines in it.
 * Under conf_check.c. Looks at names alone, opens nothing.
 */
#include <string.h>

#include "src/base/arena.h"
#include "src/base/hash.h"
#include "src/conf/conf_build.h"

struct logs {
	const struct conf *conf;
	struct conf_errors *errors;
	struct arena *arena;
	struct hash_map *writers; /* path -> static or arena's text */
};

/* Without "//", "." and "..", as far as the name alone can tell. */
static struct str
normalise(struct arena *arena, const char *path)
{
	struct str rest = str_of(path), part;
	char *to = arena_alloc(arena, rest.len + 2);
	size_t len = 0;

	while (str_split(&rest, '/', &part)) {
		if (part.len == 0 || str_eq(part, STR(".")))
			continue;
		if (str_eq(part, STR(".."))) {
			while (len > 0 && to[--len] != '/')
				;
			continue;
		}
		to[len++] = '/';
		memcpy(to + len, part.ptr, part.len);
		len += part.len;
	}
	return (struct str){ to, len };
}

/* Terminals and their like take lines of everybody. */
static bool
is_device(struct str path)
{
	return str_starts_with(path, STR("/dev/")) ||
	       str_starts_with(path, STR("/proc/"));
}

static void
claim(struct logs *logs, const char *path, const char *writer,
    const struct conf_place *place)
{
	struct str name;
	const char *other;

	if (path == NULL)
		return;
	name = normalise(logs->arena, path);
	if (is_device(name) ||
	    hash_map_add(logs->writers, name, (void *)(uintptr_t)writer) == 0)
		return;
	other = hash_map_get(logs->writers, name);
	/* The proxy writes all access logs, and opens each once. */
	if (other != writer)
		conf_errors_add(logs->errors, &place->where, place->path,
		    "%.200s is %s", path, other);
}

void
conf_check_logs(const struct conf *conf, struct conf_errors *errors)
{
	static const char access[] = "an access log";
	struct logs logs = { conf, errors, arena_new(), hash_map_new() };
	struct conf_place place;

	conf_place_top(&place, conf, "error_log");
	claim(&logs, conf->error_log, "the error log", &place);
	conf_place_top(&place, conf, "access_log");
	claim(&logs, conf->access_log, access, &place);
	for (size_t i = 0; i < conf->n_sites; i++) {
		conf_place_site(
		    &place, conf, &conf->sites[i], NULL, "access_log");
		claim(&logs, conf->sites[i].access_log, access, &place);
	}
	for (size_t i = 0; i < conf->n_apps; i++) {
		const struct conf_app *app = &conf->apps[i];

		conf_place_app(&place, conf, app, "log.file");
		claim(&logs, app->log.file,
		    arena_printf(
			logs.arena, "the log of the app \"%s\"", app->name),
		    &place);
	}
	hash_map_free(logs.writers);
	arena_free(logs.arena);
}
