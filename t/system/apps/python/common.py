"""What every Python test application answers; see ../README.md."""
import hashlib
import os
import signal


class Sum:
    """Length and checksum of a body, taken bit by bit."""

    def __init__(self):
        self.length = 0
        self.sum = hashlib.sha256()

    def add(self, part):
        self.length += len(part)
        self.sum.update(part)


def echo(method, path, query, headers, body, **extra):
    fields = {}
    for name, value in headers:
        fields.setdefault(name.lower(), []).append(value)
    return dict(
        method=method, path=path, query=query, headers=fields,
        body_length=body.length, body_sha256=body.sum.hexdigest(),
        pid=os.getpid(), **extra)


def crash():
    os.kill(os.getpid(), signal.SIGKILL)


def stream(n, size):
    for i in range(n):
        yield (str(i % 10) * size).encode()
