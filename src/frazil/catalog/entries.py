"""What the registry keeps: entries under ordered name keys, changes to them, and the outcome of each operation."""

from __future__ import annotations

from typing import Any

import msgspec

from frazil.errors import FrazilError
from frazil.names import Namespace, TableName

NAMESPACE = "namespace"
TABLE = "table"

ICEBERG = "ICEBERG"


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One name: a namespace, or something with a format in one."""

    kind: str
    uuid: str
    format: str | None = None
    location: str | None = None
    properties: dict[str, str] = {}
    tags: dict[str, str] = {}


class Failure(msgspec.Struct, frozen=True):
    """A deterministic failure, kept whole so that its replay is the same answer."""

    status: int
    type: str
    message: str


class StoredFailure(FrazilError):
    """A failure that was stored, told again as it was told first."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.status = failure.status  # type: ignore[misc]
        self.type = failure.type  # type: ignore[misc]


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of an operation, bound to what was asked."""

    operation: str
    resource: str
    request: str
    principal: str | None
    at: int
    result: dict[str, Any] = {}
    failure: Failure | None = None


class Owed(msgspec.Struct, frozen=True):
    """A step that the change made necessary and that is not known to be done: a tombstone to write."""

    id: str
    uuid: str
    #: A dropped table's files may be deleted by the purge job.
    purge: bool = False


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """One operation's effect on the registry: all of it, or none."""

    seq: int
    id: str
    outcome: Outcome
    #: Name keys that go, with the uuid they named.
    removed: dict[str, str] = {}
    put: dict[str, Entry] = {}


# -- name keys -------------------------------------------------------------------------------------------------------
# A namespace is an entry and what lies in it follows as one range: levels joined by U+001F, then U+0000, a letter for
# the kind of child, its name. Names hold no control characters, so nothing else sorts in between.

_LEVEL = "\x1f"
_CHILD = "\x00"


def children(namespace: Namespace, letter: str = "") -> str:
    """The prefix of everything directly inside a namespace (the empty one: the top level)."""
    return _LEVEL.join(namespace) + _CHILD + letter


def namespace_key(namespace: Namespace) -> str:
    return children(namespace[:-1], "n") + namespace[-1]


def table_key(name: TableName) -> str:
    return children(name.namespace, "t") + name.name


def child_name(key: str) -> str:
    """The last part of a name key."""
    return key[key.index(_CHILD) + 2 :]


def named_by(key: str) -> TableName:
    path, _, child = key.partition(_CHILD)
    return TableName(tuple(path.split(_LEVEL)), child[1:])
