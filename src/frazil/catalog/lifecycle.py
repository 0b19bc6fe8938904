"""How a table goes and moves: drop, rename, and the steps that a drop leaves owed (§2).

drop: registry CAS (gone for every reader, tombstone owed) → pointer to tombstone (fences commits) → answer
rename: registry CAS alone
"""

from __future__ import annotations

from frazil.catalog import pointers
from frazil.catalog.context import Context
from frazil.catalog.entries import Entry, Owed, table_key
from frazil.catalog.idempotency import Request
from frazil.catalog.pointers import Read
from frazil.catalog.registry import Decision, Draft, Operation, Settled, namespace_entry
from frazil.errors import (
    AlreadyExists,
    CommitStateUnknown,
    FrazilError,
    NoSuchNamespace,
    NoSuchTable,
    Unavailable,
)
from frazil.names import TableName
from frazil.store.base import Applied, Overtaken, Undecided

_TRIES = 12


async def drop(context: Context, request: Request, name: TableName, *, purge: bool) -> str | None:
    """Gone for every reader with the registry's CAS; answered once no commit can land any more.

    Returns where an Iceberg table's last metadata is: known only now, and what brings it back.
    """
    read = await _pointer_before(context, name)

    async def decide(draft: Draft) -> Decision:
        standing = await _existing(draft, name)
        owed = Owed(request.id, standing.uuid, purge)
        return Decision(result={"uuid": standing.uuid}, removed={table_key(name): standing.uuid}, owed=[owed])

    settled = await context.registry.change(Operation(request, decide))
    uuid = settled.outcome.result["uuid"]
    if settled.replayed:
        await complete_before_replay(context, settled)
    else:
        owed = Owed(request.id, uuid, purge)
        await _finish(context, owed, read if read is not None and read.pointer.table_uuid == uuid else None)
    last = context.pointers.last_seen(uuid)
    if last is None or last.live:
        last = await context.pointers.read(uuid)
    return last.location if last is not None else None


async def _pointer_before(context: Context, name: TableName) -> Read | None:
    """The pointer as it was before the drop: who registers the table anew after it moves the pointer on."""
    view = context.registry.last_seen or await context.registry.view()
    entry = await view.entry(table_key(name))
    if entry is None:
        return None
    return context.pointers.last_seen(entry.uuid) or await context.pointers.read(entry.uuid)


async def complete_before_replay(context: Context, settled: Settled) -> None:
    """A replay first completes what its operation still owes, then answers (H5)."""
    view = await context.registry.view()
    for owed in view.head.owed:
        if owed.uuid == settled.outcome.result.get("uuid"):
            await _finish(context, owed, None)


async def _finish(context: Context, owed: Owed, read: Read | None) -> None:
    try:
        await complete(context, owed, read)
    except Unavailable as error:
        # The name is gone already: what is not known is only whether a commit in flight may still land.
        raise CommitStateUnknown(f"the table is dropped, its last step is not confirmed: {error}") from error


async def complete(context: Context, owed: Owed, read: Read | None = None) -> None:
    """Bury a dropped table's pointer, unless somebody did, or the table has been registered anew since.

    Pointer, then head, then CAS: a registration in between either moved the pointer or struck the step off before.
    A pointer that was read before the drop's own CAS needs no look at the head: nobody can have registered on it.
    """
    for _ in range(_TRIES):
        if read is None:
            read = await context.pointers.read(owed.uuid)
            if read is not None and read.live and not await still_owed(context, owed):
                return
        if read is None or not read.live:
            break
        match await context.pointers.move(read, pointers.tombstone(read.pointer, context.effects, purge=owed.purge)):
            case Applied():
                break
            case Overtaken():
                read = None
            case Undecided(reason):
                raise Unavailable(f"the tombstone of {owed.uuid} could not be confirmed: {reason}")
    else:
        raise Unavailable(f"the pointer of {owed.uuid} is contended")
    context.registry.paid(owed)


async def still_owed(context: Context, owed: Owed) -> bool:
    """Asked after the pointer was read: a registration strikes the step off before it revives the pointer."""
    return owed in (await context.registry.view()).head.owed


async def sweep(context: Context) -> int:
    """Complete what crashed operations owe. How many steps there were that this process did not know to be done."""
    view = await context.registry.view()
    owed = [step for step in view.head.owed if not context.registry.is_paid(step)]
    failures: list[FrazilError] = []
    for step in owed:
        try:
            await complete(context, step)
        except FrazilError as error:
            failures.append(error)  # one that cannot be completed does not hold up the others
    if failures:
        raise failures[0]
    return len(owed)


async def rename(context: Context, request: Request, source: TableName, target: TableName) -> None:
    async def decide(draft: Draft) -> Decision:
        entry = await _existing(draft, source)
        if await namespace_entry(draft, target.namespace) is None:
            raise NoSuchNamespace(f"Namespace does not exist: {'.'.join(target.namespace)}")
        if await draft.entry(table_key(target)) is not None:
            raise AlreadyExists(f"Table already exists: {target}")
        return Decision(
            result={"uuid": entry.uuid}, removed={table_key(source): entry.uuid}, put={table_key(target): entry}
        )

    await context.registry.change(Operation(request, decide))


async def _existing(draft: Draft, name: TableName) -> Entry:
    entry = await draft.entry(table_key(name))
    if entry is None:
        raise NoSuchTable(f"Table does not exist: {name}")
    return entry
