"""How a table goes and moves: gone for every reader at once, fenced before the answer, completed by whoever comes."""

from __future__ import annotations

import asyncio

import pytest

from frazil.errors import CommitStateUnknown
from frazil.names import TableName
from frazil.store import keys
from tests.catalog.builders import (
    GRANT,
    NS,
    T,
    U,
    a_namespace,
    a_table,
    by,
    commit,
    drop,
    load,
    properties,
    rename,
    status,
    tables,
    told,
)


@pytest.fixture
async def table(lake, catalog, second):
    made = await a_table(catalog)
    await load(second)
    await lake.settled()
    return made.metadata.uuid


async def half_dropped(lake, catalog, key=None, *, purge=False):
    """A drop whose server died between the name and the tombstone."""
    gate = lake.store.hold("swap", "iceberg_pointers")
    dead = asyncio.create_task(drop(catalog, key=key, purge=purge))
    await gate.reached.wait()
    dead.cancel()
    await asyncio.gather(dead, return_exceptions=True)


@pytest.mark.seed(34, 37, 38)
async def test_a_dropped_table_is_gone_for_everybody_and_its_files_stay(lake, catalog, second, table):
    before = set(await lake.names("tables/"))
    await drop(catalog)
    for process in (catalog, second):
        assert (await told(load(process)))[:2] == (404, "NoSuchTableException")
        assert (await told(commit(process, properties(a="b"))))[:2] == (404, "NoSuchTableException")
    assert before <= set(await lake.names("tables/"))
    pointer = await lake.pointer(table)
    assert (pointer.state, pointer.purge_requested) == ("tombstone", False)


async def test_a_purge_is_recorded_and_deletes_nothing_yet(lake, catalog, table):
    before = set(await lake.names("tables/"))
    await drop(catalog, purge=True)
    assert (await lake.pointer(table)).purge_requested is True
    assert set(await lake.names("tables/")) == before


async def test_a_purge_whose_server_died_is_recorded_by_whoever_completes_it(lake, catalog, second, table):
    await half_dropped(lake, catalog, purge=True)
    await second.sweep()
    assert (await lake.pointer(table)).purge_requested is True


async def test_a_tombstone_keeps_the_producer(lake, catalog, table):
    before = await lake.pointer(table)
    await drop(catalog)
    after = await lake.pointer(table)
    assert bytes(after.producer) == bytes(before.producer)
    assert (after.commit_number, after.current_metadata_location) == (
        before.commit_number,
        before.current_metadata_location,
    )


@pytest.mark.seed(43)
async def test_a_half_dropped_table_is_gone_already_and_its_step_is_owed(lake, catalog, second, table):
    await half_dropped(lake, catalog)
    assert await tables(second) == []
    assert (await told(load(second)))[0] == 404
    assert [owed.uuid for owed in (await lake.head()).owed] == [table]
    assert (await lake.pointer(table)).state == "live"


async def test_a_sweep_completes_what_is_owed_and_an_idle_one_does_nothing(lake, catalog, second, table):
    await half_dropped(lake, catalog)
    assert await second.sweep() == 1
    assert (await lake.pointer(table)).state == "tombstone"
    lake.store.calls.clear()
    assert await second.sweep() == 0
    assert await second.sweep() == 0
    assert [verb for verb, _ in lake.store.calls] == ["get_if_changed"] * 2
    await a_namespace(second, "next")
    assert (await lake.head()).owed == []


async def test_a_drops_own_process_never_sweeps_it_again(lake, catalog, table):
    await drop(catalog)
    lake.store.calls.clear()
    assert await catalog.sweep() == 0
    assert len(lake.store.calls) == 1


async def test_sweeps_of_many_processes_bury_once(lake, catalog, second, table):
    await half_dropped(lake, catalog)
    await asyncio.gather(*(process.sweep() for process in (second, await lake.opened(), await lake.opened())))
    assert (await lake.pointer(table)).fences == 1


async def test_a_step_that_cannot_be_completed_does_not_hold_up_the_others(lake, catalog, second, table):
    """A pointer that this version cannot read, say: the other tables' commits in flight are fenced all the same."""
    await a_table(catalog, U)
    other = (await load(catalog, U)).entry.uuid
    await half_dropped(lake, catalog)
    gate = lake.store.hold("swap", "iceberg_pointers")
    dead = asyncio.create_task(drop(catalog, U))
    await gate.reached.wait()
    dead.cancel()
    await asyncio.gather(dead, return_exceptions=True)
    found = await lake.store.memory.get(keys.pointer(table))
    newer = found.body.replace(b'"version":1', b'"version":9', 1)
    await lake.store.memory.swap(keys.pointer(table), newer, found.version)
    await told(second.sweep())
    assert (await lake.pointer(other)).state == "tombstone"


async def test_a_replay_of_a_drop_first_completes_it(lake, catalog, second, table):
    key = lake.key()
    await half_dropped(lake, catalog, key)
    await drop(second, key=key)
    assert (await lake.pointer(table)).state == "tombstone"


async def test_a_drop_whose_tombstone_cannot_be_confirmed_is_unknown_and_its_retry_completes_it(
    lake, catalog, second, table
):
    key = lake.key()
    lake.store.refuse_writes("iceberg_pointers")
    with pytest.raises(CommitStateUnknown):
        await drop(catalog, key=key)
    lake.store.heal()
    await drop(second, key=key)
    assert (await lake.pointer(table)).state == "tombstone"


async def test_a_drop_beside_commits_leaves_a_tombstone_and_every_acknowledged_commit_in_history(
    lake, catalog, second, table
):
    commits = [told(commit(second, properties(**{f"p{n}": "x"}), key=lake.key())) for n in range(10)]
    answers = await asyncio.gather(*commits, told(drop(catalog)))
    assert status(answers[-1]) == 200
    await lake.settled()
    pointer = await lake.pointer(table)
    acknowledged = {answer for answer in answers[:-1] if status(answer) == 200}
    assert pointer.state == "tombstone"
    assert pointer.commit_number == len(acknowledged)
    assert {answer[0] for answer in answers[:-1] if status(answer) != 200} <= {404, 503}
    found = {receipt["metadata_location"] for receipt in await lake.receipts()}
    assert acknowledged <= found


# -- rename ------------------------------------------------------------------------------------------------------------


@pytest.mark.seed(16)
async def test_a_rename_changes_the_name_and_nothing_else_and_costs_one_write(lake, catalog, second, table):
    before, pointer = await load(catalog), await lake.body(keys.pointer(table))
    lake.store.calls.clear()
    await rename(catalog, T, U)
    assert [verb for verb, _ in lake.store.calls if verb in {"swap", "create"}] == ["swap"]
    after = await load(second, U)
    assert (after.entry.uuid, after.location) == (before.entry.uuid, before.location)
    assert await lake.body(keys.pointer(table)) == pointer
    assert (await told(load(second)))[0] == 404


async def test_a_rename_moves_across_namespaces_and_keeps_tags(catalog, second, table):
    await a_namespace(catalog, "other", a="b")
    await catalog.set_tags(GRANT, T, {"team": "x"}, by())
    await rename(catalog, T, TableName(("other",), "t"))
    assert (await second.table_entry(GRANT, TableName(("other",), "t"))).tags == {"team": "x"}
    assert await tables(second) == []


async def test_a_rename_is_refused_where_it_cannot_be(catalog, table):
    await a_table(catalog, U)
    assert (await told(rename(catalog, T, U)))[:2] == (409, "AlreadyExistsException")
    assert (await told(rename(catalog, T, T)))[:2] == (409, "AlreadyExistsException")
    assert (await told(rename(catalog, TableName(NS, "x"), U)))[:2] == (404, "NoSuchTableException")
    assert (await told(rename(catalog, T, TableName(("x",), "t"))))[:2] == (404, "NoSuchNamespaceException")
    assert (await told(rename(catalog, T, TableName(("system",), "t"))))[0] == 400
    assert await tables(catalog) == ["t", "u"]


async def test_of_two_renames_to_one_name_one_succeeds(catalog, second, table):
    await a_table(catalog, U)
    target = TableName(NS, "w")
    answers = await asyncio.gather(told(rename(catalog, T, target)), told(rename(second, U, target)))
    assert sorted(map(status, answers)) == [200, 409]


async def test_two_tables_swap_names_over_a_third(lake, catalog, second, table):
    await a_table(catalog, U)
    first, other = (await load(catalog)).entry.uuid, (await load(catalog, U)).entry.uuid
    for source, target in ((T, TableName(NS, "x")), (U, T), (TableName(NS, "x"), U)):
        await rename(catalog, source, target)
    for process in (catalog, second, await lake.opened()):
        assert (await load(process)).entry.uuid == other
        assert (await load(process, U)).entry.uuid == first


async def test_a_drop_tells_the_location_of_the_last_commit_whoever_made_it(lake, catalog, second):
    """What was asked before the drop may be old by then; what brings the table back must not be."""
    await a_table(catalog)
    await load(catalog)
    last = (await commit(second, properties(a="b"))).location
    key = lake.key()
    assert await catalog.drop_table(GRANT, T, False, by(key)) == last
    assert await second.drop_table(GRANT, T, False, by(key)) == last
