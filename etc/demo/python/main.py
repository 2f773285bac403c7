"""The Python application of the demo: ASGI, without a framework."""
import json
import os
import platform
import time

STARTED = time.time()
answered = 0


async def app(scope, receive, send):
    global answered
    if scope["type"] != "http":
        raise RuntimeError("this application speaks http only")
    answered += 1
    client = scope["client"]
    body = json.dumps({
        "message": f"Hello from Python {platform.python_version()} on uvicorn",
        "pid": os.getpid(),
        "answers": answered,
        "up_seconds": round(time.time() - STARTED),
        "you_are": client[0] if client else None,
    }).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})
