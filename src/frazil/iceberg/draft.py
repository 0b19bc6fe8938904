"""A table's next version while a commit's updates are applied to it, and the finishing touches every version gets."""

from __future__ import annotations

from typing import Any

import msgspec

from frazil.errors import BadInput
from frazil.iceberg import partitions, schemas
from frazil.iceberg.document import Document, encode
from frazil.iceberg.metadata import PARTITION_ID_BEFORE_FIRST, TableMetadata
from frazil.iceberg.slices import Slices, Snapshots, split

PREVIOUS_VERSIONS_MAX = "write.metadata.previous-versions-max"
PREVIOUS_VERSIONS_MAX_DEFAULT = 100

#: Iceberg's Java reader refuses a file whose logs go back in time further than this.
LOG_TOLERANCE_MS = 60_000

UNPARTITIONED = {"spec-id": 0, "fields": []}
UNSORTED = {"order-id": 0, "fields": []}

_UNORDERED = frozenset(("properties", "refs"))

#: How a new document is laid out; order means nothing, and people read these files.
_ORDER = (
    "format-version",
    "table-uuid",
    "location",
    "last-sequence-number",
    "last-updated-ms",
    "last-column-id",
    "schema",
    "current-schema-id",
    "schemas",
    "partition-spec",
    "default-spec-id",
    "partition-specs",
    "last-partition-id",
    "default-sort-order-id",
    "sort-orders",
    "properties",
    "current-snapshot-id",
    "next-row-id",
    "encryption-keys",
    "refs",
    "statistics",
    "partition-statistics",
)


class _Entry(msgspec.Struct, rename="kebab"):
    timestamp_ms: int


_ENTRY = msgspec.json.Decoder(_Entry)
_REFS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Draft:
    """Values as they stand after the updates so far. Belongs to one call of `apply`; nothing else sees it."""

    def __init__(self, base: TableMetadata, now_ms: int, creating: bool = False) -> None:
        self.base = base
        self.creating = creating
        self.now_ms = now_ms
        self.head = dict(base.document.head)
        self.known = dict(base.known)
        self.snapshots = base.document.snapshots
        self.snapshot_log = base.document.snapshot_log
        self.metadata_log = base.document.metadata_log
        self.last_added: dict[str, int] = {}
        #: Snapshots of this commit and their timestamps.
        self.added: dict[int, int] = {}
        #: Snapshots that main was set to in this commit, in order.
        self.main: list[int] = []
        self.removed_snapshots = False
        self.evolved = False
        if not creating:
            self._spell_out()
        self._start = dict(self.head)

    def value(self, key: str) -> Any:
        """A top-level value, decoded; read it, never change it."""
        if key not in self.known and key in self.head:
            self.known[key] = TableMetadata(Document(self.head, self.snapshots, Slices(), ()), {}).value(key)
        return self.known.get(key)

    def put(self, key: str, value: Any) -> None:
        self.known[key] = value
        self.head[key] = encode(value)

    def items(self, key: str) -> list[bytes]:
        """The items of a top-level array, encoded."""
        array = self.head.get(key, b"[]")
        return [] if array == b"null" else split(array)

    def put_items(self, key: str, items: list[bytes]) -> None:
        """Only what changed is encoded anew: the rest may hold what nobody here can read."""
        self.known.pop(key, None)
        self.head[key] = b"[" + b",".join(items) + b"]"

    def drop(self, key: str) -> None:
        self.head.pop(key, None)
        self.known.pop(key, None)

    def put_ref(self, name: str, ref: dict[str, Any] | None) -> None:
        """Sets one branch or tag, or removes it; the others stay the bytes they were."""
        slices: dict[str, bytes | msgspec.Raw] = dict(_REFS.decode(self.head["refs"]))
        refs = dict(self.value("refs"))
        if ref is None:
            del slices[name], refs[name]
        else:
            slices[name], refs[name] = encode(ref), ref
        self.known["refs"] = refs
        self.head["refs"] = b"{" + b",".join(encode(key) + b":" + value for key, value in slices.items()) + b"}"

    @property
    def format_version(self) -> int:
        return int(self.value("format-version"))

    def columns(self) -> dict[int, schemas.Column]:
        """Those of the current schema; of the one added last while a creation has not said yet which is current."""
        current = self.value("current-schema-id")
        added = self.value("schemas")
        for schema in added:
            if schema["schema-id"] == current:
                return schemas.columns(schema)
        if added and (current is None or current == -1):
            return schemas.columns(added[-1])
        raise BadInput("Cannot go on without a current schema: none has been set")

    def unset_main(self) -> None:
        # Version 3 writes null; before it, readers know -1.
        self.put("current-snapshot-id", None if self.format_version >= 3 else -1)

    def finish(self, previous_location: str | None) -> TableMetadata:
        """The next version: `base` itself if nothing came of the updates."""
        if self._is_unchanged():
            return self.base
        if self.format_version >= 2 and self.value("table-uuid") is None:
            raise BadInput(f"Cannot go on without a table-uuid: format version {self.format_version} requires one")
        self._finish_schema()
        updated_ms = self._updated_ms()
        self._finish_snapshot_log(updated_ms)
        if previous_location is not None:
            self._log_previous(previous_location)
        self.put("last-updated-ms", updated_ms)
        document = Document(self.head, self.snapshots, self.snapshot_log, self.metadata_log)
        return TableMetadata(document, self.known)

    def _spell_out(self) -> None:
        """Writes what version 1 leaves implied, as every writer of it does at the first change."""
        for key in ("snapshots", "snapshot-log", "metadata-log"):
            self.head.pop(key, None)
        if self.head.get("refs", b"null") == b"null":
            self.put("refs", dict(self.base.refs))
        if self.head.get("properties", b"null") == b"null":
            self.put("properties", {})
        if self.head["format-version"] != b"1":
            return
        base = self.base
        for key, implied in (
            ("schemas", lambda: base.schemas),
            ("current-schema-id", lambda: base.current_schema_id),
            ("partition-specs", lambda: base.partition_specs),
            ("default-spec-id", lambda: base.default_spec_id),
            ("last-partition-id", lambda: base.last_partition_id),
            ("sort-orders", lambda: base.sort_orders),
            ("default-sort-order-id", lambda: base.default_sort_order_id),
        ):
            if self.head.get(key, b"null") == b"null":
                self.put(key, implied())

    def _is_unchanged(self) -> bool:
        if self.creating or self.snapshots is not self.base.document.snapshots:
            return False
        if self.head == self._start:
            return True
        # A property or ref that was taken away and given back may stand in another order now.
        return self.head.keys() == self._start.keys() and all(
            value == self._start[key]
            or (key in _UNORDERED and msgspec.json.decode(value) == msgspec.json.decode(self._start[key]))
            for key, value in self.head.items()
        )

    def _updated_ms(self) -> int:
        """Never before anything the document tells, whatever the clocks of its writers said."""
        last = [_ENTRY.decode(log[-1]).timestamp_ms for log in (self.snapshot_log.tail, self.metadata_log) if log]
        return max(self.now_ms, self.base.last_updated_ms, self.snapshots.newest_ms, *last)

    def _finish_schema(self) -> None:
        if not self.evolved:
            return
        columns = self.columns()
        specs, orders = self.value("partition-specs"), self.value("sort-orders")
        for spec in specs:
            partitions.check_names(spec["fields"], columns)
        default = next(spec for spec in specs if spec["spec-id"] == self.value("default-spec-id"))
        for field in default["fields"]:
            partitions.check_source(field, columns)
        for order in orders:
            if order["order-id"] == self.value("default-sort-order-id"):
                partitions.check_order(order, columns)
        # Older readers of version 1 look here; later versions have no such fields.
        if self.format_version == 1:
            at = [schema["schema-id"] for schema in self.value("schemas")].index(self.value("current-schema-id"))
            self.drop("schema")
            self.head["schema"] = self.items("schemas")[at]
            self.put("partition-spec", default["fields"])
        else:
            self.drop("schema")
            self.drop("partition-spec")

    def _finish_snapshot_log(self, updated_ms: int) -> None:
        # What a commit added and replaced again was never current for anybody.
        current = self.value("current-snapshot-id")
        for id in self.main:
            if id not in self.added or id == current:
                # Going back to an older snapshot happens now, not when that snapshot was made.
                self._log_current(id, self.added.get(id, updated_ms))
        if not self.removed_snapshots:
            return
        # An entry whose snapshot is gone takes the history before it along: with a gap, time travel would lie.
        kept: list[bytes] = []
        for entry in self.snapshot_log:
            if self.snapshots.position(msgspec.json.decode(entry)["snapshot-id"]) is None:
                kept = []
            else:
                kept.append(entry)
        self.snapshot_log = Slices.of(kept)

    def _log_current(self, id: int, timestamp_ms: int) -> None:
        at_ms = _in_order(timestamp_ms, self.snapshot_log.last())
        self.snapshot_log = self.snapshot_log.append(encode({"snapshot-id": id, "timestamp-ms": at_ms}))

    def _log_previous(self, location: str) -> None:
        last = self.metadata_log[-1] if self.metadata_log else None
        at_ms = _in_order(self.base.last_updated_ms, last)
        entry = encode({"metadata-file": location, "timestamp-ms": at_ms})
        wanted = self.value("properties").get(PREVIOUS_VERSIONS_MAX, "")
        most = max(1, int(wanted)) if wanted.isdecimal() and len(wanted) < 10 else PREVIOUS_VERSIONS_MAX_DEFAULT
        self.metadata_log = (*self.metadata_log[max(0, len(self.metadata_log) + 1 - most) :], entry)


def _in_order(timestamp_ms: int, last: bytes | None) -> int:
    """Where clocks disagree by more than readers put up with, the later writer is taken at the earlier one's word."""
    if last is None:
        return timestamp_ms
    last_ms = _ENTRY.decode(last).timestamp_ms
    return last_ms if timestamp_ms < last_ms - LOG_TOLERANCE_MS else timestamp_ms


def empty(format_version: int) -> TableMetadata:
    """What a create starts from: not yet a table, for it has neither uuid nor schema."""
    head: dict[str, Any] = {
        "format-version": format_version,
        "last-updated-ms": 0,
        "last-column-id": 0,
        "schemas": [],
        "partition-specs": [],
        "last-partition-id": PARTITION_ID_BEFORE_FIRST,
        "sort-orders": [],
        "properties": {},
        "current-snapshot-id": None if format_version >= 3 else -1,
        "refs": {},
        "statistics": [],
        "partition-statistics": [],
    }
    if format_version >= 2:
        head["last-sequence-number"] = 0
    if format_version >= 3:
        head["next-row-id"] = 0
    return TableMetadata(
        Document({key: encode(value) for key, value in head.items()}, Snapshots.of([], [], 0), Slices(), ()), {}
    )


def laid_out(metadata: TableMetadata) -> TableMetadata:
    """A new table's document in the order people expect."""
    head = metadata.document.head
    ordered = {key: head[key] for key in _ORDER if key in head}
    return TableMetadata(msgspec.structs.replace(metadata.document, head=ordered | head), {})
