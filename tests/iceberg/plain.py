"""The plain twin of `frazil.iceberg.updates`: one dict, changed in place. For updates of v2."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

RETENTION = ("min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms")


class Refused(Exception):
    """The update cannot be applied."""


def apply(base: dict[str, Any], updates: Sequence[dict[str, Any]], now_ms: int, previous: str | None) -> dict[str, Any]:
    table = copy.deepcopy(base)
    added: list[tuple[int, int]] = []
    mains: list[int] = []
    removed = False
    last_schema = None
    for update in updates:
        match update["action"]:
            case "add-snapshot":
                add_snapshot(table, update["snapshot"])
                added.append((update["snapshot"]["snapshot-id"], update["snapshot"]["timestamp-ms"]))
            case "set-snapshot-ref":
                set_ref(table, update, mains)
            case "remove-snapshot-ref":
                remove_ref(table, update["ref-name"])
            case "remove-snapshots":
                removed |= remove_snapshots(table, set(update["snapshot-ids"]))
            case "set-properties":
                table["properties"] |= update["updates"]
            case "remove-properties":
                for key in update["removals"]:
                    table["properties"].pop(key, None)
            case "set-statistics":
                file = update["statistics"]
                ids = [other["snapshot-id"] for other in table["statistics"]]
                if file["snapshot-id"] in ids:
                    table["statistics"][ids.index(file["snapshot-id"])] = file
                else:
                    table["statistics"].append(file)
            case "remove-statistics":
                table["statistics"] = without(table["statistics"], {update["snapshot-id"]})
            case "add-schema":
                last_schema = add_schema(table, update["schema"])
            case "set-current-schema":
                table["current-schema-id"] = last_schema
    if table == base and not added and not removed:
        return base
    finish(table, base, now_ms, previous, added, mains, removed)
    return table


def add_snapshot(table: dict[str, Any], snapshot: dict[str, Any]) -> None:
    if any(other["snapshot-id"] == snapshot["snapshot-id"] for other in table["snapshots"]):
        raise Refused
    if snapshot["sequence-number"] <= table["last-sequence-number"] and "parent-snapshot-id" in snapshot:
        raise Refused
    table["last-sequence-number"] = max(snapshot["sequence-number"], table["last-sequence-number"])
    table["snapshots"].append(snapshot)


def set_ref(table: dict[str, Any], update: dict[str, Any], mains: list[int]) -> None:
    name, id = update["ref-name"], update["snapshot-id"]
    old = table["refs"].get(name)
    if old is None or old["type"] != update["type"]:
        old = {}
    ref = old | {key: value for key, value in update.items() if key not in ("action", "ref-name")}
    ref = {key: value for key, value in ref.items() if value is not None or key not in RETENTION}
    if ref == table["refs"].get(name):
        return
    if all(snapshot["snapshot-id"] != id for snapshot in table["snapshots"]):
        raise Refused
    table["refs"][name] = ref
    if name == "main" and table["current-snapshot-id"] != id:
        table["current-snapshot-id"] = id
        mains.append(id)


def remove_ref(table: dict[str, Any], name: str) -> None:
    if table["refs"].pop(name, None) is not None and name == "main":
        table["current-snapshot-id"] = -1


def remove_snapshots(table: dict[str, Any], ids: set[int]) -> bool:
    ids = ids & {snapshot["snapshot-id"] for snapshot in table["snapshots"]}
    if not ids:
        return False
    table["snapshots"] = without(table["snapshots"], ids)
    table["statistics"] = without(table["statistics"], ids)
    for name, ref in list(table["refs"].items()):
        if ref["snapshot-id"] in ids:
            remove_ref(table, name)
    return True


def add_schema(table: dict[str, Any], schema: dict[str, Any]) -> int:
    for other in table["schemas"]:
        if {**other, "schema-id": 0} == {**schema, "schema-id": 0}:
            return int(other["schema-id"])
    id = 1 + max(other["schema-id"] for other in table["schemas"])
    table["schemas"].append({**schema, "schema-id": id})
    table["last-column-id"] = max([table["last-column-id"], *(field["id"] for field in schema["fields"])])
    return id


def finish(
    table: dict[str, Any],
    base: dict[str, Any],
    now_ms: int,
    previous: str | None,
    added: list[tuple[int, int]],
    mains: list[int],
    removed: bool,
) -> None:
    known = {snapshot["snapshot-id"]: snapshot["timestamp-ms"] for snapshot in table["snapshots"]}
    log, files = table["snapshot-log"], table["metadata-log"]
    times = [now_ms, base["last-updated-ms"], *known.values(), *(at_ms for _, at_ms in added)]
    times += [snapshot["timestamp-ms"] for snapshot in base["snapshots"]]
    times += [entry["timestamp-ms"] for entry in (*log[-1:], *files[-1:])]
    table["last-updated-ms"] = max(times)
    for id in mains:
        if id in dict(added) and id != table["current-snapshot-id"]:
            continue
        at_ms = known[id] if id in dict(added) else table["last-updated-ms"]
        log.append({"snapshot-id": id, "timestamp-ms": in_order(at_ms, log)})
    if removed:
        gaps = [at for at, entry in enumerate(log) if entry["snapshot-id"] not in known]
        table["snapshot-log"] = log[gaps[-1] + 1 :] if gaps else log
    if previous is not None:
        files.append({"metadata-file": previous, "timestamp-ms": in_order(base["last-updated-ms"], files)})
        most = max(1, int(table["properties"].get("write.metadata.previous-versions-max", "100")))
        table["metadata-log"] = files[-most:]


def in_order(at_ms: int, log: list[dict[str, Any]]) -> int:
    if log and at_ms < log[-1]["timestamp-ms"] - 60_000:
        return int(log[-1]["timestamp-ms"])
    return at_ms


def without(items: list[dict[str, Any]], ids: set[int]) -> list[dict[str, Any]]:
    return [item for item in items if item["snapshot-id"] not in ids]
