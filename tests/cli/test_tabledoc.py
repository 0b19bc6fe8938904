"""Table metadata as people read it."""

import pytest

from frazil.cli.tabledoc import changes, columns, current_snapshot, partition, shown_type, sort_order, versions

STRUCT = {"type": "struct", "fields": [{"id": 3, "name": "x", "required": True, "type": "double"}]}
METADATA = {
    "current-schema-id": 1,
    "schemas": [
        {"schema-id": 0, "fields": [{"id": 9, "name": "gone", "required": False, "type": "int"}]},
        {
            "schema-id": 1,
            "fields": [
                {"id": 1, "name": "id", "required": True, "type": "long", "doc": "who"},
                {"id": 2, "name": "place", "required": False, "type": STRUCT},
            ],
        },
    ],
    "default-spec-id": 0,
    "partition-specs": [
        {
            "spec-id": 0,
            "fields": [
                {"source-id": 1, "field-id": 1000, "name": "id_bucket", "transform": "bucket[16]"},
                {"source-id": 3, "field-id": 1001, "name": "x", "transform": "identity"},
                {"source-id": 9, "field-id": 1002, "name": "gone", "transform": "void"},
                {"source-id": 9, "field-id": 1003, "name": "gone_day", "transform": "day"},
            ],
        }
    ],
    "default-sort-order-id": 1,
    "sort-orders": [
        {"order-id": 1, "fields": [{"source-id": 1, "transform": "identity", "direction": "desc", "null-order": "x"}]}
    ],
    "current-snapshot-id": 11,
    "last-updated-ms": 5000,
    "snapshots": [
        {"snapshot-id": 11, "summary": {"operation": "append", "added-records": "3", "total-records": "3"}},
        {"snapshot-id": 12, "summary": {"operation": "append", "added-records": "4"}},
    ],
    "snapshot-log": [
        {"snapshot-id": 10, "timestamp-ms": 1000},
        {"snapshot-id": 11, "timestamp-ms": 2000},
        {"snapshot-id": 12, "timestamp-ms": 3000},
        {"snapshot-id": 11, "timestamp-ms": 4000},
    ],
    "metadata-log": [{"timestamp-ms": 900, "metadata-file": "file:/0"}],
}


@pytest.mark.parametrize(
    "type_, shown",
    [
        ("decimal(9, 2)", "decimal(9, 2)"),
        (STRUCT, "struct<x: double>"),
        ({"type": "list", "element-id": 4, "element": "int", "element-required": False}, "list<int>"),
        (
            {"type": "map", "key-id": 4, "key": "string", "value-id": 5, "value": STRUCT},
            "map<string, struct<x: double>>",
        ),
    ],
)
def test_types_are_written_as_sql_writes_them(type_, shown):
    assert shown_type(type_) == shown


def test_columns_are_those_of_the_current_schema():
    assert columns(METADATA) == [[1, "id", "long", "yes", "who"], [2, "place", "struct<x: double>", "", None]]


def test_partitions_name_columns_by_their_path_also_dropped_ones():
    assert partition(METADATA) == "bucket(16, id), place.x, day(gone)"


def test_a_sort_order_says_its_direction():
    assert sort_order(METADATA) == "id desc"


def test_a_table_without_partitions_order_or_data_says_so():
    bare = {**METADATA, "partition-specs": [{"spec-id": 0, "fields": []}], "sort-orders": [], "current-snapshot-id": -1}
    assert (partition(bare), sort_order(bare), current_snapshot(bare)) == (None, None, "none")


def test_the_current_snapshot_comes_with_its_rows():
    assert current_snapshot(METADATA) == "11 (3 rows)"


def test_a_rollback_is_in_the_history_and_only_the_last_line_is_current():
    found = changes(METADATA)
    assert [each["snapshot-id"] for each in found] == [10, 11, 12, 11]
    assert [each["current"] for each in found] == [False, False, False, True]
    assert [each["operation"] for each in found] == ["(expired)", "append", "append", "append"]


def test_the_metadata_files_end_with_the_current_one():
    assert [each["metadata-file"] for each in versions({"metadata-location": "file:/1", "metadata": METADATA})] == [
        "file:/0",
        "file:/1",
    ]
