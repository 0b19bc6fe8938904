"""One commit applied to one version of a table: a new version, or why not. Pure, and nothing is raised.

The rules are those of Iceberg's own implementation, so that any client's picture of its commit is the server's. The
server differs in these, each where it is decided: `-1` means the schema, spec or order that an add in this commit was
equal to (`evolution`); an update of a ref keeps the retention it does not mention (`history`); a uuid is given once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from frazil.errors import BadInput, FrazilError
from frazil.iceberg import draft as drafts
from frazil.iceberg import evolution, history, partitions, schemas, wanted
from frazil.iceberg import requirements as rules
from frazil.iceberg.document import encode
from frazil.iceberg.draft import Draft
from frazil.iceberg.metadata import SUPPORTED_FORMAT_VERSIONS, TableMetadata

FORMAT_VERSION_DEFAULT = 2

#: Properties that steer a create or only describe a table; they are never stored with it.
RESERVED_PROPERTIES = frozenset(
    (
        "format-version",
        "uuid",
        "snapshot-count",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    )
)


class Rejected(msgspec.Struct, frozen=True):
    """The commit changes nothing; `error` says what its sender did or missed. A value, never raised."""

    error: FrazilError


def unknown(requirements: Sequence[dict[str, Any]], updates: Sequence[dict[str, Any]]) -> Rejected | None:
    """All requirement types and update actions that no table has, in one answer."""
    types = _strangers(requirements, "type", rules.CHECKS)
    actions = _strangers(updates, "action", ACTIONS)
    said = [
        f"unknown {what}: {', '.join(names)}"
        for what, names in (("requirement types", types), ("update actions", actions))
        if names
    ]
    return Rejected(BadInput("Cannot commit: " + "; ".join(said))) if said else None


def apply(
    base: TableMetadata | None,
    requirements: Sequence[dict[str, Any]],
    updates: Sequence[dict[str, Any]],
    *,
    now_ms: int,
    previous_location: str | None,
) -> TableMetadata | Rejected:
    """The version after this commit; `base` itself when it changes nothing, and None for `base` makes the table."""
    strange = unknown(requirements, updates)
    if strange is not None:
        return strange
    try:
        rules.check(base, requirements)
        if base is None:
            return _created(updates, now_ms)
        draft = Draft(base, now_ms)
        for update in updates:
            ACTIONS[update["action"]](draft, update)
        return draft.finish(previous_location)
    except FrazilError as error:
        return Rejected(error.with_traceback(None))
    except RecursionError:
        return Rejected(BadInput("Cannot commit: something in it is nested too deep"))


def create(
    *,
    schema: dict[str, Any],
    partition_spec: dict[str, Any] | None,
    write_order: dict[str, Any] | None,
    location: str,
    properties: Mapping[str, str],
    uuid: str,
    now_ms: int,
    format_version: int | None,
) -> TableMetadata | Rejected:
    """A new table with fresh ids for columns and partition fields, whatever the request numbered them."""
    try:
        wanted.text_mapping({"properties": properties}, "properties", "table")
        version = _version(format_version, properties)
        schemas.check(schema, version)
        fresh, became, last_column_id = schemas.fresh(schema)
        updates: list[dict[str, Any]] = [
            {"action": "assign-uuid", "uuid": uuid},
            {"action": "upgrade-format-version", "format-version": version},
            {"action": "add-schema", "schema": fresh, "last-column-id": last_column_id},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": _fresh_spec(partition_spec, became)},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": _fresh_order(write_order, became)},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": location},
            {"action": "set-properties", "updates": _kept(properties)},
        ]
        return _created(updates, now_ms)
    except FrazilError as error:
        return Rejected(error.with_traceback(None))
    except RecursionError:
        return Rejected(BadInput("Cannot create the table: something in it is nested too deep"))


def _strangers(items: Sequence[Any], key: str, known: Mapping[str, object]) -> list[str]:
    names = (item.get(key) if isinstance(item, dict) else None for item in items)
    strange = (name for name in names if not (isinstance(name, str) and name in known))
    return list(dict.fromkeys(name if isinstance(name, str) else f"({key} is missing)" for name in strange))


def _created(updates: Sequence[dict[str, Any]], now_ms: int) -> TableMetadata:
    version = FORMAT_VERSION_DEFAULT
    for update in updates:
        if update["action"] == "upgrade-format-version":
            version = wanted.int32(update, "format-version", "upgrade-format-version")
            break
    if version not in SUPPORTED_FORMAT_VERSIONS:
        raise BadInput(f"Unsupported format version: v{version} (supported: v1, v2, v3)")
    draft = Draft(drafts.empty(version), now_ms, creating=True)
    for update in updates:
        ACTIONS[update["action"]](draft, update)
    for key, item, id_key in (
        ("partition-specs", drafts.UNPARTITIONED, "default-spec-id"),
        ("sort-orders", drafts.UNSORTED, "default-sort-order-id"),
    ):
        if not draft.items(key):
            draft.put(key, [item])
        if draft.value(id_key) is None:
            draft.put(id_key, 0)
    for key, action in (("table-uuid", "assign-uuid"), ("location", "set-location")):
        if draft.value(key) is None:
            raise BadInput(f"Cannot create a table without a {key} ({action})")
    if draft.value("current-schema-id") is None:
        raise BadInput("Cannot create a table without a schema (add-schema, set-current-schema)")
    return drafts.laid_out(draft.finish(None))


def _version(asked: int | None, properties: Mapping[str, str]) -> int:
    named: int | str = FORMAT_VERSION_DEFAULT if asked is None else asked
    if asked is None and "format-version" in properties:
        named = properties["format-version"]
    if str(named) not in {"1", "2", "3"}:
        raise BadInput(f"Unsupported format version: v{named!s:.100} (supported: v1, v2, v3)")
    return int(named)


def _fresh_spec(spec: dict[str, Any] | None, became: Mapping[int, int]) -> dict[str, Any]:
    if spec is None:
        return drafts.UNPARTITIONED
    fields = partitions.rebuilt(wanted.mapping_list(spec, "fields", "partition spec"), became)
    numbered = [{**field, "field-id": id} for id, field in enumerate(fields, partitions.FIRST_FIELD_ID)]
    return {**spec, "spec-id": 0, "fields": numbered}


def _fresh_order(order: dict[str, Any] | None, became: Mapping[int, int]) -> dict[str, Any]:
    if order is None:
        return drafts.UNSORTED
    fields = partitions.rebuilt(wanted.mapping_list(order, "fields", "sort order"), became)
    return {**order, "order-id": 1 if fields else 0, "fields": fields}


def _kept(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if key not in RESERVED_PROPERTIES}


def _assign_uuid(draft: Draft, update: dict[str, Any]) -> None:
    uuid = wanted.text(update, "uuid", "assign-uuid")
    has = draft.value("table-uuid")
    if has is None:
        draft.put("table-uuid", uuid)
    elif has.lower() != uuid.lower():
        raise BadInput(f"Cannot assign uuid {uuid:.100}: the table has {has} for good")


def _set_location(draft: Draft, update: dict[str, Any]) -> None:
    location = wanted.text(update, "location", "set-location")
    if not location:
        raise BadInput("Invalid set-location: location is empty")
    draft.put("location", location)


def _set_properties(draft: Draft, update: dict[str, Any]) -> None:
    new = wanted.text_mapping(update, "updates", "set-properties")
    old = draft.value("properties")
    if any(old.get(key) != value for key, value in new.items()):
        draft.put("properties", {**old, **new})


def _remove_properties(draft: Draft, update: dict[str, Any]) -> None:
    gone = set(wanted.text_list(update, "removals", "remove-properties"))
    old = draft.value("properties")
    if not gone.isdisjoint(old):
        draft.put("properties", {key: value for key, value in old.items() if key not in gone})


def _add_encryption_key(draft: Draft, update: dict[str, Any]) -> None:
    key = wanted.mapping(update, "encryption-key", "add-encryption-key")
    id = wanted.text(key, "key-id", "encryption key")
    wanted.text(key, "encrypted-key-metadata", f"encryption key {id}")
    if all(other.get("key-id") != id for other in draft.value("encryption-keys") or ()):
        draft.put_items("encryption-keys", [*draft.items("encryption-keys"), encode(key)])


def _remove_encryption_key(draft: Draft, update: dict[str, Any]) -> None:
    id = wanted.text(update, "key-id", "remove-encryption-key")
    keys = draft.value("encryption-keys") or []
    if any(key.get("key-id") == id for key in keys):
        pairs = zip(keys, draft.items("encryption-keys"), strict=True)
        draft.put_items("encryption-keys", [encoded for key, encoded in pairs if key.get("key-id") != id])


ACTIONS: dict[str, Callable[[Draft, dict[str, Any]], None]] = {
    "assign-uuid": _assign_uuid,
    "upgrade-format-version": evolution.upgrade_format_version,
    "add-schema": evolution.add_schema,
    "set-current-schema": evolution.set_current_schema,
    "add-spec": evolution.add_spec,
    "add-partition-spec": evolution.add_spec,  # the name it had in older drafts
    "set-default-spec": evolution.set_default_spec,
    "add-sort-order": evolution.add_sort_order,
    "set-default-sort-order": evolution.set_default_sort_order,
    "add-snapshot": history.add_snapshot,
    "set-snapshot-ref": history.set_snapshot_ref,
    "remove-snapshots": history.remove_snapshots,
    "remove-snapshot-ref": history.remove_snapshot_ref,
    "set-location": _set_location,
    "set-properties": _set_properties,
    "remove-properties": _remove_properties,
    "set-statistics": history.set_statistics,
    "remove-statistics": history.remove_statistics,
    "set-partition-statistics": history.set_partition_statistics,
    "remove-partition-statistics": history.remove_partition_statistics,
    "remove-partition-specs": evolution.remove_partition_specs,
    "remove-schemas": evolution.remove_schemas,
    "add-encryption-key": _add_encryption_key,
    "remove-encryption-key": _remove_encryption_key,
}
