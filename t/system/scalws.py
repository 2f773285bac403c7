"""The harness of the system tests: real daemons, real sockets, exact bytes.

Daemon    a scalwsd with a configuration of its own in a directory of its own
Client    one HTTP connection that sends and sees exact bytes
Origin    a server that answers scripted bytes and records what it got

Everything waits by retry with a deadline; nothing sleeps and hopes.
"""
import contextlib
import ctypes
import functools
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
ROOT = os.geteuid() == 0
LONG = os.environ.get("SCALWS_LONG") == "1"
# Sanitizers make programs several times slower; deadlines follow.
SLOW = float(os.environ.get("SCALWS_SLOWER", "1"))

PROXY_USER = "www-data"     # Debian has these
APP_USER = "nobody"
OTHER_USER = "games"

REPORT = re.compile(rb"(ERROR: \w+Sanitizer|WARNING: \w+Sanitizer|"
                    rb"LeakSanitizer: |runtime error: |Assertion .* failed|"
                    rb"stack smashing|buffer overflow detected)")


# --- where things are --------------------------------------------------------

def find_program(name, variable):
    named = os.environ.get(variable)
    if named:
        return os.path.abspath(named)
    beside = os.environ.get("SCALWSD")
    if beside and name != "scalwsd":
        return os.path.join(os.path.dirname(os.path.abspath(beside)), name)
    for place in (TOP / "build" / name, TOP / name):
        if place.exists():
            return str(place)
    raise RuntimeError(f"no {name}: build it, or say {variable}=PATH")


def scalwsd():
    return find_program("scalwsd", "SCALWSD")


def scalwsctl():
    return find_program("scalwsctl", "SCALWSCTL")


# --- waiting -------------------------------------------------------------------

def wait_for(what, timeout=10.0, why="", every=0.02):
    """The first true value of what(); an assertion error after `timeout`."""
    deadline = time.monotonic() + timeout * SLOW
    while True:
        value = what()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout * SLOW:g} s: "
                                 f"{why or what.__doc__ or what}")
        time.sleep(every)


def free_port():
    """A port that was free a moment ago, outside the range from which the
    kernel picks ports for connections, where it could be taken again; each
    process of pytest-xdist has ports of its own."""
    mine = int("0" + os.environ.get("PYTEST_XDIST_WORKER", "")[2:]) % 16
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
              .split()[0])
    for _ in range(200):
        port = 1024 + int.from_bytes(os.urandom(2), "big") % (low - 1040)
        port += mine - port % 16
        with socket.socket() as probe, socket.socket(socket.AF_INET6) as six:
            try:
                probe.bind(("127.0.0.1", port))
                six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                six.bind(("::", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port")


# --- processes -----------------------------------------------------------------

def become_subreaper():
    """Orphans come to us instead of init, so that no test can lose one."""
    ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)


def process_table():
    """pid -> (ppid, state, command line) of every process."""
    table = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = Path("/proc", entry, "stat").read_text()
            line = Path("/proc", entry, "cmdline").read_bytes()
        except OSError:
            continue
        after = stat[stat.rindex(")") + 2:].split()
        table[int(entry)] = (int(after[1]), after[0],
                             line.replace(b"\0", b" ").decode(errors="replace"))
    return table


def descendants(pid, table=None):
    table = table or process_table()
    below = {}
    for child, (parent, _, _) in table.items():
        below.setdefault(parent, []).append(child)
    found, todo = set(), [pid]
    while todo:
        for child in below.get(todo.pop(), ()):
            found.add(child)
            todo.append(child)
    return found


def alive(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat[stat.rindex(")") + 2] not in "ZX"


def reap():
    """Collect orphans that were given to us; children of Popen stay."""
    ours = {p.pid for p in subprocess._active} | Daemon.running
    for pid, (parent, state, _) in process_table().items():
        if parent == os.getpid() and state == "Z" and pid not in ours:
            with contextlib.suppress(OSError):
                os.waitpid(pid, os.WNOHANG)


def rss_kib(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def allowed_kib(kib):
    """A sanitizer keeps freed memory, and more for each thread."""
    return kib if SLOW == 1 else kib + 32768


def thread_count(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def fd_count(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


# --- configuration ---------------------------------------------------------------

def quote(text):
    out = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + out.replace("\n", "\\n").replace("\t", "\\t") + '"'


def to_libconfig(value, depth=0):
    """dict -> group, list of dicts -> list, list -> array, rest as it is."""
    pad = "  " * depth
    if isinstance(value, dict):
        inner = "".join(f"{pad}  {key} = {to_libconfig(item, depth + 1)};\n"
                        for key, item in value.items() if item is not None)
        return "{\n" + inner + pad + "}"
    if isinstance(value, (list, tuple)):
        parts = [to_libconfig(item, depth + 1) for item in value]
        if value and all(isinstance(item, dict) for item in value):
            return "( " + ", ".join(parts) + " )"
        return "[ " + ", ".join(parts) + " ]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    return quote(str(value))


def conf_text(conf):
    return "".join(f"{key} = {to_libconfig(value)};\n"
                   for key, value in conf.items() if value is not None)


# --- the daemon --------------------------------------------------------------------

class Daemon:
    """scalwsd with `conf` (a dict, completed; or the exact text of the file).

    As root the proxy and the apps get users of their own. `with` starts and
    stops it; the end asserts that it left nothing and that no sanitizer
    complained.
    """
    running = set()
    directories = []

    def __init__(self, conf, env=None, args=(), user=None, command=()):
        # Short: the path of a unix socket has at most 107 bytes.
        self.dir = scratch()
        self.san = self.dir / "san"
        self.san.mkdir()
        os.chmod(self.san, 0o1777)
        self.tmp = self.dir / "tmp"
        self.tmp.mkdir()
        os.chmod(self.tmp, 0o1777)
        self.file = self.dir / "scalws.conf"
        self.log_path = self.dir / "daemon.log"
        self.run = self.dir / "run"
        self.logs = self.dir / "log"
        self.access_log_path = self.logs / "access.log"
        self.user = user
        if user and ROOT:
            shutil.chown(self.dir, user)
            shutil.chown(self.tmp, user)
        self.command = list(command)
        self.args = list(args)
        self.extra_env = dict(env or {})
        self.process = None
        self.expect_exit = 0
        self.expect_reports = False
        self.before = None
        self.write(conf)

    # configuration

    def complete(self, conf):
        """Fill in what every test wants the same."""
        whole = {}
        if ROOT and not self.user:
            whole["user"] = PROXY_USER
        whole.update(workers=2, run_directory=str(self.run),
                     log_directory=str(self.logs),
                     temp_directory=str(self.tmp),
                     access_log=str(self.access_log_path), log_level="debug")
        whole.update(conf)
        if ROOT and not self.user:
            for app in whole.get("apps", {}).values():
                app.setdefault("user", APP_USER)
        return whole

    def write(self, conf):
        if isinstance(conf, dict):
            self.conf = self.complete(conf)
            conf = conf_text(self.conf)
        else:
            self.conf = None
        self.file.write_text(conf)
        os.chmod(self.file, 0o644)

    @property
    def control(self):
        return self.run / "control.sock"

    # running

    def environment(self, leaks=True):
        """`leaks` False: for short programs, whose code the unit tests search
        for leaks; to search costs more than their work."""
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
                       "/sbin:/bin",
               "LANG": "C.UTF-8", "HOME": str(self.tmp),
               "SCALWS_DATADIR": os.environ.get(
                   "SCALWS_DATADIR", str(shared_data()))}
        common = f"log_path={self.san}/report:exitcode=99"
        env["ASAN_OPTIONS"] = common + ":detect_stack_use_after_return=1:" \
            "strict_string_checks=1:abort_on_error=0:quarantine_size_mb=4:" \
            f"thread_local_quarantine_size_kb=64:detect_leaks={leaks:d}"
        env["LSAN_OPTIONS"] = "exitcode=98"
        env["UBSAN_OPTIONS"] = f"log_path={self.san}/report:" \
            "print_stacktrace=1:halt_on_error=1"
        env["TSAN_OPTIONS"] = common + ":second_deadlock_stack=1:" \
            "die_after_fork=0"
        supp = TOP / "t" / "system" / "tsan.supp"
        if supp.exists():
            env["TSAN_OPTIONS"] += f":suppressions={supp}"
        env.update(self.extra_env)
        return {k: v for k, v in env.items() if v is not None}

    def popen(self, argv, **kwargs):
        if self.user and ROOT:
            kwargs["user"] = self.user
            kwargs["group"] = _group_of(self.user)
            kwargs["extra_groups"] = []
        return subprocess.Popen(argv, env=self.environment(), cwd=self.dir,
                                stdin=subprocess.DEVNULL, **kwargs)

    def spawn(self):
        reap()
        if self.before is None:
            self.before = descendants(os.getpid())
        argv = [*self.command, scalwsd(), "-c", str(self.file), *self.args]
        with open(self.log_path, "ab") as log:
            self.process = self.popen(argv, stdout=log, stderr=log,
                                      start_new_session=True)
        Daemon.running.add(self.process.pid)
        return self

    def start(self, ready=True, timeout=20):
        self.spawn()
        if ready:
            self.wait_ready(timeout)
        return self

    def wait_ready(self, timeout=20):
        """Every TCP and unix listener answers, so does the control socket,
        and the proxy has begun to serve."""
        def answers():
            assert self.process.poll() is None, \
                f"scalwsd ended with {self.process.returncode}:\n" + self.log()
            try:
                for address in self.addresses():
                    connect(address, timeout=1).close()
            except OSError:
                return False
            code, text = self.ask("status-json")
            return code == 0 and json.loads(text)["proxy"]["state"] == "running"
        wait_for(answers, timeout, "listeners answer; log:\n" + self.log())

    def addresses(self):
        if not self.conf:
            return []
        found = []
        for site in self.conf.get("sites", ()):
            for text in site.get("listen", ()):
                text = text.split()[0]
                if text.startswith("unix:"):
                    found.append(text[5:])
                elif text.startswith("/"):
                    found.append(text)
                else:
                    host, _, port = text.rpartition(":")
                    found.append((host.strip("[]") or "127.0.0.1", int(port)))
        return found

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.keep_output()
            self.kill()
            raise

    def __exit__(self, kind, value, trace):
        try:
            if kind is None:
                self.stop()
        except BaseException:
            kind = True
            raise
        finally:
            if kind is not None:
                self.keep_output()
            self.kill()
            if not os.environ.get("SCALWS_KEEP"):
                shutil.rmtree(self.dir, ignore_errors=True)

    def keep_output(self):
        """pytest shows what a failed test printed."""
        print("--- configuration\n" + self.file.read_text())
        lines = [line for line in self.log().splitlines()
                 if " status-json" not in line]      # we ask often
        print("--- daemon.log (end)\n" + "\n".join(lines)[-8000:])
        for path in sorted(self.san.iterdir()):
            print(f"--- {path.name}\n" + path.read_text(errors="replace"))
        if self.logs.is_dir():
            for path in sorted(self.logs.glob("*.log")):
                print(f"--- {path.name} (end)\n" +
                      path.read_text(errors="replace")[-3000:])

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=30):
        """Exit status of the daemon itself."""
        code = self.process.wait(timeout * SLOW)
        Daemon.running.discard(self.process.pid)
        return code

    def stop(self, timeout=40):
        """Polite end; then nothing of it may be left."""
        if self.process is not None and self.process.poll() is None:
            self.signal(signal.SIGTERM)
        if self.process is not None:
            code = self.wait(timeout)
            assert code == self.expect_exit, \
                f"scalwsd ended with {code}, not {self.expect_exit}"
        self.assert_nothing_left()
        self.assert_no_reports()

    def leftovers(self):
        reap()
        table = process_table()
        now = descendants(os.getpid(), table) - (self.before or set())
        return {pid: table[pid][2] for pid in now
                if pid in table and table[pid][1] not in "ZX"
                and pid not in Helper.pids and
                str(self.dir) + "/perf" not in table[pid][2]}

    def assert_nothing_left(self):
        try:
            wait_for(lambda: not self.leftovers(), 3)
        except AssertionError:
            raise AssertionError(f"processes are left: {self.leftovers()}")

    def reports(self):
        found = [f"{p.name}: {p.read_text(errors='replace')[:3000]}"
                 for p in self.san.iterdir()]
        for line in self.log_path.read_bytes().splitlines() \
                if self.log_path.exists() else ():
            if REPORT.search(line):
                found.append("daemon.log: " + line.decode(errors="replace"))
        return found

    def assert_no_reports(self):
        if not self.expect_reports:
            assert not self.reports(), "\n".join(self.reports())

    def kill(self):
        """What is left of it goes, by pid; for tests that failed."""
        if self.before is None:
            return
        for _ in range(50):
            left = set(self.leftovers())
            if self.process and self.process.poll() is None:
                left.add(self.process.pid)
            if not left:
                break
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        if self.process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
            Daemon.running.discard(self.process.pid)

    # asking

    def log(self):
        if not self.log_path.exists():
            return ""
        return self.log_path.read_text(errors="replace")

    def wait_log(self, pattern, timeout=10):
        return wait_for(lambda: re.search(pattern, self.log()), timeout,
                        f"log has {pattern!r}")

    def app_log(self, name):
        path = self.logs / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def access_log(self):
        if not self.access_log_path.exists():
            return []
        return self.access_log_path.read_text(errors="replace").splitlines()

    def ctl(self, *args, timeout=60, user=None, env=None):
        """scalwsctl; .returncode, .stdout, .stderr"""
        extra = {}
        if user and ROOT:
            extra = dict(user=user, group=_group_of(user), extra_groups=[])
        elif self.user and ROOT:
            extra = dict(user=self.user, group=_group_of(self.user),
                         extra_groups=[])
        return subprocess.run(
            [scalwsctl(), "-s", str(self.control), *map(str, args)],
            env={**self.environment(leaks=False), **(env or {})},
            cwd=self.dir, text=True, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=timeout * SLOW, **extra)

    def ok(self, *args, **kwargs):
        done = self.ctl(*args, **kwargs)
        assert done.returncode == 0, \
            f"scalwsctl {args}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def ask(self, *words, timeout=30):
        """What scalwsctl would, without a process: (exit code, output).
        None is the code of a daemon that is not there."""
        try:
            with connect(self.control, timeout * SLOW) as sock:
                sock.sendall((" ".join(words) + "\n").encode())
                with sock.makefile("rb") as answer:
                    lines = [line.rstrip(b"\n") for line in answer]
        except OSError:
            return None, ""
        if not lines or not lines[-1].startswith(b"x "):
            return None, ""
        return int(lines[-1][2:]), b"\n".join(
            line[2:] for line in lines[:-1]).decode()

    def status(self):
        code, text = self.ask("status-json")
        assert code == 0, f"status: {code} {text}"
        return json.loads(text)

    def app(self, name):
        for app in self.status()["apps"]:
            if app["name"] == name:
                return app
        raise AssertionError(f"status has no app {name}")

    def instances(self, name, state=None):
        found = self.app(name)["instances"]
        return [i for i in found if state in (None, i["state"])]

    def pids(self, name):
        return sorted(i["pid"] for i in self.instances(name, "running"))

    def wait_running(self, name, n=None, timeout=30):
        """n instances (default: as configured) run; their pids."""
        if n is None:
            conf = self.conf["apps"][name]
            n = 1 if conf["runtime"] == "php" else conf.get("processes", 1)
        wait_for(lambda: len(self.pids(name)) == n, timeout,
                 f"{n} instances of {name} run", every=0.1)
        return self.pids(name)

    def proxy_pid(self):
        return wait_for(lambda: self.status()["proxy"].get("pid"), 10)

    def tree(self, pid=None):
        return descendants(pid or self.process.pid)


@functools.lru_cache(None)
def _group_of(user):
    import pwd
    return pwd.getpwnam(user).pw_gid


class Helper:
    """A program that a test runs beside the daemon; not a leftover of it."""
    pids = set()

    def __init__(self, argv, **kwargs):
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        self.process = subprocess.Popen(argv, **kwargs)
        Helper.pids.add(self.process.pid)

    def __enter__(self):
        return self.process

    def __exit__(self, *ignored):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        Helper.pids.discard(self.process.pid)


def scratch():
    """A new directory with a short name that all may read; gone at the end
    of the session."""
    made = Path(tempfile.mkdtemp(prefix="sw-", dir="/tmp"))
    os.chmod(made, 0o755)
    Daemon.directories.append(made)
    return made


def check_file(conf, *args, option="-t", user=None):
    """scalwsd -t over a text or dict: CompletedProcess, and the file."""
    daemon = Daemon(conf, user=user)
    try:
        done = subprocess.run(
            [scalwsd(), option, "-c", str(daemon.file), *args],
            env=daemon.environment(leaks=False), cwd=daemon.dir, text=True,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=30 * SLOW)
        daemon.assert_no_reports()
        assert not REPORT.search(done.stderr.encode()), done.stderr
        return done
    finally:
        shutil.rmtree(daemon.dir, ignore_errors=True)


@functools.lru_cache(None)
def certificate():
    """The group `tls` of a site, self-signed for t.example and localhost;
    made once, readable for every user."""
    place = scratch()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:P-256", "-nodes", "-days", "90", "-keyout",
         place / "key.pem", "-out", place / "cert.pem", "-subj",
         "/CN=t.example", "-addext",
         "subjectAltName=DNS:t.example,DNS:localhost,IP:127.0.0.1"],
        check=True, capture_output=True)
    (place / "key.pem").chmod(0o644)
    return {"certificate": str(place / "cert.pem"),
            "key": str(place / "key.pem")}


# --- applications ---------------------------------------------------------------

@functools.lru_cache(None)
def apps_directory():
    """A copy of t/system/apps that any user can read (a checkout may lie in
    /root), with node_modules where they were installed."""
    base = Path(tempfile.mkdtemp(prefix="sw-apps-", dir="/tmp"))
    shutil.copytree(TOP / "t/system/apps", base / "apps",
                    ignore=shutil.ignore_patterns("__pycache__",
                                                  "node_modules"))
    modules = node_modules()
    if modules:
        shutil.copytree(modules, base / "apps/node/node_modules",
                        symlinks=True)
    subprocess.run(["chmod", "-R", "a+rX,go-w", str(base)], check=True)
    return base / "apps"


@functools.lru_cache(None)
def shared_data():
    """The same for etc/share."""
    base = apps_directory().parent
    if (TOP / "etc/share").is_dir():
        shutil.copytree(TOP / "etc/share", base / "share")
        subprocess.run(["chmod", "-R", "a+rX,go-w", str(base)], check=True)
    return base / "share"


def node_modules():
    for place in (os.environ.get("SCALWS_NODE_MODULES"),
                  TOP / "t/system/apps/node/node_modules",
                  TOP / "build/node/node_modules"):
        if place and Path(place, "express4").is_dir():
            return Path(place)
    return None


@functools.lru_cache(None)
def node_major():
    try:
        text = subprocess.run(["node", "--version"], text=True,
                              capture_output=True).stdout
    except OSError:
        return 0
    match = re.match(r"v(\d+)", text)
    return int(match[1]) if match else 0


# --- HTTP, to the byte --------------------------------------------------------------

class Response:
    def __init__(self, version, status, reason, fields, raw_head):
        self.version = version
        self.status = status
        self.reason = reason
        self.fields = fields        # [(name, value)] as they came
        self.raw_head = raw_head
        self.body = b""
        self.trailers = []
        self.chunks = []            # sizes, when it was chunked

    def all(self, name):
        return [v for n, v in self.fields if n.lower() == name.lower()]

    def get(self, name, preset=None):
        values = self.all(name)
        return values[0] if values else preset

    @property
    def closes(self):
        return "close" in self.get("Connection", "").lower()

    def json(self):
        return json.loads(self.body)

    @property
    def text(self):
        return self.body.decode()

    def __repr__(self):
        return f"<{self.status} {self.fields} {self.body[:300]!r}>"


class Closed(Exception):
    """The peer closed where an answer was due."""


class SecureSocket(ssl.SSLSocket):
    """An end without close_notify may be anybody's: no end of an answer."""

    def recv(self, *args):
        try:
            return super().recv(*args)
        except ssl.SSLEOFError:
            raise ConnectionResetError


class Secure:
    """An address that is connected to by TLS, wherever an address is."""

    def __init__(self, address, alpn=("http/1.1",), name="t.example"):
        self.address, self.name = address, name
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.sslsocket_class = SecureSocket
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE
        self.context.set_alpn_protocols(list(alpn))

    def connect(self, timeout):
        return self.context.wrap_socket(
            connect(self.address, timeout), server_hostname=self.name,
            suppress_ragged_eofs=False)


def connect(address, timeout=30):
    if isinstance(address, Secure):
        return address.connect(timeout)
    if isinstance(address, int):
        address = ("127.0.0.1", address)
    if isinstance(address, (str, Path)):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(timeout)
        try:
            sock.connect(str(address))
        except OSError:
            sock.close()
            raise
        return sock
    return socket.create_connection(address, timeout * SLOW)


class Client:
    """One connection. Reads strictly: an answer that RFC 9112 would call
    broken is an error here."""

    def __init__(self, address, timeout=30, source=None):
        self.sock = connect(address, timeout)
        if self.sock.family != socket.AF_UNIX:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)
        return self

    def request(self, method="GET", target="/", host="localhost", headers=(),
                body=None, chunks=None, version="1.1"):
        """Send a request; `chunks`: a list of byte strings."""
        lines = [f"{method} {target} HTTP/{version}"]
        if host is not None:
            lines.append(f"Host: {host}")
        items = headers.items() if isinstance(headers, dict) else headers
        lines += [f"{name}: {value}" for name, value in items]
        if chunks is not None:
            lines.append("Transfer-Encoding: chunked")
        elif body is not None:
            lines.append(f"Content-Length: {len(body)}")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        if chunks is not None:
            self.send(head)
            for chunk in chunks:
                self.send(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.send(b"0\r\n\r\n")
        else:
            self.send(head + (body or b""))
        return self

    def more(self):
        data = self.sock.recv(262144)
        if not data:
            raise Closed(f"closed after {self.buffer[:200]!r}")
        self.buffer += data

    def line(self):
        while b"\r\n" not in self.buffer:
            assert len(self.buffer) < 1 << 20
            self.more()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        assert b"\n" not in line and b"\r" not in line, line
        return line

    def take(self, n):
        parts, have = [self.buffer], len(self.buffer)
        while have < n:
            data = self.sock.recv(262144)
            if not data:
                raise Closed(f"closed {n - have} bytes before the end")
            parts.append(data)
            have += len(data)
        whole = b"".join(parts)
        self.buffer = whole[n:]
        return whole[:n]

    def response(self, head=False, informational=False):
        """The next answer (1xx are skipped unless asked for). `head`: it
        answers a HEAD."""
        while True:
            answer = self.response_head()
            if answer.status >= 200 or informational:
                break
        if not head and answer.status >= 200 and \
                answer.status not in (204, 304):
            self.read_body(answer)
        return answer

    def response_head(self):
        start = self.line()
        lines = []
        while True:
            line = self.line()
            if not line:
                break
            lines.append(line)
        match = re.fullmatch(rb"HTTP/(1\.[01]) (\d{3}) ([^\r\n]*)", start)
        assert match, f"no status line: {start!r}"
        fields = []
        for line in lines:
            name, colon, value = line.partition(b":")
            assert colon and re.fullmatch(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+",
                                          name), line
            fields.append((name.decode(), value.strip(b" \t").decode(
                "latin-1")))
        return Response(match[1].decode(), int(match[2]), match[3].decode(),
                        fields, b"\r\n".join([start, *lines]))

    def read_body(self, answer):
        coding = answer.all("Transfer-Encoding")
        lengths = answer.all("Content-Length")
        assert len(lengths) <= 1, f"Content-Length twice: {answer}"
        if coding:
            assert coding == ["chunked"], coding
            assert not lengths, "both lengths"
            parts = []
            while True:
                line = self.line()
                assert re.fullmatch(rb"[0-9A-Fa-f]+", line), line
                size = int(line, 16)
                if size == 0:
                    break
                answer.chunks.append(size)
                parts.append(self.take(size))
                assert self.take(2) == b"\r\n"
            while True:
                line = self.line()
                if not line:
                    break
                answer.trailers.append(line)
            answer.body = b"".join(parts)
        elif lengths:
            answer.body = self.take(int(lengths[0]))
        else:
            with contextlib.suppress(Closed):
                while True:
                    self.more()
            answer.body, self.buffer = self.buffer, b""

    def exchange(self, method="GET", target="/", **kwargs):
        self.request(method, target, **kwargs)
        return self.response(head=method == "HEAD")

    def at_eof(self, timeout=5):
        """The peer closes, and says nothing more before."""
        self.sock.settimeout(timeout * SLOW)
        assert not self.buffer, self.buffer
        try:
            data = self.sock.recv(1)
        except ConnectionResetError:
            return True
        except socket.timeout:
            return False
        assert not data, f"unasked bytes: {data!r}"
        return True


def get(address, target="/", method="GET", timeout=30, **kwargs):
    """One exchange on a connection of its own."""
    with Client(address, timeout) as client:
        return client.exchange(method, target, **kwargs)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


# --- origin servers ------------------------------------------------------------------

class Origin:
    """Answers with scripted bytes, records exact bytes.

    `script` is called with an OriginConn for each connection, in a thread of
    its own; or it is bytes: the answer to every request.
    """

    def __init__(self, script, path=None):
        if isinstance(script, (bytes, bytearray)):
            answer = bytes(script)

            def script(conn):
                while conn.read_request() is not None:
                    conn.send(answer)
        self.script = script
        self.requests = []          # (head bytes, body bytes), as they came
        self.connections = 0
        self.errors = []
        self.lock = threading.Lock()
        self.socks = set()
        if path:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(str(path))
            os.chmod(path, 0o666)
            self.address = f"unix:{path}"
        else:
            self.listener = socket.create_server(("127.0.0.1", 0))
            self.port = self.listener.getsockname()[1]
            self.address = f"127.0.0.1:{self.port}"
        self.listener.listen(512)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections += 1
                self.socks.add(sock)
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.run, args=(sock,),
                             daemon=True).start()

    def run(self, sock):
        try:
            self.script(OriginConn(self, sock))
        except (OSError, Closed):
            pass
        except Exception as error:      # shown by the test's end
            self.errors.append(error)
        finally:
            with self.lock:
                self.socks.discard(sock)
            sock.close()

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with self.lock:
            for sock in self.socks:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, kind, *ignored):
        self.close()
        if kind is None:
            assert not self.errors, self.errors


class OriginConn(Client):
    def __init__(self, origin, sock):
        self.origin = origin
        self.sock = sock
        self.sock.settimeout(60)
        self.buffer = b""

    def read_head(self):
        """The raw head with its empty line, or None at the end."""
        while b"\r\n\r\n" not in self.buffer:
            try:
                self.more()
            except (Closed, OSError):
                return None
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        return head + b"\r\n\r\n"

    def read_request(self):
        """Head and body as they came (a chunked body: decoded), recorded."""
        head = self.read_head()
        if head is None:
            return None
        body = b""
        length = re.search(rb"\r\nContent-Length: *(\d+)\r\n", head, re.I)
        if re.search(rb"\r\nTransfer-Encoding: *chunked\r\n", head, re.I):
            holder = Response("1.1", 200, "", [("Transfer-Encoding",
                                                "chunked")], b"")
            self.read_body(holder)
            body = holder.body
        elif length:
            body = self.take(int(length[1]))
        self.origin.requests.append((head, body))
        return head, body


def parallel(n, work):
    """work(i) in n threads; the results, or the first exception."""
    results, errors = [None] * n, []

    def run(i):
        try:
            results[i] = work(i)
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


class Load:
    """Closed-loop clients in the background, each request checked."""

    def __init__(self, address, n=4, target="/", host="localhost",
                 keep=True, pause=0.0):
        self.address, self.target, self.host = address, target, host
        self.keep, self.pause = keep, pause
        self.done, self.failed, self.slowest = 0, [], 0.0
        self.lock = threading.Lock()
        self.ending = threading.Event()
        self.threads = [threading.Thread(target=self.run, daemon=True)
                        for _ in range(n)]

    def run(self):
        client = None
        while not self.ending.is_set():
            began = time.monotonic()
            try:
                if client is None:
                    client = Client(self.address)
                answer = client.exchange("GET", self.target, host=self.host)
                failure = None if answer.status == 200 else answer
            except (OSError, Closed, AssertionError) as error:
                failure = error
            took = time.monotonic() - began
            with self.lock:
                self.done += 1
                self.slowest = max(self.slowest, took)
                if failure is not None:
                    self.failed.append(failure)
            if failure is not None or not self.keep or answer.closes:
                if client is not None:
                    client.close()
                client = None
            if self.pause:
                self.ending.wait(self.pause)
        if client is not None:
            client.close()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *ignored):
        self.ending.set()
        for thread in self.threads:
            thread.join(60)

    def wait_done(self, n, timeout=30):
        goal = self.done + n
        wait_for(lambda: self.done >= goal, timeout, f"{n} more requests")
