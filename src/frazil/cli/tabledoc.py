"""What people want to see of a table's metadata: its columns, how it is partitioned, what happened to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Document = dict[str, Any]


def columns(metadata: Document) -> list[list[object]]:
    """id, name, type, whether it is required, comment."""
    schema = _by_id(metadata["schemas"], "schema-id", metadata["current-schema-id"])
    return [
        [
            field["id"],
            field["name"],
            shown_type(field["type"]),
            "yes" if field.get("required") else "",
            field.get("doc"),
        ]
        for field in schema.get("fields", [])
    ]


def shown_type(type_: Any) -> str:
    """A type as SQL writes it."""
    if not isinstance(type_, dict):
        return str(type_)
    match type_.get("type"):
        case "struct":
            inside = (f"{field['name']}: {shown_type(field['type'])}" for field in type_["fields"])
            return f"struct<{', '.join(inside)}>"
        case "list":
            return f"list<{shown_type(type_['element'])}>"
        case "map":
            return f"map<{shown_type(type_['key'])}, {shown_type(type_['value'])}>"
        case other:
            return str(other)


def partition(metadata: Document) -> str | None:
    spec = _by_id(metadata["partition-specs"], "spec-id", metadata["default-spec-id"])
    return _terms(metadata, spec.get("fields", []))


def sort_order(metadata: Document) -> str | None:
    order = _by_id(metadata.get("sort-orders", []), "order-id", metadata.get("default-sort-order-id"))
    return _terms(metadata, order.get("fields", []))


def _terms(metadata: Document, fields: Iterable[Document]) -> str | None:
    names = _names(metadata)
    return ", ".join(_term(field, names) for field in fields if field.get("transform") != "void") or None


def _term(field: Document, names: dict[int, str]) -> str:
    sources = field.get("source-ids") or [field.get("source-id")]
    column = ", ".join(names.get(each, f"column {each}") for each in sources)
    transform = str(field.get("transform"))
    direction = " desc" if field.get("direction") == "desc" else ""
    kind, bracket, width = transform.rstrip("]").partition("[")
    if transform == "identity":
        return f"{column}{direction}"
    return f"{kind}({width}, {column}){direction}" if bracket else f"{kind}({column}){direction}"


def _names(metadata: Document) -> dict[int, str]:
    """Full column names by field id, of every schema there was: a partition may be on a column since dropped."""
    names: dict[int, str] = {}
    current = metadata["current-schema-id"]
    for schema in sorted(metadata["schemas"], key=lambda each: bool(each.get("schema-id") == current)):
        _name_fields(schema.get("fields", []), "", names)
    return names


def _name_fields(fields: Iterable[Document], above: str, names: dict[int, str]) -> None:
    for field in fields:
        names[field["id"]] = above + field["name"]
        if isinstance(field["type"], dict) and field["type"].get("type") == "struct":
            _name_fields(field["type"]["fields"], f"{above}{field['name']}.", names)


def current_snapshot(metadata: Document) -> str:
    id_ = metadata.get("current-snapshot-id")
    if id_ in (None, -1):
        return "none"
    found = _by_id(metadata.get("snapshots", []), "snapshot-id", id_)
    rows = (found.get("summary") or {}).get("total-records")
    return f"{id_} ({rows} rows)" if rows is not None else str(id_)


def changes(metadata: Document) -> list[Document]:
    """Which snapshot became current and when, oldest first; after a rollback one appears again."""
    current = metadata.get("current-snapshot-id")
    snapshots = {each["snapshot-id"]: each for each in metadata.get("snapshots", [])}
    log = metadata.get("snapshot-log", [])
    last = max((at for at, each in enumerate(log) if each["snapshot-id"] == current), default=-1)
    return [
        {
            "timestamp-ms": each["timestamp-ms"],
            "snapshot-id": each["snapshot-id"],
            **_summary(snapshots.get(each["snapshot-id"])),
            "current": at == last,
        }
        for at, each in enumerate(log)
    ]


def _summary(snapshot: Document | None) -> Document:
    """An expired snapshot is in the log and nowhere else."""
    if snapshot is None:
        return {"operation": "(expired)", "added-records": None, "deleted-records": None}
    summary = snapshot.get("summary") or {}
    counts = {name: int(summary[name]) if name in summary else None for name in ("added-records", "deleted-records")}
    return {"operation": summary.get("operation"), **counts}


def versions(loaded: Document) -> list[Document]:
    """The table's metadata files, oldest first, the current one last."""
    metadata = loaded["metadata"]
    past = [{**each, "current": False} for each in metadata.get("metadata-log", [])]
    now = {"timestamp-ms": metadata["last-updated-ms"], "metadata-file": loaded["metadata-location"], "current": True}
    return [*past, now]


def _by_id(documents: Iterable[Document], name: str, id_: object) -> Document:
    return next((each for each in documents if each.get(name) == id_), {})
