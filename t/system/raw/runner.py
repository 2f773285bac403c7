"""Runs one row against a proxy and says everything that was wrong with it."""
import re
import socket
import threading
import time

import pytest

import scalws
from raw import rows
from raw.rows import (CLOSED, EITHER, HALF_CLOSE, NOTHING_WHOLE, OPEN, Await,
                      Pause)

# Only a row that fails waits so long.
PATIENCE = 8.0
PLAIN = re.compile(rb"[A-Za-z0-9-]+")
# RFC 9110 section 7.6.1, and Proxy, which a CGI would take for HTTP_PROXY.
HOPS = {b"keep-alive", b"te", b"trailer", b"upgrade", b"proxy",
        b"proxy-connection", b"proxy-authorization", b"proxy-authenticate",
        b"http2-settings"}


class Wrong(AssertionError):
    pass


class RawClient(scalws.Client):
    """Reads answers strictly, and takes an early end for what it is."""

    def __init__(self, address):
        super().__init__(address, PATIENCE)
        self.sock.settimeout(PATIENCE * scalws.SLOW)
        self.dead = False

    def push(self, data):
        """Send; that the proxy has closed meanwhile is no error here."""
        try:
            self.sock.sendall(data)
        except OSError:
            self.dead = True

    def half_close(self):
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self.dead = True

    def answer(self, head):
        """The next answer, 1xx too, or None at the end of the connection."""
        try:
            return self.response(head=head, informational=True)
        except scalws.Closed:
            if self.buffer:
                raise Wrong(f"half an answer: {self.buffer[:200]!r}")
            return None
        except ConnectionResetError:
            return None
        except socket.timeout:
            raise Wrong("no answer, and not closed")

    def is_closed(self, patience=PATIENCE):
        self.sock.settimeout(patience * scalws.SLOW)
        if self.buffer:
            raise Wrong(f"unasked bytes: {self.buffer[:200]!r}")
        try:
            data = self.sock.recv(4096)
        except ConnectionResetError:
            return True
        except socket.timeout:
            return False
        if data:
            raise Wrong(f"unasked bytes: {data[:200]!r}")
        return True


def by_transport(rows):
    """Each row in cleartext, where all is looked at; TLS must give the same
    bytes, of which a part is enough in the short form."""
    for n, row in enumerate(rows):
        yield pytest.param("cleartext", row, id=row.name)
        # Python's TLS cannot close one direction; the scheme differs, and is
        # looked at in every row.
        if HALF_CLOSE in getattr(row, "send", ()) or \
                row.name.startswith("forwarded-proto"):
            continue
        if scalws.LONG or n % 12 == 0:
            yield pytest.param("tls", row, id="tls-" + row.name)


def listeners(port):
    """What a site of two transports says, for benches_of()."""
    tls = scalws.free_port()
    return {"listen": [f"127.0.0.1:{port}", f"127.0.0.1:{tls} tls"],
            "tls": scalws.certificate()}


def benches_of(daemon, origin):
    plain, tls = daemon.addresses()
    return {"cleartext": Bench(plain, origin),
            "tls": Bench(scalws.Secure(tls), origin)}


class Bench:
    """A proxy and the origin behind it."""
    barrier_target = "/barrier/%d"
    row_target = "/row/%s"
    after_target = "/after"

    def __init__(self, address, origin):
        self.address = address
        self.origin = origin
        self.secure = isinstance(address, scalws.Secure)
        self.barriers = 0

    def barrier(self):
        """When this has been answered, the proxy (it has one worker) has
        written everything that it was going to write; and the pool holds no
        connection that answers with what belongs to another request."""
        self.barriers += 1
        target = self.barrier_target % self.barriers
        answer = scalws.get(self.address, target, host="t.example",
                            timeout=PATIENCE * scalws.SLOW)
        if answer.status != 200 or answer.body != target.encode():
            raise Wrong(f"the next request got another answer: {answer}")
        self.origin.await_quiet(PATIENCE)

    def received(self):
        with self.origin.lock:
            return [m for m in self.origin.messages
                    if not m.target.startswith(b"/barrier")]

    # --- answer rows

    def run_answer(self, row):
        self.origin.begin()
        client = RawClient(self.address)
        with client:
            sender = self.ask(client, row)
            informs, answer, is_torn = self.read_answer(client, row)
            scalws.wait_for(lambda: not self.origin.playing, PATIENCE,
                            "the origin's script ends")
            complaints = [judge_answer(seen, informs, answer, is_torn)
                          for seen in row.seen]
            if None not in complaints:
                raise Wrong("; or ".join(complaints) + f"\nanswer: {answer}")
            if any(isinstance(step, Pause) for step in row.script):
                time.sleep(0.01)    # it may have come behind the answer
            if row.client_end == CLOSED and not client.is_closed():
                raise Wrong(f"the client's connection stays open: {answer}")
            if row.client_end == OPEN and self.ask_again(client) != OPEN:
                raise Wrong(f"the client's connection was closed: {answer}")
        sender.join()
        self.barrier()
        self.check_origin(row)

    def ask(self, client, row):
        """Send the request, beside reading: an answer may come early."""
        target = (self.row_target % row.name).encode()
        head = row.method + b" " + target + \
            b" HTTP/1.%d\r\n" % row.minor + rows.HOST + row.fields
        if row.body:
            head += b"Content-Length: %d\r\n" % len(row.body)
        sender = threading.Thread(
            target=client.push, args=(head + b"\r\n" + row.body,))
        sender.start()
        if self.secure:
            sender.join()           # Python's TLS does one thing at a time
        return sender

    def read_answer(self, client, row):
        """(statuses of 1xx, the final answer or None, is it torn)"""
        informs = []
        try:
            while True:
                answer = client.response_head()
                check_answer(answer, row.minor == 0)
                if answer.status >= 200:
                    break
                informs.append(answer.status)
            self.origin.client_saw_head.set()
        except (scalws.Closed, ConnectionResetError):
            raise Wrong(f"closed without an answer, behind "
                        f"{client.buffer[:200]!r}")
        except socket.timeout:
            raise Wrong("no answer, and not closed")
        if row.method == b"HEAD" or answer.status in (204, 304):
            return informs, answer, False
        try:
            client.read_body(answer)
        except (scalws.Closed, ConnectionResetError):
            client.buffer = b""
            return informs, answer, True
        except socket.timeout:
            raise Wrong(f"the answer stops: {answer}")
        return informs, answer, False

    def check_origin(self, row):
        target = (self.row_target % row.name).encode()
        got = [m for m in self.received() if m.target == target]
        if len(got) not in row.tries:
            raise Wrong(f"the origin was asked {len(got)} times")
        if self.origin.broken:
            raise Wrong(f"ill-formed at the origin: {self.origin.broken}")
        for message in got:
            if row.origin_end == CLOSED:
                scalws.wait_for(lambda: message.conn.closed_at, PATIENCE,
                                "the origin's connection is closed")
            elif row.origin_end == OPEN and message.conn.closed_at:
                raise Wrong("the origin's connection was not kept")

    # --- request rows

    def run(self, row):
        self.origin.begin()
        client = RawClient(self.address)
        with client:
            answers, closed = self.talk(client, row)
        self.barrier()
        scalws.wait_for(lambda: not self.origin.cut_conns(), PATIENCE,
                        "the origin is left with half a request")
        if self.origin.broken:
            raise Wrong(f"ill-formed at the origin: {self.origin.broken}")
        got = [m for m in self.received() if m.target != b"/after"]
        for message in got:
            check_forwarded(message, b"https" if self.secure else b"http")
        complaints = [judge(outcome, answers, closed, got)
                      for outcome in row.outcomes]
        if None not in complaints:
            raise Wrong("; or ".join(complaints) + f"\nanswers: {answers}"
                        f"\norigin: {got}")

    def talk(self, client, row):
        """Answers, and how the connection is afterwards."""
        answers = []

        def read_one():
            finals = sum(1 for a in answers if a.status >= 200)
            answer = client.answer(finals in row.heads)
            if answer is not None:
                answers.append(answer)
                check_answer(answer, row.http10)
            return answer

        for step in row.send:
            if isinstance(step, bytes):
                client.push(step)
            elif isinstance(step, Pause):
                time.sleep(step.seconds)
            elif isinstance(step, Await):
                while len(answers) < step.answers:
                    if read_one() is None:
                        return answers, CLOSED
            elif step == rows.HALF_CLOSE:
                client.half_close()
            else:
                raise AssertionError(step)
        most = max(len(o.answers) for o in row.outcomes)
        while len(answers) < most:
            if any(self.is_enough(o, answers) for o in row.outcomes) and \
                    not any(self.may_go_on(o, answers) for o in row.outcomes):
                break
            if read_one() is None:
                return answers, CLOSED
        wanted = {o.end for o in row.outcomes
                  if self.is_enough(o, answers)}
        if OPEN in wanted and not self.wants_close(answers):
            return answers, self.ask_again(client)
        if wanted == {EITHER}:
            return answers, EITHER
        # Nothing fits already: no need to wait long for the end.
        patience = PATIENCE if wanted else 0.05
        return answers, CLOSED if client.is_closed(patience) else OPEN

    @staticmethod
    def is_enough(outcome, answers):
        return len(answers) == len(outcome.answers) and all(
            matches(want, a.status)
            for want, a in zip(outcome.answers, answers))

    @staticmethod
    def may_go_on(outcome, answers):
        return len(answers) < len(outcome.answers) and all(
            matches(want, a.status)
            for want, a in zip(outcome.answers, answers))

    @staticmethod
    def wants_close(answers):
        return bool(answers) and "close" in [
            t.strip().lower() for v in answers[-1].all("Connection")
            for t in v.split(",")]

    def ask_again(self, client):
        """The connection is in step: the next request gets its answer."""
        target = self.after_target.encode()
        client.push(b"GET " + target + b" HTTP/1.1\r\n" + rows.HOST + b"\r\n")
        answer = client.answer(False)
        if answer is None:
            return CLOSED
        if answer.status != 200 or answer.body != target:
            raise Wrong(f"out of step: {answer}")
        if not any(m.target == target for m in self.received()):
            raise Wrong("an answer that the origin never gave")
        return OPEN


class FastBench(Bench):
    """The same with a FastCGI application as the origin."""
    barrier_target = "/barrier.php?%d"
    row_target = "/row.php?%s"
    after_target = "/after.php"

    def run_params(self, row):
        self.origin.begin()
        with RawClient(self.address) as client:
            client.push(row.send)
            answer = client.answer(row.send.startswith(b"HEAD"))
        self.barrier()
        if self.origin.broken:
            raise Wrong(f"ill-formed at the application: "
                        f"{self.origin.broken}")
        got = self.received()
        if answer is None:
            raise Wrong("no answer")
        if answer.status in row.refused | row.or_refused:
            if any(m.whole for m in got):
                raise Wrong(f"{answer.status}, but it was asked: {got}")
            return
        if row.refused or answer.status != 200 or len(got) != 1:
            raise Wrong(f"{answer}\n{got}")
        check_params(got[0])
        if got[0].body != row.body:
            raise Wrong(f"body {got[0].body[:80]!r}")
        for name, value in row.want.items():
            if got[0].get(name) != value:
                raise Wrong(f"{name} is {got[0].get(name)!r}, "
                            f"not {value!r}\n{got}")


def judge_answer(seen, informs, answer, is_torn):
    """None: seen so; else what differs."""
    if tuple(informs) != tuple(seen.informs):
        return f"1xx {informs}, not {list(seen.informs)}"
    if seen.kind == "bad":
        return None if answer.status == 502 and not is_torn \
            else f"{answer.status}, not 502"
    if seen.kind == "torn":
        return None if is_torn or answer.status == 502 \
            else f"{answer.status}, and looks whole"
    if is_torn:
        return f"{answer.status}, torn"
    if answer.status != seen.status:
        return f"{answer.status}, not {seen.status}"
    if seen.body is not None and answer.body != seen.body:
        return f"body {answer.body[:80]!r} ({len(answer.body)} bytes)"
    for name, value in seen.has:
        if value not in answer.all(name):
            return f"{name} is {answer.all(name)}, not {value[:80]!r}"
    for name in seen.lacks:
        if answer.all(name):
            return f"{name} came: {answer.all(name)}"
    return None


def matches(want, status):
    return status in want if isinstance(want, (set, frozenset)) \
        else status == want


def judge(outcome, answers, closed, got):
    """None: this outcome is what happened; else what differs."""
    statuses = [a.status for a in answers]
    want = list(outcome.answers)
    while len(want) > len(statuses) and isinstance(want[-1], set) and \
            None in want[-1]:
        want.pop()
    if len(want) != len(statuses) or not all(map(matches, want, statuses)):
        return f"statuses {statuses}, not {list(outcome.answers)}"
    if outcome.end != EITHER and closed != EITHER and outcome.end != closed:
        return f"connection {closed}, not {outcome.end}"
    if outcome.origin == NOTHING_WHOLE:
        return "a whole request reached the origin" \
            if any(m.whole for m in got) else None
    if len(got) != len(outcome.origin):
        return f"{len(got)} requests at the origin, not {len(outcome.origin)}"
    for wanted, message in zip(outcome.origin, got):
        problem = differs(wanted, message)
        if problem:
            return problem
    return None


def differs(wanted, message):
    if message.line != wanted.line:
        return f"line {message.line!r}, not {wanted.line!r}"
    if message.whole != wanted.whole:
        return "cut" if wanted.whole else "whole"
    if message.body != wanted.body:
        return f"body {message.body[:100]!r} ({len(message.body)} bytes)"
    for name, value in wanted.has:
        if value not in message.all(name):
            return f"{name!r} is {message.all(name)}, not {value[:80]!r}"
    for name in wanted.lacks:
        if message.all(name):
            return f"{name!r} came: {message.all(name)}"
    return None


def check_forwarded(message, proto=b"http"):
    """What holds for every request that any origin gets from us."""
    def one(name):
        values = message.all(name)
        if len(values) != 1:
            raise Wrong(f"{name!r} {len(values)} times: {message}")
        return values[0]

    if not message.line:
        return                      # cut before its first line was whole
    if message.whole:
        if one(b"x-forwarded-for") != b"127.0.0.1":
            raise Wrong(f"X-Forwarded-For: {message}")
        if one(b"x-forwarded-proto") != proto:
            raise Wrong(f"X-Forwarded-Proto: {message}")
        one(b"x-forwarded-host")
        one(b"x-request-id")
    for name, value in message.fields:
        if not PLAIN.fullmatch(name):
            raise Wrong(f"a name that collides elsewhere: {name!r}")
        if name.lower() in HOPS:
            raise Wrong(f"a field of the last hop: {name!r}")
        if name.lower() == b"connection" and \
                value.lower() not in (b"keep-alive", b"close"):
            raise Wrong(f"Connection: {value!r}")
    if message.trailers:
        raise Wrong(f"trailers: {message.trailers}")


NEEDED = (b"GATEWAY_INTERFACE", b"SERVER_SOFTWARE", b"SERVER_PROTOCOL",
          b"REQUEST_METHOD", b"REQUEST_URI", b"SCRIPT_NAME",
          b"SCRIPT_FILENAME", b"DOCUMENT_ROOT", b"QUERY_STRING",
          b"REMOTE_ADDR", b"REMOTE_PORT", b"SERVER_ADDR", b"SERVER_PORT",
          b"SERVER_NAME", b"HTTP_HOST")
NEVER = {b"HTTP_PROXY", b"PHP_VALUE", b"PHP_ADMIN_VALUE",
         b"HTTP_CONTENT_LENGTH", b"HTTP_CONTENT_TYPE", b"HTTP_CONNECTION",
         b"HTTP_TRANSFER_ENCODING", b"HTTP_TE", b"HTTP_UPGRADE"}


def check_params(message):
    """What holds for every request that any application gets from us."""
    names = [name for name, _ in message.params]
    for name in NEEDED:
        if names.count(name) != 1:
            raise Wrong(f"{name!r} {names.count(name)} times: {message}")
    if len(set(names)) != len(names):
        raise Wrong(f"a name twice: {sorted(names)}")
    if NEVER & set(names):
        raise Wrong(f"names: {NEVER & set(names)}")
    if not all(re.fullmatch(rb"[A-Z0-9_]+", name) for name in names):
        raise Wrong(f"a name that is none: {names}")
    if message.get(b"GATEWAY_INTERFACE") != b"CGI/1.1":
        raise Wrong("GATEWAY_INTERFACE")
    length = message.get(b"CONTENT_LENGTH")
    if message.body and length != b"%d" % len(message.body):
        raise Wrong(f"CONTENT_LENGTH {length!r} of {len(message.body)}")
    if not message.body and length not in (None, b"", b"0"):
        raise Wrong(f"CONTENT_LENGTH {length!r} without a body")


def check_answer(answer, http10=False):
    """What holds for every answer that any client gets from us."""
    names = [n.lower() for n, _ in answer.fields]
    for name in names:
        if answer.status == 426 and name == "upgrade":
            continue        # RFC 9110 section 15.5.22 asks for it
        if name.encode() in HOPS - {b"keep-alive"} or \
                name in ("proxy-authenticate",):
            raise Wrong(f"a field of the last hop: {name} in {answer}")
    if answer.status >= 200 and names.count("date") != 1:
        raise Wrong(f"Date {names.count('date')} times: {answer}")
    if answer.status < 200 and ("content-length" in names or
                                "transfer-encoding" in names):
        raise Wrong(f"a length in a 1xx: {answer}")
    if answer.version != "1.1":
        raise Wrong(f"version {answer.version}")
    if http10 and "transfer-encoding" in names:
        raise Wrong(f"chunked for HTTP/1.0: {answer}")
