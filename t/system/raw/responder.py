"""A FastCGI application that misbehaves on purpose, and records every
parameter and byte it is given. Reads strictly (FastCGI 1.0)."""
import socket
import struct
import threading
import time
from dataclasses import dataclass

import scalws
from raw import rows
from raw.origin import Broken, Quiet

BEGIN, ABORT, END, PARAMS, STDIN, STDOUT, STDERR, DATA = range(1, 9)


@dataclass(frozen=True)
class Rec:
    """One record. `id` None: the request's; `length` None: the true one."""
    type: int
    content: bytes = b""
    id: object = None
    version: int = 1
    padding: int = 0
    length: object = None

    def encode(self, request_id):
        length = len(self.content) if self.length is None else self.length
        number = request_id if self.id is None else self.id
        return struct.pack(">BBHHBB", self.version, self.type, number, length,
                           self.padding, 0) + self.content + \
            bytes(self.padding)


def out(content, **more):
    return Rec(STDOUT, content, **more)


def err(content, **more):
    return Rec(STDERR, content, **more)


def end(app=0, protocol=0, **more):
    return Rec(END, struct.pack(">IBBBB", app, protocol, 0, 0, 0), **more)


@dataclass(frozen=True)
class Pieces:
    """These records, sent in pieces of so many bytes."""
    size: int
    records: tuple
    pause: float = 0.0003


class FastMessage:
    def __init__(self, conn):
        self.conn = conn
        self.id = 0
        self.keep = False
        self.params = []            # pairs, in order
        self.body = b""
        self.whole = False
        self.records = 0            # of parameters

    def get(self, name):
        values = [v for n, v in self.params if n == name]
        return values[0] if values else None

    @property
    def target(self):
        return self.get(b"REQUEST_URI") or b""

    def __repr__(self):
        short = [(n, v[:60]) for n, v in self.params]
        return f"<{short} {self.body[:60]!r}>"


def parse_params(data):
    pairs, at = [], 0

    def length():
        nonlocal at
        if at >= len(data):
            raise Broken("parameters end inside a length")
        if data[at] < 128:
            at += 1
            return data[at - 1]
        if at + 4 > len(data):
            raise Broken("parameters end inside a long length")
        at += 4
        return struct.unpack(">I", data[at - 4:at])[0] & 0x7fffffff

    while at < len(data):
        n, v = length(), length()
        if at + n + v > len(data):
            raise Broken("parameters end inside a value")
        pairs.append((data[at:at + n], data[at + n:at + n + v]))
        at += n + v
    return pairs


class FastConn:
    def __init__(self, sock):
        self.sock = sock
        sock.settimeout(60)
        self.message = None
        self.closed_at = None
        self.waits = False

    def take(self, n):
        parts = []
        while n > 0:
            self.waits = True
            data = self.sock.recv(min(n, 1 << 20))
            self.waits = False
            if not data:
                raise scalws.Closed("end")
            parts.append(data)
            n -= len(data)
        return b"".join(parts)

    def record(self):
        version, kind, number, length, padding, _ = struct.unpack(
            ">BBHHBB", self.take(8))
        if version != 1:
            raise Broken(f"version {version}")
        content = self.take(length)
        self.take(padding)
        return kind, number, content

    def stream(self, message, kind):
        """A stream to its empty record, or None: the request was aborted."""
        parts = []
        while True:
            got, number, content = self.record()
            if number != message.id:
                raise Broken(f"id {number}, not {message.id}")
            if got == ABORT:
                return None
            if got != kind:
                raise Broken(f"record type {got} inside the stream {kind}")
            if not content:
                return b"".join(parts)
            if kind == PARAMS:
                message.records += 1
            parts.append(content)
            if kind == STDIN:
                message.body = b"".join(parts)

    def read_head(self):
        kind, number, content = self.record()
        if kind == ABORT:
            return None
        if kind != BEGIN or number == 0 or len(content) != 8:
            raise Broken(f"record {kind} with id {number} at the beginning")
        role, flags = struct.unpack(">HB", content[:3])
        if role != 1 or flags & ~1 or content[3:] != bytes(5):
            raise Broken(f"BEGIN_REQUEST {content!r}")
        message = FastMessage(self)
        message.id, message.keep = number, bool(flags & 1)
        self.message = message
        params = self.stream(message, PARAMS)
        if params is None:
            return None
        message.params = parse_params(params)
        return message

    def read_body_of(self, message):
        body = self.stream(message, STDIN)
        if body is None:
            return False
        message.body = body
        message.whole = True
        self.message = None
        return True


class Responder(Quiet, scalws.Origin):
    """`scripts`: row name -> AnswerRow, by QUERY_STRING of "/row.php"."""

    def __init__(self, path, scripts):
        self.scripts = scripts
        self.messages, self.broken, self.conns = [], [], []
        self.client_saw_head = threading.Event()
        self.playing = self.begun = 0
        super().__init__(None, path=path)

    def run(self, sock):
        conn = FastConn(sock)
        with self.lock:
            self.conns.append(conn)
            self.begun += 1
        try:
            while self.serve_one(conn):
                pass
        except (scalws.Closed, OSError):
            pass
        except Broken as error:
            with self.lock:
                self.broken.append(error)
        finally:
            with self.lock:
                if conn.message is not None:
                    self.messages.append(conn.message)
                self.socks.discard(sock)
                conn.closed_at = time.monotonic()
            sock.close()

    def serve_one(self, conn):
        message = conn.read_head()
        if message is None:
            return False
        script = None
        if message.get(b"SCRIPT_NAME") == b"/row.php":
            script = self.scripts.get(
                message.get(b"QUERY_STRING").decode("latin-1"))
        if script is None:
            if not conn.read_body_of(message):
                return False
            self.keep(message)
            content = b"Content-Type: text/plain\r\n\r\n" + message.target
            conn.sock.sendall(out(content).encode(message.id) +
                              end().encode(message.id))
            return message.keep
        if script.early:
            self.keep(message)
            conn.message = None
        elif not conn.read_body_of(message):
            return False
        else:
            self.keep(message)
        with self.lock:
            self.playing += 1
        try:
            return self.play(conn, message, script)
        finally:
            with self.lock:
                self.playing -= 1

    def keep(self, message):
        with self.lock:
            self.messages.append(message)

    def play(self, conn, message, script):
        for step in script.script:
            if isinstance(step, Rec):
                conn.sock.sendall(step.encode(message.id))
            elif isinstance(step, bytes):
                conn.sock.sendall(step)
            elif isinstance(step, Pieces):
                data = b"".join(r.encode(message.id) for r in step.records)
                for at in range(0, len(data), step.size):
                    conn.sock.sendall(data[at:at + step.size])
                    time.sleep(step.pause)
            elif isinstance(step, rows.Pause):
                time.sleep(step.seconds)
            elif step == rows.AWAIT_HEAD:
                self.client_saw_head.wait(5 * scalws.SLOW)
            elif step == rows.CLOSE:
                return False
            elif step == rows.HALF_CLOSE:
                conn.sock.shutdown(socket.SHUT_WR)
            elif step == rows.RESET:
                # A unix socket that is closed with unread bytes is a reset.
                return False
            else:
                raise AssertionError(step)
        if script.early and not conn.read_body_of(message):
            return False
        if rows.HALF_CLOSE in script.script:
            conn.take(1)
        return message.keep

    def begin(self):
        with self.lock:
            self.messages.clear()
            self.broken.clear()
            self.conns = [c for c in self.conns if c.closed_at is None]
        self.client_saw_head.clear()

    def cut_conns(self):
        with self.lock:
            return [c for c in self.conns
                    if c.closed_at is None and c.message is not None]
