"""Stored documents: JSON with a format version. A reader refuses a newer version and reads every earlier one."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import TypeVar

import msgspec

from frazil.errors import Corrupt

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
        version = _version.decode(body).version
        if version > newest:
            raise Corrupt(
                f"{key} is of format version {version}, written by a newer Frazil; this one reads up to {newest}"
            )
        return _decoder(kind).decode(body)  # type: ignore[no-any-return]
    except msgspec.MsgspecError as error:
        raise Corrupt(f"{key} cannot be read: {error}") from None


def iso(at_ms: int) -> str:
    """The form of every stored moment: ISO 8601, UTC, milliseconds."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at_ms % 1000:03d}Z"
