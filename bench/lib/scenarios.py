"""The table of scenarios. A new one is one entry in SCENARIOS."""
import fnmatch
from dataclasses import dataclass, field, replace

SMALL = {
    "Host": "www.example.com",
    "User-Agent": "bench/1.0 (count)",
    "Accept": "application/json",
    "Accept-Language": "en-US",
}
BROWSER = {
    "Host": "www.example.com",
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 "
                  "(KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,"
              "image/avif,image/webp,*/*;q=0.8",
    "Accept-Language": "en-US,en;q=0.9,de;q=0.8",
    "Accept-Encoding": "gzip, deflate, br, zstd",
    "Referer": "https://www.example.com/articles/index",
    "Cookie": "session=0123456789abcdef0123456789abcdef; theme=dark",
    "Cache-Control": "no-cache",
    "Pragma": "no-cache",
    "Sec-Fetch-Dest": "document",
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-Site": "same-origin",
    "Upgrade-Insecure-Requests": "1",
}


@dataclass(frozen=True)
class Site:
    """What a server is configured to do; every server's writer reads this."""
    action: str                 # respond, proxy, php, node, python
    transport: str = "unix"     # of the peers: unix, tcp
    instances: int = 1          # processes of the application
    event_loop: str = "uvloop"  # of python: uvloop, asyncio
    loops: int = 1              # the server's workers or threads
    connections: int = 1024     # room for so many clients
    retry: bool = False         # a lost peer matters: try another
    http2: bool = False         # spoken with clients, which know it
    tls: bool = False           # 1.3, by a P-256 certificate, with tickets
    body: int = 0               # bytes of the answer; 0: a small one


@dataclass(frozen=True)
class Scenario:
    name: str
    what: str
    site: Site
    kind: str = "load"          # a function of measure.py or special.py
    connections: int = 64
    fields: dict = field(default_factory=lambda: SMALL)
    fresh: bool = False         # a connection per request
    path: str = "/"
    counted: bool = True        # instructions and system calls too
    steps: tuple = (20, 60)     # counted requests of each connection
    resumed: bool = False       # the TLS sessions of fresh connections
    streams: int = 1            # of HTTP/2, on each connection at a time

    def headers(self):
        return dict(self.fields, Connection="close") if self.fresh \
            else self.fields

    def request(self):
        lines = [f"GET {self.path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in self.headers().items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


RESPOND = Site("respond")
RESPOND_H2 = Site("respond", http2=True)
RESPOND_TLS = Site("respond", tls=True)
PROXY = Site("proxy")
PROXY_TLS = Site("proxy", tls=True)
MIB = 1048576
PROXY_TCP = Site("proxy", transport="tcp")
PHP = Site("php")
NODE = Site("node", instances=2)
UVLOOP = Site("python", instances=2)
ASYNCIO = Site("python", instances=2, event_loop="asyncio")
PHP_PATH = "/index.php"

SCENARIOS = [
    Scenario("respond", "fixed answer, small request", RESPOND),
    Scenario("respond-browser", "fixed answer, a browser's request", RESPOND,
             fields=BROWSER),
    Scenario("proxy-unix", "proxied, unix socket, kept", PROXY),
    Scenario("proxy-tcp", "proxied, TCP, kept", PROXY_TCP),
    Scenario("proxy-browser", "proxied, unix socket, a browser's request",
             PROXY, fields=BROWSER),
    Scenario("php", "php-fpm, 8 children", PHP, path=PHP_PATH),
    Scenario("node", "Node, 2 processes", NODE),
    Scenario("python-uvloop", "uvicorn on uvloop, 2 processes", UVLOOP),
    Scenario("python-asyncio", "uvicorn on asyncio, 2 processes", ASYNCIO),
    Scenario("respond-one", "fixed answer, one connection", RESPOND,
             connections=1),
    Scenario("proxy-one", "proxied, one connection", PROXY, connections=1),
    Scenario("php-one", "php-fpm, one connection", PHP, connections=1,
             path=PHP_PATH),
    Scenario("respond-fresh", "fixed answer, a connection per request",
             RESPOND, fresh=True),
    Scenario("proxy-fresh", "proxied, a connection per request", PROXY,
             fresh=True),
    Scenario("respond-fresh-one", "one client, a connection per request",
             RESPOND, connections=1, fresh=True),
    Scenario("proxy-fresh-one", "proxied, one client, a connection per "
             "request", PROXY, connections=1, fresh=True),
    Scenario("h2-one", "HTTP/2, fixed answer, one at a time", RESPOND_H2,
             connections=1),
    Scenario("h2", "HTTP/2, fixed answer, one connection, 16 streams",
             RESPOND_H2, connections=1, streams=16),
    Scenario("h2-proxy", "HTTP/2, proxied, unix socket, 16 streams",
             replace(PROXY, http2=True), connections=1, streams=16),
    Scenario("tls", "TLS, fixed answer, small request", RESPOND_TLS),
    Scenario("tls-proxy", "TLS, proxied, unix socket, kept", PROXY_TLS),
    Scenario("tls-1m", "TLS, 1 MiB, fixed (of nginx: a file)",
             replace(RESPOND_TLS, body=MIB), connections=16, steps=(2, 6)),
    Scenario("tls-1m-proxy", "TLS, 1 MiB, proxied, unix socket",
             replace(PROXY_TLS, body=MIB), connections=16, steps=(2, 6)),
    Scenario("tls-fresh", "TLS, a handshake and a fixed answer", RESPOND_TLS,
             connections=16, fresh=True, steps=(4, 12)),
    Scenario("tls-resumed", "TLS, a resumed handshake and a fixed answer",
             RESPOND_TLS, connections=16, fresh=True, resumed=True,
             steps=(4, 12)),
    Scenario("tls-h2-one", "HTTP/2 over TLS, fixed answer, one at a time",
             replace(RESPOND_TLS, http2=True), connections=1),
    Scenario("tls-h2", "HTTP/2 over TLS, fixed answer, 16 streams",
             replace(RESPOND_TLS, http2=True), connections=1, streams=16),
    Scenario("idle-tls", "10,000 idle connections, TLS", RESPOND_TLS,
             kind="idle", connections=10000),
    Scenario("idle", "10,000 idle connections", Site("respond"), kind="idle",
             connections=10000),
    Scenario("memory", "memory, proxied, one loop", PROXY, kind="memory"),
    Scenario("memory-2", "memory, proxied, 2 loops", replace(PROXY, loops=2),
             kind="memory"),
    Scenario("memory-4", "memory, proxied, 4 loops", replace(PROXY, loops=4),
             kind="memory"),
    Scenario("memory-respond", "memory, fixed answer, one loop", RESPOND,
             kind="memory"),
    Scenario("memory-php", "memory, php-fpm, one loop", PHP, kind="memory",
             path=PHP_PATH),
    Scenario("memory-node", "memory, Node, one loop", NODE, kind="memory"),
    Scenario("memory-python", "memory, uvicorn, one loop", UVLOOP,
             kind="memory"),
    Scenario("reload", "reload of the configuration under load", PROXY,
             kind="reload", connections=16),
    Scenario("restart", "restart of the application under load",
             replace(UVLOOP, retry=True), kind="restart", connections=16),
    Scenario("spread-2", "64 connections over 2 loops",
             Site("respond", loops=2), kind="spread"),
    Scenario("spread-4", "64 connections over 4 loops",
             Site("respond", loops=4), kind="spread"),
    Scenario("spread-8", "64 connections over 8 loops",
             Site("respond", loops=8), kind="spread"),
]


def select(patterns):
    """Entries whose name is one of `patterns` ("proxy-*"); all for none."""
    for pattern in patterns:
        if not fnmatch.filter((s.name for s in SCENARIOS), pattern):
            raise SystemExit(f"no scenario {pattern}; there are: "
                             + " ".join(s.name for s in SCENARIOS))
    return [s for s in SCENARIOS if not patterns or any(
        fnmatch.fnmatch(s.name, pattern) for pattern in patterns)]
