/*
 * From HTTP/2 fields to a request: pseudo fields, what may stand in a field,
 * and how the body is delimited.
 * Fed by h2_stream.c field by field; what comes out is what h1_parse makes.
 * The text it leaves looks like an HTTP/1 head, for those who copy from it.
 */
#include "proxy/front/h2_head.h"

#include <stddef.h>
#include <string.h>

#include "proxy/http/chars.h"
#include "proxy/http/h1_line.h"
#include "proxy/http/uri.h"

/* RFC 9113 section 6.5.2: what each field counts beside its bytes. */
#define FIELD_OVERHEAD 32
#define KEY_CHARS 24

enum {
	SEEN_METHOD = 1,
	SEEN_SCHEME = 2,
	SEEN_AUTHORITY = 4,
	SEEN_PATH = 8,
	SEEN_PROTOCOL = 16
};

void
h2_head_init(struct h2_head *head, struct h1_request *request,
    const struct h1_limits *limits, char *base, uint32_t room)
{
	memset(head, 0, sizeof(*head));
	head->request = request;
	head->limits = limits;
	head->base = base;
	head->room = room;
	head->priority.urgency = 3;
	/* It may be refused before it is read. */
	memset(request, 0, offsetof(struct h1_request, headers));
	header_table_reset(&request->headers);
}

void
h2_head_move(struct h2_head *head, char *base, uint32_t room)
{
	head->base = base;
	head->room = room;
}

static uint32_t
put(struct h2_head *head, struct str text)
{
	uint32_t at = head->end;

	if (text.len > 0)
		memcpy(head->base + at, text.ptr, text.len);
	head->end += (uint32_t)text.len;
	return at;
}

static struct str
view(const struct h2_head *head, struct h2_piece piece)
{
	return (struct str){ head->base + piece.at, piece.len };
}

/* ---- one field ---- */

/* Is any of eight bytes below a space, or DEL? A tab is too, and then bytes are
 * looked at one by one. */
static bool
has_control(const char *from)
{
	const uint64_t ones = UINT64_MAX / 255, tops = ones * 0x80;
	uint64_t v, del;

	memcpy(&v, from, 8);
	del = v ^ ones * 0x7f;
	return ((((v - ones * 0x20) & ~v) | ((del - ones) & ~del)) & tops) != 0;
}

/* RFC 9113 section 8.2.1, and no other control byte: the app's HTTP/1 has no
 * place for one. */
static const char *
check_value(struct str value)
{
	size_t i;

	if (value.len > 0 && (value.ptr[0] == ' ' || value.ptr[0] == '\t' ||
				 value.ptr[value.len - 1] == ' ' ||
				 value.ptr[value.len - 1] == '\t'))
		return "space around a value";
	if (value.len >= 8) {
		bool is_plain = !has_control(value.ptr + value.len - 8);

		for (i = 0; i + 8 < value.len && is_plain; i += 8)
			is_plain = !has_control(value.ptr + i);
		if (LIKELY(is_plain))
			return NULL;
	}
	for (i = 0; i < value.len; i++)
		if (UNLIKELY(!char_is(value.ptr[i], CHAR_TEXT)))
			return "a byte that no value may hold";
	return NULL;
}

/* Also what all of its bytes are, as char_class has it. */
static const char *
check_name(struct str name, unsigned *classes)
{
	bool has_upper = false;

	*classes = UINT8_MAX;
	if (name.len == 0)
		return "a field without a name";
	if (name.len > UINT16_MAX)
		return "too long a field name";
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.ptr[i];

		*classes &= char_class[c];
		has_upper |= (unsigned)c - 'A' <= 'Z' - 'A';
	}
	return has_upper || (*classes & CHAR_TOKEN) == 0
		   ? "a field name that is no lower-case token"
		   : NULL;
}

/* RFC 9113 section 8.2.2. */
static const char *
check_connection_field(unsigned id, struct str value)
{
	switch (id) {
	case HEADER_CONNECTION:
	case HEADER_KEEP_ALIVE:
	case HEADER_PROXY_CONNECTION:
	case HEADER_TRANSFER_ENCODING:
	case HEADER_UPGRADE:
		return "a field that is about a connection";
	case HEADER_TE:
		return str_eq_nocase(value, STR("trailers"))
			   ? NULL
			   : "TE with more than trailers";
	}
	return NULL;
}

const char *
h2_head_check_trailer(struct str name, struct str value)
{
	unsigned classes;
	const char *wrong = check_name(name, &classes);

	if (wrong == NULL)
		wrong = check_value(value);
	if (wrong == NULL)
		wrong = check_connection_field(
		    header_lookup(name.ptr, name.len), value);
	return wrong;
}

/* Which pseudo field it is: its bit, and where its value is noted. 0: none. */
static unsigned
find_pseudo(struct h2_head *head, struct str name, struct h2_piece **piece)
{
	switch (name.len) {
	case 5:
		*piece = &head->path;
		return memcmp(name.ptr, ":path", 5) == 0 ? SEEN_PATH : 0;
	case 7:
		*piece = &head->method;
		if (memcmp(name.ptr, ":method", 7) == 0)
			return SEEN_METHOD;
		*piece = &head->scheme;
		return memcmp(name.ptr, ":scheme", 7) == 0 ? SEEN_SCHEME : 0;
	case 9:
		*piece = &head->protocol;
		return memcmp(name.ptr, ":protocol", 9) == 0 ? SEEN_PROTOCOL
							     : 0;
	case 10:
		*piece = &head->authority;
		return memcmp(name.ptr, ":authority", 10) == 0 ? SEEN_AUTHORITY
							       : 0;
	}
	return 0;
}

static void
add_pseudo(struct h2_head *head, struct str name, struct str value)
{
	struct h2_piece *piece = NULL;
	unsigned seen = find_pseudo(head, name, &piece);

	if (UNLIKELY(head->has_fields)) {
		head->wrong = "a pseudo field behind ordinary ones";
		return;
	}
	if (UNLIKELY(seen == 0 || (head->seen & seen) != 0)) {
		head->wrong = "a pseudo field that is unknown or stands twice";
		return;
	}
	head->seen |= (uint8_t)seen;
	head->wrong = check_value(value);
	piece->len = (uint32_t)value.len;
	piece->at = put(head, value);
}

static void
note_field(struct h2_head *head, const struct header_field *field)
{
	struct str value = header_value(head->base, field);

	switch (field->id) {
	case HEADER_COOKIE:
		head->cookie_bytes += field->value_len + 2;
		if (head->n_cookies < 2)
			head->n_cookies++;
		return;
	case HEADER_OTHER:
		if (UNLIKELY(
			field->name_len == 8 &&
			memcmp(head->base + field->name, "priority", 8) == 0))
			h2_head_read_priority(value, &head->priority);
		return;
	default:
		head->wrong = check_connection_field(field->id, value);
	}
}

/* A known name (any case, and header_classify takes a control byte for a dash)
 * is itself when no byte lacks this bit. */
static bool
is_lower(struct str name)
{
	unsigned all = 0x20;

	for (size_t i = 0; i < name.len; i++)
		all &= (unsigned char)name.ptr[i];
	return all != 0;
}

/* Room was made by the caller. */
static const char *
append(struct h2_head *head, struct str name, struct str value, unsigned class)
{
	struct header_table *table = &head->request->headers;
	struct header_field *field = &table->fields[table->count];
	const char *wrong = NULL;
	unsigned classes = CHAR_PLAIN;
	char *at = head->base + head->end;

	field->id = (uint8_t) class;
	field->flags = (uint8_t)(class >> 8);
	if (UNLIKELY(field->id == HEADER_OTHER || !is_lower(name)))
		wrong = check_name(name, &classes);
	if (UNLIKELY(wrong != NULL))
		return wrong;
	if (UNLIKELY((classes & CHAR_PLAIN) == 0))
		field->flags |= HEADER_FLAG_ODD_NAME;
	table->count++;
	if (table->first[field->id] == 0)
		table->first[field->id] = (uint8_t)table->count;
	field->name = head->end;
	field->name_len = (uint16_t)name.len;
	field->value = head->end + (uint32_t)name.len + 2;
	field->value_len = (uint32_t)value.len;
	at = mempcpy(at, name.ptr, name.len);
	*at++ = ':';
	*at++ = ' ';
	if (value.len > 0)
		at = mempcpy(at, value.ptr, value.len);
	*at++ = '\r';
	*at++ = '\n';
	head->end = (uint32_t)(at - head->base);
	return NULL;
}

static void
add_field(struct h2_head *head, struct str name, struct str value)
{
	struct header_table *table = &head->request->headers;

	head->has_fields = true;
	head->wrong = check_value(value);
	if (UNLIKELY(head->wrong != NULL))
		return;
	if (UNLIKELY(table->count == HEADER_FIELDS_MAX)) {
		head->is_too_large = true;
		return;
	}
	head->wrong =
	    append(head, name, value, header_classify(name.ptr, name.len));
	if (LIKELY(head->wrong == NULL))
		note_field(head, &table->fields[table->count - 1]);
}

void
h2_head_add(struct h2_head *head, struct str name, struct str value)
{
	size_t bytes = name.len + value.len + FIELD_OVERHEAD;

	head->count++;
	if (UNLIKELY(bytes > UINT32_MAX - head->list_bytes))
		bytes = UINT32_MAX - head->list_bytes;
	head->list_bytes += (uint32_t)bytes;
	if (UNLIKELY(
		head->list_bytes > head->limits->head_bytes ||
		head->request->headers.count >= head->limits->header_count))
		head->is_too_large = true;
	if (UNLIKELY(head->is_too_large || head->wrong != NULL))
		return;
	if (name.len > 0 && name.ptr[0] == ':')
		add_pseudo(head, name, value);
	else
		add_field(head, name, value);
}

bool
h2_head_is_bomb(const struct h2_head *head)
{
	/* Nothing else lets the numbers grow beyond the limits. */
	if (LIKELY(!head->is_too_large && head->wrong == NULL))
		return false;
	return head->list_bytes / H2_HEAD_BOMB_FACTOR >
		   head->limits->head_bytes ||
	       head->count / H2_HEAD_BOMB_FACTOR > head->limits->header_count;
}

/* ---- priorities ---- */

void
h2_head_read_priority(struct str value, struct h2_priority *priority)
{
	struct str rest = value, member;

	while (str_split(&rest, ',', &member)) {
		member = str_trim(member);
		if (member.len == 3 && memcmp(member.ptr, "u=", 2) == 0 &&
		    member.ptr[2] >= '0' && member.ptr[2] <= '7')
			priority->urgency = (uint8_t)(member.ptr[2] - '0');
		else if (str_eq(member, STR("i")) ||
			 str_eq(member, STR("i=?1")))
			priority->incremental = true;
		else if (str_eq(member, STR("i=?0")))
			priority->incremental = false;
		else
			continue;
		priority->is_given = true;
	}
}

/* ---- the whole ---- */

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
	const unsigned target = SEEN_SCHEME | SEEN_PATH;
	struct str method = view(head, head->method);

	head->wrong = "no :method";
	if (method.len == 0)
		return 0;
	if (str_eq(method, STR("CONNECT")) &&
	    (head->seen & SEEN_PROTOCOL) == 0) {
		head->wrong = "CONNECT with :scheme or :path, or no :authority";
		if ((head->seen & target) == 0 && head->authority.len > 0)
			head->wrong = NULL;
		return 501;
	}
	head->wrong = "no :scheme, or no :path";
	if ((head->seen & target) != target || head->path.len == 0 ||
	    !is_scheme(view(head, head->scheme)))
		return 0;
	head->wrong = NULL;
	if ((head->seen & SEEN_PROTOCOL) == 0)
		return 0;
	if (!str_eq(method, STR("CONNECT")) || head->authority.len == 0)
		head->wrong = ":protocol without CONNECT or :authority";
	return str_eq(view(head, head->protocol), STR("websocket")) ? 0 : 501;
}

/* RFC 9113 section 8.3.1: one of the two, and never two that differ. */
static const char *
read_authority(struct h2_head *head)
{
	struct h1_request *request = head->request;
	struct header_table *table = &request->headers;
	const struct header_field *field = header_get(table, HEADER_HOST);
	struct str authority = view(head, head->authority);
	uint32_t at;

	if (field != NULL && header_next(table, field) != NULL)
		return "Host stands twice";
	if ((head->seen & SEEN_AUTHORITY) == 0) {
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
	at = put(head, STR("host: "));
	request->host = put(head, authority);
	put(head, STR("\r\n"));
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
	bool is_connect = (head->seen & SEEN_PROTOCOL) != 0;
	unsigned status = 400;
	uint32_t start = head->end;
	char first = head->base[head->path.at];

	*why = "the request line";
	if (head->method.len + head->path.len + 10 > head->limits->line_bytes)
		return 414;
	*why = "a :path that does not begin with a slash";
	if (first != '/' && (first != '*' || is_connect))
		return 400;
	put(head, is_connect ? STR("GET") : view(head, head->method));
	put(head, STR(" "));
	put(head, view(head, head->path));
	put(head, STR(" HTTP/1.1\r\n"));
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

	put(head, STR("\r\n"));
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
	uint32_t at = put(head, STR("cookie: "));

	for (bool is_first = true; field != NULL;
	     field = header_next(table, field), is_first = false) {
		if (!is_first)
			put(head, STR("; "));
		put(head, header_value(head->base, field));
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
	at = put(head, STR("sec-websocket-key: "));
	put(head, (struct str){ key, KEY_CHARS });
	append_field(head, STR("sec-websocket-key"), at);
}

enum h2_head_result
h2_head_end(struct h2_head *head, bool ends_stream, const uint8_t nonce[16],
    unsigned *status, const char **why)
{
	struct h1_request *request = head->request;
	bool is_connect = (head->seen & SEEN_PROTOCOL) != 0;

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
