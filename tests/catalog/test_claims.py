"""Claims: one key, one commit, whoever tries it, and however often its owner dies."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from frazil import limits
from frazil.catalog import claims
from frazil.errors import Unavailable
from frazil.store import keys
from tests.catalog.builders import (
    EMPTY,
    a_table,
    an_append,
    commit,
    document_of,
    drop,
    load,
    properties,
    status,
    told,
)


@pytest.fixture
async def table(lake, catalog, second):
    await a_table(catalog)
    await load(second)
    await lake.settled()


async def marker(lake, key):
    return await lake.document(keys.marker(key))


async def a_dead_commit(lake, catalog, key, *updates):
    """A commit whose server died just before it moved the pointer."""
    gate = lake.store.hold("swap", "iceberg_pointers")
    dead = asyncio.create_task(commit(catalog, *(updates or an_append(1)), key=key))
    await gate.reached.wait()
    dead.cancel()
    await asyncio.gather(dead, return_exceptions=True)


@pytest.mark.seed(62, 276)
async def test_a_claim_is_there_before_the_pointer_is_touched(lake, catalog, table):
    key = lake.key()
    await a_dead_commit(lake, catalog, key)
    claim = await marker(lake, key)
    assert claim["status"] == claims.IN_PROGRESS
    assert claim["target"]["base_metadata_location"] == (await load(catalog)).location


@pytest.mark.seed(67, 76, 276, 278)
async def test_a_dead_claim_is_taken_over_after_one_lease_of_the_observers_own_time(lake, catalog, second, table):
    """The wall clocks differ by minutes, and play no part."""
    key = lake.key()
    await a_dead_commit(lake, catalog, key)
    observer = await lake.opened(clock=lake.clock.skewed(-240_000))
    before = lake.clock.mark()
    await commit(observer, *an_append(1), key=key)
    took = lake.clock.mark() - before
    assert limits.lease_ms <= took < limits.wait_ms
    claim = await marker(lake, key)
    assert claim["attempt"] == 2


@pytest.mark.seed(67)
async def test_a_takeover_has_an_event_id_and_a_location_of_its_own(lake, catalog, second, table):
    key = lake.key()
    await a_dead_commit(lake, catalog, key)
    dead = (await marker(lake, key))["target"]
    await commit(second, *an_append(1), key=key)
    taken = (await marker(lake, key))["target"]
    assert taken["event_id"] != dead["event_id"]
    assert taken["metadata_location"] != dead["metadata_location"]
    assert keys.key_hash(key) in taken["metadata_location"]


async def test_a_takeover_fences_before_it_claims(lake, catalog, second, table):
    """Else the first, only asleep, could still land beside it."""
    key = lake.key()
    await a_dead_commit(lake, catalog, key)
    lake.store.calls.clear()
    await commit(second, *an_append(1), key=key)
    writes = [(verb, "pointer" if "pointers" in at else "marker") for verb, at in lake.store.calls if verb == "swap"]
    assert writes[:3] == [("swap", "pointer"), ("swap", "marker"), ("swap", "pointer")]
    pointer = await lake.pointer((await load(second)).entry.uuid)
    assert (pointer.fences, pointer.commit_number) == (1, 1)


async def test_a_pointer_that_moved_on_needs_no_fence(lake, catalog, second, table):
    key = lake.key()
    await a_dead_commit(lake, catalog, key)
    await commit(second, properties(a="b"))
    await commit(second, *an_append(1), key=key)
    assert (await lake.pointer((await load(second)).entry.uuid)).fences == 0


@pytest.mark.seed(68)
async def test_of_many_that_take_over_one_wins_and_all_give_its_answer(lake, catalog, table):
    key = lake.key()
    await a_dead_commit(lake, catalog, key)
    processes = [await lake.opened() for _ in range(4)]
    answers = await asyncio.gather(
        *(told(commit(process, *an_append(1), requirements=[], key=key)) for process in processes)
    )
    given = {answer for answer in answers if status(answer) == 200}
    assert len(given) == 1
    assert all(status(answer) in {200, 503} for answer in answers)
    assert len((await document_of(catalog))["snapshots"]) == 1


@pytest.mark.seed(69, 142, 268, 269)
async def test_a_duplicate_of_what_still_runs_waits_and_then_is_told_to_come_again(lake, catalog, second, table):
    """Its owner is alive: the claim changes before every lease ends."""
    key = lake.key()
    gate = lake.store.hold("swap", "iceberg_pointers")
    running = asyncio.create_task(told(commit(catalog, *an_append(1), key=key)))
    await gate.reached.wait()

    async def still_alive():
        at = keys.marker(key)
        found = await lake.store.memory.get(at)
        renewed = {**msgspec.json.decode(found.body), "stamp": lake.ids.stamp()}
        await lake.store.memory.swap(at, msgspec.json.encode(renewed), found.version)

    lake.clock.meanwhile = still_alive
    before = lake.clock.mark()
    with pytest.raises(Unavailable) as caught:
        await commit(second, *an_append(1), key=key)
    lake.clock.meanwhile = None
    assert caught.value.status == 503
    assert caught.value.retry_after_s
    assert limits.wait_ms <= lake.clock.mark() - before < limits.wait_ms + limits.lease_ms
    gate.open()
    first = await running
    await lake.settled()
    assert await told(commit(second, *an_append(1), key=key)) == first


@pytest.mark.seed(268)
async def test_a_duplicate_of_what_ends_soon_is_given_its_answer(lake, catalog, second, table):
    key = lake.key()
    gate = lake.store.hold("swap", "iceberg_pointers")
    first = asyncio.create_task(told(commit(catalog, *an_append(1), requirements=[EMPTY], key=key)))
    await gate.reached.wait()

    async def ends():
        gate.open()

    lake.clock.meanwhile = ends
    again = await told(commit(second, *an_append(1), requirements=[EMPTY], key=key))
    assert again == await first
    assert status(again) == 200


@pytest.mark.seed(70, 263)
async def test_another_payload_while_the_first_is_in_progress_is_503_and_409_after(lake, catalog, second, table):
    key = lake.key()
    gate = lake.store.hold("swap", "iceberg_pointers")
    first = asyncio.create_task(told(commit(catalog, properties(a="b"), key=key)))
    await gate.reached.wait()
    assert (await told(commit(second, properties(a="c"), key=key)))[0] == 503
    gate.open()
    await first
    await lake.settled()
    assert (await told(commit(second, properties(a="c"), key=key)))[0] == 409


async def test_a_claim_that_was_given_up_is_taken_without_waiting_for_its_lease(lake, catalog, second, table):
    key = lake.key()
    lake.store.refuse_writes("/metadata/")
    assert (await told(commit(catalog, *an_append(1), key=key)))[0] == 503
    lake.store.heal()
    assert (await marker(lake, key))["status"] == claims.RELEASED
    before = lake.clock.mark()
    await commit(second, *an_append(1), key=key)
    assert lake.clock.mark() - before < limits.poll_ms


async def test_a_failure_is_in_the_store_before_it_is_told(lake, catalog, second, table):
    key = lake.key()
    gate = lake.store.hold("create", "iceberg_idempotency")
    refused = asyncio.create_task(told(commit(catalog, requirements=[{**EMPTY, "snapshot-id": 9}], key=key)))
    await gate.reached.wait()
    for _ in range(20):
        await asyncio.sleep(0)
    assert not refused.done()
    gate.open()
    assert (await refused)[0] == 409
    claim = await marker(lake, key)
    assert (claim["status"], claim["error_http_status"]) == (claims.FAILED, 409)


@pytest.mark.seed(75, 142)
async def test_a_failure_that_cannot_be_stored_is_not_told(lake, catalog, second, table):
    key = lake.key()
    lake.store.silence("iceberg_idempotency")
    answer = await told(commit(catalog, requirements=[{**EMPTY, "snapshot-id": 9}], key=key))
    assert answer[0] == 503


@pytest.mark.seed(71, 72, 75, 131)
async def test_a_success_is_answered_first_and_finalised_after(lake, catalog, second, table):
    key = lake.key()
    gate = lake.store.hold("swap", "iceberg_idempotency")
    await commit(catalog, *an_append(1), key=key)
    await gate.reached.wait()
    assert (await marker(lake, key))["status"] == claims.IN_PROGRESS
    gate.open()
    await lake.settled()
    done = await marker(lake, key)
    assert done["status"] == claims.COMMITTED
    assert done["committed_at"]


@pytest.mark.seed(66, 131)
async def test_whoever_finds_an_unfinished_success_finishes_it(lake, catalog, second, table):
    key = lake.key()
    lake.store.silence("iceberg_idempotency")
    answer = await told(commit(catalog, *an_append(1), key=key))
    assert answer[0] == 503
    lake.store.heal()
    gate = lake.store.hold("swap", "iceberg_idempotency")
    first = await told(commit(catalog, *an_append(1), key=key))
    await gate.reached.wait()
    assert await told(commit(second, *an_append(1), key=key)) == first
    gate.open()
    await lake.settled()
    assert (await marker(lake, key))["status"] == claims.COMMITTED


async def test_a_commit_that_changes_nothing_writes_nothing_and_is_replayed_as_it_was(lake, catalog, second, table):
    key = lake.key()
    standing = (await load(catalog)).location
    assert (await commit(catalog, key=key)).location == standing
    await commit(catalog, properties(a="b"))
    await lake.settled()
    assert (await commit(second, key=key)).location == standing
    assert (await lake.pointer((await load(catalog)).entry.uuid)).commit_number == 1


async def test_a_rebase_is_a_claim_of_its_own(lake, catalog, second, table):
    """The marker says beforehand which version the pointer's CAS will name."""
    key = lake.key()
    gate = lake.store.hold("swap", "iceberg_pointers")
    slow = asyncio.create_task(told(commit(catalog, properties(a="b"), key=key)))
    await gate.reached.wait()
    other = (await commit(second, properties(c="d"))).location
    gate.open()
    made = await slow
    await lake.settled()
    claim = await marker(lake, key)
    assert claim["attempt"] == 2
    assert claim["target"]["base_metadata_location"] == other
    assert claim["target"]["metadata_location"] == made
    assert (await load(second)).metadata.properties == {"a": "b", "c": "d"}


@pytest.mark.seed(67, 73, 144)
@pytest.mark.parametrize("left", ["given up", "dead"])
async def test_a_key_whose_table_went_while_its_first_try_failed_gets_a_verdict(lake, catalog, second, table, left):
    """Not 503 for ever: nobody else is working on it."""
    key = lake.key()
    if left == "dead":
        await a_dead_commit(lake, catalog, key)
    else:
        lake.store.refuse_writes("/metadata/")
        assert (await told(commit(catalog, *an_append(1), key=key)))[0] == 503
        lake.store.heal()
    await drop(catalog)
    answers = [
        await told(commit(process, *an_append(1), key=key))
        for process in (await lake.opened(), await lake.opened(), catalog)
    ]
    assert answers[-1][:2] == (404, "NoSuchTableException")
    assert answers[0] == answers[-1]
