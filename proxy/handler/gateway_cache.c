/*
 * A small memory of scripts, direct-mapped by path.
 * Between gateway_route.c and gateway_script.c.
 * Never remembers that something is not there.
 */
#include "proxy/handler/gateway_cache.h"

#include <string.h>

#include "src/base/hash.h"
#include "src/base/mem.h"

/* Longer paths are looked up each time. */
#define PATH_REMEMBERED_MAX 512

struct script_entry {
	const struct script_rules *rules;
	uint32_t serial;
	int64_t until_ms;
	struct str path;
	struct script_found found;
	char text[];
};

static uint64_t
slot_of(struct str path)
{
	return hash_bytes(path.ptr, path.len) % SCRIPT_CACHE_SLOTS;
}

static struct str
keep(char **at, struct str text)
{
	struct str kept = { *at, text.len };

	memcpy(*at, text.ptr, text.len);
	*at += text.len;
	return kept;
}

static struct script_entry *
new_entry(struct str path, const struct script *script)
{
	struct script_entry *entry =
	    mem_alloc(sizeof(*entry) + path.len + script->document_root.len +
		      script->name.len + script->filename.len);
	char *at = entry->text;

	entry->path = keep(&at, path);
	entry->found.document_root = keep(&at, script->document_root);
	entry->found.name = keep(&at, script->name);
	entry->found.filename = keep(&at, script->filename);
	entry->found.path_info = path.len - script->path_info.len;
	return entry;
}

enum script_result
script_cache_find(struct script_cache *cache, uint32_t serial, int64_t now_ms,
    const struct script_rules *rules, struct str path,
    struct script_found *found)
{
	struct script_entry **slot = &cache->slots[slot_of(path)];
	struct script_entry *entry = *slot;
	struct script script;
	enum script_result result;

	if (entry != NULL && entry->rules == rules && entry->serial == serial &&
	    entry->until_ms > now_ms && str_eq(entry->path, path)) {
		*found = entry->found;
		return SCRIPT_FOUND;
	}
	result = script_find(rules, path, &script);
	if (result != SCRIPT_FOUND)
		return result;
	mem_free(entry);
	*slot = entry = new_entry(path, &script);
	entry->rules = rules;
	entry->serial = serial;
	if (path.len <= PATH_REMEMBERED_MAX)
		entry->until_ms = now_ms + SCRIPT_CACHE_MS;
	*found = entry->found;
	return SCRIPT_FOUND;
}

void
script_cache_clear(struct script_cache *cache)
{
	for (size_t i = 0; i < SCRIPT_CACHE_SLOTS; i++) {
		mem_free(cache->slots[i]);
		cache->slots[i] = NULL;
	}
}
