"""What we pass on is read by the servers that applications run on as exactly
one request: the table of raw/smuggling.py with uvicorn, gunicorn, Node and
php-fpm behind us. (What is refused stands in test_raw_requests.py.)"""
import pytest

import scalws
from recording import SERVERS, recorded
from raw.runner import RawClient
from raw.smuggling import KINDS
from scalws import get


@pytest.fixture(scope="module", params=SERVERS)
def backend(request):
    port = scalws.free_port()
    with recorded(request.param, port) as (_, record):
        yield port, record


def test_table():
    assert len({kind.name for kind in KINDS}) == len(KINDS) >= 70
    assert all(kind.rfc for kind in KINDS)


def answers(port, kind):
    """The statuses, and what the answers say was read."""
    statuses, read = [], []
    with RawClient(port) as client:
        client.push(kind.send)
        for method, _ in kind.want:
            answer = client.answer(method == "HEAD")
            while answer is not None and answer.status < 200:
                answer = client.answer(method == "HEAD")
            if answer is None:
                break
            statuses.append(answer.status)
            if answer.status == 200 and method != "HEAD":
                said = answer.json()
                read.append((said["method"], bytes.fromhex(said["body"])))
    return statuses, read


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_one_request(backend, kind):
    port, record = backend
    had = record.read_text()
    statuses, read = answers(port, kind)
    # Whatever was left over would be taken for the next one's beginning.
    for i in range(2):
        after = get(port, "/after", host="t.example",
                    headers={"X-Row": f"after-{i}"})
        assert after.status == 200 and after.json()["row"] == f"after-{i}"
    asked = record.read_text()[len(had):].splitlines()
    # gunicorn makes "post" a POST.
    if kind.name == "method-small":
        asked = [line.replace("POST", "post") for line in asked]
        read = [(method.lower(), body) for method, body in read]
    wanted = [f"{method} {kind.name} {len(body)}" for method, body in kind.want]
    rest = ["GET after-0 0", "GET after-1 0"]
    if kind.or_refused and statuses != [200] * len(kind.want):
        assert all(400 <= status < 600 for status in statuses), statuses
        assert asked == rest
        return
    assert asked == wanted + rest, (statuses, asked)
    assert statuses == [200] * len(kind.want)
    assert read == [w for w in kind.want if w[0] != "HEAD"]
