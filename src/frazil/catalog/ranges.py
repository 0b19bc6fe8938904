"""Ordered maps in immutable ranges: a checkpoint rewrites what changed, a reader fetches what it asks for (§2).

Ranges stay encoded: the keys are read, the entries behind them only when looked up. So a change costs the same with a
hundred entries and with a million.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Mapping, Sequence

import msgspec

from frazil import limits
from frazil.catalog import formats
from frazil.effects import Effects
from frazil.errors import Corrupt, Unavailable
from frazil.store import keys
from frazil.store.base import Applied, Store

VERSION = 1

#: Below this a rewritten range joins its neighbour.
_SPARSE = limits.range_entries_max // 4


class Span(msgspec.Struct, frozen=True):
    """Where one range lies and what it covers."""

    first: str
    last: str
    count: int
    key: str


class Index(msgspec.Struct, frozen=True):
    """A checkpoint: every range of the three maps, as of change `seq`."""

    version: int
    seq: int
    names: list[Span]
    uuids: list[Span]
    operations: list[Span]


class _Body(msgspec.Struct, frozen=True):
    version: int
    entries: list[tuple[str, msgspec.Raw]]


class Range(msgspec.Struct, frozen=True):
    keys: list[str]
    bodies: list[msgspec.Raw]

    def get(self, key: str) -> msgspec.Raw | None:
        at = bisect_left(self.keys, key)
        return self.bodies[at] if at < len(self.keys) and self.keys[at] == key else None


class Ranges:
    """Reads and writes ranges of one catalog; immutable, so a cache is never wrong."""

    def __init__(self, store: Store, effects: Effects) -> None:
        self._store = store
        self._effects = effects
        self._cache: OrderedDict[str, Range] = OrderedDict()

    async def index(self, key: str | None) -> Index:
        if key is None:
            return Index(VERSION, 0, [], [], [])
        found = await self._store.get(key)
        if found is None:
            raise Corrupt(f"the registry's head names {key}, which is not there")
        return formats.decode(found.body, Index, VERSION, key)

    async def load(self, span: Span) -> Range:
        known = self._cache.get(span.key)
        if known is not None:
            self._cache.move_to_end(span.key)
            return known
        found = await self._store.get(span.key)
        if found is None:
            raise Corrupt(f"the registry's index names {span.key}, which is not there")
        body = formats.decode(found.body, _Body, VERSION, span.key)
        return self._keep(span.key, Range([key for key, _ in body.entries], [raw for _, raw in body.entries]))

    def _keep(self, key: str, range_: Range) -> Range:
        self._cache[key] = range_
        if len(self._cache) > limits.range_cache_entries:
            self._cache.popitem(last=False)
        return range_

    async def get(self, spans: Sequence[Span], key: str) -> msgspec.Raw | None:
        at = bisect_left(spans, key, key=lambda span: span.last)
        if at == len(spans) or spans[at].first > key:
            return None
        return (await self.load(spans[at])).get(key)

    async def scan(self, spans: Sequence[Span], prefix: str, after: str, most: int) -> list[tuple[str, msgspec.Raw]]:
        """Entries whose key starts with `prefix` and lies behind `after`, in order, at most `most`."""
        found: list[tuple[str, msgspec.Raw]] = []
        start = max(prefix, after)
        for span in spans[bisect_left(spans, start, key=lambda span: span.last) :]:
            if span.first > prefix and not span.first.startswith(prefix):
                break
            range_ = await self.load(span)
            for at in range(bisect_left(range_.keys, start), len(range_.keys)):
                key = range_.keys[at]
                if not key.startswith(prefix):
                    return found
                if key > after:
                    found.append((key, range_.bodies[at]))
                    if len(found) == most:
                        return found
        return found

    async def rewrite(
        self, spans: Sequence[Span], changes: Mapping[str, msgspec.Raw | None], seq: int, letter: str
    ) -> list[Span]:
        """The spans after `changes` (None removes). Only ranges that a change falls into are written anew."""
        groups: dict[int, dict[str, msgspec.Raw | None]] = {}
        for key in sorted(changes):
            at = min(bisect_left(spans, key, key=lambda span: span.last), max(len(spans) - 1, 0))
            groups.setdefault(at, {})[key] = changes[key]
        result: list[Span] = []
        written: list[tuple[Span, Range]] = []
        for at in range(len(spans)) if spans else range(1):
            if at not in groups:
                if spans:
                    result.append(spans[at])
                continue
            keys_, bodies = _merge(await self.load(spans[at]) if spans else Range([], []), groups[at])
            if result and 0 < len(keys_) < _SPARSE and result[-1].count + len(keys_) <= limits.range_entries_max:
                left = await self._left(result.pop(), written)
                keys_, bodies = left.keys + keys_, left.bodies + bodies
            for span, range_ in self._cut(keys_, bodies, seq, letter, len(written)):
                written.append((span, range_))
                result.append(span)
        await self._effects.tasks.together(*(self._write(span, range_) for span, range_ in written))
        return result

    async def _left(self, span: Span, written: list[tuple[Span, Range]]) -> Range:
        if written and written[-1][0] is span:
            return written.pop()[1]
        return await self.load(span)

    def _cut(
        self, keys_: list[str], bodies: list[msgspec.Raw], seq: int, letter: str, count: int
    ) -> list[tuple[Span, Range]]:
        pieces = -(-len(keys_) // limits.range_entries_max)
        cut = []
        for piece in range(pieces):
            start, end = piece * len(keys_) // pieces, (piece + 1) * len(keys_) // pieces
            name = keys.checkpoint(seq, f"{letter}{count + piece}-{self._effects.ids.stamp()}")
            span = Span(keys_[start], keys_[end - 1], end - start, name)
            cut.append((span, Range(keys_[start:end], bodies[start:end])))
        return cut

    async def _write(self, span: Span, range_: Range) -> None:
        body = formats.encode(_Body(VERSION, list(zip(range_.keys, range_.bodies, strict=True))))
        if not isinstance(await self._store.put_new(span.key, body), Applied):
            raise Unavailable("a part of the registry's checkpoint could not be written; nothing was applied")
        self._keep(span.key, range_)

    async def write_index(self, index: Index) -> str:
        key = keys.checkpoint(index.seq, f"index-{self._effects.ids.stamp()}")
        if not isinstance(await self._store.put_new(key, formats.encode(index)), Applied):
            raise Unavailable("the registry's checkpoint could not be written; nothing was applied")
        return key


def _merge(range_: Range, changes: Mapping[str, msgspec.Raw | None]) -> tuple[list[str], list[msgspec.Raw]]:
    keys_, bodies = list(range_.keys), list(range_.bodies)
    for key, body in changes.items():
        at = bisect_left(keys_, key)
        there = at < len(keys_) and keys_[at] == key
        if body is None:
            if there:
                del keys_[at], bodies[at]
        elif there:
            bodies[at] = body
        else:
            keys_.insert(at, key)
            bodies.insert(at, body)
    return keys_, bodies


def without_older(spans: Sequence[Span], oldest: str) -> list[Span]:
    """Drop ranges that lie wholly before `oldest`: operation ids are in the order of time, so they age out whole."""
    return list(spans[bisect_right(spans, oldest, key=lambda span: span.last) :])
