/*
 * Targets: one normal form of the path, for matching and for files.
 * What is forwarded is the original unless a route rewrites it. Pure.
 */
#ifndef HTTP_URI_H
#define HTTP_URI_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/compiler.h"
#include "src/base/str.h"

enum uri_result {
	URI_OK,
	URI_BAD, /* 400: bad escape, NUL or control (raw or encoded), above the
		  * root, no leading slash, bytes RFC 3986 section 3.3 forbids
		  * (but [ ] ^ | pass, as browsers send them) */
};

/* Percent-decode once, merge slashes, resolve dot segments (RFC 3986 section
 * 5.2.4; going above the root is an error). "%2F" stays encoded as "%2F", and a
 * backslash (encoded; raw it is an error) is an ordinary byte, so no decoding
 * makes a separator. "%25" stays as "%25" only where its decoding would make
 * "%2F" or "%25": in a normal path these two are what was encoded, and any
 * other
 * '%' is a percent sign. A path that needs none of that is returned as it is,
 * uncopied; else it is written to `to` (`room` at least path.len bytes).
 * *normal is the result. */
enum uri_result uri_normalize(
    struct str path, char *to, size_t room, struct str *normal) MUST_CHECK;

/* A Host value: a name of letters, digits and "-._~", an IPv4 address or
 * [IPv6], with optional port (RFC 9110 section 7.2; stricter than its reg-name:
 * no escapes, no "!$&'()*+,;=", no empty labels). */
bool uri_host_is_valid(struct str value);
/* The same, taken apart. Writes the host in lower case, without port and
 * without one final dot, to `to` (`room` bytes); IPv6 keeps its brackets.
 * `port` is a view, len 0: none. 0, or -1: not valid, or too long. */
int uri_host(struct str value, char *to, size_t room, struct str *host,
    struct str *port) MUST_CHECK;

/* Does the normalised path match the pattern (conf.h, struct conf_route)? */
bool uri_match(struct str pattern, struct str path);

/* The part of `target` ("/shop/cart?x=1", as it came) behind the prefix, which
 * ends at a segment boundary; always with a leading slash. Works on the
 * original bytes: -1 when its raw form does not begin with the prefix, when the
 * slash would have to be put in ("/shop?x=1"), or when what is left has dot
 * segments or begins with "//" (it would mean another path than the one that
 * was matched). Then the caller uses the normalised path, encoded again by
 * uri_encode_path. */
int uri_strip_prefix(
    struct str target, struct str prefix, struct str *rest) MUST_CHECK;
/* Percent-encode what a path may not hold ("%2F" kept by normalisation stays).
 * Returns the length, or `room` + 1 when it does not fit. */
size_t uri_encode_path(struct str path, char *to, size_t room);

#endif
