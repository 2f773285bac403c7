/*
 * Targets and hosts: their one normal form, and patterns over it.
 * Between the head as it came and routes, files and the target sent on.
 * Never changes the target that is forwarded by itself.
 */
#include "proxy/http/uri.h"

#include <arpa/inet.h>
#include <string.h>

#include "proxy/http/chars.h"

/* --- normal form --------------------------------------------------------- */

static bool
is_end_or_slash(struct str path, size_t i)
{
	return i == path.len || path.ptr[i] == '/';
}

/* Is the segment that begins at i "." or ".."? */
static bool
is_dots(struct str path, size_t i)
{
	if (i == path.len || path.ptr[i] != '.')
		return false;
	if (is_end_or_slash(path, i + 1))
		return true;
	return path.ptr[i + 1] == '.' && is_end_or_slash(path, i + 2);
}

/* How much of the path is normal: up to the slash before an odd segment, or
 * to an escape or a byte that may not be there. */
static size_t
normal_span(struct str path)
{
	size_t i = 0;

	for (; i < path.len; i++) {
		char c = path.ptr[i];

		if (c == '/') {
			if (i + 1 < path.len &&
			    (path.ptr[i + 1] == '/' || is_dots(path, i + 1)))
				break;
		} else if (!char_is(c, CHAR_PATH) || c == '%') {
			break;
		}
	}
	return i;
}

/* One byte of a path, decoded: returns how many bytes it took, 0 when it is
 * not valid. */
static size_t
decode(struct str path, size_t i, unsigned char *byte)
{
	int high, low;

	if (path.ptr[i] != '%') {
		*byte = (unsigned char)path.ptr[i];
		return char_is(path.ptr[i], CHAR_PATH) ? 1 : 0;
	}
	if (path.len - i < 3)
		return 0;
	high = char_hex(path.ptr[i + 1]);
	low = char_hex(path.ptr[i + 2]);
	if (high < 0 || low < 0)
		return 0;
	*byte = (unsigned char)(high << 4 | low);
	return *byte < 0x20 || *byte == 0x7f ? 0 : 3;
}

/* Would a '%' decoded before i look like an escape that stays? */
static bool
looks_kept(struct str path, size_t i)
{
	unsigned char first, second;
	size_t width;

	if (i >= path.len || decode(path, i, &first) == 0 || first != '2')
		return false;
	width = path.ptr[i] == '%' ? 3 : 1;
	if (i + width >= path.len || decode(path, i + width, &second) == 0)
		return false;
	return second == 'F' || second == 'f' || second == '5';
}

/* Put what stands at i to `to`, at most as long as it was. Returns how many
 * bytes were used up, 0: not valid. */
static size_t
put_decoded(struct str path, size_t i, char *to, size_t *len)
{
	unsigned char byte = 0;
	size_t width = decode(path, i, &byte);

	if (width == 3 && byte == '/') {
		memcpy(to + *len, "%2F", 3);
		*len += 3;
	} else if (width == 3 && byte == '%' && looks_kept(path, i + 3)) {
		memcpy(to + *len, "%25", 3);
		*len += 3;
	} else if (width > 0) {
		to[(*len)++] = (char)byte;
	}
	return width;
}

/* The segment to[start..*len) is whole, a slash stands before it; `is_last`:
 * none behind it. Returns 0, or -1: above the root. */
static int
end_segment(char *to, size_t start, size_t *len, bool is_last)
{
	size_t size = *len - start;

	if (size == 0)
		return 0;
	if (size == 1 && to[start] == '.') {
		*len = start;
		return 0;
	}
	if (size == 2 && to[start] == '.' && to[start + 1] == '.') {
		if (start == 1)
			return -1;
		start--;
		while (to[start - 1] != '/')
			start--;
		*len = start;
		return 0;
	}
	if (!is_last)
		to[(*len)++] = '/';
	return 0;
}

enum uri_result
uri_normalize(struct str path, char *to, size_t room, struct str *normal)
{
	size_t i = 1, len = 1, start;

	if (path.len == 0 || path.ptr[0] != '/')
		return URI_BAD;
	if (normal_span(path) == path.len) {
		*normal = path;
		return URI_OK;
	}
	if (room < path.len)
		return URI_BAD;
	to[0] = '/';
	do {
		start = len;
		while (i < path.len && path.ptr[i] != '/') {
			size_t width = put_decoded(path, i, to, &len);

			if (width == 0)
				return URI_BAD;
			i += width;
		}
		if (end_segment(to, start, &len, i == path.len) == -1)
			return URI_BAD;
	} while (i++ < path.len);
	*normal = (struct str){ to, len };
	return URI_OK;
}

/* --- hosts --------------------------------------------------------------- */

#define HOST_MAX 255

/* The length of the name that `text` begins with; 0: none. Labels are not
 * empty; one dot may stand at the end. */
static size_t
name_span(struct str text)
{
	size_t i = 0, label;

	do {
		label = i;
		while (i < text.len && char_is(text.ptr[i], CHAR_HOST))
			i++;
		if (i == label &&
		    (label == 0 || (i < text.len && text.ptr[i] != ':')))
			return 0;
	} while (i > label && i < text.len && text.ptr[i] == '.' && ++i);
	return i > HOST_MAX ? 0 : i;
}

/* With its brackets. */
static bool
is_ipv6(struct str text)
{
	char copy[INET6_ADDRSTRLEN];
	struct in6_addr address;

	if (text.len < 4 || text.len - 2 >= sizeof(copy) ||
	    text.ptr[text.len - 1] != ']' ||
	    memchr(text.ptr, '\0', text.len) != NULL)
		return false;
	memcpy(copy, text.ptr + 1, text.len - 2);
	copy[text.len - 2] = '\0';
	return inet_pton(AF_INET6, copy, &address) == 1;
}

/* The length of the host that `value` begins with; 0: none. */
static size_t
host_span(struct str value)
{
	const char *end;

	if (value.len == 0 || value.ptr[0] != '[')
		return name_span(value);
	end = memchr(value.ptr, ']', value.len);
	if (end == NULL)
		return 0;
	value.len = (size_t)(end + 1 - value.ptr);
	return is_ipv6(value) ? value.len : 0;
}

/* The two views; false when the value is not valid. */
static bool
take_apart(struct str value, struct str *host, struct str *port)
{
	uint64_t number;

	*host = (struct str){ value.ptr, host_span(value) };
	*port = (struct str){ NULL, 0 };
	if (host->len == 0)
		return false;
	if (host->len == value.len)
		return true;
	if (value.ptr[host->len] != ':')
		return false;
	port->ptr = value.ptr + host->len + 1;
	port->len = value.len - host->len - 1;
	return port->len == 0 || str_to_u64(*port, 65535, &number) == 0;
}

bool
uri_host_is_valid(struct str value)
{
	struct str host, port;

	return take_apart(value, &host, &port);
}

int
uri_host(
    struct str value, char *to, size_t room, struct str *host, struct str *port)
{
	struct str view;

	if (!take_apart(value, &view, port))
		return -1;
	if (view.len > 1 && view.ptr[view.len - 1] == '.')
		view.len--;
	if (view.len > room)
		return -1;
	str_lower(to, view.ptr, view.len);
	*host = (struct str){ to, view.len };
	return 0;
}

/* --- patterns ------------------------------------------------------------ */

/* '*' stands for any bytes, none too. When the text does not fit behind the
 * last '*', that one takes a byte more: no other need be tried again. */
static bool
fits(struct str pattern, struct str text)
{
	size_t p = 0, t = 0, star = 0, resume = 0;
	bool has_star = false;

	while (t < text.len) {
		if (p < pattern.len && pattern.ptr[p] == '*') {
			has_star = true;
			star = ++p;
			resume = t;
		} else if (p < pattern.len && pattern.ptr[p] == text.ptr[t]) {
			p++;
			t++;
		} else if (has_star) {
			p = star;
			t = ++resume;
		} else {
			return false;
		}
	}
	while (p < pattern.len && pattern.ptr[p] == '*')
		p++;
	return p == pattern.len;
}

bool
uri_match(struct str pattern, struct str path)
{
	if (pattern.len == 1 && pattern.ptr[0] == '*')
		return true;
	if (pattern.len >= 2 &&
	    memcmp(pattern.ptr + pattern.len - 2, "/*", 2) == 0 &&
	    fits((struct str){ pattern.ptr, pattern.len - 2 }, path))
		return true;
	return fits(pattern, path);
}

/* --- targets sent on ----------------------------------------------------- */

/* Is there a segment that is "." or "..", escaped or not? */
static bool
has_dot_segment(struct str path)
{
	struct str segment;

	while (str_split(&path, '/', &segment)) {
		size_t dots = 0, i = 0;

		while (i < segment.len) {
			if (segment.ptr[i] == '.')
				i++;
			else if (segment.len - i >= 3 &&
				 str_eq_nocase(
				     (struct str){ segment.ptr + i, 3 },
				     STR("%2e")))
				i += 3;
			else
				break;
			dots++;
		}
		if (i == segment.len && (dots == 1 || dots == 2))
			return true;
	}
	return false;
}

int
uri_strip_prefix(struct str target, struct str prefix, struct str *rest)
{
	const char *query;
	struct str path;

	if (prefix.len > 0 && prefix.ptr[prefix.len - 1] == '/')
		prefix.len--;
	if (!str_starts_with(target, prefix))
		return -1;
	target.ptr += prefix.len;
	target.len -= prefix.len;
	if (target.len == 0) {
		*rest = STR("/");
		return 0;
	}
	if (target.ptr[0] != '/')
		return -1;
	query = memchr(target.ptr, '?', target.len);
	path = target;
	if (query != NULL)
		path.len = (size_t)(query - target.ptr);
	if ((path.len > 1 && path.ptr[1] == '/') || has_dot_segment(path))
		return -1;
	*rest = target;
	return 0;
}

static bool
is_kept_escape(struct str path, size_t i)
{
	return path.len - i >= 3 && path.ptr[i + 1] == '2' &&
	       (path.ptr[i + 2] == 'F' || path.ptr[i + 2] == '5');
}

size_t
uri_encode_path(struct str path, char *to, size_t room)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t len = 0;

	for (size_t i = 0; i < path.len; i++) {
		unsigned char byte = (unsigned char)path.ptr[i];
		bool as_is = byte == '%' ? is_kept_escape(path, i)
					 : char_is(path.ptr[i], CHAR_PCHAR);

		if (room - len < (as_is ? 1u : 3u))
			return room + 1;
		if (as_is) {
			to[len++] = (char)byte;
			continue;
		}
		to[len++] = '%';
		to[len++] = digits[byte >> 4];
		to[len++] = digits[byte & 15];
	}
	return len;
}
