"""HTTP/2 clients that mean harm: each is told to calm down and let go, in
bounded memory, while others are served as if it were not there."""
import contextlib
import threading
import time

import pytest

import scalws
from raw import h2_hpack as hpack
from raw import h2_wire as wire
from raw.h2_client import H2Client, tls_context
from raw.h2_wire import ENHANCE_YOUR_CALM, PROTOCOL_ERROR, get, post
from scalws import Load, Origin, rss_kib, wait_for

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BIG = b"b" * (8 << 20)
# What the proxy may grow by for one such client.
GROWTH_KIB = 24 << 10
N = 100000 if scalws.LONG else 10000


def answer(conn):
    """"/big" is large, "/never" is not answered."""
    while True:
        got = conn.read_request()
        if got is None:
            return
        target = got[0].split(b" ")[1]
        if target == b"/never":
            with contextlib.suppress(scalws.Closed):
                while True:
                    conn.more()
            return
        if target == b"/big":
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" %
                      len(BIG))
            conn.send(BIG)
        else:
            conn.send(OK)


class Server:
    def __init__(self, daemon, origin):
        self.daemon, self.origin = daemon, origin
        self.plain, self.tls = daemon.addresses()

    def client(self, transport, settings=(), **more):
        tls = tls_context() if transport == "tls" else None
        client = H2Client(self.tls if tls else self.plain, tls, **more)
        client.send(wire.PREFACE + wire.settings(*settings))
        return client

    def rss(self):
        return rss_kib(self.daemon.proxy_pid())


@pytest.fixture(scope="module")
def server():
    plain, tls = scalws.free_port(), scalws.free_port()
    with Origin(answer) as origin:
        conf = {
            "workers": 1,
            "upstreams": {"o": {"peers": [{"address": origin.address}]}},
            "sites": [{"listen": [f"127.0.0.1:{plain}",
                                  f"127.0.0.1:{tls} tls"],
                       "tls": scalws.certificate(),
                       "routes": [
                           {"path": "/fixed", "respond": {
                               "status": 200, "body": "fixed\n"}},
                           {"path": "*", "upstream": "o"}]}]}
        with scalws.Daemon(conf) as daemon:
            yield Server(daemon, origin)


@contextlib.contextmanager
def others_served(server):
    """Clients beside it have no failed request, also while it goes on, and
    the proxy does not grow without end."""
    before = server.rss()
    with Load(server.plain, n=2) as load:
        load.wait_done(10)
        yield load
        load.wait_done(20)
    assert not load.failed, load.failed[:3]
    # Sanitizers keep what was freed for a while.
    if scalws.SLOW == 1:
        wait_for(lambda: server.rss() - before < GROWTH_KIB, 5,
                 f"the proxy is small again: {server.rss() - before} KiB")


def flood(client, piece, times=100000, seconds=60):
    """Send it until the server has had enough. Pieces sent."""
    deadline = time.monotonic() + seconds * scalws.SLOW
    for n in range(times):
        client.send(piece)
        client.read(0)
        if client.goaways or client.closed:
            return n
        assert time.monotonic() < deadline, "it takes all of it"
    return times


def assert_told(client, *codes):
    """GOAWAY with one of these, and the end."""
    client.pump(lambda: False, "the connection is closed")
    assert client.goaways, "closed without GOAWAY: " + client.story()
    assert client.goaways[-1][1] in (codes or (ENHANCE_YOUR_CALM,)), \
        client.goaways


TRANSPORTS = pytest.mark.parametrize("transport", ["cleartext", "tls"])


# --- streams -----------------------------------------------------------------

def resets(first, n, path=b"/"):
    return b"".join(get(one, path) + wire.rst(one)
                    for one in range(first, first + 2 * n, 2))


@TRANSPORTS
def test_rapid_reset(server, transport):
    """As fast as the network takes it, and then some."""
    with others_served(server), server.client(transport) as client:
        for n in range(0, N, 100):
            client.send(resets(1 + 2 * n, 100))
            client.read(0)
            if client.goaways or client.closed:
                break
        assert_told(client)


def test_reset_in_the_same_breath(server):
    """No application hears of it, not even as a connection."""
    before = len(server.origin.requests)
    connections = server.origin.connections
    with server.client("cleartext") as client:
        client.send(resets(1, 100) + get(201, b"/last"))
        client.pump(lambda: 201 in client.answers, "it is served")
    targets = [got[0].split(b" ")[1]
               for got in server.origin.requests[before:]]
    assert targets == [b"/last"]
    assert server.origin.connections <= connections + 1


def test_rapid_reset_spread_over_time(server):
    """100,000 in 10 s is 10 in a millisecond: no burst is needed."""
    seconds = 10 if scalws.LONG else 3
    with others_served(server), server.client("tls") as client:
        began, sent = time.monotonic(), 0
        while not client.goaways and not client.closed:
            due = int((time.monotonic() - began) * 10000)
            if due - sent >= 20:
                client.send(resets(1 + 2 * sent, due - sent))
                sent = due
            client.read(0.001)
            assert time.monotonic() - began < seconds * scalws.SLOW + 20
        assert_told(client)


def test_resets_by_the_server(server):
    """The client makes us reset: every request is malformed."""
    with others_served(server), server.client("cleartext") as client:
        for n in range(0, N, 50):
            client.send(b"".join(
                get(one, b"/", (b"X", b"y"))
                for one in range(1 + 2 * n, 101 + 2 * n, 2)))
            client.read(0)
            if client.goaways or client.closed:
                break
        assert_told(client)


def test_resets_by_window_updates(server):
    """The same by increments of 0 on streams that wait."""
    with others_served(server), server.client("cleartext") as client:
        for one in range(1, 2 * N, 2):
            client.send(get(one, b"/never") + wire.window(one, 0))
            client.read(0)
            if client.goaways or client.closed:
                break
        assert_told(client, ENHANCE_YOUR_CALM, PROTOCOL_ERROR)


def test_few_resets_are_no_abuse(server):
    """A person who leaves a page with 50 pictures."""
    with server.client("cleartext") as client:
        client.send(resets(1, 50, b"/never") + get(1001))
        client.pump(lambda: 1001 in client.answers and
                    client.answers[1001].is_over, "an answer")
        assert client.answers[1001].status == 200


# --- frames that bring nothing -------------------------------------------------

FLOODS = {
    "settings": wire.settings() * 100,
    "settings-of-a-value": wire.settings(
        (wire.INITIAL_WINDOW_SIZE, 65535)) * 100,
    "ping": wire.ping() * 100,
    "ping-ack": wire.ping(ack=True) * 100,
    "priority": wire.priority(1) * 100,
    "priority-update": wire.priority_update(1) * 100,
    "window-update": wire.window(0, 1) * 100,
    "unknown": wire.frame(wire.UNKNOWN) * 100,
    "settings-ack": wire.SETTINGS_ACK * 100,
}


@pytest.mark.parametrize("name", FLOODS)
def test_flood(server, name):
    with others_served(server), server.client("cleartext") as client:
        flood(client, FLOODS[name])
        codes = (ENHANCE_YOUR_CALM, PROTOCOL_ERROR) \
            if name == "settings-ack" else ()
        assert_told(client, *codes)


@pytest.mark.parametrize("name", ["ping", "settings"])
def test_flood_unread(server, name):
    """The acknowledgements are not read: they must not pile up."""
    before = server.rss()
    with others_served(server), server.client("cleartext") as client:
        client.sock.settimeout(1)
        # No reading: until the server takes no more, or closes.
        for _ in range(20000):
            try:
                client.sock.sendall(FLOODS[name])
            except OSError:
                break
        else:
            pytest.fail("it takes all of it")
        if scalws.SLOW == 1:
            assert server.rss() - before < GROWTH_KIB


def test_empty_data(server):
    with others_served(server), server.client("cleartext") as client:
        client.send(post(1, b"/"))
        flood(client, wire.data(1) * 100)
        assert_told(client)


def test_empty_data_padded(server):
    with others_served(server), server.client("cleartext") as client:
        client.send(post(1, b"/"))
        flood(client, wire.data(1, pad=0) * 100)
        assert_told(client)


def test_empty_headers(server):
    """HEADERS frames of blocks that never end: CONTINUATION."""
    with others_served(server), server.client("cleartext") as client:
        client.send(wire.headers(1, wire.head(), whole=False))
        flood(client, wire.continuation(1, whole=False) * 100)
        assert_told(client, ENHANCE_YOUR_CALM, PROTOCOL_ERROR)


# --- heads ---------------------------------------------------------------------

def test_continuation_flood(server):
    """A head without end, of fields that are not kept either."""
    piece = wire.continuation(1, hpack.literal(b"x", b"y" * 1000) * 15,
                              whole=False)
    with others_served(server), server.client("cleartext") as client:
        client.send(wire.headers(1, wire.head(), whole=False))
        flood(client, piece)
        assert_told(client, ENHANCE_YOUR_CALM, PROTOCOL_ERROR,
                    wire.COMPRESSION_ERROR, wire.INTERNAL_ERROR)


@TRANSPORTS
def test_hpack_bomb(server, transport):
    """4 KB in the table, named a million times on many streams."""
    fill = hpack.literal(b"x-a", b"v" * 4000, hpack.ADD)
    bomb = b"\xbe" * 16000
    with others_served(server), server.client(transport) as client:
        client.send(wire.headers(1, wire.head() + fill))
        for one in range(3, 3 + 2 * 60, 2):
            client.send(wire.headers(one, wire.head() + bomb))
            client.read(0)
        client.pump(lambda: client.goaways or all(
            one in client.answers and client.answers[one].is_over
            for one in range(3, 3 + 2 * 60, 2)), "refusals")
        for one, got in client.answers.items():
            assert got.status != 200 or one == 1, (one, got)
        if client.goaways:
            assert_told(client, ENHANCE_YOUR_CALM, PROTOCOL_ERROR,
                        wire.COMPRESSION_ERROR)


def test_many_tables(server):
    """Tables as large as they may be, on many connections."""
    fill = b"".join(hpack.literal(b"x-%d" % n, b"v" * 500, hpack.ADD)
                    for n in range(8))
    before = server.rss()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.client("cleartext"))
                   for _ in range(100)]
        for client in clients:
            client.send(wire.headers(1, wire.head(path=b"/fixed") + fill))
        for client in clients:
            client.pump(lambda: 1 in client.answers, "an answer")
        if scalws.SLOW == 1:
            assert server.rss() - before < 100 * 64


# --- windows -------------------------------------------------------------------

def test_zero_windows(server):
    """Answers that nobody takes: a hundred streams a connection, 8 MiB
    each."""
    before = server.rss()
    with others_served(server), contextlib.ExitStack() as stack:
        for _ in range(10 if scalws.LONG else 3):
            client = stack.enter_context(server.client(
                "cleartext", ((wire.INITIAL_WINDOW_SIZE, 0),)))
            client.send(b"".join(get(one, b"/big")
                                 for one in range(1, 200, 2)))
            client.pump(lambda: 1 in client.answers, "a head")
        if scalws.SLOW == 1:
            time.sleep(0.5)     # it must not grow on
            assert server.rss() - before < 64 << 10


def test_tiny_windows(server):
    """A byte at a time: frames of one byte are no cheap work."""
    with others_served(server), server.client(
            "cleartext", ((wire.INITIAL_WINDOW_SIZE, 1),)) as client:
        client.send(get(1, b"/big"))
        deadline = time.monotonic() + 5 * scalws.SLOW
        while not client.closed and not client.goaways and \
                time.monotonic() < deadline:
            client.send(wire.window(1, 1) * 10)
            client.read(0)


def test_windows_changed_all_the_time(server):
    """SETTINGS that every open stream must be told of."""
    with others_served(server), server.client("cleartext") as client:
        client.send(b"".join(post(one, b"/") for one in range(1, 199, 2)))
        flood(client, (wire.settings((wire.INITIAL_WINDOW_SIZE, 1)) +
                       wire.settings((wire.INITIAL_WINDOW_SIZE, 70000))) * 50)
        assert_told(client)


def test_unread_answers(server):
    """Windows wide open, and a socket that is never read."""
    before = server.rss()
    with others_served(server), server.client("cleartext", (
            (wire.INITIAL_WINDOW_SIZE, wire.MOST),)) as client:
        client.send(wire.window(0, wire.MOST - 65535) + b"".join(
            get(one, b"/big") for one in range(1, 200, 2)))
        if scalws.SLOW == 1:
            time.sleep(1)
            assert server.rss() - before < 32 << 10


# --- silence -------------------------------------------------------------------

def test_half_a_head(server):
    """A block that stays open is given up like any slow head."""
    # head_timeout is 30 s: only the connection's memory is looked at here.
    before = server.rss()
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            client = stack.enter_context(server.client("cleartext"))
            client.send(wire.headers(1, wire.head(fields=[
                (b"x", b"y" * 10000)]), whole=False))
            client.pump(lambda: client.acks, "SETTINGS")
        if scalws.SLOW == 1:
            assert server.rss() - before < 100 * 64
