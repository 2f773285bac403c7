"""scale and restart at run time: numbers, progress, streams, two generations."""
import re
import signal
import subprocess

import pytest

import scalws
from h2client import H2
from runtimes import BY_NAME, one_app
from scalws import Client, Load, alive, get, wait_for
from test_h2 import open_ws
from test_websocket import GOING_AWAY

FAILED, USAGE = 1, 2


def serve(daemon, port, name="http", **keys):
    one = daemon(one_app(BY_NAME[name], port, **keys))
    one.wait_running("app")
    return one


def test_scale_up_and_down(daemon, port):
    one = serve(daemon, port, processes=2)
    before = one.pids("app")
    with Load(port, n=4, host="example.com", pause=0.01) as load:
        assert "app scaled" in one.ok("scale", "app", "4")
        assert len(one.pids("app")) == 4 and set(before) < set(one.pids("app"))
        said = one.ok("status")
        assert "app: scaled to processes = 4, the configuration says 2" \
            in said
        app = one.app("app")
        assert (app["processes"], app["processes_configured"]) == (4, 2)
        one.ok("scale", "app", "1")
        wait_for(lambda: len(one.instances("app")) == 1, 20)
        assert one.pids("app")[0] in before     # the youngest have ended
        load.wait_done(20)
    assert not load.failed, load.failed[:3]
    one.ok("scale", "app", "2")
    assert "was scaled" not in one.ok("status")


def test_reload_keeps_the_scale_until_the_file_says_another(daemon, port):
    one = serve(daemon, port, processes=1)
    first, = one.pids("app")
    one.ok("scale", "app", "2")
    one.ok("reload")
    assert len(one.pids("app")) == 2
    one.ok("restart", "app")
    assert len(one.pids("app")) == 2 and first not in one.pids("app")
    kept = one.pids("app")
    conf = dict(one.conf)
    conf["apps"]["app"]["processes"] = 3
    one.write(conf)
    said = one.ok("reload", "--dry-run")
    assert "app app: scale from 2 to 3 processes" in said
    assert "restart" not in said.replace("without a restart", "")
    one.ok("reload")
    one.wait_running("app", 3)
    assert set(kept) < set(one.pids("app"))
    assert one.app("app")["processes_configured"] == 3


@pytest.mark.parametrize("args,code,said", [
    (["scale", "app"], USAGE, "how many"),
    (["scale", "app", "0"], USAGE, "1 to"),
    (["scale", "app", "x"], USAGE, "1 to"),
    (["scale", "app", "2", "3"], USAGE, "too many"),
    (["scale", "nope", "2"], USAGE, "no app"),
    (["restart", "--all"], USAGE, "name the app"),
    (["stop", "--all", "app"], USAGE, "belongs to restart"),
    (["status", "--dry-run"], USAGE, "belongs to reload"),
])
def test_wrong_words(daemon, port, args, code, said):
    one = serve(daemon, port)
    done = one.ctl(*args)
    assert done.returncode == code and said in done.stdout + done.stderr


def test_php_has_children_instead(daemon, port):
    one = serve(daemon, port, "php-front")
    done = one.ctl("scale", "app", "2")
    assert done.returncode == USAGE and "children" in done.stderr


@pytest.mark.parametrize("options", [[], ["--all"]])
def test_restart_says_how_far_it_is(daemon, port, options):
    one = serve(daemon, port, processes=3)
    before = one.pids("app")
    with Load(port, n=4, host="example.com", pause=0.01) as load:
        said = one.ok("restart", *options, "app")
        after = one.pids("app")
    assert not load.failed, load.failed[:3]
    assert not set(before) & set(after) and len(after) == 3
    steps = re.findall(r"app: pid (\d+) is ready, pid (\d+) ends: replaced",
                       said)
    assert {int(a) for a, _ in steps} == set(after)
    assert {int(b) for _, b in steps} == set(before)
    assert said.rstrip().endswith("app restarted")
    if options:     # beside each other: the first ended when all had started
        log = one.log()
        starts = [m.start() for m in re.finditer("down -> starting", log)]
        ends = log.index("running -> draining: replaced")
        assert len([s for s in starts if s < ends]) == 6 + 1 or \
            len([s for s in starts if s < ends]) == 6


def test_interrupted_restart_goes_on(daemon, port):
    place = scalws.scratch()
    (place / "app.js").write_text(
        "const go = () => require('fs').existsSync('go')\n"
        "  ? require('http').createServer((req, res) => res.end('ok\\n'))\n"
        "      .listen(process.env.PORT)\n"
        "  : setTimeout(go, 20);\ngo();\n")
    (place / "go").write_text("")
    conf = one_app(BY_NAME["http"], port)
    conf["apps"]["app"].update(directory=str(place), script="app.js")
    one = daemon(conf)
    before, = one.wait_running("app")
    (place / "go").unlink()
    ctl = one.popen([scalws.scalwsctl(), "-s", one.control, "restart", "app"],
                    stderr=subprocess.PIPE, text=True)
    wait_for(lambda: one.instances("app", "starting"), 10)
    ctl.send_signal(signal.SIGINT)
    assert "goes on with the restart" in ctl.communicate(timeout=20)[1]
    assert ctl.returncode == -signal.SIGINT
    assert alive(before)
    (place / "go").write_text("")
    wait_for(lambda: not alive(before), 20)
    assert one.app("app")["state"] == "running"


def test_restart_all_that_fails_leaves_the_old_ones(daemon, port):
    place = scalws.scratch()
    script = place / "app.js"
    good = ("require('http').createServer((req, res) => "
            "res.end('ok\\n')).listen(process.env.PORT);\n")
    script.write_text(good)
    conf = one_app(BY_NAME["http"], port, processes=2)
    conf["apps"]["app"].update(directory=str(place), script="app.js")
    one = daemon(conf)
    before = one.wait_running("app")
    script.write_text("console.error('a bad version'); process.exit(3);\n")
    done = one.ctl("restart", "--all", "app")
    assert done.returncode == FAILED and "a bad version" in done.stderr
    assert one.pids("app") == before
    script.write_text(good)
    one.ok("restart", "--all", "app")
    assert not set(before) & set(one.pids("app"))


# --- streams ---------------------------------------------------------------------

EVENTS = """
const http = require('http');
const server = http.createServer((req, res) => {
  if (req.url === '/never') return req.resume();
  if (req.url !== '/events') return res.end(process.pid + '\\n');
  res.writeHead(200, { 'Content-Type': 'text/event-stream' });
  const timer = setInterval(() => res.write('data: tick\\n\\n'), 50);
  req.on('close', () => clearInterval(timer));
});
// A WebSocket: says "hi", and the bytes that the request's target names.
server.on('upgrade', (req, socket) => {
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\n' +
               'Upgrade: websocket\\r\\nConnection: Upgrade\\r\\n' +
               'Sec-WebSocket-Accept: x\\r\\n\\r\\n');
  socket.write(Buffer.concat([Buffer.from('\\x81\\x02hi', 'latin1'),
                              Buffer.from(req.url.slice(1), 'hex')]));
  socket.on('error', () => {});
  socket.on('data', (data) => console.log('got', data.toString('hex')));
});
server.listen(process.env.PORT);
"""


WEBSOCKET = {"Connection": "Upgrade", "Upgrade": "websocket",
             "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==",
             "Sec-WebSocket-Version": "13"}


def events(daemon, port, limits=None, **keys):
    place = scalws.scratch()
    (place / "app.js").write_text(EVENTS)
    conf = one_app(BY_NAME["http"], port, stop_timeout="2s", **keys)
    conf["apps"]["app"].update(directory=str(place), script="app.js")
    one = daemon({**conf, "limits": limits or {}})
    return one, one.wait_running("app")[0]


class Stream:
    """An event stream that reads as it comes."""

    def __init__(self, port):
        self.client = Client(port)
        self.client.request("GET", "/events", host="example.com")
        answer = self.client.response_head()
        assert answer.status == 200
        self.chunks = 0
        self.read(1)

    def read(self, n):
        """n more chunks; False at the clean end."""
        for _ in range(n):
            size = int(self.client.line(), 16)
            self.client.take(size + 2)
            if size == 0:
                return False
            self.chunks += 1
        return True

    def read_to_the_end(self):
        while self.read(1):
            pass


def test_streams_go_on_at_the_old_process(daemon, port):
    """restart does not wait for them; they end cleanly after stream_grace."""
    one, old = events(daemon, port, stream_grace="4s", drain_timeout="60s")
    stream = Stream(port)
    one.ok("restart", "app", timeout=15)
    assert alive(old) and one.instances("app", "draining")[0]["pid"] == old
    new = int(get(port, host="example.com").body)
    assert new != old
    assert stream.read(5)
    stream.read_to_the_end()            # chunked, with its last chunk
    wait_for(lambda: not alive(old), 10)
    one.wait_log("stream grace")
    assert int(get(port, host="example.com").body) == new


def websocket(port, more=b""):
    client = Client(port)
    client.request(target="/" + more.hex(), host="example.com",
                   headers=WEBSOCKET)
    assert client.response(informational=True).status == 101
    assert client.take(4 + len(more)) == b"\x81\x02hi" + more
    return client


def test_websockets_are_closed_with_1001(daemon, port):
    """At stream_grace, for HTTP/1.1 and HTTP/2; not within a frame, nor
    behind the app's own close frame."""
    one, old = events(daemon, port, stream_grace="2s")
    sockets = {}
    for more in (b"", b"\x81\x03no", b"\x88\x02\x03\xf4"):
        sockets[more] = websocket(port, more)
    with H2(("127.0.0.1", port)) as h2:
        stream = h2.streams[open_ws(h2)]
        assert h2.until(lambda: stream.body == b"\x81\x02hi")
        one.ok("restart", "app", timeout=15)
        assert alive(old) and stream.body == b"\x81\x02hi"
        assert h2.until(lambda: stream.over)
        assert stream.ended and stream.body == b"\x81\x02hi" + GOING_AWAY
    for more, client in sockets.items():
        if not more:
            assert client.take(4) == GOING_AWAY
        assert client.at_eof(10), more
        client.close()
    wait_for(lambda: not alive(old), 10)


def test_streams_outlive_requests_that_take_too_long(daemon, port):
    """At drain_timeout the requests fail, and nothing else; restart is done
    then, and streams have stream_grace as if there had been none."""
    one, old = events(daemon, port, stream_grace="3s", drain_timeout="500ms")
    stream, socket, late = Stream(port), websocket(port), Client(port)
    late.request("POST", "/never", host="example.com", body=b"x")
    wait_for(lambda: one.app("app")["in_flight"] == 3, 10)
    one.ok("restart", "app", timeout=15)
    assert late.response().status == 502
    assert alive(old) and one.instances("app", "draining")[0]["pid"] == old
    assert int(get(port, host="example.com").body) != old
    assert stream.read(5)
    assert socket.take(4) == GOING_AWAY and socket.at_eof(10)
    stream.read_to_the_end()            # chunked, with its last chunk
    wait_for(lambda: not alive(old), 10)
    one.wait_log("stream grace")
    assert "drain timeout" not in one.log()


def test_stream_that_ends_lets_its_process_go(daemon, port):
    one, old = events(daemon, port, stream_grace="600s")
    stream = Stream(port)
    one.ok("restart", "app", timeout=15)
    assert stream.read(3) and alive(old)
    stream.client.close()
    wait_for(lambda: not alive(old), 10)


def test_two_old_generations_at_most(daemon, port):
    one, first = events(daemon, port, stream_grace="600s")
    streams, pids = [], []
    for _ in range(3):
        streams.append(Stream(port))
        pids += one.pids("app")
        one.ok("restart", "app", timeout=15)
    assert pids[0] == first
    streams[0].read_to_the_end()
    wait_for(lambda: not alive(pids[0]), 10)
    assert alive(pids[1]) and alive(pids[2])
    assert streams[1].read(3) and streams[2].read(3)
    for stream in streams:
        stream.client.close()


def test_stop_does_not_wait_for_streams(daemon, port):
    one, old = events(daemon, port, stream_grace="600s", drain_timeout="1s")
    stream = Stream(port)
    one.ok("stop", "app", timeout=15)
    assert not alive(old)
    stream.client.close()
