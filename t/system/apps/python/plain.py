"""ASGI without a framework."""
import asyncio
import json
import os
import re
from urllib.parse import parse_qs

from common import Sum, crash, echo, stream


async def read(receive):
    body = Sum()
    while True:
        event = await receive()
        if event["type"] != "http.request":
            break
        body.add(event.get("body", b""))
        if not event.get("more_body"):
            break
    return body


async def answer(send, status, body, headers=()):
    await send({"type": "http.response.start", "status": status, "headers": [
        (b"content-type", b"text/plain"),
        (b"content-length", str(len(body)).encode()), *headers]})
    await send({"type": "http.response.body", "body": body})


async def app(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("only http: " + scope["type"])
    path = scope["path"]
    query = scope["query_string"].decode()
    args = {k: v[-1] for k, v in parse_qs(query).items()}
    status = re.fullmatch(r"/status/(\d+)", path)
    if path == "/":
        await answer(send, 200, b"ok\n")
    elif path == "/echo":
        body = await read(receive)
        headers = [(k.decode(), v.decode("latin-1"))
                   for k, v in scope["headers"]]
        host = dict(headers).get("host")
        value = echo(scope["method"], path, query, headers, body,
                     client=scope["client"] and scope["client"][0],
                     scheme=scope["scheme"], host=host,
                     http_version=scope["http_version"])
        await answer(send, 200, json.dumps(value).encode())
    elif path == "/pid":
        await answer(send, 200, str(os.getpid()).encode())
    elif path == "/slow":
        await asyncio.sleep(float(args.get("s", 1)))
        await answer(send, 200, b"slow\n")
    elif status:
        await answer(send, int(status[1]), f"status {status[1]}\n".encode())
    elif path == "/cookies":
        cookie = dict(scope["headers"]).get(b"cookie", b"").decode()
        await answer(send, 200, json.dumps({"cookie": cookie}).encode(), [
            (b"set-cookie", b"a=1; Path=/"), (b"set-cookie", b"b=2; HttpOnly")])
    elif path == "/stream":
        await send({"type": "http.response.start", "status": 200,
                    "headers": []})
        for part in stream(int(args.get("n", 5)), int(args.get("size", 10))):
            await send({"type": "http.response.body", "body": part,
                        "more_body": True})
            await asyncio.sleep(0.01)
        await send({"type": "http.response.body", "body": b""})
    elif path == "/crash":
        crash()
    elif path == "/env":
        await answer(send, 200, json.dumps(dict(os.environ)).encode())
    elif path == "/print":
        print("printed by the application", flush=True)
        await answer(send, 200, b"ok\n")
    else:
        await answer(send, 404, b"no such page\n")


def make():
    """For `factory = true`."""
    return app
