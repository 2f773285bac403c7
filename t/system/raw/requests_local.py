"""Request rows: answers that the proxy gives itself, whose request bodies
nobody reads; and prefixes that are stripped."""
from raw.requests_body import HELLO, wants
from raw.rows import (CLOSED, EITHER, HOST, Outcome, Pause, Await, declined,
                      get, local, passes, row, several)

UNREAD = "RFC 9112 9.3"
SMUGGLE = "RFC 9112 11.2"
EXPECT = "RFC 9110 10.1.1"
DOTS = "RFC 3986 5.2.4"
TARGET = "RFC 9112 3.2.1"

# What is configured: "/local/*" responds 200, "/strip/*" goes to the origin
# without "/strip".


def post(fields=b"", body=b""):
    return b"POST /local HTTP/1.1\r\n" + HOST + fields + b"\r\n" + body


CLOSES = Outcome((200,), CLOSED, ())


def in_step(name, request, rfc=UNREAD):
    """The body is skipped, or the connection ends: never is it read as a
    request."""
    return row("local-" + name, rfc, request + get(target=b"/2"),
               several((200, 200), wants(b"/2")), CLOSES)


TE = b"Transfer-Encoding: chunked\r\n"
EVIL = get(target=b"/evil")

LOCAL = [
    row("local-get", UNREAD, get(target=b"/local"), local(200)),
    row("local-head", "RFC 9110 9.3.2",
        b"HEAD /local HTTP/1.1\r\n" + HOST + b"\r\n", local(200),
        heads=(0,)),
    row("local-1.0", "RFC 9112 9.3",
        b"GET /local HTTP/1.0\r\n" + HOST + b"\r\n", CLOSES, http10=True),
    row("local-1.0-keep-alive", "RFC 9112 9.3",
        b"GET /local HTTP/1.0\r\n" + HOST + b"Connection: keep-alive\r\n\r\n",
        local(200), http10=True),
    row("local-close", "RFC 9112 9.6",
        get(b"Connection: close\r\n", b"/local") + EVIL, CLOSES),
    row("local-pipelined", "RFC 9112 9.3.2",
        get(target=b"/local") * 30 + get(target=b"/2"),
        several((200,) * 31, wants(b"/2"))),
    row("local-between", "RFC 9112 9.3.2",
        get(target=b"/1") + get(target=b"/local") + get(target=b"/2"),
        several((200, 200, 200), wants(b"/1", b"/2"))),
    in_step("length", post(b"Content-Length: 5\r\n", b"hello")),
    in_step("length-with-get",
            get(b"Content-Length: 5\r\n", b"/local", b"hello")),
    in_step("body-is-a-request",
            post(b"Content-Length: %d\r\n" % len(EVIL), EVIL), SMUGGLE),
    in_step("chunked", post(TE, HELLO)),
    in_step("chunked-is-a-request",
            post(TE, b"%x\r\n%s\r\n0\r\n\r\n" % (len(EVIL), EVIL)), SMUGGLE),
    in_step("chunked-trailers", post(TE, HELLO[:-2] + b"X: y\r\n\r\n")),
    in_step("length-30000", post(b"Content-Length: 30000\r\n", b"x" * 30000)),
    in_step("length-300000",
            post(b"Content-Length: 300000\r\n", b"x" * 300000)),
    in_step("chunked-300000",
            post(TE, b"493e0\r\n" + b"x" * 300000 + b"\r\n0\r\n\r\n")),
    row("local-body-in-pieces", UNREAD,
        (post(b"Content-Length: 5\r\n", b"he"), Await(1), b"l", Pause(),
         b"lo" + get(target=b"/2")),
        several((200, 200), wants(b"/2")), CLOSES),
    row("local-body-late-is-a-request", SMUGGLE,
        (post(b"Content-Length: %d\r\n" % len(EVIL)), Await(1), EVIL),
        Outcome((200,), EITHER, ())),
    row("local-body-missing", UNREAD, post(b"Content-Length: 900000\r\n"),
        Outcome((200,), EITHER, ())),
    row("local-bad-chunk", SMUGGLE, post(TE, b"x\r\n") + EVIL, CLOSES,
        Outcome((400,), CLOSED, ())),
    row("local-bad-chunk-end", SMUGGLE,
        post(TE, b"5\r\nhelloXX0\r\n\r\n") + EVIL, CLOSES,
        Outcome((400,), CLOSED, ())),
    row("local-bad-trailer", SMUGGLE,
        post(TE, b"0\r\nGET /evil HTTP/1.1\r\nHost: t.example\r\n\r\n"),
        CLOSES, Outcome((400,), CLOSED, ())),
    row("local-both-lengths", SMUGGLE,
        post(TE + b"Content-Length: 5\r\n", HELLO),
        Outcome((400,), CLOSED, ())),
    row("local-expect-no-body", EXPECT,
        (post(b"Expect: 100-continue\r\nContent-Length: %d\r\n" % len(EVIL)),
         Await(1), EVIL), CLOSES),
    row("local-expect-chunked", EXPECT,
        (post(b"Expect: 100-continue\r\n" + TE), Await(1), EVIL), CLOSES),
    row("local-over-limit", "RFC 9110 15.5.14",
        post(b"Content-Length: 1048577\r\n"), CLOSES,
        Outcome((413,), CLOSED, ())),
]


def stripped(name, target, *seen, rfc=TARGET):
    return row("strip-" + name, rfc, get(target=target),
               *(passes(b"GET " + t + b" HTTP/1.1") for t in seen))


STRIP = [
    stripped("path", b"/strip/a/b", b"/a/b"),
    stripped("alone", b"/strip", b"/"),
    stripped("slash", b"/strip/", b"/"),
    stripped("query", b"/strip/a?b=/strip", b"/a?b=/strip"),
    stripped("query-alone", b"/strip?b", b"/?b"),
    stripped("not-a-segment", b"/stripped/a", b"/stripped/a"),
    stripped("escapes-stay", b"/strip/%41%2Fb%20c", b"/%41%2Fb%20c"),
    stripped("written-encoded", b"/%73trip/a", b"/a"),
    stripped("written-encoded-all", b"/%73%74%72%69%70/%61", b"/a", b"/%61"),
    stripped("two-slashes", b"/strip//a", b"/a"),
    stripped("two-slashes-before", b"//strip/a", b"/a"),
    stripped("no-other-host", b"/strip//evil.example/a", b"/evil.example/a"),
    stripped("dots-inside", b"/strip/a/../b", b"/b", b"/a/../b", rfc=DOTS),
    stripped("dots-into", b"/x/../strip/a", b"/a", rfc=DOTS),
    stripped("dots-out", b"/strip/../a", b"/strip/../a", b"/a", rfc=DOTS),
    stripped("dots-out-encoded", b"/strip/%2e%2e/a", b"/strip/%2e%2e/a",
             b"/a", rfc=DOTS),
    stripped("dots-behind-slash", b"/strip/./a", b"/a", b"/./a", rfc=DOTS),
    stripped("absolute-form", b"http://t.example/strip/a", b"/a"),
    row("strip-dots-above", DOTS, get(target=b"/strip/../../a"), declined()),
    row("strip-encoded-dots-above", DOTS,
        get(target=b"/strip/%2e%2e%2f%2e%2e/a"),
        passes(b"GET /%2e%2e%2f%2e%2e/a HTTP/1.1"),
        passes(b"GET /..%2F../a HTTP/1.1"), declined(400, 404)),
    row("strip-prefix-forged", "RFC 7239 8.1",
        get(b"X-Forwarded-Prefix: /evil\r\n", b"/strip/a"),
        passes(b"GET /a HTTP/1.1", (b"x-forwarded-prefix", b"/strip"))),
    row("strip-prefix-told", TARGET, get(target=b"/strip/a"),
        passes(b"GET /a HTTP/1.1", (b"x-forwarded-prefix", b"/strip"))),
]

ROWS = LOCAL + STRIP
