/*
 * Which byte may stand where.
 * The table behind chars.h. No code.
 */
#include "proxy/http/chars.h"

#define T CHAR_TOKEN
#define N CHAR_PLAIN
#define P CHAR_PATH
#define Q CHAR_QUERY
#define C CHAR_PCHAR
#define H CHAR_HOST
#define D CHAR_QUOTED
#define X CHAR_TEXT

/* Targets: what RFC 3986 has, and beyond it what browsers send as it is (the
 * URL standard's encode sets leave these alone): [ ] ^ | in a path, and in a
 * query also \ ` { }. Never a control, space, '"', '<', '>', '#', DEL, or a
 * byte above it. */
const uint8_t char_class[256] = {
	['\t'] = D | X,
	[' '] = D | X,
	['!'] = T | P | Q | C | D | X,
	['"'] = X,
	['#'] = T | D | X,
	['$'] = T | P | Q | C | D | X,
	['%'] = T | P | Q | D | X,
	['&'] = T | P | Q | C | D | X,
	['\''] = T | P | Q | C | D | X,
	['('] = P | Q | C | D | X,
	[')'] = P | Q | C | D | X,
	['*'] = T | P | Q | C | D | X,
	['+'] = T | P | Q | C | D | X,
	[','] = P | Q | C | D | X,
	['-'] = T | N | P | Q | C | H | D | X,
	['.'] = T | P | Q | C | D | X,
	['/'] = P | Q | C | D | X,
	['0' ... '9'] = T | N | P | Q | C | H | D | X,
	[':'] = P | Q | C | D | X,
	[';'] = P | Q | C | D | X,
	['<'] = D | X,
	['='] = P | Q | C | D | X,
	['>'] = D | X,
	['?'] = Q | D | X,
	['@'] = P | Q | C | D | X,
	['A' ... 'Z'] = T | N | P | Q | C | H | D | X,
	['['] = P | Q | D | X,
	['\\'] = Q | X,
	[']'] = P | Q | D | X,
	['^'] = T | P | Q | D | X,
	['_'] = T | P | Q | C | H | D | X,
	['`'] = T | Q | D | X,
	['a' ... 'z'] = T | N | P | Q | C | H | D | X,
	['{'] = Q | D | X,
	['|'] = T | P | Q | D | X,
	['}'] = Q | D | X,
	['~'] = T | P | Q | C | H | D | X,
	[0x80 ... 0xff] = D | X,
};
