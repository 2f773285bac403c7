"""Limits and times: each key, its status, and what becomes of the connection.

What comes over a limit of size stands in the raw tables; here is what needs
several connections or time.
"""
import os
import re
import select
import socket
import threading
import time

import pytest

import scalws
from scalws import Client, Closed, Origin, get, wait_for

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
# Timers look four times a second, and one tick may be missed.
LATE = 0.8 * scalws.SLOW


def serve(daemon, port, *routes, **keys):
    routes = routes or ({"path": "*", "respond": {"body": "x"}},)
    site = {"listen": [f"127.0.0.1:{port}"], "routes": list(routes)}
    site.update(keys.pop("site", {}))
    return daemon({"sites": [site], **keys})


def to(origin, **keys):
    """The upstream u of one scripted origin."""
    peer = {"address": origin.address}
    if "max_connections" in keys:
        peer["max_connections"] = keys.pop("max_connections")
    return {"u": {"peers": [peer], **keys}}


UP = {"path": "*", "upstream": "u"}


class Watch:
    """How long a block took: `with Watch() as w: ...; w.took`"""
    def __enter__(self):
        self.began = time.monotonic()
        return self

    def __exit__(self, *ignored):
        self.took = time.monotonic() - self.began

    def within(self, least, most):
        assert least - 0.05 <= self.took <= most + LATE, self.took


# --- how many connections -------------------------------------------------------

def served(client):
    """Does this connection get an answer that is no refusal?"""
    try:
        answer = client.exchange()
    except (OSError, Closed):
        return False
    if answer.status == 200:
        return True
    assert answer.status == 503
    assert int(answer.get("Retry-After")) >= 1
    assert answer.get("Connection") == "close"
    assert client.at_eof()
    return False


@pytest.mark.threads
@pytest.mark.parametrize("workers", [1, 3])
def test_connections_per_address(daemon, port, workers):
    """So many of one address, whichever worker has them; others go on."""
    one = serve(daemon, port, workers=workers,
                limits={"connections_per_address": 8})
    clients = [Client(port) for _ in range(8)]
    assert all(served(client) for client in clients)
    for _ in range(3):
        with Client(port) as extra:
            assert not served(extra)
    other = socket.create_connection(("127.0.0.1", port), 10,
                                     ("127.0.0.9", 0))
    other.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert other.recv(100).startswith(b"HTTP/1.1 200 ")
    other.close()
    one.wait_log(r"connections_per_address \(8\) reached by 127\.0\.0\.1")
    for client in clients:
        assert served(client), "who was there is served on"
    clients.pop().close()
    wait_for(lambda: get(port).status == 200, 5,
             "one that left makes room for one")
    for client in clients:
        client.close()

    def whole():
        with_room = [Client(port) for _ in range(8)]
        try:
            return all(served(client) for client in with_room)
        finally:
            for client in with_room:
                client.close()
    wait_for(whole, 5, "all room is back")


def test_connections_per_address_of_the_silent(daemon, port):
    """They count too, and one too many of them is closed without a word."""
    serve(daemon, port, limits={"connections_per_address": 4,
                                "header_timeout": "20s"})
    clients = [Client(port) for _ in range(4)]
    # Answered first: then nobody else can have been counted in its place.
    assert all(served(client) for client in clients)
    for client in clients:
        client.send(b"G")
    assert not fresh_is_served(port)
    # TCP_DEFER_ACCEPT hands it over after about a second; its own deadline
    # would be 20 s.
    with Client(port) as extra, Watch() as watch:
        assert extra.at_eof(15)
    assert watch.took < 15
    for client in clients:
        client.close()
    wait_for(lambda: fresh_is_served(port), 5)


def fresh_is_served(address):
    with Client(address) as client:
        return served(client)


def test_connections_per_address_of_the_trusted(daemon, port):
    """A proxy in front of us, and unix sockets, have many clients."""
    path = scalws.scratch() / "s"
    serve(daemon, port, limits={"connections_per_address": 2},
          trusted_proxies=["127.0.0.0/9"],
          site={"listen": [f"127.0.0.1:{port}", f"unix:{path}"]})
    for address in (port, path):
        clients = [Client(address) for _ in range(10)]
        assert all(served(client) for client in clients)
        for client in clients:
            client.close()
    socks = []
    for _ in range(3):
        sock = socket.create_connection(("127.0.0.1", port), 10,
                                        ("127.200.0.1", 0))
        sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        socks.append((sock, sock.recv(12)))
    assert sorted(data for _, data in socks) == \
        [b"HTTP/1.1 200"] * 2 + [b"HTTP/1.1 503"]
    for sock, _ in socks:
        sock.close()


def test_connections_per_address_after_reload(daemon, port):
    """Those from before count no more or less than they did."""
    one = serve(daemon, port, limits={"connections_per_address": 3})
    held = [Client(port) for _ in range(3)]
    assert all(served(client) for client in held)
    one.conf["limits"]["connections_per_address"] = 0
    one.write(one.conf)
    one.ok("reload")
    more = [Client(port) for _ in range(10)]
    assert all(served(client) for client in more)
    one.conf["limits"]["connections_per_address"] = 4
    one.write(one.conf)
    one.ok("reload")
    with Client(port) as last:
        assert served(last)
        assert not fresh_is_served(port)
    for client in held + more:
        client.close()
    wait_for(lambda: fresh_is_served(port), 5)


@pytest.mark.parametrize("workers", [1, 3])
def test_connections(daemon, port, workers):
    """Overall, over all workers; Retry-After, and room comes back."""
    one = serve(daemon, port, workers=workers, limits={"connections": 12})
    clients = [Client(port) for _ in range(12)]
    assert all(served(client) for client in clients)
    for _ in range(3):
        assert not fresh_is_served(port)
    one.wait_log(r"limits\.connections \(12\) reached")
    assert all(served(client) for client in clients)
    for client in clients:
        client.close()
    wait_for(lambda: fresh_is_served(port), 5)


def test_connections_without_deferred_accept(daemon, port):
    """The answer is there for whoever speaks at once or a little later."""
    one = serve(daemon, port, defer_accept=False, limits={"connections": 2})
    # The harness looked whether the port is open: that one must be gone.
    wait_for(lambda: one.status()["proxy"]["connections"] == 0, 10)
    clients = [Client(port) for _ in range(2)]
    assert all(served(client) for client in clients)
    with Client(port) as extra:
        assert extra.response().status == 503
    for client in clients:
        client.close()


# --- times of the client's side -------------------------------------------------

@pytest.mark.parametrize("defer", [True, False])
def test_silent_client(daemon, port, defer):
    """One that never says a word is closed by its deadline + 2 s."""
    serve(daemon, port, defer_accept=defer, limits={"header_timeout": "1s"})
    with Client(port) as client, Watch() as watch:
        assert client.at_eof(10)
    watch.within(1, 1 + 2)


def test_header_deadline(daemon, port):
    """From the first byte to the last; bytes in between do not help."""
    serve(daemon, port, limits={"header_timeout": "1s"})
    with Client(port) as client:
        client.send(b"GET / HTTP/1.1\r\n")
        with Watch() as watch:
            while not select.select([client.sock], [], [], 0.1)[0]:
                client.send(b"X: y\r\n")
                assert time.monotonic() - watch.began < 10 * scalws.SLOW
            assert client.response().status == 408
        watch.within(1, 1)
        assert client.at_eof()


def test_header_deadline_of_the_second_request(daemon, port):
    serve(daemon, port, limits={"header_timeout": "1s",
                                "idle_timeout": "20s"})
    with Client(port) as client:
        assert client.exchange().status == 200
        client.send(b"GET / HTTP/1.1\r\n")
        with Watch() as watch:
            assert client.response().status == 408
        watch.within(1, 1)
        assert client.at_eof()


def test_idle_timeout(daemon, port):
    serve(daemon, port, limits={"header_timeout": "20s",
                                "idle_timeout": "1s"})
    with Client(port) as client:
        for _ in range(3):
            time.sleep(0.5)
            assert client.exchange().status == 200
        with Watch() as watch:
            assert client.at_eof(10)
        watch.within(1, 1)


@pytest.mark.parametrize("chunked", [False, True])
def test_body_pause(daemon, port, chunked):
    """A body that stops: 408, the peer's request ends, close."""
    gone = threading.Event()

    def script(conn):
        conn.read_head()
        try:
            while True:
                conn.more()
        except (Closed, OSError):
            gone.set()
    with Origin(script) as origin:
        serve(daemon, port, UP, upstreams=to(origin),
              limits={"body_timeout": "1s"})
        with Client(port) as client:
            if chunked:
                client.send(b"POST / HTTP/1.1\r\nHost: a\r\n"
                            b"Transfer-Encoding: chunked\r\n\r\n")
                client.send(b"3e8\r\n" + b"x" * 1000 + b"\r\n3e")
            else:
                client.request("POST", headers={"Content-Length": "100000"})
                client.send(b"x" * 1000)
            with Watch() as watch:
                assert client.response().status == 408
            watch.within(1, 1)
            assert client.at_eof(8)
        assert gone.wait(2 * scalws.SLOW)


@pytest.mark.parametrize("size", ["1000", "300000"])
def test_body_that_trickles(daemon, port, size):
    """A byte now and then is no progress (small ones never reach the app)."""
    with Origin(OK) as origin:
        serve(daemon, port, UP, upstreams=to(origin),
              limits={"body_timeout": "1s", "body_bytes_per_second": 100})
        with Client(port) as client:
            client.request("POST", headers={"Content-Length": size})
            with Watch() as watch:
                while not select.select([client.sock], [], [], 0.1)[0]:
                    client.send(b"x")
                    assert time.monotonic() - watch.began < 10 * scalws.SLOW
                assert client.response().status == 408
            watch.within(1, 1 + 0.5)
        if size == "1000":
            assert not origin.connections


def test_body_that_is_slow_enough(daemon, port):
    """Ten times the rate, for several windows; then the rate is switched
    off and a byte now and then is welcome."""
    with Origin(OK) as origin:
        one = serve(daemon, port, UP, upstreams=to(origin),
                    limits={"body_timeout": "500ms",
                            "body_bytes_per_second": 100})
        with Client(port) as client:
            client.request("POST", headers={"Content-Length": "2000"})
            for _ in range(20):
                client.send(b"x" * 100)
                time.sleep(0.1)
            assert client.response().status == 200
        one.conf["limits"]["body_bytes_per_second"] = 0
        one.write(one.conf)
        one.ok("reload")
        with Client(port) as client:
            client.request("POST", headers={"Content-Length": "15"})
            for _ in range(15):
                client.send(b"x")
                time.sleep(0.1)
            assert client.response().status == 200


def test_body_that_waits_for_the_app(daemon, port):
    """Time in which the app takes nothing is not the client's."""
    def script(conn):
        head = conn.read_head()
        time.sleep(2.5)
        conn.take(int(re.search(rb"Length: (\d+)", head)[1]))
        conn.send(OK)
    with Origin(script) as origin:
        serve(daemon, port, UP, upstreams=to(origin),
              limits={"body_timeout": "1s", "body_bytes_per_second": "1M"})
        size = 12 << 20
        with Client(port) as client:
            client.request("POST", headers={"Content-Length": str(size)})
            client.send(b"x" * size)
            assert client.response().status == 200


def test_unwanted_body_that_trickles(daemon, port):
    """Answered already; what is left of the body is not waited for."""
    serve(daemon, port, limits={"body_timeout": "1s"})
    with Client(port) as client:
        client.request("POST", headers={"Content-Length": "1000"})
        assert client.response().status == 200
        with Watch() as watch:
            while not select.select([client.sock], [], [], 0.1)[0]:
                client.send(b"x")
                assert time.monotonic() - watch.began < 10 * scalws.SLOW
            assert client.at_eof()
        watch.within(1, 1 + 0.5)


def test_send_timeout(daemon, port):
    """A client that does not read is cut off; one that reads slowly is not."""
    big = b"HTTP/1.1 200 OK\r\nContent-Length: 33554432\r\n\r\n"
    ends = []

    def script(conn):
        conn.read_request()
        conn.send(big)
        conn.sock.settimeout(None)
        began = time.monotonic()
        try:
            conn.sock.sendall(b"x" * 33554432)
        except OSError:
            pass
        ends.append(time.monotonic() - began)
    with Origin(script) as origin:
        serve(daemon, port, UP, upstreams=to(origin),
              limits={"send_timeout": "1s"})
        with Client(port) as client:
            client.request()
            wait_for(lambda: ends, 10)
            assert 0.9 < ends[0] < 2 + 2 * LATE, ends
            with pytest.raises((Closed, OSError)):
                client.response()
        ends.clear()
        with Client(port) as client:
            client.request()
            for _ in range(30):
                client.buffer += client.sock.recv(65536)
                time.sleep(0.1)
            assert not ends
            answer = client.response()
            assert len(answer.body) == 33554432


def test_respond_to_who_does_not_read(daemon, port):
    """A large body of the configuration's own waits for its readers in parts,
    not whole in the memory of each."""
    body = "0123456789abcdef" * 65536
    one = serve(daemon, port, {"path": "*", "respond": {"body": body}},
                workers=1, limits={"buffer_bytes": "16K"})
    pid = one.proxy_pid()
    asked = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"

    def asks():
        client = Client(port).send(asked)
        wait_for(lambda: select.select([client.sock], [], [], 0)[0], 5)
        return client
    asks().close()
    before = scalws.rss_kib(pid)
    clients = [asks() for _ in range(60)]
    assert get(port, "/", timeout=30).text == body
    # The mark, a part, and the connection; not 60 MiB.
    assert scalws.rss_kib(pid) - before < 60 * 192 * scalws.SLOW
    for client in clients[::20]:
        assert client.response().text == body
        client.request("HEAD")
        answer = client.response(head=True)
        assert answer.get("Content-Length") == str(len(body))
        assert client.exchange().text == body
    for client in clients:
        client.close()


def test_requests_per_connection(daemon, port):
    serve(daemon, port, limits={"requests_per_connection": 3})
    with Client(port) as client:
        for last in (False, False, True):
            answer = client.exchange()
            assert answer.status == 200
            assert (answer.get("Connection") == "close") is last
        assert client.at_eof()


# --- times of the app's side ----------------------------------------------------

def full_listener():
    """A TCP port whose accept queue is full: SYNs are dropped."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    address = listener.getsockname()
    held = []
    for _ in range(8):
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(address)
        held.append(sock)
    time.sleep(0.1)
    return listener, held, "%s:%d" % address


def test_full_backlog(daemon, port):
    """A unix listener that takes nobody: a connection that waits for a place
    is given up in time, or with its client."""
    path = scalws.scratch() / "full.sock"
    with socket.socket(socket.AF_UNIX) as full:
        full.bind(str(path))
        os.chmod(path, 0o666)
        full.listen(0)
        one = daemon({
            "workers": 1, "sites": [{"listen": [f"127.0.0.1:{port}"],
                                     "routes": [{"path": "*",
                                                 "upstream": "u"}]}],
            "upstreams": {"u": {"connect_timeout": "500ms", "peers": [
                {"address": f"unix:{path}"}]}}})
        proxy = one.proxy_pid()
        with Client(port) as first, Client(port) as waits, \
                Client(port) as leaves:
            first.request()
            time.sleep(0.2)
            waits.request()
            leaves.request()
            time.sleep(0.1)
            leaves.close()
            assert waits.response().status in (502, 504)
        assert one.proxy_pid() == proxy
        assert one.status()["proxy"]["restarts"] == 0


def test_connect_timeout(daemon, port):
    """No connection in time: 504, and the next peer is tried before."""
    listener, held, address = full_listener()
    with Origin(OK) as origin:
        serve(daemon, port, {"path": "/one", "upstream": "one"},
              {"path": "/two", "upstream": "two"},
              upstreams={
                  "one": {"connect_timeout": "1s",
                          "peers": [{"address": address}]},
                  "two": {"connect_timeout": "1s",
                          "peers": [{"address": address},
                                    {"address": origin.address}]}})
        with Watch() as watch:
            assert get(port, "/one").status == 504
        assert 0.9 < watch.took < 3 * (1 + LATE)
        for _ in range(4):
            with Watch() as watch:
                assert get(port, "/two").status == 200
            assert watch.took < 1 + 2 * LATE
    for sock in held:
        sock.close()
    listener.close()


def test_connect_refused(daemon, port):
    serve(daemon, port, UP, upstreams={"u": {"peers": [
        {"address": f"127.0.0.1:{scalws.free_port()}"}]}})
    with Watch() as watch:
        assert get(port).status == 502
    assert watch.took < 2 + LATE


def slow_origin(*steps):
    """Sends the pieces; numbers between them are pauses in seconds."""
    def script(conn):
        if conn.read_request() is None:
            return
        for step in steps:
            if isinstance(step, bytes):
                conn.send(step)
            else:
                time.sleep(step)
    return Origin(script)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n"


def test_first_byte(daemon, port):
    with slow_origin(4, OK) as origin:
        serve(daemon, port, UP, upstreams=to(
            origin, response_timeout="1s", pause_timeout="30s"))
        with Watch() as watch:
            assert get(port).status == 504
        watch.within(1, 1)


def test_head_that_trickles(daemon, port):
    """The whole head is due in that time."""
    steps = [step for byte in OK for step in (bytes([byte]), 0.2)]
    with slow_origin(*steps) as origin:
        serve(daemon, port, UP, upstreams=to(
            origin, response_timeout="1s", pause_timeout="30s"))
        with Watch() as watch:
            assert get(port).status == 504
        watch.within(1, 1)


def test_pause_within_an_answer(daemon, port):
    """Longer than allowed: cut off, visibly. Shorter: as often as it likes,
    also when the first byte may not take as long."""
    with slow_origin(HEAD, b"0123456789", 4, b"0123456789") as origin:
        serve(daemon, port, UP, upstreams=to(
            origin, response_timeout="30s", pause_timeout="1s"))
        with Client(port) as client:
            client.request()
            with Watch() as watch, pytest.raises((Closed, OSError)):
                client.response()
            watch.within(1, 1)
    pieces = [step for i in range(10) for step in (b"ab", 0.4)]
    with slow_origin(HEAD, *pieces) as origin:
        port = scalws.free_port()
        serve(daemon, port, UP, upstreams=to(
            origin, response_timeout="300ms", pause_timeout="2s"))
        assert get(port).body == b"ab" * 10


def test_streams_may_pause(daemon, port):
    """An event stream has a time of its own."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    with slow_origin(head, b"data: 1\n\n", 2, b"data: 2\n\n", 5) as origin:
        serve(daemon, port, UP, upstreams=to(
            origin, pause_timeout="500ms", stream_timeout="3s"))
        with Client(port) as client:
            client.request()
            answer = client.response_head()
            assert answer.status == 200
            got = b""
            with Watch() as watch, pytest.raises((Closed, OSError)):
                while True:
                    client.more()
                    got, client.buffer = got + client.buffer, b""
            assert b"data: 2" in got
            watch.within(2 + 3, 2 + 3)


def test_queue_timeout(daemon, port):
    """Everybody waits for one slot: 503 with Retry-After, in time."""
    free = threading.Event()

    def script(conn):
        while conn.read_request():
            free.wait(20)
            conn.send(OK)
    with Origin(script) as origin:
        serve(daemon, port, UP, upstreams=to(
            origin, max_connections=1, queue_timeout="1s"))
        with Client(port) as busy:
            busy.request()
            wait_for(lambda: origin.requests, 5)
            with Watch() as watch:
                answer = get(port)
            watch.within(1, 1)
            assert answer.status == 503
            assert int(answer.get("Retry-After")) >= 1
            free.set()
            assert busy.response().status == 200
        assert get(port).status == 200


# --- bodies that wait -----------------------------------------------------------

def one_at_a_time():
    def script(conn):
        while conn.read_request():
            conn.send(OK)
    return Origin(script)


def spool_files(one):
    """Sizes of the unnamed files of the proxy in its temporary directory."""
    import os
    pid = one.proxy_pid()
    sizes = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            if os.readlink(f"/proc/{pid}/fd/{fd}").startswith(str(one.tmp)):
                sizes.append(os.stat(f"/proc/{pid}/fd/{fd}").st_size)
        except OSError:
            continue
    return sizes


def test_small_slow_bodies_take_no_slot(daemon, port):
    """Fifty slow uploads beside an app that does one thing at a time."""
    with one_at_a_time() as origin:
        serve(daemon, port, UP, upstreams=to(origin, max_connections=1,
                                             queue_timeout="1s"))
        slow = [Client(port) for _ in range(50)]
        for client in slow:
            client.request("POST", headers={"Content-Length": "20000"})
            client.send(b"x" * 10000)
        for _ in range(20):
            assert get(port).status == 200
        assert len(origin.requests) == 20
        for client in slow:
            client.send(b"y" * 10000)
        for client in slow:
            assert client.response().status == 200
            client.close()
        bodies = [body for head, body in origin.requests
                  if head.startswith(b"POST")]
        assert bodies == [b"x" * 10000 + b"y" * 10000] * 50


@pytest.mark.parametrize("chunked", [False, True])
def test_spooled_bodies_take_no_slot(daemon, port, chunked):
    """Large ones too, where the route says so: in files without names."""
    half = b"h" * (1 << 20)
    with one_at_a_time() as origin:
        one = serve(daemon, port, {**UP, "spool_body": True},
                    upstreams=to(origin, max_connections=1,
                                 queue_timeout="1s"))
        slow = [Client(port) for _ in range(10)]
        for client in slow:
            if chunked:
                client.send(b"POST / HTTP/1.1\r\nHost: a\r\n"
                            b"Transfer-Encoding: chunked\r\n\r\n"
                            b"100000\r\n" + half + b"\r\n")
            else:
                client.request("POST", headers={
                    "Content-Length": str(2 * len(half))})
                client.send(half)
        wait_for(lambda: len(spool_files(one)) == 10 and
                 min(spool_files(one)) > len(half) - 200000, 10)
        assert not list(one.tmp.iterdir()), "they have no names"
        for _ in range(20):
            assert get(port).status == 200
        assert len(origin.requests) == 20
        for client in slow:
            client.send(b"100000\r\n" + half + b"\r\n0\r\n\r\n" if chunked
                        else half)
        for client in slow:
            assert client.response().status == 200
            client.close()
        bodies = [body for head, body in origin.requests
                  if head.startswith(b"POST")]
        assert bodies == [half + half] * 10
        for head, _ in origin.requests[20:]:
            assert b"\r\nContent-Length: 2097152\r\n" in head
        wait_for(lambda: not spool_files(one), 5)


def test_large_bodies_stream_elsewhere(daemon, port):
    """Without that key the app sees a large body begin."""
    seen = threading.Event()

    def script(conn):
        conn.read_head()
        while len(conn.buffer) < 300000:
            conn.more()
        seen.set()
        conn.take(1 << 20)
        conn.send(OK)
    with Origin(script) as origin:
        serve(daemon, port, UP, upstreams=to(origin))
        with Client(port) as client:
            client.request("POST", headers={"Content-Length": str(1 << 20)})
            client.send(b"x" * (1 << 19))
            assert seen.wait(5 * scalws.SLOW)
            client.send(b"x" * (1 << 19))
            assert client.response().status == 200


def test_spool_has_a_cap(daemon, port):
    """413 for one that is too large, before it is read where it says so."""
    with one_at_a_time() as origin:
        one = serve(daemon, port, {**UP, "spool_body": True},
                    upstreams=to(origin), limits={"spool_bytes": "1M"})
        with Client(port) as client:
            client.request("POST", headers={"Content-Length": "1048577",
                                            "Expect": "100-continue"})
            assert client.response().status == 413
        with Client(port) as client:
            client.request("POST", chunks=[b"x" * 65536] * 17)
            assert client.response().status == 413
        assert not origin.connections
        assert get(port, "/", "POST", body=b"x" * 1048576).status == 200
        wait_for(lambda: not spool_files(one), 5)


@pytest.mark.threads
def test_spools_have_a_cap_together(daemon, port):
    """507 when all files together are too much; then room comes back."""
    with one_at_a_time() as origin:
        one = serve(daemon, port, {**UP, "spool_body": True}, workers=3,
                    upstreams=to(origin), limits={"spool_total_bytes": "4M"})
        held = []
        for _ in range(3):
            client = Client(port)
            client.request("POST", headers={"Content-Length": "1200000"})
            client.send(b"x" * 1100000)
            held.append(client)
        # Before another comes, or that one takes the room and one of these
        # is refused.
        wait_for(lambda: sum(spool_files(one)) > 3 * 1000000, 10)

        def full():
            return get(port, "/", "POST", body=b"x" * 3000000).status == 507
        wait_for(full, 10)
        for client in held:
            client.send(b"x" * 100000)
            assert client.response().status == 200
            client.close()
        assert get(port, "/", "POST", body=b"x" * 3000000).status == 200


def test_spool_without_a_directory(daemon, port):
    """No file can be made: 507, not 500; small bodies need none."""
    with one_at_a_time() as origin:
        one = serve(daemon, port, {**UP, "spool_body": True},
                    upstreams=to(origin))
        one.tmp.rename(one.dir / "away")
        assert get(port, "/", "POST", body=b"x" * 300000).status == 507
        assert get(port, "/", "POST", body=b"x" * 30000).status == 200
        (one.dir / "away").rename(one.tmp)
        assert get(port, "/", "POST", body=b"x" * 300000).status == 200


# --- the first connections -------------------------------------------------------

@pytest.mark.threads
def test_clients_that_wait_for_the_start(daemon):
    """Workers begin one after the other; a connection that is handed to one
    that has no configuration yet waits for it."""
    for _ in range(5):
        port = scalws.free_port()
        one = daemon({"workers": 8, "defer_accept": False, "sites": [{
            "listen": [f"127.0.0.1:{port}"],
            "routes": [{"path": "*", "respond": {"body": "x"}}]}]},
            start=False)
        one.spawn()

        def work(i):
            def one_more():
                try:
                    return Client(port)
                except OSError:
                    return None
            with wait_for(one_more, 20) as client:
                return client.exchange().status
        assert scalws.parallel(64, work) == [200] * 64
        one.wait_ready()
        assert one.status()["proxy"]["restarts"] == 0
