"""The applications that every runtime test is asked of."""
import functools
import subprocess

import pytest

import scalws


class Case:
    """One application under one runtime.

    native    what it sees without looking at X-Forwarded fields
    one       it answers one request at a time per process
    """

    def __init__(self, name, conf, prefix="", native=(), skip=None, server=""):
        self.name, self.conf_of, self.prefix = name, conf, prefix
        self.native, self.skip, self.server = native, skip, server

    def conf(self, **more):
        conf = dict(self.conf_of(scalws.apps_directory()))
        conf.update(more)
        return conf

    def path(self, target):
        return self.prefix + target


def python(module, **keys):
    return lambda apps: {"runtime": "python", "python": "/usr/bin/python3",
                         "directory": str(apps / "python"), "module": module,
                         **keys}


def node(script, **env):
    def conf(apps):
        made = {"runtime": "node", "directory": str(apps / "node"),
                "script": script}
        if env:
            made["environment"] = env
        return made
    return conf


def need_modules(newest=0):
    def reason():
        if not scalws.node_modules():
            return "no node_modules: npm ci in t/system/apps/node"
        if scalws.node_major() < newest:
            return f"needs Node {newest}"
        return None
    return reason


ALL = "client scheme host".split()
CASES = [
    Case("asgi", python("plain:app"), native=ALL),
    Case("factory", python("plain:make", factory=True), native=ALL),
    Case("starlette", python("starlette_app:app"), native=ALL),
    Case("fastapi", python("fastapi_app:app"), native=ALL),
    Case("flask", python("flask_app:app", server="gunicorn"),
         native=["scheme", "host"]),
    Case("django", python("django_app:app", server="gunicorn"),
         native=["scheme", "host"]),
    Case("flask-sync", python("flask_app:app", server="gunicorn", threads=1),
         native=["scheme", "host"]),
    Case("http", node("http.js")),
    Case("esm", node("esm.mjs")),
    Case("express4", node("express.js"), native=ALL, skip=need_modules()),
    Case("express5", node("express.js", EXPRESS="express5"), native=ALL,
         skip=need_modules(18)),
    Case("fastify4", node("fastify.js"), native=ALL, skip=need_modules()),
    Case("fastify5", node("fastify.js", FASTIFY="fastify5"), native=ALL,
         skip=need_modules(20)),
    Case("php-script", lambda apps: {
        "runtime": "php", "root": str(apps / "php/script"), "children": 3},
        prefix="/app.php", native=ALL),
    Case("php-front", lambda apps: {
        "runtime": "php", "root": str(apps / "php/front/public"),
        "children": 3}, native=ALL),
    Case("command", lambda apps: {
        "runtime": "command", "directory": str(apps / "python"),
        "command": ["/usr/bin/python3", "-m", "uvicorn", "--uds", "{socket}",
                    "--no-access-log", "--forwarded-allow-ips", "*",
                    "plain:app"]}, native=ALL),
    Case("command-port", lambda apps: {
        "runtime": "command", "directory": str(apps / "python"),
        "command": ["/usr/bin/python3", "-m", "uvicorn", "--port", "{port}",
                    "--no-access-log", "--forwarded-allow-ips", "*",
                    "plain:app"]}, native=ALL),
]
BY_NAME = {case.name: case for case in CASES}


# Other frameworks behind a server that another case has too: our own code does
# nothing else for them.
FRAMEWORKS = ("starlette", "fastapi", "django", "express4", "express5",
              "fastify4", "fastify5")


def is_repeated(name):
    """Left to the plain and to the long run: a sanitizer watches us alone."""
    return scalws.SLOW > 1 and not scalws.LONG and name in FRAMEWORKS


def parameters(*names):
    """For pytest.mark.parametrize; all without names."""
    chosen = [BY_NAME[name] for name in names] if names else CASES
    chosen = [case for case in chosen if not is_repeated(case.name)]
    return [pytest.param(case, id=case.name) for case in chosen]


def skip_unless_possible(case):
    reason = case.skip() if case.skip else None
    if reason:
        pytest.skip(reason)


@functools.lru_cache(None)
def uvicorn_has_uvloop():
    return subprocess.run(["/usr/bin/python3", "-c", "import uvloop"],
                          capture_output=True).returncode == 0


def one_app(case, port, name="app", **keys):
    """A configuration: the app behind one site."""
    site = {"names": ["example.com", "localhost"],
            "listen": [f"127.0.0.1:{port}"],
            "routes": [{"path": "*", "app": name}]}
    return {"sites": [site], "apps": {name: case.conf(**keys)}}
