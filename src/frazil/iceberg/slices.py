"""Arrays of a document kept as encoded bytes: appending to one costs what is appended, whatever it holds already.

This is the one clever module of the package. Its plain twin is `tests/iceberg/plain.py` (a dict, decoded and encoded
whole), which must give the same document for any sequence of updates; `tests/iceberg/test_slices.py` prints and bounds
the cost.

    one append, µs (2 cores, CPython 3.11)               10 snapshots    1 000    10 000    100 000
    apply() with all its checks, and parts()                       23       23        24         36
    orjson.loads and dumps of the document, nothing else           17    1 400    42 000

- Items live in a short *tail*, one `bytes` each. A full tail of `SEAL` items is joined into one *sealed* chunk; the
  chunks of a version are shared by every version after it. Nothing that exists is ever changed.
- A sealed chunk ends in a comma and the tail is never empty when there are chunks, so that writing the array out is
  concatenation, with no look inside.
- Snapshot ids of the tail are a small dict, copied on append. Those of the sealed chunks are one big dict shared by the
  versions of a table: the newest version extends it in place, a fork copies its part. A version looks no further than
  its own length, so what a sibling added is not there for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from threading import Lock

import msgspec

SEAL = 64

_split = msgspec.json.Decoder(list[msgspec.Raw])


def split(array: bytes) -> list[bytes]:
    """The items of an encoded array, each as it stands there."""
    return [bytes(item) for item in _split.decode(array)]


class Slices(msgspec.Struct, frozen=True):
    """An array, encoded; `append` and `of` make another one."""

    sealed: tuple[bytes, ...] = ()
    tail: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, items: list[bytes] | list[msgspec.Raw]) -> Slices:
        loose = (len(items) - 1) // SEAL * SEAL if items else 0
        sealed = tuple(b",".join(items[at : at + SEAL]) + b"," for at in range(0, loose, SEAL))
        return cls(sealed, tuple(bytes(item) for item in items[loose:]))

    def __len__(self) -> int:
        return len(self.sealed) * SEAL + len(self.tail)

    def append(self, item: bytes) -> Slices:
        if len(self.tail) < SEAL:
            return Slices(self.sealed, (*self.tail, item))
        return Slices((*self.sealed, b",".join(self.tail) + b","), (item,))

    def last(self) -> bytes | None:
        return self.tail[-1] if self.tail else None

    def item(self, position: int) -> bytes:
        chunk, within = divmod(position, SEAL)
        if chunk == len(self.sealed):
            return self.tail[within]
        return split(b"[" + self.sealed[chunk][:-1] + b"]")[within]

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self.sealed:
            yield from split(b"[" + chunk[:-1] + b"]")
        yield from self.tail

    def parts(self) -> list[bytes]:
        """The array's inside, without its brackets."""
        return [*self.sealed, b",".join(self.tail)]


class _Positions:
    """Which sealed snapshot stands where; shared by versions, see above. The order of the dict is that of the array."""

    __slots__ = ("_extending", "of")

    def __init__(self, of: dict[int, int]) -> None:
        self.of = of
        self._extending = Lock()

    def extended(self, length: int, ids: Iterable[int]) -> _Positions:
        """With `ids` behind the first `length`: in place for the newest version, a copy for a fork."""
        with self._extending:
            if len(self.of) == length:
                self.of.update(zip(ids, range(length, length + SEAL), strict=False))
                return self
            mine = dict(islice(self.of.items(), length))
        return _Positions(mine).extended(length, ids)


class Snapshots(msgspec.Struct, frozen=True):
    """The snapshots of one version of a table, found by id."""

    slices: Slices
    #: The newest timestamp among them (and among removed ones: it only ever grows).
    newest_ms: int
    tail_ids: dict[int, int]
    positions: _Positions

    @classmethod
    def of(cls, items: list[bytes] | list[msgspec.Raw], ids: list[int], newest_ms: int) -> Snapshots:
        slices = Slices.of(items)
        loose = len(slices.sealed) * SEAL
        tail_ids = {id: at for at, id in enumerate(ids[loose:], loose)}
        return cls(slices, newest_ms, tail_ids, _Positions({id: at for at, id in enumerate(ids[:loose])}))

    def __len__(self) -> int:
        return len(self.slices)

    def position(self, id: int) -> int | None:
        at = self.tail_ids.get(id)
        if at is None:
            at = self.positions.of.get(id)
            if at is not None and at >= len(self.slices.sealed) * SEAL:
                return None
        return at

    def get(self, id: int) -> bytes | None:
        at = self.position(id)
        return None if at is None else self.slices.item(at)

    def ids(self) -> list[int]:
        return [*islice(self.positions.of, len(self.slices.sealed) * SEAL), *self.tail_ids]

    def append(self, id: int, timestamp_ms: int, item: bytes) -> Snapshots:
        at = len(self.slices)
        slices = self.slices.append(item)
        newest_ms = max(self.newest_ms, timestamp_ms)
        if len(slices.sealed) == len(self.slices.sealed):
            return Snapshots(slices, newest_ms, {**self.tail_ids, id: at}, self.positions)
        positions = self.positions.extended(len(self.slices.sealed) * SEAL, self.tail_ids)
        return Snapshots(slices, newest_ms, {id: at}, positions)

    def without(self, removed: Collection[int]) -> Snapshots:
        """Costs what the whole array costs: expiry rewrites it."""
        ids = self.ids()
        kept = [(item, id) for item, id in zip(self.slices, ids, strict=True) if id not in removed]
        return Snapshots.of([item for item, _ in kept], [id for _, id in kept], self.newest_ms)

    def only(self, ids: Iterable[int]) -> list[bytes]:
        """The snapshots of these ids, in the array's order; ids that are not here are left out."""
        positions = {self.position(id) for id in ids}
        return [self.slices.item(at) for at in sorted(at for at in positions if at is not None)]
