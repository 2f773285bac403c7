/*
 * The look into certificates and keys of `scalwsd -t` and of role "check",
 * with the rights of who calls it: the same code that PREPARE runs, without
 * workers. Serves nothing and keeps nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "proxy/core/tls_files.h"
#include "proxy/core/tls_site.h"
#include "proxy/core/tls_tickets.h"
#include "proxy/core/tls_upstream.h"
#include "proxy/proxy.h"

struct look {
	struct conf_errors *errors;
	bool must_read;
	struct tls_files files;
};

static int
add_file(const char *path, const struct conf_where *where, const char *key,
    void *arg)
{
	struct look *look = arg;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd == -1 && errno == EACCES && !look->must_read)
		conf_errors_warn(look->errors, where, key,
		    "%.200s is not yours to read: nobody looked into it", path);
	else if (fd == -1 || tls_files_add(&look->files, path, fd) == -1)
		conf_errors_add_errno(
		    look->errors, where, key, "%.200s cannot be read", path);
	return 0;
}

static bool
has_file(const struct look *look, const char *path)
{
	struct str text;

	return path == NULL || tls_files_get(&look->files, path, &text);
}

static bool
has_files(const struct look *look, const char *const *paths)
{
	for (; *paths != NULL; paths++)
		if (!has_file(look, *paths))
			return false;
	return true;
}

static void
look_at_site(
    struct look *look, const struct conf *conf, const struct conf_site *site)
{
	const struct conf_site_tls *tls = &site->tls;
	struct tls_site *made;

	if (tls->certificates == NULL || !has_file(look, tls->client_ca) ||
	    !has_files(look, tls->certificates) || !has_files(look, tls->keys))
		return;
	made = tls_site_new(conf, site, &look->files, look->errors);
	tls_site_free(&made);
}

static void
look_at_upstream(struct look *look, const struct conf *conf,
    const struct conf_upstream *upstream)
{
	const struct conf_upstream_tls *tls = &upstream->tls;
	struct tls_upstream *made;

	if (upstream->protocol != CONF_HTTPS || !has_file(look, tls->ca) ||
	    !has_file(look, tls->certificate) || !has_file(look, tls->key))
		return;
	made =
	    tls_upstream_new(conf, upstream, &look->files, NULL, look->errors);
	tls_upstream_unref(&made);
}

/* As ticket_keys.c does, which uses them. */
static int
look_at_tickets(const char *path, const struct conf_where *where,
    const char *key, void *arg)
{
	struct look *look = arg;
	struct tls_tickets tickets;
	struct str text;

	(void)!add_file(path, where, key, look);
	if (tls_files_get(&look->files, path, &text) &&
	    tls_tickets_parse(&tickets, text) == -1)
		conf_errors_add(look->errors, where, key,
		    "%.200s does not hold 1 to %d keys of %zu bytes each", path,
		    TLS_TICKET_KEYS_MAX, sizeof(struct tls_ticket_key));
	explicit_bzero(&tickets, sizeof(tickets));
	return 0;
}

int
proxy_check_tls(
    const struct conf *conf, bool must_read, struct conf_errors *errors)
{
	struct look look = { .errors = errors, .must_read = must_read };
	int before = errors->count;

	(void)!conf_each_tls_file(conf, add_file, &look);
	for (size_t i = 0; i < conf->n_sites; i++)
		look_at_site(&look, conf, &conf->sites[i]);
	for (size_t i = 0; i < conf->n_upstreams; i++)
		look_at_upstream(&look, conf, &conf->upstreams[i]);
	(void)!conf_ticket_file(conf, look_at_tickets, &look);
	tls_files_wipe(&look.files);
	return errors->count == before ? 0 : -1;
}
