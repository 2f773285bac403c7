"""What a daemon knows and does, before and after another binary took over."""
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import scalws
from h2client import H2
from runtimes import BY_NAME, one_app
from scalws import Client, Load, get, wait_for
from test_readiness import ACTIVATE, PYTHON, SERVER, command, conf_of, script
from test_tls import TlsClient, context
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


def test_a_process_that_ends_keeps_its_count(daemon, port, apps):
    """As long as it is shown; the proxy has forgotten it by then."""
    one = daemon(conf_of({
        "runtime": "command", "directory": str(apps / "command"),
        "command": [str(apps / "command/misbehave.py"), "--stubborn"],
        "stop_timeout": "4s"}, port))
    pid, = one.wait_running("app")
    for _ in range(5):
        assert get(port).status == 200
    assert one.instances("app")[0]["requests"] == 5
    restart = threading.Thread(target=one.ok, args=("restart", "app"))
    restart.start()
    seen = []
    while scalws.alive(pid):
        seen += [i["requests"] for i in one.instances("app")
                 if i["pid"] == pid]
    restart.join()
    assert set(seen) == {5}, seen


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
        "runtime": "command", "directory": "/tmp", "start_timeout": "3s",
        "command": ["/bin/sleep", "1000"]}
    conf["apps"]["ready"] = {
        "runtime": "command", "http": False, "directory": "/tmp",
        "start_timeout": "60s", "command": ["/bin/sleep", "1000"],
        "before_start": ["/bin/sh", "-c", "echo once; sleep 2"]}
    one = daemon({**conf, **limits(2)})
    began = time.monotonic()
    before = wait_for(lambda: (i := one.app("app")["instances"][0])["pid"] and
                      i, 10)
    wait_for(lambda: "once" in one.app_log("ready"), 10)
    one.ok("upgrade")
    assert one.app("app")["state"] == "starting"
    wait_for(lambda: "not ready after 3 s" in one.app_log("never"), 20)
    assert time.monotonic() - began < 6 * scalws.SLOW
    (place / "now").write_text("")
    one.wait_running("app")
    assert get(port).status == 200
    after, = one.app("app")["instances"]
    assert (after["pid"], after["id"]) == (before["pid"], before["id"])
    assert one.app("app")["restarts"] == 0
    one.wait_running("ready")
    assert one.app_log("ready").count("once") == 1


BEATS = SERVER + """
silent = False
def answer(path, headers):
    global silent
    silent = silent or path == "/silent"
    return 200, str(os.getpid()).encode()
def beat():
    while True:
        if not silent: notify("WATCHDOG=1")
        time.sleep(0.1)
threading.Thread(target=beat, daemon=True).start()
serve()
"""


def starts(one, name):
    """When it printed that it started."""
    return [float(line.split()[-1]) for line in one.app_log(name).splitlines()
            if "scalwsd: " not in line]


def test_what_was_wanted_is_wanted(daemon, port):
    """A watchdog, a number of processes, a stop, a pause between tries; the
    command before the start is not run again."""
    conf = conf_of(command(script(BEATS), watchdog="1500ms", stop_timeout="1s",
                           before_start=["/bin/echo", "once"]), port)
    sleeps = {"runtime": "command", "http": False, "directory": "/tmp",
              "command": ["/bin/sleep", "1000"]}
    conf["apps"].update(scaled=dict(sleeps), stopped=dict(sleeps))
    conf["apps"]["bad"] = {**sleeps, "command": [
        "/bin/sh", "-c", "date +%s.%N; exit 7"]}
    one = daemon({**conf, **limits(2)})
    first, = one.wait_running("app")
    one.ok("scale", "scaled", "2")
    scaled = one.wait_running("scaled", 2)
    one.ok("stop", "stopped")
    wait_for(lambda: len(starts(one, "bad")) >= 2, 20)
    n, restarts = len(starts(one, "bad")), one.app("bad")["restarts"]
    one.ok("upgrade")
    upgraded = time.monotonic()
    assert one.pids("app") == [first] and one.pids("scaled") == scaled
    assert one.app("stopped")["state"] == "stopped"
    os.kill(scaled[0], signal.SIGKILL)
    # It waits twice as long each time, and does not begin with 1 s again.
    at = wait_for(lambda: len(starts(one, "bad")) > n and starts(one, "bad"),
                  40)
    assert at[n] - at[n - 1] > 2 ** (n - 1) - 0.1
    assert one.app("bad")["restarts"] > restarts
    assert len(one.wait_running("scaled", 2)) == 2
    wait_for(lambda: time.monotonic() - upgraded > 2, 10)
    assert one.pids("app") == [first]
    assert one.app_log("app").count("once") == 1
    assert get(port, "/silent").status == 200
    wait_for(lambda: not scalws.alive(first), 40)
    one.wait_log("is replaced: its watchdog is silent")
    one.ok("start", "stopped")


def test_given_sockets(daemon, port):
    """Of a service manager: still shared, and their paths are still not
    ours."""
    place = scalws.scratch()
    path = place / "given.sock"
    (place / "activate.py").write_text(ACTIVATE)
    conf = one_app(BY_NAME["asgi"], port)
    conf["sites"][0]["listen"].append(f"unix:{path}")
    one = daemon({**conf, **limits(2)}, command=[
        PYTHON, str(place / "activate.py"), "2", str(port), str(path)])
    one.wait_running("app")
    one.ok("upgrade")
    wait_alone(one)
    for address in (port, path):
        assert get(address).status == 200
    one.ok("reload")
    assert get(path).status == 200
    one.stop()
    assert path.exists()


# --- logs -----------------------------------------------------------------------

def test_logs_go_on(daemon, port, apps):
    """App logs that rotate meanwhile, and the access log: each line once."""
    conf = one_app(BY_NAME["asgi"], port)
    conf["apps"]["numbers"] = {**numbers(apps), "log": {
        "max_bytes": 20480, "keep": 40}}
    one = daemon({**conf, **limits(20)})
    one.wait_running("app")
    asked = 0

    def ask(client, n):
        nonlocal asked
        for _ in range(n):
            asked += 1
            assert client.exchange(target=f"/?n={asked}.").status == 200

    def rotated():
        return len(list(one.logs.glob("numbers.log.*")))
    for _ in range(5 if scalws.LONG else 2):
        with Client(port) as old:
            ask(old, 5)
            before = rotated()
            one.ok("upgrade")
            ask(old, 1)
            with Client(port) as new:
                ask(new, 5)
        wait_for(lambda: rotated() > before + 1, 20)
        wait_alone(one)
    one.ok("stop", "numbers")
    seen = [int(m) for path in one.logs.glob("numbers.log*")
            for m in re.findall(r"line (\d+)$", path.read_text(), re.M)]
    assert sorted(seen) == list(range(len(seen)))
    lines = "\n".join(one.access_log())
    wait_for(lambda: f"n={asked}." in "\n".join(one.access_log()), 5)
    found = re.findall(r"n=(\d+)\.", "\n".join(one.access_log()))
    assert sorted(map(int, found)) == list(range(1, asked + 1)), lines


# --- TLS and HTTP/2 -------------------------------------------------------------

def tls_socket(port, with_, session=None):
    sock = with_.wrap_socket(scalws.connect(port), server_hostname="localhost",
                             session=session)
    assert sock.selected_alpn_protocol() == "h2"
    return sock


def test_tls(daemon, port):
    """Certificates are known though their files are gone, tickets of before
    are good on the new proxy and after the old one; idle connections have one
    more answer."""
    place = scalws.scratch()
    tls = {key: str(shutil.copy(path, place))
           for key, path in scalws.certificate().items()}
    conf = one_app(BY_NAME["asgi"], port)
    conf["sites"][0].update(listen=[f"127.0.0.1:{port} tls"], tls=tls)
    one = daemon({**conf, **limits(4)})
    one.wait_running("app")
    with_, h2_with = context(), context()
    h2_with.set_alpn_protocols(["h2"])
    for key in tls.values():
        os.unlink(key)
    with TlsClient(port, with_=with_) as asks, \
            TlsClient(port, with_=with_) as idle, \
            H2(port, sock=tls_socket(port, h2_with)) as h2, \
            H2(port, sock=tls_socket(port, h2_with)) as h2_idle:
        assert idle.exchange().status == asks.exchange().status == 200
        assert h2_idle.get(scheme="https").status == 200
        for _ in range(3):
            assert h2.get(scheme="https").status == 200
        session = asks.sock.session
        began = time.monotonic()
        one.ok("upgrade")

        def resumed():
            with TlsClient(port, with_=with_, session=session) as client:
                assert client.exchange().status == 200
                return client.sock.session_reused
        assert resumed()
        # A while later, and not before its next request.
        wait_for(lambda: time.monotonic() - began > 1, 10)
        assert h2.goaway is None
        answer = asks.exchange()
        assert answer.get("Connection") == "close" and asks.at_eof()
        number = h2.ask(scheme="https")
        assert h2.answer(number).status == 200
        assert h2.at_goaway() == 0 and h2.at_eof()
        assert h2.goaways[-1] == (0, number)
        assert idle.at_eof(10) and h2_idle.at_eof()
        assert h2_idle.goaway == 0
        assert time.monotonic() - began > 3.5
    wait_alone(one)
    assert resumed()


class H2Load(Load):
    """Some requests at a time on each connection; one that is told to go away
    gets an answer to what it has asked, and another connection is made."""

    def run(self):
        while not self.ending.is_set():
            try:
                with H2(self.address) as h2:
                    self.use(h2)
            except (OSError, AssertionError) as error:
                with self.lock:
                    self.failed.append(repr(error))

    def use(self, h2):
        while not self.ending.is_set() and h2.goaway is None:
            asked = [h2.ask("/slow?s=0.1"), h2.ask("/"),
                     h2.ask("/echo", "POST", body=b"x" * 3000)]
            for number in asked:
                answer = h2.answer(number)
                assert answer.reset is None and answer.status == 200, \
                    (vars(answer), h2.goaways)
            with self.lock:
                self.done += len(asked)


def test_h2_load(daemon, port):
    one = daemon({**one_app(BY_NAME["asgi"], port, processes=2), **limits(5)})
    one.wait_running("app")
    with H2Load(port, n=3) as load:
        for _ in range(5 if scalws.LONG else 2):
            load.wait_done(30)
            one.ok("upgrade")
        load.wait_done(30)
    assert not load.failed, load.failed[:3]
