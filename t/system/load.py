"""A steady load in a process of its own: so many requests a second whether or
not the server keeps up, on kept and on new connections, answers at once and
late ones, GET and POST, every byte of an answer checked.

    with SteadyLoad(port, rate=100, prefix="/app.php") as load:
        ...
    load.check()            # not one request failed
"""
import asyncio
import hashlib
import json
import random
import subprocess
import sys
import threading
import time

# (share of the requests, seconds that the app takes)
MIX = ((0.02, 2.0), (0.10, 0.2))


class Failure(Exception):
    pass


class Connection:
    """Keep-alive HTTP/1.1, just enough; `reader` None: to be opened."""

    def __init__(self, address):
        self.address, self.reader, self.writer = address, None, None

    async def open(self):
        host, port = self.address
        self.reader, self.writer = await asyncio.open_connection(host, port)

    def close(self):
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None

    def is_stale(self):
        """Closed by the server while it was idle: nothing is lost by it."""
        return self.reader is None or self.reader.at_eof() or \
            self.reader.exception() is not None

    async def exchange(self, head, body):
        self.writer.write(head + body)
        start = await self.reader.readuntil(b"\r\n\r\n")
        lines = start.decode("latin-1").split("\r\n")
        status = int(lines[0].split()[1])
        fields = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            fields[name.lower()] = value.strip()
        if fields.get("transfer-encoding") == "chunked":
            body = await self.chunks()
        else:
            body = await self.reader.readexactly(
                int(fields["content-length"]))
        return status, body, "close" in fields.get("connection", "").lower()

    async def chunks(self):
        body = b""
        while True:
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            body += await self.reader.readexactly(size)
            if await self.reader.readexactly(2) != b"\r\n":
                raise Failure("no end of a chunk")
            if size == 0:
                return body


class Generator:
    """What runs in the other process."""

    def __init__(self, address, rate, prefix, mix, idle):
        self.address, self.rate = address, rate
        self.prefix, self.mix = prefix, mix
        self.idle = []                  # kept connections
        self.keep = idle                # at most so many
        self.random = random.Random(1)
        self.done, self.slowest, self.failed = 0, 0.0, []
        self.ending = False
        self.under_way = set()

    def next_request(self, number):
        dice, slow = self.random.random(), 0.0
        for share, seconds in self.mix:
            if dice < share:
                slow = seconds
                break
            dice -= share
        body = b""
        if slow:
            line = f"GET {self.prefix}/slow?s={slow} HTTP/1.1"
        elif number % 3 == 0:
            body = self.random.randbytes(self.random.choice((0, 10, 4000)))
            line = f"POST {self.prefix}/echo?n={number} HTTP/1.1\r\n" \
                f"Content-Length: {len(body)}"
        else:
            line = f"GET {self.prefix}/echo?n={number} HTTP/1.1"
        return line, body, slow

    @staticmethod
    def judge(number, slow, sent, status, body):
        if status != 200:
            raise Failure(f"status {status}: {body[:200]!r}")
        if slow:
            if body != b"slow\n":
                raise Failure(f"wrong answer {body[:200]!r}")
            return
        told = json.loads(body)
        if f"n={number}" not in body.decode() or \
                told["body_sha256"] != hashlib.sha256(sent).hexdigest():
            raise Failure(f"somebody else's answer: {body[:300]!r}")

    async def one(self, number):
        line, body, slow = self.next_request(number)
        fresh = number % 4 == 0
        began = time.time()
        conn = None
        try:
            while self.idle and not fresh and conn is None:
                conn = self.idle.pop()
                if conn.is_stale():
                    conn.close()
                    conn = None
            if conn is None:
                conn = Connection(self.address)
                await conn.open()
            head = f"{line}\r\nHost: localhost\r\n" + \
                ("Connection: close\r\n" if fresh else "") + "\r\n"
            status, got, closes = await asyncio.wait_for(
                conn.exchange(head.encode(), body), 60)
            self.judge(number, slow, body, status, got)
            if closes or fresh or len(self.idle) >= self.keep:
                conn.close()
            else:
                self.idle.append(conn)
        except (OSError, Failure, asyncio.IncompleteReadError, ValueError,
                KeyError, asyncio.TimeoutError) as error:
            self.failed.append({
                "number": number, "line": line.split("\r\n")[0],
                "fresh": fresh, "began": began, "ended": time.time(),
                "error": f"{type(error).__name__}: {error}",
                "refused": isinstance(error, ConnectionRefusedError)})
            if conn is not None:
                conn.close()
        self.done += 1
        self.slowest = max(self.slowest, time.time() - began - slow)

    async def run(self):
        number, due = 0, time.time()
        while not self.ending:
            number += 1
            task = asyncio.ensure_future(self.one(number))
            self.under_way.add(task)
            task.add_done_callback(self.under_way.discard)
            due = max(due + 1 / self.rate, time.time() - 1)
            await asyncio.sleep(max(0, due - time.time()))
        if self.under_way:
            await asyncio.wait(self.under_way)
        for conn in self.idle:
            conn.close()

    async def report(self):
        while not self.ending:
            print(json.dumps({"done": self.done}), flush=True)
            await asyncio.sleep(0.05)

    async def main(self):
        loop = asyncio.get_running_loop()

        def wait_for_end():
            sys.stdin.read()
            loop.call_soon_threadsafe(setattr, self, "ending", True)
        threading.Thread(target=wait_for_end, daemon=True).start()
        await asyncio.gather(self.run(), self.report())
        print(json.dumps({"done": self.done, "slowest": self.slowest,
                          "failed": self.failed}), flush=True)


class SteadyLoad:
    """The test's side. `done` counts while it runs; `failed` and `slowest`
    (the longest time beyond what the app itself took) are known at the end."""

    def __init__(self, port, rate=100, prefix="", mix=MIX, idle=16):
        self.done, self.slowest, self.failed = 0, 0.0, None
        self.arguments = json.dumps([["127.0.0.1", port], rate, prefix,
                                     list(mix), idle])

    def __enter__(self):
        import scalws
        self.helper = scalws.Helper(
            [sys.executable, __file__, self.arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process = self.helper.__enter__()
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()
        return self

    def listen(self):
        for line in self.process.stdout:
            told = json.loads(line)
            self.done = told["done"]
            if "failed" in told:
                self.slowest, self.failed = told["slowest"], told["failed"]

    def __exit__(self, *ignored):
        self.process.stdin.close()
        self.thread.join(90)
        self.helper.__exit__()
        self.process.stdout.close()

    def wait_done(self, n, timeout=60):
        """n more requests have ended."""
        import scalws
        goal = self.done + n
        scalws.wait_for(lambda: self.done >= goal, timeout,
                        f"{n} more requests")

    def check(self):
        assert self.failed is not None, "the load generator died"
        assert not self.failed, \
            f"{len(self.failed)} of {self.done} failed: {self.failed[:5]}"


if __name__ == "__main__":
    asyncio.run(Generator(*json.loads(sys.argv[1])).main())
