"""Processes that have done enough are replaced; no request fails."""
import time

import pytest

import scalws
from runtimes import BY_NAME, one_app, parameters
from scalws import Load, alive, get, wait_for

SECONDS = 60 if scalws.LONG else 0


@pytest.mark.parametrize("case", parameters("asgi", "flask-sync", "http",
                                            "php-front"))
def test_after_requests(daemon, port, case):
    """Again and again under load, one of the app's at a time."""
    more = {} if case.name == "php-front" else {"processes": 2}
    one = daemon(one_app(case, port, recycle={"requests": 100}, **more))
    one.wait_running("app")
    seen, fewest = set(one.pids("app")), 99
    until = time.monotonic() + SECONDS
    with Load(port, n=4, host="example.com", pause=0.01) as load:
        def enough():
            nonlocal fewest
            now = one.pids("app")
            fewest = min(fewest, len(now))
            seen.update(now)
            return len(seen) >= (4 if scalws.LONG else 3) + \
                len(more) and time.monotonic() > until
        wait_for(enough, 40 + SECONDS, "they are replaced", every=0.1)
    assert not load.failed, load.failed[:3]
    assert fewest >= (2 if more else 1)
    one.wait_log(r"is replaced: after \d+ requests")


def test_after_a_time(daemon, port):
    one = daemon(one_app(BY_NAME["http"], port, recycle={"age": "3s"}))
    first, = one.wait_running("app")
    with Load(port, n=2, host="example.com", pause=0.01) as load:
        wait_for(lambda: not alive(first), 40)
    assert not load.failed, load.failed[:3]
    one.wait_log(r"is replaced: after [23] s")


def test_over_its_memory(daemon, port):
    """What it has started counts too."""
    keeper = scalws.scratch()
    (keeper / "app.js").write_text(
        "const kept = [];\n"
        "require('http').createServer((req, res) => {\n"
        "  if (req.url === '/grow') kept.push(Buffer.alloc(80 << 20, 1));\n"
        "  res.end('ok\\n');\n"
        "}).listen(process.env.PORT);\n")
    conf = one_app(BY_NAME["http"], port, recycle={"memory": "120M"})
    conf["apps"]["app"].update(directory=str(keeper), script="app.js")
    one = daemon(conf)
    first, = one.wait_running("app")
    assert get(port, "/grow", host="example.com").status == 200
    with Load(port, n=2, host="example.com", pause=0.01) as load:
        wait_for(lambda: not alive(first), 60)
    assert not load.failed, load.failed[:3]
    one.wait_log(r"is replaced: it has 1\d\d\.\d MiB of memory")


def test_new_one_that_fails_leaves_the_old_one(daemon, port):
    place = scalws.scratch()
    script = place / "app.js"
    script.write_text("require('http').createServer((req, res) => "
                      "res.end('ok\\n')).listen(process.env.PORT);\n")
    conf = one_app(BY_NAME["http"], port, recycle={"requests": 20})
    conf["apps"]["app"].update(directory=str(place), script="app.js")
    one = daemon(conf)
    first, = one.wait_running("app")
    script.write_text("process.exit(3);\n")
    with Load(port, n=2, host="example.com", pause=0.01) as load:
        one.wait_log("no process could be replaced", 30)
        load.wait_done(20)
    assert not load.failed, load.failed[:3]
    assert one.pids("app") == [first]
