"""A cgroup for each instance, where cgroup v2 may be used: what escapes the
keeper does not escape it."""
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

import scalws
from runtimes import BY_NAME, one_app
from scalws import alive, get, wait_for
from test_logs import bare, worker


def own_cgroup():
    """The directory of ours, or why there is none to be used."""
    mounts = [line.split() for line in
              Path("/proc/self/mountinfo").read_text().splitlines()
              if " - cgroup2 " in line]
    own = re.search(r"^0::(/.*)$", Path("/proc/self/cgroup").read_text(), re.M)
    if not mounts or not own:
        return None, "no cgroup v2 here"
    place = Path(mounts[0][4] + own[1])
    probe = place / f"probe-{os.getpid()}"
    try:
        probe.mkdir()
    except OSError as error:
        return None, f"{place}: {error.strerror}"
    usable = (probe / "cgroup.kill").exists()
    probe.rmdir()
    return (place, "") if usable else (None, "no cgroup.kill")


QUICK = {"limits": {"drain_timeout": "1s"}}
PLACE, REASON = own_cgroup()
needs_cgroups = pytest.mark.skipif(PLACE is None, reason=REASON)


def home_of(one):
    st = os.stat(one.run)
    return PLACE / f"scalws-{st.st_dev:x}-{st.st_ino:x}"


def cgroups(home):
    return {p.name for p in home.iterdir() if p.is_dir()} \
        if home.exists() else set()


def members(home):
    return {int(pid) for p in home.glob("*/cgroup.procs")
            for pid in p.read_text().split()}


@needs_cgroups
def test_each_instance_has_one(daemon, port):
    """Of its own, with all that it starts; gone with it, in an upgrade too."""
    one = daemon({**one_app(BY_NAME["flask"], port, processes=2), **QUICK})
    one.wait_running("app")
    home = home_of(one)
    for turn in range(3):
        pids = one.pids("app")
        assert len(cgroups(home)) == 2
        table = scalws.process_table()
        inside = members(home)
        for pid in pids:
            name = f"app.{table[pid][0]}"
            mine = set((home / name / "cgroup.procs").read_text().split())
            assert {str(p) for p in {pid} | scalws.descendants(pid)} == mine
        assert one.process.pid not in inside
        assert one.proxy_pid() not in inside
        one.ok(*[("upgrade",), ("restart", "app"), ("status",)][turn],
               timeout=120)
        if turn == 0:
            assert one.pids("app") == pids
    one.ok("stop", "app")
    assert cgroups(home) == set()
    assert get(port, host="example.com").status == 503
    one.stop()
    assert not home.exists()


FORKS = """
import os, signal, time
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(s, signal.SIG_IGN)
print("forks", flush=True)
me = os.getpid()
while True:
    # Each has one child and ends: nobody is there for long.
    try:
        pid = os.fork()
    except OSError:
        continue
    if os.getpid() == me:
        os.waitpid(pid, 0) if pid else None
        time.sleep(0.05)
    elif pid:
        os._exit(0)
    else:
        os.setsid()
        time.sleep(0.0005)
"""


@needs_cgroups
def test_those_that_fork_away_are_caught(daemon):
    """Chains of processes that fork and end, each in a session of its own."""
    one = daemon(bare(worker(FORKS, stop_timeout="200ms",
                             limits={"nproc": 400})))
    one.wait_running("app")
    home = home_of(one)
    wait_for(lambda: len(members(home)) >= 5, 20)
    one.ok("stop", "app")
    assert cgroups(home) == set()
    assert one.app("app")["state"] == "stopped"


ORPHAN = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
print("made", flush=True)
time.sleep(1000)
"""


@needs_cgroups
def test_next_start_ends_what_nobody_kept(daemon):
    """Supervisor and keepers are killed at once: the next daemon ends the
    tree, and keepers that live are left alone."""
    one = daemon(bare(worker(ORPHAN, stop_timeout="1s"), **QUICK))
    one.wait_running("app")
    home = home_of(one)
    wait_for(lambda: "made" in one.app_log("app") and
             len(members(home)) >= 2, 10)
    inside = members(home)
    keepers = [pid for pid, (_, _, line) in scalws.process_table().items()
               if pid in one.tree() and "--role=keeper" in line]
    one.process.send_signal(signal.SIGSTOP)
    for pid in keepers:
        os.kill(pid, signal.SIGKILL)
    one.process.kill()
    one.wait(5)
    one.expect_exit = -signal.SIGKILL
    left = {pid for pid in inside if alive(pid)}
    assert left, "the orphans are to be found alive"
    second = daemon(one.file.read_text(), start=False)
    second.run, second.conf = one.run, one.conf
    second.start()
    wait_for(lambda: not any(map(alive, left)), 5)
    second.wait_running("app")
    assert len(cgroups(home)) == 1
    second.stop()
    assert not home.exists()


@needs_cgroups
def test_dead_keeper_of_a_living_daemon(daemon):
    one = daemon(bare(worker(ORPHAN)))
    pid, = one.wait_running("app")
    home = home_of(one)
    wait_for(lambda: len(members(home)) >= 2, 10)
    inside = members(home)
    os.kill(scalws.process_table()[pid][0], signal.SIGKILL)
    wait_for(lambda: not any(map(alive, inside)), 10)
    wait_for(lambda: one.pids("app") not in ([], [pid]), 20)
    wait_for(lambda: len(cgroups(home)) == 1, 10, "its own is removed")
    one.stop()
    assert not home.exists()


@pytest.mark.root
@pytest.mark.parametrize("how", ["read-only", "hidden"])
def test_where_they_may_not_be_used(daemon, port, how):
    """The keeper does without, and says so once."""
    mount = "mount -t tmpfs none /sys/fs/cgroup" if how == "hidden" else \
        "for m in $(awk '$3 == \"cgroup2\" {print $2}' /proc/self/mounts); " \
        "do mount -o remount,bind,ro $m; done"
    unshare = ["unshare", "--mount", "sh", "-c", f"{mount} && exec \"$@\"",
               "sh"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("no mount namespaces here")
    one = daemon(one_app(BY_NAME["asgi"], port), command=unshare)
    pid, = one.wait_running("app")
    assert get(port, host="example.com").status == 200
    assert len(re.findall("keepers do without", one.log())) == 1
    if PLACE:
        assert not home_of(one).exists()
    one.ok("stop", "app")
    assert not alive(pid)
