"""HTTP/2 rows: how the origin's HTTP/1 answers reach the client, and
WebSockets (RFC 8441). The origin plays the script of a row's name."""
from raw import h2_hpack as hpack
from raw import h2_wire as wire
from raw.h2_rows import (ANY, PING_ONLY, Outcome, Reset, Until, answered,
                         bytes_of, either, end_of, goaway, head_of, reset, row)
from raw.h2_wire import (AUTHORITY, CANCEL, CONNECT_ERROR, INTERNAL_ERROR,
                         PROTOCOL_ERROR, REFUSED_STREAM, headers, post)
from raw.rows import CLOSE, AnswerRow, HALF_CLOSE, Pause

ANSWER = "RFC 9113 8.1"
HOPS = "RFC 9113 8.2.2"
BASIC = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
SCRIPTS = {}


def asked(name, rfc, script, *outcomes, method=b"GET", heads=(), **more):
    """The row's request makes the origin play this."""
    name = "answer-" + name
    script = (script,) if isinstance(script, bytes) else script
    SCRIPTS[name] = AnswerRow(name, rfc, tuple(script), (), "either")
    return row(name, rfc, headers(1, wire.head(
        method, b"/row/" + name.encode())), *outcomes, heads=heads, **more)


def seen(status=200, body=None, has=(), lacks=(), informs=(), trailers=None):
    def check(client):
        answer = client.answers[1]
        if body is not None and answer.body != body:
            return f"body {bytes(answer.body[:80])!r}"
        if answer.informs != list(informs):
            return f"1xx {answer.informs}"
        if trailers is not None and answer.trailers != list(trailers):
            return f"trailers {answer.trailers}"
        for name, value in has:
            if value not in answer.all(name):
                return f"{name!r} in {answer.fields}"
        for name in lacks:
            if answer.all(name):
                return f"{name!r} in {answer.fields}"
        return None
    return answered(1, status=status, check=check)


# A body that breaks off behind the head: visibly not whole.
TORN = Outcome({1: Reset((INTERNAL_ERROR, CANCEL, PROTOCOL_ERROR,
                          CONNECT_ERROR), {200, None})})
TORN_OR_502 = (TORN, answered(1, status=502))
BAD = answered(1, status=502)

ANSWERS = [
    asked("length", ANSWER, BASIC + b"\r\nhello",
          seen(body=b"hello", has=((b"content-length", b"5"),))),
    asked("chunked", ANSWER,
          CHUNKED + b"\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
          seen(body=b"hello", lacks=(b"content-length",))),
    asked("chunked-in-steps", ANSWER,
          (CHUNKED + b"\r\n", Pause(), b"5\r\nhel", Pause(),
           b"lo\r\n0\r\n\r\n"), seen(body=b"hello")),
    asked("chunked-empty", ANSWER, CHUNKED + b"\r\n0\r\n\r\n",
          seen(body=b"")),
    asked("until-close", ANSWER,
          (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello", CLOSE),
          seen(body=b"hello")),
    asked("trailers", ANSWER,
          CHUNKED + b"\r\n5\r\nhello\r\n0\r\nX-Sum: abc\r\nX-T: 2\r\n\r\n",
          seen(body=b"hello",
               trailers=((b"x-sum", b"abc"), (b"x-t", b"2")))),
    asked("trailers-of-no-body", ANSWER,
          CHUNKED + b"\r\n0\r\nX-Sum: abc\r\n\r\n",
          seen(body=b"", trailers=((b"x-sum", b"abc"),))),
    asked("trailers-forbidden", "RFC 9110 6.5.1",
          CHUNKED + b"\r\n1\r\nx\r\n0\r\nContent-Length: 9\r\n"
          b"Connection: close\r\nTransfer-Encoding: gzip\r\nX-T: 2\r\n\r\n",
          seen(body=b"x", trailers=((b"x-t", b"2"),)), *TORN_OR_502),
    asked("lower-case", "RFC 9113 8.2",
          BASIC + b"X-UPPER: Va Lue\r\nSet-Cookie: a=1\r\n"
          b"Set-Cookie: b=2\r\n\r\nhello",
          seen(has=((b"x-upper", b"Va Lue"), (b"set-cookie", b"a=1"),
                    (b"set-cookie", b"b=2")))),
    asked("no-hops", HOPS,
          BASIC + b"Connection: keep-alive, X-Mine\r\nKeep-Alive: timeout=5"
          b"\r\nProxy-Connection: x\r\nX-Mine: 1\r\nUpgrade: h2c\r\n\r\n"
          b"hello", seen(body=b"hello", lacks=(b"x-mine", b"keep-alive"))),
    asked("obs-text", "RFC 9110 5.5",
          BASIC + b"X-A: caf\xc3\xa9\r\n\r\nhello",
          seen(has=((b"x-a", b"caf\xc3\xa9"),))),
    asked("empty-value", "RFC 9110 5.5", BASIC + b"X-A:\r\n\r\nhello",
          seen(has=((b"x-a", b""),))),
    asked("large-head", "RFC 9113 6.10",
          BASIC + b"".join(b"X-%d: %s\r\n" % (n, b"v" * 1000)
                           for n in range(25)) + b"\r\nhello",
          seen(has=((b"x-24", b"v" * 1000),))),
    asked("204", "RFC 9110 15.3.5", b"HTTP/1.1 204 No Content\r\n\r\n",
          seen(204, b"")),
    asked("304", "RFC 9110 15.4.5",
          b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
          seen(304, b"", has=((b"etag", b'"a"'),))),
    asked("404", ANSWER,
          b"HTTP/1.1 404 Nope\r\nContent-Length: 1\r\n\r\nx",
          seen(404, b"x")),
    asked("599", ANSWER, b"HTTP/1.1 599 Odd\r\nContent-Length: 0\r\n\r\n",
          seen(599, b"")),
    asked("head", "RFC 9110 9.3.2", BASIC + b"\r\n",
          seen(body=b"", has=((b"content-length", b"5"),)), method=b"HEAD",
          heads=(1,)),
    asked("head-chunked", "RFC 9110 9.3.2", CHUNKED + b"\r\n", seen(body=b""),
          method=b"HEAD", heads=(1,)),
    asked("103", ANSWER,
          b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n" +
          BASIC + b"\r\nhello", seen(body=b"hello", informs=(103,))),
    asked("100-unasked", ANSWER,
          b"HTTP/1.1 100 Continue\r\n\r\n" + BASIC + b"\r\nhello",
          seen(body=b"hello"), seen(body=b"hello", informs=(100,))),
    asked("101-unasked", "RFC 9113 8.6",
          b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
          b"Connection: upgrade\r\n\r\n", BAD),
    asked("torn-length", ANSWER, (BASIC + b"\r\nhel", CLOSE), *TORN_OR_502),
    asked("torn-chunked", ANSWER,
          (CHUNKED + b"\r\n5\r\nhello\r\n", CLOSE), *TORN_OR_502),
    asked("torn-later", ANSWER,
          (BASIC + b"\r\nhel", Pause(0.03), CLOSE), *TORN_OR_502),
    asked("bad-chunk", ANSWER,
          (CHUNKED + b"\r\n5\r\nhello\r\n", Pause(), b"xyz\r\n", CLOSE),
          *TORN_OR_502),
    asked("garbage", ANSWER, (b"what?\r\n\r\n", CLOSE), BAD),
    asked("nothing", ANSWER, (CLOSE,), BAD),
    asked("head-cut", ANSWER, (BASIC, CLOSE), BAD),
    asked("field-with-nul", "RFC 9113 8.2.1",
          BASIC + b"X-A: 1\x002\r\n\r\nhello", BAD),
    asked("name-with-blank", "RFC 9113 8.2.1",
          BASIC + b"X A: 1\r\n\r\nhello", BAD),
]


# --- WebSockets (RFC 8441) -----------------------------------------------------

SOCKET = "RFC 8441 4"
EXTENDED = ((b":method", b"CONNECT"), (b":protocol", b"websocket"),
            (b":scheme", b"https"), (b":path", b"/ws"),
            (b":authority", AUTHORITY))
VERSION = (b"sec-websocket-version", b"13")


def connect(stream=1, drop=None, *fields, end=False, **other):
    pairs = [(n, other.get(n[1:].decode(), v)) for n, v in EXTENDED
             if n != drop]
    return headers(stream, hpack.block(*pairs, VERSION, *fields), end)


def echoed(*bodies, status=200, more=()):
    """The origin's WebSocket sends every byte back."""
    def check(client):
        for stream, body in zip((1, 3, 5), bodies):
            if client.answers[stream].body != body:
                return f"{stream}: {bytes(client.answers[stream].body)!r}"
            names = [n for n, _ in client.answers[stream].fields]
            if b"sec-websocket-accept" in names:
                return f"fields {names}"
        return None
    return Outcome({n: status for n in (1, 3, 5)[:len(bodies)]}, check=check)


def ill(name, *outcomes, rfc=SOCKET, **other):
    return row(f"websocket-{name}", rfc, connect(**other),
               *(outcomes or (reset(),)))


UNSUPPORTED = (Outcome({1: {400, 404, 405, 501}}, origin=()),
               reset(PROTOCOL_ERROR, REFUSED_STREAM, CONNECT_ERROR))
WEBSOCKETS = [
    row("websocket-echo", SOCKET,
        (connect(), head_of(1), wire.data(1, b"hello"), bytes_of(5),
         wire.data(1, b" world"), bytes_of(11), wire.data(1, end=True)),
        echoed(b"hello world")),
    row("websocket-bytes-at-once", SOCKET,
        (connect() + wire.data(1, b"early"), bytes_of(5),
         wire.data(1, b"", end=True)), echoed(b"early")),
    row("websocket-padded", SOCKET,
        (connect(), head_of(1), wire.data(1, b"hello", pad=9),
         wire.data(1, b"", end=True, pad=3)), echoed(b"hello")),
    row("websocket-two", "RFC 8441 5",
        (connect(1) + connect(3), head_of(1), head_of(3),
         wire.data(3, b"three") + wire.data(1, b"one"), bytes_of(3, 1),
         bytes_of(5, 3), wire.data(1, end=True) + wire.data(3, end=True)),
        echoed(b"one", b"three")),
    row("websocket-beside-requests", "RFC 8441 5",
        (connect(1), head_of(1), wire.get(3) + wire.data(1, b"x"),
         end_of(3), bytes_of(1), wire.data(1, end=True)),
        Outcome({1: 200, 3: 200})),
    row("websocket-window", "RFC 8441 4",
        (connect(1), head_of(1), wire.data(1, b"hello"), bytes_of(2),
         Pause(0.02), wire.window(1, 30), bytes_of(5),
         wire.data(1, end=True)), echoed(b"hello"),
        settings=((wire.INITIAL_WINDOW_SIZE, 2),),
        probe=PING_ONLY),
    row("websocket-reset", "RFC 8441 5",
        (connect(1), head_of(1), wire.data(1, b"x"), bytes_of(1),
         wire.rst(1)), Outcome({})),
    row("websocket-refused", "RFC 8441 4",
        connect(path=b"/ws/403"), answered(1, status=403)),
    row("websocket-path-gone", "RFC 8441 4",
        (connect(path=b"/ws/close"), end_of(1)),
        Outcome({1: {200, 502}}),
        Outcome({1: Reset((CANCEL, CONNECT_ERROR, INTERNAL_ERROR),
                          {200, None})})),
    row("websocket-trailers", "RFC 8441 5",
        (connect(1), head_of(1), headers(1, hpack.block((b"x-t", b"1")))),
        Outcome({1: 200}), *either(origin=ANY),
        reset(PROTOCOL_ERROR, origin=ANY, status=200)),
    ill("without-scheme", drop=b":scheme"),
    ill("without-path", drop=b":path"),
    ill("without-authority", *UNSUPPORTED, drop=b":authority"),
    ill("with-get", method=b"GET"),
    ill("protocol-empty", *UNSUPPORTED, protocol=b""),
    ill("protocol-unknown", *UNSUPPORTED, protocol=b"gopher"),
    ill("protocol-with-crlf", *UNSUPPORTED, protocol=b"websocket\r\nx: y"),
    row("websocket-protocol-twice", SOCKET,
        headers(1, hpack.block(*EXTENDED, EXTENDED[1]), False), reset()),
    row("websocket-with-connection", HOPS,
        connect(1, None, (b"connection", b"upgrade"),
                (b"upgrade", b"websocket")), reset()),
]
ROWS = ANSWERS + WEBSOCKETS
