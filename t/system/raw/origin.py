"""The origin of the raw tables: records exact bytes, answers by script.

It reads what the proxy sends as strictly as the strictest server would; what
it cannot read that way is kept in `broken` and fails the row that caused it.
"""
import re
import select
import socket
import struct
import threading
import time

import scalws
from raw import rows

TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
LINE = re.compile(rb"(" + TOKEN + rb") (\S+) HTTP/1\.1")
FIELD = re.compile(rb"(" + TOKEN + rb"):[ \t]*((?:[^\x00-\x08\x0a-\x1f\x7f]*"
                   rb"[^\x00-\x20\x7f])?)[ \t]*")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-Origin: yes\r\n\r\n%s"


class Broken(Exception):
    """The proxy sent what it must never send."""


def has_input(sock):
    """Bytes, an end or a connection that nobody has taken yet."""
    try:
        return bool(select.select([sock], [], [], 0)[0])
    except (OSError, ValueError):       # closed meanwhile: look again
        return True


class Quiet:
    """When has an origin of threads seen everything that was sent to it?"""

    def is_quiet(self):
        with self.lock:
            conns = list(self.conns)
            if self.connections != self.begun:
                return False
        return not has_input(self.listener) and all(
            conn.closed_at or (conn.waits and not has_input(conn.sock))
            for conn in conns)

    def await_quiet(self, patience):
        """Twice, for what is between two steps of a thread."""
        for _ in range(2):
            scalws.wait_for(self.is_quiet, patience, "the origin is quiet",
                            every=0.0005)
            time.sleep(0.0002)


class Message:
    """One request, as far as it came."""

    def __init__(self, conn):
        self.conn = conn
        self.line = b""
        self.fields = []
        self.body = b""
        self.framing = None         # "length", "chunked", None
        self.whole = False
        self.trailers = []

    def all(self, name):
        return [v for n, v in self.fields if n.lower() == name.lower()]

    @property
    def target(self):
        return self.line.split(b" ")[1] if self.line.count(b" ") == 2 else b""

    def __repr__(self):
        more = "" if self.whole else " CUT"
        return f"<{self.line!r} {self.fields} {self.body[:80]!r}{more}>"


class RawConn(scalws.OriginConn):
    def __init__(self, origin, sock):
        super().__init__(origin, sock)
        self.raw = b""              # every byte that came
        self.message = None         # begun and not whole
        self.closed_at = None
        self.waits = False          # for more to come

    def at_end(self):
        """Reads what still comes; False, for there is nothing to answer."""
        while True:
            self.more()

    def more(self):
        self.waits = True
        data = self.sock.recv(262144)
        self.waits = False
        if not data:
            raise scalws.Closed("end")
        self.raw += data
        self.buffer += data

    def take(self, n):
        while len(self.buffer) < n:
            self.more()
        data, self.buffer = self.buffer[:n], self.buffer[n:]
        return data

    def strict_line(self):
        while b"\n" not in self.buffer:
            if len(self.buffer) > 200000:
                raise Broken("a line without end")
            self.more()
        text, self.buffer = self.buffer.split(b"\n", 1)
        if text[-1:] != b"\r" or b"\r" in text[:-1]:
            raise Broken(f"a line that ends in LF, or a CR inside: {text!r}")
        return text[:-1]

    def read_head(self):
        """A Message with its head, or None at the end."""
        message = Message(self)
        self.more_or_buffer()
        self.message = message
        text = self.strict_line()
        message.line = text
        if not LINE.fullmatch(text):
            raise Broken(f"request line {text!r}")
        while True:
            text = self.strict_line()
            if not text:
                break
            match = FIELD.fullmatch(text)
            if not match:
                raise Broken(f"field line {text!r}")
            message.fields.append((match[1], match[2]))
        self.check_framing(message)
        return message

    def more_or_buffer(self):
        if not self.buffer:
            self.more()

    def check_framing(self, message):
        lengths = message.all(b"content-length")
        codings = message.all(b"transfer-encoding")
        if len(message.all(b"host")) != 1:
            raise Broken(f"not one Host: {message}")
        if len(lengths) > 1 or len(codings) > 1 or (lengths and codings):
            raise Broken(f"ambiguous length: {message}")
        if lengths:
            if not re.fullmatch(rb"[0-9]+", lengths[0]):
                raise Broken(f"Content-Length {lengths[0]!r}")
            message.framing = "length"
            message.length = int(lengths[0])
        elif codings:
            if codings[0].lower() != b"chunked":
                raise Broken(f"Transfer-Encoding {codings[0]!r}")
            message.framing = "chunked"

    def read_body_of(self, message):
        if message.framing == "length":
            while len(message.body) < message.length:
                self.more_or_buffer()
                n = message.length - len(message.body)
                message.body += self.buffer[:n]
                self.buffer = self.buffer[n:]
        elif message.framing == "chunked":
            while True:
                text = self.strict_line()
                if not re.fullmatch(rb"[0-9A-Fa-f]{1,16}", text):
                    raise Broken(f"chunk size {text!r}")
                size = int(text, 16)
                if size == 0:
                    break
                message.body += self.take(size)
                if self.take(2) != b"\r\n":
                    raise Broken("no CRLF behind a chunk")
            while True:
                text = self.strict_line()
                if not text:
                    break
                message.trailers.append(text)
        self.message = None
        message.whole = True


class RawOrigin(Quiet, scalws.Origin):
    """`scripts`: row name -> AnswerRow, for targets "/row/NAME"."""

    def __init__(self, scripts=None):
        self.scripts = scripts or {}
        self.messages = []          # whole, or cut by the end of a connection
        self.broken = []
        self.conns = []
        self.client_saw_head = threading.Event()
        self.playing = self.begun = 0
        super().__init__(None)

    def run(self, sock):
        conn = RawConn(self, sock)
        with self.lock:
            self.conns.append(conn)
            self.begun += 1
        try:
            self.serve_conn(conn)
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

    def serve_conn(self, conn):
        while True:
            message = conn.read_head()
            name = message.target[5:].split(b"?")[0].decode("latin-1")
            script = self.scripts.get(name) \
                if message.target.startswith(b"/row/") else None
            if script is None:
                conn.read_body_of(message)
                self.keep(message)
                body = self.body_for(message)
                answer = OK % (len(body), body)
                if message.line.startswith(b"HEAD "):
                    answer = answer[:len(answer) - len(body)]
                conn.send(answer)
            elif not self.play_counted(conn, message, script):
                return

    def body_for(self, message):
        """Of an answer without a script."""
        return message.target

    def keep(self, message):
        with self.lock:
            self.messages.append(message)

    def play_counted(self, conn, message, script):
        with self.lock:
            self.playing += 1
        try:
            return self.play(conn, message, script)
        finally:
            with self.lock:
                self.playing -= 1

    def play(self, conn, message, script):
        """Returns whether the connection goes on."""
        if script.early:
            self.keep(message)
            conn.message = None
        else:
            conn.read_body_of(message)
            self.keep(message)
        for step in script.script:
            if isinstance(step, bytes):
                conn.send(step)
            elif isinstance(step, rows.Pause):
                time.sleep(step.seconds)
            elif step == rows.AWAIT_HEAD:
                self.client_saw_head.wait(5 * scalws.SLOW)
            elif step == rows.CLOSE:
                return False
            elif step == rows.HALF_CLOSE:
                conn.sock.shutdown(socket.SHUT_WR)
            elif step == rows.RESET:
                conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                     struct.pack("ii", 1, 0))
                return False
            else:
                raise AssertionError(step)
        if script.early:
            conn.read_body_of(message)
        # What the proxy makes of a half-closed connection is seen by its end.
        return rows.HALF_CLOSE not in script.script or conn.at_end()

    # for the runners

    def begin(self):
        with self.lock:
            self.messages.clear()
            self.broken.clear()
            self.conns = [c for c in self.conns if c.closed_at is None]
            for conn in self.conns:
                conn.raw = b""
        self.client_saw_head.clear()

    def cut_conns(self):
        """Connections on which a request was begun and is not whole."""
        with self.lock:
            return [c for c in self.conns
                    if c.closed_at is None and c.message is not None]
