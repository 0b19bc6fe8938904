"""Schemas: what their columns are, whether a table may have them, and fresh ids for a new table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import msgspec

from frazil.errors import BadInput
from frazil.iceberg import wanted

#: Types nest no deeper than this; the bound keeps hostile input off the interpreter's stack.
DEPTH_MAX = 100
DECIMAL_PRECISION_MAX = 38

_SINCE_V1 = {"boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz"}
_SINCE_V1 |= {"string", "uuid", "binary"}
_SINCE_V3 = {"timestamp_ns", "timestamptz_ns", "unknown", "variant", "geometry", "geography"}
_PRIMITIVES = _SINCE_V1 | _SINCE_V3
_NESTED = frozenset(("struct", "list", "map"))
_TYPE_KEYS = frozenset(("type", "element", "key", "value"))
_EDGES = frozenset(("spherical", "vincenty", "thomas", "andoyer", "karney"))
_FIXED = re.compile(r"fixed\[\s*\d{1,9}\s*\]")
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,9})\s*,\s*\d{1,9}\s*\)")
_GEOMETRY = re.compile(r"geometry\s*\(\s*[^\s)][^)]*\)")
_GEOGRAPHY = re.compile(r"geography\s*\(\s*[^\s,)][^,)]*(?:,\s*(\w+)\s*)?\)")


class Column(msgspec.Struct, frozen=True):
    """A field at any depth; a list's element and a map's key and value are columns too."""

    id: int
    name: str
    kind: str
    required: bool
    parent: int | None = None
    has_default: bool = False

    @property
    def is_primitive(self) -> bool:
        return self.kind not in _NESTED and self.kind != "variant"


Columns = Mapping[int, Column]


def columns(schema: Mapping[str, Any]) -> dict[int, Column]:
    """Every column by id; `BadInput` for what is no schema."""
    if schema.get("type", "struct") != "struct":
        raise BadInput(f"Invalid schema: not a struct type: {schema['type']!r:.100}")
    found: dict[int, Column] = {}
    names: dict[str, int] = {}
    for column in _struct(schema, "", None, 0):
        if column.id in found:
            raise BadInput(
                f"Invalid schema: multiple fields for id {column.id}: {found[column.id].name} and {column.name}"
            )
        if column.name in names:
            raise BadInput(
                f"Invalid schema: multiple fields for name {column.name}: {names[column.name]} and {column.id}"
            )
        found[column.id] = column
        names[column.name] = column.id
    return found


def check(schema: Mapping[str, Any], format_version: int) -> dict[int, Column]:
    """The columns of a schema that a table of this format version may have."""
    found = columns(schema)
    problems = [problem for column in found.values() for problem in _problems(column, format_version)]
    if problems:
        raise BadInput(f"Invalid schema for v{format_version}: " + "; ".join(problems))
    for id in _identifiers(schema):
        _check_identifier(id, found)
    return found


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Equal but for the schema's id."""
    return set(_identifiers(one)) == set(_identifiers(other)) and _plain(one) == _plain(other)


def fresh(schema: Mapping[str, Any]) -> tuple[dict[str, Any], dict[int, int], int]:
    """The schema with new ids from 1 up, which id became which, and the highest.

    All fields of a struct come first, in order, then what is nested in them: the order that Java gives, so a client
    that assigns ids itself arrives at the same ones.
    """
    ids = count(1)
    became: dict[int, int] = {}

    def assigned(source: Mapping[str, Any], key: str) -> int:
        became[source[key]] = next(ids)
        return became[source[key]]

    def struct(source: Mapping[str, Any]) -> dict[str, Any]:
        level = [{**field, "id": assigned(field, "id")} for field in source["fields"]]
        return {**source, "fields": [{**field, "type": retyped(field["type"])} for field in level]}

    def retyped(type: Any) -> Any:
        if isinstance(type, str):
            return type
        if type["type"] == "struct":
            return struct(type)
        if type["type"] == "list":
            return {**type, "element-id": assigned(type, "element-id"), "element": retyped(type["element"])}
        key_id, value_id = assigned(type, "key-id"), assigned(type, "value-id")
        both = {"key": retyped(type["key"]), "value": retyped(type["value"])}
        return {**type, "key-id": key_id, "value-id": value_id, **both}

    new = {**struct(schema), "type": "struct", "schema-id": 0}
    if schema.get("identifier-field-ids") is not None:
        new["identifier-field-ids"] = [became[id] for id in _identifiers(schema)]
    return new, became, len(became)


def _struct(type: Mapping[str, Any], path: str, parent: int | None, depth: int) -> Iterator[Column]:
    for field in wanted.mapping_list(type, "fields", f"struct {path}" if path else "schema"):
        where = f"field {field.get('name')!r:.100}" + (f" of {path}" if path else "")
        id = wanted.int32(field, "id", where)
        name = wanted.text(field, "name", where)
        if field.get("doc") is not None:
            wanted.text(field, "doc", where)
        has_default = field.get("initial-default") is not None or field.get("write-default") is not None
        full = f"{path}.{name}" if path else name
        required = wanted.boolean(field, "required", where)
        yield from _column(id, full, field.get("type"), required, parent, depth, has_default)


def _column(
    id: int, name: str, type: Any, required: bool, parent: int | None, depth: int, has_default: bool = False
) -> Iterator[Column]:
    if depth >= DEPTH_MAX:
        raise BadInput(f"Invalid schema: {name:.100}… is nested deeper than {DEPTH_MAX} levels")
    kind = _kind(type, name)
    yield Column(id, name, kind, required, parent, has_default)
    if kind == "struct":
        yield from _struct(type, name, id, depth + 1)
    elif kind == "list":
        yield from _inner(type, "element", name, id, depth)
    elif kind == "map":
        yield from _inner(type, "key", name, id, depth)
        yield from _inner(type, "value", name, id, depth)


def _inner(type: Mapping[str, Any], role: str, name: str, parent: int, depth: int) -> Iterator[Column]:
    id = wanted.int32(type, f"{role}-id", f"type of {name}")
    required = role == "key" or wanted.boolean(type, f"{role}-required", f"type of {name}")
    yield from _column(id, f"{name}.{role}", type.get(role), required, parent, depth + 1)


def _kind(type: Any, name: str) -> str:
    """`struct`, `list`, `map`, or a primitive's name without its parameters."""
    if isinstance(type, dict) and type.get("type") in _NESTED:
        return str(type["type"])
    if isinstance(type, str):
        if type in _PRIMITIVES:
            return type
        if _FIXED.fullmatch(type):
            return "fixed"
        if decimal := _DECIMAL.fullmatch(type):
            if int(decimal[1]) > DECIMAL_PRECISION_MAX:
                raise BadInput(f"Invalid type for {name}: {type} has a precision above {DECIMAL_PRECISION_MAX}")
            return "decimal"
        if _GEOMETRY.fullmatch(type):
            return "geometry"
        geography = _GEOGRAPHY.fullmatch(type)
        if geography and (geography[1] is None or geography[1].lower() in _EDGES):
            return "geography"
    raise BadInput(f"Invalid type for {name}: unknown type {type!r:.100}")


def _problems(column: Column, format_version: int) -> Iterator[str]:
    if format_version < 3 and column.kind in _SINCE_V3:
        yield f"Invalid type for {column.name}: {column.kind} is not supported until v3"
    if format_version < 3 and column.has_default:
        yield f"Invalid default for {column.name}: non-null default is not supported until v3"
    if column.kind == "unknown" and column.required:
        yield f"Cannot create required field with unknown type: {column.name}"
    if column.kind in _NESTED and column.has_default:
        yield f"Invalid default for {column.name}: must be null for a {column.kind}"


def _identifiers(schema: Mapping[str, Any]) -> list[int]:
    if schema.get("identifier-field-ids") is None:
        return []
    return wanted.int32_list(schema, "identifier-field-ids", "schema")


def _check_identifier(id: int, found: Columns) -> None:
    column = found.get(id)
    if column is None:
        raise BadInput(f"Cannot add field {id} as an identifier field: field does not exist")
    refused = f"Cannot add field {column.name} as an identifier field"
    if not column.is_primitive:
        raise BadInput(f"{refused}: not a primitive type field")
    if not column.required:
        raise BadInput(f"{refused}: not a required field")
    if column.kind in ("float", "double"):
        raise BadInput(f"{refused}: must not be float or double field")
    for parent in ancestors(column, found):
        if parent.kind != "struct":
            raise BadInput(f"{refused}: must not be nested in {parent.kind} {parent.name}")
        if not parent.required:
            raise BadInput(f"{refused}: must not be nested in an optional field {parent.name}")


def ancestors(column: Column, found: Columns) -> Iterator[Column]:
    while column.parent is not None:
        column = found[column.parent]
        yield column


def _plain(value: Any) -> Any:
    """A schema without what two equal ones may differ in: its id, absent or null, spaces in a type's parameters."""
    if isinstance(value, Mapping):
        ignored = ("schema-id", "identifier-field-ids")
        return {
            key: item.replace(" ", "") if key in _TYPE_KEYS and isinstance(item, str) else _plain(item)
            for key, item in value.items()
            if item is not None and key not in ignored
        }
    return [_plain(item) for item in value] if isinstance(value, list) else value
