"""Schemas, specs, sort orders and format versions of a table that exists."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.errors import BadInput
from frazil.iceberg.metadata import TableMetadata
from tests.iceberg.builders import SCHEMA, a_table, changed, commit, document, exact, refused, stored
from tests.iceberg.test_partitions import add_spec, by, part
from tests.iceberg.test_schemas import field, struct

WIDER = {**SCHEMA, "fields": [*SCHEMA["fields"], field(4, "more", "string")]}


def add_schema(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"action": "add-schema", "schema": schema, **more}


def use_schema(id: int = -1) -> dict[str, Any]:
    return {"action": "set-current-schema", "schema-id": id}


def use_spec(id: int = -1) -> dict[str, Any]:
    return {"action": "set-default-spec", "spec-id": id}


def add_order(*fields: dict[str, Any], id: int = 1) -> dict[str, Any]:
    return {"action": "add-sort-order", "sort-order": {"order-id": id, "fields": list(fields)}}


def use_order(id: int = -1) -> dict[str, Any]:
    return {"action": "set-default-sort-order", "sort-order-id": id}


# -- schemas ----------------------------------------------------------------------------------------------------------


@pytest.mark.seed(25)
def test_a_schema_is_added_under_the_next_id_and_made_current():
    table = changed(a_table(), add_schema({**WIDER, "schema-id": 77}), use_schema())
    assert table.schemas[1] == {**WIDER, "schema-id": 1}
    assert (table.current_schema_id, table.last_column_id) == (1, 4)
    back = changed(table, use_schema(0))
    assert (back.current_schema_id, back.last_column_id) == (0, 4)


def test_a_schema_that_is_there_is_not_added_twice_and_is_what_minus_one_means():
    table = changed(a_table(), add_schema(WIDER), use_schema())
    assert changed(table, add_schema(SCHEMA), use_schema()).current_schema_id == 0
    assert len(changed(table, add_schema(SCHEMA), use_schema()).schemas) == 2
    assert commit(table, add_schema(WIDER), use_schema()) is table


def test_the_last_column_id_is_the_highest_ever():
    narrow = struct(field(1, "id", "long", True))
    table = changed(a_table(), add_schema(narrow), use_schema())
    assert table.last_column_id == 3
    assert changed(table, add_schema(WIDER, **{"last-column-id": 12})).last_column_id == 12
    assert changed(table, add_schema(narrow, **{"last-column-id": 1}), add_schema(WIDER)).last_column_id == 4


@pytest.mark.parametrize(
    "update, message",
    [
        (use_schema(), "Cannot set last added schema: no schema has been added"),
        (use_schema(9), "Cannot set current schema to unknown schema: 9"),
        (use_spec(), "Cannot set last added spec: no spec has been added"),
        (use_spec(9), "Cannot set default partition spec to unknown spec: 9"),
        (use_order(), "Cannot set last added sort order: no sort order has been added"),
        (use_order(9), "Cannot set default sort order to unknown sort order: 9"),
        ({"action": "remove-schemas", "schema-ids": [0]}, "Cannot remove the current schema"),
        ({"action": "remove-partition-specs", "spec-ids": [0]}, "Cannot remove the default partition spec"),
        ({"action": "set-current-schema"}, "schema-id must be an integer"),
        ({"action": "add-schema"}, "schema must be an object"),
        ({"action": "add-spec"}, "spec must be an object"),
        ({"action": "add-sort-order"}, "sort-order must be an object"),
    ],
)
def test_what_cannot_be_chosen_or_removed_is_refused(update, message):
    error = refused(commit(a_table(), update))
    assert type(error) is BadInput
    assert message in error.message


def test_what_a_commit_added_and_removed_again_cannot_be_chosen():
    for changes, message in (
        ([add_schema(WIDER), {"action": "remove-schemas", "schema-ids": [1]}, use_schema()], "unknown schema: 1"),
        ([add_spec(part(3, "day", "d")), {"action": "remove-partition-specs", "spec-ids": [1]}, use_spec()], "spec: 1"),
    ):
        assert message in refused(commit(a_table(), *changes)).message


def test_a_schema_of_a_later_format_is_refused_until_the_table_is_of_it():
    later = struct(field(1, "id", "timestamp_ns"))
    assert "not supported until v3" in refused(commit(a_table(), add_schema(later))).message
    assert changed(a_table(), {"action": "upgrade-format-version", "format-version": 3}, add_schema(later)).schemas[1:]


@pytest.mark.seed(403)
def test_schemas_and_specs_nobody_uses_are_removed():
    table = changed(a_table(), add_schema(WIDER), use_schema(), add_spec(part(1, "identity", "id")), use_spec())
    table = changed(
        table,
        {"action": "remove-schemas", "schema-ids": [0, 55]},
        {"action": "remove-partition-specs", "spec-ids": [0, 55]},
    )
    assert [schema["schema-id"] for schema in table.schemas] == [1]
    assert [spec["spec-id"] for spec in table.partition_specs] == [1]
    assert TableMetadata.parse(table.encode()).current_schema_id == 1


# -- specs and orders -------------------------------------------------------------------------------------------------


@pytest.mark.seed(403)
def test_a_spec_is_added_and_made_default_and_its_equal_is_reused():
    table = changed(a_table(), add_spec(part(3, "day", "d")), use_spec())
    assert table.partition_specs[1] == {"spec-id": 1, "fields": [part(3, "day", "d", **{"field-id": 1000})]}
    assert (table.default_spec_id, table.last_partition_id) == (1, 1000)
    back = changed(table, add_spec(), use_spec())
    assert (back.default_spec_id, len(back.partition_specs)) == (0, 2)
    again = changed(back, add_spec(part(3, "day", "d", **{"field-id": 1007})), use_spec())
    assert (again.default_spec_id, again.last_partition_id) == (1, 1000)


@pytest.mark.seed(403)
def test_a_sort_order_is_added_and_made_default_and_its_equal_is_reused():
    table = changed(a_table(), add_order(by(1), id=9), use_order())
    assert table.sort_orders[1] == {"order-id": 1, "fields": [by(1)]}
    assert table.default_sort_order_id == 1
    back = changed(table, add_order(id=0), use_order())
    assert (back.default_sort_order_id, len(back.sort_orders)) == (0, 2)
    assert changed(back, add_order(by(1)), use_order()).default_sort_order_id == 1
    assert [order["order-id"] for order in changed(back, add_order(by(2))).sort_orders] == [0, 1, 2]


def test_the_unsorted_order_is_0_even_where_it_comes_late():
    table = TableMetadata.parse(stored("v2"))
    assert [order["order-id"] for order in table.sort_orders] == [3]
    after = changed(table, add_order(id=0), use_order())
    assert [order["order-id"] for order in after.sort_orders] == [3, 0]
    assert after.default_sort_order_id == 0


def test_a_spec_over_a_column_that_comes_in_the_same_commit():
    table = changed(a_table(), add_schema(WIDER), use_schema(), add_spec(part(4, "bucket[2]", "more_b")), use_spec())
    assert table.partition_specs[1]["fields"][0]["source-id"] == 4
    assert (
        "Cannot find source column"
        in refused(commit(a_table(), add_schema(WIDER), add_spec(part(4, "void[2]", "m")))).message
    )


def test_a_column_that_the_default_spec_or_order_needs_stays():
    narrow = struct(field(1, "id", "long", True))
    by_day = changed(a_table(), add_spec(part(3, "day", "d")), use_spec())
    assert (
        "Cannot find source column for partition field: d"
        in refused(commit(by_day, add_schema(narrow), use_schema())).message
    )
    sorted_by = changed(a_table(), add_order(by(2)), use_order())
    assert (
        "Cannot find source column for sort field"
        in refused(commit(sorted_by, add_schema(narrow), use_schema())).message
    )
    assert changed(by_day, add_schema(narrow), use_schema(), use_spec(0)).current_schema_id == 1
    assert changed(sorted_by, use_order(0), add_schema(narrow), use_schema()).current_schema_id == 1


def test_a_column_may_not_take_a_partitions_name():
    table = changed(a_table(), add_spec(part(3, "day", "more")), use_spec())
    assert (
        "sourced from different field in schema: more"
        in refused(commit(table, add_schema(WIDER), use_schema())).message
    )


# -- format versions --------------------------------------------------------------------------------------------------


@pytest.mark.seed(403)
@pytest.mark.parametrize("name", ["v1_old", "v1"])
@pytest.mark.parametrize("to", [2, 3])
def test_an_upgrade_of_version_1_gives_it_what_later_versions_need(name, to):
    was = exact(stored(name))
    table = changed(TableMetadata.parse(stored(name)), {"action": "upgrade-format-version", "format-version": to})
    doc = document(table)
    assert (doc["format-version"], doc["last-sequence-number"]) == (to, 0)
    assert "schema" not in doc
    assert "partition-spec" not in doc
    assert doc["schemas"][0]["fields"] == was["schema"]["fields"]
    assert (to == 3) == ("next-row-id" in doc)
    assert [snapshot["snapshot-id"] for snapshot in doc["snapshots"]] == [s["snapshot-id"] for s in was["snapshots"]]
    assert TableMetadata.parse(table.encode()).format_version == to


def test_version_2_becomes_3_with_all_it_had():
    was = exact(stored("v2"))
    doc = document(
        changed(TableMetadata.parse(stored("v2")), {"action": "upgrade-format-version", "format-version": 3})
    )
    assert doc["next-row-id"] == 0
    changed_keys = {"format-version", "next-row-id", "last-updated-ms", "metadata-log"}
    assert {key for key in doc if doc[key] != was.get(key)} == changed_keys


@pytest.mark.parametrize(
    "to, message",
    [(1, "Cannot downgrade v2 table to v1"), (4, "unsupported format version: v4"), ("3", "must be an integer")],
)
def test_a_version_that_cannot_be_is_refused(to, message):
    assert message in refused(commit(a_table(), {"action": "upgrade-format-version", "format-version": to})).message


def test_a_version_1_table_without_uuid_needs_one_to_be_upgraded():
    old = json.loads(stored("v1_old"))
    del old["table-uuid"]
    table = TableMetadata.parse(json.dumps(old).encode())
    upgrade = {"action": "upgrade-format-version", "format-version": 2}
    assert "uuid" in refused(commit(table, upgrade)).message
    assert changed(table, {"action": "assign-uuid", "uuid": "u"}, upgrade).uuid == "u"


def test_version_1_goes_on_telling_its_oldest_readers_the_current_schema_and_spec():
    table = changed(
        TableMetadata.parse(stored("v1_old")),
        add_schema(struct(field(1, "x", "long", True), field(4, "w"))),
        use_schema(),
        add_spec(part(1, "void", "x"), part(4, "bucket[2]", "w_b")),
        use_spec(),
    )
    doc = document(table)
    assert doc["schema"] == doc["schemas"][1]
    assert doc["partition-spec"] == doc["partition-specs"][1]["fields"]
    assert doc["schemas"][0]["x-origin"] == "ddl"
    assert [field["field-id"] for field in doc["partition-spec"]] == [1000, 1001]
    assert doc["last-partition-id"] == 1001
