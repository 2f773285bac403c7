/*
 * Fields of an answer over HTTP/2, gathered for nghttp2 from what responses
 * bring. Between h2_answer.c and nghttp2's HPACK. Sends nothing.
 */
#include "proxy/front/h2_fields.h"

#include <string.h>

#include "src/base/clock.h"

static void
add(struct h2_fields *fields, struct str name, struct str value, uint8_t flags)
{
	if (UNLIKELY(fields->n == H2_FIELDS_MAX)) {
		fields->overflow = true;
		return;
	}
	fields->nv[fields->n++] = (nghttp2_nv){
		(uint8_t *)(uintptr_t)name.ptr,
		(uint8_t *)(uintptr_t)value.ptr,
		name.len,
		value.len,
		flags,
	};
}

/* A name that is static and in lower case. */
void
h2_fields_add_own(struct h2_fields *fields, struct str name, struct str value)
{
	add(fields, name, value, NGHTTP2_NV_FLAG_NO_COPY_NAME);
}

void
h2_fields_begin(struct h2_fields *fields, unsigned status)
{
	fields->n = 0;
	fields->overflow = false;
	if (LIKELY(status == 200)) {
		add(fields, STR(":status"), STR("200"),
		    NGHTTP2_NV_FLAG_NO_COPY_NAME |
			NGHTTP2_NV_FLAG_NO_COPY_VALUE);
		return;
	}
	fields->status[0] = (char)('0' + status / 100 % 10);
	fields->status[1] = (char)('0' + status / 10 % 10);
	fields->status[2] = (char)('0' + status % 10);
	h2_fields_add_own(
	    fields, STR(":status"), (struct str){ fields->status, 3 });
}

void
h2_fields_add_server(struct h2_fields *fields)
{
	add(fields, STR("server"), STR("scalws"),
	    NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE);
}

void
h2_fields_add_date(struct h2_fields *fields, const struct worker *worker)
{
	h2_fields_add_own(fields, STR("date"),
	    (struct str){ worker->date + 6, CLOCK_HTTP_LEN });
}

/* nghttp2 lowers the names it copies. */
void
h2_fields_add_lines(struct h2_fields *fields, struct str lines)
{
	while (lines.len > 0) {
		const char *end = memchr(lines.ptr, '\r', lines.len);
		const char *colon = memchr(lines.ptr, ':', lines.len);
		struct str name;

		if (end == NULL || colon == NULL || colon > end)
			return; /* the empty line */
		name = (struct str){ lines.ptr, (size_t)(colon - lines.ptr) };
		if ((header_classify(name.ptr, name.len) >> 8 &
			HEADER_FLAG_HOP) == 0)
			add(fields, name,
			    str_trim((struct str){
				colon + 1, (size_t)(end - colon - 1) }),
			    NGHTTP2_NV_FLAG_NONE);
		lines.len -= (size_t)(end + 2 - lines.ptr);
		lines.ptr = end + 2;
	}
}

void
h2_fields_add_fixed(
    struct h2_fields *fields, const struct response_fixed *fixed)
{
	for (size_t i = 0; i < fixed->n_lines; i++)
		add(fields, fixed->lines[i].name, fixed->lines[i].value,
		    NGHTTP2_NV_FLAG_NO_COPY_NAME |
			NGHTTP2_NV_FLAG_NO_COPY_VALUE);
}

/* An app's fields, those of its connection left out. */
void
h2_fields_add_table(struct h2_fields *fields, const struct response_head *head)
{
	const struct header_table *table = head->fields;
	const char *base = head->base;
	bool has_date = false, has_server = false;

	for (unsigned i = 0; i < table->count; i++) {
		const struct header_field *field = &table->fields[i];
		struct str name = { base + field->name, field->name_len };

		if ((field->flags & HEADER_FLAG_HOP) != 0 ||
		    field->id == HEADER_CONTENT_LENGTH ||
		    (field->id == HEADER_DATE && has_date) ||
		    (field->id == HEADER_SERVER && has_server))
			continue;
		has_date |= field->id == HEADER_DATE;
		has_server |= field->id == HEADER_SERVER;
		/* RFC 8441 section 5 has no use for it. */
		if (UNLIKELY(head->tunnel) &&
		    str_eq_nocase(name, STR("sec-websocket-accept")))
			continue;
		add(fields, name, header_value(base, field),
		    NGHTTP2_NV_FLAG_NONE);
	}
}
