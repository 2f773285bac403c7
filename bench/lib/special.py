"""Scenarios that are no timed load: idle memory, reload and restart, spread.
Each is kind -> function(server, scenario, options, directory, tools), and
returns the columns it fills."""
import os
import statistics
import time
from dataclasses import replace
from pathlib import Path

from . import process
from .servers import Running
from .tools import Load, release

FEW = 512           # the room of the server without idle connections
TRIES = 10          # of the spread
MEMORY_S = 2        # of load while memory is looked at


def pss(running):
    return process.memory(running.server_pids(), "Pss")


def idle(server, scenario, options, directory, tools):
    """Bytes per idle connection, its slot in tables made at start included:
    what the server with room and connections has more than a small one."""
    number = scenario.connections
    with Running(server, replace(scenario.site, connections=FEW),
                 directory / "small", tools) as running:
        time.sleep(0.5)
        small = pss(running)
    with Running(server, replace(scenario.site, connections=number),
                 directory / "large", tools) as running:
        empty = pss(running)
        held = Load(tools, running, scenario).hold(number)
        time.sleep(2)
        full = pss(running)
        release(held)
    return {"idle_bytes": (full - small) / number,
            "idle_bytes_grown": (full - empty) / number, "pss": full}


def memory(server, scenario, options, directory, tools):
    """PSS while it serves, with no other server beside that would share its
    libraries. What they share with the rest of the machine is in it."""
    with Running(server, scenario.site, directory, tools,
                 path=scenario.path) as running:
        Load(tools, running, scenario).count(20 * scenario.connections)
        load = Load(tools, running, scenario).begin(MEMORY_S)
        time.sleep(MEMORY_S / 2)
        proxy, all_pids = running.proxy_pids(), running.server_pids()
        found = {"pss": process.memory(proxy, "Pss"),
                 "pss_anon": process.memory(proxy, "Pss_Anon"),
                 "pss_others": process.memory(
                     set(all_pids) - set(proxy), "Pss") or None}
        Load.end(load)
    return found


def under_load(server, scenario, options, directory, tools, action):
    """`action` a few times while requests run; what failed meanwhile."""
    seconds = 3 * options.actions
    with Running(server, scenario.site, directory, tools) as running:
        load = Load(tools, running, scenario).begin(seconds)
        took = []
        time.sleep(1)
        for _ in range(options.actions):
            begin = time.monotonic()
            action(running)
            took.append(time.monotonic() - begin)
            time.sleep(max(0, 2 - took[-1]))
        result = Load.end(load)
    failed = {key: result[key] for key in
              ("not_2xx", "refused", "closed", "broken", "late")}
    return dict(failed, requests=result["requests"],
                failed=sum(failed.values()),
                longest_ms=1000 * result["longest_s"],
                per_second=result["requests"] / seconds)


def reload(server, scenario, options, directory, tools):
    return under_load(server, scenario, options, directory, tools,
                      Running.reload)


def restart(server, scenario, options, directory, tools):
    return under_load(server, scenario, options, directory, tools,
                      Running.restart_app)


def client_sockets(port):
    """Inodes of our established connections."""
    inodes = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        word = line.split()
        if word[3] == "01" and int(word[1].split(":")[1], 16) == port:
            inodes.add(f"socket:[{word[9]}]")
    return inodes


def per_loop(running):
    """Connections by event loop: those that each epoll descriptor watches."""
    sockets, loops = client_sockets(running.port), []
    for pid in running.server_pids():
        links = {}
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                links[fd] = os.readlink(f"/proc/{pid}/fd/{fd}")
            except OSError:
                pass
        for fd, link in links.items():
            if link != "anon_inode:[eventpoll]":
                continue
            watched = {
                line.split()[1] for line in
                Path(f"/proc/{pid}/fdinfo/{fd}").read_text().splitlines()
                if line.startswith("tfd:")}
            loops.append(sum(links.get(w) in sockets for w in watched))
    return loops


def spread(server, scenario, options, directory, tools):
    """Connections on the busiest loop, over tries with a fresh set each."""
    busiest = []
    with Running(server, scenario.site, directory, tools) as running:
        load = Load(tools, running, scenario)
        for _ in range(TRIES):
            held = load.hold(scenario.connections)
            loops = per_loop(running)
            if sum(loops) != scenario.connections:
                release(held)
                raise process.Failure(f"found connections: {loops}")
            busiest.append(max(loops))
            release(held)
            process.wait_for(lambda: not client_sockets(running.port),
                             "the connections end")
    fair = scenario.connections / scenario.site.loops
    return {"busiest": statistics.median(busiest),
            "busiest_max": max(busiest),
            "busiest_share": statistics.median(busiest) / fair}


KINDS = {"idle": idle, "memory": memory, "reload": reload, "restart": restart, "spread": spread}
