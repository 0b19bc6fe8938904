"""What an append costs in the core as a table's history grows: before bytes are written, and writing them.

In this process, without a server: over HTTP the bytes of the answer hide what is asked here.
"""

from __future__ import annotations

import time
from typing import Any

import orjson

from bench import payloads
from frazil.iceberg import updates
from frazil.iceberg.metadata import TableMetadata

SIZES = (10, 1_000, 10_000)
#: The first figure may grow this many times from the smallest to the largest table.
FLAT = 3.0
UUID = "0b1d3a5c-8f6e-4a52-9a34-0c9a4f2d7e11"
LOCATION = "file:///tmp/bench"
#: Appends in a row before starting again from a fresh table: enough to meet the rarer work of the append path (it seals
#: a chunk every 64 snapshots), few enough that a small table stays small.
RUN, RUNS = 64, 16


def measure() -> dict[str, dict[str, float]]:
    return {str(size): _cost(size) for size in SIZES}


def _cost(snapshots: int) -> dict[str, float]:
    """Best of the runs: what others do on the machine can only add."""
    stored = _table(snapshots).encode()
    applied, written = [], []
    for _ in range(RUNS):
        table = TableMetadata.parse(stored)
        bodies = [_append(at) for at in range(snapshots + 1, snapshots + RUN + 1)]
        begin = time.perf_counter_ns()
        for body in bodies:
            table = _apply(table, orjson.loads(body))
        middle = time.perf_counter_ns()
        table.encode()
        applied.append((middle - begin) / RUN / 1000)
        written.append((time.perf_counter_ns() - middle) / 1000)
    return {"before_us": min(applied), "bytes_us": min(written), "bytes": len(stored)}


def _table(snapshots: int) -> TableMetadata:
    created = updates.create(
        schema=payloads.SCHEMA,
        partition_spec=None,
        write_order=None,
        location=LOCATION,
        properties={},
        uuid=UUID,
        now_ms=time.time_ns() // 1_000_000,
        format_version=None,
    )
    assert isinstance(created, TableMetadata)
    now_ms = time.time_ns() // 1_000_000
    added = [payloads.snapshot(at, LOCATION, now_ms) for at in range(1, snapshots + 1)]
    return _apply(created, orjson.loads(payloads.commit(UUID, None, added, [])))


def _append(at: int) -> bytes:
    now_ms = time.time_ns() // 1_000_000
    return payloads.commit(UUID, payloads.FIRST_ID + at - 1, [payloads.snapshot(at, LOCATION, now_ms)], [])


def _apply(table: TableMetadata, body: dict[str, Any]) -> TableMetadata:
    changed = updates.apply(
        table,
        body["requirements"],
        body["updates"],
        now_ms=time.time_ns() // 1_000_000,
        previous_location=f"{LOCATION}/metadata/00001-x.metadata.json",
    )
    assert isinstance(changed, TableMetadata), changed
    return changed
