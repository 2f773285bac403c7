"""HTTP/2 with the clients that people use: curl, Node, nghttp, h2load,
Chromium; each is skipped where it is not installed."""
import json
import os
import re
import shutil
import signal
import subprocess

import pytest

import scalws
from raw.h2_client import tls_context
from scalws import get, wait_for

MIB = 1 << 20
# Of each of four uploads and four downloads at the same time.
BYTES = 100 * MIB if scalws.LONG else 3 * MIB
PATIENCE = 600 if scalws.LONG else 60


class Server:
    """The daemon with page.py behind it, by TLS and in cleartext."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.plain, self.tls = daemon.addresses()
        self.http = f"http://127.0.0.1:{self.plain[1]}"
        self.https = f"https://localhost:{self.tls[1]}"

    def url(self, transport, path=""):
        return (self.https if transport == "tls" else self.http) + path

    def accepted(self):
        return self.daemon.status()["proxy"]["accepted"]


@pytest.fixture(scope="module")
def server():
    plain, tls = scalws.free_port(), scalws.free_port()
    apps = scalws.apps_directory()
    conf = {
        "limits": {"body_bytes": "200M"},
        "apps": {"page": {"runtime": "python", "python": "/usr/bin/python3",
                          "directory": str(apps / "python"),
                          "module": "page:app"}},
        "sites": [{"names": ["localhost"],
                   "listen": [f"127.0.0.1:{plain}", f"127.0.0.1:{tls} tls"],
                   "tls": scalws.certificate(),
                   "routes": [{"path": "/fixed", "respond": {
                       "status": 200, "body": "fixed\n"}},
                       {"path": "/none", "respond": {"status": 204}},
                       {"path": "/small/*", "max_body_bytes": "1K",
                        "app": "page"},
                       {"path": "*", "app": "page"}]}],
    }
    with scalws.Daemon(conf) as daemon:
        daemon.wait_running("page")
        yield Server(daemon)


def need(name):
    if not shutil.which(name):
        pytest.skip(f"no {name}")


def run(*argv, timeout=PATIENCE, **more):
    done = subprocess.run(
        list(map(str, argv)), stdin=subprocess.DEVNULL, text=True,
        capture_output=True, timeout=timeout * scalws.SLOW, **more)
    assert done.returncode == 0, f"{argv}: {done.returncode}\n" \
        f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


TRANSPORTS = pytest.mark.parametrize("transport", ["cleartext", "tls"])


# --- curl --------------------------------------------------------------------

def curl(transport, *args):
    need("curl")
    how = "--http2" if transport == "tls" else "--http2-prior-knowledge"
    return run("curl", "-sSk", how, "--max-time", PATIENCE * scalws.SLOW,
               *args)


@TRANSPORTS
def test_curl(server, transport):
    said = curl(transport, "-w", "%{http_version} %{http_code}",
                server.url(transport, "/echo?x=1"))
    body, _, rest = said.rpartition("}")
    assert rest == "2 200", said
    saw = json.loads(body + "}")
    assert (saw["method"], saw["path"], saw["query"]) == \
        ("GET", "/echo", "x=1")
    assert saw["scheme"] == ("https" if transport == "tls" else "http")
    assert "HTTP/2 200" in curl(transport, "-I", server.url(transport,
                                                            "/fixed"))


@TRANSPORTS
def test_curl_carries_large_bodies(server, transport, tmp_path):
    """Down, four at once over one connection, and up."""
    piece = bytes(range(256)) * 256
    wanted = scalws.sha256((piece * (BYTES // len(piece) + 1))[:BYTES])
    # It can use a cleartext connection once only, whoever serves it.
    times = 4 if transport == "tls" else 1
    args = ["-Z"]
    for n in range(times):
        args += [server.url(transport, f"/download/{BYTES}"),
                 "-o", tmp_path / f"down{n}"]
    curl(transport, *args)
    for n in range(times):
        assert scalws.sha256((tmp_path / f"down{n}").read_bytes()) == wanted
    whole = os.urandom(MIB) * (BYTES // MIB)
    (tmp_path / "up").write_bytes(whole)
    saw = json.loads(curl(transport, "-T", tmp_path / "up", "-X", "POST",
                          server.url(transport, "/upload")))
    assert saw == {"size": BYTES, "sha256": scalws.sha256(whole)}


@TRANSPORTS
def test_curl_is_answered_before_its_upload(server, transport, tmp_path):
    """It takes a reset behind the answer for a failure."""
    (tmp_path / "up").write_bytes(b"u" * 3 * MIB)
    for path, status in (("/small/", 413), ("/fixed", 200), ("/none", 204)):
        said = curl(transport, "-X", "POST", "-T", tmp_path / "up", "-o",
                    tmp_path / "answer", "-w", "%{http_version} %{http_code}",
                    server.url(transport, path))
        assert said == f"2 {status}"


# --- Node ----------------------------------------------------------------------

def nodes():
    """Whatever `node` is, and others that the environment names."""
    return ["node"] + os.environ.get("SCALWS_NODES", "").split()


@TRANSPORTS
@pytest.mark.parametrize("node", nodes())
def test_node(server, transport, node):
    """50 assets, and four uploads and downloads of BYTES each at the same
    time, over one connection."""
    need(node)
    before = server.accepted()
    script = scalws.apps_directory() / "node/h2client.mjs"
    saw = json.loads(run(node, script, server.url(transport), BYTES))
    assert server.accepted() - before == 1
    assert saw["pushes"] == 0 and saw["assets"] == 50 and saw["last"] == 1000
    text = (b"upload" * (65536 // 6 + 1))[:65536]
    whole = (text * (BYTES // 65536 + 1))[:BYTES]
    assert len(saw["uploads"]) == len(saw["downloads"]) == 4
    for answer in saw["uploads"]:
        assert json.loads(answer["text"]) == {
            "size": BYTES, "sha256": scalws.sha256(whole)}
    for answer in saw["downloads"]:
        assert (answer["status"], answer["size"]) == (200, BYTES)


# --- nghttp2's tools -------------------------------------------------------------

@TRANSPORTS
def test_nghttp(server, transport):
    need("nghttp")
    said = run("nghttp", "-nv", "--no-dep", "-H", "te: trailers",
               *[server.url(transport, f"/asset/{n}.js") for n in range(20)])
    statuses = re.findall(r":status: (\d+)", said)
    assert statuses == ["200"] * 20, \
        (statuses, server.daemon.access_log()[-22:], server.daemon.log()[-9000:])
    assert "PUSH_PROMISE" not in said.replace("ENABLE_PUSH", "")
    assert not re.search(r"recv (RST_STREAM|GOAWAY)", said)


@TRANSPORTS
@pytest.mark.parametrize("path", ["/fixed", "/asset/1.js"])
def test_h2load(server, transport, path):
    need("h2load")
    n = 20000 if scalws.LONG else 1000
    said = run("h2load", "-n", n, "-c", 8, "-m", 20,
               server.url(transport, path))
    assert re.search(rf"\b{n} done, {n} succeeded, 0 failed, 0 errored, "
                     r"0 timeout", said), said
    assert f"status codes: {n} 2xx" in said


def test_h2load_uploads(server, tmp_path):
    need("h2load")
    (tmp_path / "up").write_bytes(b"u" * 300000)
    said = run("h2load", "-n", 60, "-c", 3, "-m", 10, "-d", tmp_path / "up",
               server.url("tls", "/upload"))
    assert "60 succeeded, 0 failed" in said, said


# --- what is agreed on in the handshake ----------------------------------------

def test_alpn(server):
    import ssl
    for offered, wanted in ((["h2"], "h2"), (["http/1.1", "h2"], "h2"),
                            (["http/1.1"], "http/1.1"), ([], None)):
        context = tls_context(offered) if offered else tls_context()
        if not offered:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        with context.wrap_socket(scalws.connect(server.tls),
                                 server_hostname="localhost") as sock:
            assert sock.selected_alpn_protocol() == wanted, offered


def test_http1_beside_it(server):
    """The same cleartext listener, by HTTP/1."""
    assert get(server.plain, "/fixed").body == b"fixed\n"


# --- Chromium ----------------------------------------------------------------------

class Chromium:
    """One without a window, with a profile of its own, that opens `url`."""

    def __init__(self, url, place, *more):
        need("chromium")
        argv = ["chromium", "--headless", "--disable-gpu", "--no-first-run",
                "--ignore-certificate-errors", "--disable-extensions",
                "--disable-background-networking", "--disable-sync",
                "--no-default-browser-check", "--disable-dev-shm-usage",
                f"--user-data-dir={place}/profile", *more, url]
        if scalws.ROOT:
            argv.insert(1, "--no-sandbox")
        self.log = open(f"{place}/chromium.log", "wb")
        self.helper = scalws.Helper(argv, start_new_session=True,
                                    stdout=self.log, stderr=self.log)

    def __enter__(self):
        return self.helper.__enter__()

    def __exit__(self, *ignored):
        # It has children of its own, all in its session.
        try:
            os.killpg(self.helper.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.helper.__exit__(*ignored)
        self.log.close()


def test_chromium(server, tmp_path):
    """A page with 50 assets, server-sent events and a WebSocket, everything
    by HTTP/2 over one connection."""
    before = len(get(server.plain, "/report").json())
    accepted = server.accepted()
    # It waits for ports that it holds for unsafe.
    port = server.tls[1]
    with Chromium(server.url("tls", "/page"), tmp_path, "--remote-debugging-"
                  "port=0", f"--explicitly-allowed-ports={port}"):
        def report():
            found = get(server.plain, "/report").json()
            return found[before:] and found[before]
        try:
            saw = wait_for(report, 60, "Chromium's report", every=0.2)
        except AssertionError:
            print((tmp_path / "chromium.log").read_text()[-3000:])
            raise
    assert saw["events"] == [f"event {n}" for n in range(3)]
    assert saw["socket"] == "hello"
    assert saw["loaded"] == 50
    assert saw["page"] == "h2"
    assert set(saw["protocols"]) == {"h2"} and len(saw["protocols"]) == 50
    # We asked for the report meanwhile; it may open a second one ahead.
    asked = sum("/report" in line for line in server.daemon.access_log())
    assert server.accepted() - accepted <= 3 + asked
