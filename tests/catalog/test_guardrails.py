"""What is refused whatever the metadata would allow: 400, before anything is written."""

from __future__ import annotations

import pytest

from frazil import limits
from frazil.errors import BadInput
from tests.catalog.builders import (
    ASSERT_CREATE,
    GRANT,
    ROOT,
    T,
    U,
    a_table,
    an_append,
    by,
    commit,
    definition,
    document_of,
    load,
    properties,
    staged,
    status,
    tables,
    told,
)

RESERVED = ["frazil.x", "FRAZIL.X", "Frazil.position", "arco.y", "ARCO.y"]


async def refused(lake, request):
    before = await lake.names("")
    answer = await told(request)
    assert status(answer) == 400, answer
    assert await lake.names("") == before
    return answer[2]


@pytest.mark.seed(22)
async def test_set_location_is_refused_even_to_where_the_table_is(lake, catalog):
    await a_table(catalog)
    for location in ((await document_of(catalog))["location"], f"{ROOT}/elsewhere"):
        await refused(lake, commit(catalog, {"action": "set-location", "location": location}, key=lake.key()))


@pytest.mark.seed(23, 24)
@pytest.mark.parametrize("name", RESERVED)
async def test_reserved_table_properties_are_refused_in_any_case_set_or_removed(lake, catalog, name):
    await a_table(catalog)
    assert name in await refused(lake, commit(catalog, properties(**{name: "x"})))
    await refused(lake, commit(catalog, {"action": "remove-properties", "removals": ["a", name]}))
    await refused(lake, a_table(catalog, U, properties={name: "x"}))
    await refused(lake, catalog.stage_table(GRANT, U, definition(properties={name: "x"})))
    updates = staged(lake.key(), None, **{name: "x"})
    await refused(lake, commit(catalog, *updates, name=U, requirements=[ASSERT_CREATE]))


async def test_reserved_keys_of_a_snapshots_summary_are_refused(lake, catalog):
    await a_table(catalog)
    updates = an_append(1)
    updates[0]["snapshot"]["summary"]["Frazil.job"] = "x"
    await refused(lake, commit(catalog, *updates))


@pytest.mark.seed(25)
async def test_what_engines_and_users_set_is_not_reserved(catalog):
    await a_table(catalog)
    mine = {"owner": "ann", "comment": "x", "cdc.mode": "upsert", "maintenance.x": "y", "frazil": "z", "my.arco.x": ""}
    await commit(catalog, {"action": "set-properties", "updates": mine})
    assert (await load(catalog)).metadata.properties == mine


BAD_PLACES = [
    "mem:///lake_foo/t",
    "mem:///lak",
    "mem:///",
    "mem://lake/t",
    "file:///lake/t",
    "/lake/t",
    "lake/t",
    "",
    f"{ROOT}/../x",
    f"{ROOT}/a/../../x",
    f"{ROOT}/a/%2E%2e/x",
    f"{ROOT}/./x",
    ROOT,
    f"{ROOT}/",
    f"{ROOT}/_catalog",
    f"{ROOT}/_catalog/iceberg_pointers",
    f"{ROOT}/tables",
    f"{ROOT}/tables/0197a1b2-0000-7000-8000-000000000001",
    f"{ROOT}/x?y",
    f"{ROOT}/x#y",
    f"{ROOT}/x\ny",
]


@pytest.mark.seed(18)
@pytest.mark.parametrize("place", BAD_PLACES)
async def test_a_bad_place_is_refused_at_create_and_staged_create(lake, catalog, place):
    if place:
        await refused(lake, a_table(catalog, location=place))
        await refused(lake, catalog.stage_table(GRANT, T, definition(location=place)))
    await refused(lake, commit(catalog, *_staged_at(lake, place), requirements=[ASSERT_CREATE]))
    assert await tables(catalog) == []


def _staged_at(lake, place):
    updates = staged(lake.key())
    next(update for update in updates if update["action"] == "set-location")["location"] = place
    return updates


@pytest.mark.seed(18)
@pytest.mark.parametrize("name", ["write.data.path", "write.metadata.path", "write.object-storage.path"])
@pytest.mark.parametrize("place", BAD_PLACES)
async def test_a_bad_place_is_refused_as_a_property_at_create_and_at_every_commit(lake, catalog, name, place):
    await a_table(catalog)
    assert (await told(a_table(catalog, U, properties={name: place})))[0] == 400
    answer = await told(commit(catalog, {"action": "set-properties", "updates": {name: place}}))
    assert answer[0] == 400
    assert name in answer[2] or "location" in answer[2]
    assert (await load(catalog)).metadata.properties == {}


@pytest.mark.parametrize("place", [f"{ROOT}/a/b", "mem:/lake/a", "MEM:///lake/a", f"{ROOT}/a b/ü", f"{ROOT}/lake_foo"])
async def test_a_good_place_is_kept_as_it_was_given(catalog, place):
    await a_table(catalog, location=place)
    assert (await document_of(catalog))["location"] == place
    await commit(catalog, {"action": "set-properties", "updates": {"write.data.path": f"{place}/data"}})


async def test_write_paths_into_another_tables_place_are_refused_into_ones_own_allowed(catalog):
    await a_table(catalog)
    await a_table(catalog, U)
    mine, other = (await document_of(catalog))["location"], (await document_of(catalog, U))["location"]
    await commit(catalog, {"action": "set-properties", "updates": {"write.data.path": f"{mine}/d"}})
    answer = await told(commit(catalog, {"action": "set-properties", "updates": {"write.data.path": f"{other}/d"}}))
    assert answer[0] == 400


async def test_the_servers_own_files_stay_under_the_tables_location(catalog):
    await a_table(catalog)
    path = f"{ROOT}/meta"
    made = await commit(catalog, {"action": "set-properties", "updates": {"write.metadata.path": path}})
    made = await commit(catalog, properties(a="b"))
    assert made.location.startswith((await document_of(catalog))["location"] + "/metadata/")


MALFORMED = [
    {"action": "add-snapshot"},
    {"action": "add-snapshot", "snapshot": [1]},
    {"action": "add-snapshot", "snapshot": "x"},
    {"action": "add-snapshot", "snapshot": {"summary": 5}},
    {"action": "add-snapshot", "snapshot": {"summary": "x"}},
    {"action": "remove-properties"},
    {"action": "remove-properties", "removals": 5},
    {"action": "remove-properties", "removals": "abc"},
    {"action": "remove-properties", "removals": [1]},
    {"action": "set-properties"},
    {"action": "set-properties", "updates": [1]},
    {"action": "set-properties", "updates": {"a": 1}},
    {"action": "set-properties", "updates": {"a": None}},
    {"action": "add-schema", "schema": 5},
    {"action": "set-current-schema", "schema-id": "x"},
    {"action": "add-spec", "spec": []},
    {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": "1"},
    {"action": "remove-snapshots", "snapshot-ids": 5},
    {"action": ["x"]},
    {"action": None},
    {},
]


@pytest.mark.seed(143)
@pytest.mark.parametrize("update", MALFORMED, ids=str)
@pytest.mark.parametrize("creating", [False, True])
async def test_an_update_of_the_wrong_shape_is_400_not_the_servers_fault(lake, catalog, update, creating):
    await a_table(catalog)
    updates = [*staged(lake.key()), update] if creating else [update]
    request = commit(catalog, *updates, name=U if creating else T, requirements=[ASSERT_CREATE] if creating else [])
    assert (await told(request))[0] == 400


@pytest.mark.parametrize(
    "requirement", [{}, {"type": 5}, {"type": "assert-table-uuid"}, {"type": "assert-ref-snapshot-id"}]
)
async def test_a_requirement_of_the_wrong_shape_is_400(catalog, requirement):
    await a_table(catalog)
    assert (await told(commit(catalog, properties(a="b"), requirements=[requirement])))[0] == 400


async def test_a_commit_has_a_bound(catalog, monkeypatch):
    monkeypatch.setattr(limits, "updates_max", 3)
    await a_table(catalog)
    with pytest.raises(BadInput, match="3"):
        await commit(catalog, *[properties(a="b")] * 4)


async def test_properties_have_bounds(catalog):
    await a_table(catalog)
    with pytest.raises(BadInput):
        await commit(catalog, properties(a="x" * limits.property_bytes_max))
    with pytest.raises(BadInput):
        await catalog.create_namespace(GRANT, ("n",), {str(n): "" for n in range(limits.properties_max + 1)}, by())
