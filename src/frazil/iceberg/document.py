"""A table metadata file as bytes in order: read without a look inside what need not be known, and written back.

Every top-level value stays the slice it was until an update replaces that value, so what nobody knows survives, and
numbers of any size stay the digits they were. Only the three arrays that grow with every commit are taken apart.
"""

from __future__ import annotations

import zlib
from typing import Annotated, TypeVar

import msgspec

from frazil import limits
from frazil.errors import BadInput
from frazil.iceberg.slices import Slices, Snapshots

GZIP_MAGIC = b"\x1f\x8b"

#: Values at least this long are slices of their own when a document is written; shorter ones are joined.
OWN_SLICE_BYTES = 16 * 1024

T = TypeVar("T")
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

#: Not orjson's: this one writes integers of any size.
encode = msgspec.json.encode


class Document(msgspec.Struct, frozen=True):
    """`head` is every top-level value but the three arrays; `bare` names the arrays not written while empty."""

    head: dict[str, bytes]
    snapshots: Snapshots
    snapshot_log: Slices
    metadata_log: tuple[bytes, ...]
    bare: frozenset[str] = frozenset()

    def parts(self) -> list[bytes]:
        return self._written(self.snapshots.slices.parts(), len(self.snapshots))

    def parts_with(self, snapshots: list[bytes]) -> list[bytes]:
        """The document with these snapshots in place of its own."""
        return self._written([b",".join(snapshots)], len(snapshots))

    def _written(self, snapshots: list[bytes], count: int) -> list[bytes]:
        out: list[bytes] = []
        run: list[bytes] = []
        opening = b'{"'
        for key, value in self.head.items():
            # Most keys are plain names; a foreign one may need escaping.
            name = key.encode() if key.isascii() and key.replace("-", "").isalnum() else encode(key)[1:-1]
            run += (opening, name, b'":')
            opening = b',"'
            if len(value) < OWN_SLICE_BYTES:
                run.append(value)
            else:
                out += (b"".join(run), value)
                run = []
        for key, inside, length in (
            ("snapshots", snapshots, count),
            ("snapshot-log", self.snapshot_log.parts(), len(self.snapshot_log)),
            ("metadata-log", [b",".join(self.metadata_log)], len(self.metadata_log)),
        ):
            if length or key not in self.bare:
                run += (opening, key.encode(), b'":[')
                opening = b',"'
                out.append(b"".join(run))
                out += inside
                run = [b"]"]
        out.append(b"".join((*run, b"}")))
        return out


class _Snapshot(msgspec.Struct, rename="kebab", gc=False):
    snapshot_id: Int64
    timestamp_ms: Int64
    sequence_number: Int64 | None = None


class StatisticsFile(msgspec.Struct, rename="kebab", gc=False):
    """What a statistics file says of whose it is."""

    snapshot_id: Int64


class _SnapshotLogEntry(msgspec.Struct, rename="kebab", gc=False):
    timestamp_ms: Int64
    snapshot_id: Int64


class _MetadataLogEntry(msgspec.Struct, rename="kebab", gc=False):
    timestamp_ms: Int64
    metadata_file: str


_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_SNAPSHOTS = msgspec.json.Decoder(list[_Snapshot])
_SNAPSHOT_LOG = msgspec.json.Decoder(list[_SnapshotLogEntry])
_METADATA_LOG = msgspec.json.Decoder(list[_MetadataLogEntry])
STATISTICS_FILES = msgspec.json.Decoder(list[StatisticsFile] | None)
_ANYTHING = msgspec.json.Decoder()


def read(data: bytes) -> Document:
    """A document from the bytes of a metadata file, gzipped or not. Says nothing yet of whether it makes sense."""
    if data[:2] == GZIP_MAGIC:
        data = _inflated(data)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"Table metadata is not UTF-8: {error.reason} at byte {error.start}") from None
    top = decoded(data, _TOP, "Table metadata")
    head = {key: bytes(value) for key, value in top.items()}
    bare = frozenset(key for key in ("snapshots", "snapshot-log", "metadata-log") if head.get(key, b"null") == b"null")
    arrays = {key: head.pop(key, b"[]") for key in ("snapshots", "snapshot-log", "metadata-log") if key not in bare}
    return Document(
        head,
        _snapshots(
            arrays.get("snapshots", b"[]"),
            decoded(head.get("last-sequence-number", b"0"), _ANYTHING, "last-sequence-number"),
        ),
        _snapshot_log(arrays.get("snapshot-log", b"[]")),
        _metadata_log(arrays.get("metadata-log", b"[]")),
        bare,
    )


def _snapshots(array: bytes, last_sequence_number: object) -> Snapshots:
    items = decoded(array, _ITEMS, "snapshots")
    heads = decoded(array, _SNAPSHOTS, "snapshots")
    ids = [head.snapshot_id for head in heads]
    if len(set(ids)) != len(ids):
        raise BadInput(f"Table metadata is malformed: two snapshots have the id {_first_repeated(ids)}")
    newest = max((head.sequence_number or 0 for head in heads), default=0)
    if isinstance(last_sequence_number, int) and newest > last_sequence_number:
        raise BadInput(
            f"Table metadata is malformed: a snapshot has sequence number {newest}, "
            f"greater than last-sequence-number {last_sequence_number}"
        )
    return Snapshots.of(items, ids, max((head.timestamp_ms for head in heads), default=0))


def _first_repeated(ids: list[int]) -> int:
    seen: set[int] = set()
    return next(id for id in ids if id in seen or seen.add(id))  # type: ignore[func-returns-value]


def _snapshot_log(array: bytes) -> Slices:
    decoded(array, _SNAPSHOT_LOG, "snapshot-log")
    return Slices.of(decoded(array, _ITEMS, "snapshot-log"))


def _metadata_log(array: bytes) -> tuple[bytes, ...]:
    decoded(array, _METADATA_LOG, "metadata-log")
    return tuple(bytes(item) for item in decoded(array, _ITEMS, "metadata-log"))


def decoded(data: bytes, decoder: msgspec.json.Decoder[T], what: str) -> T:
    """`data` as what `decoder` reads; anything else is the sender's fault, said with the place."""
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadInput(f"{what} is malformed: {error}") from None
    except RecursionError:
        raise BadInput(f"{what} is nested too deep") from None


def _inflated(data: bytes) -> bytes:
    out = bytearray()
    try:
        while data:
            member = zlib.decompressobj(wbits=31)
            out += member.decompress(data, limits.metadata_bytes_max - len(out) + 1)
            if len(out) > limits.metadata_bytes_max:
                raise BadInput(f"Table metadata inflates to more than {limits.metadata_bytes_max} bytes")
            if not member.eof:
                raise BadInput("Table metadata is malformed: the gzip stream ends early")
            data = member.unused_data
    except zlib.error as error:
        raise BadInput(f"Table metadata is malformed: {error}") from None
    return bytes(out)
