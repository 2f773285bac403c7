"""TLS to upstreams: who is believed, what fails, what is kept."""
import contextlib
import os
import re
import socket
import ssl
import struct
import subprocess
import threading
import time
import warnings

import pytest

import scalws
from scalws import Client, Origin, OriginConn, wait_for
from test_tls import make, openssl, place  # noqa: F401 (a fixture)


def expired(place, name, names, ca):
    """As make, but it was valid in 2020 alone."""
    group = make(place, name, names)
    (place / "index.txt").write_text("")
    (place / "serial").write_text("01\n")
    (place / "ca.conf").write_text(
        f"[ca]\ndefault_ca = d\n[d]\ndatabase = {place}/index.txt\n"
        f"new_certs_dir = {place}\nserial = {place}/serial\n"
        "default_md = sha256\npolicy = p\nx509_extensions = x\n"
        "[p]\ncommonName = supplied\n[x]\nsubjectAltName = "
        + ",".join(f"{'DNS' if n[-1].isalpha() else 'IP'}:{n}"
                   for n in names) + "\n")
    openssl("req", "-new", "-key", group["key"], "-subj", f"/CN={name}",
            "-out", place / "csr")
    openssl("ca", "-batch", "-notext", "-config", place / "ca.conf", "-cert",
            place / f"{ca}.pem", "-keyfile", place / f"{ca}.key", "-in",
            place / "csr", "-out", group["certificate"], "-startdate",
            "20200101000000Z", "-enddate", "20201231000000Z")
    return group


def server(group, version=None, client_ca=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(group["certificate"], group["key"])
    context.set_alpn_protocols(["h2", "http/1.1"])
    if version:
        with warnings.catch_warnings():     # old ones, on purpose
            warnings.simplefilter("ignore")
            context.minimum_version = context.maximum_version = version
    if client_ca:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class TlsOrigin(Origin):
    """Origin (scalws.py) behind TLS; `asked` are the names of the clients,
    `resumed` says of each handshake whether it took up a session."""
    def __init__(self, script, context, path=None):
        self.context, self.asked, self.resumed = context, [], []
        self.protocols, self.failed = [], []
        context.sni_callback = lambda sock, name, ours: self.asked.append(name)
        super().__init__(script, path)

    def run(self, sock):
        try:
            wrapped = self.context.wrap_socket(sock, server_side=True)
        except OSError as error:
            self.failed.append(error)
            sock.close()
            return
        self.resumed.append(wrapped.session_reused)
        self.protocols.append(wrapped.selected_alpn_protocol())
        with self.lock:
            self.socks.add(wrapped)
        super().run(wrapped)


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes"


def echo(conn):
    while (got := conn.read_request()) is not None:
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" %
                  len(got[1]) + got[1])


@pytest.fixture
def ca(place):
    make(place, "ca", [])
    return str(place / "ca.pem")


def upstream(origin, **tls):
    more = tls.pop("more", {})
    return {"protocol": "https", "peers": [origin.address], "tls": tls, **more}


def serve(daemon, port, upstreams, **keys):
    return daemon({
        "upstreams": upstreams,
        "sites": [{"listen": [f"127.0.0.1:{port}"], "routes":
                   [{"path": f"/{name}/*", "upstream": name}
                    for name in upstreams] +
                   [{"path": "/status", "status": True}]}], **keys})


def test_bodies(daemon, port, place, ca):
    """Both ways, on one connection, verified by address."""
    group = make(place, "by-ip", ["127.0.0.1"], ca="ca")
    with TlsOrigin(echo, server(group)) as origin:
        serve(daemon, port, {"o": upstream(origin, ca=ca)}, workers=1)
        with Client(port) as client:
            for size in (0, 1, 16383, 16384, 16385, 70000, 3000000):
                body = os.urandom(size)
                answer = client.exchange("POST", "/o/", body=body)
                assert (answer.status, answer.body == body) == (200, True), size
        assert origin.connections == 1
        assert origin.asked == [None] and origin.protocols == ["http/1.1"]


def test_names(daemon, port, place, ca):
    """A name is asked for and verified; an address of another form as well."""
    group = make(place, "named", ["api.example", "*.wild.example", "10.1.1.1"],
                 ca="ca")
    with TlsOrigin(OK, server(group)) as origin:
        def named(name, **tls):
            return upstream(origin, ca=ca, server_name=name, **tls)
        serve(daemon, port, {
            "exact": named("api.example"), "wild": named("a.wild.example"),
            "address": named("10.1.1.1"), "cn": named("named"),
            "deep": named("a.b.wild.example"), "other": named("b.example"),
            "ip": upstream(origin, ca=ca),
            "any": upstream(origin, verify=False)}, workers=1)
        for path, status in (("exact", 200), ("wild", 200), ("address", 200),
                             ("any", 200), ("cn", 502), ("deep", 502),
                             ("other", 502), ("ip", 502)):
            assert scalws.get(port, f"/{path}/").status == status, path
        assert origin.asked[:3] == ["api.example", "a.wild.example", None]


class Raw(Origin):
    """No TLS at all: what came is in `seen`, `say` is called with the socket."""
    def __init__(self, say):
        self.seen, self.say = b"", say
        super().__init__(b"")

    def run(self, sock):
        with contextlib.suppress(OSError):
            self.say(sock)
            while got := sock.recv(65536):
                self.seen += got
        sock.close()


def reset(sock):
    sock.recv(10)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                    struct.pack("ii", 1, 0))
    sock.close()


def test_bad_peers(daemon, port, place, ca):
    """Each is told from the others in the log, also when a peer fails for
    another reason than before, and none of them sees a request."""
    make(place, "other-ca", [])
    names = ["127.0.0.1"]
    with contextlib.ExitStack() as stack:
        origins = {}

        def bad(name, group, **how):
            origins[name] = stack.enter_context(
                TlsOrigin(OK, server(group, **how)))

        def raw(name, say):
            origins[name] = stack.enter_context(Raw(say))
        good = make(place, "good", names, ca="ca")
        bad("expired", expired(place, "expired", names, ca="ca"))
        bad("name", make(place, "name", ["127.0.0.2", "localhost"], ca="ca"))
        bad("issuer", make(place, "issuer", names, ca="other-ca"))
        bad("self", make(place, "self", names))
        bad("old", good, version=ssl.TLSVersion.TLSv1_1)
        origins["old"].context.set_ciphers("ALL:@SECLEVEL=0")
        raw("plain", lambda sock: sock.sendall(
            b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"))
        raw("garbage", lambda sock: sock.sendall(bytes(range(256)) * 4))
        raw("reset", reset)
        raw("closed", lambda sock: sock.shutdown(socket.SHUT_WR))
        raw("silent", lambda sock: None)
        d = serve(daemon, port, {
            name: upstream(origin, ca=ca, more={"connect_timeout": "700ms"})
            for name, origin in origins.items()}, workers=1)
        for name, why in (
                ("expired", "certificate has expired"),
                ("name", "IP address mismatch"),
                ("issuer", "unable to get local issuer certificate"),
                ("self", "self-signed certificate"),
                ("old", "version|protocol"),
                ("plain", "it does not speak TLS"),
                ("garbage", "it does not speak TLS|record|unexpected"),
                ("reset", "closed in the handshake"),
                ("closed", "closed in the handshake")):
            with Client(port) as client:
                answer = client.exchange("POST", f"/{name}/", body=b"secret")
                assert answer.status == 502, name
            d.wait_log(rf"upstream={name} peer=\S+ TLS handshake failed: "
                       rf".*({why})")
        assert scalws.get(port, "/silent/").status == 504
        d.wait_log("upstream=silent .*no end of the TLS handshake in time")
        origins["expired"].context = origins["name"].context

        def is_told():
            assert scalws.get(port, "/expired/").status == 502
            return re.search("warn.* upstream=expired .*failed: IP address "
                             "mismatch", d.log())
        wait_for(is_told, 20, "the new reason")
        for name, origin in origins.items():
            assert not origin.requests, name
            assert b"secret" not in getattr(origin, "seen", b""), name
        counted = {one["name"]: one for one in
                   scalws.get(port, "/status").json()["upstreams"]}
        assert all(counted[name]["errors"] > 0 for name in origins), counted


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_client_certificate(daemon, port, place, ca, version):
    """Shown when it is asked for; what is missing or bad is a 502."""
    group = make(place, "server", ["127.0.0.1"], ca="ca")
    mine = make(place, "mine", ["proxy.example"], ca="ca")
    alien = make(place, "alien", ["proxy.example"])
    context = server(group, version=ssl.TLSVersion[version], client_ca=ca)
    seen = []

    def who(conn):
        seen.append(dict(x[0] for x in conn.sock.getpeercert()["subject"]))
        conn.read_request()
        conn.send(OK)
        conn.read_request()
    with TlsOrigin(who, context) as origin:
        d = serve(daemon, port, {
            "mine": upstream(origin, ca=ca, **mine),
            "none": upstream(origin, ca=ca),
            "alien": upstream(origin, ca=ca, **alien)})
        assert scalws.get(port, "/mine/").status == 200
        assert seen == [{"commonName": "mine"}]
        assert scalws.get(port, "/none/").status == 502
        assert scalws.get(port, "/alien/").status == 502
        d.wait_log("upstream=none .*(certificate required|handshake failure)")
        d.wait_log("upstream=alien .*unknown ca")
        assert len(seen) == 1


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_sessions(daemon, port, place, ca, version):
    """A new connection takes up the session of the last one."""
    group = make(place, "server", ["127.0.0.1"], ca="ca")

    def once(conn):
        conn.read_request()
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
                  b"Connection: close\r\n\r\nok")
        with contextlib.suppress(OSError):
            conn.sock.unwrap()
    context = server(group, version=ssl.TLSVersion[version])
    with TlsOrigin(once, context) as origin:
        serve(daemon, port, {"o": upstream(origin, ca=ca)}, workers=1)
        for _ in range(4):
            assert scalws.get(port, "/o/").body == b"ok"
        assert origin.resumed == [False, True, True, True]


class OpensslServer:
    """`openssl s_server`: one connection at a time. What it decrypts stands
    in `text`; a line that is k, K or Q makes it change keys, ask for that
    too, or end the connection."""
    def __init__(self, group):
        self.port, self.text = scalws.free_port(), b""
        self.address = f"127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            ["openssl", "s_server", "-accept", self.address, "-cert",
             group["certificate"], "-key", group["key"], "-msg"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, bufsize=0)
        threading.Thread(target=self.read, daemon=True).start()
        wait_for(lambda: b"ACCEPT" in self.text, 10 * scalws.SLOW)

    def read(self):
        while got := os.read(self.process.stdout.fileno(), 65536):
            self.text += got

    def say(self, data):
        os.write(self.process.stdin.fileno(), data)

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.process.kill()
        self.process.communicate()


def test_messages_of_tls_between_requests(daemon, port, place, ca):
    """New keys on an idle connection do not end it, nor what follows them."""
    group = make(place, "server", ["127.0.0.1"], ca="ca")
    with OpensslServer(group) as peer:
        serve(daemon, port, {"o": upstream(
            peer, ca=ca, more={"idle_timeout": "60s"})}, workers=1)
        with Client(port) as client:
            for method, line in (("GET", b"k"), ("GET", b"K"), ("POST", b"k"),
                                 ("POST", b"")):
                seen = len(peer.text)
                client.request(method, "/o/",
                               body=b"x" if method == "POST" else None)
                wait_for(lambda: b"\r\n\r\n" in peer.text[seen:],
                         10 * scalws.SLOW, "the request to come")
                peer.say(OK)
                assert client.response().body == b"yes"
                if line:
                    seen = len(peer.text)
                    peer.say(line + b"\n")
                    wait_for(lambda: b"KeyUpdate" in peer.text[seen:],
                             10 * scalws.SLOW, "new keys")
        assert peer.text.count(b"BEGIN SSL SESSION") == 1


def test_ends(daemon, port, place, ca):
    """What may be cut short by anybody is not taken for whole; a connection
    that ends between two requests fails none."""
    ended = threading.Event()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"

    def script(conn):
        while (got := conn.read_request()) is not None:
            path = got[0].split()[1].decode()
            if path in ("/o/cut", "/o/whole"):
                conn.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nyes")
            elif path == "/o/short":
                conn.send(head % 10 + b"yes")
            else:
                conn.send(head % 3 + b"yes")
            if path in ("/o/whole", "/o/short", "/o/notify"):
                conn.sock.unwrap()      # until the proxy has said so too
            if path != "/o/stay":
                conn.sock.shutdown(socket.SHUT_RDWR)
                ended.set()
                return
    group = make(place, "server", ["127.0.0.1"], ca="ca")
    with TlsOrigin(script, server(group)) as origin:
        serve(daemon, port, {"o": upstream(
            origin, ca=ca, more={"idle_timeout": "60s"})}, workers=1)
        for path in ("cut", "short"):
            with pytest.raises((scalws.Closed, ConnectionError)):
                scalws.get(port, f"/o/{path}")
        for path in ("whole", "length"):
            assert scalws.get(port, f"/o/{path}").body == b"yes"
        for path in ("notify", "abrupt"):
            for method in ("GET", "POST"):
                assert scalws.get(port, "/o/stay").body == b"yes"
                ended.clear()
                assert scalws.get(port, f"/o/{path}").body == b"yes"
                assert ended.wait(10 * scalws.SLOW)
                answer = scalws.get(port, "/o/stay", method,
                                    body=b"x" if method == "POST" else None)
                assert answer.body == b"yes", (path, method)


def test_websocket(daemon, port, place, ca):
    """A tunnel, with large messages, closed by either side."""
    from test_websocket import SWITCH, Ws

    def script(conn):
        conn.read_head()
        conn.send(SWITCH)
        while got := conn.sock.recv(65536):
            text = len(got)
            conn.send(struct.pack("!BBQ", 0x82, 127, text) + got)
        conn.sock.unwrap()
    group = make(place, "server", ["127.0.0.1"], ca="ca")
    with TlsOrigin(script, server(group)) as origin:
        serve(daemon, port, {"o": upstream(origin, ca=ca)})
        with Ws(port, target="/o/") as client:
            client.send(b"a" * 200000)
            got = b""
            while len(got) < 200000:
                _, length = struct.unpack("!HQ", client.take(10))
                got += client.take(length)
            assert got == b"a" * 200000
            client.sock.shutdown(socket.SHUT_WR)
            assert client.at_eof()


def test_reload(daemon, port, place, ca):
    """New rules are for what comes after it, and a bad file changes nothing."""
    group = make(place, "server", ["127.0.0.1"], ca="ca")
    make(place, "new", [])
    roots = place / "roots.pem"
    roots.write_bytes((place / "ca.pem").read_bytes())
    with TlsOrigin(echo, server(group)) as origin:
        d = serve(daemon, port, {"o": upstream(
            origin, ca=str(roots), more={"idle_timeout": "60s"})}, workers=1)
        assert scalws.get(port, "/o/").status == 200
        d.ok("reload")
        assert scalws.get(port, "/o/").status == 200
        assert origin.connections == 1
        for content, words in ((b"x\n", "is no PEM file of certificates"),
                               (b"", "is empty"), (None, "cannot be read")):
            roots.unlink() if content is None else roots.write_bytes(content)
            done = d.ctl("reload")
            text = done.stdout + done.stderr
            assert done.returncode != 0 and words in text, text
            assert f"upstreams.o.tls.ca: {roots}" in text, text
            assert scalws.get(port, "/o/").status == 200
        assert origin.connections == 1
        roots.write_bytes((place / "new.pem").read_bytes())
        d.ok("reload")
        assert scalws.get(port, "/o/").status == 502
        d.wait_log("TLS handshake failed: unable to get local issuer")
        assert origin.connections > 1
        roots.write_bytes((place / "server.pem").read_bytes())
        d.ok("reload")      # the certificate itself
        assert scalws.get(port, "/o/").status == 200


def test_capped_peer(daemon, port, place, ca):
    """Slots go from worker to worker, connections do not."""
    group = make(place, "server", ["127.0.0.1"], ca="ca")
    lock, now, most = threading.Lock(), [0], [0]

    def script(conn):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        try:
            while conn.read_request() is not None:
                conn.send(OK)
        finally:
            with lock:
                now[0] -= 1
    with TlsOrigin(script, server(group)) as origin:
        one = upstream(origin, ca=ca)
        one["peers"] = [{"address": origin.address, "max_connections": 2}]
        serve(daemon, port, {"o": one}, workers=2)

        def ask(i):
            with Client(port) as client:
                return [client.exchange("POST" if i % 2 else "GET", "/o/",
                                        body=b"x" if i % 2 else None).status
                        for _ in range(6)]
        assert scalws.parallel(12, ask) == [[200] * 6] * 12
        assert most[0] <= 2


def test_slow_sides(daemon, port, place, ca):
    """A body waits where it comes from, not in the proxy."""
    size = (64 if scalws.LONG else 20) << 20
    goes_on = threading.Event()
    group = make(place, "server", ["127.0.0.1"], ca="ca")
    sent = [0]

    def push(send):
        for _ in range(size >> 16):
            send(b"x" * 65536)
            sent[0] += 65536

    def stalls():
        """Nothing was sent for a while, and there is more to send."""
        before = -1
        while before != sent[0]:
            before = sent[0]
            time.sleep(0.3)
        assert sent[0] < size

    def script(conn):
        head = conn.read_head()
        if head.startswith(b"POST"):
            goes_on.wait()
            conn.take(size)
            conn.send(OK)
        else:
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
            push(conn.send)
        conn.read_head()
    with TlsOrigin(script, server(group)) as origin:
        d = serve(daemon, port, {"o": upstream(origin, ca=ca)}, workers=1)
        before = scalws.rss_kib(d.proxy_pid())
        with Client(port) as client:
            client.send(b"POST /o/ HTTP/1.1\r\nHost: localhost\r\n"
                        b"Content-Length: %d\r\n\r\n" % size)
            thread = threading.Thread(target=push, args=(client.send,))
            thread.start()
            stalls()
            more = scalws.rss_kib(d.proxy_pid()) - before
            assert more < scalws.allowed_kib(4096), more
            goes_on.set()
            thread.join()
            assert client.response().body == b"yes"
        sent[0] = 0
        with Client(port) as client:
            client.request(target="/o/")
            wait_for(lambda: sent[0] > 0, 10 * scalws.SLOW)
            stalls()
            more = scalws.rss_kib(d.proxy_pid()) - before
            assert more < scalws.allowed_kib(4096), more
            assert len(client.response().body) == size


def test_unix_socket(daemon, port, place, ca):
    """A peer on a unix socket, by the name it is given."""
    os.chmod(place, 0o755)
    group = make(place, "server", ["app.internal"], ca="ca")
    with TlsOrigin(OK, server(group), path=place / "s") as origin:
        serve(daemon, port, {"o": upstream(origin, ca=ca,
                                           server_name="app.internal")})
        assert scalws.get(port, "/o/").body == b"yes"


def test_check(place, port):
    """-t names what is wrong, and warns of what is not verified."""
    def check(**upstream):
        conf = {"upstreams": {"o": {"peers": ["10.0.0.1:443"], **upstream}},
                "sites": [{"listen": [f"127.0.0.1:{port}"], "routes":
                           [{"path": "*", "upstream": "o"}]}]}
        return scalws.check_file(conf)
    done = check(protocol="https", tls={"verify": False})
    assert done.returncode == 0
    assert "upstreams.o.tls.verify: " in done.stderr, done.stderr
    done = check(protocol="https", tls={"ca": str(place / "none.pem")})
    assert done.returncode == 1 and "none.pem cannot be read" in done.stderr
    make(place, "ca", [])
    old = expired(place, "old", ["proxy.example"], ca="ca")
    done = check(protocol="https", tls=old)
    assert done.returncode == 0
    assert "upstreams.o.tls.certificate: " in done.stderr
    assert "old.pem: has expired" in done.stderr, done.stderr
    shown = scalws.check_file(
        {"upstreams": {"o": {"protocol": "https",
                             "peers": ["10.0.0.1:443"]}},
         "sites": [{"listen": [f"127.0.0.1:{port}"], "routes":
                    [{"path": "*", "upstream": "o"}]}]}, option="-T")
    assert "verify = true;" in shown.stdout
