/*
 * The options part of scalws.conf(5), in mdoc, and the list of keys for
 * completion: from the schema, so that neither can be out of date.
 */
#include <inttypes.h>
#include <string.h>

#include "src/conf/conf_number.h"
#include "src/conf/conf_schema.h"

/* Sections in the order of the page: what is below each prefix, and below
 * its groups. */
static const struct {
	const char *prefix;
	const char *title;
	const char *about;
} sections[] = {
	{ "", "Keys at the top", NULL },
	{ "apps.*", "Of an app: apps.NAME",
	    "A key that names runtimes is for these only." },
	{ "upstreams.*", "Of an upstream: upstreams.NAME", NULL },
	{ "upstreams.*.peers.*", "Of a peer: upstreams.NAME.peers", NULL },
	{ "sites.*", "Of a site: an element of sites", NULL },
	{ "sites.*.routes.*", "Of a route: an element of the routes of a site",
	    "A route has exactly one action." },
};

static const char *
type_name(const struct conf_key *key)
{
	switch (key->type) {
	case CONF_TYPE_BOOL:
		return "true|false";
	case CONF_TYPE_NUMBER:
		return "number";
	case CONF_TYPE_BYTES:
		return "size";
	case CONF_TYPE_DURATION:
		return "time";
	case CONF_TYPE_STRING:
	case CONF_TYPE_TEXT:
		return "text";
	case CONF_TYPE_PATH:
		return "file";
	case CONF_TYPE_CHOICE:
	case CONF_TYPE_WORD:
		return "word";
	case CONF_TYPE_STRINGS:
		return "text|list";
	case CONF_TYPE_PATHS:
		return "file|list";
	case CONF_TYPE_PAIRS:
	case CONF_TYPE_FIELDS:
		return "group|list";
	case CONF_TYPE_RLIMITS:
		return "group";
	case CONF_TYPE_RANGES:
		return "addresses";
	case CONF_TYPE_SIGNAL:
		return "signal";
	case CONF_TYPE_UMASK:
		return "octal";
	case CONF_TYPE_GROUP:
		return "group";
	case CONF_TYPE_GROUPS:
		return "groups";
	case CONF_TYPE_LIST:
		return "list";
	case CONF_TYPE_NAME:
		return "name";
	case CONF_TYPE_ABSENT:
		break;
	}
	return "nothing";
}

/* roff reads backslashes, and a dot or quote that begins a line. Lines are
 * only begun by us. */
static void
put_roff(struct strbuf *to, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '\\')
			strbuf_add_text(to, "\\e");
		else if (*text == '-')
			strbuf_add_text(to, "\\-");
		else
			strbuf_add(to, text, 1);
	}
}

static void
put_range(struct strbuf *to, const struct conf_key *key)
{
	switch (key->type) {
	case CONF_TYPE_NUMBER:
		strbuf_printf(
		    to, "Range: %" PRId64 " to %" PRId64, key->min, key->max);
		break;
	case CONF_TYPE_BYTES:
		strbuf_add_text(to, "Range: ");
		conf_number_put_bytes(to, (uint64_t)key->min);
		strbuf_add_text(to, " to ");
		conf_number_put_bytes(to, (uint64_t)key->max);
		break;
	case CONF_TYPE_DURATION:
		strbuf_add_text(to, "Range: ");
		conf_number_put_duration(to, key->min);
		strbuf_add_text(to, " to ");
		conf_number_put_duration(to, key->max);
		break;
	default:
		return;
	}
	strbuf_add_text(to, key->or_zero ? ", or 0.\n" : ".\n");
}

static void
put_details(struct strbuf *to, const struct conf_key *key)
{
	const char *preset =
	    key->preset_text != NULL ? key->preset_text : key->preset;
	char runtimes[64];

	if (key->runtimes != 0)
		strbuf_printf(to, "Runtimes: %s.\n",
		    conf_schema_runtimes(key->runtimes, runtimes));
	if (key->choices != NULL) {
		strbuf_add_text(to, "One of");
		for (size_t i = 0; key->choices[i] != NULL; i++)
			strbuf_printf(
			    to, "%s %s", i == 0 ? "" : ",", key->choices[i]);
		strbuf_add_text(to, ".\n");
	}
	put_range(to, key);
	if (key->required == CONF_FOR_ALL)
		strbuf_add_text(to, "Required.\n");
	else if (key->required != 0)
		strbuf_printf(to, "Required for %s.\n",
		    conf_schema_runtimes(key->required, runtimes));
	if (preset != NULL) {
		strbuf_add_text(to, "Default: ");
		put_roff(to, preset);
		strbuf_add_text(to, ".\n");
	}
	if (key->needs == CONF_NEEDS_APP_RESTART)
		strbuf_add_text(to, "A change restarts the app.\n");
	if (key->needs == CONF_NEEDS_RESTART)
		strbuf_add_text(to, "A change needs a restart of scalwsd.\n");
}

static void
put_key(struct strbuf *to, const struct conf_key *key, const char *shown)
{
	strbuf_printf(to, ".It Ic %s No = Ar %s\n", shown, type_name(key));
	put_roff(to, key->help);
	strbuf_add_text(to, "\n");
	put_details(to, key);
}

/* The keys below `prefix`, named from `from` on: "probe.path". */
static void
put_keys(struct strbuf *to, const char *prefix, size_t from)
{
	for (size_t i = 0; i < conf_keys_count; i++) {
		const struct conf_key *key = &conf_keys[i];

		if (!conf_schema_is_below(key, prefix) ||
		    key->type == CONF_TYPE_ABSENT)
			continue;
		put_key(to, key, key->path + from);
		if (key->type == CONF_TYPE_GROUP)
			put_keys(to, key->path, from);
	}
}

void
conf_print_man(struct strbuf *to)
{
	for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
		size_t len = strlen(sections[i].prefix);

		strbuf_printf(to, ".Ss %s\n", sections[i].title);
		if (sections[i].about != NULL)
			strbuf_printf(to, "%s\n", sections[i].about);
		strbuf_add_text(to, ".Bl -tag -width Ds\n");
		put_keys(to, sections[i].prefix, len == 0 ? 0 : len + 1);
		strbuf_add_text(to, ".El\n");
	}
}

void
conf_print_keys(struct strbuf *to)
{
	for (size_t i = 0; i < conf_keys_count; i++) {
		const struct conf_key *key = &conf_keys[i];
		const char *preset =
		    key->preset_text != NULL ? key->preset_text : key->preset;

		if (key->type == CONF_TYPE_ABSENT)
			continue;
		strbuf_printf(to, "%s %s %s\n", key->path, type_name(key),
		    preset == NULL ? "-" : preset);
	}
}
