/*
 * CGI's view of a request.
 * Called by exchange_fastcgi.c for each one; PHP sees the client's address,
 * scheme and host here, so no X-Forwarded field is needed or believed.
 * Sends nothing.
 */
#include "proxy/upstream/fastcgi_params.h"

#include <string.h>
#include <strings.h>

#include "proxy/core/request.h"
#include "proxy/core/snapshot.h"
#include "proxy/core/tls_io.h"
#include "proxy/http/max_forwards.h"

#ifndef SCALWS_VERSION
#define SCALWS_VERSION "0"
#endif

static void
add(struct fcgi_params *params, struct str name, struct str value)
{
	fcgi_params_add(params, name, value);
}

static void
add_number(struct fcgi_params *params, struct str name, uint64_t value)
{
	char text[20];

	add(params, name, (struct str){ text, str_put_u64(text, value) });
}

/* ---- fields of the client ---- */

static bool
is_dropped(uint8_t id)
{
	switch (id) {
	case HEADER_CONTENT_LENGTH:
	case HEADER_CONTENT_TYPE: /* parameters without HTTP_ */
	case HEADER_EXPECT:
	case HEADER_FORWARDED:
	case HEADER_HOST: /* ours */
	case HEADER_MAX_FORWARDS:
	case HEADER_X_FORWARDED_FOR:
	case HEADER_X_FORWARDED_HOST:
	case HEADER_X_FORWARDED_PORT:
	case HEADER_X_FORWARDED_PREFIX:
	case HEADER_X_FORWARDED_PROTO:
	case HEADER_X_REAL_IP:
	case HEADER_X_REQUEST_ID: /* ours */
		return true;
	default:
		return false;
	}
}

static bool
same_name(const char *base, const struct header_field *a,
    const struct header_field *b)
{
	if (a->id != b->id || a->name_len != b->name_len)
		return false;
	return a->id != HEADER_OTHER ||
	       strncasecmp(base + a->name, base + b->name, a->name_len) == 0;
}

/* The first field from `from` on, below `to`, with the name of `field`. */
static unsigned
find_same(const struct request *request, const struct header_field *field,
    unsigned from, unsigned to)
{
	const struct header_table *table = &request->head.headers;

	while (
	    from < to && !same_name(request->base, field, &table->fields[from]))
		from++;
	return from;
}

/* Several fields of one name are one variable: joined as RFC 9110 section 5.3
 * and RFC 6265 section 5.4 say. */
static void
add_joined(struct fcgi_params *params, const struct request *request,
    unsigned first, unsigned next)
{
	const struct header_table *table = &request->head.headers;
	const struct header_field *field = &table->fields[first];
	const char *glue = field->id == HEADER_COOKIE ? "; " : ", ";
	struct buf *buf = buf_get(request->worker);
	struct str name = { request->base + field->name, field->name_len };

	for (unsigned i = first; i < table->count;
	     i = i == first ? next
			    : find_same(request, field, i + 1, table->count)) {
		struct str value =
		    header_value(request->base, &table->fields[i]);

		if (buf->end + value.len + 2 > buf->room) {
			params->overflow = true;
			break;
		}
		if (i != first) {
			memcpy(buf->bytes + buf->end, glue, 2);
			buf->end += 2;
		}
		memcpy(buf->bytes + buf->end, value.ptr, value.len);
		buf->end += (uint32_t)value.len;
	}
	fcgi_params_add_header(
	    params, name, (struct str){ buf->bytes, buf->end });
	buf_put(request->worker, &buf);
}

static void
add_max_forwards(struct fcgi_params *params, const struct request *request)
{
	char room[20];
	struct str value =
	    max_forwards_next(&request->head, request->base, room);

	if (UNLIKELY(value.ptr != NULL))
		add(params, STR("HTTP_MAX_FORWARDS"), value);
}

static void
add_fields(struct fcgi_params *params, const struct request *request)
{
	const struct header_table *table = &request->head.headers;

	for (unsigned i = 0; i < table->count; i++) {
		const struct header_field *field = &table->fields[i];
		unsigned next;

		if (field->flags != 0 || is_dropped(field->id) ||
		    find_same(request, field, 0, i) < i)
			continue;
		next = find_same(request, field, i + 1, table->count);
		if (UNLIKELY(next < table->count))
			add_joined(params, request, i, next);
		else
			fcgi_params_add_header(params,
			    (struct str){
				request->base + field->name, field->name_len },
			    header_value(request->base, field));
	}
}

/* ---- what we know ---- */

static void
add_script(struct fcgi_params *params, const struct request *request,
    const struct exchange_target *target)
{
	char path[4096];
	size_t root = target->document_root.len, info = target->path_info.len;

	add(params, STR("SCRIPT_FILENAME"), target->script_filename);
	add(params, STR("SCRIPT_NAME"), target->script_name);
	add(params, STR("DOCUMENT_ROOT"), target->document_root);
	add(params, STR("DOCUMENT_URI"), target->script_name);
	if (info == 0)
		return;
	add(params, STR("PATH_INFO"), target->path_info);
	if (root + info > sizeof(path)) {
		params->overflow = true;
		return;
	}
	memcpy(path, target->document_root.ptr, root);
	memcpy(path + root, target->path_info.ptr, info);
	add(params, STR("PATH_TRANSLATED"), (struct str){ path, root + info });
}

static struct str
host_of(const struct request *request)
{
	if (request->forwarded.host.len > 0)
		return request->forwarded.host;
	return (struct str){ request->base + request->head.host,
		request->head.host_len };
}

/* The configured name; a wildcard or nameless site: what the client said. */
static struct str
server_name(const struct request *request)
{
	struct str name = request->site->name;

	if (name.len == 0 || name.ptr[0] == '*' || str_eq(name, STR("_")))
		return request->host;
	return name;
}

static void
add_ends(struct fcgi_params *params, const struct request *request)
{
	const struct forwarded *forwarded = &request->forwarded;
	const struct addr *ours = &request->listener->conf->addr;
	bool tls_before = forwarded->https && request->tls == NULL;
	char text[ADDR_TEXT_MAX];
	size_t len = addr_format_host(&forwarded->client, text);

	add(params, STR("REMOTE_ADDR"), (struct str){ text, len });
	add_number(params, STR("REMOTE_PORT"), addr_port(&forwarded->client));
	len = addr_format_host(ours, text);
	add(params, STR("SERVER_ADDR"), (struct str){ text, len });
	add_number(
	    params, STR("SERVER_PORT"), tls_before ? 443 : addr_port(ours));
	add(params, STR("SERVER_NAME"), server_name(request));
	if (forwarded->https)
		add(params, STR("HTTPS"), STR("on"));
	add(params, STR("REQUEST_SCHEME"),
	    forwarded->https ? STR("https") : STR("http"));
	add(params, STR("HTTP_HOST"), host_of(request));
	add(params, STR("HTTP_X_REQUEST_ID"), str_of(request->id));
}

static void
add_client(struct fcgi_params *params, const struct request *request)
{
	struct tls_client client;

	if (LIKELY(!request_shows_client(request)))
		return;
	tls_client(request->tls, &client);
	add(params, STR("HTTP_X_SSL_CLIENT_VERIFY"),
	    client.is_verified ? STR("SUCCESS") : STR("NONE"));
	if (!client.is_verified)
		return;
	add(params, STR("HTTP_X_SSL_CLIENT_SUBJECT"), str_of(client.subject));
	add(params, STR("HTTP_X_SSL_CLIENT_FINGERPRINT"),
	    str_of(client.fingerprint));
}

static struct str
protocol_of(const struct request *request)
{
	struct str name = str_of(request->front->name);

	if (str_eq(name, STR("HTTP/1.1")) && request->head.minor == 0)
		return STR("HTTP/1.0");
	return name;
}

static void
add_request(struct fcgi_params *params, const struct request *request,
    const struct exchange_target *target, const struct exchange_body *body)
{
	const struct h1_request *head = &request->head;
	const struct header_field *type =
	    header_get(&head->headers, HEADER_CONTENT_TYPE);
	struct str query = { request->base + head->query, head->query_len };

	add(params, STR("GATEWAY_INTERFACE"), STR("CGI/1.1"));
	add(params, STR("SERVER_SOFTWARE"), STR("ScalWS/" SCALWS_VERSION));
	add(params, STR("SERVER_PROTOCOL"), protocol_of(request));
	add(params, STR("REQUEST_METHOD"), request->method);
	add(params, STR("REQUEST_URI"), target->target);
	add(params, STR("QUERY_STRING"), query);
	if (type != NULL)
		add(params, STR("CONTENT_TYPE"),
		    header_value(request->base, type));
	if (body->kind != BODY_NONE)
		add_number(params, STR("CONTENT_LENGTH"), body->length);
	/* php-cgi with cgi.force_redirect wants it. */
	add(params, STR("REDIRECT_STATUS"), STR("200"));
}

void
fastcgi_params_put(struct fcgi_params *params, const struct request *request,
    const struct exchange_target *target, const struct exchange_body *body)
{
	add_request(params, request, target, body);
	add_script(params, request, target);
	add_ends(params, request);
	add_client(params, request);
	add_max_forwards(params, request);
	add_fields(params, request);
}
