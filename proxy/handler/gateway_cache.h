/*
 * What script_find found, remembered for a second: a busy page costs no system
 * call to find. Of one worker.
 */
#ifndef HANDLER_GATEWAY_CACHE_H
#define HANDLER_GATEWAY_CACHE_H

#include <stdint.h>

#include "proxy/handler/gateway_script.h"
#include "src/base/compiler.h"

#define SCRIPT_CACHE_SLOTS 64
/* How long a script that was found counts as being there. */
#define SCRIPT_CACHE_MS 1000

struct script_cache {
	struct script_entry *slots[SCRIPT_CACHE_SLOTS];
};

/* What was found; texts live until the next call with the same cache. */
struct script_found {
	struct str document_root, name, filename;
	size_t path_info; /* offset in the path */
};

/* As script_find. `serial` is the configuration's: the address of rules may be
 * another's after a reload. Only what was found is remembered: a file that
 * comes into being is seen at once, unless the front controller answered for
 * its path within the last second. */
enum script_result script_cache_find(struct script_cache *cache,
    uint32_t serial, int64_t now_ms, const struct script_rules *rules,
    struct str path, struct script_found *found) MUST_CHECK;
void script_cache_clear(struct script_cache *cache);

#endif
