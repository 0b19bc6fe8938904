"""The clever module against its plain twin, and what it is clever for: an append that costs what it adds."""

from __future__ import annotations

import gc
import threading
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.iceberg import slices, updates
from frazil.iceberg.metadata import TableMetadata
from frazil.iceberg.slices import SEAL, Slices, Snapshots
from tests.iceberg import plain
from tests.iceberg.builders import NOW_MS, a_snapshot, a_table, add, an_append, changed, document, set_ref

TEN_MINUTES_MS = 600_000


# -- the twin ---------------------------------------------------------------------------------------------------------

ids = st.integers(1, 12)
names = st.sampled_from(["main", "main", "main", "b", "t"])
columns = st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True)


@st.composite
def snapshots(draw: st.DrawFn) -> dict[str, Any]:
    id = draw(ids)
    return a_snapshot(
        id,
        **{
            "sequence-number": draw(st.integers(0, 30)),
            "timestamp-ms": NOW_MS + draw(st.integers(-TEN_MINUTES_MS, TEN_MINUTES_MS)),
            "parent-snapshot-id": draw(st.sampled_from([..., 1])),
            "x-note": draw(st.sampled_from([..., 2**70, 1.5, None, "é"])),
        },
    )


@st.composite
def refs(draw: st.DrawFn) -> dict[str, Any]:
    name = draw(names)
    retention = {"max-ref-age-ms": draw(st.sampled_from([..., None, 5]))}
    given = {key: value for key, value in retention.items() if value is not ...}
    return set_ref(name, draw(ids), "tag" if name == "t" else "branch", **given)


def a_schema(columns: list[int]) -> dict[str, Any]:
    fields = [{"id": id, "name": f"c{id}", "type": "long", "required": False} for id in columns]
    return {"type": "struct", "fields": fields, "x-schema": 1.25}


def statistics(id: int, size: int) -> dict[str, Any]:
    file = {"snapshot-id": id, "statistics-path": "s3://s", "file-size-in-bytes": size}
    return {
        "action": "set-statistics",
        "statistics": {**file, "file-footer-size-in-bytes": 1, "blob-metadata": []},
    }


one_update: st.SearchStrategy[list[dict[str, Any]]] = st.one_of(
    st.builds(lambda snapshot: [add(snapshot), set_ref("main", snapshot["snapshot-id"])], snapshots()),
    st.builds(lambda snapshot: [add(snapshot)], snapshots()),
    st.builds(lambda ref: [ref], refs()),
    st.builds(lambda name: [{"action": "remove-snapshot-ref", "ref-name": name}], names),
    st.builds(lambda some: [{"action": "remove-snapshots", "snapshot-ids": some}], st.lists(ids, max_size=4)),
    st.builds(
        lambda key, value: [{"action": "set-properties", "updates": {key: value}}],
        st.sampled_from(["a", "b", "write.metadata.previous-versions-max"]),
        st.sampled_from(["0", "2", "5"]),
    ),
    st.just([{"action": "remove-properties", "removals": ["a", "write.metadata.previous-versions-max"]}]),
    st.builds(lambda of, size: [statistics(of, size)], ids, st.integers(1, 3)),
    st.builds(lambda of: [{"action": "remove-statistics", "snapshot-id": of}], ids),
    st.builds(
        lambda some: [
            {"action": "add-schema", "schema": a_schema(some)},
            {"action": "set-current-schema", "schema-id": -1},
        ],
        columns,
    ),
)
#: A commit: which of the versions so far it changes, its updates, the clock of who makes it, the file it replaces.
commits = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.lists(one_update, max_size=4).map(lambda parts: [update for part in parts for update in part]),
        st.integers(-TEN_MINUTES_MS, TEN_MINUTES_MS),
        st.sampled_from(["s3://f/1", "s3://f/2", None]),
    ),
    max_size=25,
)


@pytest.mark.seed(25)
@settings(max_examples=300, deadline=None)
@given(commits)
def test_any_sequence_of_commits_gives_the_plain_twins_document_and_no_fork_disturbs_another(history):
    with pytest.MonkeyPatch.context() as patch:
        # Small chunks, so that a short history has many.
        patch.setattr(slices, "SEAL", 3)
        versions = [(a_table(2), document(a_table(2)))]
        for back, changes, skew_ms, previous in history:
            base, twin = versions[max(0, len(versions) - 1 - back)]
            outcome = updates.apply(base, [], changes, now_ms=NOW_MS + skew_ms, previous_location=previous)
            try:
                expected = plain.apply(twin, changes, NOW_MS + skew_ms, previous)
            except plain.Refused:
                assert isinstance(outcome, updates.Rejected)
                continue
            assert isinstance(outcome, TableMetadata), outcome
            assert (outcome is base) == (expected is twin)
            versions.append((outcome, expected))
        for table, twin in versions:
            assert document(table) == twin
            for id in range(1, 13):
                found = [snapshot for snapshot in twin["snapshots"] if snapshot["snapshot-id"] == id]
                assert table.snapshot(id) == (found[0] if found else None)
            assert document(TableMetadata.parse(table.encode())) == twin


# -- the arrays -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, SEAL - 1, SEAL, SEAL + 1, 2 * SEAL, 2 * SEAL + 1, 1000])
def test_an_array_is_the_same_read_whole_or_grown_item_by_item(count):
    items = [b'{"n":%d}' % number for number in range(count)]
    grown = Slices()
    for item in items:
        grown = grown.append(item)
    whole = Slices.of(items)
    assert b"".join(grown.parts()) == b"".join(whole.parts()) == b",".join(items)
    assert list(grown) == list(whole) == items
    assert len(grown) == len(whole) == count
    assert [grown.item(at) for at in range(count)] == items
    assert grown.last() == (items[-1] if items else None)


def grown(to: Snapshots, ids: range) -> Snapshots:
    for id in ids:
        to = to.append(id, id, b'{"snapshot-id":%d}' % id)
    return to


def test_versions_share_what_they_have_in_common_and_see_nothing_of_each_others_rest():
    trunk = grown(Snapshots.of([], [], 0), range(1, 3 * SEAL))
    left = grown(trunk, range(10_000, 10_000 + 5 * SEAL))
    right = grown(trunk, range(20_000, 20_000 + 5 * SEAL))
    assert left.positions is trunk.positions
    assert right.positions is not trunk.positions
    for mine, other in ((left, 20_000), (right, 10_000)):
        assert mine.ids() == [*range(1, 3 * SEAL), *range(30_000 - other, 30_000 - other + 5 * SEAL)]
        assert all(mine.position(id) == at for at, id in enumerate(mine.ids()))
        assert all(mine.position(id) is None for id in range(other, other + 5 * SEAL))
    assert trunk.ids() == list(range(1, 3 * SEAL))
    assert all(trunk.position(id) is None for id in (*range(10_000, 10_320), *range(20_000, 20_320)))
    assert left.slices.sealed[0] is right.slices.sealed[0]


def test_threads_that_grow_one_version_apart_disturb_nobody():
    trunk = grown(Snapshots.of([], [], 0), range(1, 1 + 2 * SEAL))
    out: dict[int, Snapshots] = {}

    def work(start: int) -> None:
        out[start] = grown(trunk, range(start, start + 3 * SEAL))

    threads = [threading.Thread(target=work, args=(start,)) for start in range(1000, 9000, 1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for start, mine in out.items():
        assert mine.ids() == [*range(1, 1 + 2 * SEAL), *range(start, start + 3 * SEAL)]
        assert all(mine.position(id) == at for at, id in enumerate(mine.ids()))


def test_a_snapshot_that_went_can_come_again_elsewhere():
    table = grown(Snapshots.of([], [], 0), range(1, 200)).without({5, 150})
    again = table.append(5, 1, b'{"snapshot-id":5}')
    assert (table.position(5), again.position(5), again.get(5)) == (None, 197, b'{"snapshot-id":5}')


# -- the cost ---------------------------------------------------------------------------------------------------------


def cost_us(table: TableMetadata, number: int, *, runs: int = 150) -> tuple[float, TableMetadata]:
    """The cheapest of many appends, each to the version the one before it made; and the last version."""
    best = float("inf")
    for again in range(number, number + runs):
        changes = an_append(again)
        start = time.perf_counter()
        table = changed(table, *changes)
        table.parts()
        best = min(best, time.perf_counter() - start)
    return best * 1e6, table


def test_an_append_costs_the_same_at_ten_and_at_ten_thousand_snapshots(capsys):
    gc.disable()
    try:
        costs: dict[int, float] = {}
        # The log of files is full in all of them: it has a bound of its own and is not what is compared.
        table, number = a_table(), 1
        for size in (10, 1_000, 10_000):
            while number <= size:
                table, number = changed(table, *an_append(number)), number + 1
            costs[size] = min(cost_us(table, number)[0] for _ in range(3))
        whole = time.perf_counter()
        twin = msgspec.json.decode(table.encode())
        twin["snapshots"].append(a_snapshot(number))
        msgspec.json.encode(twin)
        whole = time.perf_counter() - whole
    finally:
        gc.enable()
    with capsys.disabled():
        shown = ", ".join(f"{cost:.0f} µs at {size} snapshots" for size, cost in costs.items())
        print(f"\nan append, apply() and parts(): {shown}; decoding and encoding all of it once: {whole * 1e3:.0f} ms")
    assert costs[10_000] <= 3 * costs[10]
    assert costs[10_000] * 1e-6 * 50 <= whole
