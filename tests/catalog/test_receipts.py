"""The record of every commit: chained, numbered, filed by the metadata's day, and never missing."""

from __future__ import annotations

import asyncio

import pytest

from frazil.errors import Unavailable
from frazil.grants import Grant
from frazil.store import keys
from tests.catalog.builders import (
    NOW_MS,
    ROOT,
    T,
    a_table,
    an_append,
    by,
    commit,
    document_of,
    drop,
    load,
    properties,
    register,
    status,
    told,
)

DAY_MS = 24 * 3_600_000


@pytest.mark.seed(5, 12, 94, 95, 103, 119)
async def test_receipts_are_a_chain_from_the_last_commit_to_the_first(lake, catalog, second):
    locations = [(await a_table(catalog)).location]
    for number, process in enumerate((catalog, second, catalog, catalog, second)):
        locations.append((await commit(process, properties(n=str(number)))).location)
        await lake.settled()
    pointer = await lake.pointer((await load(catalog)).entry.uuid)
    at: str | None = keys.committed_receipt(NOW_MS, keys.commit_key(pointer.current_metadata_location))
    walked = []
    while at is not None:
        receipt = await lake.document(at)
        walked.append(receipt)
        at = receipt["previous"]
    assert [receipt["metadata_location"] for receipt in walked] == locations[::-1]
    assert [receipt["commit_number"] for receipt in walked] == [5, 4, 3, 2, 1, 0]
    assert len({receipt["event_id"] for receipt in walked}) == 6


@pytest.mark.seed(103, 107, 111)
async def test_a_receipt_holds_what_history_will_ask(lake, catalog):
    await a_table(catalog)
    await commit(catalog, *an_append(1), grant=Grant(principal="ann", client="spark/4"))
    await lake.settled()
    receipt = (await lake.receipts())[-1]
    assert receipt["snapshot_id"] == 1
    assert receipt["operation"] == "append"
    assert receipt["summary"] == {"operation": "append", "added-records": "3"}
    assert receipt["refs"] == {"main": {"snapshot-id": 1, "type": "branch"}}
    assert (receipt["schema_id"], receipt["format_version"], receipt["transaction_id"]) == (0, 2, None)
    assert receipt["source"] == {"type": "IcebergRest", "client_info": "spark/4", "principal": "ann"}
    assert receipt["commit_key"] == keys.commit_key(receipt["metadata_location"])


@pytest.mark.seed(150, 151)
async def test_a_commit_of_the_management_api_says_so(lake, catalog):
    await a_table(catalog)
    mutation = by(lake.key(), {})
    admin = type(mutation)(mutation.body, mutation.key, admin=True)
    await catalog.commit_table(Grant(principal="ann"), T, [], [properties(comment="x")], admin)
    await lake.settled()
    assert (await lake.receipts())[-1]["source"] == {"type": "AdminApi", "user_id": "ann"}


@pytest.mark.seed(93, 99, 102)
async def test_a_keyless_commit_leaves_a_pending_receipt_a_keyed_one_only_its_claim(lake, catalog):
    await a_table(catalog)
    base = (await load(catalog)).location
    made = await commit(catalog, *an_append(1))
    await commit(catalog, properties(a="b"), key=lake.key())
    await lake.settled()
    (pending,) = await lake.receipts("pending")
    assert pending["metadata_location"] == made.location
    assert pending["base_metadata_location"] == base
    assert pending["snapshot_id"] == 1
    assert pending["commit_key"] == keys.commit_key(made.location)
    committed = {receipt["event_id"] for receipt in await lake.receipts()}
    assert pending["event_id"] in committed


@pytest.mark.seed(99, 126)
async def test_a_pending_receipt_is_best_effort(lake, catalog):
    await a_table(catalog)
    lake.store.silence("/pending/")
    await commit(catalog, properties(a="b"))


@pytest.mark.seed(93)
@pytest.mark.parametrize("key", [True, False])
async def test_a_receipt_lies_on_the_day_of_the_metadata_not_of_the_wall(lake, catalog, key):
    """A snapshot from tomorrow's clock: the metadata is of tomorrow, and so is its receipt."""
    await a_table(catalog)
    await commit(catalog, *an_append(1, at_ms=NOW_MS + DAY_MS), key=lake.key() if key else None)
    await lake.settled()
    committed = [name.split("/")[2] for name in await lake.names("_catalog/events/") if "/committed/" in name]
    assert sorted(committed) == ["2026-01-01", "2026-01-02"]


@pytest.mark.parametrize("at_ms", [253_402_300_800_000, 10**15, 2**62])
@pytest.mark.parametrize("keyed", [True, False])
async def test_a_snapshot_from_beyond_the_calendar_does_not_make_a_table_unwritable(lake, catalog, at_ms, keyed):
    """Microseconds sent for milliseconds, say: refused, or kept; but the next commit works."""
    await a_table(catalog)
    answer = await told(commit(catalog, *an_append(1, at_ms=at_ms), key=lake.key() if keyed else None))
    assert status(answer) in {200, 400}
    await lake.settled()
    await commit(catalog, properties(a="b"), key=lake.key())
    assert not lake.failed


async def test_a_registered_file_from_beyond_the_calendar_does_not_make_a_table_unwritable(lake, catalog):
    await a_table(catalog)
    document = {**await document_of(catalog), "last-updated-ms": 10**15}
    await drop(catalog)
    await lake.put("far.json", document)
    if status(await told(register(catalog, f"{ROOT}/far.json"))) == 200:
        await lake.settled()
        await commit(catalog, properties(a="b"), key=lake.key())
    assert not lake.failed


# -- none is ever missing -------------------------------------------------------------------------------------------


@pytest.mark.seed(94, 130)
async def test_whoever_commits_next_writes_the_receipt_that_a_dead_server_did_not(lake, catalog, second):
    await a_table(catalog)
    await lake.settled()
    dead = lake.store.hold("create", "/committed/")
    lost = (await commit(catalog, *an_append(1), key=lake.key())).location
    await dead.reached.wait()
    await commit(second, properties(a="b"))
    assert lost in {receipt["metadata_location"] for receipt in await lake.receipts()}
    dead.open()
    await lake.settled()
    assert len(await lake.receipts()) == 3


async def test_a_commit_whose_predecessors_receipt_cannot_be_confirmed_is_not_applied(lake, catalog, second):
    await a_table(catalog)
    await lake.settled()
    dead = lake.store.hold("create", "/committed/")
    standing = (await commit(catalog, properties(a="b"), key=lake.key())).location
    await dead.reached.wait()
    lake.store.silence("/committed/")
    with pytest.raises(Unavailable):
        await commit(second, properties(c="d"), key=lake.key())
    assert (await load(second)).location == standing
    lake.store.heal()
    dead.open()
    await commit(second, properties(c="d"), key=lake.key())


async def test_the_owner_and_whoever_settles_write_the_same_bytes(lake, catalog, second):
    await a_table(catalog)
    await lake.settled()
    owner = lake.store.hold("create", "/committed/")
    made = await commit(catalog, *an_append(1), key=lake.key())
    await owner.reached.wait()
    await commit(second, properties(a="b"))
    settled = await lake.body(keys.committed_receipt(NOW_MS, keys.commit_key(made.location)))
    uuid = (await load(catalog)).entry.uuid
    bodies = []
    create = lake.store.memory.create

    async def noting(key, body):
        bodies.append((key, body))
        return await create(key, body)

    lake.store.memory.create = noting
    owner.open()
    await lake.settled()
    assert (keys.committed_receipt(NOW_MS, keys.commit_key(made.location)), settled) in bodies
    assert (await lake.pointer(uuid)).commit_number == 2


async def test_two_commits_of_a_process_that_settle_one_receipt_at_once_do_not_get_in_each_others_way(
    lake, catalog, second
):
    """A hot table on two servers: the other one's receipt is on its way, and two commits here go and write it."""
    await a_table(catalog)
    await lake.settled()
    theirs = lake.store.hold("create", "/committed/")
    await commit(catalog, properties(a="b"))
    await theirs.reached.wait()
    await load(second)
    answers = await asyncio.gather(*(told(commit(second, properties(n=str(n)), key=lake.key())) for n in range(3)))
    assert [status(answer) for answer in answers] == [200, 200, 200]


async def test_the_owner_of_a_receipt_and_the_commit_that_settles_it_do_not_get_in_each_others_way(lake, catalog):
    """The next commit asked whether it is there before its owner began to write it, and wrote it first."""

    async def create_and_commit():
        await a_table(catalog)
        return await commit(catalog, properties(a="b"))

    asking = lake.store.hold("get", "/committed/")
    writing = lake.store.hold("create", "/committed/")
    both = asyncio.create_task(told(create_and_commit()))
    await asyncio.wait_for(asking.reached.wait(), 2)
    await asyncio.wait_for(writing.reached.wait(), 2)
    asking.open()
    writing.open()
    assert status(await asyncio.wait_for(both, 2)) == 200
    await lake.settled()
    assert lake.failed == []


# -- over drop and register -----------------------------------------------------------------------------------------


async def test_history_goes_on_over_a_drop_and_a_registration(lake, catalog, second):
    await a_table(catalog)
    kept = (await commit(catalog, properties(a="b"))).location
    await drop(catalog)
    await register(second, kept)
    await commit(second, properties(c="d"))
    await lake.settled()
    receipts = await lake.receipts()
    assert [receipt["commit_number"] for receipt in receipts] == [0, 1, 2, 3]
    assert [receipt["metadata_location"] for receipt in receipts][1:3] == [kept, kept]
    assert receipts[2]["previous_metadata_location"] == kept
    assert receipts[2]["commit_key"] == keys.registered_commit_key(kept, 2)
    assert len({receipt["commit_key"] for receipt in receipts}) == 4


async def test_a_dropped_tables_last_commit_has_its_receipt_before_it_is_registered_again(lake, catalog, second):
    await a_table(catalog)
    await lake.settled()
    dead = lake.store.hold("create", "/committed/")
    last = (await commit(catalog, properties(a="b"), key=lake.key())).location
    await dead.reached.wait()
    await drop(second)
    await register(second, last)
    numbers = [receipt["commit_number"] for receipt in await lake.receipts()]
    assert 1 in numbers
    dead.open()
