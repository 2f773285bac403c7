"""The table of servers, and how a running one is handled. A new server is a
module with a writer (as nginx.py) and one entry in SERVERS."""
import os
import socket
import subprocess
import time
from dataclasses import dataclass

from . import apps, haproxy, nginx, process, scalws
from .machine import Cores


@dataclass(frozen=True)
class Server:
    name: str
    writer: object              # the module that configures it
    # Settings that only some entries have.
    kept: bool = True           # keeps connections to php-fpm
    children: int = 0           # php-fpm children, 0: as all
    plain_malloc: bool = False  # Python without our MALLOC_ variables
    only: tuple = ()            # actions it is measured in; (): all
    access_log: bool = False    # combined, to a file; measured when named

    def can(self, scenario):
        site = scenario.site
        if self.plain_malloc and site.event_loop != "asyncio":
            return False
        return ((not self.only or site.action in self.only)
                and self.writer.can(scenario))

    def is_there(self):
        return self.writer.program() is not None

    def version(self):
        return self.writer.version() if self.is_there() else "not installed"


SERVERS = [
    # The one all others are compared with. Its default opens a connection to
    # php-fpm for every request.
    Server("nginx", nginx, kept=False),
    # As many children as clients: nginx does not queue, and a kept connection
    # occupies a child.
    Server("nginx-kept", nginx, children=64, only=("php",)),
    # The same uvicorn as it runs without scalwsd's variables.
    Server("nginx-malloc", nginx, plain_malloc=True, only=("python",)),
    Server("haproxy", haproxy),
    Server("scalws", scalws),
    Server("nginx-logged", nginx, kept=False, access_log=True),
    Server("scalws-logged", scalws, access_log=True),
]


def select(names, logged):
    """Those of the names; without any, all, and with `logged` also those that
    write an access log."""
    for name in names:
        if not any(s.name == name for s in SERVERS):
            raise SystemExit(f"no server {name}; there are: "
                             + " ".join(s.name for s in SERVERS))
    return [s for s in SERVERS if s.name in names
            or not names and (logged or not s.access_log)]


def free_port():
    """Below the range the kernel takes ports for connections from."""
    while True:
        port = 10000 + int.from_bytes(os.urandom(2), "big") % 20000
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Running:
    """A server that answers, with its application. `wrapper`: a command to
    run it under (valgrind). Use as a context."""

    def __init__(self, server, site, directory, tools, wrapper=(),
                 path="/"):
        self.server, self.site, self.path = server, site, path
        self.directory, self.wrapper = directory, list(wrapper)
        self.cores = Cores(site.loops)
        self.port, self.log = free_port(), directory / "server.log"
        self.process = self.app = None
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o777)
        self.peers = []
        try:
            if site.action == "proxy" or not server.writer.STARTS_APPS:
                self.app = apps.start(site, server, self.cores.apps,
                                      directory, tools)
                self.peers = self.app.peers if self.app else []
            self.tools = tools
            argv, environment = server.writer.write(self)
            self.process = process.start(
                argv, self.cores.server, self.log,
                env=environment, directory=directory)
            self.wait_ready()
            self.pin_apps()
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def url(self, path):
        scheme = "https" if self.site.tls else "http"
        return f"{scheme}://127.0.0.1:{self.port}{path}"

    def ask(self):
        """The status of one request on its own connection; 0: none."""
        if self.site.http2 or self.site.tls:
            return self.ask_by_curl()
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as s:
                s.sendall(b"GET %b HTTP/1.1\r\nHost: www.example.com\r\n"
                          b"Connection: close\r\n\r\n" % self.path.encode())
                reply = b""
                while chunk := s.recv(65536):
                    reply += chunk
        except OSError:
            return 0
        return int(reply[9:12]) if reply.startswith(b"HTTP/1.1 ") else 0

    def ask_by_curl(self):
        """nginx of this age knows no HTTP/1 on a listener with HTTP/2."""
        options = ["--insecure"] if self.site.tls else []
        if self.site.http2:
            options.append("--http2-prior-knowledge")
        done = subprocess.run(
            ["curl", "-s", *options, "-o", "/dev/null",
             "-w", "%{http_code}", "-H", "Host: www.example.com",
             self.url(self.path)],
            stdout=subprocess.PIPE, text=True)
        return int(done.stdout or 0)

    def wait_ready(self):
        deadline = time.monotonic() + (120 if self.wrapper else 20)
        while self.ask() != 200:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise process.Failure(
                    f"{self.server.name} does not answer: "
                    + self.log.read_text(errors="replace")[-600:])
            time.sleep(0.05)

    def server_pids(self):
        """Its processes, without applications below it."""
        pids = process.tree(self.process.pid)
        if not self.server.writer.STARTS_APPS:
            return pids
        ours = process.program(self.process.pid)
        return [pid for pid in pids if process.program(pid) == ours]

    def proxy_pids(self):
        """Those of them that answer requests, with what starts these in
        nginx and haproxy; not scalwsd's supervisor and keepers, which do what
        those do not."""
        pids = self.server_pids()
        if not self.server.writer.STARTS_APPS:
            return pids
        return [pid for pid in pids if process.role(pid) == "proxy"]

    def app_pids(self):
        if self.app:
            return self.app.pids()
        ours = set(self.server_pids())
        return [p for p in process.tree(self.process.pid) if p not in ours]

    def pin_apps(self):
        """Applications that the server started came to the server's core."""
        for pid in self.app_pids():
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.sched_setaffinity(int(thread), self.cores.apps)

    def reload(self):
        self.server.writer.reload(self)

    def restart_app(self):
        if self.app:
            self.app.restart()
        else:
            self.server.writer.restart_app(self)
            self.pin_apps()

    def stop(self):
        if self.process:
            process.stop(self.process, self.server.writer.STOP_SIGNAL,
                         timeout=60 if self.wrapper else 10)
        if self.app:
            self.app.stop()


