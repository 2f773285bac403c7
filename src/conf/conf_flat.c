/*
 * The tree as one text and back: see conf_flat.h for the format.
 * Between supervisor and proxy. The parser takes every byte as hostile.
 */
#include "src/conf/conf_flat.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "src/base/arena.h"
#include "src/base/mem.h"

#define MAGIC "scalws-conf 1\n"
#define FILES_MAX 4096

static const char type_letters[] = {
	[CONF_NODE_GROUP] = 'g',
	[CONF_NODE_LIST] = 'l',
	[CONF_NODE_INT] = 'i',
	[CONF_NODE_BOOL] = 'b',
	[CONF_NODE_FLOAT] = 'd',
	[CONF_NODE_STRING] = 's',
};

struct files {
	const char *names[FILES_MAX];
	size_t count;
};

/* File names are shared texts, but equal ones may come from two readers.
 * With more than FILES_MAX files the last number stands for all others. */
static size_t
file_number(struct files *files, const char *name, struct strbuf *to)
{
	if (name == NULL)
		name = "";
	for (size_t i = files->count; i > 0; i--) {
		const char *have = files->names[i - 1];

		if (have == name || strcmp(have, name) == 0)
			return i - 1;
	}
	if (files->count == FILES_MAX)
		return FILES_MAX - 1;
	files->names[files->count] = name;
	strbuf_printf(to, "f %zu:%s\n", strlen(name), name);
	return files->count++;
}

static void
write_node(struct files *files, const struct conf_node *node, struct strbuf *to)
{
	const char *name = node->name == NULL ? "" : node->name;
	size_t file = file_number(files, node->where.file, to);

	strbuf_printf(to, "%c %zu %d %zu:%s", type_letters[node->type], file,
	    node->where.line, strlen(name), name);
	switch (node->type) {
	case CONF_NODE_INT:
	case CONF_NODE_BOOL:
		strbuf_printf(to, " %" PRId64, node->number);
		break;
	case CONF_NODE_STRING:
		strbuf_printf(to, " %zu:%s", strlen(node->text), node->text);
		break;
	case CONF_NODE_GROUP:
	case CONF_NODE_LIST:
	case CONF_NODE_FLOAT:
		break;
	}
	strbuf_add_text(to, "\n");
	if (node->type != CONF_NODE_GROUP && node->type != CONF_NODE_LIST)
		return;
	for (node = node->first; node != NULL; node = node->next)
		write_node(files, node, to);
	strbuf_add_text(to, ".\n");
}

void
conf_flat_write(const struct conf_node *root, struct strbuf *to)
{
	struct files *files = mem_alloc(sizeof(*files));

	strbuf_add_text(to, MAGIC);
	write_node(files, root, to);
	mem_free(files);
}

struct parser {
	struct arena *arena;
	struct str rest;
	struct files files;
	int line; /* of the flat text, for messages */
	struct conf_node *open[CONF_NODE_DEPTH_MAX];
	int depth;
	struct conf_node *root;
};

static bool
eat(struct parser *parser, char byte)
{
	if (parser->rest.len == 0 || parser->rest.ptr[0] != byte)
		return false;
	parser->rest.ptr++;
	parser->rest.len--;
	return true;
}

/* Decimal digits and the byte behind them. */
static int
eat_number(struct parser *parser, char end, uint64_t max, uint64_t *value)
{
	struct str digits = { parser->rest.ptr, 0 };

	while (digits.len < parser->rest.len && digits.ptr[digits.len] >= '0' &&
	       digits.ptr[digits.len] <= '9')
		digits.len++;
	if (str_to_u64(digits, max, value) == -1)
		return -1;
	parser->rest.ptr += digits.len;
	parser->rest.len -= digits.len;
	return eat(parser, end) ? 0 : -1;
}

/* "N:TEXT" and the byte behind it. */
static int
eat_text(struct parser *parser, char end, const char **text)
{
	uint64_t len;

	if (eat_number(parser, ':', parser->rest.len, &len) == -1 ||
	    len >= parser->rest.len ||
	    memchr(parser->rest.ptr, '\0', len) != NULL)
		return -1;
	*text = arena_memdup0(parser->arena, parser->rest.ptr, len);
	parser->rest.ptr += len;
	parser->rest.len -= len;
	return eat(parser, end) ? 0 : -1;
}

static int
eat_integer(struct parser *parser, int64_t *value)
{
	bool negative = eat(parser, '-');
	uint64_t digits;

	if (eat_number(parser, '\n', INT64_MAX, &digits) == -1)
		return -1;
	*value = negative ? -(int64_t)digits : (int64_t)digits;
	return 0;
}

static int
parse_file(struct parser *parser)
{
	if (parser->files.count == FILES_MAX ||
	    eat_text(parser, '\n', &parser->files.names[parser->files.count]) ==
		-1)
		return -1;
	parser->files.count++;
	return 0;
}

/* Names in groups, none in lists, and the root is a nameless group. */
static int
add_node(struct parser *parser, struct conf_node *node)
{
	struct conf_node *parent;
	bool wants_name;

	if (parser->depth == 0) {
		if (parser->root != NULL || node->type != CONF_NODE_GROUP ||
		    node->name != NULL)
			return -1;
		parser->root = node;
		return 0;
	}
	parent = parser->open[parser->depth - 1];
	wants_name = parent->type == CONF_NODE_GROUP;
	if ((node->name != NULL) != wants_name)
		return -1;
	conf_node_append(parent, node);
	return 0;
}

static int
parse_node(struct parser *parser, enum conf_node_type type)
{
	bool nests = type == CONF_NODE_GROUP || type == CONF_NODE_LIST;
	bool valued = !nests && type != CONF_NODE_FLOAT;
	struct conf_node *node;
	struct conf_where where;
	const char *name;
	uint64_t file, line;

	if (eat_number(parser, ' ', FILES_MAX, &file) == -1 ||
	    file >= parser->files.count ||
	    eat_number(parser, ' ', INT_MAX, &line) == -1 ||
	    eat_text(parser, valued ? ' ' : '\n', &name) == -1)
		return -1;
	where.file = parser->files.names[file];
	where.line = (int)line;
	node = conf_node_new(
	    parser->arena, type, name[0] == '\0' ? NULL : name, where);
	if (type == CONF_NODE_STRING &&
	    eat_text(parser, '\n', &node->text) == -1)
		return -1;
	if ((type == CONF_NODE_INT || type == CONF_NODE_BOOL) &&
	    eat_integer(parser, &node->number) == -1)
		return -1;
	if (type == CONF_NODE_BOOL && node->number != 0 && node->number != 1)
		return -1;
	if (add_node(parser, node) == -1)
		return -1;
	if (nests) {
		if (parser->depth == CONF_NODE_DEPTH_MAX)
			return -1;
		parser->open[parser->depth++] = node;
	}
	return 0;
}

static int
parse_line(struct parser *parser)
{
	parser->line++;
	if (eat(parser, '.')) {
		if (parser->depth == 0)
			return -1;
		parser->depth--;
		return eat(parser, '\n') ? 0 : -1;
	}
	if (eat(parser, 'f'))
		return eat(parser, ' ') ? parse_file(parser) : -1;
	for (size_t i = 0; i < ARRAY_LEN(type_letters); i++) {
		if (eat(parser, type_letters[i]))
			return eat(parser, ' ')
				   ? parse_node(parser, (enum conf_node_type)i)
				   : -1;
	}
	return -1;
}

struct conf_node *
conf_flat_parse(struct arena *arena, const char *text, size_t len,
    struct conf_errors *errors)
{
	struct parser *parser = mem_alloc(sizeof(*parser));
	struct conf_node *root = NULL;
	int result = 0;

	parser->arena = arena;
	parser->rest = (struct str){ text, len };
	if (str_starts_with(parser->rest, STR(MAGIC))) {
		parser->line = 1;
		parser->rest.ptr += sizeof(MAGIC) - 1;
		parser->rest.len -= sizeof(MAGIC) - 1;
		while (result == 0 && parser->rest.len > 0)
			result = parse_line(parser);
		if (result == 0 && parser->depth == 0)
			root = parser->root;
	}
	if (root == NULL)
		conf_errors_add(errors, NULL, NULL,
		    "the configuration text from the supervisor is damaged "
		    "at its line %d",
		    parser->line);
	mem_free(parser);
	return root;
}
