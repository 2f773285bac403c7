"""What is shown of the output of a process that did not come up: its own lines,
and nobody else's."""
import os
import re
import subprocess

import scalws
from scalws import wait_for

# Serves unless told otherwise; says who it is.
APP = """
import http.server, os, sys, time
how = open("how").read().strip()
print(how, "says", os.getpid(), flush=True)
if how == "dies":
    print("the database is on fire", flush=True)
    sys.exit(3)
if how == "hangs":
    time.sleep(1000)
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print("noise of", os.getpid(), flush=True)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Page) \\
    .serve_forever()
"""


def place_with(text, how="serves"):
    place = scalws.scratch()
    (place / "app.py").write_text(text)
    (place / "how").write_text(how)
    return place


def shown(done):
    """The lines of output that a command showed: (pid, text)."""
    return [(int(m[1]), m[2]) for m in re.finditer(
        r"(?m)^(?:scalwsctl: )?\S+Z \[(\d+)\] (.*)$",
        done.stdout + done.stderr)]


def test_only_the_try_that_failed(daemon, port):
    """Not an earlier one, nor those that serve; and none where nothing was
    tried."""
    place = place_with(APP)
    one = daemon({
        "sites": [{"listen": [f"127.0.0.1:{port}"],
                   "routes": [{"path": "*", "app": "app"}]}],
        "apps": {"app": {
            "runtime": "command", "directory": str(place),
            "command": ["/usr/bin/python3", "app.py"],
            "start_timeout": f"{int(1 + scalws.SLOW)}s"}}})
    old = one.wait_running("app")
    (place / "how").write_text("dies")
    done = one.ctl("restart", "app")
    assert done.returncode == 1
    pids = {pid for pid, _ in shown(done)}
    assert len(pids) == 1 and pids != set(old)
    assert [text for _, text in shown(done)] == [
        f"dies says {min(pids)}", "the database is on fire"]
    (place / "how").write_text("hangs")
    argv = [scalws.scalwsctl(), "-s", str(one.control), "restart", "app"]
    with subprocess.Popen(argv, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          env=one.environment(leaks=False)) as first:
        scalws.Helper.pids.add(first.pid)
        wait_for(lambda: "hangs says" in one.app_log("app"), 10)
        assert scalws.get(port).status == 200
        done = one.ctl("restart", "app")
        assert done.returncode == 1
        assert "is being restarted already" in done.stderr
        assert shown(done) == [] and "last lines" not in done.stderr
        first.stdout_text = first.stdout.read()
        scalws.Helper.pids.discard(first.pid)
    said = re.findall(r"\[(\d+)\] (.*)", first.stdout_text)
    assert [text for _, text in said] == [f"hangs says {said[0][0]}"]
    assert said[0][0] in re.search(r"not ready.*", first.stdout_text)[0]
    # The same of a reload that restarts it.
    (place / "how").write_text("dies")
    one.conf["apps"]["app"]["environment"] = ["X=1"]
    one.write(one.conf)
    done = one.ctl("reload")
    assert done.returncode == 1
    assert [text for _, text in shown(done)] == [
        f"dies says {shown(done)[0][0]}", "the database is on fire"]
    assert one.pids("app") == old


def test_before_start_has_a_pid(daemon):
    """Its own, before its lines; and each try is told once."""
    place = place_with("")
    one = daemon({"apps": {"app": {
        "runtime": "command", "http": False, "directory": str(place),
        "command": ["/bin/sleep", "1000"], "processes": 1,
        "before_start": ["/bin/sh", "-c",
                         "echo try by $$; test -e good"]}}})
    wait_for(lambda: len(re.findall(r"app=app said", one.log())) >= 3, 20)
    tries = re.findall(r"\[(\d+)\] try by (\d+)", one.app_log("app"))
    assert len(tries) >= 3
    assert all(pid == who for pid, who in tries), tries
    told = re.findall(r"app=app said \[(\d+)\] try by", one.log())
    assert len(told) == len(set(told)) and told == [
        pid for pid, _ in tries][:len(told)]
    done = one.ctl("start", "app")
    assert done.returncode == 1
    assert len(shown(done)) == 1, shown(done)
    (place / "good").write_text("")
    os.chmod(place, 0o755)
    one.ok("start", "app")
    last = re.findall(r"\[(\d+)\] try by (\d+)", one.app_log("app"))[-1]
    assert last[0] == last[1] and int(last[0]) not in one.pids("app")
