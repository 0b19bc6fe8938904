"""The application is ASGI: another server gets the answers that ours sends."""

import pytest

from tests.rest.live import a_key


async def asked(app, method, target, body=b"", chunks=1, **fields):
    """(status, headers, body) by ASGI messages."""
    path, _, query = target.partition("?")
    headers = {"host": "127.0.0.1", "content-type": "application/json", **fields}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
    }
    size = len(body) // chunks + 1
    pieces = [body[at : at + size] for at in range(0, max(len(body), 1), size)]
    messages = [
        {"type": "http.request", "body": piece, "more_body": number < len(pieces)}
        for number, piece in enumerate(pieces, 1)
    ]
    sent = []

    async def receive():
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    if not sent:
        return None
    start, end = sent
    return start["status"], dict(start["headers"]), end["body"]


@pytest.mark.parametrize(
    "method, path",
    [
        ("GET", "/iceberg/v1/config"),
        ("GET", "/iceberg/v1/lake/namespaces?pageToken=&pageSize=1"),
        ("HEAD", "/iceberg/v1/lake/namespaces/nowhere"),
        ("DELETE", "/iceberg/v1/lake/namespaces/nowhere"),
        ("GET", "/nowhere"),
    ],
)
def test_the_answers_are_the_same(live, method, path):
    status, headers, body = live.do(asked(live.app, method, path))
    wire = live.client().ask(method, path, base="")
    assert (status, body) == (wire.status, wire.body)
    assert {name.decode() for name in headers} == set(wire.headers) - {"date", "connection"}


def test_a_body_in_pieces_is_one_body(live):
    body = b'{"namespace":["by-asgi"],"properties":{"a":"1"}}'
    key = a_key()
    status, headers, first = live.do(
        asked(live.app, "POST", "/iceberg/v1/lake/namespaces", body, 5, idempotency_key=key)
    )
    assert status == 200
    assert headers[b"x-request-id"]
    _, _, again = live.do(asked(live.app, "POST", "/iceberg/v1/lake/namespaces", body, idempotency_key=key))
    assert again == first


def test_a_body_that_breaks_off_is_not_run(live):
    async def broken_off():
        scope = {"type": "http", "method": "POST", "raw_path": b"/iceberg/v1/lake/namespaces", "headers": []}
        messages = [
            {"type": "http.request", "body": b'{"namespace":["asgi-broken"]}', "more_body": True},
            {"type": "http.disconnect"},
        ]

        async def receive():
            return messages.pop(0)

        async def send(message):
            raise AssertionError(message)

        await live.app(scope, receive, send)

    live.do(broken_off())
    assert live.client().head("/namespaces/asgi-broken").status == 404


def test_an_oversized_body_is_refused(live):
    status, _, body = live.do(asked(live.app, "POST", "/iceberg/v1/lake/namespaces", b" " * (9 * 1024 * 1024), 9))
    assert (status, b"BadRequestException" in body) == (413, True)
