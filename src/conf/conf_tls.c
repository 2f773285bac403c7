/*
 * Which files the TLS parts of a configuration name, and where.
 * Asked by the supervisor, which reads them for the proxy. Opens nothing.
 */
#include "src/conf/conf_build.h"

struct each {
	const struct conf *conf;
	conf_tls_file_cb *call;
	void *arg;
};

static int
tell_site(const struct each *each, const struct conf_site *site,
    const char *key, const char *path)
{
	struct conf_place place;

	if (path == NULL)
		return 0;
	conf_place_site(&place, each->conf, site, NULL, key);
	return each->call(path, &place.where, place.path, each->arg);
}

static int
tell_all(const struct each *each, const struct conf_site *site, const char *key,
    const char *const *paths)
{
	for (; paths != NULL && *paths != NULL; paths++)
		if (tell_site(each, site, key, *paths) == -1)
			return -1;
	return 0;
}

static int
tell_upstream(const struct each *each, const struct conf_upstream *upstream,
    const char *key, const char *path)
{
	struct conf_place place;

	if (path == NULL || upstream->protocol != CONF_HTTPS)
		return 0;
	conf_place_upstream(&place, each->conf, upstream, key);
	return each->call(path, &place.where, place.path, each->arg);
}

int
conf_each_tls_file(const struct conf *conf, conf_tls_file_cb *call, void *arg)
{
	struct each each = { conf, call, arg };

	for (size_t i = 0; i < conf->n_sites; i++) {
		const struct conf_site *site = &conf->sites[i];
		const struct conf_site_tls *tls = &site->tls;

		if (tell_all(&each, site, "tls.certificate",
			tls->certificates) == -1 ||
		    tell_all(&each, site, "tls.key", tls->keys) == -1 ||
		    tell_site(&each, site, "tls.client_certificate.ca",
			tls->client_ca) == -1)
			return -1;
	}
	for (size_t i = 0; i < conf->n_upstreams; i++) {
		const struct conf_upstream *upstream = &conf->upstreams[i];
		const struct conf_upstream_tls *tls = &upstream->tls;

		if (tell_upstream(&each, upstream, "tls.ca", tls->ca) == -1 ||
		    tell_upstream(&each, upstream, "tls.certificate",
			tls->certificate) == -1 ||
		    tell_upstream(&each, upstream, "tls.key", tls->key) == -1)
			return -1;
	}
	return 0;
}

int
conf_ticket_file(const struct conf *conf, conf_tls_file_cb *call, void *arg)
{
	const struct conf_node *node =
	    conf_node_find(conf_node_find(conf->tree, "tls"), "ticket_keys");
	struct conf_where where = { conf->file, 0 };

	if (conf->tls.ticket_keys == NULL)
		return 0;
	if (node != NULL)
		where = node->where;
	return call(conf->tls.ticket_keys, &where, "tls.ticket_keys", arg);
}
