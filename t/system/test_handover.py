"""What a daemon knows and does, before and after another binary took over."""
import os
import signal
import socket
import subprocess
import threading
import time

import scalws
from runtimes import BY_NAME, one_app
from scalws import Client, get, wait_for
from test_readiness import SERVER, command, conf_of, script
from test_upgrade import limits, numbers, wait_alone


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


# --- who asks -------------------------------------------------------------------

def follow(one, app, *args):
    return subprocess.Popen(
        [scalws.scalwsctl(), "-c", str(one.file), "logs", "-f", *args, app],
        env=one.environment(leaks=False), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Follower:
    """scalwsctl logs -f; the numbers of the lines that it has shown."""

    def __init__(self, one, app):
        self.process = follow(one, app, "-n", "0")
        self.seen = []
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            self.seen.append(int(line.split()[-1]))

    def end(self):
        self.process.kill()
        self.thread.join(10)
        self.process.communicate()


def test_followers_go_on(daemon, port, apps):
    """Each line once; one that was about to ask is answered."""
    one = daemon({**one_app(BY_NAME["asgi"], port), **limits(2)})
    conf = one.conf
    conf["apps"]["numbers"] = numbers(apps)
    if scalws.ROOT:
        conf["apps"]["numbers"]["user"] = scalws.APP_USER
    one.write(conf)
    one.ok("reload")
    one.wait_running("numbers")
    follower = Follower(one, "numbers")
    wait_for(lambda: follower.seen, 10)
    for _ in range(5 if scalws.LONG else 2):
        with socket.socket(socket.AF_UNIX) as asks:
            asks.connect(str(one.control))
            asks.sendall(b"ver")
            one.ok("upgrade")
            asks.sendall(b"sion\n")
            asks.settimeout(10 * scalws.SLOW)
            assert b"scalwsd" in asks.recv(1000)
        seen = len(follower.seen)
        wait_for(lambda: len(follower.seen) > seen + 20, 10)
        wait_alone(one)
    assert follower.process.poll() is None
    follower.end()
    first = follower.seen[0]
    assert follower.seen == list(range(first, first + len(follower.seen)))


def test_follower_of_an_app_that_is_removed(daemon, port, apps):
    """It is told, and has nothing of it afterwards."""
    conf = one_app(BY_NAME["asgi"], port)
    conf["apps"]["numbers"] = numbers(apps)
    one = daemon(conf)
    one.wait_running("numbers")
    with follow(one, "numbers") as process:
        assert process.stdout.readline()
        conf = one.conf
        del conf["apps"]["numbers"]
        one.write(conf)
        one.ok("reload")
        _, said = process.communicate(timeout=20 * scalws.SLOW)
    assert process.returncode == 1 and "numbers is no more" in said


def test_commands_that_wait(daemon, port):
    """An upgrade waits for a restart, and the restart has its own end."""
    one = daemon({**one_app(BY_NAME["asgi"], port), **limits(2)})
    first = one.wait_running("app")
    done = scalws.parallel(2, lambda i: one.ctl(
        *(["upgrade"] if i else ["restart", "app"]), timeout=120))
    assert [d.returncode for d in done] == [0, 0], [d.stderr for d in done]
    assert "app restarted" in done[0].stdout
    assert not set(one.pids("app")) & set(first)


# --- apps -----------------------------------------------------------------------

def test_one_that_starts(daemon, port):
    """It does not delay the upgrade, and keeps its process and deadline."""
    place = script(SERVER + """
def answer(path, headers):
    return (200 if os.path.exists("now") else 503), b"ok"
serve()
""")
    os.chmod(place, 0o755)
    conf = conf_of(command(place, start_timeout="60s",
                           probe={"status": 200}), port)
    conf["apps"]["never"] = {
        "runtime": "command", "directory": "/tmp", "start_timeout": "6s",
        "command": ["/bin/sleep", "1000"]}
    conf["apps"]["ready"] = {
        "runtime": "command", "http": False, "directory": "/tmp",
        "start_timeout": "60s", "command": ["/bin/sleep", "1000"],
        "before_start": ["/bin/sh", "-c", "echo once; sleep 4"]}
    one = daemon({**conf, **limits(2)})
    began = time.monotonic()
    before, = one.app("app")["instances"]
    wait_for(lambda: "once" in one.app_log("ready"), 10)
    one.ok("upgrade")
    assert one.app("app")["state"] == "starting"
    wait_for(lambda: "not ready after 6 s" in (one.app("never")["last_exit"]
                                               or ""), 20)
    assert time.monotonic() - began < 9 * scalws.SLOW
    (place / "now").write_text("")
    one.wait_running("app")
    assert get(port).status == 200
    after, = one.app("app")["instances"]
    assert (after["pid"], after["id"]) == (before["pid"], before["id"])
    assert one.app("app")["restarts"] == 0
    one.wait_running("ready")
    assert one.app_log("ready").count("once") == 1
