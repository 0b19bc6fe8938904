"""Every object key of a catalog, relative to its root. Made from UUIDs and hashes, never from names that users give."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from functools import lru_cache

CATALOG = "_catalog/catalog.json"
HEAD = "_catalog/core/manifest.json"


def checkpoint(sequence: int, part: str) -> str:
    """A registry checkpoint's index or range; `part` is unique to the attempt that wrote it."""
    return f"_catalog/core/snapshots/{sequence:020}-{part}.json"


def pointer(table_uuid: str) -> str:
    return f"_catalog/iceberg_pointers/{table_uuid}.json"


def key_hash(idempotency_key: str) -> str:
    return hashlib.sha256(idempotency_key.encode()).hexdigest()


def marker(idempotency_key: str) -> str:
    """Filed by the time inside the UUIDv7, so that old ones are a prefix to delete."""
    at_ms = uuid7_ms(idempotency_key)
    hour = at_ms // 3_600_000 % 24
    return f"_catalog/iceberg_idempotency/{day(at_ms)}/{hour:02}/{key_hash(idempotency_key)}.json"


def uuid7_ms(key: str) -> int:
    """The milliseconds since 1970 in a canonical UUIDv7."""
    return int(key[:8] + key[9:13], 16)


def commit_key(metadata_location: str) -> str:
    return hashlib.sha256(metadata_location.encode()).hexdigest()


def registered_commit_key(metadata_location: str, number: int) -> str:
    """A registered file may be registered again later: the commit number tells the two apart."""
    return hashlib.sha256(f"{metadata_location}#{number}".encode()).hexdigest()


def day(at_ms: int) -> str:
    """The UTC day of a moment, as in every dated key."""
    return _day(at_ms // 86_400_000)


#: 31 December 9999: what a file claims to be from beyond that is filed there.
_LAST_DAY = 2_932_896


@lru_cache(maxsize=64)
def _day(number: int) -> str:
    return f"{datetime.fromtimestamp(min(max(number, 0), _LAST_DAY) * 86_400, UTC):%Y-%m-%d}"


def pending_receipt(at_ms: int, commit: str) -> str:
    return f"_catalog/events/{day(at_ms)}/iceberg/pending/{commit}.json"


def committed_receipt(at_ms: int, commit: str) -> str:
    return f"_catalog/events/{day(at_ms)}/iceberg/committed/{commit}.json"


def table(table_uuid: str) -> str:
    """The default place of a table, under the root."""
    return f"tables/{table_uuid}"


def is_record(key: str) -> bool:
    """Whether only Frazil reads the object (a document of the catalog), not an engine."""
    return key.startswith("_catalog/") and key.endswith(".json")
