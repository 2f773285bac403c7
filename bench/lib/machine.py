"""The machine and the programs on it: cores, versions, what is missing."""
import datetime
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

# program -> Debian package
PROGRAMS = {
    "nginx": "nginx", "haproxy": "haproxy", "wrk": "wrk",
    "h2load": "nghttp2-client", "strace": "strace", "valgrind": "valgrind",
    "uvicorn": "uvicorn", "node": "nodejs", "php-fpm8.2": "php8.2-fpm",
    "cc": "gcc", "openssl": "openssl", "curl": "curl",
}
PACKAGES = ["libc6-dev", "python3-uvloop", "python3-httptools", "libssl-dev"]


def find(program):
    """Its path, also from /usr/sbin, or None."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
    return shutil.which(program, path=path)


def missing():
    return [program for program in PROGRAMS if not find(program)]


def install():
    """What the bench needs and the machine lacks, from Debian."""
    packages = [PROGRAMS[program] for program in missing()] + PACKAGES
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    prefix = [] if os.geteuid() == 0 else ["sudo"]
    subprocess.run(prefix + ["apt-get", "update", "-q"], check=True,
                   env=environment)
    subprocess.run(prefix + ["apt-get", "install", "-y", "-q",
                             "--no-install-recommends"] + packages,
                   check=True, env=environment)


class Cores:
    """Who runs where. The server has its cores for itself; the load has the
    last one; applications have what is left, else they sit beside the load."""

    def __init__(self, loops=1):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) == 1:
            self.server = self.load = self.apps = cores
            return
        self.load = cores[-1:]
        self.server = cores[:-1][:loops]
        self.apps = cores[len(self.server):-1] or self.load

    def __str__(self):
        return (f"server {self.server}, load {self.load}, "
                f"applications {self.apps}")


def output_of(*command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def first_line(*command):
    return (output_of(*command).splitlines() or ["?"])[0]


def cpu_model():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def describe(servers):
    """Lines for the results: what was measured, with what, and where."""
    memory = re.search(r"MemTotal:\s+(\d+)",
                       Path("/proc/meminfo").read_text()).group(1)
    lines = [
        f"date        {datetime.datetime.now().isoformat(' ', 'minutes')}",
        f"cpu         {cpu_model()}, {os.cpu_count()} cores",
        f"memory      {int(memory) // 1024} MiB",
        f"kernel      {platform.release()}",
        f"pinned      {Cores()}",
        f"load        {os.getloadavg()[0]:.2f} (1 minute, before the start)",
        f"python      {first_line('uvicorn', '--version')}",
        f"node        {first_line('node', '--version')}",
        f"php-fpm     {first_line(find('php-fpm8.2') or 'php-fpm', '-v')}",
        f"wrk         {first_line('wrk', '-v')}",
    ]
    for server in servers:
        lines.append(f"{server.name:11} {server.version()}")
    return lines
