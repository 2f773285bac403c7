"""The landing page of the demo, and what it shows: `scalwsctl status --json`.

An ASGI application like any other; BOARD_CTL and BOARD_SOCKET say which
program and which socket.
"""
import asyncio
import os
import time
from pathlib import Path

PAGE = Path(__file__).with_name("page.html").read_bytes()
FRESH = 0.4     # seconds that an answer is used for all who look

state = {"text": b"{}", "until": 0.0}
lock = asyncio.Lock()


async def ask():
    """One scalwsctl at a time, however many browsers look."""
    async with lock:
        if time.monotonic() < state["until"]:
            return 200, state["text"]
        process = await asyncio.create_subprocess_exec(
            os.environ["BOARD_CTL"], "-s", os.environ["BOARD_SOCKET"],
            "status", "--json",
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        out, err = await process.communicate()
        if process.returncode != 0:
            return 503, err
        state["text"] = out
        state["until"] = time.monotonic() + FRESH
        return 200, out


async def app(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("this application speaks http only")
    if scope["path"] == "/":
        status, kind, body = 200, b"text/html; charset=utf-8", PAGE
    elif scope["path"] == "/state":
        status, body = await ask()
        kind = b"application/json" if status == 200 else b"text/plain"
    else:
        status, kind, body = 404, b"text/plain", b"there is no such page\n"
    await send({"type": "http.response.start", "status": status, "headers": [
        (b"content-type", kind), (b"cache-control", b"no-store"),
        (b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})
