/*
 * One line of the access log: combined or JSON, escaped.
 * Pure: a request in, text out. Every byte of a client is hostile here: it must
 * not end a line, a quoted text or a terminal's patience.
 */
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "proxy/core/access_log.h"
#include "proxy/core/request.h"
#include "proxy/core/snapshot.h"
#include "src/base/clock.h"

/* Source bytes that are looked at; each may become six. The sum of all, six
 * times, and the fixed text stay below ACCESS_LOG_LINE_MAX. */
#define TARGET_MAX 4096
#define FIELD_MAX 1024
#define NAME_MAX_BYTES 200

/* Where the line grows; the caps above bound it. */
struct line {
	char *at;
};

static inline void
put(struct line *line, const char *from, size_t len)
{
	memcpy(line->at, from, len);
	line->at += len;
}

static inline void
put_text(struct line *line, const char *text)
{
	put(line, text, strlen(text));
}

static void
put_number(struct line *line, uint64_t value)
{
	line->at += str_put_u64(line->at, value);
}

static struct str
capped(struct str text, size_t max)
{
	return text.len <= max ? text : (struct str){ text.ptr, max };
}

static struct str
field(const struct request *request, enum header_id id)
{
	const struct header_field *found;

	/* A head that was refused has no table to look at. */
	if (request->method.len == 0)
		return STR("");
	found = header_get(&request->head.headers, id);
	return found == NULL ? STR("") : header_value(request->base, found);
}

static void
put_hex_byte(struct line *line, const char *before, unsigned char byte)
{
	static const char digits[] = "0123456789abcdef";

	put_text(line, before);
	*line->at++ = digits[byte >> 4];
	*line->at++ = digits[byte & 15];
}

static void
put_address(struct line *line, const struct addr *addr)
{
	char text[ADDR_TEXT_MAX];

	put(line, text, addr_format_host(addr, text));
}

/* ---- combined ---- */

/* Bytes that stand for themselves in both formats: printable, no quote and no
 * backslash. */
static const bool is_plain[256] = {
	[0x20 ... '"' - 1] = true,
	['"' + 1 ... '\\' - 1] = true,
	['\\' + 1 ... 0x7e] = true,
};

#ifdef __SSE2__
static bool
are_plain(__m128i bytes)
{
	/* Signed: what is 0x80 and above is below ' '. */
	__m128i low = _mm_cmplt_epi8(bytes, _mm_set1_epi8(' '));
	__m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
	__m128i slash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
	__m128i del = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f));

	return _mm_movemask_epi8(_mm_or_si128(
		   _mm_or_si128(low, quote), _mm_or_si128(slash, del))) == 0;
}
#endif

/* Up to the first byte that does not stand for itself; returns how many. */
static size_t
put_plain(struct line *line, const char *from, size_t len)
{
	char *to = line->at;
	size_t i = 0;

#ifdef __SSE2__
	for (; len - i >= 16; i += 16) {
		__m128i bytes =
		    _mm_loadu_si128((const __m128i *)(const void *)(from + i));

		if (!are_plain(bytes))
			break;
		_mm_storeu_si128((__m128i *)(void *)(to + i), bytes);
	}
#endif
	for (; i < len && is_plain[(unsigned char)from[i]]; i++)
		to[i] = from[i];
	line->at = to + i;
	return i;
}

static void
put_quoted(struct line *line, struct str text)
{
	for (size_t i = 0; i < text.len;) {
		i += put_plain(line, text.ptr + i, text.len - i);
		if (i == text.len)
			return;
		put_hex_byte(line, "\\x", (unsigned char)text.ptr[i++]);
	}
}

static void
put_quoted_or_dash(struct line *line, struct str text, size_t max)
{
	put_text(line, " \"");
	put_quoted(line, text.len == 0 ? STR("-") : capped(text, max));
	*line->at++ = '"';
}

/* A client that left before it got a head, as others show it too. */
#define STATUS_CLIENT_GONE 499

static unsigned
status_of(const struct request *request)
{
	return request->status == 0 ? STATUS_CLIENT_GONE : request->status;
}

static const char *
protocol_name(const struct request *request)
{
	if (request->method.len != 0 && request->head.minor == 0 &&
	    strcmp(request->front->name, "HTTP/1.1") == 0)
		return "HTTP/1.0";
	return request->front->name;
}

static void
put_combined(struct line *line, const struct request *request)
{
	put_address(line, &request->forwarded.client);
	put_text(line, " - - [");
	put(line, request->worker->clf_date, CLOCK_CLF_LEN);
	put_text(line, "] \"");
	if (request->method.len == 0) {
		*line->at++ = '-';
	} else {
		put_quoted(line, capped(request->method, NAME_MAX_BYTES));
		*line->at++ = ' ';
		put_quoted(line, capped(request->target, TARGET_MAX));
		*line->at++ = ' ';
		put_text(line, protocol_name(request));
	}
	put_text(line, "\" ");
	put_number(line, status_of(request));
	*line->at++ = ' ';
	put_number(line, request->bytes_sent);
	put_quoted_or_dash(line, field(request, HEADER_REFERER), FIELD_MAX);
	put_quoted_or_dash(line, field(request, HEADER_USER_AGENT), FIELD_MAX);
	*line->at++ = '\n';
}

/* ---- JSON ---- */

/* How many bytes of valid UTF-8 (RFC 3629) begin here, 0: none. */
static size_t
utf8_len(const unsigned char *at, size_t left)
{
	size_t n = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;

	if (at[0] < 0xc2 || at[0] > 0xf4 || left < n)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	if ((at[0] == 0xe0 && at[1] < 0xa0) ||
	    (at[0] == 0xed && at[1] > 0x9f) ||
	    (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return n;
}

static void
put_json_text(struct line *line, struct str text)
{
	for (size_t i = 0; i < text.len;) {
		const unsigned char *at;
		size_t n = 1;

		i += put_plain(line, text.ptr + i, text.len - i);
		if (i == text.len)
			return;
		at = (const unsigned char *)text.ptr + i;
		if (*at >= 0x80)
			n = utf8_len(at, text.len - i);
		if (n == 0 || *at < 0x20 || *at == 0x7f) {
			/* What is no text is shown as the code point with the
			 * byte's number. */
			put_hex_byte(line, "\\u00", *at);
			n = 1;
		} else {
			if (*at == '"' || *at == '\\')
				*line->at++ = '\\';
			put(line, (const char *)at, n);
		}
		i += n;
	}
}

static void
put_member(struct line *line, const char *name, struct str value, size_t max)
{
	put_text(line, ",\"");
	put_text(line, name);
	put_text(line, "\":\"");
	put_json_text(line, capped(value, max));
	*line->at++ = '"';
}

static void
put_number_member(struct line *line, const char *name, uint64_t value)
{
	put_text(line, ",\"");
	put_text(line, name);
	put_text(line, "\":");
	put_number(line, value);
}

static void
put_null(struct line *line, const char *name)
{
	put_text(line, ",\"");
	put_text(line, name);
	put_text(line, "\":null");
}

/* Milliseconds with three decimals; null when it did not happen. */
static void
put_span(struct line *line, const char *name, int64_t from_us, int64_t to_us)
{
	uint64_t span_us;

	if (from_us == 0 || to_us < from_us) {
		put_null(line, name);
		return;
	}
	span_us = (uint64_t)(to_us - from_us);
	put_number_member(line, name, span_us / 1000);
	*line->at++ = '.';
	*line->at++ = (char)('0' + span_us / 100 % 10);
	*line->at++ = (char)('0' + span_us / 10 % 10);
	*line->at++ = (char)('0' + span_us % 10);
}

static void
put_times(struct line *line, const struct request *request)
{
	const struct request_times *times = &request->times;

	put_span(line, "queue_ms", times->queued_us,
	    times->taken_us != 0 ? times->taken_us : times->end_us);
	put_span(line, "connect_ms", times->taken_us, times->connected_us);
	put_span(line, "first_byte_ms", times->start_us, times->first_byte_us);
	put_span(line, "total_ms", times->start_us, times->end_us);
}

static void
put_optional(struct line *line, const char *name, const char *value)
{
	if (value == NULL || value[0] == '\0')
		put_null(line, name);
	else
		put_member(line, name, str_of(value), NAME_MAX_BYTES);
}

/* Who answered; instance and pid are an app's alone. */
static void
put_upstream(struct line *line, const struct request *request)
{
	put_optional(line, "app", request->upstream_name);
	if (request->upstream_instance == 0) {
		put_null(line, "instance");
		put_null(line, "pid");
	} else {
		put_number_member(line, "instance", request->upstream_instance);
		put_number_member(line, "pid", request->upstream_pid);
	}
	put_number_member(line, "tries", request->tries);
}

/* Every line has every key. */
static void
put_json(struct line *line, const struct request *request)
{
	put_text(line, "{\"time\":\"");
	clock_put_iso(line->at, clock_wall_ms());
	line->at += CLOCK_ISO_LEN;
	put_text(line, "\",\"client\":\"");
	put_address(line, &request->forwarded.client);
	*line->at++ = '"';
	put_member(line, "method", request->method, NAME_MAX_BYTES);
	put_member(line, "target", request->target, TARGET_MAX);
	put_member(line, "host", request->host, NAME_MAX_BYTES);
	put_member(
	    line, "protocol", str_of(protocol_name(request)), NAME_MAX_BYTES);
	put_number_member(line, "status", status_of(request));
	put_number_member(line, "bytes", request->bytes_sent);
	put_number_member(line, "received", request->body_seen);
	put_times(line, request);
	if (request->site == NULL)
		put_null(line, "site");
	else
		put_member(line, "site", request->site->name, NAME_MAX_BYTES);
	put_upstream(line, request);
	put_optional(line, "request_id", request->id);
	put_member(line, "referer", field(request, HEADER_REFERER), FIELD_MAX);
	put_member(
	    line, "user_agent", field(request, HEADER_USER_AGENT), FIELD_MAX);
	put_optional(line, "why", request->why);
	put_text(line, "}\n");
}

size_t
access_log_format_line(enum conf_log_format format,
    const struct request *request, char to[ACCESS_LOG_LINE_MAX])
{
	struct line line = { to };

	if (format == CONF_LOG_JSON)
		put_json(&line, request);
	else
		put_combined(&line, request);
	return (size_t)(line.at - to);
}
