"""The Python application of the bench: one small JSON answer, plain ASGI."""
BODY = b'{"message":"Hello, World!"}'
HEAD = {"type": "http.response.start", "status": 200,
        "headers": [(b"content-type", b"application/json"),
                    (b"content-length", b"27")]}
REST = {"type": "http.response.body", "body": BODY}


async def app(scope, receive, send):
    if scope["type"] == "http":
        await send(HEAD)
        await send(REST)
