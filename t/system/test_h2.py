"""HTTP/2 in front of everything that HTTP/1 is in front of."""
import subprocess

import scalws

HELLO = {"path": "/hello", "respond": {"body": "hello\n"}}


def curl(*args, timeout=60):
    done = subprocess.run(
        ["curl", "-sS", "--http2-prior-knowledge", *args],
        capture_output=True, timeout=timeout * scalws.SLOW)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_curl(daemon, port):
    site = {"listen": [f"127.0.0.1:{port}"], "routes": [HELLO]}
    daemon({"sites": [site]})
    url = f"http://127.0.0.1:{port}"
    assert curl(url + "/hello") == "hello\n"
    assert curl("-w", "%{http_code} %{http_version}", "-o", "/dev/null",
                url + "/none") == "404 2"
    assert curl("-I", url + "/hello").startswith("HTTP/2 200")
