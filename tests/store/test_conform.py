"""The admission suite must be able to say no."""

import asyncio
import json

import pytest

from frazil.store import conform
from frazil.store.base import Applied, Found, Listed, StoreUnavailable, Unchanged
from frazil.store.memory import MemoryBackend


class LetsTwoCreate(MemoryBackend):
    """Checks and then writes, as a server without a lock does: only races tell."""

    async def create(self, key, body):
        there = key in self._objects
        await asyncio.sleep(0)
        if there:
            return await super().create(key, body)
        self._objects.pop(key, None)
        self._keys = [k for k in self._keys if k != key]
        return await super().create(key, body)


class LetsTwoSwap(MemoryBackend):
    async def swap(self, key, body, version):
        found = self._objects.get(key)
        await asyncio.sleep(0)
        if found is not None and found.version == version:
            return self._write(key, body)
        return await super().swap(key, body, version)


class IgnoresVersions(MemoryBackend):
    async def swap(self, key, body, version):
        found = self._objects.get(key)
        return await super().swap(key, body, found.version if found else version)


class MakesWhatIsSwapped(MemoryBackend):
    async def swap(self, key, body, version):
        return await (super().swap(key, body, version) if key in self._objects else super().create(key, body))


class RecyclesVersions(MemoryBackend):
    """Counts per object, from one."""

    def _write(self, key, body):
        before = self._objects.get(key)
        version = str(int(before.version) + 1 if before else 1)
        self._objects[key] = Found(body, version)
        return Applied(version)


class ReadsStale(MemoryBackend):
    _before: Found | None = None

    async def get(self, key):
        now = await super().get(key)
        stale, self._before = self._before, now
        return stale if stale is not None and now is not None else now


class ListsLate(MemoryBackend):
    async def list(self, prefix, after="", limit=1000):
        return (await super().list(prefix, after, limit))[:-1]


class ListsUnordered(MemoryBackend):
    async def list(self, prefix, after="", limit=1000):
        return list(reversed(await super().list(prefix, after, limit)))


class ListsOtherVersions(MemoryBackend):
    async def list(self, prefix, after="", limit=1000):
        return [Listed(item.key, "W/" + item.version) for item in await super().list(prefix, after, limit)]


class AlwaysUnchanged(MemoryBackend):
    async def get_if_changed(self, key, version):
        return Unchanged()


class Tears(MemoryBackend):
    """A read of something large may end in what comes next."""

    async def get(self, key):
        first = await super().get(key)
        if first is None or len(first.body) < 100_000:
            return first
        await asyncio.sleep(0)
        second = await super().get(key)
        return Found(first.body[:4096] + second.body[4096:], first.version) if second else None


class FoldsCase(MemoryBackend):
    async def create(self, key, body):
        return await super().create(key.lower(), body)

    async def swap(self, key, body, version):
        return await super().swap(key.lower(), body, version)


class KeepsDeleted(MemoryBackend):
    async def delete(self, key):
        pass


BROKEN = {
    LetsTwoCreate: "create, many at once",
    LetsTwoSwap: "swap, many at once",
    IgnoresVersions: "swap over a stale version",
    MakesWhatIsSwapped: "swap of a missing object",
    RecyclesVersions: "delete and make again",
    ReadsStale: "read after write",
    ListsLate: "list",
    ListsUnordered: "list",
    ListsOtherVersions: "list",
    AlwaysUnchanged: "read if changed",
    Tears: "large bodies stay whole",
    FoldsCase: "the catalog's names",
    KeepsDeleted: "delete and make again",
}


@pytest.mark.seed(42)
@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
async def test_a_broken_backend_is_not_admitted(kind):
    backend = kind()
    report = await asyncio.wait_for(conform.check(lambda: backend, rounds=8, writers=4), 30)
    assert not report.admitted
    failed = {check.name.rsplit(" (", 1)[0] for check in report.checks if not check.passed}
    assert BROKEN[kind] in failed
    assert "NOT admitted" in report.text()


async def test_a_store_that_does_not_answer_is_not_admitted():
    class Silent(MemoryBackend):
        async def get(self, key):
            raise StoreUnavailable("503 Slow Down")

    backend = Silent()
    report = await conform.check(lambda: backend, rounds=2, writers=2)
    assert not report.admitted
    assert "503 Slow Down" in report.text()


async def test_the_report_is_data_and_text():
    backend = MemoryBackend()
    report = await conform.check(lambda: backend, rounds=2, writers=2)
    data = json.loads(json.dumps(report.data()))
    assert data["admitted"] is True
    assert {"name": "list (files)", "passed": True}.items() <= data["checks"][19].items()
    assert data["notes"] == [
        "equal bodies (documents) have versions of their own",
        "equal bodies (files) have versions of their own",
    ]
    assert report.text().endswith("26 of 26 checks passed: admitted")
