/*
 * Words of libconfig's language, cut exactly as libconfig 1.5 cuts them.
 * Under conf_source.c, which decides what may stay. Pure functions.
 */
#ifndef CONF_CONF_LEXER_H
#define CONF_CONF_LEXER_H

#include "src/base/str.h"

enum conf_token_type {
	CONF_TOKEN_END,
	CONF_TOKEN_SPACE,        /* blanks, form feeds, carriage returns */
	CONF_TOKEN_NEWLINE,      /* one */
	CONF_TOKEN_COMMENT,      /* with its marks, without the last newline */
	CONF_TOKEN_OPEN_COMMENT, /* a comment that nothing closes */
	CONF_TOKEN_STRING,       /* with its quotes */
	CONF_TOKEN_OPEN_STRING,  /* no closing quote before the line's end */
	CONF_TOKEN_WORD,         /* a name, number, true or false */
	CONF_TOKEN_PUNCTUATION,  /* one of = : , ; { } [ ] ( ) */
	CONF_TOKEN_INCLUDE,      /* @include */
	CONF_TOKEN_GARBAGE,      /* one byte that has no meaning */
};

struct conf_token {
	enum conf_token_type type;
	struct str text;
	int newlines; /* inside of it */
};

/* The next token of `rest`, which is moved behind it. */
struct conf_token conf_lexer_next(struct str *rest);

enum conf_word_type {
	CONF_WORD_NAME,  /* also true and false */
	CONF_WORD_SMALL, /* an integer that 32 bits hold, or with its L 64 */
	CONF_WORD_LARGE, /* an integer that needs an L */
	CONF_WORD_TOO_LARGE, /* an integer beyond 64 bits */
	CONF_WORD_FLOAT,
	CONF_WORD_UNIT, /* a number with a unit, without quotes */
	CONF_WORD_BAD,
};
enum conf_word_type conf_lexer_word_type(struct str word);

#endif
