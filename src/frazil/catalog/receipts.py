"""Receipts: the immutable record of each commit, and the rule that none is ever missing (§3.3, §6).

A committed receipt exists for every commit that a pointer has left behind: whoever replaces a pointer first makes sure
of it. So a commit happened if and only if the pointer names it or its receipt exists.
"""

from __future__ import annotations

from typing import Any

import msgspec

from frazil.catalog import formats
from frazil.effects import Effects, Promise
from frazil.errors import Unavailable
from frazil.iceberg.metadata import TableMetadata
from frazil.store import keys
from frazil.store.base import Applied, Overtaken, Store, Undecided

VERSION = 1


class Servo(msgspec.Struct, frozen=True, tag="Servo", tag_field="type"):
    """A task of a pipeline run: its lineage is observed."""

    run_id: str
    task_id: str


class IcebergRest(msgspec.Struct, frozen=True, tag="IcebergRest", tag_field="type"):
    """Some Iceberg client; what it says of itself is recorded, not verified."""

    client_info: str | None = None
    principal: str | None = None


class AdminApi(msgspec.Struct, frozen=True, tag="AdminApi", tag_field="type"):
    """A person at the command line or the management API."""

    user_id: str


Source = Servo | IcebergRest | AdminApi


class Before(msgspec.Struct, frozen=True):
    """A commit's actual predecessor: its metadata location, and the store key of its receipt."""

    location: str
    receipt: str


class Receipt(msgspec.Struct, frozen=True):
    """One commit, whole: what history, lineage and recovery will ever ask of it."""

    version: int
    table_uuid: str
    commit_key: str
    commit_number: int
    event_id: str
    metadata_location: str
    #: What this commit actually replaced; None for the first.
    previous_metadata_location: str | None
    #: The store key of the predecessor's receipt.
    previous: str | None
    #: The snapshot that this commit added to a ref, with its operation and whole summary; None: it added none.
    snapshot_id: int | None
    operation: str | None
    summary: dict[str, Any]
    refs: dict[str, Any]
    schema_id: int
    format_version: int
    transaction_id: str | None
    source: Source
    committed_at: str
    #: The metadata's own time; its day files the receipt, the same for whoever writes it.
    metadata_updated_ms: int
    backfilled: bool = False

    @property
    def key(self) -> str:
        return keys.committed_receipt(self.metadata_updated_ms, self.commit_key)

    @property
    def as_before(self) -> Before:
        """This commit as its successor names it."""
        return Before(self.metadata_location, self.key)

    @property
    def before(self) -> Before | None:
        if self.previous_metadata_location is None or self.previous is None:
            return None
        return Before(self.previous_metadata_location, self.previous)


class Pending(msgspec.Struct, frozen=True):
    """A keyless commit about to be tried. With a key, the claim holds the same fields and serves as one."""

    version: int
    table_uuid: str
    commit_key: str
    event_id: str
    metadata_location: str
    base_metadata_location: str | None
    snapshot_id: int | None
    source: Source
    started_at: str


def of_commit(
    metadata: TableMetadata,
    *,
    base: TableMetadata | None,
    location: str,
    number: int,
    event_id: str,
    previous: Before | None,
    source: Source,
    now_ms: int,
    commit_key: str,
) -> Receipt:
    made = _snapshot_made(metadata, base)
    summary = dict(((metadata.snapshot(made) or {}).get("summary") or {}) if made is not None else {})
    return Receipt(
        version=VERSION,
        table_uuid=metadata.uuid,
        commit_key=commit_key,
        commit_number=number,
        event_id=event_id,
        metadata_location=location,
        previous_metadata_location=previous.location if previous else None,
        previous=previous.receipt if previous else None,
        snapshot_id=made,
        operation=summary.get("operation"),
        summary=summary,
        refs=dict(metadata.refs),
        schema_id=metadata.current_schema_id,
        format_version=metadata.format_version,
        transaction_id=None,
        source=source,
        committed_at=formats.iso(now_ms),
        metadata_updated_ms=metadata.last_updated_ms,
    )


def _snapshot_made(metadata: TableMetadata, base: TableMetadata | None) -> int | None:
    """The snapshot that a commit added: main's, else another ref's. None where it added none to any ref."""
    refs = [metadata.current_snapshot_id, *(ref.get("snapshot-id") for ref in metadata.refs.values())]
    new = (id_ for id_ in refs if id_ is not None and (base is None or not base.has_snapshot(id_)))
    return next(new, None)


class Settlements:
    """Which producers' receipts this process knows to exist, and which it is writing right now."""

    def __init__(self, store: Store, effects: Effects) -> None:
        self._store = store
        self._effects = effects
        self._known: dict[str, None] = {}
        self._writing: dict[str, Promise[bool]] = {}

    async def settle(self, receipt: Receipt, body: bytes) -> None:
        """Make a predecessor's receipt known to exist, or raise: then nothing of the caller's may be applied (§3.3).

        It mostly is there already: one read tells, and a repeated write would cost two.
        """
        unheard_of = receipt.key not in self._known and receipt.key not in self._writing
        if unheard_of and await self._store.get(receipt.key) is not None:
            self._remember(receipt.key)
        if not await self._write(receipt, body):
            raise Unavailable(f"the receipt of {receipt.metadata_location} could not be confirmed; nothing was applied")

    async def record(self, receipt: Receipt, body: bytes) -> None:
        """Write the receipt of a commit that this process just saw land."""
        await self._write(receipt, body)

    async def _write(self, receipt: Receipt, body: bytes) -> bool:
        """Whether the receipt is known to be there; written once in this process, whoever asks meanwhile."""
        if receipt.key in self._known:
            return True
        if (other := self._writing.get(receipt.key)) is not None:
            return await other.wait()
        mine = self._writing[receipt.key] = self._effects.tasks.promise()
        written = False
        try:
            written = is_there(await self._store.put_new(receipt.key, body))
        finally:
            del self._writing[receipt.key]
            if written:
                self._remember(receipt.key)
            mine.give(written)
        return written

    def _remember(self, key: str) -> None:
        self._known[key] = None
        if len(self._known) > 50_000:
            self._known.pop(next(iter(self._known)))


def is_there(put: Applied | Overtaken | Undecided) -> bool:
    """H17: a receipt counts only when it is known to be in the store; somebody else's copy of it is as good as ours."""
    match put:
        case Applied():
            return True
        case Overtaken(found):
            return found is not None
        case Undecided():
            return False


async def find(store: Store, metadata_updated_ms: int, commit_key: str) -> Receipt | None:
    """The committed receipt of a commit, if there is one."""
    key = keys.committed_receipt(metadata_updated_ms, commit_key)
    found = await store.get(key)
    return None if found is None else formats.decode(found.body, Receipt, VERSION, key)


async def record_pending(store: Store, pending: Pending, at_ms: int) -> None:
    """Best effort, by design: a pending receipt is for the eye, the committed one is the truth."""
    await store.put_new(keys.pending_receipt(at_ms, pending.commit_key), formats.encode(pending))
