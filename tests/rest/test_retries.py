"""A retry meets its first try: still running, broken off, or done and no longer to be shown."""

import threading
import time
from pathlib import Path

import pytest

from frazil import effects, limits
from frazil.catalog.files import Files
from frazil.catalog.pointers import Pointers
from frazil.errors import Unavailable
from tests.rest.live import Reply, a_key, setting


@pytest.fixture
def slow_moves(monkeypatch):
    """Every change of a pointer takes a while from now on."""

    def slow(seconds):
        move = Pointers.move

        async def moved(*given):
            await effects.SystemClock().sleep(int(seconds * 1000))
            return await move(*given)

        monkeypatch.setattr(Pointers, "move", moved)

    return slow


@pytest.fixture
def two(start):
    """Clients of two servers on one directory: a retry may come to either."""
    with start() as one, start() as other:
        yield one.client(), other.client()


def at_once(*asks):
    """The replies to requests that are sent a moment after each other."""
    replies: dict[int, Reply] = {}
    threads = []
    for number, ask in enumerate(asks):
        thread = threading.Thread(target=lambda number=number, ask=ask: replies.__setitem__(number, ask()))
        thread.start()
        threads.append(thread)
        time.sleep(0.15)
    for thread in threads:
        thread.join(30)
    return [replies[number] for number in range(len(asks))]


@pytest.mark.seed(268)
@pytest.mark.parametrize("where", [0, 1], ids=["same server", "another server"])
def test_a_retry_while_the_first_still_runs_waits_for_its_answer(two, slow_moves, where):
    path, key = two[0].a_table(), a_key()
    slow_moves(0.6)
    asks = [lambda each=each: each.commit(path, setting(a="1"), idempotency_key=key) for each in (two[0], two[where])]
    first, second = at_once(*asks)
    assert first.status == 200
    assert (second.status, second.body) == (first.status, first.body)


@pytest.mark.seed(142, 269)
def test_a_retry_that_has_waited_long_enough_is_told_to_come_back(two, slow_moves, monkeypatch):
    path, key = two[0].a_table(), a_key()
    monkeypatch.setattr(limits, "wait_ms", 300)
    slow_moves(1.5)
    first, second = at_once(*[lambda each=each: each.commit(path, setting(a="1"), idempotency_key=key) for each in two])
    assert first.status == 200
    assert second.error == (503, "ServiceUnavailableException")
    assert second.headers["retry-after"] == "1"
    assert two[1].commit(path, setting(a="1"), idempotency_key=key).body == first.body


@pytest.mark.seed(260)
def test_a_fault_is_not_kept_so_the_retry_is_run(client, monkeypatch):
    path, key = client.a_table(), a_key()

    async def unavailable(*_):
        raise Unavailable("the object store did not answer; nothing was applied")

    with monkeypatch.context() as patch:
        patch.setattr(Files, "write", unavailable)
        assert client.commit(path, setting(a="1"), idempotency_key=key).error == (503, "ServiceUnavailableException")
    assert client.commit(path, setting(a="1"), idempotency_key=key).status == 200
    assert client.get(path).json["metadata"]["properties"] == {"a": "1"}


@pytest.mark.seed(264)
def test_an_answer_that_can_no_longer_be_given_is_a_fault_and_never_a_second_run(start, tmp_path):
    with start() as live:
        client = live.client()
        path, key = client.a_table(), a_key()
        first = client.commit(path, setting(a="1"), idempotency_key=key)
        now = client.commit(path, setting(a="2"))
        live.app.site.catalog.context.files._cache.clear()
        Path(first.json["metadata-location"].removeprefix("file://")).unlink()
        reply = client.commit(path, setting(a="1"), idempotency_key=key)
        assert reply.error == (500, "InternalServerError")
        assert reply.json["error"]["subtype"] == "idempotency_replay_failed"
        assert client.get(path).body == now.body


def test_replays_are_one_commit(client):
    path, key = client.a_table(), a_key()
    replies = at_once(*[lambda: client.commit(path, setting(a="1"), idempotency_key=key)] * 4)
    assert len({reply.body for reply in replies}) == 1
    assert len(client.get(path).json["metadata"]["metadata-log"]) == 1
