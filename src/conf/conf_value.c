/*
 * Values: from a node into a member, one function for each type of the schema.
 * Under conf_walk.c. Checks each value alone, never against another.
 */
#include "src/conf/conf_value.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/arena.h"
#include "src/base/mem.h"
#include "src/conf/conf_number.h"
#include "src/conf/conf_source.h"

/* Longest text of a message that comes from the file. */
#define SHOWN 60

static void *
member_of(const struct conf_key *key, void *object)
{
	return (char *)object + key->offset;
}

static size_t *
count_of(const struct conf_key *key, void *object)
{
	return (size_t *)(void *)((char *)object + key->count_offset);
}

static int
refuse_type(
    struct conf_walk *walk, const struct conf_node *node, const char *wanted)
{
	return conf_walk_error(
	    walk, node, "takes %s, not %s", wanted, conf_node_kind(node));
}

static void
store_number(const struct conf_key *key, void *object, int64_t value)
{
	uint64_t wide = (uint64_t)value;
	uint32_t narrow = (uint32_t)value;

	if (key->width == sizeof(wide))
		memcpy(member_of(key, object), &wide, sizeof(wide));
	else
		memcpy(member_of(key, object), &narrow, sizeof(narrow));
}

/* ---- numbers ---- */

static int
read_bool(struct conf_walk *walk, const struct conf_key *key,
    const struct conf_node *node, void *object)
{
	bool value = node->number != 0;

	if (node->type != CONF_NODE_BOOL)
		return refuse_type(walk, node, "true or false");
	memcpy(member_of(key, object), &value, sizeof(value));
	return 0;
}

static bool
is_in_range(const struct conf_key *key, int64_t value)
{
	return (value >= key->min && value <= key->max) ||
	       (key->or_zero && value == 0);
}

static const char *
or_zero(const struct conf_key *key)
{
	return key->or_zero ? ", and is not 0" : "";
}

static int
read_number(struct conf_walk *walk, const struct conf_key *key,
    const struct conf_node *node, void *object)
{
	if (node->type != CONF_NODE_INT)
		return refuse_type(walk, node, "an integer");
	if (!is_in_range(key, node->number))
		return conf_walk_error(walk, node,
		    "%" PRId64 " is outside of %" PRId64 " to %" PRId64 "%s",
		    node->number, key->min, key->max, or_zero(key));
	store_number(key, object, node->number);
	return 0;
}

static int
read_bytes(struct conf_walk *walk, const struct conf_key *key,
    const struct conf_node *node, void *object)
{
	uint64_t value = 0;
	struct strbuf range = STRBUF_EMPTY;
	int result = 0;

	if (node->type == CONF_NODE_INT && node->number >= 0)
		value = (uint64_t)node->number;
	else if (node->type != CONF_NODE_STRING)
		return refuse_type(walk, node, "a size such as \"64K\"");
	else if (conf_number_parse_bytes(str_of(node->text), &value) == -1)
		return conf_walk_error(walk, node,
		    "\"%.*s\" is no size; it is written as in \"64K\", "
		    "\"16M\", \"2G\"",
		    SHOWN, node->text);
	if (value > INT64_MAX || !is_in_range(key, (int64_t)value)) {
		conf_number_put_bytes(&range, (uint64_t)key->min);
		strbuf_add_text(&range, " to ");
		conf_number_put_bytes(&range, (uint64_t)key->max);
		result = conf_walk_error(walk, node,
		    "%" PRIu64 " bytes is outside of %s%s", value, range.ptr,
		    or_zero(key));
		strbuf_free(&range);
		return result;
	}
	store_number(key, object, (int64_t)value);
	return 0;
}

static int
read_duration(struct conf_walk *walk, const struct conf_key *key,
    const struct conf_node *node, void *object)
{
	struct strbuf range = STRBUF_EMPTY;
	int64_t value;
	int result;

	if (node->type == CONF_NODE_INT)
		return conf_walk_error(walk, node,
		    "a time has a unit and quotes: \"%" PRId64 "s\"",
		    node->number);
	if (node->type != CONF_NODE_STRING)
		return refuse_type(walk, node, "a time such as \"5s\"");
	if (conf_number_parse_duration(str_of(node->text), &value) == -1)
		return conf_walk_error(walk, node,
		    "\"%.*s\" is no time; it is written as in \"500ms\", "
		    "\"5s\", \"2m\", \"1h\"",
		    SHOWN, node->text);
	if (is_in_range(key, value)) {
		store_number(key, object, value);
		return 0;
	}
	conf_number_put_duration(&range, key->min);
	strbuf_add_text(&range, " to ");
	conf_number_put_duration(&range, key->max);
	result = conf_walk_error(walk, node, "\"%.*s\" is outside of %s%s",
	    SHOWN, node->text, range.ptr, or_zero(key));
	strbuf_free(&range);
	return result;
}

static int
read_umask(struct conf_walk *walk, const struct conf_key *key,
    const struct conf_node *node, void *object)
{
	unsigned value = 0;

	if (node->type != CONF_NODE_STRING)
		return refuse_type(
		    walk, node, "octal digits in quotes such as \"022\"");
	for (const char *at = node->text; *at != '\0'; at++) {
		if (*at < '0' || *at > '7' || value > 0777)
			value = 01000;
		else
			value = value * 8 + (unsigned)(*at - '0');
	}
	if (value > 0777 || node->text[0] == '\0')
		return conf_walk_error(walk, node,
		    "\"%.*s\" is not between \"000\" and \"777\"", SHOWN,
		    node->text);
	store_number(key, object, (int64_t)value);
	return 0;
}

static int
read_signal(struct conf_walk *walk, const struct conf_key *key,
    const struct conf_node *node, void *object)
{
	int value;

	if (node->type != CONF_NODE_STRING)
		return refuse_type(walk, node, "a signal such as \"TERM\"");
	value = conf_number_signal(node->text);
	if (value == 0)
		return conf_walk_error(walk, node,
		    "\"%.*s\" is none of TERM, INT, QUIT, HUP, USR1, USR2, "
		    "WINCH, KILL",
		    SHOWN, node->text);
	store_number(key, object, value);
	return 0;
}

static int
read_choice(struct conf_walk *walk, const struct conf_key *key,
    const struct conf_node *node, void *object)
{
	struct strbuf all = STRBUF_EMPTY;
	int result;

	if (node->type != CONF_NODE_STRING)
		return refuse_type(walk, node, "a text");
	for (size_t i = 0; key->choices[i] != NULL; i++) {
		if (strcmp(key->choices[i], node->text) != 0)
			continue;
		if (key->type == CONF_TYPE_CHOICE)
			store_number(key, object, (int64_t)i);
		else
			memcpy(member_of(key, object), &key->choices[i],
			    sizeof(char *));
		return 0;
	}
	for (size_t i = 0; key->choices[i] != NULL; i++)
		strbuf_printf(
		    &all, "%s%s", i == 0 ? "" : ", ", key->choices[i]);
	result = conf_walk_error(
	    walk, node, "\"%.*s\" is none of %s", SHOWN, node->text, all.ptr);
	strbuf_free(&all);
	return result;
}

/* ---- texts ---- */

static bool
has_control(const char *text)
{
	for (; *text != '\0'; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return true;
	}
	return false;
}

static int
check_length(struct conf_walk *walk, const struct conf_key *key,
    const struct conf_node *node, const char *text)
{
	size_t len = strlen(text);

	if (len < (size_t)key->min)
		return conf_walk_error(walk, node, "is empty");
	if (key->max > 0 && len > (size_t)key->max)
		return conf_walk_error(walk, node,
		    "has %zu bytes; %" PRId64 " are possible", len, key->max);
	return 0;
}

/* Relative file names are seen from the directory of the file they stand in,
 * which must not depend on where a later reload is run. */
static const char *
make_absolute(struct conf_walk *walk, const struct conf_node *node)
{
	const char *beside =
	    conf_source_beside(walk->arena, node->where.file, ".");
	char *directory = realpath(beside, NULL);
	const char *path;

	if (directory == NULL)
		return NULL;
	path = arena_printf(walk->arena, "%s/%s",
	    strcmp(directory, "/") == 0 ? "" : directory, node->text);
	free(directory);
	return path;
}

/* The tree keeps the whole name: it is what the proxy is told. */
static int
complete_path(struct conf_walk *walk, struct conf_node *node)
{
	const char *path = node->text;

	if (has_control(path))
		return conf_walk_error(walk, node, "has control characters");
	if (path[0] != '/')
		path = walk->files ? make_absolute(walk, node) : NULL;
	if (path == NULL)
		return conf_walk_error(walk, node,
		    "\"%.*s\" does not begin with /", SHOWN, node->text);
	node->text = path;
	return 0;
}

static int
read_string(struct conf_walk *walk, const struct conf_key *key,
    struct conf_node *node, void *object)
{
	const char *text = node->text;

	if (node->type != CONF_NODE_STRING)
		return refuse_type(walk, node, "a text in quotes");
	if (key->none && strcmp(text, "none") == 0)
		text = NULL;
	else if (check_length(walk, key, node, text) == -1)
		return -1;
	else if (key->type != CONF_TYPE_TEXT && has_control(text))
		return conf_walk_error(walk, node, "has control characters");
	else if (key->type == CONF_TYPE_PATH) {
		if (complete_path(walk, node) == -1)
			return -1;
		text = node->text;
	}
	memcpy(member_of(key, object), &text, sizeof(text));
	return 0;
}

static int
read_strings(struct conf_walk *walk, const struct conf_key *key,
    struct conf_node *node, void *object)
{
	bool single = node->type == CONF_NODE_STRING;
	size_t count = single ? 1 : node->count, i = 0;
	struct conf_node *element = single ? node : node->first;
	const char **texts;

	if (!single && node->type != CONF_NODE_LIST)
		return refuse_type(walk, node, "a text or a list of texts");
	texts = arena_alloc(walk->arena, (count + 1) * sizeof(*texts));
	for (; i < count; i++, element = element->next) {
		if (element->type != CONF_NODE_STRING)
			return refuse_type(walk, element, "texts in quotes");
		if (check_length(walk, key, element, element->text) == -1 ||
		    (key->type == CONF_TYPE_PATHS &&
			complete_path(walk, element) == -1))
			return -1;
		texts[i] = element->text;
	}
	memcpy(member_of(key, object), &texts, sizeof(texts));
	return 0;
}

/* ---- groups of free names ---- */

/* The name and value of one element: NAME = "value" in a group, "NAME<sep>
 * value" in a list. */
static int
split_pair(struct conf_walk *walk, const struct conf_node *element, char sep,
    const char **name, const char **value)
{
	const char *at;

	if (element->name != NULL) {
		*name = element->name;
		*value = element->text;
		if (element->type == CONF_NODE_INT)
			*value = arena_printf(
			    walk->arena, "%" PRId64, element->number);
		else if (element->type != CONF_NODE_STRING)
			return conf_walk_error_at(walk, element, element->name,
			    "takes a text in quotes, not %s",
			    conf_node_kind(element));
		return 0;
	}
	if (element->type != CONF_NODE_STRING)
		return refuse_type(walk, element, "texts in quotes");
	at = strchr(element->text, sep);
	if (at == NULL)
		return conf_walk_error(walk, element,
		    "\"%.*s\" has no %c between name and value", SHOWN,
		    element->text, sep);
	*name = arena_memdup0(
	    walk->arena, element->text, (size_t)(at - element->text));
	*value = at + 1;
	return 0;
}

/* Letters, digits, and what `more` has. */
static bool
is_made_of(const char *text, const char *more)
{
	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++) {
		bool plain = (*text >= 'a' && *text <= 'z') ||
			     (*text >= 'A' && *text <= 'Z') ||
			     (*text >= '0' && *text <= '9');

		if (!plain && strchr(more, *text) == NULL)
			return false;
	}
	return true;
}

static int
refuse_no_pairs(struct conf_walk *walk, const struct conf_node *node)
{
	return refuse_type(
	    walk, node, "a group { NAME = \"value\"; } or a list");
}

static int
read_pairs(struct conf_walk *walk, const struct conf_key *key,
    const struct conf_node *node, void *object)
{
	const struct conf_node *element;
	const char **pairs, *name, *value;
	size_t i = 0;

	if (node->type != CONF_NODE_GROUP && node->type != CONF_NODE_LIST)
		return refuse_no_pairs(walk, node);
	pairs = arena_alloc(walk->arena, (node->count + 1) * sizeof(*pairs));
	for (element = node->first; element != NULL; element = element->next) {
		if (split_pair(walk, element, '=', &name, &value) == -1)
			return -1;
		if (!is_made_of(name, "_.-"))
			return conf_walk_error(walk, element,
			    "\"%.*s\" cannot be a name", SHOWN, name);
		pairs[i++] = arena_printf(walk->arena, "%s=%s", name, value);
	}
	memcpy(member_of(key, object), &pairs, sizeof(pairs));
	return 0;
}

static int
read_fields(struct conf_walk *walk, const struct conf_key *key,
    const struct conf_node *node, void *object)
{
	const struct conf_node *element;
	struct conf_field *fields;
	size_t i = 0;

	if (node->type != CONF_NODE_GROUP && node->type != CONF_NODE_LIST)
		return refuse_no_pairs(walk, node);
	fields = arena_alloc(walk->arena, (node->count + 1) * sizeof(*fields));
	for (element = node->first; element != NULL; element = element->next) {
		struct conf_field *field = &fields[i++];

		if (split_pair(
			walk, element, ':', &field->name, &field->value) == -1)
			return -1;
		while (*field->value == ' ')
			field->value++;
		/* RFC 9110 section 5.6.2: token. */
		if (!is_made_of(field->name, "!#$%&'*+-.^_`|~"))
			return conf_walk_error(walk, element,
			    "\"%.*s\" cannot be the name of a field", SHOWN,
			    field->name);
		if (has_control(field->value))
			return conf_walk_error_at(walk, element, field->name,
			    "has control characters");
	}
	memcpy(member_of(key, object), &fields, sizeof(fields));
	*count_of(key, object) = i;
	return 0;
}

/* "unlimited", "4096" or "2G". */
static int
parse_limit(struct str text, uint64_t *value)
{
	if (str_eq(text, STR("unlimited"))) {
		*value = UINT64_MAX;
		return 0;
	}
	return conf_number_parse_bytes(text, value);
}

static int
read_limit(struct conf_walk *walk, const struct conf_node *node,
    struct conf_limit *limit)
{
	struct str soft, hard;

	limit->resource = conf_number_rlimit(node->name);
	if (limit->resource == -1)
		return conf_walk_error_at(
		    walk, node, node->name, "there is no such limit");
	if (node->type == CONF_NODE_INT && node->number >= 0) {
		limit->soft = limit->hard = (uint64_t)node->number;
		return 0;
	}
	if (node->type == CONF_NODE_STRING) {
		hard = str_of(node->text);
		if (str_split(&hard, ':', &soft) && hard.ptr == NULL)
			hard = soft;
		if (parse_limit(soft, &limit->soft) == 0 &&
		    parse_limit(hard, &limit->hard) == 0 &&
		    limit->soft <= limit->hard)
			return 0;
	}
	return conf_walk_error_at(walk, node, node->name,
	    "takes a number, a size such as \"2G\", \"unlimited\", or "
	    "\"SOFT:HARD\" of them");
}

static int
read_rlimits(struct conf_walk *walk, const struct conf_key *key,
    const struct conf_node *node, void *object)
{
	const struct conf_node *element;
	struct conf_limit *limits;
	size_t i = 0;

	if (node->type != CONF_NODE_GROUP)
		return refuse_type(walk, node, "a group { nofile = 4096; }");
	limits = arena_alloc(walk->arena, (node->count + 1) * sizeof(*limits));
	for (element = node->first; element != NULL; element = element->next) {
		if (read_limit(walk, element, &limits[i++]) == -1)
			return -1;
	}
	if (conf_walk_unique(walk, node) == -1)
		return -1;
	memcpy(member_of(key, object), &limits, sizeof(limits));
	*count_of(key, object) = i;
	return 0;
}

static int
read_ranges(struct conf_walk *walk, const struct conf_key *key,
    const struct conf_node *node, void *object)
{
	bool single = node->type == CONF_NODE_STRING;
	size_t count = single ? 1 : node->count;
	const struct conf_node *element = single ? node : node->first;
	struct addr_range *ranges;

	if (!single && node->type != CONF_NODE_LIST)
		return refuse_type(walk, node, "a list of addresses");
	ranges = arena_alloc(walk->arena, (count + 1) * sizeof(*ranges));
	for (size_t i = 0; i < count; i++, element = element->next) {
		if (element->type != CONF_NODE_STRING)
			return refuse_type(walk, element, "texts in quotes");
		if (addr_range_parse(str_of(element->text), &ranges[i]) == -1)
			return conf_walk_error(walk, element,
			    "\"%.*s\" is no address range; it is written as "
			    "in \"10.0.0.0/8\", \"::1\", \"unix\"",
			    SHOWN, element->text);
	}
	memcpy(member_of(key, object), &ranges, sizeof(ranges));
	*count_of(key, object) = count;
	return 0;
}

/* ---- */

int
conf_value_read(struct conf_walk *walk, const struct conf_key *key,
    struct conf_node *node, void *object)
{
	switch (key->type) {
	case CONF_TYPE_BOOL:
		return read_bool(walk, key, node, object);
	case CONF_TYPE_NUMBER:
		return read_number(walk, key, node, object);
	case CONF_TYPE_BYTES:
		return read_bytes(walk, key, node, object);
	case CONF_TYPE_DURATION:
		return read_duration(walk, key, node, object);
	case CONF_TYPE_STRING:
	case CONF_TYPE_TEXT:
	case CONF_TYPE_PATH:
		return read_string(walk, key, node, object);
	case CONF_TYPE_CHOICE:
	case CONF_TYPE_WORD:
		return read_choice(walk, key, node, object);
	case CONF_TYPE_STRINGS:
	case CONF_TYPE_PATHS:
		return read_strings(walk, key, node, object);
	case CONF_TYPE_PAIRS:
		return read_pairs(walk, key, node, object);
	case CONF_TYPE_FIELDS:
		return read_fields(walk, key, node, object);
	case CONF_TYPE_RLIMITS:
		return read_rlimits(walk, key, node, object);
	case CONF_TYPE_RANGES:
		return read_ranges(walk, key, node, object);
	case CONF_TYPE_SIGNAL:
		return read_signal(walk, key, node, object);
	case CONF_TYPE_UMASK:
		return read_umask(walk, key, node, object);
	case CONF_TYPE_GROUP:
	case CONF_TYPE_GROUPS:
	case CONF_TYPE_LIST:
	case CONF_TYPE_NAME:
	case CONF_TYPE_ABSENT:
		break; /* never stored: see conf_walk.c */
	}
	return 0;
}

void
conf_value_preset(
    struct conf_walk *walk, const struct conf_key *key, void *object)
{
	struct conf_node node = { .type = CONF_NODE_STRING,
		.name = conf_schema_name(key),
		.text = key->preset };

	if (key->type == CONF_TYPE_BOOL) {
		node.type = CONF_NODE_BOOL;
		node.number = strcmp(key->preset, "true") == 0;
	} else if (key->type == CONF_TYPE_NUMBER) {
		node.type = CONF_NODE_INT;
		node.number = strtoll(key->preset, NULL, 10);
	}
	conf_value_read(walk, key, &node, object);
}
