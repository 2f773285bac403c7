/*
 * What a new configuration changes for an app: member by member, as the
 * schema says. For reload. Compares no two configurations as a whole.
 */
#include <string.h>

#include "src/conf/conf_diff.h"

static const void *
member_of(const struct conf_key *key, const void *object)
{
	return (const char *)object + key->offset;
}

static bool
same_text(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return strcmp(a, b) == 0;
}

static bool
same_texts(const char *const *a, const char *const *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	for (; *a != NULL && *b != NULL; a++, b++) {
		if (strcmp(*a, *b) != 0)
			return false;
	}
	return *a == *b;
}

/* Field by field: the padding between them is nobody's. */
static bool
same_limits(const struct conf_app *a, const struct conf_app *b)
{
	if (a->n_limits != b->n_limits)
		return false;
	for (size_t i = 0; i < a->n_limits; i++) {
		const struct conf_limit *one = &a->limits[i];
		const struct conf_limit *other = &b->limits[i];

		if (one->resource != other->resource ||
		    one->soft != other->soft || one->hard != other->hard)
			return false;
	}
	return true;
}

bool
conf_same_member(const struct conf_key *key, const void *a, const void *b)
{
	const void *one, *other;

	switch (key->type) {
	case CONF_TYPE_STRING:
	case CONF_TYPE_TEXT:
	case CONF_TYPE_PATH:
	case CONF_TYPE_WORD:
		memcpy(&one, member_of(key, a), sizeof(one));
		memcpy(&other, member_of(key, b), sizeof(other));
		return same_text(one, other);
	case CONF_TYPE_STRINGS:
	case CONF_TYPE_PATHS:
	case CONF_TYPE_PAIRS:
		memcpy(&one, member_of(key, a), sizeof(one));
		memcpy(&other, member_of(key, b), sizeof(other));
		return same_texts(one, other);
	case CONF_TYPE_RLIMITS:
		return same_limits(a, b);
	case CONF_TYPE_BOOL:
	case CONF_TYPE_NUMBER:
	case CONF_TYPE_BYTES:
	case CONF_TYPE_DURATION:
	case CONF_TYPE_CHOICE:
	case CONF_TYPE_SIGNAL:
	case CONF_TYPE_UMASK:
		return memcmp(member_of(key, a), member_of(key, b),
			   key->width) == 0;
	case CONF_TYPE_FIELDS:
	case CONF_TYPE_RANGES:
	case CONF_TYPE_GROUP:
	case CONF_TYPE_GROUPS:
	case CONF_TYPE_LIST:
	case CONF_TYPE_NAME:
	case CONF_TYPE_ABSENT:
		break; /* nothing to compare here */
	}
	return true;
}

static bool
is_changed(const struct conf_key *key, const struct conf_app *old,
    const struct conf_app *now)
{
	return strncmp(key->path, "apps.*.", 7) == 0 && !key->unstored &&
	       conf_schema_is_for(key, 1u << now->runtime) &&
	       !conf_same_member(key, old, now);
}

enum conf_change
conf_app_change(const struct conf_app *old, const struct conf_app *now)
{
	enum conf_change change = CONF_SAME;

	if (old->runtime != now->runtime)
		return CONF_RESTART;
	for (size_t i = 0; i < conf_keys_count; i++) {
		const struct conf_key *key = &conf_keys[i];

		if (!is_changed(key, old, now))
			continue;
		if (key->needs != CONF_NEEDS_RELOAD)
			return CONF_RESTART;
		change = CONF_ADJUST;
	}
	return change;
}

void
conf_describe_app(
    const struct conf_app *old, const struct conf_app *now, struct strbuf *to)
{
	size_t before = to->len;

	if (old->runtime != now->runtime) {
		strbuf_add_text(to, "runtime");
		return;
	}
	for (size_t i = 0; i < conf_keys_count; i++)
		if (is_changed(&conf_keys[i], old, now))
			strbuf_printf(to, "%s%s", to->len > before ? ", " : "",
			    conf_keys[i].path + strlen("apps.*."));
}
