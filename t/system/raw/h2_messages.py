"""HTTP/2 rows: what makes a request malformed, and how a good one reaches the
origin as HTTP/1. Malformed is a stream error, never a page that says 400."""
from raw import h2_hpack as hpack
from raw import h2_wire as wire
from raw.h2_rows import (ANY, Outcome, Reset, Until, Upload, answered,
                         end_of, reset, row)
from raw.h2_wire import (AUTHORITY, ENHANCE_YOUR_CALM, NO_ERROR,
                         PROTOCOL_ERROR, REFUSED_STREAM, STREAM_CLOSED, get,
                         head, headers, post)
from raw.rows import NOTHING_WHOLE, POST, Want

PSEUDO = "RFC 9113 8.3"
REQUEST = "RFC 9113 8.3.1"
HOPS = "RFC 9113 8.2.2"
VALID = "RFC 9113 8.2.1"
WRONG = "RFC 9113 8.1.1"
FRAMES = "RFC 9113 8.1"
M, S, P, A = ((b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/"),
              (b":authority", AUTHORITY))


def malformed(name, rfc, *fields, also=()):
    return row(name, rfc, headers(1, hpack.block(*fields)), reset(), *also)


def field(name, rfc, *fields):
    """A good head and these behind it."""
    return malformed(name, rfc, M, S, P, A, *fields)


def path(name, value, *also):
    return malformed(f"path-{name}", REQUEST, M, S, (b":path", value), A,
                     also=also)


def refused(*statuses):
    """An answer of ours: it was no matter of HTTP/2."""
    return Outcome({1: set(statuses)}, origin=())


PSEUDOS = [
    malformed("method-missing", REQUEST, S, P, A),
    malformed("scheme-missing", REQUEST, M, P, A),
    malformed("path-missing", REQUEST, M, S, A),
    malformed("authority-and-host-missing", REQUEST, M, S, P,
              also=(refused(400),)),
    malformed("only-method", REQUEST, M),
    malformed("no-pseudo-field", REQUEST, (b"host", AUTHORITY)),
    malformed("method-twice", PSEUDO, M, M, S, P, A),
    malformed("method-twice-differing", PSEUDO, M, S, P, A,
              (b":method", b"POST")),
    malformed("scheme-twice", PSEUDO, M, S, S, P, A),
    malformed("path-twice", PSEUDO, M, S, P, P, A),
    malformed("path-twice-differing", PSEUDO, M, S, P, (b":path", b"/x"), A),
    malformed("authority-twice", PSEUDO, M, S, P, A, A),
    malformed("pseudo-unknown", PSEUDO, M, S, P, A, (b":foo", b"x")),
    malformed("pseudo-of-answers", PSEUDO, M, S, P, A, (b":status", b"200")),
    malformed("pseudo-empty-name", PSEUDO, M, S, P, A, (b":", b"x")),
    malformed("pseudo-in-upper-case", PSEUDO, (b":Method", b"GET"), S, P, A),
    malformed("pseudo-with-a-blank", PSEUDO, M, S, P, A, (b":path ", b"x")),
    malformed("pseudo-behind-a-field", PSEUDO, M, S, P, (b"x", b"1"), A),
    malformed("pseudo-all-behind-a-field", PSEUDO, (b"x", b"1"), M, S, P, A),
    malformed("protocol-without-connect", "RFC 8441 4", M,
              (b":protocol", b"websocket"), S, P, A),
    malformed("method-empty", REQUEST, (b":method", b""), S, P, A),
    malformed("method-with-a-blank", REQUEST, (b":method", b"GET /x"), S, P,
              A),
    malformed("method-with-crlf", REQUEST,
              (b":method", b"GET / HTTP/1.1\r\nx: y\r\n"), S, P, A),
    malformed("method-no-token", REQUEST, (b":method", b"G(T"), S, P, A),
    malformed("scheme-empty", REQUEST, M, (b":scheme", b""), P, A),
    malformed("scheme-no-scheme", REQUEST, M, (b":scheme", b"1 2"), P, A),
    malformed("scheme-with-crlf", REQUEST,
              M, (b":scheme", b"http\r\nx: y"), P, A),
    path("empty", b""),
    path("relative", b"index.html"),
    path("absolute-form", b"http://t.example/"),
    path("star-of-get", b"*"),
    path("with-a-blank", b"/a b"),
    path("with-version", b"/ HTTP/1.1\r\nx: y\r\n\r\nGET /evil"),
    path("with-cr", b"/a\rb"),
    path("with-lf", b"/a\nb"),
    path("with-nul", b"/a\0b"),
    path("with-tab", b"/a\tb"),
    path("with-del", b"/a\x7fb"),
    path("with-fragment", b"/a#b", refused(400)),
    path("blank-behind", b"/a "),
    malformed("authority-empty", REQUEST, M, S, P, (b":authority", b""),
              also=(refused(400),)),
    malformed("authority-with-userinfo", REQUEST, M, S, P,
              (b":authority", b"me@t.example"), also=(refused(400),)),
    malformed("authority-with-a-blank", REQUEST, M, S, P,
              (b":authority", b"t.example x")),
    malformed("authority-with-crlf", REQUEST, M, S, P,
              (b":authority", b"t.example\r\nx: y")),
    malformed("authority-with-nul", REQUEST, M, S, P,
              (b":authority", b"t.example\0")),
    malformed("authority-with-a-path", REQUEST, M, S, P,
              (b":authority", b"t.example/x"), also=(refused(400),)),
    malformed("authority-bad-port", REQUEST, M, S, P,
              (b":authority", b"t.example:99999"), also=(refused(400),)),
    field("host-differs", REQUEST, (b"host", b"other.example")),
    field("host-differs-in-port", REQUEST, (b"host", b"t.example:1")),
    malformed("host-twice", "RFC 9110 7.2", M, S, P, (b"host", AUTHORITY),
              (b"host", b"other.example"), also=(refused(400),)),
    malformed("host-with-crlf", VALID, M, S, P,
              (b"host", b"t.example\r\nx: y")),
    row("host-like-authority", REQUEST, get(1, b"/", (b"host", AUTHORITY)),
        answered(wants=Want(has=((b"host", AUTHORITY),)))),
    row("host-alone", REQUEST, headers(1, hpack.block(
        M, S, P, (b"host", AUTHORITY))),
        answered(wants=Want(has=((b"host", AUTHORITY),)))),
    row("authority-is-the-host", REQUEST, get(),
        answered(wants=Want(has=((b"host", AUTHORITY),)))),
    row("authority-in-upper-case", "RFC 9110 4.2.3",
        get(authority=b"T.EXAMPLE"), answered()),
    row("scheme-http", REQUEST, get(scheme=b"http"), answered()),
    row("scheme-https", REQUEST, get(scheme=b"https"), answered()),
    row("options-star", REQUEST, headers(1, head(b"OPTIONS", b"*")),
        Outcome({1: {200, 204, 400, 404, 405, 501}})),
    row("pseudo-in-another-order", PSEUDO,
        headers(1, hpack.block(A, P, M, S)), answered()),
]

CONNECT = [
    row("connect-plain", "RFC 9113 8.5",
        headers(1, hpack.block((b":method", b"CONNECT"), A), end=False),
        reset(PROTOCOL_ERROR, REFUSED_STREAM, wire.CONNECT_ERROR),
        refused(400, 403, 404, 405, 501)),
    malformed("connect-with-path", "RFC 9113 8.5",
              (b":method", b"CONNECT"), P, A),
    malformed("connect-with-scheme", "RFC 9113 8.5",
              (b":method", b"CONNECT"), S, A),
    malformed("connect-without-authority", "RFC 9113 8.5",
              (b":method", b"CONNECT")),
]

FIELDS = [
    field("connection", HOPS, (b"connection", b"close")),
    field("connection-keep-alive", HOPS, (b"connection", b"keep-alive")),
    field("connection-empty", HOPS, (b"connection", b"")),
    field("keep-alive", HOPS, (b"keep-alive", b"timeout=5")),
    field("proxy-connection", HOPS, (b"proxy-connection", b"keep-alive")),
    field("transfer-encoding", HOPS, (b"transfer-encoding", b"chunked")),
    field("transfer-encoding-identity", HOPS,
          (b"transfer-encoding", b"identity")),
    field("upgrade", HOPS, (b"upgrade", b"websocket")),
    field("te-gzip", HOPS, (b"te", b"gzip")),
    field("te-trailers-and-more", HOPS, (b"te", b"trailers, deflate")),
    field("te-empty", HOPS, (b"te", b"")),
    row("te-trailers", HOPS, get(1, b"/", (b"te", b"trailers")),
        answered(wants=Want(lacks=(b"te",)))),
    field("name-upper-case", VALID, (b"X-A", b"1")),
    field("name-last-letter-upper-case", VALID, (b"x-A", b"1")),
    field("name-empty", VALID, (b"", b"1")),
    field("name-with-a-blank", VALID, (b"x a", b"1")),
    field("name-blank-behind", VALID, (b"x-a ", b"1")),
    field("name-with-a-colon", VALID, (b"x:a", b"1")),
    field("name-with-cr", VALID, (b"x\ra", b"1")),
    field("name-with-lf", VALID, (b"x\na", b"1")),
    field("name-with-crlf", VALID, (b"x: y\r\na", b"1")),
    field("name-with-nul", VALID, (b"x\0a", b"1")),
    field("name-with-tab", VALID, (b"x\ta", b"1")),
    field("name-with-del", VALID, (b"x\x7fa", b"1")),
    field("name-with-high-bit", VALID, (b"x\xe4a", b"1")),
    field("name-no-token", VALID, (b"x(a", b"1")),
    field("value-with-cr", VALID, (b"x-a", b"1\r2")),
    field("value-with-lf", VALID, (b"x-a", b"1\n2")),
    field("value-with-crlf", VALID, (b"x-a", b"1\r\nx-evil: 2")),
    field("value-with-nul", VALID, (b"x-a", b"1\x002")),
    field("value-blank-before", VALID, (b"x-a", b" 1")),
    field("value-blank-behind", VALID, (b"x-a", b"1 ")),
    field("value-tab-before", VALID, (b"x-a", b"\t1")),
    field("value-tab-behind", VALID, (b"x-a", b"1\t")),
    field("value-crlf-behind", VALID, (b"x-a", b"1\r\n")),
    field("cookie-with-lf", VALID, (b"cookie", b"a=1\nb")),
    malformed("value-with-a-control", "RFC 9110 5.5", M, S, P, A,
              (b"x-a", b"1\x012"), also=(refused(400),)),
    malformed("value-with-del", "RFC 9110 5.5", M, S, P, A,
              (b"x-a", b"1\x7f2"), also=(refused(400),)),
    row("value-empty", VALID, get(1, b"/", (b"x-a", b"")),
        answered(wants=Want(has=((b"x-a", b""),)))),
    row("value-with-blanks-inside", VALID, get(1, b"/", (b"x-a", b"1 \t 2")),
        answered(wants=Want(has=((b"x-a", b"1 \t 2"),)))),
    row("field-twice", "RFC 9110 5.3",
        get(1, b"/", (b"x-a", b"1"), (b"x-a", b"2")),
        answered(wants=Want(has=((b"x-a", b"1"), (b"x-a", b"2"))))),
    row("cookie-crumbs", "RFC 9113 8.2.3",
        get(1, b"/", (b"cookie", b"a=1"), (b"x", b"y"), (b"cookie", b"b=2"),
            (b"cookie", b"c=3")),
        answered(wants=Want(has=((b"cookie", b"a=1; b=2; c=3"),)))),
    row("cookie-whole", "RFC 9113 8.2.3", get(1, b"/", (b"cookie", b"a; b")),
        answered(wants=Want(has=((b"cookie", b"a; b"),)))),
    row("forwarded-for-forged", "RFC 9113 10.3",
        get(1, b"/", (b"x-forwarded-for", b"9.9.9.9"),
            (b"x-forwarded-proto", b"gopher")),
        answered(wants=Want())),
]


def length(name, value, body, *outcomes, end=True):
    """A body of DATA frames under this Content-Length."""
    data = b"".join(wire.data(1, part, end and n == len(body) - 1)
                    for n, part in enumerate(body))
    return row(f"length-{name}", WRONG,
               post(1, b"/", (b"content-length", value)) + data,
               *(outcomes or (reset(origin=NOTHING_WHOLE),)))


def bad_length(name, value):
    return row(f"length-{name}", WRONG,
               post(1, b"/", (b"content-length", value)) +
               wire.data(1, b"hello", end=True), reset())


HELLO = answered(wants=Want(POST, body=b"hello",
                            has=((b"content-length", b"5"),)))
LENGTHS = [
    length("right", b"5", [b"hello"], HELLO),
    length("right-in-pieces", b"5", [b"h", b"", b"ell", b"o"], HELLO),
    length("right-end-alone", b"5", [b"hello", b""], HELLO),
    length("right-with-zeros", b"0005", [b"hello"],
           answered(wants=Want(POST, body=b"hello")), reset()),
    length("0", b"0", [b""], answered(wants=Want(POST))),
    row("length-0-no-data", WRONG, post(
        1, b"/", (b"content-length", b"0"), end=True),
        answered(wants=Want(POST))),
    length("too-long", b"6", [b"hello"]),
    length("too-long-in-pieces", b"6", [b"he", b"llo"]),
    length("too-long-by-much", b"600000", [b"hello"]),
    length("too-short", b"4", [b"hello"]),
    length("too-short-in-pieces", b"4", [b"he", b"llo"]),
    length("too-short-without-end", b"4", [b"hello"], end=False),
    # All of the length was there: that much may have been passed on.
    length("too-short-behind-the-end", b"5", [b"hello", b"!"],
           reset(origin=ANY), reset(origin=ANY, status=200)),
    # It was whole when its head was.
    length("of-a-body-for-0", b"0", [b"hello"], reset(origin=ANY)),
    row("length-without-a-body", WRONG,
        get(1, b"/", (b"content-length", b"5")), reset()),
    row("length-too-long-and-trailers", WRONG,
        post(1, b"/", (b"content-length", b"6")) + wire.data(1, b"hello") +
        headers(1, hpack.block((b"x-t", b"1"))),
        reset(origin=NOTHING_WHOLE)),
    row("length-twice-differing", WRONG,
        post(1, b"/", (b"content-length", b"5"), (b"content-length", b"6")) +
        wire.data(1, b"hello", end=True), reset()),
    row("length-twice-the-same", "RFC 9110 8.6",
        post(1, b"/", (b"content-length", b"5"), (b"content-length", b"5")) +
        wire.data(1, b"hello", end=True), reset(), HELLO),
    bad_length("negative", b"-5"),
    bad_length("plus", b"+5"),
    bad_length("hex", b"0x5"),
    bad_length("empty", b""),
    bad_length("list", b"5, 5"),
    bad_length("list-differing", b"5, 6"),
    bad_length("with-a-blank", b"5 5"),
    bad_length("fraction", b"5.0"),
    bad_length("of-64-bits", b"18446744073709551621"),
    bad_length("letters", b"five"),
    row("body-without-length", FRAMES,
        post() + wire.data(1, b"hello", end=True),
        answered(wants=Want(POST, body=b"hello"))),
    row("body-of-many-pieces", FRAMES,
        post() + b"".join(wire.data(1, b"%03d" % n) for n in range(300)) +
        wire.data(1, end=True),
        answered(wants=Want(POST, body=b"".join(
            b"%03d" % n for n in range(300))))),
    row("body-like-a-request", FRAMES,
        post() + wire.data(1, b"0\r\n\r\nGET /evil HTTP/1.1\r\n\r\n", True),
        answered(wants=Want(
            POST, body=b"0\r\n\r\nGET /evil HTTP/1.1\r\n\r\n"))),
    row("body-of-get", FRAMES,
        headers(1, head(), end=False) + wire.data(1, b"hello", end=True),
        answered(wants=Want(body=b"hello"))),
    row("body-empty", FRAMES, post() + wire.data(1, end=True),
        answered(wants=Want(POST))),
    row("body-on-two-streams", FRAMES,
        post(1, b"/a") + post(3, b"/b") + wire.data(3, b"3") +
        wire.data(1, b"1") + wire.data(3, b"3", end=True) +
        wire.data(1, b"1", end=True), answered(1, 3)),
]

T = hpack.block((b"x-t", b"1"))
BODY = post() + wire.data(1, b"hello")


def trailer(name, *fields):
    return row(f"trailers-{name}", FRAMES,
               BODY + headers(1, hpack.block(*fields)),
               reset(origin=NOTHING_WHOLE))


TRAILERS = [
    # Dropped, as those of HTTP/1.
    row("trailers", FRAMES, BODY + headers(1, T), answered(wants=Want(
        POST, body=b"hello", lacks=(b"x-t",)))),
    row("trailers-behind-no-data", FRAMES, post() + headers(1, T),
        answered(wants=Want(POST))),
    row("trailers-empty", FRAMES, BODY + headers(1, b""),
        answered(wants=Want(POST, body=b"hello"))),
    row("trailers-padded", FRAMES, BODY + headers(1, T, pad=3), answered()),
    row("trailers-under-a-length", FRAMES,
        post(1, b"/", (b"content-length", b"5")) + wire.data(1, b"hello") +
        headers(1, T), HELLO),
    row("trailers-without-end", FRAMES, BODY + headers(1, T, end=False),
        reset(origin=NOTHING_WHOLE)),
    row("trailers-and-then-data", FRAMES,
        BODY + headers(1, T) + wire.data(1, b"more", end=True),
        reset(STREAM_CLOSED, origin=ANY),
        reset(STREAM_CLOSED, origin=ANY, status=200),
        Outcome({1: 200}),
        Outcome({}, "closed", (STREAM_CLOSED,))),
    row("trailers-twice", FRAMES,
        BODY + headers(1, T) + headers(1, T),
        reset(STREAM_CLOSED, PROTOCOL_ERROR, origin=ANY),
        reset(STREAM_CLOSED, PROTOCOL_ERROR, origin=ANY, status=200),
        Outcome({}, "closed", (STREAM_CLOSED, PROTOCOL_ERROR))),
    trailer("with-method", (b":method", b"GET")),
    trailer("with-path", (b"x", b"1"), (b":path", b"/")),
    trailer("with-status", (b":status", b"200")),
    trailer("with-upper-case", (b"X-T", b"1")),
    trailer("with-crlf", (b"x-t", b"1\r\nx: y")),
    trailer("with-nul", (b"x-t", b"1\0")),
    trailer("with-connection", (b"connection", b"close")),
    trailer("with-transfer-encoding", (b"transfer-encoding", b"chunked")),
    row("trailers-with-length", "RFC 9110 6.5.1",
        BODY + headers(1, hpack.block((b"content-length", b"9"))),
        answered(wants=Want(POST, body=b"hello")),
        reset(origin=NOTHING_WHOLE)),
    row("trailers-with-host", "RFC 9110 6.5.1",
        BODY + headers(1, hpack.block((b"host", b"evil.example"))),
        answered(wants=Want(POST, body=b"hello")),
        reset(origin=NOTHING_WHOLE)),
]


def informed(client):
    answer = client.answers[1]
    return None if answer.informs == [100] else f"1xx {answer.informs}"


METHODS = [
    row(f"method-{name.decode().lower()}", "RFC 9110 9",
        headers(1, head(name, b"/p?q=%20&x#"[:-1])),
        answered(wants=Want(name + b" /p?q=%20&x HTTP/1.1")))
    for name in (b"GET", b"DELETE", b"OPTIONS", b"PUT", b"PURGE", b"M-SEARCH")
] + [
    row("method-head", "RFC 9110 9.3.2", headers(1, head(b"HEAD", b"/head")),
        answered(wants=Want(b"HEAD /head HTTP/1.1")), heads=(1,)),
    row("expect-100", "RFC 9110 10.1.1",
        (post(1, b"/", (b"expect", b"100-continue"),
              (b"content-length", b"5")), Until("inform"),
         wire.data(1, b"hello", end=True)),
        answered(wants=Want(POST, body=b"hello"), check=informed)),
    row("expect-100-body-sent", "RFC 9110 10.1.1",
        post(1, b"/", (b"expect", b"100-continue"),
             (b"content-length", b"5")) + wire.data(1, b"hello", end=True),
        answered(wants=Want(POST, body=b"hello"))),
    row("local-answer", FRAMES, get(1, b"/local"),
        answered(wants=(), check=lambda c: None
                 if c.answers[1].body == b"hi\n" else "body")),
    row("local-answer-of-head", FRAMES, headers(1, head(b"HEAD", b"/local")),
        answered(wants=()), heads=(1,)),
    row("local-answer-before-the-body", FRAMES,
        (post(1, b"/local"), Until("end"), wire.data(1, b"x", end=True)),
        answered(wants=())),
    row("local-answers-many", FRAMES,
        b"".join(get(n, b"/local") for n in range(1, 101, 2)),
        answered(*range(1, 101, 2), wants=())),
]

# The limits of the proxy are answered alike for every protocol; a head that
# is far too large may be abuse.
LIMIT = "RFC 9113 10.5.1"
TOO_MUCH = (refused(431),)
LIMITS = [
    row("limit-fields", LIMIT, get(1, b"/", *[
        (b"x-%d" % n, b"1") for n in range(101)]), *TOO_MUCH),
    row("limit-fields-kept", LIMIT, get(1, b"/", *[
        (b"x-%d" % n, b"1") for n in range(90)]), answered()),
    row("limit-cookie-crumbs", LIMIT, get(1, b"/", *[
        (b"cookie", b"a=1") for n in range(90)]), answered()),
    row("limit-path", LIMIT, get(1, b"/" + b"a" * 9000),
        refused(414, 431)),
    row("limit-body", "RFC 9110 15.5.14",
        (post(1, b"/", (b"content-length", b"2000000")), Until("end")),
        refused(413)),
]


def whole(client):
    """No reset behind the answer: clients take it for a failure."""
    return None if client.answers[1].reset is None else "reset all the same"


DENIED = post(1, b"/denied")
NO_MORE = Outcome({1: Reset((NO_ERROR,), {200, 401})}, origin=())
# The answer needs nothing of the body, which is owed when it comes.
EARLY = [
    row("early-error-body-behind-it", FRAMES,
        (DENIED, Until("end"), Upload(1, 200000)),
        Outcome({1: 401}, origin=(), check=whole)),
    row("early-error-body-beside-it", FRAMES,
        (DENIED, Upload(1, 200000)),
        Outcome({1: 401}, origin=(), check=whole)),
    row("early-error-413", FRAMES,
        (post(1, b"/", (b"content-length", b"2000000")), Until("end"),
         Upload(1, 2000000)),
        Outcome({1: 413}, origin=(), check=whole)),
    row("early-error-trailers-behind-it", FRAMES,
        (DENIED, Until("end"), headers(1, hpack.block((b"x-t", b"1")))),
        Outcome({1: 401}, origin=(), check=whole)),
    row("early-error-client-resets", FRAMES,
        (DENIED, Until("end"), wire.rst(1)),
        Outcome({1: 401}, origin=(), check=whole)),
    # More than anybody sends who heeds the answer. The other windows are as
    # they were.
    row("early-error-body-without-end", FRAMES,
        (DENIED, Until("end"), Upload(1, 20 << 20),
         post(3, b"/denied"), Upload(3, 100000)),
        Outcome({1: Reset((NO_ERROR,), 401), 3: 401}, origin=())),
    # The end of anything else waits for the body, while it comes.
    row("early-answer-body-beside-it", FRAMES,
        (post(1, b"/local/x"), Upload(1, 200000)),
        Outcome({1: 200}, origin=(), check=whole)),
    row("early-answer-body-without-end", FRAMES,
        (post(1, b"/local/x"), Upload(1, 20 << 20)), NO_MORE),
    row("early-answer", FRAMES, (post(1, b"/local/x"), Until("end")), NO_MORE),
    row("early-answer-body-behind-it", FRAMES,
        (post(1, b"/local/x"), Until("end"), Upload(1, 200000)), NO_MORE),
    row("early-answer-end-behind-it", FRAMES,
        (post(1, b"/local/x"), Until("end"), wire.data(1, b"x", end=True)),
        NO_MORE),
]
ROWS = PSEUDOS + CONNECT + FIELDS + LENGTHS + TRAILERS + METHODS + LIMITS + \
    EARLY
