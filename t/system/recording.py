"""Applications that write down what they were asked, under each server."""
import contextlib
import os
import shutil

import scalws
from scalws import Daemon

TIMES = dict(processes=1, response_timeout="20s")


def python(apps, **keys):
    return {"runtime": "python", "python": "/usr/bin/python3",
            "directory": str(apps / "python"), **TIMES, **keys}


SERVERS = {
    "uvicorn": lambda apps: python(apps, module="record:asgi"),
    "gunicorn-sync": lambda apps: python(
        apps, module="record:wsgi", server="gunicorn", threads=1),
    "gunicorn-threads": lambda apps: python(
        apps, module="record:wsgi", server="gunicorn", threads=2),
    "node": lambda apps: {"runtime": "node", "directory": str(apps / "node"),
                          "script": "record.js", **TIMES},
    "php": lambda apps: {"runtime": "php", "children": 1,
                         "root": str(apps / "php/record"),
                         "front_controller": "index.php",
                         "response_timeout": "20s"},
}



@contextlib.contextmanager
def recorded(name, port, **keys):
    """(daemon, file of lines "METHOD ROW LENGTH") with one process."""
    place = scalws.scratch()
    os.chmod(place, 0o755)
    record = place / "record"
    record.touch()
    os.chmod(record, 0o666)
    app = SERVERS[name](scalws.apps_directory())
    app["environment"] = {"RECORD": str(record)}
    app.update(keys)
    conf = {"workers": 1, "apps": {"app": app},
            "sites": [{"names": ["t.example"], "listen": [f"127.0.0.1:{port}"],
                       "routes": [{"path": "*", "app": "app"}]}]}
    try:
        with Daemon(conf) as one:
            one.wait_running("app")
            yield one, record
    finally:
        shutil.rmtree(place)
