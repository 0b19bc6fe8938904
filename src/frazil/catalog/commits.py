"""One table, one atomic change (§3). The rules' numbers are those of docs/protocol/commits.md.

    claim ‖ metadata file ‖ registry head ‖ predecessor's receipt      round trip 1
    CAS of the pointer on exactly the version read                     round trip 2: committed, visible
    answer; then own receipt, then marker                              off the caller's path

Promises: a commit is applied at most once whatever is repeated; "failed" is told only when it is known and, for a key,
stored; what nobody knows is told as unknown. Never: a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from frazil import limits
from frazil.catalog import claims, formats, guardrails, pointers, receipts
from frazil.catalog.claims import Claim, Standing, Target
from frazil.catalog.context import Context
from frazil.catalog.entries import ICEBERG, Entry
from frazil.catalog.files import file_name
from frazil.catalog.idempotency import Request
from frazil.catalog.pointers import Read
from frazil.catalog.receipts import Pending, Receipt, Source
from frazil.catalog.registry import View, table_entry
from frazil.errors import (
    BadInput,
    CommitStateUnknown,
    FrazilError,
    NoSuchTable,
    NotFound,
    ReplayFailed,
    Unavailable,
)
from frazil.iceberg import updates
from frazil.iceberg.metadata import TableMetadata
from frazil.names import TableName
from frazil.store import keys
from frazil.store.base import Applied, Overtaken, Undecided


class Wanted(msgspec.Struct, frozen=True):
    """What a client asks of one table."""

    request: Request
    name: TableName
    requirements: Sequence[dict[str, Any]]
    updates: Sequence[dict[str, Any]]
    source: Source


class Committed(msgspec.Struct, frozen=True):
    location: str
    metadata: TableMetadata


class Base(msgspec.Struct, frozen=True):
    """What an attempt starts from. `current` when the pointer was read in this request, not remembered."""

    entry: Entry
    read: Read
    metadata: TableMetadata
    current: bool


class Attempt(msgspec.Struct, frozen=True):
    """One try: its file, its receipt, the pointer it would make. Its location is its identity."""

    metadata: TableMetadata
    receipt: Receipt
    target: Target

    @property
    def location(self) -> str:
        return self.receipt.metadata_location


async def commit(context: Context, wanted: Wanted) -> Committed:
    return await _Commit(context, wanted).run()


class _Commit:
    """A commit on its way. `claim` is the marker as we last saw it: ours, or one that is known dead."""

    def __init__(self, context: Context, wanted: Wanted) -> None:
        self.context = context
        self.effects = context.effects
        self.wanted = wanted
        self.claim: Claim | None = None
        self.resolved: str | None = None
        self.tries = 0
        self.refusals = 0

    async def run(self) -> Committed:
        step: Committed | Base | None = None
        refused: FrazilError | None = None
        while not isinstance(step, Committed):
            try:
                step, refused = await self._step(step, refused), None
            except Refused as refusal:
                refused = refusal.error
        return step

    async def _step(self, base: Base | None, refused: FrazilError | None) -> Committed | Base:
        if base is None and refused is None:
            return await self._remembered() or await self._current()
        if (self.tries if refused is None else self.refusals) == limits.tries_max:
            await self._give_up()
            raise Unavailable(f"{self.wanted.name} changes faster than this commit can follow; nothing was applied")
        if refused is not None:
            self.refusals += 1
            return await self._refuse(refused)
        assert base is not None
        self.tries += 1
        done = await self._in_turn(base)
        return await self._meet(done) if isinstance(done, Standing) else done

    async def _in_turn(self, base: Base) -> Committed | Base | Standing:
        """One commit at a time in this process; who waited starts from what the one before left."""
        turns, uuid = self.context.turns, base.entry.uuid
        try:
            await turns.take(uuid)
        except Unavailable:
            await self._give_up()
            raise
        try:
            seen = self.context.pointers.last_seen(uuid)
            if seen is not None and seen.version != base.read.version:
                newer = await self._remembered()
                base = newer if newer is not None and newer.entry.uuid == uuid else base
            return await self._try(base)
        finally:
            turns.give(uuid)

    async def _try(self, base: Base) -> Committed | Base | Standing:
        """One attempt on one base: done, or the base to try next, or another's claim that stands in the way."""
        changed = self._changed(base)
        if (isinstance(changed, FrazilError) or changed is base.metadata) and not base.current:
            base = await self._current()
            changed = self._changed(base)
        if isinstance(changed, FrazilError):
            raise Refused(changed)
        if changed is base.metadata:
            return await self._nothing_to_do(base)
        attempt = self._attempt(base, changed)
        standing = await self._prepare(base, attempt)
        if standing is not None:
            return standing
        if self.resolved != base.entry.uuid:
            return await self._current()
        return await self._move(base, attempt)

    def _changed(self, base: Base) -> TableMetadata | FrazilError:
        changed = updates.apply(
            base.metadata,
            self.wanted.requirements,
            self.wanted.updates,
            now_ms=self.effects.clock.now_ms(),
            previous_location=base.read.location,
        )
        if isinstance(changed, updates.Rejected):
            return changed.error
        try:
            guardrails.check_locations(self.context, changed)
        except BadInput as error:
            return error
        return changed

    async def _nothing_to_do(self, base: Base) -> Committed | Standing:
        """Nothing changes, so nothing is written: the claim names what stands, and a replay is this very answer."""
        standing = await self._claim(self._target(base, base.read.producer))
        return standing or Committed(base.read.location, base.metadata)

    # -- where to start -------------------------------------------------------------------------------------------

    async def _remembered(self) -> Base | None:
        """The warm start, all from memory: the CAS and the head's revalidation tell if it is old."""
        view = self.context.registry.last_seen
        if view is None:
            return None
        entry = await table_entry(view, self.wanted.name)
        if entry is None or entry.format != ICEBERG or (read := self.context.pointers.last_seen(entry.uuid)) is None:
            return None
        metadata = self.context.files.cached(read.location)
        return Base(entry, read, metadata, current=False) if metadata is not None and read.live else None

    async def _current(self) -> Base:
        """Name, pointer and metadata as they are now. A name or pointer that is gone is a refusal."""
        remembered = self.context.registry.last_seen
        guess = await table_entry(remembered, self.wanted.name) if remembered is not None else None
        view, read = await self.effects.tasks.together(
            self.context.registry.view(), self._pointer(guess.uuid if guess else None)
        )
        entry = await resolve(view, self.wanted.name)
        self.resolved = entry.uuid
        if guess is None or guess.uuid != entry.uuid:
            read = await self._pointer(entry.uuid)
        return await self._on(entry, read)

    async def _pointer(self, uuid: str | None) -> Read | None:
        return None if uuid is None else await self.context.pointers.read(uuid)

    async def _on(self, entry: Entry, read: Read | None) -> Base:
        if read is None or not read.live:
            raise Refused(NoSuchTable(f"Table does not exist: {self.wanted.name}"))
        metadata = await self.context.files.current(read.location, self.wanted.name)
        return Base(entry, read, metadata, current=True)

    # -- one attempt ----------------------------------------------------------------------------------------------

    def _attempt(self, base: Base, metadata: TableMetadata) -> Attempt:
        number = base.read.pointer.commit_number + 1
        name = file_name(number, self.wanted.request.key_hash, self.effects.ids.stamp(), metadata.compressed)
        location = f"{metadata.location.rstrip('/')}/metadata/{name}"
        receipt = receipts.of_commit(
            metadata,
            base=base.metadata,
            location=location,
            number=number,
            event_id=self.effects.ids.ulid(),
            previous=base.read.producer.as_before,
            source=self.wanted.source,
            now_ms=self.effects.clock.now_ms(),
            commit_key=keys.commit_key(location),
        )
        return Attempt(metadata, receipt, self._target(base, receipt))

    def _target(self, base: Base, receipt: Receipt) -> Target:
        return Target(
            table_uuid=base.entry.uuid,
            base_version=base.read.version,
            base_metadata_location=base.read.location,
            metadata_location=receipt.metadata_location,
            commit_key=receipt.commit_key,
            metadata_updated_ms=receipt.metadata_updated_ms,
            commit_number=receipt.commit_number,
            snapshot_id=receipt.snapshot_id,
            event_id=receipt.event_id,
        )

    async def _prepare(self, base: Base, attempt: Attempt) -> Standing | None:
        """Round trip 1. After it, without a word to the contrary, the pointer may be moved."""
        steps = [
            self._claim(attempt.target),
            self.context.files.write(attempt.location, attempt.metadata),
            self._settle(base),
        ]
        if self.resolved is None:
            steps.append(self._revalidate())
        if not self.wanted.request.keyed:
            steps.append(self._record_pending(base, attempt))
        try:
            standing, *_ = await self.effects.tasks.together(*steps)
        except FrazilError:
            await self._give_up()
            raise
        return standing  # type: ignore[no-any-return]

    async def _claim(self, target: Target) -> Standing | None:
        """A new base is a new claim (H12): the marker says beforehand which version the pointer's CAS will name."""
        if not self.wanted.request.keyed:
            return None
        taken = await claims.take(
            self.context.store, self.effects, self.wanted.request, target, self.wanted.source, over=self.claim
        )
        if isinstance(taken, Standing):
            return taken
        self.claim = taken
        return None

    async def _settle(self, base: Base) -> None:
        """Nobody replaces a pointer whose producer's receipt is not known to exist (H17)."""
        await self.context.settlements.settle(base.read.producer, bytes(base.read.pointer.producer))

    async def _revalidate(self) -> None:
        """The name, within the request (H5): the pointer's CAS tells nothing about a drop in progress or a rename."""
        entry = await still_named(self.context, self.wanted.name)
        self.resolved = entry.uuid if entry is not None else "nothing"

    async def _record_pending(self, base: Base, attempt: Attempt) -> None:
        pending = Pending(
            version=receipts.VERSION,
            table_uuid=base.entry.uuid,
            commit_key=attempt.receipt.commit_key,
            event_id=attempt.receipt.event_id,
            metadata_location=attempt.location,
            base_metadata_location=base.read.location,
            snapshot_id=attempt.receipt.snapshot_id,
            source=self.wanted.source,
            started_at=attempt.receipt.committed_at,
        )
        await receipts.record_pending(self.context.store, pending, attempt.receipt.metadata_updated_ms)

    async def _move(self, base: Base, attempt: Attempt) -> Committed | Base:
        """Round trip 2."""
        pointer = pointers.commit(base.read.pointer, attempt.receipt, attempt.metadata, self.effects)
        match await self.context.pointers.move(base.read, pointer, attempt.receipt):
            case Applied():
                return self._done(attempt, bytes(pointer.producer))
            case Overtaken(found) if found is not None:
                return await self._recover(base, attempt, self.context.pointers.note(found, base.entry.uuid))
            case Overtaken():
                raise CommitStateUnknown(f"the pointer of {self.wanted.name} is gone")
            case Undecided(reason):
                raise CommitStateUnknown(f"whether the commit to {self.wanted.name} landed is not known: {reason}")

    def _done(self, attempt: Attempt, receipt_body: bytes) -> Committed:
        self.effects.tasks.later(self._finish(attempt.receipt, receipt_body))
        return Committed(attempt.location, attempt.metadata)

    async def _finish(self, receipt: Receipt, body: bytes) -> None:
        await self.context.settlements.record(receipt, body)
        if self.claim is not None:
            await claims.succeed(self.context.store, self.effects, self.claim)

    async def _recover(self, base: Base, attempt: Attempt, now: Read) -> Committed | Base:
        """The pointer moved on, so ours can no longer land. Did it before? Two looks tell (§3.3). If not, rebase."""
        if now.location == attempt.location:
            return self._done(attempt, bytes(now.pointer.producer))
        try:
            there, next_base = await self.effects.tasks.together(
                receipts.find(self.context.store, attempt.receipt.metadata_updated_ms, attempt.receipt.commit_key),
                self._rebased(base, now),
            )
        except Unavailable as error:
            raise CommitStateUnknown(f"whether the commit to {self.wanted.name} landed is not known: {error}") from None
        if there is not None:
            return self._done(attempt, formats.encode(attempt.receipt))
        if isinstance(next_base, Exception):
            raise next_base
        return next_base  # type: ignore[no-any-return]

    async def _rebased(self, base: Base, now: Read) -> Base | Refused | FrazilError:
        """The next base, or why there is none: that counts only if this commit turns out not to have landed."""
        try:
            return await self._on(base.entry, now)
        except (Refused, FrazilError) as error:
            return error

    # -- saying no ------------------------------------------------------------------------------------------------

    async def _refuse(self, error: FrazilError) -> Committed | Base:
        """A deterministic failure, judged on a pointer read in this request: stored, and only then told (H3)."""
        if self.wanted.request.keyed and (standing := await self._store_failure(error)) is not None:
            return await self._meet(standing)
        raise error

    async def _store_failure(self, error: FrazilError) -> Standing | None:
        claim = self.claim
        if claim is None:
            taken = await claims.take(
                self.context.store, self.effects, self.wanted.request, Target(), self.wanted.source, over=None
            )
            if isinstance(taken, Standing):
                return taken
            claim = taken
        stored = await claims.fail(self.context.store, self.effects, claim, error)
        return stored if isinstance(stored, Standing) else None

    async def _give_up(self) -> None:
        """Known not applied: free the key at once. Best effort; a lease frees it otherwise."""
        if self.claim is not None and self.claim.marker.status == claims.IN_PROGRESS:
            await claims.release(self.context.store, self.effects, self.claim)

    # -- meeting another claim on the key -------------------------------------------------------------------------

    async def _meet(self, standing: Standing) -> Committed | Base:
        """Somebody claimed this key before, or took it over: their outcome is ours, unless they are dead (§3.6)."""
        clock = self.effects.clock
        claim, first_seen, since = standing.claim, clock.mark(), clock.mark()
        while True:
            claim.check_same(self.wanted.request)
            if claim.marker.status == claims.FAILED:
                raise claim.stored_failure()
            if claim.marker.status == claims.COMMITTED:
                return await self._replay(claim)
            # From here on known dead, or else this request ends: the next attempt's claim replaces exactly this one.
            self.claim = claim
            if claim.marker.status == claims.RELEASED:
                return await self._current()
            if (read := await self._happened(claim)) is not None:
                return await self._complete(claim, read)
            if await clock.passed(since, limits.lease_ms) and await self._take_over(claim):
                return await self._current()
            if await clock.passed(first_seen, limits.wait_ms):
                raise Unavailable("the first request with this Idempotency-Key is still running")
            await clock.sleep(limits.poll_ms)
            newer = await claims.look(self.context.store, self.wanted.request)
            if newer is None:
                raise Unavailable("the record of this Idempotency-Key is gone")
            if newer.version != claim.version:
                claim, since = newer, clock.mark()

    async def _happened(self, claim: Claim) -> Receipt | None:
        """Whether the claim's attempt is in: the pointer names it, or its receipt exists (§3.3)."""
        target = claim.marker.target
        if target.table_uuid is None or target.commit_key is None:
            return None
        read = await self.context.pointers.read(target.table_uuid)
        if read is not None and read.location == target.metadata_location:
            return read.producer
        return await receipts.find(self.context.store, target.metadata_updated_ms, target.commit_key)

    async def _complete(self, claim: Claim, receipt: Receipt) -> Committed:
        self.effects.tasks.later(self._finish(receipt, formats.encode(receipt)))
        return await self._replay(claim)

    async def _take_over(self, claim: Claim) -> bool:
        """Fence, then look again: after that the dead claim's CAS can no longer land (H3). False: look anew."""
        uuid = claim.marker.target.table_uuid
        if uuid is None:
            return True
        read = await self.context.pointers.read(uuid)
        if read is not None and not await fenced(self.context, read, claim.marker.target):
            return False
        return await self._happened(claim) is None

    async def _replay(self, claim: Claim) -> Committed:
        location = claim.marker.target.metadata_location
        assert location is not None, "a committed marker names its metadata"
        try:
            return Committed(location, await self.context.files.read(location))
        except (NotFound, BadInput) as error:
            raise ReplayFailed(f"the commit succeeded, but its metadata cannot be read: {error.message}") from None


async def fenced(context: Context, read: Read, target: Target) -> bool:
    """Whether a dead claim's CAS can no longer land: the pointer is past its base, if need be by a bump of ours."""
    if read.version != target.base_version:
        return True
    moved = await context.pointers.move(read, pointers.fence(read.pointer, context.effects))
    return isinstance(moved, Applied)


class Refused(Exception):
    """A base that cannot be had: the table is not there (any more), or is not Iceberg's."""

    def __init__(self, error: FrazilError) -> None:
        super().__init__(error.message)
        self.error = error


async def resolve(view: View, name: TableName) -> Entry:
    """The Iceberg table behind a name, on one view of the registry."""
    entry = await table_entry(view, name)
    if entry is None:
        raise Refused(NoSuchTable(f"Table does not exist: {name}"))
    if entry.format != ICEBERG:
        raise Refused(BadInput(f"{name} is a table of format {entry.format}, not {ICEBERG}"))
    return entry


async def still_named(context: Context, name: TableName) -> Entry | None:
    return await table_entry(await context.registry.view(), name)
