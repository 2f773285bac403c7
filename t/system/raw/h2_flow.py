"""HTTP/2 rows: flow control in both directions, and priorities (RFC 9218)."""
from raw import h2_wire as wire
from raw.h2_rows import (ANY, GREETED, PING_ONLY, SETTLED, Outcome, Reset, Until,
                         Upload, answered, bytes_of, either, end_of, goaway,
                         head_of, reset, row)
from raw.h2_wire import (FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, MOST,
                         PROTOCOL_ERROR, STREAM_CLOSED, frame, get, post,
                         window)
from raw.rows import NOTHING_WHOLE, POST, Pause, Want

FLOW = "RFC 9113 5.2"
UPDATE = "RFC 9113 6.9"
WINDOW = "RFC 9113 6.9.1"
CHANGE = "RFC 9113 6.9.2"
W = wire.INITIAL_WINDOW_SIZE
BIG = b"/big/"                      # "/big/N": an answer of N bytes
TEN = b"/123456789"                 # the origin's answer is the target


def exactly(**streams):
    """So many bytes have come, and no end: {"s1": 5}."""
    def check(client):
        for name, n in streams.items():
            answer = client.answers.get(int(name[1:]))
            if answer is None or len(answer.body) != n or answer.ended:
                return f"{name}: {answer}, not {n} bytes"
        return None
    return Outcome({}, check=check)


def whole(**streams):
    def check(client):
        for name, n in streams.items():
            if len(client.answers[int(name[1:])].body) != n:
                return f"{name}: {client.answers}"
        return None
    return answered(*[int(name[1:]) for name in streams], check=check)


def open_windows(n=1 << 20):
    return wire.settings((W, n)) + window(0, n)


# When the server has answered PING, it has sent what it may send; some of the
# answer may still be on its way from the origin.
REST = Pause(0.03)
SENDING = [
    row("window-0-only-the-head", WINDOW, (get(1, TEN), head_of(1), REST),
        exactly(s1=0), settings=((W, 0),), probe=PING_ONLY),
    row("window-0-then-5", WINDOW,
        (get(1, TEN), head_of(1), window(1, 5), bytes_of(5), REST),
        exactly(s1=5), settings=((W, 0),), probe=PING_ONLY),
    row("window-0-then-all", WINDOW,
        (get(1, TEN), head_of(1), window(1, 10)), whole(s1=10),
        settings=((W, 0),), probe=PING_ONLY),
    row("window-byte-by-byte", WINDOW,
        (get(1, TEN), head_of(1)) + tuple(
            x for n in range(1, 11) for x in (window(1, 1), bytes_of(n))),
        whole(s1=10), settings=((W, 0),), probe=PING_ONLY),
    row("window-of-1", WINDOW, (get(1, TEN), bytes_of(1), window(1, 9)),
        whole(s1=10), settings=((W, 1),), probe=PING_ONLY),
    row("window-0-empty-answer", WINDOW, get(1, BIG + b"0"), whole(s1=0),
        settings=((W, 0),), probe=PING_ONLY),
    row("window-0-head-answer", WINDOW,
        wire.headers(1, wire.head(b"HEAD", TEN)), whole(s1=0), heads=(1,),
        settings=((W, 0),), probe=PING_ONLY),
    row("window-0-local-answer", WINDOW,
        (get(1, b"/local"), head_of(1), window(1, 3)), whole(s1=3),
        settings=((W, 0),), probe=PING_ONLY),
    row("window-stays-for-each-stream", FLOW,
        (get(1, TEN) + get(3, TEN), head_of(1), head_of(3), window(3, 10),
         end_of(3), REST), Outcome({3: 200}, check=exactly(s1=0).check),
        settings=((W, 0),), probe=PING_ONLY),
    row("window-of-65535-stops", WINDOW,
        (get(1, BIG + b"100000"), bytes_of(65535), REST), exactly(s1=65535),
        probe=PING_ONLY),
    row("window-of-65535-goes-on", WINDOW,
        (get(1, BIG + b"100000"), bytes_of(65535), window(0, 50000),
         window(1, 34465)), whole(s1=100000)),
    row("window-of-the-connection-stops", WINDOW,
        (wire.settings((W, 1 << 20)) +
         get(1, BIG + b"60000") + get(3, BIG + b"60000"),
         Until("total", 0, 65535), REST),
        Outcome(None, check=lambda c: None if sum(
            len(a.body) for a in c.answers.values()) == 65535
            else f"{c.answers}"), probe=PING_ONLY),
    row("window-of-the-connection-goes-on", WINDOW,
        (wire.settings((W, 1 << 20)) + get(1, BIG + b"60000") +
         get(3, BIG + b"60000"), Until("total", 0, 65535),
         window(0, 65535)), whole(s1=60000, s3=60000)),
    row("window-of-the-connection-first", WINDOW,
        window(0, 1 << 20) + wire.settings((W, 1 << 20)) +
        get(1, BIG + b"700000"), whole(s1=700000)),
    row("window-by-settings", CHANGE,
        (get(1, TEN), head_of(1), wire.settings((W, 10))), whole(s1=10),
        settings=((W, 0),), probe=PING_ONLY),
    row("window-by-settings-in-steps", CHANGE,
        (get(1, TEN), head_of(1)) + tuple(
            x for n in (2, 5, 9) for x in (wire.settings((W, n)),
                                           bytes_of(n))) + (REST,),
        exactly(s1=9), settings=((W, 0),), probe=PING_ONLY),
    row("window-negative-stays-shut", CHANGE,
        (get(1, BIG + b"100"), bytes_of(50), wire.settings((W, 20)),
         Until("acks", 0, 2), window(1, 30), REST), exactly(s1=50),
        settings=((W, 50),), probe=PING_ONLY),
    row("window-negative-then-5", CHANGE,
        (get(1, BIG + b"100"), bytes_of(50), wire.settings((W, 20)),
         Until("acks", 0, 2), window(1, 35), bytes_of(55), REST),
        exactly(s1=55), settings=((W, 50),), probe=PING_ONLY),
    row("window-negative-then-settings", CHANGE,
        (get(1, BIG + b"100"), bytes_of(50), wire.settings((W, 0)),
         Until("acks", 0, 2), wire.settings((W, 100))), whole(s1=100),
        settings=((W, 50),), probe=PING_ONLY),
    row("window-changes-for-the-next", CHANGE,
        (wire.settings((W, 3)) + get(1, TEN), bytes_of(3), REST),
        exactly(s1=3), probe=PING_ONLY),
    row("window-connection-not-by-settings", CHANGE,
        (wire.settings((W, MOST)) + get(1, BIG + b"100000"),
         bytes_of(65535), REST), exactly(s1=65535), probe=PING_ONLY),
    row("frames-of-16384", "RFC 9113 4.2",
        open_windows() + get(1, BIG + b"300000"), whole(s1=300000)),
    row("frames-may-be-larger", "RFC 9113 4.2",
        wire.settings((wire.MAX_FRAME_SIZE, 100000)) + open_windows() +
        get(1, BIG + b"300000"), whole(s1=300000)),
    row("frames-small-again", "RFC 9113 6.5.3",
        (wire.settings((wire.MAX_FRAME_SIZE, 100000)) +
         wire.settings((wire.MAX_FRAME_SIZE, 16384)) + open_windows(),
         Until("acks", 0, 4), get(1, BIG + b"300000")), whole(s1=300000)),
    row("answers-in-turn", "RFC 9113 5.2.1",
        open_windows() + b"".join(get(n, BIG + b"50000")
                                  for n in range(1, 20, 2)),
        whole(**{f"s{n}": 50000 for n in range(1, 20, 2)})),
    row("window-0-of-one-stops-no-other", "RFC 9113 5.2.2",
        (get(1, BIG + b"300000"), head_of(1), bytes_of(10),
         window(0, 500000) +
         b"".join(get(n, BIG + b"5000") for n in (3, 5, 7))),
        Outcome({3: 200, 5: 200, 7: 200})),
    row("reset-frees-the-window", WINDOW,
        (get(1, BIG + b"300000"), bytes_of(65535), wire.rst(1) +
         window(0, 65535) + get(3, BIG + b"60000")),
        Outcome({3: 200}, check=lambda c: None
                if len(c.answers[3].body) == 60000 else "short")),
]

UPDATES = [
    row("increment-0-connection", UPDATE, window(0, 0), goaway()),
    row("increment-0-stream", UPDATE, post() + window(1, 0),
        *either(PROTOCOL_ERROR, origin=NOTHING_WHOLE)),
    row("increment-0-closed-stream", UPDATE,
        (get(), end_of(), window(1, 0)), Outcome({1: 200}),
        goaway(origin=ANY)),
    row("increment-most-connection", WINDOW, window(0, MOST),
        goaway(FLOW_CONTROL_ERROR)),
    row("increment-most-stream", WINDOW, post() + window(1, MOST),
        *either(FLOW_CONTROL_ERROR, origin=NOTHING_WHOLE)),
    row("increment-to-the-most-connection", WINDOW,
        window(0, MOST - 65535) + get(), answered()),
    row("increment-above-the-most-connection", WINDOW,
        window(0, MOST - 65535) + window(0, 1), goaway(FLOW_CONTROL_ERROR)),
    row("increment-to-the-most-stream", WINDOW,
        post() + window(1, MOST - 65535) + wire.data(1, end=True),
        answered()),
    row("increment-above-the-most-stream", WINDOW,
        post() + window(1, MOST - 65535) + window(1, 1),
        *either(FLOW_CONTROL_ERROR, origin=NOTHING_WHOLE)),
    row("increments-in-steps-above", WINDOW,
        window(0, 1 << 30) * 2, goaway(FLOW_CONTROL_ERROR)),
    row("settings-above-a-stream-window", CHANGE,
        post() + window(1, 1) + wire.settings((W, MOST)),
        goaway(FLOW_CONTROL_ERROR, origin=NOTHING_WHOLE)),
    row("settings-to-the-most-of-a-stream", CHANGE,
        post() + window(1, 1) + wire.settings((W, MOST - 1)) +
        wire.data(1, end=True), answered()),
    row("increments-many", UPDATE, b"".join(
        window(0, n) for n in range(1, 90)) + get(), answered()),
]


# --- what we may send --------------------------------------------------------

def uploaded(n):
    return answered(wants=Want(POST, body=b"u" * n))


def above(client):
    """More than the stream's and the connection's window, at once."""
    n = max(client.settings.get(W, 65535), 65535) + 65536
    return b"".join(wire.data(1, bytes(16384))
                    for _ in range(n // 16384 + 1))


RECEIVING = [
    row("upload-of-900000", FLOW, (post(), Upload(1, 900000)),
        uploaded(900000)),
    row("upload-in-small-frames", FLOW, (post(), Upload(1, 100000, 100)),
        uploaded(100000)),
    row("upload-padded", "RFC 9113 6.1", (post(), Upload(1, 2000, 1, 255)),
        uploaded(2000)),
    row("upload-of-padding", "RFC 9113 6.1",
        (post(), Upload(1, 600, 0, 255)), uploaded(0)),
    row("upload-on-three-streams", FLOW,
        (post(1) + post(3) + post(5), Upload(1, 200000), Upload(3, 200000),
         Upload(5, 200000)), answered(1, 3, 5)),
    # What comes on closed streams takes from the connection's window and must
    # be given back to it.
    row("upload-behind-resets", "RFC 9113 5.1",
        tuple(x for n in range(1, 16, 2)
              for x in (post(n), Upload(n, 30000, end=False), wire.rst(n)))
        + (post(21), Upload(21, 200000)),
        Outcome({21: 200})),
    row("upload-on-streams-that-were-reset", "RFC 9113 5.1",
        tuple(x for n in range(1, 16, 2) for x in (
            wire.headers(n, wire.head(b"POST", fields=[(b"Upper", b"x")]),
                         False), Upload(n, 30000, end=False, blind=True)))
        + (post(21), Upload(21, 200000)),
        Outcome({21: 200, **{n: Reset((PROTOCOL_ERROR, STREAM_CLOSED))
                             for n in range(1, 16, 2)}}),
        goaway(STREAM_CLOSED, origin=ANY)),
    row("upload-to-a-local-answer", FLOW,
        tuple(x for n in range(1, 8, 2) for x in (
            post(n, b"/local"), Upload(n, 40000, blind=True)))
        + (post(21), Upload(21, 200000)),
        Outcome(dict.fromkeys((1, 3, 5, 7, 21), 200))),
    row("upload-above-the-windows", WINDOW,
        (post(1, b"/stuck"), GREETED, SETTLED, above),
        *either(FLOW_CONTROL_ERROR, origin=ANY)),
]


# --- priorities --------------------------------------------------------------

PRIORITY = "RFC 9218 7.1"


def updated(name, data, *outcomes):
    return row(f"priority-update-{name}", PRIORITY, data, *outcomes)


def field(name, value, rfc="RFC 9218 5"):
    return row(f"priority-field-{name}", rfc,
               get(1, b"/", (b"priority", value)), answered())


def contest(name, first, second, rfc):
    """Two answers wait for 16384 bytes of the connection's window: which
    one gets them?"""
    return row(f"priority-{name}", rfc,
               (get(1, BIG + b"49151"), end_of(1),
                wire.settings((W, 0)) + first(3) + second(5),
                Until("acks", 0, 2), head_of(3), head_of(5), REST,
                wire.settings((W, 20000)), Until("total", 0, 65535)),
               Outcome(None, check=first_got(5)), probe=PING_ONLY)


def first_got(stream):
    def check(client):
        got = {n: len(a.body) for n, a in client.answers.items() if n != 1}
        return None if got.get(stream) == 16384 else f"bytes {got}"
    return check


def asks(urgency):
    return lambda n: get(n, BIG + b"16384", (b"priority", urgency))


def asks_updated(urgency):
    return lambda n: get(n, BIG + b"16384") + wire.priority_update(
        n, urgency)


PRIORITIES = [
    field("urgency-0", b"u=0"),
    field("incremental", b"i"),
    field("both", b"u=7, i=?1"),
    field("unknown-parameter", b"x=5, u=2"),
    field("out-of-range", b"u=9"),
    field("no-dictionary", b"!!!, u=="),
    field("empty", b""),
    updated("of-an-open-stream", post() + wire.priority_update(1, b"u=0") +
            wire.data(1, end=True), answered()),
    updated("of-a-later-stream", wire.priority_update(1, b"u=0") + get(),
            answered()),
    updated("of-a-closed-stream", (get(), end_of(),
                                   wire.priority_update(1)),
            Outcome({1: 200})),
    updated("empty", wire.priority_update(1, b"") + get(), answered()),
    updated("no-dictionary", wire.priority_update(1, b"!!!") + get(),
            answered(), goaway(origin=ANY)),
    updated("on-a-stream", post() + wire.priority_update(1, stream=1),
            goaway(origin=NOTHING_WHOLE)),
    updated("of-stream-0", wire.priority_update(0), goaway()),
    updated("of-a-push", wire.priority_update(2), goaway()),
    updated("length-0", frame(wire.PRIORITY_UPDATE),
            goaway(FRAME_SIZE_ERROR)),
    updated("length-3", frame(wire.PRIORITY_UPDATE, payload=bytes(3)),
            goaway(FRAME_SIZE_ERROR)),
    contest("urgent-first", asks(b"u=7"), asks(b"u=0"), "RFC 9218 10"),
    contest("before-the-default", asks(b"u=4"), asks(b""), "RFC 9218 10"),
    contest("updated", asks_updated(b"u=6"), asks_updated(b"u=1"),
            PRIORITY),
]
ROWS = SENDING + UPDATES + RECEIVING + PRIORITIES
