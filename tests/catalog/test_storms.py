"""Servers on a store that loses answers, refuses, and applies writes late; clients that repeat by key until they know.

In the end every key has one verdict: told success, it is in the history once; told a failure, it is not.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from frazil.names import TableName
from frazil.store import keys
from frazil.store.base import RawPut, StoreUnavailable, Unclear
from tests.catalog.builders import (
    NS,
    Lake,
    Network,
    a_namespace,
    a_table,
    commit,
    drop,
    properties,
    rename,
    status,
    tables,
    told,
)


class Stormy(Network):
    """Goes wrong at random. What is applied late is applied in its own time, or when the storm ends."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.rng = rng
        self.raging = False
        self._late: list[Any] = []

    async def _read(self, verb: str, key: str) -> None:
        await super()._read(verb, key)
        if self.raging and self.rng.random() < 0.03:
            raise StoreUnavailable("503 Slow Down")

    async def _put(self, verb: str, key: str, write: Any) -> RawPut:
        for _ in range(self.rng.randrange(3)):
            await asyncio.sleep(0)
        if self._late and self.rng.random() < 0.3:
            await self._late.pop(self.rng.randrange(len(self._late)))()
        fate = self.rng.random() if self.raging else 1.0
        if fate < 0.05:
            return Unclear("503, nothing applied")
        if fate < 0.10:
            await super()._put(verb, key, write)
            return Unclear("closed, although applied")
        if fate < 0.15:
            self._late.append(write)
            return Unclear("closed, applied later")
        return await super()._put(verb, key, write)

    async def calm(self) -> None:
        self.raging = False
        while self._late:
            await self._late.pop()()


class Seeded:
    """Jitter that a seed gives again."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def jitter_ms(self, most_ms: int) -> int:
        return self._rng.randint(0, most_ms)


class Client:
    """Asks one thing under one key, of any server, until it is told."""

    def __init__(self, lake: Lake, rng: random.Random, number: int) -> None:
        self.lake, self.rng, self.number = lake, rng, number
        #: What was asked under each key, and every verdict on it.
        self.asked: dict[str, tuple[str, Any]] = {}
        self.verdicts: dict[str, list[Any]] = {}
        self.told_nothing = 0

    def _request(self, server: Any, key: str) -> Any:
        kind, name = self.asked[key]
        match kind:
            case "commit":
                return commit(server, properties(**{f"p-{key}": "x"}), name=name, key=key)
            case "create":
                return a_table(server, name, key=key)
            case "drop":
                return drop(server, name, key=key)
            case _:
                return rename(server, name, TableName(NS, f"r{self.number}"), key=key)

    async def run(self, servers: list[Any], names: list[TableName]) -> None:
        for _ in range(6):
            kind = self.rng.choice(["commit", "commit", "commit", "create", "drop", "rename"])
            key = self.lake.key()
            self.asked[key] = (kind, self.rng.choice(names))
            self.verdicts[key] = []
            for _ in range(3):
                if status(await self.ask(self.rng.choice(servers), key)) < 500 and self.rng.random() < 0.7:
                    break

    async def ask(self, server: Any, key: str) -> Any:
        answer = await told(self._request(server, key))
        if status(answer) < 500:
            self.verdicts[key].append(answer)
        else:
            self.told_nothing += 1
        return answer


@pytest.mark.seed(1, 3, 145, 251, 254, 272, 277)
@pytest.mark.parametrize("seed", range(25))
async def test_through_any_storm_every_key_has_one_verdict_and_a_success_one_effect(seed):
    rng = random.Random(seed)
    lake = Lake()
    storm = lake.store = Stormy(rng)
    lake.chance = Seeded(rng)
    lake.patience_ms = rng.choice([1, 30, 15_000])
    servers = [await lake.opened() for _ in range(3)]
    await a_namespace(servers[0])
    names = [TableName(NS, f"t{n}") for n in range(3)]
    for name in names[:2]:
        await a_table(servers[0], name)
    storm.raging = True
    clients = [Client(lake, rng, number) for number in range(5)]
    await asyncio.gather(*(client.run(servers, names) for client in clients))
    await storm.calm()
    await lake.settled()
    fresh = await lake.opened()
    await fresh.sweep()
    for client in clients:
        for key in client.asked:
            for server in (fresh, servers[0]):
                assert status(await client.ask(server, key)) < 500
    await lake.settled()
    assert lake.failed == []
    await _check(lake, fresh, clients)


async def _check(lake: Lake, fresh: Any, clients: list[Client]) -> None:
    view = await fresh.context.registry.view()
    live = {entry.uuid for entry in view.names.values() if entry is not None and entry.kind == "table"}
    committed: list[str] = []
    stored = set(await lake.names("_catalog/iceberg_pointers/"))
    for uuid in view.uuids:
        if keys.pointer(uuid) not in stored:
            continue  # a namespace
        pointer = await lake.pointer(uuid)
        assert pointer.state == ("live" if uuid in live else "tombstone")
        history = await _history(lake, uuid)
        assert [receipt["commit_number"] for receipt in history] == list(range(pointer.commit_number + 1))
        locations = [receipt["metadata_location"] for receipt in history]
        assert [receipt["previous_metadata_location"] for receipt in history] == [None, *locations[:-1]]
        committed += locations
    for client in clients:
        for key, (kind, name) in client.asked.items():
            verdicts = client.verdicts[key]
            assert len(set(map(repr, verdicts))) == 1, (kind, name, verdicts)
            if kind in {"commit", "create"}:
                times = sum(keys.key_hash(key) in location for location in committed)
                assert times == (1 if status(verdicts[0]) == 200 else 0), (kind, name, verdicts, times)
    assert len(await tables(fresh)) == len(live)


async def _history(lake: Lake, uuid: str) -> list[Any]:
    """The receipts of a table's commits. That of the last one may be in its pointer alone: no commit followed it."""
    found = {receipt["commit_number"]: receipt for receipt in await lake.receipts() if receipt["table_uuid"] == uuid}
    producer = (await lake.document(keys.pointer(uuid)))["producer"]
    assert found.setdefault(producer["commit_number"], producer) == producer
    return [found[number] for number in sorted(found)]
