"""A lake in memory with any number of server processes on it, and the requests that tests send them, one line each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import msgspec

from frazil import limits
from frazil.catalog.catalog import Catalog, Mutation
from frazil.catalog.creations import Definition
from frazil.catalog.files import Place
from frazil.catalog.opening import open_context
from frazil.catalog.pointers import Pointer
from frazil.catalog.registry import Head
from frazil.effects import Chance, Effects, EventLoopTasks, RandomIds, SystemChance
from frazil.errors import FrazilError
from frazil.grants import Grant
from frazil.names import Location, TableName
from frazil.store import keys
from frazil.store.base import Found, Listed, RawPut, StoreUnavailable, Unchanged, Unclear
from frazil.store.guard import Guard
from frazil.store.memory import MemoryBackend

ROOT = "mem:///lake"
GRANT = Grant()
NS = ("ns",)
T = TableName(NS, "t")
U = TableName(NS, "u")
NOW_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z

SCHEMA: dict[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
}


# -- the world ---------------------------------------------------------------------------------------------------------


class Clock:
    """Time that passes only while somebody sleeps. `skew_ms` is how wrong this process's wall clock is."""

    def __init__(self, time: list[int] | None = None, skew_ms: int = 0) -> None:
        self._time = time if time is not None else [NOW_MS]
        self._skew_ms = skew_ms
        #: Called at every sleep: what happens elsewhere meanwhile.
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    def skewed(self, by_ms: int) -> Clock:
        return Clock(self._time, by_ms)

    def pass_by(self, ms: int) -> None:
        self._time[0] += ms

    def now_ms(self) -> int:
        return self._time[0] + self._skew_ms

    def mark(self) -> int:
        return self._time[0]

    async def passed(self, mark: int, wait_ms: int) -> bool:
        return self._time[0] - mark >= wait_ms

    async def sleep(self, wait_ms: int) -> None:
        self.pass_by(wait_ms)
        if self.meanwhile is not None:
            await self.meanwhile()
        await asyncio.sleep(0)


class Gate:
    """One call to the store that stands still until it is let through."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._open = asyncio.Event()

    async def wait(self) -> None:
        self.reached.set()
        await self._open.wait()

    def open(self) -> None:
        self._open.set()


class Network:
    """The memory backend at a distance: every call lets others run, is noted, and may be slow or go wrong."""

    def __init__(self) -> None:
        self.memory = MemoryBackend()
        self.calls: list[tuple[str, str]] = []
        self._gates: list[tuple[str, str, Gate]] = []
        self._made: list[Gate] = []
        self._lost_answers: list[tuple[str, str]] = []
        self._silent: set[str] = set()
        self._refused: set[str] = set()

    def hold(self, verb: str, part: str) -> Gate:
        """The next call of this verb on a key with this part waits at the gate."""
        gate = Gate()
        self._gates.append((verb, part, gate))
        self._made.append(gate)
        return gate

    def lose_answer(self, verb: str, part: str) -> None:
        """The next such write takes effect, and its answer is lost."""
        self._lost_answers.append((verb, part))

    def silence(self, part: str) -> None:
        """Nothing on such keys is answered or takes effect until `heal`."""
        self._silent.add(part)

    def refuse_writes(self, part: str) -> None:
        """Writes on such keys are answered 5xx and take no effect until `heal`; reads work."""
        self._refused.add(part)

    def heal(self) -> None:
        """Everything is answered again, and nothing is held."""
        self._gates.clear()
        for gate in self._made:
            gate.open()
        self._silent.clear()
        self._refused.clear()
        self._lost_answers.clear()

    def count(self, verb: str, part: str = "") -> int:
        return sum(1 for called, key in self.calls if called == verb and part in key)

    async def _asked(self, verb: str, key: str) -> None:
        self.calls.append((verb, key))
        await asyncio.sleep(0)
        for at, (held, part, gate) in enumerate(self._gates):
            if held == verb and part in key:
                del self._gates[at]
                await gate.wait()
                break

    async def _read(self, verb: str, key: str) -> None:
        await self._asked(verb, key)
        if any(part in key for part in self._silent):
            raise StoreUnavailable("503 Slow Down")

    async def _put(self, verb: str, key: str, write: Callable[[], Awaitable[RawPut]]) -> RawPut:
        await self._asked(verb, key)
        if any(part in key for part in self._silent | self._refused):
            return Unclear("503 Slow Down")
        answer = await write()
        for at, (lost, part) in enumerate(self._lost_answers):
            if lost == verb and part in key:
                del self._lost_answers[at]
                return Unclear("the connection was closed")
        return answer

    async def get(self, key: str) -> Found | None:
        await self._read("get", key)
        return await self.memory.get(key)

    async def get_if_changed(self, key: str, version: str) -> Found | Unchanged | None:
        await self._read("get_if_changed", key)
        return await self.memory.get_if_changed(key, version)

    async def create(self, key: str, body: bytes) -> RawPut:
        return await self._put("create", key, lambda: self.memory.create(key, body))

    async def swap(self, key: str, body: bytes, version: str) -> RawPut:
        return await self._put("swap", key, lambda: self.memory.swap(key, body, version))

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> Sequence[Listed]:
        await self._read("list", prefix)
        return await self.memory.list(prefix, after, limit)

    async def delete(self, key: str) -> None:
        await self._read("delete", key)
        await self.memory.delete(key)

    async def close(self) -> None: ...


class Lake:
    """One object store, one time, and the processes that serve it."""

    def __init__(self) -> None:
        self.store = Network()
        self.clock = Clock()
        self.ids = RandomIds(self.clock)
        self.chance: Chance = SystemChance()
        #: How long a server asks the store before it says that it does not know.
        self.patience_ms = limits.store_deadline_ms
        #: What failed after an answer.
        self.failed: list[BaseException] = []
        self._tasks: list[EventLoopTasks] = []

    async def opened(
        self, *, clock: Clock | None = None, allowed: Sequence[Place] = (), root: str = ROOT, name: str = "lake"
    ) -> Catalog:
        """A new server process, its memory empty."""
        clock = clock or self.clock
        tasks = EventLoopTasks(self.failed.append)
        self._tasks.append(tasks)
        effects = Effects(clock, RandomIds(clock), self.chance, tasks)
        guard = Guard(self.store, clock, effects.chance, self.patience_ms)
        return Catalog(await open_context(guard, effects, name=name, root=root, allowed=allowed))

    def place(self, root: str) -> Place:
        """An allowed location beside the catalog's root, in a store of its own."""
        return Place(Location(root), Guard(MemoryBackend(), self.clock, SystemChance()))

    async def settled(self) -> None:
        """Everything that was put off is done."""
        for tasks in self._tasks:
            await tasks.drain()

    def key(self) -> str:
        return self.ids.uuid7()

    # -- what is in the store ------------------------------------------------------------------------------------------

    async def names(self, prefix: str) -> list[str]:
        return [listed.key for listed in await self.store.memory.list(prefix, "", 100_000)]

    async def body(self, key: str) -> bytes:
        found = await self.store.memory.get(key)
        assert found is not None, key
        return found.body

    async def document(self, key: str) -> Any:
        return msgspec.json.decode(await self.body(key))

    async def put(self, key: str, document: object) -> None:
        body = document if isinstance(document, bytes) else msgspec.json.encode(document)
        await self.store.memory.create(key, body)

    async def head(self) -> Head:
        return msgspec.json.decode(await self.body(keys.HEAD), type=Head)

    async def pointer(self, uuid: str) -> Pointer:
        return msgspec.json.decode(await self.body(keys.pointer(uuid)), type=Pointer)

    async def receipts(self, kind: str = "committed") -> list[Any]:
        """In the order of their commit numbers."""
        found = [await self.document(key) for key in await self.names("_catalog/events/") if f"/{kind}/" in key]
        return sorted(found, key=lambda receipt: receipt.get("commit_number", 0))


# -- requests ----------------------------------------------------------------------------------------------------------


def by(key: str | None = None, body: object = None) -> Mutation:
    return Mutation(b"" if body is None else msgspec.json.encode(body), key)


def definition(**given: Any) -> Definition:
    defaults: dict[str, Any] = {
        "schema": SCHEMA,
        "partition_spec": None,
        "write_order": None,
        "location": None,
        "properties": {},
    }
    return Definition(**(defaults | given))


async def a_namespace(catalog: Catalog, *levels: str, key: str | None = None, **properties: str) -> dict[str, str]:
    namespace = levels or NS
    return await catalog.create_namespace(GRANT, namespace, properties, by(key, [namespace, properties]))


async def a_table(catalog: Catalog, name: TableName = T, *, key: str | None = None, **given: Any) -> Any:
    return await catalog.create_table(GRANT, name, definition(**given), by(key, [name.name, given]))


async def commit(
    catalog: Catalog,
    *updates: dict[str, Any],
    name: TableName = T,
    requirements: Sequence[dict[str, Any]] = (),
    key: str | None = None,
    grant: Grant = GRANT,
) -> Any:
    body = {"requirements": list(requirements), "updates": list(updates)}
    return await catalog.commit_table(grant, name, list(requirements), list(updates), by(key, body))


def setting(**properties: str) -> dict[str, Any]:
    return {"action": "set-properties", "updates": {name.replace("__", "."): to for name, to in properties.items()}}


def properties(**named: str) -> dict[str, Any]:
    return {"action": "set-properties", "updates": named}


def an_append(id_: int, *, parent: int | None = None, sequence: int = 1, at_ms: int = NOW_MS) -> list[dict[str, Any]]:
    snapshot: dict[str, Any] = {
        "snapshot-id": id_,
        "sequence-number": sequence,
        "timestamp-ms": at_ms,
        "manifest-list": f"{ROOT}/data/snap-{id_}.avro",
        "summary": {"operation": "append", "added-records": "3"},
        "schema-id": 0,
    }
    if parent is not None:
        snapshot["parent-snapshot-id"] = parent
    return [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": id_},
    ]


EMPTY = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}
ASSERT_CREATE = {"type": "assert-create"}


def staged(uuid: str, location: str | None = None, **properties: str) -> list[dict[str, Any]]:
    """The updates of a staged create's commit, as Java sends them."""
    return [
        {"action": "assign-uuid", "uuid": uuid},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": SCHEMA, "last-column-id": 1},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": location or f"{ROOT}/tables/{uuid}"},
        {"action": "set-properties", "updates": properties},
    ]


async def register(catalog: Catalog, location: str, name: TableName = T, *, key: str | None = None) -> Any:
    body = {"name": name.name, "metadata-location": location}
    return await catalog.register_table(GRANT, name, location, False, by(key, body))


async def drop(catalog: Catalog, name: TableName = T, *, key: str | None = None, purge: bool = False) -> None:
    await catalog.drop_table(GRANT, name, purge, by(key))


async def rename(catalog: Catalog, source: TableName, target: TableName, *, key: str | None = None) -> None:
    await catalog.rename_table(GRANT, source, target, by(key, [str(source), str(target)]))


async def load(catalog: Catalog, name: TableName = T) -> Any:
    return await catalog.load_table(GRANT, name)


async def document_of(catalog: Catalog, name: TableName = T) -> dict[str, Any]:
    """The table's metadata as an engine reads it."""
    return json.loads((await load(catalog, name)).metadata.encode())


async def tables(catalog: Catalog, *levels: str) -> list[str]:
    return (await catalog.list_tables(GRANT, levels or NS, "", None)).names


async def namespaces(catalog: Catalog, *levels: str) -> list[str]:
    return (await catalog.list_namespaces(GRANT, levels, "", None)).names


async def told(request: Awaitable[Any]) -> Any:
    """An answer as its caller sees it: where the metadata is, the value, or the refusal's status, type and message."""
    try:
        answer = await request
    except FrazilError as error:
        return (error.status, error.type, error.message)
    return getattr(answer, "location", answer)


def status(answer: Any) -> int:
    return answer[0] if isinstance(answer, tuple) else 200


async def side_by_side(*requests: Coroutine[Any, Any, Any]) -> list[Any]:
    """What each was told."""
    return list(await asyncio.gather(*map(told, requests)))
