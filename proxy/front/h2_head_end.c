/*
 * From HTTP/2 fields to a request: what they say together, once all of them
 * have come. What comes out is what h1_parse makes.
 * Looks into no single field: h2_head.c has done that.
 */
#include <string.h>

#include "proxy/front/h2_head.h"
#include "proxy/http/h1_line.h"
#include "proxy/http/uri.h"

#define KEY_CHARS 24

size_t
h2_head_end_bytes(const struct h2_head *head)
{
	return (size_t)head->method.len + head->path.len + head->authority.len +
	       head->cookie_bytes + H2_HEAD_END_BYTES;
}

static bool
is_scheme(struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			(i > 0 && ((c >= '0' && c <= '9') || c == '+' ||
				      c == '-' || c == '.'))))
			return false;
	}
	return text.len > 0;
}

/* RFC 9113 section 8.3.1 and 8.5, RFC 8441 section 4. Returns the status of a
 * request that is well-formed and not served, else 0. */
static unsigned
check_pseudo(struct h2_head *head)
{
	const unsigned target = H2_SEEN_SCHEME | H2_SEEN_PATH;
	struct str method = h2_head_view(head, head->method);

	head->wrong = "no :method";
	if (method.len == 0)
		return 0;
	if (str_eq(method, STR("CONNECT")) &&
	    (head->seen & H2_SEEN_PROTOCOL) == 0) {
		head->wrong = "CONNECT with :scheme or :path, or no :authority";
		if ((head->seen & target) == 0 && head->authority.len > 0)
			head->wrong = NULL;
		return 501;
	}
	head->wrong = "no :scheme, or no :path";
	if ((head->seen & target) != target || head->path.len == 0 ||
	    !is_scheme(h2_head_view(head, head->scheme)))
		return 0;
	head->wrong = NULL;
	if ((head->seen & H2_SEEN_PROTOCOL) == 0)
		return 0;
	if (!str_eq(method, STR("CONNECT")) || head->authority.len == 0)
		head->wrong = ":protocol without CONNECT or :authority";
	return str_eq(h2_head_view(head, head->protocol), STR("websocket"))
		   ? 0
		   : 501;
}

/* RFC 9113 section 8.3.1: one of the two, and never two that differ. */
static const char *
read_authority(struct h2_head *head)
{
	struct h1_request *request = head->request;
	struct header_table *table = &request->headers;
	const struct header_field *field = header_get(table, HEADER_HOST);
	struct str authority = h2_head_view(head, head->authority);
	uint32_t at;

	if (field != NULL && header_next(table, field) != NULL)
		return "Host stands twice";
	if ((head->seen & H2_SEEN_AUTHORITY) == 0) {
		if (field == NULL)
			return "neither :authority nor Host";
		request->host = field->value;
		request->host_len = field->value_len;
	} else {
		request->host = head->authority.at;
		request->host_len = head->authority.len;
		if (field != NULL &&
		    !str_eq_nocase(authority, header_value(head->base, field)))
			return ":authority and Host differ";
	}
	if (!uri_host_is_valid(
		(struct str){ head->base + request->host, request->host_len }))
		return "the host is not valid";
	if (field != NULL)
		return NULL;
	at = h2_head_put(head, STR("host: "));
	request->host = h2_head_put(head, authority);
	h2_head_put(head, STR("\r\n"));
	if (header_table_add(table, head->base, at, 4, request->host,
		request->host_len) == -1)
		head->is_too_large = true;
	return NULL;
}

/* Written out as a request line, so that one place knows what may stand in it.
 */
static unsigned
read_line(struct h2_head *head, const char **why)
{
	bool is_connect = (head->seen & H2_SEEN_PROTOCOL) != 0;
	unsigned status = 400;
	uint32_t start = head->end;
	char first = head->base[head->path.at];

	*why = "the request line";
	if (head->method.len + head->path.len + 10 > head->limits->line_bytes)
		return 414;
	*why = "a :path that does not begin with a slash";
	if (first != '/' && (first != '*' || is_connect))
		return 400;
	h2_head_put(
	    head, is_connect ? STR("GET") : h2_head_view(head, head->method));
	h2_head_put(head, STR(" "));
	h2_head_put(head, h2_head_view(head, head->path));
	h2_head_put(head, STR(" HTTP/1.1\r\n"));
	if (h1_line_request(head->base, start, head->end - 2, head->request,
		&status, why) == -1)
		return status;
	return 0;
}

static const char *
read_body(struct h2_head *head, bool ends_stream)
{
	struct h1_request *request = head->request;
	const struct header_field *field =
	    header_get(&request->headers, HEADER_CONTENT_LENGTH);

	request->content_length = 0;
	request->body = ends_stream ? BODY_NONE : BODY_CHUNKED;
	if (field == NULL)
		return NULL;
	if (header_next(&request->headers, field) != NULL ||
	    str_to_u64(header_value(head->base, field), H1_LENGTH_MAX,
		&request->content_length) == -1)
		return "content-length is not one number";
	if (!ends_stream)
		request->body = BODY_LENGTH;
	else if (request->content_length != 0)
		return "content-length, and no body";
	return NULL;
}

static unsigned
read_expect(struct h2_head *head)
{
	struct h1_request *request = head->request;
	const struct header_field *field =
	    header_get(&request->headers, HEADER_EXPECT);

	request->expect_continue = false;
	for (; field != NULL; field = header_next(&request->headers, field))
		if (!str_eq_nocase(
			header_value(head->base, field), STR("100-continue")))
			return 417;
		else
			request->expect_continue = request->body != BODY_NONE;
	return 0;
}

/* Take out all fields with this id. */
static void
drop_fields(struct header_table *table, unsigned id)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < table->count; i++)
		if (table->fields[i].id != id)
			table->fields[kept++] = table->fields[i];
	table->count = (uint16_t)kept;
	memset(table->first, 0, sizeof(table->first));
	for (unsigned i = kept; i-- > 0;)
		table->first[table->fields[i].id] = (uint8_t)(i + 1);
}

static void
append_field(struct h2_head *head, struct str name, uint32_t at)
{
	uint32_t value = at + (uint32_t)name.len + 2;
	uint32_t value_len = head->end - value;

	h2_head_put(head, STR("\r\n"));
	if (header_table_add(&head->request->headers, head->base, at,
		(uint16_t)name.len, value, value_len) == -1)
		head->is_too_large = true;
}

/* RFC 9113 section 8.2.3: outside HTTP/2 there is one such field. */
static void
join_cookies(struct h2_head *head)
{
	struct header_table *table = &head->request->headers;
	const struct header_field *field = header_get(table, HEADER_COOKIE);
	uint32_t at = h2_head_put(head, STR("cookie: "));

	for (bool is_first = true; field != NULL;
	     field = header_next(table, field), is_first = false) {
		if (!is_first)
			h2_head_put(head, STR("; "));
		h2_head_put(head, header_value(head->base, field));
	}
	drop_fields(table, HEADER_COOKIE);
	append_field(head, STR("cookie"), at);
}

/* What HTTP/1 needs and RFC 8441 has done away with. Nobody looks at the answer
 * to it: the app is on our side. */
static void
add_key(struct h2_head *head, const uint8_t nonce[16])
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	char key[KEY_CHARS + 1];
	uint32_t at;

	for (unsigned i = 0; i < KEY_CHARS; i++) {
		unsigned bit = i * 6, byte = bit / 8;
		unsigned two = byte < 16 ? (unsigned)nonce[byte] << 8 : 0;

		if (byte + 1 < 16)
			two |= nonce[byte + 1];
		key[i] = digits[two >> (10 - bit % 8) & 63];
	}
	memcpy(key + KEY_CHARS - 2, "==", 2);
	drop_fields(&head->request->headers, HEADER_SEC_WEBSOCKET_KEY);
	at = h2_head_put(head, STR("sec-websocket-key: "));
	h2_head_put(head, (struct str){ key, KEY_CHARS });
	append_field(head, STR("sec-websocket-key"), at);
}

enum h2_head_result
h2_head_end(struct h2_head *head, bool ends_stream, const uint8_t nonce[16],
    unsigned *status, const char **why)
{
	struct h1_request *request = head->request;
	bool is_connect = (head->seen & H2_SEEN_PROTOCOL) != 0;

	*status = 0;
	if (head->wrong == NULL && !head->is_too_large) {
		*status = check_pseudo(head);
		*why = "a CONNECT that is not served";
	}
	if (head->wrong == NULL && !head->is_too_large && *status == 0) {
		*status = read_line(head, why);
		if (*status == 400)
			head->wrong = *why;
	}
	if (head->wrong == NULL && !head->is_too_large && *status == 0)
		head->wrong = read_authority(head);
	if (head->wrong == NULL && !head->is_too_large && *status == 0)
		head->wrong = read_body(head, ends_stream && !is_connect);
	if (head->wrong != NULL) {
		*why = head->wrong;
		return H2_HEAD_MALFORMED;
	}
	if (*status != 0)
		return H2_HEAD_REFUSED;
	request->keep_alive = true;
	request->websocket = is_connect;
	if (head->is_too_large)
		goto too_large; /* and there is no room for what follows */
	if (head->n_cookies > 1)
		join_cookies(head);
	if (is_connect) {
		request->body = BODY_NONE;
		add_key(head, nonce);
	}
	*why = "an expectation other than 100-continue";
	*status = read_expect(head);
	if (head->is_too_large)
		goto too_large;
	if (is_connect && ends_stream) {
		*why = "a CONNECT that ends with its head";
		*status = 400;
	}
	return *status == 0 ? H2_HEAD_GOOD : H2_HEAD_REFUSED;

too_large:
	*why = "the head is too large";
	*status = 431;
	return H2_HEAD_REFUSED;
}
