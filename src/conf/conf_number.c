/*
 * Numbers with units and names for numbers, as the file writes them.
 * Under conf_value.c and the printer. Pure functions.
 */
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "src/conf/conf_number.h"

struct unit {
	struct str name;
	uint64_t factor;
};

/* From the largest to the smallest. */
static const struct unit durations[] = {
	{ { "d", 1 }, 86400000 },
	{ { "h", 1 }, 3600000 },
	{ { "m", 1 }, 60000 },
	{ { "s", 1 }, 1000 },
	{ { "ms", 2 }, 1 },
};

static const struct unit sizes[] = {
	{ { "T", 1 }, UINT64_C(1) << 40 },
	{ { "G", 1 }, UINT64_C(1) << 30 },
	{ { "M", 1 }, UINT64_C(1) << 20 },
	{ { "K", 1 }, UINT64_C(1) << 10 },
	{ { "", 0 }, 1 },
};

static int
parse_units(
    struct str text, const struct unit *units, size_t count, uint64_t *value)
{
	struct str digits = { text.ptr, 0 }, name;
	uint64_t number;

	while (digits.len < text.len && digits.ptr[digits.len] >= '0' &&
	       digits.ptr[digits.len] <= '9')
		digits.len++;
	name.ptr = text.ptr + digits.len;
	name.len = text.len - digits.len;
	if (str_to_u64(digits, INT64_MAX, &number) == -1)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (!str_eq(name, units[i].name))
			continue;
		if (__builtin_mul_overflow(number, units[i].factor, &number) ||
		    number > INT64_MAX)
			return -1;
		*value = number;
		return 0;
	}
	return -1;
}

int
conf_number_parse_duration(struct str text, int64_t *ms)
{
	uint64_t value;

	if (parse_units(text, durations, ARRAY_LEN(durations), &value) == -1)
		return -1;
	*ms = (int64_t)value;
	return 0;
}

int
conf_number_parse_bytes(struct str text, uint64_t *bytes)
{
	return parse_units(text, sizes, ARRAY_LEN(sizes), bytes);
}

static void
put_units(struct strbuf *to, const struct unit *units, uint64_t value)
{
	while (value % units->factor != 0)
		units++;
	strbuf_printf(to, "%" PRIu64, value / units->factor);
	strbuf_add(to, units->name.ptr, units->name.len);
}

void
conf_number_put_duration(struct strbuf *to, int64_t ms)
{
	if (ms == 0)
		strbuf_add_text(to, "0s");
	else
		put_units(to, durations, (uint64_t)ms);
}

void
conf_number_put_bytes(struct strbuf *to, uint64_t bytes)
{
	if (bytes == 0)
		strbuf_add_text(to, "0");
	else
		put_units(to, sizes, bytes);
}

struct named {
	const char *name;
	int number;
};

static const struct named signals[] = {
	{ "TERM", SIGTERM },
	{ "INT", SIGINT },
	{ "QUIT", SIGQUIT },
	{ "HUP", SIGHUP },
	{ "USR1", SIGUSR1 },
	{ "USR2", SIGUSR2 },
	{ "WINCH", SIGWINCH },
	{ "KILL", SIGKILL },
};

static const struct named rlimits[] = {
	{ "nofile", RLIMIT_NOFILE },
	{ "nproc", RLIMIT_NPROC },
	{ "core", RLIMIT_CORE },
	{ "as", RLIMIT_AS },
	{ "data", RLIMIT_DATA },
	{ "stack", RLIMIT_STACK },
	{ "fsize", RLIMIT_FSIZE },
	{ "memlock", RLIMIT_MEMLOCK },
	{ "cpu", RLIMIT_CPU },
};

int
conf_number_signal(const char *name)
{
	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		if (strcmp(signals[i].name, name) == 0)
			return signals[i].number;
	}
	return 0;
}

const char *
conf_number_signal_name(int signal)
{
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		if (signals[i].number == signal)
			return signals[i].name;
	}
	return NULL;
}

int
conf_number_rlimit(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(rlimits); i++) {
		if (strcmp(rlimits[i].name, name) == 0)
			return rlimits[i].number;
	}
	return -1;
}

const char *
conf_number_rlimit_name(int resource)
{
	for (size_t i = 0; i < ARRAY_LEN(rlimits); i++) {
		if (rlimits[i].number == resource)
			return rlimits[i].name;
	}
	return NULL;
}
