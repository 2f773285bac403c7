"""scalwsctl: what scripts and people rely on."""
import json
import os
import re
import signal
import subprocess
import time

import pytest

import scalws
from scalws import Helper, get, wait_for

OK, FAILED, USAGE, UNREACHABLE, DENIED, DOWN = range(6)


@pytest.fixture
def two(daemon, port, apps):
    """A daemon with a command app and a worker."""
    one = daemon({
        "sites": [{"listen": [f"127.0.0.1:{port}"],
                   "routes": [{"path": "*", "app": "web"}]}],
        "apps": {
            "web": {"runtime": "command", "directory": "/tmp", "processes": 2,
                    "command": [str(apps / "command/misbehave.py")]},
            "tick": {"runtime": "command", "directory": "/tmp", "http": False,
                     "command": [str(apps / "command/misbehave.py"),
                                 "--no-listen"]}}})
    one.port = port
    one.wait_running("web")
    one.wait_running("tick")
    return one


def test_version(two):
    assert re.search(r"\d+\.\d+\.\d+", two.ok("version"))


def test_status_json(two):
    for _ in range(3):
        assert get(two.port).status == 200
    whole = wait_for(lambda: (s := two.status()) and s["proxy"]["requests"]
                     and (two.app("web")["requests"] or 0) >= 3 and s, 5)
    assert whole["pid"] == two.process.pid
    assert whole["proxy"]["state"] == "running"
    assert whole["proxy"]["pid"] in two.tree()
    web = two.app("web")
    assert web["runtime"] == "command"
    assert web["state"] == "running"
    assert web["restarts"] == 0 and web["last_exit"] is None
    assert web["in_flight"] == 0 and web["queued"] == 0
    assert web["errors"] == 0
    assert len(web["instances"]) == 2
    assert sum(i["requests"] for i in web["instances"]) == web["requests"]
    for instance in web["instances"]:
        assert instance["state"] == "running"
        assert instance["pid"] in two.tree()
        assert instance["rss_bytes"] > 1 << 20
        assert instance["cpu_seconds"] >= 0
        assert instance["since"]
    assert two.app("tick")["instances"][0]["state"] == "running"


def test_status_text(two):
    text = two.ok("status")
    assert "web" in text and "tick" in text and "running" in text
    for pid in two.pids("web"):
        assert str(pid) in two.ok("status", "web")
    assert "tick" not in two.ok("status", "web")


def test_in_flight_is_shown(two):
    with scalws.Client(two.port) as client:
        client.request("GET", "/slow?s=3")
        wait_for(lambda: two.app("web")["in_flight"] == 1, 3)
        assert client.response().status == 200
    wait_for(lambda: two.app("web")["in_flight"] == 0, 3)


def test_unknown_app(two):
    done = two.ctl("stop", "wbe")
    assert done.returncode == USAGE
    assert "wbe" in done.stderr and "web" in done.stderr


@pytest.mark.parametrize("args", [
    ["frobnicate"], [], ["start"], ["stop", "a", "b", "c"],
    ["logs", "-n", "x", "web"]])
def test_usage(two, args):
    done = two.ctl(*args)
    assert done.returncode == USAGE, done
    assert done.stderr


def test_lines_that_are_no_number(two):
    for lines in ("x", "-1", "100001", "1e3"):
        done = two.ctl("logs", "-n", lines, "web")
        assert done.returncode == USAGE
        assert f'"{lines}" is no number of lines: 0 to 100000' in done.stderr


def test_no_daemon(tmp_path):
    done = subprocess.run([scalws.scalwsctl(), "-s", f"{tmp_path}/none.sock",
                           "status"], capture_output=True, text=True)
    assert done.returncode == UNREACHABLE
    assert f"{tmp_path}/none.sock" in done.stderr
    assert "scalwsd" in done.stderr, "says what to do next"


def test_stop_and_start(two):
    before = two.pids("web")
    two.ok("stop", "web")
    for pid in before:
        assert not scalws.alive(pid)
    assert two.ctl("status", "web").returncode == DOWN
    assert two.app("web")["state"] == "stopped"
    answer = get(two.port)
    assert answer.status == 503
    assert b"stopped" in answer.body
    two.ok("start", "web")
    assert get(two.port).status == 200
    assert not set(before) & set(two.pids("web"))
    assert two.ctl("status", "web").returncode == OK


def test_stop_twice_and_start_twice(two):
    two.ok("stop", "web")
    two.ok("stop", "web")
    two.ok("start", "web")
    pids = two.pids("web")
    two.ok("start", "web")
    assert two.pids("web") == pids


def test_restart_under_load_loses_nothing(two):
    before = two.pids("web")
    with scalws.Load(two.port, n=6) as load:
        load.wait_done(50)
        two.ok("restart", "web")
        load.wait_done(50)
    assert not load.failed, load.failed[:3]
    assert not set(before) & set(two.pids("web"))
    for pid in before:
        assert not scalws.alive(pid)


def test_logs(two):
    wait_for(lambda: "tick" in two.app_log("tick"), 5)
    lines = two.ok("logs", "-n", "1", "tick").splitlines()
    assert len(lines) == 1 and lines[0].endswith("tick")
    wait_for(lambda: two.app_log("tick").count("tick") >= 3, 10)
    assert len(two.ok("logs", "-n", "3", "tick").splitlines()) == 3


def test_logs_follow(two):
    with Helper([scalws.scalwsctl(), "-s", str(two.control), "logs", "-f",
                 "-n", "0", "tick"], stdout=subprocess.PIPE, text=True,
                env=two.environment()) as follow:
        for _ in range(2):
            assert follow.stdout.readline().rstrip().endswith("tick")
    two.ok("status")


def test_check(two):
    assert two.ctl("check").returncode == OK
    two.file.write_text(two.file.read_text() + "worksers = 1;\n")
    done = two.ctl("check")
    assert done.returncode == FAILED
    assert "worksers" in done.stdout + done.stderr


def test_reload_keeps_what_is_unchanged(two, port, apps):
    before = two.pids("web")
    conf = dict(two.conf)
    conf["sites"] = [dict(conf["sites"][0])]
    conf["sites"][0]["routes"] = [
        {"path": "/new", "respond": {"status": 200, "body": "new\n"}},
        {"path": "*", "app": "web"}]
    two.write(conf)
    two.ok("reload")
    wait_for(lambda: get(two.port, "/new").body == b"new\n", 10)
    assert two.pids("web") == before


def test_reload_of_a_bad_file_changes_nothing(two):
    before = two.pids("web"), two.proxy_pid()
    two.file.write_text(two.file.read_text() + "worksers = 1;\n")
    done = two.ctl("reload")
    assert done.returncode == FAILED
    assert "worksers" in done.stdout + done.stderr
    assert "scalws.conf:" in done.stdout + done.stderr
    assert get(two.port).status == 200
    assert (two.pids("web"), two.proxy_pid()) == before


def test_reload_restarts_what_changed_and_drops_what_is_gone(two):
    web, tick = two.pids("web"), two.pids("tick")
    conf = dict(two.conf)
    conf["apps"] = {"web": dict(conf["apps"]["web"],
                                environment={"NEW": "1"})}
    two.write(conf)
    two.ok("reload")
    wait_for(lambda: get(two.port, "/env").json().get("NEW") == "1", 20)
    wait_for(lambda: not any(map(scalws.alive, web + tick)), 20)
    assert [a["name"] for a in two.status()["apps"]] == ["web"]


def test_reload_that_takes_an_app_away_and_brings_it_back(two):
    """Its path is answered all the time, by the app or by what stood in."""
    full = dict(two.conf)
    less = dict(full, apps={"tick": full["apps"]["tick"]},
                sites=[{"listen": full["sites"][0]["listen"], "routes": [
                    {"path": "*", "respond": {"status": 200}}]}])
    with scalws.Load(two.port, n=6) as load:
        for _ in range(3):
            load.wait_done(20)
            two.write(less)
            two.ok("reload")
            load.wait_done(20)
            two.write(full)
            two.ok("reload")
        load.wait_done(50)
    assert not load.failed, load.failed[:3]


def test_start_of_what_cannot_start_shows_its_last_words(daemon, port, apps):
    one = daemon({
        "sites": [{"listen": [f"127.0.0.1:{port}"],
                   "routes": [{"path": "*", "app": "bad"}]}],
        "apps": {"bad": {"runtime": "command", "directory": "/tmp",
                         "command": [str(apps / "command/misbehave.py"),
                                     "--exit", "7"]}}})
    done = one.ctl("start", "bad")
    assert done.returncode == FAILED
    said = done.stdout + done.stderr
    assert "last words on stderr" in said and "first words on stdout" in said
    assert "7" in said
    app = one.app("bad")
    assert app["state"] == "backoff"
    assert "7" in app["last_exit"]
    assert one.ctl("status", "bad").returncode == DOWN


@pytest.mark.root
def test_permissions(two):
    """Root and the daemon's own uid may change things; others not even
    connect, unless control.group lets them read."""
    done = two.ctl("stop", "web", user=scalws.OTHER_USER)
    assert done.returncode in (DENIED,), done
    assert two.app("web")["state"] == "running"


@pytest.mark.root
def test_group_may_only_read(daemon, port):
    one = daemon({
        "control": {"group": "games"},
        "sites": [{"listen": [f"127.0.0.1:{port}"],
                   "routes": [{"path": "*", "respond": {"status": 204}}]}],
        "apps": {"tick": {"runtime": "command", "http": False,
                          "directory": "/tmp", "command": [
                              "/bin/sleep", "1000"]}}})
    one.wait_running("tick")
    done = one.ctl("status", user="games")
    # The run directory is closed to others; then a path outside is asked for.
    if done.returncode != OK:
        assert done.returncode == UNREACHABLE
        pytest.skip("the group cannot reach the run directory")
    assert one.ctl("stop", "tick", user="games").returncode == DENIED
    assert one.app("tick")["state"] == "running"


def test_rubbish_at_the_control_socket(two):
    """Nothing that is said there ends the daemon."""
    for text in (b"\n", b"status\0\n", b"%zz\n", b"x" * 100000 + b"\n",
                 b"stop\n", b"stop %00\n", b"logs web -1 9\n", b"status",
                 os.urandom(5000) + b"\n"):
        sock = scalws.connect(str(two.control), 5)
        with sock:
            try:
                sock.sendall(text)
                sock.shutdown(1)
                while sock.recv(4096):
                    pass
            except OSError:
                pass
    two.ok("status")
    assert get(two.port).status == 200


def test_silent_control_clients_do_not_block_others(two):
    """More of them than there are places: who comes takes the oldest's."""
    silent = [scalws.connect(str(two.control), 5) for _ in range(100)]
    began = time.monotonic()
    two.ok("status")
    assert time.monotonic() - began < 3 * scalws.SLOW
    for sock in silent:
        sock.close()


def test_completion_knows_the_verbs(two):
    """Bash completion offers what the tool takes."""
    script = (scalws.TOP / "etc/completion/scalwsctl").read_text()
    for verb in ("status", "start", "stop", "restart", "logs", "reload",
                 "check", "version"):
        assert verb in script
    done = subprocess.run(["bash", "-c", f'''
        source "{scalws.TOP}/etc/completion/scalwsctl"
        COMP_WORDS=(scalwsctl sta); COMP_CWORD=1
        _scalwsctl; echo "${{COMPREPLY[@]}}"'''], capture_output=True,
        text=True)
    assert {"status", "start"} <= set(done.stdout.split()), done


def test_json_has_nothing_but_json(two):
    done = two.ctl("status", "--json")
    json.loads(done.stdout)
    assert done.stderr == ""


def test_daemon_that_hangs(daemon):
    """It is said that it does not answer; commands that only look give up."""
    one = daemon({"apps": {"app": {
        "runtime": "command", "http": False, "directory": "/tmp",
        "command": ["/bin/sleep", "1000"]}}})
    argv = [scalws.scalwsctl(), "-s", str(one.control)]

    def begin(*words):
        done = subprocess.Popen([*argv, *words], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=one.environment(leaks=False))
        scalws.Helper.pids.add(done.pid)
        return done
    one.signal(signal.SIGSTOP)
    try:
        began = time.monotonic()
        first, reload = begin("reopen"), begin("reload")
        if scalws.LONG:
            second, third = begin("status"), begin("version")
        said = first.stderr.readline()
        assert f"scalwsd (pid {one.process.pid}) has not answered" in said
        assert time.monotonic() - began >= 5
        if scalws.LONG:
            for process in (second, third):
                _, errors = process.communicate(timeout=30)
                assert process.returncode == 3
                assert errors.count("\n") == 2
                assert f"process {one.process.pid} stopped" in errors
            assert 15 <= time.monotonic() - began < 20 * scalws.SLOW
    finally:
        one.signal(signal.SIGCONT)
    # Those that go on waiting have their answers, and nothing else is said.
    out, errors = first.communicate(timeout=30)
    assert (first.returncode, out, errors) == (0, "logs reopened\n", "")
    out, errors = reload.communicate(timeout=30)
    assert (reload.returncode, errors) == (0, "")
