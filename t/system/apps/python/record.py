"""Says what it was asked, and writes it down: a line for each request that the
server below it believes to have read. ASGI and WSGI."""
import json
import os
import time


def keep(method, row, body):
    line = f"{method} {row} {len(body)}\n"
    fd = os.open(os.environ["RECORD"], os.O_WRONLY | os.O_APPEND)
    os.write(fd, line.encode())
    os.close(fd)
    return json.dumps({"method": method, "row": row,
                       "body": body.hex()}).encode()


async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        event = await receive()
        if event["type"] != "http.request":
            return
        body += event.get("body", b"")
        more = event.get("more_body", False)
    fields = dict(scope["headers"])
    if scope["path"] == "/wait":
        keep("BEGUN", fields[b"x-row"].decode(), b"")
        assert (await receive())["type"] == "http.disconnect"
        keep("GONE", fields[b"x-row"].decode(), b"")
        return
    said = keep(scope["method"], fields.get(b"x-row", b"none").decode(), body)
    await send({"type": "http.response.start", "status": 200, "headers": [
        (b"content-length", str(len(said)).encode())]})
    await send({"type": "http.response.body", "body": said})


def wsgi(environ, start_response):
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    if environ["PATH_INFO"] == "/wait":
        keep("BEGUN", environ["HTTP_X_ROW"], b"")
        time.sleep(1.5)
    said = keep(environ["REQUEST_METHOD"],
                environ.get("HTTP_X_ROW", "none"), body)
    start_response("200 OK", [("Content-Length", str(len(said)))])
    return [b"" if environ["REQUEST_METHOD"] == "HEAD" else said]
