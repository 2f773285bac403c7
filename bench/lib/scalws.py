"""scalwsd, configured for a site. It starts the applications itself."""
import os
import signal
import subprocess
from pathlib import Path

from . import machine
from .apps import APPS, TOP, PHP_CHILDREN

STARTS_APPS = True
STOP_SIGNAL = signal.SIGTERM


def program(name="scalwsd"):
    """SCALWSD names it; else a build in this tree, else an installed one."""
    named = os.environ.get("SCALWSD")
    if named:
        return str(Path(named).resolve().with_name(name))
    for place in (TOP / "build" / name, TOP / name):
        if place.exists():
            return str(place)
    return machine.find(name)


def version():
    return machine.first_line(program(), "-V")


def can(scenario):
    return True


def app(running):
    site = running.site
    user = 'user = "nobody"; group = "nogroup";' if os.geteuid() == 0 else ""
    kinds = {
        "python": f'runtime = "python"; directory = "{APPS}"; '
                  f'python = "/usr/bin/python3"; module = "app:app"; '
                  f'arguments = [ "--loop", "{site.event_loop}" ]; '
                  f'processes = {site.instances};',
        "node": f'runtime = "node"; directory = "{APPS}"; '
                f'script = "app.js"; processes = {site.instances};',
        "php": f'runtime = "php"; root = "{APPS}"; '
               f'children = {PHP_CHILDREN};',
    }
    return f"apps = {{ app = {{ {kinds[site.action]} {user} }}; }};"


def write(running):
    site, directory = running.site, running.directory
    parts, action = "", 'app = "app";'
    if site.action == "respond":
        body = "x" * site.body or "ok\\n"
        action = f'respond = {{ status = 200; body = "{body}"; }};'
    elif site.action == "proxy":
        peers = ", ".join(f'{{ address = "{p}"; }}' for p in running.peers)
        parts = (f"upstreams = {{ app = {{ peers = ( {peers} ); "
                 "idle_max = 64; }; };")
        action = 'upstream = "app";'
    else:
        parts = app(running)
    user = 'user = "www-data";' if os.geteuid() == 0 else ""
    tls = ""
    if site.tls:
        tls = (f'tls = {{ certificate = [ "{running.tools}/cert.pem" ]; '
               f'key = [ "{running.tools}/key.pem" ]; }};')
    log = f"{directory}/access.log" if running.server.access_log else "none"
    conf = directory / "scalws.conf"
    conf.write_text(f"""{user}
workers = {site.loops};
run_directory = "{directory}/run";
log_directory = "{directory}/log";
temp_directory = "{directory}";
backlog = 4096;
access_log = "{log}";
limits = {{ connections = {site.connections + 64};
    requests_per_connection = 1000000000; }};
{parts}
sites = (
  {{ names = [ "www.example.com" ];
    listen = [ "127.0.0.1:{running.port}{' tls' if tls else ''}" ]; {tls}
    routes = ( {{ path = "*"; {action} }} );
  }} );
""")
    conf.chmod(0o644)
    environment = dict(os.environ, SCALWS_DATADIR=str(TOP / "etc" / "share"))
    if running.wrapper:
        # Of its processes the proxy alone: it does all of the work.
        environment.update(LD_PRELOAD=str(running.tools / "under"),
                           BENCH_UNDER=" ".join(running.wrapper),
                           BENCH_PROGRAM=program())
    return [program(), "-c", str(conf)], environment


def control(running, *words):
    return subprocess.run(
        [program("scalwsctl"), "-s", f"{running.directory}/run/control.sock",
         *words], check=True, timeout=60, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True).stdout


def reload(running):
    control(running, "reload")


def restart_app(running):
    control(running, "restart", "app")
