"""Requests in, by exact bytes: the tables of raw/requests_*.py, each row
through the running proxy to an origin that records what it gets."""
import pytest

import scalws
from raw import (requests_body, requests_fields, requests_line,
                 requests_local)
from raw.origin import RawOrigin
from raw.runner import benches_of, by_transport, listeners

ROWS = (requests_line.ROWS + requests_fields.ROWS + requests_body.ROWS +
        requests_local.ROWS)


@pytest.fixture(scope="module")
def benches():
    port = scalws.free_port()
    with RawOrigin() as origin:
        conf = {
            # One, so that the order in which it writes is known.
            "workers": 1,
            "limits": {"request_line_bytes": "8K", "header_bytes": "32K",
                       "header_count": 100, "body_bytes": "1M"},
            "upstreams": {"o": {"peers": [{"address": origin.address}]}},
            "sites": [{"names": ["t.example"],
                       **listeners(port),
                       "routes": [
                           {"path": "/local/*",
                            "respond": {"status": 200, "body": "hi\n"}},
                           {"path": "/strip/*", "upstream": "o",
                            "strip_prefix": "/strip"},
                           {"path": "*", "upstream": "o"}]}],
        }
        with scalws.Daemon(conf) as daemon:
            yield benches_of(daemon, origin)


def test_table():
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names) >= 300
    assert all(row.rfc for row in ROWS)


@pytest.mark.parametrize("transport, row", by_transport(ROWS))
def test_request(benches, transport, row):
    benches[transport].run(row)
