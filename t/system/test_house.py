"""The two commands, and what make install leaves where."""
import json
import os
import re
import signal
import subprocess

import pytest

import scalws
from scalws import Helper, get, wait_for

BUILD = os.environ.get("SCALWS_BUILD") or os.path.dirname(
    os.environ.get("SCALWSD", "build/scalwsd"))


@pytest.mark.exact
def test_install(tmp_path):
    """Everything honours DESTDIR, and goes where it belongs."""
    subprocess.run(["make", "-s", "-C", BUILD, "install",
                    f"DESTDIR={tmp_path}"], check=True, capture_output=True)
    found = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")
             if not p.is_dir()}
    for name in ("sbin/scalwsd", "bin/scalwsctl",
                 "share/scalws/node-preload.js", "share/man/man8/scalwsd.8",
                 "share/man/man8/scalwsctl.8", "share/man/man5/scalws.conf.5",
                 "share/bash-completion/completions/scalwsd",
                 "share/bash-completion/completions/scalwsctl",
                 "lib/systemd/system/scalws.service", "scalws.conf"):
        assert any(path.endswith(name) for path in found), (name, found)
    unit = next(tmp_path.rglob("scalws.service")).read_text()
    assert "Type=notify" in unit and "@" not in unit
    # The page names the file that was installed.
    conf = next(p for p in tmp_path.rglob("etc/scalws.conf"))
    assert str(conf)[len(str(tmp_path)):] in next(
        tmp_path.rglob("scalwsd.8")).read_text()
    # An edited configuration survives the next installation.
    conf.write_text("mine\n")
    subprocess.run(["make", "-s", "-C", BUILD, "install",
                    f"DESTDIR={tmp_path}"], check=True, capture_output=True)
    assert conf.read_text() == "mine\n"
    subprocess.run(["make", "-s", "-C", BUILD, "uninstall",
                    f"DESTDIR={tmp_path}"], check=True, capture_output=True)
    left = [p for p in tmp_path.rglob("*") if not p.is_dir()]
    assert left == [conf], left


def test_manual_pages_have_no_mistakes():
    for name in ("scalwsd.8", "scalwsctl.8", "scalws.conf.5"):
        done = subprocess.run(
            ["man", "-l", "--warnings", "-E", "UTF-8", "-Tutf8",
             str(scalws.TOP / "man" / name)], text=True, capture_output=True,
            env={**os.environ, "MANWIDTH": "100", "MANPAGER": "cat"}) \
            if os.access("/usr/bin/man", os.X_OK) else None
        if done is None:
            pytest.skip("no man")
        assert not done.stderr, done.stderr


@pytest.mark.exact
def test_quickstart(port):
    """Three real applications through one port; kill -9, and it is back;
    Ctrl-C, and nothing is left."""
    before = scalws.descendants(os.getpid())
    with Helper([str(scalws.TOP / "quickstart"), "-p", str(port)],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True) as start:
        said = ""
        while "Ctrl-C" not in said:
            line = start.stdout.readline()
            assert line, said
            said += line
        page = get(port)
        assert page.status == 200 and b"ScalWS" in page.body
        for name, word in (("python", "uvicorn"), ("node", "Node.js"),
                           ("php", "PHP")):
            answer = get(port, f"/{name}/")
            assert answer.status == 200, answer
            assert word in answer.json()["message"]
            assert answer.json()["you_are"] == "127.0.0.1"

        def state():
            return json.loads(get(port, "/state").body)

        def pids(name):
            return [i["pid"] for a in state()["apps"] if a["name"] == name
                    for i in a["instances"] if i["state"] == "running"]
        for name in ("python", "node", "php"):
            victims = wait_for(lambda: pids(name), 10)
            os.kill(victims[0], signal.SIGKILL)
            wait_for(lambda: len(pids(name)) == len(victims) and
                     victims[0] not in pids(name), 15, f"{name} is back")
            assert get(port, f"/{name}/").status == 200
        start.send_signal(signal.SIGINT)
        start.wait(30)

        def left():
            scalws.reap()
            table = scalws.process_table()
            return [table[p] for p in
                    scalws.descendants(os.getpid(), table) - before
                    if p in table and table[p][1] not in "ZX"]
        wait_for(lambda: not left(), 10, f"nothing is left: {left()}")
        directory = re.search(r"-s (/tmp/scalws-demo\.\w+)/", said)[1]
        assert not os.path.exists(directory)
