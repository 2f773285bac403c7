/*
 * The answer on its way from a handler to the front.
 * Keeps what logs want, drops bodies where there must be none, and makes the
 * small pages of errors. Filters will stand here.
 */
#include "proxy/core/response.h"

#include <string.h>

#include "proxy/core/error_page.h"
#include "proxy/core/snapshot.h"
#include "proxy/http/status.h"
#include "src/base/arena.h"

static bool
has_body(const struct request *request)
{
	return request->is_tunnel || (request->head.method != METHOD_HEAD &&
					 status_has_body(request->status));
}

static enum response_result
note(struct request *request, enum response_result result)
{
	if (UNLIKELY(result == RESPONSE_GONE))
		request->is_gone = true;
	return result;
}

static void
note_first_byte(struct request *request)
{
	if (request->timed && request->times.first_byte_us == 0)
		request->times.first_byte_us = clock_now_us();
}

enum response_result
response_start(struct request *request, const struct response_head *head)
{
	if (request->is_gone)
		return RESPONSE_GONE;
	request->status = head->status;
	if (UNLIKELY(head->tunnel)) {
		request->is_tunnel = true;
		request->body_is_whole = false;
	}
	note_first_byte(request);
	return note(request, request->front->start(request, head));
}

enum response_result
response_write(struct request *request, const char *from, size_t len)
{
	if (request->is_gone)
		return RESPONSE_GONE;
	if (len == 0 || !has_body(request))
		return RESPONSE_OK;
	request->bytes_sent += len;
	return note(request, request->front->write(request, from, len));
}

void
response_trailers(struct request *request, const struct header_table *trailers,
    const char *base)
{
	if (!request->is_gone && has_body(request) &&
	    request->front->trailers != NULL)
		request->front->trailers(request, trailers, base);
}

enum response_result
response_flush(struct request *request)
{
	if (request->is_gone)
		return RESPONSE_GONE;
	return note(request, request->front->flush(request));
}

void
response_end(struct request *request)
{
	if (request->is_gone)
		return;
	request->is_ended = true;
	request->front->end(request);
}

void
response_shutdown(struct request *request)
{
	if (!request->is_gone)
		request->front->shutdown(request);
}

void
response_abort(struct request *request, unsigned status, const char *why)
{
	if (request->is_gone)
		return;
	request->why = why;
	if (request->status == 0) {
		response_error(request, status, STR(""), NULL);
		return;
	}
	request->is_ended = true;
	request->front->abort(request);
}

void
response_error(struct request *request, unsigned status, struct str lines,
    const char *detail)
{
	struct error_page page;
	struct response_head head = { .status = status };

	if (request->is_gone)
		return;
	error_page_make(&page, request, status, lines, detail);
	head.length = page.body.len;
	head.lines = page.lines;
	if (response_start(request, &head) == RESPONSE_GONE ||
	    response_write(request, page.body.ptr, page.body.len) ==
		RESPONSE_GONE)
		return;
	response_end(request);
}

/* ---- whole answers ---- */

struct str
response_field_lines(
    struct arena *arena, const struct conf_field *fields, size_t n_fields)
{
	size_t len = 0;
	char *text, *at;

	for (size_t i = 0; i < n_fields; i++)
		len += strlen(fields[i].name) + strlen(fields[i].value) + 4;
	text = at = arena_alloc(arena, len + 1);
	for (size_t i = 0; i < n_fields; i++) {
		at = stpcpy(at, fields[i].name);
		at = stpcpy(at, ": ");
		at = stpcpy(at, fields[i].value);
		at = stpcpy(at, "\r\n");
	}
	return (struct str){ text, len };
}

/* The next line of a head; false: it was the empty one. */
static bool
take_line(struct str *head, struct response_line *line)
{
	struct str text;

	if (!str_split(head, '\n', &text) ||
	    !str_split(&text, ':', &line->name) || text.ptr == NULL)
		return false;
	line->value = str_trim((struct str){ text.ptr, text.len - 1 });
	return true;
}

static void
keep_lines(struct arena *arena, struct response_fixed *fixed)
{
	struct str rest = fixed->head;
	struct response_line line, *lines;
	size_t count = 0;

	while (take_line(&rest, &line))
		count++;
	lines = arena_alloc(arena, (count + 1) * sizeof(*lines));
	fixed->lines = lines;
	fixed->n_lines = 0;
	rest = fixed->head;
	while (take_line(&rest, &line)) {
		char *name = arena_memdup0(arena, line.name.ptr, line.name.len);

		if ((header_classify(name, line.name.len) >> 8 &
			HEADER_FLAG_HOP) != 0)
			continue;
		str_lower(name, name, line.name.len);
		line.name.ptr = name;
		lines[fixed->n_lines++] = line;
	}
}

void
response_fixed_make(struct arena *arena, unsigned status, struct str lines,
    const char *type, struct str body, struct response_fixed *fixed)
{
	char number[20];
	char *head;

	if (!status_has_body(status)) {
		body = STR("");
		head =
		    arena_printf(arena, "%.*s\r\n", (int)lines.len, lines.ptr);
	} else {
		size_t n = str_put_u64(number, body.len);

		head = arena_printf(arena,
		    "Content-Type: %s\r\nContent-Length: %.*s\r\n%.*s\r\n",
		    type, (int)n, number, (int)lines.len, lines.ptr);
	}
	fixed->status = status;
	fixed->head = str_of(head);
	keep_lines(arena, fixed);
	fixed->body =
	    (struct str){ arena_memdup0(arena, body.ptr == NULL ? "" : body.ptr,
			      body.len),
		    body.len };
}

void
response_fixed_send(struct request *request, const struct response_fixed *fixed)
{
	if (request->is_gone)
		return;
	request->status = fixed->status;
	note_first_byte(request);
	if (request->head.method != METHOD_HEAD)
		request->bytes_sent = fixed->body.len;
	request->is_ended = true;
	request->front->fixed(request, fixed);
}
