/*
 * Fuzzes targets and hosts: normal form, encoding, patterns, prefixes.
 * Invariants: a normal path has nothing to resolve and, encoded and normalised
 * again, is itself; a host taken apart is itself the next time.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/http/uri.h"
#include "t/fuzz/require.h"

#define SIZE_MAX_INPUT 1024

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
check_normal(struct str path)
{
	size_t start = 1;

	REQUIRE(path.len > 0 && path.ptr[0] == '/');
	for (size_t i = 1; i <= path.len; i++) {
		unsigned char c = '/';
		struct str segment;

		if (i < path.len)
			c = (unsigned char)path.ptr[i];
		REQUIRE(c >= ' ' && c != 0x7f);
		if (c != '/')
			continue;
		segment = (struct str){ path.ptr + start, i - start };
		REQUIRE(segment.len > 0 || i == path.len);
		REQUIRE(!str_eq(segment, STR(".")));
		REQUIRE(!str_eq(segment, STR("..")));
		start = i + 1;
	}
}

static void
check_path(struct str raw)
{
	static char to[SIZE_MAX_INPUT], coded[SIZE_MAX_INPUT * 3];
	static char again[SIZE_MAX_INPUT * 3];
	struct str normal, second;
	size_t len;

	if (uri_normalize(raw, to, raw.len, &normal) != URI_OK)
		return;
	REQUIRE(normal.len <= raw.len);
	check_normal(normal);
	len = uri_encode_path(normal, coded, sizeof(coded));
	REQUIRE(len <= sizeof(coded));
	REQUIRE(uri_normalize((struct str){ coded, len }, again, sizeof(again),
		    &second) == URI_OK);
	REQUIRE(str_eq(second, normal));
	/* A '*' of the path is a pattern's star then, and still fits. */
	REQUIRE(uri_match(normal, normal));
	REQUIRE(uri_match(STR("/*"), normal));
}

static void
check_prefix(struct str target)
{
	struct str prefix = target, rest;

	for (prefix.len = 0; prefix.len <= target.len && prefix.len < 16;
	     prefix.len++) {
		if (uri_strip_prefix(target, prefix, &rest) == -1)
			continue;
		REQUIRE(rest.len > 0 && rest.ptr[0] == '/');
		REQUIRE(rest.len == 1 || rest.ptr[1] != '/');
		REQUIRE(rest.len <= target.len + 1);
		if (rest.len > 1)
			REQUIRE(str_ends_with(target, rest));
	}
}

static void
check_host(struct str value)
{
	static char to[SIZE_MAX_INPUT], again[SIZE_MAX_INPUT];
	struct str host, port, second, none;

	if (uri_host(value, to, sizeof(to), &host, &port) == -1) {
		REQUIRE(!uri_host_is_valid(value));
		return;
	}
	REQUIRE(uri_host_is_valid(value));
	REQUIRE(host.len > 0 && host.len <= value.len);
	REQUIRE(uri_host(host, again, sizeof(again), &second, &none) == 0);
	REQUIRE(str_eq(second, host) && none.len == 0);
	for (size_t i = 0; i < host.len; i++)
		REQUIRE(host.ptr[i] < 'A' || host.ptr[i] > 'Z');
	for (size_t i = 0; i < port.len; i++)
		REQUIRE(port.ptr[i] >= '0' && port.ptr[i] <= '9');
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char *copy;
	struct str text;

	if (size == 0 || size > SIZE_MAX_INPUT)
		return 0;
	copy = malloc(size);
	memcpy(copy, bytes, size);
	text = (struct str){ copy, size };
	check_path(text);
	check_prefix(text);
	check_host(text);
	/* Any pattern over any path ends. */
	(void)uri_match((struct str){ copy, size / 2 },
	    (struct str){ copy + size / 2, size - size / 2 });
	free(copy);
	return 0;
}
