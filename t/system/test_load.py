"""Nothing fails while things change: restarts, reloads, crashes and the death
of the proxy under a steady load at about half of what the app can do. What is
asked twenty times in the long form is asked once or twice otherwise."""
import contextlib
import os
import signal
import time

import pytest

import scalws
from load import SteadyLoad
from runtimes import (BY_NAME, FRAMEWORKS, one_app, skip_unless_possible,
                      uvicorn_has_uvloop)
from scalws import LONG, SLOW, get, wait_for
from test_websocket import Ws

TIMES = 20 if LONG else 2
# Requests a second: what answers many at a time, and what one at a time
# (4 processes, 0.06 s in the mean, half of that).
RATE = (300 if LONG else 80) / SLOW
ONE_AT_A_TIME_RATE = 30 / SLOW
# 2 processes of 8 threads take 267 a second of those, half of that again.
THREADS_RATE = min(RATE, 133 / SLOW)


def rate_of(case):
    if is_one_at_a_time(case):
        return ONE_AT_A_TIME_RATE
    return THREADS_RATE if case.name in ("flask", "django") else RATE


def is_one_at_a_time(case):
    return case.name in ("flask-sync", "php-front", "php-script")


def many(case):
    """Enough processes for the load."""
    if case.conf()["runtime"] == "php":
        return {"children": 4}
    return {"processes": 4 if is_one_at_a_time(case) else 2}


def start_time(one):
    """Seconds from start to running, now."""
    one.ok("stop", "app")
    began = time.monotonic()
    one.ok("start", "app")
    return time.monotonic() - began


@pytest.mark.parametrize("case, kind", [
    pytest.param(BY_NAME[name], kind, id=f"{name}-{kind}" if kind else name)
    for name, kind in (
        ("asgi", "asyncio"), ("asgi", "uvloop"), ("fastapi", None),
        ("flask", None), ("flask-sync", None), ("django", None),
        ("http", None), ("esm", None), ("express4", None),
        ("express5", None), ("fastify4", None), ("fastify5", None),
        ("php-front", None), ("command", None),
        *([("http", "handler")] if LONG else []))
    # The frameworks run on the same servers: in the long form.
    if LONG or name not in FRAMEWORKS])
def test_restart(daemon, port, case, kind):
    if kind == "uvloop" and not uvicorn_has_uvloop():
        pytest.skip("no uvloop")
    skip_unless_possible(case)
    more = {"script": "handler.js"} if kind == "handler" else \
        {"arguments": ["--loop", kind]} if kind else {}
    one = daemon(one_app(case, port, **many(case), **more))
    one.wait_running("app")
    longest = start_time(one) + 1
    with SteadyLoad(port, rate_of(case), case.prefix) as load:
        for _ in range(TIMES if LONG else 1):
            load.wait_done(20)
            before = one.pids("app")
            one.ok("restart", "app")
            assert not set(before) & set(one.pids("app"))
        load.wait_done(20)
    load.check()
    # A process that does one thing at a time may be at a request of 2 s.
    longest += 2 if is_one_at_a_time(case) else 0
    assert load.slowest < longest * SLOW


def sites(port, *more, routes=()):
    return [{"listen": [f"127.0.0.1:{port}", *more],
             "routes": [*routes, {"path": "/other/*", "app": "other"},
                        {"path": "/ws", "app": "ws"},
                        {"path": "*", "app": "app"}]}]


@pytest.fixture
def two(daemon, port, apps):
    """`app`, which must notice nothing, and `other`."""
    asgi = BY_NAME["asgi"]
    return daemon({"sites": sites(port), "apps": {
        "app": asgi.conf(processes=2), "other": asgi.conf(),
        "ws": asgi.conf(module="ws:app")}})


def test_reload(two, port):
    more = scalws.free_port()
    changes = [
        {"sites": sites(port, routes=[
            {"path": "/new", "respond": {"body": "new"}}])},
        {"sites": sites(port, f"127.0.0.1:{more}")},
        {"sites": sites(port)},
        {},
        {"apps": {**two.conf["apps"],
                  "other": BY_NAME["asgi"].conf(environment={"A": "1"})}},
    ]
    pids = two.wait_running("app")
    proxy = two.proxy_pid()
    with SteadyLoad(port, RATE) as load, Ws(port, "/ws") as ws:
        for number in range(20 if LONG else len(changes)):
            load.wait_done(20)
            change = changes[number % len(changes)]
            two.conf.update(change)
            two.write(two.conf)
            two.ok("reload")
            ws.echoes(f"after reload {number}")
            if f"127.0.0.1:{more}" in str(change):
                assert get(more).status == 200
        load.wait_done(20)
    load.check()
    assert two.pids("app") == pids and two.proxy_pid() == proxy


@pytest.mark.parametrize("broken", [
    'sites = (', 'sites = ( { listne = [ "1" ]; } );',
    'workers = 99999;', 'sites = ( { listen = [ "127.0.0.1:1x" ]; } );',
    'sites = ( { listen = [ "127.0.0.1:1" ]; routes = '
    '( { path = "*"; app = "none"; } ); } );'],
    ids=["syntax", "unknown key", "range", "address", "unknown app"])
def test_reload_of_a_broken_file(two, port, broken):
    pids = two.wait_running("app")
    with SteadyLoad(port, RATE) as load:
        load.wait_done(20)
        two.file.write_text(broken)
        done = two.ctl("reload")
        assert done.returncode == 1
        assert "scalws.conf:1" in done.stderr + done.stdout
        load.wait_done(20)
    load.check()
    assert two.pids("app") == pids


def not_in_flight(failed, deaths):
    """Those that had ended before, or began when the death was known."""
    return [f for f in failed
            if not any(f["began"] <= known and f["ended"] >= killed
                       for killed, known in deaths)]


def test_kill_9_of_one_of_two(two, port):
    """Only what was in flight on it may fail."""
    two.wait_running("app")
    deaths = []
    with SteadyLoad(port, RATE) as load:
        for _ in range(TIMES):
            load.wait_done(20)
            victim = two.wait_running("app", timeout=120)[0]
            killed = time.time()
            os.kill(victim, signal.SIGKILL)
            wait_for(lambda: victim not in two.pids("app"), 10, every=0.005)
            deaths.append((killed, time.time()))
        two.wait_running("app", timeout=120)
        load.wait_done(20)
    assert not not_in_flight(load.failed, deaths), load.failed


def test_kill_9_of_the_only_one(daemon, port):
    """What was in flight may fail; the rest waits and succeeds."""
    one = daemon(one_app(BY_NAME["http"], port))
    pids = one.wait_running("app")
    with SteadyLoad(port, RATE) as load:
        load.wait_done(20)
        killed = time.time()
        os.kill(pids[0], signal.SIGKILL)
        wait_for(lambda: one.pids("app") != pids, 10, every=0.005)
        known = time.time()
        one.wait_running("app")
        load.wait_done(20)
    assert not not_in_flight(load.failed, [(killed, known)]), load.failed


def test_kill_9_of_the_proxy(two, port):
    """Lost is what the dead proxy had accepted; nobody is refused."""
    pids = two.wait_running("app")
    deaths = []
    with SteadyLoad(port, RATE) as load:
        for _ in range(10 if LONG else 2):
            load.wait_done(20)
            victim = two.proxy_pid()
            killed = time.time()
            os.kill(victim, signal.SIGKILL)
            wait_for(lambda: proxy_of(two) != victim, 10, every=0.005)
            deaths.append((killed, time.time()))
            wait_for(lambda: proxy_of(two), 20)
            load.wait_done(20)
    assert not [f for f in load.failed if f["refused"]], load.failed
    assert not not_in_flight(load.failed, deaths), load.failed
    assert load.slowest < 1 + 2 * SLOW
    assert two.pids("app") == pids


def proxy_of(one):
    with contextlib.suppress(AssertionError):
        return one.status()["proxy"].get("pid")


@pytest.mark.parametrize("what", ["never ready", "exits"])
def test_restart_with_a_version_that_fails(daemon, port, what):
    case = BY_NAME["asgi"]
    one = daemon(one_app(case, port, processes=2))
    pids = one.wait_running("app")
    source = scalws.scratch() / "new.py"
    source.write_text("import time\nprint('the new version', flush=True)\n" +
                      ("time.sleep(1000)\n" if what == "never ready" else
                       "raise SystemExit('it is broken')\n"))
    with SteadyLoad(port, RATE) as load:
        load.wait_done(20)
        one.conf["apps"]["app"].update(directory=str(source.parent),
                                       module="new:app",
                                       start_timeout="8s")
        one.write(one.conf)
        done = one.ctl("reload")
        said = done.stdout + done.stderr
        assert done.returncode != 0, said
        assert "the new version" in said, said
        load.wait_done(20)
    load.check()
    assert one.pids("app") == pids
