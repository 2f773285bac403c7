/*
 * Socket addresses as values, and address ranges.
 * Literal addresses only: no resolver behind it. Pure functions, any thread.
 */
#ifndef BASE_ADDR_H
#define BASE_ADDR_H

#include <stdbool.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "src/base/compiler.h"
#include "src/base/str.h"

struct addr {
	socklen_t len; /* 0: no address */
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_un un;
	} u;
};

enum addr_error {
	ADDR_OK,
	ADDR_BAD,      /* no address in any form we know */
	ADDR_NAME,     /* a host name: not supported */
	ADDR_BAD_PORT, /* no port, or outside 1-65535 */
	ADDR_TOO_LONG, /* a unix path over 107 bytes */
};

/* "10.0.0.5:80", "[::1]:80", "unix:/run/x.sock" or "/run/x.sock". */
enum addr_error addr_parse(struct str text, struct addr *addr) MUST_CHECK;
/* A unix address; -1 when the path does not fit. */
int addr_unix(const char *path, struct addr *addr) MUST_CHECK;

#define ADDR_TEXT_MAX 128
/* "10.0.0.5:80", "[::1]:80", "unix:/path", NUL-terminated; returns `to`.
 * An IPv4-mapped IPv6 address is written as IPv4. */
const char *addr_format(const struct addr *addr, char to[ADDR_TEXT_MAX]);
/* The host part alone, without port and brackets; "unix" for a unix socket.
 * Returns the length. */
size_t addr_format_host(const struct addr *addr, char to[ADDR_TEXT_MAX]);
/* 0 for a unix socket. */
uint16_t addr_port(const struct addr *addr);
bool addr_eq(const struct addr *a, const struct addr *b);
/* A hash of the host part (IPv6: its /64): the key for fairness between
 * clients. */
uint64_t addr_hash_client(const struct addr *addr);

/* 10.0.0.0/8, ::1, fd00::/8, or "unix" for every unix peer. */
struct addr_range {
	uint8_t family; /* AF_INET, AF_INET6, AF_UNIX */
	uint8_t bits;
	uint8_t bytes[16];
};
int addr_range_parse(struct str text, struct addr_range *range) MUST_CHECK;
/* IPv4-mapped addresses match IPv4 ranges. */
bool addr_in_range(const struct addr *addr, const struct addr_range *range);
/* An address without port, as it stands in X-Forwarded-For. */
int addr_parse_host(struct str text, struct addr *addr) MUST_CHECK;

#endif
