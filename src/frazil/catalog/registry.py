"""Tier 1: identity. One small head, one CAS a change, checkpoints of ordered ranges behind it (§2).

Changes asked for at the same time in one process share a CAS. Each has an operation id that is kept with its outcome,
so whoever comes second with the same id finds the first one's answer; there is no marker and no takeover.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from frazil import limits
from frazil.catalog import formats
from frazil.catalog.entries import TABLE, Change, Entry, Failure, Outcome, Owed, StoredFailure, namespace_key, table_key
from frazil.catalog.idempotency import Request, check_same, retention_ms
from frazil.catalog.ranges import VERSION as RANGES_VERSION
from frazil.catalog.ranges import Index, Ranges, without_older
from frazil.effects import Effects, Promise
from frazil.errors import (
    BadInput,
    CommitStateUnknown,
    Conflict,
    Corrupt,
    FrazilError,
    NotFound,
    Unavailable,
    Unprocessable,
)
from frazil.names import Namespace, TableName
from frazil.store import keys
from frazil.store.base import Applied, Found, Overtaken, Put, Store, Unchanged, Undecided

VERSION = 1


class Head(msgspec.Struct, frozen=True):
    """The one object that every change replaces. `changes` are those since the checkpoint, encoded as they were."""

    version: int
    seq: int
    #: Moves when unfinished creations may be given up: a create that began before refuses (H10).
    epoch: int
    #: The store key of the checkpoint's index.
    checkpoint: str | None
    owed: list[Owed]
    changes: list[msgspec.Raw]
    stamp: str


class View:
    """The registry as of one head: the checkpoint, and the changes since laid over it."""

    __slots__ = ("head", "index", "listed", "names", "operations", "ranges", "uuids", "version")

    def __init__(self, head: Head, version: str, index: Index, ranges: Ranges) -> None:
        self.head = head
        self.version = version
        self.index = index
        self.names: dict[str, Entry | None] = {}
        self.uuids: dict[str, str | None] = {}
        self.operations: dict[str, Outcome] = {}
        #: Pages of listings made of this very view, whoever makes them.
        self.listed: dict[Any, Any] = {}
        self.ranges = ranges

    def replay(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self.operations[change.id] = change.outcome
            for key, uuid in change.removed.items():
                self.names[key] = None
                self.uuids[uuid] = None
            for key, entry in change.put.items():
                self.names[key] = entry
                self.uuids[entry.uuid] = key

    def after(self, head: Head, version: str, changes: Sequence[Change]) -> View:
        """This view moved on by `changes`, on the same checkpoint."""
        view = View(head, version, self.index, self.ranges)
        view.names, view.uuids, view.operations = self.names, self.uuids, self.operations
        view.replay(changes)
        return view

    async def entry(self, key: str) -> Entry | None:
        if key in self.names:
            return self.names[key]
        raw = await self.ranges.get(self.index.names, key)
        return None if raw is None else msgspec.json.decode(raw, type=Entry)

    async def named(self, uuid: str) -> str | None:
        """The name key that a uuid has."""
        if uuid in self.uuids:
            return self.uuids[uuid]
        raw = await self.ranges.get(self.index.uuids, uuid)
        return None if raw is None else msgspec.json.decode(raw, type=str)

    async def outcome(self, id_: str) -> Outcome | None:
        if id_ in self.operations:
            return self.operations[id_]
        raw = await self.ranges.get(self.index.operations, id_)
        return None if raw is None else msgspec.json.decode(raw, type=Outcome)

    async def page(self, prefix: str, after: str, most: int) -> list[tuple[str, Entry]]:
        """Entries under a prefix behind a key, in order, at most `most`."""
        changed = {key for key in self.names if key.startswith(prefix) and key > after}
        stored = await self.ranges.scan(self.index.names, prefix, after, most + len(changed))
        merged = {key: msgspec.json.decode(raw, type=Entry) for key, raw in stored if key not in changed}
        # Beyond the last stored entry that was read, laid-over names may have stored ones before them.
        horizon = stored[-1][0] if len(stored) == most + len(changed) else None
        for key in changed:
            if (entry := self.names[key]) is not None and (horizon is None or key <= horizon):
                merged[key] = entry
        return sorted(merged.items(), key=lambda item: item[0])[:most]


class Draft:
    """A view with the changes of a batch on top, before the CAS that makes them true."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.changes: list[Change] = []
        self.owed: list[Owed] = []
        self.epoch = view.head.epoch
        self._over = View(view.head, view.version, view.index, view.ranges)

    async def entry(self, key: str) -> Entry | None:
        return self._over.names[key] if key in self._over.names else await self.view.entry(key)

    async def named(self, uuid: str) -> str | None:
        return self._over.uuids[uuid] if uuid in self._over.uuids else await self.view.named(uuid)

    async def outcome(self, id_: str) -> Outcome | None:
        return self._over.operations.get(id_) or await self.view.outcome(id_)

    async def has_children(self, prefix: str) -> bool:
        if any(entry is not None for key, entry in self._over.names.items() if key.startswith(prefix)):
            return True
        gone = sum(1 for key, entry in self._over.names.items() if entry is None and key.startswith(prefix))
        rest = await self.view.page(prefix, "", gone + 1)
        return any(key not in self._over.names for key, _ in rest)

    def add(self, change: Change, decision: Decision) -> None:
        self.changes.append(change)
        self._over.replay([change])
        self.owed.extend(decision.owed)
        if decision.advance_epoch:
            self.epoch += 1


class Decision(msgspec.Struct, frozen=True):
    """What an operation does to the registry, judged on one head."""

    result: dict[str, Any] = {}
    removed: dict[str, str] = {}
    put: dict[str, Entry] = {}
    owed: list[Owed] = []
    advance_epoch: bool = False


class Operation(msgspec.Struct, frozen=True):
    """A change somebody wants: bound to its request, judged anew on every head it is tried on."""

    request: Request
    decide: Callable[[Draft], Awaitable[Decision]]


class Settled(msgspec.Struct, frozen=True):
    """An operation's outcome, and whether this very call brought it about."""

    outcome: Outcome
    replayed: bool


_Verdict = Settled | FrazilError


class Registry:
    def __init__(self, store: Store, effects: Effects) -> None:
        self._store = store
        self._effects = effects
        self._ranges = Ranges(store, effects)
        self._view: View | None = None
        self._waiting: list[tuple[Operation, Promise[_Verdict]]] = []
        self._leading = False
        self._paid: set[str] = set()

    # -- reading --------------------------------------------------------------------------------------------------

    @property
    def last_seen(self) -> View | None:
        """Possibly old: good for a first guess that something else confirms."""
        return self._view

    async def view(self) -> View:
        """The registry as it is now: one conditional read of the head."""
        known = self._view
        if known is None:
            found = await self._store.get(keys.HEAD)
        else:
            changed = await self._store.get_if_changed(keys.HEAD, known.version)
            if isinstance(changed, Unchanged):
                return known
            found = changed
        if found is None:
            raise Corrupt(f"{keys.HEAD} is not there: this root holds no catalog, or lost it")
        return await self._install(found)

    async def _install(self, found: Found) -> View:
        head = formats.decode(found.body, Head, VERSION, keys.HEAD)
        # As it is now, not as at the call: another read may have brought a newer head meanwhile.
        if (known := self._newer(head)) is not None:
            return known
        known = self._view
        if known is not None and known.head.checkpoint == head.checkpoint:
            self._view = known.after(head, found.version, _changes(head, len(known.head.changes)))
            return self._view
        index = await self._ranges.index(head.checkpoint)
        if (known := self._newer(head)) is not None:
            return known
        self._view = View(head, found.version, index, self._ranges)
        self._view.replay(_changes(head, 0))
        return self._view

    def _newer(self, head: Head) -> View | None:
        known = self._view
        return known if known is not None and known.head.seq >= head.seq else None

    # -- changing -------------------------------------------------------------------------------------------------

    async def change(self, operation: Operation) -> Settled:
        """Bring the operation about, or find that it was. Raises what it was refused with."""
        promise: Promise[_Verdict] = self._effects.tasks.promise()
        self._waiting.append((operation, promise))
        if not self._leading:
            self._leading = True
            await self._lead()
        verdict = await promise.wait()
        if isinstance(verdict, FrazilError):
            raise verdict
        return verdict

    def paid(self, owed: Owed) -> None:
        """An owed step is known to be done: it is struck off in the next change, never by a CAS of its own."""
        self._paid.add(owed.id)

    def is_paid(self, owed: Owed) -> bool:
        return owed.id in self._paid

    async def _lead(self) -> None:
        """Bring about what is waiting, as one batch; whoever comes meanwhile waits for the next."""
        batch, self._waiting = self._waiting[: limits.batch_max], self._waiting[limits.batch_max :]
        try:
            verdicts = await self._settle([operation for operation, _ in batch])
        except FrazilError as error:
            verdicts = [error] * len(batch)
        except BaseException as error:
            for _, promise in batch:
                promise.fail(error)
            raise
        finally:
            if self._waiting:
                self._effects.tasks.later(self._lead())
            else:
                self._leading = False
        for (_, promise), verdict in zip(batch, verdicts, strict=True):
            promise.give(verdict)

    async def _settle(self, batch: Sequence[Operation]) -> list[_Verdict]:
        sent = False
        try:
            current = self._view is None
            view = self._view or await self.view()
            for lost in range(limits.registry_rounds_max):
                draft = Draft(view)
                verdicts = [await self._judge(draft, operation) for operation in batch]
                if not draft.changes:
                    # Nothing to CAS, so nothing yet says that the view was not old.
                    if current or (newer := await self.view()) is view:
                        return verdicts
                    view, current = newer, True
                    continue
                put = await self._swap(draft)
                sent = True
                match put:
                    case Applied():
                        return verdicts
                    case Overtaken(found) if found is not None:
                        view, current = await self._install(found), True
                        if lost > 1:
                            # A crowd. What was read back is old after the pause, so the head is read anew.
                            await self._effects.clock.sleep(self._effects.chance.jitter_ms(5 << min(lost, 5)))
                            view = await self.view()
                    case Overtaken() | Undecided():
                        raise CommitStateUnknown("the registry's head was sent and its outcome is not known")
        except Unavailable as error:
            if sent:
                raise CommitStateUnknown(f"whether the change landed could not be read back: {error}") from error
            raise
        return [await self._last_word(view, operation) for operation in batch]

    async def _last_word(self, view: View, operation: Operation) -> _Verdict:
        """After the last round: was it brought about after all? Else it is known not to be, and may be repeated."""
        outcome = await view.outcome(operation.request.id)
        if outcome is not None:
            return Settled(outcome, replayed=True)
        return Unavailable("the registry is busy; nothing was applied")

    async def _judge(self, draft: Draft, operation: Operation) -> _Verdict:
        request = operation.request
        try:
            if (known := await found_before(draft, request)) is not None:
                if known.failure is not None:
                    return StoredFailure(known.failure)
                return Settled(known, replayed=True)
            decision = await operation.decide(draft)
            return Settled(self._enter(draft, request, decision), replayed=False)
        except (BadInput, NotFound, Conflict, Unprocessable) as error:
            if request.keyed and await draft.outcome(request.id) is None:
                self._enter(draft, request, Decision(), Failure(error.status, error.type, error.message))
            return error
        except FrazilError as error:
            return error

    def _enter(self, draft: Draft, request: Request, decision: Decision, failure: Failure | None = None) -> Outcome:
        outcome = Outcome(
            operation=request.operation,
            resource=request.resource,
            request=request.hash,
            principal=request.principal,
            at=self._effects.clock.now_ms(),
            result=decision.result,
            failure=failure,
        )
        seq = draft.view.head.seq + len(draft.changes) + 1
        draft.add(Change(seq, request.id, outcome, decision.removed, decision.put), decision)
        return outcome

    async def _swap(self, draft: Draft) -> Put:
        view, old = draft.view, draft.view.head
        encoded = [msgspec.Raw(formats.encode(change)) for change in draft.changes]
        full = (
            len(old.changes) + len(encoded) > limits.head_changes_max
            or sum(map(len, old.changes)) + sum(map(len, encoded)) > limits.head_bytes_max
        )
        index = await self._checkpoint(view) if full and old.changes else view.index
        folded = index is not view.index
        checkpoint = await self._ranges.write_index(index) if folded else old.checkpoint
        paid = frozenset(self._paid)
        head = Head(
            version=VERSION,
            seq=old.seq + len(draft.changes),
            epoch=draft.epoch,
            checkpoint=checkpoint,
            owed=[owed for owed in old.owed if owed.id not in paid] + draft.owed,
            changes=encoded if folded else old.changes + encoded,
            stamp=self._effects.ids.stamp(),
        )
        put = await self._store.put_if(keys.HEAD, formats.encode(head), view.version)
        if isinstance(put, Applied):
            self._paid -= paid
            if self._newer(head) is None:
                base = View(head, put.version, index, self._ranges) if folded else view
                self._view = base.after(head, put.version, draft.changes)
        return put

    async def _checkpoint(self, view: View) -> Index:
        """Fold the head's changes into ranges; operations past their retention age out."""
        # Another server's clock may be behind: it would still run a key that is forgotten here.
        oldest = _oldest_id(self._effects.clock.now_ms() - retention_ms() - 2 * limits.key_ahead_ms)
        names, uuids, operations = await self._effects.tasks.together(
            self._ranges.rewrite(view.index.names, _encoded(view.names), view.head.seq, "n"),
            self._ranges.rewrite(view.index.uuids, _encoded(view.uuids), view.head.seq, "u"),
            self._ranges.rewrite(
                without_older(view.index.operations, oldest), _encoded(view.operations), view.head.seq, "o"
            ),
        )
        return Index(RANGES_VERSION, view.head.seq, names, uuids, operations)


def _changes(head: Head, start: int) -> list[Change]:
    return [msgspec.json.decode(raw, type=Change) for raw in head.changes[start:]]


async def found_before(draft: Draft, request: Request) -> Outcome | None:
    """H2: a change repeated after an unclear CAS looks for its own id first, and so does every second asker."""
    outcome = await draft.outcome(request.id)
    if outcome is not None:
        check_same(request, outcome.operation, outcome.resource, outcome.request, outcome.principal)
    return outcome


def _encoded(values: Mapping[str, Any]) -> dict[str, msgspec.Raw | None]:
    return {key: None if value is None else msgspec.Raw(msgspec.json.encode(value)) for key, value in values.items()}


def _oldest_id(at_ms: int) -> str:
    text = f"{max(at_ms, 0):012x}"
    return f"{text[:8]}-{text[8:]}"


def empty_head(stamp: str) -> bytes:
    return formats.encode(Head(VERSION, 0, 0, None, [], [], stamp))


# -- look-ups that read like the domain ------------------------------------------------------------------------------


async def namespace_entry(view: View | Draft, namespace: Namespace) -> Entry | None:
    return await view.entry(namespace_key(namespace))


async def table_entry(view: View | Draft, name: TableName) -> Entry | None:
    entry = await view.entry(table_key(name))
    return entry if entry is not None and entry.kind == TABLE else None
