"""HTTP/2 in front of everything that HTTP/1 is in front of."""
import contextlib
import json
import re
import shutil
import socket
import struct
import subprocess
import threading
import time

import pytest

import scalws
from h2client import H2, window
from scalws import LONG, Client, Origin, wait_for

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HELLO = {"path": "/hello", "respond": {"body": "hello\n"}}
UP = {"path": "*", "upstream": "u"}
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR = 0, 1, 2
FLOW, STREAM_CLOSED, REFUSED, CANCEL, CALM = 3, 5, 7, 8, 11
SIZE = (100 if LONG else 4) << 20


def serve(daemon, port, origin=None, **keys):
    route = {**UP, **keys.pop("route", {})} if origin else HELLO
    site = {"listen": [f"127.0.0.1:{port}"],
            "routes": [HELLO, route], **keys.pop("site", {})}
    upstreams = {"u": {"peers": [{"address": origin.address}]}} \
        if origin else {}
    return daemon({"sites": [site], "upstreams": upstreams, **keys})


def curl(*args, timeout=60):
    done = subprocess.run(
        ["curl", "-sS", "--http2-prior-knowledge", *args],
        capture_output=True, timeout=timeout * scalws.SLOW)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def answer_ok(conn):
    while conn.read_request():
        conn.send(OK)


# --- clients --------------------------------------------------------------------

def test_curl(daemon, port):
    serve(daemon, port)
    url = f"http://127.0.0.1:{port}"
    assert curl(url + "/hello") == "hello\n"
    assert curl("-w", "%{http_code} %{http_version}", "-o", "/dev/null",
                url + "/none") == "404 2"
    assert curl("-I", url + "/hello").startswith("HTTP/2 200")


def test_h2load(daemon, port):
    serve(daemon, port)
    n = 20000 if LONG else 500
    done = subprocess.run(
        ["h2load", f"-n{n}", "-c4", "-m20", f"http://127.0.0.1:{port}/hello"],
        capture_output=True, text=True, timeout=120 * scalws.SLOW)
    assert f"{n} succeeded, 0 failed, 0 errored" in done.stdout, done.stdout


def test_off_by_key(daemon, port):
    serve(daemon, port, site={"http2": False})
    with Client(("127.0.0.1", port)) as client:
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert client.response().status == 400


def test_preface_byte_by_byte(daemon, port):
    serve(daemon, port)
    with H2(("127.0.0.1", port), preface=False) as client:
        client.h2.initiate_connection()
        for byte in client.h2.data_to_send():
            client.sock.sendall(bytes((byte,)))
        assert client.get("/hello").body == b"hello\n"


# --- requests -------------------------------------------------------------------

def test_request_reaches_the_app_as_http1(daemon, port):
    heads = []

    def script(conn):
        while True:
            heads.append(conn.read_head())
            conn.send(OK)
    with Origin(script) as origin:
        serve(daemon, port, origin)
        with H2(("127.0.0.1", port)) as client:
            assert client.get("/a?b=c", headers=[
                ("cookie", "a=1"), ("x-one", "1"), ("cookie", "b=2"),
                ("te", "trailers"), ("x_odd", "no")]).body == b"ok"
    lines = heads[0].decode("latin-1").split("\r\n")
    assert lines[0] == "GET /a?b=c HTTP/1.1"
    fields = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
    assert fields["host"] == "localhost"
    assert fields["cookie"] == "a=1; b=2"
    assert fields["x-one"] == "1"
    assert not {"te", "connection", "x_odd"} & set(fields)


MALFORMED = [
    [(":method", "GET"), (":scheme", "http"), (":path", "/")],
    [(":method", "GET"), (":scheme", "http"), (":authority", "a")],
    [(":method", "GET"), (":path", "/"), (":authority", "a")],
    [(":scheme", "http"), (":path", "/"), (":authority", "a")],
    [(":method", "GET"), (":scheme", "http"), (":authority", "a"),
     (":path", "/"), ("connection", "close")],
    [(":method", "GET"), (":scheme", "http"), (":authority", "a"),
     (":path", "/"), ("host", "b")],
    [(":method", "GET"), (":scheme", "http"), (":authority", "a"),
     (":path", "/"), ("X-Upper", "b")],
    [(":method", "GET"), (":scheme", "http"), (":authority", "a"),
     (":path", "/"), ("x", "b\r\nevil: 1")],
    [(":method", "GET"), (":scheme", "http"), (":authority", "a"),
     (":path", "/"), ("content-length", "1")],
]


def test_malformed_requests_are_stream_errors(daemon, port):
    serve(daemon, port)
    with H2(("127.0.0.1", port)) as client:
        for pseudo in MALFORMED:
            answer = client.get(pseudo=pseudo)
            assert answer.reset == PROTOCOL_ERROR, (pseudo, answer.fields)
        assert client.get("/hello").body == b"hello\n"


def test_limits_of_heads(daemon, port):
    serve(daemon, port, limits={"header_bytes": "8K", "header_count": 20,
                                "request_line_bytes": "1K"})
    with H2(("127.0.0.1", port)) as client:
        assert client.get("/hello", headers=[("x", "y" * 9000)]).status == 431
        many = [(f"x-{i}", "y") for i in range(30)]
        assert client.get("/hello", headers=many).status == 431
        assert client.get("/" + "a" * 1100).status == 414
        assert client.get("/hello").status == 200
        client.ask("/hello", headers=[("x", "y" * 16000), ("z", "y" * 30000)])
        assert client.at_goaway() == CALM


def test_access_log(daemon, port):
    one = serve(daemon, port)
    with H2(("127.0.0.1", port)) as client:
        client.get("/hello")
    wait_for(lambda: any('"GET /hello HTTP/2.0" 200 6' in line
                         for line in one.access_log()))


def test_options_asterisk_connect_and_trace(daemon, port):
    serve(daemon, port)
    with H2(("127.0.0.1", port)) as client:
        assert client.get("*", method="OPTIONS").status == 204
        assert client.get("*").reset == PROTOCOL_ERROR
        assert client.get("/", method="TRACE").status == 501
        assert client.get(pseudo=[(":method", "CONNECT"),
                                  (":authority", "a:443")]).status == 501


def test_bodies(daemon, port):
    with Origin(lambda conn: _echo(conn)) as origin:
        serve(daemon, port, origin)
        with H2(("127.0.0.1", port)) as client:
            got = client.get("/", method="POST", body=b"x" * 100000)
            assert got.body == b"x" * 100000
            # The announced length must be the true one, both ways.
            for n in 4, 6:
                number = client.ask("/", method="POST", end=False,
                                    headers=[("content-length", "5")])
                client.send(number, b"y" * n, end=n < 5)
                assert client.answer(number).reset == PROTOCOL_ERROR
            number = client.ask("/", method="POST", end=False,
                                headers=[("content-length", "5")])
            client.send(number, b"yyyyy", end=True)
            assert client.answer(number).body == b"yyyyy"


def _echo(conn):
    while True:
        request = conn.read_request()
        if not request:
            return
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
                  % len(request[1]) + request[1])


def test_too_large_a_body(daemon, port):
    with Origin(answer_ok) as origin:
        serve(daemon, port, origin, route={"max_body_bytes": "10K"})
        with H2(("127.0.0.1", port)) as client:
            number = client.ask("/", method="POST", end=False,
                                headers=[("content-length", "20000")])
            assert client.answer(number).status == 413
            number = client.ask("/", method="POST", end=False)
            client.send(number, b"x" * 20000)
            stream = client.streams[number]
            client.until(lambda: stream.over)
            assert stream.status == 413
            assert client.get("/hello").status == 200


EARLY = {
    "body": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly",
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
               b"5\r\nearly\r\n0\r\n\r\n",
    "head": b"HTTP/1.1 303 See Other\r\nLocation: /x\r\n"
            b"Content-Length: 0\r\n\r\n",
}


def test_answer_before_the_body(daemon, port):
    """All of the body is taken, then comes the end: clients take a reset for
    a failure. From who does not send the end is not kept."""
    def early(conn):
        head = conn.read_head()
        if head is None:
            return
        conn.send(EARLY[head.split()[1][1:].decode()])
        with contextlib.suppress(scalws.Closed):
            while True:
                conn.buffer = b""
                conn.more()

    with Origin(early) as origin:
        serve(daemon, port, origin)
        for path, answer in EARLY.items():
            status = int(answer[9:12])
            body = b"" if status == 303 else b"early"
            with H2(("127.0.0.1", port)) as client:
                number = client.ask(f"/{path}", method="POST",
                                    body=b"x" * (3 << 20))
                stream = client.answer(number)
                assert (stream.status, stream.body) == (status, body)
                assert stream.get("location") == \
                    ("/x" if status == 303 else None)
                assert client.get("/hello").status == 200
                assert stream.reset is None
                number = client.ask(f"/{path}", method="POST", end=False)
                stream = client.streams[number]
                assert client.until(lambda: stream.reset is not None)
                assert (stream.status, stream.body, stream.reset) == \
                    (status, body, NO_ERROR)
                assert client.get("/hello").status == 200


@pytest.mark.skipif(not LONG, reason="waits for 5 s")
def test_body_that_stops_behind_an_error(daemon, port):
    """Neither end nor more of it: what was answered is let go."""
    with Origin(answer_ok) as origin:
        serve(daemon, port, origin, route={"max_body_bytes": "10K"})
        with H2(("127.0.0.1", port)) as client:
            number = client.ask("/", method="POST", end=False,
                                headers=[("content-length", "20000")])
            stream = client.streams[number]
            assert client.until(lambda: stream.ended)
            assert (stream.status, stream.reset) == (413, None)
            began = time.monotonic()
            assert client.until(lambda: stream.reset is not None)
            assert stream.reset == NO_ERROR
            assert time.monotonic() - began >= 4.5
            assert client.get("/hello").status == 200


def test_expect_continue(daemon, port):
    with Origin(_echo) as origin:
        serve(daemon, port, origin)
        with H2(("127.0.0.1", port)) as client:
            number = client.ask("/", method="POST", end=False,
                                headers=[("expect", "100-continue")])
            stream = client.streams[number]
            assert client.until(lambda: stream.interim)
            assert dict(stream.interim[0])[":status"] == "100"
            client.send(number, b"abc", end=True)
            assert client.answer(number).body == b"abc"


def test_early_hints(daemon, port):
    def script(conn):
        conn.read_request()
        conn.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n" + OK)
    with Origin(script) as origin:
        serve(daemon, port, origin)
        with H2(("127.0.0.1", port)) as client:
            got = client.get("/")
            assert dict(got.interim[0])["link"] == "</a.css>"
            assert got.status == 200


def test_trailers(daemon, port):
    def script(conn):
        while conn.read_request():
            conn.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                      b"3\r\nabc\r\n0\r\nX-Sum: 12\r\nContent-Length: 9\r\n"
                      b"Connection: close\r\nX-More: a b\r\n\r\n")
    with Origin(script) as origin:
        serve(daemon, port, origin)
        with H2(("127.0.0.1", port)) as client:
            for _ in range(2):
                got = client.get("/")
                assert got.body == b"abc"
                assert got.trailers == [("x-sum", "12"), ("x-more", "a b")]
        with Client(("127.0.0.1", port)) as old:
            assert old.exchange().body == b"abc"
    assert len(origin.requests) == 3


# --- WebSockets -----------------------------------------------------------------

def open_ws(client, path="/", headers=()):
    return client.ask(pseudo=[
        (":method", "CONNECT"), (":protocol", "websocket"),
        (":scheme", "http"), (":path", path), (":authority", "localhost")],
        headers=[("sec-websocket-version", "13"), *headers], end=False)


def tunnel_script(heads):
    def script(conn):
        heads.append(conn.read_head())
        conn.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                  b"Connection: Upgrade\r\nSec-WebSocket-Accept: x\r\n"
                  b"Sec-WebSocket-Protocol: chat\r\n\r\nhi")
        while True:
            data = conn.buffer or conn.sock.recv(65536)
            conn.buffer = b""
            if not data:
                conn.send(b"bye")
                return
            conn.send(data.upper())
    return script


def test_websocket(daemon, port):
    heads = []
    with Origin(tunnel_script(heads)) as origin:
        serve(daemon, port, origin)
        with H2(("127.0.0.1", port)) as client:
            client.until(lambda: client.h2.remote_settings.get(8) == 1)
            number = open_ws(client, "/chat?x=1")
            stream = client.streams[number]
            client.send(number, b"early")
            assert client.until(lambda: stream.body == b"hiEARLY")
            assert stream.status == 200
            assert stream.get("sec-websocket-protocol") == "chat"
            assert stream.get("sec-websocket-accept") is None
            assert client.get("/hello").body == b"hello\n"
            client.send(number, b"x" * 200000)
            assert client.until(lambda: len(stream.body) == 200007)
            client.send(number, b"", end=True)
            assert client.answer(number).body.endswith(b"bye")
            assert stream.ended
    head = heads[0].decode().lower()
    assert head.startswith("get /chat?x=1 http/1.1\r\n")
    assert "\r\nconnection: upgrade\r\nupgrade: websocket\r\n" in head
    assert re.search(r"\r\nsec-websocket-key: \S{22}==\r\n", head)


def test_websocket_where_there_is_none(daemon, port):
    with Origin(answer_ok) as origin:
        serve(daemon, port, origin)
        with H2(("127.0.0.1", port)) as client:
            client.pump()
            for path in "/", "/hello":
                number = open_ws(client, path)
                assert client.answer(number).status == 501
            assert client.get("/hello").status == 200


def test_websocket_reset(daemon, port):
    gone = threading.Event()

    def script(conn):
        conn.read_head()
        conn.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                  b"Connection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n")
        with contextlib.suppress(OSError):
            conn.sock.recv(1)
        gone.set()
    with Origin(script) as origin:
        serve(daemon, port, origin)
        with H2(("127.0.0.1", port)) as client:
            client.pump()
            number = open_ws(client)
            client.until(lambda: client.streams[number].fields)
            client.h2.reset_stream(number, CANCEL)
            client.flush()
            assert gone.wait(10 * scalws.SLOW)


# --- streams beside each other ----------------------------------------------------

def pour(size):
    block = b"z" * 65536

    def script(conn):
        while conn.read_request():
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
            with contextlib.suppress(OSError):
                for _ in range(size // len(block)):
                    conn.send(block)
    return script


def test_large_answers_side_by_side(daemon, port):
    with Origin(pour(SIZE)) as origin:
        one = serve(daemon, port, origin)
        with H2(("127.0.0.1", port)) as client:
            numbers = [client.ask(f"/{i}") for i in range(3)]
            for number in numbers:
                got = client.answer(number)
                assert got.ended and len(got.body) == SIZE
        if scalws.SLOW == 1:
            assert scalws.rss_kib(one.proxy_pid()) < 40000


def test_large_uploads_side_by_side(daemon, port):
    sums = []

    def script(conn):
        while True:
            request = conn.read_request()
            if not request:
                return
            sums.append(len(request[1]))
            conn.send(OK)
    with Origin(script) as origin:
        serve(daemon, port, origin, route={"max_body_bytes": "1G"})
        with H2(("127.0.0.1", port)) as client:
            numbers = [client.ask("/", method="POST", end=False)
                       for _ in range(3)]
            block = b"q" * 32768
            for _ in range(SIZE // len(block)):
                for number in numbers:
                    client.send(number, block)
            for number in numbers:
                client.send(number, b"", end=True)
            for number in numbers:
                assert client.answer(number).body == b"ok"
    assert sums == [SIZE] * 3


def test_slow_stream_stops_no_other(daemon, port):
    """One that gets no window, beside others; then it ends."""
    with Origin(pour(1 << 20)) as origin:
        serve(daemon, port, origin, limits={"send_timeout": "2s"})
        with H2(("127.0.0.1", port), reads=False) as client:
            stuck = client.ask("/stuck")
            client.until(lambda: len(client.streams[stuck].body) >= 65535)
            client.h2.increment_flow_control_window(1 << 24)
            client.flush()
            for _ in range(5):
                assert client.get("/hello").body == b"hello\n"
            got = client.answer(stuck)
            assert got.reset is not None and len(got.body) == 65535
            assert client.get("/hello").body == b"hello\n"


def http_answers(conn, body_of):
    while request := conn.read_request():
        body = body_of(b" /big " in request[0])
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" %
                  (len(body), body))


def fastcgi_answers(conn, body_of):
    def record(kind, content):
        return struct.pack(">BBHHBB", 1, kind, 1, len(content), 0, 0) + content
    params = b""
    while True:
        _, kind, _, length, padding, _ = struct.unpack(">BBHHBB", conn.take(8))
        content = conn.take(length + padding)
        if kind == 4:           # PARAMS
            params += content
        elif kind == 5 and not length:      # the end of STDIN
            whole = b"Status: 200\r\n\r\n" + body_of(b"/big" in params)
            params = b""
            conn.send(b"".join(record(6, whole[i:i + 8000])
                               for i in range(0, len(whole), 8000)) +
                      record(3, bytes(8)))


@pytest.mark.parametrize("protocol,answers", [
    ("http", http_answers), ("fastcgi", fastcgi_answers)])
def test_connection_of_a_paused_answer_is_used_again(
        daemon, port, protocol, answers):
    """The last bytes of an answer are those that make us pause: the next one
    on the same connection to the app is read all the same."""
    size = 65536 + 1        # one more than may wait for a client
    seen, together = [], []

    def script(conn):
        name = str(id(conn)).encode()

        def body_of(is_big):
            if is_big:
                seen.append(name)
                return b"b" * size
            together[-1].wait(30)
            return name
        answers(conn, body_of)
    with Origin(script) as origin:
        daemon({"workers": 1,
                "sites": [{"listen": [f"127.0.0.1:{port}"], "routes": [UP]}],
                "upstreams": {"u": {
                    "peers": [{"address": origin.address}],
                    "response_timeout": "5s", "protocol": protocol,
                    **({"root": "/srv"} if protocol == "fastcgi" else {})}}})
        with H2(("127.0.0.1", port), reads=False) as client, \
                H2(("127.0.0.1", port)) as other:
            client.h2.update_settings(window(initial_window_size=0))
            client.flush()
            client.until(lambda: not
                         client.h2.local_settings.initial_window_size)
            big = client.ask("/big")
            client.until(lambda: client.streams[big].fields)

            def is_used_again():
                # More at the same time than there are idle connections.
                n = 2 * len(together) + 2
                together.append(threading.Barrier(n))
                got = [other.answer(number) for number in
                       [other.ask("/small") for _ in range(n)]]
                assert [one.status for one in got] == [200] * n, "not read"
                return seen[0] in [one.body for one in got]
            wait_for(is_used_again, 10)
            client.h2.increment_flow_control_window(1 << 20, big)
            client.h2.increment_flow_control_window(1 << 20)
            client.flush()
            assert len(client.answer(big).body) == size


def test_app_feels_a_client_that_does_not_read(daemon, port):
    sent = [0]
    size = 64 << 20

    def script(conn):
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        conn.read_request()
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        conn.sock.settimeout(None)
        with contextlib.suppress(OSError):
            while sent[0] < size:
                conn.send(b"x" * 16384)
                sent[0] += 16384
    with Origin(script) as origin:
        serve(daemon, port, origin)
        with H2(("127.0.0.1", port), reads=False) as client:
            number = client.ask("/")
            client.until(lambda: len(client.streams[number].body) >= 65535)
            seen = []

            def is_still():
                seen.append(sent[0])
                time.sleep(0.3)
                return seen[-1] == sent[0]
            wait_for(is_still)
            assert sent[0] < 8 << 20


def test_client_feels_an_app_that_does_not_read(daemon, port):
    go = threading.Event()

    def script(conn):
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        conn.read_head()
        go.wait(60)
        with contextlib.suppress(Exception):
            while conn.sock.recv(1 << 20):
                pass
    with Origin(script) as origin:
        serve(daemon, port, origin, limits={"h2_window_bytes": "128K"})
        with H2(("127.0.0.1", port)) as client:
            number = client.ask("/", method="POST", end=False)
            client.sock.settimeout(1 * scalws.SLOW)
            n = 0
            with pytest.raises(TimeoutError):
                while n < 64 << 20:
                    client.send(number, b"x" * 16384)
                    n += 16384
            assert 64 << 10 < n < 16 << 20
            client.sock.settimeout(30 * scalws.SLOW)
            assert client.get("/hello").body == b"hello\n"
            go.set()


def test_events_arrive_at_once(daemon, port):
    go = threading.Event()

    def script(conn):
        conn.read_request()
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                  b"Transfer-Encoding: chunked\r\n\r\n")
        for i in range(3):
            conn.send(b"8\r\ndata: %d\n\r\n" % i)
            go.wait(30)
            go.clear()
        conn.send(b"0\r\n\r\n")
    with Origin(script) as origin:
        serve(daemon, port, origin)
        with H2(("127.0.0.1", port)) as client:
            number = client.ask("/")
            stream = client.streams[number]
            for i in range(3):
                assert client.until(
                    lambda: stream.body.endswith(b"data: %d\n" % i))
                go.set()
            assert client.answer(number).ended


def test_urgent_answer_comes_first(daemon, port):
    """Both are there; the window is opened for both at once."""
    # A fixed answer is there from the start; what an origin has sent may not
    # have been read yet.
    daemon({"sites": [{"listen": [f"127.0.0.1:{port}"], "routes": [
        {"path": "*", "respond": {"body": "x" * 49152}}]}]})
    with H2(("127.0.0.1", port), reads=False) as client:
        client.h2.update_settings(window(initial_window_size=0))
        client.h2.increment_flow_control_window(1 << 20)
        client.flush()
        late = client.ask("/late", headers=[("priority", "u=6")])
        soon = client.ask("/soon", headers=[("priority", "u=1")])
        client.until(lambda: client.streams[late].fields and
                     client.streams[soon].fields)
        order = []
        take = client.take

        def watch(event):
            if type(event).__name__ == "StreamEnded":
                order.append(event.stream_id)
            take(event)
        client.take = watch
        client.h2.update_settings(window(initial_window_size=1 << 20))
        client.flush()
        client.until(lambda: len(order) >= 2)
        assert [n for n in order if n in (late, soon)] == [soon, late]


# --- ends -----------------------------------------------------------------------

def test_reset_ends_the_request_at_the_app(daemon, port):
    gone = threading.Event()

    def script(conn):
        conn.read_request()
        conn.sock.settimeout(20)
        try:
            if conn.sock.recv(1) == b"":
                gone.set()
        except OSError:
            gone.set()
    with Origin(script) as origin:
        serve(daemon, port, origin)
        with H2(("127.0.0.1", port)) as client:
            number = client.ask("/")
            wait_for(lambda: origin.requests)
            client.h2.reset_stream(number, CANCEL)
            client.flush()
            assert gone.wait(10 * scalws.SLOW)
            assert client.get("/hello").status == 200


def test_app_that_breaks_off_resets_the_stream(daemon, port):
    """Behind what it said, in one piece with its end or not."""
    head = b"HTTP/1.1 200 OK\r\n"
    answers = {
        "/short": (head + b"Content-Length: 100\r\n\r\nabc", b"abc"),
        "/none": (head + b"Content-Length: 100\r\n\r\n", b""),
        "/chunk": (head + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
                   b"zz\r\n", b"abc"),
        "/large": (head + b"Content-Length: 200000\r\n\r\n" +
                   b"x" * 150000, b"x" * 150000)}

    def script(conn):
        target = conn.read_request()[0].split(b" ")[1].decode()
        conn.send(answers[target][0])
    with Origin(script) as origin:
        serve(daemon, port, origin)
        with H2(("127.0.0.1", port)) as client:
            for path, (_, body) in answers.items():
                got = client.get(path)
                assert got.reset == INTERNAL_ERROR, path
                assert got.status == 200 and bytes(got.body) == body, path
            assert client.get("/hello").status == 200


def test_stop_drains(daemon, port):
    go = threading.Event()

    def script(conn):
        conn.read_request()
        go.wait(30)
        conn.send(OK)
    with Origin(script) as origin:
        one = serve(daemon, port, origin)
        with H2(("127.0.0.1", port)) as client, \
                H2(("127.0.0.1", port)) as idle:
            idle.get("/hello")
            number = client.ask("/")
            wait_for(lambda: one.status()["proxy"]["in_flight"] == 1)
            one.signal(15)
            assert idle.at_goaway() == NO_ERROR
            assert idle.at_eof()
            assert client.at_goaway() == NO_ERROR
            client.until(lambda: len(client.goaways) == 2)
            go.set()
            assert client.answer(number).body == b"ok"
            assert client.at_eof()
            assert [code for code, _ in client.goaways] == [0, 0]


def test_listener_that_goes_drains(daemon, port, other_port=None):
    other = scalws.free_port()
    one = serve(daemon, port, site={
        "listen": [f"127.0.0.1:{port}", f"127.0.0.1:{other}"]})
    with H2(("127.0.0.1", port)) as client:
        assert client.get("/hello").status == 200
        one.write({"sites": [{"listen": [f"127.0.0.1:{other}"],
                              "routes": [HELLO]}]})
        one.ok("reload")
        assert client.at_goaway() == NO_ERROR
        assert client.at_eof()


def test_as_many_requests_as_allowed(daemon, port):
    serve(daemon, port, limits={"requests_per_connection": 10})
    with H2(("127.0.0.1", port)) as client:
        for _ in range(10):
            assert client.get("/hello").status == 200
        assert client.at_goaway() == NO_ERROR
        assert client.at_eof()


@pytest.mark.parametrize("asked", [False, True])
def test_idle_connection_is_closed(daemon, port, asked):
    serve(daemon, port, limits={"idle_timeout": "300ms",
                                "header_timeout": "300ms"})
    with H2(("127.0.0.1", port)) as client:
        if asked:
            client.get("/hello")
        assert client.at_goaway() == NO_ERROR
        assert client.at_eof()


def test_body_that_stops_is_408(daemon, port):
    with Origin(answer_ok) as origin:
        serve(daemon, port, origin, limits={"body_timeout": "500ms"})
        with H2(("127.0.0.1", port)) as client:
            number = client.ask("/", method="POST", end=False)
            client.send(number, b"a")
            assert client.answer(number).status == 408


# --- abuse ----------------------------------------------------------------------

def test_rapid_reset(daemon, port):
    """A load beside it sees nothing of it."""
    with Origin(answer_ok) as origin:
        serve(daemon, port, origin)
        with scalws.Load(("127.0.0.1", port), n=2) as load:
            sock = scalws.connect(("127.0.0.1", port), 30)
            client = H2(None, sock=sock)
            n = 100000 if LONG else 5000
            with contextlib.suppress(OSError):
                for i in range(n):
                    number = client.h2.get_next_available_stream_id()
                    client.h2.send_headers(number, [
                        (":method", "GET"), (":scheme", "http"),
                        (":authority", "localhost"), (":path", "/")])
                    client.h2.reset_stream(number, CANCEL)
                    if i % 50 == 49:
                        client.flush()
            assert client.at_goaway() == CALM
            client.close()
            load.wait_done(20)
        assert not load.failed


def flood_ping(client):
    client.raw(6, 0, 0, b"12345678")


def flood_settings(client):
    client.raw(4, 0, 0)


def flood_priority(client):
    client.raw(2, 0, 1, b"\0\0\0\0\x10")


def flood_unknown(client):
    client.raw(0xbb, 0, 0, b"x")


@pytest.mark.parametrize("flood", [flood_ping, flood_settings, flood_priority,
                                   flood_unknown])
def test_floods(daemon, port, flood):
    serve(daemon, port, limits={"h2_control_frames": 200})
    with H2(("127.0.0.1", port)) as client:
        with contextlib.suppress(OSError):
            for _ in range(400):
                flood(client)
        assert client.at_goaway() == CALM


def test_flood_of_empty_data(daemon, port):
    with Origin(answer_ok) as origin:
        serve(daemon, port, origin, limits={"h2_control_frames": 200})
        with H2(("127.0.0.1", port)) as client:
            number = client.ask("/", method="POST", end=False)
            with contextlib.suppress(OSError):
                for _ in range(400):
                    client.raw(0, 0, number)
            assert client.at_goaway() == CALM


def test_flood_of_continuations(daemon, port):
    serve(daemon, port)
    with H2(("127.0.0.1", port)) as client:
        client.raw(1, 0, 1, b"\x82")
        with contextlib.suppress(OSError):
            for _ in range(1000):
                client.raw(9, 0, 1)
        assert client.at_goaway() == CALM


def test_header_bomb(daemon, port):
    serve(daemon, port)
    with H2(("127.0.0.1", port)) as client:
        # One field into the dynamic table, then thousands of times.
        field = b"\x40\x01a\x7f\x80\x1e" + b"b" * 3967
        client.raw(1, 0, 1, b"\x82\x84\x86\x41\x01a" + field + b"\xbe" * 12000)
        assert client.at_goaway() == CALM


def test_replies_wait_for_a_client_that_does_not_read(daemon, port):
    """What it should be told is bounded: at last it is not heard."""
    one = serve(daemon, port, limits={"h2_control_frames": 1000000,
                                      "send_timeout": "60s"})
    with H2(("127.0.0.1", port)) as client:
        client.sock.settimeout(2 * scalws.SLOW)
        pings = (b"\0\0\x08\6\0\0\0\0\0" + b"12345678") * 4096
        before = scalws.rss_kib(one.proxy_pid())
        n = 0
        with contextlib.suppress(OSError):
            for n in range(400):
                client.sock.sendall(pings)
        if scalws.SLOW == 1:   # a sanitizer keeps what is freed
            assert scalws.rss_kib(one.proxy_pid()) - before < 20000
