"""Two proxies at once: upgrades, what becomes of clients, and of caps."""
import os
import re
import shutil
import signal
import socket
import threading
import time

import pytest

import scalws
from runtimes import BY_NAME, one_app
from scalws import Client, Closed, Load, get, wait_for
from test_php import Sampler, pool_socket
from test_scale import Stream, events, websocket
from test_websocket import GOING_AWAY

MASKED = "8882" + "00000000" + "03e9"
UPGRADES = 5 if scalws.LONG else 2


class Traffic(Load):
    """Clients that do what clients do: kept and new connections, GET and POST,
    answers at once, after 0.2 s and after 2 s. Whatever is not a whole 200
    counts as failed."""

    KINDS = [("GET", "/", None), ("POST", "/echo", b"x" * 3000),
             ("GET", "/slow?s=0.2", None), ("GET", "/slow?s=2", None)]

    def __init__(self, port, n=8, kinds=KINDS, host="localhost", pause=0.02,
                 timeout=30):
        super().__init__(port, n, host=host, pause=pause)
        self.timeout = timeout
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
                client = client or Client(self.address, self.timeout)
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


def test_streams_live_for_their_time(daemon, port):
    """They go on over the old proxy for stream_grace, if that is longer than
    drain_timeout, and end as their protocol has it, at the app's end too."""
    one, pid = events(daemon, port, limits={"drain_timeout": "1s"},
                      stream_grace="4s")
    stream, ws, idle = Stream(port), websocket(port), Client(port)
    assert idle.exchange(host="example.com").status == 200
    began = time.monotonic()
    one.ok("upgrade")
    assert idle.at_eof(8)
    stream.read_to_the_end()
    assert ws.take(4) == GOING_AWAY and ws.at_eof(8)
    assert time.monotonic() - began > 3.9
    wait_for(lambda: f"got {MASKED}" in one.app_log("app"), 5)
    wait_alone(one)
    assert one.pids("app") == [pid]


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


# --- another binary -------------------------------------------------------------

@pytest.fixture
def binary(monkeypatch):
    """The daemon's program at a path of its own, to be replaced."""
    path = scalws.scratch() / "scalwsd"
    monkeypatch.setenv("SCALWSCTL", scalws.scalwsctl())
    shutil.copy(scalws.scalwsd(), path)
    monkeypatch.setenv("SCALWSD", str(path))
    return path


def replace(binary, content):
    """As a package manager does it: a new file takes the name."""
    fresh = binary.with_suffix(".new")
    fresh.write_bytes(content)
    fresh.chmod(0o755)
    fresh.rename(binary)


def running_file(one):
    return os.stat(f"/proc/{one.process.pid}/exe").st_ino


def numbers(apps):
    """Prints numbered lines for ever, now and then in two halves."""
    return {"runtime": "command", "http": False, "directory": "/tmp",
            "command": ["/usr/bin/python3", "-uc",
                        "import sys, time, itertools\n"
                        "for i in itertools.count():\n"
                        "    sys.stdout.write(f'line {i}')\n"
                        "    if i % 7 == 0: time.sleep(0.02)\n"
                        "    sys.stdout.write('\\n')\n"
                        "    time.sleep(0.001)\n"]}


def printed(one, name):
    return [int(m[1]) for m in re.finditer(r"line (\d+)$", one.app_log(name),
                                           re.M)]


def test_supervisor_is_replaced(daemon, port, apps, binary):
    """Same pid, another program; apps, keepers and logs go on; everything that
    it did before it does after."""
    conf = one_app(BY_NAME["asgi"], port, processes=2)
    conf["apps"]["numbers"] = numbers(apps)
    conf["apps"]["bad"] = {"runtime": "command", "directory": "/tmp",
                           "command": ["/bin/sh", "-c", "exit 7"]}
    one = daemon({**conf, **limits(2)})
    pids = one.wait_running("app") + one.wait_running("numbers")
    wait_for(lambda: one.app("bad")["state"] == "backoff", 20)
    tree = scalws.descendants(one.process.pid) - {one.proxy_pid()}
    for round_ in range(UPGRADES):
        before = running_file(one)
        replace(binary, binary.read_bytes())
        with Traffic(port, 4) as load:
            load.wait_done(20)
            one.ok("upgrade", timeout=120)
            load.wait_done(20)
        assert not load.failed, load.failed[:5]
        assert running_file(one) != before
        assert running_file(one) == os.stat(binary).st_ino
        assert one.pids("app") + one.pids("numbers") == pids
        wait_alone(one)
    gone = {pid for pid in tree if not scalws.alive(pid)}
    assert not gone & set(pids)
    app = one.app("app")
    assert app["state"] == "running" and app["restarts"] == 0
    assert "exit code 7" in one.app("bad")["last_exit"]
    wait_for(lambda: len(printed(one, "numbers")) > 100, 10)
    seen = printed(one, "numbers")
    assert seen == list(range(len(seen)))
    one.ok("restart", "app")
    assert not set(one.pids("app")) & set(pids)
    one.ok("reload")
    one.signal(signal.SIGHUP)
    os.kill(one.proxy_pid(), signal.SIGKILL)
    assert get(port, timeout=20).status == 200
    assert one.ctl("logs", "-n", "1", "app").returncode == 0
    # It is still the one that holds the directory.
    second = daemon(one.file.read_text(), start=False)
    second.spawn()
    assert second.process.wait(20 * scalws.SLOW) == 1
    second.expect_exit = 1
    assert f"process {one.process.pid}" in second.log()


def patched(binary):
    """It passes the rehearsal, which sees the state alone; when it is to take
    over it looks for another lock."""
    old = binary.read_bytes()
    assert old.count(b"scalwsd.lock\0") >= 1
    return old.replace(b"scalwsd.lock\0", b"scalwsd.loCk\0")


BAD = {
    "exits": (lambda b: b"#!/bin/sh\necho no such library >&2\nexit 3\n",
              "exit code 3: no such library"),
    "true": (lambda b: open("/bin/true", "rb").read(),
             "does not say that it understands the state"),
    "hangs": (lambda b: b"#!/bin/sh\nexec sleep 1000\n", "in time"),
    "garbage": (lambda b: b"\x7fELFgarbage", "exit code 126"),
    "other state": (lambda b: b.read_bytes().replace(
        b"replace_why\0", b"replace_how\0"),
        "does not understand the state: no field"),
    "cannot restore": (patched, "could not take over"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_binary(daemon, port, binary, what):
    """The old one goes on serving, with the same proxy and the same apps, and
    the command says why. The next upgrade works."""
    make, words = BAD[what]
    one = daemon({**one_app(BY_NAME["asgi"], port), **limits(2)})
    pids, proxy = one.wait_running("app"), one.proxy_pid()
    before, good = running_file(one), binary.read_bytes()
    replace(binary, make(binary))
    with Traffic(port, 4) as load:
        load.wait_done(10)
        done = one.ctl("upgrade", timeout=120)
        load.wait_done(10)
    assert done.returncode == 1
    assert words in done.stderr, done.stderr
    assert "as it was" in done.stderr
    assert not load.failed, load.failed[:5]
    assert running_file(one) == before
    assert one.proxy_pid() == proxy and one.pids("app") == pids
    replace(binary, good)
    one.ok("upgrade", timeout=120)
    assert running_file(one) == os.stat(binary).st_ino
    assert one.pids("app") == pids
    assert get(port).status == 200


@pytest.mark.parametrize("what", ["missing", "writable", "directory"])
def test_no_binary(daemon, port, binary, what):
    one = daemon(one_app(BY_NAME["asgi"], port))
    pids = one.wait_running("app")
    if what == "writable":
        binary.chmod(0o777)
    else:
        binary.unlink()
    if what == "directory":
        binary.mkdir()
    done = one.ctl("upgrade")
    assert done.returncode == 1 and str(binary) in done.stderr
    assert one.pids("app") == pids and get(port).status == 200


def test_proxy_that_does_not_come_up(daemon, port, binary):
    """Here because its log cannot be opened: the old proxy serves on, and the
    old supervisor is back."""
    place = scalws.scratch() / "a"
    place.mkdir()
    one = daemon({**one_app(BY_NAME["asgi"], port), **limits(2),
                  "access_log": str(place / "access.log")})
    pids = one.wait_running("app")
    proxy, before = one.proxy_pid(), running_file(one)
    place.rename(place.with_name("b"))
    place.write_text("in the way")
    replace(binary, binary.read_bytes())
    done = one.ctl("upgrade", timeout=120)
    assert done.returncode == 1 and "access.log" in done.stderr, done.stderr
    assert one.proxy_pid() == proxy and one.pids("app") == pids
    assert running_file(one) == before
    assert get(port).status == 200
    place.unlink()
    place.with_name("b").rename(place)
    one.ok("upgrade", timeout=120)
    assert running_file(one) == os.stat(binary).st_ino


def test_service_manager_is_told(daemon, port):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        path = scalws.scratch() / "notify"
        told.bind(str(path))
        os.chmod(path, 0o666)
        one = daemon(one_app(BY_NAME["asgi"], port),
                     env={"NOTIFY_SOCKET": str(path)})
        one.wait_running("app")
        one.ok("upgrade")
        told.settimeout(5)
        texts = []
        while not texts or "MAINPID" not in texts[-1]:
            texts.append(told.recv(1000).decode())
    assert texts[0].startswith("READY=1")
    assert any(text.startswith("RELOADING=1") for text in texts)
    assert f"MAINPID={one.process.pid}" in texts[-1]
    assert texts[-1].startswith("READY=1")
