"""Requests in, by exact bytes: the tables of raw/requests_*.py, each row
through the running proxy to an origin that records what it gets."""
import pytest

import scalws
from raw import (requests_body, requests_fields, requests_line,
                 requests_local)
from raw.origin import RawOrigin
from raw.runner import Bench

ROWS = (requests_line.ROWS + requests_fields.ROWS + requests_body.ROWS +
        requests_local.ROWS)


@pytest.fixture(scope="module")
def bench():
    port = scalws.free_port()
    with RawOrigin() as origin:
        conf = {
            # One, so that the order in which it writes is known.
            "workers": 1,
            "limits": {"request_line_bytes": "8K", "header_bytes": "32K",
                       "header_count": 100, "body_bytes": "1M"},
            "upstreams": {"o": {"peers": [{"address": origin.address}]}},
            "sites": [{"names": ["t.example"],
                       "listen": [f"127.0.0.1:{port}"],
                       "routes": [
                           {"path": "/local/*",
                            "respond": {"status": 200, "body": "hi\n"}},
                           {"path": "/strip/*", "upstream": "o",
                            "strip_prefix": "/strip"},
                           {"path": "*", "upstream": "o"}]}],
        }
        with scalws.Daemon(conf) as daemon:
            yield Bench(daemon.addresses()[0], origin)


def test_table():
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names) >= 300
    assert all(row.rfc for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_request(bench, row):
    bench.run(row)
