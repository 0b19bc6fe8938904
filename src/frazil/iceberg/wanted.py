"""Fields of a request's object, each of the type it must have or a `BadInput` that names it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frazil.errors import BadInput

_INT32 = (-(2**31), 2**31 - 1)
_INT64 = (-(2**63), 2**63 - 1)


def int32(source: Mapping[str, Any], key: str, where: str) -> int:
    return _integer(source.get(key), key, where, *_INT32)


def int64(source: Mapping[str, Any], key: str, where: str) -> int:
    return _integer(source.get(key), key, where, *_INT64)


def int32_or_none(source: Mapping[str, Any], key: str, where: str) -> int | None:
    return None if source.get(key) is None else int32(source, key, where)


def int64_or_none(source: Mapping[str, Any], key: str, where: str) -> int | None:
    return None if source.get(key) is None else int64(source, key, where)


def int32_list(source: Mapping[str, Any], key: str, where: str) -> list[int]:
    return [_integer(item, f"each of {key}", where, *_INT32) for item in _list(source, key, where)]


def int64_list(source: Mapping[str, Any], key: str, where: str) -> list[int]:
    return [_integer(item, f"each of {key}", where, *_INT64) for item in _list(source, key, where)]


def text(source: Mapping[str, Any], key: str, where: str) -> str:
    value = source.get(key)
    if not isinstance(value, str):
        raise _wrong(key, where, "a string", value)
    return value


def text_list(source: Mapping[str, Any], key: str, where: str) -> list[str]:
    listed = _list(source, key, where)
    for item in listed:
        if not isinstance(item, str):
            raise _wrong(f"each of {key}", where, "a string", item)
    return listed


def boolean(source: Mapping[str, Any], key: str, where: str) -> bool:
    value = source.get(key)
    if not isinstance(value, bool):
        raise _wrong(key, where, "true or false", value)
    return value


def mapping(source: Mapping[str, Any], key: str, where: str) -> dict[str, Any]:
    value = source.get(key)
    if not isinstance(value, dict):
        raise _wrong(key, where, "an object", value)
    return value


def text_mapping(source: Mapping[str, Any], key: str, where: str) -> dict[str, str]:
    value = mapping(source, key, where)
    for name, item in value.items():
        if not isinstance(item, str):
            raise _wrong(f"{key}.{name}", where, "a string", item)
    return value


def mapping_list(source: Mapping[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    listed = _list(source, key, where)
    for item in listed:
        if not isinstance(item, dict):
            raise _wrong(f"each of {key}", where, "an object", item)
    return listed


def _list(source: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = source.get(key)
    if not isinstance(value, list):
        raise _wrong(key, where, "a list", value)
    return value


def _integer(value: object, key: str, where: str, low: int, high: int) -> int:
    # A bool is an int to Python and not to JSON.
    if type(value) is not int:
        raise _wrong(key, where, "an integer", value)
    if not low <= value <= high:
        raise BadInput(f"Invalid {where}: {key} is out of range: {value}")
    return value


def _wrong(key: str, where: str, expected: str, value: object) -> BadInput:
    found = "missing" if value is None else f"{value!r:.100}"
    return BadInput(f"Invalid {where}: {key} must be {expected}, is {found}")
