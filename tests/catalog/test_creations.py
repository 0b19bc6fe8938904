"""How a table comes to be: create, staged create, register. Each makes one table, whole, or none."""

from __future__ import annotations

import asyncio
import gzip

import msgspec
import pytest

from frazil.errors import BadInput
from frazil.grants import Grant
from frazil.names import TableName
from tests.catalog.builders import (
    ASSERT_CREATE,
    GRANT,
    NS,
    ROOT,
    T,
    U,
    a_namespace,
    a_table,
    by,
    commit,
    definition,
    document_of,
    drop,
    load,
    properties,
    register,
    rename,
    staged,
    status,
    tables,
    told,
)

ELSEWHERE = "mem:///allowed/here"


@pytest.fixture
async def allowing(lake, catalog):
    """A server that may also serve tables under another root."""
    return await lake.opened(allowed=[lake.place(ELSEWHERE)])


async def a_file(lake, catalog, at="reg/x.metadata.json", *, body=None, **changed):
    """A metadata file that no table has, under the root."""
    document = msgspec.json.decode((await catalog.stage_table(GRANT, TableName(NS, "none"), definition())).encode())
    document = {name: value for name, value in {**document, **changed}.items() if value is not ...}
    await lake.put(at, body or document)
    return f"{ROOT}/{at}"


# -- create ----------------------------------------------------------------------------------------------------------


@pytest.mark.seed(4, 33, 36)
async def test_a_table_that_is_made_anew_is_another_table(lake, catalog, second):
    await a_table(catalog)
    first = (await load(catalog)).entry.uuid
    await drop(catalog)
    await a_table(second)
    again = (await load(catalog)).entry.uuid
    assert again != first
    assert (await lake.pointer(first)).state == "tombstone"
    assert (await lake.pointer(again)).state == "live"


@pytest.mark.seed(144)
async def test_a_table_in_a_namespace_that_is_not_there_is_refused(catalog):
    for request in (
        a_table(catalog, TableName(("nowhere",), "t")),
        catalog.stage_table(GRANT, TableName(("nowhere",), "t"), definition()),
        commit(
            catalog,
            *staged("0197a1b2-0000-7000-8000-00000000abcd"),
            name=TableName(("nowhere",), "t"),
            requirements=[ASSERT_CREATE],
        ),
    ):
        assert (await told(request))[:2] == (404, "NoSuchNamespaceException")


async def test_a_table_beside_a_drop_of_its_namespace_is_in_a_namespace_or_not_there(lake, catalog, second):
    for _ in range(5):
        await a_namespace(catalog, "brief")
        name = TableName(("brief",), "t")
        made, gone = await asyncio.gather(
            told(a_table(second, name)), told(catalog.drop_namespace(GRANT, ("brief",), by()))
        )
        assert {status(made), status(gone)} in ({200, 409}, {404, 200}, {503, 200})
        if status(made) == 200:
            await drop(catalog, name)
            await catalog.drop_namespace(GRANT, ("brief",), by())


async def test_staging_a_name_that_is_taken_is_refused(catalog):
    await a_table(catalog)
    answer = await told(catalog.stage_table(GRANT, T, definition()))
    assert answer[:2] == (409, "AlreadyExistsException")


async def test_a_create_that_asks_for_a_format_gets_it_and_2_without(catalog):
    await a_table(catalog)
    await a_table(catalog, U, properties={"format-version": "3"})
    assert (await document_of(catalog))["format-version"] == 2
    assert (await document_of(catalog, U))["format-version"] == 3


@pytest.mark.parametrize(
    "bad", [{"schema": {}}, {"schema": {"type": "struct"}}, {"properties": {"format-version": "9"}}], ids=str
)
async def test_a_definition_that_makes_no_table_is_400_and_nothing_is_stored(lake, catalog, bad):
    before = await lake.names("")
    assert (await told(a_table(catalog, **bad)))[0] == 400
    assert await lake.names("") == before


# -- staged ------------------------------------------------------------------------------------------------------------


async def test_a_staged_commit_without_uuid_and_location_gets_both(catalog):
    rest = [u for u in staged("x") if u["action"] not in {"assign-uuid", "set-location"}]
    await commit(catalog, *rest, requirements=[ASSERT_CREATE])
    document = await document_of(catalog)
    assert document["location"] == f"{ROOT}/tables/{document['table-uuid']}"


@pytest.mark.parametrize(
    "uuid", ["../core/manifest", "../../../../tmp/evil", "a/b", "", "x", "x" * 300, "\u0661" * 36, "a b", "%2e%2e"]
)
async def test_a_table_uuid_that_is_no_uuid_is_refused_wherever_it_comes_from(lake, catalog, uuid):
    """Keys in the store are made of it."""
    before = await lake.names("_catalog/iceberg_pointers")
    updates = staged(uuid, f"{ROOT}/custom/place")
    answer = await told(commit(catalog, *updates, requirements=[ASSERT_CREATE]))
    assert answer[0] == 400
    location = await a_file(lake, catalog, **{"table-uuid": uuid, "location": f"{ROOT}/custom/place"})
    answer = await told(register(catalog, location))
    assert answer[0] == 400
    assert await lake.names("_catalog/iceberg_pointers") == before


async def test_a_uuid_in_capitals_is_the_same_uuid(lake, catalog):
    """Two tables of one uuid would be one to every engine that tells tables apart by it."""
    await a_table(catalog)
    document = await document_of(catalog)
    copy = {**document, "table-uuid": document["table-uuid"].upper(), "location": f"{ROOT}/custom/place"}
    location = await a_file(lake, catalog, body=msgspec.json.encode(copy))
    assert (await told(register(catalog, location, U)))[0] in {400, 409}


async def test_a_staged_commit_with_the_uuid_of_a_living_table_is_refused_and_leaves_it_alone(lake, catalog, second):
    made = await a_table(catalog)
    updates = staged(made.metadata.uuid)
    assert (await told(commit(second, *updates, name=U, requirements=[ASSERT_CREATE], key=lake.key())))[0] == 409
    assert (await load(second)).location == made.location


async def test_a_staged_commit_with_the_uuid_of_a_dropped_table_is_refused(lake, catalog, second):
    made = await a_table(catalog)
    await drop(catalog)
    answer = await told(commit(second, *staged(made.metadata.uuid), requirements=[ASSERT_CREATE], key=lake.key()))
    assert answer[0] == 409
    assert await tables(second) == []


async def test_a_staged_commit_takes_the_place_of_one_that_died(lake, catalog, second):
    """Its pointer stands under the very uuid, and no name leads there."""
    uuid = lake.key()
    gate = lake.store.hold("swap", "manifest.json")
    dead = asyncio.create_task(told(commit(catalog, *staged(uuid), requirements=[ASSERT_CREATE])))
    await gate.reached.wait()
    made = await commit(second, *staged(uuid), requirements=[ASSERT_CREATE])
    gate.open()
    assert status(await dead) in {409, 503}
    assert (await load(second)).location == made.location
    assert (await load(await lake.opened())).location == made.location


# -- register ----------------------------------------------------------------------------------------------------------


@pytest.mark.seed(282)
async def test_a_foreign_tables_file_is_registered_as_it_is(lake, catalog, second):
    location = await a_file(lake, catalog)
    made = await register(catalog, location)
    assert made.location == location
    assert (await load(second)).metadata.encode() == await lake.body("reg/x.metadata.json")
    committed = await commit(second, properties(a="b"))
    document = await document_of(catalog)
    assert committed.location.startswith(document["location"])
    assert [entry["metadata-file"] for entry in document["metadata-log"]] == [location]


async def test_a_gzipped_metadata_file_is_registered(lake, catalog, second):
    plain = await a_file(lake, catalog)
    body = await lake.body(plain.removeprefix(f"{ROOT}/"))
    location = await a_file(lake, catalog, "reg/y.gz.metadata.json", body=gzip.compress(body))
    await register(catalog, location)
    assert (await load(second)).metadata.encode() == body


@pytest.mark.parametrize("same_name", [True, False])
async def test_a_second_registration_of_a_uuid_is_409_and_names_the_first(lake, catalog, second, same_name):
    location = await a_file(lake, catalog)
    await register(catalog, location)
    answer = await told(register(second, location, T if same_name else U, key=lake.key()))
    assert answer[0] == 409
    assert "ns.t" in answer[2]
    assert await tables(second) == ["t"]


async def test_a_name_that_is_taken_is_409_and_the_pointer_stays_buried(lake, catalog):
    made = await a_table(catalog)
    await rename(catalog, T, U)
    await drop(catalog, U)
    await a_table(catalog)
    answer = await told(register(catalog, made.location))
    assert answer[:2] == (409, "AlreadyExistsException")
    assert (await lake.pointer(made.metadata.uuid)).state == "tombstone"


@pytest.mark.seed(36, 282)
async def test_a_table_dropped_by_mistake_comes_back_by_registering_its_last_file(lake, catalog, second):
    await a_table(catalog)
    last = await commit(catalog, properties(a="b"))
    await drop(catalog)
    await register(second, last.location)
    loaded = await load(catalog)
    assert (loaded.metadata.uuid, loaded.metadata.properties) == (last.metadata.uuid, {"a": "b"})
    await commit(catalog, properties(c="d"))


async def test_a_table_comes_back_while_its_tombstone_is_still_owed(lake, catalog, second):
    made = await a_table(catalog)
    await lake.settled()
    gate = lake.store.hold("swap", "iceberg_pointers")
    dropping = asyncio.create_task(told(drop(catalog)))
    await gate.reached.wait()
    await register(second, made.location)
    gate.open()
    assert status(await dropping) == 200
    third = await lake.opened()
    await third.sweep()
    assert (await lake.pointer(made.metadata.uuid)).state == "live"
    assert (await load(third)).location == made.location


async def test_drop_and_register_again_and_again(lake, catalog, second):
    location = (await a_table(catalog)).location
    for number, process in enumerate([catalog, second] * 3):
        await drop(process, key=lake.key() if number % 2 else None)
        await register(second if process is catalog else catalog, location)
        assert (await load(process)).location == location
    assert (await lake.pointer((await load(catalog)).entry.uuid)).commit_number == 6


@pytest.mark.parametrize("file", ["missing", "garbage", "other json", "half a gzip", "list"])
async def test_a_file_that_is_no_table_metadata_is_400_and_says_where(lake, catalog, file):
    bodies = {
        "garbage": b"\x00\xff",
        "other json": b"{}",
        "half a gzip": gzip.compress(b"{" * 1000)[:20],
        "list": b"[]",
    }
    location = f"{ROOT}/reg/{file}.json"
    if file != "missing":
        await lake.put(f"reg/{file}.json", bodies[file])
    answer = await told(register(catalog, location))
    assert answer[0] == 400
    assert await tables(catalog) == []
    assert await lake.names("_catalog/iceberg_pointers") == []


@pytest.mark.parametrize(
    "location",
    ["mem:///elsewhere/x.json", "/lake/x.json", "s3://b/x.json", f"{ROOT}/../x.json", f"{ROOT}/%2e%2e/x.json", "x"],
)
async def test_a_file_that_is_not_under_the_root_is_not_read(lake, catalog, location):
    lake.store.calls.clear()
    assert (await told(register(catalog, location)))[0] == 400
    assert lake.store.count("get", "x.json") == 0


@pytest.mark.parametrize("place", ["mem:///elsewhere/t", "/lake/t", f"{ROOT}/../t", f"{ROOT}_too/t"])
async def test_a_file_whose_table_lies_elsewhere_is_refused(lake, catalog, place):
    location = await a_file(lake, catalog, location=place)
    assert (await told(register(catalog, location)))[0] == 400


@pytest.mark.parametrize("place", [f"{ROOT}/_catalog", f"{ROOT}/_catalog/core", ROOT, f"{ROOT}/tables"])
async def test_a_file_whose_table_lies_in_the_catalogs_own_place_is_refused(lake, catalog, place):
    location = await a_file(lake, catalog, location=place)
    assert (await told(register(catalog, location)))[0] == 400


async def test_an_allowed_location_serves_create_staged_create_and_register(lake, allowing):
    await a_table(allowing, location=f"{ELSEWHERE}/t/")
    document = await document_of(allowing)
    assert document["location"] == f"{ELSEWHERE}/t"
    await commit(allowing, *staged(lake.key(), f"{ELSEWHERE}/u"), name=U, requirements=[ASSERT_CREATE])
    made = await commit(allowing, properties(a="b"), name=U)
    assert made.location.startswith(f"{ELSEWHERE}/u/metadata/")
    await drop(allowing, U)
    await register(allowing, made.location, U)
    assert (await told(a_table(allowing, TableName(NS, "v"), location=f"{ELSEWHERE}_too/v")))[0] == 400


async def test_who_made_a_table_is_in_its_first_receipt(lake, catalog):
    await catalog.create_table(Grant(principal="ann", client="x/1"), T, definition(), by())
    await lake.settled()
    (receipt,) = await lake.receipts()
    assert receipt["source"]["principal"] == "ann"
    assert (receipt["commit_number"], receipt["previous"]) == (0, None)


async def test_register_with_overwrite_says_that_it_is_not_offered_yet(catalog):
    with pytest.raises(BadInput, match="overwrite"):
        await catalog.register_table(GRANT, T, f"{ROOT}/x.json", True, by())


async def test_a_hidden_place_is_no_place_for_a_table(catalog):
    """The local directory keeps its locks and drafts there."""
    for location in (f"{ROOT}/.frazil/x", f"{ROOT}/a/.hidden", f"{ROOT}/.x"):
        assert (await told(a_table(catalog, location=location)))[0] == 400


async def test_a_location_longer_than_any_store_takes_is_400(catalog):
    for location in (f"{ROOT}/{'n' * 300}/x", f"{ROOT}/{'/'.join('d' * 900)}"):
        assert (await told(a_table(catalog, location=location)))[0] == 400


async def test_a_registered_file_has_no_reserved_properties(lake, catalog):
    location = await a_file(lake, catalog, properties={"Frazil.x": "1"}, location=f"{ROOT}/custom/place")
    assert (await told(register(catalog, location)))[0] == 400


async def test_a_staged_commit_on_a_table_that_is_there_is_409_whatever_else_is_wrong(catalog):
    await a_table(catalog)
    answer = await told(commit(catalog, properties(a="b"), requirements=[ASSERT_CREATE]))
    assert answer[0] == 409
