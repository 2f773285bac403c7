"""The applications behind servers that do not start any themselves: started
with the settings that scalwsd uses (its own differ in nothing but who started
them). A new application is one entry in APPS."""
import os
import socket
import time
from pathlib import Path

from . import process

TOP = Path(__file__).resolve().parents[2]
APPS = TOP / "bench" / "apps"
PRELOAD = TOP / "etc" / "share" / "node-preload.js"
# What scalwsd sets for Python; without them the asyncio loop maps and unmaps
# memory for every request.
MALLOC = {"MALLOC_MMAP_THRESHOLD_": "524288",
          "MALLOC_TRIM_THRESHOLD_": "1048576"}
PHP_CHILDREN = 8


def plain_environment():
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
            "HOME": "/nonexistent"}


def listen_unix(path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    os.chmod(path, 0o666)
    listener.listen(4096)
    return listener


def listen_tcp():
    listener = socket.socket()
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.bind(("127.0.0.1", 0))
    listener.listen(4096)
    return listener


class App:
    """`instances` processes, a listener each. `peers`: where they are reached,
    "unix:PATH" or "IPV4:PORT"."""

    def __init__(self, site, variant, cores, directory, tools):
        self.site, self.variant, self.tools = site, variant, tools
        self.cores, self.directory = cores, directory
        self.log = directory / "app.log"
        self.listeners, self.peers, self.processes = [], [], []
        try:
            for number in range(site.instances):
                self.open(number)
                self.processes.append(self.run(number))
            for number in range(site.instances):
                self.wait_ready(number)
        except BaseException:
            self.stop()
            raise

    def open(self, number):
        if self.site.transport == "tcp":
            listener = listen_tcp()
            self.peers.append("127.0.0.1:%d" % listener.getsockname()[1])
        else:
            path = self.directory / f"app{number}.sock"
            listener = listen_unix(path)
            self.peers.append(f"unix:{path}")
        self.listeners.append(listener)

    def start(self, argv, number, environment):
        return process.start(argv, self.cores, self.log, env=environment,
                             fds=[self.listeners[number].fileno()],
                             as_app=True, directory=APPS)

    def wait_ready(self, number):
        """A connection is answered, not only taken by the backlog."""
        peer, deadline = self.peers[number], time.monotonic() + 20
        request = b"GET / HTTP/1.1\r\nHost: ready\r\nConnection: close\r\n\r\n"
        with socket.socket(socket.AF_UNIX if peer.startswith("unix:")
                           else socket.AF_INET) as client:
            client.settimeout(20)
            if peer.startswith("unix:"):
                client.connect(peer[5:])
            else:
                host, port = peer.split(":")
                client.connect((host, int(port)))
            client.sendall(request)
            # Our reading to the end, not the application's: the first end of
            # file it reads would change how its malloc works.
            while client.recv(65536):
                if time.monotonic() > deadline:
                    raise process.Failure(f"no answer from {peer}")

    def pids(self):
        return [pid for one in self.processes for pid in process.tree(one.pid)]

    def restart(self):
        """As an administrator would: one instance after another, stopped and
        started again; the listeners stay."""
        for number, old in enumerate(self.processes):
            process.stop(old)
            self.processes[number] = self.run(number)
            self.wait_ready(number)

    def stop(self):
        for one in self.processes:
            process.stop(one, timeout=3)
        for listener in self.listeners:
            listener.close()


class Origin(App):
    def run(self, number):
        argv = [str(self.tools / "origin"),
                str(self.listeners[number].fileno())]
        if self.site.body:
            argv.append(str(self.site.body))
        return self.start(argv, number, plain_environment())


class Python(App):
    def run(self, number):
        environment = dict(plain_environment(), PYTHONUNBUFFERED="1",
                           PYTHONDONTWRITEBYTECODE="1")
        if not self.variant.plain_malloc:
            environment.update(MALLOC)
        return self.start(
            ["/usr/bin/python3", "-m", "uvicorn", "app:app",
             "--fd", str(self.listeners[number].fileno()),
             "--loop", self.site.event_loop, "--http", "httptools",
             "--no-access-log", "--forwarded-allow-ips", "*",
             "--backlog", "4096", "--timeout-keep-alive", "75",
             "--no-server-header", "--no-date-header"],
            number, environment)


class Node(App):
    def run(self, number):
        path = self.peers[number][5:]
        fd = self.listeners[number].fileno()
        environment = dict(plain_environment(), NODE_ENV="production",
                           PORT="8000", SCALWS_KEEPALIVE_MS="75000",
                           SCALWS_LISTEN=f"fd:{fd}:{path}")
        return self.start(["node", "--require", str(PRELOAD),
                           str(APPS / "app.js")], number, environment)


class Php(App):
    """One php-fpm master. A server that keeps more connections than there are
    children would starve requests, so such a variant gets one for each."""

    def open(self, number):
        self.path = self.directory / "fpm.sock"
        self.peers.append(f"unix:{self.path}")

    def run(self, number):
        conf = self.directory / "fpm.conf"
        user = ("user = nobody\ngroup = nogroup\nlisten.mode = 0666\n"
                if process.ROOT else "")
        conf.write_text(
            f"[global]\nerror_log = {self.log}\ndaemonize = no\n"
            f"[app]\n{user}listen = {self.path}\nlisten.backlog = 4096\n"
            f"pm = static\n"
            f"pm.max_children = {self.variant.children or PHP_CHILDREN}\n")
        from .machine import find
        return process.start([find("php-fpm8.2"), "-F", "-O", "-y", str(conf)]
                             + (["-R"] if process.ROOT else []),
                             self.cores, self.log, directory=APPS)

    def wait_ready(self, number):
        def connects():
            with socket.socket(socket.AF_UNIX) as client:
                return client.connect_ex(str(self.path)) == 0
        process.wait_for(connects, "php-fpm does not listen")


KINDS = {"proxy": Origin, "python": Python, "node": Node, "php": Php}


def start(site, variant, cores, directory, tools):
    """The application a site needs, or None."""
    kind = KINDS.get(site.action)
    return kind(site, variant, cores, directory, tools) if kind else None
