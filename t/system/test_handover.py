"""What a daemon knows and does, before and after another binary took over."""
import os
import signal

import scalws
from runtimes import BY_NAME, one_app
from scalws import Client, get, wait_for
from test_upgrade import limits, wait_alone


# --- counters -------------------------------------------------------------------

def total(one):
    """What status counts: the proxy, the app, its instances together."""
    status, app = one.status(), one.app("app")
    return (status["proxy"]["requests"], status["proxy"]["accepted"],
            app["requests"], sum(i["requests"] for i in app["instances"]))


def test_counters_go_on(daemon, port):
    """Over two proxies at once, after the old one's end and after a death."""
    one = daemon({**one_app(BY_NAME["asgi"], port, processes=2), **limits(20)})
    one.wait_running("app")
    get(port, "/echo")
    before = total(one)
    with Client(port) as kept:
        for _ in range(20):
            assert kept.exchange().status == 200
        old = one.proxy_pid()
        one.ok("upgrade")
        for _ in range(10):
            assert get(port).status == 200
        now = total(one)
        assert [b - a for a, b in zip(before, now)] == [30, 11, 30, 30]
        # Nobody asks the old one before it has ended.
        assert kept.exchange().get("Connection") == "close"
    wait_for(lambda: not scalws.alive(old), 10)
    now = total(one)
    assert [b - a for a, b in zip(before, now)] == [31, 11, 31, 31]
    one.ok("upgrade")
    wait_alone(one)
    assert total(one) == now
    old = one.proxy_pid()
    os.kill(old, signal.SIGKILL)
    wait_for(lambda: one.proxy_pid() not in (None, old), 20)
    assert get(port, timeout=20).status == 200
    assert [b - a for a, b in zip(now, total(one))] == [1, 1, 1, 1]


def test_recycling_counts_on(daemon, port):
    """Half of the requests before an upgrade, half after the proxy's death."""
    one = daemon({**one_app(BY_NAME["asgi"], port, recycle={"requests": 60}),
                  **limits(2)})
    first, = one.wait_running("app")
    for step in range(3):
        for _ in range(17):
            assert get(port, timeout=20).status == 200
        # That we have heard of them is what is promised.
        assert one.app("app")["instances"][0]["requests"] >= 17 * step + 17
        assert one.pids("app") == [first]
        if step == 0:
            one.ok("upgrade")
        elif step == 1:
            os.kill(one.proxy_pid(), signal.SIGKILL)
    for _ in range(17):
        assert get(port, timeout=20).status == 200
    wait_for(lambda: not scalws.alive(first), 20)
    one.wait_log(r"is replaced: after \d+ requests")
