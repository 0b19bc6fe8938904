"""Namespaces: nested, with properties, each change one write; names are whatever people write."""

from __future__ import annotations

import asyncio

import pytest

from frazil.names import TableName
from tests.catalog.builders import (
    GRANT,
    NS,
    T,
    a_namespace,
    a_table,
    by,
    drop,
    namespaces,
    status,
    tables,
    told,
)

ODD = [
    "a.b",
    "a b",
    "ä",
    "日本",
    "\U0001f9ca",
    "a/b",
    "%1F",
    "%2F",
    "..",
    ".",
    "A",
    "_catalog",
    "tables",
    "'",
    '"',
    "\\",
]


@pytest.mark.seed(282, 283)
@pytest.mark.parametrize("name", ODD)
async def test_a_name_may_hold_what_people_write_and_no_key_in_the_store_does(lake, catalog, second, name):
    await a_namespace(catalog, name)
    await a_namespace(catalog, name, name)
    await a_table(catalog, TableName((name, name), name))
    assert name in await namespaces(second)
    assert await namespaces(second, name) == [name]
    assert await tables(second, name, name) == [name]
    loaded = await second.load_table(GRANT, TableName((name, name), name))
    assert all(part in {loaded.entry.uuid, "tables", "metadata"} for part in loaded.location.split("/")[4:-1])
    assert all(name not in key.split("/") for key in await lake.names("")) or name in {"_catalog", "tables"}


async def test_names_differ_by_capitals_and_by_normal_form(catalog):
    for name in ("straße", "STRASSE", "\u00e9", "e\u0301"):
        await a_namespace(catalog, name)
    assert len(await namespaces(catalog)) == 5


async def test_a_dotted_level_is_not_two_levels(catalog):
    await a_namespace(catalog, "a")
    await a_namespace(catalog, "a.b")
    assert (await told(catalog.load_namespace(GRANT, ("a", "b"))))[0] == 404
    await a_namespace(catalog, "a", "b")
    await a_table(catalog, TableName(("a.b",), "t"))
    assert await tables(catalog, "a", "b") == []
    await catalog.drop_namespace(GRANT, ("a", "b"), by())


@pytest.mark.seed(283)
async def test_a_parent_must_exist(catalog):
    answer = await told(a_namespace(catalog, "x", "y"))
    assert answer[:2] == (404, "NoSuchNamespaceException")
    answer = await told(catalog.list_namespaces(GRANT, ("x",), "", None))
    assert answer[:2] == (404, "NoSuchNamespaceException")


async def test_no_parent_lists_the_top_level_alone(catalog):
    await a_namespace(catalog, "ns", "inner")
    assert await namespaces(catalog) == ["ns"]
    assert await namespaces(catalog, "ns") == ["inner"]


@pytest.mark.parametrize("child", ["table", "namespace"])
async def test_a_namespace_with_children_is_not_dropped(catalog, second, child):
    if child == "table":
        await a_table(catalog)
    else:
        await a_namespace(catalog, "ns", "inner")
    answer = await told(second.drop_namespace(GRANT, NS, by()))
    assert answer[:2] == (409, "NamespaceNotEmptyException")
    if child == "table":
        await drop(catalog)
    else:
        await catalog.drop_namespace(GRANT, ("ns", "inner"), by())
    await second.drop_namespace(GRANT, NS, by())
    assert await namespaces(catalog) == []


async def test_a_neighbour_whose_name_begins_alike_is_no_child(catalog):
    await a_namespace(catalog, "n")
    await a_namespace(catalog, "ns", "inner")
    await a_table(catalog)
    await catalog.drop_namespace(GRANT, ("n",), by())


async def test_a_namespace_drop_beside_a_child_create_is_one_or_the_other(lake, catalog, second):
    for _ in range(5):
        await a_namespace(catalog, "p")
        made, gone = await asyncio.gather(
            told(a_namespace(second, "p", "c")), told(catalog.drop_namespace(GRANT, ("p",), by()))
        )
        assert {status(made), status(gone)} in ({200, 409}, {404, 200})
        if status(made) == 200:
            await catalog.drop_namespace(GRANT, ("p", "c"), by())
            await catalog.drop_namespace(GRANT, ("p",), by())


async def test_system_is_reserved_at_the_top_and_nowhere_else(catalog):
    for request in (
        a_namespace(catalog, "system"),
        a_namespace(catalog, "system", "x"),
        a_table(catalog, TableName(("system",), "t")),
    ):
        answer = await told(request)
        assert answer[0] == 400
        assert "system" in answer[2]
    await a_namespace(catalog, "ns", "system")
    await a_table(catalog, TableName(NS, "system"))


# -- properties -------------------------------------------------------------------------------------------------------


@pytest.mark.seed(20, 21)
async def test_properties_are_kept_and_changed_and_what_is_missing_is_said(catalog, second):
    assert await a_namespace(catalog, "n", owner="ann", comment="x") == {"owner": "ann", "comment": "x"}
    answer = await second.update_namespace(GRANT, ("n",), ["comment", "none", "none"], {"owner": "bob", "a": ""}, by())
    assert answer == {"updated": ["a", "owner"], "removed": ["comment"], "missing": ["none"]}
    assert (await catalog.load_namespace(GRANT, ("n",))).properties == {"owner": "bob", "a": ""}


async def test_a_property_both_updated_and_removed_is_422(catalog):
    answer = await told(catalog.update_namespace(GRANT, NS, ["a"], {"a": "b"}, by()))
    assert answer[:2] == (422, "UnprocessableEntityException")


async def test_concurrent_changes_of_different_properties_are_all_kept(catalog, second):
    await asyncio.gather(
        *(
            process.update_namespace(GRANT, NS, [], {f"{at}-{n}": "x"}, by())
            for n in range(10)
            for at, process in enumerate((catalog, second))
        )
    )
    assert len((await catalog.load_namespace(GRANT, NS)).properties) == 20


@pytest.mark.seed(23, 24)
@pytest.mark.parametrize("name", ["frazil.x", "FRAZIL.x", "Arco.y", "arco.", "frazil."])
async def test_reserved_properties_are_refused_in_any_case(catalog, name):
    for request in (
        catalog.create_namespace(GRANT, ("n",), {name: "x"}, by()),
        catalog.update_namespace(GRANT, NS, [], {name: "x"}, by()),
        catalog.update_namespace(GRANT, NS, [name], {}, by()),
    ):
        assert (await told(request))[0] == 400


async def test_what_only_begins_alike_is_not_reserved(catalog):
    kept = {"frazil": "x", "arcox": "y", "my.frazil.x": "z"}
    assert await catalog.create_namespace(GRANT, ("n",), kept, by()) == kept


async def test_a_table_and_a_namespace_are_not_taken_for_each_other(catalog):
    await a_table(catalog)
    assert (await told(catalog.load_namespace(GRANT, ("ns", "t"))))[0] == 404
    assert (await told(catalog.list_tables(GRANT, ("ns", "t"), "", None)))[0] == 404
    await a_namespace(catalog, "ns", "n")
    assert (await told(catalog.load_table(GRANT, TableName(NS, "n"))))[:2] == (404, "NoSuchTableException")
    assert T.name == "t"
