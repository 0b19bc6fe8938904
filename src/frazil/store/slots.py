"""The file of a record in a local directory: two slots, written in turn, each a line of header and a body.

    {"frazil-slot":1,"slot":      4096,"n": 1795000000000000001,"bytes":       312,"crc":"5f0c2a91"}
    {"version":1, …}

`cat` and `jq` show it. A record is rewritten in place, never renamed over (3.7 against 108 µs, and ext4 slows down for
minutes after many renames; docs/adr/0003). The second slot begins at offset `slot`, so neither shares a block with the
other. The truth is the whole slot (its checksum holds) with the highest `n`: a writer that dies in the middle, or a
power loss, spoils at most the slot that was being written, and the other one is the state before.

A file without any second slot whose only slot ends early never was a record: the machine lost power after the name, and
before the content, reached the disk, hence before anybody was told of it.
"""

from __future__ import annotations

import os
import zlib
from enum import Enum
from typing import Final

import msgspec

from frazil.errors import Corrupt

BLOCK = 4096
_MARK = b'{"frazil-slot":1,"slot":'
_FIELDS = _MARK + b'%10d,"n":%20d,"bytes":%10d'
_HEADER = _FIELDS + b',"crc":"%08x"}\n'
_SLOT = slice(len(_MARK), len(_MARK) + 10)
_N = slice(_SLOT.stop + 5, _SLOT.stop + 25)
_BYTES = slice(_N.stop + 9, _N.stop + 19)
_CRC = slice(_BYTES.stop + 8, _BYTES.stop + 16)
_END = b'"}\n'
HEADER_BYTES = _CRC.stop + len(_END)


class Slot(msgspec.Struct, frozen=True, gc=False):
    """What a header says. Whether the body agrees is another question."""

    at: int
    capacity: int
    n: int
    size: int
    crc: int


class Torn(Enum):
    """What a reader without the lock sees of a write in progress, or of a writer that died."""

    TORN = 0


TORN: Final = Torn.TORN


def new(n: int, body: bytes, capacity: int = BLOCK) -> bytes:
    """The content of a file made anew: one slot, with room to grow by half before the file must be made again."""
    while capacity < HEADER_BYTES + len(body) + len(body) // 2 + 1:
        capacity *= 2
    return _encode(capacity, n, body) + b"\n"


def overwrite(current: Slot, file_size: int, n: int, body: bytes) -> tuple[int, bytes] | None:
    """Where to write what so that `body` becomes the state after `current`; None when it does not fit."""
    content = _encode(current.capacity, n, body)
    if len(content) + 1 > current.capacity:
        return None
    if current.at == 0:
        # Spaces bridge the end of the first slot (its only write) and the start of this one; what a longer body left
        # at the end is blanked.
        start = min(file_size, current.capacity)
        bridge = b" " * (current.capacity - start)
        return start, bridge + content.ljust(file_size - current.capacity - 1) + b"\n"
    return 0, content.ljust(current.capacity - 1) + b"\n"


def is_newest(fd: int, version: str) -> bool:
    """Whether the headers say beyond doubt that `version` is the newest number. The hottest read there is: no parsing
    (6.7 to 5.3 µs for all of `get_if_changed`), since numbers of one width compare as text."""
    first = os.pread(fd, HEADER_BYTES, 0)
    if not (first.startswith(_MARK) and first.endswith(_END)):
        return False
    second = os.pread(fd, HEADER_BYTES, int(first[_SLOT]))
    if second and not (second.startswith(_MARK) and second.endswith(_END)):
        return False
    return max(first[_N], second[_N]) == version.rjust(20).encode()


def read(fd: int) -> tuple[int, bytes] | Torn | None:
    """Number and body, without a lock. None: no record; TORN: look again under the shared lock."""
    found = look(fd)
    if found is TORN:
        return TORN
    if not found:
        return None
    body = _body(fd, found[0])
    return TORN if body is None else (found[0].n, body)


def read_locked(fd: int, name: str) -> tuple[int, bytes] | None:
    """Number and body, while nobody writes: the newest slot that is whole."""
    candidates = survivors(fd)
    for slot in candidates:
        body = _body(fd, slot)
        if body is not None:
            return slot.n, body
    if _ends_early(fd, candidates):
        return None
    raise Corrupt(f"The record {name} is spoilt: none of its slots is whole")


def current(fd: int, name: str, expected_n: int) -> Slot | None:
    """The slot that is the truth, while nobody writes. The body is read only if that is not the expected one."""
    found = look(fd)
    if found is not TORN and found and found[0].n == expected_n:
        # The number was told to somebody, so the slot was whole. No power loss undoes that: nobody who was told
        # survives it, and what he wrote was made durable no sooner than the slot (see barrier.py).
        return found[0]
    whole = read_locked(fd, name)
    if whole is None:
        return None
    return next(slot for slot in survivors(fd) if slot.n == whole[0])


def look(fd: int) -> list[Slot] | Torn:
    """The headers, newest first. TORN: one of them is in the middle of a write. Empty: no record (see above)."""
    first = _parse(os.pread(fd, HEADER_BYTES, 0), 0)
    if first is None:
        return TORN if os.fstat(fd).st_size > 0 else []
    raw = os.pread(fd, HEADER_BYTES, first.capacity)
    if not raw:
        return [first]
    second = _parse(raw, first.capacity)
    if second is None:
        return TORN
    return [first, second] if first.n > second.n else [second, first]


def survivors(fd: int) -> list[Slot]:
    """Every readable header, newest first. A spoilt first header does not say where the second is: look everywhere."""
    size = os.fstat(fd).st_size
    first = _parse(os.pread(fd, HEADER_BYTES, 0), 0)
    found = [first] if first is not None else []
    at = first.capacity if first is not None else BLOCK
    while at < size:
        slot = _parse(os.pread(fd, HEADER_BYTES, at), at)
        if slot is not None and slot.capacity == at:
            found.append(slot)
        if first is not None:
            break
        at *= 2
    return sorted(found, key=lambda slot: slot.n, reverse=True)


def _ends_early(fd: int, candidates: list[Slot]) -> bool:
    """Whether the file is shorter than its only slot, or nothing but zeros."""
    size = os.fstat(fd).st_size
    if not candidates:
        return size < HEADER_BYTES or not os.pread(fd, size, 0).strip(b"\0")
    return len(candidates) == 1 and candidates[0].at == 0 and size < HEADER_BYTES + candidates[0].size + 1


def _encode(capacity: int, n: int, body: bytes) -> bytes:
    fields = _FIELDS % (capacity, n, len(body))
    return _HEADER % (capacity, n, len(body), zlib.crc32(body, zlib.crc32(fields))) + body


def _parse(raw: bytes, at: int) -> Slot | None:
    if len(raw) < HEADER_BYTES or not raw.startswith(_MARK) or raw[_CRC.stop :] != _END:
        return None
    try:
        slot = Slot(at, int(raw[_SLOT]), int(raw[_N]), int(raw[_BYTES]), int(raw[_CRC], 16))
    except ValueError:
        return None
    return slot if slot.capacity >= BLOCK and slot.size >= 0 else None


def _body(fd: int, slot: Slot) -> bytes | None:
    """The body, if it is the one that the header speaks of."""
    body = os.pread(fd, slot.size, slot.at + HEADER_BYTES)
    crc = zlib.crc32(body, zlib.crc32(_FIELDS % (slot.capacity, slot.n, slot.size)))
    return body if crc == slot.crc and len(body) == slot.size else None
