"""Processes of the bench: started pinned, watched through /proc, stopped."""
import os
import signal
import subprocess
import time
from pathlib import Path

APP_USER = "nobody"
ROOT = os.geteuid() == 0


class Failure(Exception):
    """A server, an application or a tool did not do what it must."""


def start(argv, cores, log, env=None, fds=(), as_app=False, directory=None):
    """A Popen in a process group of its own, on `cores`, that inherits
    `fds` under their numbers. Not in a session of its own: the kernel shares
    a core out between sessions (autogroup), and a server that starts its
    applications would get one share for all."""
    user = {}
    if as_app and ROOT:
        user = {"user": APP_USER, "group": "nogroup", "extra_groups": []}

    def prepare():
        os.setpgid(0, 0)
        os.sched_setaffinity(0, cores)

    with open(log, "ab") as out:
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env,
            preexec_fn=prepare, pass_fds=tuple(fds), cwd=directory, **user)


def stop(process, how=signal.SIGTERM, timeout=20):
    """Signal it, wait, kill its group if it does not go."""
    if process.poll() is None:
        process.send_signal(how)
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def children():
    """parent pid -> [pid], of all processes."""
    below = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = Path("/proc", entry, "stat").read_text()
        except OSError:
            continue
        parent = int(stat[stat.rindex(")") + 2:].split()[1])
        below.setdefault(parent, []).append(int(entry))
    return below


def tree(pid):
    """The process and all below it."""
    below, found, todo = children(), [], [pid]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += below.get(pid, [])
    return found


def program(pid):
    try:
        return os.path.realpath(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


def role(pid):
    """What scalwsd says with --role; "" for its supervisor."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    for word in words:
        if word.startswith(b"--role="):
            return word[7:].decode()
    return ""


def cpu_us(pids):
    """Run time of all their threads by the scheduler's account."""
    total = 0
    for pid in pids:
        for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                total += int(path.read_text().split()[0])
            except OSError:
                pass
    return total / 1000


def memory(pids, key):
    """Bytes: Pss, Pss_Anon (of smaps_rollup) or VmHWM (of status),
    summed."""
    file = "status" if key.startswith("Vm") else "smaps_rollup"
    total = 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/{file}").read_text()
        except OSError:
            continue
        for line in text.splitlines():
            if line.startswith(key + ":"):
                total += int(line.split()[1]) * 1024
    return total


def wait_for(what, why, timeout=20):
    """The first true value of what()."""
    deadline = time.monotonic() + timeout
    while True:
        value = what()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure(f"not within {timeout} s: {why}")
        time.sleep(0.05)
