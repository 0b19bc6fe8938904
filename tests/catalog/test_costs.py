"""What each operation costs in store requests: in all, and on the longest chain until the answer.

Exact, and the same on every machine: the real core runs on a store that answers all calls that wait at the same time in
one round. Background work (receipt, marker) counts in the total, not in the chain. Warm: this process did it before.
Table cold: it knows the registry, not the table. Process cold: a new process.
"""

from __future__ import annotations

from typing import Any

import pytest

from frazil import limits
from frazil.catalog.catalog import Catalog
from frazil.names import TableName
from tests.explore.world import (
    GRANT,
    NS,
    Call,
    Store,
    T,
    alone,
    append,
    built,
    by,
    create,
    drop,
    load,
    namespace,
    put,
    rename,
)

U = TableName(NS, "u")


@pytest.fixture(scope="module")
def base() -> Store:
    return built(namespace, create())


@pytest.fixture
def checkpointed(monkeypatch: pytest.MonkeyPatch) -> Store:
    """A registry whose entries lie in a checkpoint, behind an index."""
    monkeypatch.setattr(limits, "head_changes_max", 3)
    return built(namespace, create(), create(U), *(create(TableName(NS, f"x{n}")) for n in range(3)))


async def registry_only(catalog: Catalog) -> None:
    await catalog.load_namespace(GRANT, NS)


async def everything(catalog: Catalog) -> Any:
    return await catalog.list_tables(GRANT, NS, "", None)


def committed_before(catalog: Catalog) -> Any:
    """Warm as a writer is: it made the commit before."""
    return put("before", key_=90)(catalog)


def cost(
    store: Store,
    call: Call,
    *,
    warm: Call | None = None,
    seen: Store | None = None,
    meanwhile: Call | None = None,
) -> tuple[int, int]:
    """With `meanwhile`, what another server does between the warming up and the request."""
    store = dict(store)
    other = (lambda: alone(store, meanwhile, name="other")) if meanwhile is not None else None
    done = alone(store, call, name="request", warm=_quietly(warm), seen=seen, meanwhile=other)
    print(f"{len(done.calls)} requests, chain {done.chain}: {[f'{verb} {key[:60]}' for verb, key in done.calls]}")
    return len(done.calls), done.chain


def _quietly(warm: Call | None) -> Call | None:
    if warm is None:
        return None

    async def run(catalog: Catalog) -> None:
        await warm(catalog)

    return run


def assert_within(spent: tuple[int, int], total: int, chain: int) -> None:
    assert spent[0] <= total
    assert spent[1] <= chain


def test_a_load_costs_two_conditional_reads_side_by_side(base: Store) -> None:
    assert cost(base, load(), warm=load()) == (2, 1)


def test_a_load_of_a_cold_table_costs_its_metadata_on_top(base: Store) -> None:
    assert_within(cost(base, load(), warm=everything), 3, 2)


def test_a_load_by_a_new_process_walks_index_and_range(checkpointed: Store) -> None:
    assert cost(checkpointed, load()) == (5, 5)


def test_a_load_through_a_second_server_sees_the_first_ones_commit_for_one_metadata_file(base: Store) -> None:
    store = dict(base)
    alone(store, put("elsewhere"), name="other")
    assert cost(store, load(), warm=load(), seen=dict(base)) == (3, 2)


def test_a_keyed_commit_warm(base: Store) -> None:
    assert_within(cost(base, put("a", key_=1), warm=load()), 7, 2)


def test_a_keyed_commit_by_a_server_that_did_not_know_the_table(base: Store) -> None:
    assert_within(cost(base, put("a", key_=1), warm=registry_only), 10, 4)


def test_a_keyed_commit_by_a_new_process(base: Store) -> None:
    assert_within(cost(base, put("a", key_=1)), 10, 5)


def test_a_keyless_commit_warm(base: Store) -> None:
    assert_within(cost(base, put("a"), warm=load()), 6, 2)


def test_a_commit_that_fails_is_stored_and_told_within_its_budget(base: Store) -> None:
    store = dict(base)
    alone(store, append(7), name="other")
    refused = append(8, first=True, key_=1)
    assert alone(dict(store), refused, name="request").answers["request"][0] == 409
    for seen in (store, base):
        assert_within(cost(store, refused, warm=load(), seen=dict(seen)), 10, 5)


def test_a_commit_overtaken_once_is_rebased_within_its_budget(base: Store) -> None:
    assert_within(cost(base, put("a", key_=1), warm=committed_before, meanwhile=put("elsewhere", key_=5)), 13, 6)


def test_a_creation(base: Store) -> None:
    assert_within(cost(base, create(U, key_=1), warm=registry_only), 5, 2)


def test_a_creation_by_a_new_process(base: Store) -> None:
    assert_within(cost(base, create(U, key_=1)), 5, 4)


def test_a_drop(base: Store) -> None:
    for warm in (load(), registry_only):
        assert_within(cost(base, drop(key_=1), warm=warm), 4, 3)


def test_a_drop_by_a_new_process_reads_the_head_first(base: Store) -> None:
    assert cost(base, drop(key_=1)) == (4, 4)


def test_a_rename(base: Store) -> None:
    for warm in (registry_only, None):
        assert_within(cost(base, rename(T, U, 1), warm=warm), 2, 2)


async def _create_namespace(catalog: Catalog) -> Any:
    return await catalog.create_namespace(GRANT, ("other",), {}, by(1))


async def _drop_namespace(catalog: Catalog) -> Any:
    return await catalog.drop_namespace(GRANT, ("empty",), by(1))


async def _set_properties(catalog: Catalog) -> Any:
    return await catalog.update_namespace(GRANT, NS, [], {"a": "b"}, by(1))


async def _empty(catalog: Catalog) -> Any:
    return await catalog.create_namespace(GRANT, ("empty",), {}, by())


@pytest.mark.parametrize("operation", [_create_namespace, _drop_namespace, _set_properties])
def test_a_namespace_operation(operation: Call) -> None:
    store = built(namespace, _empty)
    for warm in (registry_only, None):
        assert_within(cost(store, operation, warm=warm), 2, 2)


def test_a_listing(checkpointed: Store) -> None:
    assert cost(checkpointed, everything, warm=everything) == (1, 1)
    assert cost(checkpointed, everything) == (3, 3)


def test_a_listing_costs_one_range_more_per_512_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "range_entries_max", 4)
    monkeypatch.setattr(limits, "head_changes_max", 15)
    store = built(namespace, *(create(TableName(NS, f"t{n:02}")) for n in range(16)))
    total, chain = cost(store, everything)
    assert total == chain <= 2 + -(-16 // 4) + 1
