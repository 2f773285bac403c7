"""Upgrades at the worst moments: apps at their caps, binaries that do not
work, and an end in the middle."""
import os
import shlex
import signal
import subprocess

import pytest

import scalws
from runtimes import BY_NAME, one_app
from scalws import Client, get, wait_for
from test_php import Sampler
from test_upgrade import Traffic, binary, limits, replace, running_file

assert binary       # a fixture

CHILDREN, AT_A_TIME = 3, 2

# --- apps that count ------------------------------------------------------------

COUNTS_PHP = """<?php
function change(int $by): int {
	$file = fopen('%s/now', 'c+');
	flock($file, LOCK_EX);
	$now = (int)stream_get_contents($file) + $by;
	ftruncate($file, 0);
	rewind($file);
	fwrite($file, (string)$now);
	fclose($file);
	return $now;
}
$now = change(1);
for ($end = microtime(true) + 0.03; microtime(true) < $end;)
	usleep(1000);
change(-1);
header('Content-Type: text/plain');
echo "$now\\n";
"""
COUNTS_ASGI = """import asyncio
now = 0
async def app(scope, receive, send):
    global now
    now += 1
    seen = now
    await asyncio.sleep(0.03)
    now -= 1
    body = b"%d\\n" % seen
    await send({"type": "http.response.start", "status": 200, "headers": [
        (b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})
"""


class Counts(Traffic):
    """Its answers say how many requests the app had at that moment."""

    KINDS = [("GET", "/php", None), ("GET", "/asgi", None),
             ("POST", "/php", b"x" * 3000), ("POST", "/asgi", b"x" * 3000)]

    def __init__(self, port):
        super().__init__(port, 16, self.KINDS)
        self.most = {"/php": 0, "/asgi": 0}

    def one(self, client, method, target, body):
        answer = client.exchange(method, target, host=self.host, body=body)
        assert answer.status == 200, answer
        with self.lock:
            self.most[target] = max(self.most[target], int(answer.body))
        return answer.get("Connection") != "close"


def counting(port):
    place = scalws.scratch()
    place.chmod(0o777)
    (place / "php").mkdir()
    (place / "php/index.php").write_text(COUNTS_PHP % place)
    (place / "counts.py").write_text(COUNTS_ASGI)
    python = one_app(BY_NAME["asgi"], port)["apps"]["app"]
    return {"sites": [{"names": ["localhost"], "listen": [f"127.0.0.1:{port}"],
                       "routes": [{"path": "/php", "app": "php"},
                                  {"path": "*", "app": "asgi"}]}],
            "apps": {"php": {"runtime": "php", "root": str(place / "php"),
                             "children": CHILDREN},
                     "asgi": {**python, "directory": str(place),
                              "module": "counts:app",
                              "concurrency": AT_A_TIME}},
            **limits(4)}


def test_apps_at_their_caps(daemon, port, binary):
    """Five upgrades, and one to a binary that ends at once: never one request
    more than an app can take, by what the apps see; none fails; every process
    of theirs stays."""
    one = daemon(counting(port))
    pids = one.wait_running("php") + one.wait_running("asgi")
    good = binary.read_bytes()
    pool, = [path for path in one.run.rglob("php.*.sock")
             if "status" not in path.name]
    with Sampler(pool) as sampler, Counts(port) as load:
        for _ in range(5 if scalws.LONG else 1):
            load.wait_done(100)
            replace(binary, good)
            one.ok("upgrade", timeout=120)
            assert running_file(one) == os.stat(binary).st_ino
        load.wait_done(50)
        replace(binary, b"#!/bin/sh\nexit 3\n")
        done = one.ctl("upgrade", timeout=120)
        assert done.returncode == 1 and "exit code 3" in done.stderr
        load.wait_done(100)
    assert not load.failed, load.failed[:5]
    assert load.most == {"/php": CHILDREN, "/asgi": AT_A_TIME}
    # Not how long one waits there: a child may be late on a busy machine.
    assert sampler.most <= CHILDREN
    assert one.pids("php") + one.pids("asgi") == pids


# --- binaries that do not work --------------------------------------------------

def script(good, rehearsal, afterwards="exit 1"):
    """Behaves like `good` but for what is said here."""
    return f"""#!/bin/sh
real={shlex.quote(str(good))}
case "$*" in
*--rehearse*) {rehearsal} ;;
*) {afterwards} ;;
esac
""".encode()


def kept(binary):
    path = binary.with_name("good")
    path.write_bytes(binary.read_bytes())
    path.chmod(0o755)
    return path


def test_older_binary(daemon, port, binary):
    """Of another version of the state: refused with a clear line, and whatever
    is started meanwhile is of the version that runs."""
    one = daemon({**one_app(BY_NAME["asgi"], port), **limits(2)})
    pids, before, proxy = one.wait_running("app"), running_file(one), \
        one.proxy_pid()
    good = kept(binary)
    replace(binary, script(good, f"""
	sed 's/^scalws-state [0-9]*$/scalws-state 1/' /proc/self/fd/3 \\
		>{good}.state
	exec $real --rehearse=3 3<{good}.state"""))
    done = one.ctl("upgrade", timeout=120)
    assert done.returncode == 1
    assert "does not understand the state: it is of another version" in \
        done.stderr
    assert running_file(one) == before and one.proxy_pid() == proxy
    assert one.pids("app") == pids
    one.ok("reload")
    os.kill(proxy, signal.SIGKILL)
    assert get(port, timeout=20).status == 200
    one.ok("restart", "app")
    for pid in (one.proxy_pid(), scalws.process_table()[
            one.pids("app")[0]][0]):
        assert os.stat(f"/proc/{pid}/exe").st_ino == before
    replace(binary, good.read_bytes())
    one.ok("upgrade", timeout=120)


def ended(one, command=None, may_be_done=False):
    """Nothing of it is left, and the next one starts at once."""
    if command:
        _, said = command.communicate(timeout=20 * scalws.SLOW)
        if not may_be_done or command.returncode != 0:
            assert command.returncode == 3, said
            assert "went away before it was done" in said
    wait_for(lambda: not one.leftovers(), 15, "all is gone")
    one.start()
    one.wait_running("app")
    assert get(port_of(one)).status == 200
    assert not one.status()["proxy"]["draining_pid"]


def port_of(one):
    return one.addresses()[0][1]


def test_binary_that_dies_when_it_takes_over(daemon, port, binary):
    """It passes the rehearsal and is killed before it can look at anything:
    there is nobody who could go back."""
    one = daemon({**one_app(BY_NAME["asgi"], port), **limits(2)})
    one.wait_running("app")
    good = kept(binary)
    replace(binary, script(good, "exec $real --rehearse=3", "kill -KILL $$"))
    done = one.ctl("upgrade", timeout=60)
    assert done.returncode == 3
    assert one.wait() == -signal.SIGKILL
    replace(binary, good.read_bytes())
    ended(one)


def proxies(one):
    table = scalws.process_table()
    return [pid for pid in scalws.descendants(one.process.pid, table)
            if "--role=proxy" in table[pid][2]]


MOMENTS = {
    "rehearsal": lambda one: any(
        "sleep 1000" in line for line in
        (scalws.process_table().get(pid, (0, 0, ""))[2]
         for pid in scalws.descendants(one.process.pid))),
    "taken over": lambda one: b"--restore" in open(
        f"/proc/{one.process.pid}/cmdline", "rb").read(),
    "new proxy": lambda one: len(proxies(one)) == 2,
    "drain": lambda one: one.status()["proxy"]["draining_pid"],
}


@pytest.mark.parametrize("moment", list(MOMENTS) if scalws.LONG else
                         ["rehearsal", "new proxy"])
def test_killed_in_the_middle(daemon, port, binary, moment):
    """kill -9 of the supervisor: nothing is left, the next start works."""
    one = daemon({**one_app(BY_NAME["asgi"], port, processes=2), **limits(2)})
    one.wait_running("app")
    good = kept(binary)
    if moment == "rehearsal":
        replace(binary, script(good, "exec sleep 1000"))
    with Client(port) as idle:
        idle.exchange()
        command = subprocess.Popen(
            [scalws.scalwsctl(), "-c", str(one.file), "upgrade"],
            env=one.environment(leaks=False), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: MOMENTS[moment](one), 30, moment, every=0.001)
        one.signal(signal.SIGKILL)
        assert one.wait() == -signal.SIGKILL
        if moment == "drain":
            command.communicate()
            command = None
        if moment == "rehearsal":
            replace(binary, good.read_bytes())
        # The new proxy may be faster than we are.
        ended(one, command, may_be_done=moment == "new proxy")


# --- two things at once ---------------------------------------------------------

def test_reloads_meanwhile(daemon, port):
    """Each ends, or says clearly that it must be asked again; none fails
    otherwise, and the last one is in force."""
    one = daemon({**one_app(BY_NAME["asgi"], port), **limits(2)})
    pids = one.wait_running("app")
    with Traffic(port, 4) as load:
        for round_ in range(5 if scalws.LONG else 2):
            conf = one.conf
            conf["sites"][0]["routes"].insert(0, {
                "path": f"/new{round_}", "respond": {"body": "new"}})
            one.write(conf)
            done = scalws.parallel(3, lambda i: one.ctl(
                "upgrade" if i == 1 else "reload", timeout=120))
            assert done[1].returncode == 0, done[1].stderr
            for reload in done[0], done[2]:
                assert reload.returncode == 0 or \
                    "under way" in reload.stderr or \
                    "try again" in reload.stderr, reload.stderr
            one.ok("reload")
            assert get(port, f"/new{round_}").body == b"new"
        load.wait_done(20)
    assert not load.failed, load.failed[:5]
    assert one.pids("app") == pids
