"""What a commit may demand of the table it changes, checked against the version it would change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from frazil.errors import BadInput, Conflict
from frazil.iceberg import wanted
from frazil.iceberg.metadata import TableMetadata


def check(base: TableMetadata | None, requirements: Iterable[Mapping[str, Any]]) -> None:
    """`Conflict` for the first that does not hold; `base` is None where the table is about to be made."""
    for requirement in requirements:
        kind = requirement["type"]
        if base is not None:
            CHECKS[kind](base, requirement)
        elif kind != "assert-create":
            raise BadInput(f"Invalid create requirements: {kind} cannot hold for a table that does not exist")


def _create(base: TableMetadata, requirement: Mapping[str, Any]) -> None:
    raise Conflict("Requirement failed: table already exists")


def _uuid(base: TableMetadata, requirement: Mapping[str, Any]) -> None:
    expected = wanted.text(requirement, "uuid", "assert-table-uuid")
    if expected.lower() != base.uuid.lower():
        raise Conflict(f"Requirement failed: UUID does not match: expected {expected}, found {base.uuid}")


def _ref_snapshot_id(base: TableMetadata, requirement: Mapping[str, Any]) -> None:
    name = wanted.text(requirement, "ref", "assert-ref-snapshot-id")
    expected = wanted.int64_or_none(requirement, "snapshot-id", "assert-ref-snapshot-id")
    ref = base.refs.get(name)
    if ref is None:
        if expected is not None:
            raise Conflict(f"Requirement failed: branch or tag {name} is missing, expected {expected}")
        return
    kind, found = ref["type"], ref["snapshot-id"]
    if expected is None:
        raise Conflict(f"Requirement failed: {kind} {name} was created concurrently")
    if expected != found:
        raise Conflict(f"Requirement failed: {kind} {name} has changed: expected id {expected}, found {found}")


def _number(key: str, what: str, found: Callable[[TableMetadata], int]) -> Callable[..., None]:
    def check(base: TableMetadata, requirement: Mapping[str, Any]) -> None:
        expected, actual = wanted.int32(requirement, key, requirement["type"]), found(base)
        if expected != actual:
            raise Conflict(f"Requirement failed: {what} changed: expected id {expected}, found {actual}")

    return check


CHECKS: dict[str, Callable[[TableMetadata, Mapping[str, Any]], None]] = {
    "assert-create": _create,
    "assert-table-uuid": _uuid,
    "assert-ref-snapshot-id": _ref_snapshot_id,
    "assert-last-assigned-field-id": _number(
        "last-assigned-field-id", "last assigned field id", lambda base: base.last_column_id
    ),
    "assert-current-schema-id": _number("current-schema-id", "current schema", lambda base: base.current_schema_id),
    "assert-last-assigned-partition-id": _number(
        "last-assigned-partition-id", "last assigned partition id", lambda base: base.last_partition_id
    ),
    "assert-default-spec-id": _number("default-spec-id", "default partition spec", lambda base: base.default_spec_id),
    "assert-default-sort-order-id": _number(
        "default-sort-order-id", "default sort order", lambda base: base.default_sort_order_id
    ),
}
