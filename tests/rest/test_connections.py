"""What a connection may and may not do: bounds of size and time, whole heads and bodies, order, malformed input."""

import socket
import threading
import time

import pytest

from frazil import limits
from tests.rest.live import SCHEMA, heard, setting, status_of, talk

HOST = b"Host: 127.0.0.1\r\n"
HEALTH = b"GET /health HTTP/1.1\r\n" + HOST


def creation(name, *lines):
    """A whole request that creates a namespace, as bytes."""
    body = b'{"namespace":["%s"]}' % name.encode()
    head = b"POST /iceberg/v1/lake/namespaces HTTP/1.1\r\n" + HOST + b"".join(line + b"\r\n" for line in lines)
    return head + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body), body


def exists(live, name):
    return live.client().head(f"/namespaces/{name}").status == 204


# -- size --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "head",
    [
        HEALTH + b"X: " + b"x" * limits.header_bytes_max + b"\r\n\r\n",
        HEALTH + b"".join(b"X-%d: y\r\n" % n for n in range(limits.header_count_max + 1)) + b"\r\n",
        b"GET /health?" + b"x" * limits.header_bytes_max + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    ],
    ids=["one long field", "many fields", "a long target"],
)
def test_a_head_that_is_too_large_is_refused(live, head):
    said = talk(live.port, head)
    assert status_of(said) == 431
    assert b"connection: close" in said
    assert b'"code":431' in said


def test_a_head_that_never_ends_is_refused_while_it_still_comes(live):
    pieces = [HEALTH, *([b"x" * 8192] * 8)]
    assert status_of(talk(live.port, *pieces, pause_s=0.01)) == 431


def test_a_body_larger_than_it_may_be_is_refused_whatever_it_says(live):
    head = b"POST /iceberg/v1/lake/namespaces HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
    said = talk(live.port, head + b"Content-Length: 99999999999\r\n\r\n")
    assert status_of(said) == 413
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    said = talk(live.port, head + b"Transfer-Encoding: chunked\r\n\r\n", *([chunk] * 10))
    assert status_of(said) == 413


# -- time --------------------------------------------------------------------------------------------------------------


def test_a_slow_head_is_cut_off(live, monkeypatch):
    monkeypatch.setattr(limits, "header_read_s", 0.3)
    said = talk(live.port, *[HEALTH[n : n + 1] for n in range(len(HEALTH))], pause_s=0.05)
    assert status_of(said) == 408


def test_a_connection_that_says_nothing_is_closed(live, monkeypatch):
    monkeypatch.setattr(limits, "header_read_s", 0.3)
    assert talk(live.port) == b""


def test_a_slow_body_is_cut_off_and_not_run(live, monkeypatch):
    monkeypatch.setattr(limits, "body_read_s", 0.3)
    head, body = creation("slow-body")
    said = talk(live.port, head, *[body[n : n + 1] for n in range(len(body))], pause_s=0.05)
    assert status_of(said) == 408
    assert b"nothing was run" in said
    assert not exists(live, "slow-body")


def test_an_idle_connection_is_closed_after_its_time(live, monkeypatch):
    monkeypatch.setattr(limits, "idle_connection_s", 0.3)
    began = time.monotonic()
    assert status_of(talk(live.port, HEALTH + b"\r\n")) == 200
    assert time.monotonic() - began < 5


def test_a_client_that_does_not_read_is_let_go(live, monkeypatch):
    client = live.client()
    path = client.a_table(properties={f"n{n}": "x" * 1000 for n in range(1000)})
    monkeypatch.setattr(limits, "idle_connection_s", 0.5)
    with socket.create_connection(("127.0.0.1", live.port)) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall((b"GET /iceberg/v1/lake%s HTTP/1.1\r\n" % path.encode() + HOST + b"\r\n") * 50)
        until = time.monotonic() + 10
        while len(live.server.state.connections) > 0 and time.monotonic() < until:
            time.sleep(0.05)
        assert not live.server.state.connections


def test_slow_clients_do_not_hold_up_an_honest_one(live):
    slow = [socket.create_connection(("127.0.0.1", live.port)) for _ in range(300)]
    try:
        for each in slow:
            each.sendall(HEALTH[:30])
        client = live.client()
        path = client.a_table()
        took = []
        for _ in range(100):
            began = time.perf_counter()
            assert client.get(path).status == 200
            took.append(time.perf_counter() - began)
        assert sorted(took)[98] < 0.25
    finally:
        for each in slow:
            each.close()


# -- the handler's time ------------------------------------------------------------------------------------------------


def hanging(monkeypatch, live, operation):
    async def hang(*_, **__):
        await live.app.site.catalog.context.effects.clock.sleep(1000)
        raise RuntimeError("nobody hears this")

    monkeypatch.setattr(live.app.site.catalog, operation, hang)
    monkeypatch.setattr(limits, "handler_s", 0.2)


def ended(live):
    """Wait for what hangs on behind its answer: its end is no second answer, but a line in the log."""
    until = time.monotonic() + 10
    while live.app.metrics.in_flight and time.monotonic() < until:
        time.sleep(0.02)


@pytest.mark.seed(145)
def test_a_change_that_takes_too_long_is_of_unknown_state(live, monkeypatch):
    client = live.client()
    path = client.a_table()
    hanging(monkeypatch, live, "commit_table")
    reply = client.commit(path, setting(a="1"))
    assert reply.error == (504, "CommitStateUnknownException")
    ended(live)


def test_a_read_that_takes_too_long_is_unavailable(live, monkeypatch):
    client = live.client()
    path = client.a_table()
    hanging(monkeypatch, live, "load_table")
    assert client.get(path).error == (503, "ServiceUnavailableException")
    ended(live)


def test_too_much_in_flight_is_refused_before_any_effect(live, monkeypatch):
    client = live.client()
    monkeypatch.setattr(live.app, "_in_flight_max", 0)
    reply = client.post("/namespaces", {"namespace": ["too-busy"]})
    assert reply.error == (429, "TooManyRequestsException")
    assert reply.headers["retry-after"] == "1"
    monkeypatch.undo()
    assert not exists(live, "too-busy")


# -- whole heads and bodies --------------------------------------------------------------------------------------------


def test_a_request_that_breaks_off_is_never_run(live):
    head, body = creation("broken-off")
    for cut in (len(head) - 1, len(head), len(head) + 1, len(head) + len(body) - 1):
        with socket.create_connection(("127.0.0.1", live.port)) as connection:
            connection.sendall((head + body)[:cut])
    client = live.client()
    path = client.a_table()
    delete = b"DELETE /iceberg/v1/lake%s HTTP/1.1\r\n" % path.encode() + HOST + b"\r\n"
    for cut in range(len(delete)):
        with socket.create_connection(("127.0.0.1", live.port)) as connection:
            connection.sendall(delete[:cut])
    time.sleep(0.1)
    assert not exists(live, "broken-off")
    assert client.head(path).status == 204


def test_a_request_arrives_in_any_pieces(live):
    head, body = creation("in-pieces", b"Connection: close")
    request = head + body
    said = talk(live.port, *[request[n : n + 7] for n in range(0, len(request), 7)], pause_s=0.001)
    assert status_of(said) == 200
    assert exists(live, "in-pieces")


def test_a_chunked_body_is_whole_with_its_last_chunk(live):
    head = b"POST /iceberg/v1/lake/namespaces HTTP/1.1\r\nConnection: close\r\n" + HOST
    head += b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    said = talk(live.port, head + b'c\r\n{"namespace"\r\n', b'd\r\n:["chunked"]}\r\n', b"0\r\n\r\n", pause_s=0.02)
    assert status_of(said) == 400 or exists(live, "chunked")
    said = talk(live.port, head + b'c\r\n{"namespace"\r\n', b'e\r\n:["chunkedx"]}\r\n', b"0\r\n\r\n", pause_s=0.02)
    assert status_of(said) == 200
    assert exists(live, "chunkedx")


@pytest.mark.parametrize(
    "request_",
    [
        b"NONSENSE\r\n\r\n",
        b"GET /health\r\n\r\n",
        b"GET /health HTTP/9.9\r\n" + HOST + b"\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /health HTTP/1.1\r\n" + HOST + b"Bad Name: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\n" + HOST + b"X: a\x00b\r\n\r\n",
        b"POST /iceberg/v1/lake/namespaces HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: -5\r\n\r\n",
        b"POST /x HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused_and_the_connection_ends(live, request_):
    said = talk(live.port, request_)
    assert status_of(said) == 400
    assert b"connection: close" in said
    assert b'"type":"BadRequestException"' in said


def test_nothing_runs_behind_a_malformed_head(live):
    head, body = creation("behind-malformed")
    said = talk(live.port, b"GET /health HTTP/1.1\r\n" + HOST + b"Bad Name: x\r\n\r\n" + head + body)
    assert said.count(b"HTTP/1.1 ") == 1
    assert not exists(live, "behind-malformed")


def test_what_came_before_a_malformed_head_is_answered_first(live):
    head, body = creation("before-malformed")
    said = talk(live.port, head + body + b"NONSENSE\r\n\r\n")
    assert [int(part[:3]) for part in said.split(b"HTTP/1.1 ")[1:]] == [200, 400]
    assert exists(live, "before-malformed")


@pytest.mark.parametrize("target", [b"*", b"http://127.0.0.1/health", b"/\xc3\xa9", b"/iceberg/v1/lake/namespaces/%zz"])
def test_a_target_is_a_path(live, target):
    said = talk(live.port, b"GET %s HTTP/1.1\r\n" % target + HOST + b"Connection: close\r\n\r\n")
    assert status_of(said) in (400, 404)


# -- order and reuse ---------------------------------------------------------------------------------------------------


def test_requests_sent_at_once_are_answered_in_order(live):
    client = live.client()
    path = client.a_table().encode()
    load = b"GET /iceberg/v1/lake%s HTTP/1.1\r\n" % path + HOST
    commit_body = b'{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"1"}}]}'
    commit = b"POST /iceberg/v1/lake%s HTTP/1.1\r\n" % path + HOST
    commit += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(commit_body) + commit_body
    pieces = [commit if n % 3 == 0 else load + b"X-Request-Id: r%d\r\n\r\n" % n for n in range(30)]
    pieces.append(HEALTH + b"Connection: close\r\nX-Request-Id: last\r\n\r\n")
    said = talk(live.port, b"".join(pieces))
    assert said.count(b"HTTP/1.1 200") == 31
    ids = [part.split(b"\r\n")[0] for part in said.split(b"x-request-id: ")[1:]]
    assert [id for id in ids if id.startswith(b"r")] == [b"r%d" % n for n in range(30) if n % 3]
    assert ids[-1] == b"last"


def test_a_connection_serves_many_requests_until_asked_to_close(live):
    with socket.create_connection(("127.0.0.1", live.port), timeout=5) as connection:
        for _ in range(3):
            connection.sendall(HEALTH + b"\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(HEALTH + b"Connection: close\r\n\r\n")
        assert heard(connection).startswith(b"HTTP/1.1 200")


def test_http_1_0_is_answered_and_closed(live):
    said = talk(live.port, b"GET /health HTTP/1.0\r\n" + HOST + b"\r\n")
    assert status_of(said) == 200
    assert b"connection: close" in said


@pytest.mark.parametrize("offer", [b"TLS/1.2", b"h2c", b"websocket"])
def test_an_offer_to_upgrade_is_passed_over(live, offer):
    upgrade = b"Connection: Upgrade\r\nUpgrade: %s\r\n" % offer
    head, body = creation(
        f"upgrade-{offer.decode().lower().replace('/', '-')}", b"Connection: Upgrade", b"Upgrade: " + offer
    )
    last = HEALTH + b"Connection: close\r\n\r\n"
    said = talk(live.port, HEALTH + upgrade + b"\r\n" + HEALTH + upgrade + b"\r\n" + head + body + last)
    assert said.count(b"HTTP/1.1 200") == 4


def test_a_client_that_waits_to_be_told_to_continue_is_told(live):
    head, body = creation("continued", b"Expect: 100-continue", b"Connection: close")
    with socket.create_connection(("127.0.0.1", live.port), timeout=5) as connection:
        connection.sendall(head)
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert heard(connection).startswith(b"HTTP/1.1 200")


def test_a_client_that_closes_its_side_still_gets_its_answer(live):
    head, body = creation("half-closed")
    with socket.create_connection(("127.0.0.1", live.port), timeout=5) as connection:
        connection.sendall(head + body)
        connection.shutdown(socket.SHUT_WR)
        assert heard(connection).startswith(b"HTTP/1.1 200")


def test_many_connections_at_once_are_all_answered(live):
    client = live.client()
    path = client.a_table()
    statuses: list[int] = []

    def work(number):
        statuses.extend(client.get(path).status for _ in range(5))
        statuses.append(client.post("/namespaces", {"namespace": [f"many-{number}"]}).status)
        statuses.append(client.post(f"/namespaces/many-{number}/tables", {"name": "t", "schema": SCHEMA}).status)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert statuses == [200] * (16 * 7)
