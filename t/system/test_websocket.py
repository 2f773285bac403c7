"""WebSockets: tunnels from clients to applications, through the proxy.

Ws      a WebSocket client that sees exact bytes
tunnel  an origin that agrees to everything, and what it got
"""
import base64
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

import scalws
from scalws import Client, Closed, Origin, get, wait_for

KEY = base64.b64encode(b"0123456789abcdef").decode()
ACCEPT = base64.b64encode(hashlib.sha1(
    KEY.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()
ASK = {"Connection": "Upgrade", "Upgrade": "websocket",
       "Sec-WebSocket-Key": KEY, "Sec-WebSocket-Version": "13"}
FIREFOX = [("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) "
                          "Gecko/20100101 Firefox/128.0"),
           ("Accept", "*/*"), ("Accept-Encoding", "gzip, deflate, br"),
           ("Sec-WebSocket-Version", "13"), ("Origin", "http://localhost"),
           ("Sec-WebSocket-Extensions", "permessage-deflate"),
           ("Sec-WebSocket-Key", KEY), ("Connection", "keep-alive, Upgrade"),
           ("Pragma", "no-cache"), ("Upgrade", "websocket")]
SWITCH = (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
          b"Connection: Upgrade\r\nSec-WebSocket-Accept: " +
          ACCEPT.encode() + b"\r\n\r\n")
GOING_AWAY = b"\x88\x02" + struct.pack("!H", 1001)
WITHIN = 1
UP = {"path": "*", "upstream": "u"}


# --- helpers --------------------------------------------------------------------

class Ws(Client):
    """Text and binary messages in single frames."""

    def __init__(self, address, target="/", headers=(), **kwargs):
        super().__init__(address, **kwargs)
        self.request(target=target, headers=headers or ASK)
        self.answer = self.response(informational=True)
        assert self.answer.status == 101, self.answer
        assert self.answer.get("Sec-WebSocket-Accept") == ACCEPT

    def say(self, data, kind=None):
        if kind is None:
            kind = 1 if isinstance(data, str) else 2
        data = data.encode() if isinstance(data, str) else data
        n = len(data)
        head = bytes([0x80 | kind])
        if n < 126:
            head += bytes([0x80 | n])
        elif n < 65536:
            head += b"\xfe" + struct.pack("!H", n)
        else:
            head += b"\xff" + struct.pack("!Q", n)
        return self.send(head + bytes(4) + data)    # a mask of zeros

    def hear(self):
        first, n = self.take(2)
        assert first & 0x80 and n < 128, "one frame, not masked"
        if n == 126:
            n = struct.unpack("!H", self.take(2))[0]
        elif n == 127:
            n = struct.unpack("!Q", self.take(8))[0]
        data = self.take(n)
        return data.decode() if first & 15 == 1 else data

    def echoes(self, data="hello"):
        return self.say(data).hear() == data


class Tunnel:
    """The origin's end of each tunnel: what came, and when it ended."""

    def __init__(self, talk=None, answer=SWITCH):
        self.conns, self.got, self.ended = [], [], []

        def script(conn):
            head = conn.read_head()
            if head is None:
                return
            conn.origin.requests.append((head, b""))
            mine = len(self.conns)
            self.got.append(bytearray(conn.buffer))
            conn.buffer = b""
            self.ended.append(None)
            self.conns.append(conn)
            conn.send(answer)
            if talk:
                talk(conn)
                return
            try:
                while True:
                    data = conn.sock.recv(65536)
                    if not data:
                        self.ended[mine] = "closed"
                        return
                    self.got[mine] += data
            except OSError:
                self.ended[mine] = "broken"
        self.origin = Origin(script)

    def __enter__(self):
        self.origin.__enter__()
        return self

    def __exit__(self, *what):
        self.origin.__exit__(*what)

    def wait_got(self, data, i=0):
        wait_for(lambda: len(self.got) > i and bytes(self.got[i]) == data, 5,
                 f"{data[:50]!r} came")


def serve(daemon, port, origin, **keys):
    upstream = {"peers": [{"address": origin.address}]}
    upstream.update(keys.pop("upstream", {}))
    site = {"listen": [f"127.0.0.1:{port}"],
            "routes": [{**UP, **keys.pop("route", {})}]}
    return daemon({"sites": [site], "upstreams": {"u": upstream}, **keys})


def raw(port, headers=None, behind=b"", **kwargs):
    """A client that has asked for a tunnel and sent `behind` at once."""
    client = Client(port, **kwargs)
    items = (headers or ASK).items()
    client.send(b"GET /raw HTTP/1.1\r\nHost: localhost\r\n" + "".join(
        f"{k}: {v}\r\n" for k, v in items).encode() + b"\r\n" + behind)
    return client


def opened(port, **kwargs):
    client = raw(port, **kwargs)
    answer = client.response(informational=True)
    assert answer.status == 101, answer
    return client


def need_ws():
    modules = scalws.node_modules()
    if modules is None or not (modules / "ws").is_dir():
        pytest.skip("no ws: npm ci in t/system/apps/node")


def node_app(apps, **keys):
    return {"runtime": "node", "directory": str(apps / "node"),
            "script": "ws.js", **keys}


def python_app(apps, **keys):
    have = subprocess.run(["/usr/bin/python3", "-c", "import websockets"],
                          capture_output=True)
    if have.returncode:
        pytest.skip("no websockets for uvicorn")
    return {"runtime": "python", "python": "/usr/bin/python3",
            "directory": str(apps / "python"), "module": "ws:app", **keys}


APPS = {"node": node_app, "uvicorn": python_app}


def serve_app(daemon, port, app, **keys):
    need_ws()
    one = daemon({"sites": [{"listen": [f"127.0.0.1:{port}"],
                             "routes": [{"path": "*", "app": "a"}]}],
                  "apps": {"a": app}, **keys})
    one.wait_running("a")
    return one


def client_of(apps, port, what, *args, target="/"):
    return subprocess.Popen(
        ["node", "wsclient.js", f"ws://127.0.0.1:{port}{target}", what,
         *map(str, args)], cwd=apps / "node", text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run_client(apps, port, what, **kwargs):
    done = client_of(apps, port, what, **kwargs)
    out, err = done.communicate(timeout=60 * scalws.SLOW)
    assert done.returncode == 0, err
    return json.loads(out)


def in_flight(one):
    return one.app("a")["in_flight"]


# --- clients and applications as people have them -------------------------------

@pytest.mark.parametrize("app", APPS)
def test_messages_pings_and_closes(daemon, port, apps, app):
    serve_app(daemon, port, APPS[app](apps))
    seen = run_client(apps, port, "all")
    sizes = [10, 0, 1, 125, 126, 65535, 65536, 1 << 20, 1 << 20]
    assert seen == {"sizes": sizes * 2, "pongs": 2, "mine": [4321, "enough"]}
    assert run_client(apps, port, "theirs") == {"theirs": [4000, "bye"]}


@pytest.mark.parametrize("app", APPS)
def test_app_refuses(daemon, port, apps, app):
    one = serve_app(daemon, port, APPS[app](apps))
    assert run_client(apps, port, "refused", target="/refuse") == \
        {"status": 403}
    assert get(port).status == 200
    wait_for(lambda: in_flight(one) == 0, 5)


@pytest.mark.threads
def test_hundred_at_once(daemon, port, apps):
    one = serve_app(daemon, port, node_app(apps))
    many = client_of(apps, port, "many", 100)
    line = many.stdout.readline()
    assert line and json.loads(line) == {"open": 100}, many.stderr.read()
    assert in_flight(one) == 100
    # Requests go on beside them, on connections of their own.
    assert get(port, "/pid").status == 200
    assert in_flight(one) == 100
    out, err = many.communicate(timeout=60 * scalws.SLOW)
    assert many.returncode == 0, err
    assert json.loads(out) == {"clean": 100}
    wait_for(lambda: in_flight(one) == 0, 5, "none is in flight")
    lines = wait_for(lambda: len([x for x in one.access_log()
                                  if " 101 " in x]) == 100 and
                     one.access_log(), 5)
    assert not any(" 50" in line for line in lines)


def test_killed_app(daemon, port, apps):
    """kill -9: the clients see it at once, the next are served again."""
    one = serve_app(daemon, port, node_app(apps))
    sockets = [Ws(port) for _ in range(5)]
    assert all(ws.echoes() for ws in sockets)
    victim = int(sockets[0].say("pid").hear())
    assert victim in one.pids("a")
    os.kill(victim, signal.SIGKILL)
    for ws in sockets:
        assert ws.at_eof(WITHIN)
    wait_for(lambda: victim not in one.pids("a"), 10)
    one.wait_running("a")
    with Ws(port) as ws:
        assert ws.echoes()
    for ws in sockets:
        ws.close()


def test_killed_app_behind_a_port(daemon, port, apps):
    """The same where its end looks like a half-close."""
    app = {"runtime": "command", "directory": str(apps / "node"),
           "command": [shutil.which("node"), "ws.js"]}
    one = serve_app(daemon, port, app)
    ws = Ws(port)
    assert ws.echoes()
    victim = int(ws.say("pid").hear())
    os.kill(victim, signal.SIGKILL)
    assert ws.at_eof(WITHIN)
    # The client's own half stays open: it must not be left to itself.
    wait_for(lambda: in_flight(one) == 0, 5, "the tunnel is over")
    ws.close()


def test_reload_and_restart(daemon, port, apps):
    """A reload that changes other things leaves it open; a restart of its
    app lets it live for stream_grace."""
    one = serve_app(daemon, port, node_app(apps, stream_grace="2s"))
    with Ws(port) as ws:
        pid = ws.say("pid").hear()
        one.conf["limits"] = {"idle_timeout": "7s"}
        one.write(one.conf)
        one.ok("reload")
        assert ws.echoes() and ws.say("pid").hear() == pid
        began = time.monotonic()
        restart = threading.Thread(target=one.ok, args=("restart", "a"))
        restart.start()
        try:
            wait_for(lambda: pid not in get(port, "/pid").text, 20)
            assert ws.echoes() and ws.say("pid").hear() == pid
            assert ws.take(4) == GOING_AWAY
            assert ws.at_eof(20)
        finally:
            restart.join()
        assert time.monotonic() - began > 2
        with Ws(port) as next_one:
            assert next_one.say("pid").hear() != pid


def test_stop_waits_for_it(daemon, port, apps):
    """A daemon that is told to end leaves tunnels until drain_timeout."""
    one = serve_app(daemon, port, node_app(apps),
                    limits={"drain_timeout": "2s"})
    with Ws(port) as ws:
        assert ws.echoes()
        one.signal(signal.SIGTERM)
        with pytest.raises(OSError):
            for _ in range(200):
                scalws.connect(port, timeout=1).close()
                time.sleep(0.02)
        assert ws.echoes()
        began = time.monotonic()
        assert ws.take(4) == GOING_AWAY
        assert ws.at_eof(10)
        assert time.monotonic() - began < 5 * scalws.SLOW
    one.wait()


# --- what the app is asked, and what the client is told ------------------------

def test_firefox(daemon, port):
    with Tunnel() as tunnel:
        serve(daemon, port, tunnel.origin)
        with Ws(port, headers=FIREFOX) as ws:
            assert ws.answer.all("Connection") == ["Upgrade"]
            assert ws.answer.all("Upgrade") == ["websocket"]
            assert ws.answer.get("Content-Length") is None
            assert ws.answer.get("Transfer-Encoding") is None
        head = tunnel.origin.requests[0][0].decode()
    assert head.startswith("GET / HTTP/1.1\r\n")
    assert re.findall("(?im)^connection:.*?$", head) == ["Connection: Upgrade\r"]
    assert re.findall("(?im)^upgrade:.*?$", head) == ["Upgrade: websocket\r"]
    for name, value in FIREFOX:
        if name not in ("Connection", "Upgrade"):
            assert f"\r\n{name}: {value}\r\n" in head
    assert "X-Forwarded-For: 127.0.0.1\r\n" in head
    assert "Content-Length" not in head


@pytest.mark.parametrize("headers", [
    {"Connection": "Upgrade", "Upgrade": "h2c, websocket"},
    {"connection": "upgrade", "upgrade": "WebSocket"},
], ids=["list", "case"])
def test_other_spellings(daemon, port, headers):
    with Tunnel() as tunnel:
        serve(daemon, port, tunnel.origin)
        with opened(port, headers=headers) as client:
            client.send(b"x")
            tunnel.wait_got(b"x")
        head = tunnel.origin.requests[0][0]
        assert b"h2c" not in head
        assert head.lower().count(b"upgrade: websocket\r\n") == 1


@pytest.mark.parametrize("method, headers", [
    ("GET", {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c",
             "HTTP2-Settings": "AAMAAABkAARAAAAAAAIAAAAA"}),
    ("GET", {"Connection": "Upgrade", "Upgrade": "TLS/1.0"}),
    ("GET", {"Upgrade": "websocket"}),
    ("POST", {"Connection": "Upgrade", "Upgrade": "websocket",
              "Content-Length": "0"}),
    ("HEAD", {"Connection": "Upgrade", "Upgrade": "websocket"}),
], ids=["h2c", "tls", "not-listed", "post", "head"])
def test_not_passed_on(daemon, port, method, headers):
    with Origin(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as origin:
        serve(daemon, port, origin)
        with Client(port) as client:
            for _ in range(2):
                assert client.exchange(method, headers=headers).status == 200
        for head, _ in origin.requests:
            assert not re.search(rb"(?im)^(upgrade|connection|http2-settings)"
                                 rb" *:", head), head


@pytest.mark.parametrize("answer, asked", [
    (SWITCH, False),
    (SWITCH.replace(b"websocket", b"h2c"), True),
    (SWITCH.replace(b"websocket", b"websocket, h2c"), True),
    (SWITCH.replace(b"Upgrade: websocket\r\n", b""), True),
    (SWITCH.replace(b"Connection: Upgrade\r\n", b""), True),
    (SWITCH.replace(b"HTTP/1.1", b"HTTP/1.0"), True),
], ids=["unasked", "h2c", "two", "to-nothing", "no-option", "old"])
def test_wrong_switch(daemon, port, answer, asked):
    """502, and both ends are closed."""
    with Tunnel(answer=answer + b"secret") as tunnel:
        serve(daemon, port, tunnel.origin)
        with Client(port) as client:
            client.request(headers=ASK if asked else ())
            reply = client.response(informational=True)
            assert reply.status == 502
            assert b"secret" not in reply.body
            assert client.at_eof(2)
        wait_for(lambda: tunnel.ended[0], 2, "the app's end is closed")
        assert bytes(tunnel.got[0]) == b""
        assert len(tunnel.origin.requests) == 1


def test_refused_goes_on(daemon, port):
    """No 101: the connection speaks HTTP as before, and what came behind the
    request is the next one, not the app's."""
    with Origin(b"HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\n"
                b"Connection: Upgrade\r\nContent-Length: 2\r\n\r\nno") as origin:
        serve(daemon, port, origin)
        with raw(port, behind=b"GET /next HTTP/1.1\r\nHost: localhost\r\n"
                              b"\r\n") as client:
            first, second = client.response(), client.response()
            assert (first.status, second.status) == (426, 426)
        heads = [head for head, _ in origin.requests]
        assert [h.split(b" ")[1] for h in heads] == [b"/raw", b"/next"]


# --- bytes -----------------------------------------------------------------------

def test_bytes_behind_the_head(daemon, port):
    """They wait for the 101, and then come first."""
    many = os.urandom(200000)
    with Tunnel() as tunnel:
        serve(daemon, port, tunnel.origin, limits={"body_bytes": "1K"})
        with raw(port, behind=b"early" + many) as client:
            assert client.response(informational=True).status == 101
            client.send(b"late")
            tunnel.wait_got(b"early" + many + b"late")


def test_bytes_behind_the_answer(daemon, port):
    many = os.urandom(200000)
    with Tunnel(answer=SWITCH + many) as tunnel:
        serve(daemon, port, tunnel.origin)
        with opened(port) as client:
            assert client.take(len(many)) == many


def test_app_closes_its_half(daemon, port):
    """... and still gets all that the client says."""
    def talk(conn):
        conn.send(b"my last")
        conn.sock.shutdown(socket.SHUT_WR)
        while len(got) < 300000 + 5:
            data = conn.sock.recv(65536)
            if not data:
                break
            got.extend(data)
        ended.append(conn.sock.recv(1) == b"")
    got, ended = bytearray(), []
    many = os.urandom(300000)
    with Tunnel(talk) as tunnel:
        one = serve(daemon, port, tunnel.origin)
        with opened(port) as client:
            assert client.take(7) == b"my last"
            assert client.at_eof(2)
            time.sleep(0.3)
            client.send(many)
            time.sleep(0.3)
            client.send(b"after")
            wait_for(lambda: len(got) == len(many) + 5, 5, "all came")
            assert not ended
            client.sock.shutdown(socket.SHUT_WR)
            wait_for(lambda: ended, 2, "the app sees the client's end")
        assert bytes(got) == many + b"after"
        wait_for(lambda: one.access_log(), 5)


def test_client_closes_its_half(daemon, port):
    """... and still gets all that the app says."""
    many = os.urandom(300000)

    def talk(conn):
        got = b""
        while True:
            data = conn.sock.recv(65536)
            if not data:
                break
            got += data
        time.sleep(0.3)
        conn.send(many + got)
        time.sleep(0.3)
        conn.send(b"end")
    with Tunnel(talk) as tunnel:
        one = serve(daemon, port, tunnel.origin)
        with opened(port) as client:
            client.send(b"my last")
            client.sock.shutdown(socket.SHUT_WR)
            assert client.take(len(many) + 10) == many + b"my lastend"
            assert client.at_eof(2)
        line = wait_for(lambda: one.access_log(), 5)[0]
        assert f" 101 {len(many) + 10} " in line + " ", line


def test_both_close_at_once(daemon, port):
    """Last words cross: both arrive."""
    def talk(conn):
        conn.send(b"A" * 100000)
        conn.sock.shutdown(socket.SHUT_WR)
        while True:
            data = conn.sock.recv(65536)
            if not data:
                break
            got.append(data)
        done.set()
    got, done = [], threading.Event()
    with Tunnel(talk) as tunnel:
        serve(daemon, port, tunnel.origin)
        with opened(port) as client:
            client.send(b"B" * 100000)
            client.sock.shutdown(socket.SHUT_WR)
            assert client.take(100000) == b"A" * 100000
            assert client.at_eof(2)
        assert done.wait(2 * scalws.SLOW)
        assert b"".join(got) == b"B" * 100000


# --- ends ------------------------------------------------------------------------

@pytest.mark.parametrize("how", ["close", "reset", "reset-half-closed"])
def test_client_vanishes(daemon, port, how):
    with Tunnel() as tunnel:
        one = serve(daemon, port, tunnel.origin)
        client = opened(port)
        client.send(b"x")
        tunnel.wait_got(b"x")
        if how == "reset-half-closed":
            tunnel.conns[0].sock.shutdown(socket.SHUT_WR)
            assert client.at_eof(2)
        if how != "close":
            client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                   struct.pack("ii", 1, 0))
        client.close()
        wait_for(lambda: tunnel.ended[0], WITHIN,
                 "the app is told")
        wait_for(lambda: one.access_log(), 5, "it is over")


@pytest.mark.parametrize("slots", [None, 1])
@pytest.mark.parametrize("how", ["reset", "reset-while-full"])
def test_reset_reaches_the_app(daemon, port, how, slots):
    """As what it is, not as a client that may still read; and whatever the
    app does then, its slot is free."""
    stopped, broken = threading.Event(), threading.Event()

    def talk(conn):
        if how == "reset-while-full":
            stopped.wait(20)
        try:
            while conn.sock.recv(65536):
                pass
            while True:             # a half-closed client could read it
                conn.send(b"more" * 1000)
                time.sleep(0.02)
        except OSError:
            broken.set()
        time.sleep(1)
    with Tunnel(talk) as tunnel:
        peer = {"address": tunnel.origin.address, "max_connections": slots}
        serve(daemon, port, tunnel.origin, workers=1,
              upstream={"peers": [peer]})
        client = opened(port)
        if how == "reset-while-full":
            client.sock.settimeout(0.5)
            with contextlib.suppress(OSError):
                for _ in range(1000):
                    client.send(b"x" * 65536)
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                               struct.pack("ii", 1, 0))
        client.close()
        time.sleep(0.1)
        stopped.set()
        wait_for(broken.is_set, 2, "the app is told")
        with opened(port) as again:
            again.send(b"x")


def test_idle_tunnels_are_small(daemon, port):
    """Neither side keeps a buffer while nothing is said."""
    if scalws.SLOW > 1:
        pytest.skip("a sanitizer's memory is its own")
    with Tunnel() as tunnel:
        one = serve(daemon, port, tunnel.origin, workers=1)
        pid, many = one.proxy_pid(), 300
        with contextlib.ExitStack() as stack:
            def more(n):
                for _ in range(n):
                    client = stack.enter_context(opened(port))
                    client.send(b"ping")
                    tunnel.wait_got(b"ping", len(tunnel.got) - 1)
            more(20)
            before = scalws.rss_kib(pid)
            more(many)
            assert (scalws.rss_kib(pid) - before) / many < 10
            for sock in tunnel.conns:
                sock.send(b"pong")
        line = wait_for(lambda: one.access_log(), 5)[0]
        assert '"GET /raw HTTP/1.1" 101 ' in line, line


@pytest.mark.parametrize("how", ["close", "reset", "reset-half-closed"])
def test_app_vanishes(daemon, port, how):
    with Tunnel() as tunnel:
        one = serve(daemon, port, tunnel.origin)
        client = opened(port)
        client.send(b"x")
        tunnel.wait_got(b"x")
        if how == "reset-half-closed":
            client.sock.shutdown(socket.SHUT_WR)
            wait_for(lambda: tunnel.ended[0] == "closed", 2)
        sock = tunnel.conns[0].sock
        with contextlib.suppress(OSError):
            if how != "close":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                struct.pack("ii", 1, 0))
            sock.shutdown(socket.SHUT_RDWR)
        assert client.at_eof(WITHIN)
        client.close()
        wait_for(lambda: one.access_log(), 5, "it is over")
        assert " 101 " in one.access_log()[0]


def test_nothing_is_said_for_long(daemon, port):
    with Tunnel() as tunnel:
        one = serve(daemon, port, tunnel.origin,
                    upstream={"stream_timeout": "2s"})
        with opened(port) as client:
            began = time.monotonic()
            # Each direction alone keeps it open.
            for _ in range(4):
                client.send(b"x")
                time.sleep(0.8)
            for _ in range(4):
                tunnel.conns[0].send(b"y")
                assert client.take(1) == b"y"
                time.sleep(0.8)
            assert time.monotonic() - began > 5
            began = time.monotonic()
            assert client.at_eof(6)
            assert 0.5 < time.monotonic() - began < 2.5 + 2 * scalws.SLOW
        wait_for(lambda: tunnel.ended[0], 2, "the app's end is closed")
        wait_for(lambda: "tunnel closed: idle" in one.log(), 5)


def test_no_other_time_applies(daemon, port):
    with Tunnel() as tunnel:
        serve(daemon, port, tunnel.origin,
              limits={"body_timeout": "1s", "header_timeout": "1s",
                      "idle_timeout": "1s", "send_timeout": "1s"},
              upstream={"response_timeout": "1s", "pause_timeout": "1s",
                        "idle_timeout": "1s"})
        with opened(port) as client:
            client.send(b"x")
            time.sleep(4)
            client.send(b"y")
            tunnel.wait_got(b"xy")
            tunnel.conns[0].send(b"z")
            assert client.take(1) == b"z"
            time.sleep(4)
            client.send(b"!")
            tunnel.wait_got(b"xy!")


def test_never_used_again(daemon, port):
    """The app's connection of a tunnel serves no request after it."""
    def script(conn):
        while True:
            head = conn.read_head()
            if head is None:
                return
            conn.origin.requests.append((head, b""))
            if b"websocket" not in head:
                conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                continue
            conn.send(SWITCH)
            while conn.sock.recv(1000):
                pass
            conn.sock.shutdown(socket.SHUT_WR)
            return
    with Origin(script) as origin:
        serve(daemon, port, origin, workers=1)
        assert get(port).status == 200
        with opened(port) as client:
            client.send(b"x")
        assert get(port).status == 200
        # The first is used for the tunnel, too: kept, and then gone.
        assert origin.connections == 2


def test_access_log(daemon, port):
    with Tunnel() as tunnel:
        one = serve(daemon, port, tunnel.origin, access_log_format="json")
        with opened(port) as client:
            client.send(b"12345")
            tunnel.wait_got(b"12345")
            tunnel.conns[0].send(b"1234567")
            client.take(7)
            time.sleep(0.5)
            assert not one.access_log()
        line = json.loads(wait_for(lambda: one.access_log(), 5)[0])
        assert line["status"] == 101
        assert line["bytes"] == 7
        assert line["received"] == 5
        assert line["total_ms"] >= 500


# --- slow ends --------------------------------------------------------------------

def test_slow_reader(daemon, port):
    """The buffers fill, then the app waits; nothing is lost."""
    size = 48 << 20
    sent = [0]

    def talk(conn):
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        block = bytes(range(256)) * 256
        while sent[0] < size:
            conn.send(block)
            sent[0] += len(block)
        conn.sock.shutdown(socket.SHUT_WR)
        while conn.sock.recv(1000):
            pass
    with Tunnel(talk) as tunnel:
        one = serve(daemon, port, tunnel.origin,
                    limits={"buffer_bytes": "64K"})
        pid = one.proxy_pid()
        before = scalws.rss_kib(pid)
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
        sock.settimeout(30 * scalws.SLOW)
        sock.connect(("127.0.0.1", port))
        sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n" + "".join(
            f"{k}: {v}\r\n" for k, v in ASK.items()).encode() + b"\r\n")
        time.sleep(1)
        assert sent[0] < 12 << 20
        still = sent[0]
        time.sleep(1)
        assert sent[0] - still < 1 << 20
        assert scalws.rss_kib(pid) - before < scalws.allowed_kib(4096)
        got = bytearray()
        # A small window is served by timers, a few hundred KiB a second.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        while True:
            data = sock.recv(1 << 20)
            if not data:
                break
            got += data
        sock.close()
        assert bytes(got).partition(b"\r\n\r\n")[2] == \
            bytes(range(256)) * (size // 256)


def test_slow_app(daemon, port):
    size = 48 << 20
    go, got = threading.Event(), bytearray()

    def talk(conn):
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
        go.wait(60)
        # A small window is served by timers, a few hundred KiB a second.
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        while True:
            data = conn.sock.recv(1 << 20)
            if not data:
                break
            got.extend(data)
        conn.send(b"thanks")
    with Tunnel(talk) as tunnel:
        one = serve(daemon, port, tunnel.origin)
        pid = one.proxy_pid()
        before = scalws.rss_kib(pid)
        block, sent = bytes(range(256)) * 256, 0
        with opened(port) as client:
            client.sock.settimeout(1)
            with pytest.raises(socket.timeout):
                while True:
                    n = client.sock.send(block[sent % 256:])
                    sent += n
            assert sent < 20 << 20
            assert scalws.rss_kib(pid) - before < scalws.allowed_kib(4096)
            go.set()
            client.sock.settimeout(30 * scalws.SLOW)
            while sent < size:
                sent += client.sock.send(block[sent % 256:])
            client.sock.shutdown(socket.SHUT_WR)
            assert client.take(6) == b"thanks"
            assert client.at_eof(2)
        assert len(got) == sent
        assert bytes(got) == (bytes(range(256)) * (sent // 256 + 1))[:sent]


def test_client_that_takes_nothing(daemon, port):
    """The send timeout ends it."""
    def talk(conn):
        with contextlib.suppress(OSError):
            while True:
                conn.send(bytes(65536))
        ended.set()
    ended = threading.Event()
    with Tunnel(talk) as tunnel:
        one = serve(daemon, port, tunnel.origin,
                    limits={"send_timeout": "1s"})
        with opened(port):
            assert ended.wait(6 + scalws.SLOW), "the app is told"
        wait_for(lambda: "send timeout" in one.log(), 5)


def test_app_that_takes_nothing(daemon, port):
    def talk(conn):
        done.wait(60)
    done = threading.Event()
    with Tunnel(talk) as tunnel:
        one = serve(daemon, port, tunnel.origin,
                    upstream={"pause_timeout": "1s"})
        with opened(port) as client:
            client.sock.settimeout(10 * scalws.SLOW)
            with pytest.raises((ConnectionError, Closed)):
                while True:
                    client.send(bytes(65536))
        done.set()
        wait_for(lambda: "tunnel closed: the app takes nothing" in one.log(),
                 5)
