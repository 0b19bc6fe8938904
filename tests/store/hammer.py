"""One of several processes that work on the same local directory until they are killed (see test_local_processes.py).

Every update is a compare-and-swap that adds one to a count. What is acknowledged goes to a ledger, in one `write` each,
which a kill cannot take back. Readers watch that nothing is torn and that no version goes back.
"""

import asyncio
import hashlib
import os
import random
import sys

from frazil.store.base import Applied, Found, Unchanged
from frazil.store.local import LocalBackend

RECORDS = [f"_catalog/iceberg_pointers/{n}.json" for n in range(3)]
PLAIN = ["tables/hammered/state", "_catalog/cdc/state"]
KEYS = RECORDS + PLAIN
FRESH = "_catalog/events/{}.json"


def body(count: int, stamp: str) -> bytes:
    # From one block to far beyond the first slots, so that records outgrow them under fire.
    text = f"{count} {stamp} ".encode() + b"x" * random.choice((10, 300, 3000, 9000, 40000))
    return text + b" " + hashlib.sha256(text).hexdigest().encode()


def check(found: Found) -> tuple[int, int]:
    """Count and version of a body that is whole."""
    text, _, digest = found.body.rpartition(b" ")
    assert hashlib.sha256(text).hexdigest().encode() == digest, "a torn read"
    return int(text.split()[0]), int(found.version)


async def update(backend: LocalBackend, key: str, ledger: int, name: str) -> None:
    turn = 0
    while True:
        turn += 1
        found = await backend.get(key)
        assert found is not None
        count, version = check(found)
        stamp = f"{name}-{turn}"
        answer = await backend.swap(key, body(count + 1, stamp), found.version)
        if isinstance(answer, Applied):
            assert int(answer.version) > version
            os.write(ledger, f"{key} {count + 1} {answer.version} {stamp}\n".encode())
        await asyncio.sleep(0)


async def create(backend: LocalBackend, ledger: int, name: str) -> None:
    """Names that all processes want: each has one winner."""
    number = 0
    while True:
        key = FRESH.format(number)
        answer = await backend.create(key, body(number, name))
        if isinstance(answer, Applied):
            os.write(ledger, f"{key} {number} {answer.version} {name}\n".encode())
        number += 1
        await asyncio.sleep(0)


async def watch(backend: LocalBackend, key: str) -> None:
    last = (-1, 0)
    while True:
        found = await backend.get(key)
        assert found is not None
        seen = check(found)
        assert seen >= last, f"a reader went back from {last} to {seen}"
        assert seen == last or (seen[0] > last[0] and seen[1] > last[1]), f"version and count disagree: {last}, {seen}"
        last = seen
        again = await backend.get_if_changed(key, found.version)
        if isinstance(again, Found):
            seen = check(again)
            assert seen > last, f"a reader went back from {last} to {seen}"
            last = seen
        else:
            assert isinstance(again, Unchanged)
        await asyncio.sleep(0)


async def main(root: str, ledger: str, sync: bool, nameless: bool) -> None:
    backend = LocalBackend(root, sync=sync, nameless=nameless)
    fd = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    name = str(os.getpid())
    for key in KEYS:
        await backend.create(key, body(0, "start"))
    async with asyncio.TaskGroup() as group:
        for key in KEYS:
            group.create_task(update(backend, key, fd, f"{name}-a"))
            group.create_task(update(backend, key, fd, f"{name}-b"))
            group.create_task(watch(backend, key))
        group.create_task(create(backend, fd, name))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3] == "sync", sys.argv[4] == "nameless"))
