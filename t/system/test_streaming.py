"""Streaming: who is slow is felt at the other end, who is quick is not held up,
and who leaves takes the request with him."""
import re
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

import scalws
from scalws import Client, Closed, Origin, get, wait_for

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
UP = {"path": "*", "upstream": "u"}
# Far above what it takes, far below what a held answer would take.
AT_ONCE = 0.25 * scalws.SLOW
# What the kernel may keep of a connection that was fast at first.
KERNEL = int(Path("/proc/sys/net/ipv4/tcp_rmem").read_text().split()[2])


def serve(daemon, port, origin, **keys):
    upstream = {"peers": [{"address": origin.address}]}
    upstream.update(keys.pop("upstream", {}))
    site = {"listen": [f"127.0.0.1:{port}"],
            "routes": [{**UP, **keys.pop("route", {})}]}
    return daemon({"sites": [site], "upstreams": {"u": upstream}, **keys})


def small_socket(port, receive=16384):
    """A client whose kernel keeps little for it."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    sock.settimeout(30 * scalws.SLOW)
    sock.connect(("127.0.0.1", port))
    return sock


def queued(*ports):
    """Bytes that the kernel keeps for connections to those ports."""
    told = subprocess.run(["ss", "-tnH", "state", "established"], check=True,
                          capture_output=True, text=True).stdout
    total = 0
    for line in told.splitlines():
        received, to_send, here, there = line.split()[:4]
        if {int(a.rpartition(":")[2]) for a in (here, there)} & set(ports):
            total += int(received) + int(to_send)
    return total


# --- slow clients, slow apps ----------------------------------------------------

@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_slow_reader_is_felt_by_the_app(daemon, port, framing):
    """A byte a second of 64 MiB: both buffers fill, then the app waits."""
    size = 64 << 20
    sent, ended = [0], threading.Event()
    head = {"length": b"Content-Length: %d\r\n" % size,
            "chunked": b"Transfer-Encoding: chunked\r\n",
            "close": b""}[framing]
    block = b"x" * 16384
    if framing == "chunked":
        block = b"4000\r\n" + block + b"\r\n"

    def script(conn):
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        conn.read_request()
        conn.send(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n")
        conn.sock.settimeout(None)
        try:
            while sent[0] < size:
                conn.send(block)
                sent[0] += 16384
        finally:
            ended.set()
    with Origin(script) as origin:
        one = serve(daemon, port, origin, limits={"buffer_bytes": "64K"})
        get_pid = one.proxy_pid()
        before = scalws.rss_kib(get_pid)
        sock = small_socket(port)
        sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        for _ in range(8):
            assert sock.recv(1)
            time.sleep(0.4)
        # Ours, and what the kernel keeps on both connections.
        assert sent[0] < (10 << 20) + KERNEL, \
            f"the app got rid of {sent[0]} bytes"
        ours = sent[0] - queued(port, int(origin.address.split(":")[1]))
        assert ours < 1 << 20, f"the proxy keeps {ours} bytes"
        still = sent[0]
        assert sock.recv(1)
        time.sleep(1)
        assert sent[0] - still < 1 << 20
        grown = scalws.rss_kib(get_pid) - before
        assert grown < scalws.allowed_kib(8192), f"{grown} KiB for one client"
        assert not ended.is_set()
        sock.close()
        assert ended.wait(1 + scalws.SLOW), "the app is not told"


def test_slow_app_is_felt_by_the_client(daemon, port):
    """The same for a request's body."""
    sent, seen = 0, threading.Event()

    def script(conn):
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
        conn.read_head()
        while not seen.wait(0.1):
            conn.sock.recv(1)
    with Origin(script) as origin:
        one = serve(daemon, port, origin)
        pid = one.proxy_pid()
        before = scalws.rss_kib(pid)
        with Client(port) as client:
            client.request("POST", headers={"Content-Length": str(64 << 20)})
            client.sock.settimeout(0.5)
            try:
                with pytest.raises(socket.timeout):
                    while sent < 20 << 20:
                        sent += client.sock.send(b"x" * 65536)
                assert scalws.rss_kib(pid) - before < \
                    scalws.allowed_kib(8192)
            finally:
                seen.set()


# --- at once --------------------------------------------------------------------

class Timed:
    """An origin that sends pieces and notes when; release lets the next go."""

    def __init__(self, head, pieces, frame=lambda piece: piece, end=b""):
        self.go = threading.Semaphore(0)
        self.at = []

        def script(conn):
            if conn.read_request() is None:
                return
            self.at.append(time.monotonic())
            conn.send(head)
            for piece in pieces:
                self.go.acquire()
                self.at.append(time.monotonic())
                conn.send(frame(piece))
            conn.send(end)
            self.go.acquire()
        self.origin = Origin(script)


def chunk(piece):
    return b"%x\r\n%s\r\n" % (len(piece), piece)


STREAMS = {
    "sse-chunked": (b"Content-Type: text/event-stream; charset=utf-8\r\n"
                    b"Transfer-Encoding: chunked\r\n", chunk),
    "sse-close": (b"content-type: text/event-stream\r\n", bytes),
    "plain-chunked": (b"Content-Type: text/plain\r\n"
                      b"Transfer-Encoding: chunked\r\n", chunk),
    "plain-close": (b"Content-Type: text/plain\r\n", bytes),
    "plain-length": (b"Content-Type: text/plain\r\n"
                     b"Content-Length: 100\r\n", bytes),
    "no-buffering": (b"X-Accel-Buffering: no\r\n"
                     b"Transfer-Encoding: chunked\r\n", chunk),
}


@pytest.mark.parametrize("version", ["1.1", "1.0"])
@pytest.mark.parametrize("name", STREAMS)
def test_flushed_answers_arrive_at_once(daemon, port, name, version):
    """The head without a body, then each piece as the app sends it; also
    for clients that would take it compressed."""
    fields, frame = STREAMS[name]
    pieces = [b"data: %02d\n\n" % i for i in range(10)]
    timed = Timed(b"HTTP/1.1 200 OK\r\n" + fields + b"\r\n", pieces, frame)
    with timed.origin as origin:
        serve(daemon, port, origin)
        with Client(port) as client:
            client.request(version=version,
                           headers={"Accept-Encoding": "gzip, br"})
            answer = client.response_head()
            assert time.monotonic() - timed.at[0] < AT_ONCE
            assert answer.status == 200
            for i, piece in enumerate(pieces):
                timed.go.release()
                while piece not in client.buffer:
                    client.more()
                assert time.monotonic() - timed.at[i + 1] < AT_ONCE
            timed.go.release()


def test_long_polling_head_and_body_apart(daemon, port):
    """A head whose body comes later is not held back for it."""
    timed = Timed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", [b"ok"])
    with timed.origin as origin:
        serve(daemon, port, origin)
        with Client(port) as client:
            client.request()
            assert client.response_head().status == 200
            assert not client.buffer
            timed.go.release()
            assert client.take(2) == b"ok"
            timed.go.release()


def test_request_bodies_stream(daemon, port):
    """A large or chunked body reaches the app as it comes."""
    seen = {}

    def script(conn):
        conn.read_head()
        while b"last" not in seen:
            for word in (b"first", b"second", b"last"):
                if word in conn.buffer:
                    seen.setdefault(word, time.monotonic())
            if b"last" not in seen:
                conn.more()
        conn.send(OK)
    with Origin(script) as origin:
        serve(daemon, port, origin)
        with Client(port) as client:
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\n"
                        b"Transfer-Encoding: chunked\r\n\r\n")
            for word in (b"first", b"second", b"last"):
                client.send(chunk(word))
                began = time.monotonic()
                wait_for(lambda: word in seen, 5)
                assert seen[word] - began < AT_ONCE
            client.send(b"0\r\n\r\n")
            assert client.response().status == 200


# --- who leaves -----------------------------------------------------------------

def leaving(daemon, port, request, answer=b"", upstream=None):
    """How long the app waits for the news when the client is gone."""
    told = []

    def script(conn):
        conn.read_head()
        if answer:
            conn.send(answer)
        try:
            while True:
                conn.more()
        except (Closed, OSError):
            told.append(time.monotonic())
    with Origin(script) as origin:
        serve(daemon, port, origin, upstream=upstream or {})
        client = Client(port)
        client.send(request)
        wait_for(lambda: origin.connections, 5)
        if answer:
            client.response_head()
        else:
            time.sleep(0.1)
        gone = time.monotonic()
        client.close()
        wait_for(lambda: told, 5)
        assert told[0] - gone < 1 * scalws.SLOW
        wait_for(lambda: requests_now(origin) == 0, 3)


def requests_now(origin):
    with origin.lock:
        return len(origin.socks)


GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


def test_client_leaves_before_the_answer(daemon, port):
    leaving(daemon, port, GET)


def test_client_leaves_with_a_pipelined_request(daemon, port):
    leaving(daemon, port, GET + b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n")


def test_client_leaves_within_its_body(daemon, port):
    leaving(daemon, port, b"POST / HTTP/1.1\r\nHost: a\r\n"
            b"Content-Length: 1000000\r\n\r\n" + b"x" * 200000)


def test_client_leaves_behind_its_body(daemon, port):
    leaving(daemon, port, b"POST / HTTP/1.1\r\nHost: a\r\n"
            b"Content-Length: 1000\r\n\r\n" + b"x" * 1000)


def test_client_leaves_a_stream(daemon, port):
    leaving(daemon, port, GET, b"HTTP/1.1 200 OK\r\n"
            b"Content-Type: text/event-stream\r\n\r\ndata: 1\n\n")


def test_client_leaves_within_the_answer(daemon, port):
    leaving(daemon, port, GET, b"HTTP/1.1 200 OK\r\n"
            b"Content-Length: 1000000\r\n\r\n" + b"x" * 1000)


def test_client_leaves_a_one_at_a_time_app(daemon, port):
    """Our side is shut down, so that it can tell; its slot is free when it
    is done."""
    told = []

    def script(conn):
        if conn.read_request() is None:
            return
        if len(origin.requests) > 1:
            conn.send(OK)
            return
        began = time.monotonic()
        assert conn.read_head() is None     # end-of-file
        told.append(time.monotonic() - began)
        time.sleep(0.5)                     # a process that finishes its work
    with Origin(script) as origin:
        serve(daemon, port, origin, upstream={"peers": [
            {"address": origin.address, "max_connections": 1}]})
        with Client(port) as client:
            client.request()
            wait_for(lambda: origin.requests, 5)
        gone = time.monotonic()
        assert get(port).status == 200
        # The slot is free when the process is, not when the client is.
        assert time.monotonic() - gone >= 0.45
        assert told and told[0] < 1 * scalws.SLOW
        assert origin.connections == 2


def test_client_leaves_the_queue(daemon, port):
    """Who waits for a slot and goes is never asked for."""
    free = threading.Event()

    def script(conn):
        while conn.read_request():
            free.wait(20)
            conn.send(OK)
    with Origin(script) as origin:
        serve(daemon, port, origin, upstream={"peers": [
            {"address": origin.address, "max_connections": 1}]})
        with Client(port) as busy:
            busy.request("GET", "/busy")
            wait_for(lambda: origin.requests, 5)
            for i in range(5):
                with Client(port) as client:
                    client.request("GET", "/gone")
                    time.sleep(0.05)
            with Client(port) as last:
                last.request("GET", "/last")
                time.sleep(0.1)
                free.set()
                assert busy.response().status == 200
                assert last.response().status == 200
        targets = [head.split()[1] for head, _ in origin.requests]
        assert targets == [b"/busy", b"/last"]


# --- answers that come early ----------------------------------------------------

@pytest.mark.parametrize("size", [30000, 300000, 8 << 20])
@pytest.mark.parametrize("closes", [True, False])
def test_early_refusal_is_delivered(daemon, port, size, closes):
    """413 from the app while the client is sending; the client sees it, and
    no later request is mixed up with the rest of the body."""
    refusal = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n" + \
        (b"Connection: close\r\n" if closes else b"") + b"\r\nno\n"

    def script(conn):
        head = conn.read_head()
        while head is not None:
            if not head.startswith(b"POST /big "):
                conn.send(OK)
                head = conn.read_head()
                continue
            conn.send(refusal)
            if closes:
                time.sleep(0.2)         # not reset before it is read
                return
            got = len(conn.buffer)
            while got < int(re.search(rb"Length: (\d+)", head)[1]):
                data = conn.sock.recv(65536)
                if not data:
                    return
                got += len(data)
            conn.buffer = b""
            head = conn.read_head()
    with Origin(script) as origin:
        serve(daemon, port, origin)
        with Client(port) as client:
            client.send(b"POST /big HTTP/1.1\r\nHost: a\r\n"
                        b"Content-Length: %d\r\n\r\n" % size)

            def rest():
                try:
                    for _ in range(0, size, 10000):
                        client.send(b"x" * 10000)
                except OSError:
                    pass
            sender = threading.Thread(target=rest)
            sender.start()
            answer = client.response()
            sender.join()
            assert (answer.status, answer.body) == (413, b"no\n")
        assert get(port, "/next").body == b"ok"


def test_refusal_by_length_is_delivered(daemon, port):
    """Our own 413, before any of the body is read."""
    with Origin(OK) as origin:
        serve(daemon, port, origin, route={"max_body_bytes": "10K"})
        with Client(port) as client:
            client.request("POST", headers={"Content-Length": "10241",
                                            "Expect": "100-continue"})
            answer = client.response_head()
            assert answer.status == 413
        with Client(port) as client:
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\n"
                        b"Content-Length: 4000000\r\n\r\n")
            client.send(b"x" * 4000000)
            assert client.response().status == 413
        assert not origin.connections
