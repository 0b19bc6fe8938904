"""The store contract: what the catalog may ask of an object store, and the only answers there are.

Two layers. A `Backend` is one object store, one request a call, no retries: it says what the store said. The guard
(`guard.py`) turns any backend into a `Store`, whose conditional writes end in one of exactly three outcomes.

Keys are relative to the catalog's root, `/`-separated, made by `keys.py` alone. Bodies handed to a conditional write
of an object that is written more than once must be unique (they carry a stamp): equal bytes mean "this very write".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec


class Found(msgspec.Struct, frozen=True):
    """An object: its bytes, and the opaque version that a conditional write may name."""

    body: bytes
    version: str


class Unchanged(msgspec.Struct, frozen=True):
    """The object is still the version that was asked about."""


class Listed(msgspec.Struct, frozen=True):
    """One object in a listing."""

    key: str
    version: str


# -- what a backend says of one conditional write ---------------------------------------------------------------


class Applied(msgspec.Struct, frozen=True):
    """The write is in the store, as this version."""

    version: str


class Refused(msgspec.Struct, frozen=True):
    """The store says the condition did not hold for this request. Says nothing about an earlier try of ours."""


class Unclear(msgspec.Struct, frozen=True):
    """409, 5xx, 429, a time-out, a lost answer: the write may have landed, or land later, or never."""

    reason: str


# -- what the guard makes of it -----------------------------------------------------------------------------------


class Overtaken(msgspec.Struct, frozen=True):
    """The object moved on from the condition, so this write can no longer land. `found` is what is there now."""

    found: Found | None


class Undecided(msgspec.Struct, frozen=True):
    """The deadline passed and nobody knows. The write may still land."""

    reason: str


Put = Applied | Overtaken | Undecided
RawPut = Applied | Refused | Unclear


class StoreUnavailable(Exception):
    """A read (or a list, or a delete) got no answer from the object store."""


class Backend(Protocol):
    """One object store. Every call is one request; reads raise `StoreUnavailable` when there is no answer."""

    async def get(self, key: str) -> Found | None: ...

    async def get_if_changed(self, key: str, version: str) -> Found | Unchanged | None: ...

    async def create(self, key: str, body: bytes) -> RawPut:
        """Write if absent."""
        ...

    async def swap(self, key: str, body: bytes, version: str) -> RawPut:
        """Write if the object is still `version`."""
        ...

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> Sequence[Listed]:
        """Keys that start with `prefix` and sort behind `after`, in order, at most `limit`."""
        ...

    async def delete(self, key: str) -> None:
        """Remove garbage. Absent is fine. Never used for protocol state."""
        ...

    async def close(self) -> None: ...


class Store(Protocol):
    """What the catalog awaits."""

    async def get(self, key: str) -> Found | None: ...

    async def get_if_changed(self, key: str, version: str) -> Found | Unchanged | None: ...

    async def put_new(self, key: str, body: bytes) -> Put: ...

    async def put_if(self, key: str, body: bytes, version: str) -> Put: ...

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> Sequence[Listed]: ...

    async def delete(self, key: str) -> None: ...

    async def close(self) -> None: ...
