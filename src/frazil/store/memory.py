"""A backend in memory: exact, instant, gone with the process. What tests and exploration run the real catalog on."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence

from frazil.store.base import Applied, Found, Listed, RawPut, Refused, Unchanged


class MemoryBackend:
    """Versions count up over the whole store, so none comes back, not even for a key deleted and made again."""

    def __init__(self) -> None:
        self._objects: dict[str, Found] = {}
        self._keys: list[str] = []  # sorted
        self._count = 0

    async def get(self, key: str) -> Found | None:
        return self._objects.get(key)

    async def get_if_changed(self, key: str, version: str) -> Found | Unchanged | None:
        found = self._objects.get(key)
        return Unchanged() if found is not None and found.version == version else found

    async def create(self, key: str, body: bytes) -> RawPut:
        if key in self._objects:
            return Refused()
        insort(self._keys, key)
        return self._write(key, body)

    async def swap(self, key: str, body: bytes, version: str) -> RawPut:
        found = self._objects.get(key)
        if found is None or found.version != version:
            return Refused()
        return self._write(key, body)

    def _write(self, key: str, body: bytes) -> Applied:
        self._count += 1
        version = str(self._count)
        self._objects[key] = Found(bytes(body), version)
        return Applied(version)

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> Sequence[Listed]:
        start = max(bisect_left(self._keys, prefix), bisect_right(self._keys, after))
        page = []
        for key in self._keys[start : start + limit]:
            if not key.startswith(prefix):
                break
            page.append(Listed(key, self._objects[key].version))
        return page

    async def delete(self, key: str) -> None:
        if self._objects.pop(key, None) is not None:
            self._keys.remove(key)

    async def close(self) -> None:
        pass
