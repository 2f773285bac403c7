"""ASGI WebSockets, and HTTP as plain.py: what apps/node/ws.js does."""
import os

import plain


async def talk(receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    while True:
        event = await receive()
        if event["type"] != "websocket.receive":
            return
        text = event.get("text")
        words = text.split() if text else [""]
        if words[0] == "close":
            await send({"type": "websocket.close", "code": int(words[1]),
                        "reason": words[2]})
            return
        if words[0] == "pid":
            await send({"type": "websocket.send", "text": str(os.getpid())})
        elif text is not None:
            await send({"type": "websocket.send", "text": text})
        else:
            await send({"type": "websocket.send", "bytes": event["bytes"]})


async def app(scope, receive, send):
    if scope["type"] != "websocket":
        await plain.app(scope, receive, send)
    elif scope["path"] == "/refuse":
        await receive()
        await send({"type": "websocket.close"})
    else:
        await talk(receive, send)
