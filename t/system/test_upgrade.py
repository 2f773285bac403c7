"""Two proxies at once: upgrades, what becomes of clients, and of caps."""
import contextlib
import itertools
import os
import signal
import threading
import time

import pytest

import scalws
from runtimes import BY_NAME, one_app
from scalws import Client, Closed, get, wait_for
from test_php import Sampler, pool_socket
from test_websocket import Ws

UPGRADES = 5 if scalws.LONG else 2


class Traffic:
    """Clients that do what clients do: kept and new connections, GET and POST,
    answers at once, after 0.2 s and after 2 s. Whatever is not a whole 200
    counts as failed."""

    KINDS = [("GET", "/", None), ("POST", "/echo", b"x" * 3000),
             ("GET", "/slow?s=0.2", None), ("GET", "/slow?s=2", None)]

    def __init__(self, port, n=8, kinds=KINDS, host="localhost", pause=0.02,
                 timeout=30):
        self.port, self.host, self.pause = port, host, pause
        self.timeout = timeout
        self.done, self.failed, self.slowest = 0, [], 0.0
        self.lock = threading.Lock()
        self.ending = threading.Event()
        self.threads = [
            threading.Thread(target=self.run, args=(kinds[i % len(kinds)],
                                                    i // len(kinds) % 2 == 0),
                             daemon=True) for i in range(n)]

    def one(self, client, method, target, body):
        answer = client.exchange(method, target, host=self.host, body=body)
        assert answer.status == 200, answer
        return answer.get("Connection") != "close"

    def run(self, kind, keep):
        client = None
        while not self.ending.is_set():
            began, failure, goes_on = time.monotonic(), None, False
            try:
                client = client or Client(self.port, self.timeout)
                goes_on = self.one(client, *kind)
            except (OSError, Closed, AssertionError) as error:
                failure = (kind, keep, repr(error))
            with self.lock:
                self.done += 1
                self.slowest = max(self.slowest, time.monotonic() - began)
                if failure:
                    self.failed.append(failure)
            if client and not (goes_on and keep):
                client.close()
                client = None
            self.ending.wait(self.pause)
        if client:
            client.close()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *ignored):
        self.ending.set()
        for thread in self.threads:
            thread.join(60)

    def wait_done(self, n, timeout=30):
        goal = self.done + n
        wait_for(lambda: self.done >= goal, timeout, f"{n} more requests")


def draining(one):
    return one.status()["proxy"]["draining_pid"]


def wait_alone(one, timeout=15):
    wait_for(lambda: not draining(one), timeout, "the old proxy has ended")


def limits(seconds):
    return {"limits": {"drain_timeout": f"{seconds}s"}}


def test_upgrades_under_load(daemon, port):
    """No request fails, apps keep their pids, the proxy has a new one."""
    one = daemon({**one_app(BY_NAME["asgi"], port, processes=2), **limits(5)})
    pids = one.wait_running("app")
    with Traffic(port) as load:
        for _ in range(UPGRADES):
            load.wait_done(60)
            before = one.status()["proxy"]
            said = one.ok("upgrade")
            after = one.status()["proxy"]
            assert str(after["pid"]) in said
            assert after["pid"] != before["pid"]
            assert after["generation"] == before["generation"] + 1
            assert after["restarts"] == 0
        load.wait_done(60)
    assert not load.failed, load.failed[:5]
    assert load.slowest < 4 * scalws.SLOW
    assert one.pids("app") == pids
    wait_alone(one)


def test_idle_client_is_not_cut_off(daemon, port):
    """Its next request is answered by the old proxy, with Connection: close;
    who asks nothing is closed at drain_timeout."""
    one = daemon({**one_app(BY_NAME["asgi"], port), **limits(3)})
    one.wait_running("app")
    with Client(port) as asks, Client(port) as idle:
        assert asks.exchange().get("Connection") != "close"
        assert idle.exchange().get("Connection") != "close"
        old = one.proxy_pid()
        began = time.monotonic()
        one.ok("upgrade")
        assert draining(one) == old
        time.sleep(0.5)
        answer = asks.exchange()
        assert answer.status == 200
        assert answer.get("Connection") == "close"
        assert asks.at_eof()
        assert idle.at_eof(8)
        assert time.monotonic() - began > 2.5
    wait_alone(one)
    assert not scalws.alive(old)


def test_streams_live_until_the_drain_ends(daemon, port):
    """A WebSocket goes on over the old proxy until drain_timeout."""
    one = daemon({**one_app(BY_NAME["asgi"], port, module="ws:app"),
                  **limits(3)})
    one.wait_running("app")
    with Ws(port) as ws:
        ws.echoes()
        began = time.monotonic()
        one.ok("upgrade")
        ws.echoes("still there")
        with Ws(port) as new:
            new.echoes()
            while time.monotonic() - began < 2:
                ws.echoes("still there")
                time.sleep(0.1)
            with contextlib.suppress(OSError, Closed):
                ws.sock.settimeout(10 * scalws.SLOW)
                assert not ws.sock.recv(1), "the end"
            assert time.monotonic() - began > 2.5
            new.echoes("and on")


def test_second_upgrade_meanwhile(daemon, port):
    """One is refused that comes while another is going on; one that comes
    while the old proxy drains waits for it."""
    one = daemon({**one_app(BY_NAME["asgi"], port), **limits(2)})
    one.wait_running("app")
    with Client(port) as idle:
        idle.exchange()
        one.ok("upgrade")
        results = scalws.parallel(3, lambda i: one.ctl("upgrade"))
        codes = sorted(done.returncode for done in results)
        assert codes == [0, 1, 1]
        for done in results:
            if done.returncode == 1:
                assert "under way" in done.stderr
    wait_alone(one)
    assert one.status()["proxy"]["generation"] == 3
    assert get(port).status == 200


def test_old_proxy_may_die_while_it_drains(daemon, port):
    one = daemon({**one_app(BY_NAME["asgi"], port), **limits(20)})
    pids = one.wait_running("app")
    with Client(port) as idle:
        idle.exchange()
        old = one.proxy_pid()
        one.ok("upgrade")
        os.kill(old, signal.SIGKILL)
        wait_alone(one)
        assert idle.at_eof()
    assert get(port).status == 200
    status = one.status()["proxy"]
    assert status["restarts"] == 0 and status["generation"] == 2
    assert one.pids("app") == pids


def test_new_proxy_dies_while_the_old_one_drains(daemon, port):
    """Another is started beside the old one; nobody is refused."""
    one = daemon({**one_app(BY_NAME["asgi"], port), **limits(20)})
    pids = one.wait_running("app")
    with Client(port) as idle:
        idle.exchange()
        old = one.proxy_pid()
        one.ok("upgrade")
        os.kill(one.proxy_pid(), signal.SIGKILL)
        assert get(port, timeout=20).status == 200
        assert draining(one) == old
        assert idle.exchange().status == 200
    assert one.status()["proxy"]["restarts"] == 1
    assert one.pids("app") == pids


def test_restart_and_reload_while_the_old_one_drains(daemon, port):
    """Both proxies hear of new instances; a new route is the new one's."""
    one = daemon({**one_app(BY_NAME["asgi"], port), **limits(20)})
    one.wait_running("app")
    with Client(port) as idle:
        idle.exchange()
        one.ok("upgrade")
        one.ok("restart", "app")
        conf = one.conf
        conf["sites"][0]["routes"].insert(
            0, {"path": "/new", "respond": {"status": 200, "body": "new"}})
        one.write(conf)
        one.ok("reload")
        assert get(port, "/new").body == b"new"
        assert idle.exchange().status == 200
    wait_alone(one)


# --- caps -----------------------------------------------------------------------

CHILDREN = 3


def php(apps, **keys):
    return {"runtime": "php", "root": str(apps / "php/front/public"),
            "children": CHILDREN, **keys}


def serve_php(daemon, port, apps, seconds, **keys):
    one = daemon({"sites": [{"names": ["example.com"],
                             "listen": [f"127.0.0.1:{port}"],
                             "routes": [{"path": "*", "app": "p"}]}],
                  "apps": {"p": php(apps, **keys)}, **limits(seconds)})
    one.wait_running("p")
    return one


PHP_KINDS = [("GET", "/", None), ("GET", "/slow?s=0.05", None),
             ("POST", "/echo", b"x" * 3000), ("GET", "/slow?s=0.2", None)]


def php_traffic(port, n=16):
    return Traffic(port, n, PHP_KINDS, "example.com")


def test_cap_holds_over_two_proxies(daemon, port, apps):
    """More clients than php-fpm has children, before and after each of the
    upgrades: never one connection too many, nobody waits for ever."""
    one = serve_php(daemon, port, apps, 5)
    pids = one.pids("p")
    with Sampler(pool_socket(one)) as sampler:
        with php_traffic(port) as load:
            for _ in range(UPGRADES):
                load.wait_done(60)
                one.ok("upgrade")
            load.wait_done(100)
    assert not load.failed, load.failed[:5]
    assert load.slowest < 8 * scalws.SLOW, load.slowest
    assert sampler.samples > 20
    assert sampler.most <= CHILDREN
    assert sampler.waiting == 0
    assert one.pids("p") == pids


def test_one_at_a_time_is_lent_back(daemon, port, apps):
    """A single child: both proxies have clients, each gets its turn."""
    one = serve_php(daemon, port, apps, 20, children=1)
    host = dict(host="example.com")
    with Client(port) as first, Client(port) as second:
        first.exchange(**host)
        second.exchange(**host)
        one.ok("upgrade")
        with Sampler(pool_socket(one)) as sampler:
            for client in first, second:
                for _ in range(3):
                    assert get(port, timeout=5, **host).status == 200
                assert client.exchange(**host).status == 200
            assert get(port, timeout=5, **host).status == 200
        assert sampler.most <= 1
    wait_alone(one)


def test_slots_of_a_dead_proxy_follow_the_child(daemon, port, apps):
    """A child that works for a request of the proxy that was killed is not
    sent another one, and not forgotten either."""
    one = serve_php(daemon, port, apps, 5, children=2)
    host = dict(host="example.com")
    with Sampler(pool_socket(one)) as sampler, Client(port) as slow:
        slow.request("GET", "/slow?s=3", **host)
        wait_for(lambda: one.app("p")["in_flight"] == 1, 5)
        began = time.monotonic()
        os.kill(one.proxy_pid(), signal.SIGKILL)
        # One child is free: it answers meanwhile.
        assert get(port, timeout=20, **host).status == 200
        first = time.monotonic() - began
        scalws.parallel(6, lambda i: get(port, "/slow?s=0.1", timeout=20,
                                         **host))
        wait_for(lambda: time.monotonic() - began > 3.5, 10)
        scalws.parallel(4, lambda i: get(port, "/slow?s=0.1", timeout=20,
                                         **host))
    assert first < 2.5 * scalws.SLOW
    assert sampler.most <= 2 and sampler.waiting == 0
    wait_for(lambda: one.app("p")["queued"] == 0, 5)


def test_kill_9_of_the_proxy_under_load(daemon, port):
    """Only what was written to a connection that the dead one had accepted
    fails; nobody is refused; apps keep their pids."""
    one = daemon({**one_app(BY_NAME["asgi"], port, processes=2), **limits(5)})
    pids = one.wait_running("app")
    kills = 10 if scalws.LONG else 2
    with Traffic(port) as load:
        for _ in range(kills):
            load.wait_done(60)
            old = one.proxy_pid()
            os.kill(old, signal.SIGKILL)
            wait_for(lambda: one.status()["proxy"]["pid"] not in (None, old)
                     and one.status()["proxy"]["state"] == "running", 60)
        load.wait_done(60)
    assert len(load.failed) <= kills * len(load.threads)
    assert not [f for f in load.failed if "Refused" in f[2]], load.failed
    assert one.pids("app") == pids
