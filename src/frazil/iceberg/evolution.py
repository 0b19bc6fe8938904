"""The updates that change a table's shape: schemas, partition specs, sort orders, the format version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from frazil.errors import BadInput
from frazil.iceberg import partitions, schemas, wanted
from frazil.iceberg.document import encode
from frazil.iceberg.draft import Draft
from frazil.iceberg.metadata import SUPPORTED_FORMAT_VERSIONS

_LAST_ADDED = -1


def upgrade_format_version(draft: Draft, update: dict[str, Any]) -> None:
    new, old = wanted.int32(update, "format-version", "upgrade-format-version"), draft.format_version
    if new > SUPPORTED_FORMAT_VERSIONS[-1]:
        raise BadInput(f"Cannot upgrade table to unsupported format version: v{new} (supported: v3)")
    if new < old:
        raise BadInput(f"Cannot downgrade v{old} table to v{new}")
    if new == old:
        return
    draft.put("format-version", new)
    draft.evolved = True
    if old == 1:
        draft.put("last-sequence-number", 0)
        for key in ("statistics", "partition-statistics"):
            if key not in draft.head:
                draft.put(key, [])
    if new >= 3 and draft.value("next-row-id") is None:
        draft.put("next-row-id", 0)
    if draft.value("current-snapshot-id") in (None, -1):
        draft.unset_main()


def add_schema(draft: Draft, update: dict[str, Any]) -> None:
    schema = wanted.mapping(update, "schema", "add-schema")
    columns = schemas.check(schema, draft.format_version)
    last = draft.value("last-column-id")
    # Deprecated: Java sends the highest id of this very schema, lower than the table's once a column was dropped.
    given = wanted.int32_or_none(update, "last-column-id", "add-schema")
    highest = max([last, given or 0, *columns])
    if highest != last:
        draft.put("last-column-id", highest)
    current = draft.value("current-schema-id")
    first = 0 if current is None else current
    _add(draft, "schemas", "schema-id", schema, lambda other: schemas.same(schema, other), first)


def set_current_schema(draft: Draft, update: dict[str, Any]) -> None:
    id = _chosen(draft, update, "schema-id", "schemas", "current schema", "schema")
    if id != draft.value("current-schema-id"):
        draft.put("current-schema-id", id)
        draft.evolved = True


def add_spec(draft: Draft, update: dict[str, Any]) -> None:
    spec = wanted.mapping(update, "spec", "add-spec")
    fields = wanted.mapping_list(spec, "fields", "partition spec")
    specs, version = draft.value("partition-specs"), draft.format_version
    partitions.check_spec(fields, draft.columns())
    numbered = partitions.numbered(fields, specs, draft.value("last-partition-id"), version)
    if version == 1 and not partitions.is_sequential(numbered):
        raise BadInput("Spec does not use sequential IDs that are required in v1")
    highest = max([draft.value("last-partition-id"), *(field["field-id"] for field in numbered)])
    is_new = _add(
        draft,
        "partition-specs",
        "spec-id",
        {**spec, "fields": numbered},
        lambda other: partitions.same_spec(fields, other["fields"]),
        0,
    )
    if is_new and highest != draft.value("last-partition-id"):
        draft.put("last-partition-id", highest)


def set_default_spec(draft: Draft, update: dict[str, Any]) -> None:
    id = _chosen(draft, update, "spec-id", "partition-specs", "default partition spec", "spec")
    if id != draft.value("default-spec-id"):
        draft.put("default-spec-id", id)
        draft.evolved = True


def add_sort_order(draft: Draft, update: dict[str, Any]) -> None:
    order = wanted.mapping(update, "sort-order", "add-sort-order")
    partitions.check_order(order, draft.columns())
    fields, orders = order["fields"], draft.value("sort-orders")
    if not fields and all(other["fields"] for other in orders):
        # 0 is the unsorted order's, and only its, whenever it comes.
        draft.put_items("sort-orders", [*draft.items("sort-orders"), encode({**order, "order-id": 0})])
        draft.last_added["sort-orders"] = 0
        draft.evolved = True
        return
    _add(draft, "sort-orders", "order-id", order, lambda other: partitions.same_order(fields, other["fields"]), 1)


def set_default_sort_order(draft: Draft, update: dict[str, Any]) -> None:
    id = _chosen(draft, update, "sort-order-id", "sort-orders", "default sort order", "sort order")
    if id != draft.value("default-sort-order-id"):
        draft.put("default-sort-order-id", id)
        draft.evolved = True


def remove_schemas(draft: Draft, update: dict[str, Any]) -> None:
    ids = set(wanted.int32_list(update, "schema-ids", "remove-schemas"))
    if draft.value("current-schema-id") in ids:
        raise BadInput("Cannot remove the current schema")
    _remove(draft, "schemas", "schema-id", ids)


def remove_partition_specs(draft: Draft, update: dict[str, Any]) -> None:
    ids = set(wanted.int32_list(update, "spec-ids", "remove-partition-specs"))
    if draft.value("default-spec-id") in ids:
        raise BadInput("Cannot remove the default partition spec")
    _remove(draft, "partition-specs", "spec-id", ids)


def _add(
    draft: Draft, key: str, id_key: str, item: dict[str, Any], same: Callable[[dict[str, Any]], bool], first: int
) -> bool:
    """Adds the item under the next free id, unless its equal is there; either way it is what -1 means from here on."""
    listed = draft.value(key)
    for other in listed:
        if same(other):
            draft.last_added[key] = other[id_key]
            return False
    id = max([first, *(other[id_key] + 1 for other in listed)])
    draft.put_items(key, [*draft.items(key), encode({**item, id_key: id})])
    draft.last_added[key] = id
    draft.evolved = True
    return True


def _chosen(draft: Draft, update: dict[str, Any], id_key: str, key: str, what: str, short: str) -> int:
    id = wanted.int32(update, id_key, update["action"])
    if id == _LAST_ADDED:
        if key not in draft.last_added:
            raise BadInput(f"Cannot set last added {short}: no {short} has been added")
        id = draft.last_added[key]
    item_key = "order-id" if key == "sort-orders" else id_key
    if all(item[item_key] != id for item in draft.value(key)):
        raise BadInput(f"Cannot set {what} to unknown {short}: {id}")
    return id


def _remove(draft: Draft, key: str, id_key: str, ids: set[int]) -> None:
    kept = [
        encoded for item, encoded in zip(draft.value(key), draft.items(key), strict=True) if item[id_key] not in ids
    ]
    if len(kept) != len(draft.value(key)):
        draft.put_items(key, kept)
