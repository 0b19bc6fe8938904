"""Commits: at most once, on the table that the name means, and never a false word about the outcome."""

from __future__ import annotations

import asyncio
import gzip

import pytest

from frazil import limits
from frazil.errors import BadInput, CommitStateUnknown
from frazil.iceberg.metadata import TableMetadata
from frazil.names import TableName
from frazil.store import keys
from tests.catalog.builders import (
    EMPTY,
    NOW_MS,
    NS,
    ROOT,
    T,
    U,
    a_table,
    an_append,
    commit,
    document_of,
    drop,
    load,
    properties,
    rename,
    status,
    told,
)


@pytest.fixture
async def table(lake, catalog, second):
    made = await a_table(catalog)
    await load(second)
    await lake.settled()
    return made


@pytest.mark.seed(10, 35, 40, 119)
@pytest.mark.parametrize("keyed", [True, False])
async def test_of_many_commits_by_two_servers_every_acknowledged_one_is_there_once(lake, catalog, second, table, keyed):
    wanted = [(process, f"{at}-{n}") for n in range(30) for at, process in enumerate((catalog, second))]
    answers = await asyncio.gather(
        *(
            told(commit(process, properties(**{name: "x"}), key=lake.key() if keyed else None))
            for process, name in wanted
        )
    )
    acknowledged = {name for (_, name), answer in zip(wanted, answers, strict=True) if status(answer) == 200}
    assert acknowledged
    assert {status(answer) for answer in answers} <= {200, 503}
    loaded = await load(await lake.opened())
    assert set(loaded.metadata.properties) == acknowledged
    await lake.settled()
    receipts = await lake.receipts()
    assert [receipt["commit_number"] for receipt in receipts] == list(range(len(acknowledged) + 1))
    assert len({receipt["metadata_location"] for receipt in receipts}) == len(receipts)


@pytest.mark.seed(121, 138)
async def test_of_many_appends_that_expect_an_empty_table_one_succeeds(lake, catalog, second, table):
    answers = await asyncio.gather(
        *(
            told(commit(process, *an_append(n + 10 * at + 1), requirements=[EMPTY], key=lake.key()))
            for n in range(8)
            for at, process in enumerate((catalog, second))
        )
    )
    assert sorted(map(status, answers)) == [200] + [409] * 15
    assert {answer[1] for answer in answers if status(answer) == 409} == {"CommitFailedException"}
    assert len((await document_of(catalog))["snapshots"]) == 1


@pytest.mark.seed(1, 251, 268)
async def test_the_same_key_at_once_on_two_servers_is_one_commit(lake, catalog, second, table):
    key = lake.key()
    answers = await asyncio.gather(
        *(told(commit(process, *an_append(1), key=key)) for process in (catalog, second) for _ in range(3))
    )
    assert len({answer for answer in answers if status(answer) == 200}) == 1
    assert {status(answer) for answer in answers} <= {200, 503}
    assert len((await document_of(catalog))["snapshots"]) == 1
    await lake.settled()
    assert len(await lake.receipts()) == 2


async def test_a_cancelled_commit_that_waited_for_its_turn_does_not_keep_it(lake, catalog, table):
    """Whoever is behind it goes on."""
    gate = lake.store.hold("swap", "iceberg_pointers")
    first = asyncio.create_task(told(commit(catalog, properties(a="b"))))
    await gate.reached.wait()
    second = asyncio.create_task(commit(catalog, properties(c="d")))
    third = asyncio.create_task(told(commit(catalog, properties(e="f"))))
    for _ in range(5):
        await asyncio.sleep(0)
    second.cancel()
    gate.open()
    await asyncio.gather(second, return_exceptions=True)
    try:
        assert status(await asyncio.wait_for(first, 2)) == 200
        assert status(await asyncio.wait_for(third, 2)) == 200
    finally:
        third.cancel()


@pytest.mark.seed(124, 125, 395)
async def test_every_attempt_has_a_file_name_of_its_own_that_says_number_and_key(lake, catalog, second, table):
    key = lake.key()
    gate = lake.store.hold("swap", "iceberg_pointers")
    slow = asyncio.create_task(told(commit(catalog, properties(a="b"), key=key)))
    await gate.reached.wait()
    await commit(second, properties(c="d"))
    gate.open()
    await slow
    names = [name.rpartition("/")[2] for name in await lake.names("tables/") if keys.key_hash(key) in name]
    assert [name[:5] for name in names] == ["00001", "00002"]
    assert all(name.endswith(".metadata.json") for name in names)


@pytest.mark.seed(11, 132)
async def test_the_answer_is_the_metadata_at_the_location_it_names(lake, catalog, table):
    made = await commit(catalog, *an_append(1))
    assert await lake.body(made.location.removeprefix(f"{ROOT}/")) == made.metadata.encode()


@pytest.mark.seed(11)
async def test_a_table_that_asks_for_gzip_gets_it_and_is_read_back_by_another_server(lake, catalog, second, table):
    made = await commit(catalog, {"action": "set-properties", "updates": {"write.metadata.compression-codec": "gzip"}})
    assert made.location.endswith(".gz.metadata.json")
    body = await lake.body(made.location.removeprefix(f"{ROOT}/"))
    assert TableMetadata.parse(gzip.decompress(body)).uuid == made.metadata.uuid
    await commit(second, properties(a="b"))
    assert (await load(catalog)).metadata.properties["a"] == "b"


async def test_last_updated_never_goes_back_whatever_the_servers_clocks_say(lake, catalog, table):
    ahead = await lake.opened(clock=lake.clock.skewed(240_000))
    behind = await lake.opened(clock=lake.clock.skewed(-240_000))
    seen = [NOW_MS]
    for process in (ahead, behind, catalog, behind):
        made = await commit(process, properties(n=str(len(seen))))
        seen.append(made.metadata.last_updated_ms)
    assert seen == sorted(seen)


# -- the name --------------------------------------------------------------------------------------------------------


@pytest.mark.seed(116)
async def test_a_commit_goes_to_the_table_that_has_the_name_now(lake, catalog, second, table):
    """The server remembers another one."""
    await a_table(catalog, U)
    await rename(catalog, T, TableName(NS, "old"))
    await rename(catalog, U, T)
    await commit(second, properties(a="b"), key=lake.key())
    assert (await load(catalog)).metadata.properties == {"a": "b"}
    assert (await load(catalog, TableName(NS, "old"))).metadata.properties == {}


@pytest.mark.seed(38, 118, 144)
@pytest.mark.parametrize("keyed", [True, False])
async def test_a_commit_to_a_table_that_was_dropped_is_404_though_the_server_remembers_it(
    lake, catalog, second, table, keyed
):
    await drop(catalog)
    answer = await told(commit(second, properties(a="b"), key=lake.key() if keyed else None))
    assert answer[:2] == (404, "NoSuchTableException")


@pytest.mark.seed(144)
async def test_a_commit_to_a_table_in_a_missing_namespace_is_no_such_table(catalog):
    answer = await told(commit(catalog, properties(a="b"), name=TableName(("nowhere",), "t")))
    assert answer[:2] == (404, "NoSuchTableException")


async def test_a_commit_beside_a_rename_lands_on_the_table_it_meant(lake, catalog, second, table):
    uuid = (await load(catalog)).entry.uuid
    gate = lake.store.hold("swap", "iceberg_pointers")
    late = asyncio.create_task(told(commit(second, properties(a="b"), key=lake.key())))
    await gate.reached.wait()
    await rename(catalog, T, U)
    gate.open()
    assert status(await late) == 200
    moved = await load(catalog, U)
    assert (moved.entry.uuid, moved.metadata.properties) == (uuid, {"a": "b"})


# -- outcomes ----------------------------------------------------------------------------------------------------------


@pytest.mark.seed(128, 139)
async def test_a_commit_overtaken_after_it_landed_is_still_reported_as_committed(lake, catalog, second, table):
    """Its CAS landed, the answer was lost, and another commit came on top before it could look."""
    lake.store.lose_answer("swap", "iceberg_pointers")
    look = lake.store.hold("get", "iceberg_pointers")
    first = asyncio.create_task(told(commit(catalog, *an_append(1), requirements=[EMPTY], key=lake.key())))
    await look.reached.wait()
    await commit(second, properties(a="b"))
    look.open()
    assert status(await first) == 200
    assert len((await document_of(second))["snapshots"]) == 1


@pytest.mark.seed(127, 129, 139)
async def test_a_commit_overtaken_before_it_landed_is_rebased(lake, catalog, second, table):
    gate = lake.store.hold("swap", "iceberg_pointers")
    slow = asyncio.create_task(told(commit(catalog, properties(a="b"))))
    await gate.reached.wait()
    await commit(second, *an_append(1))
    gate.open()
    assert status(await slow) == 200
    document = await document_of(catalog)
    assert (document["properties"], document["current-snapshot-id"]) == ({"a": "b"}, 1)


@pytest.mark.seed(145)
@pytest.mark.parametrize("keyed", [True, False])
async def test_a_commit_whose_pointer_does_not_answer_is_unknown(lake, catalog, table, keyed):
    lake.store.silence("iceberg_pointers")
    with pytest.raises(CommitStateUnknown):
        await commit(catalog, properties(a="b"), key=lake.key() if keyed else None)


@pytest.mark.seed(145)
async def test_an_unknown_commit_that_lands_later_is_found_by_its_key(lake, catalog, second, table):
    key = lake.key()
    uuid = (await load(catalog)).entry.uuid
    swaps = []
    swap = lake.store.memory.swap

    async def delayed(at, body, version):
        if "iceberg_pointers" in at:
            swaps.append((at, body, version))
        return await swap(at, body, version)

    lake.store.memory.swap = delayed
    lake.store.refuse_writes("nothing")
    gate = lake.store.hold("swap", "iceberg_pointers")
    slow = asyncio.create_task(commit(catalog, *an_append(1), requirements=[EMPTY], key=key))
    await gate.reached.wait()
    lake.store.silence("iceberg_pointers")
    gate.open()
    with pytest.raises(CommitStateUnknown):
        await slow
    lake.store.heal()
    await commit(second, *an_append(1), requirements=[EMPTY], key=key)
    assert (await lake.pointer(uuid)).commit_number == 1


async def test_a_commit_that_is_always_overtaken_gives_up_as_busy_and_frees_its_key(lake, catalog, table, monkeypatch):
    monkeypatch.setattr(limits, "tries_max", 2)
    await a_table(catalog, U)
    key = lake.key()
    other = await lake.opened()
    swap = lake.store.swap
    inside = False

    async def overtaken(at, body, version):
        nonlocal inside
        if "iceberg_pointers" in at and not inside:
            inside = True
            await commit(other, properties(n=version))
            inside = False
        return await swap(at, body, version)

    lake.store.swap = overtaken
    answer = await told(commit(catalog, properties(a="b"), key=key))
    lake.store.swap = swap
    assert answer[:2] == (503, "ServiceUnavailableException")
    await lake.settled()
    await commit(other, properties(a="b"), key=key)


@pytest.mark.seed(121, 138)
async def test_a_requirement_is_judged_on_the_table_as_it_is_now_not_as_remembered(lake, catalog, second, table):
    await commit(catalog, *an_append(1))
    met = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1}
    await commit(second, properties(a="b"), requirements=[met])
    assert (await told(commit(catalog, properties(a="c"), requirements=[EMPTY])))[0] == 409


@pytest.mark.seed(121)
async def test_a_uuid_that_is_not_the_tables_is_409(catalog, table):
    asked = [{"type": "assert-table-uuid", "uuid": "0197a1b2-0000-7000-8000-000000000001"}]
    assert (await told(commit(catalog, properties(a="b"), requirements=asked)))[:2] == (409, "CommitFailedException")


@pytest.mark.seed(143, 155)
async def test_unknown_updates_and_requirements_are_400_all_listed_and_nothing_is_written(lake, catalog, table):
    before = await lake.names("")
    with pytest.raises(BadInput) as caught:
        await commit(
            catalog,
            {"action": "dance"},
            {"action": "sing"},
            properties(a="b"),
            requirements=[{"type": "assert-mood"}],
            key=lake.key(),
        )
    assert all(word in caught.value.message for word in ("dance", "sing", "assert-mood"))
    assert await lake.names("") == before
