"""One HTTP/2 connection that sends exact bytes, and reads what the server
sends as strictly as RFC 9113 lets it: whatever a server may never send is an
error here, whichever row it happens in."""
import re
import socket
import ssl
import struct
import time

import scalws
from raw import h2_hpack as hpack
from raw import h2_wire as wire
from raw.h2_hpack import Wrong

TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+")
VALUE = re.compile(rb"[^\x00-\x08\x0a-\x1f\x7f]*")
# RFC 9113 section 8.2.2.
NEVER = {b"connection", b"keep-alive", b"proxy-connection", b"upgrade",
         b"transfer-encoding", b"te", b"http2-settings"}
PATIENCE = 8.0


class Late(Wrong):
    """What was awaited did not come."""


class Answer:
    """What came on a stream."""

    def __init__(self):
        self.informs = []           # statuses of 1xx
        self.status = None
        self.fields = []
        self.body = bytearray()
        self.trailers = []
        self.ended = False
        self.reset = None           # a code
        self.sizes = []             # of DATA frames

    def all(self, name):
        return [v for n, v in self.fields if n == name]

    @property
    def is_over(self):
        return self.ended or self.reset is not None

    def __repr__(self):
        said = f"{self.informs or ''}{self.status} {len(self.body)} bytes" \
            f"{' END' if self.ended else ''}"
        if self.reset is not None:
            said += " RESET " + wire.error_name(self.reset)
        return f"<{said}>"


def tls_context(alpn=("h2",)):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(list(alpn))
    return context


class H2Client:
    def __init__(self, address, tls=None, heads=(), patience=PATIENCE):
        self.sock = scalws.connect(address, patience)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.sock = tls.wrap_socket(self.sock,
                                        server_hostname="t.example")
            if self.sock.selected_alpn_protocol() != "h2":
                raise Wrong("ALPN gave "
                            f"{self.sock.selected_alpn_protocol()}")
        self.patience = patience * scalws.SLOW
        self.heads = set(heads)     # streams whose request is a HEAD
        self.acks_settings = True
        self.buffer = bytearray()
        self.closed = False
        self.decoder = hpack.Decoder()
        self.answers = {}
        self.log = []               # frames as text, for messages
        # what we said
        self.out = bytearray()
        self.greeted = False
        self.opened = set()
        self.pending = []           # our SETTINGS without an ACK
        self.pings = []
        self.acked = {wire.INITIAL_WINDOW_SIZE: 65535,
                      wire.MAX_FRAME_SIZE: 16384,
                      wire.HEADER_TABLE_SIZE: 4096}
        self.max_frame = 16384
        self.initial = 65535
        self.windows = {0: 65535}   # what the server may send
        # what the server said
        self.settings = None
        self.acks = 0
        self.pongs = []
        self.goaways = []           # (last stream, code, debug)
        self.block = None           # (stream, flags, bytes) being continued
        self.credit = {0: 65535}    # what we may send
        self.updates = 0

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.sock.close()

    # --- sending

    def send(self, data):
        """That the server has closed meanwhile is no error here."""
        self.note(data)
        self.sock.settimeout(self.patience)
        try:
            self.sock.sendall(data)
        except OSError:
            pass
        return self

    def note(self, data):
        """Keep account of what our frames allow the server to do."""
        self.out += data
        if not self.greeted:
            if not self.out.startswith(wire.PREFACE):
                return
            self.greeted = True
            del self.out[:len(wire.PREFACE)]
        while len(self.out) >= 9:
            size = int.from_bytes(self.out[:3], "big")
            if len(self.out) < 9 + size:
                break
            kind, flags, stream = struct.unpack(">BBI", self.out[3:9])
            payload = bytes(self.out[9:9 + size])
            del self.out[:9 + size]
            self.note_frame(kind, flags, stream & wire.MOST, payload)

    def note_frame(self, kind, flags, stream, payload):
        if kind == wire.HEADERS:
            self.opened.add(stream)
            self.windows.setdefault(stream, self.initial)
        elif kind == wire.SETTINGS and not flags & wire.ACK:
            self.note_settings(payload)
        elif kind == wire.PING:
            self.pings.append(payload)
        elif kind == wire.WINDOW_UPDATE and len(payload) == 4:
            self.windows.setdefault(stream, self.initial)
            self.windows[stream] += int.from_bytes(payload, "big") & wire.MOST

    def note_settings(self, payload):
        pairs = list(struct.iter_unpack(">HI", payload)) \
            if len(payload) % 6 == 0 else []
        self.pending.append(pairs)
        self.heed()

    def heed(self):
        """What allows more counts when it is sent, what allows less with its
        ACK: the most of what was acknowledged and what is on its way."""
        def most(key):
            return max([self.acked[key]] + [
                value for pairs in self.pending for k, value in pairs
                if k == key])
        initial = most(wire.INITIAL_WINDOW_SIZE)
        for stream in self.windows:
            if stream:
                self.windows[stream] += initial - self.initial
        self.initial = initial
        self.max_frame = max(16384, most(wire.MAX_FRAME_SIZE))
        self.decoder.most = most(wire.HEADER_TABLE_SIZE)

    # --- reading

    def read(self, timeout):
        """Take what there is, wait at most so long for it. False: nothing."""
        self.sock.settimeout(max(timeout, 0))
        try:
            data = self.sock.recv(262144)
        except (socket.timeout, BlockingIOError, ssl.SSLWantReadError):
            return False
        except (ConnectionError, ssl.SSLError):
            data = b""
        if not data:
            if self.buffer:
                raise Wrong(f"half a frame at the end: {self.buffer[:60]!r}")
            self.closed = True
            return True
        self.buffer += data
        while len(self.buffer) >= 9:
            size = int.from_bytes(self.buffer[:3], "big")
            if size > self.max_frame:
                raise Wrong(f"a frame of {size} bytes: {self.buffer[:9]!r}")
            if len(self.buffer) < 9 + size:
                break
            kind, flags, stream = struct.unpack(">BBI", self.buffer[3:9])
            payload = bytes(self.buffer[9:9 + size])
            del self.buffer[:9 + size]
            self.on_frame(kind, flags, stream, payload)
        return True

    def pump(self, until, why="", patience=None):
        """Read until until() or the end of the connection."""
        deadline = time.monotonic() + (patience or self.patience)
        while not self.closed and not until():
            if not self.read(deadline - time.monotonic()) and \
                    time.monotonic() >= deadline:
                raise Late(f"not within {self.patience:g} s: {why}; "
                           f"{self.story()}")
        return not self.closed or until()

    def story(self):
        return f"answers {self.answers}, frames: " + " ".join(self.log[-30:])

    def on_frame(self, kind, flags, stream, payload):
        name = wire.NAMES[kind] if kind < len(wire.NAMES) else hex(kind)
        self.log.append(f"{name}({stream}, {flags:#x}, {len(payload)})")
        if stream > wire.MOST:
            raise Wrong(f"the reserved bit in {self.log[-1]}")
        if self.settings is None and (kind != wire.SETTINGS or flags):
            raise Wrong(f"{self.log[-1]} before the server's SETTINGS")
        if self.block and kind != wire.CONTINUATION:
            raise Wrong(f"{self.log[-1]} inside a header block")
        if kind >= len(wire.NAMES):
            return
        getattr(self, "on_" + name.lower())(flags, stream, payload)

    def need(self, condition, what):
        if not condition:
            raise Wrong(f"{what}: {self.story()}")

    def on_settings(self, flags, stream, payload):
        self.need(stream == 0, "SETTINGS on a stream")
        if flags & wire.ACK:
            self.need(not payload, "SETTINGS ACK with a payload")
            self.need(self.pending, "SETTINGS ACK of nothing")
            self.acks += 1
            self.apply(self.pending.pop(0))
            return
        self.need(len(payload) % 6 == 0, "SETTINGS of a wrong size")
        self.settings = dict(self.settings or {})
        for key, value in struct.iter_unpack(">HI", payload):
            self.check_setting(key, value)
            if key == wire.INITIAL_WINDOW_SIZE:
                old = self.settings.get(key, 65535)
                for stream in self.credit:
                    if stream:
                        self.credit[stream] += value - old
            self.settings[key] = value
        if self.acks_settings:
            self.send(wire.SETTINGS_ACK)

    def check_setting(self, key, value):
        self.need(key != wire.ENABLE_PUSH or value == 0,
                  "the server says ENABLE_PUSH")
        self.need(key != wire.INITIAL_WINDOW_SIZE or value <= wire.MOST,
                  "INITIAL_WINDOW_SIZE")
        self.need(key != wire.MAX_FRAME_SIZE or 16384 <= value < 1 << 24,
                  "MAX_FRAME_SIZE")
        self.need(key not in (wire.ENABLE_CONNECT_PROTOCOL,
                              wire.NO_RFC7540_PRIORITIES) or value in (0, 1),
                  f"setting {key} is {value}")

    def apply(self, pairs):
        """Our SETTINGS are in force."""
        tables = [v for k, v in pairs if k == wire.HEADER_TABLE_SIZE]
        for key, value in pairs:
            self.acked[key] = value
        self.heed()
        if tables:
            self.decoder.limit(min(tables))

    def on_ping(self, flags, stream, payload):
        self.need(stream == 0 and len(payload) == 8, "an ill-formed PING")
        if flags & wire.ACK:
            self.need(payload in self.pings, "a PING ACK of nothing")
            self.pongs.append(payload)
        else:
            self.send(wire.ping(payload, ack=True))

    def on_goaway(self, flags, stream, payload):
        self.need(stream == 0 and len(payload) >= 8, "an ill-formed GOAWAY")
        last, code = struct.unpack(">II", payload[:8])
        self.need(not self.goaways or last <= self.goaways[-1][0],
                  "GOAWAY with a higher stream than before")
        self.goaways.append((last, code, payload[8:]))

    def on_window_update(self, flags, stream, payload):
        self.need(len(payload) == 4, "WINDOW_UPDATE of a wrong size")
        increment = int.from_bytes(payload, "big")
        self.need(0 < increment <= wire.MOST, f"increment {increment}")
        self.need(stream == 0 or stream in self.opened, "an idle stream")
        self.updates += 1
        self.room(stream)
        self.credit[stream] += increment
        self.need(self.credit[stream] <= wire.MOST, "a window too large")

    def room(self, stream):
        """What we may send on a stream."""
        return self.credit.setdefault(stream, (self.settings or {}).get(
            wire.INITIAL_WINDOW_SIZE, 65535))

    def is_reset(self, stream):
        return stream in self.answers and \
            self.answers[stream].reset is not None

    def on_rst_stream(self, flags, stream, payload):
        self.need(len(payload) == 4, "RST_STREAM of a wrong size")
        answer = self.answer(stream)
        if answer.reset is None:
            answer.reset = int.from_bytes(payload, "big")

    def on_push_promise(self, flags, stream, payload):
        raise Wrong("PUSH_PROMISE, which nobody asked for")

    def on_priority(self, flags, stream, payload):
        raise Wrong("PRIORITY from a server")

    def answer(self, stream):
        self.need(stream in self.opened, f"a frame on {stream}, not opened")
        return self.answers.setdefault(stream, Answer())

    def on_headers(self, flags, stream, payload):
        self.block = [stream, flags, self.unpad(flags, payload)]
        if flags & wire.HAS_PRIORITY:
            self.block[2] = self.block[2][5:]
        if flags & wire.END_HEADERS:
            self.on_block()

    def on_continuation(self, flags, stream, payload):
        self.need(self.block and self.block[0] == stream,
                  "CONTINUATION of nothing")
        self.block[2] += payload
        if flags & wire.END_HEADERS:
            self.on_block()

    def unpad(self, flags, payload):
        if not flags & wire.PADDED:
            return payload
        self.need(payload and payload[0] < len(payload), "padding")
        return payload[1:len(payload) - payload[0]]

    def on_block(self):
        (stream, flags, block), self.block = self.block, None
        fields = self.decoder.decode(bytes(block))
        answer = self.answer(stream)
        self.need(not answer.is_over, f"HEADERS behind the end of {stream}")
        is_end = bool(flags & wire.END_STREAM)
        self.check_fields(fields, answer.status is not None)
        if answer.status is not None:
            self.need(is_end, "trailers without END_STREAM")
            answer.trailers = fields
        else:
            self.on_head(stream, answer, fields, is_end)
        if is_end:
            self.on_end(stream, answer)

    def check_fields(self, fields, are_trailers):
        self.need(are_trailers or fields and fields[0][0] == b":status",
                  f"a head without :status: {fields}")
        for name, value in fields[0 if are_trailers else 1:]:
            self.need(TOKEN.fullmatch(name), f"the name {name!r}")
            self.need(name not in NEVER, f"the field {name!r}")
            self.need(VALUE.fullmatch(value) and value.strip(b" \t") == value,
                      f"the value {value!r} of {name!r}")

    def on_head(self, stream, answer, fields, is_end):
        status = fields[0][1]
        self.need(re.fullmatch(rb"[1-5]\d\d", status) and status != b"101",
                  f":status {status!r}")
        names = [name for name, _ in fields]
        if status[0:1] == b"1":
            self.need(not is_end, "an 1xx that ends the stream")
            self.need(b"content-length" not in names, "a length in a 1xx")
            answer.informs.append(int(status))
            return
        answer.status, answer.fields = int(status), fields[1:]
        self.need(names.count(b"date") == 1, "not one Date")
        self.need(names.count(b"content-length") <= 1, "lengths")

    def on_data(self, flags, stream, payload):
        answer = self.answer(stream)
        self.need(answer.status is not None and not answer.is_over,
                  f"DATA on {stream}, which is over or has no head")
        for one in (0, stream) if payload else ():
            self.windows[one] -= len(payload)
            self.need(self.windows[one] >= 0,
                      f"{-self.windows[one]} bytes above the window of {one}")
        body = self.unpad(flags, payload)
        answer.body += body
        answer.sizes.append(len(body))
        if flags & wire.END_STREAM:
            self.on_end(stream, answer)

    def on_end(self, stream, answer):
        answer.ended = True
        lengths = answer.all(b"content-length")
        if stream in self.heads or answer.status in (204, 304):
            self.need(not answer.body, f"a body of {stream}")
        elif lengths:
            self.need(int(lengths[0]) == len(answer.body),
                      f"Content-Length {lengths} of {len(answer.body)}")
