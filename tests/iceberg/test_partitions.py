"""Partition specs and sort orders against a schema."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.errors import BadInput
from frazil.iceberg import partitions, schemas
from tests.iceberg.builders import a_table, changed, commit, created, document, refused
from tests.iceberg.test_schemas import field, listing, struct

TYPES = [
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "string",
    "uuid",
    "binary",
    "fixed[4]",
    "decimal(9,2)",
]
TYPES += ["timestamp_ns", "timestamptz_ns", "unknown", "geometry", "geography"]
TIMES = {"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"}
TAKES = {
    "identity": set(TYPES) - {"geometry", "geography"},
    "bucket[16]": TIMES | {"int", "long", "date", "time", "string", "uuid", "binary", "fixed[4]", "decimal(9,2)"},
    "truncate[4]": {"int", "long", "string", "binary", "decimal(9,2)"},
    "year": TIMES | {"date"},
    "month": TIMES | {"date"},
    "day": TIMES | {"date"},
    "hour": TIMES,
    "void": set(TYPES),
    "zorder": set(TYPES),
}

COLUMNS = schemas.columns(
    struct(
        field(1, "id", "long", True),
        field(2, "name", "string"),
        field(3, "at", "timestamp"),
        field(4, "l", listing(5, "int")),
        field(6, "s", struct(field(7, "x", "int"), field(8, "deep", listing(9, struct(field(10, "y")))))),
        field(11, "v", "variant"),
    )
)


def part(source: int, transform: str, name: str, **more: Any) -> dict[str, Any]:
    return {"source-id": source, "transform": transform, "name": name, **more}


def by(source: int, transform: str = "identity", **more: Any) -> dict[str, Any]:
    return {"transform": transform, "source-id": source, "direction": "asc", "null-order": "nulls-first", **more}


@pytest.mark.parametrize("transform", TAKES)
@pytest.mark.parametrize("type", TYPES)
def test_a_transform_takes_the_types_it_is_for(transform, type):
    columns = schemas.columns(struct(field(1, "a", type)))
    if type in TAKES[transform]:
        partitions.check_spec([part(1, transform, "p")], columns)
        partitions.check_order({"order-id": 1, "fields": [by(1, transform)]}, columns)
        return
    with pytest.raises(BadInput, match="Invalid source type"):
        partitions.check_spec([part(1, transform, "p")], columns)
    with pytest.raises(BadInput, match="Invalid source type"):
        partitions.check_order({"order-id": 1, "fields": [by(1, transform)]}, columns)


@pytest.mark.parametrize(
    "fields, message",
    [
        ([part(99, "identity", "p")], "Cannot find source column for partition field: p"),
        ([part(4, "identity", "p")], "non-primitive source field: l"),
        ([part(11, "identity", "p")], "non-primitive source field: v"),
        ([part(5, "identity", "p")], "Invalid partition field parent: l"),
        ([part(10, "identity", "p")], "Invalid partition field parent: s.deep"),
        ([part(1, "identity", "")], "empty partition name"),
        ([part(1, "identity", "p"), part(2, "identity", "p")], "partition name more than once: p"),
        ([part(1, "identity", "name")], "sourced from different field in schema: name"),
        ([part(1, "bucket[4]", "a"), part(1, "bucket[4]", "b")], "redundant partition: a conflicts with b"),
        ([part(3, "day", "a"), part(3, "hour", "b")], "redundant partition: a conflicts with b"),
        ([part(1, "bucket[0]", "a")], "Invalid transform: bucket[0]"),
        ([part(1, "bucket[" + "9" * 5000 + "]", "a")], "Invalid transform"),
        ([part(1, "truncate[0]", "a")], "Invalid transform: truncate[0]"),
        ([{"name": "a", "transform": "identity"}], "source-id must be an integer"),
        ([{"name": "a", "source-id": 1}], "transform must be a string"),
        ([{"source-id": 1, "transform": "identity"}], "name must be a string"),
        ([part(1, "identity", "a", **{"field-id": "x"})], "field-id must be an integer"),
        (
            [part(1, "identity", "a", **{"field-id": 1000}), part(2, "identity", "b", **{"field-id": 1000})],
            "must differ",
        ),
    ],
)
def test_a_spec_that_cannot_be_is_refused(fields, message):
    with pytest.raises(BadInput) as refusal:
        partitions.check_spec(fields, COLUMNS)
    assert message in refusal.value.message


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [part(1, "identity", "id")],
        [part(7, "bucket[4]", "s.x_bucket")],
        [part(1, "bucket[4]", "a"), part(1, "bucket[8]", "b"), part(1, "identity", "c")],
        [part(3, "void", "a"), part(3, "void", "b"), part(99, "void", "c")],
        [part(3, "Day", "a"), part(1, "BUCKET[4]", "b")],
    ],
)
def test_a_spec_that_can_be_is_taken(fields):
    partitions.check_spec(fields, COLUMNS)


@pytest.mark.parametrize(
    "order, message",
    [
        ({"order-id": 0, "fields": [by(1)]}, "Sort order ID 0 is reserved"),
        ({"order-id": 1, "fields": []}, "Unsorted order ID must be 0"),
        ({"order-id": 1, "fields": [by(99)]}, "Cannot find source column for sort field"),
        ({"order-id": 1, "fields": [by(4)]}, "Cannot sort by non-primitive source field: l"),
        ({"order-id": 1, "fields": [by(1, direction="up")]}, "Invalid sort direction: up"),
        ({"order-id": 1, "fields": [by(1, **{"null-order": "first"})]}, "Unexpected null order: first"),
        ({"order-id": 1}, "fields must be a list"),
        ({"order-id": 1, "fields": [7]}, "must be an object"),
    ],
)
def test_a_sort_order_that_cannot_be_is_refused(order, message):
    with pytest.raises(BadInput) as refusal:
        partitions.check_order(order, COLUMNS)
    assert message in refusal.value.message


# -- at create --------------------------------------------------------------------------------------------------------

WIDE = struct(field(30, "a", "long", True), field(40, "b", struct(field(50, "c", "timestamp"))))


@pytest.mark.seed(394)
def test_a_new_tables_spec_and_order_follow_its_columns_new_ids():
    doc = document(
        created(
            schema=WIDE,
            partition_spec={
                "spec-id": 9,
                "fields": [part(50, "day", "d", **{"field-id": 7}), part(30, "bucket[4]", "x")],
            },
            write_order={"order-id": 9, "fields": [by(50), by(30, "bucket[4]", direction="desc")]},
        )
    )
    assert doc["partition-specs"] == [
        {
            "spec-id": 0,
            "fields": [part(3, "day", "d", **{"field-id": 1000}), part(1, "bucket[4]", "x", **{"field-id": 1001})],
        }
    ]
    assert (doc["default-spec-id"], doc["last-partition-id"]) == (0, 1001)
    assert doc["sort-orders"] == [{"order-id": 1, "fields": [by(3), by(1, "bucket[4]", direction="desc")]}]
    assert doc["default-sort-order-id"] == 1


@pytest.mark.seed(394)
def test_a_new_table_without_spec_and_order_is_unpartitioned_and_unsorted():
    for spec, order in ((None, None), ({"spec-id": 3, "fields": []}, {"order-id": 0, "fields": []})):
        doc = document(created(partition_spec=spec, write_order=order))
        assert doc["partition-specs"] == [{"spec-id": 0, "fields": []}]
        assert (doc["default-spec-id"], doc["last-partition-id"]) == (0, 999)
        assert doc["sort-orders"] == [{"order-id": 0, "fields": []}]
        assert doc["default-sort-order-id"] == 0


@pytest.mark.parametrize(
    "given", [{"partition_spec": {"fields": [part(7, "day", "d")]}}, {"write_order": {"fields": [by(7)]}}]
)
def test_a_create_over_a_column_that_is_not_there_is_refused(given):
    assert "Cannot find source column: source-id 7" in refused(created(schema=WIDE, **given)).message


# -- by a commit ------------------------------------------------------------------------------------------------------


def add_spec(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"action": "add-spec", "spec": {"spec-id": 77, "fields": list(fields)}}


def test_a_partition_field_keeps_its_id_for_life_from_version_2_on():
    table = changed(a_table(), add_spec(part(1, "bucket[4]", "a"), part(2, "identity", "data")))
    table = changed(table, add_spec(part(2, "identity", "data"), part(3, "day", "d"), part(1, "bucket[4]", "again")))
    assert [field["field-id"] for field in table.partition_specs[-1]["fields"]] == [1001, 1002, 1000]
    assert table.last_partition_id == 1002
    assert [spec["spec-id"] for spec in table.partition_specs] == [0, 1, 2]


def test_in_version_1_partition_field_ids_are_positions():
    table = changed(a_table(format_version=1), add_spec(part(1, "bucket[4]", "a"), part(2, "identity", "data")))
    table = changed(table, add_spec(part(2, "identity", "data")))
    assert [field["field-id"] for field in table.partition_specs[-1]["fields"]] == [1000]
    assert table.last_partition_id == 1001
    error = refused(commit(table, add_spec(part(3, "day", "d", **{"field-id": 1002}))))
    assert "sequential IDs that are required in v1" in error.message


def test_the_ids_a_client_gives_are_kept_and_counted():
    table = changed(a_table(), add_spec(part(1, "identity", "id", **{"field-id": 1005})))
    assert table.partition_specs[-1]["fields"][0]["field-id"] == 1005
    assert table.last_partition_id == 1005


def test_ids_for_some_fields_only_are_refused():
    error = refused(commit(a_table(), add_spec(part(1, "identity", "id", **{"field-id": 1005}), part(3, "day", "d"))))
    assert "1 missing of 2 fields" in error.message
