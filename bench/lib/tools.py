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
    for name, flags in (("load", []), ("origin", []),
                        ("under", ["-shared", "-fPIC"])):
        subprocess.run(["cc", "-std=c11", "-O2", *flags, "-o",
                        str(directory / name), str(SOURCES / f"{name}.c")],
                       check=True)
        (directory / name).chmod(0o755)


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
    command.append(f"http://127.0.0.1:{running.port}{scenario.path}")
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


def h2load(running, scenario, requests):
    """Exactly so many, all well answered."""
    command = [find("h2load"), f"-n{requests}", f"-c{scenario.connections}",
               f"-m{scenario.streams}"]
    for name, value in scenario.headers().items():
        command += ["-H", f"{name.replace('Host', ':authority')}: {value}"]
    command.append(f"http://127.0.0.1:{running.port}{scenario.path}")
    done = subprocess.run(pinned(running.cores.load, *command), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if f"status codes: {requests} 2xx" not in done.stdout:
        raise Failure(f"of {requests} requests: {done.stdout.strip()}")


class Load:
    """load.c against a running server; h2load where it is HTTP/2."""

    def __init__(self, tools, running, scenario):
        request = running.directory / "request"
        request.write_bytes(scenario.request())
        self.base = pinned(running.cores.load, str(tools / "load"))
        self.tail = ["-r", str(request)] + (["-1"] if scenario.fresh else [])
        self.tail.append(f"127.0.0.1:{running.port}")
        self.connections = scenario.connections
        self.running, self.scenario = running, scenario

    def count(self, requests):
        """Exactly so many requests, all well answered."""
        if self.scenario.site.http2:
            return h2load(self.running, self.scenario, requests)
        done = subprocess.run(
            self.base + ["-n", str(requests), "-c", str(self.connections)]
            + self.tail, stdout=subprocess.PIPE, text=True)
        result = json.loads(done.stdout or "{}")
        if result.get("ok") != requests:
            raise Failure(f"of {requests} requests: {done.stdout.strip()}")
        return result

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
