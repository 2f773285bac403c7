"""The same in FastAPI's own way: parameters by type, sync handlers too."""
import asyncio
import os
from typing import Optional

from fastapi import FastAPI, Header, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse

from common import Sum, crash, echo, stream

app = FastAPI()


@app.get("/", response_class=PlainTextResponse)
def root():
    return "ok\n"


@app.api_route("/echo", methods=["GET", "HEAD", "POST", "PUT", "DELETE",
                                 "PATCH", "OPTIONS"])
async def echo_it(request: Request):
    body = Sum()
    async for part in request.stream():
        body.add(part)
    return echo(request.method, request.url.path, request.url.query,
                request.headers.items(), body,
                client=request.client and request.client.host,
                scheme=request.url.scheme, host=request.headers.get("host"),
                http_version=request.scope["http_version"])


@app.get("/slow", response_class=PlainTextResponse)
async def slow(s: float = 1):
    await asyncio.sleep(s)
    return "slow\n"


@app.get("/status/{code}")
def status(code: int):
    return PlainTextResponse(f"status {code}\n", status_code=code)


@app.get("/cookies")
def cookies(response: Response, cookie: Optional[str] = Header(None)):
    response.raw_headers.append((b"set-cookie", b"a=1; Path=/"))
    response.raw_headers.append((b"set-cookie", b"b=2; HttpOnly"))
    return {"cookie": cookie or ""}


@app.get("/stream")
async def stream_it(n: int = 5, size: int = 10):
    async def parts():
        for part in stream(n, size):
            yield part
            await asyncio.sleep(0.01)
    return StreamingResponse(parts(), media_type="text/plain")


@app.get("/pid", response_class=PlainTextResponse)
def pid():
    return str(os.getpid())


@app.get("/crash")
def end():
    crash()


@app.get("/env")
def env():
    return dict(os.environ)
