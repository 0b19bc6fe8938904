"""Pointers: the one mutable object of a table. One function reads them, one writes them (§3.4).

A pointer carries its producer's receipt whole, so that whoever replaces it can settle first and writes the same bytes
as the commit's own owner would. A fence or a tombstone is no commit: it keeps the producer as it was.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import msgspec

from frazil import limits
from frazil.catalog import formats, receipts
from frazil.catalog.receipts import Receipt, Source
from frazil.effects import Effects
from frazil.iceberg.metadata import TableMetadata
from frazil.store import keys
from frazil.store.base import Applied, Found, Put, Store, Unchanged

VERSION = 1

LIVE = "live"
TOMBSTONE = "tombstone"


class Pointer(msgspec.Struct, frozen=True):
    version: int
    table_uuid: str
    state: str
    current_metadata_location: str
    current_snapshot_id: int | None
    refs: dict[str, Any]
    last_sequence_number: int
    previous_metadata_location: str | None
    updated_at: str
    updated_by: Source
    #: Counts commits; orders history without clocks.
    commit_number: int
    #: Counts fences: a stalled writer's condition no longer holds, and nothing else changed.
    fences: int
    #: The receipt of the commit that `current_metadata_location` came from, byte for byte.
    producer: msgspec.Raw
    #: Unique to each write, so that its writer knows it again and equal bytes cannot occur.
    stamp: str
    #: A dropped table's files may be deleted: set in a tombstone whose drop asked for it.
    purge_requested: bool = False


class Read(msgspec.Struct, frozen=True):
    """A pointer as it was read, with what is needed to replace exactly that."""

    pointer: Pointer
    version: str
    producer: Receipt

    @property
    def live(self) -> bool:
        return self.pointer.state == LIVE

    @property
    def location(self) -> str:
        return self.pointer.current_metadata_location


def parse(found: Found, uuid: str) -> Read:
    pointer = formats.decode(found.body, Pointer, VERSION, keys.pointer(uuid))
    return Read(pointer, found.version, _producer(pointer))


def _producer(pointer: Pointer) -> Receipt:
    where = f"the producer in {keys.pointer(pointer.table_uuid)}"
    return formats.decode(bytes(pointer.producer), Receipt, receipts.VERSION, where)


# -- the changes a pointer can go through ----------------------------------------------------------------------------


def first(receipt: Receipt, metadata: TableMetadata, effects: Effects) -> Pointer:
    """The pointer of a table that is being made or registered."""
    return _naming(receipt, metadata, effects, fences=0)


def commit(base: Pointer, receipt: Receipt, metadata: TableMetadata, effects: Effects) -> Pointer:
    return _naming(receipt, metadata, effects, fences=base.fences)


def _naming(receipt: Receipt, metadata: TableMetadata, effects: Effects, fences: int) -> Pointer:
    return Pointer(
        version=VERSION,
        table_uuid=receipt.table_uuid,
        state=LIVE,
        current_metadata_location=receipt.metadata_location,
        current_snapshot_id=metadata.current_snapshot_id,
        refs=receipt.refs,
        last_sequence_number=metadata.last_sequence_number,
        previous_metadata_location=receipt.previous_metadata_location,
        updated_at=receipt.committed_at,
        updated_by=receipt.source,
        commit_number=receipt.commit_number,
        fences=fences,
        producer=msgspec.Raw(formats.encode(receipt)),
        stamp=effects.ids.stamp(),
    )


def fence(base: Pointer, effects: Effects) -> Pointer:
    """Same location, same producer, no commit number: only whoever holds the old version notices (H11)."""
    return keeping_producer(base, base.state, effects)


def tombstone(base: Pointer, effects: Effects, *, purge: bool) -> Pointer:
    return msgspec.structs.replace(keeping_producer(base, TOMBSTONE, effects), purge_requested=purge)


def keeping_producer(base: Pointer, state: str, effects: Effects) -> Pointer:
    """What is no commit leaves the producer as it was: it may be all that its owner has to know it by (H11)."""
    return msgspec.structs.replace(base, state=state, fences=base.fences + 1, stamp=effects.ids.stamp())


# -- reading and writing ------------------------------------------------------------------------------------------


class Pointers:
    """The pointers of one catalog as this process last saw them, and the only way to read or move them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: OrderedDict[str, Read] = OrderedDict()

    def last_seen(self, uuid: str) -> Read | None:
        """Possibly old: a CAS on it tells."""
        return self._seen.get(uuid)

    async def read(self, uuid: str) -> Read | None:
        """The pointer as it is now: one conditional read."""
        known = self._seen.get(uuid)
        if known is None:
            found = await self._store.get(keys.pointer(uuid))
        else:
            changed = await self._store.get_if_changed(keys.pointer(uuid), known.version)
            if isinstance(changed, Unchanged):
                return known
            found = changed
        return None if found is None else self.note(found, uuid)

    async def make(self, pointer: Pointer, producer: Receipt) -> Put:
        """Create-if-absent: the first pointer of a table."""
        put = await self._store.put_new(keys.pointer(pointer.table_uuid), formats.encode(pointer))
        return self._noting(pointer, producer, put)

    async def move(self, base: Read, pointer: Pointer, producer: Receipt | None = None) -> Put:
        """Replace exactly what was read: by a commit, whose `producer` it is, or by what keeps the producer.

        Whoever names another location has settled `base.producer` before.
        """
        put = await self._store.put_if(keys.pointer(pointer.table_uuid), formats.encode(pointer), base.version)
        return self._noting(pointer, producer or _producer(pointer), put)

    def _noting(self, pointer: Pointer, producer: Receipt, put: Put) -> Put:
        if isinstance(put, Applied):
            self._keep(pointer.table_uuid, Read(pointer, put.version, producer))
        return put

    def note(self, found: Found, uuid: str) -> Read:
        return self._keep(uuid, parse(found, uuid))

    def _keep(self, uuid: str, seen: Read) -> Read:
        self._seen[uuid] = seen
        self._seen.move_to_end(uuid)
        if len(self._seen) > limits.pointer_cache_entries:
            self._seen.popitem(last=False)
        return seen

    def forget(self, uuid: str) -> None:
        self._seen.pop(uuid, None)
