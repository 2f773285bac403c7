"""The daemon's own log: what it says of requests that fail, and that a crowd of
them does not fill the disk."""
import threading
import time

import scalws
from scalws import Client, Origin, get, wait_for

UP = {"path": "*", "upstream": "u"}
# Of one worker in one second, and its word about what it left out.
MOST = 21


def serve(daemon, port, upstream, **keys):
    site = {"listen": [f"127.0.0.1:{port}"], "routes": [UP]}
    keys.setdefault("log_level", "info")
    return daemon({"workers": 1, "sites": [site], "upstreams": {"u": upstream},
                   **keys})


def refused(n=1):
    return {"peers": [{"address": f"127.0.0.1:{scalws.free_port()}"}
                      for _ in range(n)]}


def lines(one, *words):
    return [line for line in one.log().splitlines()
            if all(word in line for word in words)]


def ask_all(port, n, request, threads=4):
    """n requests on kept connections; those that are closed are opened
    again."""
    def ask():
        for _ in range(n // threads):
            with Client(port) as client:
                client.send(request)
                client.response_head()
    runs = [threading.Thread(target=ask) for _ in range(threads)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()


def test_refused_upstream(daemon, port):
    """A line about the request, one about each peer: not one for each try."""
    one = serve(daemon, port, refused(2))
    for i in range(3):
        assert get(port, f"/r{i}").status == 502
        said = wait_for(lambda: lines(one, f" /r{i} "), 5)
        assert len(said) == 1 and "connect failed" in said[0], said
    assert len(lines(one, "Connection refused")) == 2


def test_thousands_of_bad_requests(daemon, port):
    one = serve(daemon, port, refused())
    before = len(one.log().splitlines())
    ask_all(port, 2000, b"GET / HTTP/1.1\r\nBad Name: x\r\n\r\n")
    wait_for(lambda: len(one.access_log()) >= 2000, 10)
    assert len(one.log().splitlines()) - before < 5


def test_thousands_of_failing_requests(daemon, port):
    one = serve(daemon, port, refused())
    before = len(one.log().splitlines())
    began = time.monotonic()
    ask_all(port, 2000, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    wait_for(lambda: len(one.access_log()) >= 2000, 10)
    said = len(one.log().splitlines()) - before
    assert said <= MOST * (time.monotonic() - began + 2)
    if said < 1000:
        # Where lines were left out, how many is said by the next.
        wait_for(lambda: get(port).status == 502 and
                 lines(one, "were left out"), 5)


def endless(piece, pause):
    def script(conn):
        if conn.read_request() is None:
            return
        try:
            while True:
                conn.send(piece)
                conn.origin.stopped.wait(pause)
        except OSError:
            pass
    origin = Origin(script)
    origin.stopped = threading.Event()
    return origin


def test_endless_interim_answers(daemon, port):
    """They are no answer, and no silence either."""
    for status in (100, 103):
        with endless(b"HTTP/1.1 %d Wait\r\nX: y\r\n\r\n" % status, 0.05) as \
                origin:
            port = scalws.free_port()
            one = serve(daemon, port, {
                "peers": [{"address": origin.address}],
                "response_timeout": "1s"})
            with Client(port) as client:
                client.request()
                while True:
                    answer = client.response(informational=True)
                    if answer.status >= 200:
                        break
                    assert answer.status == 103
            assert answer.status == 504
            said = lines(one, "for 1000 ms")
            assert len(said) == 1, said
            assert "no whole head" in said[0]
            assert "sent nothing" not in said[0]


def test_silence_is_named_so(daemon, port):
    with Origin(lambda conn: conn.read_head() and conn.read_head()) as origin:
        one = serve(daemon, port, {"peers": [{"address": origin.address}],
                                   "response_timeout": "300ms"})
        assert get(port).status == 504
        assert len(lines(one, "sent nothing for 300 ms")) == 1
