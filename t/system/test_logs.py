"""The apps' logs: no line lost or doubled, none waited for, and who misses
lines is told."""
import os
import re
import shutil
import subprocess
import threading
import time

import pytest

import scalws
from runtimes import BY_NAME, one_app
from scalws import alive, get, wait_for

LINES = 1000000 if scalws.LONG else 60000
STAMP = re.compile(r"^\S+Z \[\d+\] ")


def worker(text, **keys):
    place = scalws.scratch()
    (place / "app.py").write_text(text)
    return {"runtime": "command", "http": False, "directory": str(place),
            "command": ["/usr/bin/python3", "app.py"], **keys}


def bare(app, **keys):
    return {"apps": {"app": app}, **keys}


def lines_of(one, name="app"):
    """Of all files, oldest first, without time and pid."""
    files = sorted(one.logs.glob(f"{name}.log.*"),
                   key=lambda p: -int(p.suffix[1:]))
    text = "".join(p.read_text() for p in [*files, one.logs / f"{name}.log"]
                   if p.exists())
    return [STAMP.sub("", line) for line in text.splitlines()]


def numbers(one):
    return [int(line[2:]) for line in lines_of(one) if line.startswith("n ")]


COUNT = """
import os, sys, time
time.sleep(0.3)
out = os.fdopen(1, "w", buffering=1 << 16)
for i in range({n}):
    out.write(f"n {{i}}\\n")
out.write("all\\n")
out.flush()
time.sleep(1000)
"""


def test_ten_rotations_lose_and_double_nothing(daemon):
    size = LINES * 36 // 11
    one = daemon(bare(worker(COUNT.format(n=LINES),
                             log={"max_bytes": size, "keep": 40})))
    wait_for(lambda: lines_of(one)[-1:] == ["all"], 120, every=0.5)
    assert numbers(one) == list(range(LINES))
    assert len(list(one.logs.glob("app.log.*"))) >= 10
    for path in one.logs.glob("app.log.*"):
        assert path.stat().st_size <= size


@pytest.mark.parametrize("how", ["command", "signal"])
def test_reopen_loses_nothing(daemon, how):
    """Somebody else renames the file and asks for a new one, ten times: our
    own rotation, which would use the same names, is off."""
    slowly = COUNT.replace(
        "out.write(f", "if i % 1000 == 0: time.sleep(0.1)\n    out.write(f")
    one = daemon(bare(worker(slowly.format(n=LINES), log={"max_bytes": 0})))
    log = one.logs / "app.log"
    for i in range(10, 0, -1):
        wait_for(lambda: log.exists() or lines_of(one)[-1:] == ["all"], 20)
        if not log.exists():
            break       # the machine is slow: it has printed all
        log.rename(one.logs / f"app.log.{i}")
        if how == "command":
            assert one.ok("reopen") == "logs reopened\n"
        else:
            one.signal(10)
    assert i < 9
    wait_for(lambda: lines_of(one)[-1:] == ["all"], 120, every=0.5)
    assert sorted(numbers(one)) == list(range(LINES))


def test_follow_sees_each_line_once(daemon):
    """Across rotations and restarts."""
    text = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *a: sys.exit(0))
me = os.getpid()
for i in range(100000):
    print(f"n {me} {i}", flush=True)
    time.sleep(0.001)
"""
    one = daemon(bare(worker(text, log={"max_bytes": 8192, "keep": 3})))
    one.wait_running("app")
    follower = subprocess.Popen(
        [scalws.scalwsctl(), "-s", str(one.control), "logs", "-f", "-n", "1",
         "app"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=one.environment())
    seen = []
    reader = threading.Thread(
        target=lambda: seen.extend(follower.stdout), daemon=True)
    scalws.Helper.pids.add(follower.pid)
    reader.start()
    try:
        wait_for(lambda: len(seen) > 200, 30)
        one.ok("restart", "app")
        new, = one.pids("app")
        wait_for(lambda: sum(f" {new} " in line for line in seen) > 200, 30)
    finally:
        follower.kill()
        follower.wait()
        scalws.Helper.pids.discard(follower.pid)
    reader.join(5)
    counts = {}
    for line in list(seen)[1:-1]:
        match = re.search(r"\] n (\d+) (\d+)$", line.rstrip("\n"))
        if match:
            counts.setdefault(match[1], []).append(int(match[2]))
    assert len(counts) >= 2
    for which, got in counts.items():
        assert got == list(range(got[0], got[0] + len(got))), which


def test_age(daemon):
    """Rotated by age, and removed by age."""
    text = """
import time
for i in range(1000):
    print("n", i, flush=True)
    time.sleep(0.2)
"""
    one = daemon(bare(worker(text, log={"max_age": "2s", "keep": 9})))
    wait_for((one.logs / "app.log.1").exists, 30)
    old = one.logs / "app.log.9"
    old.write_text("ancient\n")
    os.utime(old, (1, 1))
    wait_for(lambda: not old.exists() or "ancient" not in old.read_text(), 30)
    assert numbers(one)[:5] != []


def test_nobody_waits_for_a_flood(daemon, port):
    """100 MiB without pause, binary, a megabyte without newline: the other app
    and scalwsctl answer meanwhile."""
    mib = 100 if scalws.LONG else 20
    text = f"""
import os, sys
block = bytes(range(256)) * 4096
os.write(1, b"x" * (1 << 20) + b"\\n")
for _ in range({mib}):
    os.write(1, block)
os.write(1, b"\\nall\\n")
import time
time.sleep(1000)
"""
    conf = one_app(BY_NAME["asgi"], port)
    conf["apps"]["flood"] = worker(text, log={"max_bytes": "4M", "keep": 2})
    one = daemon(conf)
    one.wait_running("app")
    slowest = 0

    def done():
        nonlocal slowest
        began = time.monotonic()
        assert get(port, host="example.com").status == 200
        slowest = max(slowest, time.monotonic() - began)
        data = (one.logs / "flood.log")
        return data.exists() and data.read_bytes().endswith(b"] all\n")
    wait_for(done, 120, every=0.1)
    assert slowest < 5 * scalws.SLOW
    assert scalws.rss_kib(one.process.pid) < 400 * 1024


def test_lost_lines_are_counted(daemon):
    """No space (here: a limit on file sizes): the app does not wait, what is
    lost is told where it is missed, and in the daemon's log."""
    text = """
import os, time
for i in range(4000):
    os.write(1, b"n %d %s\\n" % (i, b"x" * 100))
os.write(1, b"printed all\\n")
while not os.path.exists("go"):
    time.sleep(0.05)
os.write(1, b"n after\\n")
time.sleep(1000)
"""
    app = worker(text, log={"max_bytes": 0})
    one = daemon(bare(app, access_log="none"), start=False)
    one.command = ["/usr/bin/prlimit", "--fsize=100000:100000"]
    one.start()
    one.wait_log("cannot write.*lines of the app are lost", 30)
    one.wait_running("app")
    log = one.logs / "app.log"
    kept = len(re.findall(r"(?m)^\S+ \[\d+\] n ", log.read_text()))
    log.rename(one.logs / "app.log.1")
    one.ok("reopen")
    (scalws.Path(app["directory"]) / "go").write_text("")
    wait_for(lambda: log.exists() and "n after" in log.read_text(), 20)
    told = re.search(r"scalwsd: (\d+) lines were lost here", log.read_text())
    lost = int(told[1])
    assert lost > 0 and abs(4000 - kept - lost) <= 3
    assert alive(one.process.pid)


def test_reopen_makes_the_directory_again(daemon, port):
    """As the start did; what is then written is there."""
    one = daemon(one_app(BY_NAME["http"], port))
    one.wait_running("app")
    before = one.logs.stat()
    shutil.rmtree(one.logs)
    assert one.ok("reopen") == "logs reopened\n"
    after = one.logs.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == \
        (before.st_mode, before.st_uid, before.st_gid)
    assert get(port, "/?seen").status == 200
    wait_for(lambda: any("/?seen" in line for line in one.access_log()), 10)
    one.ok("restart", "app")
    assert "scalwsd: pid" in one.app_log("app")


@pytest.mark.parametrize("how", ["command", "signal"])
def test_reopen_says_what_it_could_not(daemon, port, how):
    """And goes on where it was; afterwards by itself in the right file."""
    conf = one_app(BY_NAME["http"], port)
    place = scalws.scratch()
    os.chmod(place, 0o777)
    (place / "logs").mkdir()
    conf["apps"]["app"]["log"] = {"file": str(place / "logs" / "app.log")}
    conf["sites"][0]["access_log"] = str(place / "logs" / "site.log")
    one = daemon(conf)
    one.wait_running("app")
    one.ok("restart", "app")
    wait_for(lambda: (place / "logs/app.log").exists(), 10)
    (place / "logs").rename(place / "gone")
    (place / "logs").write_text("in the way")
    if how == "command":
        done = one.ctl("reopen")
        assert done.returncode == 1 and "logs reopened" not in done.stdout
        for name in ("app.log", "site.log"):
            assert re.search(f"{place}/logs/{name}.*Not a directory",
                             done.stderr), done.stderr
    else:
        one.signal(10)
        one.wait_log("not all logs were reopened")
    for name in ("app.log", "site.log"):
        one.wait_log(f"{place}/logs/{name}.*Not a directory")
    assert get(port, "/?still").status == 200
    wait_for(lambda: "/?still" in (place / "gone/site.log").read_text(), 10)
    one.ok("restart", "app")
    wait_for(lambda: (place / "gone/app.log").read_text()
             .count("scalwsd: pid") == 2, 10)
    (place / "logs").unlink()
    (place / "logs").mkdir()
    one.ok("restart", "app")
    wait_for(lambda: (place / "logs/app.log").exists(), 10)
    assert one.ok("reopen") == "logs reopened\n"


def test_logs_that_cannot_be_shown(daemon):
    """A FIFO is an error, a file that is not there a word."""
    place = scalws.scratch()
    os.mkfifo(place / "fifo.log")
    silent = {"runtime": "command", "http": False, "directory": "/tmp",
              "command": ["/bin/sleep", "1000"]}
    one = daemon({"apps": {
        "fifo": {**silent, "log": {"file": str(place / "fifo.log")}},
        "silent": silent, "talks": worker("""
import time
print("a word", flush=True)
time.sleep(1000)
""")}})
    done = one.ctl("logs", "fifo")
    assert done.returncode == 1
    assert f"{place}/fifo.log: it is no regular file" in done.stderr
    done = one.ctl("logs", "silent")
    assert (done.returncode, done.stdout) == (0, "")
    assert f"no log file yet: {one.logs}/silent.log" in done.stderr
    wait_for(lambda: "a word" in one.app_log("talks"), 10)
    done = one.ctl("logs", "talks")
    assert done.stdout.endswith("a word\n") and done.stderr == ""
    (one.logs / "talks.log").unlink()
    done = one.ctl("logs", "talks")
    assert (done.returncode, done.stdout) == (0, "")
    assert "talks.log" in done.stderr and "scalwsctl reopen" in done.stderr
    done = one.ctl("reopen")
    assert done.returncode == 1 and "fifo.log" in done.stderr
    done = one.ctl("logs", "talks")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
