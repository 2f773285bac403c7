/*
 * Writes and reads the records of a supervisor's state.
 * saved.c describes the records. Knows no record's meaning and opens nothing.
 */
#include "supervisor/state.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/strbuf.h"

#define HEAD "scalws-state "
/* To be counted up with every change of a record. */
#define FORMAT "3"
#define TAIL "end\n"

struct state {
	bool reading;
	/* writing */
	struct strbuf out;
	bool ended;
	int *fds;
	size_t n_fds;
	/* reading */
	char *text;     /* decoded in place, NUL-terminated pieces */
	char *at, *end; /* the rest after the current record */
	char *field;    /* the rest of the current record; NULL: none */
	char error[160];
};

struct state *
state_write(void)
{
	struct state *state = mem_alloc(sizeof(*state));

	strbuf_add_text(&state->out, HEAD FORMAT "\n");
	return state;
}

struct state *
state_read(const char *text, size_t len, const char **why)
{
	size_t head = strlen(HEAD FORMAT "\n"), tail = strlen(TAIL);
	struct state *state;

	*why = NULL;
	if (len < strlen(HEAD) || memcmp(text, HEAD, strlen(HEAD)) != 0)
		*why = "it is no state of scalwsd";
	else if (len < head || memcmp(text, HEAD FORMAT "\n", head) != 0)
		*why = "it is of another version than " FORMAT;
	else if (len < head + tail + 1 ||
		 memcmp(text + len - tail - 1, "\n" TAIL, tail + 1) != 0)
		*why = "it has no end";
	else if (memchr(text, '\0', len) != NULL)
		*why = "it has a NUL";
	if (*why != NULL)
		return NULL;
	state = mem_alloc(sizeof(*state));
	state->reading = true;
	state->text = mem_memdup0(text, len);
	state->at = state->text + head;
	state->end = state->text + len - tail;
	return state;
}

void
state_free(struct state **state_ptr)
{
	struct state *state = *state_ptr;

	if (state == NULL)
		return;
	strbuf_free(&state->out);
	mem_free(state->fds);
	mem_free(state->text);
	mem_free(state);
	*state_ptr = NULL;
}

void
state_proof(struct str text, char proof[STATE_PROOF_MAX])
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (size_t i = 0; i < text.len; i++)
		sum = (sum ^ (unsigned char)text.ptr[i]) *
		      UINT64_C(0x100000001b3);
	snprintf(proof, STATE_PROOF_MAX, "state understood: %016llx",
	    (unsigned long long)sum);
}

bool
state_is_reading(const struct state *state)
{
	return state->reading;
}

struct str
state_text(struct state *state)
{
	if (!state->ended)
		strbuf_add_text(&state->out, "\n" TAIL);
	state->ended = true;
	return (struct str){ state->out.ptr, state->out.len };
}

const int *
state_fds(const struct state *state, size_t *n)
{
	*n = state->n_fds;
	return state->fds;
}

void
state_fail(struct state *state, const char *what)
{
	if (state->error[0] == '\0')
		snprintf(state->error, sizeof(state->error), "%s", what);
}

const char *
state_error(const struct state *state)
{
	return state->error[0] == '\0' ? NULL : state->error;
}

static void
end_record(struct state *state)
{
	if (state->field != NULL)
		state_fail(state, "a field that is not known");
	state->field = NULL;
}

bool
state_is_whole(struct state *state)
{
	end_record(state);
	if (state->at != state->end)
		state_fail(state, "a record that is not known");
	return state_error(state) == NULL;
}

size_t
state_left(const struct state *state)
{
	return (size_t)(state->end - state->at) +
	       (state->field == NULL ? 0 : strlen(state->field));
}

bool
state_record(struct state *state, const char *type)
{
	size_t len = strlen(type);
	char *stop;

	if (!state->reading) {
		/* The end of the record before; the first follows the head. */
		if (state->out.len != strlen(HEAD FORMAT) + 1)
			strbuf_add_text(&state->out, "\n");
		strbuf_add_text(&state->out, type);
		return true;
	}
	end_record(state);
	if (state_error(state) != NULL || state->at >= state->end ||
	    strncmp(state->at, type, len) != 0 ||
	    (state->at[len] != ' ' && state->at[len] != '\n'))
		return false;
	stop = strchr(state->at, '\n');
	state->field = state->at[len] == ' ' ? state->at + len + 1 : NULL;
	*stop = '\0';
	state->at = stop + 1;
	return true;
}

/* ---- bytes ---- */

static bool
is_plain(unsigned char byte)
{
	return byte > ' ' && byte < 0x7f && byte != '%';
}

static void
put_bytes(struct state *state, const char *key, const char *at, size_t len)
{
	static const char digits[] = "0123456789abcdef";

	strbuf_printf(&state->out, " %s=", key);
	for (size_t i = 0, run; i < len; i = run) {
		unsigned char byte = (unsigned char)at[i];
		char escape[3] = { '%', digits[byte >> 4], digits[byte & 15] };

		for (run = i; run < len && is_plain((unsigned char)at[run]);)
			run++;
		if (run > i) {
			strbuf_add(&state->out, at + i, run - i);
		} else {
			strbuf_add(&state->out, escape, sizeof(escape));
			run = i + 1;
		}
	}
}

static int
digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decode in place; -1: malformed. */
static int
decode(char *text, size_t *len)
{
	char *to = text;

	for (const char *from = text; *from != '\0'; from++) {
		int high, low;

		if (*from != '%') {
			if (!is_plain((unsigned char)*from))
				return -1;
			*to++ = *from;
			continue;
		}
		high = digit_of(from[1]);
		low = high == -1 ? -1 : digit_of(from[2]);
		if (low == -1)
			return -1;
		*to++ = (char)(high << 4 | low);
		from += 2;
	}
	*to = '\0';
	*len = (size_t)(to - text);
	return 0;
}

/* A view that lives as long as `state`; NUL-terminated. */
static struct str
get_bytes(struct state *state, const char *key)
{
	char *value, *stop, text[128];
	size_t len = strlen(key);

	if (state_error(state) != NULL)
		return STR("");
	if (state->field == NULL || strncmp(state->field, key, len) != 0 ||
	    state->field[len] != '=') {
		snprintf(text, sizeof(text), "no field %s", key);
		state_fail(state, text);
		return STR("");
	}
	value = state->field + len + 1;
	stop = strchr(value, ' ');
	state->field = stop == NULL ? NULL : stop + 1;
	if (stop != NULL)
		*stop = '\0';
	if (decode(value, &len) == -1) {
		state_fail(state, "a value is malformed");
		return STR("");
	}
	return (struct str){ value, len };
}

void
state_bytes(struct state *state, const char *key, char **value, size_t *len)
{
	struct str read;

	if (!state->reading) {
		put_bytes(state, key, *value, *len);
		return;
	}
	read = get_bytes(state, key);
	*value = mem_memdup0(read.ptr, read.len);
	*len = read.len;
}

static struct str
get_text(struct state *state, const char *key)
{
	struct str value = get_bytes(state, key);

	if (memchr(value.ptr, '\0', value.len) == NULL)
		return value;
	state_fail(state, "a text has a NUL");
	return STR("");
}

void
state_string(struct state *state, const char *key, char **value)
{
	if (state->reading)
		*value = mem_strdup(get_text(state, key).ptr);
	else
		put_bytes(state, key, *value, strlen(*value));
}

void
state_chars(struct state *state, const char *key, char *value, size_t size)
{
	struct str read;

	if (!state->reading) {
		put_bytes(state, key, value, strlen(value));
		return;
	}
	read = get_text(state, key);
	if (read.len >= size) {
		state_fail(state, "a text is too long");
		read = STR("");
	}
	memcpy(value, read.ptr, read.len);
	value[read.len] = '\0';
}

/* ---- numbers ---- */

void
state_i64(struct state *state, const char *key, int64_t *value, int64_t min,
    int64_t max)
{
	struct str text;
	uint64_t digits;
	bool negative;

	if (!state->reading) {
		strbuf_printf(&state->out, " %s=%lld", key, (long long)*value);
		return;
	}
	text = get_bytes(state, key);
	*value = min;
	if (state_error(state) != NULL)
		return;
	negative = text.len > 0 && text.ptr[0] == '-';
	text.ptr += negative;
	text.len -= negative;
	if (str_to_u64(text, INT64_MAX, &digits) == -1) {
		state_fail(state, "a number is malformed");
		return;
	}
	*value = negative ? -(int64_t)digits : (int64_t)digits;
	if (*value >= min && *value <= max)
		return;
	state_fail(state, "a number is out of range");
	*value = min;
}

void
state_u64(struct state *state, const char *key, uint64_t *value)
{
	int64_t wide = (int64_t)*value;

	state_i64(state, key, &wide, 0, INT64_MAX);
	*value = (uint64_t)wide;
}

void
state_u32(struct state *state, const char *key, uint32_t *value, uint32_t max)
{
	int64_t wide = *value;

	state_i64(state, key, &wide, 0, max);
	*value = (uint32_t)wide;
}

void
state_int(struct state *state, const char *key, int *value, int min, int max)
{
	int64_t wide = *value;

	state_i64(state, key, &wide, min, max);
	*value = (int)wide;
}

void
state_bool(struct state *state, const char *key, bool *value)
{
	int64_t wide = *value;

	state_i64(state, key, &wide, 0, 1);
	*value = wide == 1;
}

void
state_fd(struct state *state, const char *key, int *value)
{
	state_int(state, key, value, -1, INT_MAX);
	if (*value == -1)
		return;
	state->fds =
	    mem_realloc(state->fds, state->n_fds + 1, sizeof(*state->fds));
	state->fds[state->n_fds++] = *value;
}

/* ---- addresses ---- */

static size_t
size_of_family(const struct addr *addr)
{
	switch (addr->u.sa.sa_family) {
	case AF_INET:
		return sizeof(addr->u.in);
	case AF_INET6:
		return sizeof(addr->u.in6);
	default:
		return 0;
	}
}

static bool
is_good(const struct addr *addr)
{
	const struct sockaddr_un *un = &addr->u.un;

	if (addr->u.sa.sa_family != AF_UNIX)
		return addr->len == size_of_family(addr);
	return addr->len <= sizeof(*un) &&
	       memchr(un->sun_path, '\0', sizeof(un->sun_path)) != NULL;
}

void
state_addr(struct state *state, const char *key, struct addr *value)
{
	struct str read;

	if (!state->reading) {
		put_bytes(state, key, (const char *)&value->u, value->len);
		return;
	}
	read = get_bytes(state, key);
	memset(value, 0, sizeof(*value));
	if (read.len == 0)
		return;
	if (read.len >= sizeof(value->u.sa.sa_family) &&
	    read.len <= sizeof(value->u)) {
		memcpy(&value->u, read.ptr, read.len);
		value->len = (socklen_t)read.len;
		if (is_good(value))
			return;
	}
	memset(value, 0, sizeof(*value));
	state_fail(state, "an address is malformed");
}
