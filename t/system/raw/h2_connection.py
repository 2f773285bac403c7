"""HTTP/2 rows: the preface, SETTINGS, PING, GOAWAY, frame sizes, and what is
unknown and must be ignored."""
from raw import h2_wire as wire
from raw.h2_rows import (ANY, GREETED, PING_ONLY, SETTLED, Outcome, Until,
                         answered, either, goaway, ignored, reset, row)
from raw.h2_wire import (COMPRESSION_ERROR, ENHANCE_YOUR_CALM,
                         FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, MOST,
                         PROTOCOL_ERROR, STREAM_CLOSED, frame, get, ping,
                         post)
from raw.rows import EITHER, NOTHING_WHOLE, Pause

BEGIN = "RFC 9113 3.4"
SIZE = "RFC 9113 4.2"
SETTINGS = "RFC 9113 6.5"
VALUES = "RFC 9113 6.5.2"
SYNC = "RFC 9113 6.5.3"
PING = "RFC 9113 6.7"
GOAWAY = "RFC 9113 6.8"
EXTEND = "RFC 9113 5.5"
FORMAT = "RFC 9113 4.1"
OPENING = wire.PREFACE + wire.settings()


def bare(name, opening, *outcomes, rfc=BEGIN, **more):
    return row(name, rfc, b"", *outcomes, opening=opening, **more)


def split(data, at):
    return (data[:at], Pause(), data[at:])


PREFACES = [
    row("preface-alone-in-a-packet", BEGIN,
        (wire.PREFACE, Pause(), wire.settings() + get()), answered(),
        opening=b""),
    row("preface-cut-in-its-first-line", BEGIN,
        split(OPENING + get(), 9), answered(), opening=b""),
    row("preface-cut-behind-its-first-line", BEGIN,
        split(OPENING + get(), 18), answered(), opening=b""),
    row("preface-cut-in-the-settings", BEGIN,
        split(OPENING + get(), 28), answered(), opening=b""),
    row("preface-in-bytes", BEGIN,
        tuple(x for b in OPENING for x in (bytes([b]), Pause(0.001))) +
        (get(),), answered(), opening=b""),
    row("first-frame-ping", BEGIN, ping(), goaway(),
        opening=wire.PREFACE),
    row("first-frame-headers", BEGIN, get(), goaway(),
        opening=wire.PREFACE),
    row("first-frame-window-update", BEGIN, wire.window(0, 5), goaway(),
        opening=wire.PREFACE),
    row("first-frame-goaway", BEGIN, wire.goaway(), goaway(),
        opening=wire.PREFACE),
    row("first-frame-unknown", BEGIN, frame(wire.UNKNOWN), goaway(),
        opening=wire.PREFACE),
    row("first-frame-settings-ack", BEGIN, wire.SETTINGS_ACK, goaway(),
        opening=wire.PREFACE),
    row("first-frame-too-long", BEGIN,
        frame(wire.SETTINGS, payload=b"", length=1 << 20),
        goaway(FRAME_SIZE_ERROR, PROTOCOL_ERROR), opening=wire.PREFACE),
    row("preface-twice", BEGIN, wire.PREFACE,
        goaway(FRAME_SIZE_ERROR, PROTOCOL_ERROR)),
]

# Where ALPN said h2, nothing else may be spoken. (A cleartext listener takes
# these for HTTP/1.)
BAD = goaway(no_goaway=True)
TLS_ONLY = [
    bare("preface-of-http-1",
         b"GET / HTTP/1.1\r\nHost: t.example\r\n\r\n", BAD, probe=b""),
    bare("preface-with-a-wrong-byte",
         b"PRI * HTTP/2.0\r\n\r\nSX\r\n\r\n" + wire.settings(), BAD),
    bare("preface-in-lower-case",
         b"pri * http/2.0\r\n\r\nsm\r\n\r\n" + wire.settings(), BAD),
    bare("preface-missing", wire.settings() + get(), BAD),
    bare("preface-of-zeros", bytes(64), BAD),
]


def setting(name, key, value, *outcomes, rfc=VALUES):
    return row(f"settings-{name}", rfc, wire.settings((key, value)) + get(),
               *outcomes)


def offers(client):
    said = client.settings
    for key, least in ((wire.MAX_CONCURRENT_STREAMS, 100),
                       (wire.MAX_HEADER_LIST_SIZE, 16384)):
        if not least <= said.get(key, 0) <= 1 << 20:
            return f"setting {key} is {said.get(key)}"
    if said.get(wire.ENABLE_CONNECT_PROTOCOL) != 1:
        return "no SETTINGS_ENABLE_CONNECT_PROTOCOL"
    return None


def acks(n):
    return lambda client: None if client.acks == n else \
        f"{client.acks} SETTINGS ACKs, not {n}"


ROWS_SETTINGS = [
    row("settings-offered", "RFC 9113 10.5", get(), answered(check=offers)),
    row("settings-acknowledged", SYNC,
        wire.settings() * 3 + wire.settings((0x77, 1)) + get(),
        answered(check=acks(5))),
    row("settings-never-acknowledged-by-us", SYNC, get(), answered(),
        acks=False),
    row("settings-ack-unasked", SYNC,
        (GREETED, Pause(), wire.SETTINGS_ACK, get()),
        answered(), goaway(origin=ANY)),
    row("settings-length-1", SETTINGS, frame(wire.SETTINGS, payload=b"x"),
        goaway(FRAME_SIZE_ERROR)),
    row("settings-length-5", SETTINGS, frame(wire.SETTINGS, payload=bytes(5)),
        goaway(FRAME_SIZE_ERROR)),
    row("settings-length-7", SETTINGS, frame(wire.SETTINGS, payload=bytes(7)),
        goaway(FRAME_SIZE_ERROR)),
    row("settings-length-7-first", SETTINGS,
        frame(wire.SETTINGS, payload=bytes(7)), goaway(FRAME_SIZE_ERROR),
        opening=wire.PREFACE),
    row("settings-ack-with-payload", SETTINGS,
        frame(wire.SETTINGS, wire.ACK, payload=bytes(6)),
        goaway(FRAME_SIZE_ERROR)),
    row("settings-on-a-stream", SETTINGS,
        frame(wire.SETTINGS, stream=1, payload=b""), goaway()),
    row("settings-ack-on-a-stream", SETTINGS,
        frame(wire.SETTINGS, wire.ACK, 1), goaway()),
    row("settings-unknown-flags", FORMAT,
        frame(wire.SETTINGS, 0xfe) + get(), answered(check=acks(2))),
    setting("push-0", wire.ENABLE_PUSH, 0, answered()),
    setting("push-1", wire.ENABLE_PUSH, 1, answered()),
    setting("push-2", wire.ENABLE_PUSH, 2, goaway()),
    setting("push-most", wire.ENABLE_PUSH, 0xffffffff, goaway()),
    setting("window-most", wire.INITIAL_WINDOW_SIZE, MOST, answered()),
    setting("window-above", wire.INITIAL_WINDOW_SIZE, MOST + 1,
            goaway(FLOW_CONTROL_ERROR)),
    setting("window-all-ones", wire.INITIAL_WINDOW_SIZE, 0xffffffff,
            goaway(FLOW_CONTROL_ERROR)),
    setting("frame-least", wire.MAX_FRAME_SIZE, 16384, answered()),
    setting("frame-most", wire.MAX_FRAME_SIZE, (1 << 24) - 1, answered()),
    setting("frame-0", wire.MAX_FRAME_SIZE, 0, goaway()),
    setting("frame-below", wire.MAX_FRAME_SIZE, 16383, goaway()),
    setting("frame-above", wire.MAX_FRAME_SIZE, 1 << 24, goaway()),
    setting("table-0", wire.HEADER_TABLE_SIZE, 0, answered()),
    setting("table-most", wire.HEADER_TABLE_SIZE, 0xffffffff, answered()),
    setting("streams-0", wire.MAX_CONCURRENT_STREAMS, 0, answered()),
    setting("streams-most", wire.MAX_CONCURRENT_STREAMS, 0xffffffff,
            answered()),
    setting("list-most", wire.MAX_HEADER_LIST_SIZE, 0xffffffff, answered()),
    setting("unknown-0", 0, 5, answered()),
    setting("unknown-0x7777", 0x7777, 0xffffffff, answered()),
    setting("connect-1", wire.ENABLE_CONNECT_PROTOCOL, 1, answered(),
            rfc="RFC 8441 3"),
    setting("connect-2", wire.ENABLE_CONNECT_PROTOCOL, 2, goaway(),
            answered(), rfc="RFC 8441 3"),
    row("settings-priorities-1", "RFC 9218 2.1", get(), answered(),
        settings=((wire.NO_RFC7540_PRIORITIES, 1),)),
    row("settings-priorities-2", "RFC 9218 2.1", b"", goaway(),
        settings=((wire.NO_RFC7540_PRIORITIES, 2),)),
    row("settings-in-order", SYNC,
        wire.settings((wire.INITIAL_WINDOW_SIZE, 0),
                      (wire.INITIAL_WINDOW_SIZE, 70000)) + get(), answered()),
    row("settings-bad-before-good", SYNC,
        wire.settings((wire.MAX_FRAME_SIZE, 1),
                      (wire.MAX_FRAME_SIZE, 16384)), goaway(), ignored()),
    row("settings-twenty-unknown", VALUES,
        wire.settings(*[(0x100 + n, n) for n in range(20)]) + get(),
        answered()),
    row("settings-thousand-unknown", "RFC 9113 10.5",
        wire.settings(*[(0x100 + n, n) for n in range(1000)]) + get(),
        answered(), goaway(ENHANCE_YOUR_CALM, origin=ANY)),
]


def pongs(*payloads):
    def check(client):
        got = [p for p in client.pongs if p != b"the end."]
        return None if got == list(payloads) else f"PING ACKs {got}"
    return answered(check=check)


ROWS_PING = [
    row("ping-acknowledged", PING, ping(b"\0\xff345678") + get(),
        pongs(b"\0\xff345678")),
    row("ping-five-in-order", PING,
        b"".join(ping(b"%08d" % n) for n in range(5)) + get(),
        pongs(*[b"%08d" % n for n in range(5)])),
    row("ping-unknown-flags", FORMAT,
        frame(wire.PING, 0xfe, payload=b"12345678") + get(),
        pongs(b"12345678")),
    row("ping-ack-unasked", PING, ping(ack=True) + get(), pongs()),
    row("ping-length-0", PING, frame(wire.PING), goaway(FRAME_SIZE_ERROR)),
    row("ping-length-7", PING, frame(wire.PING, payload=bytes(7)),
        goaway(FRAME_SIZE_ERROR)),
    row("ping-length-9", PING, frame(wire.PING, payload=bytes(9)),
        goaway(FRAME_SIZE_ERROR)),
    row("ping-ack-length-7", PING, frame(wire.PING, 1, payload=bytes(7)),
        goaway(FRAME_SIZE_ERROR)),
    row("ping-on-a-stream", PING, frame(wire.PING, 0, 1, b"12345678"),
        goaway()),
    row("ping-beside-an-open-stream", PING,
        post() + ping() + wire.data(1, b"x", end=True), pongs(b"12345678")),
]

# The request that was there before goes on, and then it may end.
SERVED = Outcome({1: 200}, EITHER)
ROWS_GOAWAY = [
    row("goaway-beside-a-request", GOAWAY,
        post() + wire.goaway() + wire.data(1, b"x", end=True), SERVED,
        probe=b""),
    row("goaway-with-debug-data", GOAWAY,
        post() + wire.goaway(0, 0xdeadbeef, b"x" * 1000) +
        wire.data(1, b"x", end=True), SERVED, probe=b""),
    row("goaway-of-an-error", GOAWAY,
        post() + wire.goaway(0, wire.INTERNAL_ERROR) +
        wire.data(1, b"x", end=True), SERVED, probe=b""),
    row("goaway-twice", GOAWAY,
        post() + wire.goaway(0) * 2 + wire.data(1, b"x", end=True), SERVED,
        probe=b""),
    row("goaway-on-a-stream", GOAWAY,
        frame(wire.GOAWAY, 0, 1, bytes(8)), goaway()),
    row("goaway-length-0", SIZE, frame(wire.GOAWAY),
        goaway(FRAME_SIZE_ERROR)),
    row("goaway-length-7", SIZE, frame(wire.GOAWAY, payload=bytes(7)),
        goaway(FRAME_SIZE_ERROR)),
]


def too_long(kind, flags=0, stream=0):
    """A frame one byte longer than the server takes."""
    def make(client):
        size = client.settings.get(wire.MAX_FRAME_SIZE, 16384) + 1
        return frame(kind, flags, stream, bytes(size))
    return make


def exactly(size):
    """A good head of so many bytes."""
    block = wire.head(fields=[(b"x", b"y" * (size // 2))])
    least = wire.hpack.literal(b"z", b"y" * 1000)
    return block + wire.hpack.literal(
        b"z", b"y" * (size - len(block) - len(least) + 1000))


def large(name, kind, before=b"", flags=0, stream=0, outcomes=None):
    return row(f"too-long-{name}", SIZE,
               (GREETED, before, too_long(kind, flags, stream)),
               *(outcomes or (goaway(FRAME_SIZE_ERROR, origin=ANY),)))


def sized(kind, size, rfc, *outcomes, stream=1):
    name = wire.NAMES[kind].lower().replace("_", "-")
    return row(f"{name}-length-{size}", rfc,
               post() + frame(kind, 0, stream, bytes(size)),
               *(outcomes or (goaway(FRAME_SIZE_ERROR,
                                     origin=NOTHING_WHOLE),)))


WHOLLY = either(FRAME_SIZE_ERROR, origin=NOTHING_WHOLE)
ROWS_SIZE = [
    large("data", wire.DATA, post(), 0, 1,
          either(FRAME_SIZE_ERROR, origin=NOTHING_WHOLE)),
    large("headers", wire.HEADERS, b"", 5, 1),
    large("priority", wire.PRIORITY, b"", 0, 1),
    large("rst-stream", wire.RST_STREAM, post(), 0, 1),
    large("settings", wire.SETTINGS),
    large("push-promise", wire.PUSH_PROMISE, post(), 4, 1,
          (goaway(FRAME_SIZE_ERROR, PROTOCOL_ERROR, origin=ANY),)),
    large("ping", wire.PING),
    large("goaway", wire.GOAWAY),
    large("window-update", wire.WINDOW_UPDATE),
    large("continuation", wire.CONTINUATION,
          wire.headers(1, wire.head(), whole=False), 4, 1),
    large("unknown", wire.UNKNOWN),
    row("too-long-said-only", SIZE,
        frame(wire.UNKNOWN, length=0xffffff), goaway(FRAME_SIZE_ERROR)),
    row("data-of-16384", SIZE,
        post() + wire.data(1, b"x" * 16384, end=True), answered()),
    row("headers-of-16384", SIZE, wire.headers(1, exactly(16384)),
        answered()),
    row("headers-of-17000-in-two", SIZE,
        wire.headers(1, exactly(17000)[:16384], whole=False) +
        wire.continuation(1, exactly(17000)[16384:]), answered()),
    sized(wire.PRIORITY, 4, "RFC 9113 6.3", *WHOLLY),
    sized(wire.PRIORITY, 6, "RFC 9113 6.3", *WHOLLY),
    sized(wire.RST_STREAM, 3, "RFC 9113 6.4"),
    sized(wire.RST_STREAM, 5, "RFC 9113 6.4"),
    sized(wire.RST_STREAM, 0, "RFC 9113 6.4"),
    sized(wire.WINDOW_UPDATE, 3, "RFC 9113 6.9"),
    sized(wire.WINDOW_UPDATE, 5, "RFC 9113 6.9"),
    row("window-update-length-0-connection", "RFC 9113 6.9",
        frame(wire.WINDOW_UPDATE), goaway(FRAME_SIZE_ERROR)),
    row("headers-too-short-for-priority", SIZE,
        frame(wire.HEADERS, 0x25, 1, bytes(4)),
        goaway(FRAME_SIZE_ERROR, PROTOCOL_ERROR)),
    row("headers-too-short-for-padding", SIZE, frame(wire.HEADERS, 0xd, 1),
        goaway(FRAME_SIZE_ERROR, PROTOCOL_ERROR)),
    row("data-too-short-for-padding", SIZE,
        post() + frame(wire.DATA, wire.PADDED, 1),
        *either(FRAME_SIZE_ERROR, origin=NOTHING_WHOLE),
        goaway(PROTOCOL_ERROR, origin=NOTHING_WHOLE)),
]


def odd(name, data, rfc=EXTEND):
    return row(name, rfc, data + get(), answered())


ROWS_UNKNOWN = [
    odd("unknown-frame-on-0", frame(wire.UNKNOWN, 0xff, 0, b"x" * 100)),
    odd("unknown-frame-empty", frame(wire.UNKNOWN)),
    odd("unknown-frame-of-16384", frame(wire.UNKNOWN, 0, 0, bytes(16384))),
    odd("unknown-frame-on-an-idle-stream", frame(wire.UNKNOWN, 0, 77, b"x")),
    odd("unknown-frame-on-an-even-stream", frame(wire.UNKNOWN, 0, 2, b"x")),
    odd("unknown-frame-0x0b", frame(0x0b, 0, 0, b"x")),
    odd("unknown-frame-0xff", frame(0xff, 0, 0, b"x")),
    odd("altsvc-from-a-client", frame(0x0a, 0, 0, b"\0\0h3"),
        "RFC 7838 4"),
    odd("origin-from-a-client", frame(0x0c, 0, 0, b"\0\1x"),
        "RFC 8336 2.1"),
    row("unknown-frame-beside-an-open-stream", EXTEND,
        post() + frame(wire.UNKNOWN, 0xff, 1, b"x" * 9) +
        wire.data(1, b"x", end=True), answered()),
    row("unknown-flags-of-headers", FORMAT,
        frame(wire.HEADERS, 0xc2 | 5, 1, wire.head()), answered()),
    row("unknown-flags-of-data", FORMAT,
        post() + frame(wire.DATA, 0xf6 | 1, 1, b"x"), answered()),
    row("unknown-flags-of-window-update", FORMAT,
        post() + frame(wire.WINDOW_UPDATE, 0xff, 1, b"\0\0\0\1") +
        wire.data(1, end=True), answered()),
    row("unknown-flags-of-rst-stream", FORMAT,
        post() + frame(wire.RST_STREAM, 0xff, 1, bytes(4)),
        Outcome({}, origin=NOTHING_WHOLE)),
    row("unknown-flags-of-continuation", FORMAT,
        wire.headers(1, wire.head(), whole=False) +
        frame(wire.CONTINUATION, 0xfb | 4, 1), answered()),
    row("reserved-bit-of-the-stream", FORMAT,
        frame(wire.HEADERS, 5, 1 | 1 << 31, wire.head()), answered()),
    row("reserved-bit-of-the-increment", "RFC 9113 6.9",
        frame(wire.WINDOW_UPDATE, 0, 0, b"\x80\0\0\1") + get(), answered()),
    row("reserved-bit-of-goaway", GOAWAY,
        post() + frame(wire.GOAWAY, payload=b"\x80" + bytes(7)) +
        wire.data(1, b"x", end=True), SERVED, probe=b""),
]

ROWS = PREFACES + ROWS_SETTINGS + ROWS_PING + ROWS_GOAWAY + ROWS_SIZE + \
    ROWS_UNKNOWN
