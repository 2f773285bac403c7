"""Frames of HTTP/2 (RFC 9113), right and wrong ones. No sockets here."""
import struct

from raw import h2_hpack as hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

(DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY,
 WINDOW_UPDATE, CONTINUATION) = range(10)
PRIORITY_UPDATE = 0x10
UNKNOWN = 0xfa
NAMES = ("DATA HEADERS PRIORITY RST_STREAM SETTINGS PUSH_PROMISE PING GOAWAY "
         "WINDOW_UPDATE CONTINUATION").split()

ACK = END_STREAM = 0x1
END_HEADERS, PADDED, HAS_PRIORITY = 0x4, 0x8, 0x20

(NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR,
 SETTINGS_TIMEOUT, STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL,
 COMPRESSION_ERROR, CONNECT_ERROR, ENHANCE_YOUR_CALM) = range(12)
ERRORS = ("NO_ERROR PROTOCOL_ERROR INTERNAL_ERROR FLOW_CONTROL_ERROR "
          "SETTINGS_TIMEOUT STREAM_CLOSED FRAME_SIZE_ERROR REFUSED_STREAM "
          "CANCEL COMPRESSION_ERROR CONNECT_ERROR ENHANCE_YOUR_CALM").split()

(HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE,
 MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE) = range(1, 7)
ENABLE_CONNECT_PROTOCOL, NO_RFC7540_PRIORITIES = 8, 9
MOST = (1 << 31) - 1


def error_name(code):
    return ERRORS[code] if code < len(ERRORS) else hex(code)


def frame(kind, flags=0, stream=0, payload=b"", length=None):
    """`length`: another one than the true one."""
    length = len(payload) if length is None else length
    return struct.pack(">I", length)[1:] + \
        struct.pack(">BBI", kind, flags, stream) + payload


def padded(payload, pad):
    """(flag, payload); `pad`: a number of bytes, None for no padding."""
    if pad is None:
        return 0, payload
    return PADDED, bytes([pad]) + payload + bytes(pad)


def data(stream, body=b"", end=False, pad=None):
    flag, payload = padded(body, pad)
    return frame(DATA, flag | (END_STREAM if end else 0), stream, payload)


def headers(stream, block, end=True, whole=True, pad=None, priority=None,
            flags=0):
    """`priority`: (dependency, weight), the exclusive bit in the first."""
    if priority is not None:
        block = struct.pack(">IB", *priority) + block
        flags |= HAS_PRIORITY
    flag, payload = padded(block, pad)
    flags |= flag | (END_STREAM if end else 0) | (END_HEADERS if whole else 0)
    return frame(HEADERS, flags, stream, payload)


def continuation(stream, block=b"", whole=True):
    return frame(CONTINUATION, END_HEADERS if whole else 0, stream, block)


def settings(*pairs):
    return frame(SETTINGS, payload=b"".join(
        struct.pack(">HI", key, value) for key, value in pairs))


SETTINGS_ACK = frame(SETTINGS, ACK)


def ping(payload=b"12345678", ack=False):
    return frame(PING, ACK if ack else 0, 0, payload)


def goaway(last=0, code=NO_ERROR, debug=b""):
    return frame(GOAWAY, 0, 0, struct.pack(">II", last, code) + debug)


def window(stream, increment):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", increment))


def rst(stream, code=CANCEL):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", code))


def priority(stream, dependency=0, weight=15):
    return frame(PRIORITY, 0, stream,
                 struct.pack(">IB", dependency, weight))


def push_promise(stream, promised, block, whole=True):
    return frame(PUSH_PROMISE, END_HEADERS if whole else 0, stream,
                 struct.pack(">I", promised) + block)


def priority_update(target, value=b"u=1", stream=0):
    """RFC 9218 section 7.1."""
    return frame(PRIORITY_UPDATE, 0, stream,
                 struct.pack(">I", target) + value)


# --- heads -------------------------------------------------------------------

AUTHORITY = b"t.example"


def head(method=b"GET", path=b"/", scheme=b"https", authority=AUTHORITY,
         fields=(), huff=False):
    """A block of literals. None: without that pseudo field. `fields` come
    behind them."""
    pairs = [(b":method", method), (b":scheme", scheme), (b":path", path),
             (b":authority", authority)]
    return hpack.block(*[(n, v) for n, v in pairs if v is not None], *fields,
                       huff=huff)


def get(stream=1, path=b"/", *fields, **more):
    """A whole request without a body."""
    return headers(stream, head(b"GET", path, fields=fields, **more))


def post(stream=1, path=b"/", *fields, end=False, **more):
    """The head of a request whose body follows."""
    return headers(stream, head(b"POST", path, fields=fields, **more), end)
