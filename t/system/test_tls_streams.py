"""What lives long or looks at its transport, by TLS: WebSockets by HTTP/1 and
HTTP/2, event streams, and what applications believe about the scheme."""
import socket
import ssl
import threading
import time

import pytest

import runtimes
import scalws
from h2client import H2
from scalws import LONG, Origin, Secure, wait_for
from test_tls import make, shown
from test_websocket import ASK, SWITCH, Tunnel, Ws, opened

CHUNK = bytes(range(256)) * 256
BIG = 16 << 20 if LONG else 2 << 20


def serve(daemon, port, origin, tls=None, **keys):
    return daemon({
        "upstreams": {"u": {"peers": [{"address": origin.address}]}},
        "sites": [{"listen": [f"127.0.0.1:{port} tls"],
                   "tls": tls or scalws.certificate(),
                   "routes": [{"path": "*", "upstream": "u"}]}], **keys})


def h2(port):
    return H2(None, sock=Secure(port, alpn=["h2"]).connect(30))


def echo(conn):
    while True:
        if conn.buffer:
            conn.send(conn.buffer)
            conn.buffer = b""
        conn.more()


# --- WebSockets ----------------------------------------------------------------

def test_large_messages(daemon, port):
    """All of it there before it comes back: Python's TLS does one thing at a
    time."""
    def talk(conn):
        conn.send(conn.take(BIG + 14))
    with Tunnel(talk) as tunnel:
        serve(daemon, port, tunnel.origin)
        data = (CHUNK * (BIG // len(CHUNK) + 1))[:BIG]
        with Ws(Secure(port)) as ws:
            ws.say(data)
            assert ws.take(14)[:2] == b"\x82\xff"
            assert ws.take(BIG) == data


def test_app_closes_its_half(daemon, port):
    """close_notify, behind which the client goes on."""
    def talk(conn):
        conn.send(b"my last")
        conn.sock.shutdown(socket.SHUT_WR)
        got.append(conn.take(300005))
    got = []
    with Tunnel(talk) as tunnel:
        serve(daemon, port, tunnel.origin)
        with opened(Secure(port)) as client:
            assert client.take(7) == b"my last"
            assert client.at_eof()
            client.send(b"x" * 300000)
            client.send(b"after")
            wait_for(lambda: got, 5, "all came")
    assert got == [b"x" * 300000 + b"after"]


class HalfClosing:
    """TLS that can say close_notify and go on reading."""

    def __init__(self, port):
        self.sock = scalws.connect(port)
        self.coming, self.going = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = Secure(port).context.wrap_bio(
            self.coming, self.going, server_hostname="t.example")
        self.step(self.tls.do_handshake)

    def step(self, what, *args):
        while True:
            try:
                done = what(*args)
            except ssl.SSLWantReadError:
                done = None
            if self.going.pending:
                self.sock.sendall(self.going.read())
            if done is not None or what in (self.tls.do_handshake,) and \
                    self.tls.version() and self.tls.cipher():
                return done
            if what == self.tls.unwrap:
                return None
            data = self.sock.recv(65536)
            if data:
                self.coming.write(data)
            else:
                self.coming.write_eof()

    def send(self, data):
        self.step(self.tls.write, data)

    def close_half(self):
        self.step(self.tls.unwrap)

    def until_end(self):
        got = b""
        while True:
            try:
                part = self.step(self.tls.read, 65536)
            except ssl.SSLZeroReturnError:
                return got
            if not part:
                return got
            got += part


def test_client_closes_its_half(daemon, port):
    """... and still gets all that the app says, to its close_notify."""
    def talk(conn):
        got = b""
        while True:
            data = conn.sock.recv(65536)
            if not data:
                break
            got += data
        conn.send(CHUNK * 4 + got)
        conn.send(b"end")
    with Tunnel(talk) as tunnel:
        serve(daemon, port, tunnel.origin)
        client = HalfClosing(port)
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n" + "".join(
            f"{k}: {v}\r\n" for k, v in ASK.items()).encode() + b"\r\n")
        client.send(b"my last")
        client.close_half()
        head, _, rest = client.until_end().partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 ")
        assert rest == CHUNK * 4 + b"my lastend"
        client.sock.close()


def test_slow_reader(daemon, port):
    """The buffers fill, then the app waits; nothing is lost."""
    size, sent = 24 << 20, [0]

    def talk(conn):
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        while sent[0] < size:
            conn.send(CHUNK)
            sent[0] += len(CHUNK)
        conn.sock.shutdown(socket.SHUT_WR)
        while conn.sock.recv(1000):
            pass

    def stops():
        before = sent[0]
        time.sleep(0.3)
        return before and sent[0] == before
    with Tunnel(talk) as tunnel:
        one = serve(daemon, port, tunnel.origin,
                    limits={"buffer_bytes": "64K"})
        before = scalws.rss_kib(one.proxy_pid())
        with opened(Secure(port)) as client:
            wait_for(stops, 20, "the app waits")
            assert sent[0] < 20 << 20
            assert scalws.rss_kib(one.proxy_pid()) - before < \
                scalws.allowed_kib(4096)
            assert client.take(size) == CHUNK * (size // len(CHUNK))
            assert client.at_eof()


def test_certificate_is_swapped(daemon, port):
    """WebSockets of both versions stay, whatever is shown to the next."""
    place = scalws.scratch()
    with Tunnel(echo) as tunnel:
        one = serve(daemon, port, tunnel.origin,
                    make(place, "n0", ["localhost"]))
        with opened(Secure(port)) as first, h2(port) as client:
            number = client.ask(end=False, pseudo=[
                (":method", "CONNECT"), (":protocol", "websocket"),
                (":scheme", "https"), (":path", "/"),
                (":authority", "localhost")],
                headers=[("sec-websocket-version", "13")])
            stream = client.streams[number]
            for i in range(1, 21 if LONG else 4):
                one.conf["sites"][0]["tls"] = make(place, f"n{i}",
                                                   ["localhost"])
                one.write(one.conf)
                one.ok("reload")
                assert shown(port, "localhost") == f"n{i}"
                first.send(b"%8d" % i * 1000)
                assert first.take(8000) == b"%8d" % i * 1000
                client.send(number, b"%8d" % i)
                assert client.until(lambda: len(stream.body) == 8 * i)
                assert stream.body[-8:] == b"%8d" % i
            assert stream.status == 200 and not stream.over
        assert len(tunnel.conns) == 2


# --- records -----------------------------------------------------------------------

def test_the_end_of_a_large_body_ends_its_record(daemon, port):
    """curl 7.88 that takes several streams from one record forgets what is left
    of it when one of them is over, until something else comes: with nothing
    more to come it waits for ever. What it has not read yet it does not
    forget."""
    size = 20000
    daemon({"sites": [{"listen": [f"127.0.0.1:{port} tls"],
                       "tls": scalws.certificate(),
                       "routes": [{"path": "*", "respond": {
                           "status": 200, "body": "x" * size}}]}]})
    with h2(port) as client:
        client.pump()
        # All in one piece, so that the answers leave together.
        wanted = [1, 3, 5]
        for number in wanted:
            client.h2.send_headers(number, [
                (":method", "GET"), (":scheme", "https"),
                (":authority", "localhost"), (":path", "/")], end_stream=True)
        client.flush()
        came, ends_of_records, ended, at = b"", set(), {}, 0
        while len(ended) < len(wanted):
            came += client.sock.recv(65536)       # one record
            ends_of_records.add(len(came))
            while len(came) - at >= 9:
                n = int.from_bytes(came[at:at + 3], "big")
                if len(came) - at < 9 + n:
                    break
                kind, flags = came[at + 3:at + 5]
                number = int.from_bytes(came[at + 5:at + 9], "big")
                at += 9 + n
                if kind == 0 and flags & 1:
                    ended[number] = at
    assert sorted(ended) == wanted
    assert set(ended.values()) <= ends_of_records


# --- event streams ---------------------------------------------------------------

@pytest.mark.parametrize("version", [1, 2])
def test_events_come_at_once(daemon, port, version):
    """The app says the next one when the client has got the last."""
    seen = threading.Semaphore(0)
    words = [b"data: event %d\n\n" % n for n in range(5)]

    def script(conn):
        conn.read_request()
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                  b"Connection: close\r\n\r\n")
        for word in words:
            conn.send(word)
            assert seen.acquire(timeout=20 * scalws.SLOW), "it did not come"
    with Origin(script) as origin:
        serve(daemon, port, origin)
        if version == 1:
            with scalws.Client(Secure(port)) as client:
                client.request()
                assert client.response_head().status == 200
                for word in words:
                    assert client.line() == b"%x" % len(word)
                    assert client.take(len(word) + 2) == word + b"\r\n"
                    seen.release()
                assert client.take(5) == b"0\r\n\r\n"
            return
        with h2(port) as client:
            stream = client.streams[client.ask(scheme="https")]
            for n in range(len(words)):
                assert client.until(
                    lambda: stream.body == b"".join(words[:n + 1]))
                seen.release()
            assert client.until(lambda: stream.ended)


# --- what applications see -------------------------------------------------------

def test_applications_see_https(daemon, port):
    """One of each runtime; by its own means where it has some."""
    names = ["asgi", "php-front"]
    if scalws.SLOW == 1 or LONG:        # a sanitizer watches us alone
        names += ["flask-sync", "http"] + \
            ["express4"] * bool(scalws.node_modules())
    cases = {name: runtimes.BY_NAME[name] for name in names}
    one = daemon({
        "apps": {name: case.conf() for name, case in cases.items()},
        "sites": [{"names": [f"{name}.example"],
                   "listen": [f"127.0.0.1:{port} tls"],
                   "tls": scalws.certificate(),
                   "routes": [{"path": "*", "app": name}]}
                  for name in names]})
    for name in names:
        one.wait_running(name)
    with h2(port) as second:
        for name, case in cases.items():
            host = f"{name}.example"
            answers = [scalws.get(Secure(port, name=host), "/echo", host=host,
                                  headers=[("X-Forwarded-Proto", "http")])
                       .json()]
            got = second.get("/echo", host=host, scheme="https",
                             headers=[("x-forwarded-proto", "http")])
            assert got.status == 200, got.body
            answers.append(scalws.json.loads(got.body))
            for saw in answers:
                if "scheme" in case.native:
                    assert saw["scheme"] == "https", (name, saw)
                if not saw.get("server"):
                    assert saw["headers"]["x-forwarded-proto"] == ["https"], \
                        (name, saw)
