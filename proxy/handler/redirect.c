/*
 * The redirect action: Location from a template with {path} and {host}.
 * Called by request_dispatch. What it puts in was let through by the head's
 * gate (no control byte, no space) or is a valid host, so no client can add a
 * field; and no path of a client becomes a host.
 */
#include "proxy/handler/redirect.h"

#include <string.h>

#include "proxy/core/response.h"
#include "proxy/core/snapshot.h"
#include "src/base/arena.h"

enum part_kind { PART_TEXT, PART_PATH, PART_QUERY, PART_HOST };

struct part {
	enum part_kind kind;
	struct str text;
};

struct redirect {
	struct arena *arena;
	unsigned status;
	struct part *parts;
	size_t n_parts;
};

static const struct {
	struct str name;
	enum part_kind kind;
} names[] = {
	{ { "{path}", 6 }, PART_PATH },
	{ { "{host}", 6 }, PART_HOST },
};

/* Cut the next part off the template. */
static struct part
next_part(struct str *rest)
{
	struct part part = { PART_TEXT, { rest->ptr, 0 } };

	for (; part.text.len < rest->len; part.text.len++) {
		struct str here = { rest->ptr + part.text.len,
			rest->len - part.text.len };

		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			if (!str_starts_with(here, names[i].name))
				continue;
			if (part.text.len > 0)
				goto cut; /* the text before it first */
			part.kind = names[i].kind;
			part.text.len = names[i].name.len;
			goto cut;
		}
	}
cut:
	rest->ptr += part.text.len;
	rest->len -= part.text.len;
	return part;
}

static void *
prepare(const struct conf_route *route, const struct conf_action *action,
    const struct handler_env *env, struct conf_errors *errors)
{
	struct str rest = str_of(action->redirect.location);
	struct arena *arena;
	struct redirect *redirect;

	for (size_t i = 0; i < rest.len; i++)
		if ((unsigned char)rest.ptr[i] <= 0x20 || rest.ptr[i] == 0x7f) {
			conf_errors_add(errors, &route->where,
			    "redirect.location",
			    "holds a space or control byte");
			return NULL;
		}
	arena = arena_new();
	redirect = arena_alloc(arena, sizeof(*redirect));
	redirect->arena = arena;
	redirect->status = action->redirect.status;
	/* No part is empty: at most one per byte, and queries behind paths. */
	redirect->parts =
	    arena_alloc(arena, (rest.len + 1) * sizeof(*redirect->parts));
	while (rest.len > 0) {
		struct part part = next_part(&rest);

		redirect->parts[redirect->n_parts++] = part;
		part.kind = PART_QUERY;
		if (redirect->parts[redirect->n_parts - 1].kind == PART_PATH)
			redirect->parts[redirect->n_parts++] = part;
	}
	for (size_t i = 0; i < redirect->n_parts; i++) {
		struct str *text = &redirect->parts[i].text;

		text->ptr = arena_memdup0(arena, text->ptr, text->len);
	}
	return redirect;
}

static void
release(void *prepared)
{
	struct redirect *redirect = prepared;

	arena_free(redirect->arena);
}

/* As they came. */
static struct str
path_of(const struct request *request)
{
	const struct h1_request *head = &request->head;

	if (head->path_len == 0)
		return STR("/"); /* "http://host" */
	return (struct str){ request->base + head->path, head->path_len };
}

static struct str
query_of(const struct request *request)
{
	const struct h1_request *head = &request->head;

	if (head->query == 0)
		return STR("");
	return (
	    struct str){ request->base + head->query - 1, head->query_len + 1 };
}

static struct str
host_of(const struct request *request)
{
	if (request->host.len > 0)
		return request->host;
	/* HTTP/1.0 without Host: the site's name, if that is one. */
	if (request->site->name.ptr[0] == '*' ||
	    request->site->name.ptr[0] == '_')
		return STR("localhost");
	return request->site->name;
}

static struct str
text_of(
    const struct redirect *redirect, size_t i, const struct request *request)
{
	switch (redirect->parts[i].kind) {
	case PART_TEXT:
		break;
	case PART_PATH:
		return path_of(request);
	case PART_QUERY:
		return query_of(request);
	case PART_HOST:
		return host_of(request);
	}
	return redirect->parts[i].text;
}

/* "/{path}" must not become "//other.example": that names a host. Returns the
 * new end. */
static char *
one_slash(char *line, char *end)
{
	char *value = line + sizeof("Location: ") - 1, *at = value;

	while (at[0] == '/' && at[1] == '/')
		at++;
	memmove(value, at, (size_t)(end - at));
	return end - (at - value);
}

static enum handler_result
on_request(struct request *request, const void *prepared)
{
	const struct redirect *redirect = prepared;
	struct response_head head = { .status = redirect->status };
	size_t len = sizeof("Location: \r\n");
	char *line, *at;

	for (size_t i = 0; i < redirect->n_parts; i++)
		len += text_of(redirect, i, request).len;
	line = len > RESPONSE_LINES_MAX ? NULL : request_scratch(request, len);
	if (line == NULL) {
		response_error(request, 414, STR(""), "target too long");
		return HANDLER_HANDLED;
	}
	at = stpcpy(line, "Location: ");
	for (size_t i = 0; i < redirect->n_parts; i++) {
		struct str text = text_of(redirect, i, request);

		memcpy(at, text.ptr, text.len);
		at += text.len;
	}
	memcpy(at, "\r\n", 2);
	at = one_slash(line, at + 2);
	head.lines = (struct str){ line, (size_t)(at - line) };
	if (response_start(request, &head) != RESPONSE_GONE)
		response_end(request);
	return HANDLER_HANDLED;
}

const struct handler_ops handler_redirect = {
	.name = "redirect",
	.prepare = prepare,
	.release = release,
	.on_request = on_request,
};
