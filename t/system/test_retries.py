"""When a request is sent a second time, and when never.

Only if nothing of an answer has come, and either repeating does no harm or
nothing of it was written (RFC 9110 section 9.2.2, RFC 9112 section 9.3.1)."""
import contextlib
import os
import signal
import threading
import time

import pytest

import scalws
from scalws import Client, Origin, get, wait_for
from test_readiness import command, conf_of, script

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BODY = os.urandom(20000)


def serve(daemon, port, *addresses, **keys):
    return daemon({
        "workers": 1, "log_level": "info",
        "sites": [{"listen": [f"127.0.0.1:{port}"],
                   "routes": [{"path": "/status", "status": True},
                              {"path": "*", "upstream": "u"}]}],
        "upstreams": {"u": {"peers": [{"address": a} for a in addresses],
                            **keys}}})


def counted(port):
    """Requests and errors of the upstream: those of clients, not tries."""
    one, = get(port, "/status").json()["upstreams"]
    return one["requests"], one["errors"]


class Stale(Origin):
    """Serves `good` requests on a connection, and closes it with the next
    one unanswered: as a server that had enough of it just then. With `said`
    of an answer before."""

    def __init__(self, good=1, said=b"", fresh_too=False, answer=OK):
        self.good, self.said, self.answer = good, said, answer
        self.fresh_too = fresh_too
        super().__init__(self.talk)

    def talk(self, conn):
        for _ in range(self.good):
            if conn.read_request() is None:
                return
            if self.fresh_too and self.connections > 1:
                return
            conn.send(self.answer)
        if conn.read_request() is not None and self.said:
            conn.send(self.said)

    def bodies(self, target):
        return [body for head, body in self.requests
                if head.split()[1] == target.encode()]


def warm(port, n=1):
    """So many kept connections."""
    clients = [Client(port) for _ in range(n)]
    for client in clients:
        client.request("GET", "/warm")
    for client in clients:
        assert client.response().status == 200
        client.close()


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"])
def test_stale_connection(daemon, port, method):
    """Never a 502 for what may be repeated; its body comes whole again."""
    body = None if method in ("GET", "HEAD") else BODY
    with Stale() as origin:
        serve(daemon, port, origin.address)
        warm(port)
        assert get(port, "/x", method, body=body).status == 200
        assert origin.bodies("/x") == [body or b""] * 2
        assert origin.connections == 2
        assert counted(port) == (2, 0)


def test_several_stale_connections(daemon, port):
    """The second try is on a connection of its own, not on the next old
    one."""
    started = threading.Barrier(6)

    def talk(conn):
        if conn.read_request() is None:
            return
        if len(origin.requests) <= 6:
            started.wait(10)
        conn.send(OK)
        conn.read_request()
    with Origin(talk) as origin:
        serve(daemon, port, origin.address)
        warm(port, 6)
        assert origin.connections == 6
        for i in range(5):
            assert get(port, "/x").status == 200
        asked = [h for h, _ in origin.requests if h.startswith(b"GET /x ")]
        assert len(asked) <= 10


@pytest.mark.parametrize("method", ["POST", "PATCH", "FROB"])
@pytest.mark.parametrize("chunked", [False, True])
def test_what_went_out_is_not_sent_twice(daemon, port, method, chunked):
    more = {"chunks": [BODY[:500], BODY[500:]]} if chunked else {"body": BODY}
    with Stale() as origin:
        serve(daemon, port, origin.address)
        warm(port)
        assert get(port, "/x", method, **more).status == 502
        assert origin.bodies("/x") == [BODY]
        assert get(port, "/y").status == 200


def test_closed_before_it_was_used(daemon, port):
    """A POST looks first whether the connection is still there."""
    closed = threading.Semaphore(0)

    def talk(conn):
        conn.read_request()
        conn.send(OK)
        conn.close()
        closed.release()
    with Origin(talk) as origin:
        serve(daemon, port, origin.address)
        for _ in range(20):
            assert get(port, "/x", "POST", body=b"hello").status == 200
            assert closed.acquire(timeout=10)
        assert [body for _, body in origin.requests] == [b"hello"] * 20


def test_nothing_was_written(daemon, port):
    """A peer that takes no connection: the other gets the POST, once and
    whole."""
    with Origin(OK) as origin:
        serve(daemon, port, f"127.0.0.1:{scalws.free_port()}", origin.address)
        for i in range(4):
            assert get(port, f"/{i}", "POST", body=BODY).status == 200
        assert [body for _, body in origin.requests] == [BODY] * 4


@pytest.mark.parametrize("said", [b"H", OK[:20], OK[:-1]])
def test_something_of_an_answer_had_come(daemon, port, said):
    with Stale(said=said) as origin:
        serve(daemon, port, origin.address)
        warm(port)
        with Client(port) as client:
            client.request("GET", "/x")
            if len(said) < 30:
                assert client.response().status == 502
            else:
                with pytest.raises((scalws.Closed, OSError)):
                    client.response()
        assert origin.bodies("/x") == [b""]


def test_a_fresh_connection_is_not_too_old(daemon, port):
    """It may be the request that kills the process: nothing else is tried,
    not even at the other peer."""
    with Stale(good=0) as origin, Stale(good=0) as other:
        serve(daemon, port, origin.address, other.address)
        assert get(port, "/x").status == 502
        assert len(origin.bodies("/x") + other.bodies("/x")) == 1


def test_second_try_fails_too(daemon, port):
    with Stale(fresh_too=True) as origin:
        serve(daemon, port, origin.address)
        warm(port)
        assert get(port, "/x").status == 502
        assert origin.bodies("/x") == [b"", b""]
        assert counted(port) == (2, 1)


def test_streamed_body_is_not_repeated(daemon, port):
    """What went past the memory for bodies is gone."""
    size = 3 << 20
    with Stale() as origin:
        serve(daemon, port, origin.address)
        warm(port)
        answer = get(port, "/x", "PUT", body=bytes(size))
        assert answer.status == 502
        assert len(origin.bodies("/x")) == 1


@pytest.mark.parametrize("seconds, kept", [(1, False), (3, True)])
def test_idle_time_of_the_peer(daemon, port, seconds, kept):
    """Keep-Alive: timeout=N: ours ends before it, whatever is configured."""
    ended = []

    def talk(conn):
        while conn.read_request() is not None:
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
                      b"Keep-Alive: timeout=%d, max=100\r\n\r\nok" % seconds)
            began = time.monotonic()
        ended.append(time.monotonic() - began)
    with Origin(talk) as origin:
        serve(daemon, port, origin.address, idle_timeout="60s")
        assert get(port).status == 200
        assert get(port).status == 200
        assert origin.connections == (1 if kept else 2)
        wait_for(lambda: ended, 5, "we close it")
        assert max(ended) < seconds * scalws.SLOW


def test_backlog_of_a_process_that_dies(daemon, port):
    """The socket is its own, so nobody takes over who waits there: they have
    not been heard, and are asked of the next process, by any method."""
    place = script("""
import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(64)
while True:
    conn, _ = s.accept()
    data = conn.recv(65536)
    conn.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n"
                 b"Connection: close\\r\\n\\r\\nok")
    conn.close()
    if b"/stall" in data: time.sleep(1000)
""")
    one = daemon(conf_of(command(place), port))
    pid, = one.wait_running("app")
    assert get(port, "/stall").status == 200
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(port)) for _ in range(6)]
        for i, client in enumerate(clients):
            client.request("POST" if i % 2 else "GET", f"/{i}")
        wait_for(lambda: one.app("app")["in_flight"] == 6, 10)
        os.kill(pid, signal.SIGKILL)
        assert [client.response().status for client in clients] == [200] * 6
    assert one.pids("app") != [pid]
