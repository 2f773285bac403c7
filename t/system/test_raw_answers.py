"""Answers in, by exact bytes: the tables of raw/answers_*.py. An origin says
what the row says; looked at is what the client sees, and what becomes of the
two connections."""
import pytest

import scalws
from raw import answers_body, answers_head
from raw.origin import RawOrigin
from raw.runner import benches_of, by_transport, listeners

ROWS = answers_head.ROWS + answers_body.ROWS


@pytest.fixture(scope="module")
def benches():
    port = scalws.free_port()
    with RawOrigin({row.name: row for row in ROWS}) as origin:
        conf = {
            "workers": 1,
            "upstreams": {"o": {"peers": [{"address": origin.address}],
                                "idle_timeout": "60s"}},
            "sites": [{"names": ["t.example"],
                       **listeners(port),
                       "routes": [{"path": "*", "upstream": "o"}]}],
        }
        with scalws.Daemon(conf) as daemon:
            yield benches_of(daemon, origin)


def test_table():
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names) >= 200
    assert all(row.rfc for row in ROWS)


@pytest.mark.parametrize("transport, row", by_transport(ROWS))
def test_answer(benches, transport, row):
    benches[transport].run_answer(row)
