"""Reading: the registry's head and the table's pointer, revalidated side by side; the rest from memory (§5).

Warm, a load is two conditional reads in one round trip, and no body.
"""

from __future__ import annotations

import msgspec

from frazil import limits
from frazil.catalog import namespaces
from frazil.catalog.context import Context
from frazil.catalog.entries import ICEBERG, Entry, child_name, children, table_key
from frazil.catalog.pointers import Read
from frazil.catalog.registry import View
from frazil.errors import BadInput, NoSuchTable
from frazil.iceberg.metadata import TableMetadata
from frazil.names import Namespace, TableName


class Loaded(msgspec.Struct, frozen=True):
    entry: Entry
    location: str
    metadata: TableMetadata


class Page(msgspec.Struct, frozen=True):
    """Names in order; `more` continues behind the last one, whatever changes meanwhile."""

    names: list[str]
    more: str | None


async def load(context: Context, name: TableName) -> Loaded:
    entry, read = await _standing(context, name)
    if read is None or not read.live:
        # Named, and its pointer buried: a drop or a registration is on its way through.
        raise NoSuchTable(f"Table does not exist: {name}")
    return Loaded(entry, read.location, await context.files.current(read.location, name))


async def _standing(context: Context, name: TableName) -> tuple[Entry, Read | None]:
    remembered = context.registry.last_seen
    guess = await remembered.entry(table_key(name)) if remembered is not None else None
    if guess is None:
        entry = await _iceberg(await context.registry.view(), name)
        return entry, await context.pointers.read(entry.uuid)
    view, read = await context.effects.tasks.together(context.registry.view(), context.pointers.read(guess.uuid))
    entry = await _iceberg(view, name)
    return entry, read if entry.uuid == guess.uuid else await context.pointers.read(entry.uuid)


async def _iceberg(view: View, name: TableName) -> Entry:
    entry = await view.entry(table_key(name))
    if entry is None:
        raise NoSuchTable(f"Table does not exist: {name}")
    if entry.format != ICEBERG:
        raise BadInput(f"{name} is a table of format {entry.format}, not {ICEBERG}")
    return entry


async def entry(context: Context, name: TableName) -> Entry:
    """The registry's entry of a table, whatever its format."""
    found = await (await context.registry.view()).entry(table_key(name))
    if found is None:
        raise NoSuchTable(f"Table does not exist: {name}")
    return found


async def list_tables(context: Context, namespace: Namespace, after: str, most: int | None) -> Page:
    view = await context.registry.view()
    await namespaces.existing(view, namespace)
    return await _page(view, children(namespace, "t"), after, most)


async def list_namespaces(context: Context, parent: Namespace, after: str, most: int | None) -> Page:
    view = await context.registry.view()
    if parent:
        await namespaces.existing(view, parent)
    return await _page(view, children(parent, "n"), after, most)


#: Pages kept of one view of the registry; the next change makes a new view.
_LISTED_MAX = 64


async def _page(view: View, prefix: str, after: str, most: int | None) -> Page:
    """One page, or with `most` None everything in one answer; the same object while nothing changes."""
    known: Page | None = view.listed.get((prefix, after, most))
    if known is None:
        if len(view.listed) >= _LISTED_MAX:
            view.listed.clear()
        known = view.listed[prefix, after, most] = await _made(view, prefix, after, most)
    return known


async def _made(view: View, prefix: str, after: str, most: int | None) -> Page:
    names: list[str] = []
    start = prefix + after
    while True:
        size = limits.page_max if most is None else min(most, limits.page_max)
        found = await view.page(prefix, start, size + 1)
        names += [child_name(key) for key, _ in found[:size]]
        if len(found) <= size:
            return Page(names, None)
        if most is not None:
            return Page(names, names[-1])
        start = found[size - 1][0]
