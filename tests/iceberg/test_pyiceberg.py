"""The same commits applied by PyIceberg, and every document we make read by it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter
from pyiceberg.exceptions import ValidationError
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table.metadata import TableMetadataUtil, new_table_metadata
from pyiceberg.table.sorting import SortOrder
from pyiceberg.table.update import TableUpdate, update_table_metadata

from frazil.iceberg.metadata import TableMetadata
from tests.iceberg.builders import (
    SCHEMA,
    a_snapshot,
    a_table,
    add,
    an_append,
    changed,
    commit,
    created,
    made,
    refused,
    set_properties,
    set_ref,
    stored,
)
from tests.iceberg.test_evolution import WIDER, add_order, add_schema, use_order, use_schema, use_spec
from tests.iceberg.test_history import partition_statistics, remove, statistics
from tests.iceberg.test_partitions import add_spec, by, part
from tests.iceberg.test_schemas import field, listing, mapping, struct

#: PyIceberg reads the wall clock, and has no metadata file to log.
NOT_COMPARED = {"last-updated-ms", "metadata-log"}


#: Where PyIceberg does otherwise than Iceberg's own implementation, which we follow: it logs what a commit passes
#: through, and takes the parent from a snapshot whose parent is removed.
THEIRS_ALONE = {
    "two appends": {"snapshot-log"},
    "snapshots removed": {"snapshots"},
    "snapshots and their refs and statistics removed": {"snapshots"},
}


def read(data: bytes) -> Any:
    return TableMetadataUtil.parse_raw(data.decode())


def shown(metadata: Any) -> Any:
    return {key: value for key, value in metadata.model_dump(mode="json").items() if key not in NOT_COMPARED}


def theirs(table: TableMetadata, *changes: dict[str, Any]) -> Any:
    adapter: TypeAdapter[Any] = TypeAdapter(TableUpdate)
    return update_table_metadata(read(table.encode()), tuple(adapter.validate_python(update) for update in changes))


def spec_field(*fields: dict[str, Any], id: int = 1) -> dict[str, Any]:
    return {"action": "add-spec", "spec": {"spec-id": id, "fields": list(fields)}}


COMMITS: dict[str, list[dict[str, Any]]] = {
    "an append": [*an_append(4)],
    "two appends": [*an_append(4), *an_append(5)],
    "a snapshot beside main": [add(a_snapshot(4)), set_ref("b", 4, **{"max-ref-age-ms": 5})],
    "a tag": [set_ref("t", 1, "tag", **{"max-ref-age-ms": 5})],
    "a branch with retention": [set_ref("b", 2, **{"min-snapshots-to-keep": 2, "max-snapshot-age-ms": 5})],
    "a branch removed": [set_ref("b", 2), {"action": "remove-snapshot-ref", "ref-name": "b"}],
    "snapshots removed": [remove(1, 2)],
    "snapshots and their refs and statistics removed": [statistics(1, 5), set_ref("b", 1), remove(1)],
    "properties": [set_properties(a="b", c="d"), {"action": "remove-properties", "removals": ["a"]}],
    "a schema": [add_schema({**WIDER, "schema-id": 1}, **{"last-column-id": 4}), use_schema()],
    "a schema and back": [add_schema({**WIDER, "schema-id": 1}, **{"last-column-id": 4}), use_schema(), use_schema(0)],
    "a spec": [spec_field(part(3, "day", "d", **{"field-id": 1000})), use_spec()],
    "two specs": [
        spec_field(part(3, "day", "d", **{"field-id": 1000})),
        spec_field(part(1, "bucket[4]", "b", **{"field-id": 1001}), id=2),
        use_spec(),
    ],
    "a sort order": [add_order(by(1), by(2, direction="desc")), use_order()],
    "statistics": [statistics(1, 5), statistics(2, 6), {"action": "remove-statistics", "snapshot-id": 1}],
    "partition statistics": [partition_statistics(1, 5), partition_statistics(2, 5)],
    "partition statistics removed": [
        partition_statistics(1, 5),
        {"action": "remove-partition-statistics", "snapshot-id": 1},
    ],
    "unused specs removed": [
        spec_field(part(3, "day", "d", **{"field-id": 1000})),
        {"action": "remove-partition-specs", "spec-ids": [1]},
    ],
    "unused schemas removed": [
        add_schema({**WIDER, "schema-id": 1}, **{"last-column-id": 4}),
        {"action": "remove-schemas", "schema-ids": [1]},
    ],
    "a location": [{"action": "set-location", "location": "s3://elsewhere"}],
}


@pytest.mark.seed(25, 122, 401, 403)
@pytest.mark.parametrize("what", COMMITS)
def test_pyiceberg_makes_the_same_of_a_commit(what):
    table = a_table(3)
    ours = changed(table, *COMMITS[what], previous=None)
    mine, expected = shown(read(ours.encode())), shown(theirs(table, *COMMITS[what]))
    assert {key for key in mine if mine[key] != expected[key]} == THEIRS_ALONE.get(what, set())


def test_pyiceberg_upgrades_version_1_likewise():
    table = a_table(2, format_version=1)
    upgrade = {"action": "upgrade-format-version", "format-version": 2}
    assert shown(read(changed(table, upgrade, previous=None).encode())) == shown(theirs(table, upgrade))


@pytest.mark.parametrize(
    "changes",
    [
        [add(a_snapshot(3))],
        [add(a_snapshot(4, **{"sequence-number": 3}))],
        [set_ref("b", 77)],
        [use_schema()],
        [use_schema(5)],
        [use_spec()],
        [use_spec(5)],
        [use_order()],
        [{"action": "upgrade-format-version", "format-version": 1}],
        [{"action": "remove-schemas", "schema-ids": [0]}],
        [{"action": "remove-partition-specs", "spec-ids": [0]}],
    ],
)
def test_what_we_refuse_pyiceberg_refuses_too(changes):
    table = a_table(3)
    assert refused(commit(table, *changes)).message
    with pytest.raises((ValueError, KeyError)):
        theirs(table, *changes)


NESTED = struct(
    field(10, "a", struct(field(20, "x"), field(30, "y", listing(40, struct(field(50, "deep", doc="kept")))))),
    field(60, "m", mapping(70, "string", 90, struct(field(100, "v")))),
    field(110, "z", "timestamptz", True),
    **{"schema-id": 0, "identifier-field-ids": [110]},
)


@pytest.mark.seed(394)
@pytest.mark.parametrize("schema", [{**SCHEMA, "schema-id": 0}, NESTED])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_pyiceberg_gives_a_new_table_the_same_ids(schema, version):
    spec = {"spec-id": 0, "fields": [part(schema["fields"][2]["id"], "day", "d", **{"field-id": 1000})]}
    order = {"order-id": 1, "fields": [by(schema["fields"][2]["id"])]}
    ours = read(made(created(schema=schema, partition_spec=spec, write_order=order, format_version=version)).encode())
    parsed = Schema.model_validate(schema)
    expected = new_table_metadata(
        schema=parsed,
        partition_spec=PartitionSpec.model_validate(spec),
        sort_order=SortOrder.model_validate(order),
        location="s3://bucket/table",
        properties={"format-version": str(version)},
    )
    assert ours.schema() == assign_fresh_schema_ids(parsed)
    assert ours.spec() == expected.spec()
    assert ours.sort_order() == expected.sort_order()
    assert ours.last_column_id == expected.last_column_id
    assert ours.last_partition_id == expected.last_partition_id


@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_reads_every_document_we_make(version):
    table = a_table(format_version=version)
    number = 0
    steps: list[list[dict[str, Any]]] = [
        [set_properties(a="b")],
        [add_schema(WIDER), use_schema()],
        [add_spec(part(3, "day", "d")), use_spec()],
        [add_order(by(1)), use_order()],
        [set_ref("b", 1), set_ref("t", 2, "tag")],
        [statistics(2, 5), partition_statistics(2, 6)],
        [remove(1)],
        [{"action": "remove-snapshot-ref", "ref-name": "main"}],
        [{"action": "upgrade-format-version", "format-version": 2}],
        [{"action": "upgrade-format-version", "format-version": 3}],
    ]
    for step in steps:
        for _ in range(3):
            if table.format_version == version:
                number += 1
                table = changed(table, *an_append(number, format_version=version))
        table = changed(table, *step)
        parsed = read(table.encode())
        assert parsed.current_snapshot_id == table.current_snapshot_id
        assert parsed.schema().schema_id == table.current_schema_id
        assert len(parsed.snapshots) == table.snapshot_count
        assert set(parsed.refs) == set(table.refs)
        read(b"".join(table.refs_only_parts()))


@pytest.mark.parametrize("name", ["v1", "v2"])
def test_pyiceberg_sees_nothing_but_our_commit_in_a_foreign_document(name):
    before = read(stored(name))
    after = read(changed(TableMetadata.parse(stored(name)), set_properties(a="b")).encode())
    assert shown(after) == shown(before) | {"properties": {**before.properties, "a": "b"}}


def test_pyiceberg_reads_an_old_document_that_it_could_not_once_we_commit_to_it():
    with pytest.raises(ValidationError):
        read(stored("v1_old"))
    after = read(changed(TableMetadata.parse(stored("v1_old")), set_properties(a="b")).encode())
    assert after.current_snapshot().snapshot_id == 1925
    assert [field.field_id for field in after.spec().fields] == [1000]
