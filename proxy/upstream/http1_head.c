/*
 * Heads of requests to HTTP/1 applications.
 * Called by exchange_http1.c for each request; what the application sees of the
 * client is decided here.
 * Sends nothing.
 */
#include "proxy/upstream/http1_head.h"

#include <string.h>

#include "proxy/core/request.h"
#include "proxy/core/tls_io.h"
#include "proxy/http/max_forwards.h"

/* Fields of our own, with room for their values. */
#define OWN_FIELDS_MAX (1024 + TLS_SUBJECT_MAX + 256)

struct writer {
	char *at, *end;
	bool overflow;
};

static inline void
put(struct writer *out, const char *from, size_t len)
{
	if (UNLIKELY(len > (size_t)(out->end - out->at))) {
		out->overflow = true;
		return;
	}
	memcpy(out->at, from, len);
	out->at += len;
}

static inline void
put_str(struct writer *out, struct str text)
{
	put(out, text.ptr, text.len);
}

#define PUT(out, literal) put(out, literal, sizeof(literal) - 1)

/* Not passed on: written by us instead, or settled on this side. */
static bool
is_ours(uint8_t id)
{
	switch (id) {
	case HEADER_CONTENT_LENGTH:
	case HEADER_EXPECT:
	case HEADER_FORWARDED:
	case HEADER_HOST:
	case HEADER_MAX_FORWARDS:
	case HEADER_X_FORWARDED_FOR:
	case HEADER_X_FORWARDED_HOST:
	case HEADER_X_FORWARDED_PORT:
	case HEADER_X_FORWARDED_PREFIX:
	case HEADER_X_FORWARDED_PROTO:
	case HEADER_X_REAL_IP:
	case HEADER_X_REQUEST_ID:
		return true;
	default:
		return false;
	}
}

static inline bool
is_passed(const struct header_field *field)
{
	return field->flags == 0 &&
	       (field->id == HEADER_OTHER || !is_ours(field->id));
}

/* Does "name: value\r\n" stand in the original just so? */
static inline bool
is_plain(const char *base, const struct header_field *field)
{
	const char *name_end = base + field->name + field->name_len;
	const char *value_end = base + field->value + field->value_len;

	return field->value == field->name + field->name_len + 2 &&
	       name_end[0] == ':' && name_end[1] == ' ' &&
	       value_end[0] == '\r' && value_end[1] == '\n';
}

/* Fields that stand side by side are copied in one piece. */
static void
put_fields(struct writer *out, const struct request *request)
{
	const struct header_table *table = &request->head.headers;
	const char *base = request->base;
	uint32_t from = 0, to = 0;

	for (unsigned i = 0; i < table->count; i++) {
		const struct header_field *field = &table->fields[i];

		if (!is_passed(field))
			continue;
		if (LIKELY(is_plain(base, field))) {
			if (field->name != to) {
				put(out, base + from, to - from);
				from = field->name;
			}
			to = field->value + field->value_len + 2;
			continue;
		}
		put(out, base + from, to - from);
		from = to = 0;
		put(out, base + field->name, field->name_len);
		PUT(out, ": ");
		put(out, base + field->value, field->value_len);
		PUT(out, "\r\n");
	}
	put(out, base + from, to - from);
}

static struct str
host_of(const struct request *request)
{
	return (struct str){ request->base + request->head.host,
		request->head.host_len };
}

/* Where the request came from: exactly one address, the client's. */
static void
put_origin(struct writer *out, const struct request *request, struct str prefix)
{
	const struct forwarded *forwarded = &request->forwarded;
	char text[ADDR_TEXT_MAX];
	struct str host =
	    forwarded->host.len > 0 ? forwarded->host : host_of(request);

	if (forwarded->client.len > 0 &&
	    forwarded->client.u.sa.sa_family != AF_UNIX) {
		PUT(out, "X-Forwarded-For: ");
		put(out, text, addr_format_host(&forwarded->client, text));
		PUT(out, "\r\n");
	}
	if (forwarded->https)
		PUT(out, "X-Forwarded-Proto: https\r\nX-Forwarded-Host: ");
	else
		PUT(out, "X-Forwarded-Proto: http\r\nX-Forwarded-Host: ");
	put_str(out, host);
	PUT(out, "\r\nX-Request-Id: ");
	put(out, request->id, strlen(request->id));
	PUT(out, "\r\n");
	if (prefix.len > 0) {
		PUT(out, "X-Forwarded-Prefix: ");
		put_str(out, prefix);
		PUT(out, "\r\n");
	}
}

/* Nobody else can say so: the client's fields of these names are not passed. */
static void
put_client(struct writer *out, const struct request *request)
{
	struct tls_client client;

	if (LIKELY(!request_shows_client(request)))
		return;
	tls_client(request->tls, &client);
	if (!client.is_verified) {
		PUT(out, "X-SSL-Client-Verify: NONE\r\n");
		return;
	}
	PUT(out, "X-SSL-Client-Verify: SUCCESS\r\nX-SSL-Client-Subject: ");
	put_str(out, str_of(client.subject));
	PUT(out, "\r\nX-SSL-Client-Fingerprint: ");
	put_str(out, str_of(client.fingerprint));
	PUT(out, "\r\n");
}

static void
put_body_field(struct writer *out, const struct request *request,
    const struct exchange_body *body)
{
	char number[20];

	switch (body->kind) {
	case BODY_LENGTH:
		PUT(out, "Content-Length: ");
		put(out, number, str_put_u64(number, body->length));
		PUT(out, "\r\n");
		return;
	case BODY_CHUNKED:
		PUT(out, "Transfer-Encoding: chunked\r\n");
		return;
	case BODY_NONE:
	case BODY_UNTIL_CLOSE:
	case BODY_TUNNEL:
		break;
	}
	/* RFC 9110 section 8.6: where a body could be expected. */
	if (request->head.method == METHOD_POST ||
	    request->head.method == METHOD_PUT ||
	    request->head.method == METHOD_PATCH)
		PUT(out, "Content-Length: 0\r\n");
}

static void
put_max_forwards(struct writer *out, const struct request *request)
{
	char room[20];
	struct str value =
	    max_forwards_next(&request->head, request->base, room);

	if (LIKELY(value.ptr == NULL))
		return;
	PUT(out, "Max-Forwards: ");
	put_str(out, value);
	PUT(out, "\r\n");
}

/* Hop-by-hop, so ours to say again (RFC 9110 section 7.8). */
static void
put_upgrade(struct writer *out, const struct request *request)
{
	if (UNLIKELY(request->head.websocket))
		PUT(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
}

size_t
http1_head_put(char *to, size_t room, const struct request *request,
    const struct exchange_target *target, const struct exchange_body *body)
{
	struct writer out = { to, to + room, false };

	put_str(&out, request->method);
	PUT(&out, " ");
	put_str(&out, target->target);
	PUT(&out, " HTTP/1.1\r\nHost: ");
	put_str(&out, host_of(request));
	PUT(&out, "\r\n");
	put_fields(&out, request);
	put_max_forwards(&out, request);
	put_body_field(&out, request, body);
	put_upgrade(&out, request);
	put_origin(&out, request, target->prefix);
	put_client(&out, request);
	PUT(&out, "\r\n");
	return out.overflow ? 0 : (size_t)(out.at - to);
}

size_t
http1_head_bound(
    const struct request *request, const struct exchange_target *target)
{
	const struct header_table *table = &request->head.headers;
	size_t bytes = OWN_FIELDS_MAX + request->method.len +
		       target->target.len + target->prefix.len +
		       2 * request->head.host_len + request->forwarded.host.len;

	for (unsigned i = 0; i < table->count; i++)
		bytes +=
		    table->fields[i].name_len + table->fields[i].value_len + 4;
	return bytes;
}
