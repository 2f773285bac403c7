"""Signals that were not meant for the daemon's processes, and those that were."""
import os
import signal
import threading
import time
from pathlib import Path

import pytest

import scalws
from runtimes import BY_NAME, one_app
from scalws import Client, get, wait_for

FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE,
          signal.SIGABRT, signal.SIGSYS, signal.SIGTRAP}
STOPS = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
ENDING = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT}
# 32 and 33 belong to the C library.
OTHERS = [n for n in range(1, signal.SIGRTMAX + 1) if n not in
          FAULTS | STOPS | ENDING | {signal.SIGKILL, 32, 33}]


def held(pid):
    """The signals that a process handles or ignores."""
    mask = 0
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(("SigIgn:", "SigCgt:")):
            mask |= int(line.split()[1], 16)
    return {n for n in range(1, 65) if mask >> (n - 1) & 1}


def processes(one):
    """The supervisor, the proxy, the only keeper."""
    keeper = scalws.process_table()[one.pids("app")[0]][0]
    return one.process.pid, one.proxy_pid(), keeper


def slow_request(port, one, seconds):
    client = Client(port)
    client.request("GET", f"/slow?s={seconds}")
    wait_for(lambda: one.app("app")["in_flight"] == 1, 10)
    return client


def test_signals_without_a_meaning_do_nothing(daemon, port):
    """Whoever of the daemon they are sent to; a request goes on."""
    one = daemon(one_app(BY_NAME["http"], port))
    pids = one.wait_running("app")
    supervisor, proxy, keeper = processes(one)
    client = slow_request(port, one, 1)
    for number in OTHERS:
        for pid in (supervisor, proxy, keeper):
            os.kill(pid, number)
    for number in ENDING | STOPS - {signal.SIGSTOP}:
        for pid in (proxy, keeper):
            os.kill(pid, number)
    assert client.response().status == 200
    client.close()
    assert get(port).status == 200
    assert processes(one) == (supervisor, proxy, keeper)
    assert one.pids("app") == pids
    dies_by = set(range(1, 65)) - FAULTS - STOPS - {
        signal.SIGKILL, signal.SIGCHLD, signal.SIGCONT, signal.SIGURG,
        signal.SIGWINCH, 32, 33}
    for pid in (supervisor, proxy, keeper):
        assert not dies_by - held(pid)
    if scalws.SLOW == 1:    # a sanitizer handles faults
        assert not FAULTS & (held(proxy) | held(supervisor))


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGTERM])
def test_a_stop_that_all_processes_hear_is_graceful(daemon, port, number):
    """As `systemctl kill` and `pkill -f scalwsd` send it."""
    one = daemon(one_app(BY_NAME["http"], port))
    one.wait_running("app")
    client = slow_request(port, one, 0.5)
    for pid in reversed(processes(one)):
        os.kill(pid, number)
    assert client.response().status == 200
    client.close()
    assert one.wait() == 0
    one.assert_nothing_left()


def test_signals_within_an_upgrade_do_nothing(daemon, port):
    """Not between exec and the new program's handlers either, nor to a proxy
    that is just being started."""
    one = daemon(one_app(BY_NAME["http"], port))
    pids = one.wait_running("app")
    stop = threading.Event()
    harmless = [signal.SIGUSR2, signal.SIGALRM, signal.SIGIO, signal.SIGRTMIN]

    def storm():
        while not stop.is_set():
            for pid, (parent, _, _) in scalws.process_table().items():
                if pid == one.process.pid or parent == one.process.pid:
                    for number in harmless:
                        try:
                            os.kill(pid, number)
                        except ProcessLookupError:
                            break
            time.sleep(0.001)
    thread = threading.Thread(target=storm)
    thread.start()
    try:
        for _ in range(5 if scalws.LONG else 1):
            one.ok("upgrade")
            assert get(port).status == 200
            # Its drain ends before the next one may begin.
            wait_for(lambda: len([
                line for parent, _, line in scalws.process_table().values()
                if parent == one.process.pid and "--role=proxy" in line]) == 1,
                20)
    finally:
        stop.set()
        thread.join()
    assert one.pids("app") == pids
    assert get(port).status == 200
