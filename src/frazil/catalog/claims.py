"""Claims and markers: the idempotency record of a keyed commit, while it runs and after (§3).

A claim is written before the pointer is touched and says what is about to be tried: base, location, attempt. So a crash
anywhere leaves enough to find out what happened, and a second request with the key finds the first.
"""

from __future__ import annotations

from typing import Any

import msgspec

from frazil.catalog import formats
from frazil.catalog.entries import Failure, StoredFailure
from frazil.catalog.idempotency import Request, check_same
from frazil.catalog.receipts import Source
from frazil.effects import Effects
from frazil.errors import Conflict, FrazilError, Unavailable
from frazil.store import keys
from frazil.store.base import Applied, Found, Overtaken, Put, Store, Undecided

VERSION = 1

IN_PROGRESS = "InProgress"
COMMITTED = "Committed"
FAILED = "Failed"
#: Known not applied and given up by its owner: the next request with the key need not wait out a lease.
RELEASED = "Released"


class Target(msgspec.Struct, frozen=True):
    """What an attempt is about to do. `base_version` is the very pointer version its CAS will name (H12)."""

    table_uuid: str | None = None
    base_version: str | None = None
    base_metadata_location: str | None = None
    metadata_location: str | None = None
    #: With the two below: where the attempt's receipt would be, whoever writes it.
    commit_key: str | None = None
    metadata_updated_ms: int = 0
    commit_number: int = 0
    snapshot_id: int | None = None
    event_id: str = ""


class Marker(msgspec.Struct, frozen=True):
    version: int
    status: str
    idempotency_key: str
    operation: str
    resource: str
    principal: str | None
    request_hash: str
    attempt: int
    target: Target
    source: Source
    started_at: str
    committed_at: str | None
    failed_at: str | None
    error_http_status: int | None
    error_payload: dict[str, Any] | None
    stamp: str


class Claim(msgspec.Struct, frozen=True):
    """A marker as it stands in the store."""

    marker: Marker
    version: str

    def check_same(self, request: Request) -> None:
        """The same key with another payload: 503 while the first is in progress, 409 after."""
        marker = self.marker
        try:
            check_same(request, marker.operation, marker.resource, marker.request_hash, marker.principal)
        except Conflict:
            if marker.status == IN_PROGRESS:
                raise Unavailable("another request with this Idempotency-Key is in progress") from None
            raise

    def stored_failure(self) -> StoredFailure:
        payload = self.marker.error_payload or {}
        status = self.marker.error_http_status or 500
        return StoredFailure(Failure(status, payload.get("type", ""), payload.get("message", "")))


def read(found: Found, key: str) -> Claim:
    return Claim(formats.decode(found.body, Marker, VERSION, key), found.version)


async def look(store: Store, request: Request) -> Claim | None:
    key = keys.marker(request.id)
    found = await store.get(key)
    return None if found is None else read(found, key)


class Standing(msgspec.Struct, frozen=True):
    """Somebody's claim stands where ours was to go."""

    claim: Claim


async def take(
    store: Store, effects: Effects, request: Request, target: Target, source: Source, over: Claim | None
) -> Claim | Standing:
    """Claim the key for one attempt: the first of all, or (`over`) the next after a claim that is dead or ours.

    Raises `Unavailable` where nobody knows whether the claim is in the store: nothing else of the attempt is applied.
    """
    now = formats.iso(effects.clock.now_ms())
    marker = Marker(
        version=VERSION,
        status=IN_PROGRESS,
        idempotency_key=request.id,
        operation=request.operation,
        resource=request.resource,
        principal=request.principal,
        request_hash=request.hash,
        attempt=over.marker.attempt + 1 if over else 1,
        target=target,
        source=source,
        started_at=now,
        committed_at=None,
        failed_at=None,
        error_http_status=None,
        error_payload=None,
        stamp=effects.ids.stamp(),
    )
    match await _put(store, marker, over.version if over else None):
        case Applied(version):
            return Claim(marker, version)
        case Overtaken(found) if found is not None:
            return Standing(read(found, keys.marker(request.id)))
        case Overtaken() | Undecided():
            raise Unavailable("the claim on the Idempotency-Key could not be confirmed; nothing was applied")


async def _put(store: Store, marker: Marker, version: str | None) -> Put:
    key, body = keys.marker(marker.idempotency_key), formats.encode(marker)
    return await (store.put_new(key, body) if version is None else store.put_if(key, body, version))


async def fail(store: Store, effects: Effects, claim: Claim, error: FrazilError) -> Claim | Standing:
    """Store a failure on exactly the claim it was judged under; only then may it be told (H3)."""
    now = formats.iso(effects.clock.now_ms())
    marker = msgspec.structs.replace(
        claim.marker,
        status=FAILED,
        failed_at=now,
        error_http_status=error.status,
        error_payload={"type": error.type, "message": error.message},
        stamp=effects.ids.stamp(),
    )
    match await _put(store, marker, claim.version):
        case Applied(version):
            return Claim(marker, version)
        case Overtaken(found) if found is not None:
            return Standing(read(found, keys.marker(marker.idempotency_key)))
        case Overtaken() | Undecided():
            raise Unavailable("the outcome could not be stored; nothing was applied")


async def succeed(store: Store, effects: Effects, claim: Claim) -> None:
    """Finalise lazily: whoever finds the claim instead finds the commit by its receipt."""
    now = formats.iso(effects.clock.now_ms())
    marker = msgspec.structs.replace(claim.marker, status=COMMITTED, committed_at=now, stamp=effects.ids.stamp())
    await _put(store, marker, claim.version)


async def release(store: Store, effects: Effects, claim: Claim) -> None:
    """Give up an attempt that is known not to be applied."""
    await _put(store, msgspec.structs.replace(claim.marker, status=RELEASED, stamp=effects.ids.stamp()), claim.version)
