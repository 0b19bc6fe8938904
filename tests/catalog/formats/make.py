"""Write the fixtures of the stored formats, by running the real catalog: `python -m tests.catalog.formats.make`.

Clock and ids count up, so the same code writes the same bytes. Made anew only for a new version, into a folder of its
own; the folders of earlier versions stay as they are, for they are what is in people's buckets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

from frazil import limits
from frazil.catalog import claims, commits
from frazil.catalog.catalog import Catalog, Mutation
from frazil.catalog.creations import Definition
from frazil.catalog.idempotency import bind
from frazil.catalog.opening import open_context
from frazil.catalog.receipts import IcebergRest, Servo
from frazil.effects import Effects, EventLoopTasks
from frazil.errors import Conflict, FrazilError
from frazil.grants import Grant
from frazil.names import TableName
from frazil.store import keys, slots
from frazil.store.base import RawPut
from frazil.store.guard import Guard
from frazil.store.memory import MemoryBackend

NEWEST = "v1"

NOW_MS = 1_767_225_600_000
GRANT = Grant(principal="ada", client="PyIceberg/0.12.0")
NS = ("sales",)
ORDERS = TableName(NS, "orders")
COPY = TableName(NS, "orders_copy")
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}


def key(number: int) -> str:
    """An idempotency key of the fixtures' own time."""
    ms = f"{NOW_MS:012x}"
    return f"{ms[:8]}-{ms[8:]}-7000-8000-{number:012x}"


class FixedClock:
    def now_ms(self) -> int:
        return NOW_MS

    def mark(self) -> int:
        return 0

    async def passed(self, mark: int, wait_ms: int) -> bool:
        return True

    async def sleep(self, wait_ms: int) -> None: ...


class _Ids:
    def __init__(self) -> None:
        self._count = 0

    def _next(self) -> int:
        self._count += 1
        return self._count

    def uuid7(self) -> str:
        ms = f"{NOW_MS:012x}"
        return f"{ms[:8]}-{ms[8:]}-7001-8000-{self._next():012x}"

    def uuid4(self) -> str:
        return f"00000000-0000-4000-8000-{self._next():012x}"

    def ulid(self) -> str:
        return f"01KDVDMM00{self._next():016d}"

    def stamp(self) -> str:
        return f"stamp-{self._next():04}"


class _NoChance:
    def jitter_ms(self, most_ms: int) -> int:
        return 0


class _Recorded(MemoryBackend):
    """Keeps every body that a key ever had."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: dict[str, list[bytes]] = {}

    async def create(self, key: str, body: bytes) -> RawPut:
        return self._kept(key, body, await super().create(key, body))

    async def swap(self, key: str, body: bytes, version: str) -> RawPut:
        return self._kept(key, body, await super().swap(key, body, version))

    def _kept(self, key: str, body: bytes, put: RawPut) -> RawPut:
        self.bodies.setdefault(key, []).append(body)
        return put


def _raise(error: BaseException) -> None:
    raise error


@patch.object(limits, "head_changes_max", 4)  # so that a checkpoint is written soon
async def lived() -> tuple[Mapping[str, list[bytes]], dict[str, str]]:
    """A short life of a catalog: every body of every key, and which keys are which."""
    backend = _Recorded()
    tasks = EventLoopTasks(_raise)
    effects = Effects(FixedClock(), _Ids(), _NoChance(), tasks)
    store = Guard(backend, effects.clock, effects.chance)
    context = await open_context(store, effects, name="lake", root="s3://bucket/lake")
    catalog = Catalog(context)

    await catalog.create_namespace(
        GRANT, NS, {"comment": "what customers bought"}, Mutation(b'{"namespace":1}', key(1))
    )
    made = await catalog.create_table(
        GRANT, ORDERS, Definition(SCHEMA, None, None, None, {}), Mutation(b'{"create":1}')
    )
    uuid = made.metadata.uuid
    await tasks.drain()

    async def commit(updates: list[dict[str, Any]], requirements: list[dict[str, Any]], by: Mutation) -> None:
        await catalog.commit_table(GRANT, ORDERS, requirements, updates, by)
        await tasks.drain()

    await commit(_append(101), [], Mutation(b'{"append":101}', key(2)))
    await commit(
        [{"action": "set-properties", "updates": {"owner": "ada"}}], [], Mutation(b'{"owner":"ada"}', admin=True)
    )
    await _refused(
        lambda: commit(
            _append(102), [{"type": "assert-table-uuid", "uuid": key(9)}], Mutation(b'{"append":102}', key(3))
        )
    )
    servo = Servo("01KDVDMM00RVN0000000000001", "01KDVDMM00TASK000000000001")
    request = bind(GRANT, "table.commit", str(ORDERS), b'{"append":103}', None, effects.ids.uuid7(), NOW_MS)
    await commits.commit(context, commits.Wanted(request, ORDERS, [], _append(103), servo))
    await tasks.drain()
    source = IcebergRest(GRANT.client, GRANT.principal)
    request = bind(GRANT, "table.commit", str(ORDERS), b'{"append":104}', key(4), "", NOW_MS)
    taken = await claims.take(store, effects, request, claims.Target(table_uuid=uuid), source, over=None)
    assert isinstance(taken, claims.Claim)
    await claims.release(store, effects, taken)

    await catalog.set_tags(GRANT, ORDERS, {"tier": "gold"}, Mutation(b'{"tier":"gold"}'))
    await _refused(lambda: catalog.create_namespace(GRANT, NS, {}, Mutation(b'{"namespace":1}', key(5))))
    await catalog.rename_table(GRANT, ORDERS, COPY, Mutation(b'{"rename":1}'))
    await catalog.drop_table(GRANT, COPY, True, Mutation(b'{"drop":1}', key(6)))
    await tasks.drain()
    return backend.bodies, {"uuid": uuid, "first": made.location}


async def _refused(act: Callable[[], Any]) -> None:
    try:
        await act()
    except (Conflict, FrazilError):
        return
    raise AssertionError("it was to be refused")


def _append(id_: int) -> list[dict[str, Any]]:
    added = {
        "snapshot-id": id_,
        "sequence-number": id_ - 100,
        "timestamp-ms": NOW_MS,
        "manifest-list": f"s3://bucket/lake/tables/x/metadata/snap-{id_}.avro",
        "summary": {"operation": "append", "added-records": "3"},
        "schema-id": 0,
    }
    return [
        {"action": "add-snapshot", "snapshot": added},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": id_},
    ]


async def fixtures() -> dict[str, bytes]:
    """File name → what it holds."""
    bodies, about = await lived()
    uuid = about["uuid"]
    pointer = bodies[keys.pointer(uuid)]
    parts = {
        at.rsplit("-", 3)[0][-1:] if "-index-" not in at else "index": at for at in bodies if "/core/snapshots/" in at
    }
    letters = {
        name: next(at for at in bodies if f"-{name}" in at.rpartition("/")[2]) for name in ("index", "n0", "u0", "o0")
    }
    assert parts
    committed = [bodies[at][0] for at in bodies if "/iceberg/committed/" in at]
    pending = [bodies[at][0] for at in bodies if "/iceberg/pending/" in at]
    by_source = {msgspec.json.decode(body)["source"]["type"]: body for body in committed}
    documents = {
        "catalog": bodies[keys.CATALOG][0],
        "head": bodies[keys.HEAD][-1],
        "checkpoint-index": bodies[letters["index"]][0],
        "checkpoint-names": bodies[letters["n0"]][0],
        "checkpoint-uuids": bodies[letters["u0"]][0],
        "checkpoint-operations": bodies[letters["o0"]][0],
        "pointer": pointer[1],
        "pointer-tombstone": pointer[-1],
        "marker-in-progress": bodies[keys.marker(key(2))][0],
        "marker-committed": bodies[keys.marker(key(2))][-1],
        "marker-failed": bodies[keys.marker(key(3))][-1],
        "marker-released": bodies[keys.marker(key(4))][-1],
        "receipt-pending": next(body for body in pending if b'"Servo"' in body),
        "receipt-rest": by_source["IcebergRest"],
        "receipt-servo": by_source["Servo"],
        "receipt-admin": by_source["AdminApi"],
    }
    made = {f"{name}.json": msgspec.json.format(body, indent=2) + b"\n" for name, body in documents.items()}
    return {**made, "two-slots.txt": two_slots()}


def two_slots() -> bytes:
    """A record's file after two writes: the second in the second slot."""
    first = slots.new(1, b'{"version":1,"stamp":"first"}')
    current = slots.Slot(0, slots.BLOCK, 1, 29, 0)
    write = slots.overwrite(current, len(first), 2, b'{"version":1,"stamp":"second"}')
    assert write is not None
    at, content = write
    return first[:at] + content


if __name__ == "__main__":
    folder = Path(__file__).parent / NEWEST
    folder.mkdir(exist_ok=True)
    for file, content in asyncio.run(fixtures()).items():
        (folder / file).write_bytes(content)
        print(folder.name, file)
