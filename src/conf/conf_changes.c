/*
 * What a new configuration changes, in words: for `reload --dry-run`, and for
 * what a reload cannot take over.
 * Beside conf_diff.c, which says what becomes of an app. Changes nothing.
 */
#include <string.h>

#include "src/conf/conf_diff.h"
#include "src/conf/conf_node.h"
#include "src/conf/conf_schema.h"

/* ---- trees, as they were written ---- */

static bool
same_text(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return strcmp(a, b) == 0;
}

static bool
same_node(const struct conf_node *a, const struct conf_node *b)
{
	const struct conf_node *one, *other;

	if (a == NULL || b == NULL)
		return a == b;
	if (a->type != b->type || a->count != b->count ||
	    a->number != b->number || !same_text(a->name, b->name) ||
	    !same_text(a->text, b->text))
		return false;
	for (one = a->first, other = b->first; one != NULL && other != NULL;
	     one = one->next, other = other->next)
		if (!same_node(one, other))
			return false;
	return one == other;
}

static const struct conf_node *
nth(const struct conf_node *list, size_t at)
{
	const struct conf_node *node = list == NULL ? NULL : list->first;

	while (node != NULL && at-- > 0)
		node = node->next;
	return node;
}

/* ---- listeners ---- */

static bool
has_listener(const struct conf *conf, const struct conf_listener *wanted)
{
	for (size_t i = 0; i < conf->n_listeners; i++)
		if (strcmp(conf->listeners[i].text, wanted->text) == 0 &&
		    conf->listeners[i].tls == wanted->tls)
			return true;
	return false;
}

static void
missing_listeners(const struct conf *in, const struct conf *than,
    const char *what, struct strbuf *to)
{
	for (size_t i = 0; i < in->n_listeners; i++)
		if (!has_listener(than, &in->listeners[i]))
			strbuf_printf(to, "listener %s: %s\n",
			    in->listeners[i].text, what);
}

/* ---- sites ---- */

/* What a site is known by: its names, or where it listens. */
static bool
is_same_site(const struct conf_site *a, const struct conf_site *b)
{
	const char **one = a->names[0] != NULL ? a->names : a->listen;
	const char **other = b->names[0] != NULL ? b->names : b->listen;

	return strcmp(one[0], other[0]) == 0;
}

static const struct conf_site *
find_site(const struct conf *conf, const struct conf_site *wanted)
{
	for (size_t i = 0; i < conf->n_sites; i++)
		if (is_same_site(&conf->sites[i], wanted))
			return &conf->sites[i];
	return NULL;
}

static void
compare_sites(const struct conf *old, const struct conf *now, struct strbuf *to)
{
	const struct conf_node *olds = conf_node_find(old->tree, "sites");
	const struct conf_node *nows = conf_node_find(now->tree, "sites");

	for (size_t i = 0; i < now->n_sites; i++) {
		const struct conf_site *site = &now->sites[i];
		const struct conf_site *was = find_site(old, site);
		const char *name =
		    site->names[0] != NULL ? site->names[0] : site->listen[0];

		if (was == NULL)
			strbuf_printf(to, "site %s: added\n", name);
		else if (!same_node(nth(olds, was->index), nth(nows, i)))
			strbuf_printf(to, "site %s: changed\n", name);
	}
	for (size_t i = 0; i < old->n_sites; i++) {
		const struct conf_site *site = &old->sites[i];

		if (find_site(now, site) == NULL)
			strbuf_printf(to, "site %s: removed\n",
			    site->names[0] != NULL ? site->names[0]
						   : site->listen[0]);
	}
}

/* ---- upstreams ---- */

static void
compare_upstreams(
    const struct conf *old, const struct conf *now, struct strbuf *to)
{
	const struct conf_node *olds = conf_node_find(old->tree, "upstreams");
	const struct conf_node *nows = conf_node_find(now->tree, "upstreams");
	const struct conf_node *node, *was;

	for (node = nth(nows, 0); node != NULL; node = node->next) {
		was = conf_node_find(olds, node->name);
		if (was == NULL)
			strbuf_printf(to, "upstream %s: added\n", node->name);
		else if (!same_node(was, node))
			strbuf_printf(to, "upstream %s: changed\n", node->name);
	}
	for (node = nth(olds, 0); node != NULL; node = node->next)
		if (conf_node_find(nows, node->name) == NULL)
			strbuf_printf(to, "upstream %s: removed\n", node->name);
}

/* ---- keys of the top ---- */

/* Paths have a "*" below apps, upstreams and sites only. */
static bool
is_of_the_top(const struct conf_key *key)
{
	return !key->unstored && strchr(key->path, '*') == NULL;
}

static bool
same_key(
    const struct conf_key *key, const struct conf *old, const struct conf *now)
{
	if (key->type == CONF_TYPE_RANGES)
		return same_node(conf_node_find(old->tree, key->path),
		    conf_node_find(now->tree, key->path));
	return conf_same_member(key, old, now);
}

static void
compare_keys(const struct conf *old, const struct conf *now,
    enum conf_needs needs, const char *what, struct strbuf *to)
{
	for (size_t i = 0; i < conf_keys_count; i++) {
		const struct conf_key *key = &conf_keys[i];

		if (is_of_the_top(key) && key->needs == needs &&
		    !same_key(key, old, now))
			strbuf_printf(to, "%s: %s\n", key->path, what);
	}
}

void
conf_describe_changes(
    const struct conf *old, const struct conf *now, struct strbuf *to)
{
	missing_listeners(now, old, "added", to);
	missing_listeners(old, now, "removed", to);
	compare_sites(old, now, to);
	compare_upstreams(old, now, to);
	compare_keys(old, now, CONF_NEEDS_RELOAD, "changed", to);
}

void
conf_describe_restart(
    const struct conf *running, const struct conf *now, struct strbuf *to)
{
	compare_keys(running, now, CONF_NEEDS_RESTART,
	    "takes effect when the daemon is restarted", to);
}
