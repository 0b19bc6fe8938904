"""The updates that make and unmake history: snapshots, branches and tags."""

from __future__ import annotations

from typing import Any

import msgspec

from frazil.errors import BadInput, Conflict
from frazil.iceberg import wanted
from frazil.iceberg.document import StatisticsFile, encode
from frazil.iceberg.draft import Draft

MAIN = "main"

_RETENTION = ("min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms")
_BRANCH_ONLY = ("min-snapshots-to-keep", "max-snapshot-age-ms")


_STATISTICS_FILE = msgspec.json.Decoder(StatisticsFile)


def add_snapshot(draft: Draft, update: dict[str, Any]) -> None:
    snapshot = wanted.mapping(update, "snapshot", "add-snapshot")
    id = wanted.int64(snapshot, "snapshot-id", "snapshot")
    where = f"snapshot {id}"
    timestamp_ms = wanted.int64(snapshot, "timestamp-ms", where)
    if timestamp_ms < 0 or id == -1:
        raise BadInput(f"Invalid {where}: timestamp-ms {timestamp_ms}, and -1 is no snapshot's id")
    _check_manifests(snapshot, where)
    if not draft.value("schemas") or not draft.value("partition-specs") or not draft.value("sort-orders"):
        raise BadInput("Attempting to add a snapshot before a schema, a partition spec and a sort order are added")
    if draft.snapshots.position(id) is not None:
        raise BadInput(f"Snapshot already exists for id: {id}")
    _take_sequence_number(draft, snapshot, where)
    _take_row_ids(draft, snapshot, where)
    draft.snapshots = draft.snapshots.append(id, timestamp_ms, encode(snapshot))
    draft.added[id] = timestamp_ms


def _check_manifests(snapshot: dict[str, Any], where: str) -> None:
    if snapshot.get("manifest-list") is not None:
        wanted.text(snapshot, "manifest-list", where)
    elif snapshot.get("manifests") is not None:
        wanted.text_list(snapshot, "manifests", where)
    else:
        raise BadInput(f"Invalid {where}: manifest-list is missing")
    if snapshot.get("summary") is not None:
        wanted.text_mapping(snapshot, "summary", where)
    wanted.int32_or_none(snapshot, "schema-id", where)
    if snapshot.get("key-id") is not None:
        wanted.text(snapshot, "key-id", where)


def _take_sequence_number(draft: Draft, snapshot: dict[str, Any], where: str) -> None:
    number = wanted.int64_or_none(snapshot, "sequence-number", where) or 0
    parent = wanted.int64_or_none(snapshot, "parent-snapshot-id", where)
    if draft.format_version == 1:
        if number != 0:
            raise BadInput(f"Sequence number must be 0 in v1: {number}")
        return
    last = draft.value("last-sequence-number")
    if number <= last and parent is not None:
        # Not the request's fault: somebody took the number first, on another branch. A new try takes the next one.
        raise Conflict(f"Cannot add snapshot with sequence number {number} older than last sequence number {last}")
    if number > last:
        draft.put("last-sequence-number", number)


def _take_row_ids(draft: Draft, snapshot: dict[str, Any], where: str) -> None:
    first = wanted.int64_or_none(snapshot, "first-row-id", where)
    added = wanted.int64_or_none(snapshot, "added-rows", where)
    if (first is not None and first < 0) or (added is not None and added < 0):
        raise BadInput(f"Invalid {where}: first-row-id and added-rows cannot be negative")
    if first is not None and added is None:
        raise BadInput(f"Invalid {where}: added-rows is required when first-row-id is set")
    if draft.format_version < 3:
        return
    if first is None or added is None:
        raise BadInput("Cannot add a snapshot: first-row-id is null")
    next_row_id = draft.value("next-row-id")
    if first < next_row_id:
        raise Conflict(f"Cannot add a snapshot, first-row-id is behind table next-row-id: {first} < {next_row_id}")
    if next_row_id + added >= 2**63:
        raise BadInput(f"Invalid {where}: added-rows {added} exhausts the table's row ids")
    draft.put("next-row-id", next_row_id + added)


def set_snapshot_ref(draft: Draft, update: dict[str, Any]) -> None:
    name = wanted.text(update, "ref-name", "set-snapshot-ref")
    id = wanted.int64(update, "snapshot-id", f"ref {name}")
    kind = wanted.text(update, "type", f"ref {name}").lower()
    if kind not in ("branch", "tag"):
        raise BadInput(f"Invalid ref {name}: type must be branch or tag, is {kind:.100}")
    if name == MAIN and kind != "branch":
        raise BadInput("Cannot set main to a tag, it must be a branch")
    existing = draft.value("refs").get(name)
    ref = _ref(update, name, id, kind, existing)
    if ref == existing:
        return
    if draft.snapshots.position(id) is None:
        raise BadInput(f"Cannot set {name} to unknown snapshot: {id}")
    if name == MAIN and draft.value("current-snapshot-id") != id:
        draft.put("current-snapshot-id", id)
        draft.main.append(id)
    draft.put_ref(name, ref)


def _ref(update: dict[str, Any], name: str, id: int, kind: str, existing: dict[str, Any] | None) -> dict[str, Any]:
    """The ref this update makes.

    What it leaves out stays as it was; null takes it away. Many writers send no retention when they append, and mean
    nothing by it: a branch must not lose its retention to an append.
    """
    ref = dict(existing) if existing is not None and existing.get("type") == kind else {}
    ref |= {key: value for key, value in update.items() if key not in ("action", "ref-name")}
    ref |= {"snapshot-id": id, "type": kind}
    for key in _RETENTION:
        value = wanted.int64_or_none(ref, key, f"ref {name}")
        if value is None:
            ref.pop(key, None)
        elif kind == "tag" and key in _BRANCH_ONLY:
            raise BadInput(f"Invalid ref {name}: tags do not support setting {key}")
        elif value <= 0:
            raise BadInput(f"Invalid ref {name}: {key} must be greater than 0")
    return ref


def remove_snapshot_ref(draft: Draft, update: dict[str, Any]) -> None:
    _remove_ref(draft, wanted.text(update, "ref-name", "remove-snapshot-ref"))


def _remove_ref(draft: Draft, name: str) -> None:
    if name not in draft.value("refs"):
        return
    if name == MAIN:
        draft.unset_main()
    draft.put_ref(name, None)


def remove_snapshots(draft: Draft, update: dict[str, Any]) -> None:
    asked = wanted.int64_list(update, "snapshot-ids", "remove-snapshots")
    removed = {id for id in asked if draft.snapshots.position(id) is not None}
    if not removed:
        return
    draft.snapshots = draft.snapshots.without(removed)
    draft.removed_snapshots = True
    for key in ("statistics", "partition-statistics"):
        remove_files(draft, key, removed)
    for name, ref in list(draft.value("refs").items()):
        if ref["snapshot-id"] in removed:
            _remove_ref(draft, name)


def remove_files(draft: Draft, key: str, snapshot_ids: set[int]) -> None:
    """Takes the statistics files of these snapshots out of the table."""
    files = draft.items(key)
    kept = [file for file in files if _STATISTICS_FILE.decode(file).snapshot_id not in snapshot_ids]
    if len(kept) != len(files):
        draft.put_items(key, kept)


def set_statistics(draft: Draft, update: dict[str, Any]) -> None:
    file = wanted.mapping(update, "statistics", "set-statistics")
    for name in ("file-size-in-bytes", "file-footer-size-in-bytes"):
        wanted.int64(file, name, "statistics")
    wanted.mapping_list(file, "blob-metadata", "statistics")
    redundant = wanted.int64_or_none(update, "snapshot-id", "set-statistics")
    if redundant is not None and redundant != file.get("snapshot-id"):
        raise BadInput(f"Invalid set-statistics: snapshot-id {redundant} is not that of the statistics")
    _set_file(draft, "statistics", file)


def set_partition_statistics(draft: Draft, update: dict[str, Any]) -> None:
    file = wanted.mapping(update, "partition-statistics", "set-partition-statistics")
    wanted.int64(file, "file-size-in-bytes", "partition-statistics")
    _set_file(draft, "partition-statistics", file)


def _set_file(draft: Draft, key: str, file: dict[str, Any]) -> None:
    id = wanted.int64(file, "snapshot-id", key)
    wanted.text(file, "statistics-path", key)
    out = []
    new: bytes | None = encode(file)
    for item in draft.items(key):
        if _STATISTICS_FILE.decode(item).snapshot_id != id:
            out.append(item)
        elif new is not None:
            out.append(new)
            new = None
    draft.put_items(key, out if new is None else [*out, new])


def remove_statistics(draft: Draft, update: dict[str, Any]) -> None:
    remove_files(draft, "statistics", {wanted.int64(update, "snapshot-id", "remove-statistics")})


def remove_partition_statistics(draft: Draft, update: dict[str, Any]) -> None:
    id = wanted.int64(update, "snapshot-id", "remove-partition-statistics")
    remove_files(draft, "partition-statistics", {id})
