"""System calls and user-space instructions per request: the difference of two
numbers of requests, so that start, connects and end cancel out."""
import re
import signal
import subprocess
import time

from . import process
from .machine import find
from .servers import Running
from .tools import Load

# The share of these vanishes when many requests are ready at once; they are
# reported apart.
WAITS = {"epoll_wait", "epoll_pwait", "epoll_pwait2"}

# The server sees the end of the load's connections after the load has ended.
SETTLE_S = 0.5


def steps(scenario):
    """The two numbers of requests. Both are beyond what warms up."""
    if scenario.connections == 1:
        return 300, 900
    return tuple(n * scenario.connections for n in scenario.steps)


def strace(pids, directory, work):
    """name -> calls that `pids` made while `work` ran."""
    out = directory / "strace.out"
    tracer = subprocess.Popen(
        [find("strace"), "-f", "-c", "-U", "calls,name", "-o", str(out)]
        + [part for pid in pids for part in ("-p", str(pid))],
        stderr=subprocess.PIPE, text=True)
    try:
        attached = 0
        while attached < len(pids):
            line = tracer.stderr.readline()
            if not line:
                raise process.Failure("strace cannot attach")
            attached += "attached" in line
        work()
        time.sleep(SETTLE_S)
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.communicate(timeout=20)
    calls = {}
    for line in out.read_text().splitlines():
        found = re.fullmatch(r"\s*(\d+) (\w+)", line)
        if found and found.group(2) != "total":
            calls[found.group(2)] = int(found.group(1))
    return calls


def calls(server, scenario, directory, tools):
    """name -> system calls per request."""
    few, many = steps(scenario)
    with Running(server, scenario.site, directory, tools,
                 path=scenario.path) as running:
        load = Load(tools, running, scenario)
        load.count(few)             # warm
        pids = running.server_pids()
        less = strace(pids, directory, lambda: load.count(few))
        more = strace(pids, directory, lambda: load.count(many))
    return {name: (more[name] - less.get(name, 0)) / (many - few)
            for name in more}


def callgrind(server, scenario, directory, tools, requests):
    """Run the server under valgrind for so many requests. Returns the files
    it wrote, one a process."""
    wrapper = [find("valgrind"), "-q", "--tool=callgrind",
               "--trace-children=yes",
               f"--callgrind-out-file={directory}/callgrind.%p"]
    with Running(server, scenario.site, directory, tools, wrapper,
                 scenario.path) as running:
        # Made at the start; written at the end, by another user.
        for file in directory.glob("callgrind.*"):
            file.chmod(0o666)
        Load(tools, running, scenario).count(requests)
    return sorted(directory.glob("callgrind.*"))


def total(files):
    """Instructions in all of them."""
    found = 0
    for file in files:
        text = file.read_text(errors="replace")
        for kind in ("summary", "totals"):
            match = re.search(rf"^{kind}: (\d+)", text, re.M)
            if match:
                found += int(match.group(1))
                break
    return found


def functions(files):
    """(own, inclusive) instructions by function name, over all files."""
    result = []
    for inclusive in ("no", "yes"):
        found = {}
        for file in files:
            here = {}
            out = subprocess.run(
                [find("callgrind_annotate"), f"--inclusive={inclusive}",
                 "--threshold=100", "--show-percs=no", "--auto=no", str(file)],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                text=True).stdout
            for line in out.splitlines():
                match = re.match(r"\s*([\d,]+)\s+(\S.*?)(?: \[.*)?$", line)
                if not match or ":" not in match.group(2):
                    continue
                name = match.group(2).rsplit("/", 1)[-1]
                number = int(match.group(1).replace(",", ""))
                # A function stands once for each name of its source file.
                here[name] = max(here.get(name, 0), number) \
                    if inclusive == "yes" else here.get(name, 0) + number
            for name, number in here.items():
                found[name] = found.get(name, 0) + number
        result.append(found)
    return result


def instructions(server, scenario, directory, tools, profile=False):
    """Instructions per request, and the profile: lines of own and inclusive
    instructions per request by function."""
    few, many = steps(scenario)
    files, totals = {}, {}
    for number in (few, many):
        place = directory / f"count{number}"
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(0o777)
        files[number] = callgrind(server, scenario, place, tools, number)
        totals[number] = total(files[number])
    requests = many - few
    each = (totals[many] - totals[few]) / requests
    if not profile:
        return each, []
    less, more = functions(files[few]), functions(files[many])
    lines = [f"{'own':>9} {'inclusive':>9}  function"]
    rows = []
    for name, number in more[1].items():
        inclusive = (number - less[1].get(name, 0)) / requests
        own = (more[0].get(name, 0) - less[0].get(name, 0)) / requests
        if max(own, inclusive) >= 10:
            rows.append((own, inclusive, name))
    for own, inclusive, name in sorted(rows, reverse=True):
        lines.append(f"{own:9.0f} {inclusive:9.0f}  {name}")
    return each, lines
