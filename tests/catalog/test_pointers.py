"""Pointers: what is in them, and that only commits leave a producer."""

import asyncio

import pytest

from frazil.catalog import pointers
from frazil.errors import Corrupt
from frazil.store import keys
from tests.catalog.builders import NOW_MS, a_table, an_append, commit, drop, load, properties, status, told


@pytest.mark.seed(7, 26, 27, 28, 29, 30, 31, 32, 123)
async def test_a_pointer_says_what_is_current_and_where_it_came_from(lake, catalog):
    await a_table(catalog)
    first = (await load(catalog)).location
    made = await commit(catalog, *an_append(1))
    stored = await lake.document(f"_catalog/iceberg_pointers/{made.metadata.uuid}.json")
    producer = stored.pop("producer")
    stamp = stored.pop("stamp")
    assert stored == {
        "version": 1,
        "table_uuid": made.metadata.uuid,
        "state": "live",
        "current_metadata_location": made.location,
        "current_snapshot_id": 1,
        "refs": {"main": {"snapshot-id": 1, "type": "branch"}},
        "last_sequence_number": 1,
        "previous_metadata_location": first,
        "updated_at": "2026-01-01T00:00:00.000Z",
        "updated_by": {"type": "IcebergRest", "client_info": None, "principal": None},
        "commit_number": 1,
        "fences": 0,
        "purge_requested": False,
    }
    await lake.settled()
    assert stamp
    assert producer == await lake.document(keys.committed_receipt(NOW_MS, keys.commit_key(made.location)))


@pytest.mark.seed(7)
async def test_a_pointer_does_not_grow_with_history(lake, catalog):
    await a_table(catalog)
    sizes = []
    for number in range(8):
        uuid = (await commit(catalog, properties(n=str(number)))).metadata.uuid
        sizes.append(len(await lake.body(keys.pointer(uuid))))
    assert max(sizes[1:]) - min(sizes[1:]) < 20


@pytest.mark.seed(39)
async def test_every_write_of_a_pointer_is_unique(lake, catalog):
    """Equal bytes cannot occur, whatever version tokens the store makes of them."""
    await a_table(catalog)
    seen = set()
    for value in ("a", "b", "a", "b"):
        uuid = (await commit(catalog, properties(p=value))).metadata.uuid
        seen.add(await lake.body(keys.pointer(uuid)))
    assert len(seen) == 4


async def test_a_fence_changes_nothing_but_who_may_write(lake, catalog):
    await a_table(catalog)
    read = await catalog.context.pointers.read((await load(catalog)).entry.uuid)
    fence = pointers.fence(read.pointer, catalog.context.effects)
    kept = {"version", "table_uuid", "state", "current_metadata_location", "refs", "commit_number", "updated_at"}
    assert all(getattr(fence, name) == getattr(read.pointer, name) for name in kept)
    assert bytes(fence.producer) == bytes(read.pointer.producer)
    assert (fence.fences, fence.stamp != read.pointer.stamp) == (1, True)


@pytest.mark.seed(235)
async def test_a_pointer_of_a_newer_version_is_refused_by_load_commit_and_drop(lake, catalog, second):
    made = await a_table(catalog)
    key = keys.pointer(made.metadata.uuid)
    found = await lake.store.memory.get(key)
    newer = found.body.replace(b'"version":1', b'"version":2', 1)
    await lake.store.memory.swap(key, newer, found.version)
    for request in (load(second), commit(second, properties(a="b")), commit(second, properties(a="b"), key=lake.key())):
        answer = await told(request)
        assert answer[0] == 500
        assert "version 2" in answer[2]
    with pytest.raises(Corrupt):
        await drop(second)
    assert await lake.body(key) == newer


async def test_who_was_fenced_comes_again_on_the_new_pointer(lake, catalog, second):
    await a_table(catalog)
    await load(second)
    await lake.settled()
    gate = lake.store.hold("swap", "iceberg_pointers")
    slow = asyncio.create_task(told(commit(second, properties(a="b"))))
    await gate.reached.wait()
    read = await catalog.context.pointers.read((await load(catalog)).entry.uuid)
    await catalog.context.pointers.move(read, pointers.fence(read.pointer, catalog.context.effects))
    gate.open()
    assert status(await slow) == 200
    pointer = await lake.pointer(read.pointer.table_uuid)
    assert (pointer.commit_number, pointer.fences) == (1, 1)
