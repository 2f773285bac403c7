/*
 * Pages of errors that the proxy itself answers.
 * Called by response_error; the words come from our own code, never from an
 * app. Does not send anything.
 */
#include "proxy/core/error_page.h"

#include <string.h>

#include "proxy/http/status.h"

/* ---- which kind ---- */

/* "q=0.8" in thousandths; 1000 when it is not there or no number. */
static unsigned
quality(struct str parameters)
{
	struct str part, digits;
	uint64_t value;

	while (str_split(&parameters, ';', &part)) {
		part = str_trim(part);
		if (part.len < 3 || (part.ptr[0] | 0x20) != 'q' ||
		    part.ptr[1] != '=')
			continue;
		if (part.ptr[2] == '1')
			return 1000;
		if (part.ptr[2] != '0')
			return 1000;
		if (part.len < 5 || part.ptr[3] != '.')
			return 0;
		digits = (struct str){ part.ptr + 4, part.len - 4 };
		if (digits.len > 3 || str_to_u64(digits, 999, &value) == -1)
			return 1000;
		for (size_t i = digits.len; i < 3; i++)
			value *= 10;
		return (unsigned)value;
	}
	return 1000;
}

enum error_page_kind
error_page_choose(struct str accept)
{
	static const struct {
		struct str type;
		enum error_page_kind kind;
	} types[] = {
		{ { "text/plain", 10 }, ERROR_PAGE_TEXT },
		{ { "*/*", 3 }, ERROR_PAGE_TEXT },
		{ { "text/*", 6 }, ERROR_PAGE_TEXT },
		{ { "text/html", 9 }, ERROR_PAGE_HTML },
		{ { "application/xhtml+xml", 21 }, ERROR_PAGE_HTML },
		{ { "application/json", 16 }, ERROR_PAGE_JSON },
		{ { "application/problem+json", 24 }, ERROR_PAGE_JSON },
		{ { "application/*", 13 }, ERROR_PAGE_JSON },
	};
	enum error_page_kind best = ERROR_PAGE_TEXT;
	unsigned best_quality = 0;
	struct str part, type;

	while (str_split(&accept, ',', &part)) {
		struct str rest = part;
		unsigned here;

		if (!str_split(&rest, ';', &type))
			continue;
		type = str_trim(type);
		here = rest.ptr == NULL ? 1000 : quality(rest);
		for (size_t i = 0; i < ARRAY_LEN(types); i++) {
			/* Of equals the first: clients list what they like
			 * most in front. */
			if (here > best_quality &&
			    str_eq_nocase(type, types[i].type)) {
				best = types[i].kind;
				best_quality = here;
			}
		}
	}
	return best;
}

/* ---- the page ---- */

struct writer {
	char *at, *end;
};

static void
put(struct writer *to, struct str text)
{
	size_t room = (size_t)(to->end - to->at);
	size_t len = text.len < room ? text.len : room;

	if (len > 0)
		memcpy(to->at, text.ptr, len);
	to->at += len;
}

/* Our own words hold nothing that HTML or JSON would trip over, but a later
 * caller's may. */
static void
put_safe(struct writer *to, struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\\' ||
		    (unsigned char)c < 0x20)
			c = ' ';
		put(to, (struct str){ &c, 1 });
	}
}

static void
put_status(struct writer *to, unsigned status)
{
	char number[20];

	put(to, (struct str){ number, str_put_u64(number, status) });
}

static void
put_text_page(struct writer *to, unsigned status, struct str detail)
{
	put_status(to, status);
	put(to, STR(" "));
	put(to, status_reason(status));
	put(to, STR("\n"));
	if (detail.len == 0)
		return;
	put_safe(to, detail);
	put(to, STR("\n"));
}

static void
put_html_page(struct writer *to, unsigned status, struct str detail)
{
	put(to, STR("<!doctype html>\n<html lang=\"en\"><head>"
		    "<meta charset=\"utf-8\"><title>"));
	put_status(to, status);
	put(to, STR(" "));
	put(to, status_reason(status));
	put(to, STR("</title></head>\n<body><h1>"));
	put_status(to, status);
	put(to, STR(" "));
	put(to, status_reason(status));
	put(to, STR("</h1>\n"));
	if (detail.len > 0) {
		put(to, STR("<p>"));
		put_safe(to, detail);
		put(to, STR("</p>\n"));
	}
	put(to, STR("</body></html>\n"));
}

static void
put_json_page(struct writer *to, unsigned status, struct str detail)
{
	put(to, STR("{\"status\":"));
	put_status(to, status);
	put(to, STR(",\"error\":\""));
	put(to, status_reason(status));
	put(to, STR("\""));
	if (detail.len > 0) {
		put(to, STR(",\"detail\":\""));
		put_safe(to, detail);
		put(to, STR("\""));
	}
	put(to, STR("}\n"));
}

void
error_page_make(struct error_page *page, const struct request *request,
    unsigned status, struct str lines, const char *detail)
{
	static const struct {
		struct str type;
		void (*put)(
		    struct writer *to, unsigned status, struct str detail);
	} kinds[] = {
		[ERROR_PAGE_TEXT] = { { "text/plain; charset=utf-8", 25 },
		    put_text_page },
		[ERROR_PAGE_HTML] = { { "text/html; charset=utf-8", 24 },
		    put_html_page },
		[ERROR_PAGE_JSON] = { { "application/json", 16 },
		    put_json_page },
	};
	const struct header_field *accept =
	    header_get(&request->head.headers, HEADER_ACCEPT);
	struct str words = detail == NULL ? STR("") : str_of(detail);
	struct writer to = { page->room, page->room + sizeof(page->room) };
	enum error_page_kind kind = ERROR_PAGE_TEXT;

	if (accept != NULL)
		kind = error_page_choose(header_value(request->base, accept));
	if (words.len > ERROR_PAGE_DETAIL_MAX)
		words.len = ERROR_PAGE_DETAIL_MAX;
	page->lines.ptr = to.at;
	put(&to, STR("Content-Type: "));
	put(&to, kinds[kind].type);
	put(&to, STR("\r\n"));
	/* Half a line would be worse than none. */
	if (lines.len <= ERROR_PAGE_LINES_MAX)
		put(&to, lines);
	page->lines.len = (size_t)(to.at - page->lines.ptr);
	page->body.ptr = to.at;
	kinds[kind].put(&to, status, words);
	page->body.len = (size_t)(to.at - page->body.ptr);
}
