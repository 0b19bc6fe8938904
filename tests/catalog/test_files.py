"""Metadata files: written once under their attempt's own name, wherever the table lies, and read by location."""

import gzip

import pytest

from frazil import limits
from frazil.catalog.files import file_name
from frazil.errors import BadInput, Internal, NotFound, Unavailable
from frazil.names import TableName
from tests.catalog.builders import NS, ROOT, a_table, commit, load, properties, register, told


@pytest.mark.seed(11, 124)
async def test_a_file_is_written_once_and_never_over_another(lake, catalog):
    made = await a_table(catalog)
    with pytest.raises(Internal):
        await catalog.context.files.write(made.location, (await commit(catalog, properties(a="b"))).metadata)
    assert await lake.body(made.location.removeprefix(f"{ROOT}/")) == made.metadata.encode()


async def test_a_file_that_cannot_be_confirmed_is_not_taken_for_written(lake, catalog):
    made = await a_table(catalog)
    lake.store.refuse_writes("/metadata/")
    with pytest.raises(Unavailable):
        await catalog.context.files.write(f"{ROOT}/x/metadata/y.json", made.metadata)
    assert catalog.context.files.cached(f"{ROOT}/x/metadata/y.json") is None


async def test_what_is_not_there_is_not_found_and_what_is_elsewhere_is_refused(catalog):
    with pytest.raises(NotFound):
        await catalog.context.files.read(f"{ROOT}/nothing.json")
    with pytest.raises(BadInput):
        await catalog.context.files.read("mem:///elsewhere/x.json")


async def test_a_file_is_read_from_the_store_once(lake, catalog, second):
    await a_table(catalog)
    await load(second)
    lake.store.calls.clear()
    await load(second)
    assert lake.store.count("get", "/metadata/") == 0


async def test_the_cache_is_bounded_in_bytes_and_the_last_used_stay(lake, catalog, monkeypatch):
    monkeypatch.setattr(limits, "metadata_cache_bytes", 5_000)
    locations = [(await a_table(catalog, TableName(NS, f"t{n}"))).location for n in range(20)]
    files = catalog.context.files
    held = [location for location in locations if files.cached(location)]
    assert 1 <= len(held) < 12
    assert held == locations[-len(held) :]
    assert (await load(catalog, TableName(NS, "t0"))).location == locations[0]


async def test_a_file_too_large_to_read_is_refused_by_its_size(lake, catalog, monkeypatch):
    made = await a_table(catalog)
    monkeypatch.setattr(limits, "metadata_bytes_max", 100)
    await lake.put("big.json", made.metadata.encode())
    answer = await told(register(catalog, f"{ROOT}/big.json", TableName(NS, "x")))
    assert answer[0] == 400
    assert "100" in answer[2]


async def test_a_small_gzip_that_inflates_beyond_the_bound_is_refused(lake, catalog, monkeypatch):
    monkeypatch.setattr(limits, "metadata_bytes_max", 100_000)
    await lake.put("bomb.gz.metadata.json", gzip.compress(b'{"x":"' + b" " * 10_000_000 + b'"}'))
    answer = await told(register(catalog, f"{ROOT}/bomb.gz.metadata.json"))
    assert answer[0] == 400
    assert "100000" in answer[2].replace(",", "").replace("_", "")


def test_a_file_name_says_number_key_and_attempt():
    assert file_name(7, "k", "a", compressed=False) == "00007-k-a.metadata.json"
    assert file_name(123456, "k", "a", compressed=True) == "123456-k-a.gz.metadata.json"
