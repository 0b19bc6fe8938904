"""Reading: never older than what was answered before, and pages that hold still while names come and go."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from frazil import limits
from frazil.errors import Corrupt, Unavailable
from frazil.names import TableName
from tests.catalog.builders import (
    GRANT,
    NS,
    ROOT,
    T,
    a_namespace,
    a_table,
    commit,
    drop,
    load,
    properties,
    rename,
    tables,
    told,
)


@pytest.mark.seed(10, 44, 154)
async def test_a_load_sees_every_commit_that_was_answered(catalog, second):
    await a_table(catalog)
    for number, (writer, reader) in enumerate(
        itertools.islice(itertools.cycle([(catalog, second), (second, catalog)]), 6)
    ):
        made = await commit(writer, properties(n=str(number)))
        assert (await load(reader)).location == made.location


async def test_a_warm_load_is_two_conditional_reads_and_no_body(lake, catalog):
    await a_table(catalog)
    await load(catalog)
    lake.store.calls.clear()
    await load(catalog)
    assert [verb for verb, _ in lake.store.calls] == ["get_if_changed"] * 2


@pytest.mark.seed(38, 144)
async def test_a_table_that_is_not_there_is_404(catalog):
    for name in (T, TableName(("nowhere",), "t"), TableName(("ns", "t"), "t")):
        assert (await told(load(catalog, name)))[:2] == (404, "NoSuchTableException")


async def test_metadata_that_is_gone_is_the_servers_fault_and_names_the_table(lake, catalog, second):
    made = await a_table(catalog)
    await lake.store.memory.delete(made.location.removeprefix(f"{ROOT}/"))
    with pytest.raises(Corrupt, match=r"ns\.t") as caught:
        await load(second)
    assert caught.value.status == 500
    assert (await told(commit(second, properties(a="b"))))[0] == 500


async def test_metadata_that_cannot_be_read_is_the_servers_fault(lake, catalog, second):
    made = await a_table(catalog)
    key = made.location.removeprefix(f"{ROOT}/")
    await lake.store.memory.delete(key)
    await lake.put(key, b"garbage")
    assert (await told(load(second)))[0] == 500


async def test_a_store_that_does_not_answer_is_503_never_404(lake, catalog, second):
    await a_table(catalog)
    await load(second)
    for part in ("manifest.json", "iceberg_pointers"):
        lake.store.silence(part)
        with pytest.raises(Unavailable):
            await load(second)
        lake.store.heal()


async def test_a_load_beside_a_rename_chain_never_answers_with_another_table(lake, catalog, second):
    await a_table(catalog)
    mine = (await load(second)).entry.uuid
    gate = lake.store.hold("get_if_changed", "iceberg_pointers")
    loading = asyncio.create_task(load(second))
    await gate.reached.wait()
    await rename(catalog, T, TableName(NS, "old"))
    await a_table(catalog)
    gate.open()
    loaded = await loading
    assert loaded.entry.uuid == mine
    assert loaded.metadata.uuid == mine
    assert (await load(second)).metadata.uuid != mine


# -- pages -------------------------------------------------------------------------------------------------------------


async def pages(listing, *where, size):
    after = ""
    while after is not None:
        page = await listing(GRANT, *where, after, size)
        yield page.names
        after = page.more


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
async def test_pages_are_the_whole_listing_in_order(lake, catalog, second, monkeypatch, size):
    monkeypatch.setattr(limits, "head_changes_max", 4)
    monkeypatch.setattr(limits, "range_entries_max", 3)
    names = sorted(f"{n:02}" for n in range(25))
    for name in reversed(names):
        await a_table(catalog, TableName(NS, name))
        await a_namespace(catalog, "ns", name)
    for process in (catalog, second):
        for listing in (process.list_tables, process.list_namespaces):
            got = [page async for page in pages(listing, NS, size=size)]
            assert [name for page in got for name in page] == names
            assert all(len(page) == size for page in got[:-1])


async def test_a_page_is_bounded_whatever_is_asked_and_no_size_is_everything(catalog, monkeypatch):
    monkeypatch.setattr(limits, "page_max", 4)
    for number in range(10):
        await a_table(catalog, TableName(NS, str(number)))
    assert len((await catalog.list_tables(GRANT, NS, "", 1000)).names) == 4
    assert len((await catalog.list_tables(GRANT, NS, "", None)).names) == 10


async def test_pages_hold_still_while_names_come_and_go(lake, catalog, second, monkeypatch):
    """Whatever is there all the time is listed once, and nothing twice."""
    monkeypatch.setattr(limits, "head_changes_max", 3)
    monkeypatch.setattr(limits, "range_entries_max", 4)
    steady = [f"s{n:02}" for n in range(20)]
    for name in steady:
        await a_table(catalog, TableName(NS, name))
    seen: list[str] = []
    numbers = itertools.count()
    async for page in pages(second.list_tables, NS, size=3):
        seen += page
        number = next(numbers)
        await a_table(catalog, TableName(NS, f"a{number}"))
        await a_table(catalog, TableName(NS, f"z{number}"))
        if number:
            await drop(catalog, TableName(NS, f"a{number - 1}"))
        if number > 30:
            break
    assert [name for name in seen if name.startswith("s")] == steady
    assert len(set(seen)) == len(seen)


async def test_a_page_goes_on_though_the_name_it_ended_with_is_gone(catalog, second):
    for name in ("a", "b", "c", "d"):
        await a_table(catalog, TableName(NS, name))
    page = await second.list_tables(GRANT, NS, "", 2)
    await drop(catalog, TableName(NS, page.more))
    assert (await second.list_tables(GRANT, NS, page.more, 2)).names == ["c", "d"]


async def test_the_last_page_says_that_it_is_the_last(catalog):
    for name in ("a", "b"):
        await a_table(catalog, TableName(NS, name))
    assert (await catalog.list_tables(GRANT, NS, "", 2)).more is None
    assert (await catalog.list_tables(GRANT, NS, "b", 2)).names == []
    assert await tables(catalog) == ["a", "b"]
