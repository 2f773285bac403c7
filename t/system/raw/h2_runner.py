"""Runs one row of the HTTP/2 tables and says everything that was wrong."""
import itertools
import time

import scalws
from raw import h2_wire as wire
from raw import rows
from raw.h2_client import H2Client, Late
from raw.h2_hpack import Wrong
from raw.h2_rows import ANY, PROBE_STREAM, Reset, Until, Upload
from raw.rows import CLOSED, EITHER, NOTHING_WHOLE, OPEN, Pause
from raw.runner import PATIENCE, Bench, check_forwarded, differs, matches

REACHED = {
    "head": lambda c, s, n: s in c.answers and (
        c.answers[s].status is not None or c.answers[s].is_over),
    "inform": lambda c, s, n: s in c.answers and (
        c.answers[s].informs or c.answers[s].status is not None),
    "end": lambda c, s, n: s in c.answers and c.answers[s].is_over,
    "bytes": lambda c, s, n: s in c.answers and (
        len(c.answers[s].body) >= n or c.answers[s].is_over),
    "total": lambda c, s, n: sum(
        len(a.body) for a in c.answers.values()) >= n,
    "acks": lambda c, s, n: c.acks >= n,
    "settings": lambda c, s, n: c.settings is not None,
    "pongs": lambda c, s, n: len(c.pongs) >= n,
    "goaway": lambda c, s, n: len(c.goaways) >= n,
}


class H2Bench(Bench):
    """`address` answers HTTP/1, for the barriers; `h2_address` HTTP/2, by
    TLS when a context is given. `origin` None: a reference server, whose
    requests nobody looks at."""

    def __init__(self, address, origin, h2_address, tls=None):
        super().__init__(address, origin)
        self.h2_address = h2_address
        self.tls = tls

    def client(self, **more):
        return H2Client(self.h2_address, self.tls, **more)

    def run(self, row):
        if self.origin:
            self.origin.begin()
        with self.client(heads=row.heads) as client:
            client.acks_settings = row.acks
            self.play(client, row)
            settled = self.finish(client, row)
        got = self.gather() if self.origin else None
        complaints = [judge(outcome, client, got) for outcome in row.outcomes]
        if None not in complaints:
            if not settled:
                complaints.append("waited in vain")
            raise Wrong("; or ".join(complaints) + "\n" + client.story() +
                        f"\ngoaway {client.goaways}, "
                        f"closed {client.closed}\norigin: {got}")

    def play(self, client, row):
        held = row.opening          # goes out with the first bytes
        for step in row.send:
            if callable(step):
                step = step(client)
            if isinstance(step, (bytes, bytearray)):
                held += step
                continue
            client.send(held)
            held = b""
            if isinstance(step, Until):
                client.pump(lambda: REACHED[step.what](
                    client, step.stream, step.n), str(step))
            elif isinstance(step, Upload):
                self.upload(client, step)
            elif isinstance(step, Pause):
                time.sleep(step.seconds)
            elif step == rows.HALF_CLOSE:
                client.sock.shutdown(1)
            else:
                raise AssertionError(step)
        client.send(held + row.probe)

    def upload(self, client, step):
        """As fast as the windows of stream and connection allow."""
        client.pump(lambda: client.settings is not None, "SETTINGS")
        watched = (0,) if step.blind else (0, step.stream)
        frames = -(-step.n // step.size) if step.size else step.n
        sent = 0
        if step.blind:
            frames = min(frames, client.room(step.stream) // step.size)
        for n in range(frames):
            body = b"u" * min(step.size, step.n - sent)
            sent += len(body)
            cost = len(body) + (0 if step.pad is None else step.pad + 1)
            client.pump(lambda: client.is_reset(step.stream) or
                        min(map(client.room, watched)) >= cost,
                        f"room for {cost} bytes on {watched}")
            if client.closed or client.is_reset(step.stream):
                return
            for one in watched:
                client.credit[one] -= cost
            client.send(wire.data(step.stream, body, pad=step.pad))
            client.read(0)
        if step.end:
            client.send(wire.data(step.stream, end=True))

    def finish(self, client, row):
        """Read until the server has said all that it is going to say. False:
        what is right did not come in time."""
        ends_open = [o for o in row.outcomes if o.end != CLOSED]

        def is_probed():
            return row.probe and b"the end." in client.pongs and (
                PROBE_STREAM not in client.opened or
                REACHED["end"](client, PROBE_STREAM, 1))

        def is_over():
            if client.goaways and row.probe:
                return False        # the end of the connection must follow
            if is_probed() and (not ends_open or all(
                    a.is_over for a in client.answers.values()) and
                    client.opened == client.answers.keys()):
                return True         # nothing more can come
            return (is_probed() or not row.probe) and any(
                judge_streams(o, client) is None for o in ends_open)
        try:
            client.pump(is_over, "an outcome")
        except Late:
            return False
        return True

    def gather(self):
        self.barrier()
        scalws.wait_for(lambda: not self.origin.cut_conns(), PATIENCE,
                        "the origin is left with half a request")
        if self.origin.broken:
            raise Wrong(f"ill-formed at the origin: {self.origin.broken}")
        got = [m for m in self.received() if m.target != b"/after"]
        for message in got:
            check_forwarded(message, b"https" if self.tls else b"http")
        return got


def judge(outcome, client, got):
    """None: this outcome is what happened; else what differs."""
    problem = judge_end(outcome, client) or judge_streams(outcome, client)
    if problem or got is None or outcome.origin == ANY:
        return problem
    if outcome.origin == NOTHING_WHOLE:
        return "a whole request reached the origin" \
            if any(m.whole for m in got) else None
    if len(got) != len(outcome.origin):
        return f"{len(got)} requests at the origin, not {len(outcome.origin)}"
    # Streams have no order among each other.
    problems = [[p for p in map(differs, outcome.origin, order) if p]
                for order in itertools.permutations(got)]
    return None if [] in problems else "; ".join(problems[0])


def judge_end(outcome, client):
    if outcome.end == EITHER:
        return None
    if outcome.end == OPEN:
        if client.closed or client.goaways:
            return "the connection was ended " + codes_of(client)
        if PROBE_STREAM in client.opened:
            answer = client.answers[PROBE_STREAM]
            if answer.status != 200 or not answer.ended:
                return f"the request after it got {answer}"
        return None
    if not client.closed:
        return "the connection was not ended"
    if not client.goaways:
        return None if outcome.no_goaway else "ended without GOAWAY"
    if client.goaways[-1][1] not in outcome.codes:
        return "ended " + codes_of(client) + ", not with " + " or ".join(
            map(wire.error_name, outcome.codes))
    return None


def codes_of(client):
    return "with " + ", ".join(wire.error_name(code)
                               for _, code, _ in client.goaways)


def judge_streams(outcome, client):
    if outcome.streams is None:
        return outcome.check(client)
    for stream, want in outcome.streams.items():
        answer = client.answers.get(stream)
        if answer is None:
            return f"nothing came on {stream}"
        if isinstance(want, Reset):
            if answer.reset not in want.codes:
                return f"{stream} got {answer}, not RST_STREAM " + \
                    " or ".join(map(wire.error_name, want.codes))
            if not matches(want.status, answer.status):
                return f"{stream} was answered {answer.status} and reset"
        elif not answer.ended or not matches(want, answer.status):
            return f"{stream} got {answer}, not {want}"
        elif answer.reset not in (None, wire.NO_ERROR):
            return f"{stream} was answered and reset: {answer}"
    for stream, answer in client.answers.items():
        if stream in outcome.streams or stream == PROBE_STREAM:
            continue
        if outcome.end == OPEN and answer.is_over:
            return f"{stream} got {answer}"
        if answer.status == 400:
            return f"{stream} got a page for people: {answer}"
    return outcome.check(client) if outcome.check else None

