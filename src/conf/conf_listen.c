/*
 * Listeners: the addresses that sites name, each once, with its sites.
 * The last step of conf_build.c. Binds nothing.
 */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/arena.h"
#include "src/base/hash.h"
#include "src/base/mem.h"
#include "src/conf/conf_build.h"

/* Enough for any site, and it bounds what a hostile text can cost. */
#define LISTEN_MAX 64
#define NAMES_MAX 4096

struct making {
	struct conf *conf;
	struct conf_errors *errors;
	struct hash_map *by_text; /* address text -> struct conf_listener */
	struct hash_map *names;   /* "LISTENER NAME" -> struct conf_site */
	struct conf_place place;
	const struct conf_site *site;
	bool tls; /* the address at hand */
};

static void PRINTF_LIKE(2, 3)
    refuse(struct making *making, const char *fmt, ...)
{
	va_list args;
	char text[512];

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	conf_errors_add(making->errors, &making->place.where,
	    making->place.path, "%s", text);
}

static const char *
with_tls(bool tls)
{
	return tls ? "with TLS" : "without TLS";
}

static struct conf_listener *
get_listener(struct making *making, const struct addr *addr, bool optional)
{
	struct conf *conf = making->conf;
	struct conf_listener *listener;
	char text[ADDR_TEXT_MAX];

	addr_format(addr, text);
	listener = hash_map_get(making->by_text, str_of(text));
	if (listener != NULL) {
		/* Named alone by another site: then it must be there. */
		listener->optional = listener->optional && optional;
		if (listener->tls != making->tls)
			refuse(making, "%s is %s at %s:%d and %s here",
			    listener->text, with_tls(listener->tls),
			    listener->where.file, listener->where.line,
			    with_tls(making->tls));
		return listener;
	}
	listener = &conf->listeners[conf->n_listeners++];
	listener->where = making->place.where;
	listener->text = arena_strdup(conf->arena, text);
	listener->addr = *addr;
	listener->v6only = addr->u.sa.sa_family == AF_INET6;
	listener->optional = optional;
	listener->tls = making->tls;
	if (hash_map_add(making->by_text, str_of(text), listener) == -1)
		return NULL;
	return listener;
}

/* Take `name` on that listener for this site. Returns another site that has it
 * already; a site that names an address or a name twice does no harm. */
static const struct conf_site *
take_name(struct making *making, size_t listener, const char *name)
{
	char *key = mem_printf("%zu %s", listener, name);
	void *site = &making->conf->sites[making->site->index];
	const struct conf_site *first =
	    hash_map_get(making->names, str_of(key));

	if (first == NULL &&
	    hash_map_add(making->names, str_of(key), site) == 0)
		first = making->site;
	mem_free(key);
	return first == making->site ? NULL : first;
}

static void
take_names(struct making *making, struct conf_listener *listener)
{
	const struct conf_site *site = making->site, *other;
	size_t index = (size_t)(listener - making->conf->listeners);

	for (size_t i = 0; site->names[i] != NULL; i++) {
		other = take_name(making, index, site->names[i]);
		if (other != NULL)
			refuse(making,
			    "%s: the name %.255s belongs to the site at "
			    "%s:%d already",
			    listener->text, site->names[i], other->where.file,
			    other->where.line);
	}
	if (!site->is_default)
		return;
	listener->default_site = &making->conf->sites[site->index];
	other = take_name(making, index, "*");
	if (other != NULL)
		refuse(making, "%s: the site at %s:%d is the default already",
		    listener->text, other->where.file, other->where.line);
}

static void
add_site(struct making *making, struct conf_listener *listener)
{
	const struct conf_site *site = making->site;
	/* Sites come in file order: this one would be the last. */
	if (listener->n_sites > 0 &&
	    listener->sites[listener->n_sites - 1] == site)
		return;
	if ((listener->n_sites & (listener->n_sites + 1)) == 0) {
		size_t room = listener->n_sites * 2 + 1;
		struct conf_site **grown =
		    arena_alloc(making->conf->arena, room * sizeof(*grown));

		if (listener->n_sites > 0)
			memcpy(grown, listener->sites,
			    listener->n_sites * sizeof(*grown));
		listener->sites = grown;
	}
	listener->sites[listener->n_sites++] =
	    &making->conf->sites[site->index];
	take_names(making, listener);
}

static void
add_address(struct making *making, const struct addr *addr, bool optional)
{
	struct conf_listener *listener = get_listener(making, addr, optional);

	if (listener != NULL)
		add_site(making, listener);
}

static struct addr
any_address(int family, uint16_t port)
{
	struct addr addr = { .len = 0 };

	if (family == AF_INET) {
		addr.len = sizeof(addr.u.in);
		addr.u.in.sin_family = AF_INET;
		addr.u.in.sin_port = htons(port);
	} else {
		addr.len = sizeof(addr.u.in6);
		addr.u.in6.sin6_family = AF_INET6;
		addr.u.in6.sin6_port = htons(port);
	}
	return addr;
}

static void
add_port(struct making *making, uint16_t port)
{
	struct addr four = any_address(AF_INET, port);
	struct addr six = any_address(AF_INET6, port);

	add_address(making, &four, false);
	add_address(making, &six, true);
}

/* False when it is neither "80" nor "*:80". */
static bool
try_port(struct making *making, struct str text)
{
	uint64_t port;

	if (str_starts_with(text, STR("*:"))) {
		text.ptr += 2;
		text.len -= 2;
	}
	if (text.len == 0 || strspn(text.ptr, "0123456789") < text.len)
		return false;
	if (str_to_u64(text, 65535, &port) == -1 || port == 0)
		refuse(making, "\"%.*s\" is no port between 1 and 65535",
		    (int)(text.len > 60 ? 60 : text.len), text.ptr);
	else
		add_port(making, (uint16_t)port);
	return true;
}

/* What stands behind the address. */
static void
read_options(struct making *making, struct str rest, const char *text)
{
	struct str option;

	making->tls = false;
	while (str_split(&rest, ' ', &option)) {
		if (str_eq(option, STR("tls")))
			making->tls = true;
		else if (option.len > 0)
			refuse(making, "\"%.80s\": there is no option \"%.*s\"",
			    text, (int)(option.len > 40 ? 40 : option.len),
			    option.ptr);
	}
	if (making->tls && making->site->tls.certificates == NULL)
		refuse(
		    making, "\"%.80s\": the site has no tls.certificate", text);
}

static void
add_listen(struct making *making, const char *text)
{
	struct str rest = str_trim(str_of(text)), first = rest;
	struct addr addr;
	bool is_split = str_split(&rest, ' ', &first);

	read_options(making, rest, text);
	if (is_split && try_port(making, first))
		return;
	switch (addr_parse(first, &addr)) {
	case ADDR_OK:
		if (IN6_IS_ADDR_V4MAPPED(&addr.u.in6.sin6_addr) &&
		    addr.u.sa.sa_family == AF_INET6)
			refuse(making, "\"%.80s\": write it as IPv4", text);
		else
			add_address(making, &addr, false);
		return;
	case ADDR_NAME:
		refuse(making,
		    "\"%.80s\": a listener is an address, not a name; sites "
		    "have names",
		    text);
		return;
	case ADDR_BAD_PORT:
		refuse(
		    making, "\"%.80s\" has no port between 1 and 65535", text);
		return;
	case ADDR_TOO_LONG:
		refuse(
		    making, "the path of a unix socket has at most 107 bytes");
		return;
	case ADDR_BAD:
		refuse(making,
		    "\"%.80s\" is no listener; it is written as in \"80\", "
		    "\"127.0.0.1:80\", \"[::1]:80\", \"unix:/run/x.sock\"",
		    text);
		return;
	}
}

static size_t
count_texts(const char *const *texts)
{
	size_t count = 0;

	while (texts[count] != NULL)
		count++;
	return count;
}

static void
add_listens(struct making *making, const struct conf_site *site)
{
	making->site = site;
	if (count_texts(site->names) > NAMES_MAX) {
		conf_place_site(
		    &making->place, making->conf, site, NULL, "names");
		refuse(making, "has more than %d names", NAMES_MAX);
		return;
	}
	conf_place_site(&making->place, making->conf, site, NULL, "listen");
	if (count_texts(site->listen) > LISTEN_MAX) {
		refuse(making, "has more than %d addresses", LISTEN_MAX);
		return;
	}
	for (size_t i = 0; site->listen[i] != NULL; i++)
		add_listen(making, site->listen[i]);
}

/* Linux refuses to bind 127.0.0.1:80 beside 0.0.0.0:80. */
static void
check_overlaps(struct making *making)
{
	struct conf *conf = making->conf;

	for (size_t i = 0; i < conf->n_listeners; i++) {
		const struct conf_listener *listener = &conf->listeners[i];
		int family = listener->addr.u.sa.sa_family;
		struct addr any;
		char text[ADDR_TEXT_MAX];
		const struct conf_listener *other;

		if (family == AF_UNIX)
			continue;
		any = any_address(family, addr_port(&listener->addr));
		addr_format(&any, text);
		other = hash_map_get(making->by_text, str_of(text));
		if (other == NULL || other == listener)
			continue;
		conf_errors_add(making->errors, &listener->where, "listen",
		    "%s is a part of %s, which is listened to at %s:%d",
		    listener->text, other->text, other->where.file,
		    other->where.line);
	}
}

int
conf_listen_build(struct conf *conf, struct conf_errors *errors)
{
	struct making making = { .conf = conf, .errors = errors };
	int before = errors->count;
	size_t room = 1;

	for (size_t i = 0; i < conf->n_sites; i++) {
		size_t count = count_texts(conf->sites[i].listen);

		room += 2 * (count < LISTEN_MAX ? count : LISTEN_MAX);
	}
	conf->listeners =
	    arena_alloc(conf->arena, room * sizeof(*conf->listeners));
	making.by_text = hash_map_new();
	making.names = hash_map_new();
	for (size_t i = 0; i < conf->n_sites; i++)
		add_listens(&making, &conf->sites[i]);
	check_overlaps(&making);
	for (size_t i = 0; i < conf->n_listeners; i++) {
		struct conf_listener *listener = &conf->listeners[i];

		if (listener->default_site == NULL && listener->n_sites > 0)
			listener->default_site = listener->sites[0];
	}
	hash_map_free(making.by_text);
	hash_map_free(making.names);
	return errors->count == before ? 0 : -1;
}
