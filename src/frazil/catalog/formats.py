"""Stored documents: JSON with a format version. A reader refuses a newer version and reads every earlier one."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

import msgspec

from frazil.errors import Corrupt
from frazil.store import keys

D = TypeVar("D", bound=msgspec.Struct)


class _Versioned(msgspec.Struct):
    version: int


_version = msgspec.json.Decoder(_Versioned)
_encoder = msgspec.json.Encoder()


@cache
def _decoder(kind: type[D]) -> msgspec.json.Decoder[D]:
    return msgspec.json.Decoder(kind)


def encode(document: msgspec.Struct) -> bytes:
    return _encoder.encode(document)


def decode(body: bytes, kind: type[D], newest: int, key: str) -> D:
    """The document, or `Corrupt` naming the object and why it cannot be read."""
    try:
        document = _decoder(kind).decode(body)
    except msgspec.MsgspecError as error:
        _refuse_newer(_version_alone(body), newest, key)
        raise Corrupt(f"{key} cannot be read: {error}") from None
    _refuse_newer(getattr(document, "version", 0), newest, key)
    return document  # type: ignore[no-any-return]


def _version_alone(body: bytes) -> int:
    """The version of a document whose rest cannot be read; 0 where not even that can."""
    try:
        return _version.decode(body).version
    except msgspec.MsgspecError:
        return 0


def _refuse_newer(version: int, newest: int, key: str) -> None:
    if version > newest:
        raise Corrupt(f"{key} is of format version {version}, written by a newer Frazil; this one reads up to {newest}")


def iso(at_ms: int) -> str:
    """The form of every stored moment: ISO 8601, UTC, milliseconds."""
    seconds, ms = divmod(at_ms, 1000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    return f"{keys.day(at_ms)}T{hours % 24:02}:{minute:02}:{second:02}.{ms:03}Z"
