"""What an app is given and what not: identity, limits, descriptors, signals;
and that its neighbours cannot reach it."""
import json
import os
import pwd
import re
import signal
import socket
import subprocess
import time

import pytest

import scalws
from runtimes import BY_NAME, one_app
from scalws import alive, descendants, get, wait_for

ME = """
import ctypes, json, os, resource, signal, time
status = dict(line.rstrip("\\n").split(":\\t", 1)
              for line in open("/proc/self/status") if ":\\t" in line)
old = os.umask(0)
fds = {}
for name in os.listdir("/proc/self/fd"):
    try:
        fds[name] = os.readlink("/proc/self/fd/" + name)
    except OSError:
        pass
print("me " + json.dumps({
    "uid": os.getresuid(), "gid": os.getresgid(), "groups": os.getgroups(),
    "umask": old, "cwd": os.getcwd(), "nice": os.nice(0), "fds": fds,
    "limits": {n: resource.getrlimit(getattr(resource, "RLIMIT_" + n.upper()))
               for n in ("nofile", "nproc", "core", "as", "data", "stack",
                         "fsize", "memlock", "cpu")},
    "blocked": status["SigBlk"], "ignored": status["SigIgn"],
    "nnp": status["NoNewPrivs"], "env": dict(os.environ),
    "pgid": os.getpgid(0) == os.getpid(), "stdin": os.readlink(
        "/proc/self/fd/0")}), flush=True)
time.sleep(1000)
"""


def worker(text, **keys):
    place = scalws.scratch()
    (place / "app.py").write_text(text)
    return {"runtime": "command", "http": False, "directory": str(place),
            "command": ["/usr/bin/python3", "app.py"], **keys}


def told(one, name="app"):
    match = wait_for(lambda: re.search(r"\] me (\{.*\})", one.app_log(name)),
                     15)
    return json.loads(match[1])


def test_everything_an_app_is_given(daemon):
    app = worker(ME, umask="027", nice=3, environment={"ONE": "1"}, limits={
        "nofile": "100:200", "core": 0, "stack": "4M", "memlock": "64K",
        "fsize": "1G", "cpu": 3600, "data": "2G", "as": "8G", "nproc": 500})
    if scalws.SLOW > 1:     # a sanitizer's memory does not fit
        del app["limits"]["as"], app["limits"]["data"]
    one = daemon({"apps": {"app": app}}, env={"SECRET_OF_OURS": "x"})
    me = told(one)
    if scalws.ROOT:
        user = pwd.getpwnam(scalws.APP_USER)
        assert set(me["uid"]) == {user.pw_uid}
        assert set(me["gid"]) == {user.pw_gid}
        assert sorted(me["groups"]) == sorted(
            os.getgrouplist(scalws.APP_USER, user.pw_gid))
    assert me["umask"] == 0o027 and me["nice"] == 3
    assert me["cwd"] == app["directory"]
    limits = me["limits"]
    assert limits["nofile"] == [100, 200] and limits["core"] == [0, 0]
    assert limits["stack"][0] == 4 << 20 and limits["memlock"][0] == 64 << 10
    assert limits["fsize"][0] == 1 << 30 and limits["cpu"][0] == 3600
    assert limits["nproc"][0] == 500
    if "as" in app["limits"]:
        assert limits["data"][0] == 2 << 30 and limits["as"][0] == 8 << 30
    # One is the directory that it reads itself.
    others = {n: to for n, to in me["fds"].items() if int(n) > 2}
    assert not others, others
    assert me["stdin"] == "/dev/null" and me["pgid"]
    assert int(me["blocked"], 16) == 0
    # Python itself ignores SIGPIPE and SIGXFSZ.
    python = 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)
    assert int(me["ignored"], 16) & ~python == 0
    assert me["nnp"] == "1"
    assert me["env"]["ONE"] == "1"
    assert "SECRET_OF_OURS" not in me["env"]
    assert set(me["env"]) <= {"PATH", "HOME", "USER", "LOGNAME", "SHELL",
                              "LANG", "TZ", "ONE", "NOTIFY_SOCKET",
                              "LC_CTYPE"}


def test_only_the_named_descriptors(daemon, port):
    """uvicorn has 0, 1, 2, its listener, and what it opened itself."""
    one = daemon(one_app(BY_NAME["asgi"], port))
    pid, = one.wait_running("app")
    links = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        links[int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")
    assert links[0] == "/dev/null"
    assert links[1].startswith("pipe:") and links[2].startswith("pipe:")
    assert links[3].startswith("socket:")
    assert not any(str(one.dir) in to or "memfd" in to
                   for to in links.values()), links


SPY = """
import ctypes, json, os, sys, time
target = json.load(open("target.json"))
def attempt(what):
    try:
        return what()
    except OSError as error:
        return error.strerror
import socket
def connect(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
    return "connected"
libc = ctypes.CDLL(None, use_errno=True)
def trace(pid):
    if libc.ptrace(16, pid, 0, 0) == 0:     # PTRACE_ATTACH
        return "attached"
    return os.strerror(ctypes.get_errno())
print("spied " + json.dumps({
    "sockets": [attempt(lambda: connect(p)) for p in target["sockets"]],
    "control": attempt(lambda: connect(target["control"])),
    "logs": [attempt(lambda: open(p).read(1)) for p in target["logs"]],
    "list": attempt(lambda: os.listdir(target["run"])),
    "env": [attempt(lambda: open(f"/proc/{p}/environ").read(1))
            for p in target["pids"]],
    "memory": [attempt(lambda: open(f"/proc/{p}/mem").read(1))
               for p in target["pids"]],
    "trace": [trace(p) for p in target["pids"]],
    "kill": [attempt(lambda: os.kill(p, 0)) for p in target["pids"]],
}), flush=True)
time.sleep(1000)
"""


@pytest.mark.root
def test_apps_of_two_users_cannot_reach_each_other(daemon, port):
    """Nor the proxy, the keepers and the supervisor."""
    conf = one_app(BY_NAME["asgi"], port,
                   environment={"TOKEN": "secret-of-app"})
    spy = worker(SPY, user=scalws.OTHER_USER)
    one = daemon(conf)
    pid, = one.wait_running("app")
    proxy = one.proxy_pid()
    keepers = [p for p, (_, _, line) in scalws.process_table().items()
               if p in one.tree() and "keeper" in line]
    sockets = [str(p) for p in one.run.glob("app.*.sock")]
    assert sockets and keepers
    place = scalws.Path(spy["directory"])
    (place / "target.json").write_text(json.dumps({
        "sockets": sockets, "control": str(one.control), "run": str(one.run),
        "logs": [str(one.logs / "app.log"), str(one.access_log_path)],
        "pids": [pid, proxy, one.process.pid, *keepers]}))
    conf = dict(one.conf)
    conf["apps"]["spy"] = spy
    one.write(conf)
    one.ok("reload")
    match = wait_for(lambda: re.search(r"\] spied (\{.*\})",
                                       one.app_log("spy")), 20)
    found = json.loads(match[1])
    for what in ("sockets", "logs", "env", "memory", "trace", "kill"):
        for result in found[what]:
            assert result in ("Permission denied",
                              "Operation not permitted"), (what, found)
    for what in ("control", "list"):
        assert found[what] in ("Permission denied",), (what, found)
    # No secret is to be seen by others, in `ps` or in a log.
    for line in (row[2] for row in scalws.process_table().values()):
        assert "secret-of-app" not in line
    assert "secret-of-app" not in one.log()


# --- trees and ends --------------------------------------------------------------

ORPHANS = """
import os, signal, sys, time
def grandchild():
    if os.fork(): return
    os.setsid()
    if os.fork(): os._exit(0)
    for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(s, signal.SIG_IGN)
    while True: time.sleep(1)
for _ in range(3): grandchild()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("made", flush=True)
while True: time.sleep(1)
"""


def test_deaf_grandchildren_are_gone_in_time(daemon):
    one = daemon({"apps": {"app": worker(ORPHANS, stop_timeout="1s")}})
    one.wait_running("app")
    wait_for(lambda: "made" in one.app_log("app"), 10)
    keeper = [p for p, (_, _, line) in scalws.process_table().items()
              if p in one.tree() and "keeper" in line]
    tree = set().union(*(descendants(p) for p in keeper))
    assert len(tree) >= 4
    began = time.monotonic()
    one.ok("stop", "app")
    took = time.monotonic() - began
    assert not any(alive(pid) for pid in tree)
    assert took < 1 + scalws.SLOW       # stop_timeout, and a second


FORKS = """
import os, time
for _ in range({n}):
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.wait()
print("forked all", flush=True)
time.sleep(1000)
"""


@pytest.mark.root
def test_as_pid_1_it_reaps_everything(daemon):
    """In a PID namespace of its own, as in a container."""
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc",
                           "true"], capture_output=True)
    if done.returncode != 0:
        pytest.skip("no PID namespaces here")
    n = 1000 if scalws.LONG else 300
    one = daemon({"apps": {"app": worker(FORKS.format(n=n))}},
                 command=["unshare", "--pid", "--fork", "--kill-child",
                          "--mount-proc"], start=False)
    one.start()
    wait_for(lambda: "forked all" in one.app_log("app"), 60)

    def zombies():
        table = scalws.process_table()
        below = descendants(one.process.pid, table)
        return [p for p in below if table[p][1] == "Z"]
    wait_for(lambda: not zombies(), 1)
    inside, = [p for p, (parent, _, _) in scalws.process_table().items()
               if parent == one.process.pid]
    # An orphan that nobody kept comes to PID 1 itself.
    subprocess.run(["nsenter", "-t", str(inside), "-p", "-m", "sh", "-c",
                    "for i in 1 2 3 4 5; do (sleep 0.1 &) ; done"], check=True)
    wait_for(lambda: not zombies() and not [
        row for row in scalws.process_table().values()
        if row[2].startswith("sleep 0.1")], 5)
    os.kill(inside, signal.SIGTERM)
    assert one.wait() == 0
    assert one.process.returncode == 0


# --- many at once -----------------------------------------------------------------

def test_thousand_signals_and_hundred_commands(daemon, port):
    """One consistent state afterwards; requests are answered all the time."""
    one = daemon(one_app(BY_NAME["http"], port, processes=2))
    one.wait_running("app")
    with scalws.Load(port, n=2, host="example.com", pause=0.02) as load:
        for i in range(1000):
            one.signal((signal.SIGHUP, signal.SIGUSR1)[i % 2])
        words = [("restart", "app"), ("status",), ("reload",),
                 ("scale", "app", "3"), ("scale", "app", "2"),
                 ("start", "app"), ("reopen",), ("reload", "--dry-run"),
                 ("logs", "app"), ("nonsense",)]

        def rubbish(i):
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(str(one.control))
                sock.sendall(os.urandom(3000) if i % 2 else b"\n" * 3000)

        def ask(i):
            if i % 10 == 9:
                rubbish(i)
                return 0
            return one.ctl(*words[i % len(words)]).returncode
        n = 100 if scalws.LONG else 40
        for at in range(0, n, 20):
            codes = scalws.parallel(20, lambda i, at=at: ask(at + i))
            assert all(code in (0, 1, 2) for code in codes), codes
        one.ok("scale", "app", "2")
        wait_for(lambda: len(one.pids("app")) == 2 and
                 len(one.instances("app")) == 2, 30)
        load.wait_done(20)
    assert not load.failed, load.failed[:3]
    assert one.app("app")["state"] == "running"


def cpu_seconds(*pids):
    """Of these processes and the children that they have waited for."""
    ticks = 0
    for pid in pids:
        stat = open(f"/proc/{pid}/stat").read()
        after = stat[stat.rindex(")") + 2:].split()
        ticks += sum(map(int, after[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def test_crash_loop_costs_little(daemon, port):
    """Less than 5 % of a core, from the first death on: supervisor, proxy, and
    the keepers with what they start. It harms nobody else."""
    one = daemon(one_app(BY_NAME["http"], port))
    one.wait_running("app")
    conf = dict(one.conf)
    conf["apps"]["bad"] = {"runtime": "command", "http": False,
                           "command": ["/bin/false"]}
    one.write(conf)
    mine = one.process.pid, one.proxy_pid()
    before, began = cpu_seconds(*mine), time.monotonic()
    one.ok("reload")
    while time.monotonic() - began < (60 if scalws.LONG else 6):
        assert get(port, host="example.com").status == 200
        time.sleep(0.5)
    share = (cpu_seconds(*mine) - before) / (time.monotonic() - began)
    assert one.app("bad")["restarts"] >= 1
    assert share < 0.05 * scalws.SLOW, share


# --- what the daemon leaves and says ----------------------------------------------

def test_failed_start_leaves_no_lock(daemon, port):
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        one = daemon({"sites": [{"listen": [f"127.0.0.1:{port}"], "routes": [
            {"path": "*", "respond": {"status": 200}}]}]}, start=False)
        one.expect_exit = 1
        one.spawn()
        assert one.wait() == 1
    assert list(one.run.iterdir()) == []
    one.expect_exit = 0
    one.start()
    one.stop()
    assert list(one.run.iterdir()) == []


def test_log_directory_that_is_none(daemon):
    file = scalws.scratch() / "file"
    file.write_text("")
    one = daemon({"log_directory": str(file), "apps": {
        "app": worker("")}}, start=False)
    one.expect_exit = 1
    one.spawn()
    assert one.wait() == 1
    assert f"cannot make {file}: Not a directory" in one.log()


def test_starts_are_logged_with_their_numbers(daemon, port):
    one = daemon(one_app(BY_NAME["http"], port))
    one.wait_running("app")
    assert re.search(r"app=app instance=[1-9]\d* down -> starting", one.log())
    assert "pid=0" not in one.log()
