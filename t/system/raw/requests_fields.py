"""Request rows: field lines, their limits, hop-by-hop and forwarded fields."""
from raw.rows import (CLOSED, HOST, Want, get, passes, post, refused, row,
                      several)

LINES = "RFC 9112 5"
COLON = "RFC 9112 5.1"
FOLD = "RFC 9112 5.2"
NAME = "RFC 9110 5.1"
VALUE = "RFC 9110 5.5"
HOP = "RFC 9110 7.6.1"
LIMIT = "RFC 6585 5"
CGI = "RFC 3875 4.1.18"


def bad(name, rfc, fields):
    return row(name, rfc, get(fields), refused())


def kept(name, rfc, field, *pairs):
    """Passes with these fields as they are."""
    return row(name, rfc, get(field), passes(has=pairs))


def dropped(name, rfc, field, *names):
    return row(name, rfc, get(field), passes(lacks=names))


# --- names -------------------------------------------------------------------

# Every delimiter of RFC 9110 section 5.6.2 but the colon, which ends a name.
NAMES = [
    bad(f"name-with-{byte:02x}", NAME, b"X%cY: z\r\n" % byte)
    for byte in b'"(),/;<=>?@[\\]{}\x7f\x80\xff\x01\x0b\x0c\x1b'
] + [
    bad("name-with-nul", NAME, b"X\0Y: z\r\n"),
    bad("name-with-cr", "RFC 9112 2.2", b"X\rY: z\r\n"),
    bad("name-empty", NAME, b": z\r\n"),
    bad("name-space", NAME, b" : z\r\n"),
    bad("name-of-two-words", NAME, b"X Y: z\r\n"),
    bad("name-of-tabbed-words", NAME, b"X\tY: z\r\n"),
    bad("name-utf-8", NAME, "Ünder: z\r\n".encode()),
    bad("no-colon", LINES, b"X\r\n"),
    bad("no-colon-two-words", LINES, b"X y\r\n"),
    bad("no-colon-last", LINES, b"A: b\r\nX\r\n"),
    bad("equals-for-colon", LINES, b"X=y\r\n"),
    bad("space-before-colon", COLON, b"X : y\r\n"),
    bad("tab-before-colon", COLON, b"X\t: y\r\n"),
    bad("spaces-before-colon", COLON, b"X   : y\r\n"),
    bad("vt-before-colon", COLON, b"X\x0b: y\r\n"),
    bad("cr-before-colon", COLON, b"X\r: y\r\n"),
    bad("nbsp-before-colon", COLON, b"X\xa0: y\r\n"),
    dropped("name-underscore", CGI, b"X_Y: z\r\n", b"x_y", b"x-y"),
    dropped("name-dot", CGI, b"X.Y: z\r\n", b"x.y", b"x-y"),
] + [
    dropped(f"name-token-{byte:02x}", CGI, b"X%cY: z\r\n" % byte,
            b"x%cy" % byte)
    for byte in b"!#$%&'*+^`|~"
] + [
    dropped("name-underscore-forwarded", CGI,
            b"X_Forwarded_For: 6.6.6.6\r\nX-Forwarded_Proto: https\r\n",
            b"x_forwarded_for", b"x-forwarded_proto"),
    dropped("name-dot-forwarded", CGI, b"X.Forwarded.For: 6.6.6.6\r\n",
            b"x.forwarded.for"),
    dropped("name-underscore-auth", CGI, b"Remote_User: root\r\n",
            b"remote_user"),
    dropped("name-underscore-length", CGI, b"Content_Length: 5\r\n",
            b"content_length"),
    dropped("name-proxy", HOP, b"Proxy: http://evil.example/\r\n", b"proxy"),
    dropped("name-proxy-any-case", HOP, b"pROXY: http://evil.example/\r\n",
            b"proxy"),
    kept("name-with-digits", NAME, b"X-2b: z\r\n", (b"x-2b", b"z")),
    kept("name-one-letter", NAME, b"a: z\r\n", (b"a", b"z")),
    kept("name-200-bytes", NAME, b"X" * 200 + b": z\r\n", (b"X" * 200, b"z")),
    kept("name-begins-with-dash", NAME, b"-x: z\r\n", (b"-x", b"z")),
]

# --- values and lines ----------------------------------------------------------

VALUES = [
    bad("value-nul", VALUE, b"X: a\0b\r\n"),
    bad("value-nul-last", VALUE, b"X: a\0\r\n"),
    bad("value-bare-cr", "RFC 9112 2.2", b"X: a\rb\r\n"),
    bad("value-bare-cr-last", "RFC 9112 2.2", b"X: a\r\r\n"),
    bad("value-bare-cr-first", "RFC 9112 2.2", b"X:\ra\r\n"),
    bad("value-bare-lf", "RFC 9112 2.2", b"X: a\nY: b\r\n"),
    bad("value-bare-lf-smuggles", "RFC 9112 2.2",
        b"X: a\n\nGET /evil HTTP/1.1\nHost: t.example\n\n"),
    bad("value-cr-lf-lf", "RFC 9112 2.2", b"X: a\r\n\nY: b\r\n"),
    bad("value-lf-cr", "RFC 9112 2.2", b"X: a\n\rY: b\r\n"),
    bad("value-vertical-tab", VALUE, b"X: a\x0bb\r\n"),
    bad("value-form-feed", VALUE, b"X: a\x0cb\r\n"),
    bad("value-escape", VALUE, b"X: a\x1b[31m\r\n"),
    bad("value-del", VALUE, b"X: a\x7f\r\n"),
    bad("value-bell", VALUE, b"X: a\x07\r\n"),
    bad("value-backspace", VALUE, b"X: \x08a\r\n"),
    kept("value-high-bytes", VALUE, b"X: a\x80\xc3\xa9\xff\r\n",
         (b"x", b"a\x80\xc3\xa9\xff")),
    kept("value-empty", VALUE, b"X:\r\n", (b"x", b"")),
    kept("value-only-space", VALUE, b"X: \t \r\n", (b"x", b"")),
    kept("value-trimmed", COLON, b"X: \t a b\t \r\n", (b"x", b"a b")),
    kept("value-no-space", COLON, b"X:a\r\n", (b"x", b"a")),
    kept("value-tab-inside", VALUE, b"X: a\tb\r\n", (b"x", b"a\tb")),
    kept("value-colons", VALUE, b"X: a:b::c\r\n", (b"x", b"a:b::c")),
    kept("value-all-punctuation", VALUE,
         b"X: !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\r\n",
         (b"x", b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")),
    kept("value-quoted", "RFC 9110 5.6.4", b'X: "a\\"b"\r\n',
         (b"x", b'"a\\"b"')),
    kept("value-not-decoded", VALUE, b"X: %0d%0aY: z\r\n",
         (b"x", b"%0d%0aY: z")),
    kept("field-twice", "RFC 9110 5.3", b"X: a\r\nY: q\r\nX: b\r\n",
         (b"x", b"a"), (b"x", b"b")),
    kept("cookie-twice", "RFC 6265 5.4", b"Cookie: a=1\r\nCookie: b=2\r\n",
         (b"cookie", b"a=1"), (b"cookie", b"b=2")),
    kept("authorization", "RFC 9110 11.6.2", b"Authorization: Basic YTpi\r\n",
         (b"authorization", b"Basic YTpi")),
    kept("range-and-conditions", "RFC 9110 13.1",
         b'Range: bytes=0-4\r\nIf-Range: "x"\r\nIf-None-Match: "y"\r\n',
         (b"range", b"bytes=0-4"), (b"if-range", b'"x"'),
         (b"if-none-match", b'"y"')),
    bad("folded-space", FOLD, b"X: a\r\n b\r\n"),
    bad("folded-tab", FOLD, b"X: a\r\n\tb\r\n"),
    bad("folded-empty", FOLD, b"X: a\r\n \r\n"),
    row("folded-first-field", "RFC 9112 2.2",
        b"GET / HTTP/1.1\r\n X: a\r\n" + HOST + b"\r\n", refused()),
    row("folded-tab-first-field", "RFC 9112 2.2",
        b"GET / HTTP/1.1\r\n\tX: a\r\n" + HOST + b"\r\n", refused()),
    row("folded-request-line", "RFC 9112 2.2",
        b"GET /\r\n HTTP/1.1\r\n" + HOST + b"\r\n", refused()),
    bad("folded-space-line-then-more", FOLD, b"X: a\r\n \r\nY: b\r\n"),
    row("head-ends-in-lf", "RFC 9112 2.2",
        b"GET / HTTP/1.1\r\n" + HOST + b"\n", refused()),
    row("head-ends-in-cr-cr-lf", "RFC 9112 2.2",
        b"GET / HTTP/1.1\r\n" + HOST + b"\r\r\n", refused()),
    row("field-ends-in-lf", "RFC 9112 2.2",
        b"GET / HTTP/1.1\r\nHost: t.example\nX: y\r\n\r\n", refused()),
]

# --- limits --------------------------------------------------------------------

LIMITS = [
    kept("value-7000-bytes", LIMIT, b"X: " + b"v" * 7000 + b"\r\n",
         (b"x", b"v" * 7000)),
    kept("value-20000-bytes", LIMIT, b"X: " + b"v" * 20000 + b"\r\n",
         (b"x", b"v" * 20000)),
    row("value-40000-bytes", LIMIT, get(b"X: " + b"v" * 40000 + b"\r\n"),
        refused(431)),
    row("value-1-mib", LIMIT, get(b"X: " + b"v" * (1 << 20) + b"\r\n"),
        refused(431)),
    row("value-without-end", LIMIT,
        b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"v" * 50000, refused(431)),
    row("name-without-end", LIMIT,
        b"GET / HTTP/1.1\r\n" + HOST + b"X" * 50000, refused(431)),
    row("name-66000-bytes", LIMIT, get(b"X" * 66000 + b": y\r\n"),
        refused(431)),
    row("spaces-40000-bytes", LIMIT, get(b"X:" + b" " * 40000 + b"y\r\n"),
        refused(431)),
    row("fields-99", LIMIT, get(b"".join(b"X%d: y\r\n" % i
                                         for i in range(99))),
        passes(has=((b"x0", b"y"), (b"x98", b"y")))),
    row("fields-101", LIMIT, get(b"".join(b"X%d: y\r\n" % i
                                          for i in range(100))),
        refused(431)),
    row("fields-5000", LIMIT, get(b"a:\r\n" * 5000), refused(431)),
    row("fields-many-bytes", LIMIT, get(b"".join(
        b"X%d: %s\r\n" % (i, b"v" * 1000) for i in range(40))), refused(431)),
    row("fields-30000-bytes", LIMIT, get(b"".join(
        b"X%d: %s\r\n" % (i, b"v" * 1000) for i in range(29))),
        passes(has=((b"x0", b"v" * 1000), (b"x28", b"v" * 1000)))),
    row("cookie-20000-bytes", LIMIT,
        get(b"Cookie: a=" + b"c" * 20000 + b"\r\n"),
        passes(has=(b"cookie", b"a=" + b"c" * 20000))),
]

# --- the last hop's ------------------------------------------------------------

HOPS = [
    dropped("keep-alive-field", HOP, b"Keep-Alive: timeout=5\r\n",
            b"keep-alive"),
    dropped("te-field", HOP, b"TE: trailers\r\n", b"te"),
    dropped("te-chunked", HOP, b"TE: trailers, chunked;q=0\r\n", b"te"),
    dropped("trailer-field", HOP, b"Trailer: X\r\n", b"trailer"),
    dropped("proxy-connection", HOP, b"Proxy-Connection: keep-alive\r\n",
            b"proxy-connection"),
    dropped("proxy-authorization", "RFC 9110 11.7.2",
            b"Proxy-Authorization: Basic YTpi\r\n", b"proxy-authorization"),
    dropped("proxy-authenticate", HOP, b"Proxy-Authenticate: Basic\r\n",
            b"proxy-authenticate"),
    dropped("upgrade-not-named", "RFC 9110 7.8", b"Upgrade: websocket\r\n",
            b"upgrade"),
    dropped("upgrade-h2c", "RFC 9110 7.8",
            b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
            b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n",
            b"upgrade", b"http2-settings"),
    dropped("upgrade-unknown", "RFC 9110 7.8",
            b"Connection: upgrade\r\nUpgrade: frob/1\r\n", b"upgrade"),
    dropped("upgrade-tls", "RFC 2817 3",
            b"Connection: upgrade\r\nUpgrade: TLS/1.0\r\n", b"upgrade"),
    dropped("upgrade-empty", "RFC 9110 7.8",
            b"Connection: upgrade\r\nUpgrade:\r\n", b"upgrade"),
    dropped("connection-names-field", HOP,
            b"Connection: X-Private\r\nX-Private: y\r\n", b"x-private"),
    dropped("connection-names-later-and-before", HOP,
            b"X-A: 1\r\nConnection: x-a , X-B\r\nX-B: 2\r\n",
            b"x-a", b"x-b"),
    dropped("connection-twice", HOP,
            b"Connection: X-A\r\nConnection: X-B\r\nX-A: 1\r\nX-B: 2\r\n",
            b"x-a", b"x-b"),
    dropped("connection-empty-parts", "RFC 9110 5.6.1",
            b"Connection: ,, X-A ,\r\nX-A: 1\r\n", b"x-a"),
    kept("connection-names-part-of-name", HOP,
         b"Connection: X-A\r\nX-AB: 1\r\nX: 2\r\n", (b"x-ab", b"1"),
         (b"x", b"2")),
    kept("connection-names-absent", HOP, b"Connection: X-A\r\nX-B: 1\r\n",
         (b"x-b", b"1")),
    kept("connection-names-host", HOP, b"Connection: Host\r\n",
         (b"host", b"t.example")),
    kept("connection-names-cookie", HOP,
         b"Connection: Cookie\r\nCookie: a=1\r\n", (b"cookie", b"a=1")),
    kept("connection-names-authorization", HOP,
         b"Connection: Authorization\r\nAuthorization: Basic YTpi\r\n",
         (b"authorization", b"Basic YTpi")),
    kept("connection-names-forwarded-for", HOP,
         b"Connection: X-Forwarded-For, X-Forwarded-Proto, "
         b"X-Forwarded-Host\r\n",
         (b"x-forwarded-for", b"127.0.0.1")),
    kept("connection-names-request-id", HOP, b"Connection: X-Request-Id\r\n"),
    row("connection-names-length", HOP,
        post(b"Connection: Content-Length\r\nContent-Length: 5\r\n",
             b"hello"),
        passes(b"POST / HTTP/1.1", body=b"hello"), refused()),
    row("connection-names-coding", HOP,
        post(b"Connection: Transfer-Encoding\r\n"
             b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n0\r\n\r\n"),
        passes(b"POST / HTTP/1.1", body=b"hello"), refused()),
    row("connection-close", "RFC 9112 9.6", get(b"Connection: close\r\n"),
        passes(end=CLOSED)),
    row("connection-close-any-case", "RFC 9110 5.6.1",
        get(b"connection: CLOSE\r\n"), passes(end=CLOSED)),
    row("connection-close-in-list", "RFC 9112 9.6",
        get(b"Connection: keep-alive, close\r\n"), passes(end=CLOSED)),
    row("connection-close-in-second", "RFC 9112 9.6",
        get(b"Connection: keep-alive\r\nConnection: close\r\n"),
        passes(end=CLOSED)),
    row("connection-closed-no-token", "RFC 9112 9.6",
        get(b"Connection: closed\r\n"), passes()),
    row("connection-keep-alive", "RFC 9112 9.3",
        get(b"Connection: keep-alive\r\n"), passes()),
    row("connection-empty", HOP, get(b"Connection:\r\n"), passes()),
    row("connection-many-options", HOP,
        get(b"Connection: " + b"x, " * 2000 + b"close\r\n"),
        passes(end=CLOSED), refused(400, 431)),
]

# --- who the client is -----------------------------------------------------------

WHO = "RFC 7239 8.1"
US = (b"x-forwarded-for", b"127.0.0.1")


def replaced(name, field, *pairs, lacks=()):
    return row(name, WHO, get(field), passes(has=(US, *pairs), lacks=lacks))


FORWARDED = [
    replaced("forwarded-for", b"X-Forwarded-For: 6.6.6.6\r\n"),
    replaced("forwarded-for-list", b"X-Forwarded-For: 6.6.6.6, 7.7.7.7\r\n"),
    replaced("forwarded-for-twice",
             b"X-Forwarded-For: 6.6.6.6\r\nx-forwarded-for: 7.7.7.7\r\n"),
    replaced("forwarded-for-garbage", b"X-Forwarded-For: <script>\r\n"),
    replaced("forwarded-for-empty", b"X-Forwarded-For:\r\n"),
    replaced("forwarded-proto", b"X-Forwarded-Proto: https\r\n",
             (b"x-forwarded-proto", b"http")),
    replaced("forwarded-proto-twice",
             b"X-Forwarded-Proto: https\r\nX-Forwarded-Proto: https\r\n",
             (b"x-forwarded-proto", b"http")),
    replaced("forwarded-host", b"X-Forwarded-Host: evil.example\r\n",
             (b"x-forwarded-host", b"t.example")),
    replaced("forwarded", b"Forwarded: for=6.6.6.6;proto=https\r\n",
             lacks=(b"forwarded",)),
    replaced("x-forwarded-prefix", b"X-Forwarded-Prefix: /evil\r\n",
             lacks=(b"x-forwarded-prefix",)),
]


def never_says(name, field, header, value):
    """The origin may get the field, but never with the client's value."""
    return row(name, WHO, get(field), passes(has=(US,), lacks=(header,)),
               passes(has=(US, (header, value))))


FORWARDED += [
    never_says("x-real-ip", b"X-Real-IP: 6.6.6.6\r\n", b"x-real-ip",
               b"127.0.0.1"),
    row("x-forwarded-port", WHO, get(b"X-Forwarded-Port: 443\r\n"),
        passes(has=(US,), lacks=(b"x-forwarded-port",))),
    row("request-id-of-stranger", WHO, get(b"X-Request-Id: mine\r\n"),
        passes(has=(US,))),
]

# --- HTTP/1.0 --------------------------------------------------------------------

OLD = "RFC 9112 9.3"


def old(fields=b"", line=b"GET / HTTP/1.0", body=b""):
    return line + b"\r\n" + HOST + fields + b"\r\n" + body


HTTP10 = [
    row("1.0-closes", OLD, old(), passes(end=CLOSED), http10=True),
    row("1.0-keep-alive", OLD, old(b"Connection: keep-alive\r\n"),
        passes(), http10=True),
    row("1.0-keep-alive-close", OLD, old(b"Connection: keep-alive, close\r\n"),
        passes(end=CLOSED), http10=True),
    row("1.0-post", "RFC 9112 6.3",
        old(b"Content-Length: 5\r\n", b"POST / HTTP/1.0", b"hello"),
        passes(b"POST / HTTP/1.1", body=b"hello", end=CLOSED), http10=True),
    row("1.0-post-without-length", "RFC 9112 6.3",
        old(b"", b"POST / HTTP/1.0"),
        passes(b"POST / HTTP/1.1", end=CLOSED), refused(400, 411),
        http10=True),
    row("1.0-chunked", "RFC 9112 6.1",
        old(b"Transfer-Encoding: chunked\r\n", b"POST / HTTP/1.0",
            b"5\r\nhello\r\n0\r\n\r\n"), refused(), http10=True),
    row("1.0-chunked-keep-alive", "RFC 9112 6.1",
        old(b"Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n",
            b"POST / HTTP/1.0", b"5\r\nhello\r\n0\r\n\r\n"), refused(),
        http10=True),
    row("1.0-expect-ignored", "RFC 9110 10.1.1",
        old(b"Expect: 100-continue\r\nContent-Length: 5\r\n",
            b"POST / HTTP/1.0", b"hello"),
        passes(b"POST / HTTP/1.1", body=b"hello", end=CLOSED), http10=True),
    row("1.0-then-more", OLD, old() + get(target=b"/evil"),
        passes(end=CLOSED), http10=True),
    row("1.0-keep-alive-pipelined", OLD,
        old(b"Connection: keep-alive\r\n") + get(target=b"/two"),
        several((200, 200), (Want(), Want(b"GET /two HTTP/1.1")))),
    row("1.0-head", OLD, old(b"", b"HEAD / HTTP/1.0"),
        passes(b"HEAD / HTTP/1.1", end=CLOSED), heads=(0,), http10=True),
    row("1.0-upgrade-ignored", "RFC 9110 7.8",
        old(b"Connection: upgrade\r\nUpgrade: websocket\r\n"),
        passes(end=CLOSED, lacks=(b"upgrade",)), http10=True),
]

ROWS = NAMES + VALUES + LIMITS + HOPS + FORWARDED + HTTP10
