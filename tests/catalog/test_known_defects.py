"""Defects that another catalog had, one test each, as far as they can be made here: B1 to B4, B10 to B20 and B24."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from obstore.store import MemoryStore

from frazil.names import TableName
from frazil.store import cloud, keys
from frazil.store.base import Applied, Refused
from tests.catalog.builders import (
    ASSERT_CREATE,
    EMPTY,
    GRANT,
    NOW_MS,
    NS,
    ROOT,
    SCHEMA,
    T,
    U,
    a_namespace,
    a_table,
    an_append,
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

DAY_MS = 24 * 3_600_000


# -- commit outcomes ---------------------------------------------------------------------------------------------------


@pytest.mark.seed(65, 128, 251, 272, 277)
@pytest.mark.parametrize("on_top", [1, 4])
@pytest.mark.parametrize("short_log", [False, True], ids=["long log", "log of one"])
async def test_b1_a_commit_that_others_committed_on_top_of_is_still_found_by_its_key(
    lake, catalog, second, on_top, short_log
):
    """It landed, its server died before receipt and marker. However many came on top: the first answer, once."""
    await a_table(catalog, properties={"write.metadata.previous-versions-max": "1"} if short_log else {})
    await lake.settled()
    key = lake.key()
    receipt, marker = lake.store.hold("create", "/committed/"), lake.store.hold("swap", "iceberg_idempotency")
    first = (await commit(catalog, *an_append(1), requirements=[EMPTY], key=key)).location
    await receipt.reached.wait()
    for number in range(on_top):
        await commit(second, properties(**{f"p{number}": "x"}))
        await lake.opened()
    fresh = await lake.opened()
    again = await commit(fresh, *an_append(1), requirements=[EMPTY], key=key)
    assert again.location == first
    assert [s["snapshot-id"] for s in (await document_of(fresh))["snapshots"]] == [1]
    receipt.open()
    marker.open()


@pytest.mark.seed(65, 67, 272)
async def test_b2_a_slow_first_try_and_the_one_that_took_over_are_told_the_same(lake, catalog, second):
    """The first stalls before its CAS, the retry takes over and commits, the first wakes: one effect, one answer."""
    await a_table(catalog)
    await load(second)
    await lake.settled()
    key = lake.key()
    gate = lake.store.hold("swap", "iceberg_pointers")
    slow = asyncio.create_task(told(commit(catalog, *an_append(1), requirements=[EMPTY], key=key)))
    await gate.reached.wait()
    retried = await told(commit(second, *an_append(1), requirements=[EMPTY], key=key))
    gate.open()
    assert status(retried) == 200
    assert await slow == retried
    assert [s["snapshot-id"] for s in (await document_of(second))["snapshots"]] == [1]


@pytest.mark.seed(128, 272)
@pytest.mark.parametrize("verb, part", [("swap", "iceberg_pointers"), ("create", "/metadata/")])
async def test_b3_a_write_that_landed_without_an_answer_is_no_conflict_with_oneself(lake, catalog, verb, part):
    await a_table(catalog)
    lake.store.lose_answer(verb, part)
    made = await commit(catalog, *an_append(1), requirements=[EMPTY], key=lake.key())
    assert (await load(catalog)).location == made.location


@pytest.mark.seed(145, 272)
async def test_b3_a_commit_whose_outcome_nobody_knows_is_unknown_never_409(lake, catalog):
    await a_table(catalog)
    await lake.settled()
    lake.store.refuse_writes("iceberg_pointers")
    answer = await told(commit(catalog, *an_append(1), requirements=[EMPTY], key=lake.key()))
    assert answer[:2] == (500, "CommitStateUnknownException")


@pytest.mark.seed(153)
async def test_b4_the_effective_location_changes_with_every_commit_and_with_nothing_else(lake, catalog, second):
    """What an ETag hashes: a fence, a rename or a second reader is no new version; a commit is one for everybody."""
    await a_table(catalog)
    first = (await load(catalog)).location
    assert (await load(second)).location == first
    await rename(catalog, T, U)
    assert (await load(second, U)).location == first
    gate = lake.store.hold("swap", "iceberg_pointers")
    slow = asyncio.create_task(told(commit(catalog, properties(a="b"), name=U, key=(key := lake.key()))))
    await gate.reached.wait()
    taken = lake.store.hold("swap", "iceberg_idempotency")
    taking_over = asyncio.create_task(told(commit(second, properties(a="b"), name=U, key=key)))
    await taken.reached.wait()
    fences = (await lake.pointer((await load(catalog, U)).entry.uuid)).fences
    assert fences == 1
    assert (await load(await lake.opened(), U)).location == first
    taken.open()
    gate.open()
    done = await taking_over
    assert await slow == done
    for process in (catalog, second, await lake.opened()):
        assert (await load(process, U)).location == done != first


# -- table lifecycle -----------------------------------------------------------------------------------------------


@pytest.mark.seed(91, 282, 283)
async def test_b10_the_retry_of_a_lost_answer_is_never_already_exists_nor_not_found(lake, catalog, second):
    location = (await a_table(catalog, TableName(NS, "away"))).location
    await drop(catalog, TableName(NS, "away"))
    steps = [
        lambda c, k: a_namespace(c, "n", key=k),
        lambda c, k: c.update_namespace(GRANT, ("n",), [], {"a": "b"}, by(k)),
        lambda c, k: c.drop_namespace(GRANT, ("n",), by(k)),
        lambda c, k: a_table(c, key=k),
        lambda c, k: rename(c, T, U, key=k),
        lambda c, k: drop(c, U, key=k),
        lambda c, k: register(c, location, T, key=k),
    ]
    for step in steps:
        key = lake.key()
        first = await told(step(catalog, key))
        assert status(first) == 200, first
        assert await told(step(second, key)) == first


@pytest.mark.seed(33)
@pytest.mark.parametrize("verb, part", [("create", "/metadata/"), ("create", "iceberg_pointers"), ("swap", keys.HEAD)])
async def test_b11_a_creation_that_died_leaves_no_name_and_the_next_one_is_whole(lake, catalog, second, verb, part):
    gate = lake.store.hold(verb, part)
    dead = asyncio.create_task(told(a_table(catalog)))
    await gate.reached.wait()
    dead.cancel()
    await asyncio.gather(dead, return_exceptions=True)
    assert await tables(second) == []
    assert status(await told(load(second))) == 404
    await a_table(second)
    assert (await load(second)).location == (await load(await lake.opened())).location


@pytest.mark.seed(34, 37)
async def test_b11_a_commit_in_flight_over_a_drop_fails_and_the_pointer_takes_no_more(lake, catalog, second):
    await a_table(catalog)
    uuid = (await load(second)).entry.uuid
    await lake.settled()
    gate = lake.store.hold("swap", "iceberg_pointers")
    late = asyncio.create_task(told(commit(second, properties(a="b"), key=lake.key())))
    await gate.reached.wait()
    await drop(catalog)
    gate.open()
    assert (await late)[:2] == (404, "NoSuchTableException")
    assert (await lake.pointer(uuid)).state == "tombstone"


@pytest.mark.seed(18, 396)
async def test_b12_a_default_location_is_an_absolute_uri_and_the_files_are_where_it_says(lake, catalog):
    made = await a_table(catalog)
    document = await document_of(catalog)
    assert document["location"].startswith(f"{ROOT}/tables/")
    assert made.location.startswith(document["location"] + "/metadata/")
    assert await lake.body(made.location.removeprefix(f"{ROOT}/"))


@pytest.mark.seed(18)
@pytest.mark.parametrize("location", ["s3://elsewhere/t", "mem:///lake_too/t", "mem://host/lake/t", "/lake/t", "t"])
async def test_b12_a_location_that_is_not_the_catalogs_is_refused_not_advertised(lake, catalog, location):
    answer = await told(a_table(catalog, location=location))
    assert answer[0] == 400
    assert location in answer[2]
    assert await tables(catalog) == []


@pytest.mark.seed(18)
async def test_b12_the_bytes_of_a_table_are_where_its_location_says_letter_by_letter(lake, catalog):
    """An object store does not fold two slashes into one: a location with them is kept as it is, or refused."""
    answer = await told(a_table(catalog, location=f"{ROOT}/here//t"))
    if status(answer) == 200:
        assert await lake.names(answer.removeprefix(f"{ROOT}/"))
    else:
        assert answer[0] == 400


@pytest.mark.seed(36)
async def test_b13_no_two_tables_ever_share_a_directory(catalog):
    places = []
    await a_table(catalog)
    places.append((await document_of(catalog))["location"])
    await rename(catalog, T, U)
    await a_table(catalog)
    places.append((await document_of(catalog))["location"])
    await drop(catalog)
    await a_table(catalog)
    places.append((await document_of(catalog))["location"])
    assert len(set(places)) == 3


async def test_b13_another_tables_place_is_refused(lake, catalog):
    await a_table(catalog)
    place = (await document_of(catalog))["location"]
    for location in (place, f"{place}/inside", f"{place}/metadata", f"{ROOT}/tables", f"{ROOT}/tables/x"):
        assert (await told(a_table(catalog, U, location=location)))[0] == 400
        answer = await told(commit(catalog, *staged(lake.key(), location), name=U, requirements=[ASSERT_CREATE]))
        assert answer[0] == 400


async def test_b13_a_registered_table_does_not_move_into_another_tables_place(lake, catalog):
    """A copy of a table's metadata under a new uuid would write into the first one's directory."""
    await a_table(catalog)
    copy = {**await document_of(catalog), "table-uuid": lake.key()}
    await lake.put("copy.metadata.json", copy)
    assert (await told(register(catalog, f"{ROOT}/copy.metadata.json", U)))[0] == 400


@pytest.mark.seed(27, 28, 29, 30)
async def test_b14_a_registered_table_keeps_its_uuid_file_refs_snapshot_and_sequence(lake, catalog, second):
    await a_table(catalog)
    await commit(catalog, *an_append(1))
    before = await load(catalog)
    await lake.settled()
    await drop(catalog)
    made = await register(second, before.location, U)
    assert made.location == before.location
    after = await load(catalog, U)
    assert after.entry.uuid == before.entry.uuid
    assert after.metadata.encode() == before.metadata.encode()
    pointer = await lake.pointer(before.entry.uuid)
    assert (pointer.current_snapshot_id, pointer.last_sequence_number) == (1, 1)
    assert pointer.refs == {"main": {"snapshot-id": 1, "type": "branch"}}
    answer = await told(register(catalog, before.location, TableName(NS, "twice")))
    assert answer[0] == 409


# -- Iceberg ---------------------------------------------------------------------------------------------------------


@pytest.mark.seed(25)
async def test_b15_minus_one_is_what_this_very_commit_added(catalog):
    await a_table(catalog)
    wider = {**SCHEMA, "fields": [*SCHEMA["fields"], {"id": 2, "name": "b", "required": False, "type": "string"}]}
    await commit(
        catalog,
        {"action": "add-schema", "schema": wider, "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"fields": [{"name": "b", "source-id": 2, "transform": "identity"}]}},
        {"action": "set-default-spec", "spec-id": -1},
        {
            "action": "add-sort-order",
            "sort-order": {
                "order-id": 1,
                "fields": [
                    {"source-id": 2, "transform": "identity", "direction": "asc", "null-order": "nulls-first"},
                ],
            },
        },
        {"action": "set-default-sort-order", "sort-order-id": -1},
    )
    document = await document_of(catalog)
    assert (document["current-schema-id"], document["default-spec-id"], document["default-sort-order-id"]) == (1, 1, 1)


@pytest.mark.seed(90)
async def test_b16_a_staged_create_stores_nothing_until_its_commit_makes_the_table(lake, catalog, second):
    before = await lake.names("")
    metadata = await catalog.stage_table(GRANT, T, definition())
    assert await lake.names("") == before
    assert await tables(second) == []
    updates = [*staged(metadata.uuid, metadata.location), *an_append(1)]
    made = await commit(second, *updates, requirements=[ASSERT_CREATE], key=lake.key())
    assert (await load(catalog)).location == made.location
    assert (await load(catalog)).metadata.uuid == metadata.uuid
    assert (await document_of(catalog))["current-snapshot-id"] == 1


async def test_b16_of_two_staged_creates_of_one_name_one_commits(lake, catalog, second):
    first, other = [await process.stage_table(GRANT, T, definition()) for process in (catalog, second)]
    assert first.uuid != other.uuid
    answers = [
        await told(commit(process, *staged(made.uuid, made.location), requirements=[ASSERT_CREATE], key=lake.key()))
        for process, made in ((catalog, first), (second, other))
    ]
    assert [status(answer) for answer in answers] == [200, 409]
    assert (await load(second)).metadata.uuid == first.uuid


#: Everything that a lossy catalog would drop.
RICH: dict[str, Any] = {
    "format-version": 3,
    "table-uuid": "0197a1b2-0000-7000-8000-00000000aaaa",
    "location": f"{ROOT}/tables/0197a1b2-0000-7000-8000-00000000aaaa",
    "last-sequence-number": 1,
    "last-updated-ms": NOW_MS - 1000,
    "last-column-id": 3,
    "current-schema-id": 0,
    "schemas": [
        {
            "type": "struct",
            "schema-id": 0,
            "identifier-field-ids": [1],
            "fields": [
                {"id": 1, "name": "id", "required": True, "type": "long", "doc": "the id"},
                {"id": 2, "name": "n", "required": False, "type": "int", "initial-default": 7, "write-default": 8},
                {"id": 3, "name": "v", "required": False, "type": "variant", "x-unknown": {"deep": [1.50]}},
            ],
        }
    ],
    "default-spec-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "last-partition-id": 999,
    "default-sort-order-id": 0,
    "sort-orders": [{"order-id": 0, "fields": []}],
    "properties": {"a": "b"},
    "current-snapshot-id": 1,
    "next-row-id": 3,
    "snapshots": [
        {
            "snapshot-id": 1,
            "sequence-number": 1,
            "timestamp-ms": NOW_MS - 1000,
            "manifest-list": f"{ROOT}/snap-1.avro",
            "summary": {"operation": "append", "x": "y"},
            "schema-id": 0,
            "first-row-id": 0,
            "added-rows": 3,
            "key-id": "k1",
            "x-unknown": True,
        }
    ],
    "refs": {"main": {"snapshot-id": 1, "type": "branch", "max-ref-age-ms": 5, "min-snapshots-to-keep": 2}},
    "snapshot-log": [{"snapshot-id": 1, "timestamp-ms": NOW_MS - 1000}],
    "metadata-log": [],
    "statistics": [
        {
            "snapshot-id": 1,
            "statistics-path": f"{ROOT}/s.puffin",
            "file-size-in-bytes": 1,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        }
    ],
    "partition-statistics": [{"snapshot-id": 1, "statistics-path": f"{ROOT}/p", "file-size-in-bytes": 1}],
    "encryption-keys": [{"key-id": "k1", "encrypted-key-metadata": "AA=="}],
    "x-nobody-knows": {"big": 123456789012345678901234567890, "f": 1.10},
}


@pytest.mark.seed(6, 25)
async def test_b17_nothing_is_lost_by_a_commit_not_even_what_nobody_knows(lake, catalog):
    await lake.put("rich.json", json.dumps(RICH).encode())
    await register(catalog, f"{ROOT}/rich.json")
    await commit(catalog, properties(c="d"))
    await commit(catalog, {"action": "remove-properties", "removals": ["c"]})
    after = await document_of(catalog)
    changing = {"last-updated-ms", "metadata-log"}
    assert {key: value for key, value in after.items() if key not in changing} == {
        key: value for key, value in RICH.items() if key not in changing
    }
    assert len(after["metadata-log"]) == 2


@pytest.mark.seed(122, 394)
async def test_b18_ids_are_fresh_and_count_nested_fields_and_the_defaults_are_there(catalog):
    nested = {
        "type": "struct",
        "fields": [
            {"id": 40, "name": "a", "required": False, "type": "long"},
            {
                "id": 30,
                "name": "s",
                "required": False,
                "type": {
                    "type": "struct",
                    "fields": [
                        {"id": 20, "name": "x", "required": False, "type": "long"},
                        {
                            "id": 10,
                            "name": "l",
                            "required": False,
                            "type": {"type": "list", "element-id": 50, "element-required": False, "element": "string"},
                        },
                    ],
                },
            },
        ],
    }
    await a_table(catalog, schema=nested)
    document = await document_of(catalog)
    assert document["last-column-id"] == 5
    assert document["partition-specs"] == [{"spec-id": 0, "fields": []}]
    assert (document["default-spec-id"], document["last-partition-id"]) == (0, 999)
    assert document["sort-orders"] == [{"order-id": 0, "fields": []}]


@pytest.mark.seed(122)
async def test_b18_a_snapshot_twice_or_with_an_old_sequence_number_is_refused(catalog):
    await a_table(catalog)
    await commit(catalog, *an_append(1))
    assert (await told(commit(catalog, *an_append(1))))[0] == 400
    assert (await told(commit(catalog, *an_append(2, parent=1, sequence=1))))[0] in {400, 409}
    await commit(catalog, *an_append(2, parent=1, sequence=2))


@pytest.mark.seed(161)
async def test_b19_the_metadata_log_is_as_long_as_the_property_says_and_a_commit_no_dearer_with_history(lake, catalog):
    await a_table(catalog, properties={"write.metadata.previous-versions-max": "3"})
    locations = [(await load(catalog)).location]
    locations += [(await commit(catalog, properties(n=str(number)))).location for number in range(6)]
    log = [entry["metadata-file"] for entry in (await document_of(catalog))["metadata-log"]]
    assert log == locations[-4:-1]
    await lake.settled()
    sizes = {len(await lake.body(location.removeprefix(f"{ROOT}/"))) for location in locations[4:]}
    assert max(sizes) - min(sizes) < 20


async def test_b19_by_default_a_hundred_are_kept(catalog):
    await a_table(catalog)
    for number in range(105):
        await commit(catalog, properties(n=str(number)))
    assert len((await document_of(catalog))["metadata-log"]) == 100


# -- receipts ----------------------------------------------------------------------------------------------------------


@pytest.mark.seed(95, 98, 103)
async def test_b20_a_receipt_names_what_the_commit_replaced_and_is_filed_once_by_the_metadatas_day(lake, catalog):
    """Around midnight, too: the day is the metadata's, whoever writes the receipt and when."""
    lake.clock.pass_by(DAY_MS - 5)
    locations = [(await a_table(catalog)).location]
    await lake.settled()
    receipt = lake.store.hold("create", "/committed/")
    locations.append((await commit(catalog, properties(a="b"))).location)
    await receipt.reached.wait()
    lake.clock.pass_by(60_000)
    other = await lake.opened()
    locations += [(await commit(other, properties(n=str(number)))).location for number in range(3)]
    receipt.open()
    await lake.settled()
    receipts = await lake.receipts()
    assert [each["metadata_location"] for each in receipts] == locations
    assert [each["previous_metadata_location"] for each in receipts] == [None, *locations[:-1]]
    assert [each["commit_number"] for each in receipts] == [0, 1, 2, 3, 4]
    days = [key.split("/")[2] for key in await lake.names("_catalog/events/") if "/committed/" in key]
    assert sorted(days) == ["2026-01-01"] * 2 + ["2026-01-02"] * 3


# -- platform --------------------------------------------------------------------------------------------------------


@pytest.mark.seed(35, 41, 98)
def test_b24_the_s3_backend_sends_conditional_puts_without_being_told_to(monkeypatch):
    """And nobody below it repeats them: the repeat of one's own write is answered by the write before it."""
    opened: list[dict[str, Any]] = []

    def noting(bucket: str, **options: Any) -> Any:
        opened.append(options)
        raise KeyboardInterrupt

    monkeypatch.setattr(cloud, "S3Store", noting)
    with pytest.raises(KeyboardInterrupt):
        cloud.open_s3("s3://bucket/lake", {})
    assert opened[0]["conditional_put"] == "etag"
    assert opened[0]["retry_config"] == {"max_retries": 0}


@pytest.mark.seed(35, 40)
async def test_b24_a_put_over_what_moved_on_is_refused_by_the_store_itself():
    backend = cloud.CloudBackend(MemoryStore())  # type: ignore[arg-type]
    first = await backend.create("k", b"1")
    assert isinstance(first, Applied)
    assert isinstance(await backend.create("k", b"2"), Refused)
    second = await backend.swap("k", b"3", first.version)
    assert isinstance(second, Applied)
    assert isinstance(await backend.swap("k", b"4", first.version), Refused)
    await backend.close()
