"""Answer rows: chunks, bytes too many or too few, an end at every point,
answers that come before the request's body is done, HTTP/1.0 clients."""
from raw.answers_head import answer, bad, good, torn
from raw.rows import (AWAIT_HEAD, BAD, CLOSE, CLOSED, EITHER, HALF_CLOSE,
                      RESET, TORN, AnswerRow, Pause, whole)

CHUNK = "RFC 9112 7.1"
EXTENSION = "RFC 9112 7.1.1"
TRAILER = "RFC 9112 7.1.2"
INCOMPLETE = "RFC 9112 8"
EXTRA = "RFC 9112 11.1"
EARLY = "RFC 9112 9.5"
OLD = "RFC 9112 2.3"

END = b"0\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HELLO = b"5\r\nhello\r\n"


def fine(name, rfc, body, want=b"hello", **more):
    return good("chunk-" + name, rfc, HEAD + body, want, **more)


def wrong(name, rfc, body):
    return torn("chunk-" + name, rfc, HEAD + body)


def late(name, rfc, body):
    """What is wrong comes when the client has a part of the body."""
    return torn("late-" + name, rfc, (HEAD + HELLO, AWAIT_HEAD, body))


CHUNKS = [
    fine("one", CHUNK, HELLO + END),
    fine("two", CHUNK, b"2\r\nhe\r\n3\r\nllo\r\n" + END),
    fine("none", CHUNK, END, b""),
    fine("hex-upper", CHUNK, b"A\r\n0123456789\r\n" + END, b"0123456789"),
    fine("leading-zeros", CHUNK, b"00005\r\nhello\r\n0000\r\n\r\n"),
    fine("of-one-byte-each", CHUNK, b"1\r\nx\r\n" * 3000 + END, b"x" * 3000),
    fine("data-looks-like-end", CHUNK, b"5\r\n0\r\n\r\n\r\n" + END,
         b"0\r\n\r\n"),
    fine("1-mib", CHUNK, b"100000\r\n" + b"z" * 1048576 + b"\r\n" + END,
         b"z" * 1048576),
    fine("extension", EXTENSION, b"5;a=b\r\nhello\r\n0;c\r\n\r\n"),
    fine("extension-quoted", EXTENSION, b'5;a="b"\r\nhello\r\n' + END),
    fine("trailer", TRAILER, HELLO + b"0\r\nX-T: y\r\n\r\n", lacks=("x-t",)),
    fine("trailer-of-framing", TRAILER,
         HELLO + b"0\r\nX-Content-Length: 9\r\nX-T: y\r\n\r\n"),
    good("chunk-byte-by-byte", CHUNK,
         (HEAD,) + tuple(x for b in HELLO + END
                         for x in (bytes([b]), Pause(0.0005)))),
    good("chunk-close-behind-end", CHUNK, (HEAD + HELLO + END, CLOSE),
         origin_end=CLOSED),
    wrong("size-empty", CHUNK, b"\r\nhello\r\n" + END),
    wrong("size-word", CHUNK, b"five\r\nhello\r\n" + END),
    wrong("size-letter-behind", CHUNK, b"5x\r\nhello\r\n" + END),
    wrong("size-negative", CHUNK, b"-5\r\nhello\r\n" + END),
    wrong("size-plus", CHUNK, b"+5\r\nhello\r\n" + END),
    wrong("size-0x", CHUNK, b"0x5\r\nhello\r\n" + END),
    wrong("size-space-before", CHUNK, b" 5\r\nhello\r\n" + END),
    wrong("size-nul", CHUNK, b"5\0\r\nhello\r\n" + END),
    wrong("size-lf", CHUNK, b"5\nhello\r\n" + END),
    wrong("size-all-lf", CHUNK, b"5\nhello\n0\n\n"),
    wrong("size-cr", CHUNK, b"5\rhello\r\n" + END),
    wrong("size-cr-cr-lf", CHUNK, b"5\r\r\nhello\r\n" + END),
    wrong("size-2-64", CHUNK, b"10000000000000005\r\nhello\r\n" + END),
    wrong("size-2-63", CHUNK, b"8000000000000000\r\nhello\r\n" + END),
    wrong("size-2-64-less-1", CHUNK, b"ffffffffffffffff\r\nhello\r\n" + END),
    wrong("size-100-digits", CHUNK, b"f" * 100 + b"\r\nhello\r\n" + END),
    wrong("size-high-byte", CHUNK, b"5\xff\r\nhello\r\n" + END),
    wrong("size-underscore", CHUNK, b"0_5\r\nhello\r\n" + END),
    wrong("data-long", CHUNK, b"5\r\nhello!\r\n" + END),
    wrong("data-short", CHUNK, b"6\r\nhello\r\n" + END),
    wrong("data-end-missing", CHUNK, b"5\r\nhello" + END),
    wrong("data-end-lf", CHUNK, b"5\r\nhello\n" + END),
    wrong("data-end-cr", CHUNK, b"5\r\nhello\r" + END),
    wrong("data-end-two-letters", CHUNK, b"5\r\nhelloXX" + END),
    wrong("data-end-letter-lf", CHUNK, b"5\r\nhelloX\n" + END),
    wrong("data-end-cr-letter", CHUNK, b"5\r\nhello\rX" + END),
    wrong("data-end-lf-lf", CHUNK, b"5\r\nhello\n\n" + END),
    wrong("data-end-twice", CHUNK, b"5\r\nhello\r\n\r\n" + END),
    wrong("last-lf", CHUNK, HELLO + b"0\n\r\n"),
    wrong("end-lf", CHUNK, HELLO + b"0\r\n\n"),
    wrong("end-cr", CHUNK, HELLO + b"0\r\n\rX"),
    torn("chunk-end-in-trailer-name", TRAILER,
         (HEAD + HELLO + b"0\r\nXX", CLOSE)),
    wrong("end-letter-lf", CHUNK, HELLO + b"0\r\nX\n"),
    wrong("extension-lf", EXTENSION, b"5;a\nhello\r\n" + END),
    wrong("extension-nul", EXTENSION, b"5;\0\r\nhello\r\n" + END),
    wrong("extension-cr", EXTENSION, b"5;a\rb\r\nhello\r\n" + END),
    wrong("extension-100000-bytes", EXTENSION,
          b"5;" + b"a" * 100000 + b"\r\nhello\r\n" + END),
    wrong("trailer-no-colon", TRAILER, HELLO + b"0\r\nX\r\n\r\n"),
    wrong("trailer-looks-like-answer", TRAILER,
          HELLO + b"0\r\nHTTP/1.1 200 OK\r\n\r\n"),
    wrong("trailer-space-before-colon", TRAILER,
          HELLO + b"0\r\nX : y\r\n\r\n"),
    wrong("trailer-folded", TRAILER, HELLO + b"0\r\nX: y\r\n z\r\n\r\n"),
    wrong("trailer-nul", TRAILER, HELLO + b"0\r\nX: \0\r\n\r\n"),
    wrong("trailer-bare-lf", TRAILER, HELLO + b"0\r\nX: y\nZ: a\r\n\r\n"),
    wrong("trailer-without-end", TRAILER,
          HELLO + b"0\r\n" + b"X: y\r\n" * 50000),
    late("bad-size", CHUNK, b"zz\r\n"),
    late("bad-data-end", CHUNK, b"3\r\nabcX\r\n"),
    late("bad-trailer", TRAILER, b"0\r\nX\r\n\r\n"),
    late("lf", CHUNK, b"3\nabc\r\n0\r\n\r\n"),
    late("overflow", CHUNK, b"fffffffffffffffff\r\nabc"),
    late("garbage", CHUNK, b"\0\1\2\3" * 100),
    torn("late-close", INCOMPLETE, (HEAD + HELLO, AWAIT_HEAD, CLOSE)),
    torn("late-reset", INCOMPLETE, (HEAD + HELLO, AWAIT_HEAD, RESET)),
    torn("late-half-close", INCOMPLETE,
         (HEAD + HELLO, AWAIT_HEAD, HALF_CLOSE)),
    torn("late-close-behind-last-size", INCOMPLETE,
         (HEAD + HELLO, AWAIT_HEAD, b"0\r\n", CLOSE)),
    torn("late-length-close", INCOMPLETE,
         (answer(b"Content-Length: 10\r\n"), AWAIT_HEAD, CLOSE)),
    torn("late-length-reset", INCOMPLETE,
         (answer(b"Content-Length: 10\r\n"), AWAIT_HEAD, RESET)),
    torn("late-length-half-close", INCOMPLETE,
         (answer(b"Content-Length: 10\r\n"), AWAIT_HEAD, HALF_CLOSE)),
    torn("late-length-1-mib-cut", INCOMPLETE,
         (answer(b"Content-Length: 1048576\r\n", b"z" * 600000), AWAIT_HEAD,
          CLOSE)),
]

# --- more than there should be --------------------------------------------------------

EVIL = answer(body=b"evil!")


def more_than(name, steps, body=b"hello", **more):
    """The answer is whole; what is behind it belongs to nobody."""
    return good("extra-" + name, EXTRA, steps, body, origin_end=CLOSED,
                **more)


EXTRAS = [
    more_than("bytes", answer() + b"garbage"),
    more_than("one-byte", answer() + b"x"),
    more_than("cr-lf", answer() + b"\r\n"),
    more_than("answer", answer() + EVIL),
    more_than("answer-behind-chunks", HEAD + HELLO + END + EVIL),
    more_than("bytes-behind-chunks", HEAD + HELLO + END + b"x"),
    more_than("answer-behind-length-0",
              answer(b"Content-Length: 0\r\n", EVIL), b""),
    more_than("1-mib", answer() + b"x" * 1048576),
    more_than("answer-to-head", answer(body=EVIL), b"", method=b"HEAD"),
    more_than("answer-a-little-later", (answer(), Pause(0.02), EVIL)),
    more_than("bytes-a-little-later", (answer(), Pause(0.02), b"x")),
    more_than("close-a-little-later", (answer(), Pause(0.02), CLOSE)),
    more_than("reset-a-little-later", (answer(), Pause(0.02), RESET)),
    more_than("half-close", (answer(), HALF_CLOSE)),
    more_than("close", (answer(), CLOSE)),
]

# --- an end at every point --------------------------------------------------------------

PLAIN = answer(b"Content-Length: 5\r\nX: y\r\n")
CHUNKED = HEAD + b"3;e\r\nabc\r\n" + b"0\r\nT: u\r\n\r\n"


def cuts(name, text, step, **more):
    rows = []
    for at in range(len(text)):
        # Before the first byte a GET may be asked again.
        tries = (1, 2, 3) if at == 0 else (1,)
        head_ends = text.index(b"\r\n\r\n") + 4
        make = bad if at < head_ends else torn
        label = "reset" if step is RESET else "close"
        steps = (text[:at], step) if at else (step,)
        rows.append(make(f"{label}-{name}-{at}", INCOMPLETE, steps,
                         tries=tries, **more))
    return rows


ENDS = (cuts("length", PLAIN, CLOSE) + cuts("chunked", CHUNKED, CLOSE) +
        [row for i, row in enumerate(cuts("length", PLAIN, RESET))
         if i % 6 == 0] +
        [row for i, row in enumerate(cuts("chunked", CHUNKED, RESET))
         if i % 6 == 0]) + [
    bad("close-post-unanswered", "RFC 9110 9.2.2", (CLOSE,), method=b"POST",
        body=b"hello"),
    bad("close-post-half-answered", "RFC 9110 9.2.2",
        (b"HTTP/1.1 20", CLOSE), method=b"POST", body=b"hello"),
    bad("reset-post-unanswered", "RFC 9110 9.2.2", (RESET,), method=b"POST",
        body=b"hello"),
    bad("close-patch-unanswered", "RFC 9110 9.2.2", (CLOSE,),
        method=b"PATCH", body=b"hello"),
    bad("half-close-unanswered", INCOMPLETE, (HALF_CLOSE,), tries=(1, 2, 3)),
    bad("close-put-unanswered", "RFC 9110 9.2.2", (CLOSE,), method=b"PUT",
        body=b"hello", tries=(1, 2, 3)),
]

# --- an answer before the request's body is done ----------------------------------------

LARGE = b"u" * 900000
REFUSAL = answer(b"Content-Length: 5\r\n", b"large", b"HTTP/1.1 413 Large")
GOODBYE = answer(b"Connection: close\r\nContent-Length: 5\r\n", b"large",
                 b"HTTP/1.1 413 Large")


def early(name, steps, status=413, content=b"large", body=LARGE):
    return AnswerRow("early-" + name, EARLY, tuple(steps),
                     (whole(status, content),), EITHER, EITHER,
                     method=b"POST", body=body, early=True)


EARLIES = [
    early("413-reads-on", (REFUSAL,)),
    early("413-close-reads-on", (GOODBYE,)),
    early("413-and-stops-reading", (GOODBYE, Pause(0.2), CLOSE)),
    early("413-and-never-reads", (REFUSAL, Pause(0.5), CLOSE)),
    early("413-half-close", (GOODBYE, HALF_CLOSE)),
    early("413-half-close-stops-reading",
          (GOODBYE, HALF_CLOSE, Pause(0.2), CLOSE)),
    early("200-chunked", (HEAD + HELLO + END,), 200, b"hello"),
    early("200-reads-on", (answer(),), 200, b"hello"),
    early("401-to-small-body", (answer(line=b"HTTP/1.1 401 No"),), 401,
          b"hello", body=b"small"),
    early("204", (answer(b"", b"", b"HTTP/1.1 204 No"),), 204, b""),
    early("until-close", (answer(b"Connection: close\r\n"), HALF_CLOSE),
          200, b"hello"),
    early("large-answer",
          (answer(b"Content-Length: 800000\r\n", b"v" * 800000),), 200,
          b"v" * 800000),
    AnswerRow("early-malformed", EARLY, (b"garbage\r\n\r\n",), (BAD,),
              CLOSED, CLOSED, method=b"POST", body=LARGE, early=True),
    AnswerRow("early-close-without-answer", EARLY, (CLOSE,), (BAD,), CLOSED,
              CLOSED, method=b"POST", body=LARGE, early=True),
    AnswerRow("early-half-answer", EARLY,
              (answer(b"Content-Length: 10\r\n"), AWAIT_HEAD, CLOSE), (TORN,),
              CLOSED, CLOSED, method=b"POST", body=LARGE, early=True),
]

# --- for a client of HTTP/1.0 -------------------------------------------------------------


def old(name, steps, body=b"hello", **more):
    more.setdefault("client_end", CLOSED)
    return good("1.0-" + name, OLD, steps, body, minor=0, **more)


OLDS = [
    old("length", answer(), has=(("content-length", "5"),)),
    old("chunked", HEAD + HELLO + END, lacks=("transfer-encoding",)),
    old("chunked-empty", HEAD + END, b""),
    old("chunked-large", HEAD + b"100000\r\n" + b"z" * 1048576 + b"\r\n" +
        END, b"z" * 1048576),
    old("until-close", (answer(b""), CLOSE), origin_end=CLOSED),
    old("continue", b"HTTP/1.1 100 Continue\r\n\r\n" + answer()),
    old("keep-alive-length", answer(),
        fields=b"Connection: keep-alive\r\n", client_end="open"),
    old("keep-alive-chunked", HEAD + HELLO + END,
        fields=b"Connection: keep-alive\r\n"),
    torn("1.0-length-cut", INCOMPLETE,
         (answer(b"Content-Length: 10\r\n"), AWAIT_HEAD, CLOSE), minor=0),
    torn("1.0-chunked-cut", INCOMPLETE, (HEAD + HELLO, AWAIT_HEAD, CLOSE),
         minor=0),
    torn("1.0-chunked-wrong", CHUNK, (HEAD + HELLO, AWAIT_HEAD, b"zz\r\n"),
         minor=0),
    bad("1.0-garbage", OLD, b"garbage\r\n\r\n", minor=0),
]

ROWS = CHUNKS + EXTRAS + ENDS + EARLIES + OLDS
