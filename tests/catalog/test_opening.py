"""Opening a catalog: made once, the same for everybody, and at no other root."""

import asyncio

import pytest

from frazil.errors import BadInput, Corrupt, Unavailable
from frazil.store import keys
from tests.catalog.builders import ROOT, Lake, a_namespace, namespaces, told


@pytest.mark.seed(133, 137)
async def test_a_new_root_gets_a_catalog_and_the_next_opening_finds_it(lake):
    first = await lake.opened()
    await a_namespace(first, "n")
    again = await lake.opened()
    assert again.context.identity == first.context.identity
    assert await namespaces(again) == ["n"]
    assert set(await lake.names("_catalog/")) == {keys.CATALOG, keys.HEAD}


async def test_many_that_open_at_once_agree_on_one(lake):
    opened = await asyncio.gather(*(lake.opened() for _ in range(6)))
    assert len({catalog.context.identity.catalog_uuid for catalog in opened}) == 1
    await asyncio.gather(*(a_namespace(catalog, str(n)) for n, catalog in enumerate(opened)))
    assert len(await namespaces(opened[0])) == 6


async def test_opening_writes_nothing_where_a_catalog_is(lake):
    await lake.opened()
    lake.store.calls.clear()
    await lake.opened()
    assert {verb for verb, _ in lake.store.calls} == {"get"}


async def test_another_root_is_refused_and_both_are_named(lake):
    await lake.opened()
    with pytest.raises(BadInput) as caught:
        await lake.opened(root="mem:///moved")
    assert ROOT in caught.value.message
    assert "mem:///moved" in caught.value.message


async def test_the_same_root_written_otherwise_is_the_same(lake):
    await lake.opened()
    for root in ("mem:/lake", "mem:///lake/", "MEM:///lake"):
        await lake.opened(root=root)


async def test_a_catalog_of_a_newer_version_is_refused(lake):
    await lake.opened()
    for key in (keys.CATALOG, keys.HEAD):
        found = await lake.store.memory.get(key)
        newer = found.body.replace(b'"version":1', b'"version":99', 1)
        applied = await lake.store.memory.swap(key, newer, found.version)
        with pytest.raises(Corrupt, match="99"):
            await namespaces(await lake.opened())
        await lake.store.memory.swap(key, found.body, applied.version)


async def test_a_store_that_does_not_answer_makes_no_second_catalog():
    lake = Lake()
    lake.store.silence(keys.CATALOG)
    with pytest.raises(Unavailable):
        await lake.opened()
    lake.store.heal()
    assert await lake.names("") == []


async def test_a_head_that_was_lost_is_said_and_not_made_anew_under_a_running_server(lake, catalog):
    await lake.store.memory.delete(keys.HEAD)
    answer = await told(namespaces(catalog))
    assert answer[0] == 500
