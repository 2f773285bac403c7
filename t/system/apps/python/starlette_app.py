import asyncio
import json
import os

from starlette.applications import Starlette
from starlette.responses import (
    JSONResponse, PlainTextResponse, StreamingResponse)
from starlette.routing import Route

from common import Sum, crash, echo, stream

ANY = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]


async def echo_it(request):
    body = Sum()
    async for part in request.stream():
        body.add(part)
    return JSONResponse(echo(
        request.method, request.url.path, request.url.query,
        request.headers.items(), body,
        client=request.client and request.client.host,
        scheme=request.url.scheme, host=request.headers.get("host"),
        http_version=request.scope["http_version"]))


async def slow(request):
    await asyncio.sleep(float(request.query_params.get("s", 1)))
    return PlainTextResponse("slow\n")


async def status(request):
    code = request.path_params["code"]
    return PlainTextResponse(f"status {code}\n", status_code=code)


async def cookies(request):
    answer = JSONResponse({"cookie": request.headers.get("cookie", "")})
    answer.raw_headers.append((b"set-cookie", b"a=1; Path=/"))
    answer.raw_headers.append((b"set-cookie", b"b=2; HttpOnly"))
    return answer


async def stream_it(request):
    async def parts():
        for part in stream(int(request.query_params.get("n", 5)),
                           int(request.query_params.get("size", 10))):
            yield part
            await asyncio.sleep(0.01)
    return StreamingResponse(parts(), media_type="text/plain")


async def root(request):
    return PlainTextResponse("ok\n")


async def pid(request):
    return PlainTextResponse(str(os.getpid()))


async def end(request):
    crash()


async def env(request):
    return JSONResponse(dict(os.environ))


app = Starlette(routes=[
    Route("/", root),
    Route("/echo", echo_it, methods=ANY),
    Route("/slow", slow),
    Route("/status/{code:int}", status),
    Route("/cookies", cookies),
    Route("/stream", stream_it),
    Route("/pid", pid),
    Route("/crash", end),
    Route("/env", env),
])
