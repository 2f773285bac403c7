"""HTTP/2, frame by frame: the tables of raw/h2_*.py against the running
proxy, by TLS and in cleartext. The client is our own, with its own HPACK."""
import base64
import hashlib
import re
import socket

import pytest

import scalws
from raw import (h2_answers, h2_connection, h2_flow, h2_headers, h2_messages,
                 h2_streams)
from raw.h2_client import tls_context
from raw.h2_runner import H2Bench
from raw.origin import RawOrigin

COMMON = (h2_connection.ROWS + h2_streams.ROWS + h2_headers.ROWS +
          h2_messages.ROWS + h2_flow.ROWS + h2_answers.ROWS)
ROWS = {"cleartext": COMMON, "tls": COMMON + h2_connection.TLS_ONLY}
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Origin(RawOrigin):
    """Knows "/big/N" beside the scripts."""

    def body_for(self, message):
        match = re.fullmatch(rb"/big/(\d+)", message.target)
        return b"b" * int(match[1]) if match else message.target


def websocket(conn):
    """Takes every WebSocket but "/ws/403", and sends all bytes back."""
    head = conn.read_head()
    target = head.split(b" ")[1]
    if target == b"/ws/403":
        conn.send(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")
        return
    key = re.search(rb"\r\nSec-WebSocket-Key: *(\S+)\r\n", head, re.I)[1]
    accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
    conn.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
              b"Connection: Upgrade\r\nSec-WebSocket-Accept: " + accept +
              b"\r\n\r\n")
    if target == b"/ws/close":
        return
    while True:
        if conn.buffer:
            data, conn.buffer = conn.buffer, b""
            conn.send(data)
        conn.more()


class Stuck:
    """An address where connecting hangs: its queue is full."""

    def __enter__(self):
        self.socks = [socket.create_server(("127.0.0.1", 0), backlog=0)]
        where = self.socks[0].getsockname()
        for _ in range(3):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(where)
            self.socks.append(one)
        self.address = f"127.0.0.1:{where[1]}"
        return self

    def __exit__(self, *ignored):
        for one in self.socks:
            one.close()


@pytest.fixture(scope="module")
def benches():
    """A bench for each transport, of one daemon."""
    plain, tls = scalws.free_port(), scalws.free_port()
    with Origin(h2_answers.SCRIPTS) as origin, \
            scalws.Origin(websocket) as echo, Stuck() as stuck:
        conf = {
            # One, so that the order in which it writes is known.
            "workers": 1,
            # The rows know these.
            "limits": {"request_line_bytes": "8K", "header_bytes": "32K",
                       "header_count": 100, "body_bytes": "1M",
                       "h2_window_bytes": "64K",
                       "h2_connection_bytes": "64K"},
            "upstreams": {
                name: {"peers": [{"address": one.address}]}
                for name, one in (("o", origin), ("ws", echo),
                                  ("stuck", stuck))},
            "sites": [{"names": ["t.example"],
                       "listen": [f"127.0.0.1:{plain}",
                                  f"127.0.0.1:{tls} tls"],
                       "tls": scalws.certificate(),
                       "routes": [
                           {"path": "/local/*",
                            "respond": {"status": 200, "body": "hi\n"}},
                           {"path": "/denied",
                            "respond": {"status": 401, "body": "no\n"}},
                           {"path": "/ws/*", "upstream": "ws"},
                           {"path": "/stuck", "upstream": "stuck"},
                           {"path": "*", "upstream": "o"}]}],
        }
        with scalws.Daemon(conf) as daemon:
            first, second = daemon.addresses()
            yield {"cleartext": H2Bench(first, origin, first),
                   "tls": H2Bench(first, origin, second, tls_context())}


def test_table():
    for rows in ROWS.values():
        names = [row.name for row in rows]
        assert len(set(names)) == len(names) >= 600
        assert all(row.rfc.startswith("RFC ") for row in rows)


def cases():
    """By TLS a part of what was looked at in cleartext is enough."""
    for transport, rows in ROWS.items():
        for n, row in enumerate(rows):
            if transport == "cleartext" or scalws.LONG or n % 4 == 0 or \
                    row in h2_connection.TLS_ONLY:
                yield pytest.param(transport, row,
                                   id=f"{transport}-{row.name}")


@pytest.mark.parametrize("transport, row", cases())
def test_row(benches, transport, row):
    benches[transport].run(row)
