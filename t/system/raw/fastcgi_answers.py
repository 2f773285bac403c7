"""FastCGI rows: what an application may say, and what it must not.

"FCGI" is the FastCGI specification 1.0; a head is RFC 3875 section 6."""
from raw.answers_head import bad, good, sized, torn
from raw.responder import (DATA, END, PARAMS, STDIN, Pieces, Rec, end, err,
                           out)
from raw.rows import (AWAIT_HEAD, BAD, CLOSE, CLOSED, EITHER, HALF_CLOSE,
                      TORN, AnswerRow, Pause, whole)

RECORD = "FCGI 3.3"
STREAM = "FCGI 5.3"
FINISH = "FCGI 5.5"
HEAD = "RFC 3875 6.2"
FIELD = "RFC 3875 6.3"
STATUS = "RFC 3875 6.3.3"
LOCATION = "RFC 3875 6.3.2"
INCOMPLETE = "RFC 9112 8"
KEPT = "FCGI 3.5"

TYPE = b"Content-Type: text/plain\r\n"
HELLO = TYPE + b"\r\nhello"
FINE = whole(200, b"hello")


def says(head, body=b"hello"):
    return (out(head + b"\r\n" + body), end())


def accepts(name, rfc, script, *also, **more):
    """Good, or as `also` says: where servers differ without harm."""
    return AnswerRow(name, rfc, tuple(script), (FINE, *also), EITHER, EITHER,
                     **more)


# --- records ---------------------------------------------------------------------

RECORDS = [
    good("plain", RECORD, (out(HELLO), end())),
    good("stream-closed", RECORD, (out(HELLO), out(b""), end())),
    good("both-streams-closed", RECORD,
         (out(HELLO), out(b""), err(b""), end())),
    good("stream-closed-behind-error", RECORD,
         (err(b"oops\n"), out(HELLO), err(b""), out(b""), end())),
    good("padded", RECORD,
         (out(HELLO, padding=7), end(padding=3))),
    good("padded-255", RECORD,
         (out(TYPE, padding=255), out(b"\r\nhello", padding=255),
          end(padding=255))),
    good("padding-without-content", RECORD,
         (out(HELLO), out(b"", padding=8), end())),
    good("one-byte-records", RECORD,
         tuple(out(HELLO[i:i + 1]) for i in range(len(HELLO))) + (end(),)),
    good("one-byte-records-padded", RECORD,
         tuple(out(HELLO[i:i + 1], padding=i % 5)
               for i in range(len(HELLO))) + (end(),)),
    good("one-byte-pieces", RECORD,
         (Pieces(1, (out(HELLO, padding=3), end())),)),
    good("three-byte-pieces", RECORD,
         (Pieces(3, (out(HELLO, padding=2), err(b"e\n"), end())),)),
    good("seven-byte-pieces", RECORD,
         (Pieces(7, (err(b"some words\n"), out(HELLO), out(b""), end())),)),
    good("cut-in-record-header", RECORD,
         (Pieces(4, (out(HELLO), end()), 0.005),)),
    good("end-in-pieces", FINISH, (out(HELLO), Pieces(1, (end(),)))),
    good("end-later", FINISH, (out(HELLO), Pause(0.03), end())),
    good("record-65535", RECORD,
         (out(TYPE + b"\r\n"), out(b"z" * 65535), end()), b"z" * 65535),
    good("record-65535-padded", RECORD,
         (out(TYPE + b"\r\n"), out(b"z" * 65535, padding=255), end()),
         b"z" * 65535),
    good("body-1-mib", STREAM,
         (out(TYPE + b"\r\n"),) + (out(b"z" * 32768),) * 32 + (end(),),
         b"z" * 1048576),
    good("body-1-mib-with-length", STREAM,
         (out(TYPE + b"Content-Length: 1048576\r\n\r\n"),) +
         (out(b"z" * 65535),) * 16 + (out(b"z" * 16), end()),
         b"z" * 1048576),
    good("body-of-all-bytes", STREAM,
         (out(TYPE + b"\r\n" + bytes(range(256)) * 4), end()),
         bytes(range(256)) * 4),
    good("body-looks-like-records", STREAM,
         (out(TYPE + b"\r\n" + end().encode(1)), end()), end().encode(1)),
    good("ten-thousand-records", STREAM,
         (out(TYPE + b"\r\n"), Pieces(65536, (out(b"x"),) * 10000, 0),
          end()), b"x" * 10000),
    bad("version-0", RECORD, (out(HELLO, version=0), end())),
    bad("version-2", RECORD, (out(HELLO, version=2), end())),
    bad("version-72", RECORD, (b"HTTP/1.1 200 OK\r\n\r\nhello",)),
    bad("id-other", RECORD, (out(HELLO, id=77), end(id=77))),
    bad("id-high-byte", RECORD, (out(HELLO, id=257), end())),
    bad("id-0", RECORD, (out(HELLO, id=0), end())),
    bad("id-of-end-only", RECORD, (Rec(END, bytes(8), id=9),)),
    torn("id-other-of-end", RECORD,
         (out(HELLO), AWAIT_HEAD, end(id=9))),
    torn("id-changes", RECORD,
         (out(HELLO), AWAIT_HEAD, out(b"evil", id=2))),
    bad("type-0", RECORD, (Rec(0, HELLO), end())),
    bad("type-12", RECORD, (Rec(12, HELLO), end())),
    bad("type-255", RECORD, (Rec(255, HELLO), end())),
    bad("type-begin", RECORD, (Rec(1, bytes(8)), end())),
    bad("type-params", RECORD, (Rec(PARAMS, HELLO), end())),
    bad("type-stdin", RECORD, (Rec(STDIN, HELLO), end())),
    bad("type-data", RECORD, (Rec(DATA, HELLO), end())),
    bad("type-unknown-type", RECORD,
        (Rec(11, bytes(8), id=0), Rec(77, HELLO))),
    torn("type-wrong-inside", RECORD,
         (out(HELLO), AWAIT_HEAD, Rec(99, b"evil"))),
    torn("garbage-inside", RECORD,
         (out(HELLO), AWAIT_HEAD, b"\xff" * 64)),
    bad("garbage", RECORD, (b"\xff" * 64,)),
    bad("zeros", RECORD, (bytes(64),)),
    bad("text", RECORD, (b"Content-Type: text/plain\r\n\r\nhello",)),
    bad("stdout-behind-its-end", STREAM,
        (out(b""), out(HELLO), end())),
    torn("stdout-behind-its-end-late", STREAM,
         (out(HELLO), out(b""), AWAIT_HEAD, out(b"evil"), end())),
]

# --- the error stream ---------------------------------------------------------------

ERRORS = [
    good("error-before", STREAM, (err(b"a warning\n"), out(HELLO), end())),
    good("error-behind", STREAM, (out(HELLO), err(b"a warning\n"), end())),
    good("error-inside-head", STREAM,
         (out(HELLO[:10]), err(b"oops\n"), out(HELLO[10:]), end())),
    good("error-between-cr-and-lf", STREAM,
         (out(TYPE[:-1]), err(b"x"), out(b"\n\r"), err(b"y\n"),
          out(b"\nhello"), end())),
    good("error-inside-body", STREAM,
         (out(HELLO[:-2]), err(b"oops\n"), out(HELLO[-2:]), end())),
    good("error-without-newline", STREAM,
         (err(b"no end"), out(HELLO), end())),
    good("error-1-mib", STREAM,
         (Pieces(65536, (err(b"e" * 65535),) * 16, 0), out(HELLO), end())),
    good("error-many-lines", STREAM,
         (err(b"line\n" * 1300), out(HELLO), end())),
    good("error-of-nul-and-escape", STREAM,
         (err(b"\0\1\x1b[31m\r\n\xff\n"), out(HELLO), end())),
    good("error-in-one-byte-records", STREAM,
         tuple(err(b"%c" % b) for b in b"PHP message: x\n") +
         (out(HELLO), end())),
    good("error-looks-like-head", STREAM,
         (err(b"Status: 500\r\n\r\nevil"), out(HELLO), end())),
    good("error-padded", STREAM,
         (err(b"x\n", padding=200), out(HELLO), end())),
    bad("error-alone", STREAM, (err(b"PHP Fatal error\n"), end())),
    bad("error-alone-and-close", STREAM, (err(b"died\n"), CLOSE)),
    good("error-with-status-500", STREAM,
         (err(b"PHP Fatal error\n"),
          out(b"Status: 500 Internal Server Error\r\n" + TYPE + b"\r\n"),
          end(255)), b"", 500),
]

# --- heads -------------------------------------------------------------------------

HEADS = [
    good("no-status", STATUS, says(TYPE)),
    good("status-200", STATUS, says(b"Status: 200 OK\r\n" + TYPE)),
    good("status-404", STATUS, says(b"Status: 404 Not Found\r\n" + TYPE),
         status=404),
    good("status-without-reason", STATUS, says(b"Status: 418\r\n" + TYPE),
         status=418),
    good("status-any-case", STATUS, says(b"sTATUS: 403 No\r\n" + TYPE),
         status=403),
    good("status-last", STATUS, says(TYPE + b"Status: 503 Busy\r\n"),
         status=503),
    good("status-204", STATUS, says(b"Status: 204 None\r\nX: y\r\n", b""),
         b"", 204),
    good("status-304", STATUS,
         says(b'Status: 304 Same\r\nETag: "x"\r\n', b""), b"", 304),
    good("status-is-no-field", STATUS,
         says(b"Status: 200 OK\r\n" + TYPE), lacks=("status",)),
    AnswerRow("status-204-with-body", STATUS,
              says(b"Status: 204 None\r\nX: y\r\n"),
              (whole(204, b""), BAD), EITHER),
    AnswerRow("status-304-with-body", STATUS,
              says(b"Status: 304 Same\r\nX: y\r\n"),
              (whole(304, b""), BAD), EITHER),
    bad("status-twice", STATUS,
        says(b"Status: 200 OK\r\nStatus: 500 No\r\n" + TYPE)),
    bad("status-empty", STATUS, says(b"Status:\r\n" + TYPE)),
    bad("status-word", STATUS, says(b"Status: OK\r\n" + TYPE)),
    bad("status-two-digits", STATUS, says(b"Status: 20\r\n" + TYPE)),
    bad("status-four-digits", STATUS, says(b"Status: 2000 OK\r\n" + TYPE)),
    bad("status-letter-behind", STATUS, says(b"Status: 200OK\r\n" + TYPE)),
    bad("status-negative", STATUS, says(b"Status: -200\r\n" + TYPE)),
    bad("status-000", STATUS, says(b"Status: 000 x\r\n" + TYPE)),
    bad("status-100", STATUS, says(b"Status: 100 Continue\r\n" + TYPE)),
    bad("status-101", STATUS,
        says(b"Status: 101 Switching\r\nUpgrade: websocket\r\n" + TYPE)),
    AnswerRow("status-line", HEAD, says(b"HTTP/1.1 200 OK\r\n" + TYPE),
              (FINE, BAD), EITHER),
    good("location-alone", LOCATION,
         says(b"Location: http://t.example/x\r\n", b""), b"", 302,
         has=(("location", "http://t.example/x"),)),
    good("location-with-body", LOCATION,
         says(b"Location: https://t.example/\r\n" + TYPE), status=302),
    good("location-and-status", LOCATION,
         says(b"Location: http://t.example/y\r\nStatus: 201 Made\r\n" +
              TYPE), status=201),
    good("location-and-301", LOCATION,
         says(b"Status: 301 Moved\r\nLocation: /z\r\n" + TYPE), status=301,
         has=(("location", "/z"),)),
    AnswerRow("location-local", LOCATION, says(b"Location: /local\r\n", b""),
              (whole(302, b"", has=(("location", "/local"),)),), EITHER),
    good("lines-end-in-lf", HEAD, (out(b"Content-Type: a/b\n\nhello"),
                                   end())),
    good("lines-end-in-both", HEAD,
         (out(b"Content-Type: a/b\nX: y\r\n\nhello"), end()),
         has=(("x", "y"),)),
    good("no-body", HEAD, (out(TYPE + b"\r\n"), end()), b""),
    good("fields-pass", FIELD,
         says(TYPE + b"X-A: 1\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n"),
         has=(("x-a", "1"), ("set-cookie", "a=1"), ("set-cookie", "b=2"))),
    good("field-empty", FIELD, says(TYPE + b"X:\r\n"), has=(("x", ""),)),
    good("field-high-bytes", FIELD, says(TYPE + b"X: \xc3\xa9\r\n"),
         has=(("x", "\xc3\xa9"),)),
    good("field-hops-dropped", "RFC 9110 7.6.1",
         says(TYPE + b"Connection: X-P\r\nX-P: 1\r\nKeep-Alive: timeout=3"
              b"\r\nUpgrade: h2c\r\nTrailer: X\r\n"),
         lacks=("x-p", "keep-alive", "upgrade", "trailer")),
    good("field-upgrade-required", "RFC 9110 15.5.22",
         says(b"Status: 426 Upgrade Required\r\nUpgrade: foo/2\r\n" + TYPE),
         status=426, has=(("upgrade", "foo/2"), ("connection", "Upgrade"))),
    good("field-connection-close", "RFC 9110 7.6.1",
         says(TYPE + b"Connection: close\r\n"), origin_end=EITHER,
         client_end=EITHER),
    AnswerRow("field-transfer-encoding", "RFC 9112 6.1",
              says(TYPE + b"Transfer-Encoding: chunked\r\n",
                   b"5\r\nhello\r\n0\r\n\r\n"),
              (whole(200, b"5\r\nhello\r\n0\r\n\r\n"), FINE, BAD), EITHER),
    good("head-64-kib", FIELD,
         (out(TYPE + b"".join(b"X-%d: %s\r\n" % (i, b"v" * 4000)
                              for i in range(8))),
          out(b"".join(b"X-%d: %s\r\n" % (i, b"v" * 4000)
                       for i in range(8, 16)) + b"\r\nhello"), end()),
         has=(("x-0", "v" * 4000), ("x-15", "v" * 4000))),
    good("head-64-kib-of-fields", FIELD,
         (out(TYPE + sized(32768 - len(TYPE))),
          out(sized(32768).replace(b"Content-Length", b"X-Filling-Up-1") +
              b"\r\nhello"), end()),
         has=(("x-0", "v" * 4000), ("x-filling-up-1", "5"))),
    good("head-in-many-records", FIELD,
         tuple(out(b"X-%d: y\r\n" % i) for i in range(60)) +
         (out(b"\r\nhello"), end()), has=(("x-59", "y"),)),
    bad("head-300-kib", FIELD,
        tuple(out(b"X-%d: %s\r\n" % (i, b"v" * 30000)) for i in range(10)) +
        (out(b"\r\nhello"), end())),
    bad("head-without-end", FIELD, (out(TYPE), end())),
    bad("head-without-end-1-mib", FIELD,
        (Pieces(65536, (out(b"X: yyyyyyyy\r\n" * 5000),) * 16, 0),
         out(b"\r\n"), end())),
    bad("head-5000-fields", FIELD,
        (out(b"X: y\r\n" * 5000 + b"\r\nhello"), end())),
    bad("head-missing", HEAD, (end(),)),
    bad("head-empty-stdout", HEAD, (out(b""), end())),
    bad("head-empty-line-alone", HEAD, (out(b"\r\nhello"), end())),
    bad("head-html", HEAD, (out(b"<html>\n<p>hello\n\n</html>\n"), end())),
    bad("head-no-colon", FIELD, says(TYPE + b"nonsense\r\n")),
    bad("head-empty-name", FIELD, says(TYPE + b": y\r\n")),
    bad("head-space-in-name", FIELD, says(TYPE + b"X Y: z\r\n")),
    bad("head-space-before-colon", FIELD, says(TYPE + b"X : y\r\n")),
    bad("head-folded", FIELD, says(TYPE + b"X: y\r\n z\r\n")),
    bad("head-nul", FIELD, says(TYPE + b"X: a\0b\r\n")),
    bad("head-bare-cr", FIELD, says(TYPE + b"X: a\rb\r\n")),
    bad("head-control", FIELD, says(TYPE + b"X: a\x01b\r\n")),
    bad("head-name-high-byte", FIELD, says(TYPE + b"X\xe9: y\r\n")),
    bad("head-space-first", FIELD, says(b" X: y\r\n" + TYPE)),
]

# --- bodies ------------------------------------------------------------------------

LENGTH = TYPE + b"Content-Length: %d\r\n\r\n"

BODIES = [
    good("length-right", STREAM, (out(LENGTH % 5 + b"hello"), end()),
         has=(("content-length", "5"),)),
    good("length-0", STREAM, (out(LENGTH % 0), end()), b""),
    torn("length-short-body", INCOMPLETE,
         (out(LENGTH % 10 + b"hello"), end())),
    torn("length-short-body-late", INCOMPLETE,
         (out(LENGTH % 10 + b"hello"), AWAIT_HEAD, end())),
    torn("length-no-body", INCOMPLETE, (out(LENGTH % 10), end())),
    accepts("length-long-body", INCOMPLETE,
            (out(LENGTH % 5 + b"hello, evil"), end()), TORN),
    accepts("length-long-body-late", INCOMPLETE,
            (out(LENGTH % 5 + b"hello"), AWAIT_HEAD, out(b", evil"), end()),
            TORN),
    AnswerRow("length-0-with-body", INCOMPLETE,
              (out(LENGTH % 0 + b"evil"), end()), (whole(200, b""), TORN),
              EITHER),
    bad("length-word", "RFC 9110 8.6",
        says(TYPE + b"Content-Length: five\r\n")),
    bad("length-negative", "RFC 9110 8.6",
        says(TYPE + b"Content-Length: -5\r\n")),
    bad("length-twice", "RFC 9110 8.6",
        says(TYPE + b"Content-Length: 5\r\nContent-Length: 6\r\n")),
    bad("length-list", "RFC 9110 8.6",
        says(TYPE + b"Content-Length: 5, 5\r\n")),
    bad("length-2-64", "RFC 9110 8.6",
        says(TYPE + b"Content-Length: 18446744073709551621\r\n")),
    good("head-request", "RFC 9110 9.3.2", (out(LENGTH % 5), end()), b"",
         method=b"HEAD", has=(("content-length", "5"),)),
    good("head-request-body-sent", "RFC 9110 9.3.2",
         (out(LENGTH % 5 + b"hello"), end()), b"", method=b"HEAD",
         origin_end=EITHER),
    good("body-later", STREAM,
         (out(TYPE + b"\r\n"), AWAIT_HEAD, out(b"hel"), Pause(), out(b"lo"),
          end())),
    good("for-1.0", STREAM, (out(HELLO), end()), minor=0,
         client_end=CLOSED),
    torn("for-1.0-cut", INCOMPLETE, (out(HELLO), AWAIT_HEAD, CLOSE),
         minor=0),
]

# --- how a request ends ---------------------------------------------------------------

ENDINGS = [
    good("end-app-status-1", FINISH, (out(HELLO), end(1))),
    good("end-app-status-all-ones", FINISH, (out(HELLO), end(0xffffffff))),
    bad("end-cannot-multiplex", FINISH, (end(0, 1),)),
    bad("end-overloaded", FINISH, (end(0, 2),)),
    bad("end-unknown-role", FINISH, (end(0, 3),)),
    bad("end-protocol-status-77", FINISH, (end(0, 77),)),
    torn("end-overloaded-behind-body", FINISH,
         (out(HELLO), AWAIT_HEAD, end(0, 2))),
    bad("end-short", FINISH, (Rec(END, bytes(4)),)),
    bad("end-empty", FINISH, (Rec(END),)),
    bad("end-long", FINISH, (Rec(END, bytes(16)),)),
    torn("end-short-behind-body", FINISH,
         (out(HELLO), AWAIT_HEAD, Rec(END, bytes(3)))),
    good("end-reserved-not-zero", FINISH,
         (out(HELLO), Rec(END, bytes(5) + b"\1\2\3")), origin_end=EITHER),
    good("end-twice", KEPT, (out(HELLO), end(), end()), origin_end=CLOSED),
    good("end-then-garbage", KEPT, (out(HELLO), end(), b"garbage"),
         origin_end=CLOSED),
    good("end-then-another-answer", KEPT,
         (out(HELLO), end(), out(TYPE + b"\r\nevil"), end()),
         origin_end=CLOSED),
    good("end-then-answer-later", KEPT,
         (out(HELLO), end(), Pause(0.02), out(TYPE + b"\r\nevil"), end()),
         origin_end=CLOSED),
    good("end-then-close", KEPT, (out(HELLO), end(), CLOSE),
         origin_end=CLOSED),
    good("end-then-close-later", KEPT,
         (out(HELLO), end(), Pause(0.02), CLOSE), origin_end=CLOSED),
    good("end-then-half-close", KEPT, (out(HELLO), end(), HALF_CLOSE),
         origin_end=CLOSED),
    AnswerRow("no-end-stream-closed-then-close", FINISH,
              (out(HELLO), out(b""), CLOSE), (FINE, TORN), EITHER),
    torn("no-end-close", FINISH, (out(HELLO), AWAIT_HEAD, CLOSE)),
    torn("no-end-half-close", FINISH, (out(HELLO), AWAIT_HEAD, HALF_CLOSE)),
    torn("no-end-length-short-close", FINISH,
         (out(LENGTH % 10 + b"hello"), AWAIT_HEAD, CLOSE)),
]

# --- death at every point -----------------------------------------------------------------

SCRIPT = (err(b"e\n", padding=2), out(HELLO, padding=3), out(b""), end())
BYTES = b"".join(r.encode(1) for r in SCRIPT)
HEAD_ENDS = BYTES.index(b"\r\n\r\n") + 4
STREAM_ENDS = len(BYTES) - len(end().encode(1))


def deaths(step):
    rows = []
    for at in range(0, len(BYTES), step):
        steps = (BYTES[:at], CLOSE) if at else (CLOSE,)
        tries = (1, 2, 3) if at == 0 else (1,)
        if at < HEAD_ENDS:
            rows.append(bad(f"death-at-{at}", FINISH, steps, tries=tries))
        elif at < STREAM_ENDS:
            rows.append(torn(f"death-at-{at}", FINISH, steps))
        else:
            # The stream was closed; whether that is enough is a choice.
            rows.append(AnswerRow(f"death-at-{at}", FINISH, steps,
                                  (FINE, TORN), CLOSED))
    return rows


DEATHS = deaths(2) + [
    bad("death-unread", FINISH, (CLOSE,), early=True, method=b"POST",
        body=b"b" * 500000),
    bad("death-post", "RFC 9110 9.2.2", (CLOSE,), method=b"POST",
        body=b"hello"),
    bad("death-post-half-head", "RFC 9110 9.2.2", (out(TYPE), CLOSE),
        method=b"POST", body=b"hello"),
    bad("death-half-close", FINISH, (HALF_CLOSE,), tries=(1, 2, 3)),
]

# --- before the request's body is done -----------------------------------------------------


def early(name, steps, status=413, body=b"hello", origin_end=EITHER):
    return AnswerRow("early-" + name, FINISH, tuple(steps),
                     (whole(status, body),), origin_end, EITHER,
                     method=b"POST", body=b"u" * 700000, early=True)


LARGE = (out(b"Status: 413 Large\r\n" + HELLO), end())

EARLIES = [
    early("413-reads-on", LARGE),
    early("413-then-close", (*LARGE, Pause(0.1), CLOSE)),
    early("413-never-reads", (*LARGE, Pause(0.3), CLOSE)),
    early("200-before-body", (out(HELLO), end()), 200),
    early("error-and-413", (err(b"POST too large\n"), *LARGE)),
]

ROWS = (RECORDS + ERRORS + HEADS + BODIES + ENDINGS + DEATHS + EARLIES)
