/*
 * The text of a configuration file made safe for libconfig.
 * Before conf_read.c: reads files, follows @include, refuses what libconfig
 * would accept silently, with better places than its own messages have.
 * Does not build a tree.
 */
#include "src/conf/conf_source.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/arena.h"
#include "src/base/fdutil.h"
#include "src/base/hash.h"
#include "src/base/mem.h"
#include "src/conf/conf_lexer.h"
#include "src/conf/conf_node.h"

/* One file on its way into the text. Brackets and names must be whole within
 * the file, so they are counted per file. */
struct scan {
	struct conf_source *source;
	const struct scan *includer; /* NULL: the first file */
	int depth;
	struct conf_where where; /* of the token at hand */
	struct str rest;
	struct bracket {
		char close;
		int line;
		unsigned scope; /* of names, for { } */
	} open[CONF_NODE_DEPTH_MAX];
	int n_open;
	unsigned scopes;        /* how many there were */
	struct hash_map *names; /* "SCOPE.NAME" -> its line */
	struct str name;        /* the last word, if it may become a name */
	int name_line;
	bool line_is_empty; /* nothing but blanks so far */
	int findings;
};

static int scan_file(struct conf_source *source, const struct scan *includer,
    const char *path, const struct conf_where *from);

static void PRINTF_LIKE(3, 4)
    find(struct scan *scan, int line, const char *fmt, ...)
{
	struct conf_where where = { scan->where.file, line };
	va_list args;
	char *text = NULL;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) == -1)
		abort();
	va_end(args);
	conf_errors_add(scan->source->errors, &where, NULL, "%s", text);
	free(text);
	scan->findings++;
}

static void
add_span(struct conf_source *source, struct conf_where where)
{
	struct conf_source_span span = { source->lines, where.file,
		where.line };

	source->spans = mem_realloc(
	    source->spans, source->n_spans + 1, sizeof(*source->spans));
	source->spans[source->n_spans++] = span;
}

static void
emit(struct conf_source *source, const char *text, size_t len)
{
	strbuf_add(&source->text, text, len);
	for (size_t i = 0; i < len; i++)
		source->lines += text[i] == '\n';
}

/* ---- names and brackets ---- */

static void
note_name(struct scan *scan)
{
	unsigned scope =
	    scan->n_open > 0 ? scan->open[scan->n_open - 1].scope : 0;
	char *key =
	    mem_printf("%u.%.*s", scope, (int)scan->name.len, scan->name.ptr);
	void *line = (void *)(intptr_t)scan->name_line;

	if (hash_map_add(scan->names, str_of(key), line) == -1) {
		int first =
		    (int)(intptr_t)hash_map_get(scan->names, str_of(key));

		find(scan, scan->name_line,
		    "%.*s stands here a second time, the first is in line %d",
		    (int)scan->name.len, scan->name.ptr, first);
	}
	mem_free(key);
}

static void
open_bracket(struct scan *scan, char close)
{
	struct bracket *bracket;

	if (scan->n_open == CONF_NODE_DEPTH_MAX - 2) {
		/* Told once: what follows would only repeat it. */
		find(scan, scan->where.line, "nested too deeply");
		scan->rest.len = 0;
		return;
	}
	bracket = &scan->open[scan->n_open++];
	bracket->close = close;
	bracket->line = scan->where.line;
	bracket->scope = ++scan->scopes;
}

static void
close_bracket(struct scan *scan, char close)
{
	struct bracket *last;

	if (scan->n_open == 0) {
		find(scan, scan->where.line, "%c closes nothing", close);
		scan->rest.len = 0;
		return;
	}
	last = &scan->open[scan->n_open - 1];
	if (last->close != close) {
		find(scan, scan->where.line,
		    "%c where the bracket of line %d needs %c", close,
		    last->line, last->close);
		scan->rest.len = 0;
		return;
	}
	if (scan->source->last == ',')
		find(scan, scan->where.line,
		    "a comma before %c: the last element has none", close);
	scan->n_open--;
}

static void
scan_punctuation(struct scan *scan, struct conf_token token)
{
	char c = token.text.ptr[0];

	if ((c == '=' || c == ':') && scan->name.ptr != NULL)
		note_name(scan);
	if (c == '{')
		open_bracket(scan, '}');
	else if (c == '[')
		open_bracket(scan, ']');
	else if (c == '(')
		open_bracket(scan, ')');
	else if (c == '}' || c == ']' || c == ')')
		close_bracket(scan, c);
	scan->source->last = c;
	emit(scan->source, token.text.ptr, token.text.len);
}

/* ---- words and strings ---- */

static void
scan_word(struct scan *scan, struct str word)
{
	int line = scan->where.line, len = word.len > 60 ? 60 : (int)word.len;

	scan->source->last = 'w';
	switch (conf_lexer_word_type(word)) {
	case CONF_WORD_NAME:
		scan->name = word;
		scan->name_line = line;
		break;
	case CONF_WORD_SMALL:
	case CONF_WORD_FLOAT:
		break;
	case CONF_WORD_LARGE:
		/* Without it libconfig keeps the low 32 bits. */
		emit(scan->source, word.ptr, word.len);
		emit(scan->source, "L", 1);
		return;
	case CONF_WORD_TOO_LARGE:
		find(scan, line, "%.*s is too large for any number here", len,
		    word.ptr);
		break;
	case CONF_WORD_UNIT:
		find(scan, line,
		    "%.*s is no number; with a unit it stands in quotes: "
		    "\"%.*s\"",
		    len, word.ptr, len, word.ptr);
		break;
	case CONF_WORD_BAD:
		if (word.ptr[0] == '_')
			find(scan, line,
			    "%.*s: a name cannot begin with _ (environment "
			    "also takes a list: [ \"%.*s=value\" ])",
			    len, word.ptr, len, word.ptr);
		else
			find(scan, line,
			    "%.*s is neither a name nor a number; a text "
			    "stands in quotes",
			    len, word.ptr);
		break;
	}
	emit(scan->source, word.ptr, word.len);
}

/* libconfig would end the value at a NUL. */
static bool
has_nul(struct str string)
{
	for (size_t i = 0; i + 3 < string.len; i++) {
		if (string.ptr[i] != '\\')
			continue;
		i++;
		if ((string.ptr[i] == 'x' || string.ptr[i] == 'X') &&
		    string.ptr[i + 1] == '0' && string.ptr[i + 2] == '0')
			return true;
	}
	return false;
}

/* What the innermost open bracket needs, also of the files that include this
 * one; NUL at the top. */
static char
innermost(const struct scan *scan)
{
	for (; scan != NULL; scan = scan->includer) {
		if (scan->n_open > 0)
			return scan->open[scan->n_open - 1].close;
	}
	return '\0';
}

/* libconfig 1.5 loses the memory of a text that stands where none may. */
static bool
may_be_text(const struct scan *scan)
{
	char close = innermost(scan);

	switch (scan->source->last) {
	case '=':
	case ':':
	case '(':
	case '[':
	case '"':
		return true;
	case ',':
		return close == ')' || close == ']';
	default:
		return false;
	}
}

static void
scan_string(struct scan *scan, struct str string)
{
	if (!may_be_text(scan))
		find(scan, scan->where.line,
		    "syntax error: a text stands here where none can; is a = "
		    "or a , missing?");
	scan->source->last = '"';
	if (has_nul(string))
		find(scan, scan->where.line, "\\x00 cannot be in a text");
	emit(scan->source, string.ptr, string.len);
}

/* ---- includes ---- */

static bool
includes_itself(const struct scan *scan, const char *path)
{
	for (; scan != NULL; scan = scan->includer) {
		if (strcmp(scan->where.file, path) == 0)
			return true;
	}
	return false;
}

static void
follow_include(struct scan *scan, struct str quoted)
{
	struct conf_source *source = scan->source;
	struct conf_where back = scan->where;
	char *name = mem_memdup0(quoted.ptr + 1, quoted.len - 2);
	const char *path =
	    conf_source_beside(source->arena, scan->where.file, name);

	if (!source->includes)
		find(scan, scan->where.line, "@include is not possible here");
	else if (name[0] == '\0' || strchr(name, '\\') != NULL)
		find(scan, scan->where.line, "@include \"%s\": no file name",
		    name);
	else if (includes_itself(scan, path))
		find(scan, scan->where.line, "@include \"%s\" goes in circles",
		    name);
	else if (scan->depth == CONF_SOURCE_INCLUDES_MAX)
		find(scan, scan->where.line,
		    "@include \"%s\": files include files more than %d deep",
		    name, CONF_SOURCE_INCLUDES_MAX);
	else {
		emit(source, "\n", 1);
		if (scan_file(source, scan, path, &scan->where) == -1)
			scan->findings++;
		emit(source, "\n", 1);
		add_span(source, back);
	}
	mem_free(name);
}

static void
scan_include(struct scan *scan, bool at_start)
{
	struct conf_token token = conf_lexer_next(&scan->rest);

	if (token.type == CONF_TOKEN_SPACE)
		token = conf_lexer_next(&scan->rest);
	if (!at_start)
		find(scan, scan->where.line,
		    "@include stands at the start of a line");
	else if (token.type != CONF_TOKEN_STRING)
		find(scan, scan->where.line,
		    "@include needs a file name in quotes");
	else
		follow_include(scan, token.text);
	/* The line's end still counts. */
	if (token.type == CONF_TOKEN_NEWLINE) {
		emit(scan->source, "\n", 1);
		scan->where.line++;
	}
}

/* ---- one file ---- */

static void
scan_token(struct scan *scan, struct conf_token token)
{
	struct str was_name = scan->name;
	bool at_start = scan->line_is_empty;

	scan->name = (struct str){ NULL, 0 };
	scan->line_is_empty = false;
	switch (token.type) {
	case CONF_TOKEN_END:
		return;
	case CONF_TOKEN_SPACE:
	case CONF_TOKEN_NEWLINE:
	case CONF_TOKEN_COMMENT:
		/* libconfig sees none of the text of comments. */
		scan->name = was_name;
		scan->line_is_empty =
		    token.type == CONF_TOKEN_NEWLINE || at_start;
		emit(scan->source, " ", 1);
		for (int i = 0; i < token.newlines; i++)
			emit(scan->source, "\n", 1);
		return;
	case CONF_TOKEN_OPEN_COMMENT:
		find(scan, scan->where.line, "this comment is never closed");
		return;
	case CONF_TOKEN_OPEN_STRING:
		find(scan, scan->where.line,
		    "this text has no closing quote on its line");
		break;
	case CONF_TOKEN_STRING:
		scan_string(scan, token.text);
		break;
	case CONF_TOKEN_WORD:
		scan_word(scan, token.text);
		break;
	case CONF_TOKEN_PUNCTUATION:
		scan->name = was_name;
		scan_punctuation(scan, token);
		scan->name = (struct str){ NULL, 0 };
		return;
	case CONF_TOKEN_INCLUDE:
		scan_include(scan, at_start);
		break;
	case CONF_TOKEN_GARBAGE:
		find(scan, scan->where.line, "\"%c\" has no meaning here",
		    token.text.ptr[0]);
		break;
	}
}

static int
scan_text(struct conf_source *source, const struct scan *includer,
    const char *file, struct str text)
{
	struct scan *scan = mem_alloc(sizeof(*scan));
	struct conf_token token;
	int findings;

	scan->source = source;
	scan->includer = includer;
	scan->depth = includer == NULL ? 0 : includer->depth + 1;
	scan->where = (struct conf_where){ file, 1 };
	scan->rest = text;
	/* Some editors put a byte order mark there; it says nothing. */
	if (str_starts_with(text, STR("\xef\xbb\xbf"))) {
		scan->rest.ptr += 3;
		scan->rest.len -= 3;
	}
	scan->names = hash_map_new();
	scan->line_is_empty = true;
	add_span(source, scan->where);
	if (memchr(text.ptr, '\0', text.len) != NULL) {
		find(scan, 1, "this is no text file: it has NUL bytes");
		scan->rest.len = 0;
	}
	do {
		token = conf_lexer_next(&scan->rest);
		scan_token(scan, token);
		scan->where.line += token.newlines;
	} while (token.type != CONF_TOKEN_END);
	/* Only one: the innermost; and not when something else was found,
	 * which is likely to be the reason. */
	if (scan->n_open > 0 && scan->findings == 0)
		find(scan, scan->open[scan->n_open - 1].line,
		    "the bracket opened here is never closed with %c",
		    scan->open[scan->n_open - 1].close);
	findings = scan->findings;
	hash_map_free(scan->names);
	mem_free(scan);
	return findings == 0 ? 0 : -1;
}

/* `from` is the place of the @include, or NULL. */
static int
scan_file(struct conf_source *source, const struct scan *includer,
    const char *path, const struct conf_where *from)
{
	struct conf_where whole = { path, 0 };
	const struct conf_where *where = from == NULL ? &whole : from;
	const char *about = from == NULL ? NULL : path;
	size_t len;
	char *text;
	int result;

	if (fd_read_file(path, CONF_SOURCE_FILE_MAX, &text, &len) == -1) {
		if (errno == EISDIR || errno == EINVAL)
			return conf_errors_add(source->errors, where, about,
			    "is not a regular file");
		if (errno == EFBIG)
			return conf_errors_add(source->errors, where, about,
			    "is larger than %zu MiB",
			    CONF_SOURCE_FILE_MAX >> 20);
		return conf_errors_add_errno(
		    source->errors, where, about, "cannot be read");
	}
	if (source->text.len + len > CONF_SOURCE_TEXT_MAX)
		result = conf_errors_add(source->errors, where, about,
		    "the configuration is larger than %zu MiB",
		    CONF_SOURCE_TEXT_MAX >> 20);
	else
		result = scan_text(
		    source, includer, path, (struct str){ text, len });
	mem_free(text);
	return result;
}

int
conf_source_read(struct conf_source *source, const char *path)
{
	source->lines = 1;
	return scan_file(source, NULL, arena_strdup(source->arena, path), NULL);
}

int
conf_source_add(
    struct conf_source *source, const char *name, const char *text, size_t len)
{
	source->lines = 1;
	if (len > CONF_SOURCE_FILE_MAX)
		return conf_errors_add(
		    source->errors, NULL, name, "is too large");
	return scan_text(source, NULL, arena_strdup(source->arena, name),
	    (struct str){ text, len });
}

struct conf_where
conf_source_where(const struct conf_source *source, int line)
{
	struct conf_where where = { NULL, 0 };

	/* The last span that begins at or before the line: spans are in the
	 * order of their lines. */
	size_t low = 0, high = source->n_spans;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (source->spans[middle].first_line <= line)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return where;
	where.file = source->spans[low - 1].file;
	where.line = source->spans[low - 1].file_line + line -
		     source->spans[low - 1].first_line;
	return where;
}

void
conf_source_free(struct conf_source *source)
{
	strbuf_free(&source->text);
	mem_free(source->spans);
	source->spans = NULL;
	source->n_spans = 0;
}

const char *
conf_source_beside(struct arena *arena, const char *file, const char *path)
{
	const char *slash = strrchr(file, '/');

	if (path[0] == '/' || slash == NULL)
		return arena_strdup(arena, path);
	return arena_printf(arena, "%.*s/%s", (int)(slash - file), file, path);
}
