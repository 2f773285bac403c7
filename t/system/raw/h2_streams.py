"""HTTP/2 rows: stream identifiers, how many there may be, and every frame in
every state of a stream."""
from raw import h2_wire as wire
from raw.h2_rows import (ANY, GREETED, PING_ONLY, SETTLED, Outcome, Until,
                         answered, either, end_of, goaway, head_of, ignored,
                         reset, row)
from raw.h2_wire import (FRAME_SIZE_ERROR, PROTOCOL_ERROR, REFUSED_STREAM,
                         STREAM_CLOSED, frame, get, post)
from raw.rows import NOTHING_WHOLE

IDS = "RFC 9113 5.1.1"
STATES = "RFC 9113 5.1"
LIMIT = "RFC 9113 5.1.2"
UNEXPECTED = goaway(PROTOCOL_ERROR, STREAM_CLOSED, origin=ANY)


def on_zero(kind, payload=b"", flags=0):
    name = wire.NAMES[kind].lower().replace("_", "-")
    return row(f"stream-0-{name}", "RFC 9113 6", frame(
        kind, flags, 0, payload), goaway())


def answered_ids(*streams):
    return row("ids-" + "-".join(map(str, streams)), IDS,
               b"".join(get(one, b"/%d" % one) for one in streams),
               answered(*streams))


NUMBERS = [
    on_zero(wire.DATA, b"x"),
    on_zero(wire.HEADERS, wire.head(), 5),
    on_zero(wire.PRIORITY, bytes(5)),
    on_zero(wire.RST_STREAM, bytes(4)),
    on_zero(wire.PUSH_PROMISE, bytes(4) + wire.head(), 4),
    on_zero(wire.CONTINUATION, wire.head(), 4),
    row("even-2", IDS, get(2), goaway()),
    row("even-2-behind-1", IDS, get(1) + get(2), goaway(origin=ANY)),
    row("even-100-with-a-body", IDS, post(100) + wire.data(100, end=True),
        goaway()),
    answered_ids(1, 3, 5, 7),
    answered_ids(5, 7, 101),
    answered_ids(*range(1, 60, 2)),
    row("ids-most", IDS, get(wire.MOST), answered(wire.MOST),
        probe=PING_ONLY),
    row("decreasing", IDS, (get(5), end_of(5), get(3)), UNEXPECTED),
    row("decreasing-beside-an-open-one", IDS, post(5) + get(3), UNEXPECTED),
    row("decreasing-with-a-body", IDS,
        (get(5), end_of(5), post(3) + wire.data(3, b"x", end=True)),
        UNEXPECTED),
    row("same-again-while-open", IDS, post(1) + get(1, b"/2"),
        *either(PROTOCOL_ERROR, STREAM_CLOSED, origin=NOTHING_WHOLE)),
    row("out-of-order", "RFC 9113 5",
        (post(1), get(3), end_of(3), wire.data(1, b"x", end=True)),
        answered(1, 3)),
    row("three-bodies-in-turn", "RFC 9113 5",
        b"".join(post(n) for n in (1, 3, 5)) + b"".join(
            wire.data(n, b"%d" % k) for k in range(9) for n in (5, 1, 3)) +
        b"".join(wire.data(n, end=True) for n in (3, 5, 1)),
        answered(1, 3, 5)),
]


# --- how many ----------------------------------------------------------------

def limit_of(client):
    return client.settings[wire.MAX_CONCURRENT_STREAMS]


def fill(extra):
    """As many streams as there may be, none of them whole, and more."""
    return lambda c: b"".join(
        post(1 + 2 * n, b"/held") for n in range(limit_of(c) + extra))


def check_refused(client):
    last = 1 + 2 * limit_of(client)
    answer = client.answers.get(last)
    if answer is None or answer.reset not in (REFUSED_STREAM,
                                              PROTOCOL_ERROR):
        return f"stream {last} got {answer}"
    wrong = [n for n in range(1, last, 2) if n in client.answers]
    return f"streams {wrong} too" if wrong else None


def free_and_ask(client):
    used = limit_of(client)
    return b"".join(wire.rst(1 + 2 * n) for n in range(used)) + \
        get(1001 + 2 * used)


def check_freed(client):
    answer = client.answers.get(1001 + 2 * limit_of(client))
    return None if answer and answer.status == 200 and answer.ended \
        else f"the last stream got {answer}"


COUNTS = [
    row("streams-one-too-many", LIMIT, (GREETED, SETTLED, fill(1)),
        Outcome(None, check=check_refused), goaway(origin=ANY),
        probe=PING_ONLY),
    row("streams-all-reset-then-one", LIMIT,
        (GREETED, SETTLED, fill(0), free_and_ask),
        Outcome(None, check=check_freed), probe=PING_ONLY),
]


# --- every frame in every state ----------------------------------------------

S = 5                               # the stream that is looked at
BLOCK = wire.head(path=b"/again")
FRAMES = {
    "data": wire.data(S, b"xyz"),
    "data-end": wire.data(S, b"xyz", end=True),
    "headers": wire.headers(S, BLOCK, end=False),
    "headers-end": wire.headers(S, BLOCK),
    "trailers": wire.headers(S, wire.hpack.block((b"x-t", b"1"))),
    "priority": wire.priority(S),
    "rst-stream": wire.rst(S),
    "settings": frame(wire.SETTINGS, 0, S),
    "push-promise": wire.push_promise(S, S + 1, BLOCK),
    "ping": frame(wire.PING, 0, S, b"12345678"),
    "goaway": frame(wire.GOAWAY, 0, S, bytes(8)),
    "window-update": wire.window(S, 1),
    "continuation": wire.continuation(S, BLOCK),
    "unknown": frame(wire.UNKNOWN, 0, S, b"x"),
}
# Never right, whatever the state.
ALWAYS_WRONG = ("settings", "push-promise", "ping", "goaway", "continuation")
HEADS = ("headers", "headers-end", "trailers")
NOTHING = Outcome({}, origin=NOTHING_WHOLE)
# Rows of these have an answer that was whole before.
WAS = Outcome({S: 200})


def closed(outcome_of_stream):
    """What RFC 9113 lets a server do with frames on a closed stream."""
    return (outcome_of_stream, goaway(STREAM_CLOSED, origin=ANY))


HELD = ((wire.INITIAL_WINDOW_SIZE, 0),)
# A held answer, whose head came, and that a stream error ends.
HELD_RESET = reset(STREAM_CLOSED, stream=S, origin=ANY, status=200)
RESET_HELD = (HELD_RESET, reset(STREAM_CLOSED, stream=S, origin=ANY),
              goaway(STREAM_CLOSED, origin=ANY))
# malformed: the server resets it
BAD = wire.get(S, b"/", (b"Upper", b"x"))
WAS_BAD = reset(PROTOCOL_ERROR, stream=S)
WAS_BAD_AGAIN = reset(PROTOCOL_ERROR, STREAM_CLOSED, stream=S)

# state -> (how to get there, settings, frame -> outcomes, the others')
TABLE = {
    "idle": ((), (), {
        "headers": (NOTHING,), "headers-end": (WAS,),
        "trailers": (reset(stream=S),),
        "priority": (ignored(),), "unknown": (ignored(),),
    }, (goaway(),)),
    "open": ((post(S),), (), {
        "data": (NOTHING,), "data-end": (WAS,),
        "headers": either(PROTOCOL_ERROR, stream=S, origin=NOTHING_WHOLE),
        "headers-end": either(PROTOCOL_ERROR, stream=S,
                              origin=NOTHING_WHOLE),
        "trailers": (WAS,), "priority": (NOTHING,), "rst-stream": (NOTHING,),
        "window-update": (NOTHING,), "unknown": (NOTHING,),
    }, (goaway(origin=NOTHING_WHOLE),)),
    "half-closed": ((get(S, b"/held"), head_of(S)), HELD, {
        "data": RESET_HELD, "data-end": RESET_HELD, "headers": RESET_HELD,
        "headers-end": RESET_HELD, "trailers": RESET_HELD,
        "priority": (Outcome({}),), "rst-stream": (Outcome({}),),
        "window-update": (Outcome({}),), "unknown": (Outcome({}),),
    }, (goaway(origin=ANY),)),
    "closed": ((get(S), end_of(S)), (), {
        "data": closed(WAS), "data-end": closed(WAS),
        **dict.fromkeys(HEADS, (goaway(STREAM_CLOSED, origin=ANY),)),
        "priority": (WAS,), "unknown": (WAS,),
        "rst-stream": (WAS,), "window-update": (WAS,),
    }, (goaway(origin=ANY),)),
    "closed-by-client": ((post(S) + wire.rst(S),), (), {
        "data": closed(NOTHING) + (reset(STREAM_CLOSED, stream=S,
                                         origin=NOTHING_WHOLE),),
        "data-end": closed(NOTHING) + (reset(STREAM_CLOSED, stream=S,
                                             origin=NOTHING_WHOLE),),
        **dict.fromkeys(HEADS, (goaway(STREAM_CLOSED, origin=ANY),)),
        "priority": (NOTHING,), "unknown": (NOTHING,),
        "rst-stream": closed(NOTHING),
        "window-update": closed(NOTHING),
    }, (goaway(origin=NOTHING_WHOLE),)),
    "closed-by-server": ((BAD, end_of(S)), (), {
        "data": (WAS_BAD_AGAIN,) + closed(WAS_BAD),
        "data-end": (WAS_BAD_AGAIN,) + closed(WAS_BAD),
        "headers": closed(WAS_BAD) + (UNEXPECTED,),
        "headers-end": closed(WAS_BAD) + (UNEXPECTED,),
        "trailers": closed(WAS_BAD) + (UNEXPECTED,),
        "priority": (WAS_BAD,), "unknown": (WAS_BAD,),
        "rst-stream": (WAS_BAD,), "window-update": (WAS_BAD,),
    }, (goaway(),)),
}
# The probe's answer must come in spite of the windows.
FREED = wire.settings((wire.INITIAL_WINDOW_SIZE, 65535)) + wire.ping(
    b"the end.") + wire.get(4001, b"/after")


def state_rows():
    for state, (before, settings, outcomes, others) in TABLE.items():
        for name, data in FRAMES.items():
            what = outcomes.get(name, others)
            assert name in outcomes or name in ALWAYS_WRONG or \
                state == "idle", (state, name)
            if settings and name in ("priority", "window-update", "unknown"):
                # It is answered when the window opens.
                what = (WAS,)
            more = {"probe": FREED} if settings else {}
            yield row(f"state-{state}-{name}", STATES, before + (data,),
                      *what, settings=settings, **more)


PUSH = [
    row("push-promise-of-an-odd-stream", "RFC 9113 6.6",
        post() + wire.push_promise(1, 3, BLOCK), goaway(origin=ANY)),
    row("push-promise-without-end", "RFC 9113 6.6",
        post() + wire.push_promise(1, 2, BLOCK, whole=False),
        goaway(origin=ANY)),
    row("push-promise-too-short", "RFC 9113 6.6",
        post() + frame(wire.PUSH_PROMISE, 4, 1, b"\0\0"),
        goaway(PROTOCOL_ERROR, FRAME_SIZE_ERROR, origin=ANY)),
]

SELF = (answered(), reset(origin=ANY), goaway(origin=ANY))
PRIORITIES = [
    row("priority-of-itself", "RFC 7540 5.3.1",
        post() + wire.priority(1, 1) + wire.data(1, end=True), *SELF),
    row("priority-of-itself-in-headers", "RFC 7540 5.3.1",
        wire.headers(1, wire.head(), priority=(1, 15)), *SELF),
    row("priority-in-headers", "RFC 9113 6.2",
        wire.headers(1, wire.head(), priority=(0, 255)), answered()),
    row("priority-exclusive-of-an-idle-stream", "RFC 9113 6.2",
        wire.headers(1, wire.head(), priority=(1 << 31 | 99, 0)),
        answered()),
    row("priority-of-many-idle-streams", "RFC 9113 5.3.2",
        b"".join(wire.priority(n, n - 2, n % 256)
                 for n in range(3, 203, 2)) + get(301),
        answered(301)),
    row("priority-in-a-circle", "RFC 7540 5.3.3",
        post(1) + post(3) + wire.priority(1, 3) + wire.priority(3, 1) +
        wire.data(1, end=True) + wire.data(3, end=True), answered(1, 3)),
    row("priority-on-an-even-stream", "RFC 9113 6.3",
        wire.priority(2) + get(), answered(), goaway(origin=ANY)),
]

RESETS = [
    row("reset-then-next", "RFC 9113 6.4",
        post(1) + wire.rst(1) + get(3), answered(3)),
    row("reset-of-unknown-code", "RFC 9113 7",
        post(1) + wire.rst(1, 0xdeadbeef) + get(3), answered(3)),
    row("reset-twice", STATES, post(1) + wire.rst(1) * 2 + get(3),
        answered(3), goaway(STREAM_CLOSED, origin=ANY)),
    row("reset-of-a-body-half-way", "RFC 9113 6.4",
        post(1) + wire.data(1, b"half") + wire.rst(1) + get(3, b"/3"),
        answered(3)),
    row("reset-behind-a-whole-request", "RFC 9113 6.4",
        get(1) + wire.rst(1) + get(3), answered(3)),
    row("reset-of-a-held-answer", "RFC 9113 6.4",
        (get(S, b"/held"), head_of(S), wire.rst(S),
         wire.settings((wire.INITIAL_WINDOW_SIZE, 65535)), get(S + 2)),
        answered(S + 2), settings=HELD),
]

ROWS = NUMBERS + COUNTS + list(state_rows()) + PUSH + PRIORITIES + RESETS
