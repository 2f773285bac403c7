/*
 * From HTTP/2 fields to a request: what may stand in a field, and where.
 * Fed by h2_stream.c field by field. What they say together is h2_head_end.c's.
 * The text it leaves looks like an HTTP/1 head, for those who copy from it.
 */
#include "proxy/front/h2_head.h"

#include <stddef.h>
#include <string.h>

#include "proxy/http/chars.h"

/* RFC 9113 section 6.5.2: what each field counts beside its bytes. */
#define FIELD_OVERHEAD 32

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
		return memcmp(name.ptr, ":path", 5) == 0 ? H2_SEEN_PATH : 0;
	case 7:
		*piece = &head->method;
		if (memcmp(name.ptr, ":method", 7) == 0)
			return H2_SEEN_METHOD;
		*piece = &head->scheme;
		return memcmp(name.ptr, ":scheme", 7) == 0 ? H2_SEEN_SCHEME : 0;
	case 9:
		*piece = &head->protocol;
		return memcmp(name.ptr, ":protocol", 9) == 0 ? H2_SEEN_PROTOCOL
							     : 0;
	case 10:
		*piece = &head->authority;
		return memcmp(name.ptr, ":authority", 10) == 0
			   ? H2_SEEN_AUTHORITY
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
	piece->at = h2_head_put(head, value);
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

/* RFC 9113 section 8.2.3: a client may send each cookie in a field of its own.
 * Those that follow each other are one field from the beginning, so that they
 * count as one. True: it was such a one. */
static bool
extend_cookie(
    struct h2_head *head, unsigned class, struct str name, struct str value)
{
	struct header_table *table = &head->request->headers;
	struct header_field *last;
	char *at;

	if (LIKELY((uint8_t) class != HEADER_COOKIE) || table->count == 0 ||
	    !is_lower(name))
		return false;
	last = &table->fields[table->count - 1];
	if (last->id != HEADER_COOKIE)
		return false;
	at = mempcpy(head->base + head->end - 2, "; ", 2);
	if (value.len > 0)
		at = mempcpy(at, value.ptr, value.len);
	at = mempcpy(at, "\r\n", 2);
	head->end = (uint32_t)(at - head->base);
	last->value_len += (uint32_t)value.len + 2;
	head->cookie_bytes += (uint32_t)value.len + 2;
	return true;
}

static void
add_field(struct h2_head *head, struct str name, struct str value)
{
	struct header_table *table = &head->request->headers;
	unsigned class = header_classify(name.ptr, name.len);

	head->has_fields = true;
	head->wrong = check_value(value);
	if (UNLIKELY(head->wrong != NULL))
		return;
	if (UNLIKELY(extend_cookie(head, class, name, value)))
		return;
	if (UNLIKELY(table->count >= head->limits->header_count ||
		     table->count == HEADER_FIELDS_MAX)) {
		head->is_too_large = true;
		return;
	}
	head->wrong = append(head, name, value, class);
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
	if (UNLIKELY(head->list_bytes > head->limits->head_bytes))
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
