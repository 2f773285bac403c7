/*
 * The text of a configuration file made safe for libconfig: read by us,
 * @include lines replaced by what they name, comments taken out, and what
 * libconfig would swallow silently refused. Before conf_read.c; does not
 * build a tree.
 */
#ifndef CONF_CONF_SOURCE_H
#define CONF_CONF_SOURCE_H

#include "src/base/strbuf.h"
#include "src/conf/conf.h"

#define CONF_SOURCE_FILE_MAX ((size_t)4 << 20)  /* bytes of one file */
#define CONF_SOURCE_TEXT_MAX ((size_t)16 << 20) /* with its includes */
#define CONF_SOURCE_INCLUDES_MAX 10 /* how deep files include files */

/* Lines from `first_line` of the text on stand in `file` from `file_line`. */
struct conf_source_span {
	int first_line;
	const char *file;
	int file_line;
};

struct conf_source {
	struct arena *arena; /* holds the file names */
	struct strbuf text;
	int lines; /* the line that is being written, from 1 */
	char
	    last; /* of the token before: '"', 'w' for a word, itself; or NUL */
	struct conf_source_span *spans;
	size_t n_spans;
	/* May @include be followed? Not for texts from memory. */
	bool includes;
	struct conf_errors *errors;
};

/* Read the file `path` and all it includes into source->text. All findings
 * are added; 0, or -1 when there were any. The caller sets `arena`, `errors`
 * and `includes` before and calls conf_source_free in either case. */
int conf_source_read(struct conf_source *source, const char *path) MUST_CHECK;
/* The same for a text in memory, named `name` in messages. */
int conf_source_add(struct conf_source *source, const char *name,
    const char *text, size_t len) MUST_CHECK;
/* Where a line of the text comes from. */
struct conf_where conf_source_where(const struct conf_source *source, int line);
void conf_source_free(struct conf_source *source);

/* `path` seen from the directory of `file`: "/a/b.conf" and "c" give "/a/c". */
const char *conf_source_beside(
    struct arena *arena, const char *file, const char *path);

#endif
