"""What a row of the HTTP/2 tables is made of. No sockets here.

A row says which bytes a client sends behind the preface and its SETTINGS, and
which outcomes are right: what came on the streams, whether the connection was
ended and by which code, and what the origin got. More than one outcome stands
only where the RFC leaves the choice. What holds for every answer whatever the
row (frame sizes, windows, legal fields, ...) is h2_client.py's to check.
"""
from dataclasses import dataclass

from raw import h2_wire as wire
from raw.rows import CLOSED, NOTHING_WHOLE, OPEN, Want

ANY = "any"                     # the origin may have got it or not


@dataclass(frozen=True)
class Until:
    """Go on when this has come; `what` is a name of h2_runner.REACHED."""
    what: str
    stream: int = 1
    n: int = 1


@dataclass(frozen=True)
class Upload:
    """A body, as the server's windows allow: so many bytes in frames of so
    many, then END_STREAM. `blind`: the stream may be over, only the
    connection's window counts."""
    stream: int
    n: int
    size: int = 16384
    pad: object = None
    end: bool = True
    blind: bool = False


def head_of(stream=1):
    return Until("head", stream)


def end_of(stream=1):
    return Until("end", stream)


def bytes_of(n, stream=1):
    return Until("bytes", stream, n)


SETTLED = Until("acks")         # our SETTINGS were acknowledged
GREETED = Until("settings")     # the server's SETTINGS came


@dataclass(frozen=True)
class Outcome:
    # stream -> a status, a set of statuses, or Reset; these must be over.
    # None: `check` looks at them.
    streams: dict
    end: str = OPEN
    codes: tuple = ()           # of the GOAWAY
    origin: object = ANY        # tuple of Want, NOTHING_WHOLE, ANY
    no_goaway: bool = False     # closing without one is right too
    check: object = None        # check(client): None, or what is wrong


@dataclass(frozen=True)
class Reset:
    codes: tuple
    # A stream that was answered and is then reset (NO_ERROR: "no more body").
    status: object = None


@dataclass(frozen=True)
class Row:
    name: str
    rfc: str
    send: tuple
    outcomes: tuple
    opening: bytes = b""
    heads: tuple = ()           # streams whose request is a HEAD
    probe: bytes = b""          # what shows that the connection goes on
    acks: bool = True           # the server's SETTINGS are acknowledged


PROBE_STREAM = 4001
PROBE = wire.ping(b"the end.") + wire.get(PROBE_STREAM, b"/after")
# For rows that used up the connection's window or must not open streams.
PING_ONLY = wire.ping(b"the end.")


def row(name, rfc, send, *outcomes, settings=(), **more):
    """`settings`: pairs for the client's first SETTINGS."""
    assert outcomes, name
    if isinstance(send, (bytes, bytearray)) or not isinstance(
            send, (tuple, list)):
        send = (send,)
    more.setdefault("opening", wire.PREFACE + wire.settings(*settings))
    more.setdefault("probe", PROBE)
    return Row(name, rfc, tuple(send), outcomes, **more)


# --- outcomes ----------------------------------------------------------------

def answered(*streams, status=200, wants=ANY, check=None):
    """These streams get whole answers and the connection goes on."""
    if isinstance(wants, Want):
        wants = (wants,)
    return Outcome({one: status for one in streams or (1,)}, OPEN, (), wants,
                   check=check)


def ignored():
    """As if it had not been sent."""
    return Outcome({}, OPEN, (), ())


def reset(*codes, stream=1, also=(), origin=(), status=None):
    """A stream error: RST_STREAM instead of an answer, and the connection
    goes on. `also`: streams that are answered 200 all the same."""
    streams = {one: 200 for one in also}
    streams[stream] = Reset(codes or (wire.PROTOCOL_ERROR,), status)
    return Outcome(streams, OPEN, (), ANY if also else origin)


def goaway(*codes, origin=(), **more):
    """A connection error: GOAWAY, and the end."""
    return Outcome({}, CLOSED, codes or (wire.PROTOCOL_ERROR,), origin, **more)


def either(*codes, origin=(), stream=1):
    """A stream error that may be treated as a connection error (section
    5.4.1): right where only a broken client does it."""
    return (reset(*codes, stream=stream, origin=origin),
            goaway(*codes, origin=origin))
