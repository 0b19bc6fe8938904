"""Tags: kept with the name, over renames, apart from the metadata."""

import asyncio

import pytest

from tests.catalog.builders import GRANT, T, U, a_table, by, commit, drop, load, properties, rename, told


@pytest.mark.seed(20, 21)
async def test_tags_are_replaced_as_a_whole_and_seen_by_every_server(catalog, second):
    await a_table(catalog)
    assert await catalog.set_tags(GRANT, T, {"team": "x", "pii": ""}, by()) == {"team": "x", "pii": ""}
    assert (await second.table_entry(GRANT, T)).tags == {"team": "x", "pii": ""}
    await second.set_tags(GRANT, T, {"team": "y"}, by())
    assert (await catalog.table_entry(GRANT, T)).tags == {"team": "y"}
    await second.set_tags(GRANT, T, {}, by())
    assert (await catalog.table_entry(GRANT, T)).tags == {}


@pytest.mark.seed(6, 8, 20)
async def test_tags_are_no_part_of_the_metadata_and_owner_and_comment_are(catalog):
    await a_table(catalog, properties={"owner": "ann"})
    before = (await load(catalog)).location
    await catalog.set_tags(GRANT, T, {"a": "b"}, by())
    assert (await load(catalog)).location == before
    await commit(catalog, properties(comment="x"))
    assert (await load(catalog)).metadata.properties == {"owner": "ann", "comment": "x"}


async def test_tags_survive_commits_and_renames_and_not_a_drop(catalog):
    await a_table(catalog)
    await catalog.set_tags(GRANT, T, {"a": "b"}, by())
    await commit(catalog, properties(c="d"))
    await rename(catalog, T, U)
    assert (await catalog.table_entry(GRANT, U)).tags == {"a": "b"}
    await drop(catalog, U)
    await a_table(catalog, U)
    assert (await catalog.table_entry(GRANT, U)).tags == {}


@pytest.mark.parametrize(
    "tags",
    [[], "x", {"": "x"}, {"a": 1}, {"a": None}, {"x" * 256: "x"}, {"x": "y" * 256}, {str(n): "" for n in range(101)}],
)
async def test_what_are_no_tags_is_400(catalog, tags):
    await a_table(catalog)
    assert (await told(catalog.set_tags(GRANT, T, tags, by())))[0] == 400
    assert (await catalog.table_entry(GRANT, T)).tags == {}


async def test_tags_of_nothing_are_404(catalog):
    assert (await told(catalog.set_tags(GRANT, T, {}, by())))[:2] == (404, "NoSuchTableException")


async def test_two_who_tag_at_once_both_keep_what_they_said(catalog, second):
    await a_table(catalog)
    await asyncio.gather(
        *(server.change_tags(GRANT, T, [], {f"t{n}": "1"}, by()) for n, server in enumerate([catalog, second] * 3))
    )
    assert (await catalog.table_entry(GRANT, T)).tags == {f"t{n}": "1" for n in range(6)}
    assert await second.change_tags(GRANT, T, ["t0", "none"], {"t1": "2"}, by()) == {
        "t1": "2",
        **{f"t{n}": "1" for n in range(2, 6)},
    }
