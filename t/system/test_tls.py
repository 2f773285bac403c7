"""TLS in front: certificates, names, tickets, client certificates, reload."""
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time

import pytest

import scalws
from scalws import Client, Origin, wait_for


def openssl(*args, **kwargs):
    return subprocess.run(["openssl", *map(str, args)], check=True,
                          capture_output=True, **kwargs).stdout


def make(place, name, names, kind="ec", ca=None, days=30, subject=None):
    """NAME.pem and NAME.key in `place`, self-signed or by `ca`, for DNS names
    and addresses; the group."""
    pem, key = place / f"{name}.pem", place / f"{name}.key"
    how = {"ec": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
           "rsa": ["-newkey", "rsa:2048"]}[kind]
    args = ["req", "-x509", *how, "-nodes", "-days", days, "-keyout", key,
            "-out", pem, "-subj", subject or f"/CN={name}"]
    if names:
        args += ["-addext", "subjectAltName=" + ",".join(
            f"{'DNS' if n[-1].isalpha() else 'IP'}:{n}" for n in names)]
    if ca:
        args += ["-CA", place / f"{ca}.pem", "-CAkey", place / f"{ca}.key",
                 "-addext", "basicConstraints=critical,CA:FALSE"]
    openssl(*args)
    os.chmod(key, 0o644)
    return {"certificate": str(pem), "key": str(key)}


@pytest.fixture
def place():
    path = scalws.scratch()
    yield path
    shutil.rmtree(path, ignore_errors=True)


def context(version=None, client=None):
    """A client that believes everybody."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    if version:
        made.minimum_version = made.maximum_version = version
    if client:
        made.load_cert_chain(client["certificate"], client["key"])
    return made


class TlsClient(Client):
    """Client (scalws.py) over TLS; `name` is what it asks for."""
    def __init__(self, port, name="localhost", with_=None, session=None):
        super().__init__(port, timeout=30 * scalws.SLOW)
        try:
            self.sock = (with_ or context()).wrap_socket(
                self.sock, server_hostname=name, session=session)
        except BaseException:
            self.close()
            raise

    def common_name(self):
        text = openssl("x509", "-noout", "-subject", input=
                       ssl.DER_cert_to_PEM_cert(
                           self.sock.getpeercert(True)).encode())
        return text.decode().split("=")[-1].strip()


def shown(port, name, **kwargs):
    with TlsClient(port, name, **kwargs) as client:
        return client.common_name()


def site(port, tls, *routes, **keys):
    return {"names": ["localhost"], "listen": [f"127.0.0.1:{port} tls"],
            "tls": tls, "routes": list(routes) or
            [{"path": "*", "respond": {"body": "hello\n"}}], **keys}


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_requests(daemon, port, version):
    """Several on a connection, small and large, and the end of it."""
    number = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
    daemon({"sites": [site(port, scalws.certificate(),
        {"path": "/small", "respond": {"body": "hello\n"}},
        {"path": "/large", "respond": {"body": "x" * 1000000}})]})
    with TlsClient(port, with_=context(number[version])) as client:
        for _ in range(3):
            assert client.exchange(target="/small").body == b"hello\n"
            assert client.exchange(target="/large").body == b"x" * 1000000
        assert client.exchange(target="/small", headers=[
            ("Connection", "close")]).body == b"hello\n"
        # close_notify: python raises where it is missing
        client.sock.suppress_ragged_eofs = False
        assert client.sock.recv(1) == b""


def test_upload_and_echo(daemon, port):
    """Bodies of many records in both directions, through an origin."""
    def echo(conn):
        while (got := conn.read_request()) is not None:
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" %
                      len(got[1]) + got[1])
    origin = Origin(echo)
    daemon({"upstreams": {"o": {"peers": [origin.address]}},
            "sites": [site(port, scalws.certificate(),
                           {"path": "*", "upstream": "o"})]})
    with TlsClient(port) as client:
        for size in (0, 1, 16383, 16384, 16385, 70000, 3000000):
            body = os.urandom(size)
            answer = client.exchange("POST", "/", body=body)
            assert (answer.status, answer.body == body) == (200, True), size
    head = origin.requests[0][0].decode()
    assert "X-Forwarded-Proto: https\r\n" in head
    assert "X-SSL" not in head


def test_bytes_in_small_pieces(daemon, port):
    """A client whose records come byte by byte, and many of them at once."""
    daemon({"sites": [site(port, scalws.certificate())]})
    with TlsClient(port) as client:
        for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n":
            client.sock.send(bytes([byte]))
        assert client.response().body == b"hello\n"
        client.sock.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
        for _ in range(50):
            assert client.response().body == b"hello\n"


def test_names(daemon, port, place):
    """Exact before wildcard before default; several certificates of a site."""
    one = make(place, "one", ["one.example"])
    wild = make(place, "wild", ["*.wild.example"])
    two = make(place, "two", ["two.example"])
    three = make(place, "three", ["three.example"])
    both = {key: [two[key], three[key]] for key in two}
    daemon({"sites": [
        site(port, one, names=["one.example"], default=True),
        site(port, wild, names=["*.wild.example"]),
        site(port, both, names=["two.example", "three.example"])]})
    for name, subject in [
            ("one.example", "one"), ("ONE.example", "one"),
            ("a.wild.example", "wild"), ("wild.example", "one"),
            ("two.example", "two"), ("three.example", "three"),
            ("none.example", "one"), (None, "one")]:
        assert shown(port, name) == subject, name


def test_rsa_and_ecdsa(daemon, port, place):
    rsa = make(place, "rsa", ["localhost"], "rsa")
    ec = make(place, "ec", ["localhost"])
    daemon({"sites": [site(port, {key: [rsa[key], ec[key]] for key in rsa})]})
    for cipher, subject in [("ECDHE-RSA-AES128-GCM-SHA256", "rsa"),
                            ("ECDHE-ECDSA-AES128-GCM-SHA256", "ec")]:
        with_ = context(ssl.TLSVersion.TLSv1_2)
        with_.set_ciphers(cipher)
        assert shown(port, "localhost", with_=with_) == subject


def test_unknown_names_are_refused(daemon, port):
    tls = {**scalws.certificate(), "refuse_unknown_names": True}
    daemon({"sites": [site(port, tls)]})
    assert shown(port, "localhost") == "t.example"
    for name in ("other.example", None):
        with pytest.raises(ssl.SSLError, match="(?i)unrecognized.name"):
            TlsClient(port, name)


def test_versions_and_ciphers(daemon, port):
    tls = {**scalws.certificate(), "min_version": "1.3",
           "ciphers": "TLS_AES_256_GCM_SHA384"}
    daemon({"sites": [site(port, tls)]})
    with TlsClient(port) as client:
        assert client.sock.cipher()[0] == "TLS_AES_256_GCM_SHA384"
    with pytest.raises(ssl.SSLError, match="(?i)version"):
        TlsClient(port, with_=context(ssl.TLSVersion.TLSv1_2))


def resumes(port, version):
    """Does a session of one connection serve the next? Which then reports."""
    with_ = context(version)
    with TlsClient(port, with_=with_) as client:
        client.exchange()
        session = client.sock.session
    return with_, session


def test_a_new_ticket_for_each_that_is_used(daemon, port):
    """RFC 8446 section C.4: clients use one once."""
    daemon({"sites": [site(port, scalws.certificate())]})
    with_, session = resumes(port, ssl.TLSVersion.TLSv1_3)
    for _ in range(4):
        with TlsClient(port, with_=with_, session=session) as client:
            client.exchange()
            assert client.sock.session_reused
            assert client.sock.session.id != session.id
            session = client.sock.session


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_resumption(daemon, port, version):
    """Across workers, a reload and a new proxy process."""
    one = daemon({"workers": 2, "sites": [site(port, scalws.certificate())]})
    with_, session = resumes(port, ssl.TLSVersion[version])

    def again():
        with TlsClient(port, with_=with_, session=session) as client:
            client.exchange()
            return client.sock.session_reused
    assert all(again() for _ in range(8))
    one.ok("reload")
    assert again()
    old = one.proxy_pid()
    os.kill(old, 9)
    wait_for(lambda: one.proxy_pid() not in (0, None, old), 20, "a new proxy")
    one.wait_ready()
    assert again()


def test_ticket_key_file(daemon, port, place):
    """Two daemons with one file; its change is seen without a reload."""
    keys = place / "tickets"
    first = os.urandom(80)
    keys.write_bytes(first)
    os.chmod(keys, 0o644)
    other = scalws.free_port()
    tls = scalws.certificate()
    daemon({"tls": {"ticket_keys": str(keys)}, "sites": [site(port, tls)]})
    daemon({"tls": {"ticket_keys": str(keys)}, "sites": [site(other, tls)]})
    with_, session = resumes(port, ssl.TLSVersion.TLSv1_3)

    def again():
        with TlsClient(other, with_=with_, session=session) as client:
            client.exchange()
            return client.sock.session_reused
    assert again()
    new = place / "new"
    new.write_bytes(os.urandom(80) + first)
    os.rename(new, keys)
    assert again()
    new.write_bytes(os.urandom(80))
    os.rename(new, keys)
    wait_for(lambda: not again(), 20, "the old key is forgotten")


def test_client_certificates(daemon, port, place):
    """Required and optional; what apps are told, and nobody else can say."""
    make(place, "ca", [])
    good = make(place, "alice", [], ca="ca")
    make(place, "ca2", [])
    bad = make(place, "mallory", [], ca="ca2")
    # Its subject needs more than the 1,023 bytes that apps are told.
    long = make(place, "long", [], ca="ca", subject="/CN=alice" + "".join(
        f"/OU={'x' * 60}" for _ in range(16)))
    fits = make(place, "fits", [], ca="ca", subject="/CN=alice" + "".join(
        f"/OU={'x' * 60}" for _ in range(15)))
    origin = Origin(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    must = {**scalws.certificate(), "client_certificate": {
        "ca": str(place / "ca.pem"), "verify": "required"}}
    may = {**scalws.certificate(), "client_certificate": {
        "ca": str(place / "ca.pem"), "verify": "optional"}}
    route = {"path": "*", "upstream": "o"}
    daemon({"upstreams": {"o": {"peers": [origin.address]}}, "sites": [
        site(port, scalws.certificate(), route, names=["open.example"]),
        site(port, must, route, names=["must.example"]),
        site(port, may, route, names=["may.example"])]})

    def ask(name, client, host=None):
        with TlsClient(port, name, context(client=client)) as conn:
            status = conn.exchange(host=host or name, headers=[
                ("X-SSL-Client-Verify", "SUCCESS"),
                ("x-ssl-client-subject", "CN=forged"),
                ("X_SSL_Client_Subject", "CN=forged")]).status
        head = origin.requests[-1][0].decode() if status == 200 else ""
        assert "forged" not in head
        return status, re.findall(r"(?i)x-ssl-client-(\w+): (.*)\r\n", head)
    status, fields = ask("must.example", good)
    assert status == 200
    assert dict(fields)["Verify"] == "SUCCESS"
    assert dict(fields)["Subject"] == "CN=alice"
    assert re.fullmatch("[0-9a-f]{64}", dict(fields)["Fingerprint"])
    assert ask("may.example", None) == (200, [("Verify", "NONE")])
    assert dict(ask("may.example", good)[1])["Subject"] == "CN=alice"
    assert dict(ask("must.example", fits)[1])["Subject"].count("OU=") == 15
    assert ask("open.example", None) == (200, [])
    # The handshake was for another name: its rule was not asked.
    assert ask("open.example", None, host="must.example")[0] == 421
    assert ask("may.example", good, host="must.example")[0] == 421
    assert ask("must.example", good, host="open.example")[0] == 200
    for name, client in [("must.example", None), ("must.example", bad),
                         ("may.example", bad), ("must.example", long),
                         ("may.example", long)]:
        with pytest.raises((ssl.SSLError, scalws.Closed, ConnectionError)):
            ask(name, client)


def signed_for(place, name, seconds):
    """Of `ca`, for so long: only `openssl ca` has times of day."""
    until = time.strftime("%y%m%d%H%M%SZ", time.gmtime(time.time() + seconds))
    (place / "ca.cnf").write_text(
        "[ca]\ndefault_ca=d\n[d]\ndatabase=ca.index\nrand_serial=yes\n"
        "new_certs_dir=.\ndefault_md=sha256\npolicy=p\ncertificate=ca.pem\n"
        "private_key=ca.key\nunique_subject=no\n[p]\ncommonName=supplied\n")
    (place / "ca.index").write_text("")
    openssl("req", "-new", "-newkey", "ec", "-pkeyopt",
            "ec_paramgen_curve:P-256", "-nodes", "-keyout",
            place / f"{name}.key", "-out", place / f"{name}.csr", "-subj",
            f"/CN={name}")
    openssl("ca", "-batch", "-notext", "-config", "ca.cnf", "-in",
            f"{name}.csr", "-out", f"{name}.pem", "-startdate",
            "200101000000Z", "-enddate", until, cwd=place)
    return {"certificate": str(place / f"{name}.pem"),
            "key": str(place / f"{name}.key")}


def test_client_certificate_that_expires(daemon, port, place):
    """Tickets of the time before do not make it last."""
    make(place, "ca", [])
    daemon({"sites": [site(port, {**scalws.certificate(),
        "client_certificate": {"ca": str(place / "ca.pem"),
                               "verify": "required"}})]})
    refused = (ssl.SSLError, scalws.Closed, ConnectionError)
    versions = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]

    def ask(with_, session=None):
        with TlsClient(port, with_=with_, session=session) as client:
            client.exchange()
            return client.sock.session_reused, client.sock.session
    for seconds in (2, 8, 32):
        good = signed_for(place, "soon", seconds)
        contexts = [context(version, client=good) for version in versions]
        try:
            sessions = [ask(with_)[1] for with_ in contexts]
            assert all(ask(*pair)[0] for pair in zip(contexts, sessions))
            break
        except refused:
            pass    # the machine is slow: it has expired already

    def is_over():
        try:
            ask(contexts[0])
        except refused:
            return True
    wait_for(is_over, 60, "it expires")
    for with_, session in zip(contexts, sessions):
        with pytest.raises(refused):
            ask(with_, session)


def test_a_site_without_http2_beside_one_with_it(daemon, port):
    """Its names may be in the same certificate: clients then ask for them by
    the connection that they have, and are told to open another."""
    tls = scalws.certificate()
    answer = {"path": "*", "respond": {"body": "ok"}}
    daemon({"sites": [
        {**site(port, tls, answer, names=["new.example"])},
        {**site(port, tls, answer, names=["old.example"]), "http2": False}]})

    def ask(sni, host):
        done = subprocess.run(
            ["curl", "-sSk", "--http2", "--connect-to", f"{sni}:{port}:"
             f"127.0.0.1:{port}", "-H", f"Host: {host}", "-o", os.devnull,
             "-w", "%{http_version} %{http_code}", f"https://{sni}:{port}/"],
            capture_output=True, text=True, timeout=30)
        return done.stdout
    assert ask("new.example", "new.example") == "2 200"
    assert ask("new.example", "old.example") == "2 421"
    assert ask("old.example", "old.example") == "1.1 200"
    assert ask("old.example", "new.example") == "1.1 200"


def test_hsts_and_redirect(daemon, port):
    plain = scalws.free_port()
    daemon({"sites": [site(
        port, scalws.certificate(), hsts="max-age=31536000",
        https_redirect=True,
        listen=[f"127.0.0.1:{port} tls", f"127.0.0.1:{plain}"])]})
    with TlsClient(port) as client:
        assert client.exchange().get("Strict-Transport-Security") == \
            "max-age=31536000"
        assert client.exchange(target="/../..%00").get(
            "Strict-Transport-Security") == "max-age=31536000"
    answer = scalws.get(plain, "/a%20b?c=d", host="localhost")
    assert (answer.status, answer.get("Location")) == (
        308, f"https://localhost:{port}/a%20b?c=d")
    assert answer.get("Strict-Transport-Security") is None
    assert scalws.get(plain, "/.well-known/acme-challenge/x",
                      host="localhost").status == 200


def test_half_open_handshakes(daemon, port):
    """They end at the deadline, and others are served meanwhile."""
    n = 1000 if scalws.LONG else 200
    one = daemon({"limits": {"header_timeout": "2s", "connections": 3000},
                  "sites": [site(port, scalws.certificate())]})
    with TlsClient(port) as served:
        served.exchange()
        crowd = []
        for i in range(n):
            sock = socket.create_connection(("127.0.0.1", port))
            if i % 2 == 0:
                sock.send(b"\x16")
            crowd.append(sock)
        while crowd:
            assert served.exchange().body == b"hello\n"
            crowd[0].settimeout(20 * scalws.SLOW)
            assert crowd.pop(0).recv(1) == b""
    assert one.process.poll() is None


def test_bytes_that_are_no_tls(daemon, port):
    """Each is told, or waited for until the deadline; and let go."""
    daemon({"limits": {"header_timeout": "1s"},
            "sites": [site(port, scalws.certificate())]})
    for data in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x80\x2e\x01\x00\x02",
                 b"\x16\x03\x01\xff\xff" + b"x" * 70000, b"\x16\x03\x01\0\x05"):
        with socket.create_connection(("127.0.0.1", port)) as sock:
            sock.settimeout(20 * scalws.SLOW)
            try:
                sock.sendall(data)
                while sock.recv(4096):
                    pass
            except (ConnectionError, BrokenPipeError):
                pass
    assert shown(port, "localhost") == "t.example"


def test_certificate_is_swapped_under_load(daemon, port, place):
    """No request fails, connections stay, the next handshake sees it."""
    times = 20 if scalws.LONG else 6
    tls = make(place, "first", ["localhost"])
    one = daemon({"sites": [site(port, tls)]})
    stop, failed, done = threading.Event(), [], []

    def load():
        while not stop.is_set():
            try:
                with TlsClient(port) as client:
                    for _ in range(5):
                        assert client.exchange().body == b"hello\n"
                        done.append(1)
            except Exception as error:
                failed.append(repr(error))
    workers = [threading.Thread(target=load) for _ in range(3)]
    for worker in workers:
        worker.start()
    with TlsClient(port) as stays:
        for i in range(times):
            new = make(place, f"cert{i}", ["localhost"])
            for key in new:
                os.replace(new[key], tls[key])
            one.ok("reload")
            assert shown(port, "localhost") == f"cert{i}"
            assert stays.exchange().body == b"hello\n"
    stop.set()
    for worker in workers:
        worker.join()
    assert not failed and done


@pytest.mark.parametrize("path, words", [
    ("/nonexistent.pem", "No such file"), ("/tmp", "not a regular file"),
    ("/dev/null", "not a regular file")])
def test_check_names_files_that_are_none(port, path, words):
    """scalwsd -t does, before anything is started."""
    done = scalws.check_file(
        {"sites": [site(port, {**scalws.certificate(), "key": path})]})
    text = done.stdout + done.stderr
    assert done.returncode == 1 and words in text, text
    assert re.search(r"scalws\.conf:\d+: sites\[0\]\.tls\.key", text), text


def test_plain_http_on_a_port_of_tls(daemon, port):
    """Is told so, by a whole answer, however much it still sends."""
    daemon({"sites": [site(port, scalws.certificate())]})
    for body in (None, b"x" * 100000):
        answer = scalws.get(port, method="POST" if body else "GET", body=body)
        assert answer.status == 400 and answer.closes
        assert b"speaks HTTPS" in answer.body
    assert shown(port, "localhost") == "t.example"


def test_check_looks_into_files(port, place):
    """-t: what would not work is an error, what soon will not a warning."""
    other = make(place, "other", ["localhost"])
    soon = make(place, "soon", ["localhost"], days=5)
    late = make(place, "late", ["localhost", "*.wild.example"], days=90)

    def check(tls, **keys):
        return scalws.check_file({"sites": [site(port, tls, **keys)]})
    done = check(late, names=["localhost", "*.wild.example"])
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr
    done = check({**late, "key": other["key"]})
    assert done.returncode == 1
    assert re.search(r"scalws\.conf:\d+: sites\[0\]\.tls\.key: .*is not the "
                     "key of the certificate", done.stderr), done.stderr
    ca = make(place, "ca", [], days=90)
    leaf = make(place, "leaf", ["localhost"], ca="ca", days=90)

    def joined(name, *paths):
        (place / name).write_text("".join(open(path).read() for path in paths))
        return {**leaf, "certificate": str(place / name)}
    pems = leaf["certificate"], ca["certificate"]
    done = check(joined("right.pem", *pems))
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr
    done = check(joined("turned.pem", *pems[::-1]))
    assert done.returncode == 1 and re.search(
        r"sites\[0\]\.tls\.certificate: \S+/turned\.pem: certificate 2, which "
        r"belongs to the key \S+/leaf\.key, must come first", done.stderr), done
    done = check(joined("strange.pem", *pems, other["certificate"]))
    assert done.returncode == 0 and re.search(
        r"warning: \S+: \S+/strange\.pem: certificate 2 is not signed by the "
        "next", done.stderr), done.stderr
    openssl("pkcs8", "-topk8", "-in", leaf["key"], "-passout", "pass:x",
            "-out", place / "locked.key")
    done = check({**leaf, "key": str(place / "locked.key")})
    assert done.returncode == 1 and re.search(
        r"locked\.key: has a pass phrase; scalwsd takes keys without one$",
        done.stderr, re.M), done.stderr
    (place / "text.pem").write_text("no certificate\n")
    done = check({**late, "certificate": str(place / "text.pem")})
    assert done.returncode == 1 and "is no PEM file" in done.stderr
    for tls, keys, words in (
            (soon, {}, r"soon.pem: expires in [45] days"),
            (late, {"names": ["localhost", "a.example"]},
             r"late.pem: is not for the name a\.example")):
        done = check(tls, **keys)
        assert done.returncode == 0
        assert re.search(r"warning: sites\[0\]\.tls\.certificate: .*" + words,
                         done.stderr), done.stderr


def test_all_checks_say_the_same(daemon, port, place):
    """scalwsd -t, scalwsctl check and the reload, dry or not."""
    good = make(place, "good", ["localhost"], days=90)
    other = make(place, "other", ["localhost"])
    (place / "text.pem").write_text("no certificate\n")
    one = daemon({"sites": [site(port, good)]})
    assert one.ctl("check").stdout == f"{one.file}: good\n"
    for bad, words in (
            ({"key": other["key"]}, "is not the key of the certificate"),
            ({"certificate": str(place / "text.pem")}, "is no PEM file"),
            ({"certificate": str(place / "none.pem")}, "cannot be read")):
        one.write({**one.conf, "sites": [site(port, {**good, **bad})]})
        wanted = subprocess.run(
            [scalws.scalwsd(), "-t", "-c", one.file], text=True,
            capture_output=True, env=one.environment()).stderr
        assert re.search(r"scalws\.conf:\d+: sites\[0\]\.tls\.\w+: "
                         rf"/.*/\w+\.\w+.* {words}", wanted), wanted
        for verb in (["check"], ["reload", "--dry-run"], ["reload"]):
            done = one.ctl(*verb)
            assert done.returncode == 1, verb
            assert wanted.strip() in done.stderr, (verb, done.stderr)
    soon = make(place, "soon", ["localhost"], days=5)
    one.write({**one.conf, "sites": [site(port, soon)]})
    for verb, said in ((["check"], "good"),
                       (["reload", "--dry-run"], "site localhost: changed")):
        done = one.ctl(*verb)
        assert done.returncode == 0 and said in done.stdout, done.stdout
        assert "soon.pem: expires in" in done.stderr, done.stderr


def test_checks_look_at_ticket_keys(daemon, port, place):
    """All of them, at the line that names the file."""
    tls = make(place, "good", ["localhost"], days=90)
    keys = place / "tickets"
    keys.write_bytes(os.urandom(160))
    conf = {"sites": [site(port, tls)], "tls": {"ticket_keys": str(keys)}}
    one = daemon(conf)
    assert one.ctl("check").stdout == f"{one.file}: good\n"
    no_keys = "does not hold 1 to 16 keys of 80 bytes each"
    for name, length, words in (
            ("none", None, "cannot be read: No such file or directory"),
            ("odd", 81, no_keys), ("long", 17 * 80, no_keys)):
        path = place / name
        if length is not None:
            path.write_bytes(b"k" * length)
        one.write({**one.conf, "tls": {"ticket_keys": str(path)}})
        done = subprocess.run(
            [scalws.scalwsd(), "-t", "-c", one.file], text=True,
            capture_output=True, env=one.environment())
        assert done.returncode == 1 and re.search(
            rf"scalws\.conf:\d+: tls\.ticket_keys: {path} {words}$",
            done.stderr.strip()), done.stderr
        for verb in (["check"], ["reload", "--dry-run"], ["reload"]):
            said = one.ctl(*verb)
            assert said.returncode == 1, verb
            assert done.stderr.strip() in said.stderr, (verb, said.stderr)
    one.write(conf)
    one.ok("reload")


def test_dry_run_tells_of_new_certificates(daemon, port, place):
    """What is in the files may be all that changes."""
    files = make(place, "one", ["localhost"], days=90)
    one = daemon({"sites": [site(port, files), site(
        port, files, names=["other.example"])]})
    assert one.ok("reload", "--dry-run") == "nothing changes\n"
    make(place, "one", ["localhost"], days=90)
    said = "".join(f"file {files[key]}: read again, it has changed\n"
                   for key in ("certificate", "key"))
    for _ in range(2):
        assert one.ok("reload", "--dry-run") == said
    one.ok("reload")
    assert one.ok("reload", "--dry-run") == "nothing changes\n"


def test_log_of_certificates_that_expire(daemon, port, place):
    """At the start and at each reload, with file, date and whose it is."""
    soon = make(place, "soon", ["localhost"], days=5)
    line = (r"warn .*scalws\.conf:\d+: warning: sites\[0\]\.tls\.certificate: "
            r"/.*/soon\.pem: expires in [45] days, on 20\d\d-\d\d-\d\d: "
            r"CN=soon\n")
    one = daemon({"sites": [site(port, soon)]})
    one.wait_log(line)
    assert len(re.findall(line, one.log())) == 1
    one.ok("reload")
    wait_for(lambda: len(re.findall(line, one.log())) == 2, 10)


def test_start_with_the_key_of_another_certificate(port, place):
    """Only the proxy sees it; the daemon still ends with 1 and its line."""
    tls = {**make(place, "good", ["localhost"]),
           "key": make(place, "other", ["localhost"])["key"]}
    one = scalws.Daemon({"sites": [site(port, tls)]})
    try:
        one.spawn()
        assert one.wait(20) == 1
        assert re.search(r"scalws\.conf:\d+: sites\[0\]\.tls\.key: .* is not "
                         "the key", one.log()), one.log()
        assert not one.leftovers() and not one.reports()
    finally:
        one.kill()


def test_bad_files_are_refused(daemon, port, place):
    """With their names; what served before goes on."""
    tls = make(place, "good", ["localhost"])
    other = make(place, "other", ["localhost"])
    one = daemon({"sites": [site(port, tls)]})
    assert shown(port, "localhost") == "good"
    good = {key: open(tls[key], "rb").read() for key in tls}
    for key, content, words in [
            ("certificate", b"", "is empty"),
            ("certificate", b"x\n" * 100, "no PEM file of certificates"),
            ("key", b"", "is empty"),
            ("key", b"x\n", "no PEM file of a private key"),
            ("key", open(other["key"], "rb").read(), "is not the key"),
            ("key", None, "cannot be read")]:
        if content is None:
            os.unlink(tls[key])
        else:
            open(tls[key], "wb").write(content)
        done = one.ctl("reload")
        text = done.stdout + done.stderr
        assert done.returncode != 0
        assert tls[key] in text and words in text, text
        assert re.search(r"scalws\.conf:\d+: sites\[0\]\.tls\.", text), text
        assert shown(port, "localhost") == "good"
        open(tls[key], "wb").write(good[key])
    one.ok("reload")


@pytest.mark.root
def test_key_is_read_by_the_supervisor_alone(daemon, port, place):
    """Owned by root, and the proxy has no right to it."""
    tls = make(place, "good", ["localhost"])
    os.chmod(tls["key"], 0o600)
    os.chown(tls["key"], 0, 0)
    one = daemon({"sites": [site(port, tls)]})
    assert shown(port, "localhost") == "good"
    # Nothing of it stays open in the proxy.
    fds = f"/proc/{one.proxy_pid()}/fd"
    names = [os.readlink(f"{fds}/{n}") for n in os.listdir(fds)]
    assert not [n for n in names if "scalws-tls" in n]
    os.kill(one.proxy_pid(), 9)
    one.wait_ready()
    wait_for(lambda: shown(port, "localhost") == "good", 20, "again")


def test_tools(daemon, port):
    """curl, by HTTP/1.1 and HTTP/2, and s_client."""
    daemon({"sites": [site(port, scalws.certificate())]})
    for flag, version in [("--http1.1", "1.1"), ("--http2", "2")]:
        out = subprocess.run(
            ["curl", "-sS", flag, "--cacert",
             scalws.certificate()["certificate"], "-w", "%{http_version}",
             f"https://localhost:{port}/"], check=True, capture_output=True,
            timeout=60 * scalws.SLOW).stdout
        assert out == b"hello\n" + version.encode()
    out = openssl("s_client", "-connect", f"127.0.0.1:{port}", "-servername",
                  "localhost", "-CAfile", scalws.certificate()["certificate"],
                  "-alpn", "http/1.1", input=b"").decode()
    assert "Verify return code: 0 (ok)" in out
    assert "ALPN protocol: http/1.1" in out


@pytest.mark.skipif(not (scalws.LONG and shutil.which("testssl")),
                    reason="SCALWS_LONG and testssl")
def test_testssl(daemon, port, place):
    """It finds nothing but what a self-signed chain on localhost implies."""
    daemon({"sites": [site(port, scalws.certificate())]})
    report = place / "report.json"
    subprocess.run(["testssl", "--quiet", "--jsonfile", report, "--warnings",
                    "off", f"localhost:{port}"], capture_output=True,
                   timeout=900 * scalws.SLOW)
    found = [f for f in json.loads(report.read_text())
             if f["severity"] in ("LOW", "MEDIUM", "HIGH", "CRITICAL")]
    left = [f for f in found if not re.match(
        "cert_(chain_of_trust|trust|revocation|extlifeSpan|notAfter|caIssuers|"
        "validityPeriod)|OCSP|DNS_CAA|HSTS|overall|security_headers|"
        "cert_crlDistributionPoints", f["id"])]
    assert not left, left
