"""Birth, death and everything between, of instances, proxy and supervisor."""
import json
import os
import re
import signal
import time

import pytest

import scalws
from runtimes import BY_NAME, one_app, parameters, skip_unless_possible
from scalws import Client, Closed, Load, get, wait_for


def misbehave(apps, *args, **keys):
    return {"runtime": "command", "directory": "/tmp",
            "command": [str(apps / "command/misbehave.py"), *args], **keys}


def serve(daemon, port, app, **keys):
    return daemon({"sites": [{"listen": [f"127.0.0.1:{port}"],
                              "routes": [{"path": "*", "app": "a"}]}],
                   "apps": {"a": app}, **keys})


def tree_of(daemon, pid):
    """Everything in the instance's own tree: its keeper and all below."""
    table = scalws.process_table()
    keeper = table[pid][0]
    assert keeper != daemon.process.pid, "an instance has a keeper"
    return {keeper} | scalws.descendants(keeper, table)


LIVELY = parameters("asgi", "flask", "http", "fastify4", "php-front",
                    "command")


@pytest.mark.parametrize("case", LIVELY)
def test_kill_9_of_an_instance(daemon, port, case):
    """Under load with two instances: what was in flight on it may fail,
    nothing else; it is back; its whole tree is gone."""
    skip_unless_possible(case)
    php = case.conf()["runtime"] == "php"
    conf = one_app(case, port, **({} if php else {"processes": 2}))
    one = daemon(conf)
    pids = one.wait_running("app")
    proxy = one.proxy_pid()
    clients = 8
    with Load(port, clients, case.path("/slow?s=0.02")) as load:
        load.wait_done(50)
        victim = pids[0]
        tree = tree_of(one, victim)
        began = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda: victim not in one.pids("app") and
                 len(one.pids("app")) == len(pids), 15, "it is back")
        took = time.monotonic() - began
        load.wait_done(100)
    # A client has one request at a time, so at most that many were on it.
    assert len(load.failed) <= clients, load.failed[:5]
    for failure in load.failed:
        assert getattr(failure, "status", 502) == 502, failure
    assert took < 10 * scalws.SLOW
    assert load.slowest < 10 * scalws.SLOW
    wait_for(lambda: not any(map(scalws.alive, tree)), 5,
             f"the tree {tree} is gone")
    assert one.proxy_pid() == proxy
    assert set(pids[1:]) <= set(one.pids("app"))
    app = one.app("app")
    assert app["restarts"] == 1
    assert "9" in app["last_exit"] or "KILL" in app["last_exit"]
    assert re.search(rf"{victim}.*(signal 9|SIGKILL|Killed)", one.log())


@pytest.mark.parametrize("processes", [1, 2] if scalws.LONG else [1])
def test_what_a_dead_process_never_took_is_repeated(daemon, port, processes):
    """Its socket takes connections as long as nobody has noticed: here the
    keeper sleeps meanwhile. The app saw none of these requests, so even a
    POST goes to another process, and its client only waits."""
    one = daemon({"workers": 2, **one_app(BY_NAME["http"], port,
                                          processes=processes)})
    victim = one.wait_running("app")[0]
    keeper = scalws.process_table()[victim][0]
    clients = [Client(port) for _ in range(8)]
    try:
        os.kill(keeper, signal.SIGSTOP)
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda: not scalws.alive(victim), 5)
        for i, client in enumerate(clients):
            if i % 2:
                client.request("POST", f"/echo?{i}", body=b"x" * 5000)
            else:
                client.request("GET", f"/echo?{i}")
        wait_for(lambda: one.app("app")["in_flight"] >= (2 if processes > 1
                                                 else len(clients)), 10)
    finally:
        os.kill(keeper, signal.SIGCONT)
    for i, client in enumerate(clients):
        seen = client.response().json()
        assert seen["query"] == str(i)
        assert seen["body_length"] == (5000 if i % 2 else 0)
        client.close()
    assert victim not in one.wait_running("app")


def test_requests_in_flight_at_a_crash_are_named(daemon, port, apps):
    """With the pid and the signal."""
    one = serve(daemon, port, misbehave(apps))
    pid = one.wait_running("a")[0]
    with Client(port) as client:
        client.request("GET", "/hang")
        # Before it has read it, it is not the one that it was asked of.
        wait_for(lambda: "hangs" in one.app_log("a"), 10)
        os.kill(pid, signal.SIGSEGV)
        assert client.response().status == 502
    one.wait_log(rf"/hang.*\b{pid}\b|\b{pid}\b.*/hang", 5)
    one.wait_running("a")


@pytest.mark.parametrize("load", [False, True], ids=["idle", "load"])
def test_kill_9_of_the_proxy(daemon, port, load):
    """Apps keep their pids, listeners stay, service is back within 1 s."""
    one = daemon(one_app(BY_NAME["asgi"], port, processes=2))
    pids = one.wait_running("app")
    time.sleep(0)
    running = Load(port, 4, "/") if load else None
    if running:
        running.__enter__()
        running.wait_done(100)
    old = one.proxy_pid()
    began = time.monotonic()
    os.kill(old, signal.SIGKILL)
    # The listener goes on queuing: this must not be refused.
    answer = get(port, timeout=10)
    took = time.monotonic() - began
    assert answer.status == 200
    assert took < 1.0 * scalws.SLOW, took
    if running:
        running.wait_done(50)
        running.__exit__()
        for failure in running.failed:
            assert not isinstance(failure, ConnectionRefusedError)
        assert len(running.failed) <= 4, running.failed[:8]
    assert one.pids("app") == pids
    assert one.proxy_pid() != old
    assert one.status()["proxy"]["restarts"] == 1


def test_proxy_that_dies_again_and_again(daemon, port):
    """The site is never down for long: after the first time a second."""
    one = daemon(one_app(BY_NAME["asgi"], port))
    pids = one.wait_running("app")
    for _ in range(4):
        pid = one.proxy_pid()
        began = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        assert get(port, timeout=60).status == 200
        assert time.monotonic() - began < 1 + 1.5 * scalws.SLOW
        assert one.proxy_pid() != pid
    assert one.pids("app") == pids


def test_stop_leaves_nothing(daemon, port, apps):
    """Children, setsid children, double forks, all deaf to SIGTERM."""
    one = serve(daemon, port,
                misbehave(apps, "--stubborn", "--children",
                          stop_timeout="1s"))
    pid = one.wait_running("a")[0]
    tree = wait_for(lambda: len(t := tree_of(one, pid)) >= 5 and t, 5)
    one.ok("stop", "a")
    assert not [p for p in tree if scalws.alive(p)]
    answer = get(port)
    assert answer.status == 503 and b"stopped" in answer.body
    assert not [line for line in (v[2] for v in
                                  scalws.process_table().values())
                if "misbehave.py" in line and str(apps) in line]
    one.ok("start", "a")
    assert get(port).status == 200


def test_end_of_the_daemon_leaves_nothing(daemon, port, apps):
    one = serve(daemon, port,
                misbehave(apps, "--stubborn", "--children",
                          stop_timeout="1s"))
    one.wait_running("a")
    one.stop()


def test_second_signal_ends_it_at_once(daemon, port, apps):
    one = serve(daemon, port,
                misbehave(apps, "--stubborn", "--children",
                          stop_timeout="100s"))
    one.wait_running("a")
    one.expect_exit = None
    one.signal(signal.SIGTERM)
    one.wait_log("(?i)stop|drain|SIGTERM", 5)
    time.sleep(0.3)
    assert one.process.poll() is None
    one.signal(signal.SIGTERM)
    one.wait(5)
    one.assert_nothing_left()
    one.expect_exit = one.process.returncode


def test_signal_sent_twice_is_one_wish(daemon, port, apps):
    """timeout(1) signals a process and then its group: still a clean stop."""
    one = serve(daemon, port, misbehave(apps))
    one.wait_running("a")
    one.signal(signal.SIGTERM)
    one.signal(signal.SIGTERM)
    one.wait(20)
    assert "stopping at once" not in one.log()
    one.assert_nothing_left()


def test_kill_9_of_the_supervisor(daemon, port, apps):
    """Listeners are free at once, apps and proxy end, a new one can start."""
    one = serve(daemon, port, misbehave(apps, "--stubborn", "--children",
                                        stop_timeout="1s"))
    one.wait_running("a")
    one.process.kill()
    one.wait(5)
    one.expect_exit = -signal.SIGKILL
    # With no new start: stop_timeout, and a second.
    wait_for(lambda: not one.leftovers(), 1 / scalws.SLOW + 1,
             "nothing is left of a killed supervisor")
    second = daemon(one.file.read_text(), start=False)
    second.run = one.run
    second.conf = one.conf
    second.start()
    second.wait_running("a")
    assert get(port).status == 200


def test_kill_9_of_a_keeper(daemon, port, apps):
    """What it kept is ended too, and a new one comes."""
    one = serve(daemon, port, misbehave(apps, "--children"))
    pid = one.wait_running("a")[0]
    tree = tree_of(one, pid)
    keeper = scalws.process_table()[pid][0]
    os.kill(keeper, signal.SIGKILL)
    wait_for(lambda: one.pids("a") and one.pids("a") != [pid], 20)
    wait_for(lambda: not any(map(scalws.alive, tree)), 10,
             f"the tree of the dead keeper is gone: {tree}")
    assert get(port).status == 200


@pytest.mark.parametrize("what", ["module", "script", "interpreter", "exit"])
def test_one_bad_app_harms_no_other(daemon, port, apps, what):
    """Every other site serves; status and log say why, in its own words."""
    bad = {
        "module": {"runtime": "python", "python": "/usr/bin/python3",
                   "directory": str(apps / "python"), "module": "bad:app"},
        "script": {"runtime": "node", "directory": str(apps / "node"),
                   "script": "bad.js"},
        "interpreter": {"runtime": "command", "directory": "/tmp",
                        "command": ["/bin/sh", "-c",
                                    "echo about to fail; exit 127"]},
        "exit": misbehave(apps, "--exit", "3"),
    }[what]
    words = {"module": "the database is on fire",
             "script": "the database is on fire",
             "interpreter": "about to fail",
             "exit": "last words on stderr"}[what]
    one = daemon({
        "sites": [{"listen": [f"127.0.0.1:{port}"], "routes": [
            {"path": "/bad", "app": "bad"},
            {"path": "/fixed", "respond": {"status": 200, "body": "x"}},
            {"path": "*", "app": "good"}]}],
        "apps": {"bad": dict(bad, queue_timeout="1s"),
                 "good": misbehave(apps)}})
    one.wait_running("good")
    wait_for(lambda: one.app("bad")["state"] == "backoff", 20)
    assert get(port, "/").status == 200
    assert get(port, "/fixed").status == 200
    answer = get(port, "/bad")
    assert answer.status == 503 and answer.get("Retry-After")
    assert words in one.ctl("status", "bad").stdout
    assert words in one.log()
    assert words in one.app_log("bad")
    done = one.ctl("start", "bad")
    assert done.returncode == 1
    assert words in done.stdout + done.stderr
    assert get(port, "/").status == 200


def test_backoff_doubles(daemon, port, apps):
    """1 s, 2 s, 4 s between tries, and 503 at once while it is long."""
    one = serve(daemon, port, misbehave(apps, "--exit", "1",
                                        queue_timeout="2s"))
    starts = wait_for(
        lambda: (n := one.app_log("a").count("first words")) >= 4 and n, 20)
    assert starts >= 4
    times = []

    def count():
        n = one.app_log("a").count("first words")
        while len(times) < n:
            times.append(time.monotonic())
        return len(times) >= 5
    wait_for(count, 30, every=0.05)
    assert times[-1] - times[-2] > 3
    began = time.monotonic()
    answer = get(port)
    assert answer.status == 503
    assert int(answer.get("Retry-After")) >= 1
    assert time.monotonic() - began < 1.5   # not the 2 s of the queue
    # The page says what is the matter, in the client's language.
    for accept, kind in (("text/html,*/*;q=0.8", "text/html"),
                         ("application/json", "application/json")):
        page = get(port, headers={"Accept": accept})
        assert page.status == 503 and b"start" in page.body, page
        assert page.get("Content-Type").startswith(kind)
        if kind == "application/json":
            assert json.loads(page.body)["status"] == 503


def test_crash_after_min_uptime_is_restarted_at_once(daemon, port, apps):
    one = serve(daemon, port, misbehave(apps, min_uptime="100ms"))
    for _ in range(4):
        pid = one.wait_running("a")[0]
        time.sleep(0.15)
        began = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        # Until its end is noticed a request may still be sent to it.
        wait_for(lambda: pid not in one.pids("a"), 5)
        assert get(port).status == 200      # waits for the new one
        assert time.monotonic() - began < 2.0 * scalws.SLOW


def test_failed_start_of_a_restart_leaves_the_old_one(daemon, port):
    """A new version that does not come up changes nothing."""
    case = BY_NAME["asgi"]
    directory = scalws.scratch()
    (directory / "main.py").write_text("from plain import app\n")
    source = scalws.apps_directory() / "python"
    for name in ("plain.py", "common.py"):
        (directory / name).write_text((source / name).read_text())
    one = daemon(one_app(case, port, directory=str(directory),
                         module="main:app"))
    pids = one.wait_running("app")
    (directory / "main.py").write_text("raise RuntimeError('new is bad')\n")
    with Load(port, 3) as load:
        load.wait_done(20)
        done = one.ctl("restart", "app")
        load.wait_done(20)
    assert done.returncode == 1
    assert "new is bad" in done.stdout + done.stderr
    assert not load.failed, load.failed[:3]
    assert one.pids("app") == pids
    (directory / "main.py").write_text("from plain import app\n")
    one.ok("restart", "app")
    assert one.pids("app") != pids


def test_long_requests_survive_a_restart(daemon, port, apps):
    one = serve(daemon, port, misbehave(apps))
    one.wait_running("a")
    with Client(port) as client:
        client.request("GET", "/slow?s=3")
        wait_for(lambda: one.app("a")["in_flight"] == 1, 5)
        one.ok("restart", "a")
        assert client.response().status == 200


def test_drain_of_the_daemon(daemon, port, apps):
    """SIGTERM: requests in flight end well, new ones are not taken."""
    one = serve(daemon, port, misbehave(apps))
    one.wait_running("a")
    with Client(port) as client:
        client.request("GET", "/slow?s=2")
        wait_for(lambda: one.app("a")["in_flight"] == 1, 5)
        one.signal(signal.SIGTERM)

        def refused():
            try:
                scalws.connect(port, 1).close()
            except OSError:
                return True
        wait_for(refused, 5, "the listener is closed")
        assert client.response().status == 200
    assert one.wait(20) == 0


def test_output_is_captured_line_by_line(daemon, port, apps):
    one = serve(daemon, port, misbehave(apps, "--flood", "2000"))
    one.wait_running("a")
    wait_for(lambda: "flood line 1999 " in one.app_log("a"), 5)
    lines = one.app_log("a").splitlines()
    numbers = [int(m[1]) for line in lines
               if (m := re.search(r"flood line (\d+) x{80}$", line))]
    assert numbers == list(range(2000))


def test_log_rotation(daemon, port, apps):
    """The size cap holds, the number of old files too."""
    one = serve(daemon, port,
                misbehave(apps, "--flood", "40000",
                          log={"max_bytes": "256K", "keep": 2}))
    one.wait_running("a")
    wait_for(lambda: "flood line 39999 " in one.app_log("a"), 20)
    files = sorted(one.logs.glob("a.log*"))
    assert len(files) == 3, files
    for path in files:
        assert path.stat().st_size <= 256 * 1024 + 8192, path
        assert path.stat().st_mode & 0o777 == 0o640
    assert get(port).status == 200


def test_flood_does_not_stop_the_supervisor(daemon, port, apps):
    one = daemon({
        "sites": [{"listen": [f"127.0.0.1:{port}"],
                   "routes": [{"path": "*", "app": "a"}]}],
        "apps": {"a": misbehave(apps),
                 "noise": {"runtime": "command", "http": False,
                           "directory": "/tmp",
                           "command": ["/usr/bin/yes", "y" * 200],
                           "log": {"max_bytes": "1M", "keep": 1}}}})
    one.wait_running("a")
    one.wait_running("noise")
    for _ in range(10):
        began = time.monotonic()
        one.ok("status")
        assert get(port).status == 200
        assert time.monotonic() - began < 2 * scalws.SLOW
    one.ok("stop", "noise")
    total = sum(p.stat().st_size for p in one.logs.glob("noise.log*"))
    assert total <= 2 * (1 << 20) + 16384


def test_log_through_a_link_is_refused(daemon, port, apps):
    """An app must not make us write elsewhere."""
    one = daemon({"sites": [{"listen": [f"127.0.0.1:{port}"],
                             "routes": [{"path": "*", "app": "a"}]}],
                  "apps": {"a": misbehave(apps)}}, start=False)
    one.logs.mkdir()
    victim = one.dir / "victim"
    victim.write_text("mine\n")
    (one.logs / "a.log").symlink_to(victim)
    one.start()
    one.wait_running("a")
    assert victim.read_text() == "mine\n"


def test_worker_without_listener(daemon, port, apps):
    """`http = false`: alive for a second is ready; restarted when it dies."""
    one = daemon({
        "sites": [{"listen": [f"127.0.0.1:{port}"], "routes": [
            {"path": "*", "respond": {"status": 200}}]}],
        "apps": {"w": {"runtime": "command", "http": False, "processes": 2,
                       "directory": "/tmp", "min_uptime": "100ms",
                       "command": [str(apps / "command/misbehave.py"),
                                   "--no-listen"]}}})
    pids = one.wait_running("w")
    assert len(pids) == 2
    os.kill(pids[0], signal.SIGKILL)
    wait_for(lambda: len(one.pids("w")) == 2 and pids[0] not in one.pids("w"),
             10)
    assert pids[1] in one.pids("w")


def test_start_timeout(daemon, port):
    """An app that never answers is no running app."""
    one = serve(daemon, port, {
        "runtime": "command", "directory": "/tmp", "start_timeout": "1s",
        "queue_timeout": "1s", "command": ["/bin/sleep", "1000"]})
    wait_for(lambda: one.app("a")["state"] == "backoff", 10)
    assert not one.pids("a")
    assert get(port).status == 503


def test_sudden_death_while_starting(daemon, port, apps):
    one = serve(daemon, port, misbehave(apps, "--die", "0.5"))
    wait_for(lambda: one.app("a")["restarts"] >= 1, 15)
    text = one.app("a")["last_exit"]
    assert "11" in text or "SEGV" in text


def test_environment_of_runtimes(daemon, port):
    """What RUNTIMES of the manual promises; the user's own values win."""
    case = BY_NAME["asgi"]
    conf = one_app(case, port)
    conf["apps"]["own"] = case.conf(environment={
        "MALLOC_TRIM_THRESHOLD_": "131072", "PYTHONUNBUFFERED": "0"})
    conf["sites"][0]["routes"].insert(0, {
        "path": "/own/*", "app": "own", "strip_prefix": "/own"})
    one = daemon(conf)
    one.wait_running("app")
    one.wait_running("own")
    env = get(port, "/env").json()
    assert env["MALLOC_MMAP_THRESHOLD_"] == "524288"
    assert env["MALLOC_TRIM_THRESHOLD_"] == "1048576"
    assert env["PYTHONUNBUFFERED"] == "1"
    own = get(port, "/own/env").json()
    assert own["MALLOC_TRIM_THRESHOLD_"] == "131072"
    assert "MALLOC_MMAP_THRESHOLD_" not in own
    assert own["PYTHONUNBUFFERED"] == "0"


def test_node_environment(daemon, port):
    one = daemon(one_app(BY_NAME["http"], port))
    one.wait_running("app")
    env = get(port, "/env").json()
    assert env["NODE_ENV"] == "production"
    assert env["PORT"].isdigit()
    assert "NODE_OPTIONS" not in env


def test_readiness_means_answers(daemon, port):
    """Requests sent before it is up wait, and none is refused or lost."""
    one = daemon(one_app(BY_NAME["asgi"], port, processes=2))
    answers = scalws.parallel(20, lambda i: get(port))
    assert all(a.status == 200 for a in answers)
    one.wait_running("app")


def test_instances_share_the_load(daemon, port):
    """The least busy one is chosen: all get their part."""
    one = daemon(one_app(BY_NAME["asgi"], port, processes=3))
    pids = one.wait_running("app")
    seen = scalws.parallel(9, lambda i: [
        get(port, "/slow?s=0.05") and get(port, "/pid").text
        for _ in range(5)])
    counts = {pid: sum(str(pid) in one for one in seen) for pid in pids}
    requests = {i["pid"]: i["requests"] for i in one.instances("app")}
    assert min(requests.values()) > max(requests.values()) / 4, \
        (counts, requests)


@pytest.mark.threads
def test_everything_at_once(daemon, port):
    """Load, restarts, a dead instance and a reload together."""
    one = daemon(one_app(BY_NAME["asgi"], port, processes=2))
    one.wait_running("app")
    clients = 6
    with Load(port, clients, "/") as load:
        load.wait_done(50)
        one.ok("restart", "app")
        one.ok("reload")
        os.kill(one.pids("app")[0], signal.SIGKILL)
        load.wait_done(50)
        one.wait_running("app", 2)
        one.ok("restart", "app")
        load.wait_done(50)
    assert len(load.failed) <= clients, load.failed[:5]


def test_closed_is_an_error():
    """The harness itself sees an answer that is cut short."""
    def script(conn):
        conn.read_request()
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc")
    with scalws.Origin(script) as origin:
        with Client(origin.port) as client:
            client.request()
            with pytest.raises(Closed):
                client.response()
