"""Timed rounds: all servers of a scenario side by side, in rotated order."""
import contextlib
import statistics

from . import process
from .servers import Running
from .tools import timed

WARM_S = 1


def one_round(running, scenario, seconds):
    """What one run of the load showed, CPU included."""
    ours, apps = running.server_pids(), running.app_pids()
    before = process.cpu_us(ours), process.cpu_us(apps)
    result = timed(running, scenario, seconds)
    requests = result["requests"]
    result["cpu_us"] = (process.cpu_us(ours) - before[0]) / requests
    result["app_cpu_us"] = (process.cpu_us(apps) - before[1]) / requests
    return result


def rounds_of(scenario, servers, options, directory, tools, say):
    """server name -> list of rounds, the same number for each. A server that
    fails is left out, with a word."""
    rounds, running = {}, {}
    with contextlib.ExitStack() as stack:
        for server in servers:
            place = directory / server.name
            try:
                one = stack.enter_context(Running(
                    server, scenario.site, place, tools, path=scenario.path))
                timed(one, scenario, WARM_S)
            except process.Failure as failure:
                say(f"{scenario.name} {server.name}: {failure}")
                continue
            running[server.name], rounds[server.name] = one, []
        names = list(running)
        for number in range(options.rounds):
            turn = number % max(1, len(names))
            made = {}
            for name in names[turn:] + names[:turn]:
                try:
                    made[name] = one_round(
                        running[name], scenario, options.seconds)
                except process.Failure as failure:
                    say(f"{scenario.name} {name}: {failure}")
            # Rounds stay in step: one that a server lacks counts for none.
            for name in names if len(made) == len(names) else ():
                rounds[name].append(made[name])
        rounds = {name: done for name, done in rounds.items() if done}
        memories = {
            name: {"peak_rss": process.memory(one.server_pids(), "VmHWM")}
            for name, one in running.items() if name in rounds}
    return rounds, memories


def ratios(rounds, base, key):
    """Median of the ratios of the same rounds."""
    pairs = [(a[key], b[key]) for a, b in zip(rounds, base or [])
             if b.get(key)]
    return statistics.median(a / b for a, b in pairs) if pairs else None


def summary(rounds, base):
    """Medians over the rounds of one server; `base`: the rounds of nginx."""
    def median(key):
        """None: the load does not measure it."""
        found = [r[key] for r in rounds if key in r]
        return statistics.median(found) if found else None
    cpu = [r["cpu_us"] for r in rounds]
    spread = (100 * statistics.stdev(cpu) / statistics.mean(cpu)
              if len(cpu) > 1 else None)
    return {
        "per_second": median("per_second"),
        "p50_ms": median("p50_ms"), "p99_ms": median("p99_ms"),
        "cpu_us": median("cpu_us"), "cpu_cv": spread,
        "app_cpu_us": median("app_cpu_us") or None,
        "not_2xx": sum(r["not_2xx"] for r in rounds),
        "errors": sum(r["errors"] for r in rounds),
        "per_second_ratio": ratios(rounds, base, "per_second"),
        "cpu_ratio": ratios(rounds, base, "cpu_us"),
        "p50_ratio": ratios(rounds, base, "p50_ms"),
        "p99_ratio": ratios(rounds, base, "p99_ms"),
        "app_ratio": ratios(rounds, base, "app_cpu_us"),
    }
