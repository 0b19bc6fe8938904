"""Makes a `Store` of a backend: a conditional write ends as applied, overtaken or undecided, and never lies.

A store answers "refused" to the repeat of one's own write that landed, and nothing at all when it is slow. So on
anything but a clean success the guard reads the object back and decides by what is there (rule 1 of the store
contract): its own bytes mean applied; an unchanged object means that the write can still land, so the very same bytes
are sent again; anything else means that the object moved on and this write can no longer land. Nobody is told "failed".

Awaits nothing but the backend and the clock, so that an explorer can step it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from frazil.effects import Chance, Clock
from frazil.errors import Unavailable
from frazil.limits import store_deadline_ms
from frazil.store.base import (
    Applied,
    Backend,
    Found,
    Listed,
    Overtaken,
    Put,
    StoreUnavailable,
    Unchanged,
    Unclear,
    Undecided,
)

T = TypeVar("T")

FIRST_PAUSE_MS = 10
LONGEST_PAUSE_MS = 500


class SendAgain(msgspec.Struct, frozen=True):
    """The object is as it was before the write, which may be lost, or still on its way."""


def verdict(body: bytes, condition_version: str | None, found: Found | None) -> Applied | Overtaken | SendAgain:
    """What a read-back says of a write of `body` over `condition_version` (None: over nothing)."""
    if found is not None and found.body == body:
        return Applied(found.version)
    # "Not there now" is not "lost" [H1]: a delayed write still lands while its condition holds. Sending the same bytes
    # again decides it, since only one of the two can be applied and either is ours.
    if (found.version if found is not None else None) == condition_version:
        return SendAgain()
    return Overtaken(found)


class Guard:
    """The store that the catalog awaits, over any backend."""

    def __init__(self, backend: Backend, clock: Clock, chance: Chance, deadline_ms: int = store_deadline_ms) -> None:
        self._backend = backend
        self._clock = clock
        self._chance = chance
        self._deadline_ms = deadline_ms

    async def put_new(self, key: str, body: bytes) -> Put:
        return await self._put(key, body, None)

    async def put_if(self, key: str, body: bytes, version: str) -> Put:
        return await self._put(key, body, version)

    async def _put(self, key: str, body: bytes, version: str | None) -> Put:
        patience = self._patience()
        while True:
            if version is None:
                answer = await self._backend.create(key, body)
            else:
                answer = await self._backend.swap(key, body, version)
            if isinstance(answer, Applied):
                return answer
            # A refusal is no verdict either: it may be the store's answer to an earlier try of ours that landed.
            reason = answer.reason if isinstance(answer, Unclear) else "the write is refused, yet the object unchanged"
            found = await self._read_back(key, patience)
            if isinstance(found, Undecided):
                return found
            decided = verdict(body, version, found)
            if not isinstance(decided, SendAgain):
                return decided
            if await patience.is_over():
                return Undecided(reason)

    async def _read_back(self, key: str, patience: Patience) -> Found | Undecided | None:
        while True:
            try:
                return await self._backend.get(key)
            except StoreUnavailable as error:
                if await patience.is_over():
                    return Undecided(f"no answer to the read-back: {error}")

    async def get(self, key: str) -> Found | None:
        return await self._read("get", key, lambda: self._backend.get(key))

    async def get_if_changed(self, key: str, version: str) -> Found | Unchanged | None:
        return await self._read("get", key, lambda: self._backend.get_if_changed(key, version))

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> Sequence[Listed]:
        return await self._read("list", prefix, lambda: self._backend.list(prefix, after, limit))

    async def delete(self, key: str) -> None:
        await self._read("delete", key, lambda: self._backend.delete(key))

    async def _read(self, verb: str, key: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask until there is an answer. Deleting belongs here: doing it twice is doing it once."""
        patience = self._patience()
        while True:
            try:
                return await ask()
            except StoreUnavailable as error:
                if await patience.is_over():
                    raise Unavailable(f"The object store did not answer: {verb} {key}: {error}") from error

    async def close(self) -> None:
        await self._backend.close()

    def _patience(self) -> Patience:
        return Patience(self._clock, self._chance, self._deadline_ms)


class Patience:
    """How long one call may go on asking, and how long it waits between two tries."""

    __slots__ = ("_chance", "_clock", "_deadline_ms", "_mark", "_pause_ms")

    def __init__(self, clock: Clock, chance: Chance, deadline_ms: int) -> None:
        self._clock = clock
        self._chance = chance
        self._deadline_ms = deadline_ms
        self._mark = clock.mark()
        self._pause_ms = FIRST_PAUSE_MS

    async def is_over(self) -> bool:
        """Whether the deadline has passed. If not, a pause has been made when this returns."""
        if await self._clock.passed(self._mark, self._deadline_ms):
            return True
        await self._clock.sleep(1 + self._chance.jitter_ms(self._pause_ms))
        self._pause_ms = min(2 * self._pause_ms, LONGEST_PAUSE_MS)
        return False
