"""Operations on the registry of a catalog with very many tables: their cost must not grow with the number of tables."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

from bench import servers
from bench.workloads import Prepared, Site, Workload, pairs, renames
from frazil import effects
from frazil.catalog import formats, ranges, registry
from frazil.catalog.entries import ICEBERG, NAMESPACE, TABLE, Entry, namespace_key, table_key
from frazil.names import TableName
from frazil.store import keys
from frazil.store.base import Applied
from frazil.store.guard import Guard
from frazil.store.open import open_backend

#: The namespace that holds the tables of a catalog made by `fill`.
MANY = ("many",)
SMALL, LARGE = 1_000, 100_000
#: A cost at LARGE may be this many times the cost at SMALL.
FLAT = 1.3


def fill(root: Path, tables: int) -> None:
    """Make a catalog at `root` with this many tables in `MANY`: the registry knows them, nothing else exists of them.

    Its checkpoint is written directly; 100 000 creations through the server would measure patience.
    """
    with servers.frazil(root=root):
        pass  # the server makes the catalog, wherever under its root it keeps it
    (head,) = root.rglob(keys.HEAD)
    asyncio.run(_fill(Path(str(head).removesuffix(keys.HEAD)), tables))


async def _fill(catalog: Path, tables: int) -> None:
    system = effects.system(lambda error: print(f"bench: {error}", file=sys.stderr))
    store = Guard(open_backend(str(catalog), sync=False), system.clock, system.chance)
    view = await registry.Registry(store, system).view()
    entries = {namespace_key(MANY): Entry(NAMESPACE, system.ids.uuid4())}
    for number in range(tables):
        uuid = system.ids.uuid4()
        location = f"{catalog.as_uri()}/{keys.table(uuid)}"
        entries[table_key(TableName(MANY, f"table_{number:07}"))] = Entry(TABLE, uuid, ICEBERG, location)
    names = {key: msgspec.Raw(msgspec.json.encode(entry)) for key, entry in entries.items()}
    uuids = {entry.uuid: msgspec.Raw(msgspec.json.encode(key)) for key, entry in entries.items()}

    seq = view.head.seq + len(entries)
    writer = ranges.Ranges(store, system)
    index = ranges.Index(
        ranges.VERSION,
        seq,
        await writer.rewrite([], names, seq, "n"),
        await writer.rewrite([], uuids, seq, "u"),
        [],
    )
    head = msgspec.structs.replace(
        view.head,
        seq=seq,
        checkpoint=await writer.write_index(index),
        changes=[],
        stamp=system.ids.stamp(),
    )
    put = await store.put_if(keys.HEAD, formats.encode(head), view.version)
    assert isinstance(put, Applied), put
    await store.close()


def _pairs(site: Site) -> Prepared:
    return pairs(site, MANY[0])


def _renames(site: Site) -> Prepared:
    return renames(site, MANY[0])


WORKLOADS = (Workload("createdrop", _pairs), Workload("renames", _renames))
