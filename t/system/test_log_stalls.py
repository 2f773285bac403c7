"""A disk that does not answer: a write to the log of one app hangs. Its lines
are dropped and counted, and nobody else notices."""
import os
import re
import shutil
import subprocess
import time

import pytest

import scalws
from scalws import alive, wait_for
from test_logs import STAMP, bare, worker

# As long as `hang` exists, a write to what is called like `slow.log` waits.
HANG = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
ssize_t write(int fd, const void *bytes, size_t n)
{
	static ssize_t (*real)(int, const void *, size_t);
	const char *hang = getenv("HANG");
	char link[64], path[4096];
	ssize_t len;

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "write");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	path[len > 0 ? len : 0] = '\0';
	while (hang && strstr(path, "/slow.log") && access(hang, F_OK) == 0)
		usleep(20000);
	return real(fd, bytes, n);
}
"""
LINES = 60000


@pytest.fixture(scope="module")
def library():
    place = scalws.scratch()
    (place / "hang.c").write_text(HANG)
    subprocess.run([shutil.which("gcc") or "cc", "-shared", "-fPIC", "-O1",
                    "-o", str(place / "hang.so"), str(place / "hang.c"),
                    "-ldl"], check=True)
    return place / "hang.so"


def printer(**keys):
    """LINES numbered lines, as fast as they are taken, when told to; and one
    more."""
    app = worker(f"""
import os, time
def wait(name):
    while not os.path.exists(name):
        time.sleep(0.02)
wait("go")
for i in range(0, {LINES}, 100):
    os.write(1, b"".join(b"n %d %s\\n" % (j, b"x" * 100)
                         for j in range(i, i + 100)))
open("done", "w")
wait("again")
os.write(1, b"n again\\n")
time.sleep(1000)
""", **keys)
    os.chmod(app["directory"], 0o777)
    return app, scalws.Path(app["directory"])


@pytest.fixture
def hanging(daemon, library):
    """`slow`, whose log can be made to hang, and `other`."""
    hang = scalws.scratch() / "hang"
    slow, slow_place = printer()
    other, other_place = printer()
    one = daemon({"apps": {"slow": slow, "other": other}}, start=False,
                 env={"LD_PRELOAD": str(library), "HANG": str(hang)})
    # An ASan that was not loaded first complains.
    if scalws.SLOW > 1:
        one.extra_env["ASAN_OPTIONS"] = one.environment()["ASAN_OPTIONS"] + \
            ":verify_asan_link_order=0"
    one.start()
    one.wait_running("slow")
    one.wait_running("other")
    one.hang = hang
    one.places = slow_place, other_place
    yield one
    hang.unlink(missing_ok=True)


def lines(one, name):
    return [STAMP.sub("", line) for line in one.app_log(name).splitlines()]


def numbers(one, name):
    return [int(m[1]) for line in lines(one, name)
            if (m := re.match(r"n (\d+) x{100}$", line))]


def test_write_that_hangs(hanging):
    one = hanging
    slow, other = one.places
    before = scalws.rss_kib(one.process.pid)
    one.hang.write_text("")
    (slow / "go").write_text("")
    one.wait_log(r"slow\.log.*lines of the app are lost", 20)
    (other / "go").write_text("")
    # Neither the other's log waits, nor the commands.
    wait_for(lambda: len(numbers(one, "other")) == LINES, 60, every=0.1)
    began = time.monotonic()
    one.ok("status")
    assert time.monotonic() - began < 1 * scalws.SLOW
    assert numbers(one, "slow") == []
    # The hanging app goes on as well.
    wait_for((slow / "done").exists, 60)
    more = scalws.rss_kib(one.process.pid) - before
    assert more < scalws.allowed_kib(8192), more
    one.hang.unlink()
    wait_for(lambda: re.search("lines were lost here",
                               one.app_log("slow")), 20)
    (slow / "again").write_text("")
    wait_for(lambda: "n again" in lines(one, "slow"), 20)
    # What there was room for, the number of the others, and what came then.
    told = lines(one, "slow")
    where, = [i for i, line in enumerate(told) if "lines were lost" in line]
    kept = numbers(one, "slow")
    lost = int(re.search(r"scalwsd: (\d+) lines were lost here",
                         told[where])[1])
    assert kept == list(range(len(kept)))
    assert where == len(kept) and told[-1] == "n again"
    assert len(kept) + lost == LINES
    size = sum(len(line) + 1 for line in one.app_log("slow").splitlines())
    assert (1 << 20) - 65536 < size < (1 << 20) + 65536, size


def test_end_does_not_wait_for_ever(hanging):
    """Nor the stop of the app."""
    one = hanging
    one.hang.write_text("")
    (one.places[0] / "go").write_text("")
    one.wait_log(r"slow\.log.*lines of the app are lost", 20)
    pids = one.pids("slow")
    one.ok("stop", "slow")
    assert not any(map(alive, pids))
    began = time.monotonic()
    one.stop()
    assert time.monotonic() - began < 15 * scalws.SLOW
    assert re.search(r"slow\.log: .*not written", one.log())


def test_own_log_that_hangs(daemon, port, library):
    """error_log: neither supervisor nor proxy waits, and it has all lines
    afterwards."""
    hang, place = scalws.scratch() / "hang", scalws.scratch()
    app, _ = printer()
    one = daemon({**bare(app), "error_log": str(place / "slow.log"),
                  "sites": [{"listen": [f"127.0.0.1:{port}"], "routes": [
                      {"path": "*", "respond": {"status": 200}}]}]},
                 start=False, env={"LD_PRELOAD": str(library),
                                   "HANG": str(hang)})
    if scalws.SLOW > 1:
        one.extra_env["ASAN_OPTIONS"] = one.environment()["ASAN_OPTIONS"] + \
            ":verify_asan_link_order=0"
    one.start()
    before, = one.wait_running("app")
    log = place / "slow.log"
    hang.write_text("")
    try:
        kept = log.read_text()
        one.ok("restart", "app", timeout=20)
        one.ok("reload", timeout=20)
        assert scalws.get(port).status == 200
        one.signal(scalws.signal.SIGHUP)
        after = wait_for(lambda: one.pids("app"), 10)
        assert before not in after
        assert log.read_text() == kept
    finally:
        hang.unlink()
    wait_for(lambda: re.search(f"-> down: pid {before}", log.read_text()), 10)
    text = log.read_text()
    assert text.startswith(kept) and "lines were lost" not in text
    one.ok("upgrade")
    assert "goes on as process" in log.read_text()
    one.stop()
    assert re.search(r"stopped$", log.read_text().rstrip())
