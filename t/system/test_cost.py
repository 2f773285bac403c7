"""What a request costs: system calls, heap, memory, descriptors.

Counted, not timed, so that a busy machine changes nothing.
"""
import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

import scalws
from runtimes import BY_NAME, one_app
from scalws import Client, Helper, Origin, get, wait_for

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Strace:
    """Counts the system calls of a process with all its threads."""

    def __init__(self, pid, out):
        self.pid, self.out = pid, out

    def __enter__(self):
        self.helper = Helper(
            ["strace", "-f", "-q", "-o", str(self.out), "-p", str(self.pid)],
            stderr=subprocess.PIPE)
        process = self.helper.__enter__()
        # Attached to every thread when each has a tracer.
        wait_for(lambda: all(
            re.search(r"TracerPid:\s+[1-9]", open(
                f"/proc/{self.pid}/task/{t}/status").read())
            for t in os.listdir(f"/proc/{self.pid}/task")), 10,
            "strace is attached")
        self.process = process
        return self

    def __exit__(self, *ignored):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(20)
        self.helper.__exit__()
        self.calls = {}
        for line in open(self.out, errors="replace"):
            match = re.match(r"\d+ +(?:<\.\.\. )?(\w+)(\(| resumed>)", line)
            if match and match[2] == "(":
                self.calls[match[1]] = self.calls.get(match[1], 0) + 1


@pytest.fixture
def strace(tmp_path):
    if not shutil.which("strace"):
        pytest.skip("no strace")
    made = []

    def make(pid):
        made.append(pid)
        return Strace(pid, tmp_path / f"strace.{len(made)}")
    return make


def per_request(calls, n):
    return {name: count / n for name, count in sorted(calls.items())
            if count >= n / 10}


@pytest.mark.exact
def test_respond_costs_two_calls(daemon, port, strace):
    """One read, one write, beside its share of epoll_wait."""
    one = daemon({"workers": 1, "sites": [{
        "listen": [f"127.0.0.1:{port}"],
        "routes": [{"path": "*", "respond": {"status": 200, "body": "x"}}]}]})
    n = 500
    with Client(port) as client:
        for _ in range(200):
            client.exchange()
        with strace(one.proxy_pid()) as traced:
            for _ in range(n):
                client.exchange()
    cost = per_request(traced.calls, n)
    waits = cost.pop("epoll_wait", 0) + cost.pop("epoll_pwait", 0)
    assert waits <= 1.1, cost
    assert abs(sum(cost.values()) - 2) < 0.1, cost


@pytest.mark.exact
def test_proxied_request_costs_four_calls(daemon, port, strace):
    with Origin(ANSWER) as origin:
        one = daemon({"workers": 1, "sites": [{
            "listen": [f"127.0.0.1:{port}"],
            "routes": [{"path": "*", "upstream": "u"}]}],
            "upstreams": {"u": {"peers": [{"address": origin.address}]}}})
        n = 500
        with Client(port) as client:
            for _ in range(200):
                client.exchange()
            with strace(one.proxy_pid()) as traced:
                for _ in range(n):
                    client.exchange()
    cost = per_request(traced.calls, n)
    waits = cost.pop("epoll_wait", 0) + cost.pop("epoll_pwait", 0)
    assert waits <= 2.1, cost
    assert abs(sum(cost.values()) - 4) < 0.1, cost


@pytest.mark.exact
@pytest.mark.parametrize("clients", [1, 8])
def test_php_costs_four_calls(daemon, port, strace, apps, clients):
    """Also for those who wait until the only child is free: the same worker
    hands them its connection without a call."""
    one = daemon({
        "workers": 1, "apps": {"p": {"runtime": "php", "children": 1,
                                     "root": str(apps / "php/front/public")}},
        "sites": [{"listen": [f"127.0.0.1:{port}"],
                   "routes": [{"path": "*", "app": "p"}]}]})
    one.wait_running("p")
    rounds = 400 // clients
    with contextlib.ExitStack() as stack:
        all_of_them = [stack.enter_context(Client(port))
                       for _ in range(clients)]

        def run(n):
            for _ in range(n):
                for client in all_of_them:
                    client.request()
                for client in all_of_them:
                    assert client.response().status == 200
        run(rounds)
        with strace(one.proxy_pid()) as traced:
            run(rounds)
    cost = per_request(traced.calls, rounds * clients)
    waits = cost.pop("epoll_wait", 0) + cost.pop("epoll_pwait", 0)
    assert waits <= 2.1, cost
    # The script's path is looked up again once a second.
    assert abs(sum(cost.values()) - 4) < 0.15, cost


@pytest.mark.exact
def test_access_log_does_not_cost_a_call_each(daemon, port, strace):
    """Under pipelined load lines are written together."""
    one = daemon({"workers": 1, "sites": [{
        "listen": [f"127.0.0.1:{port}"],
        "routes": [{"path": "*", "respond": {"status": 200, "body": "x"}}]}]})
    with Client(port) as client:
        client.exchange()
        with strace(one.proxy_pid()) as traced:
            for _ in range(20):
                for _ in range(50):
                    client.request()
                for _ in range(50):
                    client.response()
        wait_for(lambda: len(one.access_log()) == 1001, 5)
    assert sum(traced.calls.values()) < 1000, traced.calls


COUNTER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
static atomic_ulong *counter;

__attribute__((constructor)) static void
start(void)
{
	const char *path = getenv("ALLOC_COUNTER");
	int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
	if (fd == -1)
		return;
	counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (counter == MAP_FAILED)
		counter = NULL;
}
static void
count(void)
{
	/* Slot 0 the supervisor and others, the proxy is told apart by its
	 * pid in slot 1. */
	if (counter != NULL && counter[1] == (unsigned long)getpid())
		atomic_fetch_add(&counter[0], 1);
}
void *malloc(size_t n) { count(); return __libc_malloc(n); }
void *calloc(size_t n, size_t m) { count(); return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { count(); return __libc_realloc(p, n); }
void *aligned_alloc(size_t a, size_t n)
{ count(); return __libc_memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n)
{ count(); *p = __libc_memalign(a, n); return *p == NULL ? 12 : 0; }
"""


@pytest.fixture(scope="module")
def counter_library():
    directory = scalws.scratch()
    source = directory / "counter.c"
    source.write_text(COUNTER)
    library = directory / "counter.so"
    subprocess.run([shutil.which("gcc") or "cc", "-shared", "-fPIC", "-O1",
                    "-fno-builtin", "-o", str(library), str(source), "-ldl"],
                   check=True)
    os.chmod(library, 0o755)
    return library


class Allocations:
    """Counts calls of malloc and its kin in the proxy, and nowhere else."""

    def __init__(self, library):
        self.path = library.parent / f"count-{time.monotonic_ns()}"
        self.path.write_bytes(bytes(4096))
        os.chmod(self.path, 0o666)
        self.env = {"LD_PRELOAD": str(library),
                    "ALLOC_COUNTER": str(self.path)}

    def slots(self):
        return (ctypes.c_ulong * 2).from_buffer_copy(
            self.path.read_bytes()[:16])

    def watch(self, pid):
        maps = open(f"/proc/{pid}/maps").read()
        assert "counter.so" in maps, \
            "the proxy lost LD_PRELOAD: nothing would be counted"
        with open(self.path, "r+b") as file:
            file.write(bytes(8) + pid.to_bytes(8, "little"))

    def count(self):
        return self.slots()[0]


@pytest.mark.exact
@pytest.mark.parametrize("kind", ["respond", "proxied", "fastcgi"])
def test_no_heap_allocation_per_request(daemon, port, counter_library, kind,
                                        apps):
    """After warm-up, on a kept connection."""
    counter = Allocations(counter_library)
    with Origin(ANSWER) as origin:
        conf = {"workers": 1, "upstreams": {"u": {
            "peers": [{"address": origin.address}]}}, "apps": {}}
        route = {"respond": {"respond": {"status": 200, "body": "x"}},
                 "proxied": {"upstream": "u"},
                 "fastcgi": {"app": "p"}}[kind]
        conf["sites"] = [{"listen": [f"127.0.0.1:{port}"],
                          "routes": [{"path": "*", **route}]}]
        if kind == "fastcgi":
            conf["apps"] = {"p": {"runtime": "php", "children": 1, "root": str(
                apps / "php/front/public")}}
        one = daemon(conf, env=counter.env)
        if kind == "fastcgi":
            one.wait_running("p")
        pid = one.proxy_pid()
        with Client(port) as client:
            for _ in range(500):
                assert client.exchange().status == 200
            counter.watch(pid)
            n = 2000
            for _ in range(n):
                client.exchange()
            counted = counter.count()
            # The instrument works: a new connection allocates or reuses, a
            # reload certainly allocates.
            one.ok("reload")
            wait_for(lambda: counter.count() > counted, 5,
                     "the counter counts")
    assert counted <= n / 100, f"{counted} allocations in {n} requests"


@pytest.mark.exact
@pytest.mark.parametrize("kind", ["respond", "app", "php", "new", "aborted"])
def test_nothing_grows(daemon, port, apps, kind):
    """10,000 requests leave descriptors, threads and memory where they were
    after the first 1,000."""
    conf = one_app(BY_NAME["asgi"], port, name="a")
    conf["apps"]["p"] = {"runtime": "php", "children": 4,
                         "root": str(apps / "php/front/public")}
    conf["sites"][0]["routes"] = [
        {"path": "/respond", "respond": {"status": 200, "body": "x"}},
        {"path": "*", "app": "p" if kind == "php" else "a"}]
    one = daemon(conf)
    one.wait_running("a")
    one.wait_running("p")
    pid = one.proxy_pid()
    many = 9000 if kind in ("respond", "app") or scalws.LONG else 3000

    def run(n):
        def work(i):
            if kind in ("new", "aborted"):
                for _ in range(n // 4):
                    with Client(port) as client:
                        client.request("GET", "/slow?s=0.05"
                                       if kind == "aborted" else "/respond")
                        if kind == "new":
                            client.response()
                return
            with Client(port) as client:
                target = {"respond": "/respond", "app": "/pid",
                          "php": "/pid"}[kind]
                for _ in range(n // 4):
                    assert client.exchange("GET", target).status == 200
        scalws.parallel(4, work)

    def settled():
        wait_for(lambda: one.app("a")["in_flight"] == 0, 20)
        return {p: (scalws.fd_count(p), scalws.thread_count(p))
                for p in (pid, one.process.pid)}
    run(1000)
    counts = settled()
    rss = scalws.rss_kib(pid), scalws.rss_kib(one.process.pid)
    run(many)

    def as_before():
        # Each of the four clients may have left an idle connection to an app.
        now = settled()
        return all(now[p][0] <= counts[p][0] + 4 and now[p][1] == counts[p][1]
                   for p in counts)
    wait_for(as_before, 15, f"descriptors and threads as before: {counts}, "
             f"now {settled()}")
    after = scalws.rss_kib(pid), scalws.rss_kib(one.process.pid)
    assert after[0] - rss[0] < 1024, (rss, after)
    assert after[1] - rss[1] < 1024, (rss, after)


@pytest.mark.exact
def test_burst_gives_its_memory_back(daemon, port):
    """Each of many clients holds a buffer until its head is whole. Some
    seconds after they have left, the proxy is nearly as small as before."""
    n = 1000
    one = daemon({"workers": 1, "limits": {"connections": n + 100}, "sites": [{
        "listen": [f"127.0.0.1:{port}"],
        "routes": [{"path": "*", "respond": {"status": 200, "body": "x"}}]}]})
    pid = one.proxy_pid()
    with Client(port) as client:
        for _ in range(100):
            client.exchange()
    before = scalws.rss_kib(pid)
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(Client(port)) for _ in range(n)]
        for client in many:
            client.send(b"GET / HTTP/1.1\r\nHost: x\r\nA: %b\r\n"
                        % (b"a" * 12000))
        wait_for(lambda: scalws.rss_kib(pid) > before + n * 11, 20,
                 "the burst has its memory")
        for client in many:
            client.send(b"\r\n")
        for client in many:
            assert client.response().status == 200
    # The event library keeps a few bytes for each descriptor it has seen, and
    # with them the page they are in.
    try:
        wait_for(lambda: scalws.rss_kib(pid) < before + n * 4, 30)
    except AssertionError:
        assert False, f"{before} KiB before, {scalws.rss_kib(pid)} after"


def asyncio_app(environment=None):
    """uvicorn on the asyncio loop, whatever is installed."""
    return BY_NAME["asgi"].conf(arguments=["--loop", "asyncio"],
                                environment=environment)


@pytest.mark.exact
@pytest.mark.parametrize("own", [False, True], ids=["ours", "users-own"])
def test_no_mmap_per_request(daemon, port, strace, own):
    """glibc's mmap mode (see the Python part of the manual): ours never, with
    the user's MALLOC_TRIM_THRESHOLD_ alone, which keeps ours away, always."""
    conf = one_app(BY_NAME["asgi"], port)
    conf["apps"]["app"] = asyncio_app(
        {"MALLOC_TRIM_THRESHOLD_": "131072"} if own else None)
    one = daemon(conf)
    pid = one.wait_running("app")[0]
    n = 1000
    with Client(port) as client:
        for _ in range(200):
            client.exchange()
        with strace(pid) as traced:
            for _ in range(n):
                client.exchange()
    maps = traced.calls.get("mmap", 0) + traced.calls.get("munmap", 0)
    reads = sum(traced.calls.get(c, 0)
                for c in ("recvfrom", "read", "recvmsg", "recv"))
    assert reads >= n, traced.calls
    if own:
        assert maps > n, traced.calls
    else:
        assert maps < n / 50, traced.calls


@pytest.mark.exact
def test_uvloop_is_used_where_it_is(daemon, port):
    from runtimes import uvicorn_has_uvloop
    if not uvicorn_has_uvloop():
        pytest.skip("no uvloop")
    one = daemon(one_app(BY_NAME["asgi"], port))
    pid = one.wait_running("app")[0]
    get(port)
    assert "uvloop" in open(f"/proc/{pid}/maps").read()
