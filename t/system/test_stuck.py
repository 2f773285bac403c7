"""One-at-a-time processes that go on with what nobody waits for: replaced."""
import os
import re
import time

import pytest

import scalws
from runtimes import BY_NAME, one_app
from scalws import Client, Closed, Load, alive, get, wait_for

GRACE = "500ms"


def children(one):
    """The pids of the php-fpm children."""
    master, = one.pids("app")
    return {pid for pid, (parent, state, _) in scalws.process_table().items()
            if parent == master and state not in "ZX"}


def leave(one, port, target):
    """A client that asks for it and leaves."""
    with Client(port) as client:
        client.request("GET", target, host="example.com")
        wait_for(lambda: one.app("app")["in_flight"] == 1, 5)


def test_php_child_of_a_client_that_left(daemon, port):
    """That child alone ends; the next request does not wait for it."""
    one = daemon(one_app(BY_NAME["php-front"], port, children=2,
                         abort_grace=GRACE))
    one.wait_running("app")
    before, master = children(one), one.pids("app")
    assert len(before) == 2
    leave(one, port, "/slow?s=30")
    wait_for(lambda: len(before - children(one)) == 1, 10,
             "one child is replaced")
    wait_for(lambda: len(children(one)) == 2, 10)
    assert len(before & children(one)) == 1 and one.pids("app") == master
    one.wait_log(r"child pid=\d+ killed: it works on")
    began = time.monotonic()
    for _ in range(6):
        assert get(port, host="example.com").status == 200
    assert time.monotonic() - began < 5 * scalws.SLOW
    assert len(before & children(one)) == 1     # no other was ended


def test_php_child_that_ends_in_time_stays(daemon, port):
    one = daemon(one_app(BY_NAME["php-front"], port, children=2,
                         abort_grace="20s"))
    one.wait_running("app")
    before = children(one)
    leave(one, port, "/slow?s=1")
    wait_for(lambda: one.app("app")["instances"][0]["in_flight"] == 0, 10)
    assert get(port, host="example.com").status == 200
    assert children(one) == before


def test_php_request_timeout(daemon, port):
    """504 in time, one child replaced, the others go on with theirs."""
    one = daemon(one_app(BY_NAME["php-front"], port, children=2,
                         request_timeout="2s"))
    one.wait_running("app")
    before = children(one)
    with Client(port) as client:
        began = time.monotonic()
        client.request("GET", "/slow?s=30", host="example.com")
        wait_for(lambda: one.app("app")["in_flight"] == 1, 5)
        time.sleep(1)   # the second one begins later, and ends in its time
        with Client(port) as other:
            other.request("GET", "/slow?s=1.5", host="example.com")
            assert client.response().status == 504
            took = time.monotonic() - began
            assert other.response().status == 200
    assert 1.9 < took < 6 * scalws.SLOW
    wait_for(lambda: len(before - children(one)) == 1, 10)
    wait_for(lambda: len(children(one)) == 2, 10)
    assert get(port, host="example.com").status == 200


@pytest.mark.parametrize("how", ["leaves", "timeout"])
def test_sync_worker_is_replaced(daemon, port, how):
    """A new process first; all others of the app's stay, no request fails."""
    keys = {"abort_grace": GRACE} if how == "leaves" else \
        {"request_timeout": "1s"}
    one = daemon(one_app(BY_NAME["flask-sync"], port, processes=2,
                         stop_timeout="2s", **keys))
    before = one.wait_running("app")
    with Load(port, n=1, host="example.com") as load:
        if how == "leaves":
            with Client(port) as client:
                client.request("GET", "/slow?s=30", host="example.com")
                wait_for(lambda: one.app("app")["in_flight"] >= 1, 5)
        else:
            assert get(port, "/slow?s=30", host="example.com").status == 504
        wait_for(lambda: len(set(before) - set(one.pids("app"))) == 1 and
                 len(one.pids("app")) == 2, 30, "one of two is replaced",
                 every=0.1)
        gone, = set(before) - set(one.pids("app"))
        wait_for(lambda: not alive(gone), 15, "the stuck one has ended")
    assert not load.failed, load.failed
    one.wait_log(r"is replaced: (it works on|a request took)")


def test_after_a_client_that_left_others_get_a_free_process(daemon, port):
    """Never the one that is still at work for him."""
    one = daemon(one_app(BY_NAME["flask-sync"], port, processes=2,
                         abort_grace="60s", stop_timeout="1s"))
    before = one.wait_running("app")
    leave(one, port, "/slow?s=30")
    for _ in range(10):
        assert get(port, host="example.com", timeout=20).status == 200
    assert one.pids("app") == before
    assert not one.app("app")["errors"]


def test_after_a_client_that_left_others_wait_with_us(daemon, port):
    """In the queue, where status shows them and a time limit holds."""
    one = daemon(one_app(BY_NAME["flask-sync"], port, queue_timeout="3s",
                         abort_grace="60s", stop_timeout="1s"))
    one.wait_running("app")
    leave(one, port, "/slow?s=5")
    with Client(port) as client:
        client.request("GET", "/", host="example.com")
        wait_for(lambda: one.app("app")["queued"] == 1, 5)
        first = one.app("app")["oldest_wait_ms"]
        wait_for(lambda: one.app("app")["oldest_wait_ms"] > first, 3)
        assert re.search(r"^app .* 1 +\d\.\ds ", one.ok("status"), re.M)
        answer = client.response()
        assert answer.status == 503 and answer.get("Retry-After")
    assert one.app("app")["errors"] == 1        # though no process had it
    assert not one.app("app")["instances"][0]["errors"]
    wait_for(lambda: get(port, host="example.com").status == 200, 20)


def test_request_timeout_of_many_at_a_time(daemon, port):
    """504; its process serves others and stays."""
    one = daemon(one_app(BY_NAME["asgi"], port, request_timeout="500ms"))
    before = one.wait_running("app")
    assert get(port, "/slow?s=10", host="example.com").status == 504
    assert get(port, "/", host="example.com").status == 200
    with pytest.raises(Closed):     # its head went out in time, its end not
        get(port, "/stream?n=500", host="example.com")
    assert one.pids("app") == before


def test_replacement_that_fails_leaves_the_old_one(daemon, port):
    """It is said, and it serves again when it is done."""
    app = BY_NAME["flask-sync"].conf(abort_grace=GRACE)
    place = scalws.scratch()
    (place / "wsgi.py").write_text(
        "import os, sys\n"
        f"sys.path.insert(0, {app['directory']!r})\n"
        f"if os.path.exists({str(place)!r} + '/bad'):\n"
        "    raise RuntimeError('this version is bad')\n"
        "from flask_app import app\n")
    conf = one_app(BY_NAME["flask-sync"], port)
    conf["apps"]["app"] = {**app, "directory": str(place),
                           "module": "wsgi:app"}
    one = daemon(conf)
    before = one.wait_running("app")
    (place / "bad").write_text("")
    leave(one, port, "/slow?s=3")
    one.wait_log("no process could be replaced", timeout=20)
    assert get(port, host="example.com").status == 200
    assert one.pids("app") == before
    assert os.path.exists(place / "bad")
