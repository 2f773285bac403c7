"""What a client sends reaches each kind of application unchanged, and back."""
import time

import pytest

import scalws
from runtimes import CASES, one_app, parameters, skip_unless_possible
from scalws import Client, Daemon, get, sha256

BIG = bytes(range(256)) * 40960     # 10 MiB


@pytest.fixture(scope="module", params=parameters())
def served(request):
    """One daemon per application for all tests of this file."""
    case = request.param
    skip_unless_possible(case)
    port = scalws.free_port()
    conf = one_app(case, port)
    conf["trusted_proxies"] = ["127.0.0.2"]
    with Daemon(conf) as one:
        one.case, one.port = case, port
        one.wait_running("app")
        yield one


def test_get(served):
    answer = get(served.port, served.case.path("/"))
    assert answer.status == 200
    assert answer.body == b"ok\n"


def test_query_and_path(served):
    query = "a=1&b=%2F%20x&c&&d=+%E4"
    seen = get(served.port, served.case.path("/echo?" + query)).json()
    assert seen["method"] == "GET"
    assert seen["query"] == query
    assert seen["path"] == "/echo"
    assert seen["body_length"] == 0


def test_post_10_mib(served):
    seen = get(served.port, served.case.path("/echo"), "POST", body=BIG,
               headers={"Content-Type": "application/octet-stream"}).json()
    assert seen["method"] == "POST"
    assert seen["body_length"] == len(BIG)
    assert seen["body_sha256"] == sha256(BIG)
    assert seen["headers"]["content-type"] == ["application/octet-stream"]


def test_chunked_post(served):
    chunks = [b"x", b"y" * 70000, bytes(range(256)), b"z" * 300000]
    whole = b"".join(chunks)
    seen = get(served.port, served.case.path("/echo"), "POST", chunks=chunks,
               headers={"Content-Type": "application/octet-stream"}).json()
    assert seen["body_length"] == len(whole)
    assert seen["body_sha256"] == sha256(whole)


def test_empty_post(served):
    seen = get(served.port, served.case.path("/echo"), "POST", body=b"").json()
    assert seen["method"] == "POST" and seen["body_length"] == 0


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_methods(served, method):
    seen = get(served.port, served.case.path("/echo"), method,
               body=b"some body").json()
    assert seen["method"] == method
    assert seen["body_sha256"] == sha256(b"some body")


def test_head(served):
    """No body, and the connection goes on."""
    with Client(served.port) as client:
        answer = client.exchange("HEAD", served.case.path("/status/200"))
        assert answer.status in (200, 405)      # FastAPI: 405 to HEAD
        answer = client.exchange("HEAD", served.case.path("/echo"))
        assert answer.status == 200
        answer = client.exchange("GET", served.case.path("/"))
        assert answer.body == b"ok\n"


def test_cookies(served):
    answer = get(served.port, served.case.path("/cookies"),
                 headers={"Cookie": "x=1; y=\"2 3\""})
    assert answer.json()["cookie"] == "x=1; y=\"2 3\""
    cookies = answer.all("Set-Cookie")
    assert len(cookies) == 2, cookies
    assert cookies[0].startswith("a=1") and cookies[1].startswith("b=2")


@pytest.mark.parametrize("status", [201, 404, 418, 500, 503])
def test_status_of_the_app(served, status):
    with Client(served.port) as client:
        for _ in range(2):
            answer = client.exchange(
                "GET", served.case.path(f"/status/{status}"))
            assert answer.status == status
            assert answer.body == f"status {status}\n".encode()


def test_unknown_page_is_the_apps(served):
    answer = get(served.port, served.case.path("/nothing-here"))
    assert answer.status == 404
    assert answer.body


def test_stream(served):
    """Pieces arrive as they are made, not at the end."""
    with Client(served.port) as client:
        client.request("GET", served.case.path("/stream?n=50&size=100"))
        answer = client.response_head()
        assert answer.status == 200
        began = time.monotonic()
        client.read_body(answer)
        took = time.monotonic() - began
    assert answer.body == b"".join(
        str(i % 10).encode() * 100 for i in range(50))
    # 50 pieces, 10 ms apart: collected first they would arrive at once.
    assert took > 0.2


def test_stream_to_http_1_0(served):
    answer = get(served.port, served.case.path("/stream?n=5&size=1000"),
                 version="1.0")
    assert "Transfer-Encoding" not in dict(answer.fields)
    assert len(answer.body) == 5000


def test_fields_arrive(served):
    """Repeated, empty and long fields; nothing invented."""
    seen = get(served.port, served.case.path("/echo"), headers=[
        ("X-Long", "l" * 3000), ("X-Empty", ""), ("Accept", "a/b;q=0.5, c/d"),
        ("Authorization", "Basic dTpw"), ("User-Agent", "test (1)")]).json()
    fields = seen["headers"]
    assert fields["x-long"] == ["l" * 3000]
    assert fields["accept"] == ["a/b;q=0.5, c/d"]
    assert fields["authorization"] == ["Basic dTpw"]
    assert fields["user-agent"] == ["test (1)"]
    assert "proxy" not in fields


def test_hop_by_hop_fields_do_not(served):
    seen = get(served.port, served.case.path("/echo"), headers=[
        ("Connection", "close, X-Secret"), ("X-Secret", "1"), ("TE", "gzip"),
        ("Keep-Alive", "timeout=3"), ("Upgrade", "nothing"),
        ("Proxy-Connection", "close"), ("Proxy", "http://evil/")]).json()
    for name in ("x-secret", "keep-alive", "te", "upgrade",
                 "proxy-connection", "proxy"):
        assert name not in seen["headers"], name


def test_forwarded(served):
    """One address, the true one: what an untrusted client says is dropped."""
    seen = get(served.port, served.case.path("/echo"), host="example.com",
               headers=[("X-Forwarded-For", "9.9.9.9, 8.8.8.8"),
                        ("X-Forwarded-Proto", "https"),
                        ("X-Forwarded-Host", "evil.example"),
                        ("X_Forwarded_For", "7.7.7.7"),
                        ("Forwarded", "for=6.6.6.6")]).json()
    fields = seen["headers"]
    if seen.get("server"):      # PHP sees all of it natively
        assert "x-forwarded-for" not in fields
    else:
        assert fields["x-forwarded-for"] == ["127.0.0.1"], fields
        assert fields["x-forwarded-proto"] == ["http"]
        assert fields["x-forwarded-host"] == ["example.com"]
    for address in ("9.9.9.9", "8.8.8.8", "evil.example"):
        assert address not in str(seen)
    assert "6.6.6.6" not in str(fields) and "7.7.7.7" not in str(fields)
    assert len(fields["x-request-id"]) == 1 and fields["x-request-id"][0]
    native = served.case.native
    if "client" in native:
        assert seen["client"] == "127.0.0.1"
    if "scheme" in native:
        assert seen["scheme"] == "http"
    if "host" in native:
        assert seen["host"] == "example.com"
    assert fields["host"] == ["example.com"]


def test_forwarded_by_a_trusted_proxy(served):
    """From an address in trusted_proxies the last untrusted one counts."""
    import socket
    sock = socket.create_connection(("127.0.0.1", served.port), 30,
                                    ("127.0.0.2", 0))
    client = Client.__new__(Client)
    client.sock, client.buffer = sock, b""
    with client:
        answer = client.exchange(
            "GET", served.case.path("/echo"), host="example.com",
            headers=[("X-Forwarded-For", "9.9.9.9, 203.0.113.9"),
                     ("X-Forwarded-Proto", "https")])
    seen = answer.json()
    fields = seen["headers"]
    if not seen.get("server"):
        assert fields["x-forwarded-for"] == ["203.0.113.9"]
        assert fields["x-forwarded-proto"] == ["https"]
    if "client" in served.case.native:
        assert seen["client"] == "203.0.113.9"
    if "scheme" in served.case.native:
        assert seen["scheme"] == "https"


def test_connection_is_kept(served):
    with Client(served.port) as client:
        for i in range(20):
            answer = client.exchange("GET", served.case.path(f"/echo?n={i}"))
            assert answer.json()["query"] == f"n={i}"


def test_app_that_dies_in_the_middle(served):
    """502 for that request, and the next one is served again."""
    answer = get(served.port, served.case.path("/crash"))
    assert answer.status == 502, answer
    assert get(served.port, served.case.path("/")).body == b"ok\n"


def test_access_log_names_it(served):
    get(served.port, served.case.path("/echo?find-me=1"),
        headers={"User-Agent": "agent 007", "Referer": "http://r/"})
    lines = scalws.wait_for(lambda: [
        line for line in served.access_log() if "find-me=1" in line], 5)
    assert '" 200 ' in lines[0] and '"agent 007"' in lines[0]
    assert lines[0].startswith("127.0.0.1 ")


def test_every_case_has_a_name():
    assert len({case.name for case in CASES}) == len(CASES)
