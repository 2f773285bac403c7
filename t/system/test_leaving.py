"""Clients that leave while an application works for them.

An application that can be told is told within a second; where a process does
one thing at a time, its slot follows the process, not the client."""
import socket
import struct
import threading
import time

import pytest

import scalws
from recording import SERVERS, recorded
from scalws import Client, Origin, get, wait_for
from test_readiness import SERVER, command, conf_of, script

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HOW = ["close", "half-close", "reset"]


def leave(client, how):
    """A half-close counts as leaving: no browser does it, and nobody else
    says that he is gone in another way."""
    if how == "half-close":
        client.sock.shutdown(socket.SHUT_WR)
        return
    if how == "reset":
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                               struct.pack("ii", 1, 0))
    client.close()


def lines(record):
    return record.read_text().splitlines()


@pytest.mark.parametrize("name", SERVERS)
def test_app_is_told(name, port):
    tells = name in ("uvicorn", "node")
    with recorded(name, port) as (one, record):
        for how in HOW:
            client = Client(port)
            client.request("GET", "/wait", host="t.example",
                           headers={"X-Row": how})
            wait_for(lambda: f"BEGUN {how} 0" in lines(record), 10)
            left = time.monotonic()
            leave(client, how)
            if tells:
                wait_for(lambda: f"GONE {how} 0" in lines(record), 1,
                         "the application is told")
            # We have forgotten him, whatever the application does.
            wait_for(lambda: len([line for line in one.access_log()
                                  if "/wait" in line]) == HOW.index(how) + 1,
                     1, "the request is over for us")
            assert get(port, "/next", host="t.example",
                       headers={"X-Row": "next-" + how}).status == 200
            if name in ("gunicorn-sync", "php"):
                # One process: it was done with the first before.
                said = lines(record)
                assert said.index(f"GET {how} 0") < \
                    said.index(f"GET next-{how} 0")
                assert time.monotonic() - left > 0.5
            client.close()


@pytest.mark.parametrize("how", HOW)
def test_who_waits_is_never_asked_for(daemon, port, how):
    def script(conn):
        while conn.read_request():
            free.wait(20 * scalws.SLOW)
            conn.send(OK)
    free = threading.Event()
    with Origin(script) as origin:
        one = daemon({
            "workers": 1, "sites": [{"listen": [f"127.0.0.1:{port}"],
                                     "routes": [{"path": "*",
                                                 "upstream": "u"}]}],
            "upstreams": {"u": {"peers": [{"address": origin.address,
                                           "max_connections": 1}]}}})
        with Client(port) as busy, Client(port) as gone, \
                Client(port) as last:
            busy.request("GET", "/busy")
            wait_for(lambda: origin.requests, 5)
            gone.request("GET", "/gone")
            last.request("GET", "/last")
            leave(gone, how)
            wait_for(lambda: any("/gone" in line
                                 for line in one.access_log()), 1,
                     "it is forgotten")
            if how == "half-close":
                assert gone.at_eof(1)
            free.set()
            assert busy.response().status == 200
            assert last.response().status == 200
        targets = [head.split()[1] for head, _ in origin.requests]
        assert targets == [b"/busy", b"/last"]


def test_who_asks_and_leaves_does_not_fill_a_process(daemon, port):
    """Without a cap either: one that does not look for its clients has a
    second for each, and not many of them at a time."""
    place = script(SERVER + """
n = 0
def answer(path, headers):
    global n
    if path == "/wait":
        n += 1
        time.sleep(1000)
    return 200, str(n).encode()
Server.request_queue_size = 1024
serve()
""")
    one = daemon(conf_of(command(place), port))
    one.wait_running("app")
    began = time.monotonic()
    for _ in range(600):
        with Client(port) as client:
            client.request("GET", "/wait")
    got = get(port, "/")
    assert got.status == 200
    # 64 at once, and 64 after each second; some were not told of in time.
    seconds = time.monotonic() - began
    assert 10 < int(got.body) < 64 * (seconds + 3), \
        (got.body, seconds)
