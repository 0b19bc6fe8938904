"""Ordered maps in immutable ranges: a plain sorted dict says the same, and only what changed is written."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil import limits
from frazil.catalog.ranges import VERSION, Index, Ranges, Span, without_older
from frazil.errors import Corrupt, Unavailable
from tests.catalog.builders import Lake

KEYS = st.text(st.sampled_from("abc\x00\x1fé\U0001f600"), max_size=4)
CHANGES = st.lists(st.dictionaries(KEYS, st.none() | st.integers(0, 9), max_size=12), max_size=8)


async def _ranges(lake):
    return Ranges((await lake.opened()).context.store, (await lake.opened()).context.effects)


def raw(value):
    return None if value is None else msgspec.Raw(msgspec.json.encode(value))


@settings(max_examples=150, deadline=None)
@given(CHANGES, st.integers(1, 6), KEYS, KEYS, st.integers(1, 20))
def test_ranges_say_what_a_sorted_dict_says(changes, most, prefix, after, count):
    async def run():
        lake = Lake()
        ranges = await _ranges(lake)
        spans: list[Span] = []
        model: dict[str, int] = {}
        for seq, change in enumerate(changes):
            spans = await ranges.rewrite(spans, {key: raw(value) for key, value in change.items()}, seq, "n")
            model = {k: v for k, v in (model | change).items() if v is not None}
            assert sum(span.count for span in spans) == len(model)
            assert all(1 <= span.count <= most for span in spans)
            edges = [edge for span in spans for edge in (span.first, span.last)]
            assert edges == sorted(edges)
        fresh = await _ranges(lake)
        for key in {*model, *(key for change in changes for key in change)}:
            found = await fresh.get(spans, key)
            assert (None if found is None else msgspec.json.decode(found)) == model.get(key)
        expected = sorted(key for key in model if key.startswith(prefix) and key > after)[:count]
        assert [key for key, _ in await fresh.scan(spans, prefix, after, count)] == expected

    before = limits.range_entries_max
    limits.range_entries_max = most
    try:
        asyncio.run(run())
    finally:
        limits.range_entries_max = before


async def test_only_ranges_that_a_change_falls_into_are_written(lake, monkeypatch):
    monkeypatch.setattr(limits, "range_entries_max", 4)
    ranges = await _ranges(lake)
    spans = await ranges.rewrite([], {f"{n:03}": raw(n) for n in range(40)}, 1, "n")
    assert len(spans) == 10
    again = await ranges.rewrite(spans, {"017": raw(99)}, 2, "n")
    assert len({span.key for span in again} - {span.key for span in spans}) == 1


async def test_emptied_ranges_go_and_sparse_ones_join(lake, monkeypatch):
    monkeypatch.setattr(limits, "range_entries_max", 4)
    ranges = await _ranges(lake)
    spans = await ranges.rewrite([], {f"{n:03}": raw(n) for n in range(40)}, 1, "n")
    spans = await ranges.rewrite(spans, {f"{n:03}": None for n in range(40) if n % 10}, 2, "n")
    assert sum(span.count for span in spans) == 4
    assert len(spans) <= 4
    assert await ranges.rewrite(spans, {f"{n:03}": None for n in range(40)}, 3, "n") == []


async def test_a_range_that_cannot_be_written_stops_the_change(lake):
    ranges = await _ranges(lake)
    lake.store.refuse_writes("core/snapshots")
    with pytest.raises(Unavailable):
        await ranges.rewrite([], {"a": raw(1)}, 1, "n")
    with pytest.raises(Unavailable):
        await ranges.write_index(Index(VERSION, 1, [], [], []))


async def test_a_range_that_is_gone_is_said_not_taken_for_empty(lake):
    ranges = await _ranges(lake)
    spans = await ranges.rewrite([], {"a": raw(1)}, 1, "n")
    await lake.store.memory.delete(spans[0].key)
    fresh = await _ranges(lake)
    with pytest.raises(Corrupt):
        await fresh.get(spans, "a")
    with pytest.raises(Corrupt):
        await fresh.index("_catalog/core/snapshots/none.json")


async def test_without_a_checkpoint_the_index_is_empty(lake):
    assert (await (await _ranges(lake)).index(None)).names == []


def test_only_ranges_that_lie_wholly_before_a_moment_age_out():
    spans = [Span("01", "03", 3, "a"), Span("04", "06", 3, "b"), Span("07", "09", 3, "c")]
    assert without_older(spans, "05") == spans[1:]
    assert without_older(spans, "00") == spans
    assert without_older(spans, "99") == []
