"""Answer rows: status lines, fields, lengths, 1xx, answers without a body."""
from raw.rows import (AWAIT_HEAD, BAD, CLOSE, CLOSED, EITHER, OPEN, RESET,
                      TORN, AnswerRow, Pause, Seen, whole)

STATUS = "RFC 9112 4"
CODE = "RFC 9110 15"
LINES = "RFC 9112 5"
LENGTH = "RFC 9112 6.3"
CODING = "RFC 9112 6.1"
NONE = "RFC 9110 6.4.1"
INTERIM = "RFC 9110 15.2"
HOP = "RFC 9110 7.6.1"

HELLO = b"Content-Length: 5\r\n\r\nhello"


def answer(fields=b"Content-Length: 5\r\n", body=b"hello",
           line=b"HTTP/1.1 200 OK"):
    return line + b"\r\n" + fields + b"\r\n" + body


def script(steps):
    return (steps,) if isinstance(steps, bytes) else tuple(steps)


def good(name, rfc, steps, body=b"hello", status=200, origin_end=OPEN,
         client_end=OPEN, has=(), lacks=(), informs=(), **more):
    return AnswerRow(name, rfc, script(steps),
                     (whole(status, body, has=has, lacks=lacks,
                            informs=informs),),
                     origin_end, client_end, **more)


def bad(name, rfc, steps, *also, **more):
    """502, both ends closed."""
    end = EITHER if also else CLOSED
    return AnswerRow(name, rfc, script(steps), (BAD, *also), end, end,
                     **more)


def torn(name, rfc, steps, **more):
    """502 or visibly not whole, both ends closed."""
    return AnswerRow(name, rfc, script(steps), (TORN,), CLOSED, CLOSED,
                     **more)


def status(name, line, *also, rfc=STATUS):
    return bad("status-" + name, rfc, line + b"\r\n" + HELLO, *also,
               **({"tries": (1,)}))


# --- status lines ------------------------------------------------------------------

FINE = whole(200, b"hello")

STATUS_LINES = [
    status("empty", b""),
    status("version-alone", b"HTTP/1.1"),
    status("version-and-space", b"HTTP/1.1 "),
    status("two-digits", b"HTTP/1.1 20 OK"),
    status("four-digits", b"HTTP/1.1 2000 OK"),
    status("one-digit", b"HTTP/1.1 2 OK"),
    status("letters", b"HTTP/1.1 abc OK"),
    status("letter-o", b"HTTP/1.1 2OO OK"),
    status("000", b"HTTP/1.1 000 OK", rfc=CODE),
    status("099", b"HTTP/1.1 099 OK", rfc=CODE),
    status("negative", b"HTTP/1.1 -20 OK"),
    status("plus", b"HTTP/1.1 +20 OK"),
    status("hex", b"HTTP/1.1 0x2 OK"),
    status("letter-behind", b"HTTP/1.1 200OK"),
    status("comma", b"HTTP/1.1 200,OK"),
    status("dot", b"HTTP/1.1 200.1 OK"),
    status("two-spaces", b"HTTP/1.1  200 OK"),
    status("tab-before-code", b"HTTP/1.1\t200 OK"),
    status("tab-behind-code", b"HTTP/1.1 200\tOK"),
    status("no-space-before-code", b"HTTP/1.1200 OK"),
    status("version-2.0", b"HTTP/2.0 200 OK", rfc="RFC 9112 2.3"),
    status("version-0.9", b"HTTP/0.9 200 OK", rfc="RFC 9112 2.3"),
    status("version-2", b"HTTP/2 200", rfc="RFC 9112 2.3"),
    status("version-1", b"HTTP/1 200 OK", rfc="RFC 9112 2.3"),
    status("version-11", b"HTTP/11 200 OK", rfc="RFC 9112 2.3"),
    status("version-01.1", b"HTTP/01.1 200 OK", rfc="RFC 9112 2.3"),
    status("version-1.10", b"HTTP/1.10 200 OK", rfc="RFC 9112 2.3"),
    status("version-lower-case", b"http/1.1 200 OK", rfc="RFC 9112 2.3"),
    status("version-1.2", b"HTTP/1.2 200 OK", FINE, rfc="RFC 9112 2.3"),
    status("icy", b"ICY 200 OK"),
    status("other-protocol", b"HTTQ/1.1 200 OK"),
    status("request-line", b"GET / HTTP/1.1"),
    status("space-first", b" HTTP/1.1 200 OK"),
    status("empty-line-first", b"\r\nHTTP/1.1 200 OK"),
    status("lf-first", b"\nHTTP/1.1 200 OK"),
    status("nul-first", b"\0HTTP/1.1 200 OK"),
    status("byte-order-mark-first", b"\xef\xbb\xbfHTTP/1.1 200 OK"),
    status("letter-first", b"xHTTP/1.1 200 OK"),
    status("garbage-first", b"garbage\r\nHTTP/1.1 200 OK"),
    status("nul-in-reason", b"HTTP/1.1 200 O\0K"),
    status("cr-in-reason", b"HTTP/1.1 200 O\rK"),
    status("lf-in-reason", b"HTTP/1.1 200 O\nK"),
    status("control-in-reason", b"HTTP/1.1 200 O\x01K"),
    status("escape-in-reason", b"HTTP/1.1 200 \x1b[31mOK"),
    status("cr-cr-lf", b"HTTP/1.1 200 OK\r"),
    status("reason-100000-bytes", b"HTTP/1.1 200 " + b"a" * 100000),
    status("600", b"HTTP/1.1 600 OK", whole(600, b"hello"), rfc=CODE),
    status("999", b"HTTP/1.1 999 OK", whole(999, b"hello"), rfc=CODE),
    status("no-space-behind-code", b"HTTP/1.1 200", FINE),
    bad("status-html-alone", STATUS,
        b"<html><body>hello</body></html>\n" * 10),
    bad("status-ssh", STATUS, b"SSH-2.0-OpenSSH_9.2\r\n"),
    bad("status-tls-alert", STATUS, b"\x15\x03\x01\x00\x02\x02\x46"),
    bad("status-h2-settings", STATUS, b"\0\0\0\4\0\0\0\0\0" * 5),
    bad("status-line-ends-in-lf", "RFC 9112 2.2",
        b"HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\nhello"),
    bad("status-all-lf", "RFC 9112 2.2",
        b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"),
    bad("status-line-without-end", STATUS, b"HTTP/1.1 200 " + b"a" * 200000),
    good("status-no-reason", STATUS, answer(line=b"HTTP/1.1 200 ")),
    good("status-reason-high-bytes", STATUS,
         answer(line=b"HTTP/1.1 200 caf\xc3\xa9 \xff")),
    good("status-reason-tab", STATUS, answer(line=b"HTTP/1.1 200 a\tb")),
    good("status-reason-looks-like-field", STATUS,
         answer(line=b"HTTP/1.1 200 X: y")),
    good("status-reason-1000-bytes", STATUS,
         answer(line=b"HTTP/1.1 200 " + b"a" * 1000)),
] + [
    good(f"status-passes-{code}", CODE,
         answer(line=b"HTTP/1.1 %d Whatever" % code), status=code)
    for code in (200, 201, 202, 203, 206, 207, 226, 299, 300, 301, 302, 303,
                 307, 308, 399, 400, 401, 403, 404, 405, 409, 410, 416, 418,
                 422, 429, 451, 499, 500, 501, 502, 503, 504, 511, 599)
]

# --- field lines -------------------------------------------------------------------


def field(name, text, *also, rfc=LINES):
    return bad("field-" + name, rfc, answer(b"Content-Length: 5\r\n" + text),
               *also)


def keeps(name, text, *pairs, rfc=LINES):
    return good("field-" + name, rfc,
                answer(b"Content-Length: 5\r\n" + text), has=pairs)


def drops(name, text, *names):
    return good("field-" + name, HOP,
                answer(b"Content-Length: 5\r\n" + text), lacks=names)


FIELDS = [
    field("no-colon", b"X\r\n"),
    field("no-colon-words", b"some words\r\n"),
    field("empty-name", b": y\r\n"),
    field("name-with-space", b"X Y: z\r\n"),
    field("name-with-paren", b"X(: z\r\n"),
    field("name-with-slash", b"X/Y: z\r\n"),
    field("name-with-quote", b'"X": z\r\n'),
    field("name-with-at", b"X@Y: z\r\n"),
    field("name-with-nul", b"X\0: z\r\n"),
    field("name-with-high-byte", b"X\xe9: z\r\n"),
    field("name-with-control", b"X\x01: z\r\n"),
    field("space-before-colon", b"X : y\r\n",
          whole(200, b"hello", has=(("x", "y"),)), rfc="RFC 9112 5.1"),
    field("length-space-before-colon", b"Content-Length : 7\r\n",
          rfc="RFC 9112 5.1"),
    field("folded", b"X: a\r\n b\r\n",
          whole(200, b"hello", has=(("x", "a b"),)), rfc="RFC 9112 5.2"),
    field("folded-tab", b"X: a\r\n\tb\r\n",
          whole(200, b"hello", has=(("x", "a b"),)), rfc="RFC 9112 5.2"),
    field("folded-length", b"X: a\r\n Content-Length: 7\r\n",
          whole(200, b"hello", has=(("x", "a Content-Length: 7"),)),
          rfc="RFC 9112 5.2"),
    bad("field-folded-first", "RFC 9112 2.2",
        answer(b" X: y\r\nContent-Length: 5\r\n")),
    field("value-nul", b"X: a\0b\r\n", rfc="RFC 9110 5.5"),
    field("value-bare-cr", b"X: a\rb\r\n", rfc="RFC 9110 5.5"),
    field("value-bare-lf", b"X: a\nb\r\n", rfc="RFC 9110 5.5"),
    field("value-bare-lf-field", b"X: a\nSet-Cookie: b=c\r\n",
          rfc="RFC 9112 2.2"),
    field("value-cr-cr-lf", b"X: a\r\r\n", rfc="RFC 9112 2.2"),
    field("value-control", b"X: a\x02b\r\n", rfc="RFC 9110 5.5"),
    field("value-del", b"X: a\x7fb\r\n", rfc="RFC 9110 5.5"),
    field("value-escape", b"X: \x1b[31m\r\n", rfc="RFC 9110 5.5"),
    bad("field-ends-in-lf", "RFC 9112 2.2",
        answer(b"X: y\nContent-Length: 5\r\n")),
    bad("field-head-ends-in-lf", "RFC 9112 2.2",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\nhello"),
    keeps("empty-value", b"X:\r\n", ("x", "")),
    keeps("trimmed", b"X: \t a b \t\r\n", ("x", "a b")),
    keeps("high-bytes", b"X: \xe9\x80\xff\r\n", ("x", "\xe9\x80\xff"),
          rfc="RFC 9110 5.5"),
    keeps("underscore", b"X_Y: z\r\n", ("x_y", "z")),
    keeps("dot", b"X.Y: z\r\n", ("x.y", "z")),
    keeps("token-bytes", b"!#$%&'*+-.^_`|~: z\r\n",
          ("!#$%&'*+-.^_`|~", "z")),
    keeps("twice", b"X: a\r\nX: b\r\n", ("x", "a"), ("x", "b")),
    keeps("cookies", b"Set-Cookie: a=1; Path=/\r\nSet-Cookie: b=2\r\n",
          ("set-cookie", "a=1; Path=/"), ("set-cookie", "b=2"),
          rfc="RFC 6265 3"),
    keeps("date", b"Date: Tue, 15 Nov 1994 08:12:31 GMT\r\n",
          ("date", "Tue, 15 Nov 1994 08:12:31 GMT"), rfc="RFC 9110 6.6.1"),
    keeps("server", b"Server: mine\r\n", ("server", "mine"),
          rfc="RFC 9110 10.2.4"),
    keeps("content-encoding", b"Content-Encoding: gzip\r\n",
          ("content-encoding", "gzip"), rfc="RFC 9110 8.4"),
    keeps("location", b"Location: http://127.0.0.1/x?y#z\r\n",
          ("location", "http://127.0.0.1/x?y#z"), rfc="RFC 9110 10.2.2"),
    keeps("www-authenticate", b"WWW-Authenticate: Basic realm=x\r\n",
          ("www-authenticate", "Basic realm=x"), rfc="RFC 9110 11.6.1"),
    keeps("status-field", b"X-Status: 404\r\n", ("x-status", "404")),
    drops("keep-alive", b"Keep-Alive: timeout=5, max=100\r\n", "keep-alive"),
    drops("upgrade", b"Connection: Upgrade\r\nUpgrade: h2c\r\n", "upgrade"),
    drops("upgrade-not-named", b"Upgrade: h2\r\n", "upgrade"),
    good("field-upgrade-required", "RFC 9110 15.5.22",
         answer(b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
                b"Content-Length: 5\r\n",
                line=b"HTTP/1.1 426 Upgrade Required"), status=426,
         has=(("upgrade", "websocket"), ("connection", "Upgrade"))),
    good("field-upgrade-required-not-named", "RFC 9110 15.5.22",
         answer(b"Upgrade: websocket, foo/2\r\nContent-Length: 5\r\n",
                line=b"HTTP/1.1 426 Upgrade Required"), status=426,
         has=(("upgrade", "websocket, foo/2"), ("connection", "Upgrade"))),
    drops("te", b"TE: trailers\r\n", "te"),
    drops("trailer", b"Trailer: X\r\n", "trailer"),
    drops("proxy-authenticate", b"Proxy-Authenticate: Basic\r\n",
          "proxy-authenticate"),
    drops("proxy-connection", b"Proxy-Connection: keep-alive\r\n",
          "proxy-connection"),
    drops("connection-names", b"Connection: x-private\r\nX-Private: y\r\n",
          "x-private"),
    drops("connection-names-several",
          b"X-A: 1\r\nConnection: X-A, keep-alive, ,X-B\r\nX-B: 2\r\n",
          "x-a", "x-b"),
    keeps("connection-names-length", b"Connection: Content-Length\r\n"),
    keeps("connection-names-cookie",
          b"Connection: Set-Cookie\r\nSet-Cookie: a=1\r\n"),
    good("field-connection-close", "RFC 9112 9.6",
         answer(b"Connection: close\r\nContent-Length: 5\r\n"),
         origin_end=CLOSED),
    good("field-connection-close-in-list", "RFC 9112 9.6",
         answer(b"Connection: foo, Close\r\nContent-Length: 5\r\n"),
         origin_end=CLOSED),
]

# --- how large a head may be ---------------------------------------------------------


def sized(total):
    """Field lines of exactly `total` bytes, Content-Length among them."""
    out = b"Content-Length: 5\r\n"
    n = 0
    while len(out) < total:
        name = b"X-%d: " % n
        room = total - len(out) - len(name) - 2
        if room > 4000:
            room = 4000
        out += name + b"v" * room + b"\r\n"
        n += 1
    assert len(out) == total
    return out


SIZES = [
    good("head-64-kib", "RFC 9110 5.4", answer(sized(65536 - 30)),
         has=(("x-0", "v" * 4000), ("x-10", "v" * 4000))),
    good("head-64-kib-of-fields", "RFC 9110 5.4", answer(sized(65536)),
         has=(("x-0", "v" * 4000), ("x-15", "v" * 4000))),
    good("head-60000-byte-field", "RFC 9110 5.4",
         answer(b"X: " + b"v" * 60000 + b"\r\nContent-Length: 5\r\n"),
         has=(("x", "v" * 60000),)),
    good("head-90-fields", "RFC 9110 5.4",
         answer(b"".join(b"X-%d: y\r\n" % i for i in range(90)) +
                b"Content-Length: 5\r\n"), has=(("x-89", "y"),)),
    good("head-in-pieces", STATUS,
         tuple(x for i in range(0, 44, 4)
               for x in (answer()[i:i + 4], Pause(0.002))) +
         (answer()[44:],)),
    good("head-64-kib-in-pieces", "RFC 9110 5.4",
         tuple(x for i in range(0, 70000, 7000)
               for x in (answer(sized(65000))[i:i + 7000], Pause(0.002))
               if x != b"")),
    bad("head-300-kib", "RFC 9110 5.4", answer(sized(300000))),
    bad("head-300-kib-field", "RFC 9110 5.4",
        answer(b"X: " + b"v" * 300000 + b"\r\nContent-Length: 5\r\n")),
    bad("head-without-end", "RFC 9110 5.4",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100000),
    bad("head-5000-fields", "RFC 9110 5.4",
        answer(b"X: y\r\n" * 5000 + b"Content-Length: 5\r\n")),
]

# --- lengths -----------------------------------------------------------------------


def length(name, value, *also):
    return bad("length-" + name, "RFC 9110 8.6",
               answer(b"Content-Length: " + value + b"\r\n"), *also)


def coding(name, value, *also):
    return bad("coding-" + name, CODING,
               answer(b"Transfer-Encoding: " + value + b"\r\n",
                      b"5\r\nhello\r\n0\r\n\r\n"), *also)


LENGTHS = [
    length("empty", b""),
    length("negative", b"-5"),
    length("plus", b"+5"),
    length("word", b"five"),
    length("letter-behind", b"5a"),
    length("hex", b"0x5"),
    length("float", b"5.0"),
    length("space-inside", b"5 5"),
    length("same-list", b"5, 5", FINE),
    length("other-list", b"5, 6"),
    length("comma-behind", b"5,"),
    length("quoted", b'"5"'),
    length("nul", b"5\0"),
    length("vertical-tab", b"\x0b5"),
    length("2-64", b"18446744073709551616"),
    length("2-64-and-5", b"18446744073709551621"),
    length("2-63", b"9223372036854775808"),
    length("100-digits", b"9" * 100),
    bad("length-twice-same", LENGTH,
        answer(b"Content-Length: 5\r\nContent-Length: 5\r\n"), FINE),
    bad("length-twice-other", LENGTH,
        answer(b"Content-Length: 5\r\nContent-Length: 4\r\n")),
    bad("length-twice-other-case", LENGTH,
        answer(b"Content-Length: 0\r\ncontent-length: 5\r\n")),
    bad("length-twice-one-empty", LENGTH,
        answer(b"Content-Length: 5\r\nContent-Length:\r\n")),
    bad("both-length-first", LENGTH,
        answer(b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
               b"5\r\nhello\r\n0\r\n\r\n")),
    bad("both-coding-first", LENGTH,
        answer(b"Transfer-Encoding: chunked\r\nContent-Length: 15\r\n",
               b"5\r\nhello\r\n0\r\n\r\n")),
    bad("both-identity", LENGTH,
        answer(b"Transfer-Encoding: identity\r\nContent-Length: 5\r\n")),
    coding("empty", b""),
    coding("gzip", b"gzip"),
    coding("gzip-chunked", b"gzip, chunked"),
    coding("chunked-gzip", b"chunked, gzip"),
    coding("identity", b"identity"),
    coding("chunked-chunked", b"chunked, chunked"),
    coding("letter-before", b"xchunked"),
    coding("letter-behind", b"chunkedd"),
    coding("quoted", b'"chunked"'),
    coding("comma-before", b",chunked"),
    coding("parameter", b"chunked;x=y"),
    coding("vertical-tab", b"\x0bchunked"),
    bad("coding-twice", CODING,
        answer(b"Transfer-Encoding: chunked\r\n" * 2,
               b"5\r\nhello\r\n0\r\n\r\n")),
    bad("coding-twice-other", CODING,
        answer(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
               b"5\r\nhello\r\n0\r\n\r\n")),
    bad("coding-in-1.0", CODING,
        answer(b"Transfer-Encoding: chunked\r\n",
               b"5\r\nhello\r\n0\r\n\r\n", b"HTTP/1.0 200 OK")),
    good("coding-any-case", CODING,
         answer(b"Transfer-Encoding: ChunkeD\r\n",
                b"5\r\nhello\r\n0\r\n\r\n")),
    good("length-leading-zeros", "RFC 9110 8.6",
         answer(b"Content-Length: 05\r\n")),
    good("length-spaces-around", "RFC 9112 5.1",
         answer(b"Content-Length:   5  \r\n")),
    good("length-0", LENGTH, answer(b"Content-Length: 0\r\n", b""), b""),
    good("length-5", LENGTH, answer()),
    good("length-1-mib", LENGTH,
         answer(b"Content-Length: 1048576\r\n", b"z" * 1048576),
         b"z" * 1048576),
    good("length-body-like-answer", LENGTH,
         answer(b"Content-Length: %d\r\n" % len(answer()), answer()),
         answer()),
    good("length-1.0-closes", "RFC 9112 9.3",
         answer(line=b"HTTP/1.0 200 OK"), origin_end=CLOSED),
    good("length-1.0-keep-alive", "RFC 9112 9.3",
         answer(b"Connection: keep-alive\r\nContent-Length: 5\r\n",
                line=b"HTTP/1.0 200 OK"), origin_end=EITHER),
    good("length-none-until-close", LENGTH,
         (answer(b""), CLOSE), origin_end=CLOSED),
    good("length-none-and-empty", LENGTH,
         (answer(b"", b""), CLOSE), b"", origin_end=CLOSED),
    good("length-none-1.0", LENGTH,
         (answer(b"", line=b"HTTP/1.0 200 OK"), CLOSE), origin_end=CLOSED),
    good("length-none-in-pieces", LENGTH,
         (answer(b"", b"he"), AWAIT_HEAD, b"ll", Pause(), b"o", CLOSE),
         origin_end=CLOSED),
    good("length-none-large", LENGTH,
         (answer(b"", b"q" * 700000), CLOSE), b"q" * 700000,
         origin_end=CLOSED),
    torn("length-none-reset", "RFC 9112 8",
         (answer(b"", b"hello"), AWAIT_HEAD, RESET)),
]

# --- bodies where none may be -------------------------------------------------------

NOT_MODIFIED = b"HTTP/1.1 304 Not Modified"
NO_CONTENT = b"HTTP/1.1 204 No Content"

NO_BODY = [
    good("none-204", NONE, answer(b"", b"", NO_CONTENT), b"", 204,
         lacks=("content-length", "transfer-encoding")),
    good("none-204-garbage", NONE, answer(b"", b"garbage", NO_CONTENT), b"",
         204, origin_end=CLOSED),
    good("none-204-answer-behind", NONE,
         answer(b"", answer(body=b"evil!"), NO_CONTENT), b"", 204,
         origin_end=CLOSED),
    AnswerRow("none-204-length-0", "RFC 9110 8.6",
              (answer(b"Content-Length: 0\r\n", b"", NO_CONTENT),),
              (whole(204, b"", lacks=("content-length",)), BAD), EITHER),
    bad("none-204-length-5", "RFC 9110 8.6",
        answer(b"Content-Length: 5\r\n", b"hello", NO_CONTENT)),
    bad("none-204-chunked", CODING,
        answer(b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n", NO_CONTENT)),
    good("none-304", NONE, answer(b'ETag: "x"\r\n', b"", NOT_MODIFIED), b"",
         304, has=(("etag", '"x"'),)),
    good("none-304-length-5", "RFC 9110 8.6",
         answer(b"Content-Length: 5\r\n", b"", NOT_MODIFIED), b"", 304),
    good("none-304-chunked", CODING,
         answer(b"Transfer-Encoding: chunked\r\n", b"", NOT_MODIFIED), b"",
         304),
    good("none-304-body", NONE,
         answer(b"Content-Length: 5\r\n", b"hello", NOT_MODIFIED), b"", 304,
         origin_end=CLOSED),
    good("none-head-length", "RFC 9110 9.3.2",
         answer(b"Content-Length: 5\r\n", b""), b"", method=b"HEAD",
         has=(("content-length", "5"),)),
    good("none-head-nothing", "RFC 9110 9.3.2", answer(b"X: y\r\n", b""), b"",
         method=b"HEAD", has=(("x", "y"),), origin_end=EITHER),
    good("none-head-chunked", "RFC 9110 9.3.2",
         answer(b"Transfer-Encoding: chunked\r\n", b""), b"", method=b"HEAD"),
    good("none-head-body", "RFC 9110 9.3.2", answer(), b"", method=b"HEAD",
         origin_end=CLOSED),
    good("none-head-chunked-body", "RFC 9110 9.3.2",
         answer(b"Transfer-Encoding: chunked\r\n",
                b"5\r\nhello\r\n0\r\n\r\n"), b"", method=b"HEAD",
         origin_end=CLOSED),
    bad("none-head-both", LENGTH,
        answer(b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b""),
        method=b"HEAD"),
    bad("none-head-bad-length", "RFC 9110 8.6",
        answer(b"Content-Length: x\r\n", b""), method=b"HEAD"),
    good("none-head-404", "RFC 9110 9.3.2",
         answer(b"Content-Length: 9\r\n", b"", b"HTTP/1.1 404 Not Found"),
         b"", 404, method=b"HEAD"),
    AnswerRow("none-205-body", "RFC 9110 15.3.6",
              (answer(line=b"HTTP/1.1 205 Reset Content"),),
              (whole(205, b""), whole(205, b"hello"), BAD), EITHER),
    good("none-205-empty", "RFC 9110 15.3.6",
         answer(b"Content-Length: 0\r\n", b"", b"HTTP/1.1 205 Reset"), b"",
         205),
]

# --- 1xx ---------------------------------------------------------------------------

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"

INFORMS = [
    good("1xx-continue", INTERIM, CONTINUE + answer()),
    good("1xx-continue-apart", INTERIM, (CONTINUE, Pause(), answer())),
    good("1xx-five-continues", INTERIM, CONTINUE * 5 + answer()),
    good("1xx-continue-with-fields", INTERIM,
         b"HTTP/1.1 100 Go\r\nX: y\r\n\r\n" + answer(), lacks=("x",)),
    good("1xx-processing", INTERIM,
         b"HTTP/1.1 102 Processing\r\n\r\n" + answer()),
    good("1xx-unknown", INTERIM, b"HTTP/1.1 199 What\r\n\r\n" + answer()),
    good("1xx-hints", "RFC 8297 2", HINTS + answer(), informs=(103,),
         lacks=("link",)),
    good("1xx-hints-twice", "RFC 8297 2", HINTS + HINTS + answer(),
         informs=(103, 103)),
    good("1xx-hints-early", "RFC 8297 2",
         (HINTS, Pause(0.03), answer()), informs=(103,)),
    good("1xx-hints-between", INTERIM, CONTINUE + HINTS + CONTINUE + answer(),
         informs=(103,)),
    good("1xx-hints-for-1.0", INTERIM, HINTS + answer(), minor=0,
         client_end=CLOSED),
    good("1xx-before-head-answer", INTERIM,
         HINTS + answer(b"Content-Length: 5\r\n", b""), b"", method=b"HEAD",
         informs=(103,)),
    good("1xx-before-204", INTERIM,
         CONTINUE + answer(b"", b"", NO_CONTENT), b"", 204),
    good("1xx-to-post", INTERIM, CONTINUE + answer(), method=b"POST",
         body=b"hello"),
    bad("1xx-unasked-101", "RFC 9110 15.2.2",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
        b"Upgrade: websocket\r\n\r\n\x81\x05hello"),
    bad("1xx-unasked-101-then-200", "RFC 9110 15.2.2",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + answer()),
    bad("1xx-101-to-h2c-that-was-not-passed", "RFC 9110 15.2.2",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
        b"Upgrade: h2c\r\n\r\n",
        fields=b"Connection: upgrade\r\nUpgrade: h2c\r\n"),
    bad("1xx-with-length", "RFC 9110 8.6",
        b"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\nhello" +
        answer()),
    bad("1xx-with-chunked", CODING,
        b"HTTP/1.1 103 Hints\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"0\r\n\r\n" + answer()),
    bad("1xx-with-bad-field", LINES,
        b"HTTP/1.1 100 Continue\r\nX y\r\n\r\n" + answer()),
    bad("1xx-then-garbage", INTERIM, CONTINUE + b"garbage\r\n\r\n"),
    bad("1xx-then-close", INTERIM, (CONTINUE, CLOSE), tries=(1, 2, 3)),
    bad("1xx-then-reset", INTERIM, (CONTINUE, Pause(), RESET),
        tries=(1, 2, 3)),
    AnswerRow("1xx-hints-then-garbage", INTERIM,
              (HINTS + b"garbage\r\n\r\n",),
              (Seen("bad", informs=(103,)),), CLOSED, CLOSED),
    AnswerRow("1xx-2000-continues", INTERIM, (CONTINUE * 2000 + answer(),),
              (whole(200, b"hello"), BAD), EITHER),
    good("1xx-behind-answer", INTERIM, answer() + CONTINUE,
         origin_end=CLOSED),
]

ROWS = STATUS_LINES + FIELDS + SIZES + LENGTHS + NO_BODY + INFORMS
