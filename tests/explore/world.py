"""Catalogs for the explorer: a beginning built by the real core, and processes over it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import msgspec

from frazil.catalog.catalog import Catalog, Mutation
from frazil.catalog.creations import Definition
from frazil.catalog.entries import Change, named_by, namespace_key
from frazil.catalog.opening import open_context
from frazil.catalog.pointers import Pointer
from frazil.catalog.registry import Head
from frazil.effects import Effects
from frazil.grants import Grant
from frazil.names import TableName
from frazil.store import keys
from frazil.store.guard import Guard
from tests.explore.engine import NOW_MS, Actor, Alone, SteppedBackend, run_alone

ROOT = "mem:///lake"
GRANT = Grant()
NS = ("ns",)
T = TableName(NS, "t")

Call = Callable[[Catalog], Coroutine[Any, Any, Any]]
Store = dict[str, tuple[int, bytes]]


def key(number: int) -> str:
    """An idempotency key, the same every time."""
    ms = f"{NOW_MS:012x}"
    return f"{ms[:8]}-{ms[8:]}-7000-8000-{number:012x}"


def keyless(request: str, actor: str | None = None) -> str:
    """The id that a process draws first, for a request without a key."""
    tail = f"{actor or request}.{request}.1".encode().hex()[-15:].rjust(15, "0")
    ms = f"{NOW_MS:012x}"
    return f"{ms[:8]}-{ms[8:]}-7{tail[:3]}-8{tail[3:6]}-{tail[6:].rjust(12, '0')}"


def by(number: int | None = None, body: bytes = b"{}") -> Mutation:
    return Mutation(body, key(number) if number is not None else None)


SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}


def definition() -> Definition:
    return Definition(SCHEMA, None, None, None, {})


def create(name: TableName = T, key_: int | None = None) -> Call:
    return lambda catalog: catalog.create_table(GRANT, name, definition(), by(key_))


def put(property_: str, *, key_: int | None = None, expect: str | None = None, name: TableName = T) -> Call:
    """A commit that sets a property; with `expect`, only on a table whose uuid is that."""
    requirements = [{"type": "assert-table-uuid", "uuid": expect}] if expect else []
    updates = [{"action": "set-properties", "updates": {property_: "x"}}]
    body = msgspec.json.encode({"requirements": requirements, "updates": updates})
    return lambda catalog: catalog.commit_table(GRANT, name, requirements, updates, by(key_, body))


def append(id_: int, *, key_: int | None = None, first: bool = False, name: TableName = T) -> Call:
    """An append to main; with `first`, only to a table that has no snapshot."""
    requirements = [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}] if first else []
    added = {
        "snapshot-id": id_,
        "sequence-number": 1,
        "timestamp-ms": NOW_MS,
        "manifest-list": f"{ROOT}/tables/x/metadata/snap-{id_}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    updates: list[dict[str, Any]] = [
        {"action": "add-snapshot", "snapshot": added},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": id_},
    ]
    body = msgspec.json.encode({"requirements": requirements, "updates": updates})
    return lambda catalog: catalog.commit_table(GRANT, name, requirements, updates, by(key_, body))


def stage_and_commit(key_: int | None = None, name: TableName = T) -> Call:
    """The commit of a staged create, as Java sends it."""
    uuid = "019b76da-0000-7000-8000-00000000abcd"
    requirements = [{"type": "assert-create"}]
    updates: list[dict[str, Any]] = [
        {"action": "assign-uuid", "uuid": uuid},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": SCHEMA, "last-column-id": 1},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": f"{ROOT}/tables/{uuid}"},
    ]
    body = msgspec.json.encode({"requirements": requirements, "updates": updates})
    return lambda catalog: catalog.commit_table(GRANT, name, requirements, updates, by(key_, body))


def drop(name: TableName = T, key_: int | None = None) -> Call:
    return lambda catalog: catalog.drop_table(GRANT, name, False, by(key_))


def rename(source: TableName, target: TableName, key_: int | None = None) -> Call:
    return lambda catalog: catalog.rename_table(GRANT, source, target, by(key_))


def load(name: TableName = T) -> Call:
    return lambda catalog: catalog.load_table(GRANT, name)


async def _opened(effects: Effects, backend: SteppedBackend) -> Catalog:
    guard = Guard(backend, effects.clock, effects.chance)
    return Catalog(await open_context(guard, effects, name="lake", root=ROOT))


def process(
    name: str,
    requests: Mapping[str, Call],
    *,
    seen: Mapping[str, tuple[int, bytes]],
    warm: Call | None = None,
    after: tuple[str, ...] = (),
    skew_ms: int = 0,
    crashes: bool = True,
) -> Actor:
    """A server process that opened the catalog, and filled its caches, when the store was `seen`."""

    def start(effects: Effects, backend: SteppedBackend) -> Mapping[str, Callable[[], Coroutine[Any, Any, Any]]]:
        opened: list[Catalog] = []

        async def warm_up() -> None:
            opened.append(await _opened(effects, backend))
            if warm is not None:
                await warm(opened[0])

        def request(call: Call) -> Callable[[], Coroutine[Any, Any, Any]]:
            async def run() -> Any:
                return answered(await call(opened[0]))

            return run

        return {"warm": warm_up, **{request_name: request(call) for request_name, call in requests.items()}}

    return Actor(name, start, seen, after, skew_ms, crashes)


def answered(value: Any) -> Any:
    """What a caller sees of an answer, small enough to compare."""
    return getattr(value, "location", value)


def alone(
    store: Store,
    call: Call,
    *,
    name: str = "builder",
    warm: Call | None = None,
    seen: Store | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> Alone:
    """Run one request by itself on a healthy store."""
    return run_alone(
        process(name, {name: call}, seen=dict(store) if seen is None else seen, warm=warm), store, meanwhile
    )


def built(*calls: Call) -> Store:
    """A store after these requests, each by a process of its own."""
    store: Store = {}
    alone_opening = Actor("opener", lambda effects, backend: {"open": lambda: _open_only(effects, backend)})
    run_alone(alone_opening, store)
    for number, call in enumerate(calls):
        done = alone(store, call, name=f"b{number}")
        assert not isinstance(done.answers[f"b{number}"], tuple), done.answers
    return store


async def _open_only(effects: Effects, backend: SteppedBackend) -> None:
    await _opened(effects, backend)


async def namespace(catalog: Catalog) -> Any:
    return await catalog.create_namespace(GRANT, NS, {}, by())


def bodies(store: Store) -> dict[str, bytes]:
    return {key_: body for key_, (_, body) in store.items()}


# -- what a finished store says ---------------------------------------------------------------------------------------


class Told:
    """A store read without the code under test's memory: who is named, what each table's history is."""

    def __init__(self, store: Mapping[str, bytes]) -> None:
        self.store = store
        head = msgspec.json.decode(store[keys.HEAD], type=Head)
        assert head.checkpoint is None, "small enough to lie in the head"
        self.owed = head.owed
        self.names: dict[str, str] = {}
        self.namespaces: set[str] = set()
        self.named_ever: set[str] = set()
        for raw in head.changes:
            change = msgspec.json.decode(raw, type=Change)
            for gone in change.removed:
                self.names.pop(gone, None)
                self.namespaces.discard(gone)
            for at, entry in change.put.items():
                if entry.kind == "namespace":
                    self.namespaces.add(at)
                else:
                    self.names[at] = entry.uuid
                    self.named_ever.add(entry.uuid)

    def namespace_of(self, name_key: str) -> str:
        return namespace_key(named_by(name_key).namespace)

    def pointer(self, uuid: str) -> Pointer | None:
        body = self.store.get(keys.pointer(uuid))
        return None if body is None else msgspec.json.decode(body, type=Pointer)

    def lineage(self, uuid: str) -> list[str]:
        """Every metadata location that was ever current, newest first: by the metadata logs, not by receipts."""
        pointer = self.pointer(uuid)
        assert pointer is not None, uuid
        body = self.store[pointer.current_metadata_location.removeprefix(ROOT + "/")]
        log = msgspec.json.decode(body, type=_Log).log
        return [pointer.current_metadata_location, *(entry.file for entry in reversed(log))]

    def times(self, uuid: str, idempotency_key: str) -> int:
        """How often the commit of this key is in a table's history."""
        hash_ = keys.key_hash(idempotency_key)
        return sum(hash_ in location for location in self.lineage(uuid))

    def receipts_missing(self, uuid: str) -> list[str]:
        """Commits that the pointer left behind without a receipt."""
        there = {
            msgspec.json.decode(body, type=_Located).metadata_location
            for at, body in self.store.items()
            if "/iceberg/committed/" in at
        }
        return [location for location in self.lineage(uuid)[1:] if location not in there]


class _LogEntry(msgspec.Struct):
    file: str = msgspec.field(name="metadata-file")


class _Log(msgspec.Struct):
    log: list[_LogEntry] = msgspec.field(name="metadata-log", default_factory=list)


class _Located(msgspec.Struct):
    metadata_location: str
