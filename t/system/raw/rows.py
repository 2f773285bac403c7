"""What a row of a table is made of. No sockets here.

A request row says which bytes a client sends and which outcomes are right: at
the client (statuses, then closed or still usable) and at the origin (which
requests came whole, or nothing at all). More than one outcome stands only
where RFC or good practice leave the choice.
"""
from dataclasses import dataclass

# How a connection must be when the row is over.
CLOSED, OPEN, EITHER = "closed", "open", "either"

# Steps of a client or an origin beside plain bytes.
HALF_CLOSE = "half-close"       # no more bytes from here
CLOSE = "close"
RESET = "reset"
AWAIT_HEAD = "await-head"       # until the client has seen an answer's head


@dataclass(frozen=True)
class Pause:
    """Lets the other side see what was sent before as a read of its own."""
    seconds: float = 0.01


@dataclass(frozen=True)
class Await:
    """Go on when so many answers (1xx count) have come."""
    answers: int = 1


@dataclass(frozen=True)
class Want:
    """One request as the origin must have got it. `line` and what `has` and
    `lacks` say is exact; names are compared without case."""
    line: bytes = b"GET / HTTP/1.1"
    has: tuple = ()             # (name, value) pairs
    lacks: tuple = ()           # names
    body: bytes = b""
    whole: bool = True          # False: begun, but cut before its end


# What may have come when a body turned out to be wrong half-way.
NOTHING_WHOLE = "nothing whole"


@dataclass(frozen=True)
class Outcome:
    # One entry an answer: a status, or a set of them; None in the set: the
    # connection may be closed without that answer.
    answers: tuple
    end: str
    origin: object              # tuple of Want, or NOTHING_WHOLE


@dataclass(frozen=True)
class Row:
    name: str
    rfc: str
    send: tuple
    outcomes: tuple
    heads: tuple = ()           # which answers belong to HEAD
    http10: bool = False        # the last request is of HTTP/1.0


def row(name, rfc, send, *outcomes, **more):
    if isinstance(send, (bytes, bytearray)):
        send = (bytes(send),)
    assert outcomes, name
    return Row(name, rfc, tuple(send), outcomes, **more)


# --- outcomes --------------------------------------------------------------

def refused(*statuses):
    """An error answer and the end, and the origin heard nothing."""
    return Outcome((set(statuses or (400,)),), CLOSED, ())


def declined(*statuses):
    """An error answer, and the origin heard nothing. What is wrong is no
    matter of framing, so the connection may go on."""
    return Outcome((set(statuses or (400,)),), EITHER, ())


def cut(*statuses):
    """The same, but a body had begun to flow: never a whole request."""
    return Outcome((set(statuses or (400,)),), CLOSED, NOTHING_WHOLE)


def ended():
    """Closed without a word, or with an error; the origin heard nothing."""
    return Outcome(({400, 408, None},), CLOSED, ())


def passes(line=b"GET / HTTP/1.1", has=(), lacks=(), body=b"", end=OPEN):
    """Reaches the origin, and its 200 reaches the client."""
    if isinstance(has, tuple) and len(has) == 2 and isinstance(has[0], bytes):
        has = (has,)
    return Outcome((200,), end, (Want(line, tuple(has), tuple(lacks), body),))


def local(*statuses, end=OPEN):
    """The proxy answers itself and the connection goes on."""
    return Outcome((set(statuses),), end, ())


def several(answers, wants, end=OPEN):
    return Outcome(tuple(answers), end, tuple(wants))


# --- requests ----------------------------------------------------------------

HOST = b"Host: t.example\r\n"


def get(fields=b"", target=b"/", body=b""):
    return b"GET " + target + b" HTTP/1.1\r\n" + HOST + fields + b"\r\n" + body


def post(fields=b"", body=b"", target=b"/"):
    return b"POST " + target + b" HTTP/1.1\r\n" + HOST + fields + b"\r\n" + \
        body


def chunked(body):
    return post(b"Transfer-Encoding: chunked\r\n", body)


def line(text):
    """A request that has this for its first line, without its end."""
    return text + b"\r\n" + HOST + b"\r\n"


POST = b"POST / HTTP/1.1"


# --- answers -------------------------------------------------------------------

@dataclass(frozen=True)
class Seen:
    """How the client must see an answer.

    kind: "whole"  this status, body and fields
          "bad"    502, nothing of the origin's answer
          "torn"   502, or an answer that is visibly not whole
    """
    kind: str
    status: int = 200
    body: object = None         # bytes; None: not looked at
    has: tuple = ()
    lacks: tuple = ()
    informs: tuple = ()         # 1xx statuses before it


@dataclass(frozen=True)
class AnswerRow:
    name: str
    rfc: str
    script: tuple
    seen: tuple
    origin_end: str             # of the connection to the origin
    client_end: str = EITHER
    method: bytes = b"GET"
    minor: int = 1
    body: bytes = b""
    fields: bytes = b""
    # The script begins when the head has come; the rest is read behind it.
    early: bool = False
    # How often the origin may have been asked.
    tries: tuple = (1,)


def whole(status=200, body=None, **more):
    return Seen("whole", status, body, **more)


BAD = Seen("bad")
TORN = Seen("torn")
