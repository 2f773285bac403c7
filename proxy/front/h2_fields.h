/*
 * The fields of one answer, as nghttp2 wants them. They point into what they
 * were made of, and into the struct itself: to be submitted before either goes
 * away. Connection-specific fields are left out (RFC 9113 section 8.2.2). The
 * worker's thread.
 */
#ifndef FRONT_H2_FIELDS_H
#define FRONT_H2_FIELDS_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>

#include "proxy/core/response.h"
#include "proxy/core/worker.h"
#include "src/base/str.h"

/* An answer has no more fields: those of an app's and what 16 KiB of lines
 * hold. */
#define H2_FIELDS_MAX 640

struct h2_fields {
	size_t n;
	bool overflow; /* there were more */
	char status[4];
	char length[20]; /* room for who adds content-length */
	nghttp2_nv nv[H2_FIELDS_MAX];
};

/* Empty it and put :status first. */
void h2_fields_begin(struct h2_fields *fields, unsigned status);
/* A name that is static and in lower case. */
void h2_fields_add_own(
    struct h2_fields *fields, struct str name, struct str value);
void h2_fields_add_server(struct h2_fields *fields);
void h2_fields_add_date(struct h2_fields *fields, const struct worker *worker);
/* Whole lines, each with its CRLF. nghttp2 lowers the names it copies. */
void h2_fields_add_lines(struct h2_fields *fields, struct str lines);
/* They must stay where they are until they were sent. */
void h2_fields_add_fixed(
    struct h2_fields *fields, const struct response_fixed *fixed);
/* An app's, Content-Length left out. */
void h2_fields_add_table(
    struct h2_fields *fields, const struct response_head *head);

#endif
