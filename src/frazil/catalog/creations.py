"""How a table comes to be: create, staged create, register. The registry's CAS makes it exist (§2).

    metadata ‖ pointer (create-if-absent) → registry CAS

A pointer that the registry does not name proves nothing: it may be what a dead creation left behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from frazil.catalog import formats, guardrails, lifecycle, pointers, receipts
from frazil.catalog.commits import Committed
from frazil.catalog.context import Context
from frazil.catalog.entries import ICEBERG, TABLE, Entry, named_by, table_key
from frazil.catalog.files import file_name
from frazil.catalog.idempotency import Request
from frazil.catalog.pointers import Read
from frazil.catalog.receipts import AdminApi, Before, Receipt, Source
from frazil.catalog.registry import Decision, Draft, Operation, View, namespace_entry
from frazil.errors import (
    AlreadyExists,
    BadInput,
    Conflict,
    FrazilError,
    NoSuchNamespace,
    NotFound,
    ReplayFailed,
    Unavailable,
)
from frazil.iceberg import updates
from frazil.iceberg.metadata import TableMetadata
from frazil.names import Location, TableName
from frazil.store import keys
from frazil.store.base import Applied, Overtaken, Undecided

_TRIES = 6


class Wanted(msgspec.Struct, frozen=True):
    """A table somebody wants to exist."""

    request: Request
    name: TableName
    source: Source
    #: A staged create's commit is refused as a commit is; any other creation as "already exists".
    staged: bool = False


class Definition(msgspec.Struct, frozen=True):
    """What a create says of the table."""

    schema: Mapping[str, Any]
    partition_spec: Mapping[str, Any] | None
    write_order: Mapping[str, Any] | None
    location: str | None
    properties: Mapping[str, str]


def plan(context: Context, definition: Definition) -> TableMetadata:
    """The first metadata of a table, with its identity and place; nothing is stored."""
    uuid = context.effects.ids.uuid7()
    guardrails.check_properties(definition.properties)
    location = (definition.location or context.default_location(uuid)).rstrip("/")
    guardrails.check_location(context, location, uuid)
    made = updates.create(
        schema=dict(definition.schema),
        partition_spec=dict(definition.partition_spec) if definition.partition_spec else None,
        write_order=dict(definition.write_order) if definition.write_order else None,
        location=location,
        properties=definition.properties,
        uuid=uuid,
        now_ms=context.effects.clock.now_ms(),
        format_version=None,
    )
    return _accepted(context, made)


def _accepted(context: Context, made: TableMetadata | updates.Rejected) -> TableMetadata:
    if isinstance(made, updates.Rejected):
        raise made.error
    guardrails.check_locations(context, made)
    return made


async def stage(context: Context, name: TableName, definition: Definition) -> TableMetadata:
    """The metadata of a table that a later commit may bring about; nothing is stored."""
    metadata = plan(context, definition)
    view = await context.registry.view()
    request = Request("", False, "", "", "", None)
    if (reason := await _reason_against(view, Wanted(request, name, AdminApi("frazil")), metadata)) is not None:
        raise reason
    return metadata


async def create(context: Context, wanted: Wanted, definition: Definition) -> Committed:
    try:
        metadata = plan(context, definition)
    except FrazilError as error:
        return await _as_before(context, wanted, error)
    return await _bring_about(context, wanted, metadata)


async def commit_staged(
    context: Context, wanted: Wanted, requirements: Sequence[dict[str, Any]], changes: Sequence[dict[str, Any]]
) -> Committed:
    """A commit with `assert-create` is a registry operation: its key lives there, and there is no marker (H13)."""
    changes = _with_identity(context, changes)
    now_ms = context.effects.clock.now_ms()
    try:
        metadata = _accepted(context, updates.apply(None, requirements, changes, now_ms=now_ms, previous_location=None))
        guardrails.check_uuid(metadata.uuid)
        guardrails.check_location(context, metadata.location, metadata.uuid)
    except FrazilError as error:
        reason = error
        if await (await context.registry.view()).entry(table_key(wanted.name)) is not None:
            reason = Conflict(f"Requirement failed: table already exists: {wanted.name}")
        return await _as_before(context, wanted, reason)
    return await _bring_about(context, wanted, metadata)


async def _as_before(context: Context, wanted: Wanted, error: FrazilError) -> Committed:
    """Refused by what may have changed since a first try under this key: if that is in, its answer stands."""
    if not wanted.request.keyed:
        raise error

    async def decide(draft: Draft) -> Decision:
        raise error

    settled = await context.registry.change(Operation(wanted.request, decide))
    return await _replayed(context, settled.outcome.result)


def _with_identity(context: Context, changes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a client left out of a staged create's commit: the identity, and the place that follows from it."""
    changes = list(changes)
    uuid = next((change.get("uuid") for change in changes if change.get("action") == "assign-uuid"), None)
    if uuid is None:
        uuid = context.effects.ids.uuid7()
        changes.insert(0, {"action": "assign-uuid", "uuid": uuid})
    if not any(change.get("action") == "set-location" for change in changes):
        changes.append({"action": "set-location", "location": context.default_location(str(uuid))})
    return changes


async def register(context: Context, wanted: Wanted, metadata_location: str) -> Committed:
    """Name an existing metadata file: its uuid and the file itself stay as they are."""
    try:
        metadata = await _registrable(context, metadata_location)
    except FrazilError as error:
        return await _as_before(context, wanted, error)
    return await _bring_about(context, wanted, metadata, registered=metadata_location)


async def _registrable(context: Context, metadata_location: str) -> TableMetadata:
    if not context.files.allowed(Location(metadata_location)):
        raise BadInput(
            f"the metadata location {metadata_location} lies neither under the catalog's root {context.root} "
            "nor under an allowed location"
        )
    try:
        metadata = await context.files.read(metadata_location)
    except NotFound as error:
        raise BadInput(error.message) from None
    guardrails.check_uuid(metadata.uuid)
    guardrails.check_not_reserved(metadata.properties)
    guardrails.check_location(context, metadata.location, metadata.uuid, "the table's location")
    guardrails.check_locations(context, metadata)
    return metadata


async def _bring_about(
    context: Context, wanted: Wanted, metadata: TableMetadata, registered: str | None = None
) -> Committed:
    registry = context.registry
    if await _looks_settled(registry.last_seen, wanted, metadata) and await _looks_settled(
        await registry.view(), wanted, metadata
    ):
        # Refused, or done before under this key: either way nothing need be written to say so.
        placed: _Placed | FrazilError | None = None
    else:
        placed = await _place(context, wanted, metadata, registered)
    settled = await registry.change(Operation(wanted.request, _Naming(wanted, metadata, placed).decide))
    if settled.replayed or not isinstance(placed, _Placed):
        return await _replayed(context, settled.outcome.result)
    receipt = placed.receipt
    context.effects.tasks.later(context.settlements.record(receipt, formats.encode(receipt)))
    return Committed(receipt.metadata_location, metadata)


async def _replayed(context: Context, result: Mapping[str, Any]) -> Committed:
    location = result["metadata_location"]
    try:
        return Committed(location, await context.files.read(location))
    except (NotFound, BadInput) as error:
        raise ReplayFailed(f"the table was made, but its first metadata cannot be read: {error.message}") from None


async def _looks_settled(view: View | None, wanted: Wanted, metadata: TableMetadata) -> bool:
    if view is None:
        return False
    known = await view.outcome(wanted.request.id) is not None
    return known or await _reason_against(view, wanted, metadata) is not None


async def _reason_against(view: View | Draft, wanted: Wanted, metadata: TableMetadata) -> FrazilError | None:
    """Why the name cannot be given, on one state of the registry."""
    name = wanted.name
    if await namespace_entry(view, name.namespace) is None:
        return NoSuchNamespace(f"Namespace does not exist: {'.'.join(name.namespace)}")
    if await view.entry(table_key(name)) is not None:
        if wanted.staged:
            return Conflict(f"Requirement failed: table already exists: {name}")
        return AlreadyExists(f"Table already exists: {name}")
    if (key := await view.named(metadata.uuid)) is not None:
        return AlreadyExists(f"The table {metadata.uuid} is registered already, as {named_by(key)}")
    return None


# -- the pointer, before the name --------------------------------------------------------------------------------


class _Placed(msgspec.Struct, frozen=True):
    """A pointer of ours waits to be named. `epoch` is the registry's as this creation began (H10)."""

    receipt: Receipt
    epoch: int


async def _place(
    context: Context, wanted: Wanted, metadata: TableMetadata, registered: str | None
) -> _Placed | FrazilError:
    """Our pointer under the table's uuid; or why there can be none, judged after the request's own key."""
    view = context.registry.last_seen or await context.registry.view()
    location = registered or _first_location(context, wanted, metadata)
    receipt = _receipt(context, wanted, metadata, location, 0, None, registered)
    make = context.pointers.make(pointers.first(receipt, metadata, context.effects), receipt)
    if registered:
        put = await make
    else:
        _, put = await context.effects.tasks.together(context.files.write(location, metadata), make)
    match put:
        case Applied():
            return _Placed(receipt, view.head.epoch)
        case Overtaken(found) if found is not None:
            standing = context.pointers.note(found, metadata.uuid)
            return await _displace(context, wanted, metadata, location, standing, registered)
        case Overtaken() | Undecided():
            raise Unavailable("the table's pointer could not be confirmed; nothing was applied")


async def _displace(
    context: Context, wanted: Wanted, metadata: TableMetadata, location: str, standing: Read, registered: str | None
) -> _Placed | FrazilError:
    """Put our pointer over one that stands under the same uuid: a dropped table's, or what a dead creation left."""
    cleared: str | None = None
    for _ in range(_TRIES):
        view = await context.registry.view()
        if (reason := await _reason_against(view, wanted, metadata)) is not None:
            return reason
        owed = [step for step in view.head.owed if step.uuid == metadata.uuid]
        if owed or (standing.live and cleared != standing.version):
            # Whoever is about to name this pointer, or to bury it, finds the epoch moved or the step struck off.
            for step in owed:
                await lifecycle.complete(context, step)
            now = await context.pointers.read(metadata.uuid)
            await _advance_epoch(context)
            if now is None:
                raise Unavailable("the table's pointer is gone; nothing was applied")
            standing, cleared = now, now.version
            continue
        if not standing.live and registered is None:
            return Conflict(f"The uuid {metadata.uuid} belongs to a dropped table: register that, or take another")
        if not standing.live:
            await context.settlements.settle(standing.producer, bytes(standing.pointer.producer))
        receipt = _over(context, wanted, metadata, location, standing, registered)
        pointer = pointers.commit(standing.pointer, receipt, metadata, context.effects)
        match await context.pointers.move(standing, pointer, receipt):
            case Applied():
                return _Placed(receipt, view.head.epoch)
            case Overtaken(found) if found is not None:
                standing = context.pointers.note(found, metadata.uuid)
            case Overtaken() | Undecided():
                raise Unavailable("the table's pointer could not be confirmed; nothing was applied")
    raise Unavailable(f"the pointer of {metadata.uuid} is contended; nothing was applied")


def _over(
    context: Context, wanted: Wanted, metadata: TableMetadata, location: str, standing: Read, registered: str | None
) -> Receipt:
    """History goes on after a dropped table's last commit; what a dead creation left was never part of it."""
    number, before = standing.pointer.commit_number, standing.producer.before
    if not standing.live:
        number, before = number + 1, standing.producer.as_before
    return _receipt(context, wanted, metadata, location, number, before, registered)


def _receipt(
    context: Context,
    wanted: Wanted,
    metadata: TableMetadata,
    location: str,
    number: int,
    before: Before | None,
    registered: str | None,
) -> Receipt:
    return receipts.of_commit(
        metadata,
        base=None,
        location=location,
        number=number,
        event_id=context.effects.ids.ulid(),
        previous=before,
        source=wanted.source,
        now_ms=context.effects.clock.now_ms(),
        commit_key=keys.registered_commit_key(location, number) if registered else keys.commit_key(location),
    )


def _first_location(context: Context, wanted: Wanted, metadata: TableMetadata) -> str:
    name = file_name(0, wanted.request.key_hash, context.effects.ids.stamp(), metadata.compressed)
    return f"{metadata.location.rstrip('/')}/metadata/{name}"


async def _advance_epoch(context: Context) -> None:
    async def decide(draft: Draft) -> Decision:
        return Decision(advance_epoch=True)

    request = Request(context.effects.ids.uuid7(), False, "registry.epoch", "", "", None)
    await context.registry.change(Operation(request, decide))


# -- the name, which makes it exist ----------------------------------------------------------------------------------


class _Naming(msgspec.Struct, frozen=True):
    wanted: Wanted
    metadata: TableMetadata
    placed: _Placed | FrazilError | None

    async def decide(self, draft: Draft) -> Decision:
        if (reason := await _reason_against(draft, self.wanted, self.metadata)) is not None:
            raise reason
        if isinstance(self.placed, FrazilError):
            raise self.placed
        if self.placed is None or draft.epoch != self.placed.epoch:
            raise Unavailable("the registry moved on while the table was being made; nothing was applied")
        if any(step.uuid == self.metadata.uuid for step in draft.view.head.owed):
            raise Unavailable("the table of this uuid is still being dropped; nothing was applied")
        entry = Entry(TABLE, self.metadata.uuid, ICEBERG, self.metadata.location)
        result = {"uuid": self.metadata.uuid, "metadata_location": self.placed.receipt.metadata_location}
        return Decision(result=result, put={table_key(self.wanted.name): entry})
