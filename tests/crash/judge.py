"""Judging a directory after the killing: from receipts and from every metadata file, against the ledger."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frazil.catalog import formats
from frazil.catalog.pointers import Read, parse
from frazil.catalog.receipts import Receipt
from frazil.catalog.registry import Registry
from frazil.effects import system
from frazil.store import keys
from frazil.store.guard import Guard
from frazil.store.open import open_backend
from tests.crash.clients import Ledger


@dataclass
class Verdict:
    tables: int
    commits: int
    problems: list[str]


async def judge(root: Path, ledger: Ledger) -> Verdict:
    effects = system(lambda error: None)
    store = Guard(open_backend(str(root)), effects.clock, effects.chance)
    try:
        registry = Registry(store, effects)
        view = await registry.view()
        entries = dict(await view.page("ns\x00t", "", 1_000_000))
        names = {key.removeprefix("ns\x00t"): entry.uuid for key, entry in entries.items()}
        problems: list[str] = []
        histories: dict[str, list[Receipt]] = {}
        for path in sorted((root / "_catalog" / "iceberg_pointers").glob("*.json")):
            found = await store.get(keys.pointer(path.stem))
            assert found is not None
            read = parse(found, path.stem)
            if read.live and path.stem not in names.values():
                continue  # a creation died before its name was given: such a pointer proves nothing
            histories[path.stem] = await _history(store, read, problems)
        _judge_names(names, ledger, problems)
        _judge_commits(root, histories, ledger, problems)
        return Verdict(len(histories), sum(map(len, histories.values())), problems)
    finally:
        await store.close()


async def _history(store: Guard, read: Read, problems: list[str]) -> list[Receipt]:
    """Every commit of a table, newest first: the pointer's own, then by receipts alone."""

    history = [read.producer]
    while (previous := history[-1].previous) is not None:
        found = await store.get(previous)
        if found is None:
            problems.append(f"the receipt {previous} is missing")
            break
        history.append(formats.decode(found.body, Receipt, 1, previous))
    numbers = [receipt.commit_number for receipt in history]
    if numbers != list(range(numbers[0], -1, -1)):
        problems.append(f"{read.pointer.table_uuid}: the commit numbers have gaps: {numbers}")
    return history


def _judge_names(names: dict[str, str], ledger: Ledger, problems: list[str]) -> None:
    for name, expected in ledger.names.items():
        if (name in names) != expected:
            problems.append(f"{name} is {'missing' if expected else 'still there'}")


def _judge_commits(root: Path, histories: dict[str, list[Receipt]], ledger: Ledger, problems: list[str]) -> None:
    times = Counter(receipt.metadata_location for history in histories.values() for receipt in history)
    hashes = Counter(Path(location).name.split("-")[1] for location in times)
    for location, count in times.items():
        if count > 1:
            problems.append(f"{location} is {count} times in the history")
    for hash_, count in hashes.items():
        if count > 1:
            problems.append(f"the key {hash_} was applied {count} times")
    for told in ledger.told:
        if told.status == 200 and told.location is not None and times[told.location] != 1:
            problems.append(f"{told.operation} {told.key or '(keyless)'} was acknowledged, and is not in the history")
        if 400 <= told.status < 500 and told.key and hashes[keys.key_hash(told.key)]:
            problems.append(f"{told.key} was told {told.status}, and is in the history")
    for history in histories.values():
        _judge_files(root, history, problems)


def _judge_files(root: Path, history: list[Receipt], problems: list[str]) -> None:
    """Each commit's file is there, and adds to what its predecessor's holds: nothing is lost on the way."""
    held: set[str] = set()
    for receipt in reversed(history):
        path = Path(receipt.metadata_location.removeprefix("file://"))
        try:
            document: dict[str, Any] = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            problems.append(f"{path} cannot be read: {error}")
            return
        properties = set(document.get("properties", {}))
        if not held <= properties or (receipt.commit_number and len(properties - held) != 1):
            problems.append(f"{path} lost or doubled something: {len(held)} properties before, {len(properties)} after")
        held = properties
