"""Requests that hide another one, or a length of another kind, and that pass
our gate: what goes on must be one request for whoever reads it next.

Each request names itself with X-Row; one that an application reads without
that name, or under the name of another, was smuggled."""
from dataclasses import dataclass

from raw.rows import HOST

ROW = b"X-Row: %s\r\n"
EVIL = b"GET /evil HTTP/1.1\r\nHost: t.example\r\nX-Row: evil\r\n\r\n"


@dataclass(frozen=True)
class Kind:
    name: str
    rfc: str
    send: bytes
    # What is read of it, in order: (method, body).
    want: tuple
    # We, or an application's server, may refuse it, but not read anything
    # else.
    or_refused: bool = False


def kind(name, rfc, fields=b"", body=b"", method=b"GET", target=b"/",
         version=b"HTTP/1.1", host=HOST, want=None, behind=b"", before=b"",
         **more):
    head = before + method + b" " + target + b" " + version + b"\r\n" + host + \
        ROW % name.encode() + fields + b"\r\n"
    if want is None:
        want = ((method.decode(), body),)
    return Kind(name, rfc, head + body + behind, want, **more)


def length(body):
    return b"Content-Length: %d\r\n" % len(body)


def sized(name, rfc, fields=b"", body=EVIL, method=b"POST", **more):
    return kind(name, rfc, fields + length(body), body, method, **more)


def chunked(name, rfc, wire, body, fields=b"", method=b"POST",
            coding=b"Transfer-Encoding: chunked\r\n", **more):
    return kind(name, rfc, fields + coding, wire, method,
                want=((method.decode(), body),), **more)


def chunk(data, extension=b""):
    return b"%x%s\r\n%s\r\n" % (len(data), extension, data)


END = b"0\r\n\r\n"
BODY = "RFC 9112 6"
CHUNK = "RFC 9112 7.1"
FIELD = "RFC 9110 5.5"
HOP = "RFC 9110 7.6.1"
NAME = "RFC 3875 4.1.18"
TARGET = "RFC 9112 3.2"
SMUGGLE = "RFC 9112 11.2"
LONG = b"".join(b"GET /%d HTTP/1.1\r\nX-Row: evil\r\n\r\n" % i
                for i in range(4000))

KINDS = [
    # lengths
    sized("body-is-a-request", SMUGGLE),
    sized("body-of-get", BODY, method=b"GET"),
    sized("body-of-head", BODY, method=b"HEAD"),
    sized("body-of-delete", BODY, method=b"DELETE"),
    sized("body-of-options", BODY, method=b"OPTIONS"),
    sized("body-of-patch", BODY, method=b"PATCH"),
    sized("body-begins-with-lines", BODY, body=b"\r\n\r\n" + EVIL),
    sized("body-is-chunks", BODY, body=b"0\r\n\r\n" + EVIL),
    sized("body-of-many-requests", SMUGGLE, body=LONG),
    sized("length-in-other-case", BODY, b"", method=b"PUT"),
    kind("length-with-zeros", BODY, b"Content-Length: 000%d\r\n" % len(EVIL),
         EVIL, b"POST"),
    kind("length-with-blanks", BODY,
         b"Content-Length:  %d  \r\n" % len(EVIL), EVIL, b"POST"),
    kind("length-without-blank", BODY, b"content-length:%d\r\n" % len(EVIL),
         EVIL, b"POST"),
    kind("length-0", BODY, b"Content-Length: 0\r\n", b"", b"POST"),
    kind("no-length", BODY, b"", b"", b"POST"),
    sized("length-and-underscore", NAME, b"Content_Length: 0\r\n"),
    sized("length-and-dot", NAME, b"Content.Length: 0\r\n"),
    sized("length-and-other-token", NAME, b"Content-Length!: 0\r\n"),
    sized("length-and-coding-underscore", NAME,
          b"Transfer_Encoding: chunked\r\n"),
    sized("length-and-coding-longer", NAME,
          b"X-Transfer-Encoding: chunked\r\n"),
    # These http-parser takes for the shorter name, so they are refused.
    sized("length-and-coding-with-digit", NAME,
          b"Transfer-Encoding2: chunked\r\n", or_refused=True),
    sized("length-and-coding-with-bar", NAME,
          b"Transfer-Encoding|: chunked\r\n", or_refused=True),
    sized("length-and-content-encoding", BODY,
          b"Content-Encoding: chunked\r\n"),
    sized("length-and-te", HOP, b"TE: chunked, trailers\r\n"),
    sized("length-in-a-value", FIELD,
          b"X-A: Content-Length: 0\r\nX-B: a\tTransfer-Encoding: chunked\r\n"),
    sized("length-behind-colons", FIELD, b"X-A:: Transfer-Encoding: chunked\r\n"),
    # chunks
    chunked("chunks-are-a-request", SMUGGLE, chunk(EVIL) + END, EVIL),
    chunked("chunks-of-get", SMUGGLE, chunk(EVIL) + END, EVIL, method=b"GET"),
    chunked("chunks-of-head", SMUGGLE, chunk(EVIL) + END, EVIL,
            method=b"HEAD"),
    chunked("chunks-of-delete", SMUGGLE, chunk(EVIL) + END, EVIL,
            method=b"DELETE"),
    chunked("chunks-of-one-byte", CHUNK,
            b"".join(chunk(EVIL[i:i + 1]) for i in range(len(EVIL))) + END,
            EVIL),
    chunked("chunks-like-an-end", CHUNK, chunk(END) + chunk(EVIL) + END,
            END + EVIL),
    chunked("chunks-of-many-requests", SMUGGLE, chunk(LONG) + END, LONG),
    chunked("chunks-empty", CHUNK, END, b""),
    chunked("chunk-size-with-zeros", CHUNK,
            b"0000" + chunk(EVIL) + b"00000\r\n\r\n", EVIL),
    chunked("chunk-size-in-capitals", CHUNK, chunk(b"x" * 171).upper() + END,
            b"X" * 171),
    chunked("chunk-extension", "RFC 9112 7.1.1",
            chunk(EVIL, b";a=b;c") + b"0;d=e\r\n\r\n", EVIL),
    chunked("chunk-extension-quoted", "RFC 9112 7.1.1",
            chunk(EVIL, b';a="0;b"') + END, EVIL),
    chunked("trailers", "RFC 9112 7.1.2",
            chunk(b"x") + b"0\r\nX-T: y\r\n\r\n", b"x"),
    chunked("trailers-of-framing", "RFC 9110 6.5.1",
            chunk(b"x") + b"0\r\nContent-Length: 9\r\nHost: evil\r\n"
            b"Transfer-Encoding: chunked\r\nX-Row: evil\r\n\r\n", b"x",
            b"Trailer: Content-Length\r\n"),
    chunked("coding-in-other-case", BODY, chunk(EVIL) + END, EVIL,
            coding=b"tRANSFER-eNCODING: cHUNKED\r\n"),
    chunked("coding-with-blanks", BODY, chunk(EVIL) + END, EVIL,
            coding=b"Transfer-Encoding: \t chunked  \r\n"),
    chunked("coding-with-tab", BODY, chunk(EVIL) + END, EVIL,
            coding=b"Transfer-Encoding: chunked\t\r\n", or_refused=True),
    chunked("coding-and-underscore-length", NAME, chunk(EVIL) + END, EVIL,
            b"Content_Length: 3\r\n"),
    chunked("coding-with-continue", "RFC 9110 10.1.1", chunk(EVIL) + END,
            EVIL, b"Expect: 100-continue\r\n"),
    # fields of one hop
    sized("connection-names-length", HOP, b"Connection: Content-Length\r\n"),
    sized("connection-names-host", HOP, b"Connection: Host, close, X-Row2\r\n"),
    chunked("connection-names-coding", HOP, chunk(EVIL) + END, EVIL,
            b"Connection: Transfer-Encoding\r\n"),
    sized("proxy-connection", HOP, b"Proxy-Connection: keep-alive\r\n"),
    sized("keep-alive", HOP, b"Keep-Alive: timeout=1, max=1\r\n"),
    sized("upgrade-h2c", "RFC 9110 7.8",
          b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
          b"HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"),
    sized("upgrade-websocket-with-body", "RFC 9110 7.8",
          b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
          b"Sec-WebSocket-Version: 13\r\n"
          b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"),
    sized("upgrade-without-connection", "RFC 9110 7.8",
          b"Upgrade: websocket\r\n"),
    sized("expect-continue", "RFC 9110 10.1.1", b"Expect: 100-continue\r\n"),
    kind("expect-without-body", "RFC 9110 10.1.1",
         b"Expect: 100-continue\r\n"),
    sized("max-forwards", "RFC 9110 7.6.2", b"Max-Forwards: 0\r\n"),
    # names that another reader could take for something else
    sized("method-override", FIELD, b"X-HTTP-Method-Override: GET\r\n"
          b"X-Original-URL: /evil\r\nX-Rewrite-URL: /evil\r\n"),
    sized("row-underscore", NAME, b"X_Row: evil\r\n"),
    sized("forwarded", "RFC 7239 8.1",
          b"Forwarded: for=\"a\r\"\r\n".replace(b"\r\"", b"\"") +
          b"X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: evil\r\n"),
    sized("proxy", NAME, b"Proxy: http://evil\r\n"),
    sized("high-bytes", FIELD, b"X-A: \x80\xff\xc3\xa9\r\n", or_refused=True),
    sized("tabs", FIELD, b"X-A: a\t\tb\r\n"),
    sized("empty-values", FIELD, b"X-A:\r\nX-B: \r\nAccept:\r\n"),
    sized("ninety-fields", FIELD,
          b"".join(b"X-%d: %d\r\n" % (i, i) for i in range(90))),
    sized("long-field", FIELD, b"X-L: " + b"GET /evil HTTP/1.1 " * 300 +
          b"\r\n", or_refused=True),
    # request lines
    sized("encoded-line-end", TARGET,
          target=b"/a%0d%0aX-Row:%20evil%0d%0a%0d%0aGET%20/evil",
          or_refused=True),
    sized("query-like-a-line", TARGET,
          target=b"/?x%20HTTP/1.1%0d%0aX-Row:evil&HTTP/1.0"),
    sized("target-of-odd-bytes", TARGET, target=b"/a;b=c,d@e:f!g$h'(i)*+~-._"),
    sized("target-absolute", TARGET, target=b"http://t.example/a"),
    sized("target-absolute-other-host", TARGET, host=b"Host: evil.example\r\n",
          target=b"http://t.example/a"),
    sized("slashes", TARGET, target=b"//a///b"),
    sized("method-small", "RFC 9110 9.1", method=b"post", or_refused=True),
    sized("method-unknown", "RFC 9110 9.1", method=b"FROB", or_refused=True),
    sized("host-first-is-not", TARGET, b"X-Host: evil\r\n"),
    sized("lines-before", "RFC 9112 2.2", before=b"\r\n\r\n"),
    # versions and pipelines
    sized("version-1.0", "RFC 9112 9.3", version=b"HTTP/1.0"),
    sized("version-1.0-keep-alive", "RFC 9112 9.3",
          b"Connection: keep-alive\r\n", version=b"HTTP/1.0"),
    sized("pipelined", "RFC 9112 9.3.2", body=b"hello",
          behind=b"GET / HTTP/1.1\r\n" + HOST + ROW % b"pipelined" + b"\r\n",
          want=(("POST", b"hello"), ("GET", b""))),
    kind("pipelined-without-length", "RFC 9112 9.3.2", method=b"POST",
         behind=b"GET / HTTP/1.1\r\n" + HOST +
         ROW % b"pipelined-without-length" + b"\r\n",
         want=(("POST", b""), ("GET", b""))),
    sized("pipelined-behind-close", "RFC 9112 9.6", b"Connection: close\r\n",
          body=b"hello", behind=EVIL, want=(("POST", b"hello"),)),
]
