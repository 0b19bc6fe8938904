"""What clients send, as typed requests. JSON here is strict: a key twice is refused, depth and sizes are bounded."""

from __future__ import annotations

import json
import zlib
from typing import Any, TypeVar

import msgspec
import orjson

from frazil import limits
from frazil.errors import BadInput, TooLarge

S = TypeVar("S")


class Named(msgspec.Struct, frozen=True):
    """A table as a body names it."""

    namespace: list[str]
    name: str


class CreateNamespace(msgspec.Struct, frozen=True):
    namespace: list[str]
    properties: dict[str, str] = {}


class UpdateNamespace(msgspec.Struct, frozen=True):
    removals: list[str] = []
    updates: dict[str, str] = {}


class CreateTable(msgspec.Struct, frozen=True, rename="kebab"):
    name: str
    schema: dict[str, Any]
    location: str | None = None
    partition_spec: dict[str, Any] | None = None
    write_order: dict[str, Any] | None = None
    stage_create: bool = False
    properties: dict[str, str] | None = None


class RegisterTable(msgspec.Struct, frozen=True, rename="kebab"):
    name: str
    metadata_location: str
    overwrite: bool = False


class CommitTable(msgspec.Struct, frozen=True):
    requirements: list[dict[str, Any]]
    updates: list[dict[str, Any]]
    identifier: Named | None = None


class RenameTable(msgspec.Struct, frozen=True):
    source: Named
    destination: Named


class SetTags(msgspec.Struct, frozen=True):
    tags: dict[str, str]


class ChangeTags(msgspec.Struct, frozen=True):
    removals: list[str] = []
    updates: dict[str, str] = {}


class ScanReport(msgspec.Struct, frozen=True, rename="kebab", tag_field="report-type", tag="scan-report"):
    table_name: str
    snapshot_id: int
    filter: Any
    schema_id: int
    projected_field_ids: list[int]
    projected_field_names: list[str]
    metrics: dict[str, Any]
    metadata: dict[str, str] | None = None


class CommitReport(msgspec.Struct, frozen=True, rename="kebab", tag_field="report-type", tag="commit-report"):
    table_name: str
    snapshot_id: int
    sequence_number: int
    operation: str
    metrics: dict[str, Any]
    metadata: dict[str, str] | None = None


Report = ScanReport | CommitReport


# -- decoding ----------------------------------------------------------------------------------------------------------


def decode(body: bytes, kind: type[S]) -> S:
    """The body as `kind`; `BadInput` says what is wrong and where."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadInput(f"the body is not JSON: {error}" if body else "a JSON body is needed") from None
    check_strict(body, value)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise BadInput(f"the body does not fit: {error}") from None


def check_strict(body: bytes, value: Any) -> None:
    """Refuse a key that is there twice, what is nested too deeply, and texts too long."""
    if body.count(b"[") + body.count(b"{") > limits.json_depth_max:
        _check_depth(value)
    # What encodes to the very bytes that came can have lost nothing: true for most clients, at a µs for a commit.
    if orjson.dumps(value) != body:
        _check_keys(body)
    if len(body) > limits.json_string_bytes_max:
        _check_strings(value)


def _check_keys(body: bytes) -> None:
    json.loads(body, object_pairs_hook=_unique)


def _unique(items: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in items:
        if key in seen:
            raise BadInput(f"the body has the key {key!r} twice in one object")
        seen.add(key)


def _check_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > limits.json_depth_max:
            raise BadInput(f"the body is nested deeper than {limits.json_depth_max} levels")
        level = [
            item
            for inner in level
            for item in (inner.values() if isinstance(inner, dict) else inner)
            if isinstance(item, dict | list)
        ]


def _check_strings(value: Any) -> None:
    left = [value]
    while left:
        match left.pop():
            case str() as text if len(text) > limits.json_string_bytes_max:
                raise BadInput(f"the body holds a text longer than {limits.json_string_bytes_max} bytes")
            case dict() as inner:
                left += [*inner, *inner.values()]
            case list() as inner:
                left += inner


# -- bodies ------------------------------------------------------------------------------------------------------------


def inflated(body: bytes, encoding: bytes) -> bytes:
    """A body as it was before it was compressed; never more of it in memory than is allowed."""
    if encoding.lower() in (b"", b"identity"):
        return body
    if encoding.lower() not in (b"gzip", b"x-gzip"):
        raise BadInput(f"the Content-Encoding {encoding[:40].decode('latin-1')!r} is not known here: gzip is")
    most = min(limits.inflated_bytes_max, max(len(body), 1024) * limits.inflate_ratio_max)
    unpacker = zlib.decompressobj(31)
    try:
        plain = unpacker.decompress(body, most + 1)
    except zlib.error as error:
        raise BadInput(f"the body is not gzip: {error}") from None
    if len(plain) > most:
        raise TooLarge(f"the body inflates to more than {most} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise BadInput("the body is not one whole gzip stream")
    return plain


def is_json(kind: bytes) -> bool:
    return kind.split(b";", 1)[0].strip().lower() == b"application/json"
