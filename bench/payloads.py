"""Requests and bodies as Iceberg's clients send them."""

from __future__ import annotations

import itertools
from typing import Any

import orjson

COLUMNS = 30
FIRST_ID = 3_776_207_205_136_740_581  # snapshot ids are random longs; these have the right number of digits
_KEYS = itertools.count()

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": number, "name": f"column_{number}", "required": False, "type": "string" if number % 2 else "long"}
        for number in range(1, COLUMNS + 1)
    ],
}


def request(method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> bytes:
    """A whole HTTP/1.1 request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Accept: application/json"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "\r\n"]).encode() + body


def table(name: str) -> bytes:
    properties = {"write.metadata.previous-versions-max": "10"}
    return orjson.dumps({"name": name, "schema": SCHEMA, "properties": properties})


def snapshot(at: int, location: str, now_ms: int) -> dict[str, Any]:
    """The snapshot with sequence number `at` (from 1), as Spark would describe it: about 700 bytes."""
    number = FIRST_ID + at
    made: dict[str, Any] = {
        "sequence-number": at,
        "snapshot-id": number,
        "timestamp-ms": now_ms,
        "manifest-list": f"{location}/metadata/snap-{number}-1-0b1d3a5c-8f6e-4a52-9a34-0c9a4f2d7e11.avro",
        "schema-id": 0,
        "summary": {
            "operation": "append",
            "spark.app.id": "local-1762000000000",
            "added-data-files": "1",
            "added-records": "1000",
            "added-files-size": "123456",
            "changed-partition-count": "1",
            "total-records": str(1000 * at),
            "total-files-size": str(123456 * at),
            "total-data-files": str(at),
            "total-delete-files": "0",
            "total-position-deletes": "0",
            "total-equality-deletes": "0",
            "engine-version": "4.1.4",
            "app-id": "local-1762000000000",
            "engine-name": "spark",
            "iceberg-version": "Apache Iceberg 1.12.0",
        },
    }
    if at > 1:
        made["parent-snapshot-id"] = number - 1
    return made


def commit(uuid: str, main: int | None, added: list[dict[str, Any]], removed: list[int]) -> bytes:
    """Add snapshots, let `main` show the last of them, remove old ones."""
    updates: list[dict[str, Any]] = [{"action": "add-snapshot", "snapshot": each} for each in added]
    last = added[-1]["snapshot-id"]
    updates.append({"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": last})
    if removed:
        updates.append({"action": "remove-snapshots", "snapshot-ids": removed})
    requirements = [
        {"type": "assert-table-uuid", "uuid": uuid},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": main},
    ]
    return orjson.dumps({"requirements": requirements, "updates": updates})


def key(now_ms: int) -> str:
    """An idempotency key: UUIDv7, a new one each call."""
    count = next(_KEYS)
    return (
        f"{now_ms >> 16:08x}-{now_ms & 0xFFFF:04x}-7{count >> 48 & 0xFFF:03x}-8{count >> 44 & 0xFFF:03x}-{count:012x}"
    )
