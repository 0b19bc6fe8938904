"""Partition specs and sort orders: transforms, what fits a schema, which ids they get."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from frazil.errors import BadInput
from frazil.iceberg import wanted
from frazil.iceberg.schemas import Column, Columns, ancestors

#: Partition field ids count up from here.
FIRST_FIELD_ID = 1000

_TIMESTAMPS = {"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"}
_SOURCES = {
    "year": _TIMESTAMPS | {"date"},
    "month": _TIMESTAMPS | {"date"},
    "day": _TIMESTAMPS | {"date"},
    "hour": _TIMESTAMPS,
    "bucket": _TIMESTAMPS | {"int", "long", "date", "time", "string", "binary", "fixed", "decimal", "uuid"},
    "truncate": {"int", "long", "string", "binary", "decimal"},
}
_TIMES = frozenset(("year", "month", "day", "hour"))
_WITH_WIDTH = re.compile(r"(bucket|truncate)\[(\d+)\]", re.IGNORECASE)

Field = Mapping[str, Any]


def check_shape(fields: Sequence[Field]) -> None:
    """Whether these are partition fields at all, of whatever schema."""
    for field in fields:
        name, _, _ = _parts(field)
        wanted.int32_or_none(field, "field-id", f"partition field {name:.100}")


def check_spec(fields: Sequence[Field], columns: Columns) -> None:
    """Whether these partition fields can be a table's, now."""
    check_shape(fields)
    check_names(fields, columns)
    seen: dict[tuple[int, str], str] = {}
    for field in fields:
        name, source_id, transform = _parts(field)
        check_source(field, columns)
        kind = transform_kind(transform)
        if kind == "void":
            continue  # what version 1 leaves behind of a dropped field, any number of times
        key = (source_id, "time" if kind in _TIMES else transform.lower())
        if key in seen:
            raise BadInput(f"Cannot add redundant partition: {seen[key]} conflicts with {name}")
        seen[key] = name
    ids = [field["field-id"] for field in fields if field.get("field-id") is not None]
    if len(set(ids)) != len(ids):
        raise BadInput(f"Invalid partition spec: field ids must differ: {ids}")


def check_names(fields: Sequence[Field], columns: Columns) -> None:
    """A partition may be called like a column only if that is the column it comes from."""
    by_name = {column.name: column.id for column in columns.values()}
    taken: set[str] = set()
    for field in fields:
        name, source_id, _ = _parts(field)
        if source_id in columns and by_name.get(name, source_id) != source_id:
            raise BadInput(f"Cannot create identity partition sourced from different field in schema: {name}")
        if not name:
            raise BadInput("Cannot use empty partition name")
        if name in taken:
            raise BadInput(f"Cannot use partition name more than once: {name}")
        taken.add(name)


def check_source(field: Field, columns: Columns) -> None:
    """Whether the field's source is there, flat, and of a type its transform takes."""
    name, source_id, transform = _parts(field)
    if transform_kind(transform) == "void":
        return
    source = columns.get(source_id)
    if source is None:
        raise BadInput(f"Cannot find source column for partition field: {name} (source-id {source_id})")
    if not source.is_primitive:
        raise BadInput(f"Cannot partition by non-primitive source field: {source.name} ({source.kind})")
    _check_takes(transform, source)
    for parent in ancestors(source, columns):
        if parent.kind != "struct":
            raise BadInput(f"Invalid partition field parent: {parent.name} ({parent.kind})")


def check_order(order: Mapping[str, Any], columns: Columns) -> None:
    """Whether this sort order can be a table's."""
    fields = wanted.mapping_list(order, "fields", "sort order")
    order_id = wanted.int32_or_none(order, "order-id", "sort order")
    if not fields and order_id:
        raise BadInput("Unsorted order ID must be 0")
    if fields and order_id == 0:
        raise BadInput("Sort order ID 0 is reserved for unsorted order")
    for field in fields:
        transform = wanted.text(field, "transform", "sort field")
        source_id = wanted.int32(field, "source-id", "sort field")
        if wanted.text(field, "direction", "sort field").lower() not in ("asc", "desc"):
            raise BadInput(f"Invalid sort direction: {field['direction']:.100}")
        if wanted.text(field, "null-order", "sort field").lower() not in ("nulls-first", "nulls-last"):
            raise BadInput(f"Unexpected null order: {field['null-order']:.100}")
        source = columns.get(source_id)
        if source is None:
            raise BadInput(f"Cannot find source column for sort field: source-id {source_id}")
        if not source.is_primitive:
            raise BadInput(f"Cannot sort by non-primitive source field: {source.name} ({source.kind})")
        _check_takes(transform, source)


def transform_kind(transform: str) -> str:
    """The transform's name without its width; `unknown` for one that only its writer knows, which any reader keeps."""
    lower = transform.lower()
    if lower in _TIMES or lower in ("identity", "void"):
        return lower
    width = _WITH_WIDTH.fullmatch(transform)
    if width is None:
        return "unknown"
    if len(width[2]) > 9 or int(width[2]) == 0:
        raise BadInput(f"Invalid transform: {transform:.100} (width must be above 0 and below 10^9)")
    return width[1].lower()


def same_spec(one: Sequence[Field], other: Sequence[Field]) -> bool:
    """Equal in sources, transforms and names, in order; field ids do not count."""
    return len(one) == len(other) and all(_key(a) == _key(b) for a, b in zip(one, other, strict=True))


def same_order(one: Sequence[Field], other: Sequence[Field]) -> bool:
    def key(field: Field) -> tuple[Any, ...]:
        return (
            field.get("source-id"),
            str(field.get("transform")).lower(),
            str(field.get("direction")).lower(),
            str(field.get("null-order")).lower(),
        )

    return [key(field) for field in one] == [key(field) for field in other]


def numbered(
    fields: Sequence[Field], specs: Iterable[Mapping[str, Any]], last_id: int, format_version: int
) -> list[dict[str, Any]]:
    """The fields with ids where the request left them to us.

    From version 2 on an id belongs to one source and transform for the table's life; in version 1 ids are positions.
    """
    given = [field for field in fields if field.get("field-id") is not None]
    if given:
        if len(given) != len(fields):
            missing = len(fields) - len(given)
            raise BadInput(f"Cannot parse spec with missing field IDs: {missing} missing of {len(fields)} fields.")
        return [dict(field) for field in fields]
    if format_version == 1:
        return [{**field, "field-id": id} for id, field in enumerate(fields, FIRST_FIELD_ID)]
    known = {
        (field.get("source-id"), str(field.get("transform")).lower()): field["field-id"]
        for spec in specs
        for field in spec["fields"]
        if field.get("field-id") is not None
    }
    out = []
    for field in fields:
        id = known.pop((field["source-id"], field["transform"].lower()), None)
        if id is None:
            last_id += 1
            id = last_id
        out.append({**field, "field-id": id})
    return out


def rebuilt(fields: Sequence[Field], became: Mapping[int, int]) -> list[dict[str, Any]]:
    """The same fields over columns that got new ids."""
    for field in fields:
        source_id = wanted.int32(field, "source-id", "field")
        if source_id not in became:
            raise BadInput(f"Cannot find source column: source-id {source_id}")
    return [{**field, "source-id": became[field["source-id"]]} for field in fields]


def is_sequential(fields: Sequence[Field]) -> bool:
    return [field["field-id"] for field in fields] == list(range(FIRST_FIELD_ID, FIRST_FIELD_ID + len(fields)))


def _parts(field: Field) -> tuple[str, int, str]:
    name = wanted.text(field, "name", "partition field")
    where = f"partition field {name:.100}"
    return name, wanted.int32(field, "source-id", where), wanted.text(field, "transform", where)


def _key(field: Field) -> tuple[Any, ...]:
    return field.get("source-id"), str(field.get("transform")).lower(), field.get("name")


def _check_takes(transform: str, source: Column) -> None:
    kind = transform_kind(transform)
    sources = _SOURCES.get(kind)
    if sources is not None and source.kind not in sources:
        raise BadInput(f"Invalid source type {source.kind} for transform: {transform} ({source.name})")
    if kind == "identity" and source.kind in ("geometry", "geography"):
        raise BadInput(f"Invalid source type {source.kind} for transform: {transform} ({source.name})")
