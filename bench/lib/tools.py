"""The programs that make load, and what they print."""
import json
import re
import subprocess
from pathlib import Path

from .machine import find
from .process import Failure

SOURCES = Path(__file__).resolve().parents[1]
UNITS_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60000.0}


def build(directory):
    """Compile load.c, origin.c and under.c."""
    for name, flags in (("load", ["-lssl", "-lcrypto"]), ("origin", []),
                        ("under", ["-shared", "-fPIC"])):
        subprocess.run(["cc", "-std=c11", "-O2", "-o", str(directory / name),
                        str(SOURCES / f"{name}.c"), *flags], check=True)
        (directory / name).chmod(0o755)


def certificate(directory):
    """cert.pem and key.pem of www.example.com; both.pem holds the two."""
    cert, key = directory / "cert.pem", directory / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj",
         "/CN=www.example.com", "-addext",
         "subjectAltName=DNS:www.example.com", "-keyout", str(key), "-out",
         str(cert)], check=True, stderr=subprocess.DEVNULL)
    (directory / "both.pem").write_text(cert.read_text() + key.read_text())
    for file in directory.glob("*.pem"):
        file.chmod(0o644)


def pinned(cores, *command):
    return ["taskset", "-c", ",".join(map(str, cores)), *command]


def milliseconds(text):
    number, unit = re.fullmatch(r"([\d.]+)([a-z]+)", text).groups()
    return float(number) * UNITS_MS[unit]


def wrk(running, scenario, seconds):
    """Requests, requests/s, p50 and p99 in ms, and how many went wrong."""
    command = [find("wrk"), "-t1", f"-c{scenario.connections}",
               f"-d{seconds}", "--latency", "--timeout", "10"]
    for name, value in scenario.headers().items():
        command += ["-H", f"{name}: {value}"]
    command.append(running.url(scenario.path))
    done = subprocess.run(pinned(running.cores.load, *command), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    out = done.stdout
    total = re.search(r"(\d+) requests in", out)
    if done.returncode != 0 or not total or total.group(1) == "0":
        raise Failure(f"wrk: {out.strip()}")

    def number(pattern):
        found = re.search(pattern, out)
        return int(found.group(1)) if found else 0

    def percentile(which):
        return milliseconds(re.search(rf"^\s+{which}%\s+(\S+)", out,
                                      re.M).group(1))

    errors = re.search(r"connect (\d+), read (\d+), write (\d+), "
                       r"timeout (\d+)", out)
    return {
        "requests": int(total.group(1)),
        "per_second": float(re.search(r"Requests/sec:\s+([\d.]+)",
                                      out).group(1)),
        "p50_ms": percentile(50),
        "p99_ms": percentile(99),
        "not_2xx": number(r"Non-2xx or 3xx responses: (\d+)"),
        # wrk counts the server's close of a finished one-shot connection as
        # no error.
        "errors": sum(map(int, errors.groups())) if errors else 0,
    }


def h2load(running, scenario, amount):
    """What it prints. `amount`: of requests or of time, as its option."""
    command = [find("h2load"), amount, f"-c{scenario.connections}",
               f"-m{scenario.streams}"]
    for name, value in scenario.headers().items():
        command += ["-H", f"{name.replace('Host', ':authority')}: {value}"]
    command.append(running.url(scenario.path))
    return subprocess.run(pinned(running.cores.load, *command), text=True,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT).stdout


def h2load_count(running, scenario, requests):
    """Exactly so many, all well answered."""
    out = h2load(running, scenario, f"-n{requests}")
    if f"status codes: {requests} 2xx" not in out:
        raise Failure(f"of {requests} requests: {out.strip()}")


def h2load_timed(running, scenario, seconds):
    """As wrk, without times."""
    out = h2load(running, scenario, f"-D{seconds}")
    found = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, "
                      r"(\d+) 5xx", out)
    if not found or found.group(1) == "0":
        raise Failure(f"h2load: {out.strip()}")
    good, *others = map(int, found.groups())
    failed = re.search(r"(\d+) failed, (\d+) errored, (\d+) timeout", out)
    return {"requests": good, "per_second": good / seconds,
            "not_2xx": sum(others), "errors": sum(map(int, failed.groups()))}


def handshakes(running, scenario, seconds):
    """As wrk, without times: load.c makes a TLS connection for each."""
    load = Load(running.tools, running, scenario)
    result = load.end(load.begin(seconds))
    load.check_resumed(result)
    return {"requests": result["ok"], "per_second": result["ok"] / seconds,
            "not_2xx": result["not_2xx"],
            "errors": sum(result[key] for key in
                          ("refused", "closed", "broken", "late"))}


def timed(running, scenario, seconds):
    """The load of a timed round, by what can make it."""
    if scenario.site.http2:
        return h2load_timed(running, scenario, seconds)
    if scenario.site.tls and scenario.fresh:
        return handshakes(running, scenario, seconds)
    return wrk(running, scenario, seconds)


class Load:
    """load.c against a running server; h2load where it is HTTP/2."""

    def __init__(self, tools, running, scenario):
        request = running.directory / "request"
        request.write_bytes(scenario.request())
        self.base = pinned(running.cores.load, str(tools / "load"))
        self.tail = ["-r", str(request)] + (["-1"] if scenario.fresh else [])
        self.tail += ["-b", str(8192 + scenario.site.body)]
        if scenario.site.tls:
            self.tail += ["-s", "www.example.com"]
        if scenario.resumed:
            self.tail.append("-u")
        self.tail.append(f"127.0.0.1:{running.port}")
        self.connections = scenario.connections
        self.running, self.scenario = running, scenario

    def count(self, requests):
        """Exactly so many requests, all well answered."""
        if self.scenario.site.http2:
            return h2load_count(self.running, self.scenario, requests)
        done = subprocess.run(
            self.base + ["-n", str(requests), "-c", str(self.connections)]
            + self.tail, stdout=subprocess.PIPE, text=True)
        result = json.loads(done.stdout or "{}")
        if result.get("ok") != requests:
            raise Failure(f"of {requests} requests: {done.stdout.strip()}")
        self.check_resumed(result)
        return result

    def check_resumed(self, result):
        """Each but the first of every connection, or none."""
        due = 0
        if self.scenario.resumed:
            due = result["requests"] - self.connections
        if self.scenario.site.tls and result["resumed"] != due:
            raise Failure(f"{result['resumed']} sessions resumed, not {due}")

    def begin(self, seconds):
        """For a time, in the background; read the result with `end`."""
        return subprocess.Popen(
            self.base + ["-t", str(seconds), "-c", str(self.connections)]
            + self.tail, stdout=subprocess.PIPE, text=True)

    @staticmethod
    def end(popen):
        return json.loads(popen.communicate(timeout=120)[0])

    def hold(self, connections):
        """So many connections with one answered request each, until the
        caller closes its stdin."""
        popen = subprocess.Popen(
            self.base + ["-h", "-c", str(connections)] + self.tail,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = popen.stdout.readline()
        if not line or json.loads(line)["ok"] != connections:
            release(popen)
            raise Failure(f"could not hold {connections}: {line.strip()}")
        return popen


def release(held):
    held.stdin.close()
    held.wait(30)
    held.stdout.close()
