"""Reading, looking into and writing back a metadata file."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from frazil import limits
from frazil.errors import BadInput
from frazil.iceberg.metadata import TableMetadata
from tests.iceberg.builders import a_table, changed, document, exact, set_properties, set_ref, stored

EVERY = ("v1_old", "v1", "v2", "v3")


def altered(name: str, **changes: Any) -> bytes:
    table = json.loads(stored(name))
    for key, value in changes.items():
        if value is ...:
            del table[key.replace("_", "-")]
        else:
            table[key.replace("_", "-")] = value
    return json.dumps(table).encode()


@pytest.mark.parametrize("name", EVERY)
def test_a_document_is_written_back_as_it_was_read(name):
    assert exact(TableMetadata.parse(stored(name)).encode()) == exact(stored(name))


@pytest.mark.parametrize("name", EVERY)
def test_the_parts_are_the_document_in_order(name):
    table = TableMetadata.parse(stored(name))
    assert b"".join(table.parts()) == table.encode()
    assert all(type(part) is bytes for part in table.parts())


@pytest.mark.parametrize("name", EVERY)
def test_a_gzipped_document_is_read_as_the_plain_one(name):
    assert TableMetadata.parse(gzip.compress(stored(name))).encode() == TableMetadata.parse(stored(name)).encode()


def test_several_gzip_members_are_one_document():
    whole = stored("v2")
    assert TableMetadata.parse(gzip.compress(whole[:500]) + gzip.compress(whole[500:])).uuid.startswith("9c12d441")


def test_a_gzipped_document_that_ends_early_is_refused():
    with pytest.raises(BadInput, match="ends early"):
        TableMetadata.parse(gzip.compress(stored("v2"))[:-20])


def test_a_broken_gzip_stream_is_refused():
    with pytest.raises(BadInput, match="malformed"):
        TableMetadata.parse(b"\x1f\x8b" + b"no gzip at all")


def test_a_document_that_inflates_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(limits, "metadata_bytes_max", 100_000)
    with pytest.raises(BadInput, match="inflates to more than 100000 bytes"):
        TableMetadata.parse(gzip.compress(b" " * 100_001))


def test_the_views_say_what_the_document_says():
    table = TableMetadata.parse(stored("v2"))
    assert (table.uuid, table.format_version) == ("9c12d441-03fe-4693-9a96-a0705ddf69c1", 2)
    assert (table.location, table.properties) == ("s3://bucket/test/v2", {"read.split.target.size": "134217728"})
    assert (table.last_sequence_number, table.last_updated_ms, table.last_column_id) == (34, 1602638573590, 9)
    assert (table.current_schema_id, table.default_spec_id, table.default_sort_order_id) == (1, 0, 3)
    assert (table.last_partition_id, table.next_row_id, table.compressed) == (1000, 0, False)
    assert table.current_snapshot_id == 3055729675574597004
    assert table.refs["v1.0"] == {"snapshot-id": 3051729675574597004, "type": "tag", "max-ref-age-ms": 10000000}
    assert [schema["schema-id"] for schema in table.schemas] == [0, 1]
    assert table.partition_specs[0]["x-spec"] == "kept"
    assert table.sort_orders[0]["order-id"] == 3
    assert [entry["metadata-file"] for entry in table.metadata_log] == ["s3://bucket/test/v2/00000.json"]
    assert [entry["timestamp-ms"] for entry in table.snapshot_log] == [1515100955770, 1555100955770]


def test_snapshots_are_found_by_id():
    table = TableMetadata.parse(stored("v2"))
    found = table.snapshot(3051729675574597004)
    assert found is not None
    assert found["x-snapshot"] == 18446744073709551617
    assert table.has_snapshot(3055729675574597004)
    assert not table.has_snapshot(1)
    assert table.snapshot(1) is None
    assert table.snapshot_count == 2


def test_a_version_3_document_has_its_next_row_id_and_asks_for_compression_in_any_case():
    table = TableMetadata.parse(stored("v3"))
    assert table.next_row_id == 150
    assert table.compressed


def test_an_old_version_1_document_has_what_its_readers_take_for_granted():
    table = TableMetadata.parse(stored("v1_old"))
    assert table.current_schema_id == 0
    assert table.schemas == [{**json.loads(stored("v1_old"))["schema"], "schema-id": 0}]
    assert table.partition_specs[0]["fields"][0]["field-id"] == 1000
    assert (table.default_spec_id, table.last_partition_id) == (0, 1000)
    assert (table.sort_orders, table.default_sort_order_id) == ([{"order-id": 0, "fields": []}], 0)
    assert table.refs == {"main": {"snapshot-id": 1925, "type": "branch"}}
    assert table.last_sequence_number == 0


def test_no_current_snapshot_is_none_however_it_is_written():
    assert TableMetadata.parse(stored("v1")).current_snapshot_id is None
    assert a_table(format_version=3).current_snapshot_id is None


def test_the_refs_only_document_has_just_the_snapshots_that_refs_name():
    table = changed(
        a_table(300),
        set_ref("old", 7, "tag"),
        set_ref("older", 2, "tag"),
        set_ref("again", 7, "tag"),
        set_properties(a="b"),
    )
    only = exact(b"".join(table.refs_only_parts()))
    assert [snapshot["snapshot-id"] for snapshot in only["snapshots"]] == [2, 7, 300]
    whole = document(table)
    assert {**only, "snapshots": whole["snapshots"]} == whole


@pytest.mark.parametrize("name", EVERY)
def test_the_refs_only_document_is_a_table_again(name):
    again = TableMetadata.parse(b"".join(TableMetadata.parse(stored(name)).refs_only_parts()))
    assert again.refs == TableMetadata.parse(stored(name)).refs


MALFORMED: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"{",
    "no object": b"[]",
    "trailing text": stored("v2") + b"x",
    "bad UTF-8": stored("v2").replace(b"the key", b"\xff\xfe key"),
    "nested without end": b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "no format-version": altered("v2", format_version=...),
    "format-version 4": altered("v2", format_version=4),
    "format-version 0": altered("v2", format_version=0),
    "format-version text": altered("v2", format_version="2"),
    "format-version true": altered("v1", format_version=True),
    "no uuid": altered("v2", table_uuid=...),
    "uuid a number": altered("v2", table_uuid=1),
    "no location": altered("v1", location=...),
    "no last-sequence-number": altered("v2", last_sequence_number=...),
    "no next-row-id": altered("v3", next_row_id=...),
    "no schemas in v2": altered("v2", schemas=...),
    "no schema in v1": altered("v1_old", schema=...),
    "no current-schema-id": altered("v2", current_schema_id=...),
    "dangling current-schema-id": altered("v2", current_schema_id=7),
    "dangling default-spec-id": altered("v2", default_spec_id=7),
    "dangling default-sort-order-id": altered("v2", default_sort_order_id=7),
    "dangling current-snapshot-id": altered("v2", current_snapshot_id=7, refs=...),
    "dangling ref": altered("v2", refs={"a": {"snapshot-id": 7, "type": "tag"}}),
    "ref without type": altered("v3", refs={"main": {"snapshot-id": 22}}),
    "main elsewhere": altered("v3", refs={"main": {"snapshot-id": 21, "type": "branch"}}),
    "main missing": altered("v3", refs={}),
    "two schemas of one id": altered("v3", schemas=json.loads(stored("v3"))["schemas"] * 2),
    "schema without id": altered("v3", schemas=[{"type": "struct", "fields": []}]),
    "schema without fields": altered("v3", schemas=[{"type": "struct", "schema-id": 0}]),
    "schemas no list": altered("v3", schemas={}),
    "unknown type": stored("v3").replace(b'"variant"', b'"blob"'),
    "spec field without source": stored("v2").replace(b'"source-id": 1, "field-id": 1000', b'"field-id": 1000'),
    "properties not strings": altered("v2", properties={"a": 1}),
    "snapshots no list": altered("v2", snapshots={}),
    "snapshot without id": altered("v1", snapshots=[{"timestamp-ms": 1}]),
    "snapshot without time": altered("v1", snapshots=[{"snapshot-id": 1}]),
    "snapshot id too big": altered("v1", snapshots=[{"snapshot-id": 2**63, "timestamp-ms": 1}]),
    "two snapshots of one id": altered("v3", snapshots=json.loads(stored("v3"))["snapshots"] * 2),
    "snapshot ahead of last-sequence-number": altered("v3", last_sequence_number=1),
    "snapshot-log entry without id": altered("v2", snapshot_log=[{"timestamp-ms": 1}]),
    "metadata-log entry without file": altered("v2", metadata_log=[{"timestamp-ms": 1}]),
    "statistics without snapshot": altered("v2", statistics=[{"statistics-path": "a"}]),
    "encryption-keys no list": altered("v3", encryption_keys="k1"),
}  # fmt: skip


@pytest.mark.parametrize("what", MALFORMED)
def test_what_is_no_table_metadata_is_refused(what):
    with pytest.raises(BadInput) as refusal:
        TableMetadata.parse(MALFORMED[what])
    assert len(refusal.value.message) > 15


VALUES: list[Any] = [..., None, 7, "text", [], {}, [7], [{}], {"a": 7}, {"a": {}}]


@pytest.mark.parametrize("name", EVERY)
def test_any_prefix_and_any_lost_field_is_refused_or_read_but_never_breaks(name):
    whole = stored(name)
    for end in range(0, len(whole), 97):
        with pytest.raises(BadInput):
            TableMetadata.parse(whole[:end])
    for key in json.loads(whole):
        for value in VALUES:
            try:
                table = TableMetadata.parse(altered(name, **{key: value}))
            except BadInput:
                continue
            assert exact(table.encode()) == exact(altered(name, **{key: value}))
            changed(table, set_properties(seen="yes"))


@pytest.mark.parametrize("name", EVERY)
def test_arrays_that_are_missing_or_null_stay_so_until_they_are_needed(name):
    for value in (..., None):
        data = altered(name, metadata_log=value) if "metadata-log" in json.loads(stored(name)) else stored(name)
        table = TableMetadata.parse(data)
        assert exact(table.encode()) == exact(data)
        assert document(changed(table, set_properties(a="b")))["metadata-log"][0]["metadata-file"]


def test_a_big_value_is_a_slice_of_its_own_and_shared_by_the_next_version():
    wide = {
        "type": "struct",
        "fields": [{"id": i, "name": f"c{i}", "type": "long", "required": False} for i in range(1, 2000)],
    }
    table = a_table(schema=wide)
    later = changed(table, set_properties(a="b"))
    big = max(table.parts(), key=len)
    assert any(part is big for part in later.parts())


def test_statistics_with_numbers_nobody_can_hold_are_kept_while_others_change():
    data = stored("v2").replace(b'"x-stats": 1', b'"x-stats": 1e999')
    table = changed(
        TableMetadata.parse(data), {"action": "remove-partition-statistics", "snapshot-id": 3055729675574597004}
    )
    table = changed(table, {"action": "remove-statistics", "snapshot-id": 5}, set_properties(a="b"))
    assert b"1e999" in table.encode()
