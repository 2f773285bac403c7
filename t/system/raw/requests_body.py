"""Request rows: lengths, codings, chunks, Expect, pipelining, body limits."""
from raw.rows import (CLOSED, HALF_CLOSE, HOST, NOTHING_WHOLE, POST,
                      Await, Outcome, Pause, Want, chunked, cut, get, passes,
                      post, refused, row, several)

LENGTH = "RFC 9112 6.3"
NUMBER = "RFC 9110 8.6"
CODING = "RFC 9112 6.1"
CHUNK = "RFC 9112 7.1"
EXTENSION = "RFC 9112 7.1.1"
TRAILER = "RFC 9112 7.1.2"
SMUGGLE = "RFC 9112 11.2"
PIPE = "RFC 9112 9.3.2"
EXPECT = "RFC 9110 10.1.1"
HELLO = b"5\r\nhello\r\n0\r\n\r\n"


def ok(body=b"hello"):
    return passes(POST, body=body)


def length(value, body=b"hello"):
    return post(b"Content-Length: " + value + b"\r\n", body)


def coding(value, body=HELLO):
    return post(b"Transfer-Encoding: " + value + b"\r\n", body)


# --- Content-Length ------------------------------------------------------------

def bad_length(name, value):
    return row("length-" + name, NUMBER, length(value), refused(400, 413))


LENGTHS = [
    row("length-5", LENGTH, length(b"5"), ok()),
    row("length-0", LENGTH, length(b"0", b""), ok(b"")),
    row("length-missing", LENGTH, post(), ok(b"")),
    row("length-spaces-around", "RFC 9112 5.1", length(b"  5  "), ok()),
    row("length-leading-zeros", NUMBER, length(b"005"), ok(), refused()),
    row("length-50-zeros", NUMBER, length(b"0" * 50 + b"5"), ok(), refused()),
    row("length-with-get", "RFC 9110 9.3.1",
        get(b"Content-Length: 5\r\n", body=b"hello"), passes(body=b"hello")),
    row("length-with-delete", "RFC 9110 9.3.5",
        b"DELETE / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello",
        passes(b"DELETE / HTTP/1.1", body=b"hello")),
    row("length-with-head", "RFC 9110 9.3.2",
        b"HEAD / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello",
        passes(b"HEAD / HTTP/1.1", body=b"hello"), heads=(0,)),
    row("length-with-options", "RFC 9110 9.3.7",
        b"OPTIONS / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello",
        passes(b"OPTIONS / HTTP/1.1", body=b"hello")),
    row("length-all-bytes", LENGTH, length(b"256", bytes(range(256))),
        ok(bytes(range(256)))),
    row("length-body-looks-like-request", LENGTH,
        length(b"%d" % len(get(target=b"/evil")), get(target=b"/evil")),
        ok(get(target=b"/evil"))),
    row("length-300000", LENGTH, length(b"300000", b"abc" * 100000),
        ok(b"abc" * 100000)),
    bad_length("empty", b""),
    bad_length("negative", b"-5"),
    bad_length("negative-zero", b"-0"),
    bad_length("plus", b"+5"),
    bad_length("word", b"five"),
    bad_length("letter-behind", b"5a"),
    bad_length("letter-before", b"a5"),
    bad_length("hex", b"0x5"),
    bad_length("hex-digits", b"a"),
    bad_length("float", b"5.0"),
    bad_length("exponent", b"5e0"),
    bad_length("space-inside", b"5 5"),
    bad_length("tab-inside", b"5\t5"),
    bad_length("same-list", b"5, 5"),
    bad_length("same-list-tight", b"5,5"),
    bad_length("other-list", b"5, 6"),
    bad_length("comma-behind", b"5,"),
    bad_length("comma-before", b",5"),
    bad_length("semicolon", b"5;"),
    bad_length("quoted", b'"5"'),
    bad_length("underscore", b"1_0"),
    bad_length("nul", b"5\0"),
    bad_length("vertical-tab", b"5\x0b"),
    bad_length("form-feed-before", b"\x0c5"),
    bad_length("arabic-digit", "٥".encode()),
    bad_length("nbsp", b"\xa05"),
    bad_length("2-63", b"9223372036854775808"),
    bad_length("2-64", b"18446744073709551616"),
    bad_length("2-64-and-5", b"18446744073709551621"),
    bad_length("2-32-and-5-huge", b"4294967301"),
    bad_length("100-digits", b"9" * 100),
    row("length-twice-same", LENGTH,
        post(b"Content-Length: 5\r\nContent-Length: 5\r\n", b"hello"),
        refused()),
    row("length-twice-other", LENGTH,
        post(b"Content-Length: 5\r\nContent-Length: 0\r\n", b"hello"),
        refused()),
    row("length-twice-other-case", LENGTH,
        post(b"Content-Length: 0\r\ncontent-length: 5\r\n", b"hello"),
        refused()),
    row("length-twice-one-empty", LENGTH,
        post(b"Content-Length: 5\r\nContent-Length:\r\n", b"hello"),
        refused()),
    row("length-twice-apart", LENGTH,
        post(b"Content-Length: 0\r\nX: y\r\nContent-Length: 30\r\n",
             b"GET /evil HTTP/1.1\r\n" + HOST + b"\r\n"), refused()),
    row("length-twice-with-get", LENGTH,
        get(b"Content-Length: 0\r\nContent-Length: 5\r\n", body=b"hello"),
        refused()),
    row("length-space-before-colon", "RFC 9112 5.1",
        post(b"Content-Length : 5\r\n", b"hello"), refused()),
    row("length-folded", "RFC 9112 5.2",
        post(b"Content-Length:\r\n 5\r\n", b"hello"), refused()),
    row("length-folded-behind", "RFC 9112 5.2",
        post(b"Content-Length: 5\r\n 0\r\n", b"hello"), refused()),
    row("length-hidden-by-underscore", SMUGGLE,
        post(b"Content-Length: 5\r\nContent_Length: 0\r\n", b"hello"), ok()),
    row("length-body-short", LENGTH,
        (length(b"10"), HALF_CLOSE), cut(400, 408, None)),
    row("length-body-missing", LENGTH,
        (length(b"5", b""), HALF_CLOSE), cut(400, 408, None)),
    row("length-body-in-pieces", LENGTH,
        (length(b"5", b"he"), Pause(), b"ll", Pause(), b"o"), ok()),
    row("length-body-behind-head", LENGTH,
        (length(b"5", b""), Pause(), b"hello"), ok()),
]

# --- Transfer-Encoding -----------------------------------------------------------


def bad_coding(name, value):
    return row("coding-" + name, CODING, coding(value), refused(400, 501))


CODINGS = [
    row("coding-chunked", CODING, coding(b"chunked"), ok()),
    row("coding-any-case", CODING, coding(b"ChUnKeD"), ok()),
    row("coding-tab-before", "RFC 9112 5.1", coding(b"\tchunked"), ok()),
    row("coding-space-behind", "RFC 9112 5.1", coding(b"chunked  "), ok()),
    row("coding-with-get", "RFC 9110 9.3.1",
        get(b"Transfer-Encoding: chunked\r\n", body=HELLO),
        passes(body=b"hello")),
    bad_coding("empty", b""),
    bad_coding("gzip", b"gzip"),
    bad_coding("gzip-chunked", b"gzip, chunked"),
    bad_coding("chunked-gzip", b"chunked, gzip"),
    bad_coding("deflate-chunked", b"deflate,chunked"),
    bad_coding("identity", b"identity"),
    bad_coding("identity-chunked", b"identity, chunked"),
    bad_coding("chunked-identity", b"chunked, identity"),
    bad_coding("chunked-chunked", b"chunked, chunked"),
    bad_coding("letter-before", b"xchunked"),
    bad_coding("letter-behind", b"chunkedx"),
    bad_coding("cut", b"chunke"),
    bad_coding("cow", b"cow"),
    bad_coding("quoted", b'"chunked"'),
    bad_coding("single-quoted", b"'chunked'"),
    bad_coding("parameter", b"chunked;q=1"),
    bad_coding("semicolon", b"chunked;"),
    bad_coding("comma-behind", b"chunked,"),
    bad_coding("comma-before", b",chunked"),
    bad_coding("space-inside", b"chun ked"),
    bad_coding("nul-behind", b"chunked\0"),
    bad_coding("vertical-tab-before", b"\x0bchunked"),
    bad_coding("form-feed-behind", b"chunked\x0c"),
    bad_coding("high-byte", b"chunked\x80"),
    bad_coding("nbsp-before", b"\xa0chunked"),
    bad_coding("long-s", "chunked".replace("k", "\u212a").encode()),
    bad_coding("colon", b": chunked"),
    row("coding-twice", CODING,
        post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
             HELLO), refused(400, 501)),
    row("coding-twice-identity", CODING,
        post(b"Transfer-Encoding: identity\r\n"
             b"Transfer-Encoding: chunked\r\n", HELLO), refused(400, 501)),
    row("coding-twice-cow", CODING,
        post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n",
             HELLO), refused(400, 501)),
    row("coding-twice-case", CODING,
        post(b"Transfer-Encoding: chunked\r\ntRANSFER-eNCODING: x\r\n",
             HELLO), refused(400, 501)),
    row("coding-space-before-colon", SMUGGLE,
        post(b"Transfer-Encoding : chunked\r\n", HELLO), refused()),
    row("coding-tab-before-colon", SMUGGLE,
        post(b"Transfer-Encoding\t: chunked\r\n", HELLO), refused()),
    row("coding-space-before-name", SMUGGLE,
        post(b"X: y\r\n Transfer-Encoding: chunked\r\n", HELLO), refused()),
    row("coding-folded", SMUGGLE,
        post(b"Transfer-Encoding:\r\n chunked\r\n", HELLO), refused()),
    row("coding-folded-behind", SMUGGLE,
        post(b"Transfer-Encoding: chunked\r\n , identity\r\n", HELLO),
        refused()),
    row("coding-behind-bare-lf", SMUGGLE,
        post(b"X: y\nTransfer-Encoding: chunked\r\n", HELLO), refused()),
    row("coding-behind-bare-cr", SMUGGLE,
        post(b"X: y\rTransfer-Encoding: chunked\r\n", HELLO), refused()),
    row("coding-nul-in-name", SMUGGLE,
        post(b"Transfer-Encoding\0: chunked\r\n", HELLO), refused()),
    row("coding-bare-cr-in-value", SMUGGLE,
        post(b"Transfer-Encoding: chunked\rX: y\r\n", HELLO), refused()),
]


def both(name, *fields, body=HELLO):
    return row("both-" + name, SMUGGLE,
               post(b"".join(f + b"\r\n" for f in fields), body),
               refused(400, 501))


CL5, TE = b"Content-Length: 5", b"Transfer-Encoding: chunked"
SMUGGLED = b"0\r\n\r\nGET /evil HTTP/1.1\r\n" + HOST + b"\r\n"

BOTH = [
    both("length-first", CL5, TE),
    both("coding-first", TE, CL5),
    both("apart", CL5, b"X: y", TE),
    both("cl-te", b"Content-Length: %d" % len(SMUGGLED), TE, body=SMUGGLED),
    both("te-cl", b"Content-Length: 4", TE,
         body=b"2b\r\nGET /evil HTTP/1.1\r\n" + HOST + b"\r\n\r\n0\r\n\r\n"),
    both("te-te", CL5, TE, b"Transfer-encoding: cow"),
    both("length-0", b"Content-Length: 0", TE),
    both("identity", CL5, b"Transfer-Encoding: identity"),
    both("unknown-coding", CL5, b"Transfer-Encoding: xchunked"),
    both("empty-coding", CL5, b"Transfer-Encoding:"),
    both("empty-length", b"Content-Length:", TE),
    both("bad-length", b"Content-Length: x", TE),
    both("connection-names-length", b"Connection: Content-Length", CL5, TE),
    both("connection-names-coding", b"Connection: Transfer-Encoding", CL5,
         TE),
    both("vertical-tab", CL5, b"Transfer-Encoding: \x0bchunked"),
    both("space-before-colon", CL5, b"Transfer-Encoding : chunked"),
    both("quoted", CL5, b'Transfer-Encoding: "chunked"'),
    row("both-hidden-by-underscore", SMUGGLE,
        post(CL5 + b"\r\nTransfer_Encoding: chunked\r\n", b"hello"),
        passes(POST, body=b"hello", lacks=(b"transfer_encoding",
                                           b"transfer-encoding"))),
    row("both-hidden-by-dot", SMUGGLE,
        post(CL5 + b"\r\nTransfer.Encoding: chunked\r\n", b"hello"),
        passes(POST, body=b"hello", lacks=(b"transfer.encoding",))),
    row("both-with-get", SMUGGLE,
        get(CL5 + b"\r\n" + TE + b"\r\n", body=HELLO), refused()),
    row("both-1.0", SMUGGLE,
        b"POST / HTTP/1.0\r\n" + HOST + CL5 + b"\r\n" + TE + b"\r\n\r\n" +
        HELLO, refused()),
    row("both-te-field-is-no-coding", "RFC 9110 10.1.4",
        post(CL5 + b"\r\nTE: chunked\r\n", b"hello"), ok()),
]

# --- chunks ------------------------------------------------------------------------


def good(name, rfc, body, want=b"hello"):
    return row("chunk-" + name, rfc, chunked(body), ok(want))


def bad(name, rfc, body, *more):
    return row("chunk-" + name, rfc, chunked(body), cut(400, 413), *more)


CHUNKS = [
    good("one", CHUNK, HELLO),
    good("two", CHUNK, b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
    good("none", CHUNK, b"0\r\n\r\n", b""),
    good("hex-lower", CHUNK, b"a\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
    good("hex-upper", CHUNK, b"A\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
    good("leading-zeros", CHUNK, b"0005\r\nhello\r\n000\r\n\r\n"),
    good("of-one-byte-each", CHUNK,
         b"".join(b"1\r\n%c\r\n" % b for b in b"x" * 2000) + b"0\r\n\r\n",
         b"x" * 2000),
    good("data-looks-like-end", CHUNK,
         b"d\r\n0\r\n\r\nGET / HT\r\n0\r\n\r\n", b"0\r\n\r\nGET / HT"),
    good("data-of-cr-lf", CHUNK, b"4\r\n\r\n\r\n\r\n0\r\n\r\n", b"\r\n\r\n"),
    good("large", CHUNK, b"20000\r\n" + b"z" * 131072 + b"\r\n0\r\n\r\n",
         b"z" * 131072),
    good("extension", EXTENSION, b"5;a=b\r\nhello\r\n0\r\n\r\n"),
    good("extension-name", EXTENSION, b"5;a\r\nhello\r\n0\r\n\r\n"),
    good("extensions", EXTENSION, b"5;a=b;c;d=e\r\nhello\r\n0;f=g\r\n\r\n"),
    good("extension-quoted", EXTENSION,
         b'5;a="b;c \\" d"\r\nhello\r\n0\r\n\r\n'),
    row("chunk-zeros-2000", CHUNK,
        chunked(b"0" * 2000 + b"5\r\nhello\r\n0\r\n\r\n"), ok(), cut()),
    row("chunk-extension-space-around", EXTENSION,
        chunked(b"5 ; a = b\r\nhello\r\n0\r\n\r\n"), ok(), cut()),
    row("chunk-extension-3000-bytes", EXTENSION,
        chunked(b"5;" + b"a" * 3000 + b"\r\nhello\r\n0\r\n\r\n"), ok(),
        cut(400, 413, 431)),
    row("chunk-extension-100000-bytes", EXTENSION,
        chunked(b"5;" + b"a" * 100000 + b"\r\nhello\r\n0\r\n\r\n"),
        cut(400, 413, 431)),
    row("chunk-extensions-many", EXTENSION,
        chunked(b"".join(b"1;%s\r\nx\r\n" % (b"a" * 1000)
                         for _ in range(100)) + b"0\r\n\r\n"),
        ok(b"x" * 100), cut(400, 413)),
    bad("size-empty", CHUNK, b"\r\nhello\r\n0\r\n\r\n"),
    bad("size-word", CHUNK, b"five\r\nhello\r\n0\r\n\r\n"),
    bad("size-g", CHUNK, b"g\r\nhello\r\n0\r\n\r\n"),
    bad("size-letter-behind", CHUNK, b"5x\r\nhello\r\n0\r\n\r\n"),
    bad("size-negative", CHUNK, b"-5\r\nhello\r\n0\r\n\r\n"),
    bad("size-plus", CHUNK, b"+5\r\nhello\r\n0\r\n\r\n"),
    bad("size-0x", CHUNK, b"0x5\r\nhello\r\n0\r\n\r\n"),
    bad("size-upper-0x", CHUNK, b"0X5\r\nhello\r\n0\r\n\r\n"),
    bad("size-h", CHUNK, b"5h\r\nhello\r\n0\r\n\r\n"),
    bad("size-underscore", CHUNK, b"0_5\r\nhello\r\n0\r\n\r\n"),
    bad("size-comma", CHUNK, b"5,\r\nhello\r\n0\r\n\r\n"),
    bad("size-dot", CHUNK, b"5.0\r\nhello\r\n0\r\n\r\n"),
    bad("size-space-before", CHUNK, b" 5\r\nhello\r\n0\r\n\r\n"),
    bad("size-space-behind", CHUNK, b"5 \r\nhello\r\n0\r\n\r\n"),
    bad("size-tab-behind", CHUNK, b"5\t\r\nhello\r\n0\r\n\r\n"),
    bad("size-vertical-tab", CHUNK, b"5\x0b\r\nhello\r\n0\r\n\r\n"),
    bad("size-nul", CHUNK, b"5\0\r\nhello\r\n0\r\n\r\n"),
    bad("size-two", CHUNK, b"5 5\r\nhello\r\n0\r\n\r\n"),
    bad("size-quoted", CHUNK, b'"5"\r\nhello\r\n0\r\n\r\n'),
    bad("size-high-byte", CHUNK, b"5\x80\r\nhello\r\n0\r\n\r\n"),
    bad("size-fullwidth", CHUNK, "５\r\nhello\r\n0\r\n\r\n".encode()),
    bad("size-lf", CHUNK, b"5\nhello\r\n0\r\n\r\n"),
    bad("size-all-lf", CHUNK, b"5\nhello\n0\n\n"),
    bad("size-cr", CHUNK, b"5\rhello\r\n0\r\n\r\n"),
    bad("size-cr-cr-lf", CHUNK, b"5\r\r\nhello\r\n0\r\n\r\n"),
    bad("size-2-64", CHUNK, b"10000000000000005\r\nhello\r\n0\r\n\r\n"),
    bad("size-2-64-less-1", CHUNK, b"ffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
    bad("size-2-63", CHUNK, b"8000000000000000\r\nhello\r\n0\r\n\r\n"),
    row("chunk-size-2-32-and-5", CHUNK,
        (chunked(b"100000005\r\nhello\r\n0\r\n\r\n"), HALF_CLOSE),
        cut(400, 408, 413, None)),
    bad("size-100-digits", CHUNK, b"f" * 100 + b"\r\nhello\r\n0\r\n\r\n"),
    bad("data-long", CHUNK, b"5\r\nhello!\r\n0\r\n\r\n"),
    bad("data-long-by-two", CHUNK, b"5\r\nhello!!0\r\n\r\n"),
    bad("data-short", CHUNK, b"6\r\nhello\r\n0\r\n\r\n"),
    bad("data-end-lf", CHUNK, b"5\r\nhello\n0\r\n\r\n"),
    bad("data-end-cr", CHUNK, b"5\r\nhello\r0\r\n\r\n"),
    bad("data-end-lf-cr", CHUNK, b"5\r\nhello\n\r0\r\n\r\n"),
    bad("data-end-missing", CHUNK, b"5\r\nhello0\r\n\r\n"),
    bad("data-end-two-letters", CHUNK, b"5\r\nhelloXX0\r\n\r\n"),
    bad("data-end-letter-lf", CHUNK, b"5\r\nhelloX\n0\r\n\r\n"),
    bad("data-end-cr-letter", CHUNK, b"5\r\nhello\rX0\r\n\r\n"),
    bad("data-end-lf-lf", CHUNK, b"5\r\nhello\n\n0\r\n\r\n"),
    bad("data-end-twice", CHUNK, b"5\r\nhello\r\n\r\n0\r\n\r\n"),
    bad("size-cr-letter", CHUNK, b"5\rXhello\r\n0\r\n\r\n"),
    bad("extension-lf", EXTENSION, b"5;a\nhello\r\n0\r\n\r\n"),
    bad("extension-lf-smuggles", EXTENSION,
        b"5;\nxx\r\nhello\r\n0\r\n\r\n"),
    bad("extension-nul", EXTENSION, b"5;a\0b\r\nhello\r\n0\r\n\r\n"),
    bad("extension-cr", EXTENSION, b"5;a\rb\r\nhello\r\n0\r\n\r\n"),
    bad("extension-control", EXTENSION, b"5;a\x01\r\nhello\r\n0\r\n\r\n"),
    bad("extension-quote-over-line", EXTENSION,
        b'5;a="\r\nhello"\r\n0\r\n\r\n'),
    bad("extension-without-semicolon", EXTENSION,
        b"5 a=b\r\nhello\r\n0\r\n\r\n"),
    row("chunk-last-lf", CHUNK, chunked(b"5\r\nhello\r\n0\n\r\n"), cut()),
    row("chunk-end-lf", CHUNK, chunked(b"5\r\nhello\r\n0\r\n\n"), cut()),
    row("chunk-end-cr", CHUNK, chunked(b"5\r\nhello\r\n0\r\n\rX"), cut()),
    row("chunk-end-in-trailer-name", TRAILER,
        (chunked(b"5\r\nhello\r\n0\r\nXX"), HALF_CLOSE),
        cut(400, 408, None)),
    row("chunk-end-letter-lf", CHUNK, chunked(b"5\r\nhello\r\n0\r\nX\n"),
        cut()),
    row("chunk-end-missing", CHUNK, (chunked(b"5\r\nhello\r\n"), HALF_CLOSE),
        cut(400, 408, None)),
    row("chunk-end-half", CHUNK,
        (chunked(b"5\r\nhello\r\n0\r\n"), HALF_CLOSE), cut(400, 408, None)),
    row("chunk-cut-in-data", CHUNK, (chunked(b"5\r\nhel"), HALF_CLOSE),
        cut(400, 408, None)),
    row("chunk-cut-in-size", CHUNK, (chunked(b"5"), HALF_CLOSE),
        cut(400, 408, None)),
    row("chunk-body-missing", CHUNK, (chunked(b""), HALF_CLOSE),
        cut(400, 408, None)),
    row("chunk-byte-by-byte", CHUNK,
        (chunked(b""),) + tuple(x for b in HELLO
                                for x in (bytes([b]), Pause(0.0005))), ok()),
    row("chunk-cut-in-cr-lf", CHUNK,
        (chunked(b"5\r"), Pause(), b"\nhello\r", Pause(),
         b"\n0\r\n\r", Pause(), b"\n"), ok()),
    row("chunk-cut-in-extension", EXTENSION,
        (chunked(b"5;a="), Pause(), b"b\r\nhello\r\n0\r\n\r\n"), ok()),
]


def trailer(name, text, *outcomes):
    return row("trailer-" + name, TRAILER,
               chunked(b"5\r\nhello\r\n0\r\n" + text), *outcomes)


def without(*names):
    return passes(POST, body=b"hello", lacks=names)


TRAILERS = [
    trailer("one", b"X-T: y\r\n\r\n", without(b"x-t")),
    trailer("several", b"X-T: y\r\nX-U: z\r\n\r\n", without(b"x-t", b"x-u")),
    trailer("never-overrides", b"X-Forwarded-For: 6.6.6.6\r\n\r\n",
            without()),
    trailer("length", b"Content-Length: 6\r\n\r\n", without(), cut()),
    trailer("coding", b"Transfer-Encoding: gzip\r\n\r\n", without(), cut()),
    trailer("host", b"Host: evil.example\r\n\r\n", without(), cut()),
    trailer("no-colon", b"X\r\n\r\n", cut()),
    trailer("looks-like-request", b"GET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
            cut()),
    trailer("space-before-colon", b"X : y\r\n\r\n", cut()),
    trailer("empty-name", b": y\r\n\r\n", cut()),
    trailer("folded", b"X: y\r\n z\r\n\r\n", cut()),
    trailer("nul", b"X: y\0\r\n\r\n", cut()),
    trailer("bare-cr", b"X: y\rz\r\n\r\n", cut()),
    trailer("bare-lf", b"X: y\nZ: a\r\n\r\n", cut()),
    trailer("lf-ends", b"X: y\n\n", cut()),
    trailer("100000-bytes", b"X: " + b"y" * 100000 + b"\r\n\r\n",
            cut(400, 413, 431)),
    trailer("10000-fields", b"X: y\r\n" * 10000 + b"\r\n",
            cut(400, 413, 431)),
    row("trailer-cut", TRAILER,
        (chunked(b"5\r\nhello\r\n0\r\nX: y\r\n"), HALF_CLOSE),
        cut(400, 408, None)),
]

# --- limits of bodies: 1 MiB is configured -------------------------------------------

MIB = 1 << 20

BODY_LIMITS = [
    row("body-at-limit", "RFC 9110 15.5.14",
        length(b"%d" % MIB, b"b" * MIB), ok(b"b" * MIB)),
    row("body-over-limit", "RFC 9110 15.5.14",
        length(b"%d" % (MIB + 1), b""), refused(413)),
    row("body-over-limit-sent", "RFC 9110 15.5.14",
        length(b"%d" % (MIB + 1), b"b" * 60000), refused(413)),
    row("body-over-limit-1-tib", "RFC 9110 15.5.14",
        length(b"1099511627776", b""), refused(413)),
    row("body-over-limit-expect", "RFC 9110 15.5.14",
        post(b"Expect: 100-continue\r\nContent-Length: 1048577\r\n"),
        refused(413, 417)),
    row("body-over-limit-chunk-size", "RFC 9110 15.5.14",
        (chunked(b"%x\r\n" % (MIB + 1) + b"b" * 1000), HALF_CLOSE),
        cut(400, 408, 413, None)),
    row("body-over-limit-chunks", "RFC 9110 15.5.14",
        chunked((b"8000\r\n" + b"b" * 32768 + b"\r\n") * 33 + b"0\r\n\r\n"),
        cut(413)),
]

# --- Expect ----------------------------------------------------------------------

WAITS = post(b"Expect: 100-continue\r\nContent-Length: 5\r\n")

EXPECTS = [
    row("expect-waits", EXPECT, (WAITS, Await(1), b"hello"),
        Outcome((100, 200), "open", (Want(POST, body=b"hello"),))),
    row("expect-chunked", EXPECT,
        (post(b"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n"),
         Await(1), HELLO),
        Outcome((100, 200), "open", (Want(POST, body=b"hello"),))),
    row("expect-any-case", "RFC 9110 10.1.1",
        (post(b"Expect: 100-Continue\r\nContent-Length: 5\r\n"), Await(1),
         b"hello"),
        Outcome((100, 200), "open", (Want(POST, body=b"hello"),))),
    row("expect-body-already-here", EXPECT, WAITS + b"hello",
        Outcome((100, 200), "open", (Want(POST, body=b"hello"),)), ok()),
    row("expect-without-body", EXPECT, get(b"Expect: 100-continue\r\n"),
        passes(), Outcome((100, 200), "open", (Want(),))),
    row("expect-length-0", EXPECT,
        post(b"Expect: 100-continue\r\nContent-Length: 0\r\n"), ok(b""),
        Outcome((100, 200), "open", (Want(POST),))),
    row("expect-other", EXPECT,
        post(b"Expect: cake\r\nContent-Length: 5\r\n", b"hello"),
        refused(400, 417), ok()),
    row("expect-two", EXPECT,
        post(b"Expect: 100-continue, cake\r\nContent-Length: 5\r\n",
             b"hello"), refused(400, 417), ok()),
    row("expect-then-bad-chunk", EXPECT,
        (post(b"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n"),
         Await(1), b"x\r\n"),
        Outcome((100, 400), CLOSED, NOTHING_WHOLE)),
    row("expect-bad-head", EXPECT,
        post(b"Expect: 100-continue\r\nContent-Length: x\r\n"), refused()),
    row("expect-both-lengths", EXPECT,
        post(b"Expect: 100-continue\r\nContent-Length: 5\r\n"
             b"Transfer-Encoding: chunked\r\n"), refused()),
]

# --- pipelining ------------------------------------------------------------------


def wants(*targets):
    return tuple(Want(b"GET " + t + b" HTTP/1.1") for t in targets)


PIPELINES = [
    row("pipelined-two", PIPE, get(target=b"/1") + get(target=b"/2"),
        several((200, 200), wants(b"/1", b"/2"))),
    row("pipelined-20", PIPE,
        b"".join(get(target=b"/%d" % i) for i in range(20)),
        several((200,) * 20, wants(*(b"/%d" % i for i in range(20))))),
    row("pipelined-with-head", PIPE,
        get(target=b"/1") + b"HEAD /2 HTTP/1.1\r\n" + HOST + b"\r\n" +
        get(target=b"/3"),
        several((200, 200, 200),
                (Want(b"GET /1 HTTP/1.1"), Want(b"HEAD /2 HTTP/1.1"),
                 Want(b"GET /3 HTTP/1.1"))), heads=(1,)),
    row("pipelined-post-get", PIPE, length(b"5") + get(target=b"/2"),
        several((200, 200), (Want(POST, body=b"hello"), *wants(b"/2")))),
    row("pipelined-chunked-get", PIPE, chunked(HELLO) + get(target=b"/2"),
        several((200, 200), (Want(POST, body=b"hello"), *wants(b"/2")))),
    row("pipelined-three-posts", PIPE,
        length(b"5") + chunked(HELLO) + length(b"3", b"abc"),
        several((200,) * 3, (Want(POST, body=b"hello"),
                             Want(POST, body=b"hello"),
                             Want(POST, body=b"abc")))),
    row("pipelined-then-bad", PIPE,
        get(target=b"/1") + b"GET /2 HTTP/1.1\r\nX : y\r\n\r\n",
        several((200, 400), wants(b"/1"), CLOSED)),
    row("pipelined-bad-then-good", PIPE,
        b"GET /1 HTTP/1.1\r\n\r\n" + get(target=b"/2"), refused()),
    row("pipelined-post-then-garbage", SMUGGLE, length(b"5") + b"\0\1\2\3",
        several((200, 400), (Want(POST, body=b"hello"),), CLOSED)),
    row("pipelined-chunked-then-garbage", SMUGGLE, chunked(HELLO) + b"XX\0",
        several((200, 400), (Want(POST, body=b"hello"),), CLOSED)),
    row("pipelined-bad-chunk-then-good", SMUGGLE,
        chunked(b"z\r\n") + get(target=b"/evil"), cut()),
    row("pipelined-bad-length-then-good", SMUGGLE,
        length(b"x") + get(target=b"/evil"), refused()),
    row("pipelined-behind-close", "RFC 9112 9.6",
        get(b"Connection: close\r\n") + get(target=b"/evil"),
        passes(end=CLOSED)),
    row("pipelined-empty-line-between", "RFC 9112 2.2",
        get(target=b"/1") + b"\r\n" + get(target=b"/2"),
        several((200, 200), wants(b"/1", b"/2"))),
    row("pipelined-body-and-cr-lf", "RFC 9112 2.2",
        length(b"5") + b"\r\n" + get(target=b"/2"),
        several((200, 200), (Want(POST, body=b"hello"), *wants(b"/2")))),
    row("pipelined-in-pieces", PIPE,
        (get(target=b"/1")[:20], Pause(),
         get(target=b"/1")[20:] + get(target=b"/2")[:9], Pause(),
         get(target=b"/2")[9:]),
        several((200, 200), wants(b"/1", b"/2"))),
    row("pipelined-get-with-body-inside", SMUGGLE,
        get(b"Content-Length: %d\r\n" % len(get(target=b"/evil")),
            body=get(target=b"/evil")) + get(target=b"/2"),
        several((200, 200), (Want(body=get(target=b"/evil")),
                             *wants(b"/2")))),
    row("pipelined-then-half", PIPE,
        (get(target=b"/1") + b"GET /2 HT", Await(1), HALF_CLOSE),
        several((200, {400, 408, None}), wants(b"/1"), CLOSED)),
    row("pipelined-then-limit", PIPE,
        get(target=b"/1") + get(b"X: " + b"v" * 40000 + b"\r\n"),
        several((200, 431), wants(b"/1"), CLOSED)),
    row("expect-then-next", PIPE,
        (WAITS, Await(1), b"hello" + get(target=b"/2")),
        Outcome((100, 200, 200), "open",
                (Want(POST, body=b"hello"), *wants(b"/2")))),
]

ROWS = (LENGTHS + CODINGS + BOTH + CHUNKS + TRAILERS + BODY_LIMITS + EXPECTS +
        PIPELINES)
