/*
 * Socket addresses as values: parse, write, compare, and address ranges.
 * For configuration, logs and trust decisions. Resolves no names.
 */
#include "src/base/addr.h"

#include <arpa/inet.h>
#include <string.h>

#include "src/base/hash.h"

#define HOST_MAX 64 /* longer than any literal IPv6 address */

/* inet_pton wants a NUL behind the text; a name that has one inside would be
 * cut there, so it is refused. */
static int
parse_literal(int family, struct str text, void *bytes)
{
	char host[HOST_MAX];

	if (text.len == 0 || text.len >= sizeof(host) ||
	    memchr(text.ptr, '\0', text.len) != NULL)
		return -1;
	memcpy(host, text.ptr, text.len);
	host[text.len] = '\0';
	return inet_pton(family, host, bytes) == 1 ? 0 : -1;
}

static int
parse_in(struct str host, uint16_t port, struct addr *addr)
{
	struct addr made = { .len = sizeof(made.u.in) };

	made.u.in.sin_family = AF_INET;
	made.u.in.sin_port = htons(port);
	if (parse_literal(AF_INET, host, &made.u.in.sin_addr) == -1)
		return -1;
	*addr = made;
	return 0;
}

static int
parse_in6(struct str host, uint16_t port, struct addr *addr)
{
	struct addr made = { .len = sizeof(made.u.in6) };

	made.u.in6.sin6_family = AF_INET6;
	made.u.in6.sin6_port = htons(port);
	if (parse_literal(AF_INET6, host, &made.u.in6.sin6_addr) == -1)
		return -1;
	*addr = made;
	return 0;
}

static enum addr_error
parse_unix(struct str path, struct addr *addr)
{
	struct addr made = { .len = 0 };

	if (path.len == 0 || path.ptr[0] != '/' ||
	    memchr(path.ptr, '\0', path.len) != NULL)
		return ADDR_BAD;
	if (path.len >= sizeof(made.u.un.sun_path))
		return ADDR_TOO_LONG;
	made.u.un.sun_family = AF_UNIX;
	memcpy(made.u.un.sun_path, path.ptr, path.len);
	made.len =
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.len + 1);
	*addr = made;
	return ADDR_OK;
}

int
addr_unix(const char *path, struct addr *addr)
{
	return parse_unix(str_of(path), addr) == ADDR_OK ? 0 : -1;
}

static bool
is_letter_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9');
}

/* Only digits and dots is a mistyped address, not a name. */
static bool
is_name(struct str host)
{
	bool letter = false;

	for (size_t i = 0; i < host.len; i++) {
		char c = host.ptr[i];

		if (!is_letter_or_digit(c) && c != '-' && c != '.' && c != '_')
			return false;
		letter = letter || !((c >= '0' && c <= '9') || c == '.');
	}
	return letter;
}

/* Cut "host:port" at the colon that ends the host. Without a colon the port is
 * {NULL, 0}. */
static void
cut_port(struct str text, struct str *host, struct str *port)
{
	size_t end = 0;

	if (text.len > 0 && text.ptr[0] == '[') {
		const char *close = memchr(text.ptr, ']', text.len);

		end = close == NULL ? text.len : (size_t)(close - text.ptr) + 1;
	} else {
		while (end < text.len && text.ptr[end] != ':')
			end++;
	}
	*host = (struct str){ text.ptr, end };
	*port = (struct str){ NULL, 0 };
	if (end < text.len)
		*port = (struct str){ text.ptr + end, text.len - end };
}

enum addr_error
addr_parse(struct str text, struct addr *addr)
{
	struct str host, port_text;
	uint64_t port = 0;
	bool bracketed, port_good = false;

	if (str_starts_with(text, STR("unix:")))
		return parse_unix(
		    (struct str){ text.ptr + 5, text.len - 5 }, addr);
	if (text.len > 0 && text.ptr[0] == '/')
		return parse_unix(text, addr);
	cut_port(text, &host, &port_text);
	if (port_text.len > 1 && port_text.ptr[0] == ':') {
		port_text.ptr++;
		port_text.len--;
		port_good =
		    str_to_u64(port_text, 65535, &port) == 0 && port >= 1;
	}
	bracketed = host.len >= 2 && host.ptr[0] == '[' &&
		    host.ptr[host.len - 1] == ']';
	if (bracketed) {
		host.ptr++;
		host.len -= 2;
	}
	if (bracketed ? parse_in6(host, (uint16_t)port, addr) == -1
		      : parse_in(host, (uint16_t)port, addr) == -1)
		return !bracketed && is_name(host) &&
			       (port_text.len == 0 || port_good)
			   ? ADDR_NAME
			   : ADDR_BAD;
	return port_good ? ADDR_OK : ADDR_BAD_PORT;
}

int
addr_parse_host(struct str text, struct addr *addr)
{
	if (text.len >= 2 && text.ptr[0] == '[') {
		if (text.ptr[text.len - 1] != ']')
			return -1;
		return parse_in6(
		    (struct str){ text.ptr + 1, text.len - 2 }, 0, addr);
	}
	if (parse_in(text, 0, addr) == 0)
		return 0;
	return parse_in6(text, 0, addr);
}

/* The family and bytes that people mean: an IPv4-mapped address is IPv4.
 * NULL for a unix socket or no address. */
static const uint8_t *
host_bytes(const struct addr *addr, int *family)
{
	const uint8_t *bytes;

	*family = addr->len == 0 ? AF_UNSPEC : addr->u.sa.sa_family;
	if (*family == AF_INET)
		return (const uint8_t *)&addr->u.in.sin_addr;
	if (*family != AF_INET6)
		return NULL;
	bytes = addr->u.in6.sin6_addr.s6_addr;
	if (!IN6_IS_ADDR_V4MAPPED(&addr->u.in6.sin6_addr))
		return bytes;
	*family = AF_INET;
	return bytes + 12;
}

static size_t
unix_path(const struct addr *addr, const char **path)
{
	size_t head = offsetof(struct sockaddr_un, sun_path);
	size_t max = addr->len > head ? addr->len - head : 0;

	if (max > sizeof(addr->u.un.sun_path))
		max = sizeof(addr->u.un.sun_path);
	*path = addr->u.un.sun_path;
	return strnlen(addr->u.un.sun_path, max);
}

/* inet_ntop goes by printf, which would cost a request more than its route. */
static size_t
put_in(const uint8_t bytes[4], char *to)
{
	char *at = to;

	for (int i = 0; i < 4; i++) {
		if (i > 0)
			*at++ = '.';
		if (bytes[i] >= 100)
			*at++ = (char)('0' + bytes[i] / 100);
		if (bytes[i] >= 10)
			*at++ = (char)('0' + bytes[i] / 10 % 10);
		*at++ = (char)('0' + bytes[i] % 10);
	}
	return (size_t)(at - to);
}

/* The longest run of zero words, the first of equals; 0 words: none that is
 * worth a "::" (RFC 5952 section 4.2). */
static int
longest_zeros(const unsigned words[8], int *first)
{
	int best = 0;

	for (int i = 0, run = 0; i < 8; i++) {
		run = words[i] == 0 ? run + 1 : 0;
		if (run > best) {
			best = run;
			*first = i + 1 - run;
		}
	}
	return best < 2 ? 0 : best;
}

static size_t
put_in6(const uint8_t bytes[16], char *to)
{
	unsigned words[8];
	int first = 0, zeros;
	char *at = to;

	for (size_t i = 0; i < 8; i++)
		words[i] = (unsigned)bytes[2 * i] << 8 | bytes[2 * i + 1];
	zeros = longest_zeros(words, &first);
	for (int i = 0; i < 8; i++) {
		if (zeros > 0 && i == first) {
			*at++ = ':';
			*at++ = ':';
			i += zeros - 1;
			continue;
		}
		if (i > 0 && at[-1] != ':')
			*at++ = ':';
		at += str_put_hex(at, words[i]);
	}
	return (size_t)(at - to);
}

/* The host part and a NUL, at most INET6_ADDRSTRLEN bytes. */
static size_t
put_host(const struct addr *addr, char *to)
{
	int family;
	const uint8_t *bytes = host_bytes(addr, &family);
	size_t len;

	if (bytes == NULL) {
		const char *name = family == AF_UNIX ? "unix" : "none";

		memcpy(to, name, 5);
		return 4;
	}
	len = family == AF_INET ? put_in(bytes, to) : put_in6(bytes, to);
	to[len] = '\0';
	return len;
}

const char *
addr_format(const struct addr *addr, char to[ADDR_TEXT_MAX])
{
	int family;
	const uint8_t *bytes = host_bytes(addr, &family);
	size_t len = 0;

	if (family == AF_UNIX) {
		const char *path;
		size_t path_len = unix_path(addr, &path);

		memcpy(to, "unix:", 5);
		memcpy(to + 5, path, path_len);
		to[5 + path_len] = '\0';
		return to;
	}
	if (bytes == NULL) {
		memcpy(to, "none", 5);
		return to;
	}
	if (family == AF_INET6)
		to[len++] = '[';
	len += put_host(addr, to + len);
	if (family == AF_INET6)
		to[len++] = ']';
	to[len++] = ':';
	len += str_put_u64(to + len, addr_port(addr));
	to[len] = '\0';
	return to;
}

size_t
addr_format_host(const struct addr *addr, char to[ADDR_TEXT_MAX])
{
	return put_host(addr, to);
}

uint16_t
addr_port(const struct addr *addr)
{
	if (addr->len == 0)
		return 0;
	if (addr->u.sa.sa_family == AF_INET)
		return ntohs(addr->u.in.sin_port);
	if (addr->u.sa.sa_family == AF_INET6)
		return ntohs(addr->u.in6.sin6_port);
	return 0;
}

bool
addr_eq(const struct addr *a, const struct addr *b)
{
	int a_family, b_family;
	const uint8_t *a_bytes = host_bytes(a, &a_family);
	const uint8_t *b_bytes = host_bytes(b, &b_family);
	size_t size = a_family == AF_INET ? 4 : 16;

	if (a_family != b_family)
		return false;
	if (a_family == AF_UNIX) {
		struct str a_path, b_path;

		a_path.len = unix_path(a, &a_path.ptr);
		b_path.len = unix_path(b, &b_path.ptr);
		return str_eq(a_path, b_path);
	}
	if (a_bytes == NULL)
		return true; /* both no address */
	return memcmp(a_bytes, b_bytes, size) == 0 &&
	       addr_port(a) == addr_port(b);
}

uint64_t
addr_hash_client(const struct addr *addr)
{
	int family;
	const uint8_t *bytes = host_bytes(addr, &family);

	if (bytes == NULL)
		return hash_bytes("unix", 4);
	/* One household or server has a whole /64. */
	return hash_bytes(bytes, family == AF_INET ? 4 : 8);
}

static bool
same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(a, b, whole) != 0)
		return false;
	return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

int
addr_range_parse(struct str text, struct addr_range *range)
{
	struct addr_range made = { .bits = 0 };
	struct str host, rest = text;
	struct addr addr;
	const uint8_t *bytes;
	uint64_t bits, mapped;
	int family;

	if (str_eq(text, STR("unix"))) {
		made.family = AF_UNIX;
		*range = made;
		return 0;
	}
	if (!str_split(&rest, '/', &host) || addr_parse_host(host, &addr) == -1)
		return -1;
	bytes = host_bytes(&addr, &family);
	/* ::ffff:10.0.0.0/104 is written for IPv4's 10.0.0.0/8. */
	mapped = addr.u.sa.sa_family == AF_INET6 && family == AF_INET ? 96 : 0;
	bits = family == AF_INET ? 32 + mapped : 128;
	if (rest.ptr != NULL && str_to_u64(rest, bits, &bits) == -1)
		return -1;
	if (bits < mapped)
		return -1;
	made.family = (uint8_t)family;
	made.bits = (uint8_t)(bits - mapped);
	memcpy(made.bytes, bytes, family == AF_INET ? 4 : 16);
	*range = made;
	return 0;
}

bool
addr_in_range(const struct addr *addr, const struct addr_range *range)
{
	int family;
	const uint8_t *bytes = host_bytes(addr, &family);

	if (family != range->family)
		return false;
	if (bytes == NULL)
		return family == AF_UNIX;
	return same_bits(bytes, range->bytes, range->bits);
}
