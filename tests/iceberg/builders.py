"""Tables and updates for these tests, one line each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from frazil.errors import FrazilError
from frazil.iceberg import updates
from frazil.iceberg.metadata import TableMetadata
from frazil.iceberg.updates import Rejected

DOCUMENTS = Path(__file__).parent / "documents"
NOW_MS = 1_800_000_000_000

SCHEMA: dict[str, Any] = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "data", "type": "string", "required": False},
        {"id": 3, "name": "at", "type": "timestamptz", "required": False},
    ],
}


def stored(name: str) -> bytes:
    return (DOCUMENTS / f"{name}.json").read_bytes()


def exact(data: bytes) -> Any:
    """The document with every number as the digits it was written in."""
    return json.loads(data, parse_float=Decimal)


def document(table: TableMetadata | Rejected) -> Any:
    return exact(made(table).encode())


def made(outcome: TableMetadata | Rejected) -> TableMetadata:
    assert isinstance(outcome, TableMetadata), outcome
    return outcome


def refused(outcome: TableMetadata | Rejected | None) -> FrazilError:
    assert isinstance(outcome, Rejected), outcome
    return outcome.error


def a_table(
    snapshots: int = 0, *, schema: dict[str, Any] = SCHEMA, format_version: int = 2, **given: Any
) -> TableMetadata:
    outcome = created(schema=schema, format_version=format_version, **given)
    table = made(outcome)
    for number in range(1, snapshots + 1):
        table = changed(table, *an_append(number, format_version=format_version))
    return table


def created(**given: Any) -> TableMetadata | Rejected:
    defaults: dict[str, Any] = {
        "schema": SCHEMA,
        "partition_spec": None,
        "write_order": None,
        "location": "s3://bucket/table",
        "properties": {},
        "uuid": "0197a1b2-0000-7000-8000-000000000001",
        "now_ms": NOW_MS,
        "format_version": None,
    }
    return updates.create(**(defaults | given))


def commit(
    base: TableMetadata | None,
    *changes: dict[str, Any],
    requirements: Sequence[dict[str, Any]] = (),
    now_ms: int = NOW_MS,
    previous: str | None = "s3://bucket/table/metadata/previous.json",
) -> TableMetadata | Rejected:
    return updates.apply(base, requirements, changes, now_ms=now_ms, previous_location=previous)


def changed(base: TableMetadata | None, *changes: dict[str, Any], **given: Any) -> TableMetadata:
    return made(commit(base, *changes, **given))


def a_snapshot(number: int, *, format_version: Any = 2, **given: Any) -> dict[str, Any]:
    snapshot: dict[str, Any] = {
        "snapshot-id": number,
        "timestamp-ms": NOW_MS + number,
        "manifest-list": f"s3://bucket/table/metadata/snap-{number}.avro",
        "summary": {"operation": "append", "added-records": "1"},
        "schema-id": 0,
    }
    if number > 1:
        snapshot["parent-snapshot-id"] = number - 1
    if format_version >= 2:
        snapshot["sequence-number"] = number
    if format_version >= 3:
        snapshot |= {"first-row-id": (number - 1) * 10, "added-rows": 10}
    return {key: value for key, value in (snapshot | given).items() if value is not ...}


def add(snapshot: dict[str, Any]) -> dict[str, Any]:
    return {"action": "add-snapshot", "snapshot": snapshot}


def set_ref(name: str, id: int, kind: Any = "branch", **given: Any) -> dict[str, Any]:
    return {"action": "set-snapshot-ref", "ref-name": name, "snapshot-id": id, "type": kind, **given}


def an_append(number: int, **given: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return add(a_snapshot(number, **given)), set_ref("main", number)


def set_properties(**values: str) -> dict[str, Any]:
    return {"action": "set-properties", "updates": values}
