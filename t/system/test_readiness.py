"""When is a process ready, and is it still alive? sd_notify both ways,
before_start, environment_file, socket activation, many apps at once."""
import os
import re
import signal
import socket
import time

import pytest

import scalws
from runtimes import BY_NAME, one_app
from scalws import alive, get, wait_for

PYTHON = "/usr/bin/python3"


def script(text, name="app.py"):
    """A program of its own that any user can read."""
    place = scalws.scratch()
    (place / name).write_text(text)
    os.chmod(place / name, 0o755)
    return place


def command(place, **keys):
    return {"runtime": "command", "directory": str(place),
            "command": [PYTHON, "-u", "app.py", "{socket}"], **keys}


def conf_of(app, port):
    return {"sites": [{"listen": [f"127.0.0.1:{port}"],
                       "routes": [{"path": "*", "app": "app"}]}],
            "apps": {"app": app}}


SERVER = """
import http.server, os, socket, socketserver, sys, threading, time
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def address_string(self): return ""
    def log_message(self, *args): pass
    def do_GET(self):
        status, body = answer(self.path, self.headers)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
def notify(text):
    name = os.environ["NOTIFY_SOCKET"].replace("@", "\\0", 1)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.sendto(text.encode(), name)
def serve():
    Server(sys.argv[1], Handler).serve_forever()
"""


def test_probe_status_and_host(daemon, port):
    """Only that status is ready; the probe names the host."""
    place = script(SERVER + """
began = time.monotonic()
def answer(path, headers):
    if path != "/ready":
        return 200, b"ok"
    print("probed as", headers["Host"])
    return (204 if time.monotonic() > began + 2 else 200), b""
serve()
""")
    one = daemon(conf_of(command(place, probe={
        "path": "/ready", "status": 204, "host": "probe.example"}), port))
    began = time.monotonic()
    one.wait_running("app")
    assert "probed as probe.example" in one.app_log("app")
    assert one.app_log("app").count("probed") > 1
    assert time.monotonic() - began > 1


def test_probe_status_that_never_comes(daemon, port):
    place = script(SERVER + """
def answer(path, headers): return 200, b"ok"
serve()
""")
    one = daemon(conf_of(command(place, start_timeout="6s",
                                 probe={"status": 204}), port))
    wait_for(lambda: "killed by" in (one.app("app")["last_exit"] or ""), 20)
    # Why it was killed is still said.
    assert "status 200, not 204; pid" in one.app("app")["last_exit"]


def test_watchdog(daemon, port):
    """WATCHDOG_USEC is told; who says WATCHDOG=1 stays, who stops is replaced
    by a new one, first."""
    place = script(SERVER + """
assert os.environ["WATCHDOG_USEC"] == "1500000"
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
""")
    one = daemon(conf_of(command(place, watchdog="1500ms",
                                 stop_timeout="1s"), port))
    first, = one.wait_running("app")
    time.sleep(3)
    assert one.pids("app") == [first]
    with scalws.Load(port, n=2, pause=0.01) as load:
        assert get(port, "/silent").status == 200
        wait_for(lambda: not alive(first), 40)
    assert not load.failed, load.failed[:3]
    one.wait_log("is replaced: its watchdog is silent")


def test_messages_of_others_do_not_count(daemon, port):
    if not scalws.ROOT:
        pytest.skip("needs another user")
    place = script(SERVER + """
import ctypes
print("socket", os.environ["NOTIFY_SOCKET"])
time.sleep(1000)
""")
    one = daemon(conf_of(command(place, http=False, start_timeout="60s",
                                 watchdog="60s", user=scalws.APP_USER), port),
                 start=False)
    one.conf["apps"]["app"]["command"] = [PYTHON, "-u", "app.py"]
    one.conf["sites"] = []
    one.write({k: v for k, v in one.conf.items() if k != "sites"})
    one.start()
    wait_for(lambda: "socket @" in one.app_log("app"), 10)
    name = re.search(r"socket (@\S+)", one.app_log("app"))[1]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        for text in (b"READY=1", b"\0" * 5000, b"WATCHDOG=1\nREADY=1\n",
                     b"x" * 4096):
            sock.sendto(text, name.replace("@", "\0", 1))
    one.wait_running("app")     # by its second of life, and we still live


# --- before_start ---------------------------------------------------------------

def test_before_start(daemon, port):
    """Once for all processes, as the user, with its environment and output."""
    place = script(SERVER + """
assert open("/tmp/" + os.environ["MARK"]).read() == "done"
def answer(path, headers): return 200, b"ok"
serve()
""")
    mark = f"{place.name}-mark"
    (place / "before.sh").write_text(
        "#!/bin/sh\nset -e\nsleep 0.3\necho before as $(id -un) in $(pwd)\n"
        "ls /proc/self/fd\nprintf done > /tmp/$MARK\n")
    os.chmod(place / "before.sh", 0o755)
    try:
        one = daemon(conf_of(command(
            place, processes=3, before_start=[str(place / "before.sh")],
            environment={"MARK": mark}), port))
        one.wait_running("app", 3)
        log = one.app_log("app")
        assert log.count("before as") == 1
        if scalws.ROOT:
            assert f"before as {scalws.APP_USER} in {place}" in log
        one.ok("restart", "--all", "app")
        assert one.app_log("app").count("before as") == 2
        os.kill(one.pids("app")[0], signal.SIGKILL)
        one.wait_running("app", 3)
        assert one.app_log("app").count("before as") == 2
    finally:
        os.unlink(f"/tmp/{mark}")


@pytest.mark.parametrize("how", ["fails", "hangs", "missing"])
def test_before_start_that_fails(daemon, port, how):
    place = script(SERVER + """
print("must not run")
""")
    argv = {"fails": ["/bin/sh", "-c", "echo no database; exit 7"],
            "hangs": ["/bin/sh", "-c", "echo no database; sleep 1000"],
            "missing": ["/nonexistent/migrate"]}[how]
    one = daemon(conf_of(command(place, before_start=argv, start_timeout="2s",
                                 stop_timeout="1s"), port))
    said = {"fails": "before_start: exit code 7", "hangs": "not ready after 2",
            "missing": "before_start: cannot run"}[how]
    wait_for(lambda: said in (one.app("app")["last_exit"] or "") + one.log(),
             20)
    wait_for(lambda: one.app("app")["state"] in ("backoff", "failed"), 20)
    assert "must not run" not in one.app_log("app")
    if how != "missing":
        assert "no database" in one.app_log("app")


def test_new_version_whose_before_start_fails_leaves_the_old(daemon, port):
    place = script(SERVER + """
def answer(path, headers): return 200, b"ok"
serve()
""")
    one = daemon(conf_of(command(
        place, before_start=["/bin/sh", "-c", f"test ! -e {place}/bad"]),
        port))
    before = one.wait_running("app")
    (place / "bad").write_text("")
    done = one.ctl("restart", "app")
    assert done.returncode == 1 and "before_start" in done.stderr
    assert one.pids("app") == before and get(port).status == 200


# --- environment_file -----------------------------------------------------------

def test_environment_file(daemon, port):
    case = BY_NAME["asgi"]
    place = scalws.scratch()
    file = place / "secrets.env"
    file.write_text("# secrets\n\nA=1\nexport B = 'two words # no comment'\n"
                    'C="x=y"\r\nEMPTY=\nBOTH=file\n')
    os.chmod(file, 0o600)       # read by scalwsd, not by the app
    one = daemon(one_app(case, port, environment_file=str(file),
                         environment={"BOTH": "configuration"}))
    one.wait_running("app")

    def env():
        return get(port, "/env", host="example.com").json()
    seen = env()
    assert (seen["A"], seen["B"], seen["C"], seen["EMPTY"], seen["BOTH"]) == \
        ("1", "two words # no comment", "x=y", "", "configuration")
    file.write_text("A=2\nTOKEN=s3cr3t-value\n")
    one.ok("restart", "app")
    seen = env()
    assert seen["A"] == "2" and "B" not in seen
    assert seen["TOKEN"] == "s3cr3t-value"
    # Nowhere but in the app.
    assert "s3cr3t" not in one.log() + one.ok("status", "--json")
    for pid, (_, _, line) in scalws.process_table().items():
        assert "s3cr3t-value" not in line
    file.write_text("A=3\nthis is no variable s3cr3t\n")
    done = one.ctl("restart", "app")
    assert done.returncode == 1
    assert "line 2: no NAME=value" in done.stderr and "s3cr3t" not in \
        done.stderr
    assert env()["A"] == "2"
    file.unlink()
    assert one.ctl("restart", "app").returncode == 1
    assert "No such file" in one.log() and env()["A"] == "2"


# --- the service manager --------------------------------------------------------

class Manager:
    """A NOTIFY_SOCKET as systemd has it."""

    def __init__(self):
        self.path = scalws.scratch() / "notify"
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(str(self.path))
        os.chmod(self.path, 0o777)
        self.sock.settimeout(0.05)
        self.heard = []

    def has(self, pattern):
        try:
            while True:
                self.heard.append(self.sock.recv(4096).decode())
        except TimeoutError:
            pass
        return re.search(pattern, "\n--\n".join(self.heard))

    def wait(self, pattern, timeout=15):
        return wait_for(lambda: self.has(pattern), timeout, pattern)


def test_notifies_the_service_manager(daemon, port):
    manager = Manager()
    one = daemon({"sites": [{"listen": [f"127.0.0.1:{port}"], "routes": [
        {"path": "*", "respond": {"status": 200}}]}]},
        env={"NOTIFY_SOCKET": str(manager.path), "WATCHDOG_USEC": "400000"})
    manager.wait("READY=1")
    manager.wait(r"(WATCHDOG=1[\s\S]*){4}")
    manager.heard.clear()
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    one.ok("reload")
    usec = manager.wait(r"RELOADING=1\nMONOTONIC_USEC=(\d+)")[1]
    assert before <= int(usec) <= time.clock_gettime_ns(
        time.CLOCK_MONOTONIC) // 1000
    manager.wait(r"RELOADING=1[\s\S]*READY=1")
    one.stop()
    manager.wait("STOPPING=1")


def test_watchdog_of_another_pid_is_not_ours(daemon, port):
    manager = Manager()
    one = daemon({"sites": [{"listen": [f"127.0.0.1:{port}"], "routes": [
        {"path": "*", "respond": {"status": 200}}]}]},
        env={"NOTIFY_SOCKET": str(manager.path), "WATCHDOG_USEC": "200000",
             "WATCHDOG_PID": "1"})
    manager.wait("READY=1")
    time.sleep(1)
    assert not manager.has("WATCHDOG=1")
    assert one.process.poll() is None


ACTIVATE = """
import os, socket, sys
n = int(sys.argv[1])
socks = []
for spec in sys.argv[2:2 + n]:
    if spec.startswith("/"):
        s = socket.socket(socket.AF_UNIX); s.bind(spec); os.chmod(spec, 0o666)
    else:
        s = socket.socket(); s.setsockopt(socket.SOL_SOCKET,
                                          socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", int(spec)))
    s.listen(64)
    socks.append(s)
for i, s in enumerate(socks):
    fd = os.dup2(s.fileno(), 100 + i)
for i in range(n):
    os.dup2(100 + i, 3 + i, inheritable=True)
os.environ.update(LISTEN_FDS=str(n), LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[2 + n], sys.argv[2 + n:])
"""


def test_socket_activation(daemon, port):
    """Its sockets are used, shared by the workers; their paths stay."""
    path = scalws.scratch() / "given.sock"
    place = scalws.scratch()
    (place / "activate.py").write_text(ACTIVATE)
    case = BY_NAME["asgi"]
    conf = one_app(case, port)
    conf["sites"][0]["listen"].append(f"unix:{path}")
    one = daemon(conf, command=[PYTHON, str(place / "activate.py"), "2",
                                str(port), str(path)])
    one.wait_running("app")
    assert len(re.findall("taken from the service manager", one.log())) == 2
    for address in (port, path):
        for _ in range(8):
            assert get(address, host="example.com").status == 200
    env = get(port, "/env", host="example.com").json()
    assert "LISTEN_FDS" not in env and "LISTEN_PID" not in env
    one.ok("reload")
    assert get(port, host="example.com").status == 200
    one.stop()
    assert path.exists()


# --- many at once ---------------------------------------------------------------

def test_twenty_apps_one_broken(daemon, port):
    """They start beside each other, and the broken one keeps none back."""
    place = script(SERVER + """
time.sleep(1)
def answer(path, headers): return 200, b"ok"
serve()
""")
    apps = {f"a{i}": command(place) for i in range(19)}
    apps["broken"] = command(script("raise SystemExit('broken')"))
    one = daemon({"sites": [{"listen": [f"127.0.0.1:{port}"], "routes": [
        {"path": f"/{name}", "app": name} for name in apps]}], "apps": apps})

    def ready():
        states = [a["state"] for a in one.status()["apps"]]
        return states.count("running") == 19
    wait_for(ready, 60, every=0.2)
    # All of them were started before the first was ready.
    log = one.log()
    assert len(re.findall("down -> starting", log[
        :log.index("starting -> running")])) >= 20
    assert one.app("broken")["state"] in ("backoff", "starting")
    assert get(port, "/a7").status == 200
