/*
 * The small page that tells a client what went wrong: text, HTML or JSON, as
 * its Accept prefers. Pure.
 */
#ifndef CORE_ERROR_PAGE_H
#define CORE_ERROR_PAGE_H

#include "proxy/core/request.h"
#include "src/base/str.h"

enum error_page_kind { ERROR_PAGE_TEXT, ERROR_PAGE_HTML, ERROR_PAGE_JSON };

/* Lines and detail beyond this are cut off. */
#define ERROR_PAGE_LINES_MAX 512
#define ERROR_PAGE_DETAIL_MAX 256

struct error_page {
	struct str lines; /* with Content-Type; in `room` */
	struct str body;
	char room[4096];
};

/* `lines` whole lines or empty, `detail` a sentence or NULL. */
void error_page_make(struct error_page *page, const struct request *request,
    unsigned status, struct str lines, const char *detail);

/* By the value of Accept (RFC 9110 section 12.5.1); text when nothing or
 * anything will do. */
enum error_page_kind error_page_choose(struct str accept);

#endif
