"""ASGI: a page that asks for 50 assets, events and a WebSocket, and reports
what its browser saw; uploads and downloads. Beside that plain.py."""
import asyncio
import hashlib
import json

import plain
import ws

ASSETS = 50
PAGE = """<!doctype html><title>page</title>
<link rel="icon" href="data:,">
<script>var loaded = 0, seen = {};</script>
%s
<script>
function finish() {
  if (!seen.events || !seen.socket || !seen.ready) return;
  seen.loaded = loaded;
  seen.protocols = performance.getEntriesByType("resource")
    .filter(e => e.name.includes("/asset/")).map(e => e.nextHopProtocol);
  seen.page = performance.getEntriesByType("navigation")[0].nextHopProtocol;
  fetch("/report", {method: "POST", body: JSON.stringify(seen)});
}
addEventListener("load", () => { seen.ready = true; finish(); });
var source = new EventSource("/events"), events = [];
source.onmessage = e => {
  events.push(e.data);
  if (events.length == 3) {
    source.close(); seen.events = events; finish();
  }
};
var socket = new WebSocket(location.origin.replace("http", "ws") + "/ws");
socket.onopen = () => socket.send("hello");
socket.onmessage = e => { seen.socket = e.data; socket.close(); finish(); };
socket.onerror = () => { seen.socket = "error"; finish(); };
</script>
""" % "\n".join(f'<script src="/asset/{n}.js"></script>'
                for n in range(ASSETS))
reports = []


async def digest(receive):
    """What Sum does, without keeping 100 MiB."""
    size, sha = 0, hashlib.sha256()
    while True:
        event = await receive()
        body = event.get("body", b"")
        size += len(body)
        sha.update(body)
        if not event.get("more_body"):
            return json.dumps({"size": size,
                               "sha256": sha.hexdigest()}).encode()


async def send_events(send):
    await send({"type": "http.response.start", "status": 200, "headers": [
        (b"content-type", b"text/event-stream")]})
    for n in range(3):
        await send({"type": "http.response.body", "more_body": True,
                    "body": b"data: event %d\n\n" % n})
        await asyncio.sleep(0.05)
    await send({"type": "http.response.body", "body": b""})


async def download(send, n):
    await send({"type": "http.response.start", "status": 200, "headers": [
        (b"content-length", str(n).encode())]})
    piece = bytes(range(256)) * 256
    while n:
        part = piece[:n]
        n -= len(part)
        await send({"type": "http.response.body", "body": part,
                    "more_body": n > 0})


async def app(scope, receive, send):
    path = scope["path"]
    if scope["type"] == "websocket":
        await ws.app(scope, receive, send)
    elif path == "/page":
        await plain.answer(send, 200, PAGE.encode(), [
            (b"content-type", b"text/html")])
    elif path.startswith("/asset/"):
        await plain.answer(send, 200, b"loaded++;\n" + b"// %s\n" % (
            b"x" * 2000), [(b"content-type", b"text/javascript")])
    elif path == "/events":
        await send_events(send)
    elif path == "/upload":
        await plain.answer(send, 200, await digest(receive))
    elif path.startswith("/download/"):
        await download(send, int(path[10:]))
    elif path == "/report" and scope["method"] == "POST":
        event = await receive()
        reports.append(json.loads(event["body"]))
        await plain.answer(send, 200, b"thanks\n")
    elif path == "/report":
        await plain.answer(send, 200, json.dumps(reports).encode())
    else:
        await plain.app(scope, receive, send)
