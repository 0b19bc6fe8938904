"""Table metadata: an immutable document that loses nothing, with typed views of what the catalog must know.

A view decodes its value when first asked and keeps it; callers read what they get and never change it. Version 1 files
may lack what later versions require; the views then say what readers of such files take for granted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from frazil.errors import BadInput
from frazil.iceberg import document, partitions, schemas
from frazil.iceberg.document import Document, decoded

SUPPORTED_FORMAT_VERSIONS = (1, 2, 3)

#: Partition field ids start above this; it is last-partition-id of a table that was never partitioned.
PARTITION_ID_BEFORE_FIRST = 999

_REQUIRED_SINCE_V1 = ("location", "last-updated-ms", "last-column-id")
_REQUIRED_SINCE_V2 = (
    "table-uuid",
    "last-sequence-number",
    "schemas",
    "current-schema-id",
    "partition-specs",
    "default-spec-id",
    "last-partition-id",
    "sort-orders",
    "default-sort-order-id",
)
_TYPES: dict[str, Any] = {
    "format-version": int,
    "table-uuid": str,
    "location": str,
    "last-sequence-number": document.Int64,
    "last-updated-ms": document.Int64,
    "last-column-id": int,
    "schema": dict[str, Any],
    "schemas": list[dict[str, Any]],
    "current-schema-id": int,
    "partition-spec": list[dict[str, Any]],
    "partition-specs": list[dict[str, Any]],
    "default-spec-id": int,
    "last-partition-id": int,
    "sort-orders": list[dict[str, Any]],
    "default-sort-order-id": int,
    "properties": dict[str, str],
    "current-snapshot-id": document.Int64,
    "refs": dict[str, dict[str, Any]],
    "next-row-id": document.Int64,
    "encryption-keys": list[dict[str, Any]],
}


_ANYTHING: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_DECODERS = {key: msgspec.json.Decoder(type | None) for key, type in _TYPES.items()}
_OBJECT = msgspec.json.Decoder(dict[str, Any])


class TableMetadata:
    """One version of a table. Nothing changes it; `updates.apply` makes the next one."""

    __slots__ = ("_known", "_parts", "document")

    def __init__(self, document: Document, known: dict[str, Any]) -> None:
        """`known` are values of `document` that are decoded already."""
        self.document = document
        self._known = known
        self._parts: list[bytes] | None = None

    @classmethod
    def parse(cls, data: bytes) -> TableMetadata:
        """From a metadata file, gzipped or not; `BadInput` for anything that is not table metadata v1, v2 or v3."""
        metadata = cls(document.read(data), {})
        _check(metadata)
        return metadata

    def encode(self) -> bytes:
        return b"".join(self.parts())

    def parts(self) -> list[bytes]:
        """The bytes of `encode()` as slices in order; the big ones are shared with other versions of the table."""
        if self._parts is None:
            self._parts = self.document.parts()
        return self._parts

    def refs_only_parts(self) -> list[bytes]:
        """The document with those snapshots alone that a branch or tag names."""
        named = {int(ref["snapshot-id"]) for ref in self.refs.values()}
        return self.document.parts_with(self.document.snapshots.only(named))

    def value(self, key: str) -> Any:
        """A top-level value, decoded; None where the document has none."""
        try:
            return self._known[key]
        except KeyError:
            value = None
            if key in self.document.head:
                value = decoded(self.document.head[key], _DECODERS.get(key, _ANYTHING), key)
            self._known[key] = value
            return value

    @property
    def known(self) -> Mapping[str, Any]:
        """What has been decoded so far."""
        return self._known

    @property
    def uuid(self) -> str:
        """Empty only where a version 1 file has none."""
        return self.value("table-uuid") or ""

    @property
    def format_version(self) -> int:
        return int(self.value("format-version"))

    @property
    def location(self) -> str:
        return str(self.value("location"))

    @property
    def last_sequence_number(self) -> int:
        return self.value("last-sequence-number") or 0

    @property
    def last_updated_ms(self) -> int:
        return int(self.value("last-updated-ms"))

    @property
    def last_column_id(self) -> int:
        return int(self.value("last-column-id"))

    @property
    def properties(self) -> Mapping[str, str]:
        return self.value("properties") or {}

    @property
    def compressed(self) -> bool:
        """Whether the table asks for gzipped metadata files."""
        return self.properties.get("write.metadata.compression-codec", "").lower() == "gzip"

    @property
    def current_snapshot_id(self) -> int | None:
        id = self.value("current-snapshot-id")
        return None if id == -1 else id

    @property
    def refs(self) -> Mapping[str, Mapping[str, Any]]:
        refs: dict[str, dict[str, Any]] | None = self.value("refs")
        if refs is not None:
            return refs
        current = self.current_snapshot_id
        return {} if current is None else {"main": {"snapshot-id": current, "type": "branch"}}

    @property
    def next_row_id(self) -> int:
        return self.value("next-row-id") or 0

    @property
    def schemas(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] | None = self.value("schemas")
        if listed is not None:
            return listed
        only = self.value("schema") or {}
        return [{**only, "schema-id": only.get("schema-id", 0)}]

    @property
    def current_schema_id(self) -> int:
        id = self.value("current-schema-id")
        return int(self.schemas[0]["schema-id"] if id is None else id)

    @property
    def schema(self) -> dict[str, Any]:
        """The current one."""
        return _with_id(self.schemas, "schema-id", self.current_schema_id)

    @property
    def partition_specs(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] | None = self.value("partition-specs")
        if listed is not None:
            return listed
        # Field ids of old files are implied: they count up from 1000.
        fields = enumerate(self.value("partition-spec") or [], PARTITION_ID_BEFORE_FIRST + 1)
        return [{"spec-id": 0, "fields": [{"field-id": id, **field} for id, field in fields]}]

    @property
    def default_spec_id(self) -> int:
        return int(self.value("default-spec-id") or 0)

    @property
    def last_partition_id(self) -> int:
        id = self.value("last-partition-id")
        if id is not None:
            return int(id)
        used: list[int] = [field.get("field-id", 0) for spec in self.partition_specs for field in spec["fields"]]
        return max(PARTITION_ID_BEFORE_FIRST, *used) if used else PARTITION_ID_BEFORE_FIRST

    @property
    def sort_orders(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] | None = self.value("sort-orders")
        return [{"order-id": 0, "fields": []}] if listed is None else listed

    @property
    def default_sort_order_id(self) -> int:
        return int(self.value("default-sort-order-id") or 0)

    @property
    def metadata_log(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(entry) for entry in self.document.metadata_log]

    @property
    def snapshot_log(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(entry) for entry in self.document.snapshot_log]

    @property
    def snapshot_count(self) -> int:
        return len(self.document.snapshots)

    def has_snapshot(self, id: int) -> bool:
        return self.document.snapshots.position(id) is not None

    def snapshot(self, id: int) -> dict[str, Any] | None:
        """Decoded anew at each call."""
        found = self.document.snapshots.get(id)
        return None if found is None else _OBJECT.decode(found)


def _with_id(listed: list[dict[str, Any]], key: str, id: int) -> dict[str, Any]:
    return next(item for item in listed if item.get(key) == id)


def _check(metadata: TableMetadata) -> None:
    """Everything `parse` promises: the views work, and what is referred to is there."""
    version = metadata.value("format-version")
    if version not in SUPPORTED_FORMAT_VERSIONS:
        raise BadInput(f"Cannot read table metadata of format version {version}: supported are 1, 2 and 3")
    required = [*_REQUIRED_SINCE_V1]
    if version >= 2:
        required += _REQUIRED_SINCE_V2
    elif metadata.value("schemas") is None:
        required.append("schema")
    if version >= 3:
        required.append("next-row-id")
    for key in required:
        if metadata.value(key) is None:
            raise BadInput(f"Table metadata is malformed: {key} is required in format version {version}")
    for key in _TYPES:
        metadata.value(key)
    for key in ("statistics", "partition-statistics"):
        decoded(metadata.document.head.get(key, b"null"), document.STATISTICS_FILES, key)
    _check_lists(metadata)
    _check_refs(metadata)


def _check_lists(metadata: TableMetadata) -> None:
    for what, listed, key, current in (
        ("schemas", metadata.schemas, "schema-id", metadata.current_schema_id),
        ("partition-specs", metadata.partition_specs, "spec-id", metadata.default_spec_id),
        ("sort-orders", metadata.sort_orders, "order-id", metadata.default_sort_order_id),
    ):
        ids = [item.get(key) for item in listed]
        if not all(type(id) is int for id in ids) or len(set(ids)) != len(ids):
            raise BadInput(f"Table metadata is malformed: {what} must each have a {key} of their own")
        if current not in ids:
            raise BadInput(f"Table metadata is malformed: cannot find {key} {current} in {what}")
        if any(not _is_list_of_objects(item.get("fields")) for item in listed):
            raise BadInput(f"Table metadata is malformed: {what} must each have a list of fields")
    schemas.columns(metadata.schema)
    for spec in metadata.partition_specs:
        partitions.check_shape(spec["fields"])


def _is_list_of_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _check_refs(metadata: TableMetadata) -> None:
    current = metadata.current_snapshot_id
    if current is not None and not metadata.has_snapshot(current):
        raise BadInput(f"Table metadata is malformed: current-snapshot-id {current} is not among the snapshots")
    for name, ref in metadata.refs.items():
        id = ref.get("snapshot-id")
        if type(id) is not int or ref.get("type") not in ("branch", "tag"):
            raise BadInput(f"Table metadata is malformed: ref {name} needs a snapshot-id and a type")
        if not metadata.has_snapshot(id):
            raise BadInput(f"Table metadata is malformed: ref {name} names snapshot {id}, which is not there")
    main = metadata.refs.get("main", {}).get("snapshot-id")
    if main != current:
        raise BadInput(f"Table metadata is malformed: current-snapshot-id {current} is not branch main's {main}")
