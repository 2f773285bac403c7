/*
 * The daemon's own log: formats one line and writes it with one write(2).
 * Below everything else; called from any thread and process of the daemon.
 * Does not rotate, buffer or filter by subject.
 */
#include "src/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/compiler.h"

#define LINE_MAX_BYTES 4096

/* The one process-wide state: every function may log, and handing a logger
 * through all of them would say nothing. Written before threads start. */
static struct {
	const char *role;
	enum log_level level;
	int fd;
	_Atomic(log_take_cb *) take;
} sink = {
	.role = "scalwsd",
	.level = LOG_LEVEL_INFO,
	.fd = STDERR_FILENO,
};

static const char *const level_names[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARN] = "warn",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};

void
log_init(const char *role, enum log_level level, int fd)
{
	sink.role = role;
	sink.level = level;
	sink.fd = fd;
}

int
log_hand_to(log_take_cb *take)
{
	atomic_store(&sink.take, take);
	return sink.fd;
}

int
log_level_parse(const char *text, enum log_level *level)
{
	for (size_t i = 0; i < ARRAY_LEN(level_names); i++) {
		if (strcmp(text, level_names[i]) == 0) {
			*level = (enum log_level)i;
			return 0;
		}
	}
	return -1;
}

/* A line break or an escape sequence from a client must not forge a line; one
 * at the end of the text says nothing. Returns the new length of `line`; one
 * byte is left for the newline. */
static size_t
append_escaped(char line[LINE_MAX_BYTES], size_t len, const char *text)
{
	static const char digits[] = "0123456789abcdef";

	for (; *text != '\0'; text++) {
		unsigned char byte = (unsigned char)*text;
		bool control = byte < 0x20 || byte == 0x7f;

		if (byte == '\n' && text[1] == '\0')
			break;
		if (len + (control ? 4 : 1) > LINE_MAX_BYTES - 1)
			break;
		if (!control) {
			line[len++] = (char)byte;
			continue;
		}
		line[len++] = '\\';
		line[len++] = 'x';
		line[len++] = digits[byte >> 4];
		line[len++] = digits[byte & 15];
	}
	return len;
}

static void
write_line(const char *line, size_t len)
{
	log_take_cb *take = atomic_load(&sink.take);
	ssize_t done;

	if (take != NULL && take(line, len))
		return;
	/* A log that is full or gone must not stop the daemon. */
	do {
		done = write(sink.fd, line, len);
	} while (done == -1 && errno == EINTR);
}

static void PRINTF_LIKE(3, 0) emit(
    enum log_level level, const char *reason, const char *fmt, va_list args)
{
	char text[LINE_MAX_BYTES], line[LINE_MAX_BYTES];
	size_t len = CLOCK_ISO_LEN;
	int head;

	clock_put_iso(line, clock_wall_ms());
	head = snprintf(line + len, sizeof(line) - len,
	    " %s %s[%ld]: ", level_names[level], sink.role, (long)getpid());
	if (head < 0 || (size_t)head >= sizeof(line) - len)
		return;
	len += (size_t)head;
	if (vsnprintf(text, sizeof(text), fmt, args) < 0)
		return;
	len = append_escaped(line, len, text);
	if (reason != NULL) {
		len = append_escaped(line, len, ": ");
		len = append_escaped(line, len, reason);
	}
	line[len++] = '\n';
	write_line(line, len);
}

void
log_error(const char *fmt, ...)
{
	int saved = errno;
	va_list args;

	va_start(args, fmt);
	emit(LOG_LEVEL_ERROR, NULL, fmt, args);
	va_end(args);
	errno = saved;
}

void
log_warn(const char *fmt, ...)
{
	int saved = errno;
	va_list args;

	if (sink.level < LOG_LEVEL_WARN)
		return;
	va_start(args, fmt);
	emit(LOG_LEVEL_WARN, NULL, fmt, args);
	va_end(args);
	errno = saved;
}

void
log_info(const char *fmt, ...)
{
	int saved = errno;
	va_list args;

	if (sink.level < LOG_LEVEL_INFO)
		return;
	va_start(args, fmt);
	emit(LOG_LEVEL_INFO, NULL, fmt, args);
	va_end(args);
	errno = saved;
}

void
log_debug(const char *fmt, ...)
{
	int saved = errno;
	va_list args;

	if (sink.level < LOG_LEVEL_DEBUG)
		return;
	va_start(args, fmt);
	emit(LOG_LEVEL_DEBUG, NULL, fmt, args);
	va_end(args);
	errno = saved;
}

void
log_errno(const char *fmt, ...)
{
	int saved = errno;
	/* The GNU form writes nothing shared between threads. */
	char room[128];
	const char *reason = strerror_r(saved, room, sizeof(room));
	va_list args;

	va_start(args, fmt);
	emit(LOG_LEVEL_ERROR, reason, fmt, args);
	va_end(args);
	errno = saved;
}

bool
log_may(struct log_budget *budget, enum log_level level, int64_t now_ms)
{
	unsigned left_out;

	if (sink.level < level)
		return false;
	if (now_ms - budget->since_ms >= 1000) {
		left_out = budget->left_out;
		*budget = (struct log_budget){ .since_ms = now_ms };
		if (left_out > 0)
			log_warn("%u lines like the next one were left out",
			    left_out);
	}
	if (budget->lines >= LOG_BUDGET_LINES) {
		budget->left_out++;
		return false;
	}
	budget->lines++;
	return true;
}
