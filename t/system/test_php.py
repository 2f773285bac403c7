"""php-fpm: never more than its children, no request waits for nothing."""
import os
import re
import socket
import subprocess
import threading
import time

import pytest

import scalws
from scalws import Client, Closed, get, wait_for

CHILDREN = 3
SECONDS = 20 if scalws.LONG else 6


def front(apps, **keys):
    return {"runtime": "php", "root": str(apps / "php/front/public"), **keys}


def serve(daemon, port, app, **keys):
    return daemon({"sites": [{"names": ["example.com"],
                              "listen": [f"127.0.0.1:{port}"],
                              "routes": [{"path": "*", "app": "p"}]}],
                   "apps": {"p": app}, **keys})


class Sampler(threading.Thread):
    """Looks at the pool's listener every 10 ms: how many sockets are
    connected to it, and how many wait in its backlog.

    /proc/net/unix has both: the server's side of a connection has the path of
    the listener, and no inode as long as nobody has accepted it.
    """

    # A child that is free takes a moment to be scheduled and to accept.
    PATIENCE = 0.05 * scalws.SLOW

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = str(path)
        self.most, self.waiting, self.samples = 0, 0, 0
        self.ending = threading.Event()

    def sample(self):
        """How many are connected; those of them that wait."""
        connected, waiting = 0, set()
        with open("/proc/net/unix") as file:
            for line in file:
                parts = line.split()
                if len(parts) < 8 or parts[7] != self.path:
                    continue
                # Num RefCount Protocol Flags Type St Inode Path
                if int(parts[3], 16) & 0x10000:
                    continue                        # the listener
                connected += 1
                if parts[6] == "0":
                    waiting.add(parts[0])
        return connected, waiting

    def run(self):
        since = {}
        while not self.ending.wait(0.01):
            connected, waiting = self.sample()
            now = time.monotonic()
            self.samples += 1
            self.most = max(self.most, connected)
            since = {one: since.get(one, now) for one in waiting}
            self.waiting += sum(now - began > self.PATIENCE
                                for began in since.values())

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *ignored):
        self.ending.set()
        self.join()


def pool_socket(one):
    """The instance's listener: the socket in the run directory that has
    children waiting at it, not the one of the status page."""
    found = [p for p in one.run.rglob("*")
             if p.is_socket() and p != one.control and "status" not in p.name]
    assert len(found) == 1, found
    return found[0]


def storm(port, seconds, clients=50):
    """Clients in a closed loop; every fifth leaves in the middle of a slow
    script. Returns (answers of those that stayed, failures, longest)."""
    done, failed, longest = [0], [], [0.0]
    lock = threading.Lock()
    end = time.monotonic() + seconds

    def patient():
        client = None
        while time.monotonic() < end:
            began = time.monotonic()
            try:
                client = client or Client(port, timeout=30)
                answer = client.exchange("GET", "/slow?s=0.02",
                                         host="example.com")
                ok = answer.status == 200 or answer
            except (OSError, Closed, AssertionError) as error:
                ok, client = error, None
            with lock:
                done[0] += 1
                longest[0] = max(longest[0], time.monotonic() - began)
                if ok is not True:
                    failed.append(ok)
        if client:
            client.close()

    def leaver():
        while time.monotonic() < end:
            with Client(port) as client:
                client.request("GET", "/slow?s=0.3", host="example.com")
                client.sock.settimeout(0.05)
                try:
                    client.sock.recv(100)
                except OSError:
                    pass
            time.sleep(0.1)
    threads = [threading.Thread(target=leaver if i % 5 == 0 else patient)
               for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done[0], failed, longest[0]


@pytest.mark.parametrize("workers", [2, 4])
def test_never_more_than_children(daemon, port, apps, workers):
    one = serve(daemon, port, front(apps, children=CHILDREN), workers=workers)
    one.wait_running("p")
    assert get(port, host="example.com").status == 200
    with Sampler(pool_socket(one)) as sampler:
        done, failed, longest = storm(port, SECONDS)
    assert sampler.samples > SECONDS * 30
    assert sampler.most <= CHILDREN, \
        f"{sampler.most} sockets are connected to {CHILDREN} children"
    assert sampler.most == CHILDREN, "the storm did not fill the pool"
    assert sampler.waiting == 0, \
        f"{sampler.waiting} times something waited in the listener"
    assert not failed, failed[:5]
    assert done > 100
    # 40 patient and 10 leaving clients over 3 children: a round of the queue
    # takes 40 * 0.02 / 3 + 10 * 0.3 / 3 s, about 1.3 s.
    assert longest < 5 * scalws.SLOW, longest
    wait_for(lambda: one.app("p")["queued"] == 0 and
             one.app("p")["in_flight"] == 0, 5)


def test_without_the_cap_it_fails(daemon, port, apps):
    """The same storm at the same pool without our cap: an upstream that does
    not know how many children there are. The sampler must see it, or the
    test above proves nothing."""
    directory = scalws.scratch()
    path = directory / "pool.sock"
    conf = directory / "pool.conf"
    conf.write_text(f"""
[global]
daemonize = no
error_log = {directory}/fpm.log
[p]
listen = {path}
listen.mode = 0666
pm = static
pm.max_children = {CHILDREN}
{"user = nobody" if scalws.ROOT else ""}
{"group = nogroup" if scalws.ROOT else ""}
""")
    fpm = sorted(p for p in os.listdir("/usr/sbin")
                 if re.fullmatch(r"php-fpm[0-9.]+", p))[-1]
    with scalws.Helper([f"/usr/sbin/{fpm}", "-F", "-y", str(conf)]) as master:
        wait_for(path.exists, 10)
        scalws.Helper.pids |= wait_for(
            lambda: len(d := scalws.descendants(master.pid)) >= CHILDREN and d,
            10)
        daemon({"workers": 2, "sites": [{
            "listen": [f"127.0.0.1:{port}"],
            "routes": [{"path": "*", "upstream": "u"}]}],
            "upstreams": {"u": {
                "protocol": "fastcgi",
                "root": str(apps / "php/front/public"),
                "peers": [{"address": f"unix:{path}"}]}}})
        with Sampler(path) as sampler:
            storm_script(port, 3)
        master.terminate()
        master.wait(10)
    assert sampler.most > CHILDREN or sampler.waiting > 0


def storm_script(port, seconds):
    """Only pressure; answers do not matter."""
    end = time.monotonic() + seconds

    def work(i):
        while time.monotonic() < end:
            try:
                with Client(port, timeout=5) as client:
                    client.exchange("GET", "/index.php", host="example.com")
            except (OSError, Closed, AssertionError):
                pass
    scalws.parallel(20, work)


def test_a_free_child_is_used_at_once(daemon, port, apps):
    """Idle kept connections, on whichever worker, keep nobody waiting."""
    one = serve(daemon, port, front(apps, children=2, idle_timeout="60s"),
                workers=4)
    one.wait_running("p")
    for _ in range(40):     # from always new connections: different workers
        began = time.monotonic()
        assert get(port, host="example.com").status == 200
        assert time.monotonic() - began < 1.0 * scalws.SLOW


def test_client_that_leaves_does_not_free_the_child(daemon, port, apps):
    """The child works on: the next request waits for it in our queue, and is
    not sent to a pool that is full."""
    one = serve(daemon, port, front(apps, children=1))
    one.wait_running("p")
    with Sampler(pool_socket(one)) as sampler:
        with Client(port) as client:
            client.request("GET", "/slow?s=4", host="example.com")
            wait_for(lambda: one.app("p")["in_flight"] == 1, 5)
        began = time.monotonic()
        assert get(port, host="example.com").status == 200
        took = time.monotonic() - began
    assert took > 0.5
    assert sampler.most <= 1 and sampler.waiting == 0


def test_scripts_and_front_controller(daemon, port, apps):
    one = serve(daemon, port, front(apps))
    one.wait_running("p")
    host = dict(host="example.com")
    assert get(port, "/", **host).body == b"ok\n"
    assert get(port, "/other.php", **host).body == b"other script\n"
    assert get(port, "/echo?a=1", **host).json()["query"] == "a=1"
    # No script of that name: the front controller answers.
    assert get(port, "/none.php", **host).status == 404
    assert get(port, "/none.php", **host).body == b"no such page\n"


def test_existing_file_that_is_no_script(daemon, port, apps):
    """Not its text, not run, not given to the front controller: 404."""
    one = serve(daemon, port, {"runtime": "php", "children": 2,
                               "root": str(apps / "php/script"),
                               "front_controller": "app.php"})
    one.wait_running("p")
    answer = get(port, "/plain.txt", host="example.com")
    assert answer.status == 404
    assert b"not a script" not in answer.body


@pytest.mark.parametrize("target,status", [
    ("/../common.php", 400), ("/..%2fcommon.php", None),
    ("/%2e%2e/common.php", 400), ("/plain.txt/x.php", None),
    ("/app.php%00.txt", 400), ("/.hidden.php", None),
    ("/plain.txt%00.php", 400)])
def test_nothing_outside_runs(daemon, port, apps, target, status):
    one = serve(daemon, port, {"runtime": "php", "children": 2,
                               "root": str(apps / "php/script"),
                               "front_controller": "none"})
    one.wait_running("p")
    answer = get(port, target, host="example.com")
    assert answer.status == status if status else answer.status in (
        400, 403, 404), answer
    assert b"not a script" not in answer.body


def test_params(daemon, port, apps):
    """What a PHP application looks at."""
    one = serve(daemon, port, {"runtime": "php", "children": 2,
                               "root": str(apps / "php/script")})
    one.wait_running("p")
    seen = get(port, "/app.php/echo?q=%20x", host="example.com:8443", headers={
        "Authorization": "Basic dTpw", "X-A": "1", "Proxy": "http://evil"}
    ).json()["server"]
    root = str(apps / "php/script")
    assert seen["SCRIPT_FILENAME"] == root + "/app.php"
    assert seen["SCRIPT_NAME"] == "/app.php"
    assert seen["PATH_INFO"] == "/echo"
    assert seen["PATH_TRANSLATED"] == root + "/echo"
    assert seen["DOCUMENT_ROOT"] == root
    assert seen["REQUEST_URI"] == "/app.php/echo?q=%20x"
    assert seen["QUERY_STRING"] == "q=%20x"
    assert seen["REQUEST_METHOD"] == "GET"
    assert seen["SERVER_PROTOCOL"] == "HTTP/1.1"
    assert seen["GATEWAY_INTERFACE"] == "CGI/1.1"
    assert seen["SERVER_NAME"] == "example.com"
    assert seen["SERVER_PORT"] == str(port)
    assert seen["REMOTE_ADDR"] == "127.0.0.1"
    assert int(seen["REMOTE_PORT"]) > 0
    assert seen["SERVER_SOFTWARE"].lower().startswith("scalws")
    assert seen["REQUEST_SCHEME"] == "http"
    assert "HTTPS" not in seen
    assert seen["PHP_AUTH_USER"] == "u" and seen["PHP_AUTH_PW"] == "p"
    assert seen["HTTP_X_A"] == "1"
    assert "HTTP_PROXY" not in seen
    assert seen["HTTP_HOST"] == "example.com:8443"


def test_names_with_underscores_do_not_shadow(daemon, port, apps):
    one = serve(daemon, port, front(apps))
    one.wait_running("p")
    seen = get(port, "/echo", host="example.com", headers=[
        ("X_Real_IP", "6.6.6.6"), ("X-Real-IP", "5.5.5.5")]
    ).json()["server"]
    assert seen.get("HTTP_X_REAL_IP") != "6.6.6.6"


def test_ini_settings(daemon, port, apps):
    one = serve(daemon, port, front(apps, ini={"memory_limit": "77M"},
                                    environment={"FOO": "bar"}))
    one.wait_running("p")
    assert get(port, "/env", host="example.com").json()["FOO"] == "bar"


def test_root_that_is_not_there(daemon, port):
    """The app cannot be started; clients are told that, and when to ask."""
    serve(daemon, port, {"runtime": "php", "root": "/nonexistent/public"})
    answer = get(port, host="example.com")
    assert answer.status == 503
    assert answer.get("Retry-After")


def test_errors_of_scripts_go_to_the_apps_log(daemon, port, apps):
    directory = scalws.scratch()
    (directory / "index.php").write_text(
        "<?php error_log('from the script'); throw new Exception('oh no');")
    one = serve(daemon, port, {"runtime": "php", "root": str(directory)})
    one.wait_running("p")
    assert get(port, host="example.com").status == 500
    wait_for(lambda: "from the script" in one.app_log("p"), 5)
    wait_for(lambda: "oh no" in one.app_log("p"), 5)


def test_lines_beside_an_answer_go_to_the_apps_log(daemon, port, apps):
    """FastCGI's error stream, with the request's id and the app's pid."""
    root = scalws.scratch()
    (root / "noisy.php").write_text(
        '<?php ini_set("error_log", ""); error_log("one\\ntwo"); '
        'echo $_SERVER["HTTP_X_REQUEST_ID"];')
    (root / "noisy.php").chmod(0o644)
    one = daemon({"sites": [{"listen": [f"127.0.0.1:{port}"], "routes": [
        {"path": "*", "app": "p"}]}],
        "apps": {"p": {"runtime": "php", "root": str(root)}}})
    pid = one.wait_running("p")[0]
    answer = get(port, "/noisy.php")
    assert answer.status == 200 and answer.text
    for word in ("one", "two"):
        wait_for(lambda: re.search(
            rf"\[{pid}\] r={answer.text} .*{word}", one.app_log("p")), 10)


def test_headers_and_status_of_cgi(daemon, port, apps):
    directory = scalws.scratch()
    (directory / "index.php").write_text("""<?php
        header('X-Two: 1'); header('X-Two: 2', false);
        header('Location: /else');
        header('Content-Type: text/x');
        http_response_code(302);
        echo 'body';""")
    one = serve(daemon, port, {"runtime": "php", "root": str(directory)})
    one.wait_running("p")
    answer = get(port, host="example.com")
    assert answer.status == 302
    assert answer.get("Location") == "/else"
    assert answer.all("X-Two") == ["1", "2"]
    assert not answer.all("Status")
    assert answer.body == b"body"


def test_upload_by_chunks_has_a_length(daemon, port, apps):
    """FastCGI needs CONTENT_LENGTH: kept first, then sent."""
    one = serve(daemon, port, front(apps))
    one.wait_running("p")
    body = [os.urandom(50000) for _ in range(60)]
    seen = get(port, "/echo", "POST", chunks=body, host="example.com").json()
    assert seen["body_length"] == 3000000
    assert seen["server"]["CONTENT_LENGTH"] == "3000000"
    assert not os.listdir(one.tmp)


def test_killed_child(daemon, port, apps):
    """502 for its request; the master makes a new one; the cap holds."""
    one = serve(daemon, port, front(apps, children=2))
    master = one.wait_running("p")[0]
    for _ in range(4):
        assert get(port, "/crash", host="example.com").status == 502
        assert get(port, host="example.com").status == 200
    assert one.pids("p") == [master]


def test_sampler_sees_what_it_should(tmp_path):
    """The instrument itself: connected sockets and waiting ones."""
    path = scalws.scratch() / "s"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(5)
    sampler = Sampler(path)

    def seen():
        connected, waiting = sampler.sample()
        return connected, len(waiting)
    assert seen() == (0, 0)
    a, b = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    a.connect(str(path))
    b.connect(str(path))
    assert seen() == (2, 2)
    accepted, _ = listener.accept()
    assert seen() == (2, 1)
    b.close()
    accepted.close()
    a.close()
    listener.close()


def test_status_of_the_pool_has_a_socket_of_its_own(daemon, port, apps):
    """pm.status_listen answers while all children are busy."""
    one = serve(daemon, port, front(apps, children=1))
    one.wait_running("p")
    sockets = subprocess.run(["ss", "-xlH"], capture_output=True,
                             text=True).stdout
    ours = [line for line in sockets.splitlines() if str(one.run) in line]
    assert any("status" in line for line in ours), ours
