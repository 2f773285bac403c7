"""FastCGI by exact bytes: the tables of raw/fastcgi_*.py against an
application that misbehaves on purpose and records what it is told."""
import os
import shutil
import tempfile

import pytest

import scalws
from raw import fastcgi_answers, fastcgi_params
from raw.responder import Responder
from raw.runner import FastBench

ROWS = fastcgi_answers.ROWS
PARAMS = fastcgi_params.ROWS


@pytest.fixture(scope="module")
def bench():
    port = scalws.free_port()
    place = tempfile.mkdtemp(prefix="sw-f-", dir="/tmp")
    os.chmod(place, 0o755)
    scripts = {row.name: row for row in ROWS}
    try:
        with Responder(place + "/s", scripts) as responder:
            conf = {
                "workers": 1,
                "limits": {"request_line_bytes": "8K", "header_bytes": "76K",
                           "body_bytes": "1M"},
                "upstreams": {"f": {
                    "protocol": "fastcgi",
                    "root": fastcgi_params.ROOT.decode(),
                    "idle_timeout": "60s",
                    "peers": [{"address": responder.address}]}},
                "sites": [{"names": ["t.example"],
                           "listen": [f"127.0.0.1:{port}"],
                           "routes": [{"path": "*", "upstream": "f"}]}],
            }
            with scalws.Daemon(conf) as daemon:
                yield FastBench(daemon.addresses()[0], responder)
    finally:
        shutil.rmtree(place)


def test_table():
    assert len({row.name for row in ROWS}) == len(ROWS) >= 100
    assert len({row.name for row in PARAMS}) == len(PARAMS) >= 50
    assert all(row.rfc for row in (*ROWS, *PARAMS))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_answer(bench, row):
    bench.run_answer(row)


@pytest.mark.parametrize("row", PARAMS, ids=lambda row: row.name)
def test_params(bench, row):
    bench.run_params(row)
